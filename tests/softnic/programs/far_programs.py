#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run unmodified programs that connect with rdma_cm, and weir itself, between two hosts.

far_programs.py LIBRARY WEIR

The hosts are network namespaces of weir lab net, with no NIC but the kernel's virtual Ethernet.
Skips where the user may make no namespaces. Tests of a program that is not installed are skipped.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import perftest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
from tests.support.hosts import Net  # noqa: E402

WEIR = os.path.abspath(sys.argv.pop(2))
LIBRARY = os.path.abspath(sys.argv.pop(1))
NET = Net(WEIR, "far")
IPV4, IPV6 = "10.77.0.1", "fd77:6569:7200::1"  # of h1
NOBODY = "10.77.0.77"
PATIENCE_S = 60
FILES = int(os.environ.get("WEIR_TEST_FILES", "400"))
COPY_S = PATIENCE_S + FILES // 20
DOWN_S = 5
RARE_MS = 50000
# Arguments: an address and a port. Connects, and exits.
CONNECT = """import ctypes, sys
class Attr(ctypes.Structure):
    _fields_ = [("queues", ctypes.c_void_p * 4), ("cap", ctypes.c_uint32 * 5),
                ("qp_type", ctypes.c_int), ("sq_sig_all", ctypes.c_int)]
rdma, found, end = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p(), ctypes.c_void_p()
hints = (ctypes.c_int * 32)(0, 0, 0, 0x106)  # ai_port_space: RDMA_PS_TCP
attr = Attr(cap=(ctypes.c_uint32 * 5)(1, 1, 1, 1, 0), qp_type=2)  # RC
for rc in (lambda: rdma.rdma_getaddrinfo(sys.argv[1].encode(), sys.argv[2].encode(), hints,
                                         ctypes.byref(found)),
           lambda: rdma.rdma_create_ep(ctypes.byref(end), found, None, ctypes.byref(attr)),
           lambda: rdma.rdma_connect(end, None)):
    if rc():
        sys.exit(f"errno {ctypes.get_errno()}")
print("connected")"""

# Arguments: an address, a service's port, and how many. Sends management datagrams of all kinds at
# line rate: requests that are nearly right, and others with any IDs.
ROGUE = """import random, socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 4791))
head = struct.pack("!BBHIIIBxH", 0x64, 0x40, 0xffff, 1, 0, 0x80010000, 0, 1)
for i in range(int(sys.argv[3])):
    mad = bytearray(struct.pack("!BBBBHHQHHI", 1, 7, 2, 3, 0, 0, random.getrandbits(64),
                                random.randint(0x10, 0x1a), 0, 0) + random.randbytes(232))
    if i % 2:
        mad[17] = 0x10  # REQ
        mad[32:40] = struct.pack("!Q", 0x1060000 | int(sys.argv[2]) + (i % 4 != 1))
        mad[164:200] = struct.pack("!BBH12x4s12x4s", 0, 0x40, 9, socket.inet_aton("10.77.0.2"),
                                   socket.inet_aton(sys.argv[1]))
        mad[random.randrange(256)] ^= random.getrandbits(8)
    s.send(head + mad + bytes(4))
print(s.getsockname())"""


class Hosts(unittest.TestCase):
    def setUp(self):
        self.port = random.randrange(10000, 28000)
        self.processes = []
        self.addCleanup(self.end_processes)

    def end_processes(self):
        for process in self.processes:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()

    def launch(self, host, command):
        command = command.format(port=self.port)
        if not shutil.which(command.split()[0]):
            self.skipTest(f"{command.split()[0]} is not installed")
        self.processes.append(subprocess.Popen(
            NET.on(host, *command.split(), LD_PRELOAD=LIBRARY), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True))
        return self.processes[-1]

    def serve(self, command):
        server = self.launch("h1", command)
        deadline = time.monotonic() + PATIENCE_S
        while not perftest.listens(server, self.port):
            self.assertIsNone(server.poll(), "the server ended before it listened")
            self.assertLess(time.monotonic(), deadline, "the server does not listen")
        return server

    def succeed(self, process):
        output, _ = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, f"{process.args}:\n{output}")
        return output

    def pair(self, server, client):
        server, client = self.serve(server), self.launch("h2", client)
        output = self.succeed(client)
        self.succeed(server)
        return output


