#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""/dev/weirN without memory: tests/kernel/starve.c makes allocations of weir's modules fail.

  starve.py WEIR MODULES    run in the guest by 'vm check'
"""
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

import block
from block import (
    DONOR,
    KEY,
    MIB,
    MODULES,
    SECOND,
    WEIR,
    blk,
    detach,
    must,
    put,
    read,
    stat,
    until,
    write,
)

MODULE = f"{MODULES}-tests/weir_starve.ko"
PARAMETERS = "/sys/module/weir_starve/parameters"
ALLOCATORS = "should_failslab", "__alloc_pages"  # functions that the module intercepts
DISK = "/dev/ram0"
ALL = 1 << 40
# Deeper frames belong to other modules' handling of memory shortage.
NEAR, DEEP = 4, 48
WHY = r"memory|-12\b|-105\b"  # ENOMEM, which the network calls ENOBUFS
# Step between tries, in weir's own allocations; 1 tests every allocation, and takes minutes.
STEP = int(os.environ.get("WEIR_STARVE_STEP", "10"))
SKIPPED = 77


def parameter(name):
    with open(f"{PARAMETERS}/{name}", encoding="ascii") as file:
        return int(file.read())


class Starved:
    """Within the context, so many allocations succeed, then so many fail. Afterwards @seen has the
    number of allocations, @failed the number of failures."""

    def __init__(self, skip=0, fail=ALL, near=DEEP):
        self.skip, self.fail, self.near = skip, fail, near
        self.seen = self.failed = 0

    def __enter__(self):
        for name, value in (
            ("near", self.near),
            ("skip", self.skip),
            ("seen", 0),
            ("fail", self.fail),
        ):
            put(f"{PARAMETERS}/{name}", str(value))
        return self

    def __exit__(self, *_):
        self.seen, self.failed = parameter("seen"), self.fail - parameter("fail")
        put(f"{PARAMETERS}/fail", "0")


class Starving(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        must("modprobe", "brd", "rd_nr=1", f"rd_size={64 << 10}")
        cls.addClassCleanup(must, "modprobe", "-r", "brd")
        texts = ",".join(hex(address) for text in block.texts() for address in text)
        must("insmod", MODULE, f"text={texts}")
        cls.addClassCleanup(must, "rmmod", "weir_starve")

    def donor(self, *args):
        donor = block.Donor(*args)
        self.addCleanup(lambda: donor.end(signal.SIGKILL))
        return donor

    def attached(self, *options, timeout="60", **more):
        device = block.attach("--timeout", timeout, *options, **more)
        self.addCleanup(detach, device)
        return device

    def verifier(self, device, *options):
        process = subprocess.Popen(
            block.FIO + [f"--filename={device}", "--bsrange=4k-64k", "--iodepth=16", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.addCleanup(process.kill)
        return process

    def until_something_fails(self):
        put(f"{PARAMETERS}/seen", "0")
        deadline = time.monotonic() + block.LONG
        while not parameter("seen"):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)

    def is_content(self, verifier):
        said, _ = verifier.communicate(timeout=block.LONG)
        self.assertEqual(verifier.returncode, 0, said)

    def try_to_attach(self, options, **how):
        """Attaches, or reports a reason. Returns how many allocations failed."""
        with Starved(**how) as starved:
            done = blk(
                "attach", "--key", KEY, "--timeout", "60", *options, f"{DONOR},{SECOND}", "2M"
            )
        if done.returncode:
            self.assertTrue(starved.failed, done.stderr)
            self.assertEqual((done.returncode, done.stdout), (1, ""), how)
            # Other modules report a lack of memory in their own words.
            self.assertRegex(
                done.stderr, WHY if starved.near == NEAR else "^weir blk attach: .+\n$", how
            )
        else:
            device = done.stdout.strip()
            write(device, b"here" * 1024, MIB)
            self.assertEqual(read(device, MIB), b"here" * 1024, how)
            detach(device)
        self.assertEqual(json.loads(must(WEIR, "blk", "list", "--json"))["devices"], [], how)
        return starved.failed

    def test_an_attach_without_memory_fails_with_a_reason_and_leaves_nothing(self):
        self.donor(DONOR), self.donor(SECOND)
        options = ("--replicas", "2", "--local", DISK, "--channels", "1")
        number = 0
        while self.try_to_attach(options, skip=number, fail=1, near=NEAR):
            number += STEP
        self.assertGreater(number, 100)

    def test_nor_where_it_is_others_that_have_none_on_its_behalf(self):
        self.donor(DONOR), self.donor(SECOND)
        rng, number = random.Random(7), 0
        while self.try_to_attach(("--mr", "pre"), skip=number):
            number += 1 + rng.randrange(240)
        self.assertGreater(number, 100)

    def test_existing_data_is_read_and_written_without_any_memory(self):
        self.donor(DONOR), self.donor(SECOND)
        device = self.attached("--replicas", "2", "--local", DISK, donors=(DONOR, SECOND))
        verifier = self.verifier(device, "--rw=randwrite", "--size=8m", "--loops=2")
        with Starved():
            self.is_content(verifier)
            must("blkdiscard", "--offset", str(8 * MIB), "--length", str(8 * MIB), device)
            self.assertEqual(read(device, 12 * MIB), bytes(4096))
        self.assertEqual((stat(device)["state"], stat(device)["errors"]), ("up", 0))

    def test_a_donor_that_dies_meanwhile_is_made_good_when_there_is_memory(self):
        self.donor(DONOR)
        second = self.donor(SECOND)
        device = self.attached("--replicas", "2", donors=(DONOR, SECOND), timeout="10")
        verifier = self.verifier(device, "--rw=randwrite", "--size=12m")
        until(device, lambda now: now["bytes_written"] > 4 * MIB)
        with Starved() as starved:
            second.end(signal.SIGKILL)
            until(device, lambda now: now["donors"][1]["state"] == "lost")
            self.donor(SECOND)
            self.until_something_fails()  # to connect to it
            self.is_content(verifier)
            self.assertEqual(stat(device)["state"], "degraded")
        self.assertTrue(starved.failed)
        until(device, lambda now: now["state"] == "up")
        self.assertEqual(stat(device)["lost"], 0)

    def test_a_failed_growth_changes_nothing(self):
        self.donor(DONOR)
        device = self.attached(size="4M")
        write(device, b"same" * 1024, 3 * MIB)
        for number in range(4):
            with Starved(skip=number, fail=1) as starved:
                refused = blk("resize", device, "8M")
            if not starved.failed:
                break
            self.assertEqual((refused.returncode, refused.stdout), (1, ""), number)
            self.assertIn("memory", refused.stderr)
            self.assertEqual(must("blockdev", "--getsize64", device).strip(), str(4 * MIB))
        must(WEIR, "blk", "resize", device, "16M")
        self.assertEqual(read(device, 3 * MIB), b"same" * 1024)

    def test_to_detach_takes_memory_for_the_answer_only(self):
        self.donor(DONOR)
        device = block.attach("--timeout", "60")
        for number in range(20):
            with Starved(skip=number) as starved:
                done = blk("detach", device)
            if not done.returncode:
                break
            self.assertEqual(done.returncode, 1)
            self.assertIn("memory", done.stderr)
            write(device, b"here" * 1024)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(number and starved.failed, "that all the rest was refused")


def kernel_complains():
    """A failed allocation prints a backtrace; only other reports are mistakes."""
    return [line for line in block.kernel_complains() if "Call Trace" not in line]


def why_not():
    """The reason why this cannot run here, or None."""
    if not os.path.exists(MODULE):
        return "the kernel has no kprobes"
    with open("/proc/kallsyms", encoding="ascii") as file:
        there = {line.split()[2] for line in file}
    return next((f"the kernel has no {name}()" for name in ALLOCATORS if name not in there), None)


def main():
    why = why_not()
    if why:
        print(f"skipped: {why}")
        return SKIPPED
    return block.main(kernel_complains)


if __name__ == "__main__":
    sys.exit(main())
