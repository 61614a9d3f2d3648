# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The gain of a window on each NIC: for the load itself, and for its neighbour on the NIC."""

from lab.experiment import Result, Series, own

NAME = "rdmabox-window"
TITLE = "what a window gains, by policy, NIC and cause"
VARIED = (
    "the window of weir's engine, fixed or learned, in bytes or in work requests; three NICs; "
    "eight threads, each with 256 requests under way on four QPs, no merging, busy polling. A "
    "neighbour on the same NIC, another process, reads 64 bytes at a time over plain verbs. PCIe: "
    "reads of 4 KB. WQE cache: reads of 512 bytes. Translations: writes of 4 KB to pages that the "
    "donor's NIC has not cached. Donor's link: four clients read 4 KB from one donor"
)
PROFILE = "connectx-3"

NICS = ["connectx-3", "connectx-5", "connectx-5-edr"]
OFF, USUAL = "off", "8 MiB"
MANY = 4096
WINDOWS = {
    OFF: {"window": 1 << 30, "window_wrs": 65536},
    USUAL: {"window_wrs": MANY},
    "256 WRs": {"window_wrs": 256},
    "64 WRs": {"window_wrs": 64},
    "delay": {"window_wrs": MANY, "admission": "delay"},
    "knee": {"window_wrs": MANY, "admission": "knee"},
    "delay, WRs": {"window_wrs": MANY, "admission": "delay-wrs"},
    "knee, WRs": {"window_wrs": MANY, "admission": "knee-wrs"},
}
LEARNED = [name for name, window in WINDOWS.items() if "admission" in window]
BASE = {"driver": "weir", "qps": 4, "sq_depth": 4096, "merge": 0, "poll": "busy", "threads": 8,
        "depth": 256, "region_bytes": 1 << 30, "page_bytes": 2 << 20, "warmup_us": 15000,
        "run_us": 5000, "bg_threads": 1, "bg_depth": 1, "bg_op": "read", "bg_size": 64}
CAUSES = {
    "PCIe": {"op": "read", "size": 4096},
    "WQE cache": {"op": "read", "size": 512},
    "translations": {"op": "write", "size": 4096, "page_bytes": 4096},
    "donor's link": {"op": "read", "size": 4096, "clients": 4, "threads": 4, "depth": 128},
}
FULL = 0.9  # busy for this part of the time: the NIC is the limit
RIPPLE = 0.03


def _full(out):
    """Whether a NIC is the limit of a run."""
    return max(share for side in ("clients", "servers")
               for part, share in out[side]["busy"].items()
               if part not in ("cores", "kernel")) >= FULL


def _neighbour(out):
    return out["background"]["latency_us"]["p50"]


def _of_nics(outs, cause, unit, value):
    return [Series(nic, f"{cause}: {unit}", list(WINDOWS),
                   [value(outs[cause, nic], name) for name in WINDOWS]) for nic in NICS]


def run(sim):
    runs = iter(sim.all([{**BASE, "profile": nic, **load, **window}
                         for load in CAUSES.values() for nic in NICS
                         for window in WINDOWS.values()], NAME))
    outs = {(cause, nic): {name: next(runs) for name in WINDOWS}
            for cause in CAUSES for nic in NICS}
    series = []
    for cause in CAUSES:
        series += _of_nics(outs, cause, "rate, without a window 1",
                           lambda row, name: row[name]["load"]["mops"] / row[OFF]["load"]["mops"])
        series += _of_nics(outs, cause, "us of the neighbour's read, median",
                           lambda row, name: _neighbour(row[name]))
    series += _of_nics(outs, "WQE cache", "WQE cache misses, per WQE",
                       lambda row, name: row[name]["clients"]["misses"]["wqe"])
    return Result("window", series, _targets(outs), [
        "The default is 8 MiB and 4,096 work requests: wide enough to cost nothing. Where "
        "processes share a NIC and one of them waits for small requests, --window-wrs 64, or knee, "
        "for the others.",
        "Where no NIC is the limit (the row WQE cache, and connectx-5), the rate follows how "
        "threads fall into step at the engine's lock, and goes up and down with any change."])


def _targets(outs):
    limited = {key: row for key, row in outs.items() if _full(row[OFF])}
    rates = [(row[name]["load"]["mops"] / row[OFF]["load"]["mops"], f"{name}, {cause}, {nic}")
             for (cause, nic), row in limited.items() for name in WINDOWS]
    best, worst = max(rates), min(rates)
    waits = {name: [_neighbour(row[OFF]) / _neighbour(row[name]) for row in limited.values()]
             for name in WINDOWS}
    usual = {name: sorted(times)[len(times) // 2] for name, times in waits.items()}
    knee, narrow = "knee, WRs", "64 WRs"
    lost = min(row[knee]["load"]["mops"] / row[OFF]["load"]["mops"] for row in limited.values())
    misses = outs["WQE cache", "connectx-3"]
    return [
        own("where the NIC is the limit, no window raises its rate by 3 %",
            f"at best {best[0]:.3f} of the rate without ({best[1]})", best[0] < 1 + RIPPLE,
            "a window makes the NIC no faster: it had enough to do before"),
        own("and the usual window of 8 MiB changes neither rate nor wait",
            f"the neighbour's wait falls {usual[USUAL]:.1f} times", usual[USUAL] < 1 + RIPPLE),
        own("learned by the knee of work requests it costs nothing there",
            f"{lost:.3f} of the rate at least (the worst of all: {worst[0]:.3f}, {worst[1]})",
            lost > 1 - RIPPLE,
            "on connectx-5 the engine's threads are about as slow as the NIC, and a narrow window "
            "makes them wait for it and wake one another. The knee tries windows a quarter larger, "
            "and none of these steps alone gains the 5 % that it asks for"),
        own("and the neighbour waits less", f"{usual[knee]:.1f} times less in the median, at best "
            f"{max(waits[knee]):.0f}; with 64 work requests {usual[narrow]:.1f}", usual[knee] > 2,
            note="the gain of a window is what others on the NIC wait"),
        own("a narrow window lowers misses of the WQE cache (connectx-3)",
            f"{misses[OFF]['clients']['misses']['wqe']:.2f} to "
            f"{misses[narrow]['clients']['misses']['wqe']:.2f} of the WQEs",
            misses[narrow]["clients"]["misses"]["wqe"] < misses[OFF]["clients"]["misses"]["wqe"],
            note="the engine posts too little to be slowed by them: "
            f"{misses[OFF]['clients']['busy']['pipeline']:.0%} of the pipeline's time is used"),
    ]
