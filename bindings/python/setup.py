# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Settings that pyproject.toml cannot express: the project's version, and headers read at build
time."""
import pathlib
import re
import sys

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import cdef  # noqa: E402

VERSION = re.search(
    r"version: '([^']+)'", (PROJECT / "meson.build").read_text(encoding="utf-8")
).group(1)


class BuildWithHeaders(build_py):
    def run(self):
        super().run()
        target = pathlib.Path(self.build_lib) / "weir" / "_cdef.py"
        target.write_text(cdef.module(PROJECT / "include"), encoding="utf-8")


setup(version=VERSION, cmdclass={"build_py": BuildWithHeaders})
