# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Names changed by a lone client, told to the donor later."""
import errno
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from world import WEIR, World, main, read, scaled, until, write

IS_SOFTNIC = os.environ.get("WEIR_DEVICE", "softnic") == "softnic"
TICK_SECONDS = 0.01 # as the mount has it
# Makes files f0, f1, ... with the numbers as text, until the mount is gone. Prints the number of
# each file after a successful fsync(2).
MAKER = """
import os, sys
os.chdir(sys.argv[1])
number = 0
try:
    while True:
        fd = os.open(f"f{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        os.write(fd, b"%d" % number * 100)
        if number % 37 == 0:
            os.fsync(fd)
            print(number, flush=True)
        os.close(fd)
        number += 1
except OSError:
    pass
"""


def content(number):
    return b"%d" % number * 100


def state(path):
    """All attributes touched by a change of names."""
    st = os.lstat(path)
    return (st.st_ino, st.st_mode, st.st_nlink, st.st_uid, st.st_gid, st.st_size, st.st_blocks,
            st.st_mtime_ns, st.st_ctime_ns)


def picture(root):
    """{path: attributes} of a tree."""
    found = {".": state(root)}
    for folder, directories, files in os.walk(root):
        for name in directories + files:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, root)] = state(path)
    return found


class Changes(unittest.TestCase):
    options = ()

    def setUp(self):
        self.world = World("256M", *self.options)
        self.addCleanup(self.world.destroy)
        self.client = self.world.mount()
        self.dir = self.client / "dir"
        os.mkdir(self.dir)
        # Some changes: now the client expects more.
        for number in range(6):
            write(os.path.join(self.dir, f"first{number}"))

    def second(self):
        """The directory, as another client sees it."""
        return self.world.mount() / "dir"

    def make(self, names):
        for number, name in enumerate(names):
            write(os.path.join(self.dir, name), content(number))


