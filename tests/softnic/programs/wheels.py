#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run unmodified wheels of PyPI on softnic, and compare the bytes that they move.

wheels.py WEIR NAME...: the command, and names of ENDS. All wheels are installed into one
environment. Two processes run there under `weir run`, with no other setting: an owner of memory,
and a user that reaches this memory. Without a network a test is skipped, and pip's last words say
why.

wheels.py end NAME ROLE: one of the two processes. Each prints a line, and reads the other's. The
user then checks what it moved, and ends. The end of its input ends the owner, which checks too.
"""
import ctypes
import json
import mmap
import os
import random
import subprocess
import sys
import tempfile
import types
import unittest

PATIENCE_S = 100
SIZE = 1 << 20
PATTERN = random.Random(1).randbytes(SIZE)


class Memory:
    def __init__(self, content=b""):
        self.map = mmap.mmap(-1, SIZE)
        self.map[:len(content)] = content
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))

    def check(self):
        assert self.map[:] == PATTERN, "wrong bytes"


def exchange(mine):
    print(json.dumps(mine), flush=True)
    return json.loads(sys.stdin.readline())


def wait_for_user():
    assert not sys.stdin.read()


def end_of_ibverbs(is_owner):
    import ibverbs as ib
    memory, other = Memory(b"" if is_owner else PATTERN), Memory()
    context = ib.get_device_list()[0].open()
    pd, cq = context.alloc_pd(), context.create_cq(4)
    flags = ib.AccessFlags
    rights = flags.LOCAL_WRITE | flags.REMOTE_WRITE | flags.REMOTE_READ
    region, back = pd.reg_mr(memory.address, SIZE, rights), pd.reg_mr(other.address, SIZE, rights)
    qp = pd.create_qp(ib.QPInitAttr(send_cq=cq, recv_cq=cq, qp_type=ib.QPType.RC))
    mine = ib.local_qp_info(qp, context.query_port(1), context.query_gid(1, 0), port=1, psn=0)
    yours = exchange([mine.to_bytes().hex(), memory.address, region.rkey])
    ib.connect_rc(qp, ib.QPInfo.from_bytes(bytes.fromhex(yours[0])), port=1, sgid_index=0,
                  access=rights)
    if is_owner:
        wait_for_user()
        memory.check()
        return
    for opcode, local in (ib.WROpcode.RDMA_WRITE, region), (ib.WROpcode.RDMA_READ, back):
        qp.post_send(ib.SendWR(wr_id=1, sg_list=[ib.SGE(local, SIZE)], opcode=opcode,
                               send_flags=ib.SendFlags.SIGNALED, remote_addr=yours[1],
                               rkey=yours[2]))
        done = []
        while not done:
            done = list(cq.poll(1))
        done[0].raise_for_status()
    other.check()


def end_of_peercache(is_owner):
    from peercache.transport import RdmaTransport, ReadOp
    memory = Memory(PATTERN if is_owner else b"")
    transport = RdmaTransport(types.SimpleNamespace(
        device_name="softnic0", ib_port=1, gid_index=0, local_hostname="127.0.0.1", rdma_port=0))
    region = transport.register_mr(memory.address, SIZE)
    endpoint, address, key = exchange([transport.local_endpoint(), memory.address, region.rkey])
    if is_owner:
        wait_for_user()
        return
    assert transport.batch_read([ReadOp(remote_endpoint=endpoint, local_addr=memory.address,
                                        remote_addr=address, rkey=key, length=SIZE)]) == [True]
    memory.check()


def end_of_mooncake(is_owner):
    from mooncake.engine import TransferEngine
    memory, back = Memory(b"" if is_owner else PATTERN), Memory()
    engine = TransferEngine()
    assert engine.initialize("127.0.0.1", "P2PHANDSHAKE", "rdma", "") == 0
    for one in memory, back:
        assert engine.register_memory(one.address, SIZE) == 0
    peer, address = exchange([f"127.0.0.1:{engine.get_rpc_port()}", memory.address])
    if is_owner:
        wait_for_user()
        memory.check()
        return
    assert engine.transfer_sync_write(peer, memory.address, address, SIZE) == 0
    assert engine.transfer_sync_read(peer, back.address, address, SIZE) == 0
    back.check()


# A package to install, and a function for both ends.
ENDS = {
    "ibverbs": ("ibverbs==2026.10.22", end_of_ibverbs),
    "peercache": ("peercache==0.8.4", end_of_peercache),
    "mooncake": ("mooncake-transfer-engine-non-cuda==0.3.13.post1", end_of_mooncake),
}


class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.bin = f"{cls.folder.name}/bin"
        subprocess.run([sys.executable, "-m", "venv", cls.folder.name], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def install(self, package):
        done = subprocess.run(
            [f"{self.bin}/pip", "install", "--quiet", "--only-binary=:all:", "--no-deps",
             "--disable-pip-version-check", "--retries=1", "--timeout=20", package],
            text=True, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            said = (done.stderr or done.stdout or "pip failed").strip().splitlines()
            self.skipTest(f"cannot install {package}, perhaps without a network: {said[-1]}")

    def run_ends(self, weir, name):
        run = [weir, "run", "-q", "--", f"{self.bin}/python", __file__, "end", name]
        ends = [subprocess.Popen([*run, role], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True)
                for role in ("owner", "user")]
        try:
            for here, there in zip(ends, ends[::-1]):
                line = next((line for line in here.stdout if line.startswith("[")), "")
                self.assertTrue(line, f"an end of {name} said nothing")
                there.stdin.write(line)
                there.stdin.flush()
            for end in ends[::-1]:
                output, _ = end.communicate(timeout=PATIENCE_S)
                self.assertEqual(end.returncode, 0, f"{end.args}\n{output}")
        finally:
            for end in ends:
                end.kill()
                end.communicate()


def add_test(weir, name):
    def test(self):
        self.install(ENDS[name][0])
        self.run_ends(weir, name)
    setattr(Wheels, f"test_{name}", test)


if __name__ == "__main__":
    if sys.argv[1] == "end":
        ENDS[sys.argv[2]][1](sys.argv[3] == "owner")
        sys.stdout.flush()
        os._exit(0)  # a wheel's threads may run on
    for wheel in sys.argv[2:]:
        add_test(os.path.abspath(sys.argv[1]), wheel)
    unittest.main(argv=sys.argv[:1])
