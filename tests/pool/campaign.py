#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A pool of real processes under random failures, from a seed.

campaign.py [--kind file|etcd|hosts] [--scheme SCHEME] [--seed N] [--rounds N | --minutes M]
            [--only FAILURE] [--lease SECONDS] [--then CHECKER] WEIR REGISTER

A client checks a volume, with two copies or another scheme, as an array of registers: register.c
says how. history.c in its place records what clients do, and a CHECKER judges the logs of all
volumes at the end: linear_test.py. Each round is one failure, and ends when each group has all
members again: a donor is killed or stopped, as many donors as the scheme bears are killed at once,
a client is killed, closed or stopped while another takes its volume, or a server of etcd dies. A
seed gives the failures and their times, though not the order of the processes' steps.

The kind says where the map is, and where the processes are: on this host with a file or etcd, or on
hosts of their own, with etcd, two clients, a mount, and failures of the network besides: places.py
and tree.py.

With --only, all failures are of one kind, such as kill_donor. Each round has its own client, and
its line says the longest time between two completed writes and the rebuilt bytes, and with etcd the
number of changes; the last line has the median and the worst time.

Prints one line a round and the sums. Exit status 1: a page was wrong, a request failed, or the pool
did not heal.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

import places

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.support.patience import look  # noqa: E402

PATIENCE_S = 120
GROUPS = 6
STALE, NOT_OPEN = 5, 6
PRELOAD = os.environ.pop("WEIR_TEST_PRELOAD", "")


class Failed(Exception):
    pass


def parts_of(scheme):
    """How many parts of a scheme have data, and how many may be lost."""
    kind, numbers = scheme.split("=")
    return (1, int(numbers) - 1) if kind == "copies" else tuple(map(int, numbers.split("+")))


def until(holds, what):
    end = time.monotonic() + PATIENCE_S
    while not look(holds, 0.05):
        if time.monotonic() > end:
            raise Failed(f"no end after {PATIENCE_S} s: {what()}")


