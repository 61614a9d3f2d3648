#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Build the wheel, install it as a user would, and run programs on it; run the steps for CI.

wheel_test.py BUILD LIBRARY VERSION CI: build.py, the library, the version, and packaging/ci/.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

BUILD, LIBRARY, VERSION, CI = (sys.argv.pop(1) for _ in range(4))
PATIENCE_S = 100
STATE = "/sys/class/infiniband/softnic0/ports/1/state"


def run(*command, expected=0, **options):
    done = subprocess.run(command, text=True, capture_output=True, check=False,
                          timeout=PATIENCE_S, stdin=subprocess.DEVNULL, **options)
    if done.returncode != expected:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.wheel = run(sys.executable, BUILD, LIBRARY, VERSION, cls.folder.name).stdout.strip()
        cls.bin = pathlib.Path(cls.folder.name, "venv", "bin")
        run(sys.executable, "-m", "venv", str(cls.bin.parent))
        run(str(cls.bin / "pip"), "install", "--no-index", "--quiet", cls.wheel)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def softnic(self, *arguments, **options):
        return run(str(self.bin / "weir-softnic"), *arguments, **options)

    def test_equal_inputs_give_equal_wheels(self):
        with tempfile.TemporaryDirectory() as other:
            again = run(sys.executable, BUILD, LIBRARY, VERSION, other).stdout.strip()
            self.assertEqual(pathlib.Path(again).read_bytes(),
                             pathlib.Path(self.wheel).read_bytes())

    def test_a_library_with_foreign_needs_is_refused(self):
        done = run(sys.executable, BUILD, shutil.which("curl") or shutil.which("bash"), VERSION,
                   self.folder.name, expected=1)
        self.assertIn("which hosts may lack", done.stderr)

    def test_the_command_and_the_module_run_programs(self):
        for command in ([str(self.bin / "weir-softnic")],
                        [str(self.bin / "python"), "-m", "weir_softnic"]):
            done = run(*command, "run", "--", "cat", STATE)
            self.assertEqual(done.stdout, "4: ACTIVE\n")
            self.assertIn("using softnic", done.stderr)

    def test_two_programs_exchange_bytes(self):
        if not shutil.which("ibv_rc_pingpong"):
            self.skipTest("ibv_rc_pingpong is not installed")
        script = ("ibv_rc_pingpong -c -p 18523 -g 254 & sleep 1;"
                  "ibv_rc_pingpong -c -p 18523 -g 254 127.0.0.1 && wait $!")
        done = self.softnic("run", "--", "sh", "-c", script)
        self.assertEqual(done.stdout.count("8192000 bytes"), 2, done.stdout)

    def test_status_and_arguments_are_the_programs(self):
        self.softnic("run", "-q", "--", "sh", "-c", "exit 42", expected=42)
        self.softnic("run", "no-such-program", expected=127)
        self.softnic("run", "/etc/passwd", expected=126)
        self.softnic("run", expected=2)
        self.softnic("walk", expected=2)
        done = self.softnic("run", "-q", "echo", "-q", "--help")
        self.assertEqual((done.stdout, done.stderr), ("-q --help\n", ""))

    def test_other_preloads_are_kept_and_softnic_is_loaded_once(self):
        library = self.softnic("library").stdout.strip()
        script = [str(self.bin / "weir-softnic"), "run", "-q", "printenv", "LD_PRELOAD"]
        done = self.softnic("run", "-q", *script,
                            env={**os.environ, "LD_PRELOAD": "libm.so.6"})
        self.assertEqual(done.stdout, f"{library}:libm.so.6\n")

    def test_the_steps_for_github_run(self):
        steps = yaml.safe_load(pathlib.Path(CI, "github", "action.yml").read_text())
        steps = steps["runs"]["steps"]
        with tempfile.TemporaryDirectory() as temp:
            added = pathlib.Path(temp, "path")
            env = {**os.environ, "RUNNER_TEMP": temp, "GITHUB_PATH": str(added),
                   "PIP_NO_INDEX": "1", "PACKAGE": self.wheel}
            run("bash", "-e", "-c", steps[0]["run"], env=env)
            env["PATH"] = added.read_text().strip() + ":" + env["PATH"]
            done = run("bash", "-e", "-c", steps[1]["run"], env=env)
        self.assertIn("4: ACTIVE", done.stdout)

    def test_the_steps_for_gitlab_run(self):
        job = yaml.safe_load(pathlib.Path(CI, "gitlab.yml").read_text())[".softnic"]
        with tempfile.TemporaryDirectory() as temp:
            env = {**os.environ, "CI_PROJECT_DIR": temp, "PIP_NO_INDEX": "1",
                   "SOFTNIC_PACKAGE": self.wheel}
            done = run("bash", "-e", "-c", "\n".join(job["before_script"]), env=env)
        self.assertIn("4: ACTIVE", done.stdout)


if __name__ == "__main__":
    unittest.main()
