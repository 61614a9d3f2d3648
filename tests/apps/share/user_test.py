#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir share as a user without any privilege, with a tenant of yet another user.

user_test.py WEIR TENANT: the program docs/examples/mux.c. On Soft-RoCE a group may open the device.
"""
import glob
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

WEIR, TENANT = (os.path.abspath(path) for path in sys.argv[1:3])
del sys.argv[1:3]
HOST = os.environ.get("WEIR_TEST_ADDRESS") or "127.0.0.1"
DEVICES = ["/dev/infiniband/rdma_cm", *glob.glob("/dev/infiniband/uverbs*")]
IS_SOFTNIC = (os.environ.get("WEIR_TEST_DEVICE") or "softnic") == "softnic"
DAEMON, OTHER, GROUP = 64001, 64002, 64003
PATIENCE = 120


def command(user, groups, *words):
    """Without capabilities, and without a way to get any."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", f"--groups={groups}",
            "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", *words]


def lift_limit():
    """As LimitMEMLOCK=infinity of the unit, where that is permitted."""
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY,) * 2)
    except (OSError, ValueError):
        pass


class User(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weir-share-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.key, self.socket = (os.path.join(self.folder, name) for name in ("key", "socket"))
        subprocess.run([WEIR, "key", "new", self.key], check=True, capture_output=True)
        os.chmod(self.folder, 0o711)
        for path in (self.folder, self.key):
            os.chown(path, DAEMON, DAEMON)
        for path in [] if IS_SOFTNIC else DEVICES:
            was = os.stat(path)
            self.addCleanup(os.chmod, path, was.st_mode & 0o7777)
            self.addCleanup(os.chown, path, was.st_uid, was.st_gid)
            os.chmod(path, 0o660)
            os.chown(path, 0, GROUP)

    def share(self, groups):
        environment = dict(os.environ, WEIR_DEVICE="softnic" if IS_SOFTNIC else "rxe0")
        environment.pop("LD_PRELOAD", None)
        process = subprocess.Popen(
            command(DAEMON, groups, WEIR, "share", "--listen", f"{HOST}:0", "--key", self.key,
                    "--socket", self.socket),
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, preexec_fn=lift_limit)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_tenant_of_another_user_uses_it(self):
        daemon = self.share(GROUP)
        line = daemon.stdout.readline()
        self.assertTrue(line.startswith("ready "), line or daemon.stderr.read())
        with open(f"/proc/{daemon.pid}/status", encoding="ascii") as file:
            status = dict(line.split(":", 1) for line in file)
        self.assertEqual(status["Uid"].split(), [str(DAEMON)] * 4)
        for kind in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(int(status[kind], 16), 0, kind)
        environment = {"WEIR_SHARE": self.socket, "PATH": os.environ["PATH"]}
        if "LD_LIBRARY_PATH" in os.environ:
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        done = subprocess.run(command(OTHER, OTHER, TENANT), capture_output=True, text=True,
                              timeout=PATIENCE, env=environment, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("200 connections", done.stdout)

    def test_without_the_group_it_says_that_there_is_no_device(self):
        if IS_SOFTNIC:
            return  # it has no file that a group could open
        daemon = self.share(OTHER)
        self.assertNotEqual(daemon.wait(PATIENCE), 0)
        self.assertIn("device", daemon.stderr.read())


if __name__ == "__main__":
    if os.geteuid() or not shutil.which("setpriv"):
        print("skipped: needs root, who can become other users, and setpriv")
        sys.exit(77)
    unittest.main(verbosity=2)
