# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run the tests of volumes with a code with clients that have planted bugs: each must be found.

coded_planted_test.py WEIR VOLUME_CLIENT CODED_CLIENT...
"""
import os
import pathlib
import subprocess
import sys
import unittest

WEIR, VOLUME_CLIENT, *PROGRAMS = sys.argv[1:]
TEST = pathlib.Path(__file__).parent / "pool_test.py"
RUNS, LONG_S = 3, 900


def finds_its_bug(program):
    """Some bugs need requests to meet. So a program may run several times."""
    for _ in range(RUNS):
        run = subprocess.run([sys.executable, TEST, WEIR, VOLUME_CLIENT, program, "file",
                              "--failfast", "Code"], capture_output=True, text=True,
                             timeout=LONG_S, check=False)
        if run.returncode:
            return "\nFAIL: test_" in run.stderr
    return False


class Planted(unittest.TestCase):
    def test_each_bug_is_found(self):
        for program in PROGRAMS:
            with self.subTest(os.path.basename(program)):
                self.assertTrue(finds_its_bug(program))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
