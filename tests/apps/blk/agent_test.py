#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The agent of a block device on a pool: real donors and a real map, and no kernel module.

  agent_test.py WEIR FAKE_MODULE

tests/vm/pooled.py has the module.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

WEIR, FAKE = (os.path.abspath(path) for path in sys.argv[1:3])
del sys.argv[1:3]
PATIENCE = 60
LEASE = 3  # seconds


class Module:
    """Some numbers of the fake module."""

    NAMES = ("maps", "failed", "is_unproven", "is_over", "is_started", "is_filling")

    def __init__(self, path):
        self.path = path

    def __getattr__(self, name):
        with open(self.path, "rb") as file:
            file.seek(8 * self.NAMES.index(name))
            return int.from_bytes(file.read(8), sys.byteorder)

    def put(self, name, value):
        with open(self.path, "r+b") as file:
            file.seek(8 * self.NAMES.index(name))
            file.write(value.to_bytes(8, sys.byteorder))


class Agent(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weir-agent-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.pool = "file:" + os.path.join(self.folder, "pool")
        self.module = Module(os.path.join(self.folder, "module"))
        self.donors = {}
        self.addCleanup(self.end_all)
        self.must("pool", "create", self.pool, "--lease", str(LEASE), "--replace-after", "1",
                  "--groups", "4")
        for number in range(3):
            self.start_donor(f"d{number}")
        self.must("pool", "volume", "create", self.pool, "v", "8M", "--extent", "1M")

    def start_donor(self, name):
        self.donors[name] = subprocess.Popen(
            [WEIR, "serve", "--device", "softnic", "--memory", "16M", "--listen", "127.0.0.1:0",
             "--pool", self.pool, "--name", name, "--domain", name],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end_all(self):
        self.blk("detach", "weir0")
        for agent in self.agents():
            with contextlib.suppress(ProcessLookupError):
                os.kill(agent, signal.SIGKILL)
        for donor in self.donors.values():
            donor.kill()
            donor.wait()

    def run_weir(self, *args, **env):
        return subprocess.run([WEIR, *args], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE, env=dict(os.environ, **env))

    def must(self, *args):
        done = self.run_weir(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def blk(self, *args):
        return self.run_weir("blk", *args, LD_PRELOAD=FAKE, WEIR_TEST_MODULE=self.module.path)

    def attach(self):
        done = self.blk("attach", f"{self.pool}/v")
        self.assertEqual((done.returncode, done.stdout), (0, "/dev/weir0\n"), done.stderr)

    def begin_agent(self):
        agent = subprocess.Popen(
            [WEIR, "blk", "agent", "weir0"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, env=dict(os.environ, LD_PRELOAD=FAKE, WEIR_TEST_MODULE=self.module.path))
        self.addCleanup(agent.stderr.close)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        return agent

    def agents(self):
        """The keeper and then the agent, its child: processes that "weir blk attach" has left."""
        found = {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                if words[1:3] == [b"blk", b"attach"] and f"{self.pool}/v".encode() in words:
                    with open(f"/proc/{entry}/stat", encoding="ascii") as file:
                        found[int(entry)] = int(file.read().rpartition(")")[2].split()[1])
        return sorted(found, key=lambda pid: found[pid] in found)

    def eventually(self, is_so, *what):
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.05)

    def members(self):
        """The donors that serve, and those that are syncing."""
        found = {"serving": set(), "syncing": set(), "out": set()}
        for group in json.loads(self.must("pool", "status", "--json", self.pool))["groups"]:
            for member in group["members"]:
                found[member["state"]].add(member["donor"])
        return found

    def incarnation_of(self, name):
        donors = json.loads(self.must("pool", "donors", "--json", self.pool))["donors"]
        return next(int(donor["incarnation"], 16) for donor in donors if donor["name"] == name)


    def test_the_device_starts_when_the_copies_are_equal_and_has_one_client(self):
        self.attach()
        self.assertTrue(self.module.is_started)
        again = self.blk("attach", f"{self.pool}/v")
        self.assertEqual(again.returncode, 1)
        self.assertIn("another client has it open", again.stderr)
        self.assertIn("has an agent already", self.blk("agent", "weir0").stderr)
        listed, = json.loads(self.blk("list", "--json").stdout)["devices"]
        self.assertEqual(listed["pool"], f"{self.pool}/v")
        self.assertEqual(self.blk("detach", "weir0").returncode, 0)
        self.attach()  # at once: the claim is over

    def test_each_counter_is_a_metric(self):
        self.attach()
        device = json.loads(self.blk("stat", "--json", "weir0").stdout)
        counters = {value for value in device.values() if isinstance(value, int) and
                    100 <= value < 200}
        shown = self.run_weir("metrics", LD_PRELOAD=FAKE, WEIR_TEST_MODULE=self.module.path)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        samples = re.findall(r'^(weir_blk_\w+){device="weir0"} (\d+)$', shown.stdout, re.M)
        self.assertGreater(len(counters), 20)
        self.assertEqual({int(value) for _, value in samples}, counters)
        self.assertEqual(len(samples), len(counters))
        self.assertEqual(int(dict(samples)["weir_blk_rebuilt_bytes_total"]), device["bytes_copied"])

    def test_failed_donors_and_filled_members_are_reported(self):
        self.attach()
        failed = self.incarnation_of("d1")
        self.donors["d1"].kill()
        self.donors["d1"].wait()
        begin = time.monotonic()
        self.module.put("failed", failed)
        self.eventually(lambda: "d1" not in self.members()["serving"], "d1 is out")
        self.assertLess(time.monotonic() - begin, PATIENCE / 2)
        self.start_donor("d3")
        self.eventually(lambda: "d3" in self.members()["serving"] and
                        not self.members()["syncing"], "d3 serves")

    def test_an_agent_that_was_killed_is_replaced(self):
        self.attach()
        for _ in range(2):
            keeper, agent = self.agents()
            maps = self.module.maps
            os.kill(agent, signal.SIGKILL)
            self.eventually(lambda: self.module.maps > maps, "the next agent sends its map")
        time.sleep(LEASE)
        self.assertFalse(self.module.is_over)
        self.assertEqual(self.blk("attach", f"{self.pool}/v").returncode, 1)
        self.assertEqual(self.blk("detach", "weir0").returncode, 0)
        self.eventually(lambda: not self.agents(), "both processes end with the device")

    def test_an_agent_that_is_told_to_end_is_not_replaced(self):
        self.attach()
        os.kill(self.agents()[1], signal.SIGTERM)
        self.eventually(lambda: not self.agents(), "both processes end")

    def test_ctrl_c_gives_the_volume_back(self):
        self.blk("list")  # makes the file
        self.module.put("is_filling", 1)
        for _ in range(2):
            command = subprocess.Popen(
                [WEIR, "blk", "attach", f"{self.pool}/v"], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                env=dict(os.environ, LD_PRELOAD=FAKE, WEIR_TEST_MODULE=self.module.path))
            self.eventually(lambda: self.module.maps, "the agent waits for copies")
            os.killpg(command.pid, signal.SIGINT)
            out, err = command.communicate(timeout=PATIENCE)
            self.assertEqual((command.returncode, out), (1, ""), err)
            self.assertIn("interrupted", err)
            self.assertEqual(self.agents(), [])
            self.assertEqual(json.loads(self.blk("list", "--json").stdout)["devices"], [])
            self.module.put("maps", 0)
        self.module.put("is_filling", 0)
        self.attach()

    def test_the_next_agent_goes_on(self):
        self.attach()
        for pause in (0, 2 * LEASE):  # the second claim ends meanwhile, and is made again
            for agent in self.agents():
                os.kill(agent, signal.SIGKILL)
            time.sleep(pause)
            maps = self.module.maps
            agent = self.begin_agent()
            self.eventually(lambda: self.module.maps > maps or agent.poll() is not None,
                            "the next agent sends its map")
            time.sleep(LEASE)
            if agent.poll() is not None:
                self.fail(agent.stderr.read())
            self.assertFalse(self.module.is_over)
            self.assertEqual(self.blk("attach", f"{self.pool}/v").returncode, 1)
            agent.kill()
            agent.wait()
        maps = self.module.maps
        agent = self.begin_agent()
        self.eventually(lambda: self.module.maps > maps, "the last agent sends its map")
        self.assertEqual(self.blk("detach", "weir0").returncode, 0)
        self.assertEqual(agent.wait(PATIENCE), 0)

    def test_an_agent_waits_for_the_end_of_the_last(self):
        """A killed process has its names for a while."""
        self.attach()
        for agent in self.agents():
            os.kill(agent, signal.SIGKILL)
        maps = self.module.maps
        with socket.socket(socket.AF_UNIX) as guard:
            self.eventually(lambda: self.is_bound(guard, "\0weir-blk-agent-0"),
                            "the last has ended")
            agent = self.begin_agent()
            time.sleep(2)
            self.assertEqual(self.module.maps, maps)
        self.eventually(lambda: self.module.maps > maps or agent.poll() is not None,
                        "the next agent sends its map")
        self.assertIsNone(agent.poll())

    def is_bound(self, guard, name):
        try:
            guard.bind(name)
        except OSError:
            return False
        return True

    def test_pieces_without_data_get_a_proof(self):
        self.attach()
        self.blk("detach", "weir0")
        self.module.put("is_unproven", 1)
        self.attach()
        self.assertFalse(self.module.is_unproven)

    def test_a_client_that_was_replaced_says_so(self):
        self.attach()
        _, agent = self.agents()
        os.kill(agent, signal.SIGSTOP)
        copy = os.path.join(self.folder, "copy")
        self.eventually(lambda: not self.run_weir("pool", "volume", "export", "--device", "softnic",
                                                  self.pool, "v", copy).returncode, "a new client")
        self.assertFalse(self.module.is_over)
        os.kill(agent, signal.SIGCONT)
        self.eventually(lambda: self.module.is_over, "the module is told")
        self.eventually(lambda: not self.agents(), "the agent ends")
        self.assertIn("another client has opened it", self.blk("agent", "weir0").stderr)

    def test_bad_input_is_refused_with_words(self):
        self.must("pool", "volume", "create", self.pool, "coded", "8M", "--scheme", "code=2+1",
                  "--extent", "1M")
        for args, status, words in (
                ((f"{self.pool}/coded",), 1, "a block device needs copies"),
                ((f"{self.pool}/absent",), 1, "has no volume absent"),
                ((f"{self.pool}/v", "8M"), 2, "has its own size"),
                (("--replicas", "2", f"{self.pool}/v"), 2, "are for donors"),
                (("--encrypt", f"{self.pool}/v"), 2, "are for donors"),
                (("file:/nowhere/at/all/v",), 1, "/nowhere/at/all")):
            done = self.blk("attach", *args)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
