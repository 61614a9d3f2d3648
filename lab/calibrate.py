# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir lab calibrate: the model beside measurements.

Shows the data that the model's numbers were fitted to and how well they fit: measured value,
modelled value and error of each point, and for a cache's series where the rate falls, in both. None
of these points is a figure that the lab reproduces later, except figures marked as calibrated.
"""

import csv
import dataclasses
import pathlib

ANCHORS = pathlib.Path(__file__).with_name("anchors.csv")
CX3, CX5 = {"profile": "connectx-3"}, {"profile": "connectx-5"}
EDR = {"profile": "connectx-5-edr"}
WIDE = {"cores": 64, "uars": 0}  # more cores than threads, and a device context each
# ATC'16's machines have 8 cores for 14 threads, so each thread runs at about half the speed. In
# HERD Fig. 2 a WRITE takes 0.3 us longer on them than in KBNets on RDMAbox's machines.
KALIA = {**CX3, **WIDE, "post_ns": 110, "blueflame_ns": 110, "wire_ns": 350}


def latency(out):
    return out["load"]["latency_us"]["p50"]


def mops(out):
    return out["load"]["mops"]


def mops_each(out):
    """Rate of one of two machines that do the same."""
    return out["load"]["mops"] / 2


@dataclasses.dataclass
class Series:
    """Points of one figure, and the settings that model them.

    @points: (x, y), or the names of a source, figure and series in anchors.csv
    @settings: function from an x to settings of weir-sim
    @value: function from the output to the modelled value
    @within: relative tolerance; or @slack: absolute tolerance, if larger
    @knee: the series falls, and the model must fall at the same step, give or take a step
    @from_first: another host: only the increase over the first point is compared
    @known: reason for points out of tolerance, or, with @unknown_cause, the observation
    @unknown_cause: the reason is unknown
    """
    title: str
    points: object
    settings: object
    value: object
    unit: str
    within: float
    slack: float = 0
    knee: bool = False
    from_first: bool = False
    known: str = ""
    unknown_cause: bool = False

    def measured(self):
        if isinstance(self.points, list):
            return self.points
        with ANCHORS.open() as file:
            return [(float(row["x"]), float(row["y"])) for row in csv.DictReader(file)
                    if (row["source"], row["figure"], row["series"]) == self.points]


def loop(base, **more):
    """Settings @base with @more; a callable value is a function of x."""
    def settings(x):
        return {**base, **{name: value(x) if callable(value) else value
                           for name, value in more.items()}}
    return settings


def whole(x):
    return int(x)


LATENCIES = [
    Series("inlined WRITE, ConnectX-3 FDR (KBNets Fig. 7a)", [(10, 1.3), (100, 1.4), (1024, 2.4)],
           loop(CX3, size=whole), latency, "us", 0.15),
    Series("WRITE of 64 bytes, ConnectX-3 FDR (SoCC'20)", [(64, 1.4)],
           loop(CX3, size=whole), latency, "us", 0.15),
    Series("READ, ConnectX-3 InfiniBand (eRPC table 2)", [(8, 1.7)],
           loop(CX3, size=whole, op="read"), latency, "us", 0.15),
    Series("READ, ConnectX-5 Ethernet (eRPC table 2)", [(8, 2.0)],
           loop(CX5, size=whole, op="read"), latency, "us", 0.15),
    Series("SEND, busy polling, ConnectX-5 EDR (Avatar Fig. 10a; labels in whole us)",
           ("Avatar APNet18", "10a", "native busy poll"),
           loop(EDR, size=whole, op="send", run_us=2000), latency, "us", 0.15, slack=0.5),
]

CEILINGS = [
    Series("outbound WRITE, ConnectX-3, M/s by RC (ATC'16 Fig. 13c at its best)", [(8, 32.6)],
           loop(KALIA, size=8, threads=14, depth=whole, batch=whole, chain=1), mops, "M/s", 0.15),
    Series("outbound READ, ConnectX-3 (HERD)", [(16, 22)],
           loop(KALIA, size=8, op="read", threads=14, depth=whole, batch=whole, chain=1), mops,
           "M/s", 0.15),
    Series("inbound WRITE, ConnectX-3 (ATC'16 table 4)", [(4, 35)],
           loop({**CX3, **WIDE}, size=32, clients=whole, threads=8, depth=8), mops, "M/s", 0.15),
    Series("inbound READ, ConnectX-3 (ATC'16 table 4)", [(4, 26)],
           loop({**CX3, **WIDE}, size=32, op="read", clients=whole, threads=8, depth=8), mops,
           "M/s", 0.15),
    Series("atomics on one address, ConnectX-3 (ATC'16 table 3)", [(4, 2.7)],
           loop({**CX3, **WIDE}, size=8, op="fadd", threads=whole, depth=8), mops, "M/s", 0.15),
    Series("inbound WRITE, ConnectX-5 (Storm: more than 90)", [(4, 90)],
           loop({**CX5, **WIDE}, size=16, clients=whole, threads=16, depth=16), mops, "M/s", 0.15),
    Series("inbound READ, ConnectX-5 (eRPC Fig. 1)", [(4, 42.7)],
           loop({**CX5, **WIDE}, size=16, op="read", clients=whole, threads=16, depth=8), mops,
           "M/s", 0.15),
]

KNEES = [
    Series("WQE cache: WRITE by requests under way a thread, ConnectX-3 (ATC'16 Fig. 13c)",
           ("Kalia ATC16", "13c", "CX-3 RC WRITE 8B"),
           loop(KALIA, size=8, threads=14, depth=whole, batch=whole, chain=1, run_us=500), mops,
           "M/s", 0.25, knee=True,
           known="there it rises again with longer queues, perhaps because more WQEs come with one "
                 "read; the model reads one at a time what it reads again", unknown_cause=True),
    Series("WQE cache: READ by requests under way a thread, ConnectX-3 (ATC'16 Fig. 13b)",
           ("Kalia ATC16", "13b", "CX-3 READ 8B"),
           loop(KALIA, size=8, op="read", threads=14, depth=whole, batch=whole, chain=1,
                run_us=500), mops,
           "M/s", 0.25, knee=True,
           known="there two reads in flight hardly beat one, and four not by much: nothing in the "
                 "model has this effect, and no source names the cause", unknown_cause=True),
    Series("QP cache: READ by QPs, each machine reads from the other, ConnectX-3 (FaSST Fig. 2a)",
           ("FaSST OSDI16", "2a", "CX-3 56G 32B READ"),
           loop({**CX3, **WIDE}, clients=2, both=1, op="read", size=32, threads=11, depth=16,
                qps=lambda x: int(x) // 22, pattern="random", warmup_us=600, run_us=600),
           mops_each, "M/s", 0.25, knee=True),
    Series("QP cache: WRITE by the root of QPs, ConnectX-3 (HERD Fig. 6, there over UC)",
           ("HERD SIGCOMM14", "6", "CX-3 outbound UC WRITE 32B"),
           loop({**CX3, **WIDE}, size=32, threads=whole, qps=whole, depth=8, pattern="random"),
           mops, "M/s", 0.25, knee=True,
           known="there it is over UC, which looks a QP up once a write, and the model's QPs are "
                 "RC, which look it up again for the answer, so it falls steeper; and there the "
                 "fall begins at 36 QPs, where FaSST's reads on the same NIC show little at 88"),
    Series("QP cache: latency of READ by QPs, ConnectX-3 (Clio Fig. 4)",
           ("Clio ASPLOS22", "4", "CX-3 READ 16B"),
           loop({**CX3, **WIDE}, op="read", size=16, qps=whole, pattern="random", warmup_us=3000,
                run_us=3000), lambda out: out["load"]["latency_us"]["mean"], "us", 0.25,
           from_first=True),
    Series("QP cache: latency of READ by QPs, ConnectX-5 (Clio Fig. 4)",
           ("Clio ASPLOS22", "4", "CX-5 READ 16B"),
           loop({**CX5, **WIDE}, op="read", size=16, qps=whole, pattern="random", warmup_us=3000,
                run_us=3000), lambda out: out["load"]["latency_us"]["mean"], "us", 0.25,
           from_first=True),
    Series("QP cache: READ by connections, ConnectX-5 (eRPC Fig. 1)",
           ("eRPC NSDI19", "1", "CX-5 16B READ"),
           loop({**CX5, **WIDE}, clients=4, threads=7, qps=lambda x: round(x / 28), depth=16,
                op="read", size=16, pattern="random", run_us=300), mops, "M/s", 0.25, knee=True),
    Series("QP cache: READ by connections, pages of 2 MB, ConnectX-5 (Storm Fig. 1)",
           ("Storm SYSTOR19", "1", "CX-5 2MB pages 1 MR"),
           loop({**CX5, **WIDE}, clients=4, threads=8, qps=lambda x: int(x) // 32, depth=16,
                op="read", size=64, pattern="random", page_bytes=2 << 20,
                region_bytes=20 << 30, warmup_us=2000, run_us=300), mops, "M/s", 0.25),
    Series("MTT: READ by connections, pages of 4 KB, ConnectX-5 (Storm Fig. 1)",
           ("Storm SYSTOR19", "1", "CX-5 4KB pages 1 MR"),
           loop({**CX5, **WIDE}, clients=4, threads=8, qps=lambda x: int(x) // 32, depth=16,
                op="read", size=64, pattern="random", region_bytes=20 << 30, run_us=300), mops,
           "M/s", 0.25),
    Series("MPT: READ by connections, 1024 regions, ConnectX-5 (Storm Fig. 1)",
           ("Storm SYSTOR19", "1", "CX-5 4KB pages 1024 MR"),
           loop({**CX5, **WIDE}, clients=4, threads=8, qps=lambda x: int(x) // 32, depth=16,
                op="read", size=64, pattern="random", mrs=1024, region_bytes=20 << 20,
                run_us=300), mops, "M/s", 0.25),
    Series("MTT: WRITE of 64 bytes by MB, ConnectX-3 (LITE Fig. 5)",
           ("LITE SOSP17", "5", "CX-3 40G Verbs write 64B"),
           loop({**CX3, **WIDE}, size=64, threads=8, pattern="random", warmup_us=3000,
                region_bytes=lambda x: int(x) << 20), mops, "M/s", 0.25, knee=True),
    Series("MTT: WRITE of 1 KB by MB, ConnectX-3 (LITE Fig. 5)",
           ("LITE SOSP17", "5", "CX-3 40G Verbs write 1KB"),
           loop({**CX3, **WIDE}, size=1024, threads=8, pattern="random", warmup_us=3000,
                region_bytes=lambda x: int(x) << 20), mops, "M/s", 0.25, knee=True),
    Series("MTT: latency by log2 of entries, ConnectX-3 (Clio Fig. 5)",
           ("Clio ASPLOS22", "5", "CX-3 vs #PTE"),
           loop({**CX3, **WIDE}, size=16, pattern="random", warmup_us=20000, run_us=5000,
                region_bytes=lambda x: 4096 << int(x)),
           lambda out: out["load"]["latency_us"]["mean"], "us", 0.25, from_first=True),
    Series("MTT: latency by log2 of entries, ConnectX-5 (Clio Fig. 5)",
           ("Clio ASPLOS22", "5", "CX-5 vs #PTE"),
           loop({**CX5, **WIDE}, size=16, pattern="random", threads=8, warmup_us=100000,
                run_us=5000, region_bytes=lambda x: 4096 << int(x)),
           lambda out: out["load"]["latency_us"]["mean"], "us", 0.25, from_first=True),
    Series("MPT: latency of WRITE by regions, ConnectX-3 (LITE Fig. 4)",
           ("LITE SOSP17", "4", "CX-3 40G Verbs write 64B"),
           loop({**CX3, **WIDE}, size=64, pattern="random", mrs=whole, region_bytes=4096,
                warmup_us=20000, run_us=5000),
           lambda out: out["load"]["latency_us"]["mean"], "us", 0.25, from_first=True),
    Series("MPT: latency by log2 of regions, ConnectX-3 (Clio Fig. 5)",
           ("Clio ASPLOS22", "5", "CX-3 vs #MR"),
           loop({**CX3, **WIDE}, size=16, pattern="random", mrs=lambda x: 1 << int(x),
                region_bytes=4096, warmup_us=20000, run_us=5000),
           lambda out: out["load"]["latency_us"]["mean"], "us", 0.25, from_first=True),
    Series("MPT: latency by log2 of regions, ConnectX-5 (Clio Fig. 5)",
           ("Clio ASPLOS22", "5", "CX-5 vs #MR"),
           loop({**CX5, **WIDE}, size=16, pattern="random", mrs=lambda x: 1 << int(x), threads=8,
                region_bytes=4096, warmup_us=100000, run_us=5000),
           lambda out: out["load"]["latency_us"]["mean"], "us", 0.25, from_first=True),
]

# KBNets' flows have a single message in flight.
MOUSE = loop(CX3, size=whole, bg_threads=1, bg_size=1 << 20, warmup_us=2000, run_us=20000)
BESIDE = {"unknown_cause": True,
          "known": "the delay that 1 MB adds to a message of 10 bytes differs from the measured "
                   "delay, and in the model hardly depends on the position in the long message at "
                   "which the short one comes. The part of the NIC that delays a short message "
                   "beside one long one is not known"}

CONTENTION = [
    Series("doorbell lock: one WRITE at a time a thread, one context, ConnectX-3 (RFP Fig. 3)",
           ("RFP EuroSys17", "3", "CX-3 40G outbound WRITE 32B sync"),
           loop(CX3, size=32, threads=whole, wire_ns=350), mops, "M/s", 0.25, knee=True),
    Series("lock round a whole request, threads share a QP, ConnectX-5 EDR (Avatar Fig. 1)",
           ("Avatar APNet18", "1", "threads share 1 QP + lock"),
           loop(EDR, size=64, threads=whole, share=1, hold="op"), mops, "M/s", 0.15),
    Series("READ one at a time of one machine by threads of seven, ConnectX-3 (RFP Fig. 4)",
           ("RFP EuroSys17", "4", "CX-3 40G inbound READ 32B sync"),
           loop(CX3, clients=7, threads=lambda x: int(x) // 7, op="read", size=32,
                wire_ns=350), mops,
           "M/s", 0.25, knee=True,
           known="two sources differ on one NIC: ATC'16's answers 26 M/s (above), and the model "
                 "was fitted to it; RFP's answers 11.3, and fewer from 35 threads on; RFP names no "
                 "cause", unknown_cause=True),
    Series("WRITE beside 1 MB of another queue pair, median, ConnectX-3 FDR (KBNets Fig. 7a)",
           ("KBNets17 isolation", "7a", "same vs 1MB background median"), MOUSE, latency,
           "us", 0.25, **BESIDE),
    Series("WRITE beside 1 MB of another queue pair, 99.99th percentile, ConnectX-3 FDR (KBNets "
           "Fig. 7a)",
           ("KBNets17 isolation", "7a", "same vs 1MB background p99.99"), MOUSE,
           lambda out: out["load"]["latency_us"]["p9999"], "us", 0.25, **BESIDE),
]

ALL = LATENCIES + CEILINGS + KNEES + CONTENTION
# Points of these and other sources that the model was not fitted to.
UNUSED = {
    "ATC'16 Figs. 13b and 13c, reads over PCIe (20 points)": "the CPU counts cache lines, the "
                                                             "model counts reads of WQEs",
    "ATC'16 Figs. 13b and 13c, FaSST Figs. 2b and 3: Connect-IB (42)": "there is no profile of it",
    "Storm Fig. 1: ConnectX-3 Pro (8)": "there is no profile of it; FaSST Fig. 2a has the same "
                                        "fall on a ConnectX-3",
    "LITE Fig. 8: registering (12)": "arithmetic, no runs. The least time of registering, and "
                                     "the time of deregistering, are fitted to these points; the "
                                     "time of a page is UCX's, for resident memory, so that 1 MB "
                                     "takes 94 us here and 352 there",
    "Li, APNet'19: READ over RoCE (22)": "10 GbE, by a host that takes 6 us for 4 bytes where "
                                         "others take 1.7",
    "KBNets Fig. 7b: messages a second alone (3)": "one over the latency of Fig. 7a, which is used",
    "ConnectX-6, a note in public code (9)": "there is no profile of it, and the source is "
                                             "second-hand",
    "Avatar Figs. 5, 10a over its own scheduler, and 10b to 10d (46)": "figures that the lab "
                                                                       "reproduces: they are "
                                                                       "compared there, and not "
                                                                       "fitted",
}



@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    measured: float
    modelled: float
    within: bool

    @property
    def error(self):
        return self.modelled / self.measured - 1


@dataclasses.dataclass(frozen=True)
class Fit:
    """A series and its result. falls: the steps of the fall, measured and modelled; or None."""
    series: Series
    points: list
    falls: tuple | None

    def wrong(self):
        """Number of points out of tolerance; a fall at another step counts as a point."""
        far = self.falls is not None and abs(self.falls[0] - self.falls[1]) > 1
        return sum(not point.within for point in self.points) + far


def falls_at(values):
    """First step after the maximum with a value below 85 % of the maximum, or the number of steps.
    """
    best = max(values)
    for step, value in enumerate(values):
        if step > values.index(best) and value < 0.85 * best:
            return step
    return len(values)


def _fit(sim, series):
    measured = series.measured()
    outcomes = sim.all([series.settings(x) for x, _ in measured], series.title)
    modelled = [series.value(out) for out in outcomes]
    shift = measured[0][1] - modelled[0] if series.from_first else 0
    points = [Point(x, y, value + shift,
                    abs(value + shift - y) <= max(series.within * y, series.slack))
              for (x, y), value in zip(measured, modelled)]
    falls = tuple(falls_at([getattr(point, which) for point in points])
                  for which in ("measured", "modelled")) if series.knee else None
    return Fit(series, points, falls)


def fits(sim, titled=""):
    """Yields the fit of each series whose title contains @titled."""
    return (_fit(sim, series) for series in ALL if titled in series.title)


def notes(fit):
    """Sentences below a table."""
    said = []
    if fit.series.from_first:
        said.append("Another host's: shifted so that the first point agrees.")
    if fit.falls:
        here, there = fit.falls
        said.append(f"Falls at step {here} as measured, at {there} as modelled: "
                    f"{'' if abs(here - there) <= 1 else 'not '}within one step.")
    if fit.wrong() and fit.series.known:
        why = "Why it is off is not known" if fit.series.unknown_cause else "Why it is off"
        said.append(f"{why}: {fit.series.known}.")
    return said


def _wrong(all_fits, of):
    return sum(fit.wrong() for fit in all_fits if of(fit.series))


def silent(all_fits):
    """Points out of tolerance in series without an explanation."""
    return _wrong(all_fits, lambda series: not series.known)


def summary(all_fits):
    explained = _wrong(all_fits, lambda series: series.known and not series.unknown_cause)
    unknown = _wrong(all_fits, lambda series: series.known and series.unknown_cause)
    return (f"{sum(len(fit.points) for fit in all_fits)} points; out of tolerance: "
            f"{explained} explained, {unknown} of unknown cause, {silent(all_fits)} not spoken of. "
            "A fall at another step counts as one.")


def unused():
    """Gathered points that are not compared, with reasons."""
    return [f"{points}: {why}." for points, why in UNUSED.items()]


def show(fit):
    print(f"\n### {fit.series.title}\n")
    print(f"| x | measured, {fit.series.unit} | modelled, {fit.series.unit} | error | |")
    print("| ---: | ---: | ---: | ---: | --- |")
    for point in fit.points:
        print(f"| {point.x:g} | {point.measured:.2f} | {point.modelled:.2f} | {point.error:+.0%} | "
              f"{'' if point.within else f'more than {fit.series.within:.0%}'} |")
    for note in notes(fit):
        print(f"\n{note}")
