#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run perftest's unmodified programs on softnic.

perftest.py LIBRARY [--all] [WORD...]: the library to preload. By default one case of each kind
runs; with words, only cases whose command has all words. Each case is a server and its client.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import time

PATIENCE_S = 120
SIZES = "-a -n 50"  # 2 B to 8 MiB
LATENCY = "-s 131072 -n 200"  # -a calibrates a clock for each size

BW = ("-b", "-q 4", "-b -q 4", "-l 10", "-t 1", "-t 512 -Q 64", "-R -q 4", "-R -b",
      "--mr_per_qp -q 2", "--report-both -b", "--reversed", "-N -D 1")
ANY = ("", "-R", "-z -R", "-m 1024", "--use_old_post_send", "-S 3", "-u 20")
EVENTS = ("-e", "-e -R")
INLINE = ("-I 64 -s 64", "-I 512 -s 512", "-I 64 -R")
SEND = ("--use-srq", "-r 16 -t 16", "-R --use-srq")
UNRELIABLE = ("-c UC", "-c UC -I 64")
DATAGRAM = ("-c UD", "-c UD -R", "-c UD -I 64", "-c UD -e", "-c UD --use-srq")

MATRIX = {
    "ib_write_bw": ANY + BW + INLINE + UNRELIABLE + ("-c UC -b -q 4",),
    "ib_write_lat": ANY + INLINE + UNRELIABLE,
    "ib_read_bw": ANY + BW + EVENTS + ("-o 1", "-e -b -q 2"),
    "ib_read_lat": ANY + EVENTS + ("-o 1",),
    "ib_send_bw": ANY + BW + EVENTS + INLINE + SEND + UNRELIABLE + DATAGRAM +
                  ("-e -b -q 2", "--use-srq -q 4", "--use-srq -q 4 -b -e", "-c UC -e", "-c UD -q 4",
                   "-c UD -b", "-c UD -g -x 0 -s 2048", "-c UC --use-srq"),
    "ib_send_lat": ANY + EVENTS + INLINE + SEND + UNRELIABLE + DATAGRAM + ("-c UD -g",),
    "ib_atomic_bw": ANY + BW + EVENTS + ("-A CMP_AND_SWAP", "-o 1"),
    "ib_atomic_lat": ANY + EVENTS + ("-A CMP_AND_SWAP",),
}
QUICK = ("ib_write_bw -b -q 4", "ib_write_lat -I 64 -s 64", "ib_read_bw -e -b -q 2",
         "ib_read_lat -R", "ib_send_bw --mr_per_qp -q 2", "ib_send_lat -e -R",
         "ib_atomic_bw -A CMP_AND_SWAP", "ib_atomic_lat")


def command(program, options):
    """A size or a duration excludes -a."""
    if "-s " in options or "-D " in options or "atomic" in program:
        sizes = ""
    elif "_lat" in program and options not in ("", "-e"):
        sizes = LATENCY if "UD" not in options else "-s 2048 -n 200"
    else:
        sizes = SIZES
    return " ".join(f"{program} {options} {sizes} -F".split())


def cases(everything):
    for program, variants in MATRIX.items():
        for options in variants:
            if everything or f"{program} {options}".strip() in QUICK:
                yield command(program, options)


def start(library, line):
    return subprocess.Popen(line.split(), env={**os.environ, "LD_PRELOAD": library}, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)


def listens(port):
    """Look for a listening TCP socket (state 0A) or for a listener of softnic's connection
    manager.
    """
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as sockets:
            if any(f":{port:04X} " in line and " 0A " in line for line in sockets):
                return True
    with open("/proc/net/unix", encoding="ascii") as sockets:
        return any("@weir-softnic-cm-" in line and line.rstrip().endswith(f"-{port}")
                   for line in sockets)


def end(process, deadline):
    """Return an error message, or None."""
    try:
        output, _ = process.communicate(timeout=max(deadline - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        process.kill()
        output = process.communicate()[0] + f"\nstill runs after {PATIENCE_S} s"
        return output
    if process.returncode or "Failed" in output:
        return f"status {process.returncode}: {output}"
    return ""


def run(library, line):
    port = random.randrange(10000, 32000)
    deadline = time.monotonic() + PATIENCE_S
    server = start(library, f"{line} -p {port}")
    while not listens(port) and server.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    client = start(library, f"{line} -p {port} 127.0.0.1")
    wrong = end(client, deadline)
    if wrong:
        server.kill()
        return f"client: {wrong}\nserver: {server.communicate()[0]}"
    return end(server, deadline)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--all", action="store_true", help="the whole matrix; takes minutes")
    parser.add_argument("word", nargs="*", help="only cases whose command has it")
    options = parser.parse_intermixed_args()
    library = os.path.abspath(options.library)
    if not shutil.which("ib_write_bw"):
        print("1..0 # SKIP perftest is not installed")
        return 0  # the plan says it; under TAP, any other status is an error
    lines = [line for line in cases(options.all) if all(word in line for word in options.word)]
    print(f"1..{len(lines)}", flush=True)
    failed = 0
    for number, line in enumerate(lines, 1):
        wrong = run(library, line)
        failed += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {line}", flush=True)
        for text in wrong.splitlines():
            print(f"# {text}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
