#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Plants a bug in a file of core, for the hunt to find.

  plant.py STAGE SOURCE.C PLANTED.C
"""

import pathlib
import sys

PLANTS = {
    # Who comes later goes past those that stand in line, when what he wants fits.
    "window": ("turn_is_of(w, waiter) && weir_window_fits(w, bytes)", "weir_window_fits(w, bytes)"),
    # Levels are no more than classes that share.
    "sched": ("return a->config.level == b->config.level && ", "return "),
    # A look is taken to tell also of what was posted behind it.
    "confirm": ("o->arrived < o->covered", "o->arrived < o->committed"),
}

stage, source, planted = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
line, bug = PLANTS[stage]
text = source.read_text()
if text.count(line) != 1:
    sys.exit(f"{source}: '{line}' is there {text.count(line)} times: bring this script up to date")
planted.write_text(text.replace(line, bug))
