# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Many connections, and many threads, on one queue pair without a lock."""

from lab.experiment import COST, MODEL, Result, Series, Why, holds, own

NAME = "avatar-fig5"
TITLE = "many connections, and threads, that share a queue pair without a lock"
VARIED = (
    "5a: connections, of 4 threads, each with 4 KB under way on each connection at most; and the "
    "same with "
    "64 bytes, by threads that sleep until a message is sent and by threads that spin, beside a "
    "QP for each connection; 5b: threads, each with a connection of its own and "
    "16 "
    "messages of 4 KB under way, or with 64 bytes one at a time, beside a QP behind a lock"
)
PROFILE = "connectx-5-edr"

CONNECTIONS = [16, 32, 64, 128, 256, 512, 1024, 10000, 100000]
PAPER_A = dict(zip(CONNECTIONS, [5.35, 4.85, 4.61, 4.60, 4.41, 4.18, 4.08]))
THREADS = [1, 2, 4, 8, 16]
PAPER_B = [3.55, 6.40, 5.10, 4.17, 4.03]
PAPER_LOCKED = {1: 0.911, 3: 0.668, 6: 0.614, 9: 0.545, 12: 0.504, 16: 0.515}
DECISION_NS = 50  # of the worker, three a message: from memory
WORKER = Why(
    "the model's worker has the same work with any number of threads; its threads push into a list "
    "without locks, and pay nothing for its being one cache line",
    MODEL,
)


def _one_cpu(page, small, spinning):
    """Why the rates differ from the paper's: one worker bounds the rates of 4 KB and of 64 bytes,
    mostly by waking the threads that wait.
    """
    link = page * 4096 * 8 / 100e3
    return Why(
        f"the model's one worker does {page:.2f} M/s of 4 KB, {100 * link:.0f} % of the link, and "
        f"{small:.2f} of "
        f"64 bytes, {100 * link * small / page / 64:.0f} % of it: its CPU is the limit, for any "
        f"number of "
        f"connections, and from 2 threads on. Of {1000 / small:.0f} ns a message of 64 bytes it "
        f"spends {1000 / small - 1000 / spinning:.0f} on waking threads. The paper's 5.35 M/s of "
        "4 KB are 175 Gb/s, and its link has 100: "
        "what it counted there is not what left the machine",
        COST,
    )


def _mux(threads, conns, depth, size, poll="adaptive", core_ns=DECISION_NS):
    many = conns >= 10000
    return {"driver": "mux", "op": "send", "poll": poll, "threads": threads, "conns": conns,
            "depth": min(depth, 2048), "size": size, "core_ns": core_ns,
            "warmup_us": 12000 if many else 1500, "run_us": 12000 if many else 1500}


