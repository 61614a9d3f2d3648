# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Check that few instructions precede the driver for a lone request, on every path into the
library, that a blocking write of copied memory takes the short way back, and that scrapes of the
counters add nothing to either.

tax_test.py DONOR TAX WEIR

bench/tax counts single steps, so the load of the machine does not matter. WEIR_TEST_PRELOAD
holds the LD_PRELOAD of the measured program.
"""
import itertools
import os
import re
import subprocess
import sys
import threading
import unittest

DONOR, TAX, WEIR = sys.argv[1:4]
ENVIRONMENT = dict(os.environ, LD_PRELOAD=os.environ.get("WEIR_TEST_PRELOAD", ""))
INSTRUCTIONS_MAX = 200  # on top of a hand-made WR
# A blocking write of memory that is copied, from the call to the return: the NIC's lock is taken
# and given back once, also the buffer pool's twice, and the list of free requests is used twice.
WHOLE_MAX = 1400
ATOMIC_MAX = 7
SCRAPED_MAX = 1.01  # instructions while the counters are scraped, over those without scrapes
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

    def measure(self):
        done = subprocess.run([TAX, self.address], capture_output=True, text=True, timeout=240,
                              env=ENVIRONMENT)
        if done.returncode == SKIP:
            self.skipTest(done.stderr.strip())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        print(done.stdout)
        return done.stdout

    def instructions(self):
        """The instructions of each row, the driver's aside."""
        rows = re.findall(r"(?m)^(\w+ \d+ .*?)  +(\d+) +-?\d+ +\d+$", self.measure())
        return {name: int(count) for name, count in rows}

    def scrape(self, scrapes, end):
        while not end.is_set():
            scrapes.append(subprocess.run([WEIR, "metrics"], capture_output=True, text=True,
                                          timeout=240, check=True).stdout)

    def test_scrapes_add_less_than_a_hundredth(self):
        alone = self.instructions()
        scrapes, end = [], threading.Event()
        scraper = threading.Thread(target=self.scrape, args=(scrapes, end))
        scraper.start()
        try:
            scraped = self.instructions()
        finally:
            end.set()
            scraper.join()
        self.assertEqual(set(scraped), set(alone))
        self.assertGreater(len(alone), len(KINDS) * len(WAYS))
        self.assertTrue(any(f'peer="{self.address}"' in text for text in scrapes),
                        "no scrape saw the session")
        for name, count in scraped.items():
            with self.subTest(name):
                self.assertLessEqual(count, alone[name] * SCRAPED_MAX)

    def test_no_way_in_takes_more_than_the_mark(self):
        shown = self.measure()
        found = {(kind, way): (int(tax), int(calls)) for kind, way, tax, calls in
                 re.findall(r"(?m)^(\w+ \d+) +(.*?)  +\d+ +(-?\d+) +(\d+)$", shown)
                 if way not in ("by hand", "copied, waited for")}
        self.assertEqual(set(found), set(itertools.product(KINDS, WAYS)))
        for name, (tax, calls) in found.items():
            with self.subTest(name):
                self.assertLessEqual(tax, INSTRUCTIONS_MAX)
                self.assertEqual(calls, 0)
        whole = re.search(r"(?m)^write 4096 copied, waited for +(\d+) +(\d+) +(\d+)$", shown)
        self.assertTrue(whole, shown)
        instructions, atomic, calls = map(int, whole.groups())
        self.assertLessEqual(instructions, WHOLE_MAX)
        self.assertLessEqual(atomic, ATOMIC_MAX)
        self.assertEqual(calls, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
