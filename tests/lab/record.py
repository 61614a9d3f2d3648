#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The same seed gives the same bytes on two machines: the one where this was recorded is the first.

  record.py WEIR     records what these sources give, in record.json beside this file

What was recorded holds for the sources that it names. Others may give other bytes, so that nothing is
compared until it is recorded anew.
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
    """The digest in what `weir lab hunt` said."""
    return re.search(r"digest (\w+)", said)[1]


def figures(page):
    """By figure, the digest that its section of the page has."""
    return dict(re.findall(r'<h2 id="([\w-]+)">(?:(?!<h2).)*?Digest (\w{16})<', page, re.DOTALL))


def recorded():
    """What these sources gave where they were recorded, or None: it was of others."""
    record = json.loads(FILE.read_text(encoding="ascii"))
    return record if record["sources"] == stamp.digest() else None


def write(weir):
    def said(*arguments):
        return subprocess.run([weir, "lab", *arguments], capture_output=True, text=True, check=True).stdout
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
