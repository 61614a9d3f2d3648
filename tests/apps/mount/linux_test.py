# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Calls of Linux at their limits: each class follows a manual page."""
import ctypes
import errno
import os
import stat
import struct
import time
import unittest

from posix_test import (FALLOC_COLLAPSE, FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE,
                        LIBC, RENAME_EXCHANGE, RENAME_NOREPLACE, ROOT, fallocate, renameat2)
from world import FsTest, in_child, main, read, write

RENAME_WHITEOUT = 4
FALLOC_INSERT = 32
NS = 10**9
OWNER, MEMBER, STRANGER = 1001, 1002, 1003


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@unittest.skipUnless(ROOT, "needs root")
class SetId(FsTest):
    """chown(2), write(2): set-user-ID and set-group-ID bits."""

    def as_owner(self, function):
        """Runs @function as a user in the groups OWNER and MEMBER."""
        def run():
            os.setgroups([MEMBER])
            os.setresgid(OWNER, OWNER, OWNER)
            os.setresuid(OWNER, OWNER, OWNER)
            return function()
        return in_child(run)

    def file(self, bits, group=OWNER):
        write("file", b"x" * 100)
        os.chmod(".", 0o777)
        os.chown("file", OWNER, group)
        os.chmod("file", bits)

    def test_a_change_of_owner_clears_the_bits(self):
        for before, after in ((0o6777, 0o777), (0o6711, 0o711), (0o6666, 0o2666),
                              (0o4711, 0o711), (0o2711, 0o711)):
            for ids in ((-1, MEMBER), (OWNER, -1), (OWNER, MEMBER), (-1, -1)):
                with self.subTest(before=oct(before), ids=ids):
                    self.file(before)
                    self.assertEqual(self.as_owner(lambda i=ids: os.chown("file", *i)), 0)
                    self.assertEqual(oct(mode("file")), oct(after))
                    self.file(before)
                    os.chown("file", *ids)
                    self.assertEqual(oct(mode("file")), oct(after))
        os.mkdir("dir")
        os.chown("dir", OWNER, OWNER)
        os.chmod("dir", 0o6777)
        self.assertEqual(self.as_owner(lambda: os.chown("dir", -1, MEMBER)), 0)
        self.assertEqual(mode("dir"), 0o6777)

    def test_only_members_leave_a_group_bit_without_execution(self):
        changes = (lambda fd: os.pwrite(fd, b"y", 0), lambda fd: os.ftruncate(fd, 5),
                   lambda fd: fallocate(fd, 0, 0, 4096))
        for change in changes:
            def open_and_change(make=change):
                fd = os.open("file", os.O_RDWR)
                make(fd)
                os.close(fd)
            for uid, before, after in ((STRANGER, 0o2666, 0o666), (STRANGER, 0o6766, 0o766),
                                       (OWNER, 0o2666, 0o2666), (OWNER, 0o6666, 0o2666)):
                self.file(before)
                self.assertEqual(in_child(open_and_change, uid), 0)
                self.assertEqual((uid, oct(mode("file"))), (uid, oct(after)))
            self.file(0o2666, MEMBER)
            self.assertEqual(self.as_owner(open_and_change), 0)
            self.assertEqual(oct(mode("file")), oct(0o2666))

    def test_chmod_gives_no_foreign_group(self):
        self.file(0o755, STRANGER)
        self.assertEqual(self.as_owner(lambda: os.chmod("file", 0o2755)), 0)
        self.assertEqual(mode("file"), 0o755)
        self.file(0o755, MEMBER)
        self.assertEqual(self.as_owner(lambda: os.chmod("file", 0o2755)), 0)
        self.assertEqual(mode("file"), 0o2755)


class Times(FsTest):
    """utimensat(2)."""

    def test_times_are_exact_before_1970_and_after_2038(self):
        write("file")
        for second in (-NS, -1, 0, 1, 2**31 - 1, 2**31, 2**32, 2**33 + 5, 253402300799):
            for nano in (0, 1, 999999999):
                time_ns = second * NS + nano
                os.utime("file", ns=(time_ns, time_ns + 1))
                status = os.stat("file")
                self.assertEqual((status.st_atime_ns, status.st_mtime_ns),
                                 (time_ns, time_ns + 1))
        time.sleep(1.2)  # until the kernel asks the client again
        self.assertEqual(os.stat("file").st_mtime_ns, time_ns + 1)

    @unittest.skipUnless(ROOT, "needs root")
    def test_others_may_set_the_present_only(self):
        write("file")
        os.chmod("file", 0o666)
        self.assertEqual(in_child(lambda: os.utime("file"), STRANGER), 0)
        self.assertEqual(in_child(lambda: os.utime("file", (1, 1)), STRANGER), errno.EPERM)


