#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run weir lab net as a user does.

net_test.py WEIR CLASS...

Skips without namespaces, and the class Faults without netem.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

WEIR = os.path.abspath(sys.argv.pop(1))
SLOWER = 5 if "WEIR_TEST_DEVICE" in os.environ else 1  # an emulated guest
signal.signal(signal.SIGINT, signal.default_int_handler)

# Arguments: a host, how many numbered datagrams, how many bytes more a datagram, and a file. The
# receiver adds a byte to the file for each taken round of 50, so that the buffer of a slow receiver
# suffices; a sender without a file does not wait.
SEND = """import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
count, more, taken = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
for i in range(count):
    s.sendto(b"%6d" % i + bytes(more), (sys.argv[1], 7777))
    while taken and i % 50 == 49 and os.path.getsize(taken[0]) <= i // 50:
        s.sendto(b"round %d" % (i // 50), (sys.argv[1], 7777))
        time.sleep(0.01)
for i in range(3): s.sendto(b"end", (sys.argv[1], 7777))"""
# Arguments: patience in seconds, and the sender's file. Prints how many datagrams came, how many
# came twice, and how many came late.
RECEIVE = """import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 7777))
print("ready", flush=True)
s.settimeout(float(sys.argv[1]))
got, rounds = [], 0
taken = open(sys.argv[2], "ab", 0)
def take():
    global rounds
    data = s.recv(100)
    if data.startswith(b"round"):
        if int(data[6:]) == rounds:
            rounds += 1
            taken.write(b".")
    elif data != b"end": got.append(data)
    return data
try:
    while take() != b"end": pass
    s.settimeout(0.3)
    while True: take()
except TimeoutError: pass
late = sum(later < one for one, later in zip(got, got[1:]))
print(len(set(got)), len(got) - len(set(got)), late)"""
# Time of one datagram there and back, in milliseconds; "lost" if none comes back.
ECHO = """import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 7778))
print("ready", flush=True)
while True:
    data, peer = s.recvfrom(2000)
    s.sendto(data, peer)"""
PING = """import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(float(sys.argv[2]))
times = []
for i in range(5):
    begin = time.monotonic()
    try:
        s.sendto(b"x" * 1000, (sys.argv[1], 7778)); s.recv(2000)
        times.append((time.monotonic() - begin) * 1000)
    except OSError: pass
print(min(times) if times else "lost")"""


def net(*arguments, **more):
    return subprocess.run([WEIR, "lab", "net", *arguments], capture_output=True, text=True,
                          check=False, timeout=60 * SLOWER, **more)


def lives(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] \
            not in "ZX"
    return False


def devices():
    return sorted(os.listdir("/sys/class/net"))


