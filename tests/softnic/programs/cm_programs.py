#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run unmodified programs that connect with rdma_cm on softnic.

cm_programs.py LIBRARY: the library to preload. Each test is a server and its client; tests of a
program that is not installed are skipped.
"""
import glob
import ipaddress
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

LIBRARY = os.path.abspath(sys.argv.pop(1))
PATIENCE_S = 60


RSPRELOAD = next((path for pattern in ("/usr/lib*/rsocket", "/usr/lib/*/rsocket")
                  for path in glob.glob(pattern + "/librspreload.so")), None)


def start(command, preload=(), **files):
    files = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **files}
    return subprocess.Popen(command.split(), text=True, **files,
                            env={**os.environ, "LD_PRELOAD": ":".join([LIBRARY, *preload])})


def is_listening(port):
    """Look for an abstract socket in the state and with the flag of a listener."""
    with open("/proc/net/unix") as sockets:
        for line in sockets:
            fields = line.split()
            if (len(fields) == 8 and fields[3] == "00010000"
                    and fields[7].startswith("@weir-softnic-cm-")
                    and fields[7].endswith(f"-{port}")):
                return True
    return False


def members(group):
    """Return the number of queue pairs attached to a multicast group."""
    address = ipaddress.ip_address(group)
    gid = address.packed.hex() if address.version == 6 else "0" * 20 + "ffff" + address.packed.hex()
    with open("/proc/net/unix") as sockets:
        return sum(f"-group-{gid}-" in line for line in sockets)


class Programs(unittest.TestCase):
    def setUp(self):
        self.port = random.randrange(10000, 32000)
        self.processes = []
        self.preload = []

    def tearDown(self):
        for process in self.processes:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()

    def launch(self, command, **files):
        command = command.format(port=self.port)
        if not shutil.which(command.split()[0]):
            self.skipTest(f"{command.split()[0]} is not installed")
        self.processes.append(start(command, self.preload, **files))
        return self.processes[-1]

    def serve(self, command, **files):
        server = self.launch(command, **files)
        deadline = time.monotonic() + PATIENCE_S
        while not is_listening(self.port):
            self.assertIsNone(server.poll(), "the server ended before it listened")
            self.assertLess(time.monotonic(), deadline, "the server does not listen")
            time.sleep(0.02)
        return server

    def succeed(self, process):
        output, _ = process.communicate(timeout=PATIENCE_S)
        # rping's main thread destroys the channel on which its other thread may ask next.
        is_over = process.args[0] == "rping" and re.search(
            r"DISCONNECT EVENT.*\nrdma_get_cm_event: Bad file descriptor\s*$", output, re.S)
        self.assertEqual(process.returncode, 255 if is_over else 0, f"{process.args}:\n{output}")
        return output

    def pair(self, server, client):
        server, client = self.serve(server), self.launch(client)
        output = self.succeed(client)
        self.succeed(server)
        return output

    def test_rping(self):
        output = self.pair("rping -s -a 127.0.0.1 -p {port} -C 10 -V -S 1000",
                           "rping -c -a 127.0.0.1 -p {port} -C 10 -V -v -S 1000")
        self.assertEqual(output.count("ping data"), 10)

    def test_rping_over_ipv6(self):
        self.pair("rping -s -a ::1 -p {port} -C 3 -V", "rping -c -a ::1 -p {port} -C 3 -V")

    def test_rping_with_qps_of_its_own(self):
        self.pair("rping -s -p {port} -C 3 -V -q", "rping -c -a 127.0.0.1 -p {port} -C 3 -V -q")

    def test_rping_server_that_stays(self):
        self.serve("rping -s -P -a 127.0.0.1 -p {port}")
        for _ in range(5):
            self.succeed(self.launch("rping -c -a 127.0.0.1 -p {port} -C 5 -V"))

    def test_rping_from_an_address_of_its_own(self):
        self.pair("rping -s -a ::0 -p {port} -C 3 -V",
                  "rping -c -a ::1 -I ::1 -p {port} -C 3 -V")

    def test_rping_over_ipv4_to_the_wildcard_of_both(self):
        self.pair("rping -s -a ::0 -p {port} -C 3 -V", "rping -c -a 127.0.0.2 -p {port} -C 3 -V")

    def test_rping_of_different_sizes_ends(self):
        """The server reads beyond its registered memory."""
        server = self.serve("rping -s -a 127.0.0.1 -p {port} -C 3 -V -S 100")
        client = self.launch("rping -c -a 127.0.0.1 -p {port} -C 3 -V -S 1000")
        client.communicate(timeout=PATIENCE_S)
        server.communicate(timeout=PATIENCE_S)
        self.assertNotEqual(server.returncode, 0)

    def test_rping_of_a_size_it_does_not_take(self):
        client = self.launch("rping -c -a 127.0.0.1 -p {port} -S 1000000")
        client.communicate(timeout=PATIENCE_S)
        self.assertNotEqual(client.returncode, 0)

    def test_rping_is_not_left_alone_with_a_killed_server(self):
        server = self.serve("rping -s -a 127.0.0.1 -p {port}")
        client = self.launch("rping -c -a 127.0.0.1 -p {port} -v")
        self.assertIn("ping data", client.stdout.readline())
        server.send_signal(signal.SIGKILL)
        client.communicate(timeout=10)

    def test_ucmatose(self):
        self.pair("ucmatose -p {port} -c 8", "ucmatose -s 127.0.0.1 -p {port} -c 8")

    def test_ucmatose_that_migrates(self):
        self.pair("ucmatose -p {port} -c 8 -m", "ucmatose -s 127.0.0.1 -p {port} -c 8 -m")

    def test_ucmatose_with_options(self):
        for options in ("-P ib", "-S 1000 -C 20 -t 8 -a 18", "-C 0", "-b 127.0.0.1 -c 3"):
            with self.subTest(options):
                self.port += 1
                self.pair("ucmatose -p {port} " + options,
                          "ucmatose -s 127.0.0.1 -p {port} " + options)

    def test_ucmatose_by_name(self):
        self.pair("ucmatose -p {port}", "ucmatose -s localhost -f name -p {port}")

    def test_ucmatose_without_a_listeners_address_over_ipv6(self):
        self.pair("ucmatose -p {port} -c 4", "ucmatose -s ::1 -p {port} -c 4")

    def test_ucmatose_over_ipv6(self):
        self.pair("ucmatose -b ::1 -p {port} -c 4", "ucmatose -s ::1 -p {port} -c 4")

    def datagrams(self, address, options=""):
        self.port = 7174  # udaddy has no port option; the address keeps other tests apart
        self.pair(f"udaddy -b {address} {options}", f"udaddy -s {address} {options}")

    def test_udaddy(self):
        self.datagrams("127.{}.{}.{}".format(*(random.randrange(1, 255) for _ in range(3))))

    def test_udaddy_to_several(self):
        self.datagrams("127.{}.{}.{}".format(*(random.randrange(1, 255) for _ in range(3))),
                       "-c 4 -C 50 -S 2000")

    def test_udaddy_over_ipv6(self):
        self.datagrams("::1")

    def test_mckey(self):
        """In each group two processes receive and one sends; each ends after its last message."""
        groups = [("239.{}.{}.{}".format(*random.sample(range(1, 255), 3)), "127.0.0.1", ""),
                  ("ff0e::{:x}:{:x}".format(*random.sample(range(1, 65536), 2)), "::1", "-o -l")]
        receivers = [self.launch(f"mckey -m {group} -b {address}")
                     for group, address, _ in groups for _ in range(2)]
        deadline = time.monotonic() + PATIENCE_S
        while any(members(group) < 2 for group, _, _ in groups):
            self.assertLess(time.monotonic(), deadline, "the receivers do not join")
            time.sleep(0.02)
        senders = [self.launch(f"mckey -m {group} -b {address} -s {options}")
                   for group, address, options in groups]
        for process in senders + receivers:
            self.assertIn("data transfers complete", self.succeed(process))

    def test_rdma_client(self):
        self.pair("rdma_server -p {port}", "rdma_client -s 127.0.0.1 -p {port}")

    def test_rdma_xclient(self):
        self.pair("rdma_xserver -p {port} -c r", "rdma_xclient -s 127.0.0.1 -p {port} -c r")

    def test_rdma_xclient_is_told_that_there_is_no_xrc(self):
        for command in ("rdma_xserver -p {port} -c x",
                        "rdma_xclient -s 127.0.0.1 -p {port} -c x"):
            process = self.launch(command)
            output, _ = process.communicate(timeout=PATIENCE_S)
            self.assertNotEqual(process.returncode, 0)
            self.assertIn("Operation not supported", output)

    def rsockets(self, program, options, address="127.0.0.1"):
        """Both ends verify the bytes of the other end."""
        program += " -p {port} -S 5000 -I 20 -C 4 -T v " + options
        self.pair(f"{program} -b {address}", f"{program} -s {address}")

    def test_rsockets(self):
        for program in ("rstream", "riostream"):
            for options in ("", "-T b", "-T n"):
                with self.subTest(program + options):
                    self.port += 1
                    self.rsockets(program, options)

    def test_rsockets_over_ipv6(self):
        self.rsockets("rstream", "", "::1")

    def test_rstream_that_resolves_by_rdma_cm(self):
        self.rsockets("rstream", "-T r")

    def test_rstream_of_all_sizes(self):
        self.pair("rstream -p {port} -S all -I 2 -C 2", "rstream -s 127.0.0.1 -p {port} -S all "
                  "-I 2 -C 2")

    def test_datagrams_of_rsockets_are_refused(self):
        process = self.launch("udpong -s 127.0.0.1 -p {port}")
        output, _ = process.communicate(timeout=PATIENCE_S)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("Protocol not supported", output)

    def preloaded(self, server, client):
        """The two programs use TCP, and rdma-core's librspreload replaces TCP by rsockets."""
        if not RSPRELOAD:
            self.skipTest("librspreload is not installed")
        self.preload = [RSPRELOAD]
        return self.pair(server, client)

    def test_iperf3_on_rsockets(self):
        for options in ("", "-R"):
            with self.subTest(options):
                self.port += 1
                output = self.preloaded("iperf3 -s -1 -p {port}",
                                        f"iperf3 -c 127.0.0.1 -p {{port}} -n 20M {options}")
                self.assertRegex(output, r"20\.0 MBytes .* sender")

    def test_netcat_on_rsockets(self):
        sent = random.randbytes(3 << 20)
        self.preload = [RSPRELOAD or self.skipTest("librspreload is not installed")]
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "source"), pathlib.Path(folder, "target")
            source.write_bytes(sent)
            with source.open() as stdin, target.open("w") as stdout:
                server = self.serve("nc.openbsd -l 127.0.0.1 {port}", stdout=stdout,
                                    stderr=subprocess.DEVNULL)
                self.succeed(self.launch("nc.openbsd -N 127.0.0.1 {port}", stdin=stdin))
                self.succeed(server)
            self.assertTrue(target.read_bytes() == sent)

    def test_cmtime(self):
        self.serve("cmtime -p {port} -c 400")  # some versions serve for ever
        self.succeed(self.launch("cmtime -s 127.0.0.1 -p {port} -c 400"))

    def perftest(self, command):
        self.pair(command + " -R -p {port}", command + " -R -p {port} 127.0.0.1")

    def test_ib_write_bw(self):
        self.perftest("ib_write_bw -n 500")

    def test_ib_write_bw_on_four_qps(self):
        self.perftest("ib_write_bw -q 4 -n 100")

    def test_ib_send_bw(self):
        self.perftest("ib_send_bw -n 500")

    def test_ib_send_bw_with_events(self):
        self.perftest("ib_send_bw -e -n 500")

    def test_ib_read_lat(self):
        self.perftest("ib_read_lat -n 500")


if __name__ == "__main__":
    unittest.main()
