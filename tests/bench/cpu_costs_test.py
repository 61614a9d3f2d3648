# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""bench/cpu_costs: instructions of a callgrind profile, and costs from them.

Called with the path of that script.
"""
import runpy
import sys
import unittest

PROGRAM = runpy.run_path(sys.argv.pop(1), run_name="cpu_costs")

PROFILE = """\
ob=(1) /tree/build/weir
fl=(1) ../core/engine/batch.c
fn=(1) batch
10 30
+2 5
fi=(2) ../lib/base/clock.h
7 11
fe=(1)
12 4
cfi=(3) ../softnic/qp/post.c
cfn=(2) post
calls=2 40
13 5000
14 1

fl=(3)
fn=(2)
40 5000

fl=(4) ../apps/perf/worker.c
fn=(3) main
1 70
"""


class Instructions(unittest.TestCase):
    def test_only_own_lines_of_the_library_count(self):
        found = PROGRAM["instructions"](PROFILE.splitlines(keepends=True))
        self.assertEqual(found, {"core/engine/batch.c": 40, "lib/base/clock.h": 11})

    def test_a_lane_costs_what_is_left_without_the_requests_of_the_engine(self):
        engine = {"core/engine/batch.c": 100, "core/engine/order.c": 900}
        lane = {"core/engine/batch.c": 25, "core/engine/order.c": 225, "core/lane/claims.c": 300}
        self.assertEqual(PROGRAM["costs"](engine, lane), (1000, 400, 0.75))

    def test_a_run_whose_requests_mostly_went_by_the_engine_is_refused(self):
        engine = {"core/engine/batch.c": 100}
        with self.assertRaisesRegex(PROGRAM["Failed"], "only 40% of the requests"):
            PROGRAM["costs"](engine, {"core/engine/batch.c": 60})


if __name__ == "__main__":
    unittest.main()
