# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run the tests of volumes with planted bugs: each program must fail.

planted_test.py PROGRAM...

A program that hangs has found its bug, too: the tests wait for a state, for a minute at most.
"""
import os
import subprocess
import sys
import unittest

PROGRAMS = sys.argv[1:]
LONG_S = 300


class Planted(unittest.TestCase):
    def test_each_bug_is_found(self):
        for program in PROGRAMS:
            with self.subTest(os.path.basename(program)):
                run = subprocess.run([program], capture_output=True, text=True, timeout=LONG_S)
                self.assertNotEqual(run.returncode, 0, "the bug was not found")
                self.assertIn("not ok" if "CMOCKA_MESSAGE_OUTPUT" in os.environ else "FAILED",
                              run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
