# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Sealed files, and a donor that reads and changes stored data."""
import concurrent.futures
import contextlib
import errno
import itertools
import mmap
import os
import signal
import struct
import subprocess
import sys
import unittest

from world import WEIR, World, environment, main, new_key, read, until, with_key, write

MARK = "trusted.weir.sealed"
SECRET = b"attack at dawn, by the old mill. "
BLOCK = 4096
OPENS_AND_CLOSES = """
import os, sys
while True:
    os.close(os.open(sys.argv[1], os.O_RDONLY))
"""


class DonorMemory:
    """A donor's memory as seen by root: the mappings with file data."""

    def __init__(self, donor):
        self.path = f"/proc/{donor.pid}"

    def mappings(self, least):
        with open(f"{self.path}/maps", encoding="ascii") as file:
            for line in file:
                places, rights = line.split()[:2]
                start, end = (int(place, 16) for place in places.split("-"))
                if rights.startswith("rw") and least <= end - start <= 64 << 20:
                    yield start, end

    def copy(self, least=1 << 20):
        """All bytes, by place. @least: bytes of a mapping that has file data"""
        copies = {}
        with open(f"{self.path}/mem", "rb", buffering=0) as memory:
            for start, end in self.mappings(least):
                memory.seek(start)
                try:
                    copies[start] = memory.read(end - start)
                except OSError:  # of a device
                    continue
        return copies

    def put(self, place, data):
        with open(f"{self.path}/mem", "r+b", buffering=0) as memory:
            memory.seek(place)
            memory.write(data)


def occurrences(text, word, start):
    """Of a word that is aligned, behind @start."""
    at = text.find(word)
    while at >= 0:
        if at % len(word) == 0:
            yield start + at
        at = text.find(word, at + 1)


def changed_pages(before, after):
    """(place, old, new) of each changed page."""
    for start, new in after.items():
        old = before.get(start, b"")
        if old == new or len(old) != len(new):
            continue
        for at in range(0, len(new), BLOCK):
            if old[at:at + BLOCK] != new[at:at + BLOCK]:
                yield start + at, old[at:at + BLOCK], new[at:at + BLOCK]


def append(path, data):
    with open(path, "ab", buffering=0) as file:
        file.write(data)


def kill(client):
    client.process.kill()
    client.process.wait()


