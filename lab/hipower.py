# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""HiPower's two prototypes: bitmaps that are looked at, and an immediate for each message; and TCP/IP."""

from lab.experiment import Series

SLOTS = 256  # lib/exchange's default; the paper says only that both pools are of one size
# The sender looks for free slots below so many per cent: 50 in the paper's section 4.1, 40 in 3.1.
WAYS = {"bitmaps": {"imm": 0, "percent": 50}, "bitmaps, 40 %": {"imm": 0, "percent": 40},
        "immediates": {"imm": 1, "gives": 1}}
NIC = {"link_gbps": 40}  # the paper's ConnectX-3

# What a NIC reads of a GPU nobody can have written into the WQE, and it crosses the CPU's PCIe root. Both
# rates are from memory, of a Xeon E5 v2 with both devices behind one socket [D]: 3.5 and 6.4 GB/s. The
# paper names neither its GPU nor how that is attached. Bitmaps lie in the CPU's memory.
MEMORIES = {"CPU": {}, "GPU": {"inline_max": 0, "pcie_read_gbps": 28, "pcie_write_gbps": 51.2}}
GPU_NOTE = ("Memory of a GPU: nothing is inlined, and the NIC reads 3.5 GB/s of it and writes 6.4. These are from memory, "
            "without a source; NVIDIA's documents say only that such reads are slow through a CPU. The paper names neither "
            "its GPU nor how it is attached.")

# A call at each end. From memory, without a source [D].
TCP_CALL_US = 1.0
TCP_LINK = 0.94  # of the link, for headers of frames of 1500 bytes
TCP_NOTE = (f"TCP/IP is arithmetic, not a run: {TCP_CALL_US:.0f} us a call at each end, from memory, a copy there, and the "
            "link; a message that comes alone also an interrupt and a wake-up, as the profile has them.")


def settings(way, size, memory="CPU", clients=1, servers=1, slots=SLOTS, **more):
    """Messages one at a time, whenever a slot is free."""
    # All slots may be told of at once: several such times are counted.
    pools_us = slots * size * 8 * max(clients, servers) // (1000 * NIC["link_gbps"])
    return {"driver": "exchange", "size": size, "slots": slots, "slot_bytes": max(size, 4096),
            "clients": clients, "servers": servers, **NIC, **WAYS[way], **MEMORIES[memory],
            "warmup_us": 500 + 2 * pools_us, "run_us": 2000 + 6 * pools_us, **more}


def gbps(one):
    return one["load"]["gbps"]


def us_a_message(one, side):
    """CPU of the threads of one side that is not spent on looking in vain."""
    return one["load"][f"{side}_cores"] / one["load"]["mops"]


def tcp_rate(sim, sizes, unit="Gb/s"):
    """One thread at each end, or at the master."""
    copy_gbps = sim.profile_numbers()["copy_gbps"]

    def rate(size):
        return min(TCP_LINK * NIC["link_gbps"], size * 8 / (1000 * TCP_CALL_US + size * 8 / copy_gbps))
    return Series("TCP/IP, by arithmetic", unit, sizes, [rate(size) for size in sizes])


def tcp_latency(sim, sizes, unit):
    """One way, one message at a time."""
    number = sim.profile_numbers()
    kernel_us = sum(number[name] for name in ("wire_ns", "irq_latency_ns", "irq_ns", "wake_ns", "switch_ns")) / 1000

    def late(size):
        bits = size * 8 / 1000
        return 2 * TCP_CALL_US + kernel_us + 2 * bits / number["copy_gbps"] + bits / (TCP_LINK * NIC["link_gbps"])
    return Series("TCP/IP, by arithmetic", unit, sizes, [late(size) for size in sizes])
