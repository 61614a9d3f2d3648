# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A small message behind large ones of another queue pair."""

import math

from lab.experiment import MODEL, Result, Series, Why, holds

NAME = "avatar-fig2"
TITLE = "how long a small message takes beside large ones of another queue pair"
VARIED = ("size of the messages in the background, two under way on a QP of their own; 1 KB "
          "messages one at a time in the foreground, each so long after the one before: from "
          "nothing to 39.5 us; one traffic class")
PROFILE = "connectx-5-edr"

KIB = 1024
SIZES = {"none": 0, "16 KB": 16 * KIB, "64 KB": 64 * KIB, "256 KB": 256 * KIB, "1 MB": 1024 * KIB}
# Nothing here is random. A message sent right after the last would meet the large messages at the
# same place each time. So each run adds a longer pause, up to a quantum of the NIC, and the plot
# shows the medians of these runs.
PAUSES_NS = range(0, 40000, 500)
PARTS = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
# Read off the plot by eye, in us.
PAPER = {("16 KB", 100): 5, ("64 KB", 40): 3, ("64 KB", 100): 9,
         ("256 KB", 50): 9, ("256 KB", 90): 25, ("256 KB", 100): 35,
         ("1 MB", 20): 7, ("1 MB", 50): 22, ("1 MB", 90): 39, ("1 MB", 100): 47}
# All of these depend on one number, the time of the NIC's quantum, which was fitted to the last.
FITTED, QUANTUM = ("1 MB", 100), ("256 KB", "1 MB")
BY_EYE = "read off the plot by eye: met within a quarter"
NEVER_IDLE = Why(
    "the modelled NIC has a large message to send at any time, so that a small one waits for "
    "what is left of one, or of a turn, any part of it as likely as any other; in the paper's "
    "figure more of them wait little, as if there were pauses between the large ones. How its "
    "background is posted the paper does not say",
    MODEL,
)

A_WHOLE_ONE = Why(
    "the latest waits for a whole message of the background, and takes its own time; by the "
    "paper's own Fig. 10a, which this profile was fitted to, one of 64 KB takes 12 us",
    MODEL,
)


def _setting(size, pause_ns):
    return {"size": KIB, "bg_threads": int(size > 0), "bg_size": size or KIB, "bg_depth": 2,
            "run_us": 3000,
            "handle_ns": pause_ns}


def _by_part(outs):
    """The distribution of latency over the runs, all equally likely."""
    medians = sorted(one["load"]["latency_us"]["p50"] for one in outs)
    latest = max(one["load"]["latency_us"]["max"] for one in outs)
    return [*(medians[math.ceil(len(medians) * part / 100) - 1] for part in PARTS[:-1]), latest]


def _target(late, name, part, paper):
    met = abs(late[name].at(part) - paper) <= 0.25 * paper
    fitted = (name, part) == FITTED
    return holds(f"{'all' if part == 100 else f'{part} %'} are done, {name} in the background",
                 f"by about {paper} us",
                 f"by {late[name].at(part):.1f} us", met,
                 A_WHOLE_ONE if part == 100 else NEVER_IDLE, note=BY_EYE, calibrated=fitted,
                 by_input=name in QUANTUM and not fitted)


def run(sim):
    outs = sim.all([_setting(size, pause) for size in SIZES.values() for pause in PAUSES_NS], NAME)
    rows = [outs[i * len(PAUSES_NS):(i + 1) * len(PAUSES_NS)] for i in range(len(SIZES))]
    series = [Series(name, "us", PARTS, _by_part(row)) for name, row in zip(SIZES, rows)]
    late = {one.name: one for one in series}
    targets = [_target(late, name, part, paper) for (name, part), paper in PAPER.items()]
    little = late["16 KB"]
    targets.append(holds("all with 16 KB in the background", "2 to 5 us",
                         f"a tenth by {little.at(10):.1f}, all by {little.at(100):.1f} us",
                         0.75 * 2 <= little.at(10) and little.at(100) <= 5, NEVER_IDLE,
                         note=BY_EYE))
    targets.append(holds("significant increase above 64 KB", "yes",
                         f"{late['64 KB'].at(100):.0f} us, then {late['256 KB'].at(100):.0f} us",
                         late["256 KB"].at(100) > 1.5 * late["64 KB"].at(100),
                         note="the later of the two is the quantum",
                         by_input=True))
    notes = [f"{len(PAUSES_NS)} runs for each line, of which each has the small messages come at "
             "another place of the large ones: nothing is random in them, and in one alone all "
             "small messages take about as long."]
    return Result("% of all messages", series, targets, notes)
