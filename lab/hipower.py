# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""HiPower's two prototypes: bitmaps that are looked at, and an immediate for each message."""

SLOTS = 256  # lib/exchange's default; the paper says only that both pools are of one size
WAYS = {"bitmaps": {"imm": 0}, "immediates": {"imm": 1, "gives": 1}}
NIC = {"link_gbps": 40}  # the paper's ConnectX-3


def settings(way, size, clients=1, servers=1, percent=50, **more):
    """Messages one at a time, whenever a slot is free. percent: the paper's section 4.1."""
    # All slots may be told of at once: many such times are counted.
    pools_us = SLOTS * size * 8 * max(clients, servers) // (1000 * NIC["link_gbps"])
    return {"driver": "exchange", "size": size, "slots": SLOTS, "slot_bytes": max(size, 4096),
            "percent": percent, "clients": clients, "servers": servers, **NIC, **WAYS[way],
            "warmup_us": 1000 + 2 * pools_us, "run_us": 3000 + 20 * pools_us, **more}


def gbps(one):
    return one["load"]["gbps"]


def us_a_message(one, side):
    """CPU of the threads of one side that is not spent on looking in vain."""
    return one["load"][f"{side}_cores"] / one["load"]["mops"]
