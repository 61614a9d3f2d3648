#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The probes of libweir for bpftrace: their notes, and the scripts that name them.

usdt_test.py LIBWEIR WEIR
"""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "packaging/bpftrace").glob("*.bt"))
LIBRARY, WEIR = sys.argv[1:3]
del sys.argv[1:3]
NOTE = re.compile(r"Provider: weir\n\s+Name: (\w+)\n.*\n\s+Arguments: ?(.*)")
PROBE = re.compile(r"^usdt:\*:weir:(\w+)\n(?:/.*/\n)?\{\n(.*?)^\}", re.M | re.S)
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \|", re.M)


def probes(binary):
    """The number of arguments of each probe; all places of a probe agree."""
    notes = subprocess.run(["readelf", "--notes", "--wide", binary], capture_output=True,
                           text=True, check=True, timeout=60).stdout
    found = {}
    for name, arguments in NOTE.findall(notes):
        count = len(arguments.split())
        assert found.setdefault(name, count) == count, name
    return found


class Probes(unittest.TestCase):
    def test_the_library_and_the_command_have_the_same(self):
        self.assertEqual(probes(LIBRARY), probes(WEIR))
        self.assertGreaterEqual(set(probes(LIBRARY)),
                                {"post", "window_full", "arm", "sleep", "wake", "retry"})

    def test_scripts_name_probes_that_exist_with_arguments_that_they_have(self):
        known = probes(LIBRARY)
        self.assertEqual(len(SCRIPTS), 3)
        for script in SCRIPTS:
            text = script.read_text(encoding="utf-8")
            bodies = PROBE.findall(text)
            self.assertEqual(len(bodies), text.count("usdt:"), script)
            for name, body in bodies:
                self.assertIn(name, known, script)
                for number in re.findall(r"\barg(\d)\b", body):
                    self.assertLess(int(number), known[name], f"{script}: {name}")

    def test_the_document_lists_each_with_its_arguments(self):
        page = (ROOT / "docs/how-to/watch.md").read_text(encoding="utf-8")
        page = page.split("## Probes")[1].split("\n## ")[0]
        listed = {name: len(arguments.split(", ")) for name, arguments in ROW.findall(page)}
        self.assertEqual(listed, probes(LIBRARY))


if __name__ == "__main__":
    unittest.main(verbosity=2)
