#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The commands that README.md and docs/how-to/pool.md show for a pool on one machine.

pool_test.py WEIR ROOT

Each page's commands run as they stand, in namespaces of their own, with an empty /tmp and /mnt.
WEIR's folder is /srv there, because it may lie below /tmp. Skips where this user may not make such
namespaces.
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop())
WEIR = pathlib.Path(sys.argv.pop()).resolve()
PATIENCE = 240
NAMESPACES = ["unshare", "--mount", "--propagation", "private", "--net", "--pid", "--fork",
              "--kill-child", "--mount-proc"]
BEGIN = f"""
set -e -o pipefail
mount --bind '{WEIR.parent}' /srv
mount -t tmpfs none /tmp
mount -t tmpfs none /mnt
ip link set lo up
cd /tmp
export PATH=/srv:$PATH WEIR_DEVICE=softnic
"""


def end(folder):
    """Commands that check the mount at @folder, and undo it."""
    return f"""
echo hello > {folder}/file
test "$(cat {folder}/file)" = hello
umount {folder}
kill $(jobs -p)
"""


def run(script, timeout=PATIENCE):
    return subprocess.run([*NAMESPACES, "bash", "-c", script], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=timeout, check=False)


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.path.exists("/dev/fuse"):
            raise unittest.SkipTest("no FUSE here")
        done = run("mount -t tmpfs none /tmp")
        if done.returncode:
            raise unittest.SkipTest(f"no namespaces: {done.stdout.strip()}")

    def expect(self, blocks, folder):
        done = run(BEGIN + "\n".join(blocks) + end(folder))
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_readme_s_pool_is_made_and_mounted(self):
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        found = re.findall(r"^((?: {4}weir pool create .*\n)(?: {4}.*\n)+)", text, re.MULTILINE)
        self.assertEqual(len(found), 1)
        self.assertIn("weir mount", found[0])
        self.expect(found, "/mnt")

    def test_the_how_to_s_pool_holds_bytes_and_is_mounted(self):
        text = (ROOT / "docs/how-to/pool.md").read_text(encoding="utf-8")
        part = text[text.index("## Try on one machine"):text.index("## On several hosts")]
        found = re.findall(r"^```sh\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(found), 3)
        self.assertIn("weir mount", found[2])
        self.expect(found, "/tmp/home")


if __name__ == "__main__":
    unittest.main(verbosity=2)
