# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What batching gains an application that pages."""

from lab import traces
from lab.experiment import Result, Series, holds
from lab.figures import rdmabox_table1 as table

NAME = "rdmabox-fig6"
TITLE = "what ways of batching gain an application that pages"
VARIED = ("CPU of the application for each page, from none (it only pages) to 40 us: what VoltDB takes is not "
          "published; ETC and SYS: page traces of Redis, 95 and 75 % reads; 32 threads on 32 cores with 4 "
          "requests each under way, on four QPs")
PROFILE = "connectx-3"

CPU_US = [0, 10, 40]
APPROACHES = {"single preMR": ("single", "preMR"), "merge preMR": ("merge", "preMR"),
              "doorbell preMR": ("doorbell", "preMR"), "hybrid preMR": ("hybrid", "preMR"),
              "single dynMR": ("single", "dynMR"), "merge dynMR": ("merge", "dynMR"),
              "doorbell dynMR": ("doorbell", "dynMR"), "hybrid dynMR": ("hybrid", "dynMR")}
# What one gains over the other, in per cent, over both workloads.
PAPER = [("merge", "single", "preMR", 23.6, 24.4), ("merge", "single", "dynMR", 11.2, 11.5),
         ("hybrid", "single", "preMR", 22.2, 47.7), ("hybrid", "single", "dynMR", 15.7, 40.5),
         ("hybrid", "doorbell", "preMR", 10.8, 22.2), ("hybrid", "doorbell", "dynMR", 7.5, 13.4)]
WHY = ("in the model pages of 4 KB fill the link, or the application its cores, long before work requests "
       "fill the NIC, and the traces leave little to merge (rdmabox-table1); what the paper's kernel takes "
       "for each work request, a handler and a wake-up, it does not say")


def settings(approach, workload, cpu_us):
    return {**table.common(*APPROACHES[approach]), "pattern": "trace", "trace": traces.plain(workload),
            "think_ns": 1000 * cpu_us}


def outcomes(sim, what):
    """By workload and approach, one of each CPU time."""
    keys = [(workload, approach) for workload in traces.SHIPPED for approach in APPROACHES]
    runs = iter(sim.all([settings(approach, workload, us) for workload, approach in keys
                         for us in CPU_US], what))
    return {key: [next(runs) for _ in CPU_US] for key in keys}


def run(sim):
    rate = {key: [one["load"]["mops"] for one in row] for key, row in outcomes(sim, NAME).items()}
    series = [Series(approach, f"Mops, {workload.upper()}", CPU_US, rate[workload, approach])
              for workload, approach in rate]
    targets = []
    for better, worse, memory, least, most in PAPER:
        gains = [max(100 * (a / b - 1) for a, b in zip(rate[w, f"{better} {memory}"],
                                                       rate[w, f"{worse} {memory}"]))
                 for w in traces.SHIPPED]
        targets.append(holds(f"{better} over {worse}, {memory}, at best", f"+{least} to +{most} %",
                             " and ".join(f"{gain:+.1f} %" for gain in gains) + " (ETC and SYS)",
                             min(gains) >= 0.85 * least and max(gains) <= 1.15 * most, WHY))
    return Result("us of CPU a page", series, targets,
                  ["A rate is of requests of the trace; the paper's is of VoltDB's transactions."])
