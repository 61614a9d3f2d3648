#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""softnic between two hosts, which are network namespaces: far_program.c by each transport, over a
network that loses, repeats, reorders and spoils packets, with a stranger on it, and with a peer
that dies; in clear text and encrypted.

hosts_test.py WEIR LIBRARIES PROGRAM

LIBRARIES are preloaded, separated by colons.

Skips without namespaces.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
from tests.support.hosts import Net  # noqa: E402

WEIR, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:4:2])
SOFTNIC = ":".join(os.path.abspath(path) for path in sys.argv[2].split(":"))
IS_SANITIZED = ":" in SOFTNIC  # by a runtime that is preloaded before
del sys.argv[1:4]
NET = Net(WEIR, "wire")
PATIENCE = 200
# The most that an attack may cost a process, beside chance.
MORE_KIB, MORE_FDS = 65536, 4
ROUNDS = int(os.environ.get("WEIR_TEST_ROUNDS", "8"))
FIRST, SECOND, THIRD = "h1", "h2", "h3"
PORT = 9100
signal.signal(signal.SIGINT, signal.default_int_handler)

# The attackers run until a line of input, and then print the number of packets that they have sent.
# Argument: a host. Sends packets to the ports of RoCE and of all slots: random bytes, and requests
# of the right form to guessed queue pairs.
ROGUE = """import os, random, select, socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sent = 0
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(100):
        port = random.choice([4791, 0x7000 + random.randrange(1024)])
        qpn = (port - 0x7000) % 1024 << 14 | random.randrange(1 << 14)
        opcode = random.choice([0x04, 0x0a, 0x0c, 0x11, 0x13, 0x2a, 0x64, 0xc0, 0xc1, 0xc2,
                                random.randrange(256)])
        bth = struct.pack("!BBHII", opcode, 0x40, 0xffff, random.choice([qpn, 1]),
                          1 << 31 | random.randrange(1 << 24))
        body = bth + os.urandom(4 * random.randrange(400))
        s.sendto(random.choice([body, b"\\xffWP\\x01" + os.urandom(40) + body,
                                os.urandom(random.randrange(1400))]), (sys.argv[1], port))
        sent += 1
    time.sleep(0.002)
print(sent)"""
# Captures the UDP packets that this host sends, and sends them again, some much later.
REPLAY = """import random, select, socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("eth0", 3))
s.settimeout(0.2)
kept, sent = [], 0
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    try: frame, at = s.recvfrom(66000)
    except TimeoutError: continue
    if at[2] != socket.PACKET_OUTGOING or frame[23:24] != b"\\x11" or len(frame) > 1500: continue
    frame = frame[:40] + bytes(2) + frame[42:] # no checksum: the kernel has not completed it
    if frame in kept: continue
    kept.append(frame)
    if len(kept) > 200: kept.pop(random.randrange(200))
    if random.random() < 0.2: sent += s.send(random.choice(kept)) > 0
print(sent)"""
# Arguments: a host, one for which this host passes itself off, and the number of a queue pair.
# Sends requests and answers for it and its neighbour, with any PSN, as fast as the kernel takes
# them.
FLOOD = """import os, random, select, socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
to, as_if = map(socket.inet_aton, sys.argv[1:3])
qpn = int(sys.argv[3])
def packet():
    opcode = random.choice([0x00, 0x04, 0x06, 0x0a, 0x0b, 0x0c, 0x10, 0x11, 0x12, 0x13, 0x14,
                            0xc0, 0xc1, 0xc2])
    body = struct.pack("!BBHII", opcode, 0x40, 0xffff, qpn ^ random.choice([0, 0, 1]),
                       random.getrandbits(1) << 31 | random.getrandbits(24))
    body += os.urandom(4 * random.randrange(256))
    return (struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(body), 0, 0, 64, 17, 0, as_if, to) +
            struct.pack("!HHHH", 0x7001, 0x7000 + (qpn >> 14), 8 + len(body), 0) + body)
packets, sent = [packet() for _ in range(2000)], 0
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for p in random.sample(packets, 1000):
        try: sent += s.sendto(p, (sys.argv[1], 0)) > 0
        except OSError: pass
print(sent)"""
# Arguments: a capture that grows, and a host. Sends the packets that the host has sent so far,
# again and again, as that host.
REPLAY_FILE = """import os, select, socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
sent, source = 0, socket.inet_aton(sys.argv[2])
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    try:
        with open(sys.argv[1], "rb") as file: data = file.read()
    except FileNotFoundError: continue
    at = 24
    while at + 16 <= len(data) and not select.select([sys.stdin], [], [], 0)[0]:
        size = struct.unpack("<I", data[at + 8:at + 12])[0]
        packet, at = data[at + 16:at + 16 + size], at + 16 + size
        if len(packet) < size or packet[:1] != b"\\x45" or packet[12:16] != source: continue
        try: sent += s.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0)) > 0
        except OSError: pass
print(sent)"""
# Captures the UDP packets that this host sends, and sends them again, changed: a byte differs, or
# the packet claims to be a request in clear text, from another port.
FORGE = """import os, random, select, socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("eth0", 3))
s.settimeout(0.2)
own, sent = set(), 0
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    try: frame, at = s.recvfrom(66000)
    except TimeoutError: continue
    if at[2] != socket.PACKET_OUTGOING or frame[23:24] != b"\\x11" or len(frame) > 1500: continue
    if frame in own or random.random() > 0.3: continue
    new = bytearray(frame)
    new[40:42] = bytes(2) # no checksum
    if random.random() < 0.5:
        new[random.randrange(42, len(new))] ^= 1 << random.randrange(8)
    else:
        new[34:36] = struct.pack("!H", 4791)
        new[42] = random.choice([0x04, 0x0a, 0x0c, 0x11])
        new[51:54] = os.urandom(3)
    own = {bytes(new)}
    sent += s.send(new) > 0
print(sent)"""
# Arguments: none. Prints the opcodes of the UDP packets to softnic's ports that this host sends,
# after a line of input.
WATCH = """import select, socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
s.bind(("eth0", 3))
seen = set()
print("ready", flush=True)
while True:
    ready = select.select([s, sys.stdin], [], [])[0]
    if s in ready:
        frame, at = s.recvfrom(66000)
        port = int.from_bytes(frame[36:38], "big")
        if at[2] == socket.PACKET_OUTGOING and frame[23] == 17 and 0x7000 < port < 0x7400:
            seen.add(frame[42])
    elif sys.stdin in ready: break
print(*sorted(seen))"""
CLEAR, SEALED = "encrypt=0", "encrypt=2"
READ_REQUEST, AGREEMENT, SEALED_PACKET = 0x0c, 0xc0, 0xc1


