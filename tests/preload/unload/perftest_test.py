#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The unmodified programs of perftest have their small writes unloaded.

perftest_test.py WEIR: the command.
"""
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

WEIR = sys.argv.pop(1)
PATIENCE_S = 120
NAMES = 256
SUMMARY = re.compile(
    r"weir unload: (\d+) of (\d+) small writes unloaded, (\d+) of them repeated .*; "
    r"(\d+) copied for peers, (\d+) refused"
)


def listens(port):
    """Listens as a TCP socket (state 0A), or as softnic's connection manager does."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as sockets:
            if any(f":{port:04X} " in line and " 0A " in line for line in sockets):
                return True
    with open("/proc/net/unix", encoding="ascii") as sockets:
        return any(
            "@weir-softnic-cm-" in line and line.rstrip().endswith(f"-{port}") for line in sockets
        )


def free_port():
    while True:
        port = random.randrange(20000, 32000)
        if not listens(port):
            return port


def bind_any(heard):
    """Binds to a name that discovery asks, and that no other program has."""
    for number in reversed(range(NAMES)):
        try:
            heard.bind(f"\0weir-unload-{os.getuid()}-{number}")
            return
        except OSError:
            pass
    raise OSError("no name is free")


def count_datagrams(heard, pid):
    """Counts pending datagrams from that process: other programs of this user send, too."""
    count = 0
    try:
        while True:
            _data, ancillary, _flags, _address = heard.recvmsg(1024, 128)
            sender = [struct.unpack("3i", data)[0] for level, kind, data in ancillary
                      if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS)]
            count += sender == [pid]
    except BlockingIOError:
        return count


@unittest.skipUnless(shutil.which("ib_write_lat"), "perftest is not installed")
class Perftest(unittest.TestCase):
    def start(self, options, command):
        process = subprocess.Popen(
            [WEIR, "run", *options, "--", *command.split()],
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_pair(self, command, *options):
        """Returns the output of the server and of the client."""
        port = free_port()
        server = self.start(options, f"{command} -F -p {port}")
        deadline = time.monotonic() + PATIENCE_S
        while not listens(port):
            self.assertIsNone(server.poll(), "the server ended before it listened")
            self.assertLess(time.monotonic(), deadline, "the server does not listen")
            time.sleep(0.02)
        client = self.start(options, f"{command} -F -p {port} 127.0.0.1")
        outputs = [process.communicate(timeout=PATIENCE_S)[0] for process in (client, server)]
        for process, output in zip((client, server), outputs):
            self.assertEqual(process.returncode, 0, output)
        return outputs[::-1]

    def summaries(self, outputs):
        """For each tx: unloaded, small, repeated, copied, refused."""
        found = [SUMMARY.search(output) for output in outputs]
        self.assertTrue(all(found), outputs)
        return [[int(number) for number in one.groups()] for one in found]

    def expect_unloading(self, command):
        """Repeats with longer runs, because the time to discovery is not part of the test."""
        for length in ("-n 5000", "-D 6", "-D 20"):
            server, client = self.summaries(self.run_pair(f"{command} {length}", "--unload=always"))
            for here, there in ((server, client), (client, server)):
                self.assertLessEqual(here[0], here[1])
                self.assertEqual(there[3], here[0], "each is copied once")
                self.assertEqual((here[2], here[4]), (0, 0))
            if server[0] and client[0]:
                return
        self.fail("nothing was unloaded")

    def test_a_target_polling_the_end_of_a_message_is_unloaded_to(self):
        self.expect_unloading("ib_write_lat -s 64")

    def test_also_with_the_connection_manager(self):
        self.expect_unloading("ib_write_lat -R -s 64")

    def test_inline_writes_are_unloaded_too(self):
        self.expect_unloading("ib_write_lat -I 64 -s 64")

    def test_a_target_that_sends_nothing_is_found(self):
        """The target's QP never leaves RTR. The time to discovery is not part of the test."""
        for length in ("-n 5000", "-D 6", "-D 20"):
            outputs = self.run_pair(f"ib_write_bw -s 64 -t 1 {length}", "--unload=always")
            server, client = (SUMMARY.search(output) for output in outputs)
            if server and client:
                self.assertEqual(server[4], client[1], "each is copied once")
                return
        self.fail("nothing was unloaded")

    def test_longer_writes_go_by_the_device(self):
        for output in self.run_pair("ib_write_lat -s 4096 -n 500", "--unload=always"):
            self.assertNotIn("small writes", output)

    def test_several_queue_pairs_are_unloaded_side_by_side(self):
        self.run_pair("ib_write_bw -b -q 4 -s 64 -n 500", "--unload=always")

    def test_a_program_without_a_peer_is_told_and_goes_on(self):
        port = free_port()
        command = f"ib_write_lat -F -s 64 -D 600 -p {port}"
        server = self.start([], command)
        deadline = time.monotonic() + PATIENCE_S
        while not listens(port):
            self.assertLess(time.monotonic(), deadline, "the server does not listen")
            time.sleep(0.02)
        heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.addCleanup(heard.close)
        heard.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        bind_any(heard)
        client = self.start(["--unload=always"], f"{command} 127.0.0.1")
        patience = threading.Timer(PATIENCE_S, client.kill)
        patience.start()
        self.addCleanup(patience.cancel)
        output = []  # perftest 25 makes an extended CQ, and the library reports that first
        for line in client.stdout:
            output.append(line)
            if "nobody answers for its peer" in line:
                break
        self.assertIn("nobody answers for its peer", "".join(output))
        self.assertIsNone(client.poll())
        self.assertIn(count_datagrams(heard, client.pid), range(2, 9), "of the one queue pair")


if __name__ == "__main__":
    unittest.main()
