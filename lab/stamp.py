#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Digest of the sources that a result depends on.

  stamp.py TEMPLATE OUTPUT DEPFILE VERSION     fills in version.py.in, at build time
"""

import hashlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = ("core/*/*.[ch]", "sim/*/*.[ch]", "sim/*/*/*.[ch]", "sim/profiles/connectx*", "lab/*.py",
           "lab/*.csv", "lab/figures/*.py", "bench/traces/*.xz")


def files():
    return [path for pattern in SOURCES for path in sorted(ROOT.glob(pattern))]


def digest():
    of_all = hashlib.sha256()
    for path in files():
        of_all.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return of_all.hexdigest()[:16]


def main(template, output, depfile, version):
    text = pathlib.Path(template).read_text(encoding="ascii")
    text = text.replace("@version@", version).replace("@sources@", digest())
    pathlib.Path(output).write_text(text, encoding="ascii")
    # Folders, too: adding or removing a file changes its folder.
    folders = sorted({path.parent for path in files()})
    needs = [str(path).replace(" ", "\\ ") for path in [*files(), *folders]]
    pathlib.Path(depfile).write_text(f"{output}: {' '.join(needs)}\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
