# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Several flows in the foreground and in the background."""

from lab import avatar as mux
from lab.experiment import INPUT, MODEL, Result, Series, Why, within

NAME = "avatar-fig9"
TITLE = "a small message among several flows, with the scheduler and without"
VARIED = (
    "flows in all, half of them sending 16 KB at a time, half 128 KB in the background; of one "
    "class, or the "
    "first half's goes first"
)
PROFILE = "connectx-5-edr"

PANELS = {
    "4, w/o PRI": (2, False),
    "4, w/ PRI": (2, True),
    "8, w/o PRI": (4, False),
    "8, w/ PRI": (4, True),
}
# Medians of the paper, read off by eye: Avatar's and native's. The paper does not label the panels.
PAPER = {
    "4, w/o PRI": (22, 55),
    "4, w/ PRI": (30, 80),
    "8, w/o PRI": (38, 80),
    "8, w/ PRI": (57, 117),
}

FIRST = Why(
    "the modelled NIC keeps its classes apart, a quantum at a time, so that the first class waits "
    "for one message "
    "of the lower at most; in the paper's figure native is hardly better off with a priority than "
    "without",
    MODEL,
)
SEGMENTS = [16, 32, 64, 128]  # KB; the paper does not give its own


def _why(by_segment):
    said = ", ".join(f"{late:.0f} us with {kb} KB" for kb, late in zip(by_segment.x, by_segment.y))
    return Why(
        f"a message waits for a segment of each other flow under the scheduler, and for a whole "
        f"message without it; the paper "
        f"does not say how long its segments are, and 16 KB is a guess. 4 flows, w/o PRI, by the "
        f"segment's length: {said}",
        INPUT,
    )


def run(sim):
    own = sim.all([mux.mux(16 * mux.KIB, 128 * mux.KIB, first, "turns", flows)
                   for flows, first in PANELS.values()], NAME)
    native = sim.all([mux.native(16 * mux.KIB, 128 * mux.KIB, first, flows)
                      for flows, first in PANELS.values()], NAME)
    names = list(PANELS)
    lines = [Series("weir", "us, median", names, [mux.latency(one) for one in own]),
             Series("native", "us, median", names, [mux.latency(one) for one in native]),
             Series("paper, Avatar", "us, median", names, [PAPER[name][0] for name in names]),
             Series("paper, native", "us, median", names, [PAPER[name][1] for name in names])]
    by_segment = Series(
        "weir, 4, w/o PRI",
        "us, median, by KB of a segment",
        SEGMENTS,
        list(
            map(
                mux.latency,
                sim.all(
                    [
                        {
                            **mux.mux(16 * mux.KIB, 128 * mux.KIB, False, "turns", 2),
                            "segment": kb * mux.KIB,
                        }
                        for kb in SEGMENTS
                    ],
                    NAME,
                ),
            )
        ),
    )
    waits = _why(by_segment)
    # Targets met without a priority follow from the guessed segment.
    guessed = {
        name: {"note": waits, "by_input": True} if "w/o PRI" in name else {} for name in names
    }
    targets = [
        within(
            f"{name}: the scheduler's, in parts of native's (the text)",
            0.5,
            lines[0].at(name) / lines[1].at(name),
            0.15,
            "",
            FIRST if "w/ PRI" in name else waits,
            **guessed[name],
        )
        for name in names
    ]
    targets += [
        within(
            f"{name}: {who}",
            PAPER[name][i],
            lines[i].at(name),
            0.15,
            " us",
            FIRST if "w/ PRI" in name else waits,
            **(guessed[name] if i == 0 else {}),
        )
        for name in names
        for i, who in enumerate(("Avatar", "native"))
    ]
    return Result("flows", [*lines, by_segment], targets, [mux.GUESSED],
                  axes={by_segment.unit: "KB of a segment"})
