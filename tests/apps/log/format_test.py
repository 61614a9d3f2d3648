#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The log of services as text, JSON and journal, and the ids of its warnings and errors.

format_test.py WEIR
"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
WEIR = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build/weir"
PATIENCE = 60
ID = re.compile(r"\bid=(W\d{3})\b")
CALL = re.compile(r"\b(?:log_event|weir_donor_log|weir_donor_log_of|weir_log_line|mount_log|say)\("
                  r"(?:[^;]|;(?=[^\n]))*?WEIR_LOG_(?:ERROR|WARNING)(?:[^;]|;(?=[^\n]))*;\n")
PAGE = ROOT / "docs/reference/errors.md"
SERVE = ("serve", "--listen", "127.0.0.1:0", "--memory", "8M", "--no-reserve")


def environment(**more):
    kept = {name: value for name, value in os.environ.items()
            if name not in ("LD_PRELOAD", "JOURNAL_STREAM")}
    return dict(kept, WEIR_DEVICE="softnic", **more)


def sources():
    return [path for folder in ("lib", "apps", "fsd") for path in (ROOT / folder).rglob("*.c")]


class Ids(unittest.TestCase):
    def test_each_warning_and_error_has_an_id(self):
        calls = 0
        for path in sources():
            text = path.read_text(encoding="utf-8")
            # From the name of a function that logs to the end of its statement.
            for call in CALL.findall(text):
                calls += 1
                self.assertRegex(call, ID, path)
        self.assertGreater(calls, 25)

    def test_the_page_explains_each_id_and_no_other(self):
        used = {found for path in sources()
                for found in ID.findall(path.read_text(encoding="utf-8"))}
        explained = re.findall(r"^\| `(W\d{3})` \|", PAGE.read_text(encoding="utf-8"), re.M)
        self.assertEqual(sorted(used), explained)


class Formats(unittest.TestCase):
    def start(self, *words, **more):
        child = subprocess.Popen([WEIR, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, env=environment(**more))
        self.addCleanup(self.end, child)
        return child

    def end(self, child):
        child.kill()
        child.communicate(timeout=PATIENCE)

    def finish(self, child):
        """Standard error of a donor that is ready, after SIGTERM."""
        self.assertIn("ready", child.stdout.readline())
        child.send_signal(signal.SIGTERM)
        error = child.communicate(timeout=PATIENCE)[1]
        self.assertEqual(child.returncode, 0, error)
        return error

    def test_each_line_is_an_object_in_json(self):
        lines = [json.loads(line) for line in self.finish(self.start(
            *SERVE, "--log", "json", "--web", "0")).splitlines()]
        listening = next(line for line in lines if line["msg"] == "listening")
        self.assertEqual(listening["level"], "info")
        self.assertEqual(listening["memory"], str(8 << 20))
        self.assertTrue(any(line["msg"] == "said" and "page at" in line["reason"]
                            for line in lines), lines)
        self.assertIn("stopping", [line["msg"] for line in lines])

    def test_a_failure_is_a_line_with_an_id(self):
        for command in (("serve", "--key", "/nowhere"), ("share", "--key", "/nowhere"),
                        ("metrics", "--listen", "0.0.0.0:0")):
            child = self.start(*command, "--log", "json")
            lines = [json.loads(line)
                     for line in child.communicate(timeout=PATIENCE)[1].splitlines()]
            self.assertEqual(child.returncode, 1)
            self.assertEqual((lines[-1]["level"], lines[-1]["id"]), ("error", "W001"))

    def test_without_a_journal_the_log_is_text(self):
        self.journal_of("--log", "journal", is_there=False)
        self.assertRegex(self.said, r"level=warning msg=\"no journal\" id=W002")
        self.assertIn("msg=listening", self.said)

    def test_the_journal_gets_fields(self):
        fields = self.journal_of("--log", "journal")
        self.check(fields)
        self.assertNotIn("listening", self.said)

    def test_the_journal_is_found_by_its_stream(self):
        self.check(self.journal_of(is_stream=True))

    def test_another_stream_is_not_taken_for_the_journals(self):
        self.assertEqual(self.journal_of(is_stream=False), [])
        self.assertIn("msg=listening", self.said)

    def check(self, entries):
        listening = next(entry for entry in entries if entry["WEIR_EVENT"] == "listening")
        self.assertEqual(listening["PRIORITY"], "6")
        self.assertEqual(listening["SYSLOG_IDENTIFIER"], "weir-serve")
        self.assertEqual(listening["WEIR_MEMORY"], str(8 << 20))
        self.assertRegex(listening["MESSAGE"], "^msg=listening address=")
        # Two threads wrote these, in either order.
        self.assertIn("stopping", [entry["WEIR_EVENT"] for entry in entries])

    def journal_of(self, *words, is_there=True, is_stream=None):
        """The lines of a donor's start and end in the journal of a mount namespace."""
        with tempfile.TemporaryDirectory(prefix="weir-log-") as folder:
            path = pathlib.Path(folder, "socket")
            journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.addCleanup(journal.close)
            journal.bind(str(path))
            journal.settimeout(0.1)
            place = "/run/systemd/journal"
            bind = f"ln -s {path} {place}/socket" if is_there else "true"
            stream = "" if is_stream is None else \
                'JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2); ' if is_stream else \
                "JOURNAL_STREAM=1:2; "
            script = (f"mount -t tmpfs none /run && mkdir -p {place} && {bind} && {stream}"
                      'export JOURNAL_STREAM; exec "$@"')
            child = subprocess.Popen(["unshare", "-rm", "sh", "-c", script, "-", WEIR, *SERVE,
                                      *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True, env=environment())
            self.addCleanup(self.end, child)
            entries, is_over = [], threading.Event()
            reader = threading.Thread(target=self.read, args=(journal, entries, is_over))
            reader.start()
            try:
                ready = child.stdout.readline()
                if not ready:
                    why = child.communicate(timeout=PATIENCE)[1]
                    if "unshare" in why or "mount:" in why:
                        self.skipTest(f"no namespaces: {why}")
                    self.fail(why)
                child.send_signal(signal.SIGTERM)
                self.said = child.communicate(timeout=PATIENCE)[1]
                self.assertEqual(child.returncode, 0, self.said)
            finally:
                is_over.set()
                reader.join(PATIENCE)
            return entries

    @staticmethod
    def read(journal, entries, is_over):
        """Until the process has ended and nothing is left."""
        while True:
            ending = is_over.is_set()
            try:
                data = journal.recv(65536).decode()
            except TimeoutError:
                if ending:
                    return
                continue
            entries.append(dict(line.split("=", 1) for line in data.splitlines()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
