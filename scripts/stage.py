# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs donors and a mount on this host, and always ends all in order.

Used by scripts/demo and bench/run.
"""
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

START_SECONDS = 15
STOP_SECONDS = 10


class Failed(Exception):
    """A step failed; the text is for people."""


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def die_with_parent():
    """In a child: SIGTERM when the parent is killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def die_with_parent_at_once():
    """As die_with_parent(), but SIGKILL, for a child that ignores SIGTERM."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def raise_on_signals():
    """SIGTERM and SIGHUP unwind like Ctrl-C, through every finally."""
    def interrupt(_signal, _frame):
        raise KeyboardInterrupt
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


def available_bytes():
    """Memory available now, within the limit of the control group."""
    with open("/proc/meminfo", encoding="ascii") as file:
        fields = dict(line.split(":") for line in file)
    available = int(fields["MemAvailable"].split()[0]) * 1024
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            limit = int(file.read())
        with open("/sys/fs/cgroup/memory.current", encoding="ascii") as file:
            available = min(available, limit - int(file.read()))
    except (OSError, ValueError):
        pass
    return available


class TwoHosts:
    """Two hosts of `weir lab net`, for a donor and a client. Commands run in the network of a host,
    with the mounts of the caller.
    """

    def __init__(self, weir):
        """The cluster is the one of `weir lab net up`, which runs the caller."""
        done = subprocess.run([weir, "lab", "net", "status", "--json"], capture_output=True,
                              text=True, check=False)
        if done.returncode:
            raise Failed(done.stderr.strip())
        hosts = json.loads(done.stdout)["hosts"]
        self.on_donor, self.on_client = (
            ["nsenter", "--target", str(host["holder"]["pid"]), "--net", "--"] for host in hosts)
        self.address = hosts[0]["ipv4"]

    @staticmethod
    def command(weir, command):
        """The command line for @command beside two hosts; a user becomes root of a namespace."""
        unshare = ["unshare", "--user", "--map-root-user", "--mount"] if os.geteuid() else []
        return [*unshare, weir, "lab", "net", "up", "2", "--name", f"demo{os.getpid()}", "--",
                *command]

    @classmethod
    def why_not(cls, weir):
        """The reason if two hosts cannot be made, or ""."""
        try:
            done = subprocess.run(cls.command(weir, ["true"]), capture_output=True, text=True,
                                  check=False, stdin=subprocess.DEVNULL, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return said[-1] if done.returncode else ""


class Stage:
    """`with Stage(weir, memory) as stage:` runs a donor; call stage.mount() as often as needed."""

    def __init__(self, weir, memory_bytes, hosts=None):
        """@hosts: TwoHosts; None: donor and client share the host of the caller."""
        self.weir = os.path.abspath(weir)
        self.memory_bytes = memory_bytes
        self.device = os.environ.get("WEIR_DEVICE") or "softnic"
        self.on_donor = hosts.on_donor if hosts else []
        self.on_client = hosts.on_client if hosts else []
        host = hosts.address if hosts else "127.0.0.1"
        self.address = f"{host}:{random.randint(20000, 60000)}"
        self.donor = self.client = None
        self.donors = {}

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="weir-")
        self.mountpoint = os.path.join(self.dir, "mnt")
        self.key = os.path.join(self.dir, "key")
        os.mkdir(self.mountpoint)
        try:
            self._run("key", "new", self.key)
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self):
        self.donor = self._start("serve", "--listen", self.address, "--key", self.key,
                                 "--memory", str(self.memory_bytes), on=self.on_donor)
        self._wait_for_donor()

    def __exit__(self, *_exception):
        # A second Ctrl-C must not leave a mount behind.
        old = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._tell_of_the_dead()
            self.unmount()
            self._stop(self.donor)
            for donor in self.donors.values():
                self._stop(donor)
            if self._is_mounted():
                raise Failed(f"{self.mountpoint} could not be unmounted")
            shutil.rmtree(self.dir)
        finally:
            signal.signal(signal.SIGINT, old)

    def _tell_of_the_dead(self):
        """Reports processes that ended early: the most likely cause of a failure."""
        for command, process in (("serve", self.donor), ("mount", self.client)):
            if process and process.poll() is not None:
                how = (f"was killed by signal {-process.returncode}" if process.returncode < 0
                       else f"ended with status {process.returncode}")
                print(f"\nweir {command} {how}; it had said:\n{self.log(command)}",
                      file=sys.stderr)

    def _environment(self):
        return dict(os.environ, WEIR_DEVICE=self.device)

    def _run(self, *args, on=(), timeout=30):
        done = subprocess.run([*on, self.weir, *args], env=self._environment(), timeout=timeout,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"weir {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def _log_path(self, command):
        return os.path.join(self.dir, command + ".log")

    def log(self, command):
        """The output of `weir COMMAND` so far."""
        with open(self._log_path(command), encoding="utf-8", errors="replace") as file:
            return file.read().strip()

    def _start(self, command, *args, on=(), name=None):
        with open(self._log_path(name or command), "wb") as log:
            return subprocess.Popen([*on, self.weir, command, *args], env=self._environment(),
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    start_new_session=True, preexec_fn=die_with_parent)

    def _wait_until(self, command, process, ready):
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            if process.poll() is not None:
                raise Failed(f"weir {command} ended: {self.log(command)}")
            if time.monotonic() > deadline:
                raise Failed(f"weir {command} is not ready after {START_SECONDS} s: "
                             f"{self.log(command)}")
            time.sleep(0.05)

    def _wait_for_donor(self):
        def answers():
            done = subprocess.run([*self.on_client, self.weir, "ping", "-c1", "-q", "-k", self.key,
                                   self.address], env=self._environment(),
                                  stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=START_SECONDS)
            return done.returncode == 0
        self._wait_until("serve", self.donor, answers)

    def mount(self, *options):
        """Starts a new client, without any cache."""
        self.client = self._start("mount", "--foreground", "--key", self.key, *options,
                                  self.address, self.mountpoint, on=self.on_client)
        self._wait_until("mount", self.client, lambda: os.path.ismount(self.mountpoint))

    def _is_mounted(self):
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            return any(line.split()[4] == self.mountpoint for line in file)

    def unmount(self):
        """Also after a failure; leaves nothing behind."""
        if self._is_mounted():
            detach = [] if self.client and self.client.poll() is None else ["-z"]
            unmount = ["fusermount3", "-u", *detach, self.mountpoint]
            if subprocess.run(unmount, capture_output=True, timeout=60).returncode:
                subprocess.run(["fusermount3", "-u", "-z", self.mountpoint], timeout=60)
        self._stop(self.client)
        self.client = None

    @staticmethod
    def _stop(process):
        if not process or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def counters(self, process):
        """The device's counters of one process; {} on a device that is not softnic."""
        on = self.on_donor if process is self.donor else self.on_client
        for entry in json.loads(self._run("stat", "--json", on=on))["processes"]:
            if entry["pid"] == process.pid:
                return {name: value for name, value in entry.items() if isinstance(value, int)}
        return {}


