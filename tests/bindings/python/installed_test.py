# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""pkg-config and Python look where the library and the module are installed.

Called with the build directory and the Python that the module is for. A prefix of which neither
knows is the user's own to name to them.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, PYTHON = sys.argv[1:3]
PREFIXES = ("/usr", "/usr/local")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def prefix():
    options = json.loads(output("meson", "introspect", "--buildoptions", BUILD))
    return next(option["value"] for option in options if option["name"] == "prefix")


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if prefix() not in PREFIXES:
            raise unittest.SkipTest(f"installed below {prefix()}, where nothing looks by itself")
        cls.root = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.root)
        output("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", cls.root)

    def directory_of(self, name):
        """Where the one file of this name lies, without the temporary root."""
        found = glob.glob(f"{self.root}/**/{name}", recursive=True)
        self.assertEqual(len(found), 1, f"{name}: {found}")
        return os.path.dirname(found[0])[len(self.root):]

    def test_pkg_config_finds_the_library(self):
        searched = output("pkg-config", "--variable", "pc_path", "pkg-config").strip().split(":")
        self.assertIn(self.directory_of("libweir.pc"), searched)

    def test_python_finds_the_module(self):
        searched = json.loads(output(PYTHON, "-c", "import json, site; print(json.dumps("
                                                   "site.getsitepackages()))"))
        self.assertIn(os.path.dirname(self.directory_of("weir/__init__.py")), searched)

    def test_the_module_has_all_its_parts(self):
        parts = os.listdir(self.root + self.directory_of("weir/__init__.py"))
        self.assertIn("_cdef.py", parts)
        self.assertIn("py.typed", parts)


    def test_nothing_is_left_after_it_is_uninstalled(self):
        root = self.enterContext(tempfile.TemporaryDirectory())
        output("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root)
        self.assertTrue(glob.glob(f"{root}/**/weir.1", recursive=True))
        output("ninja", "-C", BUILD, "uninstall")
        left = [name for _, _, files in os.walk(root) for name in files]
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
