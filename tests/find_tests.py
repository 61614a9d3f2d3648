#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Print the tests below a folder, a line each, for its meson.build.

find_tests.py ROOT FOLDER PREFIX

A test is a file NAME_test.c. Its first comment says how it runs; the parts may be left out:

    /* Test: lib mux late; devices: softnic; timeout: 180 */

Without the comment the test is PREFIX NAME, and runs on no device. With it, the test's name ends
with the file's, so that a reader of a failure finds the file. The suite is PREFIX unless "suites:"
names others. A test whose devices include rxe is also in the suite "vm".

Each line has seven fields, separated by "|": name, source, suites, first device, timeout in
seconds, other sources, and the functions that the test wraps. The other sources are those beside
the headers of tests/ that the test includes: for X.h, X.c and X_*.c. Those of tests/support are a
library, which each test is linked with.
"""
import os
import pathlib
import re
import sys

ROOT, FOLDER, PREFIX = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
COMMENT = re.compile(r"/\* Test: ([^*]+) \*/")
INCLUDE = re.compile(r'#include "([^"]+)"')
WRAP = re.compile(r"__wrap_(\w+)")


def included(source):
    """Headers of tests/ that a file includes."""
    for name in INCLUDE.findall(source.read_text(encoding="utf-8")):
        for header in (ROOT / name, source.parent / name):
            if ROOT / "tests" in header.parents and header.exists():
                yield header


def sources_of(test):
    """The test and its other sources."""
    found, to_read = [test], [test]
    while to_read:
        for header in included(to_read.pop()):
            beside = [header, header.with_suffix(".c"), *header.parent.glob(header.stem + "_*.c")]
            fresh = [path for path in beside if path.exists() and path not in found and
                     not path.stem.endswith("_test")]
            found += fresh
            to_read += fresh
    return [path for path in found if path.suffix == ".c" and path.parent != ROOT / "tests/support"]


def line(test):
    comment = COMMENT.search(test.read_text(encoding="utf-8"))
    said = comment[1] if comment else f"{PREFIX} {test.stem.removesuffix('_test')}"
    name, *parts = said.split("; ")
    words = test.stem.removesuffix("_test").split("_")
    if re.split("[ _-]", name)[-len(words):] != words:
        sys.exit(f"{test}: the test '{name}' must end with '{' '.join(words)}', as the file does")
    parts = dict(part.split(": ") for part in parts)
    devices = parts.get("devices", "none").split()
    suites = parts.get("suites", PREFIX).split() + ["vm"] * ("rxe" in devices)
    sources = sources_of(test)
    wraps = {wrap for path in sources for wrap in WRAP.findall(path.read_text(encoding="utf-8"))}
    source, *others = (os.path.relpath(path, FOLDER) for path in sources)
    return "|".join([name, source, ",".join(suites), devices[0], parts.get("timeout", "30"),
                     ",".join(others), ",".join(sorted(wraps))])


print("\n".join(map(line, sorted(FOLDER.rglob("*_test.c")))))