class PoolStage(Stage):
    """A pool of donors, each with @memory_bytes, and a volume of files with two copies, if
    @volume_bytes says how large."""

    VOLUME = "files"

    def __init__(self, weir, memory_bytes, donors, volume_bytes=0, lease_seconds=5):
        super().__init__(weir, memory_bytes)
        self.names = [f"donor{number + 1}" for number in range(donors)]
        self.volume_bytes, self.lease_seconds = volume_bytes, lease_seconds

    def _begin(self):
        self.pool = f"file:{self.dir}/pool"
        self.address = f"{self.pool}/{self.VOLUME}"
        self._run("pool", "create", "--lease", str(self.lease_seconds), "--replace-after", "1",
                  "--groups", "16", self.pool)
        for name in self.names:
            self.donors[name] = self._start(
                "serve", "--listen", "127.0.0.1:0", "--key", self.key, "--memory",
                str(self.memory_bytes), "--no-reserve", "--pool", self.pool, "--name", name,
                "--domain", name, name=name)
        for name in self.names:
            self._wait_until(name, self.donors[name], lambda name=name: "ready" in self.log(name))
        if self.volume_bytes:
            self._run("pool", "volume", "create", "--files", self.pool, self.VOLUME,
                      str(self.volume_bytes))

    def server(self):
        """The donor that serves the files now, or None."""
        listed = json.loads(self._run("pool", "volume", "list", "--json", self.pool))
        return listed["volumes"][0].get("server")

    def kill(self, name):
        donor = self.donors.pop(name)
        donor.kill()
        donor.wait()

    def missing(self):
        """Groups without all copies, and what the status says of the first."""
        lines = self._run("pool", "status", self.pool).splitlines()
        lean = [line for line in lines if line.startswith("group ")]
        return len(lean), lean[0] if lean else ""