class Etcd:
    """Three servers. One of the three may be dead."""

    def __init__(self, folder, place):
        self.folder, self.place = folder, place
        self.addresses = [place.etcd(i) for i in range(3)]
        self.processes = [None] * 3
        for i in range(3):
            self.start(i)

    def start(self, i):
        peers = ",".join(f"m{j}=http://{address}:{peer}"
                         for j, (address, _, peer) in enumerate(self.addresses))
        address, *ports = self.addresses[i]
        url, peer = (f"http://{address}:{port}" for port in ports)
        with open(f"{self.folder}/etcd{i}.log", "ab") as log:
            self.processes[i] = subprocess.Popen(
                self.place.on(
                    f"etcd{i}", "etcd", "--name", f"m{i}", "--data-dir", f"{self.folder}/etcd{i}",
                    "--listen-client-urls", url, "--advertise-client-urls", url,
                    "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                    "--initial-cluster", peers, "--unsafe-no-fsync"),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def revision(self):
        address, port, _ = self.addresses[0]
        url = f"http://{address}:{port}/v3/kv/range"
        return int(self.place.post(url, json.dumps({"key": "AA=="}))["header"]["revision"])

    def pool(self):
        return "etcd:http://" + ",".join(f"{address}:{port}"
                                         for address, port, _ in self.addresses) + "/p"


class Client:
    """Programs that have one volume, one after the other. They share a log of its pages."""

    def __init__(self, world, number):
        self.world, self.name, self.volume = world, f"client{number}", f"v{number}"
        self.process = None

    def launch(self):
        world = self.world
        world.programs += 1
        seed = str(world.seeds.randrange(1 << 30))
        with open(f"{world.folder}/{self.name}.log", "ab") as log:
            return world.spawn(world.place.on(
                self.name, world.args.register, f"{world.pool}/{self.volume}",
                f"{world.folder}/{self.volume}", "100000", seed,
                *([world.place.key] if world.place.key else []), LD_PRELOAD=PRELOAD), stderr=log)

    def start(self):
        """The claim of the last program may still stand: then it is tried again."""
        self.process = None

        def is_open():
            process = self.launch()
            if process.stdout.readline() == "open\n":
                self.process = process
            elif process.wait(PATIENCE_S) != NOT_OPEN:
                raise Failed(f"{self.name}: exit status {process.returncode}")
            return self.process
        until(is_open, lambda: f"{self.name} does not open: " + self.world.log(self.name))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.process.terminate()
        return self.end(self.process, 0)

    def end(self, process, status):
        line = process.stdout.read()
        if process.wait(PATIENCE_S) != status:
            raise Failed(f"{self.name}: exit status {process.returncode}: "
                         f"{self.world.log(self.name)}")
        counts = json.loads(line)
        for key in self.world.sums:
            self.world.sums[key] += counts.get(key, 0)
        return counts

    def check(self):
        if self.process and self.process.poll() is not None:
            self.end(self.process, 0)
            raise Failed(f"{self.name} has ended")


class Mount:
    """A mount of a volume of files with a program that changes the files: tree.py."""

    VOLUME = "files"

    def __init__(self, world, host):
        self.world, self.name = world, host
        self.point, self.model = f"{world.folder}/point", f"{world.folder}/model"
        self.mount = self.process = None
        os.mkdir(self.point)

    def attach(self):
        world = self.world
        with open(f"{world.folder}/mount.log", "ab") as log:
            self.mount = world.spawn(world.place.on(
                self.name, world.args.weir, "mount", "--device", "softnic", "--foreground",
                "--key", world.place.key, f"{world.pool}/{self.VOLUME}", self.point), stderr=log)
        until(lambda: self.mount.poll() is not None or not subprocess.run(
            world.place.on(self.name, "mountpoint", "--quiet", self.point), check=False).returncode,
              lambda: "no mount: " + world.log("mount"))
        if self.mount.poll() is not None:
            raise Failed("mount: " + world.log("mount"))

    def detach(self):
        self.mount.terminate()
        if self.mount.wait(PATIENCE_S):
            raise Failed("unmounting: " + self.world.log("mount"))

    def run(self, *seed):
        with open(f"{self.world.folder}/tree.log", "ab") as log:
            return self.world.spawn(self.world.place.on(
                self.name, sys.executable, str(pathlib.Path(__file__).parent / "tree.py"),
                self.point, self.model, *seed), stderr=log)

    def start(self):
        self.attach()
        self.process = self.run(str(self.world.seeds.randrange(1 << 30)))
        if self.process.stdout.readline() != "open\n":
            self.end()

    def end(self):
        counts = self.process.stdout.read()
        if self.process.wait(PATIENCE_S):
            raise Failed(f"files: exit status {self.process.returncode}: {self.world.log('tree')}")
        return json.loads(counts)

    def close(self):
        """Another mount must find the same files."""
        self.process.terminate()
        counts = self.end()
        self.detach()
        self.attach()
        self.process = self.run()
        self.end()
        self.detach()
        for key in "calls", "gap_max_ms":
            self.world.sums[key] = max(self.world.sums.get(key, 0), counts[key])

    def check(self):
        if self.process.poll() is not None:
            self.end()
            raise Failed("the program that changes files has ended")


class World:
    def __init__(self, args, folder, place, rng):
        self.args, self.folder, self.place, self.rng = args, folder, place, rng
        self.seeds = random.Random(args.seed)  # for programs: how many start depends on time
        self.failure, self.error = "start", ""
        self.processes = []
        self.etcd = Etcd(folder, place) if args.kind != "file" else None
        self.pool = self.etcd.pool() if self.etcd else f"file:{folder}/p"
        self.donors = {}
        self.data, self.spare = parts_of(args.scheme)
        self.programs = 0
        self.sums = {"reads": 0, "writes": 0, "torn": 0, "failovers": 0, "missed_writes": 0,
                     "mismatches": 0, "copied_bytes": 0}
        until(lambda: not self.weir("create", "--lease", str(self.args.lease), "--replace-after",
                                    "2", "--groups", str(GROUPS), self.pool).returncode,
              lambda: "no pool: " + self.error)
        for name in "abcdefgh"[:max(place.DONORS, self.data + self.spare)]:
            if not self.start_donor(name, place.listen(name)):
                raise Failed("donor " + self.log("donor-" + name))
        self.clients = [Client(self, i) for i in range(place.CLIENTS)]
        for client in self.clients:
            until(lambda: not self.weir("volume", "create", "--extent", "256K", "--scheme",
                                        args.scheme, self.pool, client.volume, "6M").returncode,
                  lambda: "no volume: " + self.error)
            client.start()
        self.mount = None
        if place.FILES:
            until(lambda: not self.weir("volume", "create", "--files", "--extent", "256K",
                                        "--scheme", f"copies={self.spare + 1}", self.pool,
                                        Mount.VOLUME, place.FILES).returncode,
                  lambda: "no volume of files: " + self.error)
            self.mount = Mount(self, self.clients[0].name)
            self.mount.start()

    def weir(self, *args):
        done = subprocess.run(self.place.on("operator", self.args.weir, "pool", *args),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE_S)
        self.error = done.stderr
        return done

    def spawn(self, argv, **kwargs):
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   text=True, **kwargs)
        self.processes.append(process)
        return process

    def start_donor(self, name, listen):
        key = ["--key", self.place.key] if self.place.key else []
        with open(f"{self.folder}/donor-{name}.log", "ab") as log:
            process = self.spawn(self.place.on(
                name, self.args.weir, "serve", "--device", "softnic", "--memory",
                self.place.MEMORY, "--listen", listen, *key, "--pool", self.pool,
                "--name", name, "--domain", "r" + name), stderr=log)
        line = process.stdout.readline()
        if not line.startswith("ready "):
            return False
        self.donors[name] = process, line.split()[1]
        return True

    def restart_donor(self, name):
        # The name may be taken until the old lease is over.
        until(lambda: self.start_donor(name, self.donors[name][1]), lambda: "donor " + name)

    def log(self, name):
        with open(f"{self.folder}/{name}.log", encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def is_whole(self):
        for client in self.clients:
            client.check()
        if self.mount:
            self.mount.check()
        done = self.weir("status", "--json", self.pool)
        if done.returncode:
            return False
        status = json.loads(done.stdout)  # a mount's volume has groups of its own scheme
        return status["whole"] == len(status["groups"]) >= GROUPS

    def heal(self):
        until(self.is_whole, lambda: self.weir("status", self.pool).stdout)

    def pause(self, longest=0.5):
        time.sleep(self.rng.random() * longest)

    def let_leases_end(self):
        """A donor that was silent may lose its lease now, and the next failure is another's."""
        time.sleep(self.args.lease)

    # The failures.

    def kill_donor(self):
        name = self.rng.choice(sorted(self.donors))
        process = self.donors[name][0]
        process.kill()
        process.wait()
        self.pause(3)
        self.restart_donor(name)
        return name

    def kill_donors(self):
        """As many as the scheme bears, at once."""
        names = self.rng.sample(sorted(self.donors), self.spare)
        for name in names:
            self.donors[name][0].kill()
        for name in names:
            self.donors[name][0].wait()
        self.pause(3)
        for name in names:
            self.restart_donor(name)
        return " ".join(names)

    def stop_donor(self):
        name = self.rng.choice(sorted(self.donors))
        process = self.donors[name][0]
        process.send_signal(signal.SIGSTOP)
        self.pause(3 * self.args.lease)
        process.send_signal(signal.SIGCONT)
        self.let_leases_end()
        return name

    def kill_client(self):
        client = self.rng.choice(self.clients)
        client.kill()
        client.start()
        return client.name

    def close_client(self):
        client = self.rng.choice(self.clients)
        client.close()
        client.start()
        return client.name

    def take_over(self):
        """The stopped program has requests under way, which must not land afterwards."""
        client = self.rng.choice(self.clients)
        old = client.process
        old.send_signal(signal.SIGSTOP)
        client.start()
        self.pause()
        old.send_signal(signal.SIGCONT)
        client.end(old, STALE)
        return client.name

    def kill_client_and_donor(self):
        client = self.rng.choice(self.clients)
        client.kill()
        name = self.kill_donor()
        client.start()
        return f"{client.name} {name}"

    def rebuild_without_client(self):
        """Donors rebuild, to the end or until a client comes in the middle."""
        for client in self.clients:
            client.close()
            client.process = None
        name = self.kill_donor()
        if self.rng.random() < 0.5:
            self.heal()
        else:
            self.pause(2 * self.args.lease)
        for client in self.clients:
            client.start()
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
        self.let_leases_end()

    # Failures of the network.

    def cut_donor(self):
        """Its host may have a server of etcd, too."""
        name = self.rng.choice(sorted(self.donors))
        self.place.cut(name)
        self.pause(3 * self.args.lease)
        self.place.join(name)
        self.let_leases_end()
        return name

    def cut_client(self):
        """Short enough for its claim: its requests wait."""
        client = self.rng.choice(self.clients)
        self.place.cut(client.name)
        self.pause(self.args.lease / 2)
        self.place.join(client.name)
        return client.name

    def split(self):
        """A few donors' hosts, perhaps with most of etcd, are parted from all others."""
        hosts = self.rng.sample([f"h{i}" for i in range(1, 7)], self.rng.choice([1, 2]))
        self.place.split(hosts)
        self.pause(3 * self.args.lease)
        self.place.split([])
        self.let_leases_end()
        return " ".join(hosts)

    def round(self):
        failures = ["kill_donor"] * 3 + ["stop_donor"] * 3 + [
            "kill_client", "close_client", "take_over", "take_over", "kill_client_and_donor",
            "rebuild_without_client", "rebuild_without_client"]
        if self.spare > 1:
            failures += ["kill_donors"] * 3
        if self.etcd:
            failures += ["kill_etcd", "stop_etcd"]
        if self.args.kind == "hosts":
            failures += ["cut_donor"] * 4 + ["cut_client"] * 2 + ["split"] * 3
        self.failure = self.args.only or self.rng.choice(failures)
        self.pause()
        detail = getattr(self, self.failure)()
        self.heal()
        return f"{self.failure} {detail or ''}".strip()

    def measured_round(self, gaps):
        before = self.etcd.revision() if self.etcd else 0
        what = self.round()
        changes = self.etcd.revision() - before if self.etcd else "?"
        counts = [client.close() for client in self.clients]
        for client in self.clients:
            client.start()
        gaps.append(max(count["gap_max_ms"] for count in counts))
        return (f"{what}: no write for {gaps[-1]} ms, "
                f"{sum(count['copied_bytes'] for count in counts)} bytes rebuilt, "
                f"{changes} changes of the map")

    def finish(self):
        for client in self.clients:
            client.close()
        if self.mount:
            self.mount.close()
        if self.args.then:
            done = subprocess.run(
                [self.args.then, *(f"{self.folder}/{client.volume}" for client in self.clients)],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            print(done.stdout, end="", flush=True)
            if done.returncode:
                raise Failed(f"{self.args.then}: exit status {done.returncode}: {done.stderr}")

    def close(self):
        processes = self.processes + (self.etcd.processes if self.etcd else [])
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=["file", "etcd", "hosts"], default="file")
    parser.add_argument("--scheme", default="copies=2")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--only")
    parser.add_argument("--then")
    parser.add_argument("--lease", type=float, default=2)
    parser.add_argument("weir")
    parser.add_argument("register")
    return parser.parse_args()


def run(args):
    folder = tempfile.mkdtemp(prefix="weir-campaign-")
    rng, begin, rounds = random.Random(args.seed), time.monotonic(), 0
    place = world = None
    gaps = []
    try:
        place = (places.Hosts if args.kind == "hosts" else places.Loopback)(args.weir, folder)
        world = World(args, folder, place, rng)
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
        print(f"seed {args.seed}: {rounds} rounds, {world.programs} programs, {world.sums}")
    except unittest.SkipTest as reason:
        print(reason)
        return 77
    except Failed as failure:
        print(f"FAILED seed {args.seed} round {rounds + 1}, {world.failure if world else 'start'}: "
              f"{failure}")
        if world:
            for name in world.donors:
                print(f"donor {name}: {world.log('donor-' + name)}")
        return 1
    finally:
        if world:
            world.close()
        if place:
            place.close()
        shutil.rmtree(folder, True)
    return 0


def main():
    args = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the processes end, too
    if args.kind != "file" and not shutil.which("etcd"):
        print("etcd is not installed")
        return 77
    return run(args)


if __name__ == "__main__":
    sys.exit(main())
