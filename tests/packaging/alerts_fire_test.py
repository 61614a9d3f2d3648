#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Alerts fire in a running Prometheus when the thing that they watch breaks.

alerts_fire_test.py WEIR MOVER

The rules are those of packaging/prometheus, with shorter times. Some breakages need root: a mount,
and a control group with little memory. Without it their tests are skipped.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.support import prometheus  # noqa: E402

WEIR, MOVER = (os.path.abspath(path) for path in sys.argv[1:3])
del sys.argv[1:3]
PATIENCE = 120
LITTLE = 256 << 20  # bytes available, below which the alert for memory fires
NEEDS_ROOT = {"WeirMachineShortOfMemory", "WeirMountDown", "WeirMountWaits", "WeirMountSlow",
              "WeirTenantFloods"}
FIRED, SKIPPED = set(), set()


def environment(**more):
    kept = {name: value for name, value in os.environ.items()
            if name not in ("LD_PRELOAD", "WEIR_SHARE", "WEIR_SOFTNIC")}
    return dict(kept, WEIR_DEVICE="softnic", **more)


def weir(*words):
    return subprocess.run([WEIR, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE, check=False, env=environment())


def free_port():
    with socket.socket() as link:
        link.bind(("127.0.0.1", 0))
        return link.getsockname()[1]


class Fire(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-alerts-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.key = self.folder / "key"
        self.assertEqual(weir("key", "new", self.key).returncode, 0)

    def start(self, *words, **more):
        log = open(self.folder / f"log{time.monotonic_ns()}", "w+", encoding="utf-8")
        self.addCleanup(log.close)
        child = subprocess.Popen([*map(str, words)], stdin=subprocess.PIPE, stdout=log,
                                 stderr=log, env=environment(**more))
        self.addCleanup(self.end, child)
        child.log = pathlib.Path(log.name)
        return child

    def end(self, child):
        child.stdin.close()
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
        child.wait(PATIENCE)

    def skip(self, *alerts, why):
        SKIPPED.update(alerts)
        self.skipTest(why)

    def told(self, child, pattern):
        deadline = time.monotonic() + PATIENCE
        while not (match := re.search(pattern, child.log.read_text(encoding="utf-8"), re.M)):
            self.assertIsNone(child.poll(), child.log.read_text(encoding="utf-8"))
            self.assertLess(time.monotonic(), deadline, pattern)
            time.sleep(0.02)
        return match[1]

    def serve(self, *words, prefix=(), **more):
        donor = self.start(*prefix, WEIR, "serve", "--listen", "127.0.0.1:0", "--metrics", "0",
                           "--key", self.key, *words, **more)
        donor.metrics = self.told(donor, r"metrics at http://(.*)/metrics$")
        donor.address = self.told(donor, r"^ready (.*)$")
        return donor

    def host(self, *words, **more):
        host = self.start(WEIR, "metrics", "--listen", "0", *words, **more)
        return self.told(host, r"metrics at http://(.*)/metrics$")

    def watch(self, *targets):
        self.port = free_port()
        self.prometheus = self.start(
            "prometheus", *prometheus.write_config(self.folder, [prometheus.job("weir", targets)]),
            f"--web.listen-address=127.0.0.1:{self.port}")
        self.told(self.prometheus, "(Server is ready)")

    def firing(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/alerts",
                                    timeout=PATIENCE) as answer:
            return prometheus.firing(answer.read())

    def fires(self, name, provoke=lambda: None):
        deadline = time.monotonic() + PATIENCE
        while name not in (now := self.firing()):
            provoke()
            self.assertLess(time.monotonic(), deadline, f"{name} is not among {now}")
            time.sleep(0.3)
        FIRED.add(name)

    def test_a_donor(self):
        donor = self.serve("--memory", "16M", "--no-reserve")
        self.watch(donor.metrics)
        self.fires("WeirClientsRejected", lambda: weir("ping", donor.address))
        self.assertEqual(self.firing(), {"WeirClientsRejected"})
        perf = self.start(WEIR, "perf", "-S", "0", "--region", "16M", "--key", self.key,
                          donor.address)
        self.fires("WeirDonorFull")
        self.assertEqual(weir("lend", donor.pid, "2M").returncode, 0)
        self.fires("WeirDonorOverLimit")
        self.end(perf)
        self.assertEqual(weir("lend", donor.pid, "0").returncode, 0)
        self.fires("WeirDonorLendsNothing")
        donor.kill()
        donor.wait()
        self.fires("WeirTargetDown")

    def test_a_forger(self):
        donor = self.serve("--memory", "16M", "--no-reserve")
        self.watch(donor.metrics)
        self.start(WEIR, "run", "-d", "softnic", MOVER, "forge", donor.address, self.key)
        self.fires("WeirUnloadedWritesRefused")

    def test_little_memory(self):
        """The donor reserves half of a control group's memory."""
        group = self.control_group(LITTLE + (64 << 20))
        inside = ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "-")
        donor = self.serve("--memory", "128M", prefix=inside)
        self.watch(donor.metrics)
        self.fires("WeirMachineShortOfMemory")

    def control_group(self, bytes_max):
        """A new group of the memory controller, in either version."""
        for root, limit in (("/sys/fs/cgroup", "memory.max"),
                            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
            group = pathlib.Path(root, f"weir-alerts-{os.getpid()}")
            if not pathlib.Path(root, "cgroup.procs").exists():
                continue
            with contextlib.suppress(OSError):
                group.mkdir()
                self.addCleanup(group.rmdir)
                (group / limit).write_text(str(bytes_max), encoding="ascii")
                return group
        return self.skip("WeirMachineShortOfMemory", why="no control group can be made here")

    def test_packets(self):
        faults = {"WEIR_SOFTNIC": "near=0,loss=5,seed=3"}
        donor = self.serve("--memory", "64M", "--no-reserve", **faults)
        self.watch(self.host())
        self.start(WEIR, "perf", "-S", "0", "-o", "mix", "--region", "8M", "--key", self.key,
                   donor.address, **faults)
        self.fires("WeirPacketsLost")

    def share(self, terms):
        config = self.folder / "config"
        config.write_text(f"default {terms}\n", encoding="utf-8")
        share = self.start(WEIR, "share", "--socket", f"{self.folder}/share", "--listen",
                           "127.0.0.1:0", "--config", config, "--metrics", "0")
        metrics = self.told(share, r"metrics at http://(.*)/metrics$")
        self.told(share, "(^ready )")
        self.watch(metrics)

    def tenant(self, *words, prefix=()):
        tenant = self.start(*prefix, MOVER, "tenant", *words, WEIR_SHARE=f"{self.folder}/share")
        self.told(tenant, "(^ready$)")

    def test_a_tenant(self):
        self.share("weight 1 rate 100K")
        self.tenant()
        self.fires("WeirTenantWaits")

    def test_a_flood(self):
        """Root sends without a pause, and nobody waits in between."""
        if os.geteuid():
            self.skip("WeirTenantFloods", why="one user is one party")
        self.folder.chmod(0o755)
        self.share("weight 1\nuser nobody rate 4M")
        self.tenant(1, 100, prefix=("setpriv", "--reuid=nobody", "--clear-groups"))
        self.tenant(2)
        self.fires("WeirTenantFloods")
        self.fires("WeirTenantWaits")

    def test_a_slow_donor(self):
        donor = self.serve("--memory", "64M", "--no-reserve", WEIR_SOFTNIC="near=0")
        self.watch(self.host())
        self.start(WEIR, "perf", "-S", "0", "-o", "read", "--region", "8M", "--key", self.key,
                   donor.address, WEIR_SOFTNIC="near=0,packet_delay_us=30000")
        self.fires("WeirDonorSlow")

    def mount(self, donor, name, *words, **more):
        point = self.folder / name
        point.mkdir()
        child = self.start(WEIR, "mount", "-f", "--key", self.key, "--metrics", "0", *words,
                           donor.address, point, **more)
        self.addCleanup(subprocess.run, ["umount", "-l", point], check=False, timeout=PATIENCE,
                        stderr=subprocess.DEVNULL)
        child.metrics = self.told(child, r"metrics at http://(.*)/metrics$")
        self.told(child, "(is mounted on)")
        return child, point

    def test_a_mount(self):
        if os.geteuid() or not os.access("/dev/fuse", os.W_OK):
            self.skip("WeirMountDown", "WeirMountWaits", "WeirMountSlow", why="no mounts here")
        donor = self.serve("--memory", "64M", "--no-reserve")
        hard, there = self.mount(donor, "hard", "--hard", "--timeout", "1")
        slow, point = self.mount(donor, "slow", WEIR_SOFTNIC="delay_us=200000")
        self.watch(hard.metrics, slow.metrics)
        self.fires("WeirMountSlow", lambda: (point / "file").write_bytes(b"x"))
        os.kill(donor.pid, signal.SIGSTOP)
        waits = self.start("stat", there / "nothing")
        self.fires("WeirMountWaits")
        self.assertIsNone(waits.poll())
        self.end(donor)
        self.fires("WeirMountDown")

    def test_a_session(self):
        donor = self.serve("--memory", "64M", "--no-reserve")
        self.watch(self.host())
        self.start(WEIR, "perf", "-S", "0", "-o", "read", "-n", "4", "--region", "8M", "--key",
                   self.key, donor.address, WEIR_SOFTNIC="error_after=1000")
        for name in ("WeirSessionErrors", "WeirSessionReconnects"):
            self.fires(name)

    def join(self, pool, name):
        return self.serve("--memory", "64M", "--no-reserve", "--pool", pool, "--domain", name,
                          "--name", name)

    def test_a_pool(self):
        path = self.folder / "pool"
        pool = f"file:{path}"
        made = weir("pool", "create", "--groups", "16", "--lease", "2", pool)
        self.assertEqual(made.returncode, 0, made.stderr)
        donors = [self.join(pool, name) for name in ("one", "two", "three", "four")]
        made = weir("pool", "volume", "create", pool, "vol", "16M")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.watch(self.host("--pool", pool))
        for donor in donors[2:]:
            self.end(donor)
        self.fires("WeirPoolLacksCopies")
        for donor in donors[:2]:
            self.end(donor)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.fires("WeirPoolMapGone")

    def test_lost_data(self):
        """Both copies of written data die, and the donors come back empty."""
        pool = f"file:{self.folder / 'pool'}"
        made = weir("pool", "create", "--groups", "16", "--lease", "2", pool)
        self.assertEqual(made.returncode, 0, made.stderr)
        donors = [self.join(pool, name) for name in ("one", "two", "three")]
        made = weir("pool", "volume", "create", pool, "vol", "16M")
        self.assertEqual(made.returncode, 0, made.stderr)
        wrote = weir("perf", "volume", "-S", "1", "-s", "64K", "--key", self.key, f"{pool}/vol")
        self.assertEqual(wrote.returncode, 0, wrote.stderr)
        self.watch(self.host("--pool", pool))
        for donor in donors[:2]:
            donor.send_signal(signal.SIGKILL)
        for donor in donors[:2]:
            donor.wait(PATIENCE)
        self.fires("WeirPoolDonorsAway")  # and the leases of the names have ended
        for name in ("one", "two"):
            self.join(pool, name)
        self.fires("WeirPoolLostData")

    @classmethod
    def tearDownClass(cls):
        alerts = set(re.findall(r"- alert: (\w+)", prometheus.RULES.read_text(encoding="utf-8")))
        assert FIRED | SKIPPED == alerts, alerts - FIRED - SKIPPED
        assert SKIPPED <= NEEDS_ROOT


if __name__ == "__main__":
    if not shutil.which("prometheus"):
        print("skipped: no prometheus: scripts/deps check")
        sys.exit(77)
    unittest.main(verbosity=2)
