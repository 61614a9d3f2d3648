#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A local disk below /dev/weirN: reads and writes after the loss of all donors.

  local.py WEIR MODULES    run in the guest by 'vm check'
"""
import os
import signal
import sys
import time
import unittest

import block
from block import DONOR, KEY, MIB, SECOND, attach, blk, detach, must, read, stat, until, write

DISK = "/dev/ram0"


class LocalDisk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        must("modprobe", "brd", "rd_nr=1", f"rd_size={64 << 10}")
        cls.addClassCleanup(must, "modprobe", "-r", "brd")

    def donor(self, *args):
        donor = block.Donor(*args)
        self.addCleanup(donor.end, signal.SIGKILL)
        return donor

    def attached(self, *options, **more):
        device = attach("--local", DISK, *options, **more)
        self.addCleanup(detach, device)
        return device

    def until_kept(self, device):
        until(device, lambda now: not now["local_behind"])

    def test_data_lost_by_all_donors_is_restored_from_the_disk(self):
        donor = self.donor()
        device = self.attached("--timeout", "30")
        done = block.fio(device, "--rw=randwrite", "--bsrange=4k-256k", "--iodepth=16", "--size=8m")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        data = os.urandom(MIB)
        # empty ranges cannot be written without donors
        for offset in range(8 * MIB, 16 * MIB, MIB):
            write(device, data, offset)
        must("blkdiscard", "--offset", str(10 * MIB), "--length", str(MIB // 2), device)
        before = read(device, 0, 8 * MIB)
        self.until_kept(device)
        donor.end(signal.SIGKILL)
        until(device, lambda now: now["state"] != "up" and now["donors"][0]["state"] == "lost")
        self.assertEqual((stat(device)["state"], stat(device)["lost"]), ("degraded", 0))
        self.assertEqual(read(device, 9 * MIB, MIB), data)
        self.assertEqual(read(device, 10 * MIB, MIB), bytes(MIB // 2) + data[MIB // 2:])
        self.assertEqual(read(device, 0, 8 * MIB), before)
        self.assertGreaterEqual(stat(device)["local_bytes_read"], 9 * MIB)
        self.donor()
        until(device, lambda now: now["state"] == "up")
        self.assertEqual(read(device, 0, 8 * MIB), before)
        write(device, data, 9 * MIB)
        self.assertEqual(read(device, 9 * MIB, MIB), data)
        self.assertEqual(stat(device)["mismatches"], 0)

    def test_a_write_without_any_donor_waits_a_limited_time(self):
        donor = self.donor()
        device = self.attached("--timeout", "5")
        write(device, b"kept" * 1024)
        self.until_kept(device)
        donor.end(signal.SIGKILL)
        until(device, lambda now: now["state"] != "up" and now["donors"][0]["state"] == "lost")
        begin = time.monotonic()
        self.assertRaises(OSError, write, device, b"more" * 1024)
        self.assertGreater(time.monotonic() - begin, 4)
        self.assertEqual(read(device), b"kept" * 1024)

    def test_data_missing_on_the_disk_is_an_error_and_never_old_data(self):
        donor = self.donor()
        device = self.attached("--timeout", "30")
        written = {}
        for page in range(64):
            write(device, b"old." * 1024, page * MIB // 4)
        self.until_kept(device)
        for page in range(64):
            written[page] = os.urandom(8) * 512
            write(device, written[page], page * MIB // 4)
        donor.end(signal.SIGKILL)
        until(device, lambda now: now["donors"][0]["state"] == "lost")
        for page, data in written.items():
            try:
                self.assertEqual(read(device, page * MIB // 4), data)
            except OSError:
                until(device, lambda now: now["lost"])

    def test_a_corrupt_page_at_the_donor_is_read_from_the_disk(self):
        donor = self.donor()
        device = self.attached()
        write(device, b"true" * 1024)
        self.until_kept(device)
        self.assertGreater(donor.corrupt(b"true" * 1024), 0)
        self.assertEqual(read(device), b"true" * 1024)
        self.assertGreater(stat(device)["local_bytes_read"], 0)

    def test_swap_is_there_still_when_all_donors_are_gone(self):
        donors = self.donor(DONOR), self.donor(SECOND)
        device = self.attached(
            "--replicas", "2", "--timeout", "20", donors=(DONOR, SECOND), size="32M"
        )
        must("mkswap", device)
        must("swapon", device)
        self.addCleanup(block.run, "swapoff", device)
        program = block.Swapped(24)
        self.addCleanup(program.kill)
        self.assertGreater(stat(device)["bytes_written"], 8 * MIB)
        self.until_kept(device)
        for donor in donors:
            donor.end(signal.SIGKILL)
        until(device, lambda now: all(donor["state"] == "lost" for donor in now["donors"]))
        must("swapoff", device)
        program.check()
        self.assertGreater(stat(device)["local_bytes_read"], 8 * MIB)

    def test_an_unsuitable_disk_is_refused(self):
        self.donor()
        for options, why in (
            ((DISK, DONOR, "80M"), "smaller"),
            (("/etc/passwd", DONOR, "16M"), "no block device"),
            (("/dev/nothing", DONOR, "16M"), "no block device"),
        ):
            refused = blk("attach", "--key", KEY, "--local", *options)
            self.assertEqual((refused.returncode, refused.stdout), (1, ""), options)
            self.assertIn(why, refused.stderr)
        device = self.attached()
        refused = blk("attach", "--key", KEY, "--local", DISK, DONOR, "16M")
        self.assertIn("can be used", refused.stderr)
        refused = blk("resize", device, "80M")
        self.assertIn("smaller", refused.stderr)


if __name__ == "__main__":
    sys.exit(block.main())
