# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""bench/fs runs, and measures what it was asked to.

Called with the paths of the weir command, which the benchmark's client lies beside, and of bench/fs/run. GlusterFS, UCX and libfabric are not tried: they are not weir's, and not everywhere.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import world
from world import WEIR

RUN = os.path.abspath(sys.argv.pop(1))
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


if __name__ == "__main__":
    if not shutil.which("fio"):
        print("skipped: there is no fio")
        sys.exit(world.SKIPPED)
    world.main()
