# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One self-contained page of HTML: every figure, paper beside model."""

import html

from lab import beside, calibrate, plot
from lab.experiment import CAUSES, COST, INPUT, MODEL

STYLE = """
html { scroll-padding-top: 1em; }
body { font: 15px/1.5 sans-serif; margin: 0; display: flex; color: #222; }
nav { flex: 0 0 15em; position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1em;
  box-sizing: border-box; background: #f5f6f8; border-right: 1px solid #ddd; font-size: 14px; }
nav ul { list-style: none; margin: 0; padding: 0; } nav h3 { margin: .8em 0 .2em; }
nav li { display: flex; } nav a { flex: 1; }
nav span { min-width: 1.4em; padding: 0 .2em; margin-left: .2em; text-align: center; }
main { flex: 1; min-width: 0; max-width: 76em; margin: 0 auto; padding: 1em 2em; }
@media (max-width: 60em) { body { display: block; }
  nav { position: static; height: auto; columns: 12em; border: 0; } main { padding: 1em; } }
h2 { border-top: 2px solid #ddd; padding-top: 1em; margin-top: 2em; }
a { color: #1257a0; }
.wrap { overflow-x: auto; }
table { border-collapse: collapse; margin: 1em 0; }
td, th { border: 1px solid #bbb; padding: .25em .6em; text-align: left; vertical-align: top; }
.counts td:not(:first-child), .counts th:not(:first-child) { text-align: right; }
.met { background: #e3f4e3; } .missed { background: #fbe3e0; } .open { background: #f2f2f2; }
.tiles { display: flex; flex-wrap: wrap; gap: .6em; list-style: none; padding: 0; }
.tiles li { flex: 1 1 9em; padding: .6em .8em; border-radius: .4em; line-height: 1.3; }
.tiles b { display: block; font-size: 1.8em; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26em, 100%), 1fr));
  gap: 1em; }
figure { margin: 0; } figure.wide { grid-column: 1 / -1; }
svg { max-width: 100%; height: auto; }
.digest { color: #6a6a6a; font-size: smaller; }
"""

ABOUT = """
Every curve and every number in the column "model" comes from weir's simulator: it is modelled, not
measured. Dashed curves, hatched bars without a fill and the column "paper" quote values that the
papers measured on their machines. A target marked calibrated was used to fit the model. A target
marked by input follows from an input of the lab, or from a number that was fitted to another row.
Neither proves anything. Where the paper publishes no number, the comparison is with an ordering or
a shape, or there is none. An expectation of weir that no paper publishes is marked weir's own and
counted apart. A number is met within 15 % or less, unless a row says otherwise. Where the NIC is
the paper's, each missed target gives a reason, and one of three causes: the paper does not give an
input, the model lacks something, or weir works otherwise than the paper's system. Beside each run
of weir's engine stand plain verbs with a queue pair a thread. A heading names the subject of a
figure; the targets give the paper's claims, and whether the model confirms them. The calibration of
the model, and how well it fits, stand at the end.
"""


HELD_OUT = """
These points were set aside before any fitting, and no parameter was chosen by them: they show the
worth of the model. A number is met within 15 %. Where another point of the same figure was used,
the other point is marked calibrated there.
"""

NO_PLOTS = "No plots: matplotlib is not installed (apt-get install python3-matplotlib)."
def _plots(result):
    """A panel for each unit, or a text that says why there is none."""
    if not plot.pyplot():
        return f"<p>{NO_PLOTS}</p>"
    shown = "".join(
        f"<figure{' class=wide' if plot.is_wide(series) else ''}>"
        f"{plot.svg(unit, result.axis(unit), series)}</figure>"
        for unit, series in plot.panels(result).items()
    )
    return f"<div class='plots'>{shown}</div>"


def _row(cells, tag="td", style=""):
    attribute = f' class="{style}"' if style else ""
    inside = "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells)
    return f"<tr{attribute}>{inside}</tr>"


