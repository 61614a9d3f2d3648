#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run twenty unmodified programs on softnic over and over, or kill one side of each in the middle.

repeat.py LIBRARY [--kill] [--runs N] [--jobs N] [NAME ...]

A run is a server and a client. Without --kill both must succeed. With --kill one side, by turns,
ends by SIGKILL at a random moment. Then the other side must end by itself, unless its transport
tells nobody of a death. A victim that ended before its kill does not count: the run is repeated,
with half the time until the kill. No socket, process or file may be left. A pair of programs that
nobody kills runs beside each of these runs, and must succeed with verified bytes.

Programs that are not installed are left out. Run it in a network namespace of its own, so that it
finds no names of other programs: unshare --net.
"""
import argparse
import collections
import concurrent.futures
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE_S = 120
KILL_AFTER_S = 1.5  # at most; the longest of these programs needs about that
NEXT_CLIENT_S = 10  # a server that had its client ends sooner
TCP_LISTEN = "0A"
NAMES = "@weir-softnic-"

# The server, the client, and the sign of a listening server: a TCP port, or a name of rdma_cm.
# {port} is free. "quiet": nothing tells this side that the other one has died, on any device.
# "serves": the server stays after its client. "awaits": it awaits a number of connections or
# messages, also of a dead client.
Program = collections.namedtuple("Program", "server client listens quiet serves awaits",
                                 defaults=("tcp", False, False, False))


def perftest(command, **more):
    command += " -p {port}"
    return Program(command, command + " 127.0.0.1", **more)


PROGRAMS = {
    "ib_write_bw": perftest("ib_write_bw -n 1000"),
    "ib_read_bw": perftest("ib_read_bw -n 1000"),
    "ib_send_bw": perftest("ib_send_bw -n 1000 -e"),
    "ib_atomic_bw": perftest("ib_atomic_bw -n 1000"),
    "ib_write_lat": perftest("ib_write_lat -n 1000", quiet=True),  # polls its memory
    "ib_read_lat": perftest("ib_read_lat -n 1000"),
    "ib_send_lat": perftest("ib_send_lat -n 1000 --use-srq", quiet=True),  # may wait to receive
    "ibv_rc_pingpong": perftest("ibv_rc_pingpong -n 1000", quiet=True),
    "ibv_uc_pingpong": perftest("ibv_uc_pingpong -n 1000", quiet=True),
    "ibv_ud_pingpong": perftest("ibv_ud_pingpong -g 0 -n 1000", quiet=True),
    "ibv_srq_pingpong": perftest("ibv_srq_pingpong -n 1000", quiet=True),
    "ibv_xsrq_pingpong": perftest("ibv_xsrq_pingpong -n 1000", quiet=True),
    "rping": Program("rping -s -p {port} -C 200 -V -S 1000",
                     "rping -c -a 127.0.0.1 -p {port} -C 200 -V -S 1000", "cm"),
    "ucmatose": Program("ucmatose -p {port} -c 8", "ucmatose -s 127.0.0.1 -p {port} -c 8", "cm",
                        awaits=True),
    "rdma_client": Program("rdma_server -p {port}", "rdma_client -s 127.0.0.1 -p {port}", "cm"),
    "cmtime": Program("cmtime -p {port} -c 50", "cmtime -s 127.0.0.1 -p {port} -c 50", "cm",
                      serves=True),
    "rstream": Program("rstream -p {port} -S 5000 -I 20 -C 4 -T v",
                       "rstream -s 127.0.0.1 -p {port} -S 5000 -I 20 -C 4 -T v", "cm"),
    "riostream": Program("riostream -p {port} -S 5000 -I 20 -C 4 -T v",
                         "riostream -s 127.0.0.1 -p {port} -S 5000 -I 20 -C 4 -T v", "cm",
                         quiet=True),  # polls its memory
    "fi_pingpong": Program("fi_pingpong -p verbs -e msg -B {port} -I 100",
                           "fi_pingpong -p verbs -e msg -P {port} -I 100 127.0.0.1"),
    "ucx_perftest": Program("ucx_perftest -p {port}",
                            "ucx_perftest -p {port} -t tag_bw -n 1000 127.0.0.1",
                            awaits=True),
    "qperf": Program("qperf -lp {port}", "qperf -lp {port} -t 1 127.0.0.1 rc_bw", serves=True),
}
BYSTANDER = PROGRAMS["rping"]
SETTINGS = {"UCX_TLS": "rc_v,self"}


def is_listening(port, how):
    if how == "tcp":
        for path in ("/proc/net/tcp", "/proc/net/tcp6"):
            with open(path, encoding="ascii") as sockets:
                for line in sockets:
                    fields = line.split()
                    if fields[1].endswith(f":{port:04X}") and fields[3] == TCP_LISTEN:
                        return True
        return False
    return any(name.startswith(f"{NAMES}cm-") and name.endswith(f"-{port}") for name in names())


def names():
    """softnic's abstract sockets."""
    with open("/proc/net/unix", encoding="ascii", errors="replace") as sockets:
        return [line.split()[-1] for line in sockets if NAMES in line]


