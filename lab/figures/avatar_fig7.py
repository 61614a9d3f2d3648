# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A large message beside another flow's, without priorities."""

from lab import avatar as mux
from lab.experiment import MODEL, Result, Series, Why, holds, within

NAME = "avatar-fig7"
TITLE = "how long a large message takes, cut or whole, beside others without priorities"
VARIED = "size of the messages in the background; 1 MB at a time in the foreground; one class"
PROFILE = "connectx-5-edr"

FIRST = False
PAPER_NATIVE, PAPER_AVATAR = [210, 210, 210], [110, 113, 115]  # medians, read off by eye
WHY = Why(
    "the paper's NIC sends a message faster when it is cut, 256 KB in 30 us and not in 47 (Fig. "
    "10a), since one work "
    "request leaves a part of the slot unused; in the model the slot itself is that slow, since "
    "Fig. 10a's "
    "line of plain verbs is all that it was fitted to",
    MODEL,
)
SHARED = WHY + ". And there the two share fairly, by half each"
TURNS = Why(
    "the modelled NIC takes turns between the queue pairs, by at most a quantum: the longer the "
    "background's messages, the "
    "more of the link they have; the paper's takes equally long beside any, as if it shared by "
    "halves",
    MODEL,
)


def outcome(sim, name, first, papers, why, native_why):
    """For this figure and for Fig. 8."""
    sizes = [size // mux.KIB for size in mux.BACKGROUND]
    rows = {"native": sim.all([mux.native(1 << 20, size, first) for size in mux.BACKGROUND], name),
            "weir": sim.all([mux.mux(1 << 20, size, first) for size in mux.BACKGROUND], name)}
    lines = {way: Series(way, "us, median", sizes, [mux.latency(one) for one in row])
             for way, row in rows.items()}
    number = name.removeprefix("avatar-fig")
    papers = [Series(f"paper, {way}", "us, median", sizes, values)
              for way, values in zip(("native", "Avatar"), papers)]
    ratios = [a / b for a, b in zip(lines["weir"].y, lines["native"].y)]
    targets = [
        holds(
            f"{number}: the scheduler's, in parts of native's",
            "0.5 to 0.6",
            ", ".join(f"{ratio:.2f}" for ratio in ratios),
            max(ratios) <= 0.69,
            why,
        ),
        *(
            within(
                f"{number}: {paper.name.removeprefix('paper, ')}, beside {size} KB",
                paper.at(size),
                line.at(size),
                0.15,
                " us",
                said,
            )
            for paper, line, said in zip(papers, lines.values(), (native_why, why))
            for size in sizes
        ),
    ]
    return Result("KB in the background", [*lines.values(), *papers], targets,
                  [mux.GUESSED, mux.READ_AHEAD,
                   "The text of the paper swaps the captions of Figs. 7 and 8."])


def run(sim):
    return outcome(sim, NAME, FIRST, (PAPER_NATIVE, PAPER_AVATAR), SHARED, TURNS)
