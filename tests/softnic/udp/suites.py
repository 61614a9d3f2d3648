#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The suites lib, donor, fs, share, unload and python over softnic's transport between hosts.

suites.py [-c CONDITION] [-w WAY] [-j JOBS] [--minutes M] [--record FILE] BUILD [TEST ...]

A test runs in two ways. "near0": both ends in one network namespace, with WEIR_SOFTNIC=near=0, so
that even two ends in one process talk over UDP. "hosts": the donor on one host of weir lab net, the
test on another; only tests whose donor is a process of its own. In the condition "down" the link of
the donor's host is down for five seconds while the test runs, so only "hosts" has it.

Tests wait more than they compute, so several run at a time, each between hosts of its own. Prints a
line for each test, the output of those that fail, and a table at the end.

The whole takes hours on few CPUs. With --minutes no test begins later. With --record results go to
a file, and the next call with that file leaves out all tests that have passed: call it again until
nothing is left. The exit status is 2 as long as tests have not run.
"""
import argparse
import collections
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import uuid

SUITES = {"lib", "donor", "fs", "share", "unload", "python"}
CONDITIONS = {
    "good": "",
    "bad": "loss=1,duplicate=1,reorder=5,packet_delay_us=5000",
    "loss": "loss=1",
    "duplicates": "duplicate=1",
    "reorder": "reorder=5",
    "delay": "packet_delay_us=5000",
    "down": "",
}
DOWN_AFTER_S, DOWN_S = 2, 5
SLOWER = {"good": 2, "delay": 8, "bad": 8}  # than Meson's limit; other conditions: 4
LIMIT_S = 300  # whatever Meson's limit and the condition
SKIPPED = 77
OUTPUT_MAX = 4000
TOKEN = "WEIR_SUITES_TOKEN"  # in the environment of a test's processes
RUN = uuid.uuid4().hex  # the tokens begin with it
PRINTING = threading.Lock()

# WEIR_TEST_SIZE, as on other slow devices. Each overtaken packet makes a queue pair go back.
SIZES = {"reorder": "0.1", "delay": "0.1", "bad": "0.1"}

# On a soft mount, programs get errors while the link is down. A hard mount waits.
HARD = re.compile(r"file system (linux|past the kernel p|posix|programs|sealed)")
HARD_MOUNT = {"WEIR_MOUNT_HARD": "1", "WEIR_MOUNT_TIMEOUT": "20"}

# Tests that ask for what only programs of one host have, by way; the value is the reason.
NEAR_ONLY = {
    "lib batching": "counts events of a device that finishes in the post",
    "lib failure": "a stopped donor answers",
    "lib keepalive": "a stopped donor answers",
    "unload processes": "a stopped target takes writes",
    "lib tax": "counts instructions in the post",
    "lib first program": "does not flush what it puts, which the wire has then not delivered",
    "lib latency": "expects lanes, which are for devices that finish in the post",
    "lib second handshake": "its own client does not encrypt, so the donor refuses it",
    "lib mux port": "needs the order of a delay of operations, which the wire ignores",
    "lib exchange under way": "needs a delay of operations, which the wire ignores",
    "lib bounce pool under way": "needs a delay of operations, which the wire ignores",
    "weir share flood": "expects ETIMEDOUT of a stopped daemon; another host is unreachable",
    "donor admission": "opens more connections than the table for other hosts has",
    "bench/fs": "measures, and moves no data of its own",
}
# Tests that fail on some networks or in one way; the value is the reason.
NOT_ON = {
    ("unload paused", "delay"): "packets that come late leave the target time",
    ("unload paused", "bad"): "packets that come late leave the target time",
    ("lib message", "down"): "its calls have less time than the link is down",
    ("lib volume", "down"): "its new sessions have no more time than the link is down",
    ("file system clients", "near0"): "a stopped client holds packets to its donor's port 4791",
    ("file system pool", "near0"): "a stopped server holds packets to another server's port 4791",
    ("python group", "near0"): "a member whose port is down drops packets to another's port 4791",
}
# Tests with both ends in one process, or with a donor that the test starts itself, or disturbs with
# the faults of softnic, which only programs of the donor's host can set.
ONE_HOST = re.compile(r"lib (mux|exchange|group|ece|dialer|unproven|unload|session|host gone"
                      r"|volume failure|second|examples|tax|first|growth|pool)"
                      r"|weir metrics|file system remote|donor ")


class Lab:
    """Two hosts. A command line runs a program on one host."""

    def __init__(self, weir, folder, number):
        self.weir = weir
        self.environment = {**os.environ, "WEIR_NET": f"suites{os.getpid()}-{number}"}
        self.run("up", "2", check=True)
        said = json.loads(self.run("status", "--json", check=True).stdout)
        pids = {host["name"]: host["holder"]["pid"] for host in said["hosts"]}
        user = ["--user", "--preserve-credentials"] if said["user"] else []
        self.on = {name: ["nsenter", "--target", str(pid), *user, "--net", "--"]
                   for name, pid in pids.items()}
        self.key = os.path.join(folder, f"key{number}")
        subprocess.run([weir, "key", "new", self.key], check=True, capture_output=True)
        self.donor = os.path.join(folder, f"donor{number}")

    def run(self, *words, check=False):
        return subprocess.run([self.weir, "lab", "net", *words], env=self.environment, text=True,
                              capture_output=True, check=check)

    def environment_of(self, test):
        """@test with its donor on the first host."""
        line = [*self.on["h1"], test.get("WEIR_TEST_DONOR", "/bin/false")]
        with open(self.donor, "w", encoding="ascii") as script:
            script.write(f'#!/bin/sh\nexec {" ".join(line)} "$@"\n')
        os.chmod(self.donor, stat.S_IRWXU)
        return {**test, "WEIR_TEST_ADDRESS": "10.77.0.1", "WEIR_TEST_KEY": self.key,
                "WEIR_TEST_DONOR": self.donor, "WEIR_TEST_SERVE": " ".join(self.on["h1"])}

    def link_down_for_a_while(self):
        time.sleep(DOWN_AFTER_S)
        self.run("link", "h1", "--down")
        time.sleep(DOWN_S)
        self.run("link", "h1", "--up")


def tests_of(build):
    said = subprocess.run(["meson", "introspect", "--tests", build], capture_output=True, text=True,
                          check=True)
    for test in json.loads(said.stdout):
        suites = {suite.split(":")[-1] for suite in test["suite"]}
        if suites & SUITES and "canary" not in suites:
            yield test


def runs_between_hosts(test):
    own = "WEIR_TEST_DONOR" in test["env"] or test["name"].startswith("file system")
    return own and not ONE_HOST.match(test["name"])


def end_processes(token):
    """Kill the processes of a test, in sessions of their own, too. @token: or the start of many."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if f"\0{TOKEN}={token}".encode() in b"\0" + file.read():
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass  # another user's, or gone


