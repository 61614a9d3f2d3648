#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The Debian packages follow the tree: version and build dependencies.

"make check-deb" builds and tries the packages; this test is for every day.
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBIAN = ROOT / "packaging/debian"
# Part of build-essential, by another name, or of no use to a package.
IMPLIED = {"gcc", "g++", "libc6-dev", "ninja-build", "dpkg-dev", "ibverbs-providers"}


def read(path):
    return path.read_text(encoding="utf-8")


class Deb(unittest.TestCase):
    def test_the_version_is_that_of_the_tree(self):
        version = re.search(r"^  version: '(.*)'", read(ROOT / "meson.build"), re.M)[1]
        self.assertTrue(read(DEBIAN / "changelog").startswith(f"weir ({version}) "))
        self.assertIn(f"## {version}", read(ROOT / "CHANGELOG.md"))

    def test_what_a_build_needs_is_named(self):
        needed = set(re.search(r'^build="([^"]*)"', read(ROOT / "scripts/deps"), re.M)[1].split())
        named = set(re.findall(r"[a-z0-9][a-z0-9.+-]+", re.search(
            r"^Build-Depends:(.*?)^\S", read(DEBIAN / "control"), re.M | re.S)[1]))
        self.assertEqual(needed - named - IMPLIED, set(), "packaging/debian/control")


if __name__ == "__main__":
    unittest.main(verbosity=2)