class Programs(Hosts):
    def test_rping(self):
        output = self.pair(f"rping -s -a {IPV4} -p {{port}} -C 10 -V -S 1000",
                           f"rping -c -a {IPV4} -p {{port}} -C 10 -V -v -S 1000")
        self.assertEqual(output.count("ping data"), 10)

    def test_rping_over_ipv6_to_the_wildcard(self):
        self.pair("rping -s -a ::0 -p {port} -C 3 -V", f"rping -c -a {IPV6} -p {{port}} -C 3 -V")

    def test_rping_over_ipv4_to_the_wildcard_of_both(self):
        self.pair("rping -s -a ::0 -p {port} -C 3 -V", f"rping -c -a {IPV4} -p {{port}} -C 3 -V")

    def test_rping_with_qps_of_its_own(self):
        self.pair("rping -s -p {port} -C 3 -V -q", f"rping -c -a {IPV4} -p {{port}} -C 3 -V -q")

    def test_rping_server_that_stays(self):
        self.serve("rping -s -P -a 0.0.0.0 -p {port}")
        for _ in range(3):
            self.succeed(self.launch("h2", f"rping -c -a {IPV4} -p {{port}} -C 5 -V"))

    def test_each_of_many_servers_hears_its_own_clients(self):
        """Processes of a host share the RoCE port, and requests find the one that listens."""
        first, servers, clients = self.port, [], []
        for self.port in range(first, first + 4):
            servers.append(self.serve("rping -s -p {port} -C 5 -V"))
        for self.port in range(first, first + 4):
            clients.append(self.launch("h2", f"rping -c -a {IPV4} -p {{port}} -C 5 -V"))
        for process in clients + servers:
            self.succeed(process)

    def test_ucmatose(self):
        self.pair("ucmatose -p {port} -c 8", f"ucmatose -s {IPV4} -p {{port}} -c 8")

    def test_ucmatose_in_the_ib_port_space(self):
        self.pair("ucmatose -p {port} -P ib", f"ucmatose -s {IPV4} -p {{port}} -P ib")

    def test_udaddy(self):
        self.port = 7174
        self.pair("udaddy -c 4 -C 20", f"udaddy -s {IPV4} -c 4 -C 20")

    def test_udaddy_over_ipv6(self):
        self.port = 7174
        self.pair(f"udaddy -b {IPV6}", f"udaddy -s {IPV6}")

    def test_cmtime(self):
        self.serve("cmtime -p {port} -c 50")  # some versions serve for ever
        self.succeed(self.launch("h2", f"cmtime -s {IPV4} -p {{port}} -c 50"))

    def test_rsockets(self):
        """Each end verifies the bytes of the other."""
        for program, address in (("rstream", IPV4), ("riostream", IPV4), ("rstream", IPV6)):
            with self.subTest(f"{program} {address}"):
                self.port += 1
                command = f"{program} -p {{port}} -S 5000 -I 20 -C 4 -T v"
                self.pair(f"{command} -b {address}", f"{command} -s {address}")

    def test_ib_write_bw(self):
        self.pair("ib_write_bw -R -p {port} -n 200", f"ib_write_bw -R -p {{port}} -n 200 {IPV4}")

    def test_ib_send_lat(self):
        self.pair("ib_send_lat -R -p {port} -n 200", f"ib_send_lat -R -p {{port}} -n 200 {IPV4}")

    def pingpong(self, words):
        """Both ends compare bytes. GID 1 is the host's IPv4 address."""
        words = f"{words} -p {{port}} -g 1 -c -n 200"
        self.pair(words, f"{words} {IPV4}")

    def test_ibv_rc_pingpong(self):
        self.pingpong("ibv_rc_pingpong")

    def test_ibv_rc_pingpong_by_events(self):
        self.pingpong("ibv_rc_pingpong -e")

    def test_ibv_uc_pingpong(self):
        self.pingpong("ibv_uc_pingpong")

    def test_ibv_ud_pingpong(self):
        self.pingpong("ibv_ud_pingpong -s 1024")

    def test_ibv_srq_pingpong(self):
        self.pingpong("ibv_srq_pingpong -q 4")

    def test_qperf(self):
        """Without UD, whose addresses lack a GRH, and without verb tests over UC, which report lost
        messages as well as arrived ones."""
        self.serve("qperf -lp {port}")
        self.succeed(self.launch(
            "h2", f"qperf -lp {{port}} -t 1 -cm 1 {IPV4} rc_bw rc_lat rc_rdma_write_bw "
            "rc_rdma_read_lat uc_bw ver_rc_fetch_add ver_rc_compare_swap quit"))


