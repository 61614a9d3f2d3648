#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A pool of real processes under random failures, from a seed.

campaign.py [--kind file|etcd] [--seed N] [--rounds N | --minutes M] [--only FAILURE]
            WEIR REGISTER

A client checks a volume with two copies as an array of registers: register.c says how. Each round
is one failure, and ends when each group has all members again: a donor is killed or stopped, the
client is killed, closed or stopped while another takes its volume, or a server of etcd dies. A
seed gives the failures and their times, though not the order of the processes' steps.

With --only, all failures are of one kind, such as kill_donor. Each round has its own client, and
its line says the longest time between two completed writes and the rebuilt bytes, and with etcd the
number of changes; the last line has the median and the worst time.

Prints one line a round and the sums. Exit status 1: a page was wrong, a request failed, or the pool
did not heal.
"""
import argparse
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

LEASE_S, PATIENCE_S = 2, 120
DONORS, GROUPS = 4, 6
STALE, NOT_OPEN = 5, 6
PRELOAD = os.environ.pop("WEIR_TEST_PRELOAD", "")


class Failed(Exception):
    pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(holds, what):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"no end after {PATIENCE_S} s: {what()}")
        time.sleep(0.05)


class Etcd:
    """Three servers. One of the three may be dead."""

    def __init__(self, folder):
        self.folder = folder
        self.ports = [(free_port(), free_port()) for _ in range(3)]
        self.processes = [None] * 3
        for i in range(3):
            self.start(i)

    def start(self, i):
        peers = ",".join(f"m{j}=http://127.0.0.1:{peer}" for j, (_, peer) in enumerate(self.ports))
        url, peer = (f"http://127.0.0.1:{port}" for port in self.ports[i])
        with open(f"{self.folder}/etcd{i}.log", "ab") as log:
            self.processes[i] = subprocess.Popen(
                ["etcd", "--name", f"m{i}", "--data-dir", f"{self.folder}/etcd{i}",
                 "--listen-client-urls", url, "--advertise-client-urls", url,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", peers, "--unsafe-no-fsync"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def revision(self):
        body = json.dumps({"key": "AA=="}).encode()
        url = f"http://127.0.0.1:{self.ports[0][0]}/v3/kv/range"
        with urllib.request.urlopen(url, body, PATIENCE_S) as answer:
            return int(json.load(answer)["header"]["revision"])

    def place(self):
        return "etcd:http://" + ",".join(f"127.0.0.1:{port}" for port, _ in self.ports) + "/p"


class World:
    def __init__(self, args, folder, rng):
        self.args, self.folder, self.rng = args, folder, rng
        self.processes = []
        self.etcd = Etcd(folder) if args.kind == "etcd" else None
        self.pool = self.etcd.place() if self.etcd else f"file:{folder}/p"
        self.donors = {}
        self.client, self.clients = None, 0
        self.sums = {"reads": 0, "writes": 0, "torn": 0, "failovers": 0, "missed_writes": 0,
                     "mismatches": 0, "copied_bytes": 0}
        until(lambda: not self.weir("create", "--lease", str(LEASE_S), "--replace-after", "2",
                                    "--groups", str(GROUPS), self.pool).returncode,
              lambda: "no pool")
        for name in "abcde"[:DONORS]:
            self.start_donor(name, "127.0.0.1:0")
        until(lambda: not self.weir("volume", "create", "--extent", "256K", self.pool, "v",
                                    "6M").returncode, lambda: "no volume")
        self.client = self.start_client()

    def weir(self, *args):
        return subprocess.run([self.args.weir, "pool", *args], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE_S)

    def spawn(self, argv, **kwargs):
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   text=True, **kwargs)
        self.processes.append(process)
        return process

    def start_donor(self, name, listen):
        with open(f"{self.folder}/donor-{name}.log", "ab") as log:
            process = self.spawn(
                [self.args.weir, "serve", "--device", "softnic", "--memory", "24M", "--listen",
                 listen, "--pool", self.pool, "--name", name, "--domain", "r" + name], stderr=log)
        line = process.stdout.readline()
        if not line.startswith("ready "):
            return False
        self.donors[name] = process, line.split()[1]
        return True

    def restart_donor(self, name):
        # The name may be taken until the old lease is over.
        until(lambda: self.start_donor(name, self.donors[name][1]), lambda: "donor " + name)

    def launch_client(self):
        self.clients += 1
        seed = str(self.rng.randrange(1 << 30))
        with open(f"{self.folder}/client.log", "ab") as log:
            return self.spawn([self.args.register, self.pool + "/v", f"{self.folder}/log",
                               "100000", seed], stderr=log,
                              env=dict(os.environ, LD_PRELOAD=PRELOAD))

    def start_client(self):
        """The claim of the last client may still stand: then it is tried again."""
        found = []

        def is_open():
            client = self.launch_client()
            if client.stdout.readline() == "open\n":
                found.append(client)
            elif client.wait(PATIENCE_S) != NOT_OPEN:
                raise Failed(f"client: exit status {client.returncode}")
            return found
        until(is_open, lambda: "no client: " + self.log("client"))
        return found[0]

    def end_client(self, client, status):
        line = client.stdout.read()
        if client.wait(PATIENCE_S) != status:
            raise Failed(f"client: exit status {client.returncode}: {self.log('client')}")
        counts = json.loads(line)
        for key in self.sums:
            self.sums[key] += counts[key]
        return counts

    def log(self, name):
        with open(f"{self.folder}/{name}.log", encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def is_whole(self):
        if self.client and self.client.poll() is not None:
            self.end_client(self.client, 0)
            raise Failed("the client has ended")
        done = self.weir("status", "--json", self.pool)
        return not done.returncode and json.loads(done.stdout)["whole"] == GROUPS

    def heal(self):
        until(self.is_whole, lambda: self.weir("status", self.pool).stdout)

    def pause(self, longest=0.5):
        time.sleep(self.rng.random() * longest)

    # The failures.

    def kill_donor(self):
        name = self.rng.choice(sorted(self.donors))
        process = self.donors[name][0]
        process.kill()
        process.wait()
        self.pause(3)
        self.restart_donor(name)
        return name

    def stop_donor(self):
        name = self.rng.choice(sorted(self.donors))
        process = self.donors[name][0]
        process.send_signal(signal.SIGSTOP)
        self.pause(3 * LEASE_S)
        process.send_signal(signal.SIGCONT)
        return name

    def kill_client(self):
        self.client.kill()
        self.client.wait()
        self.client = self.start_client()

    def close_client(self):
        self.client.terminate()
        self.end_client(self.client, 0)
        self.client = self.start_client()

    def take_over(self):
        """The stopped client has requests under way, which must not land afterwards."""
        old = self.client
        old.send_signal(signal.SIGSTOP)
        self.client = self.start_client()
        self.pause()
        old.send_signal(signal.SIGCONT)
        self.end_client(old, STALE)

    def kill_client_and_donor(self):
        self.client.kill()
        self.client.wait()
        name = self.kill_donor()
        self.client = self.start_client()
        return name

    def rebuild_without_client(self):
        """Donors rebuild, to the end or until a client comes in the middle."""
        self.client.terminate()
        self.end_client(self.client, 0)
        self.client = None
        name = self.kill_donor()
        if self.rng.random() < 0.5:
            self.heal()
        else:
            self.pause(2 * LEASE_S)
        self.client = self.start_client()
        return name

    def kill_etcd(self):
        i = self.rng.randrange(3)
        self.etcd.processes[i].kill()
        self.etcd.processes[i].wait()
        self.pause(2)
        self.etcd.start(i)
        return f"server {i}"

    def stop_etcd(self):
        for process in self.etcd.processes:
            process.send_signal(signal.SIGSTOP)
        self.pause(2)
        for process in self.etcd.processes:
            process.send_signal(signal.SIGCONT)

    def round(self):
        failures = ["kill_donor"] * 3 + ["stop_donor"] * 3 + [
            "kill_client", "close_client", "take_over", "take_over", "kill_client_and_donor",
            "rebuild_without_client", "rebuild_without_client"]
        if self.etcd:
            failures += ["kill_etcd", "stop_etcd"]
        failure = self.args.only or self.rng.choice(failures)
        self.pause()
        detail = getattr(self, failure)()
        self.heal()
        return f"{failure} {detail or ''}".strip()

    def measured_round(self, gaps):
        before = self.etcd.revision() if self.etcd else 0
        what = self.round()
        changes = self.etcd.revision() - before if self.etcd else "?"
        self.client.terminate()
        counts = self.end_client(self.client, 0)
        self.client = self.start_client()
        gaps.append(counts["gap_max_ms"])
        return (f"{what}: no write for {gaps[-1]} ms, {counts['copied_bytes']} bytes rebuilt, "
                f"{changes} changes of the map")

    def finish(self):
        self.client.terminate()
        self.end_client(self.client, 0)

    def close(self):
        processes = self.processes + (self.etcd.processes if self.etcd else [])
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=["file", "etcd"], default="file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--only")
    parser.add_argument("weir")
    parser.add_argument("register")
    return parser.parse_args()


def run(args):
    folder = tempfile.mkdtemp(prefix="weir-campaign-")
    rng, begin, rounds = random.Random(args.seed), time.monotonic(), 0
    world, gaps = None, []
    try:
        world = World(args, folder, rng)
        while (rounds < args.rounds if args.minutes is None else
               time.monotonic() - begin < 60 * args.minutes):
            start = time.monotonic()
            what = world.measured_round(gaps) if args.only else world.round()
            rounds += 1
            print(f"seed {args.seed} round {rounds}: {what}, whole after "
                  f"{time.monotonic() - start:.1f} s", flush=True)
        world.finish()
        if gaps:
            print(f"no write for {statistics.median(gaps)} ms in the median, {max(gaps)} at worst")
        print(f"seed {args.seed}: {rounds} rounds, {world.clients} clients, {world.sums}")
    except Failed as failure:
        print(f"FAILED seed {args.seed} round {rounds + 1}: {failure}")
        if world:
            for name in world.donors:
                print(f"donor {name}: {world.log('donor-' + name)}")
        return 1
    finally:
        if world:
            world.close()
        shutil.rmtree(folder, True)
    return 0


def main():
    args = parse()
    if args.kind == "etcd" and not shutil.which("etcd"):
        print("etcd is not installed")
        return 77
    return run(args)


if __name__ == "__main__":
    sys.exit(main())
