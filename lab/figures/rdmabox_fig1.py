# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One queue pair, more and more threads that write."""

from lab.experiment import Result, Series, holds

NAME = "rdmabox-fig1"
TITLE = "with more threads on one queue pair throughput rises, and falls again"
VARIED = "I/O threads on one QP, each with 16 writes of 4 KB under way; the lock is held for the post"
PROFILE = "connectx-3"

THREADS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16]


def _rises(values):
    return all(later > earlier for earlier, later in zip(values, values[1:]))


def run(sim):
    runs = sim.all([{"threads": n, "share": 1, "depth": 16, "size": 4096} for n in THREADS], NAME)
    rate = Series("1a", "Mops", THREADS, [one["load"]["mops"] for one in runs])
    flying = Series("1b", "in flight", THREADS, [one["load"]["in_flight"] for one in runs])
    takes = Series("1c", "us to completion", THREADS,
                   [one["load"]["latency_us"]["mean"] for one in runs])
    targets = [
        holds("1a: throughput is highest at", "4 threads", f"{rate.peak()} threads", rate.peak() == 4,
              held_out=True),
        holds("1a: and falls from there on", "yes", f"{rate.at(16) / max(rate.y):.2f} of it at 16",
              rate.at(16) < 0.95 * max(rate.y)),
        holds("1b: what is in flight keeps rising", "yes", f"up to {flying.at(16):.0f}",
              _rises(flying.y)),
        holds("1c: the time to completion rises", "yes",
              f"{takes.at(1):.1f} to {takes.at(16):.0f} us", _rises(takes.y)),
    ]
    notes = ["The paper gives neither the size of the requests nor absolute values; 4 KB is a page, "
             "and 16 a guess."]
    return Result("threads", [rate, flying, takes], targets, notes)