class Sticky(FsTest):
    """unlink(2), rename(2): directories with the sticky bit."""

    @unittest.skipUnless(ROOT, "needs root")
    def test_only_owners_remove_and_rename(self):
        os.mkdir("sticky")
        os.chmod("sticky", 0o1777)
        for uid, name in ((OWNER, "his"), (STRANGER, "mine")):
            self.assertEqual(in_child(lambda n=name: write(f"sticky/{n}"), uid), 0)
        for forbidden in (lambda: os.unlink("sticky/his"),
                          lambda: os.rename("sticky/his", "sticky/new"),
                          lambda: os.rename("sticky/mine", "sticky/his"),
                          lambda: renameat2("sticky/mine", "sticky/his", RENAME_EXCHANGE)):
            self.assertEqual(in_child(forbidden, STRANGER), errno.EPERM)
        os.chown("sticky", STRANGER, STRANGER)
        self.assertEqual(in_child(lambda: os.unlink("sticky/his"), STRANGER), 0)


class Names(FsTest):
    """path_resolution(7), link(2), symlink(2), renameat2(2)."""

    def test_limits_of_names_and_targets(self):
        write("n" * 255)
        for call in (os.stat, os.unlink, os.mkdir, lambda n: os.rename("n" * 255, n),
                     lambda n: os.link("n" * 255, n)):
            self.fails(errno.ENAMETOOLONG, call, "n" * 256)
        os.symlink("t" * 4095, "longest")
        self.fails(errno.ENAMETOOLONG, os.symlink, "t" * 4096, "longer")
        self.fails(errno.ENOENT, os.symlink, "", "empty")
        self.fails(errno.ENOTDIR, os.stat, "n" * 255 + "/")

    def test_directories_count_their_subdirectories(self):
        for name in ("from", "to", "from/a", "from/b"):
            os.mkdir(name)
        os.rename("from/a", "to/a")
        self.assertEqual([os.stat(name).st_nlink for name in ("from", "to", "to/a")], [3, 3, 2])
        self.assertEqual(os.stat("to/a/..").st_ino, os.stat("to").st_ino)

    def test_exchange_takes_any_two(self):
        os.mkdir("dir")
        write("dir/inner")
        os.mkdir("other")
        write("other/file")
        renameat2("dir", "other/file", RENAME_EXCHANGE)
        self.assertTrue(os.path.isfile("dir"))
        self.assertEqual(os.listdir("other/file"), ["inner"])
        self.assertEqual(os.stat("other").st_nlink, 3)
        self.fails(errno.ENOENT, renameat2, "dir", "none", RENAME_EXCHANGE)
        self.fails(errno.EINVAL, renameat2, "other", "other/file", RENAME_EXCHANGE)
        self.fails(errno.EINVAL, renameat2, "dir", "other", RENAME_EXCHANGE | RENAME_NOREPLACE)
        self.fails(errno.EINVAL, renameat2, "dir", "new", RENAME_WHITEOUT)
        renameat2("dir", "new", RENAME_NOREPLACE)
        self.fails(errno.EEXIST, renameat2, "new", "new", RENAME_NOREPLACE)

    def test_two_links_of_a_file_are_not_renamed(self):
        write("a")
        os.link("a", "b")
        os.rename("a", "b")
        self.assertEqual(sorted(os.listdir(".")), ["a", "b"])


