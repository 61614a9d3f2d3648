# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The demo's checks fail when they must: a byte, a mode, a link that differ; bytes that took
another path than RDMA."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import shutil
import sys
import tempfile
import types
import unittest

DEMO = sys.argv.pop(1)


def load(path):
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("demo", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("demo", loader))
    loader.exec_module(module)
    return module


demo = load(DEMO)


class Comparison(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.there = os.path.join(self.root, "there")
        here = os.path.join(self.root, "here")
        os.mkdir(here)
        for number in range(3):
            with open(os.path.join(here, f"file{number}"), "wb") as file:
                file.write(os.urandom(5000))
        os.symlink("file0", os.path.join(here, "link"))
        shutil.copytree(here, self.there, symlinks=True)
        # The demo's names are relative to /.
        self.tree = types.SimpleNamespace(files=["file0", "file1", "file2"], links=[], bytes=15000)
        self.here = here

    def compare(self):
        with contextlib.redirect_stdout(io.StringIO()):
            before, _ = demo.hash_tree("before", self.here, self.tree)
            after, _ = demo.hash_tree("after", self.there, self.tree)
            demo.compare(self.tree, before, after, self.there)

    def touch(self, name, change):
        path = os.path.join(self.there, name)
        status = os.stat(path)
        change(path)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def flip(self, path):
        with open(path, "r+b") as file:
            file.seek(4321)
            byte = file.read(1)[0]
            file.seek(4321)
            file.write(bytes((byte ^ 1,)))

    def test_what_is_the_same_passes(self):
        self.compare()

    def test_one_bit_fails(self):
        self.touch("file1", self.flip)
        self.assertRaises(demo.Failed, self.compare)

    def test_another_mode_fails(self):
        self.touch("file2", lambda path: os.chmod(path, 0o700))
        self.assertRaises(demo.Failed, self.compare)

    def test_a_missing_file_fails(self):
        os.unlink(os.path.join(self.there, "file0"))
        self.assertRaises(OSError, self.compare)

    def test_another_link_fails(self):
        self.tree.links = [os.path.join(self.here, "link")[1:]]
        other = os.path.join(self.there, self.tree.links[0])
        os.makedirs(os.path.dirname(other))
        os.symlink("file0", other)
        self.compare()
        os.unlink(other)
        os.symlink("file1", other)
        self.assertRaises(demo.Failed, self.compare)


class Path(unittest.TestCase):
    """Of 1000 bytes written and read back."""

    def check(self, client, donor, device="softnic", on_client=()):
        tour = demo.Demo(types.SimpleNamespace(device=device, on_client=on_client))
        tour.moved = [("in", 1000, client, donor), ("back", 1000, client, donor)]
        tour.check_path(types.SimpleNamespace(bytes=1000))

    def test_all_by_rdma_passes(self):
        self.check({"write_bytes": 1000, "read_bytes": 1000}, {"write_bytes": 0, "read_bytes": 0})

    def test_too_few_bytes_or_no_counters_fail(self):
        none = {"write_bytes": 0, "read_bytes": 0}
        for client in ({"write_bytes": 999, "read_bytes": 1000},
                       {"write_bytes": 1000, "read_bytes": 999}, {}):
            self.assertRaises(demo.Failed, self.check, client, none)

    def test_a_donor_that_moves_bytes_itself_fails(self):
        self.assertRaises(demo.Failed, self.check, {"write_bytes": 1000, "read_bytes": 1000},
                          {"write_bytes": 0, "read_bytes": 1})

    def test_clear_text_to_another_host_fails(self):
        moved, none = {"write_bytes": 1000, "read_bytes": 1000}, {"write_bytes": 0, "read_bytes": 0}
        self.check({**moved, "sealed": 1}, none, on_client=["nsenter"])
        self.assertRaises(demo.Failed, self.check, {**moved, "sealed": 0}, none,
                          on_client=["nsenter"])

    def test_another_device_has_counters_of_its_own(self):
        self.check({}, {}, device="rxe0")


if __name__ == "__main__":
    unittest.main(verbosity=2)
