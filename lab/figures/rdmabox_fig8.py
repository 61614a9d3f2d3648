# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""More and more threads on four queue pairs, with and without a window."""

from lab.experiment import Result, Series, holds, within

NAME = "rdmabox-fig8"
TITLE = "a window of 7 MB keeps what the threads gain"
VARIED = ("I/O threads on four QPs, each with 256 writes of 4 KB under way, in random places; weir's "
          "engine, with a window of 7 MB and with one that lets all through; no merging")
PROFILE = "connectx-3"

THREADS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16]
WINDOWS = {"without": 1 << 30, "with": 7_000_000}
WHY = ("the modelled link is nearly full with one thread's pages already, so that what the WQE cache "
       "misses costs nobody time; the paper says nothing of the size of its requests")


def run(sim):
    runs = sim.all([{"driver": "weir", "threads": n, "depth": 256, "size": 4096, "qps": 4, "merge": 0,
                     "pattern": "random", "region_bytes": 1 << 30, "window": window,
                     "poll": "adaptive"}
                    for window in WINDOWS.values() for n in THREADS], NAME)
    rate, flying = {}, {}
    for i, name in enumerate(WINDOWS):
        mine = runs[i * len(THREADS):(i + 1) * len(THREADS)]
        rate[name] = Series(name, "Mops", THREADS, [one["load"]["mops"] for one in mine])
        flying[name] = Series(name, "MB in flight", THREADS,
                              [one["load"]["in_flight"] * 4096 / 1e6 for one in mine])
    gain = max(b / a - 1 for a, b in zip(rate["without"].y, rate["with"].y))
    targets = [
        holds("8a: without a window throughput is highest at", "7 threads",
              f"{rate['without'].peak()} threads", rate["without"].peak() == 7, WHY),
        within("8a: what the window gains at best", 29.9, 100 * gain, 0.15, " %", WHY),
        holds("8b: with it, what is in flight stays near 7 MB", "yes",
              f"at most {max(flying['with'].y):.1f} MB", max(flying["with"].y) < 7.4),
    ]
    notes = ["Held out: nothing of the model was fitted to this figure.",
             "In flight is what was submitted and is not done; under the window a part of that waits."]
    return Result("threads", [*rate.values(), *flying.values()], targets, notes)
