#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Each "cannot" of the security page names a test that exists.

adversaries_test.py ROOT MESON BUILD
"""
import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT, MESON, BUILD = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
PAGE = ROOT / "docs/explanation/security.md"
LINK = re.compile(r"\[([^\]]+)\]\((\.\./\.\./tests/[^)]+)\)")
ADVERSARIES = 7


def sections():
    """The adversaries: heading and text of each."""
    text = PAGE.read_text(encoding="utf-8").split("\n## Adversaries\n", 1)[1].split("\n## ", 1)[0]
    for part in text.split("\n### ")[1:]:
        heading, body = part.split("\n", 1)
        yield heading, body


def claims(body):
    """Rows of the tables of what is impossible, and sentences that say so beside them."""
    is_table = False
    prose = []
    for line in body.split("\n"):
        if line.startswith("| Cannot"):
            is_table = True
        elif is_table and line.startswith("|") and not line.startswith("| ---"):
            yield line
        elif not line.startswith("|"):
            is_table = False
            prose.append(line)
    yield from re.findall(r"[^.]*\bcannot\b[^:.]*[:.][^.]*\([^)]*\)|[^.]*\bcannot\b[^.]*\.",
                          " ".join(prose), re.IGNORECASE)


class Adversaries(unittest.TestCase):
    def setUp(self):
        done = subprocess.run([MESON, "introspect", "--tests", BUILD], capture_output=True,
                              text=True, check=True)
        self.tests = {test["name"] for test in json.loads(done.stdout)}

    def test_each_adversary_is_limited_by_something(self):
        found = list(sections())
        self.assertGreaterEqual(len(found), ADVERSARIES)
        for heading, body in found:
            with self.subTest(heading):
                self.assertTrue(list(claims(body)))

    def test_each_claim_names_tests_that_exist(self):
        for heading, body in sections():
            for claim in claims(body):
                with self.subTest(heading, claim=claim):
                    links = LINK.findall(claim)
                    self.assertTrue(links, "names no test")
                    for name, path in links:
                        target = (PAGE.parent / path).resolve()
                        self.assertTrue(target.exists(), f"{path} is not there")
                        self.assertTrue(target.is_dir() or name in self.tests,
                                        f"no test is called '{name}'")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
