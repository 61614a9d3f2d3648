# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Slots in GPU memory from Python, with a stub driver: accepted and refused calls."""

import threading
import unittest

import weir
from members import PATIENCE_S, together


class Groups(unittest.TestCase):
    def test_host_memory_is_sent_through_the_gpu(self):
        def work(group):
            data, into = bytearray(b"sent" if group.member == 0 else b"    "), bytearray(2)
            group.broadcast(data, 0, PATIENCE_S)
            group.all_gather(b"%d" % group.member, into, PATIENCE_S)
            return bytes(data), bytes(into), group.info(1 - group.member).memory
        self.assertEqual(together(work, 2, memory="cuda"), [(b"sent", b"01", "cuda")] * 2)

    def test_a_sum_in_the_gpu_is_refused_and_the_group_goes_on(self):
        def work(group):
            into = bytearray(1)
            with self.assertRaisesRegex(ValueError, "GPU"):
                group.reduce_scatter(b"ab", into, lambda into, other: None, PATIENCE_S)
            group.barrier(PATIENCE_S)
            return bytes(into)
        self.assertEqual(together(work, 2, memory="cuda"), [b"\0"] * 2)


class Exchanges(unittest.TestCase):
    def test_get_names_the_function_to_use_instead(self):
        with weir.listen("127.0.0.1:0", memory="cuda") as listener:
            accepted = []
            thread = threading.Thread(target=lambda: accepted.append(listener.accept(PATIENCE_S)))
            thread.start()
            with weir.connect(listener.address, memory="cuda") as ours:
                thread.join()
                with accepted[0] as theirs:
                    ours.put(b"there")
                    ours.flush(PATIENCE_S)
                    with self.assertRaisesRegex(ValueError, "get_into"):
                        theirs.get(PATIENCE_S)
                    buffer = bytearray(5)
                    self.assertEqual(theirs.get_into(buffer, PATIENCE_S), 5)
                    self.assertEqual(buffer, b"there")


if __name__ == "__main__":
    unittest.main()
