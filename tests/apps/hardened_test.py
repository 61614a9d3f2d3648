#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Check that installed programs and libraries have the hardening of compiler and linker.

hardened_test.py fortified|plain FILE...: programs and libraries, beside their objects: FILE.p
"""
import pathlib
import platform
import re
import subprocess
import sys
import unittest

IS_FORTIFIED = sys.argv.pop(1) == "fortified"
FILES = [pathlib.Path(sys.argv.pop(1)) for _ in sys.argv[1:]]
IS_X86 = platform.machine() == "x86_64"


def readelf(*options):
    done = subprocess.run(["readelf", "-W", *options], capture_output=True, text=True, check=True)
    return done.stdout


class Hardened(unittest.TestCase):
    def each(self, options, check):
        for file in FILES:
            with self.subTest(file=file.name):
                check(readelf(*options, file))

    def test_addresses_are_bound_at_the_start_and_read_only_then(self):
        self.each(["-d"], lambda text: self.assertRegex(text, r"FLAGS_1\).*\bNOW\b"))
        self.each(["-l"], lambda text: self.assertIn("GNU_RELRO", text))

    def test_a_library_stays_while_threads_of_fd_may_run(self):
        """Nobody joins these threads, so dlclose() must not unmap their code."""
        libraries = [file for file in FILES
                     if re.match(r"libweir(-softnic|-unload)?\.so", file.name)]
        self.assertEqual(len(libraries), 3)
        for file in libraries:
            self.assertRegex(readelf("-d", file), r"FLAGS_1\).*\bNODELETE\b", file)

    def test_any_address_will_do(self):
        self.each(["-h"], lambda text: self.assertRegex(text, r"Type: +DYN"))

    def test_neither_stack_nor_data_can_be_executed(self):
        self.each(["-l"], lambda text: self.assertRegex(text, r"GNU_STACK .* RW "))
        self.each(["-l"], lambda text: self.assertNotIn("RWE", text))

    def test_overwritten_stacks_are_noticed(self):
        self.each(["--dyn-syms"], lambda text: self.assertIn("__stack_chk_fail", text))

    @unittest.skipUnless(IS_FORTIFIED, "without optimization, or with a sanitizer")
    def test_functions_of_the_c_library_know_the_size_of_buffers(self):
        self.each(["--dyn-syms"], lambda text: self.assertRegex(text, r"__\w+_chk@"))

    @unittest.skipUnless(IS_X86, "x86 only")
    def test_indirect_jumps_go_to_marked_places_only(self):
        """The start-up code of the distribution may lack the mark, and then the whole file does."""
        folders = [file.with_name(file.name + ".p") for file in FILES]
        objects = [file for folder in folders for file in folder.glob("*.o")]
        self.assertTrue(objects)
        for name in objects:
            self.assertRegex(readelf("-n", name), "IBT, SHSTK", name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
