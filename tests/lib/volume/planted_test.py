# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run the tests of volumes with planted bugs: each program must fail.

planted_test.py PROGRAM...

Some bugs need requests to meet under way. So a program may run several times.
"""
import os
import subprocess
import sys
import unittest

PROGRAMS = sys.argv[1:]
RUNS, LONG_S = 5, 600


def finds_its_bug(program):
    """Whether a test of @program fails, and not merely the program."""
    for _ in range(RUNS):
        run = subprocess.run([program], capture_output=True, text=True, timeout=LONG_S,
                             env=dict(os.environ, CMOCKA_MESSAGE_OUTPUT="tap"))
        if run.returncode:
            return "\nnot ok" in run.stdout
    return False


class Planted(unittest.TestCase):
    def test_each_bug_is_found(self):
        for program in PROGRAMS:
            with self.subTest(os.path.basename(program)):
                self.assertTrue(finds_its_bug(program))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
