# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Volumes of a pool under failures are linearizable, says Porcupine.

linear_test.py WEIR HISTORY

A campaign of failures with clients that record their operations on a few pages, any thread any
page, and Porcupine's verdict on the records. First it must find planted mistakes in short records.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
from tests.support import go_build  # noqa: E402

WEIR, HISTORY = (os.path.abspath(path) for path in sys.argv[1:3])
del sys.argv[1:]
SKIPPED = 77
READ, WRITE = 0, 1
LONG_S = 250
FOLDER = tempfile.TemporaryDirectory()
CHECKER = os.path.join(FOLDER.name, "linear")


def build():
    """Return: why the checker cannot be built, or None."""
    go = shutil.which("go")
    if not go:
        return "no go: scripts/deps check"
    environment = dict(os.environ, GOFLAGS="-mod=readonly")

    def run(*words, **how):
        return subprocess.run([go, *words], cwd=HERE / "linear", env=environment, check=False,
                              **how)
    if run("mod", "download", capture_output=True).returncode:
        return "no network for the module of go.sum, or an older go"
    with go_build.alone(go):
        for words in ("vet", "."), ("build", "-o", CHECKER, "."):
            if run(*words).returncode:
                sys.exit(1)
    return None


def verdict(*records):
    """Checks operations (call, return, value, kind) on one page."""
    path = os.path.join(FOLDER.name, "records")
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(records)))
        for call, end, value, kind in records:
            file.write(struct.pack("<QQQII", call, end, value, 7, kind))
    return subprocess.run([CHECKER, path], check=False, capture_output=True).returncode


class Linear(unittest.TestCase):
    def test_right_records_pass(self):
        self.assertEqual(verdict((1, 2, 0, READ), (3, 6, 5, WRITE), (4, 5, 5, READ)), 0)
        self.assertEqual(verdict((1, 4, 5, WRITE), (2, 3, 6, WRITE), (5, 6, 5, READ)), 0)
        # Without a return: later, or never; what such a read would have read is unknown.
        self.assertEqual(verdict((1, 0, 5, WRITE), (2, 3, 0, READ), (4, 5, 5, READ)), 0)
        self.assertEqual(verdict((1, 0, 5, WRITE), (2, 3, 0, READ), (4, 0, 9, READ)), 0)

    def test_mistakes_are_found(self):
        for what, *records in (
                ("a write that is done is not read", (1, 2, 5, WRITE), (3, 4, 0, READ)),
                ("a value that was read is gone", (1, 0, 5, WRITE), (2, 3, 5, READ),
                 (4, 5, 0, READ)),
                ("an older value returns", (1, 2, 5, WRITE), (3, 4, 6, WRITE), (5, 6, 5, READ)),
                ("a value that nobody wrote", (1, 2, 5, WRITE), (3, 4, 8, READ)),
                ("a value is read before it is written", (1, 2, 5, READ), (3, 4, 5, WRITE))):
            with self.subTest(what):
                self.assertEqual(verdict(*records), 1)

    def test_volumes_are_linearizable_under_failures(self):
        for scheme, seed in ("copies=2", "3"), ("code=2+1", "4"):
            with self.subTest(scheme):
                status, said, complaints = self.campaign(
                    "--scheme", scheme, "--seed", seed, "--rounds", "4", "--lease", "4",
                    "--then", CHECKER, WEIR, HISTORY)
                print(said, flush=True)
                self.assertEqual(status, 0, complaints)
                self.assertIn("linearizable", said)

    def campaign(self, *words):
        """Its donors end with it, also after a timeout."""
        process = subprocess.Popen([sys.executable, HERE / "campaign.py", *words], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True)
        try:
            said, complaints = process.communicate(timeout=LONG_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, said, complaints


if __name__ == "__main__":
    WHY = build()
    if WHY:
        print("skipped:", WHY)
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
