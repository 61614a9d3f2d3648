# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The number of work requests posted to the NIC, with and without merging."""

from lab import traces
from lab.experiment import INPUT, Result, Series, Why, holds, within
from lab.figures.rdmabox_fig5 import DMA_MAP_NS_PER_PAGE

NAME = "rdmabox-table1"
TITLE = "how many work requests the NIC has, by way of batching"
VARIED = (
    "how requests are batched, and what comes in, as an application of 32 threads with 4 pages "
    "each "
    "under way asks for it, on four QPs: the page trace of Redis under ETC, as the kernel issued "
    "it; "
    "and pages that lie side by side, written four at a time by each thread, as a swapping kernel "
    "would if it merged nothing itself"
)
PROFILE = "connectx-3"

WAYS = {"single": {"chain": 1, "merge": 0}, "merge": {"chain": 1, "merge": 1},
        "doorbell": {"merge": 0}, "hybrid": {}}
# In the kernel, the paper's dynMR is a DMA mapping: rdmabox-fig5.
MAPPED = {"mr": "dyn", "reg_ns": 0, "reg_page_ns": DMA_MAP_NS_PER_PAGE, "dereg_ns": 0,
          "dereg_page_ns": DMA_MAP_NS_PER_PAGE}
MEMORY = {"preMR": {"mr": "pre"}, "dynMR": MAPPED}
# Requests in the table relative to single: 13.2 M reads became 11.5 and 11; 308 K and 305 K writes
# became 272, 282 and 280.
PAPER = {
    "reads": {
        ("merge", "preMR"): 11.5 / 13.2,
        ("merge", "dynMR"): 11 / 13.2,
        ("hybrid", "dynMR"): 11 / 13.2,
    },
    "writes": {
        ("merge", "preMR"): 272 / 308,
        ("merge", "dynMR"): 282 / 305,
        ("hybrid", "dynMR"): 280 / 305,
    },
}
# Work requests of each kind, relative to all requests.
KINDS = {
    "reads": lambda one: one["clients"]["reads"] / one["load"]["ops"],
    "writes": lambda one: (one["clients"]["wqes"] - one["clients"]["reads"]) / one["load"]["ops"],
}
NO_NEIGHBOURS = Why(
    "the trace is of what the kernel issued, which had merged already; what the paper's "
    "VoltDB asked for is not published",
    INPUT,
)
FEW_WRITES = Why(
    "they are {:.0%} of the trace's requests, and other parts of them stand side by side when they "
    "are posted; what the "
    "paper's VoltDB wrote is not published",
    INPUT,
)


def common(way, memory):
    """The application of Table I, and of Figs. 6 and 7."""
    return {"driver": "weir", "threads": 32, "cores": 32, "depth": 4, "qps": 4, "poll": "adaptive",
            "run_us": 4000, "warmup_us": 1000, **MEMORY[memory], **WAYS[way]}


def _loads():
    trace = {"pattern": "trace", "trace": traces.plain("etc")}
    return {"ETC trace": trace, "neighbours": {"size": 4096, "region_bytes": 1 << 30, "batch": 4}}


def run(sim):
    pairs = [(way, memory) for way in WAYS for memory in MEMORY]
    series = []
    for name, load in _loads().items():
        runs = sim.all([{**common(*pair), **load} for pair in pairs], NAME)
        for i, memory in enumerate(MEMORY):
            mine = runs[i::len(MEMORY)]
            series.append(Series(f"{name}, {memory}", "WRs a request", list(WAYS),
                                 [one["clients"]["wqes"] / one["load"]["ops"] for one in mine]))
            if name == "ETC trace":
                series += [
                    Series(
                        f"{name}, {memory}",
                        f"{kind} a request",
                        list(WAYS),
                        [of(one) for one in mine],
                    )
                    for kind, of in KINDS.items()
                ]
    value = {one.name: one for one in series if one.unit == "WRs a request"}
    kinds = {(one.name, one.unit): one for one in series}
    targets = []
    facts = traces.facts("etc")
    whys = {
        "reads": NO_NEIGHBOURS,
        "writes": FEW_WRITES.format(1 - facts["reads"] / facts["requests"]),
    }
    for kind, papers in PAPER.items():
        for (way, memory), paper in papers.items():
            line = kinds[f"ETC trace, {memory}", f"{kind} a request"]
            targets.append(
                within(
                    f"{kind}: {way} {memory}, in parts of single",
                    paper,
                    line.at(way) / line.at("single"),
                    0.05,
                    "",
                    whys[kind],
                )
            )
    takes_off = [100 * (1 - value[f"neighbours, {memory}"].at("merge")) for memory in MEMORY]
    targets += [
        holds(
            "doorbell takes as many as single",
            "yes",
            f"{value['ETC trace, preMR'].at('doorbell'):.3f}",
            abs(value["ETC trace, preMR"].at("doorbell") - 1) < 0.01,
            note="it does not merge",
            by_input=True,
        ),
        holds(
            "where neighbours come in, merging takes off",
            "8 to 17 %",
            ", ".join(f"{part:.0f} %" for part in takes_off),
            all(0.85 * 8 <= part <= 1.15 * 17 for part in takes_off),
            Why("here every thread has four neighbours under way, an input of ours; how many of "
                "the paper's requests had neighbours is not published", INPUT),
        ),
    ]
    notes = [
        "weir never holds a request back for company: what is merged is what stood in line when "
        "the one "
        "before it was posted.",
        "The paper ran VoltDB, which paged 4 KB at a time; Redis, whose trace is shipped with "
        "weir, "
        "stands for it.",
    ]
    return Result("batching", series, targets, notes)
