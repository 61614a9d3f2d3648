#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The sandbox's list against the calls that services make.

used_calls_test.py WEIR NEIGHBOUR SANDBOX UNUSED

serve, share and mount do their work under strace, with NEIGHBOUR as their client. SANDBOX is the
source with the list. A call that the list lacks fails the test. So does a call of the list that no
service makes, unless UNUSED gives the reason why the call stays. Without strace or FUSE the test
skips.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

WEIR, NEIGHBOUR, SANDBOX, UNUSED = (os.path.abspath(path) for path in sys.argv[1:5])
del sys.argv[1:5]
ENVIRONMENT = dict(os.environ, WEIR_DEVICE="softnic")
PRELOADED = dict(ENVIRONMENT, LD_PRELOAD=os.environ.get("WEIR_TEST_PRELOAD", ""))
SOON_S = 100
SKIPPED = 77
FILTER = " seccomp(SECCOMP_SET_MODE_FILTER"
CALL = re.compile(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed>)")
REFUSED = re.compile(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed>).* = -1 EPERM ")
# The filter refuses clone3(), for which the C library has another way. seccomp() loads the filter.
REPLACED = {"clone3", "seccomp"}


def allowed():
    """The names of the list, and clone(), whose arguments the filter looks at."""
    with open(SANDBOX, encoding="utf-8") as file:
        text = file.read().split("allowed[] = {")[1].split("};")[0]
    return set(re.findall(r'"(\w+)"', text)) | {"clone"}


