#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Check that a seed gives the same bytes on two machines; the first is where the record was made.

record.py WEIR     records the digests of these sources in record.json beside this file

A record is of the sources named in it. Other sources may give other bytes, so a change of core/ or
sim/ needs a new record: in a few minutes, and in the same commit.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "lab"))
import stamp

FILE = HERE / "record.json"
HUNTS = "1-1500"
REPORT = ("report", "--seeds", "1", "--no-calibration", "-q", "-o")


def hunts(said):
    """Return the digest in the output of `weir lab hunt`."""
    return re.search(r"digest (\w+)", said)[1]


def figures(page):
    """Return, for each figure, the digest in its section of the page."""
    return dict(re.findall(r'<h2 id="([\w-]+)">(?:(?!<h2).)*?Digest (\w{16})<', page, re.DOTALL))


def recorded():
    """Return the record; raise AssertionError if it is of other sources."""
    record = json.loads(FILE.read_text(encoding="ascii"))
    if record["sources"] != stamp.digest():
        raise AssertionError(f"{FILE} is of older sources: make a new one by tests/lab/record.py")
    return record


def write(weir):
    def said(*arguments):
        return subprocess.run([weir, "lab", *arguments], capture_output=True, text=True,
                              check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "page.html")
        said(*REPORT, str(page))
        record = {"sources": stamp.digest(), "hunts": hunts(said("hunt", "--seeds", HUNTS)),
                  "figures": figures(page.read_text(encoding="utf-8"))}
    FILE.write_text(json.dumps(record, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(sys.argv[1])
