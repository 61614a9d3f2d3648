# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The memory that a mount shares with a process, from the side of a process with bad intentions.

Speaks the protocol of wire/files.h itself.
"""
import errno
import fcntl
import mmap
import os
import random
import socket
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from world import FsTest, main, read, scaled, until, write  # noqa: E402

HELLO = struct.Struct("<IIQ32s")
ATTACHED = struct.Struct("<IIQ")
ASK = struct.Struct("<IIQQII")
SLOT = struct.Struct("<IIIIQIiI")
SLOTS, SLOT_SIZE, SLOT_BYTES = 16, 64, 128 << 10
POSTED_AT, SLOTS_AT, GRANTS_AT, DATA_AT = 64, 128, 128 + SLOTS * SLOT_SIZE, 4096
CPU_AT = 4
FREE, POSTED, DONE = 0, 2, 5
READ, WRITE = 0, 1
NO_CPU = (1 << 32) - 1
GRANTS = 64
SLOW_S = 60


def number(direction, nr, size):
    return direction << 30 | size << 16 | ord("w") << 8 | nr


IOCTL_HELLO = number(2, 0x70, HELLO.size)
IOCTL_ASK = number(3, 0x71, ASK.size)
IOCTL_WAKE = number(0, 0x73, 0)


def connect(fd, secret=None):
    """The answer to a hello, and the descriptors that came along."""
    hello = HELLO.unpack(fcntl.ioctl(fd, IOCTL_HELLO, bytes(HELLO.size)))
    version, _, true_secret, name = hello
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.connect(b"\0" + name.rstrip(b"\0"))
        peer.send(HELLO.pack(version, 0, true_secret if secret is None else secret, name))
        answer, fds, _, _ = socket.recv_fds(peer, ATTACHED.size, 1)
    return answer, fds


class Lane:
    def __init__(self, fd):
        answer, fds = connect(fd)
        _, self.number, self.secret = ATTACHED.unpack(answer)
        self.memory = mmap.mmap(fds[0], DATA_AT + SLOTS * SLOT_BYTES)
        os.close(fds[0])

    def ask(self, fd, secret=None):
        """The number of the file's grant, and its closes."""
        asked = ASK.pack(self.number, 0, self.secret if secret is None else secret, 0, 0, 0)
        _, grant, _, _, closes, _ = ASK.unpack(fcntl.ioctl(fd, IOCTL_ASK, asked))
        return grant, closes

    def closes(self, grant):
        return struct.unpack_from("<I", self.memory, GRANTS_AT + 16 * grant)[0]

    def post(self, fd, nr, *fields, cpu=NO_CPU):
        SLOT.pack_into(self.memory, SLOTS_AT + nr * SLOT_SIZE, POSTED, *fields, 0, cpu)
        self.wake(fd, 1 << nr)

    def wake(self, fd, posted):
        struct.pack_into("<I", self.memory, POSTED_AT, posted)
        fcntl.ioctl(fd, IOCTL_WAKE)

    def result(self, nr):
        at = SLOTS_AT + nr * SLOT_SIZE
        assert until(lambda: struct.unpack_from("<I", self.memory, at)[0] == DONE)
        struct.pack_into("<I", self.memory, at, FREE)
        return SLOT.unpack_from(self.memory, at)[-2]

    def do(self, fd, *fields, nr=3, cpu=NO_CPU):
        self.post(fd, nr, *fields, cpu=cpu)
        return self.result(nr)

    def pollers_cpu(self):
        return struct.unpack_from("<I", self.memory, CPU_AT)[0]

    def data(self, nr=3):
        return DATA_AT + nr * SLOT_BYTES


