# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir key, and a donor whose keys change while it runs.

Called with the path of the weir command.
"""
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

WEIR = os.path.abspath(sys.argv.pop(1))
ENVIRONMENT = dict(os.environ, WEIR_DEVICE=os.environ.get("WEIR_DEVICE") or "softnic")
SOON_S = 40


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

    def donor(self):
        donor = subprocess.Popen([WEIR, "serve", "--listen", "127.0.0.1:0", "--memory", "16M",
                                  "--keys", self.list], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(donor.stderr.close)
        self.addCleanup(donor.stdout.close)
        self.addCleanup(donor.wait)
        self.addCleanup(donor.kill)
        os.set_blocking(donor.stderr.fileno(), False)
        self.log, self.address = b"", donor.stdout.readline().decode().split()[-1]
        return donor

    def logged(self, donor, text):
        """Waits for a line of the donor's log."""
        end = time.monotonic() + SOON_S
        while text.encode() not in self.log:
            self.assertLess(time.monotonic(), end, f"no '{text}' in {self.log.decode()}")
            if select.select([donor.stderr], [], [], 1)[0]:
                self.log += donor.stderr.read() or b""

    def admits(self, key):
        return weir("ping", "-c", "1", "--key", key, self.address).returncode == 0

    def test_a_list_is_kept(self):
        self.add("a", "--rights", "read,regions", "--quota", "4M", "--tenant", "t")
        self.add("b")
        self.assertEqual(os.stat(self.list).st_mode & 0o777, 0o600)
        shown = self.shown()
        self.assertEqual((shown["a", "current"]["rights"], shown["a", "current"]["quota_bytes"],
                          shown["a", "current"]["tenant"]), ("read,regions", 4 << 20, "t"))
        self.assertEqual(shown["b", "current"]["rights"], "read,write,files,regions,admin")
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
        self.assertEqual(sorted(os.listdir(self.folder)), ["a", "a2", "b", "keys"])

    def test_mistakes_change_nothing(self):
        key = self.add("a")
        before = self.read(self.list)
        new = self.path("new")
        self.fails("has a key 'a' already", "add", self.list, "a", new)
        self.fails("File exists", "add", self.list, "b", key)
        self.fails("names have", "add", self.list, "b c", new, status=2)
        self.fails("files takes read,write", "add", "--rights", "read,files", self.list, "b", new,
                   status=2)
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
            os.chown(self.list, 12345, -1)
            self.fails("belongs to user 12345", "list", self.list)

    def test_a_donor_takes_changes_while_it_runs(self):
        a, donor = self.add("a"), self.donor()
        pid = str(donor.pid)
        self.logged(donor, '"key added" name=a tenant=a state=current')
        self.assertTrue(self.admits(a))
        b = self.add("b", "--donor", pid)
        self.logged(donor, '"key added" name=b')
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

    def test_a_bad_list_leaves_the_donor_as_it_is(self):
        a, donor = self.add("a"), self.donor()
        os.chmod(self.list, 0o644)
        donor.send_signal(signal.SIGHUP)
        self.logged(donor, "keys not reloaded")
        self.assertTrue(self.admits(a))

    def test_a_donor_without_a_good_list_does_not_start(self):
        for args, why in ((["--keys", self.path("none")], "No such file"),
                          (["--keys", self.list, "--key", self.list], "exclude each other")):
            done = weir("serve", "--listen", "127.0.0.1:0", "--memory", "16M", *args)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(why, done.stderr)

    def test_a_key_without_files_mounts_none(self):
        a, _donor = self.add("a", "--rights", "read,write,regions"), self.donor()
        os.mkdir(self.path("m"))
        done = weir("mount", "--key", a, self.address, self.path("m"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("Permission denied", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