def _table(head, rows):
    """rows: pairs of cells and a style. Empty columns are left out."""
    full = [i for i in range(len(head)) if any(str(cells[i]) for cells, _ in rows)]
    return (
        f"<div class='wrap'><table>{_row([head[i] for i in full], 'th')}"
        f"{''.join(_row([cells[i] for i in full], style=style) for cells, style in rows)}"
        "</table></div>"
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
    """A table for each x-axis."""
    tables = ""
    for axis in dict.fromkeys(result.axis(series.unit) for series in result.series):
        of_axis = [series for series in result.series if result.axis(series.unit) == axis]
        rows = [_row((axis, *(f"{s.name}, {s.unit}" for s in of_axis)), "th")]
        for x in dict.fromkeys(x for series in of_axis for x in series.x):
            cells = [series.at(x) for series in of_axis]
            rows.append(_row((x, *("" if cell is None else f"{cell:.4g}" for cell in cells))))
        tables += f"<table>{''.join(rows)}</table>"
    return f"<details><summary>As numbers</summary>{tables}</details>"


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
        f"{html.escape(module.VARIED)}</p>{_plots(result)}{_targets(result)}{notes}"
        f"{_beside(result)}"
        f"{_numbers(result)}<p class='digest'>Digest {result.digest(module.NAME)}</p>"
    )


def _missed(cause):
    return lambda target: target.met is False and target.cause == cause


COUNTED = {
    "met": lambda target: target.met is True and target.is_evidence(),
    **{f"missed: {cause}": _missed(cause) for cause in CAUSES},
    "missed": _missed(""),
    "met, but calibrated or by input": lambda target: target.met is True
    and not target.is_evidence(),
    "weir's own: hold": lambda target: target.own is True,
    "do not": lambda target: target.own is False,
}
# In words, for the top of the page.
IN_WORDS = {
    "met": "targets met",
    "missed: input": f"missed because {CAUSES[INPUT]}",
    "missed: model": f"missed because {CAUSES[MODEL]}",
    "missed: weir": f"missed because {CAUSES[COST]}",
    "missed": "missed",
    "met, but calibrated or by input": "met, but calibrated or by input: prove nothing",
    "weir's own: hold": "expectations of weir's own that hold",
    "do not": "expectations of weir's own that do not",
}
PAPERS = {"rdmabox": "RDMAbox", "urdma": "uRDMA", "hipower": "HiPower", "avatar": "Avatar"}


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
    return f"<div class='wrap'><table class='counts'>{''.join(rows)}</table></div>"


def _all_counts(results):
    return dict(zip(COUNTED, _counts([one for _, result in results for one in result.targets])))


def _tiles(results):
    """All counts, in the first lines of the page."""
    tiles = "".join(
        f"<li class='{_kind(name)}'><b>{count}</b> {html.escape(IN_WORDS[name])}</li>"
        for name, count in _all_counts(results).items() if count
    )
    return f"<ul class='tiles'>{tiles}</ul>"


def _kind(name):
    """The style of a count."""
    return "met" if name == "met" else "missed" if name.startswith("missed") else "open"


def _navigation(results, fits):
    """Links to all figures, by paper, with what each met and missed."""
    groups = ""
    for prefix, paper in PAPERS.items():
        links = "".join(
            f"<li><a href='#{module.NAME}'>{module.NAME}</a> {_score(result)}</li>"
            for module, result in results if module.NAME.startswith(prefix)
        )
        groups += f"<h3>{paper}</h3><ul>{links}</ul>" if links else ""
    ends = "<li><a href='#counts'>Counts</a></li>"
    if _held_out(results):
        ends += "<li><a href='#held-out'>Held out</a></li>"
    fitted = "What the model was fitted to" if fits else "Calibration"
    return (f"<nav><ul>{ends}</ul>{groups}"
            f"<ul><li><a href='#calibration'>{fitted}</a></li></ul></nav>")


def _score(result):
    met = sum(target.met is True for target in result.targets)
    missed = sum(target.met is False for target in result.targets)
    if not met + missed:
        return ""
    return (f"<span class='met' title='met'>{met}</span>"
            f"<span class='missed' title='missed'>{missed}</span>")


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
            "<meta name='viewport' content='width=device-width'>"
            f"<style>{STYLE}</style></head><body>{_navigation(results, fits)}<main>"
            "<h1 id='counts'>The papers' figures, on a simulated NIC</h1>"
            f"{_tiles(results)}{_summary(results)}"
            f"<p>{ABOUT}</p>{_other_nic(results)}{_held_out(results)}"
            f"{''.join(_section(module, result) for module, result in results)}"
            f"{_calibration(fits)}</main></body></html>\n")