class Net(unittest.TestCase):
    def setUp(self):
        self.name = f"test{os.getpid()}"
        self.addCleanup(net, "down", "--name", self.name)
        os.environ["WEIR_NET"] = self.name

    def good(self, *arguments, **more):
        done = net(*arguments, **more)
        self.assertEqual(done.returncode, 0, (arguments, done.stdout, done.stderr))
        return done.stdout

    def refused(self, status, words, *arguments, **more):
        done = net(*arguments, **more)
        self.assertEqual(done.returncode, status, (arguments, done.stdout, done.stderr))
        self.assertIn(words, done.stderr)

    def status(self):
        return json.loads(self.good("status", "--json"))

    def start(self, host, *command):
        """Starts a server in a host; it prints a line when it is ready."""
        child = subprocess.Popen([WEIR, "lab", "net", "run", host, "--", *command], text=True,
                                 stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.assertTrue(child.stdout.readline())
        return child

    def ping(self, source, target, patience=0.3 * SLOWER):
        said = self.good("run", source, "--", sys.executable, "-c", PING, target, str(patience))
        return None if said == "lost\n" else float(said)

    def flood(self, count, more=0, waits=True):
        """Sends datagrams from h1 to h2; waits: as fast as the receiver takes them."""
        with tempfile.NamedTemporaryFile() as taken:
            receiver = self.start("h2", sys.executable, "-c", RECEIVE, str(10 * SLOWER), taken.name)
            self.good("run", "h1", "--", sys.executable, "-c", SEND, "10.77.0.2", str(count),
                      str(more), *([taken.name] if waits else []))
            said = receiver.communicate(timeout=30 * SLOWER)[0]
        return tuple(int(word) for word in said.split())


class Hosts(Net):
    def test_hosts_find_each_other_by_name_over_both_protocols(self):
        before = devices()
        self.good("up", "3")
        self.assertEqual(devices(), before)
        self.start("h3", sys.executable, "-c", ECHO)
        self.assertIsNotNone(self.ping("h1", "h3"))
        names = self.good("run", "h1", "--", "getent", "ahosts", "h3")
        self.assertIn("10.77.0.3", names)
        self.assertIn("fd77:6569:7200::3", names)
        self.good("run", "h1", "--", sys.executable, "-c", "import socket; s = socket.socket("
                  "socket.AF_INET6, socket.SOCK_DGRAM); s.connect(('h3', 9)); s.send(b'x')")

    def test_a_command_in_each_host_names_its_host(self):
        self.good("up", "3")
        self.assertEqual(sorted(self.good("run", "--all", "--", "hostname").splitlines()),
                         ["h1: h1", "h2: h2", "h3: h3"])
        self.assertEqual(sorted(self.good("run", "h1,h3", "--", "hostname").splitlines()),
                         ["h1: h1", "h3: h3"])

    def test_the_exit_status_is_the_commands(self):
        self.good("up", "2")
        self.assertEqual(net("run", "h1", "--", "sh", "-c", "exit 7").returncode, 7)
        self.refused(9, "h2: exit status 9", "run", "--all", "--", "sh", "-c",
                     'test "$(hostname)" = h1 || exit 9')

    def test_a_signal_reaches_the_command_itself(self):
        self.good("up", "1")
        child = self.start("h1", "sh", "-c", "echo $$; exec sleep 60")
        child.terminate()
        self.assertEqual(child.wait(10), -signal.SIGTERM)

    def test_a_command_keeps_the_folder(self):
        self.good("up", "1")
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.good("run", "h1", "--", "pwd", cwd=folder).strip(),
                             os.path.realpath(folder))

    def test_clusters_of_other_names_do_not_meet(self):
        self.good("up", "2")
        other = f"{self.name}b"
        self.addCleanup(net, "down", "--name", other)
        self.good("up", "1", "--name", other)
        self.start("h2", sys.executable, "-c", ECHO)
        self.good("down", "--name", other)
        self.assertIsNotNone(self.ping("h1", "h2"))

    def test_jumbo_frames_pass_where_asked_for(self):
        self.good("up", "1", "--mtu", "9000")
        self.assertEqual(self.good("run", "h1", "--", "sh", "-c", "ip link show eth0 |"
                                   " grep -o 'mtu [0-9]*'").strip(), "mtu 9000")


