# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A small message behind large ones of another queue pair."""

from lab.experiment import Result, Series, holds

NAME = "avatar-fig2"
TITLE = "a small message waits for the large ones of another queue pair"
VARIED = ("size of the messages in the background, two under way on a QP of their own; 1 KB messages one "
          "at a time in the foreground; one traffic class")
PROFILE = "connectx-5-edr"

KIB = 1024
SIZES = {"none": 0, "16 KB": 16 * KIB, "64 KB": 64 * KIB, "256 KB": 256 * KIB, "1 MB": 1024 * KIB}
PARTS = ["p50", "p90", "p99", "max"]
# Read off the plot by eye, in us.
PAPER = {("16 KB", "max"): 5, ("64 KB", "max"): 9,
         ("256 KB", "p50"): 9, ("256 KB", "p90"): 25, ("256 KB", "max"): 35,
         ("1 MB", "p50"): 22, ("1 MB", "p90"): 39, ("1 MB", "max"): 47}
PAPER_EARLIEST = {"64 KB": (40, 3), "1 MB": (20, 7)}
WORDS = {"max": "the latest"}
# All of these are one number, the time that the NIC's quantum takes, which was fitted to the last.
QUANTUM = ("256 KB", "1 MB")
BY_EYE = "read off the plot by eye: met within a quarter"
IN_STEP = ("nothing jitters in the model, so that each small message comes when the one before it is done and meets the "
           "large ones at the same place every time: all take equally long, and with 256 KB and 1 MB that is the quantum")


def run(sim):
    runs = sim.all([{"size": KIB, "bg_threads": int(size > 0), "bg_size": size or KIB, "bg_depth": 2,
                     "run_us": 5000} for size in SIZES.values()], NAME)
    series = [Series(name, "us", PARTS, [one["load"]["latency_us"][part] for part in PARTS])
              for name, one in zip(SIZES, runs)]
    late = {one.name: one for one in series}
    latest = {one.name: one.at("max") for one in series}
    targets = [holds(f"{WORDS.get(part, part)} with {name} in the background", f"about {paper} us", f"{late[name].at(part):.1f} us",
                     abs(late[name].at(part) - paper) <= 0.25 * paper, IN_STEP, note=BY_EYE, calibrated=name in QUANTUM)
               for (name, part), paper in PAPER.items()]
    little = late["16 KB"]
    targets += [holds("all with 16 KB in the background", "2 to 5 us", f"half by {little.at('p50'):.1f}, all by {little.at('max'):.1f} us",
                      2 <= little.at("p50") and little.at("max") <= 5, IN_STEP)]
    targets += [holds(f"the earliest with {name} in the background", f"{part} % by {paper} us",
                      f"half by {late[name].at('p50'):.1f} us, all by {late[name].at('max'):.1f} us",
                      late[name].at("p50") <= 1.25 * paper, IN_STEP) for name, (part, paper) in PAPER_EARLIEST.items()]
    targets.append(holds("significant increase above 64 KB", "yes",
                         f"{latest['64 KB']:.0f} us, then {latest['256 KB']:.0f} us",
                         latest["256 KB"] > 1.5 * latest["64 KB"], note="the later of the two is the quantum", calibrated=True))
    return Result("of all messages", series, targets)
