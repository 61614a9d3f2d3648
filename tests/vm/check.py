# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""'vm check': two guests on one wire share the tests, and run one test together.

A guest that finishes a test takes the next free one, so waiting in one guest leaves CPU time to
the other. Each guest has its own kernel, device and file system, so tests that would disturb
each other on one machine cannot. At the end one guest plays a host that loses power, which is
mostly waiting. Then a third guest with several CPUs starts, and runs the tests that need several
CPUs.

If a guest's CPU hangs outside weir's code, its unfinished tests run once more, in new guests.
"""
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import complaints
import mistakes
import tests
from machine import Machine, prepare, read, say, tail, write

HERE = os.path.dirname(os.path.abspath(__file__))
# A guest running longer has hung. Tests have limits of their own.
LIMIT_SECONDS = 2400
PAIR = "two hosts"
INTEROP = "softnic beside Soft-RoCE"
BLOCK = "block device"
# Tests that need the kernel modules and are not split between guests.
STARVED = "block device without memory"
OF_MODULES = {BLOCK: "block.py", "block device with a local disk": "local.py",
              "block device and its donor": "forged.py",
              "block device on a pool": "pooled.py",
              "swap while donors come and go": "soak.py", STARVED: "starve.py"}
# Tests that run only by name, because they take long.
BY_NAME = (STARVED,)
OWN_LIMIT_SECONDS = 1800


class Report:
    """Prints the result of each test, and writes them in the form of Meson's testlog.json."""

    def __init__(self, build):
        self.path = os.path.join(build, "meson-logs", "vmlog.json")
        self.failed = 0
        self.lines = []
        self.begin = time.monotonic()
        if os.path.exists(self.path):
            os.unlink(self.path)

    def add(self, name, result, seconds=0, cpu=0, why=""):
        name = f"vm: {name}"
        self.lines.append(json.dumps({"name": name, "result": result}) + "\n")
        self.failed += result == "FAIL"
        print(f"{name:32} {result:5} {seconds:6.1f} s {cpu:6.1f} s of CPU  {why}".rstrip(),
              flush=True)

    def add_ended(self, test, job, cpu):
        status, seconds = test.end(job)
        if status == tests.SKIPPED:
            self.add(test.name, "SKIP", seconds, cpu, tests.reason(test.log(job)))
        elif status:
            self.add(test.name, "FAIL", seconds, cpu, f"exit status {status}")
            say(test.name, test.log(job))
        else:
            skipped = tests.skipped_cases(test.log(job))
            self.add(test.name, "OK", seconds, cpu, f"without {skipped} cases" if skipped else "")

    def add_kernel(self, role, machine):
        """Adds the reports of a debug kernel: a report about weir's modules is a failure."""
        found = machine.complaints()
        ours = [complaint for complaint in found if complaint.is_ours]
        self.add(f"the kernel of {role}", "FAIL" if ours else "OK",
                 why=f"{len(ours)} complaints of weir, {len(found) - len(ours)} of others")
        if machine.lockdep_gave_up():
            self.add(f"lockdep of {role}", "SKIP", why="it looked no more after the first of these")
        if found:
            say(f"the kernel of {role}", complaints.summary(found).encode())

    def write(self):
        write(self.path, "".join(self.lines))
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{len(self.lines)} tests in virtual machines: "
              f"{time.monotonic() - self.begin:.0f} s, "
              f"{used.ru_utime + used.ru_stime:.0f} s of CPU", flush=True)


class Guests:
    """The guests @roles, which share the tests @wanted, and the results; all run @pair together."""

    def __init__(self, report, of, roles, wanted, pair, job, is_first):
        prepared = prepare(of)
        self.is_first = is_first
        self.report = report
        self.limit_s = LIMIT_SECONDS * of.slower
        self.deadline = None
        self.left = [*wanted, *pair]
        self.pair = pair
        self.job = job
        script = [read(os.path.join(HERE, "run-tests")).decode(),
                  *(test.line("take_test") for test in wanted),
                  *(test.line("meet_for_test") for test in pair)]
        for role in roles:
            write(os.path.join(job, f"run.{role}"), "\n".join(script) + "\n")
        self.machines = {role: Machine(prepared, job, role) for role in roles}
        self.spent = dict.fromkeys(roles, 0)

    def start(self):
        self.deadline = time.monotonic() + self.limit_s
        for machine in self.machines.values():
            machine.start()

    def stop(self):
        for machine in self.machines.values():
            if machine.process:
                machine.stop()

    def cpu_of(self, role):
        """CPU time of the guest since the last call, in seconds."""
        now = self.machines[role].cpu_seconds()
        used, self.spent[role] = now - self.spent[role], now
        return used

    def collect(self):
        """Reports tests that have ended since the last call. The first test includes the guest's
        boot."""
        for test in [test for test in self.left if test.end(self.job)]:
            self.report.add_ended(test, self.job, self.cpu_of(test.taken_by(self.job)))
            self.left.remove(test)

    def is_missed(self, role):
        """Should a guest that has ended still run? A guest without further tests may end, and so
        may the far guest within the common test."""
        if self.pair:
            return role != "far" or self.left != self.pair
        return any(test.taken_by(self.job) == role for test in self.left)

    def are_through(self):
        """Reports new results; returns whether no more will come."""
        # Ask for ended guests first: their results are complete by then.
        gone = [role for role, machine in self.machines.items() if not machine.is_running()]
        self.collect()
        return not self.left or len(gone) == len(self.machines) or \
            any(self.is_missed(role) for role in gone) or time.monotonic() > self.deadline

    def have_time(self):
        """Will the guests mostly wait from now on?"""
        return self.left == self.pair

    def finish(self):
        if self.left and not self.may_repeat():
            self.report_lost()
        for role, machine in self.machines.items():
            if machine.kernel.looks_for_mistakes:
                self.report.add_kernel(role, machine)

    def may_repeat(self):
        return self.is_first and any(machine.hung_elsewhere()
                                     for machine in self.machines.values())

    def rest(self):
        """The share of these guests that new guests must do, if any."""
        return (tuple(self.machines), [test for test in self.left if test not in self.pair],
                [test for test in self.left if test in self.pair])

    def report_lost(self):
        """Reports unfinished tests, and the last output of the guests."""
        for test in self.left:
            role = test.taken_by(self.job)
            why = f"the {role} guest, or the other, died or hung in it" if role else \
                "no guest got there"
            self.report.add(test.name, "FAIL", why=why)
            if role:
                say(test.name, tail(test.log(self.job)))
        for role, machine in self.machines.items():
            say(f"the {role} guest's console", tail(read(machine.console)))


