#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir top with real traffic: one interval, JSON, and the screen of a terminal.

top_test.py WEIR
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

import pyte

WEIR = os.path.abspath(sys.argv.pop(1))
PATIENCE = 60
INTERVAL = "0.2"
COLOUR = re.compile(rb"\x1b\[(?:\d+;)*3[0-7]m")


def environment(**more):
    kept = {name: value for name, value in os.environ.items()
            if name not in ("LD_PRELOAD", "WEIR_SHARE", "WEIR_SOFTNIC", "NO_COLOR", "COLUMNS",
                            "LINES")}
    return dict(kept, WEIR_DEVICE="softnic", **more)


def weir(*words):
    return subprocess.run([WEIR, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=PATIENCE, check=False, env=environment())


class Terminal:
    """A terminal in which weir top runs: Linux's console, which is what pyte resembles."""

    def __init__(self, *words, columns=120, lines=30, **more):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.modes = termios.tcgetattr(self.slave)
        self.child = subprocess.Popen([WEIR, "top", "-i", INTERVAL, *words], stdin=self.slave,
                                      stdout=self.slave, stderr=self.slave, close_fds=True,
                                      start_new_session=True, preexec_fn=self.adopt,
                                      env=environment(**{"TERM": "linux", **more}))

    @staticmethod
    def adopt():
        """The terminal becomes the one that controls the child, so that Ctrl-C reaches it."""
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def read(self):
        if select.select([self.master], [], [], 0.05)[0]:
            got = os.read(self.master, 65536)
            self.raw += got
            self.stream.feed(got)

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def shows(self, wanted, present=True):
        """Waits until a line matches, or none does any more."""
        deadline = time.monotonic() + PATIENCE
        while bool(re.search(wanted, self.text(), re.M)) != present:
            if time.monotonic() > deadline or self.child.poll() is not None:
                raise AssertionError(f"{wanted!r} ({present}) of {self.child.poll()}:\n"
                                     f"{self.text()}")
            self.read()
        return self.text()

    def type(self, keys):
        os.write(self.master, keys.encode())

    def end(self):
        deadline = time.monotonic() + PATIENCE
        while self.child.poll() is None and time.monotonic() < deadline:
            self.read()
        self.read()
        return self.child.wait(timeout=1)

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self.master)
        os.close(self.slave)


