# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One self-contained page of HTML: every figure, paper beside model."""

import html
import io

from lab import calibrate

try:
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    # The same page from the same results, to the byte.
    matplotlib.rcParams["svg.hashsalt"] = "weir"
except ImportError:
    pyplot = None

STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; }
td, th { border: 1px solid #bbb; padding: .25em .6em; text-align: left; vertical-align: top; }
.met { background: #e3f4e3; } .missed { background: #fbe3e0; } .open { background: #f2f2f2; }
svg { max-width: 100%; height: auto; }
"""

ABOUT = """
Every curve and every number in the column "model" comes from weir's simulator: it is modelled, not
measured. The column "paper" quotes what the papers published, measured on their machines. A target
that is marked calibrated was used to fit the model, so that it proves nothing. Where the paper
publishes no number there is an ordering or a shape to compare with, or nothing. What the model was
fitted to, and how well it fits, stands at the end.
"""


SPREAD = 64  # from the first x to the last: more of it is shown by its logarithm


def _plot(result):
    """An SVG, or why there is none."""
    if pyplot is None:
        return "<p>No plots: matplotlib is not installed (apt-get install python3-matplotlib).</p>"
    units = list(dict.fromkeys(series.unit for series in result.series))
    figure, grid = pyplot.subplots(len(units), figsize=(7, 3.4 * len(units)), squeeze=False)
    for unit, axes in zip(units, grid[:, 0]):
        for series in result.series:
            if series.unit != unit:
                continue
            words = isinstance(series.x[0], str)
            axes.plot(range(len(series.x)) if words else series.x, series.y, marker="o",
                      markersize=3, label=series.name)
            if words:
                axes.set_xticks(range(len(series.x)), series.x)
            elif series.x[0] > 0 and series.x[-1] >= SPREAD * series.x[0]:
                axes.set_xscale("log")
        axes.set_xlabel(result.x)
        axes.set_ylabel(unit)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize="small")
    figure.tight_layout()
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
    return out.getvalue()[out.getvalue().index("<svg"):]


def _row(cells, tag="td", style=""):
    attribute = f' class="{style}"' if style else ""
    inside = "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells)
    return f"<tr{attribute}>{inside}</tr>"


VERDICTS = {True: ("yes", "met"), False: ("no", "missed"), None: ("nothing to meet", "open")}


def _targets(result):
    rows = [_row(("what", "paper", "model", "met", "why not, or note"), "th")]
    for target in result.targets:
        verdict, style = VERDICTS[target.met]
        if target.calibrated:
            verdict += " (calibrated)"
        rows.append(_row((target.what, target.paper, target.model, verdict, target.why),
                         style=style))
    return f"<table>{''.join(rows)}</table>"


def _numbers(result):
    rows = [_row((result.x, *(f"{s.name}, {s.unit}" for s in result.series)), "th")]
    for x in dict.fromkeys(x for series in result.series for x in series.x):
        cells = [series.at(x) for series in result.series]
        rows.append(_row((x, *("" if cell is None else f"{cell:.4g}" for cell in cells))))
    return f"<details><summary>As numbers</summary><table>{''.join(rows)}</table></details>"


def _section(module, result):
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in result.notes)
    return (f'<h2 id="{module.NAME}">{module.NAME}: {html.escape(module.TITLE)}</h2>'
            f"<p>Varied: {html.escape(module.VARIED)}</p>{_plot(result)}{_targets(result)}{notes}"
            f"{_numbers(result)}")


def _summary(results):
    rows = [_row(("figure", "targets met", "missed", "of these calibrated"), "th")]
    for module, result in results:
        met = sum(target.met is True for target in result.targets)
        missed = sum(target.met is False for target in result.targets)
        fitted = sum(target.calibrated for target in result.targets)
        rows.append(_row((f"{module.NAME}: {module.TITLE}", met, missed, fitted or "")))
    return f"<table>{''.join(rows)}</table>"


def _fit(fit):
    rows = [_row(("x", f"measured, {fit.series.unit}", f"modelled, {fit.series.unit}", "error",
                  ""), "th")]
    rows += [_row((f"{point.x:g}", f"{point.measured:.2f}", f"{point.modelled:.2f}",
                   f"{point.error:+.0%}",
                   "" if point.within else f"more than {fit.series.within:.0%}"),
                  style="" if point.within else "missed") for point in fit.points]
    said = "".join(f"<p>{html.escape(note)}</p>" for note in calibrate.notes(fit))
    return f"<h3>{html.escape(fit.series.title)}</h3><table>{''.join(rows)}</table>{said}"


def _calibration(fits):
    begin = '<h2 id="calibration">What the model was fitted to</h2>'
    if not fits:
        return f"{begin}<p>Left out here; <code>weir lab calibrate</code> prints it.</p>"
    return (f"{begin}<p>Points that others measured, beside the model. {calibrate.summary(fits)}"
            f"</p><details><summary>All series</summary>{''.join(map(_fit, fits))}</details>")


def page(results, fits):
    """results: pairs of an experiment's module and its Result; fits: calibrate.fits(), or none.

    Return: HTML.
    """
    return ("<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>weir lab</title>"
            f"<style>{STYLE}</style></head><body><h1>The papers' figures, on a simulated NIC</h1>"
            f"<p>{ABOUT}</p>{_summary(results)}"
            f"{''.join(_section(module, result) for module, result in results)}"
            f"{_calibration(fits)}</body></html>\n")
