# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir fs snapshot: copies of a moment, while programs write."""
import errno
import fcntl
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mount"))
from world import (FsTest, PATIENCE_SECONDS, WEIR, World, in_child, main, read,  # noqa: E402
                   write)

RECORD = b"%063d\n"
FILES_SNAPSHOT = 1 << 30 | 264 << 16 | ord("w") << 8 | 0x76  # of wire/files.h


def weir_fs(*args):
    return subprocess.run([WEIR, "fs", *args], capture_output=True, text=True,
                          timeout=PATIENCE_SECONDS)


def ask(place, parent):
    """Asks the mount of @place, a path or a descriptor, for a copy in @parent. Return: errno."""
    wanted = struct.pack("=Q256s", parent, b"copy")
    fd = os.dup(place) if isinstance(place, int) else os.open(place, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, FILES_SNAPSHOT, wanted)
    except OSError as error:
        return error.errno
    finally:
        os.close(fd)
    return 0


class Writers:
    """Threads, each with an order of changes, for which a copy must be some moment."""

    def __init__(self, root):
        self.root, self.stop, self.errors = root, threading.Event(), []
        self.threads = [threading.Thread(target=self.run, args=(work,)) for work in
                        (self.append, self.make, self.rename)]

    def run(self, work):
        try:
            work()
        except OSError as error:
            self.errors.append(error)

    def __enter__(self):
        for name in ("records", "files", "renamed"):
            os.mkdir(os.path.join(self.root, name))
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_exception):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def append(self):
        """Each record goes to one file, and then to another."""
        paths = [os.path.join(self.root, "records", name) for name in "ab"]
        fds = [os.open(path, os.O_CREAT | os.O_WRONLY) for path in paths]
        number = 0
        while not self.stop.is_set():
            for fd in fds:
                os.pwrite(fd, RECORD % number, 64 * number)
            number += 1
        for fd in fds:
            os.close(fd)

    def make(self):
        number = 0
        while not self.stop.is_set():
            write(os.path.join(self.root, "files", str(number)), RECORD % number)
            number += 1

    def rename(self):
        """From the first moment on there is exactly one name."""
        path = os.path.join(self.root, "renamed")
        write(os.path.join(path, "0"))
        number = 0
        while not self.stop.is_set():
            os.rename(os.path.join(path, str(number)), os.path.join(path, str(number + 1)))
            number += 1


class Snapshots(FsTest):
    def take(self, name, path=None):
        done = weir_fs("snapshot", path or self.dir, name)
        self.assertEqual(done.returncode, 0, done.stderr)
        copy = os.path.join(self.world.clients[0].path, ".snapshots", name)
        self.assertEqual(done.stdout, copy + "\n")
        self.addCleanup(shutil.rmtree, copy)
        return copy

    def check_moment(self, copy):
        records = [read(os.path.join(copy, "records", name)).splitlines(True) for name in "ab"]
        for lines in records:
            self.assertEqual(lines, [RECORD % number for number in range(len(lines))])
        self.assertIn(len(records[0]) - len(records[1]), (0, 1))
        files = sorted(map(int, os.listdir(os.path.join(copy, "files"))))
        self.assertEqual(files, list(range(len(files))))
        for number in files[:-1]:
            self.assertEqual(read(os.path.join(copy, "files", str(number))), RECORD % number)
        self.assertLessEqual(len(os.listdir(os.path.join(copy, "renamed"))), 1)

    def test_a_copy_is_of_one_moment(self):
        os.mkdir("busy")
        with Writers(os.path.join(self.dir, "busy")) as writers:
            copies = [self.take(f"moment{i}", "busy") for i in range(8)]
        self.assertEqual(writers.errors, [])
        for copy in copies:
            self.check_moment(copy)
        self.check_moment("busy")
        self.assertGreater(len(read(os.path.join(copies[-1], "records/a"))), 0)
        checked = weir_fs("check", self.world.clients[0].path)
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_a_copy_is_whole_and_apart(self):
        os.makedirs("a/b")
        write("a/file", b"x" * 100000)
        os.link("a/file", "a/b/again")
        os.symlink("file", "a/link")
        os.setxattr("a/b", "user.key", b"value")
        with open("sparse", "wb") as file:
            file.truncate(50 << 20)
            file.seek(30 << 20)
            file.write(b"y")
        os.chmod("a/b", 0o2750)
        os.utime("a/file", (5, 6))
        copy = self.take("whole")
        run = subprocess.run(["rsync", "-aHXn", "--delete", "--itemize-changes", self.dir + "/",
                              copy + "/"], capture_output=True, text=True, timeout=60)
        if shutil.which("rsync"):
            self.assertEqual(run.stdout, "")
        subprocess.run(["diff", "-r", "--no-dereference", self.dir, copy], check=True)
        self.assertEqual(os.stat(os.path.join(copy, "sparse")).st_blocks,
                         os.stat("sparse").st_blocks)
        write("a/file", b"new")
        os.unlink("sparse")
        self.assertEqual(read(os.path.join(copy, "a/b/again")), b"x" * 100000)
        self.assertTrue(os.path.exists(os.path.join(copy, "sparse")))

    def test_a_copy_is_exported(self):
        write("file", b"then")
        copy = self.take("exported")
        write("file", b"now")
        archive = os.path.join(self.world.dir, "copy.tar")
        self.assertEqual(weir_fs("export", copy, archive).returncode, 0)
        os.mkdir("back")
        done = weir_fs("import", archive, "back")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(read("back/file"), b"then")

    def test_refusals(self):
        self.take("there")
        for args, said in (((self.dir, "there"), "exists"), ((self.dir, "a/b"), "no name"),
                           ((self.dir, ".."), "no name"), (("/proc", "x"), "mount"),
                           ((self.dir,), "PATH NAME")):
            done = weir_fs("snapshot", *args)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)
        second = self.world.mount()
        self.assertIn("another client", weir_fs("snapshot", self.dir, "late").stderr)
        self.assertEqual(second.unmount(), 0)
        self.take("later")

    def test_a_mount_that_only_reads_takes_none(self):
        world = World("64M")
        self.addCleanup(world.destroy)
        client = world.mount("--read-only")
        self.assertEqual(ask(client.path, os.stat(client.path).st_ino), errno.EROFS)

    def test_a_silent_donor_ends_the_wait(self):
        world = World("64M")
        self.addCleanup(world.destroy)
        client = world.mount("--hard")
        write(client / "file")
        ino = os.stat(client.path).st_ino
        folder = os.open(client.path, os.O_RDONLY)
        self.addCleanup(os.close, folder)
        world.stop_donor()
        opener = threading.Thread(target=read, args=(client / "file",))
        opener.start()
        result = []
        asker = threading.Thread(target=lambda: result.append(ask(folder, ino)))
        asker.start()
        asker.join(PATIENCE_SECONDS)
        self.assertFalse(asker.is_alive())
        world.donor.send_signal(signal.SIGCONT)
        asker.join()
        opener.join()
        self.assertEqual(result, [errno.EBUSY])
        write(client / "after")
        self.assertEqual(read(client / "after"), b"x")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_only_root_and_the_mounts_user_take_one(self):
        os.chmod(self.dir, 0o755)
        self.assertNotEqual(in_child(lambda: weir_fs("snapshot", self.dir, "x").returncode, 1000),
                            0)


if __name__ == "__main__":
    main()