class Space(FsTest):
    """fallocate(2), lseek(2), copy_file_range(2)."""

    def setUp(self):
        super().setUp()
        self.fd = os.open("file", os.O_RDWR | os.O_CREAT)
        self.addCleanup(os.close, self.fd)

    def shape(self):
        status = os.fstat(self.fd)
        return status.st_size, status.st_blocks

    def test_fallocate_modes(self):
        keep = FALLOC_KEEP_SIZE
        for flags, offset, length, shape in (
                (0, 0, 8192, (8192, 16)), (keep, 0, 65536, (8192, 128)),
                (FALLOC_PUNCH_HOLE | keep, 4096, 4096, (8192, 120)),
                (FALLOC_ZERO_RANGE | keep, 65536, 4096, (8192, 128)),
                (FALLOC_ZERO_RANGE, 0, 16384, (16384, 136)),
                (FALLOC_PUNCH_HOLE | keep, 0, 1 << 40, (16384, 0))):
            fallocate(self.fd, flags, offset, length)
            self.assertEqual(self.shape(), shape)
        for flags in (FALLOC_PUNCH_HOLE, FALLOC_COLLAPSE, FALLOC_INSERT):
            self.fails(errno.EOPNOTSUPP, fallocate, self.fd, flags, 0, 4096)
        for offset, length in ((-1, 5), (0, 0), (0, -5)):
            self.fails(errno.EINVAL, fallocate, self.fd, 0, offset, length)
        self.fails(errno.EFBIG, fallocate, self.fd, 0, (1 << 63) - 4096, 8192)

    def test_blocks_beyond_the_end_hold_no_old_bytes(self):
        os.pwrite(self.fd, b"A" * 20000, 0)
        os.ftruncate(self.fd, 5000)
        fallocate(self.fd, FALLOC_KEEP_SIZE, 5000, 40000)
        os.ftruncate(self.fd, 40000)
        self.assertEqual(os.pread(self.fd, 40000, 0), b"A" * 5000 + bytes(35000))

    def test_data_and_holes_are_found(self):
        def seek(offset):
            found = []
            for whence in (os.SEEK_DATA, os.SEEK_HOLE):
                try:
                    found.append(os.lseek(self.fd, offset, whence))
                except OSError as error:
                    found.append(-error.errno)
            return tuple(found)
        none = -errno.ENXIO
        self.assertEqual(seek(0), (none, none))
        os.pwrite(self.fd, b"x" * 4096, 65536)
        os.pwrite(self.fd, b"y" * 100, 1 << 20)
        for offset, found in ((0, (65536, 0)), (65536, (65536, 69632)), (69631, (69631, 69632)),
                              (69632, (1 << 20, 69632)), ((1 << 20) + 99,) +
                              (((1 << 20) + 99, (1 << 20) + 100),),
                              ((1 << 20) + 100, (none, none)), (-1, (none, none))):
            self.assertEqual((offset, seek(offset)), (offset, found))
        os.ftruncate(self.fd, 1 << 21)
        self.assertEqual(seek((1 << 20) + 5000), (none, (1 << 20) + 5000))

    def test_ranges_are_copied(self):
        data = os.urandom(300000)
        write("source", data)
        source = os.open("source", os.O_RDONLY)
        self.addCleanup(os.close, source)
        self.assertEqual(os.copy_file_range(source, self.fd, 1000, 100, 5000), 1000)
        self.assertEqual(read("file"), bytes(5000) + data[100:1100])
        self.assertEqual(os.copy_file_range(source, self.fd, 1000, 300000, 0), 0)
        self.fails(errno.EINVAL, os.copy_file_range, self.fd, self.fd, 1000, 0, 500)


class Directories(FsTest):
    """readdir(3), seekdir(3), rmdir(2)."""

    def test_names_come_once_while_others_come_and_go(self):
        first = {f"file{i:03}" for i in range(300)}
        for name in first:
            write(name, b"")
        seen = []
        for number, entry in enumerate(os.scandir(".")):
            seen.append(entry.name)
            if number % 2 == 0:
                os.unlink(entry.name)
            if number % 5 == 0 and number < 1000:
                write(f"new{number}", b"")
        self.assertEqual(len(seen), len(set(seen)))
        self.assertLessEqual(first, set(seen))

    def test_a_position_stays(self):
        for number in range(300):
            write(f"file{number:03}", b"")
        LIBC.opendir.restype = LIBC.readdir.restype = ctypes.c_void_p
        LIBC.telldir.restype = ctypes.c_long
        stream = ctypes.c_void_p(LIBC.opendir(b"."))

        def next_name():
            entry = LIBC.readdir(stream)
            return ctypes.string_at(entry + 19) if entry else None
        for _ in range(50):
            next_name()
        position, name = LIBC.telldir(stream), next_name()
        for _ in range(100):
            os.unlink(next_name())
        LIBC.seekdir(stream, ctypes.c_long(position))
        self.assertEqual(next_name(), name)
        LIBC.rewinddir(stream)
        write("late", b"")
        names = list(iter(next_name, None))
        self.assertIn(b"late", names)
        self.assertEqual(len(names), 300 - 100 + 3)
        LIBC.closedir(stream)

    def test_a_removed_directory_is_empty_and_still_there(self):
        os.mkdir("dir")
        fd = os.open("dir", os.O_RDONLY)
        os.rmdir("dir")
        self.assertEqual(os.fstat(fd).st_nlink, 0)
        self.assertEqual(os.listdir(fd), [])
        self.fails(errno.ENOENT, lambda: os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        os.close(fd)


class Xattrs(FsTest):
    """xattr(7)."""

    def test_names_lie_in_a_namespace(self):
        write("file")
        self.fails(errno.EOPNOTSUPP, os.setxattr, "file", "name", b"1")
        nobody = 0xffffffff
        access = struct.pack("<IHHIHHIHHI", 2, 1, 6, nobody, 4, 4, nobody, 32, 4, nobody)
        self.fails(errno.EOPNOTSUPP, os.setxattr, "file", "system.posix_acl_access", access)
        self.fails(errno.EINVAL, os.setxattr, "file", "user.", b"1")
        os.setxattr("file", "user." + "n" * 250, b"1")

    @unittest.skipUnless(ROOT, "needs root")
    def test_only_root_sees_trusted_names(self):
        write("file")
        for name in ("trusted.a", "user.b", "trusted.c", "user.d"):
            os.setxattr("file", name, b"1")
        self.assertEqual(sorted(os.listxattr("file")),
                         ["trusted.a", "trusted.c", "user.b", "user.d"])
        self.assertEqual(in_child(lambda: os.listxattr("file") != ["user.b", "user.d"], STRANGER),
                         0)


if __name__ == "__main__":
    main()
