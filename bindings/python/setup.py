# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Settings that pyproject.toml cannot express: the project's version, and headers read at build
time. A source distribution lacks meson.build and the headers, and holds files made from these."""
import pathlib
import re
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import cdef  # noqa: E402

IS_DISTRIBUTED = (HERE / "PKG-INFO").exists()


def version():
    if IS_DISTRIBUTED:
        path, form = HERE / "PKG-INFO", r"(?m)^Version: (.+)$"
    else:
        path, form = PROJECT / "meson.build", r"version: '([^']+)'"
    return re.search(form, path.read_text(encoding="utf-8")).group(1)


def write_declarations(folder):
    text = cdef.module(PROJECT / "include")
    (pathlib.Path(folder) / "weir" / "_cdef.py").write_text(text, encoding="utf-8")


class BuildWithHeaders(build_py):
    def run(self):
        super().run()
        if not IS_DISTRIBUTED:
            write_declarations(self.build_lib)


class DistributeWithHeaders(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        write_declarations(base_dir)


setup(version=version(),
      cmdclass={"build_py": BuildWithHeaders, "sdist": DistributeWithHeaders})