def reasons():
    """Lines of UNUSED: names, a colon, and the reason."""
    found = {}
    with open(UNUSED, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                names, reason = line.split(":", 1)
                found.update(dict.fromkeys(names.split(), reason.strip()))
    return found


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.used, cls.refused = {}, {}

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-calls-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def child_of(self, strace):
        with open(f"/proc/{strace.pid}/task/{strace.pid}/children", encoding="ascii") as file:
            return file.read().split()[0]

    def kill_child_of(self, strace):
        """A killed strace would leave its child alive."""
        if strace.poll() is None:
            os.kill(int(self.child_of(strace)), signal.SIGKILL)

    def start(self, name, *words, until, log=None):
        """A service under strace, once a line of its output says that it serves."""
        service = subprocess.Popen(
            ["strace", "-f", "-o", self.path(f"{log or name}.calls"), WEIR, name, *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENVIRONMENT, text=True)
        self.addCleanup(service.stdout.close)
        self.addCleanup(service.wait)
        self.addCleanup(service.kill)
        self.addCleanup(self.kill_child_of, service)
        line = ""
        while until not in line:
            line = service.stdout.readline()
            self.assertTrue(line, f"weir {name} has ended")
        return service, line

    def end(self, name, service):
        """Ends the traced process itself, and notes the calls of its sandbox."""
        os.kill(int(self.child_of(service)), signal.SIGTERM)
        service.wait(SOON_S)
        with open(self.path(f"{name}.calls"), encoding="utf-8", errors="replace") as file:
            lines = list(file)
        outside = {line.split()[0] for line in lines if " setsid(" in line}  # a mount's watchdog
        begin = max(i for i, line in enumerate(lines) if FILTER in line)
        for line in lines[begin + 1:]:
            call = CALL.match(line)
            if not call or line.split()[0] in outside:
                continue
            self.used.setdefault(call[1], set()).add(name)
            if REFUSED.match(line):
                self.refused.setdefault(call[1], set()).add(name)

    def neighbour(self, *words, calls=200):
        """An honest client, for some calls."""
        client = subprocess.Popen([NEIGHBOUR, *words], stdin=subprocess.PIPE, env=PRELOADED,
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(client.stdout.close)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        while int(client.stdout.readline()) < calls:
            pass
        client.stdin.close()
        client.stdout.read()
        self.assertEqual(client.wait(SOON_S), 0)

    def scrape(self):
        """What a monitor asks for."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(self.path("metrics"))
            monitor.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            self.assertTrue(monitor.recv(4096))

    def weir(self, *words):
        subprocess.run([WEIR, *words], check=True, capture_output=True, timeout=SOON_S,
                       env=ENVIRONMENT)

    def work_on_files(self, point):
        """What programs do with files."""
        os.mkdir(f"{point}/d")
        with open(f"{point}/d/a", "wb") as file:
            file.write(os.urandom(1 << 20))
            file.flush()
            os.fsync(file.fileno())
            os.posix_fallocate(file.fileno(), 0, 2 << 20)
        os.link(f"{point}/d/a", f"{point}/d/b")
        os.symlink("b", f"{point}/d/c")
        os.rename(f"{point}/d/a", f"{point}/d/e")
        os.truncate(f"{point}/d/b", 5000)
        os.setxattr(f"{point}/d/b", "user.x", b"y")
        os.chmod(f"{point}/d/b", 0o600)
        shutil.copyfile(f"{point}/d/b", f"{point}/d/f")
        with open(f"{point}/d/f", "rb") as file:
            self.assertEqual(len(file.read()), 5000)
        os.statvfs(point)
        shutil.rmtree(f"{point}/d")

    def serve(self):
        service, line = self.start("serve", "--listen", "127.0.0.1:0", "--memory", "192M",
                                   "--keys", self.path("keys"), "--metrics",
                                   f"unix:{self.path('metrics')}", until="ready ")
        return service, line.split()[1]

    def test_a_donor_and_its_mount(self):
        point, key = self.path("point"), self.path("key")
        os.mkdir(point)
        self.weir("key", "add", self.path("keys"), "a", key)
        donor, address = self.serve()
        mount, _ = self.start("mount", "--foreground", "--key", key, address, point,
                              until="is mounted")
        self.work_on_files(point)
        self.neighbour("donor", address, key)
        self.neighbour("files", point)
        self.weir("stat", "--key", key, address)
        self.scrape()
        self.weir("key", "add", "--donor", self.child_of(donor), self.path("keys"), "b",
                  self.path("b"))
        self.end("mount", mount)
        self.assertFalse(os.path.ismount(point))
        self.end("serve", donor)

    def test_donors_of_a_pool_and_its_mount(self):
        """Two clients use the server of the files, and another donor follows."""
        pool, points = f"file:{self.path('map')}/pool", [self.path("a"), self.path("b")]
        for folder in (self.path("map"), *points):
            os.mkdir(folder)
        self.weir("pool", "create", "--groups", "4", pool)
        donors = {name: self.start("serve", "--listen", "127.0.0.1:0", "--memory", "64M",
                                   "--pool", pool, "--name", name, "--domain", name,
                                   until="ready ", log=name)[0] for name in ("one", "two")}
        self.weir("pool", "volume", "create", "--files", "--extent", "1M", pool, "fs", "16M")
        mounts = {point: self.start("mount", "--foreground", f"{pool}/fs", point,
                                    until="is mounted", log=os.path.basename(point))[0]
                  for point in points}
        self.work_on_files(points[0])
        self.neighbour("files", points[1])
        for name, service in {**mounts, **donors}.items():
            self.end(os.path.basename(name), service)

    def test_share(self):
        far, line = self.start("share", "--socket", self.path("far"), "--listen", "127.0.0.1:0",
                               until="ready ")
        near, _ = self.start("share", "--socket", self.path("near"), "--listen", "127.0.0.1:0",
                             until="ready ", log="near")
        echo = subprocess.Popen([NEIGHBOUR, "echo", self.path("far")], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True, env=PRELOADED)
        self.addCleanup(echo.stdout.close)
        self.addCleanup(echo.wait)
        self.addCleanup(echo.kill)
        self.assertEqual(echo.stdout.readline(), "ready\n")
        self.neighbour("tenant", self.path("near"), line.split()[1])
        echo.stdin.close()
        self.end("near", near)
        self.end("share", far)

    @classmethod
    def tearDownClass(cls):
        list_of, why = allowed(), reasons()
        used = set(cls.used)
        problems = [
            f"{name}: used by {', '.join(sorted(cls.used[name]))}, and the list lacks it"
            for name in sorted(used - list_of - REPLACED)]
        problems += [f"{name}: refused to {', '.join(sorted(cls.refused[name]))}"
                     for name in sorted(set(cls.refused) & list_of)]
        problems += [f"{name}: no service makes this call, and {UNUSED} gives no reason for it"
                     for name in sorted(list_of - used - set(why))]
        problems += [f"{name}: has a reason in {UNUSED}, but is not in the list"
                     for name in sorted(set(why) - list_of)]
        if problems:
            raise AssertionError("\n" + "\n".join(problems))


if __name__ == "__main__":
    if not shutil.which("strace") or not os.access("/dev/fuse", os.W_OK):
        print("skipped: there is no strace, or no FUSE")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
