# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The gain of batching for an application that pages."""

from lab import traces
from lab.experiment import COST, INPUT, Result, Series, Why, holds
from lab.figures import rdmabox_table1 as table

NAME = "rdmabox-fig6"
TITLE = "ways of batching, below an application that pages"
VARIED = (
    "CPU of the application for each page, from none (it only pages) to 40 us, and CPU of the "
    "handler of each "
    "completion, up to 1 us: what VoltDB and the paper's handler take is not published; ETC and "
    "SYS: page traces "
    "of Redis, 95 and 75 % reads; 32 threads on 32 cores with 4 requests each under way, on four "
    "QPs"
)
PROFILE = "connectx-3"

INPUTS = {
    "none": {},
    "page 10 us": {"think_ns": 10000},
    "page 40 us": {"think_ns": 40000},
    "handler 0.2 us": {"poll_wc_ns": 200},
    "handler 0.35 us": {"poll_wc_ns": 350},
    "handler 1 us": {"poll_wc_ns": 1000},
}
X = list(INPUTS)
# The input at which the first calibrated row is met.
HANDLER = "handler 0.35 us"
APPROACHES = {"single preMR": ("single", "preMR"), "merge preMR": ("merge", "preMR"),
              "doorbell preMR": ("doorbell", "preMR"), "hybrid preMR": ("hybrid", "preMR"),
              "single dynMR": ("single", "dynMR"), "merge dynMR": ("merge", "dynMR"),
              "doorbell dynMR": ("doorbell", "dynMR"), "hybrid dynMR": ("hybrid", "dynMR")}
# The gain of the first over the second, in per cent, over both workloads.
PAPER = [("merge", "single", "preMR", 23.6, 24.4), ("merge", "single", "dynMR", 11.2, 11.5),
         ("hybrid", "single", "preMR", 22.2, 47.7), ("hybrid", "single", "dynMR", 15.7, 40.5),
         ("hybrid", "doorbell", "preMR", 10.8, 22.2), ("hybrid", "doorbell", "dynMR", 7.5, 13.4)]
NO_NEIGHBOURS = Why(
    "the traces are of what the kernel had merged already, and hardly any are neighbours "
    "(rdmabox-table1); the "
    "paper's own Table I takes off 8 to 17 % of the work requests, which is at most 20 % of "
    "whatever each "
    "costs, and what else gains there it does not say",
    INPUT,
)
CHAINS = Why(
    "a chain of weir's has one completion, of its last work request, so that the handler is saved "
    "by doorbell and "
    "hybrid alike; the paper's has one for each",
    COST,
)


def settings(approach, workload, inputs):
    return {
        **table.common(*APPROACHES[approach]),
        "pattern": "trace",
        "trace": traces.plain(workload),
        **inputs,
    }


def outcomes(sim, what):
    """The runs by workload and approach, one for each input."""
    keys = [(workload, approach) for workload in traces.SHIPPED for approach in APPROACHES]
    runs = iter(sim.all([settings(approach, workload, inputs) for workload, approach in keys
                         for inputs in INPUTS.values()], what))
    return {key: [next(runs) for _ in INPUTS] for key in keys}


def run(sim):
    rate = {key: [one["load"]["mops"] for one in row] for key, row in outcomes(sim, NAME).items()}
    series = [Series(approach, f"Mops, {workload.upper()}", X, rate[workload, approach])
              for workload, approach in rate]
    targets = []
    for better, worse, memory, least, most in PAPER:
        gains = [
            100
            * (
                rate[w, f"{better} {memory}"][X.index(HANDLER)]
                / rate[w, f"{worse} {memory}"][X.index(HANDLER)]
                - 1
            )
            for w in traces.SHIPPED
        ]
        targets.append(
            holds(
                f"{better} over {worse}, {memory}, {HANDLER}",
                f"+{least} to +{most} %",
                " and ".join(f"{gain:+.1f} %" for gain in gains) + " (ETC and SYS)",
                min(gains) >= 0.85 * least and max(gains) <= 1.15 * most,
                CHAINS if worse == "doorbell" else NO_NEIGHBOURS,
                calibrated=(better, worse) == ("hybrid", "single"),
            )
        )
    for memory in table.MEMORY:
        ratios = [
            rate[w, f"merge {memory}"][X.index(HANDLER)]
            / rate[w, f"doorbell {memory}"][X.index(HANDLER)]
            for w in traces.SHIPPED
        ]
        targets.append(
            holds(
                f"merge is better than doorbell, {memory}, {HANDLER}",
                "yes",
                " and ".join(f"{ratio:.2f} of it" for ratio in ratios) + " (ETC and SYS)",
                min(ratios) > 1,
                CHAINS + "; and there is little to merge",
            )
        )
    return Result(
        "CPU beside",
        series,
        targets,
        [
            "A rate is of requests of the trace; the paper's is of VoltDB's transactions.",
            f"What the handler takes, {HANDLER.removeprefix('handler ')}, was chosen so that "
            f"hybrid over single, preMR, "
            "comes out, and dynMR with it, which is marked too; without it nothing but the link "
            "and the application's cores fills, and all ways are "
            "alike.",
        ],
    )
