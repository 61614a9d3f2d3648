# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The tests that run in the guest too: those of Meson's suite "vm", on rxe0 instead of softnic."""
import json
import os
import shlex
import subprocess

SUITE = "vm"
# The guest is emulated: what is a fair limit for a test on a real machine is not there.
SLOWER = 3
# What tells a test its device (tests/lib/fixture.h), and how much to do.
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
    def __init__(self, build, number, described):
        self.name = described["name"]
        self.log = f"test-{number:02}.log"
        self.limit = int(described["timeout"] * SLOWER)
        self.command = described["cmd"]
        self.environment = {**described["env"], **DEVICE}
        self.directory = described["workdir"] or os.path.abspath(build)

    def line(self):
        """What the guest's shell is told."""
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        return shlex.join(["run_test", self.log, str(self.limit), self.directory,
                           "env", *settings, *self.command])


def of(build, names):
    """The tests in the build directory @build; all of them where @names is empty."""
    listed = subprocess.run(["meson", "introspect", "--tests", build], check=True,
                            capture_output=True, text=True)
    wanted = [test for test in json.loads(listed.stdout)
              if any(suite.split(":")[-1] == SUITE for suite in test["suite"])
              and (not names or test["name"] in names)]
    return [Test(build, number, test) for number, test in enumerate(wanted)]


def reason(log):
    """Why a test that skipped did: TAP's comment, or the last line it said."""
    lines = log.decode(errors="replace").strip().splitlines() or ["it does not say why"]
    for line in lines:
        if "# SKIP" in line:
            return line.split("# SKIP", 1)[1].strip()
    return lines[-1].removeprefix("skipped: ")


def results(job):
    """What the guest has reported so far: {log: (status, seconds)}."""
    try:
        with open(os.path.join(job, "results"), encoding="ascii") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    return {log: (int(status), float(seconds))
            for log, status, seconds in (line.split() for line in lines)}
