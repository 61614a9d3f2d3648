# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One master and four workers."""

from lab import hipower
from lab.experiment import Result, Series, Target, holds
from lab.figures import hipower_fig5 as fig5

NAME = "hipower-fig6"
TITLE = "gather and broadcast: batched confirmation, and an immediate for each message"
VARIED = ("size of the messages; four workers each send to the master (gather), or the master to all four (broadcast), "
          "from 256 slots for each of them; the master has one thread; CPU memory")
PROFILE = "connectx-3"

SIZES = [64, 256, 512, 1024, 2048, 4096, 16384, 65536]
SMALL = [size for size in SIZES if size < 4096]
SHAPES = {"gather": {"clients": 4}, "broadcast": {"servers": 4}}
MASTER = {"gather": "take", "broadcast": "send"}
# What bitmaps gain, in per cent: from the least to the most.
PAPER_GAINS = {"gather": (7.8, 68), "broadcast": (8.9, 70)}
PAPER_SAVES = {"gather": 79, "broadcast": 20}
WHY = ("with one thread for the master the model has it take in as fast as four workers' bitmaps tell of messages, "
       "while immediates cost it a receive each; how many threads the paper's has it does not say")
BEHIND = ("once the link is full a look stands behind all that was posted before it, four times as much as with one "
          "peer, so that the slots are told of late")


def run(sim):
    keys = [(shape, way) for shape in SHAPES for way in hipower.WAYS]
    rows = {(shape, way): sim.all([hipower.settings(way, size, **SHAPES[shape]) for size in SIZES], NAME)
            for shape, way in keys}
    rate = {key: Series(" by ".join(key), "Gb/s", SIZES, [hipower.gbps(one) for one in row])
            for key, row in rows.items()}
    cpu = {key: Series(" by ".join(key), "us of the master's CPU a message", SIZES,
                       [hipower.us_a_message(one, MASTER[key[0]]) for one in row])
           for key, row in rows.items()}
    late = {key: Series(" by ".join(key), "us until taken, median", SIZES,
                        [one["load"]["latency_us"]["p50"] for one in row])
            for key, row in rows.items()}
    alone = sim.all([hipower.settings("bitmaps", size) for size in SIZES], NAME)
    targets = []
    for shape in SHAPES:
        gains = [100 * (a / b - 1) for a, b in zip(rate[shape, "bitmaps"].y, rate[shape, "immediates"].y)]
        least, most = PAPER_GAINS[shape]
        targets.append(holds(f"6a, 6d: {shape}, what bitmaps gain at most", f"+{most} %", f"{max(gains):+.0f} %",
                             abs(max(gains) - most) <= 0.15 * most, WHY))
        targets.append(holds(f"6a, 6d: {shape}, and at least (the paper: +{least} %)", "never slower",
                             f"{min(gains):+.0f} %", min(gains) >= -1, BEHIND))
        saves = [100 * (1 - a / b) for a, b in zip(cpu[shape, "bitmaps"].y, cpu[shape, "immediates"].y)]
        targets.append(holds(f"6b, 6e: {shape}, CPU that the master saves, at most", f"{PAPER_SAVES[shape]} %",
                             f"{max(saves):.0f} %", abs(max(saves) - PAPER_SAVES[shape]) <= 15,
                             "" if shape == "gather" else "as in hipower-fig5's requester"))
    ratio = late["gather", "bitmaps"].at(16384) / alone[SIZES.index(16384)]["load"]["latency_us"]["p50"]
    targets += [
        holds("6c: above 4 KB, gather's latency in parts of one to one's", "about 4", f"{ratio:.1f} (16 KB)",
              abs(ratio - 4) <= 0.6, BEHIND),
        holds("6c: below 4 KB the latency of bitmaps is lower", "yes",
              ", ".join(f"{late['gather', 'bitmaps'].at(s):.0f}/{late['gather', 'immediates'].at(s):.0f}"
                        for s in SMALL) + " us",
              all(late["gather", "bitmaps"].at(s) < late["gather", "immediates"].at(s) for s in SMALL), fig5.OURS),
        Target("6a-f with GPUDirect", "+5.2 to +75 %", "not modelled", None,
               "no source here has a GPU's PCIe path"),
    ]
    notes = ["The switch has room for all: no pauses are modelled. TCP/IP is in hipower-fig5.",
             "CPU is what the master's thread spends on anything but polling in vain."]
    return Result("bytes", [*rate.values(), *cpu.values(), *late.values()], targets, notes)
