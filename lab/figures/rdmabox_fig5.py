# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Copying into registered memory, or registering for each request."""

from lab.experiment import Result, Series, holds, within

NAME = "rdmabox-fig5"
TITLE = "registering memory and copying it, by length"
VARIED = "length; user space: ibv_reg_mr and ibv_dereg_mr; kernel: DMA mapping, without an IOMMU"
PROFILE = "connectx-3"

KIB = 1024
SIZES = [4 * KIB << i for i in range(12)]
DMA_MAP_NS_PER_PAGE = 30  # 10 to 50, from memory: nic-model section 1.8
PAPER_CROSSOVER = 928 * KIB


def run(sim):
    number = sim.profile_numbers()
    page = int(number["page_bytes"])

    def copying(length):
        return number["copy_call_ns"] + 8 * length / number["copy_gbps"]

    def registering(length):
        pages = -(-length // page)
        return (number["reg_ns"] + number["dereg_ns"]
                + pages * (number["reg_page_ns"] + number["dereg_page_ns"]))

    def mapping(length):
        return -(-length // page) * DMA_MAP_NS_PER_PAGE

    crossover = next(length for length in range(page, 64 << 20, page)
                     if registering(length) <= copying(length))
    series = [
        Series(name, "us", [size // KIB for size in SIZES], [of(size) / 1000 for size in SIZES])
        for name, of in (
            ("copy", copying),
            ("register, user", registering),
            ("map, kernel", mapping),
        )
    ]
    targets = [
        within("5b: registering is cheaper from", PAPER_CROSSOVER // KIB, crossover / KIB, 0.02,
               " KB", note="the prices of both were chosen so", calibrated=True),
        holds("5a: in the kernel copying dominates at all lengths", "yes", "yes",
              all(mapping(size) < copying(size) for size in SIZES),
              note=f"{DMA_MAP_NS_PER_PAGE} ns a page, from memory", by_input=True),
    ]
    notes = ["Arithmetic on the profile, not a run: both prices are straight lines. The kernel's "
             "price is a DMA mapping, since what the paper calls dynMR there writes no MTT."]
    return Result("KB of a transfer", series, targets, notes)
