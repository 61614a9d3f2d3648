#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The suites lib, donor, fs, share, unload and python over softnic's transport between hosts.

suites.py [-c CONDITION] [-w WAY] BUILD [TEST ...]

A test runs in two ways. "near0": both ends in one network namespace, with WEIR_SOFTNIC=near=0, so
that even two ends in one process talk over UDP. "hosts": the donor on one host of weir lab net, the
test on another; only tests whose donor is a process of its own. In the condition "down" the link of
the donor's host is down for five seconds while the test runs, so only "hosts" has it.

Prints a line for each test, and the output of those that fail.
"""
import argparse
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time

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
SKIPPED = 77

# Tests that ask for what only programs of one host have, by way; the value is the reason.
NEAR_ONLY = {
    "lib batching": "counts events of a device that finishes in the post",
    "lib failure": "a stopped donor answers",
    "lib keepalive": "a stopped donor answers",
    "unload processes": "a stopped target takes writes",
    "lib tax": "counts instructions in the post",
    "lib latency": "expects lanes, which are for devices that finish in the post",
    "lib second handshake": "its own client does not encrypt, so the donor refuses it",
    "lib mux port": "needs the order of a delay of operations, which the wire ignores",
    "lib exchange under way": "needs a delay of operations, which the wire ignores",
    "lib bounce pool under way": "needs a delay of operations, which the wire ignores",
    "weir share flood": "expects ETIMEDOUT of a stopped daemon; another host is unreachable",
    "donor admission": "opens more connections than the table for other hosts has",
    "bench/fs": "measures, and moves no data of its own",
}
# Tests with both ends in one process, or with a donor that the test starts itself.
ONE_HOST = re.compile(r"lib (mux|exchange|group|ece|dialer|unproven|unload|session|gone"
                      r"|volume failure|second|examples|tax|first|growth|pool)"
                      r"|weir metrics|file system remote|donor ")


class Lab:
    """Two hosts. A command line runs a program on one host."""

    def __init__(self, weir, folder):
        self.weir = weir
        self.environment = {**os.environ, "WEIR_NET": f"suites{os.getpid()}"}
        self.run("up", "2", check=True)
        said = json.loads(self.run("status", "--json", check=True).stdout)
        pids = {host["name"]: host["holder"]["pid"] for host in said["hosts"]}
        user = ["--user", "--preserve-credentials"] if said["user"] else []
        self.on = {name: ["nsenter", "--target", str(pid), *user, "--net", "--"]
                   for name, pid in pids.items()}
        self.key = os.path.join(folder, "key")
        subprocess.run([weir, "key", "new", self.key], check=True, capture_output=True)
        self.donor = os.path.join(folder, "donor")

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


def run(test, way, condition, lab, build):
    """Exit status, seconds and output."""
    faults = CONDITIONS[condition] if way == "hosts" else f"near=0,{CONDITIONS[condition]}"
    environment = {**os.environ, **test["env"]}
    if way == "hosts":
        environment = lab.environment_of(environment)
    settings = [environment.get("WEIR_SOFTNIC", ""), faults.rstrip(",")]
    environment["WEIR_SOFTNIC"] = ",".join(filter(None, settings))
    line = lab.on["h2"] if way == "hosts" else ["unshare", "--net", "sh", "-c",
                                                'ip link set lo up && exec "$@"', "sh"]
    begin = time.monotonic()
    if condition == "down":
        thread = threading.Thread(target=lab.link_down_for_a_while)
        thread.start()
    try:
        done = subprocess.run([*line, *test["cmd"]], env=environment, cwd=test["workdir"] or build,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=test["timeout"] * SLOWER.get(condition, 4))
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        status, output = "timeout", error.stdout or b""
    if condition == "down":
        thread.join()
    return status, time.monotonic() - begin, output.decode(errors="replace")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("-c", "--condition", choices=CONDITIONS, action="append")
    parser.add_argument("-w", "--way", choices=("near0", "hosts"), action="append")
    parser.add_argument("tests", nargs="*")
    options = parser.parse_intermixed_args()
    build, failed = os.path.abspath(options.build), []
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(os.path.join(build, "weir"), folder)
        try:
            for condition in options.condition or CONDITIONS:
                for test in tests_of(build):
                    for way in options.way or ("near0", "hosts"):
                        name = test["name"]
                        if name in NEAR_ONLY or (options.tests and name not in options.tests) or \
                                (way == "hosts" and not runs_between_hosts(test)) or \
                                (way == "near0" and condition == "down"):
                            continue
                        status, seconds, output = run(test, way, condition, lab, build)
                        print(f"{status!s:8} {seconds:6.1f} s  {condition:10} {way:6} {name}",
                              flush=True)
                        if status not in (0, SKIPPED):
                            failed.append(f"{condition} {way}: {name}")
                            print(output[-4000:], flush=True)
        finally:
            lab.run("down")
    print(*(f"failed: {name}" for name in failed), sep="\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
