# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""More and more threads on four queue pairs, with and without a window."""

from lab.experiment import Result, Series, holds, within

NAME = "rdmabox-fig8"
TITLE = "a window of 7 MB keeps what the threads gain"
VARIED = ("I/O threads on four QPs, each with 256 writes of 4 KB under way, in random places of 1 GB in pages of 2 MB, "
          "so that translations are not what is missed; weir's engine, with a window of 7 MB and with one that lets all "
          "through; no merging. And the same with writes of 1 KB")
PROFILE = "connectx-3"

THREADS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16]
WINDOWS = {"without": 1 << 30, "with": 7_000_000}
PAGE, SHORT = 4096, 1024
WHY = ("in the model half of the WQEs that are looked up again have dropped out of their cache, and that fills no "
       "more than a tenth of the pipeline's time: ATC'16's NIC sends 23 M/s while it misses (Fig. 13c), and pages "
       "of 4 KB fill the link with 1.6. Writes of 1 KB do rise and fall, since the more threads there are the more "
       "they wait for the engine's lock and for being woken, of which a window takes nothing away. The paper says "
       "nothing of the size of its requests")


def _setting(size, window, threads):
    return {"driver": "weir", "threads": threads, "depth": 256, "size": size, "qps": 4, "merge": 0,
            "sq_depth": 4096, "pattern": "random", "region_bytes": 1 << 30, "page_bytes": 2 << 20,
            "window": window, "poll": "adaptive", "warmup_us": 3000, "run_us": 2000}


def run(sim):
    keys = [(size, name) for size in (PAGE, SHORT) for name in WINDOWS]
    runs = iter(sim.all([_setting(size, WINDOWS[name], n) for size, name in keys for n in THREADS], NAME))
    outs = {key: [next(runs) for _ in THREADS] for key in keys}
    rate = {(size, name): Series(f"{name}, {size // 1024} KB", "Mops", THREADS,
                                 [one["load"]["mops"] for one in row]) for (size, name), row in outs.items()}
    flying = {name: Series(f"{name}, 4 KB", "MB in flight at most", THREADS,
                           [one["load"]["peak_bytes"] / 1e6 for one in outs[PAGE, name]]) for name in WINDOWS}
    busy = Series("without, 4 KB", "of the pipeline's time", THREADS,
                  [one["clients"]["busy"]["pipeline"] for one in outs[PAGE, "without"]])
    before, after = rate[PAGE, "without"], rate[PAGE, "with"]
    short = rate[SHORT, "without"]
    gain = max(b / a - 1 for a, b in zip(before.y, after.y))
    targets = [
        holds("8a: without a window throughput is highest at", "7 threads",
              f"{before.peak()} threads ({short.peak()} with 1 KB)", before.peak() == 7, WHY,
              held_out=True),
        within("8a: what the window gains at best", 29.9, 100 * gain, 0.15, " %", WHY, held_out=True),
        holds("8a: without a window throughput falls again, by a tenth at least", "yes",
              f"{before.at(16) / max(before.y):.2f} of it with 16 ({short.at(16) / max(short.y):.2f} with 1 KB)",
              before.at(16) <= 0.9 * max(before.y), WHY),
        holds("8b: what is in flight at 7 threads, without a window", "about 7 MB",
              f"{flying['without'].at(7):.1f} MB", abs(flying["without"].at(7) - 7) < 1,
              note="256 under way a thread is a guess, and was made before"),
        holds("8b: with it, what is in flight stays near 7 MB", "yes",
              f"at most {max(flying['with'].y):.1f} MB", 6.3 < max(flying["with"].y) < 7.4),
    ]
    notes = ["Held out: nothing of the model was fitted to this figure."]
    return Result("threads", [*rate.values(), *flying.values(), busy], targets, notes)