# Wireshark's complaints. The first fields tell which packet has which complaint.
COMPLAINTS = ("_ws.malformed or _ws.expert.severity == error or ip.checksum.status == bad or "
              "udp.checksum.status == bad or not infiniband")
COMPLAINT_FIELDS = ("frame.number", "frame.protocols", "infiniband.bth.opcode", "_ws.malformed",
                    "_ws.expert.severity", "_ws.expert.message", "ip.checksum.status",
                    "udp.checksum", "udp.checksum.status", "udp.payload")


def tshark(file, condition, *fields):
    """Lines of the packets in a capture that fulfil a condition."""
    show = ["-T", "fields"] if fields else []
    show += [word for field in fields for word in ("-e", field)]
    done = subprocess.run(["tshark", "-r", file, "-o", "ip.check_checksum:TRUE", "-o",
                          "udp.check_checksum:TRUE", "-d", "udp.port==28672-29695,infiniband",
                          "-Y", condition, *show], capture_output=True, text=True, check=True,
                          timeout=PATIENCE)
    return done.stdout.splitlines()


def command(host, *words, **options):
    return NET.on(host, *words, LD_PRELOAD=SOFTNIC, **options)


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        NET.up(3, cls.addClassCleanup)

    def start(self, *words):
        child = subprocess.Popen(words, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.stdin.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "ready\n")
        return child

    def attack(self, host, script, *words):
        return self.start(*NET.on(host), sys.executable, "-c", script,
                          *words)

    def end_attack(self, attacker):
        """Expect that an attacker has lived until now, and has sent packets."""
        said = attacker.communicate("\n", PATIENCE)[0]
        self.assertEqual(attacker.returncode, 0)
        self.assertGreater(int(said), 0)

    def opcodes(self, options, peer_options=None):
        """Return the opcodes that a connection shows to a listener on the network."""
        watch = self.attack(SECOND, WATCH)
        self.pair("rc", faults=options, peer_faults=peer_options)
        said = watch.communicate("\n", PATIENCE)[0]
        self.assertEqual(watch.returncode, 0)
        return set(map(int, said.split()))

    def pair(self, transport, rounds=1, address="10.77.0.1", faults="", peer_faults=None,
             recorder=(), attack=None, watch=None):
        """Return the number of packets that the server refused as not properly encrypted.
        @recorder: words before the client. @attack: called with the number of the server's queue
        pair before the first round. @watch: called with the server's process ID at times."""
        global PORT
        PORT += 1
        server = self.start(*command(FIRST, PROGRAM, "serve", str(PORT),
                                    *(["wait"] if attack else []),
                                    WEIR_SOFTNIC=peer_faults or faults))
        client = subprocess.Popen(command(SECOND, *recorder, PROGRAM, transport, address, str(PORT),
                                          str(rounds), WEIR_SOFTNIC=faults),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        met = server.stdout.readline().split()
        if attack and met:
            attack(int(met[1]))
            server.stdin.write("\n")
            server.stdin.flush()
        while watch and client.poll() is None:
            watch(server.pid)
            time.sleep(0.05)
        out, err = client.communicate(timeout=PATIENCE)
        done = subprocess.CompletedProcess(client.args, client.returncode, out, err)
        self.assertEqual((done.returncode, done.stdout), (0, "right\n"), done.stderr)
        if transport in ("kill", "idle"):
            return 0
        server.stdin.close()
        said = server.stdout.read()  # communicate() would lose what readline() has read ahead
        self.assertEqual(server.wait(PATIENCE), 0)
        return int(said.split()[1])

    def test_reliable_connections_move_the_right_bytes(self):
        self.pair("rc", 2)

    def test_unreliable_connections_move_the_right_bytes(self):
        self.pair("uc")

    def test_datagrams_arrive_and_are_answered_by_their_header(self):
        self.pair("ud")

    def test_ipv6_carries_all_transports(self):
        for transport in ("rc", "uc", "ud"):
            self.pair(transport, address="fd77:6569:7200::1")

    def test_a_bad_network_changes_no_byte(self):
        self.pair("rc", 3, faults="loss=1,duplicate=1,reorder=5,corrupt=0.5,seed=7")

    def test_a_packet_that_nothing_overtakes_is_late_and_not_lost(self):
        self.pair("ud", faults="reorder=100")

    def test_memory_that_is_unmapped_is_an_error(self):
        self.pair("unmapped")
        self.pair("unmapped_here")

    def test_a_killed_peer_ends_a_connection_by_its_silence(self):
        self.pair("kill")

    def test_encrypted_connections_move_the_right_bytes(self):
        self.pair("rc", 2, faults=SEALED)
        self.pair("uc", faults=SEALED)
        self.pair("rc", address="fd77:6569:7200::1", faults=SEALED)
        self.pair("unmapped", faults=SEALED)
        self.pair("kill", faults=SEALED)

    def test_a_bad_network_changes_no_byte_of_encrypted_packets(self):
        self.pair("rc", 3, faults="loss=1,duplicate=1,reorder=5,corrupt=0.5,seed=7," + SEALED)

    def test_a_listener_sees_no_encrypted_request(self):
        self.assertEqual(self.opcodes(SEALED), {AGREEMENT, SEALED_PACKET})
        self.assertEqual(self.opcodes(SEALED, "encrypt=1"), {AGREEMENT, SEALED_PACKET})
        # The end that does not ask may begin in clear text, until the other's offer arrives.
        self.assertIn(SEALED_PACKET, self.opcodes("encrypt=1", SEALED))

    def test_either_end_can_leave_encryption_off(self):
        for options in (SEALED, CLEAR), (CLEAR, SEALED), ("encrypt=1", "encrypt=1"):
            opcodes = self.opcodes(*options)
            self.assertIn(READ_REQUEST, opcodes)
            self.assertNotIn(SEALED_PACKET, opcodes)
        self.assertNotIn(AGREEMENT, opcodes)

    def test_a_killed_peer_is_missed_by_one_that_only_receives(self):
        self.pair("idle")
        self.pair("idle", faults=SEALED)

    def test_packets_may_be_late(self):
        self.pair("rc", faults="packet_delay_us=2000,loss=0.5,reorder=5")

    @unittest.skipUnless(shutil.which("tshark"), "no tshark")
    def test_tshark_decodes_what_is_recorded(self):
        global PORT
        for address in "10.77.0.1", "fd77:6569:7200::1":
            PORT += 1
            file = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "pcap")
            self.start(*NET.on(FIRST), WEIR, "run", "-q", "--", PROGRAM,
                       "serve", str(PORT))
            done = subprocess.run([*NET.on(SECOND), WEIR, "run", "-q",
                                   "--pcap", file, "--", PROGRAM, "rc", address, str(PORT)],
                                  capture_output=True, text=True, check=False, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stdout), (0, "right\n"), done.stderr)
            self.assertEqual(tshark(file, COMPLAINTS, *COMPLAINT_FIELDS), [], COMPLAINT_FIELDS)
            # Opcodes: a write's first packet, a read and its last response, a send with immediate,
            # an acknowledgement, an atomic's answer, and a fetch-and-add
            for opcode in 0x06, 0x0c, 0x0f, 0x05, 0x11, 0x12, 0x14:
                self.assertTrue(tshark(file, f"infiniband.bth.opcode == {opcode}"), opcode)

    def test_a_rogue_sender_changes_nothing(self):
        rogue = self.attack(THIRD, ROGUE, "10.77.0.1")
        self.pair("rc", 4)
        self.pair("ud")
        self.pair("rc", 4, faults=SEALED)
        self.end_attack(rogue)

    def test_replayed_packets_change_nothing(self):
        replay = self.attack(SECOND, REPLAY)
        self.pair("rc", 4)
        self.end_attack(replay)
        replay = self.attack(SECOND, REPLAY)
        self.assertGreater(self.pair("rc", 4, faults=SEALED), 0)
        self.end_attack(replay)

    def usage(self, rounds, faults, recorder=(), attack=None):
        """Return the most KiB of memory and the most descriptors of a server in @rounds, and the
        number of packets that it refused as not properly encrypted."""
        most = [0, 0]

        def watch(pid):
            try:
                with open(f"/proc/{pid}/status", encoding="ascii") as status:
                    peak = re.search(r"VmHWM:\s+(\d+)", status.read())
                most[0] = int(peak.group(1)) if peak else most[0]
                most[1] = max(most[1], len(os.listdir(f"/proc/{pid}/fd")))
            except FileNotFoundError:
                pass

        refused = self.pair("rc", rounds, faults=faults, recorder=recorder, attack=attack,
                            watch=watch)
        return *most, refused

    def attacked(self, faults, script, *words, recorder=()):
        """Expect that an attacker costs the server neither memory nor descriptors."""
        attackers = []

        def attack(qpn):
            attackers.append(self.attack(THIRD, script, *words, str(qpn)))

        before = self.usage(ROUNDS, faults)
        after = self.usage(ROUNDS, faults, recorder, attack)
        self.end_attack(attackers.pop())
        self.assertLess(after[0], before[0] + MORE_KIB)
        self.assertLessEqual(after[1], before[1] + MORE_FDS)
        self.assertEqual(after[2] > 0, faults == SEALED)

    @unittest.skipIf(IS_SANITIZED, "a sanitizer costs memory, and loses to line rate")
    def test_packets_at_line_rate_change_nothing_and_cost_little(self):
        """Those of the peer's address need the key of the connection."""
        self.attacked(CLEAR, FLOOD, "10.77.0.1", "10.77.0.3")
        self.attacked(SEALED, FLOOD, "10.77.0.1", "10.77.0.2")

    @unittest.skipIf(IS_SANITIZED, "a sanitizer costs memory, and loses to line rate")
    def test_a_replayed_capture_changes_nothing_and_costs_little(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        for faults in CLEAR, SEALED:
            file = os.path.join(folder, faults)
            self.attacked(faults, REPLAY_FILE, file, "10.77.0.2",
                          recorder=(WEIR, "run", "-q", "--pcap", file, "--"))

    def test_forged_packets_change_nothing_of_an_encrypted_connection(self):
        forge = self.attack(SECOND, FORGE)
        self.assertGreater(self.pair("rc", 4, faults=SEALED), 0)
        self.assertGreater(self.pair("uc", 10, faults=SEALED), 0)
        self.end_attack(forge)


if __name__ == "__main__":
    unittest.main(verbosity=2)