def run(case, lab, build, folder):
    """Exit status or "timeout", and output."""
    test, token = case.test, f"{RUN}-{uuid.uuid4().hex}"
    faults = CONDITIONS[case.condition]
    environment = {**os.environ, **test["env"]}
    if case.way == "hosts":
        environment = lab.environment_of(environment)
        line = lab.on["h2"]
    else:
        faults = f"near=0,{faults}"
        line = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    settings = [environment.get("WEIR_SOFTNIC", ""), faults.rstrip(",")]
    environment |= {"WEIR_SOFTNIC": ",".join(filter(None, settings)), TOKEN: token,
                    "TMPDIR": folder,
                    "WEIR_TEST_SIZE": SIZES.get(case.condition, "1")}
    if case.condition == "down" and HARD.match(case.name):
        environment |= HARD_MOUNT
    limit_s = min(test["timeout"] * SLOWER.get(case.condition, 4), LIMIT_S)
    with tempfile.TemporaryFile() as output, \
            subprocess.Popen([*line, *test["cmd"]], env=environment, cwd=test["workdir"] or build,
                             stdin=subprocess.DEVNULL, stdout=output,
                             stderr=subprocess.STDOUT) as child:
        if case.condition == "down":
            thread = threading.Thread(target=lab.link_down_for_a_while)
            thread.start()
        try:
            status = child.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = "timeout"
        end_processes(token)
        if case.condition == "down":
            thread.join()
        output.seek(0)
        return status, output.read().decode(errors="replace")


