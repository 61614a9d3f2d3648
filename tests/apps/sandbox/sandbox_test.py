#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The sandbox of services, seen from inside: sandbox_test.py WEIR FORBIDDEN"""
import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

WEIR, FORBIDDEN = (os.path.abspath(path) for path in sys.argv[1:3])
del sys.argv[1:3]
PATIENCE_S = 60


class Sandbox(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-sandbox-")
        self.addCleanup(folder.cleanup)
        self.said = os.path.join(folder.name, "said")
        self.point = os.path.join(folder.name, "point")
        self.services = {
            "serve": ["--memory", "4M", "--listen", "127.0.0.1:0"],
            "share": ["--socket", os.path.join(folder.name, "share"), "--listen", "127.0.0.1:0"],
        }

    def start(self, name, *more):
        service = subprocess.Popen(
            [WEIR, name, *self.services[name], *more], stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, WEIR_DEVICE="softnic", FORBIDDEN=self.said,
                     LD_PRELOAD=FORBIDDEN))
        self.addCleanup(service.stdout.close)
        self.addCleanup(service.wait)
        self.addCleanup(service.kill)
        self.address = service.stdout.readline().split()[-1]
        return service

    def start_mount(self, *more):
        """A mount of a donor. It prints a line on standard error once it has entered."""
        self.start("serve")
        os.makedirs(self.point, exist_ok=True)
        os.unlink(self.said) if os.path.exists(self.said) else None
        mount = subprocess.Popen(
            [WEIR, "mount", "--foreground", *more, self.address, self.point],
            stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, WEIR_DEVICE="softnic", FORBIDDEN=self.said, LD_PRELOAD=FORBIDDEN))
        self.addCleanup(mount.stderr.close)
        self.addCleanup(subprocess.run, ["umount", "-l", self.point], check=False,
                        stderr=subprocess.DEVNULL)
        self.addCleanup(mount.wait)
        self.addCleanup(mount.kill)
        self.assertEqual(mount.stderr.readline(), "using softnic\n")
        self.assertIn("is mounted", mount.stderr.readline())
        end = time.monotonic() + PATIENCE_S
        while not more and self.status(mount, "Seccomp") != {"2"}:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        return mount

    def end(self, service):
        service.terminate()
        self.assertEqual(service.wait(PATIENCE_S), 0)

    def status(self, service, field):
        """The values of a field of all threads."""
        found = set()
        for task in os.listdir(f"/proc/{service.pid}/task"):
            with open(f"/proc/{service.pid}/task/{task}/status", encoding="ascii") as file:
                found |= {line.split()[1] for line in file if line.startswith(f"{field}:")}
        return found

    def tried(self, service):
        """Each call with the errno of the failure."""
        service.send_signal(signal.SIGUSR2)
        end, text = time.monotonic() + PATIENCE_S, ""
        while "keyctl" not in text:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
            if os.path.exists(self.said):
                with open(self.said, encoding="ascii") as file:
                    text = file.read()
        return {name: int(code) for name, code in (line.split() for line in text.splitlines())}

    def test_no_thread_of_a_service_makes_a_forbidden_call(self):
        for name in self.services:
            with self.subTest(name):
                service = self.start(name)
                self.assertEqual(self.status(service, "Seccomp"), {"2"})
                self.assertEqual(self.status(service, "NoNewPrivs"), {"1"})
                tried = self.tried(service)
                self.assertEqual(set(tried.values()), {errno.EPERM}, tried)
                if name == "serve":
                    subprocess.run([WEIR, "ping", "-c", "1", self.address], check=True,
                                   stdout=subprocess.DEVNULL, timeout=PATIENCE_S,
                                   env=dict(os.environ, WEIR_DEVICE="softnic"))
                self.end(service)
                os.unlink(self.said)

    @unittest.skipUnless(os.access("/dev/fuse", os.W_OK), "no FUSE")
    def test_a_mount_makes_no_forbidden_call_and_is_unmounted_at_its_end(self):
        for text in "first", "second":
            mount = self.start_mount()
            self.assertEqual(self.status(mount, "NoNewPrivs"), {"1"})
            self.assertEqual(set(self.tried(mount).values()), {errno.EPERM})
            with open(f"{self.point}/file", "w+", encoding="ascii") as file:
                file.write(text)
            with open(f"{self.point}/file", encoding="ascii") as file:
                self.assertEqual(file.read(), text)
            self.end(mount)
            self.assertFalse(os.path.ismount(self.point))
            self.assertEqual(mount.stderr.read(), "")

    @unittest.skipUnless(os.access("/dev/fuse", os.W_OK), "no FUSE")
    def test_a_mount_that_was_unmounted_ends(self):
        mount = self.start_mount()
        subprocess.run(["umount", self.point], check=True)
        self.assertEqual(mount.wait(PATIENCE_S), 0)

    @unittest.skipUnless(os.access("/dev/fuse", os.W_OK), "no FUSE")
    def test_without_the_sandbox_a_mount_unmounts_itself(self):
        mount = self.start_mount("--no-sandbox")
        self.assertEqual(self.status(mount, "NoNewPrivs"), {"0"})
        self.end(mount)
        self.assertFalse(os.path.ismount(self.point))

    def test_without_the_sandbox_nothing_is_filtered(self):
        for name in self.services:
            service = self.start(name, "--no-sandbox")
            self.assertEqual(self.status(service, "NoNewPrivs"), {"0"})
            self.end(service)


if __name__ == "__main__":
    unittest.main(verbosity=2)
