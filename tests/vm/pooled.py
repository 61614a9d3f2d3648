#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A volume of a pool as /dev/weirN: donors die and join, and so does the agent.

  pooled.py WEIR MODULES    run in the guest by 'vm check'
"""
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

import block
from block import ADDRESS, KEY, LONG, MIB, WEIR, blk, detach, must, read, run, stat, until, write

POOL = "/run/pool"
PLACE = f"file:{POOL}"
LEASE = 6  # seconds


class Donor:
    """A donor of the pool, in a failure domain of its own."""

    def __init__(self, number):
        self.name = f"d{number}"
        self.process = subprocess.Popen(
            [WEIR, "serve", "--listen", f"{ADDRESS}:{7500 + number}", "--memory", "64M",
             "--key", KEY, "--pool", PLACE, "--name", self.name, "--domain", f"rack{number}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            env=dict(os.environ, WEIR_DEVICE="rxe0"))
        self.process.stdout.readline()

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait(LONG)
        self.process.stdout.close()


def status():
    return json.loads(must(WEIR, "pool", "status", "--json", PLACE))


def eventually(what, is_so):
    deadline = time.monotonic() + LONG
    while not is_so():
        assert time.monotonic() < deadline, (what, must(WEIR, "pool", "status", PLACE))
        time.sleep(0.2)


def is_whole():
    now = status()
    return now["whole"] and not now["lean"] + now["lost"] + now["missing"]


def agents():
    """The keeper and the agent, which is younger."""
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{int(entry)}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if words[0] == WEIR.encode() and words[1] == b"blk" and \
                    words[2] in (b"attach", b"agent"):
                found.append(int(entry))
    return sorted(found)


class Writer:
    """Writes single pages and reads them back until the block ends. Each page has its write's
    number, so a page older than its last write is found. @longest: of a write since a death."""

    def __init__(self, device, mib=16):
        self.device, self.pages = device, mib * MIB // 4096
        self.rng = random.Random(5)
        self.newest, self.count, self.longest = {}, 0, 0
        self.enough = threading.Event()
        self.failed = None
        self.thread = threading.Thread(target=self.work)

    def page(self, number, count):
        return (f"{number} {count} ".encode() * 2048)[:4096]

    def work(self):
        try:
            while not self.enough.is_set():
                number = self.rng.randrange(self.pages)
                self.count += 1
                before = time.monotonic()
                write(self.device, self.page(number, self.count), number * 4096)
                self.longest = max(self.longest, time.monotonic() - before)
                self.newest[number] = self.count
                number = self.rng.choice(list(self.newest))
                assert read(self.device, number * 4096) == self.page(number,
                                                                     self.newest[number]), number
        except Exception as error:  # shown by check()
            self.failed = error

    def go_on(self, writes=30):
        """Waits until so many more writes have been done."""
        wanted, deadline = self.count + writes, time.monotonic() + LONG
        while self.count < wanted:
            assert not self.failed, self.failed
            assert time.monotonic() < deadline, "no write is done"
            time.sleep(0.05)

    def after_death(self, what):
        """Waits until blocked writes go on, and prints how long a write took. A write that is
        under way at the death counts in full."""
        self.go_on()
        print(f"{what}: the longest of the next writes took {self.longest:.2f} s", flush=True)
        self.longest = 0

    def check(self):
        """Compares each page that was written."""
        assert not self.failed, self.failed
        for number, count in self.newest.items():
            assert read(self.device, number * 4096) == self.page(number, count), number

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.enough.set()
        self.thread.join()


class Pooled(unittest.TestCase):
    def setUp(self):
        self.donors = []
        self.addCleanup(self.end_donors)
        must(WEIR, "pool", "create", PLACE, "--lease", str(LEASE), "--replace-after", "1",
             "--groups", "8")
        self.addCleanup(os.unlink, POOL)
        for number in range(4):
            self.add_donor(number)
        must(WEIR, "pool", "volume", "create", PLACE, "v", "32M", "--scheme", "copies=2",
             "--extent", "1M")

    def end_donors(self):
        for donor in self.donors:
            donor.end()

    def add_donor(self, number):
        donor = Donor(number)
        self.donors.append(donor)
        return donor

    def kill(self, donor):
        donor.end(signal.SIGKILL)
        self.donors.remove(donor)

    def attach(self, *options):
        deadline = time.monotonic() + LONG
        while (done := blk("attach", "--key", KEY, "--timeout", "10", *options,
                           f"{PLACE}/v")).returncode:
            assert "groups are not made yet" in done.stderr or "has it open" in done.stderr, \
                done.stderr
            assert time.monotonic() < deadline, done.stderr
            time.sleep(0.5)
        return done.stdout.strip()

    def attached(self, *options):
        device = self.attach(*options)
        self.addCleanup(self.detach_if_there, device)
        return device

    def detach_if_there(self, device):
        if os.path.exists(device):
            detach(device)

    def test_bytes_outlive_donors_agents_and_the_attachment(self):
        device = self.attached()
        listed, = json.loads(must(WEIR, "blk", "list", "--json"))["devices"]
        self.assertEqual((listed["pool"], listed["replicas"], listed["bytes"]),
                         (f"{PLACE}/v", 2, 32 * MIB))
        self.assertEqual(len(listed["donors"]), 4)
        with Writer(device) as writer:
            writer.go_on()
            with self.subTest("a donor dies, and its copies are made again"):
                self.kill(self.donors[0])
                writer.after_death("the first donor's death")
                eventually("rebuilt without the first", is_whole)
            with self.subTest("another joins, and one more dies"):
                self.add_donor(5)
                must(WEIR, "pool", "rebalance", PLACE)
                writer.go_on()
                self.kill(self.donors[0])
                writer.after_death("the second donor's death")
                eventually("rebuilt without the second", is_whole)
            with self.subTest("the agent dies: another comes"):
                keeper, agent = agents()
                os.kill(agent, signal.SIGKILL)
                writer.go_on(100)
                eventually("another agent", lambda: set(agents()) - {keeper, agent})
            with self.subTest("agent and keeper die: all goes on without them"):
                for process in agents():
                    os.kill(process, signal.SIGKILL)
                writer.go_on(100)
            with self.subTest("a donor dies meanwhile: writes wait for the next agent"):
                self.kill(self.donors[0])
                next_agent = subprocess.Popen([WEIR, "blk", "agent", device],
                                              stdin=subprocess.DEVNULL)
                self.addCleanup(next_agent.wait, LONG)
                writer.go_on()
                self.assertIn("has an agent", blk("agent", device).stderr)
        writer.check()
        self.assertEqual(stat(device)["mismatches"], 0)
        print(f"{writer.count} writes, the longest took {writer.longest:.1f} s", flush=True)
        detach(device)
        next_agent.wait(LONG)
        again = self.attached()
        writer.device = again
        writer.check()
        self.assertEqual(stat(again)["lost"], 0)

    def test_a_file_system_lives_on_it(self):
        if run("modprobe", "ext4").returncode:
            self.skipTest("the kernel has no ext4")
        device = self.attached()
        must("mkfs.ext4", "-q", device)
        os.makedirs("/run/pooled", exist_ok=True)
        must("mount", device, "/run/pooled")
        copy = subprocess.Popen(["cp", "-r", "/usr/share/doc/fio", "/run/pooled"])
        self.kill(self.donors[1])
        self.assertEqual(copy.wait(LONG), 0)
        must("diff", "-r", "/usr/share/doc/fio", "/run/pooled/fio")
        must("umount", "/run/pooled")
        must("fsck.ext4", "-f", "-n", device)
        detach(device)
        device = self.attached()
        must("fsck.ext4", "-f", "-n", device)
        must("mount", device, "/run/pooled")
        must("diff", "-r", "/usr/share/doc/fio", "/run/pooled/fio")
        must("umount", "/run/pooled")

    def test_large_requests_are_verified_while_a_donor_dies(self):
        device = self.attached()
        with block.Verifier(device, mib=16) as verifier:
            verifier.until_written(8)
            self.kill(self.donors[2])
            verifier.until_written(16)
        self.assertEqual(stat(device)["lost"], 0)

    def test_the_library_and_the_device_lay_out_a_volume_alike(self):
        data = os.urandom(5 * MIB + 12345)
        with open("/run/data", "wb") as file:
            file.write(data)
        self.attach_and_detach()
        must(WEIR, "pool", "volume", "import", "--key", KEY, PLACE, "v", "/run/data")
        device = self.attached()
        self.assertEqual(read(device, 0, 5 * MIB), data[:5 * MIB])
        write(device, data[:2 * MIB], 8 * MIB)
        detach(device)
        must(WEIR, "pool", "volume", "export", "--key", KEY, PLACE, "v", "/run/copy")
        with open("/run/copy", "rb") as file:
            copy = file.read()
        self.assertEqual(copy[:5 * MIB], data[:5 * MIB])
        self.assertEqual(copy[8 * MIB:10 * MIB], data[:2 * MIB])

    def attach_and_detach(self):
        detach(self.attach())

    def test_one_client_has_a_volume(self):
        device = self.attached()
        done = blk("attach", "--key", KEY, f"{PLACE}/v")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("another client has it open", done.stderr)
        write(device, b"\x11" * 4096)
        # The agent stops for longer than its lease; another client takes the volume.
        _, agent = agents()
        os.kill(agent, signal.SIGSTOP)
        copy = "/run/taken"
        deadline = time.monotonic() + LONG
        while run(WEIR, "pool", "volume", "export", "--key", KEY, PLACE, "v", copy).returncode:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.5)
        os.kill(agent, signal.SIGCONT)
        with self.assertRaises(OSError):
            write(device, b"\x22" * 4096)
        detach(device)
        with open(copy, "rb") as file:
            self.assertEqual(file.read(4096), b"\x11" * 4096)

    def test_bad_input_is_refused_with_words(self):
        must(WEIR, "pool", "volume", "create", PLACE, "coded", "8M", "--scheme", "code=2+1",
             "--extent", "1M")
        for name, words, more in (
                ("coded", "needs copies", ()), ("absent", "has no volume absent", ()),
                ("v", "its own size", ("32M",))):
            done = run(WEIR, "blk", "attach", "--key", KEY, f"{PLACE}/{name}", *more)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(words, done.stderr)
        done = blk("attach", "--key", KEY, "--encrypt", f"{PLACE}/v")
        self.assertIn("are for donors", done.stderr)
        done = blk("attach", "--key", block.OTHER_KEY, f"{PLACE}/v")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(json.loads(must(WEIR, "blk", "list", "--json"))["devices"], [])
        device = self.attached()
        done = blk("resize", device, "64M")
        self.assertIn("keeps its size", done.stderr)


if __name__ == "__main__":
    sys.exit(block.main())
