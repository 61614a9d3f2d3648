# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Full donors, unmounts, signals, kills, and impossible mounts."""
import errno
import os
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from world import (KEY, NOBODY, PATIENCE_SECONDS, PROMPT_SECONDS, WEIR, World, environment,
                   is_mount_point, main, new_key, read, scaled, until, write)

# Memory of donors that a test fills: less on a slow device.
MEMORY = max(16, scaled(64)) << 20
# A source's bound, lib/base/rate_limit.h.
LOG_LINES, LOG_SECONDS = 50, 10


def keep_writing(path, errors):
    """Writes until an error."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    except OSError as error:
        errors.append(error.errno)
        return
    try:
        while True:
            os.pwrite(fd, b"x" * (1 << 20), 0)
    except OSError as error:
        errors.append(error.errno)
    try:
        os.close(fd)
    except OSError:
        pass  # data that could not be committed at close


def works(path):
    """Whether a file can be written and read."""
    try:
        write(path, b"all is well")
        return read(path) == b"all is well"
    except OSError:
        return False


BREAKS_CONNECTIONS = unittest.skipIf(os.environ.get("WEIR_DEVICE", "softnic") != "softnic",
                                     "only softnic breaks connections on demand")


class Ends(unittest.TestCase):
    memory = f"{MEMORY >> 20}M"

    def setUp(self):
        self.world = World(self.memory)
        self.addCleanup(self.world.destroy)
        self.client = self.world.mount()

    def write_until_the_end(self, end):
        errors = []
        threads = [threading.Thread(target=keep_writing, args=(self.client / f"f{i}", errors))
                   for i in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        end()
        for thread in threads:
            thread.join(PROMPT_SECONDS)
            self.assertFalse(thread.is_alive(), "a write hangs")
        return errors

    def test_a_donor_that_is_killed_means_eio_at_once(self):
        errors = self.write_until_the_end(self.world.kill_donor)
        self.assertEqual(set(errors), {errno.EIO})
        with self.assertRaises(OSError) as caught:
            os.listdir(self.client.path)
        self.assertEqual(caught.exception.errno, errno.EIO)
        self.assertEqual(self.client.unmount(), 0)
        self.assertIn("is lost", self.client.said())

    def test_a_donor_that_ends_means_eio_at_once(self):
        errors = self.write_until_the_end(lambda: self.world.kill_donor(signal.SIGTERM))
        self.assertEqual(set(errors), {errno.EIO})
        self.assertEqual(self.client.unmount(), 0)
        self.assertIn("has closed", self.client.said())

    def test_a_donor_that_sleeps_means_eio_in_time_and_may_come_back(self):
        write(self.client / "file", b"here")
        self.world.stop_donor()
        start = time.monotonic()
        with self.assertRaises(OSError) as caught:
            os.stat(self.client / "nothing")
        self.assertEqual(caught.exception.errno, errno.EIO)
        self.assertLess(time.monotonic() - start, PROMPT_SECONDS)
        self.world.donor.send_signal(signal.SIGCONT)
        self.assertTrue(until(lambda: os.path.exists(self.client / "file")),
                        self.client.said())
        self.assertEqual(read(self.client / "file"), b"here")

    def test_a_close_during_the_donors_sleep_is_committed_again(self):
        with open(self.client / "late", "wb") as file:
            file.write(b"told")
            file.flush()
            self.world.stop_donor()
        with self.assertRaises(OSError):
            os.stat(self.client / "nothing")
        self.world.donor.send_signal(signal.SIGCONT)
        self.assertTrue(until(lambda: os.path.exists(self.client / "late")),
                        self.client.said())
        with open(self.client / "late", "r+b") as file:
            os.fsync(file.fileno())
            self.assertEqual(file.read(), b"told")
        self.assertEqual(self.client.unmount(), 0)
        self.assertEqual(read(self.world.mount() / "late"), b"told")

    @BREAKS_CONNECTIONS
    def test_a_close_whose_connection_breaks_is_committed_again(self):
        fault = [WEIR, "fault", str(self.client.process.pid)]
        with open(self.client / "late", "wb") as file:
            file.write(b"told")
            file.flush()
            self.world.stop_donor()
            subprocess.run([*fault, "error_after=0"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*fault, "error_after=never"], check=True, stdout=subprocess.DEVNULL)
        self.world.donor.send_signal(signal.SIGCONT)
        self.assertTrue(until(lambda: os.path.exists(self.client / "late")), self.client.said())
        with open(self.client / "late", "r+b") as file:
            os.fsync(file.fileno())
            self.assertEqual(file.read(), b"told")

    def test_the_timeout_is_the_users(self):
        impatient = self.world.mount("--timeout", "2")
        self.world.stop_donor()
        start = time.monotonic()
        with self.assertRaises(OSError) as caught:
            os.stat(impatient / "nothing")
        self.assertEqual(caught.exception.errno, errno.EIO)
        self.assertLess(time.monotonic() - start, 5)
        self.world.donor.send_signal(signal.SIGCONT)

    def test_a_hard_mount_waits_for_a_donor_that_comes_back(self):
        hard = self.world.mount("--hard", "--timeout", "2")
        write(hard / "file", b"here")
        fd = os.open(hard / "open", os.O_RDWR | os.O_CREAT)
        work = [lambda: read(hard / "file"), lambda: os.mkdir(hard / "new"),
                lambda: write(hard / "written", b"x" * 100000),
                lambda: os.pwrite(fd, b"y" * 100000, 1 << 20), lambda: os.fsync(fd),
                lambda: os.listdir(hard.path), lambda: os.rename(hard / "file", hard / "moved")]
        self.world.stop_donor()
        with ThreadPoolExecutor(len(work)) as pool:
            done = [pool.submit(function) for function in work]
            time.sleep(5)
            self.assertFalse(done[1].done())
            self.world.donor.send_signal(signal.SIGCONT)
            for result in done[1:]:
                result.result(PATIENCE_SECONDS)
        os.close(fd)
        self.assertEqual(read(hard / "written"), b"x" * 100000)
        self.assertEqual(read(hard / "open")[1 << 20:], b"y" * 100000)
        self.assertTrue(os.path.isdir(hard / "new"))
        self.assertEqual(hard.unmount(), 0)

    def test_a_signal_ends_a_wait_on_a_hard_mount(self):
        hard = self.world.mount("--hard", "--timeout", "2")
        self.world.stop_donor()
        waiting = [subprocess.Popen(["stat", hard / f"nothing{i}"], stderr=subprocess.DEVNULL)
                   for i in range(12)]
        time.sleep(5)
        self.assertEqual({process.poll() for process in waiting}, {None})
        for process, number in zip(waiting, [signal.SIGINT, signal.SIGKILL] * 6):
            process.send_signal(number)
        for process in waiting:
            self.assertNotEqual(process.wait(PROMPT_SECONDS), 0)
        self.world.donor.send_signal(signal.SIGCONT)
        self.assertTrue(until(lambda: works(hard / "after")))
        self.assertEqual(hard.unmount(), 0)

    def test_a_hard_mount_of_a_killed_donor_fails_at_once(self):
        hard = self.world.mount("--hard")
        self.world.kill_donor()
        with self.assertRaises(OSError) as caught:
            os.listdir(hard.path)
        self.assertEqual(caught.exception.errno, errno.EIO)
        self.assertEqual(hard.unmount(), 0)

    @unittest.skipUnless(is_mount_point("/"), "fusermount3 takes no mount down in a plain chroot")
    @BREAKS_CONNECTIONS
    def test_a_broken_connection_is_reestablished(self):
        fault = [WEIR, "fault", str(self.client.process.pid)]
        stop = threading.Event()
        errors = []

        def keep_making_files():
            number = 0
            while not stop.is_set():
                number += 1
                try:
                    write(self.client / f"f{number % 50}", b"x" * 3000)
                except OSError as error:
                    errors.append(error.errno)

        writer = threading.Thread(target=keep_making_files)
        writer.start()
        for _ in range(6):
            subprocess.run([*fault, "error_after=0"], check=True, stdout=subprocess.DEVNULL)
            time.sleep(0.05)
            subprocess.run([*fault, "error_after=never"], check=True, stdout=subprocess.DEVNULL)
            time.sleep(0.1)
        stop.set()
        writer.join(PROMPT_SECONDS)
        self.assertFalse(writer.is_alive(), "a write hangs")
        self.assertLessEqual(set(errors), {errno.EIO})
        # The first operation may be the one that detects the broken connection.
        self.assertTrue(until(lambda: works(self.client / "after")))

    def test_a_client_that_is_killed_leaves_no_mount(self):
        write(self.client / "closed", b"kept")
        self.write_until_the_end(self.client.process.kill)
        self.client.process.wait()
        self.assertTrue(until(lambda: not self.client.is_mounted()), self.client.said())
        self.assertEqual(read(self.world.mount() / "closed"), b"kept")

    def test_both_killed_leave_no_mount(self):
        def kill_both():
            self.world.kill_donor()
            self.client.process.kill()

        self.write_until_the_end(kill_both)
        self.client.process.wait()
        self.assertTrue(until(lambda: not self.client.is_mounted()), self.client.said())

    def test_a_signal_unmounts_and_keeps_written_data(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            client = self.world.mount()
            fd = os.open(client / "open", os.O_WRONLY | os.O_CREAT)
            os.write(fd, b"not closed")
            client.process.send_signal(number)
            self.assertEqual(client.process.wait(PATIENCE_SECONDS), 0)
            self.assertFalse(client.is_mounted())
            with self.assertRaises(OSError):
                os.write(fd, b"more")
            try:
                os.close(fd)
            except OSError:
                pass
            self.assertEqual(read(self.client / "open"), b"not closed")

    def test_a_full_donor_loses_nothing(self):
        data = os.urandom(1 << 20)
        kept = range(MEMORY // len(data) // 2)
        for number in kept:
            write(self.client / f"kept{number}", data)
        with self.assertRaises(OSError) as caught:
            write(self.client / "large", b"x" * MEMORY)
        self.assertEqual(caught.exception.errno, errno.ENOSPC)
        for number in kept:
            self.assertEqual(read(self.client / f"kept{number}"), data)
        os.unlink(self.client / "large")
        write(self.client / "fits", b"y" * (MEMORY // 4))
        self.assertEqual(read(self.client / "fits"), b"y" * (MEMORY // 4))


class Refused(unittest.TestCase):
    """An impossible mount prints a line that names the object, and leaves nothing behind."""

    def mount(self, *args):
        return subprocess.run([WEIR, "mount", *args], env=environment(), text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=60)

    def refused(self, text, *args):
        done = self.mount(*args)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(text, done.stderr)
        return done

    def test_mount_points(self):
        with tempfile.TemporaryDirectory() as directory:
            missing = os.path.join(directory, "missing")
            self.refused("mkdir", NOBODY, missing)
            write(os.path.join(directory, "file"))
            self.refused("not empty", NOBODY, directory)
            self.refused("Not a directory", NOBODY, os.path.join(directory, "file"))

    def test_where_weir_is_mounted_already(self):
        world = World("64M")
        self.addCleanup(world.destroy)
        client = world.mount()
        self.refused("umount", *KEY, world.address, client.path)
        world.kill_donor()
        self.refused("umount", *KEY, world.address, client.path)

    def test_no_donor_listens(self):
        with tempfile.TemporaryDirectory() as directory:
            self.refused(NOBODY, *KEY, NOBODY, directory)
            self.assertFalse(os.path.ismount(directory))

    def test_options(self):
        self.assertEqual(self.refused("--threads", "--threads", "0", "a", "b").returncode, 2)
        self.assertEqual(self.refused("expected", "a").returncode, 2)
        self.assertIn("volatile", self.mount("--help").stdout)

    def test_keys(self):
        with tempfile.TemporaryDirectory() as directory:
            keys = [os.path.join(directory, name) for name in ("right", "wrong")]
            for key in keys:
                subprocess.run([WEIR, "key", "new", key], check=True, capture_output=True)
            world = World("64M", "--key", keys[0])
            self.addCleanup(world.destroy)
            point = os.path.join(directory, "mnt")
            os.mkdir(point)
            self.refused("key", "--key", keys[1], world.address, point)
            self.refused("key", world.address, point)
            self.refused("missing", "--key", os.path.join(directory, "missing"), world.address,
                         point)
            self.assertFalse(os.path.ismount(point))
            client = world.mount("--key", keys[0])
            write(client / "file")
            self.assertEqual(client.unmount(), 0)

    def test_in_the_background(self):
        world = World("64M")
        self.addCleanup(world.destroy)
        with tempfile.TemporaryDirectory() as directory:
            done = self.mount(*KEY, world.address, directory)
            self.assertEqual((done.returncode, os.path.ismount(directory)), (0, True))
            write(os.path.join(directory, "file"))
            subprocess.run(["fusermount3", "-u", directory], check=True)

    def test_a_key_at_its_bound_fills_no_log(self):
        with tempfile.TemporaryDirectory() as directory:
            key = new_key(os.path.join(directory, "key"))
            world = World("64M", "--key", key, "--key-memory", "16M")
            self.addCleanup(world.destroy)
            client = world.mount("--key", key)
        begin = time.monotonic()
        for number in range(4 * LOG_LINES):
            with self.assertRaises(OSError) as caught:
                with open(client / f"file{number}", "wb", buffering=0) as file:
                    os.posix_fallocate(file.fileno(), 0, 32 << 20)
            self.assertEqual(caught.exception.errno, errno.ENOSPC)
        lines = world.said().count('msg="no memory"')
        self.assertGreater(lines, 0)
        self.assertEqual(world.said().count("id=W204"), lines)
        periods = int(time.monotonic() - begin) // LOG_SECONDS + 1
        self.assertLessEqual(lines, periods * LOG_LINES)

    def test_read_only(self):
        world = World("64M")
        self.addCleanup(world.destroy)
        client = world.mount("--read-only")
        with self.assertRaises(OSError) as caught:
            write(client / "file")
        self.assertEqual(caught.exception.errno, errno.EROFS)


if __name__ == "__main__":
    main()
