# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Whether batching makes the slowest requests slower."""

from lab import traces
from lab.experiment import COST, Result, Series, Why, holds
from lab.figures import rdmabox_fig6 as fig6

NAME = "rdmabox-fig7"
TITLE = "the slowest requests, with merging and chaining and without"
VARIED = fig6.VARIED
PROFILE = "connectx-3"

WHY = Why(
    "where the link is full a chain is done all at once, when its last is: its first waits for "
    "that",
    COST,
)


def run(sim):
    rows = fig6.outcomes(sim, NAME)
    p99 = {key: [one["load"]["latency_us"]["p99"] for one in row] for key, row in rows.items()}
    series = [Series(approach, f"us at the 99th percentile, {workload.upper()}", fig6.X,
                     p99[workload, approach])
              for workload, approach in p99]
    targets = []
    for workload in traces.SHIPPED:
        for memory in ("preMR", "dynMR"):
            later = [have / single - 1 for have, single in zip(p99[workload, f"hybrid {memory}"],
                                                               p99[workload, f"single {memory}"])]
            here = later[fig6.X.index(fig6.HANDLER)]
            targets.append(
                holds(
                    f"hybrid's 99th percentile beside single's, {memory}, {workload.upper()}, "
                    f"{fig6.HANDLER} as in rdmabox-fig6 (by 5 % at most)",
                    "no negative impact",
                    f"{100 * here:+.0f} %",
                    here <= 0.05,
                    WHY,
                    note=f"the handler's price is fitted to rdmabox-fig6; {WHY}",
                    by_input=True,
                )
            )
            targets.append(
                holds(
                    f"the same, with any of the inputs (by 5 % at most), {memory}, "
                    f"{workload.upper()}",
                    "no negative impact",
                    ", ".join(f"{100 * part:+.0f} %" for part in later),
                    max(later) <= 0.05,
                    WHY,
                )
            )
    return Result("CPU beside", series, targets,
                  ["Of a request of the trace; the paper's is of VoltDB's transactions."])
