# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One self-contained page of HTML: every figure, paper beside model."""

import functools
import html
import io
import re

from lab import beside, calibrate
from lab.experiment import CAUSES

STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 72em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; }
td, th { border: 1px solid #bbb; padding: .25em .6em; text-align: left; vertical-align: top; }
.met { background: #e3f4e3; } .missed { background: #fbe3e0; } .open { background: #f2f2f2; }
svg { max-width: 100%; height: auto; }
.digest { color: #767676; font-size: smaller; }
"""

ABOUT = """
Every curve and every number in the column "model" comes from weir's simulator: it is modelled, not
measured. Dashed curves and the column "paper" quote values that the papers measured on their
machines. A target marked calibrated was used to fit the model. A target marked by input follows
from an input of the lab, or from a number that was fitted to another row. Neither proves anything.
Where the paper publishes no number, the comparison is with an ordering or a shape, or there is
none. An expectation of weir that no paper publishes is marked weir's own and counted apart. A
number is met within 15 % or less, unless a row says otherwise. Where the NIC is the paper's, each
missed target gives a reason, and one of three causes: the paper does not give an input, the model
lacks something, or weir works otherwise than the paper's system. Beside each run of weir's engine
stand plain verbs with a queue pair a thread. A heading names the subject of a figure; the targets
give the paper's claims, and whether the model confirms them. The calibration of the model, and how
well it fits, stand at the end.
"""


HELD_OUT = """
These points were set aside before any fitting, and no parameter was chosen by them: they show the
worth of the model. A number is met within 15 %. Where another point of the same figure was used,
the other point is marked calibrated there.
"""

NO_PLOTS = "No plots: matplotlib is not installed (apt-get install python3-matplotlib)."
SPREAD = 64  # ratio of maximum to minimum from which an axis is logarithmic


COLUMNS = 2


@functools.cache
def pyplot():
    """matplotlib's pyplot, or None: the import is slow, and matplotlib is optional."""
    try:
        import matplotlib
        matplotlib.use("svg")
        from matplotlib import pyplot as found
    except ImportError:
        return None
    # Makes the SVG the same to the byte for the same results.
    matplotlib.rcParams["svg.hashsalt"] = "weir"
    return found


def _plot(result):
    """An SVG, or a text that says why there is none."""
    if not pyplot():
        return f"<p>{NO_PLOTS}</p>"
    units = list(dict.fromkeys(series.unit for series in result.series))
    rows = -(-len(units) // COLUMNS)
    figure, grid = pyplot().subplots(
        rows, COLUMNS, figsize=(6 * COLUMNS, 3.6 * rows), squeeze=False
    )
    for axes in grid.flat[len(units):]:
        axes.set_axis_off()
    for unit, axes in zip(units, grid.flat):
        for series in result.series:
            if series.unit != unit:
                continue
            words = isinstance(series.x[0], str)
            axes.plot(
                range(len(series.x)) if words else series.x,
                series.y,
                marker="o",
                markersize=3,
                linestyle="--" if "paper" in series.name else "-",
                label=series.name,
            )
            if words:
                axes.set_xticks(range(len(series.x)), series.x)
            elif series.x[0] > 0 and series.x[-1] >= SPREAD * series.x[0]:
                axes.set_xscale("log")
        axes.set_xlabel(result.x)
        axes.set_ylabel(f"{unit} (modelled)")
        values = [y for series in result.series if series.unit == unit for y in series.y]
        if min(values) > 0 and max(values) >= SPREAD * min(values):
            axes.set_yscale("log")
        elif min(values) >= 0:
            axes.set_ylim(bottom=0)
        axes.legend(fontsize="small")
    figure.tight_layout()
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    pyplot().close(figure)
    # Without the metadata, which name the program and other pages.
    return re.sub(
        r"<metadata>.*?</metadata>",
        "",
        out.getvalue()[out.getvalue().index("<svg") :],
        flags=re.DOTALL,
    )


def _row(cells, tag="td", style=""):
    attribute = f' class="{style}"' if style else ""
    inside = "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells)
    return f"<tr{attribute}>{inside}</tr>"


def _table(head, rows):
    """rows: pairs of cells and a style. Empty columns are left out."""
    full = [i for i in range(len(head)) if any(str(cells[i]) for cells, _ in rows)]
    return (
        f"<table>{_row([head[i] for i in full], 'th')}"
        f"{''.join(_row([cells[i] for i in full], style=style) for cells, style in rows)}</table>"
    )


STYLES = {True: "met", False: "missed", None: "open"}
HEAD = ("what", "paper", "model", "verdict", "cause of a miss", "why not, or note")


def _target(target, *before):
    return (*before, target.what, target.paper, target.model, target.verdict(), target.cause,
            target.why), STYLES[target.met]


def _targets(result):
    return _table(HEAD, [_target(target) for target in result.targets])


def _held_out(results):
    rows = [_target(target, module.NAME) for module, result in results for target in result.targets
            if target.held_out]
    return (
        f"<h2 id='held-out'>Held out</h2><p>{HELD_OUT}</p>{_table(('figure', *HEAD), rows)}"
        if rows
        else ""
    )


def _numbers(result):
    rows = [_row((result.x, *(f"{s.name}, {s.unit}" for s in result.series)), "th")]
    for x in dict.fromkeys(x for series in result.series for x in series.x):
        cells = [series.at(x) for series in result.series]
        rows.append(_row((x, *("" if cell is None else f"{cell:.4g}" for cell in cells))))
    return f"<details><summary>As numbers</summary><table>{''.join(rows)}</table></details>"


def _beside(result):
    if not result.beside:
        return ""
    rows = [_row(("load", "engine, Mops", "plain verbs, Mops", "verbs / engine"), "th")]
    rows += [_row((row["run"], f"{row['engine']:.4g}", f"{row['verbs']:.4g}",
                   f"{row['verbs'] / row['engine']:.2f}" if row["engine"] else ""))
             for row in result.beside]
    return (f"<p>{html.escape(beside.sentence(result.beside))}</p><details><summary>Plain verbs "
            f"beside the engine</summary><table>{''.join(rows)}</table></details>")


def _section(module, result):
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in result.notes)
    return (
        f'<h2 id="{module.NAME}">{module.NAME} (modelled): {html.escape(module.TITLE)}</h2>'
        f"<p>{html.escape(result.ran_in_words())}. Varied: "
        f"{html.escape(module.VARIED)}</p>{_plot(result)}{_targets(result)}{notes}"
        f"{_beside(result)}"
        f"{_numbers(result)}<p class='digest'>Digest {result.digest(module.NAME)}</p>"
    )


COUNTED = {
    "targets met": lambda target: target.met is True and target.is_evidence(),
    "missed": lambda target: target.met is False,
    "met, but calibrated or by input": lambda target: target.met is True
    and not target.is_evidence(),
    "weir's own: hold": lambda target: target.own is True,
    "do not": lambda target: target.own is False,
}


def _counts(targets):
    """The counts for each column of the summary."""
    return [sum(map(counts, targets)) or "" for counts in COUNTED.values()]


def _is_of_another(module, result):
    """Whether the NIC differs from the paper's."""
    return result.ran["profile"] != module.PROFILE


def _other_nic(results):
    """The remark for a NIC chosen by the user."""
    others = [(module, result) for module, result in results if _is_of_another(module, result)]
    if not others:
        return ""
    named = html.escape(others[0][1].ran["profile"])
    return (
        f"<p>This page is of {named}, by request. The papers' NICs are others in {len(others)} of "
        f"these {len(results)} figures, "
        "which are marked: what they quote was measured on another NIC than the modelled one, so "
        "that what is met there is met "
        "by chance or because it holds of many NICs. Nothing in them is calibrated or held out, "
        "and why something is missed "
        "is not said.</p>"
    )


def _summary(results):
    full = [
        i for i, _ in enumerate(COUNTED) if any(_counts(result.targets)[i] for _, result in results)
    ]
    rows = [_row(("figure", *(list(COUNTED)[i] for i in full)), "th")]
    rows += [
        f'<tr><td><a href="#{module.NAME}">{module.NAME}</a>: {html.escape(module.TITLE)}'
        f"{' (another NIC than the paper&#x27;s)' if _is_of_another(module, result) else ''}</td>"
        + "".join(f"<td>{_counts(result.targets)[i]}</td>" for i in full)
        + "</tr>"
        for module, result in results
    ]
    of_all = _counts([target for _, result in results for target in result.targets])
    rows.append(_row(("all", *(of_all[i] for i in full)), "th"))
    return f"<table>{''.join(rows)}</table>"


def _causes(results):
    """How many targets are met and missed, and why."""
    targets = [target for _, result in results for target in result.targets]
    missed = [target for target in targets if target.met is False]
    counts = {cause: sum(target.cause == cause for target in missed) for cause in CAUSES}
    if not any(counts.values()):
        return ""
    met = sum(target.met is True and target.is_evidence() for target in targets)
    causes = "; ".join(f"{html.escape(CAUSES[cause])}: {count}" for cause, count in counts.items())
    return (f"<p>Targets met, without calibration or input: {met}; missed: {len(missed)}. "
            f"Missed because {causes}.</p>")


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
    unused = "".join(f"<li>{html.escape(line)}</li>" for line in calibrate.unused())
    return (
        f"{begin}<p>Points that others measured, beside the model. {calibrate.summary(fits)}"
        f"</p><details><summary>All series</summary>{''.join(map(_fit, fits))}</details>"
        f"<p>Gathered, and not used:</p><ul>{unused}</ul>"
    )


def page(results, fits):
    """results: pairs of an experiment's module and its Result; fits: calibrate.fits(), or none.

    Return: HTML.
    """
    return ("<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>weir lab</title>"
            f"<style>{STYLE}</style></head><body><h1>The papers' figures, on a simulated NIC</h1>"
            f"{_causes(results)}{_summary(results)}"
            f"<p>{ABOUT}</p>{_other_nic(results)}{_held_out(results)}"
            f"{''.join(_section(module, result) for module, result in results)}"
            f"{_calibration(fits)}</body></html>\n")