class Refusals(Hosts):
    def refused(self, command, words, host="h2"):
        begin = time.monotonic()
        client = self.launch(host, command)
        output, _ = client.communicate(timeout=PATIENCE_S)
        self.assertNotEqual(client.returncode, 0)
        self.assertIn(words, output)
        return time.monotonic() - begin

    def test_without_a_listener_a_client_is_rejected_at_once(self):
        self.serve("rping -s -a 0.0.0.0 -p {port}")
        self.port += 1
        self.assertLess(self.refused(f"ucmatose -s {IPV4} -p {{port}}",
                                     "RDMA_CM_EVENT_REJECTED, error: 8"), 5)

    def test_a_listener_of_the_loopback_interface_is_not_reached(self):
        self.serve("rping -s -a 0.0.0.0 -p {port}")
        self.port += 1
        self.serve("ucmatose -b 127.0.0.1 -p {port}")
        self.refused(f"ucmatose -s {IPV4} -p {{port}}", "RDMA_CM_EVENT_REJECTED, error: 8")

    def test_a_host_without_softnic_rejects_at_once(self):
        self.assertLess(self.refused("ucmatose -s 10.77.0.2 -p {port}", "RDMA_CM_EVENT_REJECTED",
                                     "h1"), 7)

    def test_a_host_that_is_not_there_is_unreachable(self):
        self.refused(f"ucmatose -s {NOBODY} -p {{port}}", "RDMA_CM_EVENT_UNREACHABLE")


class Ends(Hosts):
    def test_a_client_that_exits_is_noticed(self):
        """Its program neither disconnects nor destroys the id."""
        server = self.serve(f"rping -s -a {IPV4} -p {{port}} -v")
        client = subprocess.run(
            [*NET.on("h2", LD_PRELOAD=LIBRARY), sys.executable,
             "-c", CONNECT, IPV4, str(self.port)], capture_output=True, text=True, check=False,
            timeout=PATIENCE_S)
        self.assertEqual((client.returncode, client.stdout), (0, "connected\n"), client.stderr)
        output, _ = server.communicate(timeout=10)
        self.assertIn("DISCONNECT EVENT", output)

    def test_a_client_is_not_left_alone_with_a_killed_server(self):
        """The client always has writes in flight: without, it would wait for a message for ever."""
        server = self.serve("ib_write_bw -R -D 120 -p {port}")
        client = self.launch("h2", f"stdbuf -oL ib_write_bw -R -D 120 -p {{port}} {IPV4}")
        line = client.stdout.readline()
        while "#bytes" not in line:
            self.assertTrue(line, "the client ended")
            line = client.stdout.readline()
        time.sleep(1)
        server.kill()
        client.communicate(timeout=PATIENCE_S)
        self.assertNotEqual(client.returncode, 0)


