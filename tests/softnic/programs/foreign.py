#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run unmodified libraries built on verbs on softnic: UCX, libfabric, qperf.

foreign.py LIBRARY OUTER: the library to preload, and a library that loads another. Each test is
a server and its client; tests of a program that is not installed are skipped.
"""
import functools
import os
import random
import shutil
import subprocess
import sys
import time
import unittest

LIBRARY = os.path.abspath(sys.argv.pop(1))
OUTER = os.path.abspath(sys.argv.pop(1))
LATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "late.py")
PATIENCE_S = 100
PINGPONG_SIZES = ("64", "256", "1k", "4k", "64k", "1m")
CUT_OFF_S = 3
RXM_TRIES = 10
CLOSED = "shutdown conn"  # logged by ofi_rxm when closing a connection ended by the peer


def listens(port):
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as sockets:
            if any(f":{port:04X} " in line and " 0A " in line for line in sockets):
                return True
    return False


def free_port():
    while True:
        port = random.randrange(20000, 32000)
        if not listens(port):
            return port


def own_address():
    """Return an address other than 127.0.0.1, which libfabric's provider skips."""
    done = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False)
    return next((word for word in done.stdout.split() if "." in word), None)


@functools.lru_cache
def ucx_perftest():
    """Debian 13's is built with MPI, and asks it for a peer unless told otherwise."""
    try:
        usage = subprocess.run(["ucx_perftest", "-h"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "ucx_perftest"
    return "ucx_perftest -P 0" if "-P <0|1>" in usage.stdout + usage.stderr else "ucx_perftest"


class Foreign(unittest.TestCase):
    def setUp(self):
        self.port = free_port()
        self.processes = []

    def tearDown(self):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()

    def start(self, command, **settings):
        """Output is line-buffered, to survive a kill."""
        if not shutil.which(command.split()[0]):
            self.skipTest(f"{command.split()[0]} is not installed")
        self.processes.append(subprocess.Popen(
            ["stdbuf", "-oL", *command.split()],
            env={**os.environ, "LD_PRELOAD": LIBRARY, **settings}, text=True,
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
        """Since UCX 1.18 the server must be told the device and the transport, too."""
        command = f"{ucx_perftest()} -p {self.port} -d softnic0:1 -x rc_verbs"
        server = self.serve(command)
        output = self.succeed(self.start(f"{command} -t {test} -n 2000 -w 10 -f 127.0.0.1"))
        self.succeed(server)
        self.assertIn("2000", output.split())

    def test_ucx_takes_the_device(self):
        output = self.succeed(self.start("ucx_info -d"))
        at = output.index("Transport: rc_verbs")
        self.assertIn("put_zcopy", output[at:])

    def test_a_program_built_for_glibc_before_2_33_finds_the_device(self):
        """Old builds such as Mooncake's wheels call __xstat() instead of stat()."""
        script = ("c=__import__('ctypes');f=c.CDLL(None).__xstat;st=c.create_string_buffer(256);"
                  "print([f(1,path,st)for(path)in"
                  "(b'/dev/infiniband/softnic0',b'/dev/infiniband/none',b'/')])")
        self.assertIn("[0, -1, 0]", self.succeed(self.start(f"/usr/bin/python3 -c {script}")))

    def test_a_program_that_loads_libibverbs_while_it_runs_finds_the_device(self):
        self.assertIn("all is well", self.succeed(self.start(f"/usr/bin/python3 {LATE} {OUTER}")))

    def test_a_path_that_is_none_is_the_kernels_to_refuse(self):
        script = "c=__import__('ctypes').CDLL(None);print([c.access(None,0),c.access(1,0)])"
        self.assertIn("[-1, -1]", self.succeed(self.start(f"/usr/bin/python3 -c {script}")))

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
        """The connection is set up by datagrams on every transport."""
        settings = {"UCX_TLS": transport, "UCX_NET_DEVICES": "softnic0:1"}
        server = self.serve(f"{ucx_perftest()} -p {self.port}", **settings)
        output = self.succeed(self.start(
            f"{ucx_perftest()} -p {self.port} -t {test} -n 50 -w 5 -f 127.0.0.1", **settings))
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

    def pingpong(self, provider, endpoint, **settings):
        """Start both sides. Return the server and the client."""
        address = own_address()
        if not address:
            self.skipTest("this machine has no IPv4 address but 127.0.0.1")
        self.port = free_port()
        command = f"fi_pingpong -p {provider} -e {endpoint} -I 20"
        server = self.serve(f"{command} -B {self.port}", **settings)
        return server, self.start(f"{command} -P {self.port} {address}", **settings)

    def expect_all_sizes(self, output):
        self.assertEqual(output.count("=20"), len(PINGPONG_SIZES), output)
        for size in PINGPONG_SIZES:
            self.assertRegex(output, rf"(?m)^{size} +20 +=20 ")

    def finish_unless_cut_off(self, process):
        """Wait for the end. Return the output, and whether libfabric let the program end.

        A program is killed if it still runs a while after libfabric closed the connection. The
        length of the wait only decides how often the test is repeated.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                output, _ = process.communicate(timeout=CUT_OFF_S)
                self.assertEqual(process.returncode, 0, f"{process.args}:\n{output}")
                return output, True
            except subprocess.TimeoutExpired as late:
                if CLOSED in str(late.output):  # bytes or text, depending on the Python version
                    process.kill()
                    return process.communicate()[0], False
                self.assertLess(time.monotonic(), deadline, f"{process.args}:\n{late.output}")

    def test_libfabric_messages(self):
        for process in self.pingpong("verbs", "msg"):
            self.expect_all_sizes(self.succeed(process))

    def test_libfabric_reliable_datagrams(self):
        """ofi_rxm before 2.6 may lose the last message on a device that drops the completions of a
        destroyed queue pair. On a disconnect ofi_rxm destroys the queue pair before polling
        earlier completions, and fi_pingpong then waits for ever. All work is done by then, and
        every run checks so. A clean end is checked in a run without the race.
        """
        for _ in range(RXM_TRIES):
            outcomes = [self.finish_unless_cut_off(process)
                        for process in self.pingpong("verbs;ofi_rxm", "rdm", FI_LOG_LEVEL="info",
                                                     FI_LOG_PROV="ofi_rxm",
                                                     FI_LOG_SUBSYS="ep_ctrl")]
            for output, _ in outcomes:
                self.expect_all_sizes(output)
            if all(ended for _, ended in outcomes):
                return
        self.fail(f"in each of {RXM_TRIES} runs libfabric cut a side off")

    def test_qperf(self):
        self.serve(f"qperf -lp {self.port}")
        output = self.succeed(self.start(f"qperf -lp {self.port} -t 1 127.0.0.1 rc_bw rc_lat "
                                         "rc_rdma_write_bw rc_rdma_read_bw rc_fetch_add_mr"))
        self.assertIn("msg_rate", output)


if __name__ == "__main__":
    unittest.main()
