#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Connect to a donor by a second implementation of the handshake: docs/reference/protocol.md alone.

second_handshake_test.py DONOR: the program tests/support/donor_program.c.
"""
import hashlib
import hmac
import os
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
KEY = b"0123456789abcdef0123456789abcdef"
MAGIC, VERSION = 0x72696577, 3
HELLO, CHALLENGE, PROOF, WELCOME, REFUSAL = range(1, 6)
MEMORY, QUOTA, CREDITS = 16 << 20, 4 << 20, 4
CONTROL_CALL, CONTROL_REPLY, DONOR_INFO = 4, 5, 6
EKEYREJECTED = 129


def message(kind, body):
    return struct.pack("<IHBB", MAGIC, VERSION, kind, 8 + len(body)) + body


def mac(label, *pieces):
    return hmac.new(KEY, b"".join((label, *pieces)), hashlib.sha256).digest()


class Client:
    def __init__(self, port, version=VERSION):
        self.port = port
        info = AddrInfo(dst=HOST, dst_service=port, port_space=RDMA_PS_TCP)
        cap = QPCap(max_send_wr=4, max_recv_wr=2 + CREDITS, max_send_sge=1, max_recv_sge=1)
        self.cm = CMID(creator=info, qp_init_attr=QPInitAttr(cap=cap))
        self.buffers = [self.cm.reg_msgs(n) for n in [256] * 2 + [16384] * CREDITS]
        for buffer in self.buffers:
            self.cm.post_recv(buffer)
        key_id = hashlib.sha256(b"weir-1 key id\0" + KEY).digest()[:8]
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
        """Proves the key for the service at @port. Returns the donor's last message."""
        (gid, qpn), peer = self.ends()
        service = struct.pack("<IHH", MAGIC, port, 0)
        nonce = os.urandom(32)
        hello = message(HELLO, struct.pack("<32s16sIHHQ16xQ", nonce, gid, qpn, 0, CREDITS, 0, 0))
        self.send(hello)
        challenge = self.receive()
        assert challenge == message(CHALLENGE, challenge[8:]) and len(challenge) == 64
        assert struct.unpack_from("<16sI", challenge, 40) == peer, "the connection is relayed"
        self.send(message(PROOF, mac(b"weir-1 client\0", service, hello, challenge)))
        answer = self.receive()
        if answer[6] == WELCOME:
            proof = mac(b"weir-1 donor\0", service, hello, challenge, answer[:-32])
            assert hmac.compare_digest(answer[-32:], proof), "the donor does not know the key"
        return answer


class SecondHandshake(unittest.TestCase):
    def setUp(self):
        with tempfile.NamedTemporaryFile() as key:
            key.write(KEY)
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
        client = Client(str(self.port))
        welcome = client.prove(self.port)
        self.assertEqual(welcome, message(WELCOME, welcome[8:]))
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

    def test_version_2_is_rejected(self):
        with self.assertRaises(PyverbsRDMAError):
            Client(str(self.port), version=2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
