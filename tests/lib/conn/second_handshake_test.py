#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Connect to a donor by a second implementation of the handshake: docs/reference/protocol.md alone.

second_handshake_test.py DONOR: the program tests/support/donor_program.c.
"""
import hashlib
import hmac
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    from pyverbs.cm_enums import RDMA_PS_TCP
    from pyverbs.cmid import CMID, AddrInfo, ConnParam
    from pyverbs.enums import IBV_QP_AV, IBV_QP_DEST_QPN
    from pyverbs.pyverbs_error import PyverbsRDMAError
    from pyverbs.qp import QPCap, QPInitAttr
except ImportError as missing:
    print(f"skipped: {missing}; install python3-pyverbs")
    sys.exit(77)

DONOR = sys.argv.pop(1)
HOST = os.environ.get("WEIR_TEST_ADDRESS") or "127.0.0.1"
# Only one newline ends the file: the one at the end of the key belongs to it.
KEY = b"0123456789abcdef\ndono\r\n0123456789abcdef\n"
KEY_FILE = KEY + b"\ndonor " + b"0a" * 32 + b"\ndonor " + b"0B" * 32 + b"\n"
MAGIC, VERSION = 0x72696577, 4
HELLO, CHALLENGE, PROOF, WELCOME, REFUSAL = range(1, 6)
MEMORY, QUOTA, CREDITS = 16 << 20, 4 << 20, 4
CONTROL_CALL, CONTROL_REPLY, DONOR_INFO = 4, 5, 6
EKEYREJECTED = 129


def key_of(file):
    """The key in a key's file, which may name donors."""
    file = file.removesuffix(b"\n")
    while re.search(rb"\ndonor [0-9a-fA-F]{64}\Z", file):
        file = file[:-71]
    return file


def message(kind, body):
    return struct.pack("<IHBB", MAGIC, VERSION, kind, 8 + len(body)) + body


def sha256(data):
    return hashlib.sha256(data).digest()


def hkdf(key, data, count):
    temp, out = hmac.digest(key, data, "sha256"), [b""]
    for i in range(count):
        out.append(hmac.digest(temp, out[-1] + bytes([i + 1]), "sha256"))
    return out[1:]


P = 2**255 - 19


def x25519(secret, u=9):
    """The Montgomery ladder of RFC 7748."""
    k = int.from_bytes(secret, "little") & ~7 & ~(1 << 255) | 1 << 254
    x2, z2, x3, z3, swapped = 1, 0, u, 1, 0
    for t in reversed(range(255)):
        bit = k >> t & 1
        if swapped != bit:
            x2, z2, x3, z3 = x3, z3, x2, z2
        swapped = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        da, cb, aa, bb = d * a % P, c * b % P, a * a % P, b * b % P
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % P, u * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
    if swapped:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


def dh(secret, public):
    return x25519(secret, int.from_bytes(public, "little") & ~(1 << 255))