class LaneTest(FsTest):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.dir, "file")
        self.before = os.urandom(300000)
        write(self.path, self.before)
        self.fd = os.open(self.path, os.O_RDWR)
        self.lane = Lane(self.fd)
        self.grant, self.closes = self.lane.ask(self.fd)

    def tearDown(self):
        self.lane.memory.close()
        os.close(self.fd)
        super().tearDown()

    def test_bytes_are_read_and_written(self):
        lane = self.lane
        self.assertEqual(lane.do(self.fd, READ, self.grant, self.closes, 1000, 5000), 5000)
        self.assertEqual(lane.memory[lane.data():lane.data() + 5000], self.before[1000:6000])
        lane.memory[lane.data():lane.data() + 10] = b"0123456789"
        self.assertEqual(lane.do(self.fd, WRITE, self.grant, self.closes, 7, 10), 10)
        self.assertEqual(read(self.path), self.before[:7] + b"0123456789" + self.before[17:])

    @unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "needs two processors")
    def test_the_mount_leaves_the_processor_to_the_program(self):
        tasks = f"/proc/{self.world.clients[0].process.pid}/task"

        def is_excluded(cpu):
            return any(cpu not in os.sched_getaffinity(int(task)) for task in os.listdir(tasks))

        def leaves(cpu):
            self.lane.do(self.fd, READ, self.grant, self.closes, 0, 100, cpu=cpu)
            return is_excluded(cpu)
        for _ in range(3):
            self.assertTrue(until(lambda: leaves(self.lane.pollers_cpu())))
        for cpu in (NO_CPU, NO_CPU - 1, 1 << 20):
            self.lane.do(self.fd, READ, self.grant, self.closes, 0, 100, cpu=cpu)

    def test_a_slow_descriptor_from_a_stranger_holds_up_no_process(self):
        hello = HELLO.unpack(fcntl.ioctl(self.fd, IOCTL_HELLO, bytes(HELLO.size)))
        with socket.create_server(("127.0.0.1", 0)) as server, \
                socket.create_connection(server.getsockname()) as slow, \
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
            slow.setblocking(False)
            with self.assertRaises(BlockingIOError):
                while True:
                    slow.send(bytes(1 << 16))
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, SLOW_S))
            stranger.connect(b"\0" + hello[3].rstrip(b"\0"))
            try:
                socket.send_fds(stranger, [b"x"], [slow.fileno()])
            except OSError:  # Linux refuses from 6.16 on
                off = struct.pack("ii", 0, 0)
                slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, off)
            slow.close()
            start = time.monotonic()
            _, fds = connect(self.fd)
            self.assertLess(time.monotonic() - start, SLOW_S / 3)
            os.close(fds[0])

    def test_a_read_ends_at_the_end_of_the_file(self):
        for offset, length in ((299999, 1), (300000, 0), (1 << 40, 0)):
            self.assertEqual(self.lane.do(self.fd, READ, self.grant, self.closes, offset, 4096),
                             length)

    def test_growth_is_left_to_the_kernel(self):
        for offset in (299000, 300000, 1 << 40):
            self.assertEqual(self.lane.do(self.fd, WRITE, self.grant, self.closes, offset, 4096),
                             -errno.EAGAIN)
        self.assertEqual(read(self.path), self.before)

    def test_requests_that_no_process_should_make(self):
        grant, closes = self.grant, self.closes
        for fields in ((2, grant, closes, 0, 100), (1 << 31, grant, closes, 0, 100),
                       (WRITE, GRANTS, closes, 0, 100), (WRITE, (1 << 32) - 1, closes, 0, 100),
                       (WRITE, grant + 1, closes, 0, 100), (WRITE, grant, closes + 1, 0, 100),
                       (WRITE, grant, closes - 1, 0, 100), (WRITE, grant, closes, 0, 0),
                       (READ, grant, closes, 0, SLOT_BYTES + 1),
                       (WRITE, grant, closes, 0, (1 << 32) - 1),
                       (WRITE, grant, closes, (1 << 64) - 50, 100),
                       (READ, grant, closes, (1 << 63) - 50, 100)):
            self.assertEqual(self.lane.do(self.fd, *fields), -errno.ESTALE, fields)
        self.assertEqual(read(self.path), self.before)

    def test_a_grant_allows_no_more_than_the_descriptor(self):
        for flags, op in ((os.O_RDONLY, WRITE), (os.O_WRONLY, READ)):
            fd = os.open(self.path, flags)
            lane = Lane(fd)  # in place of the other: this process has one
            grant, closes = lane.ask(fd)
            self.assertEqual(lane.do(fd, op, grant, closes, 0, 100), -errno.ESTALE)
            self.assertEqual(lane.do(fd, 1 - op, grant, closes, 0, 100), 100)
            lane.memory.close()
            os.close(fd)
            write(self.path, self.before)

    def test_without_the_secret_there_is_no_lane(self):
        answer, fds = connect(self.fd, secret=12345)
        self.assertEqual((answer, fds), (b"", []))

    def test_another_lane_gets_no_grant(self):
        with self.assertRaises(OSError) as caught:
            self.lane.ask(self.fd, secret=self.lane.secret ^ 1)
        self.assertEqual(caught.exception.errno, errno.EACCES)

    def test_a_closed_file_is_served_no_more(self):
        other = os.path.join(self.dir, "other")
        write(other, self.before)
        fd = os.open(other, os.O_RDWR)
        grant, closes = self.lane.ask(fd)
        self.assertEqual(self.lane.do(self.fd, READ, grant, closes, 0, 100), 100)
        os.close(fd)
        self.assertEqual(self.lane.do(self.fd, READ, grant, closes, 0, 100), -errno.ESTALE)
        # The last release comes a little later than the close.
        self.assertTrue(until(lambda: self.lane.do(
            self.fd, WRITE, grant, self.lane.closes(grant), 0, 100) == -errno.EAGAIN))
        self.assertEqual(read(other)[100:], self.before[100:])

    def test_a_grant_is_taken_for_another_file_in_the_end(self):
        paths = [os.path.join(self.dir, f"many{i}") for i in range(GRANTS + 3)]
        fds = []
        for path in paths:
            write(path, path.encode() + bytes(1000))
            fds.append(os.open(path, os.O_RDWR))
        grants = [self.lane.ask(fd) for fd in fds]
        for path, (grant, closes) in zip(paths, grants):
            got = self.lane.do(self.fd, READ, grant, closes, 0, 100)
            if got == 100:
                at = self.lane.data()
                self.assertTrue(self.lane.memory[at:at + 100].startswith(path.encode()))
            else:
                self.assertEqual(got, -errno.ESTALE)
        for fd in fds:
            os.close(fd)

    def test_scribbled_memory_harms_nobody_else(self):
        other = os.path.join(self.dir, "other")
        write(other, self.before)
        held = os.open(other, os.O_RDWR)
        rng = random.Random(1)
        for _ in range(scaled(300)):
            for _ in range(rng.randrange(1, 100)):
                at = rng.randrange(DATA_AT // 4) * 4
                value = rng.choice([0, 1, 2, 3, 4, 5, 63, 64, self.grant, self.closes, 4096,
                                    SLOT_BYTES, rng.randrange(1 << 32)])
                struct.pack_into("<I", self.lane.memory, at, value)
            self.lane.wake(self.fd, rng.randrange(1 << 32))
        self.assertEqual(os.pread(held, len(self.before), 0), self.before)
        os.close(held)
        self.assertEqual(os.stat(self.path).st_size, len(self.before))
        lane = Lane(self.fd)
        grant, closes = lane.ask(self.fd)
        self.assertEqual(lane.do(self.fd, READ, grant, closes, 0, 100), 100)
        lane.memory.close()


if __name__ == "__main__":
    main()
