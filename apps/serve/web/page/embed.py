#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Makes a C header of files: embed.py HEADER FILE...; weir.css becomes page_weir_css[]."""
import pathlib
import re
import sys

out, *files = map(pathlib.Path, sys.argv[1:])
text = ["/* Made by apps/serve/web/page/embed.py. */"]
for file in files:
    name = re.sub(r"\W", "_", file.name)
    rows = [" ".join(f"{byte}," for byte in file.read_bytes()[at:at + 24])
            for at in range(0, file.stat().st_size, 24)]
    text += [f"static const unsigned char page_{name}[] = {{", *rows, "};"]
out.write_text("\n".join(text) + "\n", encoding="utf-8")
