#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run perftest's unmodified programs on softnic.

perftest.py LIBRARY [--far WEIR] [--all] [WORD...]

The library is preloaded. By default one case of each kind runs; with words, only cases whose
command has all words. Each case is a server and its client: on this host, or with --far on two
hosts of weir lab net.
"""
import argparse
import contextlib
import os
import random
import shutil
import subprocess
import sys
import time

PATIENCE_S = 120
SIZES = "-a -n 50"  # 2 B to 8 MiB
FAR_SIZES = "-a -n 5"
FAR_LIST_SIZES = "-a -n 10"  # a multiple of the length of a list
FAR_SIZE = "-s 131073 -n 100"
LISTENING = "00010000"
LATENCY = "-s 131072 -n 200"  # -a calibrates a clock for each size

BW = ("-b", "-q 4", "-b -q 4", "-l 10", "-t 1", "-t 512 -Q 64", "-R -q 4", "-R -b",
      "--mr_per_qp -q 2", "--report-both -b", "--reversed", "-N -D 1")
ANY = ("", "-R", "-z -R", "-m 1024", "--use_old_post_send", "-S 3", "-u 20")
EVENTS = ("-e", "-e -R")
INLINE = ("-I 64 -s 64", "-I 512 -s 512", "-I 64 -R")
XRC = ("-c XRC", "-c XRC -q 4")
SEND = ("--use-srq", "-r 16 -t 16", "-R --use-srq")
UNRELIABLE = ("-c UC", "-c UC -I 64")
DATAGRAM = ("-c UD", "-c UD -R", "-c UD -I 64", "-c UD -e", "-c UD --use-srq")
NEAR_ONLY = "-c XRC"

MATRIX = {
    "ib_write_bw": ANY + BW + INLINE + UNRELIABLE + XRC + ("-c UC -b -q 4",),
    "ib_write_lat": ANY + INLINE + UNRELIABLE,
    "ib_read_bw": ANY + BW + EVENTS + XRC + ("--odp","-o 1", "-e -b -q 2"),
    "ib_read_lat": ANY + EVENTS + ("-o 1",),
    "ib_send_bw": ANY + BW + EVENTS + INLINE + SEND + UNRELIABLE + DATAGRAM + XRC +
                  ("-e -b -q 2", "--use-srq -q 4", "--use-srq -q 4 -b -e", "-c UC -e", "-c UD -q 4",
                   "-c UD -b", "-c UD -g -x 0 -s 2048", "-c UC --use-srq"),
    "ib_send_lat": ANY + EVENTS + INLINE + SEND + UNRELIABLE + DATAGRAM + XRC + ("-c UD -g",),
    "ib_atomic_bw": ANY + BW + EVENTS + XRC + ("-A CMP_AND_SWAP", "-o 1"),
    "ib_atomic_lat": ANY + EVENTS + ("-A CMP_AND_SWAP",),
}
QUICK = ("ib_write_bw -b -q 4", "ib_write_lat -I 64 -s 64", "ib_read_bw -e -b -q 2",
         "ib_read_lat -R", "ib_send_bw --mr_per_qp -q 2", "ib_send_lat -e -R",
         "ib_atomic_bw -A CMP_AND_SWAP", "ib_atomic_lat",
         "ib_send_bw -c XRC -q 4", "ib_read_bw --odp")


def command(program, options, all_sizes):
    """A size or a duration excludes -a."""
    if "-s " in options or "-D " in options or "atomic" in program:
        sizes = ""
    elif "_lat" in program and options not in ("", "-e"):
        sizes = LATENCY if "UD" not in options else "-s 2048 -n 200"
    elif "-l " in options and all_sizes == FAR_SIZES:
        sizes = FAR_LIST_SIZES
    else:
        sizes = all_sizes
    return " ".join(f"{program} {options} {sizes} -F".split())


def cases(everything, all_sizes=SIZES):
    for program, variants in MATRIX.items():
        for options in variants:
            if everything or f"{program} {options}".strip() in QUICK:
                yield command(program, options, all_sizes)


def listens(process, port):
    """Look for a listening TCP socket (state 0A) or for a listener of softnic's connection manager,
    where @process sees them.
    """
    def lines(table):
        try:
            with open(f"/proc/{process.pid}/net/{table}", encoding="ascii") as sockets:
                return sockets.read().splitlines()
        except OSError:  # it has ended
            return []

    return any(f":{port:04X} " in line and " 0A " in line
               for line in lines("tcp") + lines("tcp6")) or \
        any(line.split()[3] == LISTENING and "@weir-softnic-cm-" in line and
            line.endswith(f"-{port}") for line in lines("unix"))


class End:
    """A place for programs: @words before a command, the @address that others call, and perftest's
    @options."""

    def __init__(self, words, address, options=""):
        self.words, self.address, self.options = words, address, options

    def start(self, line):
        return subprocess.Popen([*self.words, *line.split()], text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def listens(self, process, port):
        return listens(process, port)


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


def pair(at, server_line, by, client_line, port):
    """Run a server @at one end, and once it listens at @port, its client @by another. Return an
    error message, or None."""
    deadline = time.monotonic() + PATIENCE_S
    server = at.start(server_line)
    while not at.listens(server, port) and server.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    client = by.start(client_line)
    wrong = end(client, deadline)
    if wrong:
        server.kill()
        return f"client: {wrong}\nserver: {server.communicate()[0]}"
    return end(server, deadline)


def run(at, by, line):
    port = random.randrange(10000, 28000)
    return pair(at, f"{line} -p {port} {at.options}",
                by, f"{line} -p {port} {by.options} {at.address}", port)


def report(results):
    """Print TAP of pairs of a name and what is wrong; return how many are."""
    failed, begin = 0, time.monotonic()
    for number, (name, wrong) in enumerate(results, 1):
        failed += bool(wrong)
        now = time.monotonic()
        print(f"{'not ok' if wrong else 'ok'} {number} - {name} # {now - begin:.1f} s", flush=True)
        begin = now
        for text in wrong.splitlines():
            print(f"# {text}", flush=True)
    return failed


@contextlib.contextmanager
def two_ends(library, weir):
    preload = ["env", f"LD_PRELOAD={library}"]
    if not weir:
        here = End(preload, "127.0.0.1")
        yield here, here
        return
    weir = os.path.abspath(weir)
    os.environ["WEIR_NET"] = f"perftest{os.getpid()}"
    net = [weir, "lab", "net"]
    up = subprocess.run([*net, "up", "2"], capture_output=True, text=True, check=False)
    if up.returncode:
        print(f"1..0 # SKIP no namespaces: {up.stderr.strip()}")
        sys.exit(0)  # the plan says it; under TAP, any other status is an error
    try:
        yield [End([*net, "run", f"h{number}", "--", *preload], f"10.77.0.{number}")
               for number in (1, 2)]
    finally:
        subprocess.run([*net, "down"], check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--far", metavar="WEIR", help="the command, for two hosts")
    parser.add_argument("--all", action="store_true", help="the whole matrix; takes minutes")
    parser.add_argument("word", nargs="*", help="only cases whose command has it")
    options = parser.parse_intermixed_args()
    if not shutil.which("ib_write_bw"):
        print("1..0 # SKIP perftest is not installed")
        return 0
    sizes = SIZES if not options.far else FAR_SIZES if options.all else FAR_SIZE
    lines = [line for line in cases(options.all, sizes)
             if all(word in line for word in options.word) and
             not (options.far and NEAR_ONLY in line)]
    with two_ends(os.path.abspath(options.library), options.far) as (at, by):
        print(f"1..{len(lines)}", flush=True)
        return 1 if report((line, run(at, by, line)) for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
