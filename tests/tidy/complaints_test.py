# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Which hangs of a guest's CPU are weir's, by the kernel's log: tests/vm/complaints.py."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "vm"))
import complaints  # pylint: disable=wrong-import-position

LOCKUP = """
[  354.1] watchdog: BUG: soft lockup - CPU#0 stuck for 120s! [weir-donor:1179]
[  354.2] Kernel panic - not syncing: softlockup: hung tasks
[  354.2] Modules linked in: weir_blk(OE) weir(OE) rdma_rxe
[  354.2]  <IRQ>
[  354.2]  watchdog_timer_fn+0x1/0x2
[  354.2]  </IRQ>
[  354.2]  <TASK>
[  354.2]  rxe_requester+0x1/0x2 [rdma_rxe]
"""
OURS = "[  354.2]  volume_read+0x1/0x2 [weir_blk]\n"
STALE = "[  354.2]  ? volume_read+0x1/0x2 [weir_blk]\n"


class Hangs(unittest.TestCase):
    def test_a_hang_below_a_function_of_weir_is_weirs(self):
        self.assertFalse(complaints.is_hang_of_others(LOCKUP + OURS))

    def test_a_hang_without_one_is_anothers(self):
        self.assertTrue(complaints.is_hang_of_others(LOCKUP))
        self.assertTrue(complaints.is_hang_of_others(LOCKUP + STALE))

    def test_a_log_without_a_hang_shows_none(self):
        self.assertFalse(complaints.is_hang_of_others("[  1.0] Kernel panic - not syncing: Oops\n"))
        self.assertFalse(complaints.is_hang_of_others(""))


if __name__ == "__main__":
    unittest.main()
