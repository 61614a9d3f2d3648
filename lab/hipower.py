# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""HiPower's two prototypes, bitmaps and an immediate for each message; and TCP/IP."""

from lab.experiment import Series

SLOTS = 256  # lib/exchange's default; the paper says only that both pools have the same size
SLOTS_MIN, POOL_BYTES = 8, 32 << 20  # large slots: as many as fit the default pool
# The sender looks for free slots when fewer than this percentage are free: 50 in section 4.1 of the
# paper, 40 in 3.1.
WAYS = {"bitmaps": {"imm": 0, "percent": 50}, "bitmaps, 40 %": {"imm": 0, "percent": 40},
        "immediates": {"imm": 1, "credit_batch": 1}}
NIC = {"link_gbps": 40}  # the paper's ConnectX-3

# A CPU cannot inline data of a GPU's memory into the WQE, and the NIC's reads cross the CPU's PCIe
# root. Both rates are assumed, for a Xeon E5 v2 with both devices behind one socket [D]: 3.5 and
# 6.4 GB/s. The paper names neither its GPU nor the attachment. Bitmaps lie in the CPU's memory.
GPU = "GPU (rates assumed)"
MEMORIES = {"CPU": {}, GPU: {"inline_max": 0, "pcie_read_gbps": 28, "pcie_write_gbps": 51.2}}
# A NIC's reads of a GPU's memory, in GB/s. Through a CPU from before 2013 about 0.8. Behind a PCIe
# switch 7.4 from GPU to GPU, over two ports: NVIDIA, Benchmarking GPUDirect RDMA on Modern Server
# Platforms, 2014, as others quote the article [C]. A port of a ConnectX-3 gets 6.6 over its eight
# lanes. 3.5: assumed.
GPU_READS_GBYTES = {
    "0.8, older CPU": 0.8,
    "3.5, assumed": 3.5,
    "5, assumed": 5,
    "6.6, PCIe switch": 6.6,
}
GPU_NOTE = (
    "Memory of a GPU: nothing is inlined, and the NIC reads 3.5 GB/s of it and writes 6.4. Both "
    "rates are assumed. "
    "Published for such reads is about 0.8 GB/s through an older CPU, and up to 7.4 behind a PCIe "
    "switch (NVIDIA 2014, as "
    "quoted by others). The paper names neither its GPU nor how it is attached."
)

# A call at each end. From memory, without a source [D].
TCP_CALL_US = 1.0
TCP_LINK = 0.94  # of the link, for headers of frames of 1500 bytes
TCP_NOTE = (
    f"TCP/IP is arithmetic, not a run: {TCP_CALL_US:.0f} us a call at each end, from memory, a "
    f"copy there, and the "
    "link; a message that comes alone also an interrupt and a wake-up, as the profile has them."
)


def settings(way, size, memory="CPU", clients=1, servers=1, slots=0, **more):
    """Messages sent singly, whenever a slot is free."""
    slots = slots or max(SLOTS_MIN, min(SLOTS, POOL_BYTES // size))
    asked = {"driver": "exchange", "size": size, "slots": slots, "slot_bytes": max(size, 4096),
             "clients": clients, "servers": servers, **NIC, **WAYS[way], **MEMORIES[memory], **more}
    # All slots may be announced at once: the run covers several times the pool's transfer time.
    gbps_max = min(NIC["link_gbps"], asked.get("pcie_read_gbps", NIC["link_gbps"]))
    pools_us = int(slots * size * 8 * max(clients, servers) / (1000 * gbps_max))
    # Many ends take long to reach a steady state; their rate varies by a fifth within milliseconds.
    warmup_us, run_us = (5000, 15000) if clients * servers > 1 else (500, 2500)
    return {"warmup_us": warmup_us + 3 * pools_us, "run_us": run_us + 12 * pools_us, **asked}


def gbps(one):
    return one["load"]["gbps"]


def us_a_message(one, side):
    """CPU time a message of one side's threads, without empty polls."""
    return one["load"][f"{side}_cores"] / one["load"]["mops"]


def tcp_rate(sim, sizes, unit="Gb/s"):
    """One thread at each end, or at the master."""
    copy_gbps = sim.profile_numbers()["copy_gbps"]

    def rate(size):
        return min(
            TCP_LINK * NIC["link_gbps"], size * 8 / (1000 * TCP_CALL_US + size * 8 / copy_gbps)
        )
    return Series("TCP/IP, by arithmetic", unit, sizes, [rate(size) for size in sizes])


def tcp_latency(sim, sizes, unit):
    """One way, one message at a time."""
    number = sim.profile_numbers()
    kernel_us = (
        sum(
            number[name] for name in ("wire_ns", "irq_latency_ns", "irq_ns", "wake_ns", "switch_ns")
        )
        / 1000
    )

    def late(size):
        bits = size * 8 / 1000
        return (
            2 * TCP_CALL_US
            + kernel_us
            + 2 * bits / number["copy_gbps"]
            + bits / (TCP_LINK * NIC["link_gbps"])
        )
    return Series("TCP/IP, by arithmetic", unit, sizes, [late(size) for size in sizes])
