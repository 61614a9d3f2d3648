# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir perf exchange: counts in each mode and pattern, and bad input.

exchange_test.py WEIR: the command. The environment gives device, address and key: see
tests/support/libweir_fixture.h.
"""
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

WEIR = sys.argv.pop(1)
DEVICE = os.environ.get("WEIR_DEVICE") or "softnic"
ADDRESS = os.environ.get("WEIR_TEST_ADDRESS") or "127.0.0.1"
KEY = os.environ.get("WEIR_TEST_KEY")
HAS_MORE_TIME = 300
MESSAGES = 400


def perf(*options):
    key = ["--key", KEY] if KEY else []
    kept = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return subprocess.run([WEIR, "perf", "exchange", "--address", ADDRESS, *key, *options],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=HAS_MORE_TIME, env=dict(kept, WEIR_DEVICE=DEVICE))


def has_sent(pid):
    """A process that has used so much CPU time is connected and at work."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]) > 20


class PerfExchange(unittest.TestCase):
    def measured(self, *options):
        done = perf("--json", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["modes"]

    def check_counts(self, modes, messages, members=1):
        for mode in modes.values():
            self.assertEqual(mode["messages"], messages)
        bitmap, imm = modes["bitmap"], modes["imm"]
        for mode in (bitmap, imm):
            self.assertGreaterEqual(mode["sender"]["work_requests"], messages)
        # The first receives are posted before counting, so some of the last are missing.
        self.assertGreaterEqual(imm["receiver"]["completions"], messages)
        self.assertGreater(imm["receiver"]["receives"], messages / 2)
        # A sleeping receiver is woken once, by a message or by the end; the number depends on the
        # machine.
        self.assertLessEqual(bitmap["receiver"]["receives"], messages + members)
        self.assertNotIn("receives", modes["tcp"]["receiver"])

    def test_one_to_one(self):
        modes = self.measured("--messages", str(MESSAGES))
        self.assertEqual(list(modes), ["bitmap", "imm", "tcp"])
        self.check_counts(modes, MESSAGES)

    def test_broadcast_and_gather(self):
        for pattern in ("broadcast", "gather"):
            modes = self.measured(
                "--pattern",
                pattern,
                "--members",
                "3",
                "--size",
                "20000",
                "--messages",
                str(MESSAGES),
            )
            self.check_counts(modes, 3 * MESSAGES, 3)

    def test_a_table_for_people(self):
        done = perf("--mode", "imm,bitmap", "--size", "1M", "--slots", "2", "--seconds", "0.1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("messages of 1.0 MiB, 2 slots", done.stdout)
        self.assertRegex(done.stdout, r"of each message +bitmap +imm\n")
        self.assertRegex(done.stdout, r"receiver's CPU, us +[0-9.]+ +[0-9.]+\n")

    def test_a_signal_ends_it_even_with_a_stopped_peer(self):
        key = ["--key", KEY] if KEY else []
        process = subprocess.Popen(
            [
                WEIR,
                "perf",
                "exchange",
                "--address",
                ADDRESS,
                *key,
                "--mode",
                "bitmap",
                "--pattern",
                "gather",
                "--members",
                "2",
                "--seconds",
                "3600",
            ],
            env=dict(os.environ, WEIR_DEVICE=DEVICE, LD_PRELOAD=""),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
            deadline = time.monotonic() + HAS_MORE_TIME
            while not (
                all(map(has_sent, members := children.read_text().split())) and len(members) == 2
            ):
                self.assertLess(time.monotonic(), deadline, "nothing is sent")
                time.sleep(0.01)
            os.kill(int(members[0]), signal.SIGSTOP)
            os.killpg(process.pid, signal.SIGINT)
            said = process.communicate(timeout=HAS_MORE_TIME)[1]
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        self.assertEqual(process.returncode, 1, said)
        self.assertIn("some peers did not end in time", said)

    def test_bad_input_is_explained(self):
        for options, said in (
                (("--mode", "imm,magic"), "--mode imm,magic: expected bitmap, imm or tcp"),
                (("--pattern", "all"), "one, broadcast or gather"),
                (("--members", "2"), "--members 2: pattern one has a single peer"),
                (("--members", "65"), "--members 65: expected 1 to 64"),
                (("--memory", "disk"), "--memory disk: expected host or cuda"),
                (("--size", "0"), "--size 0: expected 1 B to 64.0 MiB"),
                (("--slots", "4097"), "1 to 4096"), (("--seconds", "0"), "more than 0"),
                (("--messages", "-1"), "--messages -1: expected 1 to"),
                (("here",), "unexpected argument 'here'")):
            done = perf(*options)
            self.assertEqual((done.returncode, done.stdout), (2, ""), options)
            self.assertIn(said, done.stderr)

    def test_without_a_gpu_its_memory_is_refused(self):
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            done = perf("--memory", "cuda", "--messages", "10")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, "CUDA driver.*libcuda.so.1.*host memory")
        else:
            self.skipTest("this machine has a CUDA driver")

    def test_a_resource_that_is_missing_is_named(self):
        for options, said in (
                (("--address", "192.0.2.1"), "192.0.2.1"),
                (("--mode", "tcp", "--address", "here"), "requires an IPv4 address, not here"),
                (("--key", "/nowhere"), "/nowhere")):
            done = perf(*options)
            self.assertEqual((done.returncode, done.stdout), (1, ""), options)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
