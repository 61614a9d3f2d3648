#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run hunts of the engine whose first draws are chosen by Hypothesis, which shrinks a failing run.

engine_property.py LIBRARY

LIBRARY is the core with the hunts of sim/hunt, which check each step and the memory in the end.

WEIR_EXAMPLES sets the number of runs; by default a fixed set of runs is made.
"""

import ctypes
import os
import sys

try:
    from hypothesis import HealthCheck, given, settings, strategies as st
except ImportError as missing:
    print(f"skipped: {missing}; install python3-hypothesis")
    sys.exit(77)


def main(library):
    run = ctypes.CDLL(os.path.abspath(library)).hunt_run_tape
    run.argtypes = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64
    run.restype = ctypes.c_char_p
    examples = os.environ.get("WEIR_EXAMPLES")

    @settings(max_examples=int(examples or 400), deadline=None, database=None,
              derandomize=not examples, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.binary(max_size=4096), st.integers(0, 2**64 - 1))
    def keeps_its_promises(tape, seed):
        broken = run(tape, len(tape), seed)
        assert not broken, broken.decode()

    keeps_its_promises()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