def make_modules(build, of):
    """Builds the kernel modules for kernel @of. Returns their directory and the build's status."""
    modules = os.path.abspath(os.path.join(build, "modules"))
    if of.looks_for_mistakes:
        modules += "-debug"
    script = os.path.join(HERE, "../../scripts/modules")
    made = subprocess.run([script, modules, of.headers], capture_output=True, check=False)
    if not made.returncode:
        made = subprocess.run([script, "--tests", f"{modules}-tests", of.headers],
                              capture_output=True, check=False)
    return modules, made


def modules_of(build, report, of):
    """Directory of the kernel modules built for kernel @of; or None."""
    modules, made = make_modules(build, of)
    if made.returncode == tests.SKIPPED:
        report.add(BLOCK, "SKIP", why=made.stderr.decode().strip())
        return None
    if made.returncode:
        report.add(BLOCK, "FAIL", why="the modules do not build")
        say(BLOCK, made.stdout + made.stderr)
        return None
    return modules


def own(build, of, name, program, *args):
    """A test unknown to Meson, because it runs only in guests."""
    weir = os.path.abspath(os.path.join(build, "weir"))
    return tests.Test(name, [os.path.join(HERE, program), weir, *args],
                      OWN_LIMIT_SECONDS * of.slower, "/", {}, parallel=True)


def check(build, names, of):
    """Runs the tests @names of @build on kernel @of, or all tests. Returns the exit status."""
    def is_wanted(name):
        return name in names or (not names and name not in BY_NAME)

    report = Report(build)
    wanted = [test for test in tests.of_suite(build) if is_wanted(test.name)]
    of_modules = {name: program for name, program in OF_MODULES.items() if is_wanted(name)}
    modules = modules_of(build, report, of) if of_modules or is_wanted(PAIR) else None
    if modules:
        wanted += [own(build, of, name, program, modules) for name, program in of_modules.items()]
    pair = []
    if is_wanted(PAIR):
        pair.append(own(build, of, PAIR, "two-hosts", *([modules] if modules else [])))
    if is_wanted(INTEROP):
        wanted.append(own(build, of, INTEROP, "interop.py"))
    if not wanted and not pair and not report.lines:
        sys.exit(f"vm: no such test in the suite '{tests.SUITE}' of {build}: "
                 "meson test --list shows what there is")
    if modules and of.looks_for_mistakes:
        mistakes.check(report, of, f"{modules}-tests")
        mistakes.check_style(report, of)
    # Longest first, so that no guest works long after the other.
    wanted.sort(key=lambda test: -test.limit_s)
    run_in(report, of, [(("far", "near"), [test for test in wanted if not test.parallel], pair),
                        (("alone",), [test for test in wanted if test.parallel], [])])
    if modules and of_modules and of.looks_for_mistakes:
        again = [own(build, of, f"{name}, for lockdep", "lockdep", modules, program)
                 for name, program in of_modules.items()]
        run_in(report, of, [(("alone",), again, [])])
    report.write()
    return 1 if report.failed else 0


def follow(crowds):
    """Runs all groups; each starts when the previous one has time."""
    waiting, running = list(crowds), []
    while waiting or running:
        if waiting and all(crowd.have_time() for crowd in running):
            running.append(waiting.pop(0))
            running[-1].start()
        for crowd in [crowd for crowd in running if crowd.are_through()]:
            running.remove(crowd)
            crowd.finish()
            crowd.stop()
        time.sleep(0.2)


def run_in(report, of, shares, is_first=True):
    """Runs guests for each share (roles, wanted, pair); one guest suffices for one test."""
    again = []
    with contextlib.ExitStack() as stack:
        crowds = []
        for roles, wanted, pair in shares:
            if len(wanted) == 1 and not pair:
                roles = ("alone",)
            if wanted or pair:
                job = stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-vm-"))
                crowds.append(Guests(report, of, roles, wanted, pair, job, is_first))
                stack.callback(crowds[-1].stop)
        follow(crowds)
        for crowd in [crowd for crowd in crowds if crowd.left and crowd.may_repeat()]:
            again.append(crowd.rest())
            for role, machine in crowd.machines.items():
                say(f"a CPU hung; the {role} guest's console", tail(read(machine.console)))
    if again:
        run_in(report, of, again, is_first=False)
