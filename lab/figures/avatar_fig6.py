# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What another's large messages cost a small one, under the scheduler."""

from lab import avatar as mux
from lab.experiment import Result, Series, holds

NAME = "avatar-fig6"
TITLE = "under the scheduler a message does not wait for another's large ones"
VARIED = ("size of the messages in the background; 16 KB at a time in the foreground; flows share by bytes (WFQ) or "
          "by turns (RR), of one class, or the foreground's goes first (PRI)")
PROFILE = "connectx-5-edr"

PANELS = {"6a: WFQ, w/ PRI": ("fair", True), "6b: WFQ, w/o PRI": ("fair", False),
          "6c: RR, w/ PRI": ("turns", True), "6d: RR, w/o PRI": ("turns", False)}


def run(sim):
    keys = [(panel, size) for panel in PANELS for size in mux.BACKGROUND]
    runs = iter(sim.all([mux.mux(16 * mux.KIB, size, PANELS[panel][1], PANELS[panel][0])
                         for panel, size in keys], NAME))
    outs = {panel: [next(runs) for _ in mux.BACKGROUND] for panel in PANELS}
    natives = sim.all([mux.native(16 * mux.KIB, size, False) for size in mux.BACKGROUND], NAME)
    sizes = [size // mux.KIB for size in mux.BACKGROUND]
    median = {panel: Series(panel, "us, median", sizes, [mux.latency(one) for one in row])
              for panel, row in outs.items()}
    tail = [Series(panel, "us, 99th percentile", sizes, [mux.latency(one, "p99") for one in row])
            for panel, row in outs.items()]
    native = Series("plain verbs, w/o PRI", "us, median", sizes, [mux.latency(one) for one in natives])
    targets = []
    for panel, (policy, _) in PANELS.items():
        values = median[panel].y
        spread = max(values) / min(values) - 1
        paper = "about 22 us regardless" if policy == "turns" else "21 to 27 us" if "w/ PRI" in panel \
            else "hardly more"
        targets.append(holds(f"{panel}: beside 128 KB, no more than a third later than beside 16 KB", paper,
                             ", ".join(f"{value:.1f}" for value in values) + " us", spread <= 0.33))
    rr = [tail[list(PANELS).index(panel)].at(128) for panel in ("6c: RR, w/ PRI", "6d: RR, w/o PRI")]
    targets += [
        holds("6c, 6d: priority makes the tail shorter", "yes", f"{rr[0]:.1f} and {rr[1]:.1f} us", rr[0] < rr[1]),
        holds("6c, 6d: the median", "22 us", f"{median['6d: RR, w/o PRI'].at(64):.1f} us",
              abs(median["6d: RR, w/o PRI"].at(64) - 22) <= 0.15 * 22,
              "it depends on how many segments are posted at a time, which the paper does not say; here 4"),
    ]
    return Result("KB in the background", [*median.values(), native, *tail], targets, [mux.GUESSED])