def chacha20(key, counter, nonce):
    state = struct.unpack("<16I", b"expand 32-byte k" + key + struct.pack("<I", counter) + nonce)
    x = list(state)
    columns, diagonals = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)], \
        [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
    for _ in range(10):
        for a, b, c, d in columns + diagonals:
            for at, add, to, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[at] = x[at] + x[add] & 0xffffffff
                x[to] ^= x[at]
                x[to] = (x[to] << bits | x[to] >> 32 - bits) & 0xffffffff
    return struct.pack("<16I", *((a + b) & 0xffffffff for a, b in zip(x, state)))


def aead(key, number, ad, data, opens):
    """ChaCha20-Poly1305 of RFC 8439, with Noise's nonce."""
    nonce = struct.pack("<4xQ", number)
    text = data[:-16] if opens else data
    stream = b"".join(chacha20(key, 1 + i, nonce) for i in range(len(text) // 64 + 1))
    turned = bytes(a ^ b for a, b in zip(text, stream))
    covered = [ad, text if opens else turned]
    padded = b"".join(piece + bytes(-len(piece) % 16) for piece in covered)
    padded += struct.pack("<QQ", *map(len, covered))
    r, s = struct.unpack("<16s16s", chacha20(key, 0, nonce)[:32])
    r = int.from_bytes(r, "little") & 0x0ffffffc0ffffffc0ffffffc0fffffff
    tag = 0
    for i in range(0, len(padded), 16):
        tag = (tag + int.from_bytes(padded[i:i + 16] + b"\1", "little")) * r % (2**130 - 5)
    tag = (tag + int.from_bytes(s, "little") & (1 << 128) - 1).to_bytes(16, "little")
    assert not opens or hmac.compare_digest(tag, data[-16:]), "the donor does not know the key"
    return turned if opens else turned + tag


class Noise:
    """The initiator's end of NXpsk2."""

    def __init__(self, prologue):
        self.h = self.ck = sha256(b"Noise_NXpsk2_25519_ChaChaPoly_SHA256")
        self.mix_hash(prologue)
        self.secret = os.urandom(32)

    def mix_hash(self, data):
        self.h = sha256(self.h + data)

    def mix_key(self, data):
        self.ck, self.k = hkdf(self.ck, data, 2)
        self.n = 0

    def ephemeral(self, public):
        self.mix_hash(public)
        self.mix_key(public)

    def payload(self, data, opens):
        out = aead(self.k, self.n, self.h, data, opens)
        self.mix_hash(data if opens else out)
        self.n += 1
        return out

    def hello(self, payload):
        public = x25519(self.secret)
        self.ephemeral(public)
        return public + self.payload(payload, False)

    def challenge(self, message, psk):
        """Returns the donor's public key and the payload."""
        self.ephemeral(message[:32])
        self.mix_key(dh(self.secret, message[:32]))
        identity = self.payload(message[32:80], True)
        self.mix_key(dh(self.secret, identity))
        self.ck, temp, self.k = hkdf(self.ck, psk, 3)
        self.mix_hash(temp)
        self.n = 0
        payload = self.payload(message[80:], True)
        self.sends, self.receives = hkdf(self.ck, b"", 2)
        return identity, payload


class Client:
    def __init__(self, port, version=VERSION):
        self.port = port
        info = AddrInfo(dst=HOST, dst_service=port, port_space=RDMA_PS_TCP)
        cap = QPCap(max_send_wr=4, max_recv_wr=2 + CREDITS, max_send_sge=1, max_recv_sge=1)
        self.cm = CMID(creator=info, qp_init_attr=QPInitAttr(cap=cap))
        self.buffers = [self.cm.reg_msgs(n) for n in [256] * 2 + [16384] * CREDITS]
        for buffer in self.buffers:
            self.cm.post_recv(buffer)
        key_id = hashlib.sha256(b"weir-1 key id\0" + key_of(KEY_FILE)).digest()[:8]
        request = struct.pack("<IHHQ8s", MAGIC, version, 0, 0, key_id)
        param = ConnParam(data_len=len(request))
        param.set_private_data(request)
        self.cm.connect(param)

    def send(self, data):
        buffer = self.cm.reg_msgs(len(data))
        buffer.write(data, len(data))
        self.cm.post_send(buffer)
        self.cm.get_send_comp()

    def receive(self):
        length = self.cm.get_recv_comp().byte_len
        return self.buffers.pop(0).read(length, 0)

    def ends(self):
        """GID and QPN of this end and of the other, as the verbs know them."""
        attr, _ = self.cm.query_qp(IBV_QP_AV | IBV_QP_DEST_QPN)
        route = attr.ah_attr
        ours = self.cm.context.query_gid(self.cm.port_num, route.sgid_index).gid
        return [
            (bytes.fromhex(gid.replace(":", "")), qpn)
            for gid, qpn in ((ours, self.cm.qpn), (route.dgid, attr.dest_qp_num))
        ]

    def prove(self, port):
        """Proves the key for the service at @port. Returns the donor's last message, opened."""
        (gid, qpn), peer = self.ends()
        noise = Noise(struct.pack("<IHHIHH", MAGIC, VERSION, 0, MAGIC, port, 0))
        hello = struct.pack("<16sIHHQ16xQ", gid, qpn, 0, CREDITS, 0, 0)
        self.send(message(HELLO, noise.hello(hello)))
        challenge = self.receive()
        if challenge[6] == REFUSAL:
            return challenge
        assert challenge == message(CHALLENGE, challenge[8:]) and len(challenge) == 128
        self.identity, payload = noise.challenge(
            challenge[8:], sha256(b"weir-4 psk\0" + key_of(KEY_FILE)))
        assert struct.unpack_from("<16sI", payload) == peer, "the connection is relayed"
        self.newest = struct.unpack_from("<20xI", payload)[0] >> 16
        self.send(message(PROOF, aead(noise.sends, 0, b"", b"", False)))
        answer = self.receive()
        if answer[6] == WELCOME:
            answer = answer[:8] + aead(noise.receives, 0, b"", answer[8:], True)
        return answer


class SecondHandshake(unittest.TestCase):
    def setUp(self):
        with tempfile.NamedTemporaryFile() as key:
            key.write(KEY_FILE)
            key.flush()
            self.donor = subprocess.Popen(
                [DONOR, HOST + ":0", str(MEMORY), "key=" + key.name, f"quota={QUOTA}"],
                stdout=subprocess.PIPE,
                text=True,
            )
            self.port = int(self.donor.stdout.readline().rsplit(":", 1)[1])

    def tearDown(self):
        self.donor.kill()
        self.donor.communicate()

    def test_connects_and_calls(self):
        self.assertEqual(key_of(KEY_FILE), KEY)
        client = Client(str(self.port))
        welcome = client.prove(self.port)
        self.assertEqual((welcome[6], len(welcome)), (WELCOME, 72))
        _, incarnation, quota = struct.unpack_from("<QQQ", welcome, 8)
        self.assertEqual(quota, QUOTA)
        head = struct.pack("<HHiQII", CONTROL_CALL, 0, 0, 1, 16, 0)
        client.send(head + struct.pack("<HHIQ", DONOR_INFO, 0, 0, 0))
        reply = client.receive()
        self.assertEqual(struct.unpack_from("<H2xiQ", reply), (CONTROL_REPLY, 0, 1))
        self.assertEqual(struct.unpack_from("<QQ", reply, 24), (incarnation, MEMORY))

    def test_a_proof_for_another_port_is_refused(self):
        refusal = Client(str(self.port)).prove(self.port + 1)
        self.assertEqual(refusal, message(REFUSAL, refusal[8:]))
        self.assertEqual(struct.unpack_from("<I", refusal, 8), (EKEYREJECTED,))

    def test_versions_that_the_donor_does_not_speak_are_rejected(self):
        for version in 3, VERSION + 1:
            with self.assertRaises(PyverbsRDMAError):
                Client(str(self.port), version=version)
        client = Client(str(self.port))
        self.assertEqual(client.prove(self.port)[6], WELCOME)
        self.assertEqual(client.newest, VERSION)


if __name__ == "__main__":
    unittest.main(verbosity=2)
