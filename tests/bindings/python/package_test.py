# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The Python package as pip gets it: a source distribution, and what is installed from it.

Called with the folder of the package; WEIR_LIBRARY names the library. Needs no network.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

SOURCES = pathlib.Path(sys.argv.pop(1)).resolve()
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def output(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def distribute(self):
        """Makes the source distribution in a copy of what it needs of the tree, and unpacks it."""
        tree = self.folder / "tree"
        shutil.copytree(SOURCES, tree / "bindings/python",
                        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
        shutil.copytree(SOURCES.parent.parent / "include", tree / "include")
        shutil.copy(SOURCES.parent.parent / "meson.build", tree)
        output(sys.executable, "setup.py", "-q", "sdist", "-d", str(self.folder),
               cwd=tree / "bindings/python")
        (archive,) = self.folder.glob("weir*.tar.gz")
        with tarfile.open(archive) as file:
            file.extractall(self.folder)
        return self.folder / archive.name[:-len(".tar.gz")]

    def test_a_source_distribution_installs_away_from_the_tree(self):
        unpacked = self.distribute()
        installed = self.folder / "installed"
        shutil.rmtree(self.folder / "tree")
        output(*PIP, "install", "--no-deps", "--no-build-isolation", "--no-index", "--target",
               str(installed), str(unpacked), cwd=self.folder)
        said = output(sys.executable, "-c",
                      "import importlib.metadata, weir; print(weir.__file__, weir.listen.__name__,"
                      "importlib.metadata.metadata('weir-rdma')['Name'])", cwd=self.folder,
                      env={**os.environ, "PYTHONPATH": str(installed)})
        self.assertEqual(said.split(),
                         [str(installed / "weir/__init__.py"), "listen", "weir-rdma"])


if __name__ == "__main__":
    unittest.main()
