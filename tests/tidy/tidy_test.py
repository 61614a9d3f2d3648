#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""tidy.py must find what is planted, and nothing in a clean tree."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import tidy as tidy_module

TIDY = pathlib.Path(__file__).with_name("tidy.py")
SPDX = "/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */\n"
KERNEL_SPDX = "// SPDX-License-Identifier: GPL-2.0-only\n"
# In two pieces, or tidy would find it here.
SOMEBODYS = "/ho" + "me/somebody/x"

LISTED = ("core", "wire", "lib", "softnic", "kernel", "apps", "preload", "include")

PLANTED = [
    ("the core includes the library", "core/a.c", SPDX + '#include "lib/b.h"\n', "core/ must not"),
    (
        "the core includes a public header",
        "core/a.c",
        SPDX + "#include <weir/weir.h>\n",
        "core/ must not",
    ),
    (
        "the core includes libc on its own",
        "core/a.c",
        SPDX + "#include <stdlib.h>\n",
        "only core/base/platform.h knows the host",
    ),
    (
        "the platform includes more than the kernel has",
        "core/base/platform.h",
        SPDX + "#include <stdio.h>\n",
        "not among what the kernel has",
    ),
    ("the core asks where it is", "core/a.c", SPDX + "#ifdef __KERNEL__\n#endif\n", "__KERNEL__"),
    ("a message asks where it is", "wire/a.c", SPDX + "#ifdef __KERNEL__\n#endif\n", "__KERNEL__"),
    (
        "a module asks for the kernel's version",
        "kernel/a.c",
        KERNEL_SPDX + "#if LINUX_VERSION_CODE\n#endif\n",
        "compat.h",
    ),
    ("a module with the licence of the rest", "kernel/a.c", SPDX + "int a;\n", "licence"),
    (
        "the module includes the library",
        "kernel/a.c",
        KERNEL_SPDX + '#include "lib/b.h"\n',
        "kernel/ must not",
    ),
    (
        "the module includes the library's API",
        "kernel/a.c",
        KERNEL_SPDX + "#include <weir/weir.h>\n",
        "kernel/ must not",
    ),
    (
        "the library includes the device",
        "lib/a.c",
        SPDX + '#include "softnic/b.h"\n',
        "lib/ must not",
    ),
    (
        "a host opens a QP",
        "lib/mux/a.c",
        SPDX + "static struct ibv_qp_attr a = { .qp_access_flags = 1 };\n",
        "only lib/conn",
    ),
    (
        "a host connects a QP",
        "lib/mux/a.c",
        SPDX + "static int f(void) { return rdma_connect(0, 0); }\n",
        "only lib/conn",
    ),
    (
        "a preloaded library opens a QP",
        "preload/unload/a.c",
        SPDX + "static struct ibv_qp_attr a = { .qp_access_flags = 1 };\n",
        "only preload/unload/discovery/own_qp.c",
    ),
    (
        "a public function without its threads",
        "include/weir/a.h",
        SPDX + "#ifndef WEIR_A_H\n#define WEIR_A_H\n"
        "/* Return: 0. */\nint weir_a_count(void);\n#endif\n",
        "weir_a_count: say by 'Context:'",
    ),
    (
        "a public function without its result",
        "include/weir/a.h",
        SPDX + "#ifndef WEIR_A_H\n#define WEIR_A_H\n"
        "/* Context: any. Return: 0. */\nint weir_a_count(void);\n\n"
        "/* Context: any. */\nint weir_a_take(void);\nvoid weir_a_give(void);\n#endif\n",
        "weir_a_take: say by 'Return:'",
    ),
    (
        "the library includes the kernel's host",
        "lib/a.c",
        SPDX + '#include "kernel/b.h"\n',
        "lib/ must not",
    ),
    (
        "the device includes the core",
        "softnic/a.c",
        SPDX + '#include "core/b.h"\n',
        "softnic/ must not",
    ),
    (
        "a way around through the parent",
        "softnic/a.c",
        SPDX + '#include "../core/b.h"\n',
        "softnic/ must not",
    ),
    ("the library includes a tool", "lib/a.c", SPDX + '#include "apps/b.h"\n', "lib/ must not"),
    ("a C file without licence", "lib/a.c", "int a;\n", "licence"),
    ("a script without suffix and licence", "apps/a", "#!/bin/sh\n", "licence"),
    ("a place of one machine", "lib/a.c", SPDX + f'"{SOMEBODYS}"\n', "one machine"),
    ("a place of one machine in a document", "README.md", f"see {SOMEBODYS}\n", "one machine"),
    (
        "what make would not make where a folder is called so",
        "Makefile",
        ".PHONY: all\nall:\nlab:\n\ttrue\n",
        "'make lab' makes no file",
    ),
    ("a line of 101 columns", "lib/a.c", SPDX + "/* " + "x" * 98 + " */\n", "104 columns"),
    (
        "a static function that says nothing in a backtrace",
        "lib/base/ring.c",
        SPDX + "static int find(int a)\n{\n}\n",
        "find_region()",
    ),
    (
        "a guard of another header",
        "lib/base/ring.h",
        SPDX + "#ifndef WEIR_LIB_BASE_RUNG_H\n#define WEIR_LIB_BASE_RUNG_H\n#endif\n",
        "asks for WEIR_LIB_BASE_RING_H",
    ),
    (
        "a function with another file's noun",
        "lib/base/ring.c",
        SPDX + "int weir_window_take(struct weir_window *w)\n{\n}\n",
        "window_take",
    ),
    (
        "a function of softnic with another room's noun",
        "softnic/cq/poll.c",
        SPDX + "int mr_translate(struct mr *mr)\n{\n}\n",
        "mr_translate",
    ),
]

