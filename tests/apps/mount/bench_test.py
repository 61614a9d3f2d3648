# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""bench/fs runs, measures as asked, ends on a signal, and leaves other processes alone.

Called with the paths of the weir command, beside which the benchmarks' programs lie, of
bench/fs/run, of bench/fs/names and of bench/fs/past.
GlusterFS, UCX and libfabric are not tested: they are not part of weir, nor installed everywhere.
"""
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import world
from world import WEIR

RUN, NAMES, PAST = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
JOBS = {"write, 64k", "read, 64k", "random write, 64k", "random read, 64k"}
SECONDS = 60


class Bench(unittest.TestCase):
    def test_weir_alone_is_measured(self):
        with tempfile.TemporaryDirectory() as directory:
            rates = os.path.join(directory, "rates")
            done = subprocess.run(
                [RUN, "--systems", "weir", "--sizes", "64k", "--size", "4", "--seconds", "0.1",
                 "--rounds", "1", "--json", rates, WEIR], text=True, capture_output=True,
                stdin=subprocess.DEVNULL, timeout=SECONDS)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(rates, encoding="utf-8") as file:
                said = json.load(file)
        self.assertEqual(said["missing"], {})
        self.assertEqual(set(said["rates"]["weir"]), JOBS)
        for job, measured in said["rates"]["weir"].items():
            self.assertEqual(len(measured), 1, job)
            self.assertGreater(measured[0], 0, job)
        self.assertIn("load of the machine", done.stdout)

    def test_files_past_the_kernel_are_measured(self):
        with tempfile.TemporaryDirectory() as directory:
            rates = os.path.join(directory, "rates")
            done = subprocess.run(
                [PAST, "--size", "4", "--seconds", "0.1", "--rounds", "1", "--json", rates, WEIR],
                text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=SECONDS)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(rates, encoding="utf-8") as file:
                said = json.load(file)
        for job, by in said["rates"].items():
            for system, measured in by.items():
                self.assertEqual(len(measured), 1, (job, system))
                self.assertGreater(measured[0], 0, (job, system))

    def test_each_operation_on_names_is_counted(self):
        with tempfile.TemporaryDirectory() as directory:
            table = os.path.join(directory, "table")
            done = subprocess.run(
                [NAMES, "--quick", "--systems", "tmpfs,weir mount", "--csv", table, WEIR],
                text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=SECONDS)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(table, encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 2 * 14)
        for row in rows:
            self.assertGreater(float(row["us"]), 0, row)
        messages = {row["operation"]: float(row["messages"]) for row in rows
                    if row["system"] == "weir mount"}
        # Each second that a phase lasts may cost a few more.
        most = {"create + write + close": 2, "open + read + close": 2, "close": 1,
                "stat": 0, "rename": 1,
                "unlink": 1, "mkdir": 1, "rmdir": 1}
        for operation, number in most.items():
            self.assertLess(messages[operation], number + 0.6, operation)
        self.assertGreaterEqual(messages["open"], 1, messages)

    def test_it_leaves_other_mounts_alone_and_ends_at_a_signal(self):
        there = world.World()
        self.addCleanup(there.destroy)
        client = there.mount()
        bench = subprocess.Popen(
            [RUN, "--systems", "weir", "--sizes", "64k", "--size", "4", "--seconds", "600",
             "--rounds", "1", WEIR], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.addCleanup(bench.communicate)
        self.addCleanup(bench.kill)
        self.assertIn("round 1 of 1", bench.stdout.readline())
        self.assertEqual(client.unmount(), 0)
        self.assertIsNone(bench.poll())
        bench.send_signal(signal.SIGTERM)
        said, _ = bench.communicate(timeout=SECONDS)
        self.assertEqual(bench.returncode, 130, said)


if __name__ == "__main__":
    if not shutil.which("fio"):
        print("skipped: there is no fio")
        sys.exit(world.SKIPPED)
    world.main()
