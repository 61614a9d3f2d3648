#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Charts of the measured numbers, as SVG, from the CSV files beside the page.

  charts.py CSV_DIR OUTPUT_DIR

Writes NAME.svg and NAME-dark.svg for each chart. Each panel is a dot plot: a row for each case, a
colour for each system. The same CSV files and the same matplotlib give the same bytes.
"""
import csv
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator  # noqa: E402

COLOURS = ("#3f8fd2", "#e2803a", "#4fa66a", "#b46cc0", "#c9a227", "#d1605e", "#8a8a8a", "#4fb0ae")
MARKERS = "osD^vPX*"
INK, INK_DARK, GRID = "#333334", "#dddddd", "#808080"


def read(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def number(text):
    """The value of a cell: the middle where it is a range, None where it is no number."""
    try:
        parts = [float(part) for part in text.split(" to ")]
    except ValueError:
        return None
    return sum(parts) / len(parts)


def short(value, _position=None):
    """10 k rather than 10000."""
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


class Panel:
    """One plot: cases from top to bottom, a dot for each series.

    rows: dictionaries of a CSV file; case: the columns that name a row of the plot; x: the
    column of the value; series: the column of the colour, or None; span: columns of least and most.
    """

    def __init__(self, title, rows, case, x, series=None, *, label="", log=False, mark=None,
                 span=None, where=None):
        self.title, self.label, self.log, self.mark = title, label, log, mark
        self.cases, self.series, self.dots = [], [], []
        for row in rows:
            if any(row[key] not in wanted for key, wanted in (where or {}).items()):
                continue
            name = ", ".join(row[column] for column in case)
            of = row[series] if series else label
            value = number(row[x])
            if name not in self.cases:
                self.cases.append(name)
            if of not in self.series:
                self.series.append(of)
            if value is not None:
                ends = tuple(number(row[column]) for column in span) if span else None
                self.dots.append((name, of, value, ends))

    def draw(self, axes, order):
        place = {name: -index for index, name in enumerate(self.cases)}
        for name, of, value, ends in self.dots:
            which = order.index(of)
            shift = 0.5 * (which / max(1, len(order) - 1) - 0.5) if len(order) > 1 else 0
            colour = COLOURS[which % len(COLOURS)]
            if ends and None not in ends:
                axes.plot(ends, [place[name] - shift] * 2, color=colour, linewidth=1.4)
            axes.plot([value], [place[name] - shift], MARKERS[which % len(MARKERS)], color=colour,
                      markersize=5)
        if self.log:
            values = [value for _name, _of, value, _ends in self.dots]
            subs = (1, 2, 5) if max(values) < 100 * min(values) else (1,)
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=subs))
            axes.xaxis.set_major_formatter(FuncFormatter(short))
            axes.xaxis.set_minor_locator(NullLocator())
        else:
            axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.xaxis.set_major_formatter(FuncFormatter(short))
        if not self.log and all(value >= 0 for _name, _of, value, _ends in self.dots):
            axes.set_xlim(left=0)
        if self.mark is not None:
            axes.axvline(self.mark, color=INK, linewidth=1, linestyle="--")
        axes.set_yticks([place[name] for name in self.cases], self.cases)
        axes.set_ylim(-len(self.cases) + 0.4, 0.6)
        axes.set_title(self.title, loc="left", fontsize=10, color=INK)
        axes.set_xlabel(self.label, color=INK)
        axes.tick_params(colors=INK, which="both", length=0)
        axes.grid(True, axis="x", color=GRID, alpha=0.3)
        for name in self.cases[:-1]:
            axes.axhline(place[name] - 0.5, color=GRID, linewidth=0.6, alpha=0.3)
        for side in axes.spines.values():
            side.set_visible(False)


def chart(output, name, panels, across=2):
    columns = min(across, len(panels))
    lines = -(-len(panels) // columns)
    order = list(dict.fromkeys(of for panel in panels for of in panel.series))
    longest = max(len(case) for panel in panels for case in panel.cases)
    height = sum(max(len(panel.cases) for panel in panels[line * columns:(line + 1) * columns])
                 for line in range(lines))
    width = columns * (2.9 + 0.06 * longest)
    across_legend = max(1, int(width / 1.5))
    legend = 0.3 * -(-len(order) // across_legend) if len(order) > 1 else 0
    tall = 0.30 * height + 0.8 * lines + legend + 0.1
    plt.rcParams.update({"svg.hashsalt": "weir", "svg.fonttype": "path", "font.size": 9})
    figure, grid_of_axes = plt.subplots(
        lines, columns, squeeze=False, figsize=(width, tall),
        gridspec_kw={"height_ratios": [
            2 + max(len(panel.cases) for panel in panels[line * columns:(line + 1) * columns])
            for line in range(lines)]})
    figure.set_layout_engine("constrained", rect=(0, 0, 1, 1 - legend / tall))
    flat = [axes for line in grid_of_axes for axes in line]
    for axes, panel in zip(flat, panels):
        panel.draw(axes, order)
        axes.patch.set_alpha(0)
    for axes in flat[len(panels):]:
        axes.set_visible(False)
    if len(order) > 1:
        handles = [plt.Line2D([], [], color=COLOURS[i % len(COLOURS)], linestyle="",
                              marker=MARKERS[i % len(MARKERS)], label=of)
                   for i, of in enumerate(order)]
        figure.legend(handles=handles, loc="upper left", ncol=across_legend,
                      frameon=False, labelcolor=INK, handletextpad=0.1, columnspacing=1.2)
    light = output / f"{name}.svg"
    figure.savefig(light, transparent=True, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    dark = light.read_text(encoding="utf-8").replace(INK, INK_DARK)
    (output / f"{name}-dark.svg").write_text(dark, encoding="utf-8")


def melt(rows, columns):
    """A row for each of several columns, so that a column becomes a series."""
    return [{**row, "series": label, "value": row[column]} for row in rows
            for column, label in columns.items()]


def devices(title, rows, *args, **kwargs):
    names = {"softnic": "softnic", "soft-roce": "Soft-RoCE"}
    for device, name in names.items():
        yield Panel(f"{name}: {title}", rows, *args, where={"device": [device]}, **kwargs)


def all_charts(source):
    def table(name):
        return read(source / f"{name}.csv")

    rows = table("classes")
    yield "classes", [
        Panel(title, [{**row, "of": "reads"} for row in rows if row["figure"] == figure],
              ["case"], "median", "of", label=of, span=("least", "most"),
              log=figure != "bulk_mb_s")
        for figure, title, of in (("p50_us", "a 4 KiB read, half of them", "us"),
                                  ("p99_us", "99 of 100 reads", "us"),
                                  ("bulk_mb_s", "the bulk", "MB/s"))]
    yield "merging", [
        Panel("work requests", table("merging"), ["load"], "median", "device", log=True,
              label="a request; without merging 1", span=("least", "most"))]
    rows = table("unload-trips")
    yield "unload-trips", [
        Panel(f"{wait} (modelled)", [row for row in rows if row["wait"] == wait],
              ["log2_regions"], "us", "way", label="us, by number of regions")
        for wait in dict.fromkeys(row["wait"] for row in rows)]
    rows = table("exchange-latency")
    yield "exchange-latency", [
        Panel("half a round trip", rows, ["case"], "us", "way", label="us", log=True,
              span=("least", "most")),
        Panel("requests without data", rows, ["case"], "without_data", "way",
              label="a message")]
    rows = table("fs")
    systems = {"memory": "memory", "weir_mount": "weir mount", "verbs": "verbs", "ucx": "UCX",
               "libfabric": "libfabric", "before": "first weir mount", "glusterfs": "GlusterFS",
               "glusterfs_near": "GlusterFS near"}
    yield "fs", [Panel(pattern, melt([row for row in rows if row["pattern"] == pattern], systems),
                       ["size"], "value", "series", label="MiB/s", log=True)
                 for pattern in dict.fromkeys(row["pattern"] for row in rows)]
    rows = table("names")
    yield "names", [
        Panel("time", rows, ["operation"], "us", "system", label="us", log=True,
              span=("least_us", "most_us")),
        Panel("messages to the donor", [row for row in rows if row["messages"]], ["operation"],
              "messages", "system", label="an operation"),
        Panel("sleeps", rows, ["operation"], "sleeps", "system", label="an operation")]

    rows = [{**row, "series": f"{row['batching']}, {row['version']}"}
            for row in table("perf-memory")]
    yield "perf-memory", [
        Panel("rate", rows, ["memory"], "requests_per_s", "series", label="requests/s", log=True),
        Panel("CPU time", rows, ["memory"], "cpu_us", "series", label="us a request", log=True)]

    ways = {"bitmaps": "bitmaps", "immediates": "immediates"}
    rows = melt(table("exchange-requests"), ways)
    yield "exchange-requests", [
        panel for side in ("sender", "receiver")
        for panel in devices(side, [row for row in rows if row["side"] == side], ["size"], "value",
                             "series", label="requests without data, a message")]
    rows = melt(table("exchange-counts"), ways)
    yield "exchange-counts", [
        panel for kind in ("receives", "completions", "events")
        for panel in devices(f"{kind} at the receiver", [
            row for row in rows if row["kind"] == kind and row["side"] == "receiver"],
            ["size"], "value", "series", label="a message")]

    rows = table("exchange-time-long")
    yield "exchange-time-long", [
        Panel(name, rows, ["size"], "median", "pattern", label="immediates / bitmaps", mark=1,
              span=("least", "most"), where={"measure": [measure]})
        for measure, name in (("time", "time"), ("cpu", "CPU time"))]
    rows = melt(table("exchange-time"), {"imm_median": "immediates / bitmaps",
                                         "tcp": "TCP / bitmaps"})
    yield "exchange-time", [
        panel for measure, name in (("time", "time"), ("cpu", "CPU time"))
        for panel in devices(name, [row for row in rows if row["measure"] == measure],
                             ["size"], "value", "series", log=True, mark=1,
                             label="ratio to bitmaps")]
    yield "resnet", [
        Panel("", melt(table("resnet"), ways), ["part"], "value", "series", label="ms")]

    rows = table("engine-counts")
    for row in rows:
        row["load"] += ", slow device" if row["slow"] == "1" else ""
    yield "engine-counts", [
        panel for column, name in (("work_requests", "work requests"), ("doorbells", "doorbells"))
        for panel in devices(name, rows, ["load"], column, "batching", log=True,
                             label="for the run")]
    yield "engine-batch", [Panel("Soft-RoCE", table("engine-batch"), ["threads"], "work_requests",
                                 "submitted", label="work requests for 2000 writes", log=True)]

    rows = [{**row, "case": f"{row['place']}, {row['op']}, {row['threads']} x {row['depth']}"}
            for row in table("engine-throughput") if row["way"] not in ("single", "doorbell")]
    yield "engine-throughput", [
        Panel(f"{name}, {size}", [row for row in rows if row["size"] in sizes], ["case"] if
              len(sizes) == 1 else ["size", "case"], "requests_per_s", "way", label="requests/s",
              log=True, where={"device": [device]})
        for device, name, size, sizes in (
            ("softnic", "softnic", "4 KiB", ["4 KiB"]),
            ("soft-roce", "Soft-RoCE", "4 KiB", ["4 KiB"]),
            ("softnic", "softnic", "large", ["128 KiB", "1024 KiB"]))]
    rows = [{**row, "case": f"{row['size']}, {row['op']}, {row['threads']} x {row['depth']}"}
            for row in table("engine-64k")]
    yield "engine-64k", [
        Panel("rate", rows, ["case"], "requests_per_s", "version", label="requests/s", log=True),
        Panel("CPU time", rows, ["case"], "cpu_us", "version", label="us a request", log=True)]
    rows = [{**row, "case": f"{row['place']}, {row['op']}, {row['threads']} x {row['depth']}"}
            for row in table("engine-arm")]
    yield "engine-arm", [
        Panel("rate", rows, ["case"], "million_per_s", "version", label="million requests/s"),
        Panel("context switches", rows, ["case"], "context_switches", "version", label="a request")]
    rows = table("engine-polling")
    yield "engine-polling", [
        panel for column, name, label in (("part_of_best", "rate", "part of the best"),
                                          ("cpu_s", "CPU time", "s"))
        for panel in devices(name, rows, ["load"], column, "polling", label=label)]
    rows = [{**row, "case": f"{row['threads']} x {row['depth']}"} for row in table("engine-sleeps")]
    yield "engine-sleeps", [
        Panel("rate", rows, ["case"], "requests_per_s", "way", label="requests/s", log=True),
        Panel("context switches", rows, ["case"], "context_switches", "way", label="a request")]

    rows = table("threads")
    for row in rows:
        row["case"] = f"{row['threads']} x {row['depth']}, {row['requests']}"
    yield "threads", [
        Panel("rate / verbs", [row for row in rows if row["way"] != "verbs"], ["case"],
              "share_of_verbs", "way", label="above 1 is better", mark=1),
        Panel("CPU time", rows, ["case"], "cpu_us", "way", label="us a request", log=True)]

    rows = table("swap-time")
    for row in rows:
        row["case"] = f"{row['program']}, {row['limit_percent']} %"
    yield "swap-time", [Panel("", rows, ["case"], "seconds", "system", label="s", log=True)]
    rows = table("swap-pages")
    for row in rows:
        row["case"] = f"{row['program']}, {row['limit_percent']} %"
    yield "swap-pages", [
        Panel("work requests", rows, ["case"], "work_requests", "system", label="a page"),
        Panel("interrupts", rows, ["case"], "interrupts", "system", label="a page")]

    rows = table("share-load")
    yield "share-load", [
        panel for measure, name in (("rate", "rate / busy"), ("cpu", "CPU time of busy / CPU time"))
        for panel in devices(name, [row for row in rows if row["measure"] == measure], ["load"],
                             "ratio", "way", label="ratio, above 1 is better", log=True, mark=1)]
    rows = table("share-large")
    names = list(dict.fromkeys(row["measure"] for row in rows))
    yield "share-large", [Panel(name, rows, ["way"], "value", where={"measure": [name]}, label=name)
                          for name in names]
    rows = table("share-counts")
    yield "share-counts", [
        Panel("for a message", [row for row in rows if "ahead" not in row["count"]],
              ["load", "count"], "value", "way", label="count"),
        Panel("bytes ahead of an urgent message", [row for row in rows if "ahead" in row["count"]],
              ["load"], "value", "way", label="bytes", log=True)]
    rows = table("share-fair")
    yield "share-fair", [
        Panel("Jain index of four equal connections",
              [row for row in rows if "Jain" in row["measure"]],
              ["measure"], "value", "way", label="1 is fair"),
        Panel("error of weights 1, 2 and 4", [row for row in rows if "weights" in row["measure"]],
              ["measure"], "value", "way", label="percent", log=True),
        Panel("urgent message", [row for row in rows if "urgent" in row["measure"]],
              ["measure"], "value", "way", label="us", log=True)]

    rows = [{**row, "case": f"{row['cause']}, {row['nic']}"} for row in table("window")
            if row["window"] not in ("256 WRs", "delay, WRs")]
    yield "window", [
        Panel("rate (modelled)", rows, ["case"], "rate", "window", label="without a window: 1",
              mark=1),
        Panel("a neighbour's read (modelled)", rows, ["case"], "neighbour_us", "window", log=True,
              label="us, median")]

    rows = [{**row, "case": f"{row['nic']}, {row['load']}"} for row in table("verbs-beside")]
    yield "verbs-beside", [
        Panel("plain verbs / engine (modelled)", rows, ["case"], "ratio", log=True, mark=1,
              label="rate; below 1 the engine is ahead")]

    rows = table("softnic-ucx")
    yield "softnic-ucx", [
        Panel(name, [row for row in rows if row["unit"] == unit], ["cell"], "median", "system",
              label=unit, log=unit != "MiB/s", span=("least", "most"))
        for name, unit in (("bandwidth", "MiB/s"), ("rate", "million/s"), ("latency", "us"))]
    rows = melt(table("softnic-poll"), {"least": "least", "most": "most"})
    yield "softnic-poll", [
        Panel("", rows, ["poll", "queue_pairs"], "value", "series", label="ns")]
    yield "wire", [
        Panel(name, [row for row in table("wire") if row["part"] == part], ["what"], "median",
              label=label, span=("least", "most"))
        for part, name, label in (("speed", "speed", "MB/s"), ("time", "one way", "us"),
                                  ("rate", "link of 10 Mbit/s", "Mbit/s"),
                                  ("index", "fairness", "Jain's index"))]
    yield "unload-posts", [
        Panel(machine, table("unload-posts"), ["write"], "cpu_us", "path", log=True,
              label="us of CPU", where={"machine": [machine]}) for machine in ("quiet", "loaded")]
    yield "unload-decide", [
        Panel("", table("unload-decide"), ["pages_written_in"], "cpu_ns", "policy",
              label="ns of CPU", span=("least", "most"))]
    rows = melt(table("blk-batching"), {"work_requests": "work requests", "doorbells": "doorbells",
                                        "events": "events"})
    yield "blk-batching", [Panel("", rows, ["load", "batching"], "value", "series", label="a page")]
    rows = melt(table("blk-polling"), {"events": "events", "empty_polls": "empty polls"})
    yield "blk-polling", [Panel("", rows, ["load", "polling"], "value", "series", label="a page")]


def main(source, output):
    output.mkdir(parents=True, exist_ok=True)
    for name, panels in all_charts(source):
        chart(output, name, [panel for panel in panels if panel.dots])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
