# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests in the guests: Meson's suite "vm" on rxe0 instead of softnic, and tests that need their own
kernel.

A test has an ID in the job. Its guest creates the directory ID.taken with the guest's role,
writes the test's output to ID.log, and at the end its exit status and seconds to ID.end.
"""
import json
import os
import re
import shlex
import subprocess

from machine import read

SUITE = "vm"
# Tests of this suite are about threads that run at the same time.
PARALLEL = "parallel"
# The guest is emulated and shares the machine, so time limits of real machines are too short.
SLOWER = 5
# Names the device for a test (tests/support/libweir_fixture.h), and limits the work.
DEVICE = {
    "WEIR_TEST_DEVICE": "rxe",
    "WEIR_TEST_ADDRESS": "10.9.9.1",
    "WEIR_TEST_KEY": "/run/key",
    "WEIR_TEST_SIZE": "0.1",
    "WEIR_DEVICE": "rxe0",
    "WEIR_TEST_PRELOAD": "",
    "LD_PRELOAD": "",
}
SKIPPED = 77


class Test:
    """@limit_s: a test that takes longer hangs. @parallel: needs a guest with several CPUs."""

    def __init__(self, name, command, limit_s, directory, environment, parallel=False):
        self.name = name
        self.command = command
        self.limit_s = limit_s
        self.directory = directory
        self.environment = {**environment, **DEVICE}
        self.parallel = parallel
        self.id = re.sub(r"\W+", "-", name)

    def line(self, how):
        """The line for a guest's shell; @how is a function of run-tests."""
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        return shlex.join([how, self.id, str(self.limit_s), self.directory,
                           "env", *settings, *self.command])

    def log(self, job):
        return read(os.path.join(job, f"{self.id}.log"))

    def taken_by(self, job):
        """Role of the guest that has started the test, or None."""
        try:
            return os.listdir(os.path.join(job, f"{self.id}.taken"))[0]
        except (FileNotFoundError, IndexError):
            return None

    def end(self, job):
        """Exit status and seconds of the test; None until its end."""
        said = read(os.path.join(job, f"{self.id}.end")).decode().split()
        return (int(said[0]), float(said[1])) if said else None


def of_suite(build):
    listed = subprocess.run(["meson", "introspect", "--tests", build], check=True,
                            capture_output=True, text=True)
    found = []
    for test in json.loads(listed.stdout):
        suites = [suite.split(":")[-1] for suite in test["suite"]]
        if SUITE in suites:
            found.append(Test(test["name"], test["cmd"], int(test["timeout"] * SLOWER),
                              test["workdir"] or os.path.abspath(build), test["env"],
                              PARALLEL in suites))
    return found


def skipped_cases(log):
    """How many cases a program has skipped: the reasons are in its source and
    docs/reference/conformance.md."""
    return sum("# SKIP" in line for line in log.decode(errors="replace").splitlines())


def reason(log):
    """Why a test was skipped: TAP's comment, or the last line of output."""
    lines = log.decode(errors="replace").strip().splitlines() or ["it does not say why"]
    for line in lines:
        if "# SKIP" in line:
            return line.split("# SKIP", 1)[1].strip()
    return lines[-1].removeprefix("skipped: ")
