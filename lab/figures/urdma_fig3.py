# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Small writes to more memory than the NIC can translate from its cache."""

from lab.experiment import Result, Series, within

NAME = "urdma-fig3"
TITLE = "small writes that miss the target NIC's translation cache"
VARIED = ("regions of 4 KB, as many as 4 GB have; which one is written follows Zipf's law with "
          "exponent 0.5; 16 bytes, inlined, one at a time")
PROFILE = "connectx-5"

EXPONENTS = [0, 4, 8, 10, 12, 14, 16, 18, 20]


def run(sim):
    # Both ways are a write: what the paper calls a round trip is twice the way to the other side.
    runs = sim.all([{"size": 16, "mrs": 2 ** exponent, "region_bytes": 4096,
                     "pattern": "zipf" if exponent else "seq", "warmup_us": 40000,
                     "run_us": 10000} for exponent in EXPONENTS], NAME)
    offload = Series("offload", "us to completion", EXPONENTS,
                     [one["load"]["latency_us"]["mean"] for one in runs])
    misses = Series("offload", "misses of the target's MTT", EXPONENTS,
                    [one["servers"]["misses"]["mtt"] for one in runs])
    targets = [within("how much later a write ends with 2^20 regions than with one", 5.1 - 2.6,
                      offload.at(20) - offload.at(0), 0.15, " us",
                      "the price of a miss lies between Clio's and this", calibrated=True)]
    notes = ["The unloaded and the adaptive line follow with weir's unload path."]
    return Result("log2 of the regions", [offload, misses], targets, notes)
