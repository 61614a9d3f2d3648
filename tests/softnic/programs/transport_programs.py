#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run unmodified programs that exchange QP numbers over TCP on softnic, on each transport.

transport_programs.py LIBRARY: the library to preload. Each test is a server and its client;
tests of a program that is not installed are skipped.
"""
import os
import random
import shutil
import subprocess
import sys
import time
import unittest

LIBRARY = os.path.abspath(sys.argv.pop(1))
PATIENCE_S = 60
TCP_LISTEN = "0A"


def is_listening(port):
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(path) as sockets:
            for line in sockets:
                fields = line.split()
                if fields[1].endswith(f":{port:04X}") and fields[3] == TCP_LISTEN:
                    return True
    return False


def start(command):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env={**os.environ, "LD_PRELOAD": LIBRARY}, text=True)


class Programs(unittest.TestCase):
    def pair(self, command):
        """Run the same command as server and, with an address, as client."""
        words = command.split()
        if not shutil.which(words[0]):
            self.skipTest(f"{words[0]} is not installed")
        port = random.randrange(10000, 32000)
        words += ["-p", str(port)]
        server = start(words)
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not is_listening(port):
                self.assertIsNone(server.poll(), "the server ended before it listened")
                self.assertLess(time.monotonic(), deadline, "the server does not listen")
                time.sleep(0.02)
            client = start(words + ["127.0.0.1"])
            try:
                for process in client, server:
                    output, _ = process.communicate(timeout=PATIENCE_S)
                    self.assertEqual(process.returncode, 0, f"{process.args}:\n{output}")
            finally:
                client.kill()
                client.wait()
                client.stdout.close()
        finally:
            server.kill()
            server.wait()
            server.stdout.close()

    def test_rc_pingpong(self):
        self.pair("ibv_rc_pingpong")

    def test_uc_pingpong(self):
        self.pair("ibv_uc_pingpong")

    def test_uc_pingpong_with_events(self):
        self.pair("ibv_uc_pingpong -e")

    def test_ud_pingpong(self):
        self.pair("ibv_ud_pingpong -g 0")  # an address without a GRH is invalid on RoCE

    def test_ud_pingpong_with_events(self):
        self.pair("ibv_ud_pingpong -g 0 -e")

    def test_ud_pingpong_by_gid(self):
        self.pair("ibv_ud_pingpong -g 1")

    def test_srq_pingpong(self):
        self.pair("ibv_srq_pingpong")

    def test_srq_pingpong_with_events(self):
        self.pair("ibv_srq_pingpong -e")

    def test_xsrq_pingpong(self):
        self.pair("ibv_xsrq_pingpong")

    def test_ib_send_bw_on_uc(self):
        self.pair("ib_send_bw -c UC -n 500")

    def test_ib_send_bw_on_uc_both_ways(self):
        self.pair("ib_send_bw -c UC -b -n 500")

    def test_ib_send_lat_on_uc(self):
        self.pair("ib_send_lat -c UC -n 500")

    def test_ib_write_bw_on_uc(self):
        self.pair("ib_write_bw -c UC -n 500")

    def test_ib_write_lat_on_uc(self):
        self.pair("ib_write_lat -c UC -n 500")

    def test_ib_send_bw_on_ud(self):
        self.pair("ib_send_bw -c UD -n 500")

    def test_ib_send_bw_on_ud_with_events(self):
        self.pair("ib_send_bw -c UD -e -n 500")

    def test_ib_send_lat_on_ud(self):
        self.pair("ib_send_lat -c UD -n 500")

    def test_ib_send_bw_with_few_receives(self):
        self.pair("ib_send_bw -r 16 -n 500")

    def test_ib_send_bw_with_an_srq(self):
        self.pair("ib_send_bw --use-srq -n 500")

    def test_ib_send_bw_with_an_srq_on_four_qps(self):
        self.pair("ib_send_bw --use-srq -q 4 -n 500")

    def test_ib_send_lat_with_an_srq(self):
        self.pair("ib_send_lat --use-srq -n 500")


if __name__ == "__main__":
    unittest.main()
