# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir key, and a donor whose keys change while it runs.

Called with the path of the weir command.
"""
import concurrent.futures
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

WEIR = os.path.abspath(sys.argv.pop(1))
ENVIRONMENT = dict(os.environ, WEIR_DEVICE=os.environ.get("WEIR_DEVICE") or "softnic")
SOON_S = 40
USER = 64001  # not root


def weir(*args):
    return subprocess.run([WEIR, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=SOON_S, env=ENVIRONMENT)


class Keys(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.list = self.path("keys")

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, path):
        with open(path, encoding="ascii") as file:
            return file.read()

    def works(self, *args):
        done = weir("key", *args)
        self.assertEqual((done.returncode, done.stderr), (0, ""), args)
        return done.stdout

    def fails(self, why, *args, status=1):
        done = weir("key", *args)
        self.assertEqual((done.returncode, done.stdout), (status, ""), args)
        self.assertRegex(done.stderr, why)

    def add(self, name, *options):
        self.works("add", *options, self.list, name, self.path(name))
        return self.path(name)

    def shown(self):
        return {(key["name"], key["state"]): key
                for key in json.loads(self.works("list", "--json", self.list))["keys"]}

    def donor(self, *options, by=()):
        donor = subprocess.Popen([*by, WEIR, "serve", "--listen", "127.0.0.1:0", "--memory", "16M",
                                  "--keys", self.list, *options], env=ENVIRONMENT,
                                 stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(donor.stderr.close)
        self.addCleanup(donor.stdout.close)
        self.addCleanup(donor.wait)
        self.addCleanup(donor.kill)
        os.set_blocking(donor.stderr.fileno(), False)
        self.log, self.address = b"", donor.stdout.readline().decode().split()[-1]
        return donor

    def starts_no_donor(self, why, *options):
        """The donor refuses before it listens."""
        done = weir("serve", "--listen", "127.0.0.1:0", "--memory", "16M", *options)
        self.assertIn(done.returncode, (1, 2))
        self.assertEqual(done.stdout, "")
        self.assertIn(why, done.stderr)
        self.assertNotIn("listening", done.stderr)

    def logged(self, donor, text):
        """Waits for a line of the donor's log."""
        end = time.monotonic() + SOON_S
        while text.encode() not in self.log:
            self.assertLess(time.monotonic(), end, f"no '{text}' in {self.log.decode()}")
            if select.select([donor.stderr], [], [], 1)[0]:
                self.log += donor.stderr.read() or b""

    def admits(self, key, by=()):
        return subprocess.run([*by, WEIR, "ping", "-c", "1", "--key", key, self.address],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=SOON_S,
                              env=ENVIRONMENT, check=False).returncode == 0

    def test_a_list_is_kept(self):
        self.add("a", "--rights", "read,regions", "--quota", "4M", "--tenant", "t")
        self.add("b")
        self.assertEqual(os.stat(self.list).st_mode & 0o777, 0o600)
        shown = self.shown()
        self.assertEqual((shown["a", "current"]["rights"], shown["a", "current"]["quota_bytes"],
                          shown["a", "current"]["tenant"]), ("read,regions", 4 << 20, "t"))
        self.assertEqual(shown["b", "current"]["rights"], "read,write,files,regions,admin")
        self.add("p", "--rights", "read,write,regions,pool")
        self.assertEqual(self.shown()["p", "current"]["rights"], "read,write,regions,pool")
        self.works("revoke", self.list, "p")
        os.unlink(self.path("p"))
        self.works("rotate", self.list, "a", self.path("a2"))
        shown = self.shown()
        self.assertEqual(shown["a", "old"]["rights"], "read,regions")
        self.assertNotEqual(shown["a", "old"]["id"], shown["a", "current"]["id"])
        self.fails("has an old key still", "rotate", self.list, "a", self.path("a3"))
        self.works("revoke", "--old", self.list, "a")
        self.works("revoke", self.list, "b")
        self.assertEqual(set(self.shown()), {("a", "current")})
        text = weir("key", "list", self.list).stdout
        self.assertNotIn(self.read(self.path("a2")).strip(), text)
        head, row = text.splitlines()
        self.assertEqual([head.index(name) for name in ("name", "tenant", "state", "rights")],
                         [row.index(f" {word}") + 1 if word != "a" else 0
                          for word in ("a", "t", "current", "read,regions")], text)
        self.assertEqual(sorted(os.listdir(self.folder)), ["a", "a2", "b", "keys"])

    def test_no_client_of_a_key_can_pose_as_the_donor(self):
        identity, other = self.path("identity"), self.path("other")
        line = self.works("identity", identity)
        self.assertRegex(line, r"\Adonor [0-9a-f]{64}\n\Z")
        self.assertEqual(self.works("identity", identity), line)
        self.assertEqual(os.stat(identity).st_mode & 0o777, 0o600)
        self.assertNotEqual(self.works("identity", other), line)
        key = self.add("a", "--identity", identity)
        self.assertEqual(self.read(key).splitlines(keepends=True)[1:], [line])
        unpinned = self.add("b")
        self.donor("--identity", identity)
        self.assertTrue(self.admits(key))
        self.assertTrue(self.admits(unpinned))
        for options in ((), ("--identity", other)):
            self.donor(*options)
            self.assertTrue(self.admits(unpinned))
            refused = weir("ping", "-c", "1", "--key", key, self.address)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("another identity", refused.stderr)

    def test_a_donor_that_its_clients_would_refuse_does_not_start(self):
        identity = self.path("identity")
        key = self.add("a", "--identity", identity)
        self.works("identity", self.path("other"))
        for options in ((), ("--identity", self.path("other"))):
            done = weir("serve", "--listen", "127.0.0.1:0", "--memory", "16M", "--key", key,
                        *options)
            self.assertEqual(done.returncode, 1)
            self.assertIn("names other donors", done.stderr)

    def test_mistakes_change_nothing(self):
        key = self.add("a")
        before = self.read(self.list)
        new = self.path("new")
        self.fails("has a key 'a' already", "add", self.list, "a", new)
        self.fails("File exists", "add", self.list, "b", key)
        self.fails("names have", "add", self.list, "b c", new, status=2)
        self.fails("files takes read,write", "add", "--rights", "read,files", self.list, "b", new,
                   status=2)
        self.fails("pool takes read,write,regions", "add", "--rights", "read,pool", self.list, "b",
                   new, status=2)
        self.fails("has no key 'b'", "rotate", self.list, "b", new)
        self.fails("has no key 'b'", "revoke", self.list, "b")
        self.fails("has no old key 'a'", "revoke", "--old", self.list, "a")
        self.fails("not a process of weir serve", "revoke", "--donor", str(os.getpid()), self.list,
                   "a")
        self.fails("No such file", "list", self.path("none"))
        self.assertEqual(self.read(self.list), before)
        self.assertFalse(os.path.exists(new))

    def test_a_bad_file_is_no_list(self):
        self.add("a")
        self.add("b")
        good = self.read(self.list)
        head, a, b = good.splitlines(keepends=True)
        for bad, why in (("", "not a list"), (good.replace("weir", "x", 1), "not a list"),
                         (head + a, "1 of 2 keys"), (good[:-20], "malformed"),
                         (head + a + a, "twice"), (head + a + b.replace("b ", "a ", 1), "twice"),
                         (good + a, "malformed"), (good.replace("read", "reed", 1), "malformed"),
                         (good.replace(" 0 ", " -1 ", 1), "malformed")):
            with open(self.list, "w", encoding="ascii") as file:
                file.write(bad)
            self.fails(why, "list", self.list)
            self.fails(why, "add", self.list, "c", self.path("c"))
        with open(self.list, "w", encoding="ascii") as file:
            file.write(good)
        os.chmod(self.list, 0o640)
        self.fails("others may read it", "list", self.list)
        os.chmod(self.list, 0o600)
        if os.geteuid() == 0:
            os.chmod(self.list, 0o600)
            os.chown(self.list, 12345, -1)
            self.assertIn("a", self.works("list", self.list))
            self.starts_no_donor("belongs to user 12345", "--keys", self.list)

    def test_a_donor_takes_changes_while_it_runs(self):
        a, donor = self.add("a"), self.donor()
        pid = str(donor.pid)
        self.logged(donor, '"key added" name=a tenant=a state=current')
        self.assertTrue(self.admits(a))
        b = self.add("b", "--donor", pid)
        self.logged(donor, '"key added" name=b')
        self.assertNotIn(b"msg=added", self.log)  # a second line for the same change
        self.assertTrue(self.admits(a) and self.admits(b))
        a2 = self.path("a2")
        self.works("rotate", "--donor", pid, self.list, "a", a2)
        self.logged(donor, '"key changed" name=a tenant=a state=old')
        self.assertTrue(self.admits(a) and self.admits(a2))
        self.works("revoke", "--old", "--donor", pid, self.list, "a")
        self.logged(donor, '"key revoked" name=a tenant=a state=old')
        self.assertTrue(self.admits(a2) and self.admits(b))
        self.assertFalse(self.admits(a))
        self.works("revoke", self.list, "b")
        self.assertTrue(self.admits(b))  # until the donor reads the list
        donor.send_signal(signal.SIGHUP)
        self.logged(donor, '"key revoked" name=b')
        self.assertFalse(self.admits(b))

    def test_root_keeps_the_list_of_another_users_donor(self):
        if os.geteuid() or not shutil.which("setpriv"):
            self.skipTest("needs root, who can become other users, and setpriv")
        by = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
              "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
        a = self.add("a")
        for path in (self.folder, self.list, a):
            os.chown(path, USER, USER)
        donor = self.donor(by=by)
        self.assertTrue(self.admits(a, by))
        b = self.add("b", "--donor", str(donor.pid))
        os.chown(b, USER, USER)
        self.logged(donor, '"key added" name=b')
        self.assertTrue(self.admits(b, by))
        self.works("revoke", "--donor", str(donor.pid), self.list, "a")
        self.logged(donor, '"key revoked" name=a')
        self.assertFalse(self.admits(a, by))
        status = os.stat(self.list)
        self.assertEqual((status.st_uid, status.st_gid, status.st_mode & 0o777),
                         (USER, USER, 0o600))

    def held_lock(self):
        """Another process has locked the list, as another command or a stranger would."""
        lock = os.open(self.list + ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        os.fchmod(lock, 0o644)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def test_a_held_lock_ends_the_command_and_names_the_holder(self):
        self.add("a")
        before, lock = self.read(self.list), self.held_lock()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for failed in [pool.submit(
                    self.fails, rf"process {os.getpid()} \(.+\) has held the lock for 10 s", *args)
                    for args in (("revoke", self.list, "a"),
                                 ("add", self.list, "b", self.path("b")))]:
                failed.result()
        self.assertEqual(self.read(self.list), before)
        # No other user may open the lock, for which rights to read would do.
        self.assertEqual(os.fstat(lock).st_mode & 0o7777, 0o600)
        os.close(lock)
        self.works("revoke", self.list, "a")
        self.assertFalse(os.path.exists(self.list + ".lock"))

    def test_a_command_goes_on_when_the_lock_is_free(self):
        self.add("a")
        lock = self.held_lock()
        waiter = subprocess.Popen([WEIR, "key", "revoke", self.list, "a"], env=ENVIRONMENT,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(waiter.kill)
        os.unlink(self.list + ".lock")  # as the command does that has the lock
        os.close(lock)
        self.assertEqual(waiter.wait(SOON_S), 0)
        self.assertEqual(self.shown(), {})

    def test_a_stranger_cannot_hold_up_a_change_by_the_folder(self):
        self.add("a")
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)
        self.works("revoke", self.list, "a")

    def test_a_lock_of_a_stranger_is_refused(self):
        self.add("a")
        lock, other = self.list + ".lock", self.path("other")
        with open(other, "w", encoding="ascii"):
            pass
        os.symlink(other, lock)
        self.fails("cannot lock", "revoke", self.list, "a")
        os.unlink(lock)
        if os.geteuid():
            return
        os.close(self.held_lock())
        os.chown(lock, USER, USER)
        os.chmod(self.folder, 0o1777)
        self.fails(f"belongs to user {USER}", "revoke", self.list, "a")
        os.chown(lock, os.getuid(), -1)
        self.works("revoke", self.list, "a")

    def test_a_donor_warns_of_keys_without_a_quota(self):
        for name in ("a", "b"):
            self.add(name, "--tenant", "t")

        def warns(*options):
            donor = self.donor(*options)  # the warning comes before the line on stdout
            self.log += donor.stderr.read() or b""
            donor.kill()
            return self.log.count(b"W207")

        self.assertEqual(warns(), 0, "one tenant")
        self.add("c", "--quota", "4M")
        self.assertEqual(warns(), 1)
        self.assertIn(b'"no quota" keys=2', self.log)
        self.assertEqual(warns("--key-memory", "8M"), 0)
        for name in ("a", "b"):
            self.works("revoke", self.list, name)
        self.add("d", "--quota", "4M")
        self.assertEqual(warns(), 0, "all have a quota")

    def test_the_command_waits_until_the_donor_has_read_the_list(self):
        a, donor = self.add("a"), self.donor()
        b = self.add("b", "--donor", str(donor.pid))
        self.assertTrue(self.admits(a) and self.admits(b))
        self.works("revoke", "--donor", str(donor.pid), self.list, "b")
        self.assertFalse(self.admits(b))
        self.assertTrue(self.admits(a))

    def test_a_donor_that_does_not_answer_has_revoked_nothing(self):
        self.add("a")
        self.add("b")
        donor = self.donor()
        donor.send_signal(signal.SIGSTOP)
        self.fails("did not say within 10 s", "revoke", "--donor", str(donor.pid), self.list, "b")
        donor.send_signal(signal.SIGCONT)

    def test_a_key_is_revoked_even_if_the_rest_of_the_list_is_refused(self):
        pool = f"file:{self.path('pool')}"
        self.assertEqual(weir("pool", "create", pool).returncode, 0)
        don = self.add("don", "--rights", "read,write,regions,pool")
        bob, ann = self.add("bob"), self.add("ann")
        donor = self.donor("--pool", pool)
        pid = str(donor.pid)
        self.assertTrue(all(map(self.admits, (don, bob, ann))))
        why = "no key has the right 'pool'.*until another key has it, 'don' stays"
        self.fails(why, "revoke", "--donor", pid, self.list, "don")
        self.fails("no key has the right 'pool'", "revoke", "--donor", pid, self.list, "bob")
        self.assertFalse(self.admits(bob))
        self.assertTrue(self.admits(don) and self.admits(ann))
        self.logged(donor, '"key revoked" name=bob')
        self.fails("no key has", "add", "--donor", pid, self.list, "new", self.path("new"))
        self.assertFalse(self.admits(self.path("new")))
        don2 = self.add("don2", "--rights", "read,write,regions,pool", "--donor", pid)
        self.assertFalse(self.admits(don))
        self.assertTrue(all(map(self.admits, (don2, ann, self.path("new")))))

    def test_a_bad_list_leaves_the_donor_as_it_is(self):
        a, donor = self.add("a"), self.donor()
        os.chmod(self.list, 0o644)
        donor.send_signal(signal.SIGHUP)
        self.logged(donor, "keys not reloaded")
        self.assertTrue(self.admits(a))

    def test_a_donor_without_a_good_list_does_not_start(self):
        self.add("a")
        open_to_all, bad = self.path("open"), self.path("bad")
        shutil.copy(self.list, open_to_all)
        os.chmod(open_to_all, 0o666)
        shutil.copy(self.path("a"), bad)
        os.chmod(bad, 0o600)
        for args, why in ((["--keys", self.path("none")], "No such file"),
                          (["--keys", open_to_all], "others may read it"),
                          (["--keys", bad], "not a list"),
                          (["--keys", self.list, "--key", self.list], "exclude each other")):
            self.starts_no_donor(why, *args)

    def test_a_key_without_files_mounts_none(self):
        a, _donor = self.add("a", "--rights", "read,write,regions"), self.donor()
        os.mkdir(self.path("m"))
        done = weir("mount", "--key", a, self.address, self.path("m"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("Permission denied", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
