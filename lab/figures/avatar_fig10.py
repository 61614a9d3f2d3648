# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""How long a message of plain verbs takes, by its size."""

from lab.experiment import Result, Series, Target

NAME = "avatar-fig10"
TITLE = "latency of a message by its size, polled busily"
VARIED = "size of the messages, sent one at a time on one connection of one thread; plain verbs"
PROFILE = "connectx-5-edr"

KIB = 1024
SIZES = [64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB]
PAPER_US = [1, 2, 2, 2, 4, 12, 47]  # its labels: whole microseconds


def run(sim):
    runs = sim.all([{"op": "send", "size": size, "run_us": 2000} for size in SIZES], NAME)
    model = [one["load"]["latency_us"]["p50"] for one in runs]
    targets = [Target(f"10a: native, {size} bytes", f"{paper} us", f"{mine:.1f} us",
                      abs(mine - paper) <= max(0.15 * paper, 0.5),
                      calibrated=True)
               for size, paper, mine in zip(SIZES, PAPER_US, model)]
    notes = ["Met is within 15 %, or half a microsecond: the paper's labels are whole ones.",
             "Avatar's own line of 10a, and its CPU in 10b-d, are of its scheduler, which the "
             "simulator does not run yet."]
    return Result("bytes", [Series("native", "us", SIZES, model),
                            Series("paper", "us", SIZES, PAPER_US)], targets, notes)
