# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The lease of all names, which moves between two clients of a donor."""
import json
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

from linearizable import Call, DONE, EXISTS, MISSING, first_wrong
from world import PATIENCE_SECONDS, World, main, read, until, write

QUIET_SECONDS = 1 # as the donor has it
TICK_SECONDS = 0.01 # as the mount has it
FEW = 0.2 # messages a file
# Calls on a few names until the time is over, after a pause. Prints each as JSON.
CALLER = """
import json, os, random, sys, time
place, others, seed, pause, seconds = sys.argv[1:]
draw = random.Random(int(seed))
names = others.split()
os.chdir(place)
time.sleep(float(pause))
end, number, calls = time.monotonic() + float(seconds), 0, []

def read(name):
    with open(name, "rb") as file:
        return file.read().decode()

def new(name):
    with open(name, "wb") as file:
        file.write(name.encode())
    return name

while time.monotonic() < end:
    name, other = draw.sample(names, 2)
    text = f"{seed}-{number}"
    asked = draw.choice((["read", name], ["read", name], ["put", name, text], ["link", name, text],
                         ["unlink", name], ["rename", name, other]))
    number += 1
    if asked[0] in ("put", "link"):
        new(text)
    begin = time.monotonic_ns()
    try:
        if asked[0] == "read":
            answer = read(name)
        elif asked[0] == "put":
            answer = os.rename(text, name) or "done"
        elif asked[0] == "link":
            answer = os.link(text, name) or "done"
        elif asked[0] == "unlink":
            answer = os.unlink(name) or "done"
        else:
            answer = os.rename(name, other) or "done"
    except FileNotFoundError:
        answer = "missing"
    except FileExistsError:
        answer = "exists"
    except OSError as error:
        # The file was removed between lookup and open, twice: no answer to a read.
        if error.errno != 116 or asked[0] != "read":
            raise
        continue
    finally:
        ended = time.monotonic_ns()
    calls.append((begin, ended, asked, answer))
    if asked[0] == "link":
        os.unlink(text)
print(json.dumps(calls))
"""


def state(path):
    st = os.lstat(path)
    return (st.st_ino, st.st_mode, st.st_nlink, st.st_size, st.st_mtime_ns, st.st_ctime_ns)


def picture(folder):
    return {name: state(os.path.join(folder, name)) for name in sorted(os.listdir(folder))}


class Checker(unittest.TestCase):
    """The check of histories itself."""

    def test_calls_one_after_the_other(self):
        calls = [Call(1, 2, ["put", "a", "x"], DONE), Call(3, 4, ["read", "a"], "x"),
                 Call(5, 6, ["rename", "a", "b"], DONE), Call(7, 8, ["read", "a"], MISSING),
                 Call(9, 10, ["link", "b", "y"], EXISTS), Call(11, 12, ["unlink", "b"], DONE),
                 Call(13, 14, ["link", "b", "y"], DONE), Call(15, 16, ["read", "b"], "y")]
        self.assertIsNone(first_wrong(calls))

    def test_calls_at_the_same_time_have_any_order(self):
        put, other = Call(1, 10, ["put", "a", "x"], DONE), Call(2, 9, ["put", "a", "y"], DONE)
        for seen in (["x", "y"], ["y", "x"], ["x", "x"], [MISSING, "y"]):
            reads = [Call(3, 4, ["read", "a"], seen[0]), Call(5, 6, ["read", "a"], seen[1])]
            self.assertIsNone(first_wrong([put, other, *reads]))

    def test_an_old_answer_is_found(self):
        wrong = Call(5, 6, ["read", "a"], MISSING)
        self.assertEqual(first_wrong([Call(1, 2, ["put", "a", "x"], DONE), wrong]), wrong)
        wrong = Call(7, 8, ["read", "a"], "x")
        self.assertEqual(first_wrong([
            Call(1, 9, ["put", "a", "x"], DONE), Call(2, 10, ["put", "a", "y"], DONE),
            Call(3, 4, ["read", "a"], "x"), Call(5, 6, ["read", "a"], "y"), wrong]), wrong)

    def test_a_file_renamed_twice_in_the_same_way(self):
        """Allowed to two clients at the same time, whatever both names are meanwhile."""
        put, first = Call(1, 2, ["put", "a", "x"], DONE), Call(3, 9, ["rename", "a", "b"], DONE)
        second, rest = Call(4, 7, ["rename", "a", "b"], DONE), Call(10, 11, ["read", "b"], "x")
        self.assertIsNone(first_wrong([put, first, second, rest]))
        by_way = [Call(4, 5, ["rename", "a", "c"], DONE), Call(6, 7, ["rename", "c", "b"], DONE)]
        self.assertIsNone(first_wrong([put, first, *by_way, rest]))
        late = Call(12, 13, ["rename", "a", "b"], DONE)
        self.assertEqual(first_wrong([put, first, rest, late]), late)
        other = Call(4, 5, ["put", "b", "y"], DONE)
        gone = Call(3, 8, ["unlink", "a"], DONE)
        self.assertEqual(first_wrong([put, gone, other, first]), first)

    def test_a_name_removed_twice_is_found(self):
        wrong = Call(3, 7, ["unlink", "a"], DONE)
        self.assertEqual(first_wrong([Call(1, 2, ["put", "a", "x"], DONE),
                                      Call(4, 5, ["unlink", "a"], DONE), wrong]), wrong)


