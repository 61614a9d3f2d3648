#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Plant mistakes in the names that a mount knows: the test of names must find each.

planted_test.py ROOT CC...
"""
import pathlib
import sys
import tempfile
import unittest

ROOT, CC = pathlib.Path(sys.argv[1]), sys.argv[2:]
sys.path.insert(0, str(ROOT))
from tests.support import planted  # noqa: E402

NAMES = "apps/mount/inode/names.c"

# (what is wrong, the file, the line, the line with the mistake)
BUGS = [
    ("a listing replaces what is known", NAMES,
     "!dir->names.complete && !find_name(names, dir, text)", "!dir->names.complete"),
    ("a listing of before adds to all names", NAMES,
     "!dir->names.complete && !find_name(names, dir, text)", "!find_name(names, dir, text)"),
    ("an absence is forgotten during a listing", NAMES,
     "\treturn set_name(names, dir, text, 0);", "\treturn true;"),
    ("absences are forgotten in silence", NAMES,
     "\t\tforget_absent(names, dir);\n\t\tdir->names.losses++;", "\t\tforget_absent(names, dir);"),
    ("names are forgotten in silence", NAMES,
     "dir->names.misses = 0;\n\tdir->names.losses++;", "dir->names.misses = 0;"),
    ("a lookup of before says what is now", NAMES,
     "ticket.valid && ticket.changes == dir->names.changes &&", ""),
    ("a removal in an earlier phase is known", NAMES,
     "\tif (sharing_knows(&dir->mount->share, phase)) {\n\t\tbegin_phase(names, dir, phase);\n"
     "\t\tset_absent(names, dir, text);",
     "\tif (1) {\n\t\tset_absent(names, dir, text);"),
    ("all names are known with absences among them", NAMES,
     "\t\tforget_absent(names, dir);\n\t\tdir->names.complete = true;",
     "\t\tdir->names.complete = true;"),
    ("an absent name is present", NAMES, "\tif (!name->ino)\n\t\treturn NAMES_ABSENT;", ""),
    ("names are known during a change", NAMES, "if (dir->names.changing ||", "if ("),
]


class Planted(unittest.TestCase):
    def test_each_mistake_is_found(self):
        with tempfile.TemporaryDirectory() as root:
            copy = planted.Copy(ROOT, CC, root, ["apps", "fsd", "lib", "wire", "core", "include",
                                                 "tests/apps/mount"], [f"-I{root}/include"])
            sources = [copy.root / NAMES, copy.root / "fsd/hashtable.c",
                       copy.root / "tests/apps/mount/names_test.c"]
            copy.build(sources)

            def fails():
                program = copy.link(sources, "program", "-lcmocka", "-lsodium")
                return planted.run_within(120, str(program)).returncode != 0
            self.assertFalse(fails())
            planted.check_patterns(copy.root, BUGS)
            for what, *mistake in BUGS:
                with self.subTest(what), copy.bug(*mistake):
                    self.assertTrue(fails())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
