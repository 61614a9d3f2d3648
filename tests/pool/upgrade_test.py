#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Donors of a pool are replaced in turn while fio checks files of a mount.

  upgrade_test.py WEIR [OLD]

WEIR and OLD are weir commands with softnic beside them. Without OLD each donor restarts unchanged,
on one host. With an older OLD the donors begin as OLD and end as WEIR, each on another host.
Clients of each version meet donors of the other, too: the pair works, or both sides explain the
refusal.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import places

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from tests.support.patience import look  # noqa: E402

OLD = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 else None
WEIR = os.path.abspath(sys.argv.pop(1))
PATIENCE_S = 120
LEASE_S, GROUPS = 6, 8
DONORS = "abcd"
CLIENT = "client0"
VOLUME, FILE_SIZE = "32M", "8M"


class World(unittest.TestCase):
    place_of = places.Hosts if OLD else places.Loopback

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weir-upgrade-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.place = self.place_of(WEIR, self.folder)
        self.addCleanup(self.place.close)
        self.key = ["--key", self.place.key] if self.place.key else []
        self.donors = {}

    def until(self, holds, why):
        end = time.monotonic() + PATIENCE_S
        while not look(holds, 0.1):
            self.assertLess(time.monotonic(), end, why())

    def log_path(self, name):
        return os.path.join(self.folder, f"log-{name}")

    def log(self, name):
        with open(self.log_path(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def run_on(self, process, *words):
        return subprocess.run(self.place.on(process, *words), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    def start(self, process, *words):
        """Starts a process: a pipe has the standard output, a log the errors."""
        with open(self.log_path(process), "ab") as log:
            child = subprocess.Popen(self.place.on(process, *words), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=log, text=True)
        self.addCleanup(self.end, child)
        return child

    @staticmethod
    def end(child):
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        child.stdout.close()

    def serve(self, weir, name, *more):
        child = self.start(name, weir, "serve", "--device", "softnic", "--memory", "128M",
                           "--no-reserve", *self.key, *more)
        line = child.stdout.readline()
        self.assertTrue(line.startswith("ready "), self.log(name))
        self.donors[name] = child
        return line.split()[1]

    def mount(self, weir, what, *more):
        """Mounts at the client. Returns process and folder; the process may have ended."""
        point = tempfile.mkdtemp(dir=self.folder, prefix="mount-")
        child = self.start(CLIENT, weir, "mount", "--device", "softnic", "--foreground", *self.key,
                           *more, what, point)
        self.until(lambda: child.poll() is not None or not self.run_on(
            CLIENT, "mountpoint", "--quiet", point).returncode, lambda: self.log(CLIENT))
        return child, point

    def fio(self, path, seed, *more):
        """Writes a file in random order, then checks all bytes. Returns fio's complaint, or 0."""
        done = self.run_on(
            CLIENT, "fio", "--name=checked", f"--filename={path}", f"--size={FILE_SIZE}",
            "--rw=randwrite", "--bsrange=4k-64k", "--ioengine=psync", "--direct=1",
            "--fallocate=none", "--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0",
            f"--randseed={seed}", *more)
        return done.returncode and f"{path}: {done.stdout}{done.stderr}"

    def check(self, path, seed):
        """Reads a file that fio has written with the seed."""
        said = self.fio(path, seed, "--verify_only")
        self.assertFalse(said, f"{said}{self.log(CLIENT)}")


class Load(threading.Thread):
    """fio on one file, again and again."""

    def __init__(self, world, path):
        super().__init__()
        self.world, self.path = world, path
        self.rounds, self.stops, self.failure = 0, False, None

    def run(self):
        while not self.stops and not self.failure:
            self.failure = self.world.fio(self.path, self.rounds + 1)
            self.rounds += not self.failure

    def goes_on(self):
        """Waits until a round that begins from now on has ended."""
        enough = self.rounds + 2
        self.world.until(lambda: self.rounds >= enough or self.failure,
                         lambda: f"no round: {self.world.log(CLIENT)}")
        self.world.assertFalse(self.failure, f"{self.failure}{self.world.log(CLIENT)}")

    def finish(self):
        self.stops = True
        self.join(PATIENCE_S)


class Rolling(World):
    """A pool of four donors with two copies of each page, and a mount of its files."""

    def setUp(self):
        super().setUp()
        self.weir = OLD or WEIR
        self.pool = f"file:{self.folder}/p"
        # Places wait for the donor that restarts.
        self.pool_run("create", "--lease", str(LEASE_S), "--replace-after", "600",
                      "--groups", str(GROUPS), self.pool)
        self.addresses = {}
        for name in DONORS:
            self.start_donor(name, self.weir)
        self.pool_run("volume", "create", "--files", "--extent", "1M", self.pool, "fs", VOLUME)

    def pool_run(self, *words):
        done = self.run_on("operator", self.weir, "pool", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def start_donor(self, name, weir):
        listen = self.addresses.get(name) or self.place.listen(name)
        self.addresses[name] = self.serve(weir, name, "--listen", listen, "--pool", self.pool,
                                          "--name", name, "--domain", f"r{name}")

    def donor(self, name):
        for donor in json.loads(self.pool_run("donors", "--json", self.pool))["donors"]:
            if donor["name"] == name:
                return donor
        return self.fail(f"the pool has no donor {name}")

    def heal(self):
        self.until(lambda: json.loads(self.pool_run("status", "--json", self.pool))["whole"] ==
                   GROUPS, lambda: self.pool_run("status", self.pool))

    def drain(self, name):
        self.pool_run("drain", self.pool, name)
        self.until(lambda: not self.donor(name)["serving"] + self.donor(name)["syncing"],
                   lambda: self.pool_run("donors", self.pool))

    def replace(self, load, name, drains):
        if drains:
            self.drain(name)
            load.goes_on()
        before = self.donor(name)["incarnation"]
        self.end(self.donors[name])
        self.assertEqual(self.donors[name].returncode, 0, self.log(name))
        self.start_donor(name, WEIR)
        self.assertNotEqual(self.donor(name)["incarnation"], before)
        if drains:
            self.pool_run("drain", "--undo", self.pool, name)
            self.pool_run("rebalance", "--moves", "8", self.pool)
        self.heal()
        load.goes_on()

    def replace_each(self, drains):
        """One file changes all the time. Another was written before, and is copied."""
        child, folder = self.mount(self.weir, f"{self.pool}/fs")
        self.assertIsNone(child.poll(), self.log(CLIENT))
        kept, changed = (os.path.join(folder, name) for name in ("kept", "changed"))
        said = self.fio(kept, 99)
        self.assertFalse(said, f"{said}{self.log(CLIENT)}")
        load = Load(self, changed)
        self.addCleanup(load.finish)
        load.start()
        load.goes_on()
        for name in DONORS:
            self.replace(load, name, drains)
            self.check(kept, 99)
            self.weir = WEIR  # the operator's, from the first new donor on
        load.finish()
        self.assertFalse(load.failure)
        self.end(child)
        self.assertEqual(child.returncode, 0, self.log(CLIENT))
        child, folder = self.mount(WEIR, f"{self.pool}/fs")
        self.assertIsNone(child.poll(), self.log(CLIENT))
        self.check(os.path.join(folder, "kept"), 99)
        self.check(os.path.join(folder, "changed"), load.rounds)
        print(f"{len(DONORS)} donors replaced, {load.rounds} rounds of fio", flush=True)

    def test_each_donor_restarts(self):
        self.replace_each(drains=False)

    def test_each_donor_is_drained_and_restarts(self):
        self.replace_each(drains=True)


class Meeting(World):
    """A client of one version and a donor of the other, on hosts of their own."""

    def refused(self, status, client, said):
        """Both sides name the versions, and the client's side a remedy."""
        del client
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"version.*(?:upgrade|use the same)")
        self.until(lambda: "version" in self.log("a"), lambda: self.log("a"))

    def meet(self, client, server):
        address = self.serve(server, "a", "--listen", self.place.listen("a"))
        done = self.run_on(CLIENT, client, "ping", "--device", "softnic", "-c", "3", *self.key,
                           address)
        if done.returncode:
            self.refused(done.returncode, client, done.stderr)
            return "refused: " + done.stderr.strip()
        child, folder = self.mount(client, address)
        if child.poll() is not None:
            self.refused(child.returncode, client, self.log(CLIENT))
            return "no mount: " + self.log(CLIENT).strip()
        said = self.fio(os.path.join(folder, "file"), 1)
        self.assertFalse(said, f"{said}{self.log(CLIENT)}")
        return "works"

    def both_ways(self):
        for what, client, server in (("an old client, a new donor", OLD, WEIR),
                                     ("a new client, an old donor", WEIR, OLD)):
            with self.subTest(what):
                print(f"{what}: {self.meet(client, server)}", flush=True)
            self.end(self.donors.pop("a"))

    def test_it_works_or_both_say_why_not(self):
        self.both_ways()


class MeetingOnOneHost(Meeting):
    """Processes of one host need one version of softnic. An older one may end without a word."""

    place_of = places.Loopback

    def refused(self, status, client, said):
        self.assertEqual(status, 1, said)
        self.until(lambda: re.search("version.*(?:upgrade|use the same)",
                                     said if client == WEIR else self.log("a")),
                   lambda: f"{said}{self.log('a')}")


if not OLD:
    del Meeting, MeetingOnOneHost

if __name__ == "__main__":
    unittest.main(verbosity=2)
