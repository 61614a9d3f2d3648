# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A skip that tests/skips.txt does not name fails; one that it names passes, with its reason.

Called with the path of scripts/test-skips, and of the list itself.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM, LIST = sys.argv[1:3]


class Skips(unittest.TestCase):
    def check(self, listed, *results):
        """The exit status for a log of @results: (test, result, output)."""
        with tempfile.TemporaryDirectory() as folder:
            path, log = os.path.join(folder, "skips.txt"), os.path.join(folder, "testlog.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(listed)
            with open(log, "w", encoding="utf-8") as file:
                for name, result, said in results:
                    file.write(json.dumps({"name": f"weir:any / {name}", "result": result,
                                           "stdout": said}) + "\n")
            return subprocess.run([PROGRAM, path, log], capture_output=True, text=True).returncode

    def test_a_run_without_skips_passes(self):
        self.assertEqual(self.check("", ("a", "OK", "OK"), ("b", "FAIL", "")), 0)

    def test_a_skip_that_is_not_listed_fails(self):
        self.assertEqual(self.check("", ("a", "SKIP", "")), 1)
        self.assertEqual(self.check("b | all | a reason\n", ("a", "SKIP", "")), 1)

    def test_a_skip_that_is_listed_passes(self):
        self.assertEqual(self.check("# why\n\na | all | a reason\n", ("a", "SKIP", "")), 0)

    def test_cases_of_a_test_count(self):
        for said in ("OK (skipped=2)", "FAILED (errors=1, skipped=2)",
                     "ok 1 - one # SKIP why\nok 2 - two # skip why"):
            with self.subTest(said):
                self.assertEqual(self.check("", ("a", "OK", said)), 1)
                self.assertEqual(self.check("a | 1 | a reason\n", ("a", "OK", said)), 1)
                self.assertEqual(self.check("a | 2 | a reason\n", ("a", "OK", said)), 0)

    def test_a_whole_test_is_more_than_its_cases(self):
        self.assertEqual(self.check("a | 2 | a reason\n", ("a", "SKIP", "")), 1)

    def test_a_log_that_is_missing_is_a_skip(self):
        done = subprocess.run(
            [PROGRAM, LIST, "/dev/null/vmlog.json"], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("vmlog.json", done.stderr)

    def test_the_list_of_the_tree_can_be_read(self):
        self.assertEqual(subprocess.run([PROGRAM, LIST, os.devnull]).returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
