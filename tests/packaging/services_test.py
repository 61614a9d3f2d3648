#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Services: configuration, systemd's protocol, units, and mount.weir.

services_test.py WEIR UNITS MOUNT
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

WEIR, UNITS, HELPER = (os.path.abspath(path) for path in sys.argv[1:4])
del sys.argv[1:4]
ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 60


class Service(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-service-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "weir.toml"
        self.configure("")

    def configure(self, text):
        self.file.write_text(text, encoding="utf-8")

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("WEIR_", "LD_PRELOAD"))}
        return dict(kept, WEIR_DEVICE="softnic", WEIR_CONFIG=str(self.file), **more)

    def weir(self, *words, **more):
        return subprocess.run([WEIR, *words], capture_output=True, text=True, timeout=PATIENCE,
                              check=False, stdin=subprocess.DEVNULL,
                              env=self.environment(**more))

    def start(self, *words, **more):
        log = open(self.folder / "log", "w", encoding="utf-8")
        self.addCleanup(log.close)
        child = subprocess.Popen([WEIR, *words], stdout=log, stderr=log,
                                 env=self.environment(**more))
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def told(self, pattern):
        """Waits for a line of the service's log."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            text = (self.folder / "log").read_text(encoding="utf-8")
            match = re.search(pattern, text, re.M)
            if match:
                return match[match.lastindex or 0]
            time.sleep(0.02)
        return self.fail(f"no {pattern} in: {text}")


class Configuration(Service):
    def shown(self, *sections, **more):
        done = self.weir("config", "show", *sections, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_each_place_gives_way_to_the_one_before(self):
        self.configure('[serve]\nmemory = "32M"\nlog-level = "debug"\nno-reserve = true\n'
                       'quota = "4M"\n')
        said = self.shown("serve", WEIR_SERVE_MEMORY="16M", WEIR_SERVE_NO_RESERVE="no")
        self.assertIn('memory = "16M"  # WEIR_SERVE_MEMORY\n', said)
        self.assertIn("no-reserve = no  # WEIR_SERVE_NO_RESERVE\n", said)
        self.assertIn(f'quota = "4M"  # {self.file}:5: quota\n', said)
        self.start("serve", "--listen", "127.0.0.1:0", "--memory", "8M", WEIR_SERVE_MEMORY="16M")
        self.assertIn("memory=8388608", self.told("msg=listening.*"))

    def test_a_list_repeats_an_option(self):
        keys = [str(self.folder / name) for name in ("a", "b")]
        for key in keys:
            self.assertEqual(self.weir("key", "new", key).returncode, 0)
        self.configure(f'[serve]\nkey = {keys}\nmemory = "8M"\nlisten = "127.0.0.1:0"\n'
                       .replace("'", '"'))
        self.start("serve")
        address = self.told("^ready (.*)$")
        for key in keys:
            self.assertEqual(self.weir("ping", "-c", "1", "--key", key, address).returncode, 0)
        self.assertEqual(self.weir("ping", "-c", "1", address).returncode, 1)

    def test_a_mistake_is_named_with_its_line(self):
        for text, complaint in (
                ("[serve]\nmemory = 4\n", ":2: memory = 4: expected a size"),
                ('[serve]\n\nmemroy = "4M"\n', ":3: weir serve has no option memroy"),
                ('[serve]\njson = "yes"\n', ":2: json = yes: expected true or false"),
                ("[serve]\nquota = true\n", ":2: quota = true: expected a size"),
                ("[serve]\nkey = [[1]]\n", ":2: key: expected a string"),
                ("memory = 4\n", ":1: memory: stands in no section"),
                ("[serve\n", ":1: ")):
            self.configure(text)
            for command in (("config", "check"), ("serve",), ("config", "show", "serve")):
                done = self.weir(*command)
                self.assertEqual(done.returncode, 2, (text, command))
                self.assertIn(f"{self.file}{complaint}", done.stderr)
        done = self.weir("serve", WEIR_SERVE_KEY_CLIENTS="0")
        self.assertEqual(done.returncode, 2)

    def test_a_section_without_a_service_is_found_by_the_check(self):
        self.configure("[serv]\nmemory = 4\n")
        self.assertIn(":2: no section serv", self.weir("config", "check").stderr)
        self.assertEqual(self.weir("config", "show", "serv").returncode, 2)

    def test_a_file_that_was_named_must_be_there(self):
        os.unlink(self.file)
        done = self.weir("serve")
        self.assertEqual(done.returncode, 2)
        self.assertIn("No such file", done.stderr)

    def test_the_example_is_valid_with_and_without_its_comments(self):
        example = (ROOT / "packaging/weir.toml").read_text(encoding="utf-8")
        for text in (example, re.sub(r"^#(?=[a-z-]+ = )", "", example, flags=re.M)):
            self.configure(text)
            done = self.weir("config", "check")
            self.assertEqual((done.returncode, done.stderr), (0, ""))


class Manager(Service):
    """systemd's side of the protocol: $NOTIFY_SOCKET and the watchdog."""

    def setUp(self):
        super().setUp()
        self.inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.inbox.close)
        self.inbox.settimeout(PATIENCE)

    def listen(self, address):
        self.inbox.bind(address)
        return address.replace("\0", "@")

    def heard(self, wanted):
        """Waits for a message that begins with @wanted."""
        while True:
            text = self.inbox.recv(4096).decode()
            if text.startswith(wanted):
                return text

    def test_a_donor_is_ready_reloads_and_stops(self):
        self.configure('[serve]\nmemory = "16M"\nlisten = "127.0.0.1:0"\n')
        donor = self.start("serve", NOTIFY_SOCKET=self.listen(str(self.folder / "notify")))
        text = self.heard("READY=1")
        self.assertRegex(text, r"^READY=1\nSTATUS=lends 16\.0 MiB at 127\.0\.0\.1:\d+$")
        self.configure('[serve]\nmemory = "4M"\nlisten = "127.0.0.2:0"\nlog-level = "warning"\n')
        donor.send_signal(signal.SIGHUP)
        self.assertRegex(self.heard("RELOADING=1"), r"\nMONOTONIC_USEC=\d+$")
        self.assertIn("lends 4.0 MiB", self.heard("READY=1"))
        self.told("msg=unchanged option=listen")
        self.configure("[serve\n")
        donor.send_signal(signal.SIGHUP)
        self.assertIn("lends 4.0 MiB", self.heard("READY=1"))
        self.told('msg="not reloaded"')
        donor.send_signal(signal.SIGTERM)
        self.heard("STOPPING=1")
        self.assertEqual(donor.wait(PATIENCE), 0)

    def test_a_watched_donor_says_that_it_is_alive(self):
        donor = self.start("serve", "--memory", "4M", "--listen", "127.0.0.1:0",
                           NOTIFY_SOCKET=self.listen(f"\0weir-{os.getpid()}"),
                           WATCHDOG_USEC="300000")
        for _ in range(3):
            self.heard("WATCHDOG=1")
        donor.send_signal(signal.SIGTERM)
        self.assertEqual(donor.wait(PATIENCE), 0)

    def test_share_and_metrics_are_ready_too(self):
        notify = self.listen(str(self.folder / "notify"))
        for words, more in ((("share", "--listen", "127.0.0.1:0", "--socket",
                              str(self.folder / "share")), {"WATCHDOG_USEC": "300000"}),
                            (("metrics", "--listen", "0"), {})):
            child = self.start(*words, NOTIFY_SOCKET=notify, **more)
            self.heard("READY=1")
            if more:
                self.heard("WATCHDOG=1")
                child.send_signal(signal.SIGHUP)
                self.heard("RELOADING=1")
                self.heard("READY=1")
                self.heard("WATCHDOG=1")
            child.send_signal(signal.SIGTERM)
            self.heard("STOPPING=1")
            self.assertEqual(child.wait(PATIENCE), 0)


