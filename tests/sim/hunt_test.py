#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Check that the hunt ends, prints the same twice, and finds planted bugs.

hunt_test.py HUNT HUNT_POOL WEIR PLANTED...
"""

import subprocess
import sys
import unittest

HUNT, HUNT_POOL, WEIR, *PLANTED = sys.argv[1:]
del sys.argv[1:]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


class Hunt(unittest.TestCase):
    def test_all_promises_are_kept(self):
        done = run(HUNT, "1", "2000")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("kept 2000 seeds", done.stdout)

    def test_a_pool_keeps_its_promises(self):
        done = run(HUNT_POOL, "1", "60")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("kept 60 seeds", done.stdout)

    def test_a_seed_gives_the_same_run_to_the_byte(self):
        for hunt in HUNT, HUNT_POOL:
            first, second = run(hunt, "7", "7", "trace"), run(hunt, "7", "7", "trace")
            self.assertGreater(len(first.stdout.splitlines()), 100)
            self.assertEqual(first.stdout, second.stdout)
            self.assertNotEqual(first.stdout, run(hunt, "8", "8", "trace").stdout)

    def test_a_planted_bug_falls_within_a_thousand(self):
        for planted in PLANTED:
            done = run(planted, "1", "1000")
            self.assertEqual(done.returncode, 1, f"{planted}: {done.stdout}")
            seed = done.stdout.splitlines()[-1].split()[1]
            again = run(planted, seed, seed)
            self.assertEqual(again.stdout.splitlines()[-1], done.stdout.splitlines()[-1])

    def test_bad_arguments_are_refused(self):
        for arguments in ((), ("1",), ("2", "1"), ("x", "2"), ("1", "2", "3"), ("-1", "2")):
            for hunt in HUNT, HUNT_POOL:
                self.assertEqual(run(hunt, *arguments).returncode, 2, arguments)

    def test_the_command_hunts_on_all_cpus_and_says_the_same(self):
        first, second = (run(WEIR, "lab", "hunt", "--seeds", "1-1500") for _ in range(2))
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("1500 seeds kept all promises", first.stdout)
        self.assertEqual(first.stdout, second.stdout)

    def test_the_command_hunts_in_a_pool(self):
        done = run(WEIR, "lab", "hunt", "--world", "pool", "--seeds", "1-150")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("150 seeds kept all promises", done.stdout)
        self.assertNotIn(done.stdout.split("digest")[1],
                         run(WEIR, "lab", "hunt", "--seeds", "1-150").stdout)
        self.assertEqual(run(WEIR, "lab", "hunt", "--world", "moon").returncode, 2)

    def test_the_command_refuses_what_is_no_range(self):
        for seeds in ("5", "9-1", "a-b", ""):
            done = run(WEIR, "lab", "hunt", "--seeds", seeds)
            self.assertEqual(done.returncode, 2, seeds)
            self.assertIn("is not a range of seeds", done.stderr)


unittest.main(verbosity=2)
