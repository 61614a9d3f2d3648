# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Small writes to more memory than the NIC can translate from its cache, by two paths."""

from lab.experiment import Result, Series, holds, within

NAME = "urdma-fig3"
TITLE = "small writes that miss the target NIC's translation cache, and those that are unloaded"
VARIED = ("regions of 4 KB, as many as 4 GB have; which one is written follows Zipf's law with "
          "exponent 0.5; 16 bytes, inlined, one round trip at a time")
PROFILE = "connectx-5"

EXPONENTS = [0, 4, 8, 10, 12, 14, 16, 18, 20]
ENDS = EXPONENTS[0], EXPONENTS[-1]
HOT = 4096  # the paper's: so many regions are offloaded
# What the server's CPU takes to check and to copy, fitted to 3.4 us with one region.
HANDLE_NS = 630
WAYS = {
    "offload": {"unload": "off"},
    "unload": {"unload": "always"},
    "adaptive, by hints": {"unload": "hints"},
    "adaptive, by frequency": {"unload": "frequency"},
}


def settings(exponent, way):
    # A policy that counts has seen the regions before the run, the hot ones often.
    return {"driver": "trip", "size": 16, "mrs": 2 ** exponent, "region_bytes": 4096,
            "pattern": "zipf", "warmup_us": 40000 if exponent < 16 else 150000, "run_us": 10000,
            "learn": min(16 << exponent, 2000000) if way == "adaptive, by frequency" else 0,
            "handle_ns": HANDLE_NS, "hot": HOT, **WAYS[way]}


def run(sim):
    runs = sim.all([settings(exponent, way) for way in WAYS for exponent in EXPONENTS], NAME)
    rows = {way: runs[i * len(EXPONENTS):(i + 1) * len(EXPONENTS)] for i, way in enumerate(WAYS)}
    lines = {way: Series(way, "us a round trip", EXPONENTS,
                         [one["load"]["latency_us"]["mean"] for one in row])
             for way, row in rows.items()}
    shares = [Series(way, "part that is unloaded", EXPONENTS,
                     [one["load"]["unloaded"] / one["load"]["ops"] for one in rows[way]])
              for way in list(WAYS)[2:]]
    misses = Series("offload", "misses of the target's MTT", EXPONENTS,
                    [one["servers"]["misses"]["mtt"] for one in rows["offload"]])
    return Result("log2 of the regions", [*lines.values(), *shares, misses],
                  targets(*lines.values()),
                  ["The paper's adaptive line is the one by hints; of its values only the ordering "
                   "is published."])


def targets(offload, unload, hints, frequency):
    better = [min(pair) for pair in zip(offload.y, unload.y)]
    worst = max(have / best for have, best in zip(hints.y, better))
    gains = [best - have for have, best in zip(hints.y, better)]
    apart = max(abs(f / h - 1) for f, h in zip(frequency.y, hints.y))
    first, last = ENDS
    return [
        within("offloaded, one region", 2.6, offload.at(first), 0.1, " us", calibrated=True),
        within("offloaded, 2^20 regions", 5.1, offload.at(last), 0.1, " us", calibrated=True),
        within("unloaded, one region", 3.4, unload.at(first), 0.05, " us",
               "what the CPU takes is fitted to this", calibrated=True),
        within("unloaded, 2^20 regions", 3.5, unload.at(last), 0.05, " us",
               "the CPU's own misses are not modelled"),
        holds("adaptive is as good as the better of both, everywhere", "yes",
              f"at most {100 * (worst - 1):.1f} % later", worst <= 1.03),
        holds("where part of what is written fits the cache, adaptive is below both", "yes",
              f"by up to {max(gains):.2f} us", max(gains) > 0.02),
        holds("counting writes does as well as knowing them, within 5 %", "not published",
              f"at most {100 * apart:.1f} % apart", apart <= 0.05,
              "of that a decision's own time is 50 ns, a setting"),
    ]