class TwoClients(unittest.TestCase):
    """A donor and two clients per class; a directory per test."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.metrics_path = os.path.join(directory.name, "metrics")
        cls.world = World("256M", "--metrics", f"unix:{cls.metrics_path}")
        cls.addClassCleanup(cls.world.destroy)
        # The timeout is longer than a recall from a stopped holder, on a slow machine too.
        cls.clients = [cls.world.mount("--timeout", str(PATIENCE_SECONDS), "--metrics",
                                       f"unix:{cls.metrics_path}{number}") for number in range(2)]

    def setUp(self):
        self.here, self.there = [client / self.id().split(".")[-1] for client in self.clients]
        os.mkdir(self.here)
        self.made = 0

    def metric(self, name, of=""):
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(self.metrics_path + of)
            server.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = b"".join(iter(lambda: server.recv(65536), b"")).decode()
        return sum(int(float(value)) for value in
                   re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.M))

    def make(self, folder, number):
        names = [f"lease{self.made + i}" for i in range(number)]
        self.made += number
        for name in names:
            write(os.path.join(folder, name), name.encode())
        return names

    def take_lease(self, folder):
        """Works in a folder until its client has the lease. Returns the names made."""
        made = []
        time.sleep(QUIET_SECONDS)

        def has_lease():
            made.extend(self.make(folder, 10))
            return not self.metric("weir_mount_shared", "01"[folder == self.there])
        self.assertTrue(until(has_lease))
        return made


class Leases(TwoClients):
    def test_the_lease_saves_messages_and_hides_nothing(self):
        for here, there in ((self.here, self.there), (self.there, self.here)):
            self.take_lease(here)
            os.mkdir(os.path.join(here, "new")) # the client knows all names there
            here, there = os.path.join(here, "new"), os.path.join(there, "new")
            made = self.make(here, 20) # some changes: now the client expects more
            messages, begin = self.metric("weir_donor_messages_total"), time.monotonic()
            made += self.make(here, 100)
            ticks = (time.monotonic() - begin) / TICK_SECONDS
            messages = self.metric("weir_donor_messages_total") - messages
            self.assertLess(messages, FEW * 100 + 2 * ticks) # a batch has the changes of a tick
            for name in made:
                self.assertEqual(read(os.path.join(there, name)), name.encode())
            self.assertEqual(picture(there), picture(here))
            for name in made:
                os.unlink(os.path.join(there, name))
            self.assertEqual(os.listdir(here), [])
            os.rmdir(there)

    def test_a_recall_brings_all_kinds_of_changes(self):
        self.take_lease(self.here)
        with open(os.path.join(self.here, "open"), "wb", buffering=0) as file:
            os.mkdir(os.path.join(self.here, "sub"))
            os.symlink("target", os.path.join(self.here, "symlink"))
            os.rename(os.path.join(self.here, "lease0"), os.path.join(self.here, "sub/moved"))
            os.chmod(os.path.join(self.here, "lease1"), 0o600)
            os.truncate(os.path.join(self.here, "lease2"), 3)
            os.unlink(os.path.join(self.here, "lease3"))
            file.write(b"uncommitted")
            self.assertEqual(os.stat(os.path.join(self.there, "open")).st_size, 11)
            self.assertEqual(picture(self.there), picture(self.here))
            self.assertEqual(picture(os.path.join(self.there, "sub")),
                             picture(os.path.join(self.here, "sub")))

    def test_what_the_kernel_remembers_is_recalled(self):
        made = self.take_lease(self.here)
        path = os.path.join(self.here, made[0])
        for _ in range(2):
            os.stat(path)
            self.assertFalse(os.path.exists(os.path.join(self.here, "absent")))
            os.chmod(os.path.join(self.there, made[0]), 0o640)
            write(os.path.join(self.there, "absent"))
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o640)
            os.chmod(path, 0o600)
            os.unlink(os.path.join(self.here, "absent"))
            self.take_lease(self.here)

    def test_bytes_filled_in_between_are_seen_under_the_lease(self):
        """A hole and an end that the holder has seen before, as another client changes both."""
        path = os.path.join(self.here, "file")
        with open(path, "wb") as file:
            file.truncate(1 << 20)
        fd = os.open(path, os.O_RDWR | os.O_DIRECT)
        self.addCleanup(os.close, fd)
        self.take_lease(self.here)
        self.assertEqual(os.pread(fd, 4096, 0), bytes(4096))
        self.assertEqual(os.pread(fd, 4096, 1 << 20), b"")
        with open(os.path.join(self.there, "file"), "r+b") as file:
            file.write(b"A" * 4096)
            file.seek(1 << 20)
            file.write(b"B" * 4096)
        self.take_lease(self.here)
        self.assertEqual(os.pread(fd, 4096, 0), b"A" * 4096)
        self.assertEqual(os.pread(fd, 4096, 1 << 20), b"B" * 4096)

    def test_a_first_attribute_set_elsewhere_is_seen_under_the_lease(self):
        made = self.take_lease(self.here)
        path = os.path.join(self.here, made[0])
        self.assertEqual(os.listxattr(path), [])
        os.setxattr(os.path.join(self.there, made[0]), "user.key", b"value")
        self.take_lease(self.here)
        self.assertEqual(os.getxattr(path, "user.key"), b"value")

    def test_a_stopped_holder_stops_nobody_else(self):
        made = self.take_lease(self.here)
        self.clients[0].stop()
        try:
            self.assertEqual(read(os.path.join(self.there, made[0])), made[0].encode())
            write(os.path.join(self.there, "new"), b"new")
            os.unlink(os.path.join(self.there, made[0]))
        finally:
            self.clients[0].go_on()
        self.assertEqual(read(os.path.join(self.here, "new")), b"new")
        self.assertFalse(os.path.exists(os.path.join(self.here, made[0])))
        self.take_lease(self.here)

    def test_a_holder_that_lost_changes_leaves_no_file_open(self):
        """The donor refuses names that the holder sends too late, and closes come with these."""
        self.take_lease(self.here)
        new = os.path.join(self.here, "new") # the client knows all names there
        os.mkdir(new)
        self.make(new, 20)
        self.clients[0].stop()
        try:
            os.listdir(self.there) # waits until the donor has taken the lease away
        finally:
            self.clients[0].go_on()
        self.take_lease(self.there)

    def run_history(self, seed):
        """Two processes work for a while, and take the lease; then come two of the other client."""
        names = " ".join(f"{seed}{letter}" for letter in "abc")
        order = random.Random(seed).sample([self.here, self.there], 2)
        callers = [subprocess.Popen(
            [sys.executable, "-c", CALLER, order[number // 2], names, str(10 * seed + number),
             str(number // 2 * 1.3 * QUIET_SECONDS), str((1.6, 0.3)[number // 2] * QUIET_SECONDS)],
            stdout=subprocess.PIPE, text=True) for number in range(4)]
        calls = []
        for caller in callers:
            printed = caller.communicate(timeout=2 * PATIENCE_SECONDS)[0]
            self.assertEqual(caller.returncode, 0)
            calls += [Call(*call) for call in json.loads(printed)]
        wrong = first_wrong(calls)
        if wrong:
            near = sorted(call for call in calls if call.end > wrong.begin - 10 ** 9 and
                          call.begin < wrong.end)
            self.fail(f"seed {seed}: {wrong} after " + "\n".join(map(str, near[-60:])))

    def test_names_and_bytes_are_linearizable(self):
        """WEIR_TEST_HISTORIES: how many; WEIR_TEST_SEED: the first."""
        first = int(os.environ.get("WEIR_TEST_SEED", "1"))
        for seed in range(first, first + int(os.environ.get("WEIR_TEST_HISTORIES", "2"))):
            self.run_history(seed)


class Killed(TwoClients):
    def test_a_killed_holder_leaves_a_moment_of_its_own(self):
        """The files are those made first, and the last ones are lost."""
        made = self.take_lease(self.here)
        maker = """
import os, sys
os.chdir(sys.argv[1])
number = 0
try:
    while True:
        with open(f"f{number}", "wb") as file:
            file.write(b"%d" % number)
        number += 1
        print(number, flush=True)
except OSError:
    pass
"""
        with subprocess.Popen([sys.executable, "-c", maker, self.here],
                              stdout=subprocess.PIPE) as process:
            for _ in range(300):
                process.stdout.readline()
            self.clients[0].process.send_signal(signal.SIGKILL)
            self.clients[0].process.wait(PATIENCE_SECONDS)
            process.stdout.read()
        found = set(os.listdir(self.there)) - set(made)
        self.assertEqual(found, {f"f{number}" for number in range(len(found))})
        for number in range(len(found)): # a size may be lost with the close
            self.assertIn(read(os.path.join(self.there, f"f{number}")), (b"%d" % number, b""))
        write(os.path.join(self.there, "new"))


if __name__ == "__main__":
    main()
