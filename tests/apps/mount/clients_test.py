# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two clients of a donor: close-to-open consistency, locks, and recalled maps."""
import contextlib
import errno
import fcntl
import os
import random
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from world import PROMPT_SECONDS, FsTest, main, read, scaled, write


class TwoClients(FsTest):
    clients = 2

    def setUp(self):
        super().setUp()
        name = os.path.basename(self.dir)
        self.here = self.dir
        self.there = self.world.clients[1] / name

    def a(self, name):
        return os.path.join(self.here, name)

    def b(self, name):
        return os.path.join(self.there, name)

    def test_names_are_seen_at_once(self):
        self.assertFalse(os.path.exists(self.b("file")))
        write(self.a("file"))
        self.assertTrue(os.path.exists(self.b("file")))
        os.rename(self.b("file"), self.b("other"))
        self.assertEqual(os.listdir(self.here), ["other"])
        os.unlink(self.a("other"))
        self.assertEqual(os.listdir(self.there), [])

    def test_an_open_sees_what_a_close_wrote(self):
        for round_number in range(20):
            text = b"%d" % round_number * (round_number * 1000 + 1)
            writer, reader = (self.a, self.b) if round_number % 2 else (self.b, self.a)
            write(writer("file"), text)
            self.assertEqual(read(reader("file")), text)

    def test_a_change_of_the_same_size_is_seen(self):
        write(self.a("file"), b"A" * 100000)
        self.assertEqual(read(self.b("file")), b"A" * 100000)
        fd = os.open(self.a("file"), os.O_WRONLY)
        os.pwrite(fd, b"B" * 50000, 20000)
        os.close(fd)
        self.assertEqual(read(self.b("file")), b"A" * 20000 + b"B" * 50000 + b"A" * 30000)

    def test_attributes_are_seen(self):
        write(self.a("file"))
        os.stat(self.b("file"))
        os.chmod(self.a("file"), 0o640)
        os.utime(self.a("file"), (5, 5))
        os.setxattr(self.a("file"), "user.key", b"value")
        self.assertEqual(os.stat(self.b("file")).st_mode & 0o777, 0o640)
        self.assertEqual(os.stat(self.b("file")).st_mtime, 5)
        self.assertEqual(os.getxattr(self.b("file"), "user.key"), b"value")

    def test_a_file_truncated_elsewhere_gives_no_old_bytes(self):
        write(self.a("file"), b"A" * (4 << 20))
        held = os.open(self.b("file"), os.O_RDWR | os.O_DIRECT)
        self.assertEqual(len(os.pread(held, 1 << 20, 0)), 1 << 20)
        os.truncate(self.a("file"), 0)
        write(self.a("other"), b"B" * (4 << 20))
        os.truncate(self.a("file"), 4 << 20)
        self.assertEqual(os.stat(self.b("file")).st_size, 4 << 20)
        fd = os.open(self.b("file"), os.O_RDONLY)
        self.assertEqual(os.pread(fd, 1 << 20, 0), bytes(1 << 20))
        os.close(fd)
        # The holder's next write must reach this file only.
        os.pwrite(held, b"C" * 4096, 0)
        os.close(held)
        self.assertEqual(read(self.a("file"))[:4097], b"C" * 4096 + b"\0")
        self.assertEqual(read(self.a("other")), b"B" * (4 << 20))

    def test_the_room_of_a_deleted_file_comes_back(self):
        free = os.statvfs(self.here).f_bfree
        write(self.a("file"), b"A" * (16 << 20))
        held = os.open(self.b("file"), os.O_RDONLY)
        self.assertEqual(os.pread(held, 1, 0), b"A")
        os.unlink(self.a("file"))
        self.assertEqual(os.pread(held, 1, 10 << 20), b"A")
        os.close(held)
        deadline = time.monotonic() + 5
        while os.statvfs(self.here).f_bfree != free and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(os.statvfs(self.here).f_bfree, free)

    def test_locks_hold_between_clients(self):
        write(self.a("file"))
        with open(self.a("file"), "r+b") as first, open(self.b("file"), "r+b") as second:
            fcntl.lockf(first, fcntl.LOCK_EX)
            with self.assertRaises(OSError) as caught:
                fcntl.lockf(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.assertIn(caught.exception.errno, (errno.EAGAIN, errno.EACCES))
            fcntl.lockf(first, fcntl.LOCK_UN)
            fcntl.lockf(second, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_a_lock_holder_sees_what_was_written_under_the_lock(self):
        write(self.a("file"), b"%08d" % 0)
        counter = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
for _ in range(int(sys.argv[2])):
    fcntl.lockf(fd, fcntl.LOCK_EX)
    value = int(os.pread(fd, 8, 0))
    os.pwrite(fd, b"%08d" % (value + 1), 0)
    fcntl.lockf(fd, fcntl.LOCK_UN)
"""
        times = scaled(50)
        counters = [subprocess.Popen([sys.executable, "-c", counter, path, str(times)])
                    for path in (self.a("file"), self.b("file"))]
        for process in counters:
            self.assertEqual(process.wait(60), 0)
        self.assertEqual(read(self.a("file")), b"%08d" % (2 * times))

    def append_from_both(self, lock, reopen):
        """Both clients append records by turns under a lock. Returns the records of the file."""
        append = """
import fcntl, os, sys
path, mark, lock, reopen, times = sys.argv[1:]
lock = getattr(fcntl, lock)
fd = os.open(path, os.O_WRONLY | os.O_APPEND)
for number in range(int(times)):
    if reopen == "True":
        os.close(fd)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    lock(fd, fcntl.LOCK_EX)
    os.write(fd, b"%s %0*d\\n" % (mark.encode(), 5 + number % 200, number))
    lock(fd, fcntl.LOCK_UN)
"""
        name = f"{lock}-{reopen}"
        write(self.a(name), b"")
        times = scaled(200)
        writers = [subprocess.Popen([sys.executable, "-c", append, path, mark, lock, str(reopen),
                                     str(times)])
                   for path, mark in ((self.a(name), "a"), (self.b(name), "b"))]
        for writer in writers:
            self.assertEqual(writer.wait(100), 0)
        whole = sorted((mark, number) for mark in "ab" for number in range(times))
        for path in (self.a(name), self.b(name)):
            records = [line.split() for line in read(path).splitlines()]
            self.assertEqual(sorted((mark.decode(), int(number)) for mark, number in records),
                             whole)

    def test_appends_under_a_lock_are_kept(self):
        for lock in ("flock", "lockf"):
            for reopen in (False, True):
                with self.subTest(lock=lock, reopen=reopen):
                    self.append_from_both(lock, reopen)

    def test_an_append_after_a_truncation_elsewhere_is_at_the_end(self):
        write(self.a("file"), b"A" * 10000)
        fd = os.open(self.a("file"), os.O_RDWR | os.O_APPEND)
        self.assertEqual(len(os.read(fd, 20000)), 10000)
        with open(self.b("file"), "r+b") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            other.truncate(5)
            fcntl.flock(other, fcntl.LOCK_UN)
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.write(fd, b"B" * 5000)
        os.write(fd, b"C" * 5000)
        fcntl.flock(fd, fcntl.LOCK_UN)
        text = b"A" * 5 + b"B" * 5000 + b"C" * 5000
        self.assertEqual(os.fstat(fd).st_size, len(text))
        os.close(fd)
        for path in (self.a("file"), self.b("file")):
            self.assertEqual(read(path), text)

    def test_a_lock_shows_a_size_that_shrank(self):
        write(self.a("file"), b"A" * 10000)
        with open(self.a("file"), "r+b", buffering=0) as file:
            self.assertEqual(len(file.read()), 10000)
            os.truncate(self.b("file"), 5000)
            fcntl.flock(file, fcntl.LOCK_SH)
            self.assertEqual(os.pread(file.fileno(), 20000, 4000), b"A" * 1000)
            self.assertEqual(os.pread(file.fileno(), 100, 6000), b"")

    def test_a_weaker_lock_shows_what_was_written(self):
        write(self.a("file"), b"")
        with open(self.a("file"), "r+b", buffering=0) as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            file.write(b"A" * 100)
            fcntl.lockf(file, fcntl.LOCK_SH)
            with open(self.b("file"), "rb") as other:
                fcntl.lockf(other, fcntl.LOCK_SH)
                self.assertEqual(os.fstat(other.fileno()).st_size, 100)

    def test_a_stale_size_does_not_grow_a_file(self):
        write(self.a("file"), b"A" * 200000)
        for finish in (lambda _fd: None, os.fsync, lambda fd: fcntl.flock(fd, fcntl.LOCK_EX)):
            fd = os.open(self.a("file"), os.O_RDWR)
            os.truncate(self.b("file"), 0)
            os.pwrite(fd, b"A" * 10, 0)
            finish(fd)
            os.close(fd)
            self.assertEqual(os.stat(self.b("file")).st_size, 10)
            self.assertEqual(os.stat(self.a("file")).st_size, 10)
            os.truncate(self.b("file"), 200000)

    def test_bytes_cut_off_elsewhere_do_not_come_back(self):
        """Truncation elsewhere also ends sizes that only the writing client knows."""
        fd = os.open(self.a("file"), os.O_RDWR | os.O_CREAT)
        os.write(fd, b"A" * 200000)
        write(self.b("file"), b"short")
        os.close(fd)
        for path in (self.a("file"), self.b("file")):
            self.assertEqual(read(path), b"short")

    def test_two_clients_share_a_database(self):
        base = sqlite3.connect(self.a("base.db"))
        base.execute("create table t(a)")
        base.close()
        insert = """
import sqlite3, sys
base = sqlite3.connect(sys.argv[1], timeout=60)
for i in range(int(sys.argv[2])):
    with base: base.execute("insert into t values(?)", (i,))
"""
        rows = scaled(25)
        writers = [subprocess.Popen([sys.executable, "-c", insert, path, str(rows)])
                   for path in (self.a("base.db"), self.b("base.db"))]
        for writer in writers:
            self.assertEqual(writer.wait(100), 0)
        base = sqlite3.connect(self.b("base.db"))
        self.assertEqual(base.execute("select count(*) from t").fetchone(), (2 * rows,))
        self.assertEqual(base.execute("pragma integrity_check").fetchone(), ("ok",))
        base.close()


class OneAfterTheOther(FsTest):
    def test_a_second_client_waits_until_the_first_caches_no_more(self):
        write("file", b"old")
        os.stat("file")
        self.assertFalse(os.path.exists("new"))
        second = self.world.mount()
        name = os.path.basename(self.dir)
        write(os.path.join(second / name, "new"), b"new")
        write(os.path.join(second / name, "file"), b"longer")
        self.assertEqual(read("new"), b"new")
        self.assertEqual(os.stat("file").st_size, 6)
        self.assertEqual(read("file"), b"longer")
        self.assertEqual(second.unmount(), 0)

    def test_names_known_alone_are_forgotten_for_a_second_client(self):
        os.mkdir("dir")
        for name in "abc":
            write(f"dir/{name}", name.encode())
        self.assertFalse(os.path.exists("dir/d"))
        second = self.world.mount()
        there = os.path.join(second / os.path.basename(self.dir), "dir")
        os.rename(os.path.join(there, "a"), os.path.join(there, "d"))
        os.unlink(os.path.join(there, "b"))
        os.link(os.path.join(there, "c"), os.path.join(there, "e"))
        self.assertEqual(os.stat("dir/c").st_nlink, 2)
        self.assertEqual(second.unmount(), 0)
        for _ in range(2):
            self.assertEqual([name for name in "abcde" if os.path.exists(f"dir/{name}")],
                             ["c", "d", "e"])
            self.assertEqual(sorted(os.listdir("dir")), ["c", "d", "e"])
            self.assertEqual(os.stat("dir/c").st_nlink, 2)
        with self.assertRaises(FileExistsError):
            os.close(os.open("dir/e", os.O_CREAT | os.O_EXCL | os.O_WRONLY))

    def test_threads_that_change_names_leave_a_true_picture(self):
        """Afterwards the mount knows the names and links that the donor has."""
        paths = [f"{directory}/{number}" for directory in ("x", "y") for number in range(6)]
        os.mkdir("x")
        os.mkdir("y")

        def change(seed):
            draw = random.Random(seed)
            for _ in range(scaled(300)):
                a, b = draw.sample(paths, 2)
                operation = draw.choice((
                    lambda: os.close(os.open(a, os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
                    lambda: write(a, b.encode()), lambda: os.unlink(a), lambda: os.rename(a, b),
                    lambda: os.link(a, b), lambda: os.mkdir(a), lambda: os.rmdir(a),
                    lambda: os.stat(a), lambda: os.listdir("x")))
                with contextlib.suppress(FileExistsError, FileNotFoundError, NotADirectoryError,
                                         IsADirectoryError, PermissionError):
                    try:
                        operation()
                    except OSError as error:
                        # ESTALE: another thread removed the file between lookup and open, twice
                        if error.errno not in (errno.ENOTEMPTY, errno.EINVAL, errno.ESTALE):
                            raise

        def picture(root):
            seen = {}
            for path in paths:
                with contextlib.suppress(FileNotFoundError):
                    st = os.stat(os.path.join(root, path))
                    seen[path] = st.st_ino, st.st_mode, st.st_nlink, st.st_size
            return seen
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(change, range(6)))
        known = picture(".")
        self.assertEqual(sorted(known), sorted(
            f"{directory}/{name}" for directory in ("x", "y") for name in os.listdir(directory)))
        second = self.world.mount()
        self.assertEqual(picture(second / os.path.basename(self.dir)), known)
        self.assertEqual(second.unmount(), 0)
        self.assertEqual(picture("."), known)

    def test_a_file_opened_alone_is_written_after_another_client_cut_it(self):
        write("file", b"A" * 200000)
        with open("file", "r+b", buffering=0) as file, open("new", "wb", buffering=0) as new:
            second = self.world.mount()
            name = os.path.basename(self.dir)
            os.truncate(os.path.join(second / name, "file"), 0)
            os.truncate(os.path.join(second / name, "new"), 100)
            file.write(b"A" * 10)
            new.write(b"B" * 10)
        self.assertEqual(read(os.path.join(second / name, "file")), b"A" * 10)
        self.assertEqual(read(os.path.join(second / name, "new")), b"B" * 10 + bytes(90))
        self.assertEqual(second.unmount(), 0)

    def test_locks_are_granted_while_a_second_client_waits(self):
        """Passing a lock on is fast, even in the second for which another client's mount waits."""
        write("file")
        waiter = """
import fcntl, sys
with open("file", "r+b") as file:
    for _ in sys.stdin:
        print("waits", flush=True)
        fcntl.lockf(file, fcntl.LOCK_EX)
        fcntl.lockf(file, fcntl.LOCK_UN)
        print("had it", flush=True)
"""
        with open("file", "r+b") as file, ThreadPoolExecutor() as pool, subprocess.Popen(
                [sys.executable, "-c", waiter], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True) as process:
            second = pool.submit(self.world.mount)
            longest = 0
            while not second.done():
                fcntl.lockf(file, fcntl.LOCK_EX)
                print(file=process.stdin, flush=True)
                process.stdout.readline()
                time.sleep(0.02)
                begin = time.monotonic()
                fcntl.lockf(file, fcntl.LOCK_UN)
                process.stdout.readline()
                longest = max(longest, time.monotonic() - begin)
            process.stdin.close()
        self.assertEqual(second.result().unmount(), 0)
        self.assertLess(longest, 0.6)

    def test_a_stopped_client_keeps_nobody_out(self):
        write("file", b"old")
        os.stat("file")
        first = self.world.clients[0]
        first.stop()
        self.addCleanup(first.go_on)
        begin = time.monotonic()
        second = self.world.mount()
        self.assertLess(time.monotonic() - begin, PROMPT_SECONDS)
        name = os.path.basename(self.dir)
        write(os.path.join(second / name, "file"), b"longer")
        write(os.path.join(second / name, "new"), b"new")
        first.go_on()
        self.assertEqual(read("file"), b"longer")
        self.assertEqual(sorted(os.listdir(".")), ["file", "new"])
        write("file", b"the last")
        self.assertEqual(read(os.path.join(second / name, "file")), b"the last")
        self.assertEqual(second.unmount(), 0)

    def test_a_later_client_sees_attributes_set_on_an_open_file(self):
        with open("file", "wb") as file:
            file.write(b"written")
            file.flush()
            os.fchmod(file.fileno(), 0o604)
            os.utime(file.fileno(), (5, 6))
            second = self.world.mount()
            status = os.stat(os.path.join(second / os.path.basename(self.dir), "file"))
            self.assertEqual(status.st_mode & 0o777, 0o604)
            self.assertEqual((status.st_atime, status.st_mtime, status.st_size), (5, 6, 7))
        self.assertEqual(second.unmount(), 0)


if __name__ == "__main__":
    main()
