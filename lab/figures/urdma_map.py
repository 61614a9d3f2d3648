# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Where unloading pays: by skew of the writes, by length, and by queue pairs."""

from lab.experiment import Result, Series, Target, own
from lab.figures import urdma_fig3 as fig3

NAME = "urdma-map"
TITLE = "unloaded writes beside offloaded ones"
VARIED = (
    "the exponent of Zipf's law, 0: all pages alike, to 1.2; the length of a write; queue pairs, "
    "each with one "
    "round trip at a time; 2^20 regions of 4 KB; without completion parity"
)
PROFILE = "connectx-5"

SKEWS = [0, 60, 90, 120]  # in hundredths
SIZES = [16, 248, 4096]
QPS = [1, 32]
SHORT = SIZES[:2]  # sizes that fit a slot of weir's
COMPARED = [(SIZES[0], qps) for qps in QPS]
POLICIES = ["adaptive, by hints", "adaptive, by frequency"]
LEARN = 1000000  # writes counted before the run


def _settings(way, skew, size, qps):
    fills_cache_us = 1000 if way == "unload" else 160000 // qps
    learnt = LEARN if way == POLICIES[1] else 0
    return {
        **fig3.settings(20, way),
        "learn": learnt,
        "skew": skew,
        "size": size,
        "threads": qps,
        "cores": 64,
        "uars": 0,
        "warmup_us": fills_cache_us,
        "run_us": max(1000, 10000 // qps),
    }


def _rows(sim, way, lines):
    """The round trip in us by skew, for each line, a size and a number of QPs."""
    runs = iter(sim.all([_settings(way, skew, *line) for line in lines for skew in SKEWS], NAME))
    return {line: [next(runs)["load"]["latency_us"]["mean"] for _ in SKEWS] for line in lines}


def _gains(better, worse):
    return {line: [100 * (1 - a / b) for a, b in zip(better[line], worse[line])] for line in better}


def _named(line):
    return f"{line[0]} B, {line[1]} QP{'s' * (line[1] > 1)}"


def run(sim):
    lines = [(size, qps) for qps in QPS for size in SIZES]
    offload, unload = (_rows(sim, way, lines) for way in ("offload", "unload"))
    gains = _gains(unload, offload)
    hints, frequency = (_rows(sim, way, COMPARED) for way in POLICIES)
    adaptive = _gains(frequency, offload)
    x = [skew / 100 for skew in SKEWS]
    series = [
        Series(_named(line), f"% less than offloaded, {line[1]} QP{'s' * (line[1] > 1)}", x, row)
        for line, row in gains.items()
    ]
    series += [
        Series(f"by frequency, {_named(line)}", "% less than offloaded, by frequency", x, row)
        for line, row in adaptive.items()
    ]
    apart = max(abs(f / h - 1) for line in COMPARED for f, h in zip(frequency[line], hints[line]))
    even = [gains[size, qps][0] for size in SHORT for qps in QPS]
    uneven = [gains[line][-1] for line in lines]
    targets = [
        own(
            "short writes, up to 248 bytes, all pages alike: unloading all of them is faster",
            f"by {min(even):.0f} to {max(even):.0f} %",
            min(even) > 0,
        ),
        own(
            "it gains less the longer they are, as the CPU copies more",
            ", ".join(f"{gains[size, 1][0]:.0f}" for size in SIZES) + " % (1 QP)",
            all(gains[a, 1][0] >= gains[b, 1][0] for a, b in zip(SIZES, SIZES[1:])),
        ),
        Target(
            "exponent 1.2, which the NIC's cache suits: unloading all of them",
            "not published",
            f"{min(uneven):+.0f} to {max(uneven):+.0f} %",
            None,
        ),
        own(
            "counting writes does as well as knowing them, within 5 %, everywhere",
            f"at most {100 * apart:.1f} % apart",
            apart <= 0.05,
        ),
        own(
            "counting writes is never slower than offloading all, by more than 2 %",
            f"at best {max(map(max, adaptive.values())):.0f} %, at worst "
            f"{min(map(min, adaptive.values())):.0f} % "
            "faster",
            min(map(min, adaptive.values())) >= -2,
        ),
    ]
    notes = [
        "Not a figure of the paper: it has one exponent, 0.5, one length and one queue pair.",
        "weir unloads up to 248 bytes, a slot; longer ones are shown as if slots were longer.",
        "The target has a thread, and a core, for each queue pair; its CPU's own misses are not "
        "modelled.",
    ]
    return Result("exponent of Zipf's law", series, targets, notes)
