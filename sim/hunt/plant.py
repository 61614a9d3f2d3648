#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Plants a bug in core/window.c, for the hunt to find.

  plant.py WINDOW.C PLANTED.C

Who comes later goes past those that stand in line, when what he wants fits.
"""

import pathlib
import sys

LINE = "turn_is_of(w, waiter) && weir_window_fits(w, bytes)"

source, planted = map(pathlib.Path, sys.argv[1:])
text = source.read_text()
if text.count(LINE) != 1:
    sys.exit(f"{source}: '{LINE}' is there {text.count(LINE)} times: bring this script up to date")
planted.write_text(text.replace(LINE, "weir_window_fits(w, bytes)"))