class Weir(Hosts):
    """A donor on the first host, and clients on the other."""

    listen_at = IPV4

    def setUp(self):
        super().setUp()
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.key = os.path.join(self.folder, "key")
        subprocess.run([WEIR, "key", "new", self.key], check=True, capture_output=True)
        self.donor, self.address = self.lend()

    def lend(self, *options):
        """Return the donor's process and address."""
        donor = subprocess.Popen(
            [*NET.on("h1"), WEIR, "serve", "--device", "softnic",
             "--listen", f"{self.listen_at}:0", "--memory", "128M", "--no-reserve",
             "--key", self.key, "--log-level", "error", *options],
            stdout=subprocess.PIPE, text=True)
        self.processes.append(donor)
        return donor, donor.stdout.readline().split()[-1]

    def client(self, *command):
        done = NET.run("run", "h2", "--", *command)
        self.assertEqual(done.returncode, 0, (command, done.stdout, done.stderr))
        return done.stdout

    def test_ping(self):
        said = self.client(WEIR, "ping", "--device", "softnic", "--key", self.key, "--count", "3",
                           self.address)
        self.assertIn("3 of each", said)

    def test_a_rogue_sender_stops_no_connection(self):
        """Also requests for the donor's own service come, more than its backlog."""
        rogue = subprocess.Popen(
            [*NET.on("h2"), sys.executable, "-c", ROGUE, IPV4,
             self.address.rpartition(":")[2], "50000"], stdout=subprocess.PIPE, text=True)
        self.processes.append(rogue)
        for _ in range(2):
            self.client(WEIR, "ping", "--device", "softnic", "--key", self.key, "--count", "20",
                        self.address)
        self.assertEqual(rogue.wait(PATIENCE_S), 0)
        self.client(WEIR, "ping", "--device", "softnic", "--key", self.key, "--count", "3",
                    self.address)

    def copying(self, and_then):
        """Start a client that mounts, and copies FILES files by tar; then it runs a command. Amid
        the copy, tar makes a file "underway", and waits until there is a file "on". The output goes
        to a file: a pipe would not hold the errors of all files."""
        if not os.access("/dev/fuse", os.W_OK):
            self.skipTest("no FUSE")
        point, source = (os.path.join(self.folder, name) for name in ("mount", "source"))
        os.mkdir(point)
        os.mkdir(source)
        for i in range(FILES):
            folder = os.path.join(source, str(i % 37))
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, str(i)), "wb") as file:
                file.write(random.randbytes(i * 777 % 9000))
        pack = f"tar -C {source} -cf {self.folder}/tar ."
        unpack = (f"tar -C {point} -xf {self.folder}/tar --checkpoint={FILES // 8} "
                  f"--checkpoint-action=exec='touch {self.folder}/underway; "
                  f"while [ ! -e {self.folder}/on ]; do sleep 0.01; done'")
        line = [
            *NET.on("h2"), "sh", "-c",
            f"{pack} && {WEIR} mount --device softnic --key {self.key} {self.address} {point} || "
            f"exit 99; {unpack}; {and_then.format(point=point, source=source, folder=self.folder)}"
            "; status=$?; "
            f"fusermount3 -u {point} && exit $status"]
        with open(os.path.join(self.folder, "said"), "wb") as said:
            process = subprocess.Popen(line, stdout=said, stderr=subprocess.STDOUT)
        self.processes.append(process)
        return process

    def wait_for(self, file, process):
        deadline = time.monotonic() + COPY_S
        while not os.path.exists(os.path.join(self.folder, file)):
            self.assertIsNone(process.poll(), "the client has ended")
            self.assertLess(time.monotonic(), deadline, f"there is no file {file}")
            time.sleep(0.01)

    def make(self, file):
        with open(os.path.join(self.folder, file), "wb"):
            pass

    def ends(self, process, status=0):
        """Return the output."""
        process.wait(COPY_S)
        with open(os.path.join(self.folder, "said"), encoding="utf-8") as said:
            output = said.read()
        self.assertEqual(process.returncode, status, output)
        return output

    def test_a_mount_holds_files(self):
        self.make("on")
        self.ends(self.copying("diff -r {source} {point}"))

    def test_a_mount_outlasts_a_link_that_is_down(self):
        """Calls that the donor may have carried out, although it has not answered, are errors."""
        process = self.copying("tar -C {point} -xf {folder}/tar && diff -r {source} {point}")
        self.wait_for("underway", process)
        NET.run("link", "h1", "--down")
        self.make("on")
        time.sleep(DOWN_S)
        self.assertIsNone(process.poll(), "the client waits for its donor")
        NET.run("link", "h1", "--up")
        said = [line for line in self.ends(process).splitlines() if line.startswith("tar: .")]
        self.assertLess(len(said), 8, said)
        for line in said:
            self.assertIn("Input/output error", line)

    def test_a_link_that_is_down_for_long_ends_a_mount(self):
        """The mount ends once the session's timeout has passed, and does not come back."""
        process = self.copying("touch {folder}/over; while [ ! -e {folder}/up ]; do sleep 0.1; "
                               "done; ls {point}/nothing")
        self.addCleanup(NET.run, "link", "h1", "--up")
        self.wait_for("underway", process)
        NET.run("link", "h1", "--down")
        self.make("on")
        self.wait_for("over", process)
        NET.run("link", "h1", "--up")
        self.make("up")
        self.assertIn("nothing': Input/output error", self.ends(process, 2))

    def test_a_killed_donor_ends_a_mount(self):
        process = self.copying("ls {point}/nothing")
        self.wait_for("underway", process)
        self.donor.kill()
        self.make("on")
        begin = time.monotonic()
        said = self.ends(process, 2)
        self.assertIn("nothing': Input/output error", said)
        self.assertLess(time.monotonic() - begin, PATIENCE_S)

    @staticmethod
    def say_at_most_each(ms):
        """Limit the messages of closed ports from the donor's host to one address."""
        for name in "ipv4/icmp_ratelimit", "ipv6/icmp/ratelimit":
            subprocess.run(NET.on("h1", "sh", "-c", f"echo {ms} > /proc/sys/net/{name}"),
                           check=True)

    def is_under_way(self, client):
        self.assertIsNone(client.poll(), "the client has ended")
        stat = json.loads(NET.run("run", "h3", "--", WEIR, "stat", "--json").stdout)
        return any(session["pid"] == client.pid and session["completions"] > 100
                   for session in stat["sessions"])

    def test_a_killed_donor_is_noticed_although_its_host_seldom_says_so(self):
        """The host sends one message (ICMP) to a new address, and the next after 40 s. A packet in
        flight uses the first message up, so that a new request to connect gets no answer. Without
        more knowledge, the client asks for a session's timeout of 10 s."""
        self.addCleanup(self.say_at_most_each, 1000)
        self.say_at_most_each(RARE_MS)
        self.donor.kill()  # the first donor would answer for the second
        self.donor.wait()
        donor, address = self.lend("--no-encrypt")
        client = subprocess.Popen(
            [*NET.on("h3"), WEIR, "perf", "--device", "softnic", "--key", self.key, "--encrypt",
             "off", "--seconds", "0", "--depth", "64", address],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.processes.append(client)
        deadline = time.monotonic() + PATIENCE_S
        while not self.is_under_way(client):
            self.assertLess(time.monotonic(), deadline, "no request completes")
        donor.kill()
        begin = time.monotonic()
        output, _ = client.communicate(timeout=PATIENCE_S)
        self.assertLess(time.monotonic() - begin, 8)
        self.assertEqual(client.returncode, 1, output)
        self.assertIn("the channel failed", output)


class WeirOverIpv6(Weir):
    listen_at = f"[{IPV6}]"
    test_a_rogue_sender_stops_no_connection = None
    test_a_mount_outlasts_a_link_that_is_down = None
    test_a_link_that_is_down_for_long_ends_a_mount = None


def setUpModule():
    NET.up(3, unittest.addModuleCleanup)  # the third for a test that needs a new address


if __name__ == "__main__":
    unittest.main()
