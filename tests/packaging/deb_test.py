#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The Debian packages and RPMs follow the tree: version and build dependencies.

"make check-deb" and "make rpm" build the packages; this test is for every day.
"""
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBIAN = ROOT / "packaging/debian"
# Part of build-essential, by another name, or of no use to a package.
IMPLIED = {"gcc", "g++", "libc6-dev", "ninja-build", "dpkg-dev", "ibverbs-providers"}


def read(path):
    return path.read_text(encoding="utf-8")


class Deb(unittest.TestCase):
    def test_the_version_is_that_of_the_tree(self):
        version = re.search(r"^  version: '(.*)'", read(ROOT / "meson.build"), re.M)[1]
        self.assertTrue(read(DEBIAN / "changelog").startswith(f"weir ({version}) "))
        self.assertIn(f"## {version}", read(ROOT / "CHANGELOG.md"))

    def test_what_a_build_needs_is_named(self):
        needed = set(re.search(r'^build="([^"]*)"', read(ROOT / "scripts/deps"), re.M)[1].split())
        named = set(re.findall(r"[a-z0-9][a-z0-9.+-]+", re.search(
            r"^Build-Depends:(.*?)^\S", read(DEBIAN / "control"), re.M | re.S)[1]))
        self.assertEqual(needed - named - IMPLIED, set(), "packaging/debian/control")


    def test_an_upgrade_leaves_services_alone_and_a_removal_stops_them(self):
        line = re.search(r"^\tdh_installsystemd (.*)", read(DEBIAN / "rules"), re.M)[1].split()
        self.assertEqual(line, ["--no-enable", "--no-stop-on-upgrade",
                                "--no-restart-after-upgrade"])
        prerm = read(DEBIAN / "weir.prerm")
        self.assertIn('[ "$1" = remove ]', prerm)
        for unit in [*(ROOT / "packaging/systemd").glob("*@.service.in"), "weir-serve@.service.in"]:
            name = str(unit).rsplit("/", 1)[-1].removesuffix(".service.in")
            self.assertIn(f"'{name}*.service'", prerm)
            self.assertIn(f"'{name}*.service'", read(Rpm.SPEC))
        self.assertNotIn("with_restart", read(Rpm.SPEC))


class Upgrade(unittest.TestCase):
    def test_the_base_of_check_upgrade_speaks_the_oldest_version_understood(self):
        header = "wire/handshake.h"
        base = re.search(r"^BASE \?= (\w+)$", read(ROOT / "Makefile"), re.M)[1]
        old = subprocess.run(["git", "-C", str(ROOT), "show", f"{base}:{header}"], text=True,
                             capture_output=True, check=False)
        if old.returncode:
            return # a tree without its history, such as a package's source
        spoken = re.search(r"define WIRE_VERSION (\d+)", old.stdout)[1]
        understood = re.search(r"define WIRE_VERSION_MIN (\d+)", read(ROOT / header))[1]
        self.assertEqual(spoken, understood, "Makefile: BASE")


class Rpm(unittest.TestCase):
    SPEC = ROOT / "packaging/rpm/weir.spec"

    def test_the_version_is_that_of_the_tree(self):
        version = re.search(r"^  version: '(.*)'", read(ROOT / "meson.build"), re.M)[1]
        self.assertEqual(re.search(r"^Version: *(.*)$", read(self.SPEC), re.M)[1], version)

    def test_what_a_build_needs_is_named(self):
        needed = set(re.findall(r"= dependency\('([^']+)'", read(ROOT / "meson.build")))
        named = set(re.findall(r"^BuildRequires: *pkgconfig\((.*)\)", read(self.SPEC), re.M))
        self.assertEqual(needed - {"threads"}, named)

    def test_each_debian_package_has_its_rpm(self):
        debian = set(re.findall(r"^Package: (.*)$", read(DEBIAN / "control"), re.M))
        rpms = {name if flag else f"weir-{name}" for flag, name in
                re.findall(r"^%package (-n )?(.*)$", read(self.SPEC), re.M)} | {"weir"}
        self.assertEqual({"weir-libs" if name == "libweir0" else
                          "weir-devel" if name == "libweir-dev" else name for name in debian}, rpms)

    def test_both_have_the_same_files(self):
        """Files of the Debian packages, but for places that differ between distributions."""
        spec = read(self.SPEC)
        for path in DEBIAN.glob("*.install"):
            for line in read(path).split():
                self.assertIn(line.replace("*", "").rstrip("./").rsplit("/", 1)[-1], spec, path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