class Life(Net):
    def test_a_second_up_is_refused_and_changes_nothing(self):
        self.good("up", "2")
        before = self.status()
        self.refused(1, "is up already", "up", "3")
        self.assertEqual(self.status(), before)

    def test_down_ends_the_commands_in_the_hosts(self):
        self.good("up", "1")
        held = [self.status()["keeper"]["pid"], self.status()["hosts"][0]["holder"]["pid"]]
        deaf = self.start("h1", "sh", "-c", "trap '' TERM; echo $$; while :; do sleep 1; done")
        bare = self.start("h1", "env", "-i", "/bin/sh", "-c", "echo $$; exec /bin/sleep 60")
        self.good("down")
        self.assertEqual(deaf.wait(5), -signal.SIGKILL)
        self.assertEqual(bare.wait(5), -signal.SIGTERM)
        self.assertFalse([pid for pid in held if lives(pid)])
        self.refused(1, "is not up", "down")

    def test_down_cleans_up_after_a_killed_keeper(self):
        self.good("up", "2")
        command = self.start("h1", "sh", "-c", "echo $$; exec sleep 60")
        state = self.status()
        os.kill(state["keeper"]["pid"], signal.SIGKILL)
        begin = time.monotonic()
        while any(lives(host["holder"]["pid"]) for host in state["hosts"]):
            self.assertLess(time.monotonic(), begin + 10)
            time.sleep(0.01)
        self.refused(1, "", "status")
        self.refused(1, "killed", "run", "h1", "--", "true")
        self.good("down")
        self.assertEqual(command.wait(5), -signal.SIGTERM)

    def test_up_replaces_what_a_crash_has_left(self):
        self.good("up", "2")
        os.kill(self.status()["keeper"]["pid"], signal.SIGKILL)
        time.sleep(0.2)
        self.good("up", "1")
        self.assertEqual(len(self.status()["hosts"]), 1)

    def test_a_killed_holder_is_reported(self):
        self.good("up", "2")
        os.kill(self.status()["hosts"][1]["holder"]["pid"], signal.SIGKILL)
        time.sleep(0.2)
        self.assertEqual([host["alive"] for host in self.status()["hosts"]], [True, False])
        self.refused(1, "holds h2 was killed", "run", "h2", "--", "true")
        self.good("run", "h1", "--", "true")

    def test_with_a_command_nothing_stays(self):
        done = net("up", "2", "--", WEIR, "lab", "net", "run", "--all", "--", "sh", "-c",
                   "hostname; exit 4")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), ["h1: h1", "h2: h2"])
        self.refused(1, "is not up", "status")

    def test_an_interrupted_command_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([WEIR, "lab", "net", "up", "2", "--", "sh", "-c",
                                   "echo ready; exec sleep 60"], text=True, stdout=subprocess.PIPE,
                                  ) as child:
                self.assertEqual(child.stdout.readline(), "ready\n")
                held = self.status()["keeper"]["pid"]
                child.send_signal(number)
                self.assertEqual(child.wait(20), 128 + number)
            self.assertFalse(lives(held))
            self.refused(1, "is not up", "status")

    def test_an_up_interrupted_anywhere_leaves_nothing(self):
        for ms in range(50, 500, 50):
            with subprocess.Popen([WEIR, "lab", "net", "up", "6"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL) as child:
                time.sleep(ms / 1000)
                child.send_signal(signal.SIGTERM)
                is_up = child.communicate(timeout=20)[0]
            done = net("down")
            if not is_up:
                self.assertIn("is not up", done.stderr, ms)

    def test_a_killed_single_shot_takes_its_hosts_along(self):
        with subprocess.Popen([WEIR, "lab", "net", "up", "2", "--", "sh", "-c",
                               "echo $$; exec sleep 60"], text=True,
                              stdout=subprocess.PIPE) as child:
            command = int(child.stdout.readline())
            state = self.status()
            child.kill()
        os.kill(command, signal.SIGKILL)
        begin = time.monotonic()
        while lives(state["keeper"]["pid"]) or lives(state["hosts"][0]["holder"]["pid"]):
            self.assertLess(time.monotonic(), begin + 10)
            time.sleep(0.01)
        self.good("down")

    def test_a_user_without_namespaces_is_told_the_remedy(self):
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder, "unshare")
            fake.write_text("#!/bin/sh\necho unshare: unshare failed: no >&2\nexit 1\n", "ascii")
            fake.chmod(0o755)
            self.refused(1, "run as root", "up", "2",
                         env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        self.refused(1, "is not up", "status")

    @unittest.skipIf(os.geteuid(), "runs without privilege anyway")
    def test_no_privilege_is_needed(self):
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set",
                  "-all", "env", "-u", "XDG_RUNTIME_DIR", "-C", "/"]
        allowed = subprocess.run([*nobody, "unshare", "-Urn", "true"], capture_output=True,
                                 text=True, check=False)
        if allowed.returncode or subprocess.run([*nobody, "test", "-x", WEIR],
                                                check=False).returncode:
            self.skipTest(f"no other user can try: {allowed.stderr.strip() or WEIR}")
        done = subprocess.run([*nobody, WEIR, "lab", "net", "up", "2", "--", WEIR, "lab", "net",
                               "run", "h1", "--", "sh", "-c", "hostname; id -u; getent hosts h2"],
                              capture_output=True, text=True, check=False, timeout=60 * SLOWER)
        self.assertEqual(done.stdout.split()[:2], ["h1", "0"], done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)


