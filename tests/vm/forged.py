#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A donor that reads and changes the memory of /dev/weirN, or speaks other versions.

  forged.py WEIR MODULES    run in the guest by 'vm check'
"""
import json
import mmap
import os
import signal
import sys
import unittest
from unittest import mock

import block
from block import DONOR, MIB, SECOND, attach, detach, must, read, stat, until, write

PAGE = 4096
# CRC32C's polynomial: adding a multiple of the polynomial does not change a page's CRC.
POLYNOMIAL = bytes.fromhex("f176ec0501")


def keep_crc(page, at):
    changed = bytearray(page)
    for i, byte in enumerate(POLYNOMIAL):
        changed[at + i] ^= byte
    return bytes(changed)


def stored_pages(donor, count):
    """The first pages with data in the memory of the donor."""
    with open(f"/proc/{donor.process.pid}/maps", encoding="ascii") as file:
        ranges = [[int(end, 16) for end in line.split()[0].split("-")]
                  for line in file if line.split()[1].startswith("rw")]
    begin, end = max(ranges, key=lambda range: range[1] - range[0])
    memory = os.open(f"/proc/{donor.process.pid}/mem", os.O_RDONLY)
    try:
        for at in range(begin, end, PAGE):
            if os.pread(memory, PAGE, at).strip(b"\0"):
                return os.pread(memory, count * PAGE, at)
    finally:
        os.close(memory)
    raise AssertionError("the donor's memory is empty")


class Forged(unittest.TestCase):
    def setUp(self):
        self.donor = block.Donor()
        self.addCleanup(lambda: self.donor.end(signal.SIGKILL))
        self.device = attach()
        self.addCleanup(detach, self.device)

    def expect_noticed(self, page, right, forged):
        """The page with @forged is an error; with the right bytes the page is readable."""
        mismatches = stat(self.device)["mismatches"]
        self.assertEqual(self.donor.replace(right, forged), 1)
        self.assertRaises(OSError, read, self.device, page * PAGE)
        self.assertGreater(stat(self.device)["mismatches"], mismatches)
        self.assertEqual(self.donor.replace(forged, right), 1)
        self.assertEqual(read(self.device, page * PAGE), right)

    def test_pages_that_are_old_exchanged_or_changed_are_noticed(self):
        old, first, second = (os.urandom(PAGE) for _ in range(3))
        write(self.device, old)
        write(self.device, first)
        write(self.device, second, PAGE)
        self.expect_noticed(0, first, old)
        self.assertEqual(self.donor.replace(second, old), 1)  # makes the exchange's page single
        self.expect_noticed(0, first, second)
        self.assertEqual(self.donor.replace(old, second), 1)
        for at in range(0, PAGE - len(POLYNOMIAL), 1000):
            self.expect_noticed(0, first, keep_crc(first, at))
        self.assertEqual(read(self.device, 0, 2 * PAGE), first + second)


class Versions(unittest.TestCase):
    """Ends of the present version of the protocol and of a future version meet."""
    PROGRAM = os.path.join(os.path.dirname(block.WEIR), "tests/lib/vm_versions")
    NEWEST = "/sys/module/weir/parameters/newest_version"

    def kernel_speaks(self, newest):
        with open(self.NEWEST, "w", encoding="ascii") as file:
            file.write(str(newest))

    def meet(self, kernel, oldest, newest, said=None):
        """The attach of a kernel to a donor, which names its newest version twice."""
        with mock.patch.dict(os.environ, WEIR_TEST_VERSIONS=f"{oldest} {newest} {said or newest}"):
            donor = block.Donor(program=self.PROGRAM)
        try:
            self.kernel_speaks(kernel)
            return attach()
        finally:
            self.kernel_speaks(self.now)
            self.addCleanup(donor.end, signal.SIGKILL)
            self.donors.append(donor)

    def setUp(self):
        self.donors = []
        with open(self.NEWEST, encoding="ascii") as file:
            self.now = int(file.read())
        self.later = self.now + 1

    def test_ends_meet_if_they_have_a_version_in_common(self):
        now, later = self.now, self.later
        for versions in ((now, now, later), (later, now, now), (later, now, later),
                         (later, later, later)):
            with self.subTest(versions=versions):
                device = self.meet(*versions)
                try:
                    write(device, b"data" * 1024)
                    self.assertEqual(read(device, 0, PAGE), b"data" * 1024)
                finally:
                    detach(device)
                    self.donors[-1].end()

    def test_else_the_reason_is_told(self):
        for kernel, donor in ((self.now, self.later), (self.later, self.later + 1)):
            with self.subTest(kernel=kernel), self.assertRaises(AssertionError) as caught:
                self.meet(kernel, donor, donor)
            self.assertIn(f"speaks version {donor} of the protocol, this module version {kernel}: "
                          "upgrade the older one", str(caught.exception))
            self.donors[-1].end()

    def test_a_relay_that_rejects_the_newest_version_is_found_out(self):
        with self.assertRaises(AssertionError) as caught:
            self.meet(self.later, self.now, self.now, self.later)
        self.assertIn("newer version", str(caught.exception))


class Encrypted(unittest.TestCase):
    """Pages that donors and the local disk hold as ciphertext."""

    def donor(self, address=DONOR):
        donor = block.Donor(address)
        self.addCleanup(donor.end, signal.SIGKILL)
        return donor

    def attached(self, *options, **more):
        device = attach("--encrypt", *options, **more)
        self.addCleanup(detach, device)
        return device

    def fio(self, device, *options):
        done = block.fio(device, *options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_reads_return_written_data_and_donors_hold_none_of_it(self):
        donor = self.donor()
        device = self.attached()
        self.assertIn(stat(device)["encryption"], ("aes-256-gcm", "chacha20-poly1305"))
        data = os.urandom(MIB)
        write(device, data)
        self.assertEqual(read(device, 0, MIB), data)
        self.assertEqual(donor.replace(data[PAGE:PAGE + 64], b""), 0)
        self.fio(device, "--rw=randwrite", "--bsrange=4k-1m", "--iodepth=16", "--size=8m")
        self.assertEqual((stat(device)["mismatches"], stat(device)["errors"]), (0, 0))

    def test_pages_in_pieces_are_encrypted_too(self):
        self.donor()
        device = self.attached()
        data = mmap.mmap(-1, 5 * PAGE)
        data[512:512 + 4 * PAGE] = os.urandom(4 * PAGE)
        file = os.open(device, os.O_RDWR | os.O_DIRECT)
        self.addCleanup(os.close, file)
        self.assertEqual(os.pwritev(file, [memoryview(data)[512:512 + 4 * PAGE]], 0), 4 * PAGE)
        found = mmap.mmap(-1, 5 * PAGE)
        self.assertEqual(os.preadv(file, [memoryview(found)[1024:1024 + 4 * PAGE]], 0), 4 * PAGE)
        self.assertEqual(found[1024:1024 + 4 * PAGE], data[512:512 + 4 * PAGE])

    def test_a_discarded_page_is_zeroes_beside_one_that_is_encrypted(self):
        self.donor()
        device = self.attached()
        data = os.urandom(3 * PAGE)
        write(device, data)
        must("blkdiscard", "--offset", str(PAGE), "--length", str(PAGE), device)
        self.assertEqual(read(device, 0, 3 * PAGE), data[:PAGE] + bytes(PAGE) + data[2 * PAGE:])

    def test_ciphertext_that_is_changed_exchanged_or_old_is_noticed(self):
        donor = self.donor()
        device = self.attached()
        write(device, os.urandom(2 * PAGE))
        old = stored_pages(donor, 2)
        write(device, os.urandom(2 * PAGE))
        new = stored_pages(donor, 2)
        right = read(device, 0, 2 * PAGE)
        for forged in (old, new[PAGE:] + new[:PAGE], bytes([new[0] ^ 1]) + new[1:]):
            mismatches = stat(device)["mismatches"]
            self.assertEqual(donor.replace(new, forged), 1)
            self.assertRaises(OSError, read, device)
            self.assertGreater(stat(device)["mismatches"], mismatches)
            self.assertEqual(donor.replace(forged, new), 1)
        self.assertEqual(read(device, 0, 2 * PAGE), right)

    def test_replicas_and_the_disk_are_filled_with_ciphertext(self):
        must("modprobe", "brd", "rd_nr=1", f"rd_size={64 << 10}")
        self.addCleanup(must, "modprobe", "-r", "brd")
        donors = self.donor(), self.donor(SECOND)
        device = self.attached("--replicas", "2", "--local", "/dev/ram0",
                               donors=(DONOR, SECOND))
        self.fio(device, "--rw=randwrite", "--bsrange=4k-256k", "--iodepth=16", "--size=4m")
        data = os.urandom(MIB)
        write(device, data, 8 * MIB)
        until(device, lambda now: not now["local_behind"])
        donors[0].end(signal.SIGKILL)
        until(device, lambda now: now["degraded"])
        third = self.donor()
        until(device, lambda now: not now["degraded"])
        donors[1].end(signal.SIGKILL)
        self.assertEqual(read(device, 8 * MIB, MIB), data)
        third.end(signal.SIGKILL)
        until(device, lambda now: all(donor["state"] == "lost" for donor in now["donors"]))
        self.assertEqual(read(device, 8 * MIB, MIB), data)
        with open("/dev/ram0", "rb") as disk:
            self.assertNotIn(data[PAGE:PAGE + 64], disk.read())
        self.assertEqual(stat(device)["mismatches"], 0)

    def test_swap_holds_on_it(self):
        self.donor()
        device = self.attached(size="48M")
        must("mkswap", device)
        must("swapon", device)
        self.addCleanup(block.run, "swapoff", device)
        program = block.Swapped(24)
        self.addCleanup(program.kill)
        self.assertGreater(stat(device)["bytes_written"], 8 * MIB)
        program.check()
        must("swapoff", device)

    def test_its_cost_beside_a_device_in_clear(self):
        """Prints the rates, without a limit, since the guest is emulated."""
        self.donor()
        for how, device in (("clear", attach()), ("encrypted", attach("--encrypt"))):
            self.addCleanup(detach, device)
            for rw in ("write", "read"):
                done = block.run("fio", "--name=cost", f"--filename={device}", "--direct=1",
                                 "--ioengine=libaio", "--iodepth=8", "--bs=64k", "--size=8m",
                                 f"--rw={rw}", "--output-format=json")
                rate = json.loads(done.stdout)["jobs"][0][rw]["bw"]
                print(f"{how} {stat(device)['encryption']} {rw}: {rate} KiB/s", flush=True)

    def test_a_named_region_is_refused(self):
        self.donor()
        refused = block.blk("attach", "--key", block.KEY, "--encrypt", "--name", "n", DONOR, "16M")
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("outlives", refused.stderr)


if __name__ == "__main__":
    sys.exit(block.main())
