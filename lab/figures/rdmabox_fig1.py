# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One queue pair, and a growing number of writing threads."""

from lab.experiment import INPUT, MODEL, RIPPLE, Result, Series, Why, holds

NAME = "rdmabox-fig1"
TITLE = "throughput by threads on one queue pair, and what is in flight"
VARIED = (
    "I/O threads on one QP, each with 16 writes of 4 KB under way; the lock is held for the post. "
    "And the same with "
    "4 or one under way, with writes of 64 bytes, and with 2 us of a thread's CPU for each"
)
PROFILE = "connectx-3"

THREADS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16]
ASKED, THINKS = "16 of 4 KB", "16 of 4 KB, 2 us of CPU"
LINES = {ASKED: {"depth": 16, "size": 4096}, "4 of 4 KB": {"depth": 4, "size": 4096},
         "one of 4 KB": {"depth": 1, "size": 4096}, "16 of 64 B": {"depth": 16, "size": 64},
         THINKS: {"depth": 16, "size": 4096, "think_ns": 2000}}


def _why(tops):
    return Why(
        "one thread with 16 pages of 4 KB under way fills what the NIC reads over PCIe, which "
        "keeps its rate until handing the "
        "lock over takes longer than that. Where the rise ends is a matter of what a thread can "
        "ask for, "
        "and the paper gives neither the size of its requests, how many are under way, nor what a "
        "thread does for each: "
        f"with 2 us of CPU each, of which nothing else was changed, it is highest with "
        f"{tops[THINKS]}",
        INPUT,
    )


def _why_later(tops):
    return Why(
        f"the model is as fast as anywhere, give or take a ripple of {RIPPLE:.0%}, with "
        f"{tops[ASKED]} threads: its fall does not "
        "begin where the paper's does",
        MODEL,
    )


def _rises(values):
    return all(later > earlier for earlier, later in zip(values, values[1:]))


def run(sim):
    runs = iter(
        sim.all(
            [
                {"threads": n, "share": 1, "warmup_us": 3000, "run_us": 3000, **line}
                for line in LINES.values()
                for n in THREADS
            ],
            NAME,
        )
    )
    outs = {name: [next(runs) for _ in THREADS] for name in LINES}
    rates = {
        name: Series(name, "Mops (1a)", THREADS, [one["load"]["mops"] for one in row])
        for name, row in outs.items()
    }
    flying = Series(
        ASKED, "in flight (1b)", THREADS, [one["load"]["in_flight"] for one in outs[ASKED]]
    )
    takes = Series(
        ASKED,
        "us to completion (1c)",
        THREADS,
        [one["load"]["latency_us"]["mean"] for one in outs[ASKED]],
    )
    rate = rates[ASKED]
    tops = {name: line.highest() for name, line in rates.items()}
    others = "; ".join(f"{name}: {top}" for name, top in tops.items() if name != ASKED)
    targets = [
        holds(
            "1a: throughput is highest at",
            "4 threads",
            f"{tops[ASKED]} threads alike ({others})",
            tops[ASKED] == "4",
            _why(tops),
            held_out=True,
        ),
        holds(
            "1a: and falls from there on",
            "yes",
            f"{rate.at(5) / rate.at(4):.2f} of it at 5 threads, {rate.at(16) / rate.at(4):.2f} at "
            f"16",
            rate.at(5) < (1 - RIPPLE) * rate.at(4)
            and _rises([-y for y in rate.y[THREADS.index(4) :]]),
            _why_later(tops),
        ),
        holds(
            "1b: what is in flight keeps rising",
            "yes",
            f"up to {flying.at(16):.0f}",
            _rises(flying.y),
            note="16 for each thread, an input",
            by_input=True,
        ),
        holds(
            "1c: the time to completion rises",
            "yes",
            f"{takes.at(1):.1f} to {takes.at(16):.0f} us",
            _rises(takes.y),
            note="what is in flight, by the rate",
            by_input=True,
        ),
    ]
    notes = [
        "The paper gives neither the size of the requests nor absolute values; 4 KB is a page, "
        "and 16 a guess, made before.",
        "One of 4 KB at a time: nothing jitters in the model, so that threads that stand in line "
        "stay in step, and the rate "
        "goes up and down with their number. That line explains nothing.",
    ]
    return Result("threads", [*rates.values(), flying, takes], targets, notes)