class Links(Net):
    def test_a_host_without_its_cable_is_alone_until_it_is_back(self):
        self.good("up", "3")
        self.start("h2", sys.executable, "-c", ECHO)
        self.good("link", "h2", "--down")
        self.assertIsNone(self.ping("h1", "h2"))
        self.assertEqual([host["up"] for host in self.status()["hosts"]], [True, False, True])
        self.good("link", "h2", "--up")
        self.assertIsNotNone(self.ping("h1", "h2"))

    def test_hosts_of_different_groups_lose_each_other(self):
        self.good("up", "4")
        self.start("h2", sys.executable, "-c", ECHO)
        self.good("split", "h1,h2", "h3")
        self.assertEqual([host["group"] for host in self.status()["hosts"]], [1, 1, 2, 0])
        self.assertIsNotNone(self.ping("h1", "h2"))
        self.assertIsNone(self.ping("h3", "h2"))
        self.assertIsNone(self.ping("h4", "h2"))
        self.good("split", "h2,h3")
        self.assertIsNone(self.ping("h1", "h2"))
        self.assertIsNotNone(self.ping("h3", "h2"))
        self.good("split")
        self.assertIsNotNone(self.ping("h4", "h2"))

    def test_a_rate_bounds_what_passes(self):
        self.good("up", "2", "--rate", "1mbit")
        came, _, _ = self.flood(2000, 1000, waits=False)
        self.assertLess(came, 1000)  # a burst of 16 KiB and 50 ms of queue pass, and 120 a second
        self.good("link", "all", "--rate", "0")
        self.assertEqual(self.flood(500)[0], 500)
        self.assertEqual(self.status()["hosts"][0]["link"], {})

    def test_without_netem_the_kernels_refusal_names_the_remedy(self):
        self.good("up", "2", "--rate", "10mbit")
        done = net("link", "h1", "--loss", "1%")
        if not done.returncode:
            self.skipTest("this kernel has netem")
        self.assertIn("modprobe sch_netem", done.stderr)
        self.assertEqual(self.status()["hosts"][0]["link"], {"rate": 10**7})
        self.assertIn("tbf", self.good("run", "h1", "--", "sh", "-c",
                                       "PATH=$PATH:/usr/sbin:/sbin tc qdisc show dev eth0"))

    def test_wrong_words_are_refused_before_anything_changes(self):
        self.good("up", "1")
        for words, arguments in (("h9", ("link", "h9", "--down")), ("1 to 200", ("up", "0")),
                                 ("percentage", ("link", "h1", "--loss", "101%")),
                                 ("needs --delay", ("link", "h1", "--reorder", "5%")),
                                 ("needs a fault", ("link", "h1")),
                                 ("two groups", ("split", "h1", "h1")),
                                 ("a host and a command", ("run", "h1")),
                                 ("name of letters", ("down", "--name", "../x"))):
            self.refused(1 if "h9" in words else 2, words, *arguments)
        self.assertEqual(self.status()["hosts"][0]["link"], {})


class Faults(Net):
    """Faults of the kernel's netem: the guests of tests/vm have it."""

    def test_a_delay_counts_in_both_directions(self):
        self.good("up", "2")
        self.start("h2", sys.executable, "-c", ECHO)
        self.good("link", "h2", "--delay", "30ms")
        self.assertGreaterEqual(self.ping("h1", "h2", 3), 60)
        self.good("link", "h2", "--clear")
        self.assertLess(self.ping("h1", "h2", 3), 60)

    def test_packets_are_lost_doubled_and_reordered_as_asked(self):
        self.good("up", "2")
        count = 2000
        self.good("link", "h2", "--loss", "10%")
        came, twice, late = self.flood(count)
        self.assertTrue(0.8 * count < came < 0.97 * count, came)
        self.assertEqual((twice, late), (0, 0))
        self.good("link", "h2", "--loss", "0", "--duplicate", "10%")
        came, twice, late = self.flood(count)
        self.assertEqual(came, count)
        self.assertTrue(0.03 * count < twice < 0.2 * count, twice)
        self.good("link", "h2", "--duplicate", "0", "--delay", "5ms", "--reorder", "5%")
        self.assertGreater(self.flood(count)[2], 10)
        self.good("link", "h2", "--loss", "100%")
        self.start("h2", sys.executable, "-c", ECHO)
        self.assertIsNone(self.ping("h1", "h2"))


def main():
    """Skips if this machine lacks what the classes need."""
    wanted = ["--loss", "1%"] if "Faults" in sys.argv else []
    tried = net("up", "1", "--name", f"try{os.getpid()}", *wanted, "--", "true")
    if tried.returncode:
        print(tried.stderr)
        sys.exit(77)
    unittest.main()


if __name__ == "__main__":
    main()
