# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What runs in the guests: the tests of Meson's suite "vm", on rxe0 instead of softnic, and those
that need a kernel of their own.

A test has an ID in the job, where it leaves the directory ID.taken, in which is the role of the
guest that runs it; ID.log, what it said; and, when it is over, ID.end: its exit status and the
seconds that it took.
"""
import json
import os
import re
import shlex
import subprocess

from machine import read

SUITE = "vm"
# Those of it that are about what threads do at the same time.
PARALLEL = "parallel"
# The guest is emulated, and not alone: what is a fair limit on a real machine is not one there.
SLOWER = 5
# What tells a test its device (tests/support/libweir_fixture.h), and how much to do.
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
    """@limit_s: who takes longer hangs. @parallel: wants a guest with several processors."""

    def __init__(self, name, command, limit_s, directory, environment, parallel=False):
        self.name = name
        self.command = command
        self.limit_s = limit_s
        self.directory = directory
        self.environment = {**environment, **DEVICE}
        self.parallel = parallel
        self.id = re.sub(r"\W+", "-", name)

    def line(self, how):
        """What a guest's shell is told; @how is a function of run-tests."""
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        return shlex.join([how, self.id, str(self.limit_s), self.directory,
                           "env", *settings, *self.command])

    def log(self, job):
        return read(os.path.join(job, f"{self.id}.log"))

    def taken_by(self, job):
        """The role of the guest that has begun it, None if none has."""
        try:
            return os.listdir(os.path.join(job, f"{self.id}.taken"))[0]
        except (FileNotFoundError, IndexError):
            return None

    def end(self, job):
        """Its exit status and the seconds that it took; None until then."""
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
    """Number of cases that a program has skipped; docs/reference/conformance.md says why."""
    return sum("# SKIP" in line for line in log.decode(errors="replace").splitlines())


def reason(log):
    """Why a test that skipped did: TAP's comment, or the last line it said."""
    lines = log.decode(errors="replace").strip().splitlines() or ["it does not say why"]
    for line in lines:
        if "# SKIP" in line:
            return line.split("# SKIP", 1)[1].strip()
    return lines[-1].removeprefix("skipped: ")
