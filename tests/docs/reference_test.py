#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The reference pages are complete.

  reference_test.py WEIR

Each option of a man page is in that command's --help, and the other way round. Each environment
variable that the programs read is on the page about configuration.
"""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEIR = None
# Commands within a command, whose options stand on one page.
PARTS = {"key": ["new", "add", "rotate", "revoke", "list"],
         "fs": ["export", "import", "check", "warm", "du", "df", "top"],
         "blk": ["attach", "detach", "resize", "list", "stat", "agent"],
         "pool": ["create", "status", "donors", "drain", "rebalance", "volume create",
                  "volume list", "volume import", "volume export", "volume rm"],
         "lab": ["list", "run", "report", "what-if", "calibrate", "hunt"],
         "lab-net": ["up", "run", "link", "split", "status", "down"]}
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")
# Variables of the tests and benches, and of parts that are built for tests only.
PRIVATE = re.compile(r"WEIR_(?:TEST|STARVE)_")


def options_of_page(path):
    """Options that the page explains: those of a tag line."""
    options, is_tag = set(), False
    for line in path.read_text(encoding="utf-8").splitlines():
        line = line.replace("\\-", "-")
        if is_tag or line.startswith((".TP", ".TQ")):
            options.update(OPTION.findall(line))
        is_tag = line.startswith((".TP", ".TQ"))
    return options


def options_of_help(command):
    text = ""
    for part in [[], *(part.split() for part in PARTS.get("-".join(command), []))]:
        text += subprocess.run([WEIR, *command, *part, "--help"], capture_output=True, text=True,
                               timeout=60, check=True).stdout
    return {option for line in text.splitlines() if re.match(r"\s+-", line)
            for option in OPTION.findall(re.split(r"\s{2,}", line.strip())[0])}


class Reference(unittest.TestCase):
    def test_options_of_pages_and_help_are_the_same(self):
        for path in sorted((ROOT / "docs/man").glob("weir-*.1")):
            name = path.stem.removeprefix("weir-")
            has_part = name in ("perf-exchange", "perf-volume", "lab-net")
            command = name.split("-") if has_part else [name]
            with self.subTest(command=name):
                page, told = options_of_page(path), options_of_help(command)
                self.assertEqual(page - told - {"help"}, set(), "the page alone has these")
                self.assertEqual(told - page - {"help"}, set(), "--help alone has these")

    def test_the_page_on_configuration_has_each_variable(self):
        page = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
        read = set()
        for folder in ("apps", "lib", "softnic", "unload", "verbs", "preload", "sim", "bindings"):
            for path in (ROOT / folder).rglob("*.[ch]"):
                text = path.read_text(encoding="utf-8")
                read.update(re.findall(r'getenv\("(WEIR_\w+)"', text))
        missing = {name for name in read if not PRIVATE.match(name) and f"`{name}`" not in page}
        self.assertTrue(read)
        self.assertEqual(missing, set())


if __name__ == "__main__":
    WEIR = sys.argv.pop()
    unittest.main()