class Case:
    """A test, how it runs and, at last, how it ended."""

    def __init__(self, test, way, condition):
        self.test, self.way, self.condition = test, way, condition
        self.result, self.seconds = "not run", 0

    @property
    def name(self):
        return self.test["name"]

    def runs(self, options):
        return not (self.name in NEAR_ONLY or (self.name, self.way) in NOT_ON or
                    (self.name, self.condition) in NOT_ON or
                    (options.tests and self.name not in options.tests) or
                    (self.way == "hosts" and not runs_between_hosts(self.test)) or
                    (self.way == "near0" and self.condition == "down"))

    def execute(self, lab, build):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            status, output = run(self, lab, build, folder)
        self.seconds = time.monotonic() - begin
        self.result = {0: "pass", SKIPPED: "skip", "timeout": "TIMEOUT"}.get(status, "FAIL")
        RECORD.add(self)
        line = (f"{self.result:7} {self.seconds:6.1f} s  {self.condition:10} {self.way:6} "
                f"{self.name}")
        if self.result in ("pass", "skip"):
            output = ""
        with PRINTING:
            print(line, output[-OUTPUT_MAX:], sep="\n" if output else "", flush=True)


class Record:
    """The results of earlier calls and of this one, a line of JSON each."""

    def __init__(self):
        self.path, self.passed = None, {}

    def open(self, path):
        self.path = path
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for line in map(json.loads, file):
                    if line["result"] in ("pass", "skip"):
                        self.passed[line["name"], line["way"], line["condition"]] = line["result"]

    def recall(self, case):
        """Has @case passed before? Then it has the result."""
        result = self.passed.get((case.name, case.way, case.condition))
        case.result = result or case.result
        return bool(result)

    def add(self, case):
        if self.path:
            with PRINTING, open(self.path, "a", encoding="utf-8") as file:
                print(json.dumps({"name": case.name, "way": case.way, "condition": case.condition,
                                  "result": case.result, "seconds": round(case.seconds, 1)}),
                      file=file)


RECORD = Record()


def work(cases, lab, build, until):
    """Execute @cases until there are none, or the time has come."""
    while cases and time.monotonic() < until:
        try:
            case = cases.popleft()
        except IndexError:
            return
        case.execute(lab, build)


def print_table(cases):
    """A line for each test and way, a column for each condition."""
    conditions = [name for name in CONDITIONS if any(case.condition == name for case in cases)]
    rows = {}
    for case in cases:
        rows.setdefault((case.name, case.way), {})[case.condition] = case.result
    print(f"\n{'test':36} {'way':6}", *(f"{name:10}" for name in conditions))
    for (name, way), results in sorted(rows.items()):
        print(f"{name:36} {way:6}", *(f"{results.get(at, '-'):10}" for at in conditions))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("-c", "--condition", choices=CONDITIONS, action="append")
    parser.add_argument("-w", "--way", choices=("near0", "hosts"), action="append")
    parser.add_argument("-j", "--jobs", type=int, default=3 * os.cpu_count())
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--record", metavar="FILE")
    parser.add_argument("tests", nargs="*")
    options = parser.parse_intermixed_args()
    # A shell that starts this program in the background may have it ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    build, begin = os.path.abspath(options.build), time.monotonic()
    cases = [Case(test, way, condition) for condition in options.condition or CONDITIONS
             for test in tests_of(build) for way in options.way or ("near0", "hosts")]
    cases = [case for case in cases if case.runs(options)]
    until = begin + 60 * options.minutes
    if options.record:
        RECORD.open(options.record)
    left = [case for case in cases if not RECORD.recall(case)]
    alone = collections.deque(case for case in left if not case.test["is_parallel"])
    # Tests with long limits begin first, so that none is left alone at the end.
    order = list(CONDITIONS)
    together = collections.deque(sorted(
        (case for case in left if case.test["is_parallel"]),
        key=lambda case: (order.index(case.condition), -case.test["timeout"])))
    labs, threads = [], []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for number in range(max(1, min(options.jobs, len(left)))):
                labs.append(Lab(os.path.join(build, "weir"), folder, number))
            for lab in labs:
                threads.append(threading.Thread(target=work, args=(together, lab, build, until)))
                threads[-1].start()
            for thread in threads:
                thread.join()
            work(alone, labs[0], build, until)
        finally:
            together.clear()
            end_processes(RUN)
            for thread in threads:
                thread.join()
            for lab in labs:
                lab.run("down")
    print_table(cases)
    counts = collections.Counter(case.result for case in cases)
    print(f"\n{dict(counts)} in {time.monotonic() - begin:.0f} s")
    failed = any(case.result not in ("pass", "skip", "not run") for case in cases)
    sys.exit(1 if failed else 2 if counts["not run"] else 0)


if __name__ == "__main__":
    main()
