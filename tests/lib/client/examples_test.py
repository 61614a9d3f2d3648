# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run docs/examples: each example must print its lines, and exit with 0.

The first argument is the donor; the others are the example programs. WEIR_TEST_PRELOAD holds
their LD_PRELOAD. libweir_fixture.h lists the rest of the environment.
"""
import os
import subprocess
import sys
import unittest

DONOR, PROGRAMS = sys.argv[1], sys.argv[2:]
ENVIRONMENT = dict(os.environ, LD_PRELOAD=os.environ.get('WEIR_TEST_PRELOAD', ''))

# The output of each example, in order.
SAYS = {
    'read_write': ['success: over the weir'],
    'async': ['256 writes done, 0 failed'],
    'queue': ['64 reads done'],
    'pools': ['both buffers are out', 'head, body'],
    'atomics': ['the counter was 999 before the last addition', 'the lock was free and is ours',
                'now 17 holds it'],
    'messages': ['the donor answers A QUESTION', 'the donor says A REMARK'],
    'regions': ['blackboard: 65536 bytes, held by 2',
                "the other client reads 'chalk', and may not write"],
    'event_loop': ['answer: FIRST', 'answer: SECOND'],
    'exchange': ['10000 messages, their sum is 49995000'],
    'sealed': ['success: dear diary', 'the donor has other bytes', 'block 0 of the sealed region'],
    'volume': ['success: over many weirs', '4 of 4 pieces have all copies'],
    'group': ['3 members, 3000 sums each, 0 wrong'],
    'window_policy': ['the policy heard of 20', 'were in flight of the 64 allowed'],
    'mux': ['100 connections, 2 queue pairs', "the squares' sum is 328350"],
}


class Examples(unittest.TestCase):
    def setUp(self):
        address = os.environ.get('WEIR_TEST_ADDRESS', '127.0.0.1')
        self.donor = subprocess.Popen([DONOR, address + ':0'], stdout=subprocess.PIPE, text=True,
                                      env=ENVIRONMENT)
        self.address = self.donor.stdout.readline().strip()
        self.assertTrue(self.address, 'the donor does not listen')

    def tearDown(self):
        self.donor.terminate()
        self.donor.stdout.close()
        self.assertEqual(self.donor.wait(timeout=10), 0)

    def test_each_says_what_it_shows(self):
        names = set()
        for program in PROGRAMS:
            name = os.path.basename(program).removeprefix('example_')
            names.add(name)
            with self.subTest(name):
                run = subprocess.run([program, self.address], capture_output=True, text=True,
                                     timeout=60, env=ENVIRONMENT)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual(run.stderr, '')
                where = 0
                for line in SAYS[name]:
                    where = run.stdout.find(line, where)
                    self.assertGreaterEqual(where, 0, f'{line!r} not in {run.stdout!r}')
        self.assertEqual(names, set(SAYS))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
