# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Mounts of a pool's volume: donors die, sleep and leave, and the mounts see a pause.

  pool_test.py WEIR FILES_CLIENT WITHOUT_KEYS
"""
import contextlib
import errno
import fcntl
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.support.control_group import ControlGroup  # noqa: E402
from world import (COMPLAINTS, WEIR, environment, is_mount_point, main, read, stop_process,
                   until, write)

CLIENT = os.path.abspath(sys.argv.pop(1))
WITHOUT_KEYS = os.path.abspath(sys.argv.pop(1))
LEASE = 3
PATIENCE = 90
GRACE = 6 * LEASE  # of a mount that is gone
KEY_MOUNTS = 128
CALLS_MAX = 1024
FILES = int(os.environ.get("WEIR_TEST_FILES", "200"))
AREA = 18 << 20  # for the bytes of a connection


class Writer(threading.Thread):
    """Changes files at random, and knows what each must hold."""

    def __init__(self, folder, seed):
        super().__init__()
        self.folder, self.random = folder, random.Random(seed)
        self.files, self.ops, self.error, self.stops = {}, 0, None, False
        os.mkdir(folder)

    def run(self):
        try:
            while not self.stops:
                self.step()
                self.ops += 1
        except OSError as error:
            self.error = error

    def path(self, number):
        return os.path.join(self.folder, f"f{number}")

    def step(self):
        number, kind = self.random.randrange(20), self.random.randrange(6)
        path = self.path(number)
        if number not in self.files or kind == 0:
            data = self.random.randbytes(self.random.choice((0, 90, 5000, 300000)))
            write(path, data)
            self.files[number] = bytearray(data)
        elif kind < 3:
            self.patch(path, self.files[number])
        elif kind == 3:
            other = self.random.randrange(20)
            os.rename(path, self.path(other))
            self.files[other] = self.files.pop(number)
        elif kind == 4:
            size = self.random.randrange(len(self.files[number]) + 3000)
            os.truncate(path, size)
            data = self.files[number][:size]
            self.files[number] = data + bytes(size - len(data))
        else:
            os.unlink(path)
            del self.files[number]

    def patch(self, path, data):
        at, more = self.random.randrange(len(data) + 5000), self.random.randbytes(7000)
        with open(path, "r+b", buffering=0) as file:
            file.seek(at)
            file.write(more)
        data.extend(bytes(max(0, at - len(data))))
        data[at:at + len(more)] = more

    def end(self):
        self.stops = True
        self.join(PATIENCE)
        return self.error

    def wrong(self, folder=None):
        """Files that differ from what was written."""
        folder = folder or self.folder
        names = set(os.listdir(folder)) ^ {f"f{number}" for number in self.files}
        return sorted(names) + [number for number, data in self.files.items()
                                if read(os.path.join(folder, f"f{number}")) != bytes(data)]


class Pool(unittest.TestCase):
    lease = LEASE

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weir-pool-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.addCleanup(self.check_logs)
        os.mkdir(os.path.join(self.folder, "map"))
        self.pool, self.donors, self.mounts = f"file:{self.folder}/map/p", {}, []
        self.weir("pool", "create", "--lease", str(self.lease), "--groups", "8",
                  "--replace-after", "2", self.pool)

    def check_logs(self):
        for name in os.listdir(self.folder):
            if "log" in name:
                with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                    text = file.read()
                for complaint in COMPLAINTS:
                    self.assertEqual(text.count(complaint), 0, text[:6000])

    def run_weir(self, *args):
        return subprocess.run([WEIR, *args], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE, env=environment())

    def weir(self, *args):
        done = self.run_weir(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def start(self, *names, more=(), command=WEIR):
        for name in names:
            log = open(os.path.join(self.folder, f"log-{name}"), "ab")
            self.addCleanup(log.close)
            process = subprocess.Popen(
                [command, "serve", "--device", "softnic", "--memory", "128M", "--no-reserve",
                 "--listen", "127.0.0.1:0", "--pool", self.pool, "--name", name, "--domain", name,
                 *more],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
                env=dict(os.environ, WEIR_TEST_WITHOUT_KEYS=f"{self.folder}/without-{name}"))
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            self.donors[name] = process
        for name in names:
            self.assertTrue(self.donors[name].stdout.readline().startswith("ready "))

    def volume(self, name="fs"):
        for volume in json.loads(self.weir("pool", "volume", "list", "--json", self.pool))[
                "volumes"]:
            if volume["volume"] == name:
                return volume
        return None

    def server(self, other_than=None):
        """The donor that serves the files, once there is one, or another."""
        found = []

        def is_served():
            found.append(self.volume().get("server"))
            return found[-1] not in (None, other_than)
        until(is_served, PATIENCE)
        return found[-1]

    def log_of(self, donor):
        with open(os.path.join(self.folder, f"log-{donor}"), encoding="utf-8") as file:
            return file.read()

    def address(self):
        """Of the server of files."""
        return self.log_of(self.server()).rpartition(" address=")[2].split()[0]

    def begin(self, donors="abcd"):
        self.start(*donors)
        self.weir("pool", "volume", "create", "--files", "--extent", "1M", self.pool, "fs", "32M")

    def mount(self, *more):
        place = os.path.join(self.folder, f"m{len(self.mounts)}")
        os.mkdir(place)
        log = open(place + ".log", "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [WEIR, "mount", "--device", "softnic", "--foreground", *more,
             f"{self.pool}/fs", place],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment())
        self.mounts.append(process)
        self.addCleanup(self.unmount, process, place)
        until(lambda: is_mount_point(place) or process.poll() is not None, PATIENCE)
        self.assertIsNone(process.poll(), self.said(place))
        return place

    def said(self, place):
        with open(place + ".log", encoding="utf-8") as file:
            return file.read()

    def unmount(self, process, place):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
        if is_mount_point(place):
            subprocess.run(["fusermount3", "-uz", place], check=False)

    def write_while(self, place, happens):
        """Changes files before, during and after an event."""
        writer = Writer(os.path.join(place, "w"), 7)
        self.addCleanup(writer.end)
        writer.start()
        until(lambda: writer.ops > 60 or writer.error, PATIENCE)
        happens()
        before = writer.ops
        until(lambda: writer.ops > before + 60 or writer.error, PATIENCE)
        self.assertIsNone(writer.end())
        self.assertEqual(writer.wrong(), [])
        return writer


class Files(Pool):
    def test_a_mount_obeys_its_window(self):
        self.begin("ab")
        write(os.path.join(self.mount("--window", "1M", "--window-wrs", "64"), "f"), b"1")
        sessions = [session for session in json.loads(self.weir("stat", "--json"))["sessions"]
                    if session["pid"] == self.mounts[0].pid]
        self.assertTrue(sessions)
        for session in sessions:
            self.assertEqual((session["window_top"], session["window_wrs_top"]), (1 << 20, 64))

    def test_a_mount_has_a_class(self):
        self.begin("ab")
        with open(os.path.join(self.mount("--class", "bulk:2"), "f"), "wb") as file:
            file.write(os.urandom(1 << 20))
            file.flush()
            os.fsync(file.fileno())
        session, = [session for session in json.loads(self.weir("stat", "--json"))["sessions"]
                    if session["pid"] == self.mounts[0].pid]
        self.assertEqual(session["bytes_written"], 1 << 20)
        self.assertGreaterEqual(session["work_requests"], 16)  # without a class: 11

    def test_the_tools_know_copies_and_donors(self):
        self.begin("ab")
        place = self.mount()
        write(os.path.join(place, "file"), b"x" * (3 << 20))
        mount, = json.loads(self.weir("fs", "df", "--json", place))["mounts"]
        self.assertEqual((mount["copies"], mount["donor"]), (2, f"{self.pool}/fs"))
        self.assertEqual({donor["donor"]: (donor["bytes"], donor["state"])
                          for donor in mount["donors"]},
                         {name: (32 << 20, "up") for name in "ab"})
        held = json.loads(self.weir("fs", "du", "--json", place))["paths"][-1]
        self.assertGreaterEqual(held["held"], 3 << 20)
        self.assertEqual(held["held_by_all_copies"], 2 * held["held"])
        checked = json.loads(self.weir("fs", "check", "--json", place))
        self.assertEqual((checked["failures"], checked["donors_unchecked"]), (0, 0))
        self.assertEqual(checked["donor_names"], 1)
        self.weir("fs", "export", place, os.path.join(self.folder, "fs.tar"))
        os.unlink(os.path.join(place, "file"))
        self.weir("fs", "import", os.path.join(self.folder, "fs.tar"), place)
        self.assertEqual(read(os.path.join(place, "file")), b"x" * (3 << 20))

    def test_two_mounts_share_files_and_locks(self):
        self.begin()
        first, second = self.mount(), self.mount()
        writer = self.write_while(first, lambda: None)
        self.assertEqual(writer.wrong(os.path.join(second, "w")), [])
        write(os.path.join(second, "lock"), b"1")
        with open(os.path.join(first, "lock"), "r+b", buffering=0) as one, \
                open(os.path.join(second, "lock"), "r+b", buffering=0) as two:
            fcntl.flock(one, fcntl.LOCK_EX)
            with self.assertRaises(BlockingIOError):
                fcntl.flock(two, fcntl.LOCK_EX | fcntl.LOCK_NB)
            one.write(b"23")
            waiter = threading.Thread(target=fcntl.flock, args=(two, fcntl.LOCK_EX))
            waiter.start()
            fcntl.flock(one, fcntl.LOCK_UN)
            waiter.join(PATIENCE)
            self.assertFalse(waiter.is_alive())
            self.assertEqual(two.read(), b"23")
        self.assertEqual(self.run_weir("pool", "volume", "rm", self.pool, "fs").returncode, 1)

    def test_a_mount_knows_the_server_by_its_donors_identity(self):
        key, own, other = (os.path.join(self.folder, name) for name in ("key", "own", "other"))
        self.weir("key", "new", key)
        line = self.weir("key", "identity", own)
        self.start("a", more=("--key", key, "--identity", own))
        self.weir("pool", "volume", "create", "--files", "--scheme", "copies=1", "--extent", "1M",
                  self.pool, "fs", "32M")
        write(os.path.join(self.mount("--key", key), "f"), b"1")
        with open(key, "a", encoding="ascii") as file:
            file.write(line)
        self.assertEqual(read(os.path.join(self.mount("--key", key), "f")), b"1")
        shutil.copy(key, other)
        with open(other, "r+", encoding="ascii") as file:
            secret = file.read().removesuffix(line)
            file.seek(0)
            file.truncate()
            file.write(secret + self.weir("key", "identity", own + "2"))
        place = os.path.join(self.folder, "refused")
        os.mkdir(place)
        done = self.run_weir("mount", "--device", "softnic", "--foreground", "--key", other,
                             f"{self.pool}/fs", place)
        self.assertEqual(done.returncode, 1)
        self.assertIn("an identity that the key's file does not name", done.stderr)

    def test_changes_go_on_while_a_program_awaits_a_lock(self):
        self.begin()
        first, second = self.mount(), self.mount()
        path = os.path.join(first, "lock")
        write(path, b"1")
        with open(os.path.join(second, "lock"), "r+b", buffering=0) as one, \
                open(path, "r+b", buffering=0) as two:
            fcntl.lockf(one, fcntl.LOCK_EX)
            waiter = threading.Thread(target=fcntl.lockf, args=(two, fcntl.LOCK_EX))
            waiter.start()
            for i in range(CALLS_MAX + 80):
                os.chmod(path, 0o600 + i % 64)
            self.assertTrue(waiter.is_alive())
            fcntl.lockf(one, fcntl.LOCK_UN)
            waiter.join(PATIENCE)
            self.assertFalse(waiter.is_alive())

    def test_a_full_volume_is_no_space_left(self):
        self.begin()
        place = self.mount()
        with self.assertRaises(OSError) as caught, \
                open(os.path.join(place, "big"), "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
        self.assertEqual(caught.exception.errno, errno.ENOSPC)
        os.unlink(os.path.join(place, "big"))
        write(os.path.join(place, "small"), b"fits")


class Changes(Pool):
    """The map knows donors, not data: count its changes."""
    lease = 10 * LEASE  # no donor loses its lease for want of time

    def revision(self):
        with open(f"{self.folder}/map/p", encoding="utf-8") as file:
            return json.load(file)["revision"]

    def settled(self):
        """The revision, once nothing has changed for a while."""
        seen = []

        def is_calm():
            seen.append(self.revision())
            return len(seen) > 20 and len(set(seen[-20:])) == 1
        until(is_calm, PATIENCE)
        return seen[-1]

    def is_whole(self):
        status = json.loads(self.weir("pool", "status", "--json", self.pool))
        return status["whole"] == len(status["groups"])

    def test_files_change_no_map_and_a_death_a_few_keys(self):
        self.begin()
        place = self.mount()
        write(os.path.join(place, "first"), b"1")
        before = self.settled()
        for number in range(FILES):
            write(os.path.join(place, f"f{number}"), b"%d" % number)
        folder = os.open(place, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        self.assertEqual(self.revision(), before)
        self.assertEqual(len(os.listdir(place)), FILES + 1)
        victim = next(name for name in self.donors if name != self.server())
        donors = json.loads(self.weir("pool", "donors", "--json", self.pool))["donors"]
        places = next(donor["serving"] for donor in donors if donor["name"] == victim)
        self.donors[victim].kill()
        self.donors[victim].wait()
        write(os.path.join(place, "last"), b"1")
        until(lambda: self.revision() > before, PATIENCE)
        until(self.is_whole, PATIENCE)
        changes = self.settled() - before
        print(f"{FILES} files: 0 changes of the map; a death with {places} places: {changes}",
              flush=True)
        # Each place is left, taken, filled for a volume, and serves.
        self.assertLessEqual(changes, 4 * places + 12)


class Order(Pool):
    lease = 20  # no claim ends meanwhile

    def test_files_outlive_mounts_and_a_restart_of_the_server(self):
        self.begin()
        place = self.mount()
        os.makedirs(os.path.join(place, "a/b"))
        data = os.urandom(3000000)
        write(os.path.join(place, "a/b/c"), data)
        os.symlink("b/c", os.path.join(place, "a/link"))
        os.setxattr(os.path.join(place, "a"), "user.x", b"value")
        self.unmount(self.mounts[0], place)
        server = self.server()
        self.donors[server].send_signal(signal.SIGTERM)
        self.assertIn(" replayed=0 ", self.log_of(self.server(other_than=server)))
        place = self.mount()
        self.assertEqual(read(os.path.join(place, "a/link")), data)
        self.assertEqual(os.getxattr(os.path.join(place, "a"), "user.x"), b"value")


class Stops(Pool):
    lease = 60  # an opening that makes no progress is given up after more than three

    def test_a_donor_stops_while_it_waits_for_a_volumes_memory(self):
        self.start("a", "b")
        self.weir("pool", "volume", "create", "--files", "--scheme", "copies=1", "--extent", "1M",
                  self.pool, "fs", "32M")
        first = self.server()
        self.donors[first].terminate()
        self.assertEqual(self.donors[first].wait(PATIENCE), 0)
        self.assertTrue(until(lambda: self.volume()["open"] and not self.volume().get("server"),
                              PATIENCE), self.volume())
        second = self.donors["b" if first == "a" else "a"]
        second.terminate()
        self.assertEqual(second.wait(PATIENCE), 0)


class Deaths(Pool):
    def setUp(self):
        super().setUp()
        self.begin()
        self.place = self.mount()

    def test_a_server_that_is_killed_is_a_pause(self):
        path = os.path.join(self.place, "held")
        write(path, b"still there")
        with open(path, "r+b", buffering=0) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            os.unlink(path)
            write(path + "2", b"another")
            server = self.server()
            self.write_while(self.place, self.donors[server].kill)
            self.assertNotEqual(self.server(), server)
            self.assertEqual(held.read(), b"still there")
            other = self.mount()
            self.assertFalse(os.path.exists(os.path.join(other, "held")))
            self.assertEqual(read(os.path.join(other, "held2")), b"another")
        until(lambda: self.volume()["mounted"], PATIENCE)

    def test_a_server_that_sleeps_is_replaced_and_stays_so(self):
        server = self.server()
        self.write_while(self.place, lambda: stop_process(self.donors[server]))
        self.assertNotEqual(self.server(), server)
        self.donors[server].send_signal(signal.SIGCONT)
        write(os.path.join(self.place, "after"), b"x")
        other = self.mount()
        self.assertEqual(read(os.path.join(other, "after")), b"x")

    def test_another_donor_that_is_killed_is_a_pause(self):
        other = next(name for name in self.donors if name != self.server())
        self.write_while(self.place, self.donors[other].kill)

    def test_a_server_that_leaves_hands_over(self):
        server = self.server()
        self.write_while(self.place, lambda: self.donors[server].send_signal(signal.SIGTERM))

    def test_a_map_that_is_gone_for_a_while_loses_no_mount(self):
        server = self.server()
        folder, away = (os.path.join(self.folder, name) for name in ("map", "away"))
        os.rename(folder, away)
        self.donors[server].kill()
        until(lambda: "waiting for a donor" in self.said(self.place), PATIENCE)
        os.rename(away, folder)
        write(os.path.join(self.place, "after"), b"x")
        self.assertNotEqual(self.server(), server)
        self.assertEqual(read(os.path.join(self.place, "after")), b"x")

    def test_without_donors_a_signal_ends_the_mount(self):
        for donor in self.donors.values():
            donor.kill()
        until(lambda: "waiting for a donor" in self.said(self.place), PATIENCE)
        self.mounts[0].send_signal(signal.SIGTERM)
        self.mounts[0].wait(PATIENCE)


class Idle(Pool):
    def test_a_mount_that_does_nothing_after_a_takeover_keeps_its_locks(self):
        self.begin("ab")
        first = self.mount()
        path = os.path.join(first, "held")
        write(path, b"held")
        with open(path, "rb", buffering=0) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            server = self.server()
            self.donors.pop(server).kill()
            self.server(other_than=server)
            time.sleep(GRACE + self.lease)
            with open(os.path.join(self.mount(), "held"), "rb") as other, \
                    self.assertRaises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.assertEqual(held.read(), b"held")


class Hostile(Pool):
    lease = 20  # no mount is forgotten meanwhile

    def client(self, *args):
        done = self.run_weir("run", "-q", "--", CLIENT, *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [int(word) for word in done.stdout.split()]

    def test_a_hostile_client_harms_no_mount(self):
        self.begin("ab")
        place = self.mount()
        # Mounted, made, refused twice; no bytes and no blocks.
        self.assertEqual(self.client(self.address(), "beyond"),
                         [0, 0, -errno.EINVAL, -errno.EINVAL, 0, 0, 0])
        mounted, second, more, status = self.client(self.address(), "many")
        self.assertEqual((mounted, second, status), (-errno.EALREADY, -errno.EPERM,
                                                     -errno.EDQUOT))
        self.assertEqual(more, KEY_MOUNTS - 2)
        self.assertEqual(self.client(self.address(), "region"), [-errno.EDQUOT])
        os.mkdir(os.path.join(self.folder, "more"))
        done = self.run_weir("mount", "--device", "softnic", f"{self.pool}/fs",
                             os.path.join(self.folder, "more"))
        self.assertIn("as many mounts as it may have by one key", done.stderr)
        write(os.path.join(place, "after"), b"x")


class Keys(Pool):
    """Donors with lists of keys: each has a copy."""

    def path(self, name):
        return os.path.join(self.folder, name)

    def change(self, what, *args):
        self.weir("key", what, *args[:-1], self.path("list"), args[-1],
                  *(() if what == "revoke" else (self.path(f"{args[-1]}-{what}"),)))
        return self.path(f"{args[-1]}-{what}")

    def give(self, *names):
        """Copies the list to donors, or to all, and lets those that run read it."""
        for name in names or "abc":
            shutil.copy(self.path("list"), self.path("new"))
            os.rename(self.path("new"), self.path(f"list-{name}"))
            if name in self.donors:
                before = self.log_of(name).count('msg="key ')
                self.donors[name].send_signal(signal.SIGHUP)
                until(lambda: self.log_of(name).count('msg="key ') > before, PATIENCE)

    def begin(self, donors="abc", command=WEIR):
        self.change("add", "--rights", "read,write,regions,pool", "pool")
        keys = [self.change("add", "--rights", "read,write,files", name) for name in donors]
        self.give()
        for name in donors:
            self.start(name, more=("--no-sandbox", "--keys", self.path(f"list-{name}")),
                       command=command)
        self.weir("pool", "volume", "create", "--files", "--extent", "1M", self.pool, "fs", "32M")
        return keys

    def test_a_revoked_key_loses_its_mounts_and_their_locks_at_once(self):
        first, second, _ = self.begin()
        stays, goes = self.mount("--key", first), self.mount("--key", second)
        write(os.path.join(goes, "lock"), b"1")
        held, wanted = (os.open(os.path.join(place, "lock"), os.O_RDONLY)
                        for place in (goes, stays))
        fcntl.flock(held, fcntl.LOCK_EX)
        with self.assertRaises(BlockingIOError):
            fcntl.flock(wanted, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.change("revoke", "b")
        start = time.monotonic()
        self.give()
        fcntl.flock(wanted, fcntl.LOCK_EX)
        self.assertLess(time.monotonic() - start, GRACE / 2)
        os.close(wanted)
        until(lambda: "refused volume=fs id=W507" in self.said(goes), PATIENCE)
        writing = self.begin_write(goes)
        self.run_weir_fails(second)
        self.assertIsNone(writing.poll())
        self.assertNotIn("after", os.listdir(stays))
        self.unmount(self.mounts[1], goes)
        self.assertNotEqual(writing.wait(PATIENCE), 0)
        with contextlib.suppress(OSError):
            os.close(held)
        self.assertNotIn("after", os.listdir(stays))

    def test_a_server_that_cannot_set_keys_hands_over(self):
        """Else it would still admit the keys of before."""
        command = self.path("weir")  # the command looks for softnic beside itself
        shutil.copy(WITHOUT_KEYS, command)
        os.symlink(os.path.join(os.path.dirname(WEIR), "softnic"), self.path("softnic"))
        first, second, _ = self.begin(command=command)
        stays, goes = self.mount("--key", first), self.mount("--key", second)
        server = self.server()
        write(self.path(f"without-{server}"), b"")
        self.change("revoke", "b")
        self.give()
        self.assertIn("id=W301 reason=\"as the test wants it", self.log_of(server))
        write(os.path.join(stays, "file"), b"1")
        self.server(other_than=server)
        until(lambda: "refused volume=fs id=W507" in self.said(goes), PATIENCE)
        self.run_weir_fails(second)

    def test_one_key_leaves_places_and_memory_to_others(self):
        first, second, _ = self.begin()
        crowd = subprocess.Popen([WEIR, "run", "-q", "--", CLIENT, self.address(), "crowd", second],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 env=environment())
        self.addCleanup(crowd.stdout.close)
        self.addCleanup(crowd.wait)
        self.addCleanup(crowd.stdin.close)
        admitted = int(crowd.stdout.readline())
        self.assertLessEqual(admitted * AREA, (128 << 20) // 2)
        self.assertGreater(admitted, 1)
        write(os.path.join(self.mount("--key", first), "file"), b"1")

    def begin_write(self, place):
        """By another process, because it may wait for a server."""
        process = subprocess.Popen(["sh", "-c", 'echo 1 > "$1"/after', "sh", place],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_mount_outlives_donors_that_do_not_know_its_key_yet(self):
        self.begin()
        server, late = self.server(), self.change("add", "--rights", "read,write,files", "late")
        self.give(server)
        place = self.mount("--key", late)
        self.donors.pop(server).kill()
        until(lambda: "refused volume=fs id=W507" in self.said(place), PATIENCE)
        writing = self.begin_write(place)
        self.assertIsNone(writing.poll())
        self.give(*self.donors)
        self.assertEqual(writing.wait(PATIENCE), 0)
        self.assertEqual(read(os.path.join(place, "after")), b"1\n")

    def run_weir_fails(self, key):
        place = self.path("refused")
        os.mkdir(place)
        done = self.run_weir("mount", "--device", "softnic", "--foreground", "--key", key,
                             f"{self.pool}/fs", place)
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not know this key", done.stderr)

    def test_mounts_go_on_while_the_donors_key_is_replaced(self):
        place = self.mount("--key", self.begin()[0])

        def replace():
            self.server()
            self.change("rotate", "pool")
            self.give()
            until(lambda: any("hands over" in self.log_of(name) for name in "abc"), PATIENCE)
            self.server()
            self.change("revoke", "--old", "pool")
            self.give()
        self.write_while(place, replace)
        self.assertNotIn("id=W507", self.said(place))


class Refused(Pool):
    def refused(self, text, *args):
        done = self.run_weir(*args)
        self.assertEqual(done.returncode, 1 if "expected" not in text else 2, done.stderr)
        self.assertIn(text, done.stderr)

    def test_a_mount_waits_for_room_for_the_bytes(self):
        """Else the kernel would kill the donor, with the data of all clients."""
        group = ControlGroup(self.addCleanup, AREA - (4 << 20))
        self.begin("ab")
        server = self.server()
        group.take(self.donors[server].pid)

        def give_room():
            if until(lambda: "id=W206 reason=" in self.log_of(server), PATIENCE):
                group.limit(1 << 30)

        watch = threading.Thread(target=give_room)
        watch.start()
        self.addCleanup(watch.join)
        write(os.path.join(self.mount(), "file"), b"1")
        self.assertIn("and its control group have", self.log_of(server))

    def test_mistakes_have_words(self):
        os.mkdir(os.path.join(self.folder, "m"))
        place = os.path.join(self.folder, "m")
        self.refused("has no volume", "mount", f"{self.pool}/fs", place)
        self.start("a", "b")
        self.refused("has no volume", "mount", f"{self.pool}/fs", place)
        self.weir("pool", "volume", "create", self.pool, "blocks", "8M")
        self.refused("holds no files", "mount", f"{self.pool}/blocks", place)
        self.weir("pool", "volume", "create", "--files", self.pool, "fs", "16M")
        self.server()
        self.refused("holds files", "pool", "volume", "export", self.pool, "fs", "/dev/null")
        small = self.run_weir("pool", "volume", "create", "--files", self.pool, "s", "8M")
        self.assertIn("at least 16.0 MiB", small.stderr)
        self.weir("pool", "volume", "rm", self.pool, "fs")
        self.refused("has no volume", "mount", f"{self.pool}/fs", place)


if __name__ == "__main__":
    main()