class Units(unittest.TestCase):
    SERVICES = ("weir-serve", "weir-share", "weir-metrics")

    def setUp(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        folder = tempfile.TemporaryDirectory(prefix="weir-units-")
        self.addCleanup(folder.cleanup)
        self.units = []
        for name in self.SERVICES:
            text = pathlib.Path(UNITS, f"{name}.service").read_text(encoding="utf-8")
            path = pathlib.Path(folder.name, f"{name}.service")
            path.write_text(re.sub(r"^ExecStart=\S+/weir ", f"ExecStart={WEIR} ", text,
                                   flags=re.M), encoding="utf-8")
            self.units.append(str(path))

    def analyze(self, *words):
        return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)

    def test_systemd_finds_no_fault(self):
        done = self.analyze("verify", "--man=no", *self.units)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_sandbox_is_tight(self):
        for unit, most in zip(self.units, (20, 20, 25)):
            done = self.analyze("security", "--offline=true", f"--threshold={most}", unit)
            if "unrecognized option" in done.stderr:
                self.skipTest("an older systemd")
            self.assertEqual(done.returncode, 0, done.stdout[-200:] + done.stderr)


class MountHelper(unittest.TestCase):
    """mount.weir, with a weir that prints its arguments."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-helper-")
        self.addCleanup(folder.cleanup)
        self.path = folder.name
        fake = pathlib.Path(folder.name, "weir")
        fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
        fake.chmod(0o755)

    def mount(self, *words):
        done = subprocess.run([HELPER, *words], capture_output=True, text=True, check=False,
                              env={"PATH": f"{self.path}:{os.environ['PATH']}"}, timeout=PATIENCE)
        return done.returncode, done.stdout.splitlines()

    def test_options_become_those_of_weir_mount(self):
        self.assertEqual(self.mount("donor:1", "/a b", "-n", "-o",
                                    "rw,_netdev,nofail,key=/k e y,timeout=3,hard,x-systemd.mount"),
                         (0, ["mount", "--key=/k e y", "--timeout=3", "--hard", "--", "donor:1",
                              "/a b"]))
        self.assertEqual(self.mount("d", "/m", "-o", "ro", "-o", "noatime,threads=2"),
                         (0, ["mount", "--read-only", "--threads=2", "--", "d", "/m"]))
        self.assertEqual(self.mount("d", "/m"), (0, ["mount", "--", "d", "/m"]))

    def test_a_trial_mounts_nothing(self):
        self.assertEqual(self.mount("d", "/m", "-f", "-o", "hard"), (0, []))

    def test_wrong_calls_are_refused(self):
        for words in ((), ("d",), ("d", "/m", "-o"), ("d", "/m", "--hard")):
            self.assertEqual(self.mount(*words), (1, []))


if __name__ == "__main__":
    unittest.main(verbosity=2)