class Counted(Changes):
    """Messages, counted by the donor."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.metrics_path = os.path.join(directory.name, "metrics")
        self.options = "--metrics", f"unix:{self.metrics_path}"
        super().setUp()

    def messages(self):
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(self.metrics_path)
            server.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = b"".join(iter(lambda: server.recv(65536), b"")).decode()
        return sum(int(float(value)) for value in
                   re.findall(r"^weir_donor_messages_total(?:\{[^}]*\})? (\S+)$", text, re.M))

    def test_a_change_of_a_name_takes_few_messages(self):
        """A batch has the changes of some milliseconds: a slow machine may send more."""
        files = 400
        path = [os.path.join(self.dir, f"x{i}") for i in range(files)]

        def check(what, work):
            messages, begin = self.messages(), time.monotonic()
            for number in range(files):
                work(number)
            os.fsync(fd)
            ticks = (time.monotonic() - begin) / TICK_SECONDS
            messages = self.messages() - messages
            self.assertLess(messages, 0.2 * files + 2 * ticks, what)
        fd = os.open(self.dir, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        check("write", lambda i: write(path[i], content(i)))
        check("chmod", lambda i: os.chmod(path[i], 0o600))
        check("rename", lambda i: os.rename(path[i], path[i] + "y"))
        check("unlink", lambda i: os.unlink(path[i] + "y"))
        check("mkdir", lambda i: os.mkdir(path[i]))
        check("rmdir", lambda i: os.rmdir(path[i]))


class Same(Changes):
    """The client and the donor come to the same attributes."""

    def test_attributes_are_those_of_the_donor(self):
        os.mkdir(os.path.join(self.dir, "sub"))
        os.mkdir(os.path.join(self.dir, "shared"))
        os.chmod(os.path.join(self.dir, "shared"), 0o2775)
        os.chown(os.path.join(self.dir, "shared"), 0, 5)
        self.make([f"x{i}" for i in range(100)])
        self.make([f"sub/x{i}" for i in range(20)])
        self.make([f"shared/x{i}" for i in range(3)])
        os.mkdir(os.path.join(self.dir, "shared", "sub"))
        for number in range(100):
            path = os.path.join(self.dir, f"x{number}")
            if number % 5 == 0:
                os.unlink(path)
            elif number % 5 == 1:
                os.rename(path, os.path.join(self.dir, "sub", f"moved{number}"))
            elif number % 5 == 2:
                os.rename(path, os.path.join(self.dir, f"x{number + 1}"))
            elif number % 5 == 4:
                os.truncate(path, 5000 * number)
        os.symlink("x" * 40, os.path.join(self.dir, "link"))
        os.symlink("y" * 400, os.path.join(self.dir, "long"))
        os.mkdir(os.path.join(self.dir, "gone"))
        os.rmdir(os.path.join(self.dir, "gone"))
        write(os.path.join(self.dir, "empty"), b"")
        known = picture(self.dir)
        self.assertEqual(known["shared/sub"][1:5], (0o42755, 2, 0, 5))
        there = self.second()
        self.assertEqual(picture(there), known)
        self.assertEqual(picture(self.dir), known)
        self.assertEqual(read(os.path.join(there, "sub", "moved1")), content(1))

    def test_threads_leave_a_true_picture(self):
        places = [self.dir, os.path.join(self.dir, "a"), os.path.join(self.dir, "b")]
        os.mkdir(places[1])
        os.mkdir(places[2])

        def change(seed):
            draw = random.Random(seed)
            for _ in range(scaled(400)):
                one, two = (os.path.join(draw.choice(places), f"n{draw.randrange(6)}")
                            for _ in range(2))
                work = draw.choice((
                    lambda: write(one, two.encode()), lambda: os.unlink(one),
                    lambda: os.rename(one, two), lambda: os.mkdir(one), lambda: os.rmdir(one),
                    lambda: os.link(one, two), lambda: os.symlink(two, one),
                    lambda: os.stat(one), lambda: os.chmod(one, 0o640),
                    lambda: os.listdir(draw.choice(places))))
                try:
                    work()
                except OSError as error:
                    if error.errno in (errno.EIO, errno.EPROTO, errno.EBADF):
                        raise
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(change, range(6)))
        known = picture(self.dir)
        self.assertEqual(picture(self.second()), known)
        self.assertEqual(picture(self.dir), known)
        self.assertNotIn("W512", self.client.said())

    def test_a_second_client_sees_what_was_done_before(self):
        self.make([f"x{i}" for i in range(200)])
        there = self.second()
        self.assertEqual({read(os.path.join(there, f"x{i}")) for i in range(200)},
                         {content(i) for i in range(200)})
        write(os.path.join(there, "x0"), b"theirs")
        os.unlink(os.path.join(there, "x1"))
        self.assertEqual(read(os.path.join(self.dir, "x0")), b"theirs")
        self.assertFalse(os.path.exists(os.path.join(self.dir, "x1")))

    def test_a_commit_that_is_due_while_a_file_is_closed(self):
        """A close of a duplicate makes the commit due, some milliseconds later."""
        def make(seed):
            draw = random.Random(seed)
            for number in range(scaled(100)):
                path = os.path.join(self.dir, f"x{seed}-{number}")
                fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
                os.write(fd, content(number))
                os.close(os.dup(fd))
                time.sleep(draw.uniform(0.009, 0.0115))
                os.close(fd)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(make, range(8)))
        there = self.second()
        for seed in range(8):
            for number in range(scaled(100)):
                self.assertEqual(read(os.path.join(there, f"x{seed}-{number}")), content(number))

    def test_two_clients_by_turns(self):
        """Each client mounts, works alone, and leaves. The next finds all."""
        for turn in range(4):
            self.make([f"x{turn}-{i}" for i in range(50)])
            os.unlink(os.path.join(self.dir, f"x{turn}-7"))
            os.rename(os.path.join(self.dir, f"x{turn}-8"), os.path.join(self.dir, f"y{turn}"))
            known = picture(self.dir)
            self.assertEqual(self.client.unmount(), 0)
            self.client = self.world.mount()
            self.dir = self.client / "dir"
            self.assertEqual(picture(self.dir), known)

    def test_a_removed_file_stays_open(self):
        path = os.path.join(self.dir, "open")
        with open(path, "w+b", buffering=0) as file:
            file.write(b"here")
            os.unlink(path)
            self.assertEqual(os.fstat(file.fileno()).st_nlink, 0)
            write(path, b"another")
            os.fsync(file.fileno())
            self.assertEqual(os.pread(file.fileno(), 9, 0), b"here")
        self.assertEqual(read(path), b"another")


class Lost(Changes):
    """Deaths, and a silent donor."""

    def start_maker(self):
        maker = subprocess.Popen([sys.executable, "-c", MAKER, self.dir], stdout=subprocess.PIPE)
        self.addCleanup(maker.stdout.close)
        return maker

    def assert_prefix(self, root, synced):
        """Files up to some number, at least @synced, complete but for the last."""
        numbers = sorted(int(name[1:]) for name in os.listdir(root) if re.match(r"f\d", name))
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertGreaterEqual(len(numbers), synced + 1)
        for number in numbers[:-1]:
            self.assertEqual(read(os.path.join(root, f"f{number}")), content(number))
        if numbers:
            self.assertIn(read(os.path.join(root, f"f{numbers[-1]}")),
                          (b"", content(numbers[-1])))

    def test_a_killed_client_leaves_a_prefix(self):
        for _ in range(3):
            for name in os.listdir(self.dir):
                os.unlink(os.path.join(self.dir, name))
            maker = self.start_maker()
            for _ in range(random.randrange(3, 12)):
                synced = int(maker.stdout.readline())
            self.client.process.kill()
            self.client.process.wait()
            rest = maker.stdout.read().split()
            maker.wait()
            self.assertTrue(until(lambda: not self.client.is_mounted()), self.client.said())
            self.client = self.world.mount()
            self.dir = self.client / "dir"
            self.assert_prefix(self.dir, int(rest[-1]) if rest else synced)

    def test_a_donor_that_sleeps_loses_nothing(self):
        maker = self.start_maker()
        maker.stdout.readline()
        self.world.stop_donor()
        names = [f"later{i}" for i in range(8)]
        with ThreadPoolExecutor() as pool:
            work = pool.submit(self.make, names)
            self.world.donor.send_signal(signal.SIGCONT)
            work.result()
        for _ in range(3):
            synced = int(maker.stdout.readline())
        maker.kill()
        maker.wait()
        there = self.second()
        self.assert_prefix(there, synced)
        for number, name in enumerate(names):
            self.assertEqual(read(os.path.join(there, name)), content(number))

    def test_a_client_stopped_for_long_loses_its_last_names_only(self):
        maker = self.start_maker()
        for _ in range(3):
            synced = int(maker.stdout.readline())
        self.client.stop()
        there = self.second()
        self.assert_prefix(there, synced)
        before = len([name for name in os.listdir(there) if name.startswith("f")])
        write(os.path.join(there, f"f{before}"), b"theirs")
        self.client.go_on()
        maker.kill()
        maker.wait()
        self.assertEqual(read(os.path.join(self.dir, f"f{before}")), b"theirs")
        self.assertEqual(sorted(os.listdir(self.dir)), sorted(os.listdir(there)))
        write(os.path.join(self.dir, "after"), b"works")
        self.assertEqual(read(os.path.join(there, "after")), b"works")

    @unittest.skipUnless(IS_SOFTNIC, "only softnic breaks connections on demand")
    def test_a_broken_connection_does_nothing_twice(self):
        fault = [WEIR, "fault", str(self.client.process.pid)]
        made = []
        for number in range(150):
            if number % 30 == 15:
                subprocess.run([*fault, "error_after=0"], check=True, stdout=subprocess.DEVNULL)
            if number % 30 == 16:
                subprocess.run([*fault, "error_after=never"], check=True,
                               stdout=subprocess.DEVNULL)
            try:
                os.mkdir(os.path.join(self.dir, f"x{number}"))
                made.append(f"x{number}")
            except FileExistsError:
                made.append(f"x{number}") # the donor had made it before an error
            except OSError as error:
                self.assertEqual(error.errno, errno.EIO)
        subprocess.run([*fault, "error_after=never"], check=True, stdout=subprocess.DEVNULL)
        self.assertTrue(until(lambda: os.path.isdir(os.path.join(self.dir, made[-1]))))
        there = self.second()
        self.assertLessEqual(set(made), set(os.listdir(there)))
        self.assertEqual(picture(self.dir), picture(there))


if __name__ == "__main__":
    main()
