#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Libraries that stand on verbs run on softnic as they are: UCX, libfabric, qperf.

foreign.py LIBRARY: the library to preload. Each test is a server and its client; a program that is not
installed skips its tests.
"""
import os
import random
import shutil
import subprocess
import sys
import time
import unittest

LIBRARY = os.path.abspath(sys.argv.pop(1))
PATIENCE_S = 100


def listens(port):
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as sockets:
            if any(f":{port:04X} " in line and " 0A " in line for line in sockets):
                return True
    return False


def own_address():
    """One that is not 127.0.0.1, which libfabric's provider leaves out."""
    done = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False)
    return next((word for word in done.stdout.split() if "." in word), None)


class Foreign(unittest.TestCase):
    def setUp(self):
        self.port = random.randrange(20000, 32000)
        self.processes = []

    def tearDown(self):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()

    def start(self, command, **settings):
        if not shutil.which(command.split()[0]):
            self.skipTest(f"{command.split()[0]} is not installed")
        self.processes.append(subprocess.Popen(
            command.split(), env={**os.environ, "LD_PRELOAD": LIBRARY, **settings}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        return self.processes[-1]

    def serve(self, command, **settings):
        server = self.start(command, **settings)
        deadline = time.monotonic() + PATIENCE_S
        while not listens(self.port):
            self.assertIsNone(server.poll(), "the server ended before it listened")
            self.assertLess(time.monotonic(), deadline, "the server does not listen")
            time.sleep(0.02)
        return server

    def succeed(self, process):
        output, _ = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, f"{process.args}:\n{output}")
        return output

    def uct(self, test):
        server = self.serve(f"ucx_perftest -p {self.port}")
        output = self.succeed(self.start(
            f"ucx_perftest -p {self.port} -t {test} -d softnic0:1 -x rc_verbs -n 2000 -w 10 -f 127.0.0.1"))
        self.succeed(server)
        self.assertIn("2000", output.split())

    def test_ucx_takes_the_device(self):
        output = self.succeed(self.start("ucx_info -d"))
        at = output.index("Transport: rc_verbs")
        self.assertIn("put_zcopy", output[at:])

    def test_ucx_puts_inline(self):
        self.uct("put_bw -D short -s 8")

    def test_ucx_puts_large_buffers(self):
        self.uct("put_bw -D zcopy -s 65536")

    def test_ucx_gets(self):
        self.uct("get -D bcopy -s 2048")

    def test_ucx_sends_through_a_shared_receive_queue(self):
        self.uct("am_lat -D bcopy -s 2048")

    def test_ucx_adds_and_fetches(self):
        self.uct("fadd -D short -s 8")

    def ucp(self, transport, test):
        """Connects by datagrams, whichever the transport."""
        settings = {"UCX_TLS": transport, "UCX_NET_DEVICES": "softnic0:1"}
        server = self.serve(f"ucx_perftest -p {self.port}", **settings)
        output = self.succeed(self.start(f"ucx_perftest -p {self.port} -t {test} -n 50 -w 5 -f 127.0.0.1",
                                         **settings))
        self.succeed(server)
        self.assertIn("50", output.split())

    def test_ucp_matches_tags(self):
        self.ucp("rc_v", "tag_lat -s 8")

    def test_ucp_sends_by_rendezvous(self):
        self.ucp("rc_v", "tag_bw -s 300000")

    def test_ucp_streams_over_datagrams(self):
        self.ucp("ud_v", "stream_bw -s 20000")

    def test_ucp_sleeps_until_a_message_comes(self):
        self.ucp("rc_v", "tag_lat -s 8 -I -E sleep")

    def pingpong(self, provider, endpoint):
        address = own_address()
        if not address:
            self.skipTest("this machine has no IPv4 address but 127.0.0.1")
        command = f"fi_pingpong -p {provider} -e {endpoint} -I 20"
        server = self.serve(f"{command} -B {self.port}")
        output = self.succeed(self.start(f"{command} -P {self.port} {address}"))
        self.succeed(server)
        self.assertIn("=20", output)

    def test_libfabric_messages(self):
        self.pingpong("verbs", "msg")

    def test_libfabric_reliable_datagrams(self):
        self.pingpong("verbs;ofi_rxm", "rdm")

    def test_qperf(self):
        self.serve(f"qperf -lp {self.port}")
        output = self.succeed(self.start(f"qperf -lp {self.port} -t 1 127.0.0.1 rc_bw rc_lat rc_rdma_write_bw "
                                         "rc_rdma_read_bw rc_fetch_add_mr"))
        self.assertIn("msg_rate", output)


if __name__ == "__main__":
    unittest.main()
