# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One sender, one receiver: an immediate for each message."""

from lab.experiment import Result, Series, within

NAME = "hipower-fig5"
TITLE = "one to one, with an immediate for each message"
VARIED = "size of the messages, written with immediate; eight under way; CPU memory"
PROFILE = "connectx-3"

SIZES = [64, 128, 256, 512, 1024, 2048, 4096, 16384, 65536]
PAPER_GBPS = {512: 11.5, 1024: 23.3}


def run(sim):
    runs = sim.all([{"op": "write_imm", "size": size, "depth": 8, "link_gbps": 40} for size in SIZES],
                   NAME)
    vanilla = Series("vanilla", "Gb/s", SIZES, [one["load"]["gbps"] for one in runs])
    targets = [within(f"5a: vanilla, {size} bytes", paper, vanilla.at(size), 0.15, " Gb/s")
               for size, paper in PAPER_GBPS.items()]
    notes = ["The paper's node has a ConnectX-3 with a link of 40 Gb/s.",
             "The line of batched confirmation follows with weir's exchanges."]
    return Result("bytes", [vanilla], targets, notes)
