#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Each "no" of the security page names an existing test, tried on the device.

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
ADVERSARIES = ["A stranger on the network", "A client with another key",
               "A client with the same key", "A tenant of weir share", "A local user",
               "A neighbouring container", "A donor", "A donor's root", "An attacker on the wire"]
HEAD = ["Act", "softnic", "Soft-RoCE", "NIC", "Tried by"]
NO, SAME, YES, NONE = "no", "(no)", "yes", "–"
VIRTUAL_MACHINE = "../../tests/vm"


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def sections():
    """The adversaries: heading, and rows of the table."""
    text = PAGE.read_text(encoding="utf-8").split("\n## Adversaries\n", 1)[1].split("\n## ", 1)[0]
    for part in text.split("\n### ")[1:]:
        heading, body = part.split("\n", 1)
        yield heading, [cells(line) for line in body.split("\n") if line.startswith("|")]


def acts():
    """Each act of each adversary: words, answer for each device, and named tests."""
    for heading, table in sections():
        for act, *devices, by in table[2:]:
            yield (f"{heading}: {act}", dict(zip(HEAD[1:4], devices, strict=True)),
                   LINK.findall(by))


class Adversaries(unittest.TestCase):
    def setUp(self):
        done = subprocess.run([MESON, "introspect", "--tests", BUILD], capture_output=True,
                              text=True, check=True)
        self.suites = {test["name"]: [suite.split(":")[-1] for suite in test["suite"]]
                       for test in json.loads(done.stdout)}

    def test_each_adversary_has_a_table(self):
        self.assertEqual([heading for heading, _ in sections()], ADVERSARIES)
        for heading, table in sections():
            with self.subTest(heading):
                self.assertEqual(table[0], HEAD)
                self.assertTrue(any(NO in row[1:4] for row in table), "is limited by nothing")

    def test_each_device_has_an_answer(self):
        for act, devices, _tests in acts():
            with self.subTest(act):
                self.assertLessEqual(set(devices.values()), {NO, SAME, YES, NONE})
                self.assertNotEqual(devices["NIC"], NO, "no test has run on a NIC")

    def test_each_no_names_tests_that_exist(self):
        for act, devices, tests in acts():
            if not {NO, SAME} & set(devices.values()):
                continue
            with self.subTest(act):
                self.assertTrue(tests, "names no test")
                self.assertIn(NO, devices.values(), "is tried on no device")
                for name, path in tests:
                    target = (PAGE.parent / path).resolve()
                    self.assertTrue(target.exists(), f"{path} is not there")
                    self.assertTrue(target.is_dir() or name in self.suites,
                                    f"no test is called '{name}'")

    def test_each_no_is_tried_on_its_device(self):
        for act, devices, tests in acts():
            with self.subTest(act):
                if devices["softnic"] == NO:
                    self.assertTrue(any(path != VIRTUAL_MACHINE for _name, path in tests))
                if devices["Soft-RoCE"] == NO:
                    self.assertTrue(any(path == VIRTUAL_MACHINE or
                                        "vm" in self.suites.get(name, ()) for name, path in tests),
                                    "no test runs on Soft-RoCE")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