class Run:
    """A server and its client. An error is a line of text, or nothing."""
    ports = itertools.count(random.randrange(10000, 12000))
    lock = threading.Lock()

    def __init__(self, library, name, program):
        self.library, self.name, self.program = library, name, program
        with self.lock:
            self.port = 10000 + next(self.ports) % 20000
        self.processes, self.outputs = [], []
        self.has_killed = False

    def start(self, command):
        output = tempfile.TemporaryFile()
        self.outputs.append(output)
        self.processes.append(subprocess.Popen(
            command.format(port=self.port).split(), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **SETTINGS, "LD_PRELOAD": self.library}))
        return self.processes[-1]

    def begin(self):
        server = self.start(self.program.server)
        deadline = time.monotonic() + PATIENCE_S
        while not is_listening(self.port, self.program.listens):
            if server.poll() is not None or time.monotonic() > deadline:
                return "the server does not listen"
            time.sleep(0.01)
        self.start(self.program.client)
        return None

    def succeed(self):
        error = self.begin()
        ends = self.processes[1:] if self.program.serves else reversed(self.processes)
        for process in [] if error else ends:
            error = error or self.end_of(process)
            if not error and process.returncode:
                error = f"{process.args[0]} ended with {process.returncode}"
        return error

    def survive(self, victim, kill_after_s):
        """Kill one side; the other one ends by itself."""
        error = self.begin()
        if error:
            return error
        time.sleep(random.uniform(0, kill_after_s))
        other = self.processes[1 - victim]
        self.processes[victim].kill()
        code = self.processes[victim].wait()
        self.has_killed = code == -signal.SIGKILL
        if not self.has_killed and code:
            return f"{self.processes[victim].args[0]} ended with {code} before its kill"
        stays = self.program.serves or self.program.awaits
        if self.program.quiet or (stays and victim == 1):
            return None
        return self.end_of_server(other) if victim == 1 else self.end_of(other)

    def end_of_server(self, server):
        """A client that was killed before it connected leaves its server to the next one."""
        try:
            server.wait(NEXT_CLIENT_S)
        except subprocess.TimeoutExpired:
            return self.end_of(self.start(self.program.client)) or self.end_of(server)
        return None

    @staticmethod
    def end_of(process):
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            return f"{' '.join(process.args)} does not end"
        return None

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def said(self):
        text = ""
        for output in self.outputs:
            output.seek(0)
            text += output.read()[-2000:].decode(errors="replace")
            output.close()
        return text


def attempt(library, name, number, kill_after_s):
    """With a time, kill. Return an error or nothing, and whether the run counts."""
    run = Run(library, name, PROGRAMS[name])
    beside = Run(library, "bystander", BYSTANDER) if kill_after_s else None
    try:
        if not beside:
            error = run.succeed()
        else:
            error = beside.begin() or run.survive(number % 2, kill_after_s)
            for process in beside.processes[::-1]:
                error = error or Run.end_of(process)
                if not error and process.returncode:
                    error = "the bystander failed"
    finally:
        run.close()
        if beside:
            beside.close()
    said = run.said() + (beside.said() if beside else "")
    if error:
        print(f"run {number}, {name}: {error}\n{said}", flush=True)
    return error, run.has_killed or not beside


def once(library, name, number, kills):
    for early in itertools.count():
        error, counts = attempt(library, name, number, kills and KILL_AFTER_S / 2 ** early)
        if error or counts:
            return name, error, early


def litter():
    """Files and names that are left when all programs have ended."""
    files = [os.path.join(folder, file) for folder in ("/dev/shm", "/tmp")
             for file in os.listdir(folder) if "softnic" in file]
    deadline = time.monotonic() + PATIENCE_S
    while names() and time.monotonic() < deadline:
        time.sleep(0.1)  # the kernel closes the sockets of a killed process a little later
    return files + names()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--runs", type=int, default=0, help="default: one of each program")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    library = os.path.abspath(options.library)
    chosen = [name for name, program in PROGRAMS.items()
              if (not options.names or name in options.names) and
              shutil.which(program.server.split()[0])]
    if not chosen:
        print("none of the programs is installed")
        sys.exit(77)
    before, begin = set(litter()), time.monotonic()
    runs = options.runs or len(chosen)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        # Each program meets each victim: the number of programs may be even.
        work = [pool.submit(once, library, chosen[number % len(chosen)],
                            number + number // len(chosen), options.kill)
                for number in range(runs)]
        results = [future.result() for future in work]
    failed = collections.Counter(name for name, error, _ in results if error)
    early = sum(result[2] for result in results)
    left = sorted(set(litter()) - before)
    print(f"{runs} runs of {len(chosen)} programs in {time.monotonic() - begin:.0f} s: "
          f"{sum(failed.values())} failed {dict(failed) or ''}")
    if early:
        print(f"not counted: {early} victims had ended before their kill")
    if left:
        print("left behind:", *left, sep="\n  ")
    sys.exit(bool(failed or left))


if __name__ == "__main__":
    main()
