# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""POSIX semantics of a file system with a single client."""
import ctypes
import errno
import fcntl
import mmap
import os
import random
import signal
import stat
import subprocess
import sys
import time
import unittest

from world import SEALED, FsTest, in_child, main, read, scaled, stored, write

LIBC = ctypes.CDLL(None, use_errno=True)
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_COLLAPSE, FALLOC_ZERO_RANGE = 1, 2, 8, 16
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
ROOT = os.geteuid() == 0


def fallocate(fd, mode, offset, length):
    if LIBC.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)):
        raise OSError(ctypes.get_errno(), "fallocate")


def renameat2(old, new, flags):
    if LIBC.renameat2(-100, old.encode(), -100, new.encode(), flags):
        raise OSError(ctypes.get_errno(), "renameat2")


class Names(FsTest):
    def test_a_name_is_taken_once(self):
        write("file")
        self.fails(errno.EEXIST, os.mkdir, "file")
        self.fails(errno.EEXIST, os.open, "file", os.O_CREAT | os.O_EXCL)
        self.fails(errno.ENOENT, os.stat, "nothing")

    def test_a_directory_with_entries_stays(self):
        os.mkdir("dir")
        write("dir/file")
        self.fails(errno.ENOTEMPTY, os.rmdir, "dir")
        self.fails(errno.EISDIR, os.unlink, "dir")
        self.fails(errno.ENOTDIR, os.rmdir, "dir/file")

    def test_names_have_255_bytes(self):
        self.fails(errno.ENAMETOOLONG, write, "n" * 256)
        write("n" * 255)
        self.assertEqual(os.listdir("."), ["n" * 255])

    def test_rename_replaces_what_it_may(self):
        write("old", b"old")
        write("new", b"new")
        os.rename("old", "new")
        self.assertEqual(read("new"), b"old")
        os.mkdir("empty")
        os.mkdir("full")
        write("full/file")
        self.fails(errno.ENOTEMPTY, os.rename, "empty", "full")
        self.fails(errno.ENOTDIR, os.rename, "empty", "new")
        self.fails(errno.EISDIR, os.rename, "new", "empty")
        self.fails(errno.EINVAL, os.rename, "full", "full/below")
        os.rename("full", "empty")
        self.assertEqual(os.listdir("empty"), ["file"])

    def test_rename_with_flags(self):
        write("a", b"a")
        write("b", b"b")
        with self.assertRaises(OSError) as caught:
            renameat2("a", "b", RENAME_NOREPLACE)
        self.assertEqual(caught.exception.errno, errno.EEXIST)
        renameat2("a", "b", RENAME_EXCHANGE)
        self.assertEqual((read("a"), read("b")), (b"b", b"a"))

    def test_hard_links_are_one_file(self):
        write("a", b"one")
        os.link("a", "b")
        self.assertEqual(os.stat("a").st_ino, os.stat("b").st_ino)
        self.assertEqual(os.stat("b").st_nlink, 2)
        os.unlink("a")
        self.assertEqual((read("b"), os.stat("b").st_nlink), (b"one", 1))
        os.mkdir("dir")
        self.fails(errno.EPERM, os.link, "dir", "link")

    def test_symbolic_links(self):
        os.symlink("t" * 3000, "long")
        self.assertEqual(os.readlink("long"), "t" * 3000)
        os.symlink("loop", "loop")
        self.fails(errno.ELOOP, os.stat, "loop")

    def test_an_unlinked_file_lives_while_it_is_open(self):
        fd = os.open("file", os.O_RDWR | os.O_CREAT)
        os.write(fd, b"abc")
        os.unlink("file")
        self.assertEqual(os.fstat(fd).st_nlink, 0)
        os.write(fd, b"def" * 100000)
        self.assertEqual(os.pread(fd, 1 << 20, 0), b"abc" + b"def" * 100000)
        os.close(fd)

    def test_a_replaced_file_lives_while_it_is_open(self):
        write("file", b"old")
        fd = os.open("file", os.O_RDONLY)
        write("other", b"new")
        os.rename("other", "file")
        self.assertEqual((os.pread(fd, 3, 0), read("file")), (b"old", b"new"))
        os.close(fd)

    def test_a_large_directory_is_read_in_full_while_it_shrinks(self):
        names = [f"file{i:05}" for i in range(scaled(2000))]
        for name in names:
            write(name, b"")
        self.assertEqual(sorted(os.listdir(".")), names)
        for entry in os.scandir("."):
            os.unlink(entry.path)
        self.assertEqual(os.listdir("."), [])

    @unittest.skipUnless(ROOT, "needs root")
    def test_special_files(self):
        os.mkfifo("fifo")
        os.mknod("null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        self.assertTrue(stat.S_ISFIFO(os.stat("fifo").st_mode))
        self.assertEqual(os.stat("null").st_rdev, os.makedev(1, 3))


class Attributes(FsTest):
    def test_times_are_kept_to_the_nanosecond(self):
        fd = os.open("file", os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"hello")
        os.utime(fd, ns=(123456789012345678, 987654321098765432))
        self.assertEqual(os.fstat(fd).st_mtime_ns, 987654321098765432)
        os.close(fd)
        after = os.stat("file")
        self.assertEqual((after.st_atime_ns, after.st_mtime_ns),
                         (123456789012345678, 987654321098765432))

    def test_changes_show_in_times(self):
        write("file")
        os.utime("file", (1, 1))
        fd = os.open("file", os.O_WRONLY)
        os.write(fd, b"y")
        self.assertGreater(os.fstat(fd).st_mtime, 1)
        os.close(fd)
        written = os.stat("file")
        self.assertGreater(written.st_mtime, 1)
        time.sleep(0.01)
        os.chmod("file", 0o600)
        self.assertGreater(os.stat("file").st_ctime_ns, written.st_ctime_ns)
        before = os.stat(".").st_mtime_ns
        time.sleep(0.01)
        write("other")
        self.assertGreater(os.stat(".").st_mtime_ns, before)

    def test_the_donor_learns_what_programs_have_seen(self):
        fd = os.open("file", os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"written")
        os.utime(fd, (1, 2))
        os.write(fd, b" again")
        self.assertGreater(os.fstat(fd).st_mtime, 2)
        os.fchmod(fd, 0o604)
        os.utime(fd, (3, 4))
        seen = os.fstat(fd)
        self.assertEqual((stat.S_IMODE(seen.st_mode), seen.st_atime, seen.st_mtime), (0o604, 3, 4))
        os.close(fd)
        os.mkdir("directory")
        os.chmod("directory", 0o704)
        directory = os.stat("directory")
        time.sleep(1.2)  # until the kernel asks the client again
        self.assertEqual(os.stat("file"), seen)
        self.assertEqual(os.stat("directory"), directory)

    def test_a_truncation_sets_a_later_mtime_than_a_write(self):
        for cut in (os.truncate, lambda name, _size: write(name)):
            fd = os.open("file", os.O_WRONLY | os.O_CREAT)
            os.write(fd, b"written")
            os.utime(fd, (1, 2))
            cut("file", 3)
            self.assertGreater(os.fstat(fd).st_mtime, 2)
            os.close(fd)
            self.assertGreater(os.stat("file").st_mtime, 2)

    def test_umask(self):
        old = os.umask(0o027)
        write("file")
        os.umask(old)
        self.assertEqual(stat.S_IMODE(os.stat("file").st_mode), 0o640)

    @unittest.skipUnless(ROOT, "needs root")
    def test_modes_keep_others_out(self):
        def append():
            with open("file", "ab") as file:
                file.write(b"x")
        os.chmod(self.world.clients[0].path, 0o755)
        write("file")
        os.chmod("file", 0o600)
        self.assertEqual(in_child(append, 1001), errno.EACCES)
        self.assertEqual(in_child(lambda: os.chmod("file", 0o777), 1001), errno.EPERM)
        os.chown("file", 1001, 1001)
        self.assertEqual(in_child(append, 1001), 0)

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_write_takes_set_user_id_away(self):
        def change():
            fd = os.open("file", os.O_WRONLY)
            os.write(fd, b"y")
        write("file")
        os.chmod("file", 0o6777)
        self.assertEqual(in_child(change, 1001), 0)
        self.assertEqual(stat.S_IMODE(os.stat("file").st_mode), 0o777)
        os.chmod("file", 0o6777)
        self.assertEqual(in_child(lambda: os.truncate("file", 0), 1001), 0)
        self.assertEqual(stat.S_IMODE(os.stat("file").st_mode), 0o777)
        os.chmod("file", 0o6777)
        os.chown("file", 1001, 1001)
        self.assertEqual(stat.S_IMODE(os.stat("file").st_mode), 0o777)

    @unittest.skipUnless(ROOT, "needs root")
    def test_sticky_and_set_group_id_directories(self):
        os.mkdir("sticky")
        os.chmod("sticky", 0o1777)
        self.assertEqual(in_child(lambda: write("sticky/mine"), 1001), 0)
        self.assertEqual(in_child(lambda: os.unlink("sticky/mine"), 1002), errno.EPERM)
        os.mkdir("group")
        os.chown("group", 0, 55)
        os.chmod("group", 0o2777)
        self.assertEqual(in_child(lambda: os.mkdir("group/dir"), 1001), 0)
        made = os.stat("group/dir")
        self.assertEqual((made.st_gid, made.st_mode & stat.S_ISGID), (55, stat.S_ISGID))

    def test_extended_attributes(self):
        write("file")
        self.assertEqual(os.listxattr("file"), [])
        os.setxattr("file", "user.key", b"v" * 4000)
        self.assertEqual(os.getxattr("file", "user.key"), b"v" * 4000)
        self.assertEqual(os.listxattr("file"), ["user.key"])
        self.fails(errno.EEXIST, os.setxattr, "file", "user.key", b"", os.XATTR_CREATE)
        self.fails(errno.ENODATA, os.setxattr, "file", "user.none", b"", os.XATTR_REPLACE)
        os.removexattr("file", "user.key")
        self.fails(errno.ENODATA, os.getxattr, "file", "user.key")

    def test_statvfs(self):
        before = os.statvfs(".")
        write("file", b"x" * (8 << 20))
        after = os.statvfs(".")
        self.assertEqual(before.f_bfree - after.f_bfree, stored(8 << 20) // 4096)


class Data(FsTest):
    def test_truncate_cuts_and_zeroes(self):
        write("file", b"A" * 10000)
        os.truncate("file", 5000)
        os.truncate("file", 12000)
        self.assertEqual(read("file"), b"A" * 5000 + b"\0" * 7000)
        write("file", b"short")
        self.assertEqual(read("file"), b"short")

    def test_a_hole_costs_nothing_and_reads_as_zeroes(self):
        fd = os.open("file", os.O_RDWR | os.O_CREAT)
        os.pwrite(fd, b"end", 1 << 40)
        self.assertEqual(os.fstat(fd).st_size, (1 << 40) + 3)
        self.assertLessEqual(os.fstat(fd).st_blocks, 16)
        self.assertEqual(os.pread(fd, 4096, 1 << 30), b"\0" * 4096)
        self.assertEqual(os.pread(fd, 10, 1 << 40), b"end")
        # All of a sealed file is data.
        self.assertEqual(os.lseek(fd, 0, os.SEEK_DATA), 0 if SEALED else 1 << 40)
        self.assertEqual(os.lseek(fd, 5, os.SEEK_HOLE), (1 << 40) + 3 if SEALED else 5)
        self.fails(errno.ENXIO, os.lseek, fd, 1 << 41, os.SEEK_DATA)
        os.close(fd)

    def test_fallocate(self):
        fd = os.open("file", os.O_RDWR | os.O_CREAT)
        fallocate(fd, 0, 0, 1 << 20)
        self.assertEqual((os.fstat(fd).st_size, os.fstat(fd).st_blocks),
                         (1 << 20, stored(1 << 20) // 512))
        os.pwrite(fd, b"Z" * (1 << 20), 0)
        fallocate(fd, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, 4000, 8000)
        self.assertEqual(os.pread(fd, 16000, 0), b"Z" * 4000 + b"\0" * 8000 + b"Z" * 4000)
        # The ends of the hole share the donor's blocks with other data of a sealed file.
        hole = 0 if SEALED else 8
        self.assertEqual(os.fstat(fd).st_blocks, stored(1 << 20) // 512 - hole)
        if SEALED:
            self.fails(errno.EOPNOTSUPP, fallocate, fd, FALLOC_ZERO_RANGE, 100, 100)
        else:
            fallocate(fd, FALLOC_ZERO_RANGE, 100, 100)
            self.assertEqual(os.pread(fd, 300, 0), b"Z" * 100 + b"\0" * 100 + b"Z" * 100)
        fallocate(fd, FALLOC_KEEP_SIZE, 1 << 20, 1 << 20)
        self.fails(errno.EOPNOTSUPP, fallocate, fd, FALLOC_COLLAPSE, 0, 4096)
        os.close(fd)
        after = os.stat("file")
        self.assertEqual((after.st_size, after.st_blocks), (1 << 20, stored(2 << 20) // 512 - hole))

    def test_blocks_allocated_ahead_are_given_back(self):
        fd = os.open("file", os.O_WRONLY | os.O_CREAT)
        for _ in range(50):
            os.write(fd, b"x" * 100000)
        os.close(fd)
        self.assertLessEqual(os.stat("file").st_blocks * 512, stored(5000000) + 4096)

    def test_appends_of_several_processes_do_not_overlap(self):
        times = scaled(300)

        def append(byte):
            fd = os.open("file", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for _ in range(times):
                os.write(fd, byte * 100)
            os._exit(0)
        children = []
        for number in range(4):
            pid = os.fork()
            if pid == 0:
                append(b"%d" % number)
            children.append(pid)
        for pid in children:
            os.waitpid(pid, 0)
        data = read("file")
        self.assertEqual(len(data), 4 * times * 100)
        self.assertTrue(all(len(set(data[i:i + 100])) == 1 for i in range(0, len(data), 100)))

    def test_a_shared_mapping_is_the_file(self):
        write("file", b"\0" * (1 << 20))
        with open("file", "r+b") as file:
            mapping = mmap.mmap(file.fileno(), 0)
            mapping[5000:5005] = b"mmap!"
            mapping.flush()
            self.assertEqual(os.pread(file.fileno(), 5, 5000), b"mmap!")
            os.pwrite(file.fileno(), b"write", 9000)
            self.assertEqual(mapping[9000:9005], b"write")
            mapping[:2] = b"hi"
            file.close()
            mapping.close()
        self.assertEqual(read("file")[:2], b"hi")

    def test_direct_and_buffered_see_the_same(self):
        data = os.urandom(3 << 20)
        out = mmap.mmap(-1, len(data))
        out.write(data)
        fd = os.open("file", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
        self.assertEqual(os.pwritev(fd, [out], 0), len(data))
        back = mmap.mmap(-1, len(data))
        self.assertEqual(os.preadv(fd, [back], 0), len(data))
        self.assertEqual(bytes(back), data)
        self.assertEqual(os.preadv(fd, [back], len(data)), 0)
        os.close(fd)
        self.assertEqual(read("file"), data)

    def test_random_writes_against_a_model(self):
        rng = random.Random(1)
        model = bytearray()
        fd = os.open("file", os.O_RDWR | os.O_CREAT)
        for _ in range(scaled(400)):
            offset, length = rng.randrange(3 << 20), rng.randrange(1, 70000)
            action = rng.randrange(10)
            if action == 0:
                os.ftruncate(fd, offset)
                model = model[:offset] + bytes(max(0, offset - len(model)))
            elif action == 1 and offset < len(model):
                fallocate(fd, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, offset, length)
                end = min(offset + length, len(model))
                model[offset:end] = bytes(end - offset)
            elif action == 2:
                self.assertEqual(os.pread(fd, length, offset), model[offset:offset + length])
            else:
                data = rng.randbytes(length)
                os.pwrite(fd, data, offset)
                model += bytes(max(0, offset + length - len(model)))
                model[offset:offset + length] = data
        self.assertEqual(os.fstat(fd).st_size, len(model))
        os.close(fd)
        self.assertEqual(read("file"), bytes(model))


class Locks(FsTest):
    def try_lock(self, length=0, start=0):
        def lock():
            with open("file", "r+b") as file:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
        return in_child(lock)

    def setUp(self):
        super().setUp()
        write("file")

    def test_flock(self):
        first, second = open("file", "rb"), open("file", "rb")
        fcntl.flock(first, fcntl.LOCK_EX)
        self.fails(errno.EAGAIN, fcntl.flock, second, fcntl.LOCK_SH | fcntl.LOCK_NB)
        first.close()
        # Not LOCK_NB: the kernel sends the release, which ends the lock, after close() has
        # returned.
        fcntl.flock(second, fcntl.LOCK_EX)
        second.close()

    def test_record_locks_are_of_ranges_and_end_with_any_close(self):
        with open("file", "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX, 100, 50)
            self.assertIn(self.try_lock(100, 100), (errno.EAGAIN, errno.EACCES))
            self.assertEqual(self.try_lock(10, 200), 0)
            open("file", "rb").close()
            self.assertEqual(self.try_lock(100, 100), 0)

    def test_a_waiter_gets_the_lock(self):
        with open("file", "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            waiter = subprocess.Popen(
                [sys.executable, "-c",
                 "import fcntl; fcntl.lockf(open('file', 'r+b'), fcntl.LOCK_EX)"])
            time.sleep(0.3)
            self.assertIsNone(waiter.poll())
            fcntl.lockf(file, fcntl.LOCK_UN)
            self.assertEqual(waiter.wait(10), 0)

    def test_a_waiter_can_be_interrupted_and_killed(self):
        def wait_until_alarm():
            def alarm(_signal, _frame):
                raise InterruptedError(errno.EINTR, "alarm")
            signal.signal(signal.SIGALRM, alarm)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with open("file", "r+b") as file:
                fcntl.lockf(file, fcntl.LOCK_EX)
        with open("file", "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            self.assertEqual(in_child(wait_until_alarm), errno.EINTR)
            waiter = subprocess.Popen(
                [sys.executable, "-c",
                 "import fcntl; fcntl.lockf(open('file', 'r+b'), fcntl.LOCK_EX)"])
            time.sleep(0.2)
            waiter.kill()
            self.assertEqual(waiter.wait(10), -signal.SIGKILL)


if __name__ == "__main__":
    main()