class Top(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="weir-top-")
        cls.pool = f"file:{cls.folder.name}/pool"
        made = weir("pool", "create", cls.pool)
        assert made.returncode == 0, made.stderr
        cls.children = []
        cls.donor = cls.start("serve", "--listen", "127.0.0.1:0", "--memory", "64M",
                              "--no-reserve", "--pool", cls.pool, "--name", "near")
        cls.address = cls.donor.stdout.readline().split()[1]
        common = ("perf", "-S", "0", "--region", "8M", cls.address)
        cls.small = cls.start(*common, "--op", "write", "--size", "64", "--seed", "1")
        cls.large = cls.start(*common, "--op", "read", "--size", "256K", "--seed", "2")
        cls.wait_for_traffic()

    @classmethod
    def start(cls, *words):
        child = subprocess.Popen([WEIR, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True, env=environment())
        cls.children.append(child)
        return child

    @classmethod
    def tearDownClass(cls):
        for child in reversed(cls.children):
            child.send_signal(signal.SIGTERM)
        for child in cls.children:
            child.communicate(timeout=PATIENCE)
        cls.folder.cleanup()

    @classmethod
    def look(cls, *words):
        done = weir("top", "--once", "--json", "-i", INTERVAL, *words)
        assert done.returncode == 0 and not done.stderr, done
        return json.loads(done.stdout)

    @classmethod
    def wait_for_traffic(cls):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            rates = {session["pid"]: session["requests_s"] for session in cls.look()["sessions"]}
            if rates.get(cls.small.pid) and rates.get(cls.large.pid):
                return
        raise AssertionError("no traffic")

    def terminal(self, *words, **more):
        terminal = Terminal(*words, **more)
        self.addCleanup(terminal.close)
        return terminal

    def mine(self, *words):
        """The sessions of this test, in their order."""
        pids = (self.small.pid, self.large.pid)
        return [session for session in self.look(*words)["sessions"] if session["pid"] in pids]

    def test_donors_and_sessions_are_shown_with_rates(self):
        seen = self.look()
        [donor] = [donor for donor in seen["donors"] if donor["pid"] == self.donor.pid]
        self.assertEqual((donor["address"], donor["memory_bytes"]), (self.address, 64 << 20))
        self.assertGreaterEqual(donor["clients"], 2)
        self.assertGreaterEqual(donor["lent_bytes"], 16 << 20)
        deadline = time.monotonic() + PATIENCE
        small = large = None
        # A program that did not run within the interval wrote nothing.
        while not small or not small["written_bytes_s"] or not large["read_bytes_s"]:
            self.assertLess(time.monotonic(), deadline, seen)
            seen = self.look()
            by_pid = {session["pid"]: session for session in seen["sessions"]}
            small, large = by_pid[self.small.pid], by_pid[self.large.pid]
        self.assertEqual((small["donor"], small["process"]), (self.address, "weir-perf"))
        self.assertEqual((small["read_bytes_s"], large["written_bytes_s"]), (0, 0))
        self.assertEqual(seen["tenants"], [])
        self.assertNotIn("pool", seen)

    def test_percentiles_come_from_the_requests_timed_in_the_interval(self):
        deadline = time.monotonic() + PATIENCE
        seen = self.mine()
        while not all("p99_us" in session for session in seen):
            self.assertLess(time.monotonic(), deadline, seen)
            seen = self.mine()
        for session in seen:
            self.assertGreater(session["p50_us"], 0)
            self.assertLessEqual(session["p50_us"], session["p99_us"])

    def test_rows_are_sorted_by_any_column(self):
        for column in "written", "read":  # in different orders
            rates = [session[f"{column}_bytes_s"] for session in self.mine("--sort", column)]
            self.assertEqual(rates, sorted(rates, reverse=True))
        done = weir("top", "--once", "--sort", "beauty")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--sort beauty: no part has this column", done.stderr)

    def test_a_filter_keeps_the_rows_that_contain_it(self):
        seen = self.look("--filter", str(self.small.pid))
        self.assertIn(self.small.pid, [session["pid"] for session in seen["sessions"]])
        self.assertNotIn(self.large.pid, [session["pid"] for session in seen["sessions"]])
        done = weir("top", "--once", "-i", INTERVAL, "--filter", "no such text")
        self.assertEqual(done.stdout, "no donor, session or tenant that you may see\n")

    def test_a_pool_without_a_map_is_a_failure_with_words(self):
        for words in ((), ("--json",)):
            done = weir("top", "--once", "-i", INTERVAL, "--pool", f"{self.pool}-none", *words)
            self.assertEqual(done.returncode, 1)
            self.assertIn("pool: ", done.stderr)
            self.assertIn("pool-none", done.stderr)
        self.assertIn("pool-none", json.loads(done.stdout)["pool_error"])

    def test_the_donors_of_a_pool_are_shown(self):
        deadline = time.monotonic() + PATIENCE
        while not (seen := self.look("--pool", self.pool)["pool"]):
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual([(donor["donor"], donor["state"]) for donor in seen], [("near", "up")])
        done = weir("top", "--once", "-i", INTERVAL, "--pool", self.pool)
        self.assertRegex(done.stdout, r"(?m)^pool, by donor\n^donor +state .*\n^near +up +")

    def test_a_socket_where_nobody_listens_is_a_failure_if_it_was_named(self):
        done = weir("top", "--once", "--socket", f"{self.folder.name}/nobody")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is 'weir share' running?", done.stderr)

    def test_more_than_a_donor_may_lend_is_answered(self):
        done = weir("lend", str(self.donor.pid), "1G")
        self.assertEqual(done.returncode, 0)
        self.assertIn("1.0 GiB is more than the donor was started with: it lends 64.0 MiB",
                      done.stderr)
        self.assertEqual(weir("lend", str(self.donor.pid), "64M").stderr, "")

    def test_keys_sort_filter_and_quit(self):
        terminal = self.terminal()
        terminal.shows(r"^sessions, by requests$")
        terminal.shows(rf"^weir-perf +{self.small.pid} ")
        terminal.shows(rf"^127\.0\.0\.1:\d+ +{self.donor.pid} +\d+\.\d MiB +64\.0 MiB ")
        terminal.shows(r"^q quit  Tab next part: sessions  s sort  r reverse  / filter  p pause$")
        terminal.type("s")
        terminal.shows(r"^sessions, by written$")
        terminal.type("r")
        terminal.shows(r"^sessions, by least written$")
        terminal.type("\t")
        terminal.shows(r"Tab next part: tenants ")
        terminal.type(f"/{self.small.pid}")
        terminal.shows(rf"^filter: {self.small.pid}_$")
        terminal.shows(rf"^weir-perf +{self.large.pid} ", present=False)
        terminal.type("\r")
        terminal.shows(rf"/ filter: {self.small.pid} ")
        terminal.type("/")
        terminal.shows(r"^filter: _$")
        terminal.type("\x1b")
        terminal.shows(rf"^weir-perf +{self.large.pid} ")
        terminal.type("p")
        terminal.shows(r"p go on$")
        terminal.type("q")
        self.assertEqual(terminal.end(), 0)

    def test_the_terminal_is_as_before_after_ctrl_c(self):
        for way in ("\x03", "q"):
            terminal = self.terminal(TERM="xterm")
            terminal.shows(r"^sessions, by requests$")
            self.assertNotEqual(termios.tcgetattr(terminal.slave), terminal.modes)
            terminal.type(way)
            self.assertEqual(terminal.end(), 0, way)
            self.assertEqual(termios.tcgetattr(terminal.slave), terminal.modes, way)
            self.assertIn(b"\x1b[?1049l", terminal.raw, way)
            self.assertNotIn(b"weir top:", terminal.raw, way)

    def test_a_narrow_terminal_shows_whole_columns(self):
        terminal = self.terminal(columns=46, lines=12)
        text = terminal.shows(rf"^weir-perf +{self.small.pid} ")
        self.assertRegex(text, r"(?m)^process +pid +donor$|^process +pid +donor +requests$")
        self.assertNotIn("device", text)
        terminal.type("q")
        self.assertEqual(terminal.end(), 0)

    def test_a_very_small_terminal_does_no_harm(self):
        terminal = self.terminal(columns=4, lines=2)
        terminal.shows(r"\w")
        terminal.type("q")
        self.assertEqual(terminal.end(), 0)

    def test_colours_are_left_out_on_request(self):
        for more, is_coloured in (({}, True), ({"NO_COLOR": "1"}, False),
                                  ({"TERM": "vt100"}, False)):
            terminal = self.terminal(**more)
            terminal.shows(r"^sessions, by requests$")
            self.assertEqual(bool(COLOUR.search(terminal.raw)), is_coloured, more)

    def test_a_terminal_that_cannot_move_its_cursor_gets_tables(self):
        terminal = self.terminal(TERM="dumb")
        deadline = time.monotonic() + PATIENCE
        while terminal.raw.count(b"sessions, by requests") < 2:
            self.assertLess(time.monotonic(), deadline)
            terminal.read()
        self.assertNotIn(b"\x1b", terminal.raw)
        terminal.type("\x03")
        self.assertEqual(terminal.end(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
