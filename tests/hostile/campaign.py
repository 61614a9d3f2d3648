#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Hostile neighbours do their worst, beside an honest client with another key.

campaign.py TARGET WEIR ATTACKER NEIGHBOUR

The target is attacked in many ways at once: by processes of this user, of another user and in
other namespaces, with a key and without. Some are stopped, or killed and replaced. The neighbour
verifies all bytes, and its calls end in time. When the attackers have gone, the target, the
neighbour and its mount have no more descriptors, threads and memory than before, but for the few
threads that softnic keeps. The target's log has no more lines than its limits allow.

By default the campaign ends when each attack was repeated a few times. SECONDS=60 makes it last for
60 seconds. Then the neighbour runs again, beside as many processes that only use the CPU. Beside
the attackers, the slowest calls may take a few milliseconds longer.
"""
import collections
import itertools
import json
import os
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

TARGET, WEIR, ATTACKER, NEIGHBOUR = sys.argv[1:5]
SECONDS = float(os.environ.get("SECONDS") or 0)
SEED = int(os.environ.get("WEIR_TEST_SEED") or 1)
PATIENCE_S = 120
ROUNDS, CALLS = 4, 100  # of each attack and of the neighbour, without SECONDS
# Threads that softnic keeps once a copy has taken long: a watching one, and two to serve in turn.
STAYING = collections.Counter({"softnic": 2, "softnic-watch": 1})
ROUNDS_MAX = 25 * ROUNDS  # then an attack leaves the CPUs to others, until it is replaced
SANITIZER = os.environ.get("WEIR_TEST_SANITIZER", "none")
# No machine is so slow; a stalled donor took longer.
P99_MS = 2000 if SANITIZER == "none" else 10000
P99_SPARE_MS = 10  # beyond what the load on the CPUs explains
# Bytes of a process's heap and stacks, in pieces. A sanitizer's notes stay; TSan's take four times
# a donor's memory.
GROWTH = {"none": 24, "thread": 1024}.get(SANITIZER, 128) << 20
LOG_LINES = 200  # in LOG_S: twice a donor's limit for an address, for each of a stranger and a key
LOG_S = 10
LENT_MAX = 4 << 20  # to the neighbour
SLOW_S = 60  # a slow descriptor is closed so late
LISTENING = "127.0.0.1:0"
random.seed(SEED)


def environment(preload=""):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("WEIR_", "LD_PRELOAD"))}
    if TARGET == "wire":
        kept["WEIR_SOFTNIC"] = "near=0"  # by UDP, as between hosts
    return dict(kept, WEIR_DEVICE="softnic", **({"LD_PRELOAD": preload} if preload else {}))


# A sanitizer keeps freed memory for a while.
os.environ["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"),
                                                    "quarantine_size_mb=4"]))
PRELOADED = environment(os.environ.get("WEIR_TEST_PRELOAD", ""))


def until(condition, what, seconds=PATIENCE_S):
    deadline = time.monotonic() + seconds
    while not (done := condition()):
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.05)
    return done


class Neighbour:
    """The honest client, until the end of its input."""

    def __init__(self, *words):
        self.process = subprocess.Popen([NEIGHBOUR, *words], stdin=subprocess.PIPE, env=PRELOADED,
                                        stdout=subprocess.PIPE, text=True)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.text = ""

    def said(self):
        while select.select([self.process.stdout], [], [], 0)[0]:
            more = self.process.stdout.read()
            if not more:
                assert self.process.wait(PATIENCE_S) == 0, "the neighbour has failed"
                break
            self.text += more
        return self.text.split("\n")[:-1]

    def calls(self):
        lines = self.said()
        return int(lines[-1]) if lines else 0

    def stop(self):
        self.process.stdin.close()
        os.set_blocking(self.process.stdout.fileno(), True)
        self.text += self.process.stdout.read()
        assert self.process.wait(PATIENCE_S) == 0, "the neighbour has failed"
        return json.loads(self.text.split("\n")[-2])


class Attacker:
    """One attack by one process, or by several in turn."""

    seeds = itertools.count(SEED)

    def __init__(self, world, name, who="same", key=None, target=None, stays=False):
        self.name, self.who, self.stays = name, who, stays  # an attack that takes long to begin
        self.counter = os.path.join(world.folder, f"rounds-{next(self.seeds)}")
        self.log = world.path("attackers.log")
        self.words = [target or world.target, world.peer, *([world.keys[key]] if key else [])]
        self.before = 0
        self.start()

    def start(self):
        with open(self.counter, "wb") as counter:
            counter.write(bytes(8))
        os.chmod(self.counter, 0o666)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [ATTACKER, self.counter, self.name, self.who, str(next(self.seeds)), *self.words],
                env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)

    def here(self):
        with open(self.counter, "rb") as counter:
            return struct.unpack("Q", counter.read(8))[0]

    def rounds(self):
        return self.before + self.here()

    def can(self):
        status = self.process.poll()
        assert status in (None, 77, -signal.SIGKILL), f"{self.name} ended with {status}"
        return status != 77

    def kill(self):
        self.process.kill()
        self.process.wait()

    def disturb(self):
        """Stops, continues or replaces the process."""
        if self.stays or not self.can():
            return
        what = random.randrange(6)
        if what < 2:
            self.process.send_signal(signal.SIGSTOP)
        elif what < 5:
            self.process.send_signal(signal.SIGCONT)
        else:
            self.before += self.here()
            self.kill()
            self.start()

    def rest(self):
        if not SECONDS and not self.stays and self.rounds() >= ROUNDS_MAX and self.can():
            self.kill()

    def enough(self):
        return not self.can() or self.rounds() >= ROUNDS


class World:
    """A target, with its processes and files."""

    peer = ""
    attacked_name = "donor"

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="weir-hostile-")
        os.chmod(self.folder, 0o711)  # attackers may be of another user
        self.processes, self.keys = [], {}
        self.open()

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *words):
        subprocess.run([WEIR, *words], check=True, env=environment(), stdout=subprocess.DEVNULL)

    def start(self, name, *words, env=None):
        log = open(self.path(f"{name}.log"), "wb")
        process = subprocess.Popen([WEIR, *words], env=env or environment(), stderr=log,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        log.close()
        self.processes.append(process)
        return process

    def ready(self, process):
        line = process.stdout.readline()
        assert line.startswith("ready "), line
        return line.split()[1]

    def donor(self):
        for name in ("a", "b", "c"):
            self.keys[name] = self.path(name)
            self.run("key", "add", "--quota", "48M", self.path("keys"), name, self.keys[name])
        self.attacked = self.start(self.attacked_name, "serve", "--listen", LISTENING,
                                   "--memory", "192M", "--keys", self.path("keys"))
        self.target = self.ready(self.attacked)

    def warm_up(self):
        """The descriptors that a target opens once, for its second client, are no leak."""
        if self.keys:
            self.run("ping", "-c", "1", "--key", self.keys["a"], self.target)

    def watched(self):
        """Processes whose use of resources must not grow."""
        return {"target": self.attacked}

    def log_lines(self):
        """Of the attacked donor or daemon."""
        with open(self.path(f"{self.attacked_name}.log"), "rb") as file:
            return sum(1 for _ in file)

    def attackers_go(self):
        """The files and regions that a key's clients left end with the key."""
        for name in self.keys.keys() & {"a", "c"}:
            self.run("key", "revoke", "--donor", str(self.attacked.pid), self.path("keys"), name)

    def close(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            status = process.wait(PATIENCE_S)
            assert status == 0, f"{process.args[1]} ended with {status}"
        shutil.rmtree(self.folder)


class Donor(World):
    def open(self):
        self.donor()

    def neighbour(self):
        return Neighbour("donor", self.target, self.keys["b"])

    def attackers(self):
        yield from (Attacker(self, name) for name in ("connects", "half-open", "garbage"))
        for name in ("half-open", "garbage", "messages", "memory", "rkeys"):
            yield Attacker(self, name, key="a")
        for who in ("user-namespace", "pid-namespace", "stranger"):
            yield Attacker(self, "messages", who, "a")
            yield Attacker(self, "connects", who)


class Files(World):
    def open(self):
        self.donor()
        self.mount_at(self.target)

    def mount_at(self, target):
        self.mounted = self.path("mounted")
        os.mkdir(self.mounted)
        self.mount = self.start("mount", "mount", "--foreground", "--key", self.keys["b"],
                                target, self.mounted)
        until(lambda: os.path.ismount(self.mounted), "the mount")

    def neighbour(self):
        return Neighbour("files", self.mounted)

    def watched(self):
        return {"target": self.attacked, "mount": self.mount}

    def attackers(self):
        for name in ("files", "names", "locks", "holes", "depth", "snapshot", "files"):
            yield Attacker(self, name, key="a")
        yield Attacker(self, "waits", key="c", stays=True)  # the others leave no memory for locks


class Pool(Files):
    """A server of files of a pool's volume. All attackers and the neighbour share the files."""

    donors = ("one", "two")

    def open(self):
        os.mkdir(self.path("map"))
        self.pool = f"file:{self.path('map')}/pool"
        # No claim ends for want of a CPU: another server would have other threads and descriptors.
        self.run("pool", "create", "--groups", "8", "--lease", "30", self.pool)
        self.add_key("pool", "regions,pool")
        for name in ("a", "b", "c"):
            self.add_key(name, "regions,files")
        at = {name: self.join(name) for name in self.donors}
        self.run("pool", "volume", "create", "--files", "--extent", "1M", self.pool, "fs", "32M")
        self.attacked_name = until(self.server, "a server of files")
        self.attacked, self.donor_address = at[self.attacked_name]
        self.target = until(self.listener, "the server's address")
        self.mount_at(f"{self.pool}/fs")

    def add_key(self, name, rights):
        self.keys[name] = self.path(name)
        self.run("key", "add", "--quota", "48M", "--rights", f"read,write,{rights}",
                 self.path("keys"), name, self.keys[name])

    def join(self, name):
        donor = self.start(name, "serve", "--listen", LISTENING, "--memory", "192M", "--keys",
                           self.path("keys"), "--pool", self.pool, "--name", name, "--domain",
                           name)
        return donor, self.ready(donor)

    def server(self):
        told = subprocess.run([WEIR, "pool", "volume", "list", "--json", self.pool], check=True,
                              env=environment(), stdout=subprocess.PIPE).stdout
        return json.loads(told)["volumes"][0].get("server")

    def listener(self):
        with open(self.path(f"{self.attacked_name}.log"), encoding="utf-8") as file:
            found = re.search(r"serves files.* address=(\S+)", file.read())
        return found and found[1]

    def warm_up(self):
        # A completion channel takes a descriptor more from the second process at once on.
        pings = [self.start(f"ping-{i}", "ping", "-c", "10", "--key", self.keys["a"],
                            self.donor_address) for i in range(2)]
        for ping in pings:
            ping.communicate()
            assert ping.returncode == 0
            self.processes.remove(ping)
        # The server of files admits the client, but lends no region.
        subprocess.run([WEIR, "ping", "-c", "1", "--key", self.keys["a"], self.target],
                       check=False, env=environment(), capture_output=True)

    def watched(self):
        return {name: process for name, process in
                zip((*self.donors, "mount"), self.processes, strict=True)}

    def attackers(self):
        for target in (self.target, self.donor_address):
            for name in ("connects", "half-open", "garbage"):
                yield Attacker(self, name, target=target)
            for name in ("half-open", "garbage", "messages", "memory", "rkeys"):
                yield Attacker(self, name, key="a", target=target)
        yield Attacker(self, "pool-locks", key="a")
        yield Attacker(self, "pool-waits", key="c", stays=True)
        yield Attacker(self, "connects", "stranger")

    def attackers_go(self):
        super().attackers_go()
        for process in self.processes[:2]:
            process.send_signal(signal.SIGHUP)


class Engine(World):
    """The engines of a donor and of the neighbour, an ordinary program."""

    def open(self):
        with open("/proc/net/unix", encoding="ascii") as file:
            if "@weir-softnic" in file.read():
                print("skipped: softnics that do not belong to the test are here")
                sys.exit(77)
        self.donor()

    neighbour = Donor.neighbour

    def attackers(self):
        for name in ("stay", "babble", "engine", "listener", "slow"):
            yield Attacker(self, name)
        for name in ("stay", "babble", "slow"):
            yield Attacker(self, name, "stranger")
        yield Attacker(self, "engine", "user-namespace")
        yield Attacker(self, "engine", "pid-namespace")


class Share(World):
    attacked_name = "near"

    def open(self):
        for name in ("far", "near"):
            with open(self.path(f"{name}.conf"), "w", encoding="ascii") as file:
                file.write("default connections 65535\n")
            self.attacked = self.start(name, "share", "--socket", self.path(name), "--listen",
                                       LISTENING, "--config", self.path(f"{name}.conf"))
            if name == "far":
                self.peer = self.ready(self.attacked)
            else:
                self.ready(self.attacked)
        self.target = self.path("near")
        self.echo = Neighbour("echo", self.path("far"))
        until(lambda: self.echo.said() == ["ready"], "the echo")

    def neighbour(self):
        return Neighbour("tenant", self.target, self.peer)

    def attackers(self):
        for name in ("anything", "ring", "scribble", "take", "squat", "slow"):
            yield Attacker(self, f"tenant-{name}", "stranger")
        for name in ("anything", "ring", "scribble"):
            yield Attacker(self, f"tenant-{name}")
        yield Attacker(self, "tenant-scribble", "user-namespace")


class Use:
    """Descriptors, threads and memory of a process."""

    def __init__(self, process):
        folder = f"/proc/{process.pid}"
        self.files = collections.Counter(self.kind(f"{folder}/fd/{fd}")
                                         for fd in os.listdir(f"{folder}/fd"))
        self.threads = collections.Counter(self.name(f"{folder}/task/{thread}/comm")
                                           for thread in os.listdir(f"{folder}/task"))
        with open(f"{folder}/status", encoding="ascii") as file:
            # A donor has all memory that it lends from its start on, in shared memory.
            self.bytes = 1024 * int(re.search(r"RssAnon:\s+(\d+)", file.read())[1])

    @staticmethod
    def kind(path):
        try:
            return re.sub(r"\[\d+\]| \(deleted\)", "", os.readlink(path))
        except FileNotFoundError:
            return "closed"

    @staticmethod
    def name(path):
        try:
            with open(path, encoding="ascii") as file:
                return file.read().strip()
        except (FileNotFoundError, ProcessLookupError):
            return "ended"

    def __str__(self):
        return f"{self.files.total()} descriptors, {self.threads.total()} threads, " \
            f"{self.bytes >> 20} MiB"

    def beyond(self, other):
        """The excess over another use, in words."""
        words = []
        if self.files.total() > other.files.total():
            words += [f"descriptors {dict(self.files - other.files)}"]
        mine, others = self.threads - STAYING, other.threads - STAYING
        if mine.total() > others.total():
            words += [f"threads {dict(mine - others)}"]
        if self.bytes > other.bytes + GROWTH:
            words += [f"{(self.bytes - other.bytes) >> 20} MiB"]
        return words


def least_use(process):
    """The use of a process after clients that left a moment before are forgotten."""
    uses = []
    for _ in range(20):
        uses.append(Use(process))
        time.sleep(0.05)
    return min(uses, key=lambda use: use.files.total())


def fight(world, neighbour):
    attackers = list(world.attackers())
    began, calls = time.monotonic(), neighbour.calls()
    deadline = began + SECONDS if SECONDS else began + PATIENCE_S
    while True:
        time.sleep(0.05)
        random.choice(attackers).disturb()
        for attacker in attackers:
            attacker.rest()
        done = not SECONDS and all(a.enough() for a in attackers) and \
            neighbour.calls() - calls >= CALLS
        neighbour.calls()
        if done or time.monotonic() > deadline:
            break
    rounds = {f"{a.name} ({a.who})": a.rounds() for a in attackers}
    cannot = [f"{a.name} ({a.who})" for a in attackers if not a.can()]
    for attacker in attackers:
        attacker.kill()
    print("rounds:", json.dumps(rounds), "cannot:", cannot)
    assert done or SECONDS, f"in {PATIENCE_S} s: {neighbour.calls() - calls} calls"
    return len(attackers)


def spend_cpu(world, nr):
    """The neighbour beside processes that only spend CPU time."""
    spin = ["timeout", str(SECONDS + PATIENCE_S), "sh", "-c", "while :; do :; done"]
    spinners = [subprocess.Popen(spin) for _ in range(nr)]
    try:
        neighbour = world.neighbour()
        time.sleep(SECONDS / 4)
        return neighbour.stop()
    finally:
        for spinner in spinners:
            spinner.terminate()
            spinner.wait()


def show_log(world):
    for name in sorted(os.listdir(world.folder)):
        if name.endswith(".log"):
            with open(world.path(name), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
            print(f"--- {name}: {len(lines)} lines", *lines[-10:], sep="\n")


def until_given_back(watched, before):
    deadline = time.monotonic() + PATIENCE_S + SLOW_S
    while kept := [f"{name} keeps {', '.join(words)}" for name, process in watched.items()
                   if (words := Use(process).beyond(before[name]))]:
        assert time.monotonic() < deadline, "; ".join(kept)
        time.sleep(0.05)


def show(when, uses):
    for name, use in uses.items():
        print(f"{when}: {name}: {use} {dict(use.files)}")


def check_latency(said, beside):
    assert said["p99_us"] < P99_MS * 1000, f"p99 over {P99_MS} ms"
    if beside:
        assert said["p99_us"] < beside["p99_us"] + P99_SPARE_MS * 1000, \
            f"p99 over that beside busy processes by more than {P99_SPARE_MS} ms"


def main():
    world = {"donor": Donor, "wire": Donor, "files": Files, "pool": Pool, "engine": Engine,
             "share": Share}[TARGET]()
    print(f"# WEIR_TEST_SEED={SEED}")
    watched = world.watched()
    try:
        neighbour = world.neighbour()
        until(lambda: neighbour.calls() > CALLS, "calls without attackers")
        world.warm_up()
        watched = dict(world.watched(), neighbour=neighbour.process)
        before = {name: least_use(process) for name, process in watched.items()}
        show("before", before)
        began, lines = time.monotonic(), world.log_lines()
        nr = fight(world, neighbour)
        periods = 2 + (time.monotonic() - began) / LOG_S
        lines = world.log_lines() - lines
        world.attackers_go()
        until_given_back(watched, before)
        show("after", {name: Use(process) for name, process in watched.items()})
        said = neighbour.stop()
        print("neighbour:", said, "lines of the log:", lines)
        beside = spend_cpu(world, nr) if SECONDS else None
        if beside:
            print(f"beside {nr} processes that use the CPU:", beside)
        assert said.get("lent_bytes", 0) <= LENT_MAX, "memory is lent still"
        assert lines <= LOG_LINES * periods, "strangers fill the log"
        check_latency(said, beside)
    except BaseException:
        show("at the end", {name: Use(process) for name, process in watched.items()
                            if process.poll() is None})
        show_log(world)
        for process in world.processes:
            process.kill()
        raise
    world.close()


main()
