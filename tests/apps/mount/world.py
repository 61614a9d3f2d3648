# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A donor, and clients that mount it, for tests of the file system.

The tests are called with the path of the weir command. WEIR_DEVICE chooses the device; default
softnic.
WEIR_TEST_ADDRESS is the address for donors, 127.0.0.1 if unset. WEIR_TEST_KEY is a key file, needed
beyond loopback. WEIR_TEST_SERVE is a command line that runs the donor on another host.
WEIR_TEST_SEALED, if set, lets clients seal the files, one client at a time.
WEIR_TEST_SIZE, at most 1, scales the amount of data on slow devices.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
from tests.support.patience import look, stop_process  # noqa: E402

WEIR = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build/weir"
ADDRESS = os.environ.get("WEIR_TEST_ADDRESS") or "127.0.0.1"
KEY = ["--key", os.environ["WEIR_TEST_KEY"]] if os.environ.get("WEIR_TEST_KEY") else []
SERVE = os.environ.get("WEIR_TEST_SERVE", "").split()
SEALED = bool(os.environ.get("WEIR_TEST_SEALED"))
NOBODY = ADDRESS + ":1"
SKIPPED = 77
# Longer than a call's timeout, shorter than users accept.
PROMPT_SECONDS = 9
# For events that are soon on any machine, but never later than this.
PATIENCE_SECONDS = 60
COMPLAINTS = ("Sanitizer", "runtime error")


def environment():
    return dict(os.environ, WEIR_DEVICE=os.environ.get("WEIR_DEVICE") or "softnic")


def scaled(number):
    """@number, or less on a slow device."""
    return max(1, int(number * float(os.environ.get("WEIR_TEST_SIZE") or 1)))


def stored(size):
    """The donor's memory for the data of a file with a whole last block."""
    return (size + 4095) // 4096 * 4160 if SEALED else size


def with_key(options):
    """The options of a donor or client, with the tests' own key unless they name another."""
    return options if "--key" in options else (*options, *KEY)


def new_key(path):
    """Make a key file."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(os.urandom(32).hex().encode())
    return path


def why_not():
    """The reason why the tests cannot run here, or None."""
    if not os.path.exists("/dev/fuse") or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "cannot open /dev/fuse"
    if not shutil.which("fusermount3"):
        return "there is no fusermount3"
    return None


def main():
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)


def until(condition, seconds=PATIENCE_SECONDS):
    """Waits for @condition; returns False after a timeout."""
    deadline = time.monotonic() + seconds
    while not look(condition):
        if time.monotonic() > deadline:
            return False
    return True


def is_mount_point(path):
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return any(line.split()[4] == path for line in file)


class Client:
    """A mounted donor."""

    def __init__(self, world, number, *options):
        self.path = os.path.join(world.dir, f"client{number}")
        os.makedirs(self.path, exist_ok=True)
        self.log = os.path.join(world.dir, f"client{number}.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [WEIR, "mount", "--foreground", *world.sealing, *with_key(options), world.address,
                 self.path],
                env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if not until(lambda: self.is_mounted() or self.process.poll() is not None) or \
                not self.is_mounted():
            self.process.kill()
            raise AssertionError(f"did not mount: {self.said()}")
        # The mount is listed before the first request is answered; ended there, it is an error.
        os.statvfs(self.path)

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def is_mounted(self):
        return is_mount_point(self.path)

    def __truediv__(self, name):
        return os.path.join(self.path, name)

    def stop(self):
        stop_process(self.process)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def unmount(self):
        """Unmounts, and returns the exit status of the process, which must end on its own."""
        if self.is_mounted():
            subprocess.run(["fusermount3", "-u", self.path], check=True, timeout=PATIENCE_SECONDS)
        return self.process.wait(PATIENCE_SECONDS)

    def destroy(self):
        if self.is_mounted():
            subprocess.run(["fusermount3", "-u", "-z", self.path], timeout=PATIENCE_SECONDS,
                           stderr=subprocess.DEVNULL)
        try:
            self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


class World:
    """A donor with any number of clients."""

    def __init__(self, memory="256M", *options):
        self.dir = tempfile.mkdtemp(prefix="weir-fs-")
        self.clients = []
        self.sealing = ["--seal", new_key(os.path.join(self.dir, "seal.key"))] if SEALED else []
        with open(os.path.join(self.dir, "donor.log"), "wb") as log:
            self.donor = subprocess.Popen(
                [*SERVE, WEIR, "serve", "--listen", f"{ADDRESS}:0", "--memory", memory,
                 *with_key(options)],
                env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        ready = re.match(rb"ready (\S+)", self.donor.stdout.readline())
        if not ready:
            self.donor.kill()
            raise AssertionError("the donor did not start")
        self.address = ready.group(1).decode()

    def said(self):
        with open(os.path.join(self.dir, "donor.log"), encoding="utf-8") as file:
            return file.read()

    def mount(self, *options):
        client = Client(self, len(self.clients), *options)
        self.clients.append(client)
        return client

    def kill_donor(self, number=signal.SIGKILL):
        self.donor.send_signal(number)
        self.donor.wait(PATIENCE_SECONDS)

    def stop_donor(self):
        stop_process(self.donor)

    def destroy(self):
        for client in self.clients:
            client.destroy()
        if self.donor.poll() is None:
            self.donor.send_signal(signal.SIGCONT)
            self.donor.terminate()
        self.donor.wait(PATIENCE_SECONDS)
        self.donor.stdout.close()
        self.check_logs()
        shutil.rmtree(self.dir)

    def check_logs(self):
        for name in os.listdir(self.dir):
            if not name.endswith(".log"):
                continue
            with open(os.path.join(self.dir, name), encoding="utf-8", errors="replace") as file:
                said = file.read()
            if any(complaint in said for complaint in COMPLAINTS):
                raise AssertionError(f"{name}: {said}")


class FsTest(unittest.TestCase):
    """A donor and `clients` clients per class; a directory per test."""
    memory = "256M"
    clients = 1

    @classmethod
    def setUpClass(cls):
        cls.world = World(cls.memory)
        cls.addClassCleanup(cls.world.destroy)
        for _ in range(cls.clients):
            cls.world.mount()

    def setUp(self):
        first = self.world.clients[0]
        self.dir = first / self.id().split(".")[-1]
        os.mkdir(self.dir)
        os.chdir(self.dir)
        self.addCleanup(os.chdir, "/")

    def fails(self, errno, function, *args):
        with self.assertRaises(OSError) as caught:
            function(*args)
        self.assertEqual(caught.exception.errno, errno)


def write(path, data=b"x"):
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def in_child(function, uid=0):
    """The result of @function (a small number), or its errno, in a child process."""
    pid = os.fork()
    if pid == 0:
        status = 255
        try:
            if uid:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            status = function() or 0
        except OSError as error:
            status = error.errno
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
