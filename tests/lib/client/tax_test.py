# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Check that few instructions precede the driver for a lone request, on every path into the
library, and that a blocking write of copied memory takes the short way back.

tax_test.py DONOR TAX

bench/tax counts single steps, so the load of the machine does not matter. WEIR_TEST_PRELOAD
holds the LD_PRELOAD of the measured program.
"""
import itertools
import os
import re
import subprocess
import sys
import unittest

DONOR, TAX = sys.argv[1:3]
ENVIRONMENT = dict(os.environ, LD_PRELOAD=os.environ.get("WEIR_TEST_PRELOAD", ""))
INSTRUCTIONS_MAX = 200  # on top of a hand-made WR
# A blocking write of memory that is copied, from the call to the return: the NIC's lock is taken
# and given back once, also the buffer pool's twice, and the list of free requests is used twice.
WHOLE_MAX = 1400
ATOMIC_MAX = 7
SKIP = 77
WAYS = ("a callback", "a queue", "waited for", "weir_transfer_async(), one")
KINDS = ("write 4096", "write 64", "read 4096")  # the second goes inline


class Tax(unittest.TestCase):
    def setUp(self):
        self.donor = subprocess.Popen([DONOR, "127.0.0.1:0", "16777216"], stdout=subprocess.PIPE,
                                      text=True, env=ENVIRONMENT)
        self.address = self.donor.stdout.readline().strip()
        self.assertTrue(self.address, "the donor does not listen")

    def tearDown(self):
        self.donor.terminate()
        self.donor.stdout.close()
        self.assertEqual(self.donor.wait(timeout=60), 0)

    def test_no_way_in_takes_more_than_the_mark(self):
        done = subprocess.run([TAX, self.address], capture_output=True, text=True, timeout=240,
                              env=ENVIRONMENT)
        if done.returncode == SKIP:
            self.skipTest(done.stderr.strip())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        print(done.stdout)
        found = {(kind, way): (int(tax), int(calls)) for kind, way, tax, calls in
                 re.findall(r"(?m)^(\w+ \d+) +(.*?)  +\d+ +(-?\d+) +(\d+)$", done.stdout)
                 if way not in ("by hand", "copied, waited for")}
        self.assertEqual(set(found), set(itertools.product(KINDS, WAYS)))
        for name, (tax, calls) in found.items():
            with self.subTest(name):
                self.assertLessEqual(tax, INSTRUCTIONS_MAX)
                self.assertEqual(calls, 0)
        whole = re.search(r"(?m)^write 4096 copied, waited for +(\d+) +(\d+) +(\d+)$", done.stdout)
        self.assertTrue(whole, done.stdout)
        instructions, atomic, calls = map(int, whole.groups())
        self.assertLessEqual(instructions, WHOLE_MAX)
        self.assertLessEqual(atomic, ATOMIC_MAX)
        self.assertEqual(calls, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
