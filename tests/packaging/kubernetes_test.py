#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs the Go tests of the CSI driver, csi-sanity among them, or of the device plugin.

kubernetes_test.py csi|device-plugin WEIR SOFTNIC

Both use this build. Go fetches the modules that go.sum names, once.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support import go_build  # noqa: E402

FOLDER = ROOT / "packaging/kubernetes" / sys.argv[1]
SKIPPED = 77


def go():
    """The command go, if new enough for go.mod."""
    path = shutil.which("go", path=os.environ.get("PATH", "") + ":/usr/local/go/bin")
    wanted = re.search(r"^go (\d+)\.(\d+)", (FOLDER / "go.mod").read_text(encoding="utf-8"), re.M)
    if not path:
        return None, "no go: scripts/deps check"
    said = subprocess.run([path, "version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    if tuple(map(int, found.groups())) < tuple(map(int, wanted.groups())):
        return None, f"{said.strip()} is older than go.mod wants"
    return path, None


def main():
    path, reason = go()
    if not path:
        print(f"skipped: {reason}")
        return SKIPPED
    environment = dict(os.environ, GOFLAGS="-mod=readonly",
                       WEIR_TEST_WEIR=os.path.abspath(sys.argv[2]),
                       WEIR_TEST_SOFTNIC=os.path.abspath(sys.argv[3]))
    if subprocess.run([path, "mod", "download"], cwd=FOLDER, env=environment, check=False,
                      capture_output=True).returncode:
        print("skipped: no network for the modules of go.sum")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "tests")
        with go_build.alone(path):
            for words in (["vet", "."], ["test", "-c", "-o", program, "."]):
                done = subprocess.run([path, *words], cwd=FOLDER, env=environment, check=False)
                if done.returncode:
                    return done.returncode
        return subprocess.run([program, "-test.timeout=200s"], cwd=FOLDER, env=environment,
                              check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
