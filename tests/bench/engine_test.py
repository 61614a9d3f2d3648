# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""bench/engine/run: cells that are asked for and are not there.

Called with the path of that script.
"""
import subprocess
import sys
import unittest

RUN = sys.argv.pop(1)
SECONDS = 60


def refused(*args):
    done = subprocess.run(
        [sys.executable, RUN, *args], capture_output=True, text=True, timeout=SECONDS
    )
    return done.returncode, done.stdout, done.stderr


class Only(unittest.TestCase):
    def test_what_matches_no_cell_is_refused_with_their_names(self):
        for wanted in ("KiB, nothing", "4 x 1024", "24 KiB"):
            status, out, err = refused("--quick", "--only", wanted, "throughput")
            self.assertEqual((status, out), (2, ""))
            self.assertIn(f"--only '{wanted}': no cell of throughput", err)
            self.assertIn("\n  4 KiB, neighbours, write, 1 x 1\n", err)
            self.assertIn("\n  1024 KiB, neighbours, read, 4 x 8\n", err)

    def test_what_has_no_cells_takes_no_choice(self):
        status, out, err = refused("--only", "4 KiB", "counts")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("--only goes with throughput and boundary", err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