# A violation that tidy reports elsewhere than in the planted file.
PLANTED_APART = [
    ("a tag of two layouts", "lib/a.c", SPDX + "struct twin {\n};\n",
     "lib/b.h:2: the tag twin names a layout in lib/a.c too"),
    ("a folder that CONTRIBUTING.md does not list", "attic/a.c", SPDX,
     "CONTRIBUTING.md:1: attic/ is missing"),
    ("tests of a folder that is gone", "tests/loft/a_test.c", SPDX,
     "tests/loft:0: no folder of the tree has this path"),
    ("a folder that is gone", "CONTRIBUTING.md",
     "".join(f"| `{folder}/` | |\n" for folder in (*LISTED, "gone")),
     f"CONTRIBUTING.md:{len(LISTED) + 1}: there is no folder gone/"),
]

ALLOWED = [
    ("lib/a.c", SPDX + '#include <stdio.h>\n#include "core/b.h"\n#include <weir/weir.h>\n'),
    ("apps/a.c", SPDX + '#include "softnic/b.h"\n'),
    ("preload/unload/discovery/own_qp.c", SPDX + "int f(void) { return !ibv_create_qp(0, 0); }\n"),
    ("core/base/platform.h", SPDX + "#ifdef __KERNEL__\n#include <linux/bug.h>\n#endif\n"),
    ("kernel/a.c", KERNEL_SPDX + '#include "core/b.h"\n'),
    ("Makefile", "A := 1\n.PHONY: all lab\nall: lab\nlab: build/a\nbuild/a:\n\ttrue\n"),
    ("README.md", "Homes: see example.org/home/somebody\n"),
]


def tidy(*args):
    run = subprocess.run([sys.executable, TIDY, *args], capture_output=True, text=True)
    return run.returncode, run.stdout


class Planted(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for header in ("core/b.h", "wire/b.h", "lib/b.h", "softnic/b.h", "kernel/b.h", "apps/b.h",
                       "preload/b.h", "include/weir/b.h"):
            self.plant(header, KERNEL_SPDX if header.startswith("kernel/") else SPDX)
        self.plant("lib/b.h", SPDX + "struct twin {\n};\n")
        self.plant("CONTRIBUTING.md", "".join(f"| `{folder}/` | |\n" for folder in LISTED))

    def plant(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def compile(self, text):
        source = self.plant("core/a.c", SPDX + text)
        subprocess.run(["cc", "-c", source, "-o", source.with_suffix(".o")], check=True)
        return source.with_suffix(".o")

    def test_each_planted_violation_is_found(self):
        for sentence, name, text, finding in PLANTED:
            with self.subTest(sentence):
                path = self.plant(name, text)
                code, output = tidy(self.root)
                path.unlink()
                self.assertEqual(code, 1, output)
                self.assertRegex(output, f"(?m)^{name}:\\d+: .*{finding}")
                self.assertEqual(output.count("\n"), 1, output)

    def test_each_violation_seen_from_afar_is_found(self):
        for sentence, name, text, finding in PLANTED_APART:
            with self.subTest(sentence):
                path = self.root / name
                before = path.read_text() if path.exists() else None
                self.plant(name, text)
                code, output = tidy(self.root)
                path.write_text(before) if before else path.unlink()
                self.assertEqual(code, 1, output)
                self.assertIn(finding, output)

    def test_a_room_of_27_files_is_found(self):
        for number in range(26):
            self.plant(f"lib/f{number}.c", SPDX)
        self.assertIn("lib:0: 27 sources", tidy(self.root)[1])

    def test_a_long_or_wordy_subject_is_found(self):
        for subject, is_found in (("lib: " + "x" * 61, True), ("lib: what is left goes", True),
                                  ("lib: free what is left", False)):
            with self.subTest(subject):
                self.assertEqual(bool(list(tidy_module.wrong_subjects([f"abc {subject}"]))),
                                 is_found)

    def test_what_is_allowed_is_not_reported(self):
        for name, text in ALLOWED:
            self.plant(name, text)
        self.assertEqual(tidy(self.root)[0], 0, tidy(self.root)[1])

    def test_malloc_in_the_core_is_found(self):
        impure = self.compile("void *malloc(unsigned long);\nvoid *f(void) { return malloc(9); }\n")
        code, output = tidy(self.root, impure)
        self.assertEqual(code, 1)
        self.assertIn("core/ uses malloc", output)

    def test_memcpy_in_the_core_is_allowed(self):
        pure = self.compile("void *memcpy(void *, const void *, unsigned long);\n"
                            "void f(void *a, void *b, long n) { memcpy(a, b, n); }\n")
        code, output = tidy(self.root, pure)
        self.assertEqual(code, 0, output)


if __name__ == "__main__":
    unittest.main()