def _own(conns):
    """A QP for each connection."""
    return {
        "op": "send",
        "threads": 4,
        "qps": conns // 4,
        "depth": min(conns // 4, 256),
        "size": 64,
        "pattern": "random",
        "warmup_us": 1500,
        "run_us": 1500,
    }


def run(sim):
    upto_1024 = [n for n in CONNECTIONS if n <= 1024]
    page, small, spinning, slower = (
        [one["load"]["mops"] for one in
         sim.all([_mux(4, n, n // 4, size, poll, decision) for n in CONNECTIONS], NAME)]
        for size, poll, decision in ((4096, "adaptive", DECISION_NS), (64, "adaptive", DECISION_NS),
                                     (64, "busy", DECISION_NS), (64, "busy", 2 * DECISION_NS)))
    separate = [one["load"]["mops"] for one in sim.all([_own(n) for n in upto_1024], NAME)]
    threads = [
        one["load"]["mops"] for one in sim.all([_mux(n, n, 16, 4096) for n in THREADS], NAME)
    ]
    alone = [one["load"]["mops"] for one in sim.all([_mux(n, n, 1, 64) for n in THREADS], NAME)]
    locked = [
        one["load"]["mops"]
        for one in sim.all(
            [{"threads": n, "share": 1, "lock": "spin", "hold": "op"} for n in THREADS], NAME
        )
    ]
    series = [
        Series("5a, 4 KB", "Mops", CONNECTIONS, page),
        Series("5a, 64 bytes", "Mops", CONNECTIONS, small),
        Series("5a, 64 bytes, threads that spin", "Mops", CONNECTIONS, spinning),
        Series(f"5a, 64 bytes, threads that spin, {2 * DECISION_NS} ns a decision", "Mops",
               CONNECTIONS, slower),
        Series("5a, 64 bytes, a QP each", "Mops", upto_1024, separate),
        Series("5a, paper", "Mops", upto_1024, list(PAPER_A.values())),
        Series("5b, 4 KB", "Mops by threads", THREADS, threads),
        Series("5b, 64 bytes, one at a time", "Mops by threads", THREADS, alone),
        Series("64 bytes, one at a time, behind a lock", "Mops by threads", THREADS, locked),
        Series("5b, paper", "Mops by threads", THREADS, PAPER_B),
    ]
    kept = page[CONNECTIONS.index(1024)] / page[0]
    cause = _one_cpu(page[0], small[0], spinning[0])
    targets = [
        *(
            holds(
                f"{panel}: the rates",
                f"{min(paper)} to {max(paper)} Mops",
                f"{min(model):.2f} to {max(model):.2f} Mops",
                all(abs(a - b) <= 0.15 * b for a, b in zip(model, paper)),
                cause,
            )
            for panel, model, paper in (
                ("5a", page, list(PAPER_A.values())),
                ("5b", threads, PAPER_B),
            )
        ),
        holds(
            "5a: with 1,024 connections, in parts of that with 16",
            f"{4.08 / 5.35:.2f}",
            f"{kept:.2f}",
            abs(kept - 4.08 / 5.35) <= 0.15 * 4.08 / 5.35,
            cause,
        ),
        own(
            f"5a: 64 bytes by threads that spin, with {DECISION_NS} ns a decision of the worker: "
            "at least the paper's least rate, with any number",
            f"{min(spinning):.2f} to {max(spinning):.2f} Mops",
            min(spinning) >= min(PAPER_A.values()),
        ),
        own(
            "5a: with 100,000 connections, which the paper has not, 64 bytes, as fast as with "
            "1,024",
            f"{small[-1] / small[CONNECTIONS.index(1024)]:.2f} of it",
            small[-1] > 0.9 * small[CONNECTIONS.index(1024)],
        ),
        holds(
            "5b: highest with",
            "2 threads",
            f"{THREADS[threads.index(max(threads))]} threads",
            threads.index(max(threads)) == 1,
            cause,
        ),
        holds(
            "5b: with 16 threads, in parts of the best",
            f"{4.03 / 6.4:.2f}",
            f"{threads[-1] / max(threads):.2f}",
            abs(threads[-1] / max(threads) - 4.03 / 6.4) <= 0.15 * 4.03 / 6.4,
            WORKER,
        ),
        holds(
            "5b: above the QP behind a lock, with any number of threads from 2 on",
            "yes",
            ", ".join(f"{a / b:.1f}" for a, b in zip(alone[1:], locked[1:]))
            + " times, one at a time",
            all(a > b for a, b in zip(alone[1:], locked[1:])),
        ),
    ]
    notes = [
        f"A QP for each of 1,024 connections, posted to by the threads themselves, does "
        f"{separate[-1]:.1f} M/s of "
        f"64 bytes where one shared QP and its worker do {small[CONNECTIONS.index(1024)]:.2f}: "
        f"with so many as "
        "that, one message at a time, sharing is no gain in the model.",
        "Met is an ordering or a ratio within 15 %: the paper's own rates are above what its link "
        "carries.",
        f"The CPU time of a decision is from memory, and counted instructions say that it is more "
        f"than {DECISION_NS} ns: with twice as much, threads that spin send {min(slower):.2f} to "
        f"{max(slower):.2f} M/s.",
        "weir's mux joins what a connection has to send; here each message is a work request, as "
        "there.",
    ]
    return Result("connections", series, targets, notes, axes={"Mops by threads": "threads"})
