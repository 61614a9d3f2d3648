# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Plots of a Result, as SVG: a panel for each unit, and one colour for one thing in all figures."""

import functools
import io
import math
import re
import textwrap

BLUE, ORANGE, GREEN, PURPLE, RED = "#1f6fb4", "#d9731a", "#2e8b57", "#8e5aa8", "#c43c39"
GOLD, TEAL, BROWN, PINK, GREY = "#b8930b", "#16a3b8", "#7a5230", "#d1669f", "#707070"

# The colour of a series is that of the first pattern found in its name. Series of one colour in a
# panel differ in line, marker or hatch.
THINGS = (
    # Messages through slots, writes by the NIC or a CPU, ways to have memory registered.
    (r"bitmaps, 40 %", TEAL), (r"bitmaps", BLUE), (r"immediates", ORANGE), (r"TCP/IP", GREY),
    (r"offload", ORANGE), (r"^unload", RED), (r"by hints", GREEN), (r"by frequency, 16 B", TEAL),
    (r"by frequency", PURPLE), (r"adaptive, measured", BLUE),
    (r"^copy", BLUE), (r"^register", ORANGE), (r"^map", GREEN),
    # Batching and polling. Both have a hybrid.
    (r"^single ", ORANGE), (r"^merge ", GREEN), (r"^doorbell ", PURPLE), (r"^hybrid ", BLUE),
    (r"adaptive", BLUE), (r"busy|poll", RED), (r"event-batch", GREEN), (r"event", PURPLE),
    (r"hybrid", PINK), (r"SCQ\(1\)", GOLD), (r"SCQ\(4\)", BROWN),
    # The scheduler, the mux, and what has neither.
    (r"WFQ, w/ PRI", BLUE), (r"WFQ, w/o PRI", TEAL), (r"RR, w/ PRI", RED), (r"RR, w/o PRI", PINK),
    (r"native|plain verbs|a QP each", ORANGE), (r"behind a lock", RED),
    (r"weir|mux|Avatar|5[ab], paper", BLUE), (r"^with,", BLUE), (r"^without, 1 KB", PURPLE),
    (r"^without", ORANGE),
    # NICs, traces, and lengths where nothing else differs.
    (r"connectx-3", GREEN), (r"connectx-5-edr", PURPLE), (r"connectx-5", GOLD),
    (r"ETC", TEAL), (r"neighbours", GOLD),
    (r"^16 of 64 B", GREEN), (r"^16 of 4 KB", BLUE), (r"^4 of", ORANGE), (r"^one of", PURPLE),
    (r"\b16 B", GREEN), (r"248 B", BROWN), (r"512 B", RED), (r"1024 B", PURPLE),
    (r"64 bytes", GREEN), (r"\b16 KB", TEAL), (r"64 KB", BROWN), (r"256 KB", PINK), (r"1 MB", RED),
    (r"4 KB|4096 B", BLUE), (r"^none$", GREY), (r"^model$|^paper", "#333333"),
)
MARKERS, LINES, HATCHES = "osD^v", ("-", "-.", (0, (1, 1))), ("", "...", "xxx")
PAPER_LINE, PAPER_HATCH = "--", "////"
SPREAD = 64  # ratio of maximum to minimum from which an axis is logarithmic
BARS_WIDE = 20  # more bars than these take the whole width
CATEGORY_COLUMNS, LABEL_COLUMNS = 12, 48  # characters of a line


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
    # Text stays text: smaller, and a reader can search it.
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["font.family"] = "sans-serif"
    matplotlib.rcParams["hatch.linewidth"] = 0.6
    return found


def colour(name):
    """The colour of a series. A name without an entry is a mistake of its figure: IndexError."""
    return [found for pattern, found in THINGS if re.search(pattern, name)][0]


def is_paper(name):
    return "paper" in name


def has_categories(series):
    return isinstance(series[0].x[0], str)


def panels(result):
    """The series of each unit, by unit."""
    of_unit = {}
    for series in result.series:
        of_unit.setdefault(series.unit, []).append(series)
    return of_unit


def _variants(series, choices, of_paper):
    """A style for each series: series of the same colour differ. The paper's have their own."""
    seen, styles = {}, []
    for one in series:
        if is_paper(one.name):
            styles.append(of_paper)
            continue
        number = seen.get(colour(one.name), 0)
        seen[colour(one.name)] = number + 1
        styles.append(choices[number % len(choices)])
    return styles


def _bars(axes, series):
    width = 0.8 / len(series)
    hatches = _variants(series, HATCHES, PAPER_HATCH)
    for place, (one, hatch) in enumerate(zip(series, hatches)):
        shift = (place - (len(series) - 1) / 2) * width
        shown = colour(one.name)
        hollow = is_paper(one.name)
        axes.bar([at + shift for at in range(len(one.x))], one.y, width, label=one.name,
                 color="white" if hollow else shown, hatch=hatch, linewidth=0.8,
                 edgecolor=shown if hollow else "white")
    axes.set_xticks(range(len(series[0].x)),
                    [textwrap.fill(name, CATEGORY_COLUMNS) for name in series[0].x])


def _lines(axes, series):
    lines = _variants(series, LINES, PAPER_LINE)
    for place, (one, line) in enumerate(zip(series, lines)):
        axes.plot(one.x, one.y, marker=MARKERS[place % len(MARKERS)], markersize=4, linewidth=1.4,
                  linestyle=line, color=colour(one.name), label=one.name,
                  markerfacecolor="white" if is_paper(one.name) else colour(one.name))
    x = series[0].x
    if x[0] > 0 and x[-1] >= SPREAD * x[0]:
        axes.set_xscale("log", base=2 if x[-1] % x[0] == 0 and _is_power_of_2(x[0]) else 10)
    # All values that were run are ticks, if they fit.
    if len(x) <= 8:
        axes.set_xticks(x, [f"{value:,}" for value in x], fontsize="small")
        axes.minorticks_off()


def _is_power_of_2(number):
    return number == int(number) and int(number) & (int(number) - 1) == 0


def _scale(axes, series):
    values = [y for one in series for y in one.y]
    if min(values) > 0 and max(values) >= SPREAD * min(values):
        axes.set_yscale("log")
        # Bars have no natural foot here: a power of ten below all of them.
        axes.set_ylim(bottom=10 ** math.floor(math.log10(min(values))))
    elif min(values) >= 0:
        axes.set_ylim(bottom=0)
    else:
        axes.axhline(0, color="black", linewidth=0.8)


def is_wide(series):
    """Whether a panel needs the whole width of the page."""
    return has_categories(series) and len(series) * len(series[0].x) > BARS_WIDE


def svg(unit, x, series):
    """One panel. The series have the same unit and the same x-axis."""
    wide = is_wide(series)
    figure, axes = pyplot().subplots(figsize=(11.4 if wide else 5.6, 3.3))
    (_bars if has_categories(series) else _lines)(axes, series)
    _scale(axes, series)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel(x)
    axes.set_ylabel(textwrap.fill(f"{unit} (modelled)", LABEL_COLUMNS), fontsize="small")
    # Below the axes, where it hides no curve.
    columns = 4 if wide else 2
    below = -0.32 if has_categories(series) else -0.24
    axes.legend(fontsize="small", frameon=False, loc="upper center", bbox_to_anchor=(0.5, below),
                ncol=columns if max(len(one.name) for one in series) < LABEL_COLUMNS / 2 else 1)
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    pyplot().close(figure)
    # Without the metadata, which name the program and other pages.
    return re.sub(r"<metadata>.*?</metadata>", "",
                  out.getvalue()[out.getvalue().index("<svg"):], flags=re.DOTALL)