def read_direct(path, length):
    """Reads past the kernel's pages."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    page = mmap.mmap(-1, length)
    try:
        got = os.preadv(fd, [page], 0)
        return page[:got]
    finally:
        os.close(fd)


class SealedTest(unittest.TestCase):
    def setUp(self):
        self.world = World("32M")
        self.addCleanup(self.world.destroy)
        self.key = new_key(os.path.join(self.world.dir, "seal.key"))
        self.sealing = ["--seal", self.key]

    def mount_fails(self, word, *options):
        path = os.path.join(self.world.dir, "refused")
        os.makedirs(path, exist_ok=True)
        run = subprocess.run(
            [WEIR, "mount", "--foreground", *with_key(options), self.world.address, path],
            env=environment(), capture_output=True, text=True, timeout=60)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn(word, run.stderr)

    def fails(self, number, function, *args):
        with self.assertRaises(OSError) as caught:
            function(*args)
        self.assertEqual(caught.exception.errno, number)


class Tree(SealedTest):
    def test_another_mount_reads_it_back(self):
        client = self.world.mount(*self.sealing)
        sizes = (0, 1, 100, 4095, 4096, 4097, 8192, 300000, 3 << 20)
        data = {size: os.urandom(size) for size in sizes}
        for size in sizes:
            write(client / f"file{size}", data[size])
        self.assertEqual(client.unmount(), 0)
        client = self.world.mount(*self.sealing)
        for size in sizes:
            self.assertEqual(os.stat(client / f"file{size}").st_size, size)
            self.assertEqual(read(client / f"file{size}"), data[size])

    def test_one_client_at_a_time_mounts_them(self):
        first = self.world.mount(*self.sealing)
        write(first / "file", b"x" * 5000)
        for _ in range(2):
            self.mount_fails("another client has mounted", "--timeout", "1", *self.sealing)
            append(first / "file", b"y" * 100)
        self.assertEqual(read_direct(first / "file", 8192), b"x" * 5000 + b"y" * 200)
        self.assertTrue(until(lambda: "another client has come" in first.said()))
        self.assertEqual(first.said().count("another client has come"), 1)
        self.assertEqual(first.unmount(), 0)
        self.assertEqual(read(self.world.mount(*self.sealing) / "file"), b"x" * 5000 + b"y" * 200)

    def test_they_are_not_made_beside_a_plain_mount(self):
        first = self.world.mount()
        self.mount_fails("another client has mounted", "--timeout", "1", *self.sealing)
        write(first / "plain", b"x")
        self.assertEqual(first.unmount(), 0)
        self.assertEqual(read(self.world.mount() / "plain"), b"x")

    def test_a_mount_waits_for_the_end_of_the_other(self):
        first = self.world.mount(*self.sealing)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            second = pool.submit(self.world.mount, "--timeout", "60", *self.sealing)
            self.assertTrue(until(lambda: "another client has come" in first.said()))
            self.assertEqual(first.unmount(), 0)
            write(second.result() / "file", b"x")

    def test_a_killed_client_locks_nobody_out(self):
        first = self.world.mount(*self.sealing)
        write(first / "file", b"x")
        kill(first)
        self.world.mount("--timeout", "60", *self.sealing)

    def test_a_mount_with_the_wrong_key_or_none_is_refused(self):
        client = self.world.mount(*self.sealing)
        self.mount_fails("are sealed: give the key with --seal")
        other = new_key(os.path.join(self.world.dir, "other.key"))
        self.mount_fails("another key", "--seal", other)
        self.assertEqual(client.unmount(), 0)
        self.mount_fails("are sealed: give the key with --seal")

    def test_plain_files_are_not_mixed_with_sealed_ones(self):
        client = self.world.mount()
        write(client / "plain", b"x")
        self.mount_fails("not sealed", *self.sealing)
        self.assertEqual(read(client / "plain"), b"x")

    def test_programs_cannot_reach_the_mark(self):
        client = self.world.mount(*self.sealing)
        write(client / "file", SECRET)
        os.setxattr(client.path, "user.a", b"b")
        self.fails(errno.EPERM, os.setxattr, client.path, MARK, bytes(56))
        self.fails(errno.EPERM, os.removexattr, client.path, MARK)
        self.fails(errno.ENODATA, os.getxattr, client.path, MARK)
        self.assertEqual(os.listxattr(client.path), ["user.a"])
        os.removexattr(client.path, "user.a")
        self.assertEqual(client.unmount(), 0)
        self.assertEqual(read(self.world.mount(*self.sealing) / "file"), SECRET)

    def test_the_donors_key_is_no_secret_from_the_donor(self):
        world = World("32M", "--key", self.key)
        self.addCleanup(world.destroy)
        self.world, first = world, self.world
        self.mount_fails("the donor knows", "--key", self.key, *self.sealing)
        self.world = first


class Interrupted(SealedTest):
    """Operations that fail, or whose client ends."""

    def fill(self, take):
        with self.assertRaises(OSError) as caught:
            for i in itertools.count():
                take(i)
        self.assertEqual(caught.exception.errno, errno.ENOSPC)

    def test_a_full_donor_loses_nothing(self):
        client = self.world.mount(*self.sealing)
        write(client / "file", b"x" * 4000)
        filler = os.open(client / "filler", os.O_WRONLY | os.O_CREAT)
        self.addCleanup(os.close, filler)
        self.fill(lambda i: os.pwrite(filler, bytes(1 << 20), i << 20))
        self.fill(lambda i: write(client / f"filler{i}", b"x"))
        self.fails(errno.ENOSPC, append, client / "file", b"y" * 200)
        self.assertEqual(read_direct(client / "file", 8192), b"x" * 4000)

    def after_a_kill(self, before, appended):
        """The file of a client that was killed after an append."""
        client = self.world.mount(*self.sealing)
        write(client / "file", before)
        fd = os.open(client / "file", os.O_WRONLY | os.O_APPEND)
        os.fsync(fd)
        os.write(fd, appended)
        kill(client)
        with contextlib.suppress(OSError):
            os.close(fd)
        self.client = self.world.mount("--timeout", "60", *self.sealing)
        return read(self.client / "file")

    def test_a_killed_client_loses_no_committed_byte(self):
        got = self.after_a_kill(b"x" * 100, b"y" * 100)
        self.assertEqual(got[:100], b"x" * 100)
        self.assertIn(got[100:], (b"", bytes(100), b"y" * 100))

    def test_nor_if_the_block_reaches_the_next_page_of_the_donor(self):
        got = self.after_a_kill(b"x" * 4000, b"y" * 90 + b"z" * BLOCK)
        self.assertEqual(got[:4000], b"x" * 4000)
        append(self.client / "file", b"more")
        os.truncate(self.client / "file", 1 << 20)
        self.assertEqual(len(read_direct(self.client / "file", 1 << 20)), 1 << 20)

    def cut_unheard(self, cut):
        """A donor cuts a file, but the client does not hear of it in time."""
        client = self.world.mount("--timeout", "1", *self.sealing)
        write(client / "file", b"x" * 8 * BLOCK)
        fd = os.open(client / "file", os.O_RDWR)
        self.addCleanup(os.close, fd)
        os.fsync(fd)
        self.world.stop_donor()
        self.fails(errno.EIO, cut, client / "file")
        self.world.donor.send_signal(signal.SIGCONT)
        self.assertTrue(until(lambda: os.stat(client / "file").st_size == 0))
        os.ftruncate(fd, 8 * BLOCK)
        self.assertEqual(read_direct(client / "file", 8 * BLOCK), bytes(8 * BLOCK))

    def test_a_late_truncation_leaves_holes(self):
        self.cut_unheard(lambda path: os.truncate(path, 0))

    def test_a_late_open_leaves_holes(self):
        self.cut_unheard(lambda path: os.close(os.open(path, os.O_WRONLY | os.O_TRUNC)))

    def test_truncations_beside_closes_succeed(self):
        client = self.world.mount("--timeout", "60", *self.sealing)
        write(client / "file", b"x" * 8 * BLOCK)
        for _ in range(2):
            process = subprocess.Popen([sys.executable, "-c", OPENS_AND_CLOSES, client / "file"])
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
        for _ in range(200):
            for size in (8 * BLOCK - 1, 30001, 7 * BLOCK + 1, BLOCK + 1, 100):
                os.truncate(client / "file", size)
            self.assertEqual(os.stat(client / "file").st_size, 100)
            write(client / "file", b"x" * 8 * BLOCK)
        self.assertEqual(read_direct(client / "file", 8 * BLOCK), b"x" * 8 * BLOCK)


class HostileDonor(SealedTest):
    def setUp(self):
        super().setUp()
        self.memory = DonorMemory(self.world.donor)

    def holds(self, text):
        return any(text in copy for copy in self.memory.copy().values())

    def test_it_finds_the_text_of_plain_files_only(self):
        client = self.world.mount(*self.sealing)
        write(client / "file", SECRET * 10000)
        write(client / "small", SECRET)
        self.assertFalse(self.holds(SECRET[:16]))
        plain = World("32M")
        self.addCleanup(plain.destroy)
        self.memory = DonorMemory(plain.donor)
        write(plain.mount() / "file", SECRET * 10000)
        self.assertTrue(self.holds(SECRET[:16]))

    def versions(self, client, *names, size=8 * BLOCK):
        """Writes each file twice. Returns the pages of it: (place, first, second)."""
        copies = []
        for byte in b"12":
            for name in names:
                fd = os.open(client / name, os.O_RDWR | os.O_CREAT)
                os.pwrite(fd, bytes([byte]) * size, 0)
                os.close(fd)
            copies.append(self.memory.copy())
        # Lent memory alone: a page of metadata has much in common with the page before.
        pages = [(place, old, new) for place, old, new in changed_pages(*copies)
                 if sum(a == b for a, b in zip(old, new)) < BLOCK // 8]
        self.assertGreaterEqual(len(pages), (size + BLOCK - 1) // BLOCK * len(names))
        return pages

    def put(self, pages, version):
        for page in pages:
            self.memory.put(page[0], page[version])

    def logs(self, client, word):
        self.assertTrue(until(lambda: word in client.said()), client.said())

    def test_old_blocks_are_noticed(self):
        client = self.world.mount(*self.sealing)
        pages = self.versions(client, "file")
        self.put(pages, 1)
        self.fails(errno.EIO, read_direct, client / "file", 8 * BLOCK)
        self.logs(client, "is older than one that this mount has seen there")
        self.logs(client, f"inode={os.stat(client / 'file').st_ino} ")
        self.put(pages, 2)
        self.assertEqual(read_direct(client / "file", 8 * BLOCK), b"2" * 8 * BLOCK)
        for place, _, new in pages:
            self.memory.put(place, bytes(len(new)))
        self.fails(errno.EIO, read_direct, client / "file", 8 * BLOCK)

    def test_old_blocks_are_noticed_by_the_next_mount(self):
        """With a state. Without one, they are not."""
        keeps = [*self.sealing, "--seal-state", os.path.join(self.world.dir, "state")]
        client = self.world.mount(*keeps)
        self.assertNotIn("id=W508", client.said())  # the tree is new, too
        pages = self.versions(client, "file")
        self.assertEqual(client.unmount(), 0)
        self.put(pages, 1)
        client = self.world.mount(*keeps)
        self.assertNotIn("id=W509", client.said())
        self.fails(errno.EIO, read_direct, client / "file", BLOCK)
        self.logs(client, "is older than one that this mount has seen there")
        self.assertEqual(client.unmount(), 0)
        client = self.world.mount(*self.sealing)
        self.assertEqual(read_direct(client / "file", BLOCK), b"1" * BLOCK)
        self.assertEqual(client.unmount(), 0)
        self.put(pages, 2)
        client = self.world.mount(*keeps)
        self.assertEqual(read_direct(client / "file", 8 * BLOCK), b"2" * 8 * BLOCK)
        os.truncate(client / "file", 0)
        os.truncate(client / "file", 8 * BLOCK)
        self.assertEqual(client.unmount(), 0)
        client = self.world.mount(*keeps)
        self.assertEqual(read_direct(client / "file", 8 * BLOCK), bytes(8 * BLOCK))

    def test_text_that_was_cut_off_does_not_come_back(self):
        """Not even to a mount that has never read it."""
        client = self.world.mount(*self.sealing)
        pages = self.versions(client, "file")
        self.fill_rest(client)
        self.assertEqual(client.unmount(), 0)
        client = self.world.mount(*self.sealing)
        with open(client / "file", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 8 * BLOCK)
        self.assertEqual(read_direct(client / "file", 8 * BLOCK), bytes(8 * BLOCK))
        self.put(pages, 2)
        self.fails(errno.EIO, read_direct, client / "file", 8 * BLOCK)
        self.logs(client, "is older than one that this mount has seen there")

    def test_text_of_a_hole_does_not_come_back(self):
        """Not even to a mount that has never read it, nor to the next one, with a state."""
        keeps = [*self.sealing, "--seal-state", os.path.join(self.world.dir, "state")]
        client = self.world.mount(*self.sealing)
        pages = self.versions(client, "file")
        self.fill_rest(client)
        self.assertEqual(client.unmount(), 0)
        client = self.world.mount(*keeps)
        subprocess.run(["fallocate", "--punch-hole", "--length", str(8 * BLOCK), client / "file"],
                       check=True)
        with open(client / "file", "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, 8 * BLOCK)
        self.assertEqual(read_direct(client / "file", 8 * BLOCK), bytes(8 * BLOCK))
        self.put(pages, 2)
        for remounts in (True, False):
            self.fails(errno.EIO, read_direct, client / "file", 8 * BLOCK)
            self.logs(client, "is older than one that this mount has seen there")
            if remounts:
                self.assertEqual(client.unmount(), 0)
                client = self.world.mount(*keeps)
        write(client / "file", b"3" * 8 * BLOCK)
        self.assertEqual(read_direct(client / "file", 8 * BLOCK), b"3" * 8 * BLOCK)

    def fill_rest(self, client):
        """So that a new file has the place of the next file that goes."""
        piece, end = 16 << 20, 0
        with open(client / "filler", "wb") as file:
            while piece >= BLOCK:
                try:
                    os.posix_fallocate(file.fileno(), end, piece)
                    end += piece
                except OSError:
                    piece //= 2

    def next_number(self, client):
        """The places of the donor's memory that have the number of the next new file."""
        places = None
        for round_ in range(4):
            write(client / f"count{round_}", b"")
            word = struct.pack("=Q", os.stat(client / f"count{round_}").st_ino + 1)
            found = {place for start, copy in self.memory.copy(least=BLOCK).items()
                     for place in occurrences(copy, word, start)}
            places = found if places is None else places & found
            os.unlink(client / f"count{round_}")
        self.assertTrue(places)
        return places

    def test_text_of_a_deleted_file_does_not_come_back_in_a_new_one(self):
        """The donor gives the number of a deleted file to the next one."""
        keeps = [*self.sealing, "--seal-state", os.path.join(self.world.dir, "state")]
        client = self.world.mount(*keeps)
        for remounts in (False, True):
            places = self.next_number(client)
            pages = self.versions(client, "old")
            number = os.stat(client / "old").st_ino
            self.fill_rest(client)
            os.unlink(client / "old")
            if remounts:
                self.assertEqual(client.unmount(), 0)
                client = self.world.mount(*keeps)
            for place in places:
                self.memory.put(place, struct.pack("=Q", number))
            with open(client / "new", "wb") as file:
                self.assertEqual(os.fstat(file.fileno()).st_ino, number)
                os.posix_fallocate(file.fileno(), 0, 8 * BLOCK)
            self.assertEqual(read_direct(client / "new", 8 * BLOCK), bytes(8 * BLOCK))
            self.put(pages, 2)
            self.fails(errno.EIO, read_direct, client / "new", 8 * BLOCK)
            write(client / "new", b"3" * 8 * BLOCK)
            self.assertEqual(read_direct(client / "new", 8 * BLOCK), b"3" * 8 * BLOCK)
            os.unlink(client / "new")
            os.unlink(client / "filler")

    def test_a_state_that_does_not_know_all_is_told(self):
        state = os.path.join(self.world.dir, "state")
        keeps = [*self.sealing, "--timeout", "60", "--seal-state", state]
        client = self.world.mount(*self.sealing)
        pages = self.versions(client, "file")
        self.assertEqual(client.unmount(), 0)
        client = self.world.mount(*keeps)
        self.assertIn("id=W508", client.said())
        self.assertEqual(read_direct(client / "file", 8 * BLOCK), b"2" * 8 * BLOCK)
        first = read(state)
        self.assertTrue(until(lambda: len(read(state)) > len(first)))  # a thread writes it
        kill(client)
        self.put(pages, 1)
        client = self.world.mount(*keeps)
        self.assertIn("id=W509", client.said())
        self.fails(errno.EIO, read_direct, client / "file", 8 * BLOCK)
        self.assertEqual(client.unmount(), 0)
        good = read(state)
        self.assertEqual(os.stat(state).st_mode & 0o777, 0o600)
        for bad in (good[:-1], good[:50] + bytes([good[50] ^ 1]) + good[51:], b""):
            write(state, bad)
            self.mount_fails("knows other sealed files", *keeps)
        write(state, good)
        other = World("32M")
        self.addCleanup(other.destroy)
        self.world, first = other, self.world
        self.mount_fails("knows other sealed files", *keeps)
        self.mount_fails("--seal-state needs --seal", "--seal-state", state)
        self.world = first

    def test_altered_blocks_are_noticed(self):
        client = self.world.mount(*self.sealing)
        pages = self.versions(client, "file")
        for place, _, new in pages:
            self.memory.put(place, bytes([new[0] ^ 1]) + new[1:])
        self.fails(errno.EIO, read_direct, client / "file", 8 * BLOCK)
        self.logs(client, "is not what a holder of the key wrote there")
        # a program replaces the file, and all is well
        write(client / "file", b"3" * 8 * BLOCK)
        self.assertEqual(read_direct(client / "file", 8 * BLOCK), b"3" * 8 * BLOCK)

    def test_an_altered_last_block_can_be_replaced(self):
        client = self.world.mount(*self.sealing)
        for place, _, new in self.versions(client, "file", size=4000):
            self.memory.put(place, bytes([new[0] ^ 1]) + new[1:])
        self.fails(errno.EIO, read_direct, client / "file", BLOCK)
        with open(client / "file", "r+b", buffering=0) as file:
            self.fails(errno.EIO, file.write, b"3" * 3999)
            file.write(b"3" * 4000)
        self.assertEqual(read_direct(client / "file", BLOCK), b"3" * 4000)

    def test_exchanged_blocks_are_noticed(self):
        client = self.world.mount(*self.sealing)
        pages = self.versions(client, "a", "b")
        for (place, _, _), (_, _, other) in zip(pages, pages[8:] + pages[:8]):
            self.memory.put(place, other)
        for name in "ab":
            self.fails(errno.EIO, read_direct, client / name, 8 * BLOCK)


if __name__ == "__main__":
    main()
