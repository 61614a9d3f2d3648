# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Several flows in the foreground and in the background."""

from lab import avatar as mux
from lab.experiment import Result, Series, holds

NAME = "avatar-fig9"
TITLE = "with several flows a small message is done in half the time"
VARIED = ("flows in all, half of them sending 16 KB at a time, half 128 KB in the background; of one class, or the "
          "first half's goes first")
PROFILE = "connectx-5-edr"

PANELS = {"4, w/o PRI": (2, False), "4, w/ PRI": (2, True), "8, w/o PRI": (4, False), "8, w/ PRI": (4, True)}
# Medians of the paper, read off by eye: Avatar's and native's. Which panel is which it does not say.
PAPER = {"4, w/o PRI": (22, 55), "4, w/ PRI": (30, 80), "8, w/o PRI": (38, 80), "8, w/ PRI": (57, 117)}

FIRST = ("the modelled NIC keeps its classes apart, a quantum at a time, so that the first class waits for one message "
         "of the lower at most; in the paper's figure native is hardly better off with a priority than without")


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
    targets = [holds(f"{name}: the scheduler's, in parts of native's", f"about 0.5 ({PAPER[name][0] / PAPER[name][1]:.2f})",
                     f"{lines[0].at(name) / lines[1].at(name):.2f}", lines[0].at(name) <= 0.6 * lines[1].at(name),
                     FIRST if "w/ PRI" in name else "")
               for name in names]
    return Result("flows", lines, targets, [mux.GUESSED])

