#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A pool with one of ten planted troubles, for a stranger to find; and the test of the signs.

troubles.py plant WEIR MOVER [NUMBER]   one trouble; without a number, by chance
troubles.py check WEIR MOVER            the test of all signs

Hosts are network namespaces: h1 to h3 lend memory to a pool, h4 is the client. "plant" keeps the
trouble secret until Enter, and then tells the name and the time. "check" demands of each trouble
that weir doctor, weir top, an alert or a log name the cause, and that alerts name no healthy donor.
"check" ends with a table: seconds from the trouble to its first sign, and to its last.
"""
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.support import prometheus  # noqa: E402
from tests.support.control_group import ControlGroup  # noqa: E402
from tests.support.hosts import Net  # noqa: E402

PATIENCE = 150
WATCH = 60  # seconds, at least, in which a healthy donor must not be named
# Seconds. As in the rules, an alert holds back for as long as one slow request is in the window.
WINDOW, HOLD = 20, 25
LITTLE = 320 << 20  # bytes of a control group that lends 128 MiB: less than 256 MiB are left
CLIENT, ETCD = "h4", "10.77.0.4:2379"
POOL = f"etcd:http://{ETCD}/shop"
DONORS = {"one": ("h1", "10.77.0.1"), "two": ("h2", "10.77.0.2"), "three": ("h3", "10.77.0.3")}
BRIEF = """
Hosts h1, h2 and h3 lend memory: donors one, two and three of the pool {pool}.
Host h4 mounts donor one on {folder}/mount, writes to the volume {pool}/data, and runs weir share.
Something is wrong. What, and where? Look with:

  {net} doctor [--key {folder}/key 10.77.0.N | --key {folder}/key --pool {pool}]
  {net} top --pool {pool} --socket {folder}/share.sock
  {net} pool status {pool}
  {curl} http://127.0.0.1:9090/api/v1/alerts     # and /graph
  {curl} -k https://10.77.0.N:9474/metrics       # of donors; of h4: http://127.0.0.1:9473/metrics
  {curl} -k https://10.77.0.N:8474/              # the donors' pages
  less {folder}/*.log

(another host: -- and h1, h2 or h3 instead of h4, without LIBMOUNT_FSTAB.) Press Enter when you
know.
"""


class World:
    """The hosts and their programs, until close()."""

    def __init__(self, weir, mover, undo):
        self.weir, self.mover = weir, mover
        self.net = Net(weir, "troubles")
        self.net.up(4, undo)
        folder = tempfile.mkdtemp(prefix="weir-troubles-")
        undo(shutil.rmtree, folder, ignore_errors=True)
        undo(self.close)
        self.folder = pathlib.Path(folder)
        self.folder.chmod(0o755)  # a tenant is nobody
        self.key, self.other = self.folder / "key", self.folder / "other"
        self.fstab = self.folder / "fstab"
        self.children = {}
        for key in (self.key, self.other):
            self.run(CLIENT, self.weir, "key", "new", key)

    def on(self, host, *words, **more):
        return self.net.on(host, *map(str, words), **{"WEIR_DEVICE": "softnic", **more})

    def run(self, host, *words, **more):
        """Output and errors of a program on a host."""
        done = subprocess.run(self.on(host, *words, **more), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        return done.stdout + done.stderr

    def start(self, name, host, *words, prefix=(), **more):
        log = open(self.folder / f"{name}.log", "a", encoding="utf-8")
        with log:
            self.children[name] = subprocess.Popen(
                [*prefix, *self.on(host, *words, **more)], stdin=subprocess.PIPE, stdout=log,
                stderr=log, start_new_session=True)

    def write_fstab(self, words):
        """The mount as a line of fstab, for the client's doctor. The stranger has one, too."""
        options = ",".join(f"{name[2:]}={value}" for name, value in zip(words[::2], words[1::2]))
        self.fstab.write_text(f"10.77.0.1 {self.folder}/mount weir {options} 0 0\n",
                              encoding="ascii")

    def log(self, name):
        path = self.folder / f"{name}.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def until(self, name, pattern):
        deadline = time.monotonic() + PATIENCE
        while not re.search(pattern, self.log(name), re.M):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name}: {pattern}: {self.log(name)}")
            time.sleep(0.05)

    def kill(self, name):
        """Kills the program and all processes around the program."""
        child = self.children.pop(name)
        child.stdin.close()
        os.killpg(child.pid, signal.SIGKILL)
        child.wait(PATIENCE)

    def close(self):
        self.run(CLIENT, "umount", "-l", self.folder / "mount")
        for name in list(self.children):
            self.kill(name)

    def certificate(self):
        pem = self.folder / "pem"
        self.run(CLIENT, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=weir", "-days", "2", "-keyout",
                 f"{pem}.key", "-out", f"{pem}.crt")
        pem.write_bytes(pathlib.Path(f"{pem}.key").read_bytes() +
                        pathlib.Path(f"{pem}.crt").read_bytes())
        return pem

    def serve(self, name, pem, domain, faults, prefix=()):
        host, address = DONORS[name]
        self.start(name, host, self.weir, "serve", "--listen", address, "--memory", "128M",
                   "--key", self.key, "--pool", POOL, "--domain", domain, "--name", name,
                   "--metrics", f"{address}:9474", "--metrics-tls", pem, "--web",
                   f"{address}:8474", "--web-tls", pem, prefix=prefix, WEIR_SOFTNIC=faults)

    def mount(self, *words, again=False):
        command = [self.weir, "mount", "-f", "--timeout", "2", "--metrics", "127.0.0.1:9476",
                   *words, "10.77.0.1", self.folder / "mount"]
        if again:  # as a service that is restarted
            command = ["sh", "-c", 'while :; do "$@"; sleep 2; done', "-", *command]
        self.start("mount", CLIENT, *command)

    def tenant(self, name, service, *prefix, pause_ms=0):
        self.start(name, CLIENT, *prefix, self.mover, "tenant", service, pause_ms,
                   WEIR_SHARE=self.folder / "share.sock")
        self.until(name, "^ready$")

    def build(self, faults=None, domains="abc", prefix=(), mount=("--key",), again=False):
        """@faults: of softnic, for each donor. @prefix: begins the command of donor one."""
        (self.folder / "mount").mkdir()
        self.start("etcd", CLIENT, "etcd", "--data-dir", self.folder / "etcd",
                   "--listen-client-urls", f"http://{ETCD}", "--advertise-client-urls",
                   f"http://{ETCD}", "--listen-peer-urls", "http://127.0.0.1:2380")
        self.until("etcd", "ready to serve client requests")
        made = self.run(CLIENT, self.weir, "pool", "create", "--groups", "12", "--lease", "3", POOL)
        pem = self.certificate()
        for name, domain in zip(DONORS, domains):
            self.serve(name, pem, domain, (faults or {}).get(name, ""),
                       prefix if name == "one" else ())
        for name in DONORS:
            self.until(name, "^ready ")
        made += self.run(CLIENT, self.weir, "pool", "volume", "create", POOL, "data", "16M")
        if "weir pool" in made:
            raise RuntimeError(made)
        self.start("perf", CLIENT, self.weir, "perf", "volume", "-S", "86400", "-o", "mix", "-s",
                   "16K", "--key", self.key, f"{POOL}/data")
        words = mount + (self.key,) if mount[-1] == "--key" else mount
        self.write_fstab(words)
        self.mount(*words, again=again)
        (self.folder / "share.conf").write_text("default weight 1\nuser nobody rate 20M\n",
                                                encoding="ascii")
        self.start("share", CLIENT, self.weir, "share", "--socket", self.folder / "share.sock",
                   "--listen", "127.0.0.1:0", "--config", self.folder / "share.conf",
                   "--metrics", "127.0.0.1:9475")
        self.until("share", "^ready ")
        self.tenant("tenant", 1, "setpriv", "--reuid=nobody", "--clear-groups", pause_ms=20)
        self.start("metrics", CLIENT, self.weir, "metrics", "--listen", "127.0.0.1:9473", "--pool",
                   POOL, "--socket", self.folder / "share.sock")
        self.watch()

    def watch(self):
        donors = [f"{address}:9474" for _, address in DONORS.values()]
        own = [f"127.0.0.1:{port}" for port in (9473, 9475, 9476)]
        jobs = [prometheus.job("host", own),
                prometheus.job("donors", donors, scheme="https",
                               tls_config={"insecure_skip_verify": True})]
        self.start("prometheus", CLIENT, "prometheus",
                   *prometheus.write_config(self.folder, jobs, window=WINDOW, hold=HOLD),
                   "--web.listen-address=127.0.0.1:9090")
        self.until("prometheus", "Server is ready")

    def alerts(self):
        return self.run(CLIENT, "curl", "-s", "http://127.0.0.1:9090/api/v1/alerts")

    def named(self):
        """The donors that alerts have named so far: pairs of an alert and the donor's number."""
        return prometheus.names(self.run(
            CLIENT, "curl", "-s", "--data-urlencode",
            'query=last_over_time(ALERTS{alertstate="firing"}[1h])',
            "http://127.0.0.1:9090/api/v1/query"), r"10\.77\.0\.([123]):")

    def doctor(self, *words, host=CLIENT):
        more = {"LIBMOUNT_FSTAB": self.fstab} if host == CLIENT else {}
        return self.run(host, self.weir, "doctor", *words, **more)

    def pool(self):
        return self.doctor("--key", self.key, "--pool", POOL)

    def path(self, address):
        return self.doctor("--key", self.key, address)


def alert(name):
    return lambda world: world.alerts(), f'"alertname":"{name}".*?"state":"firing"'


class Trouble:
    """
    @signs: places to look at, and the words there that name the cause
    @blamed: the donors at fault, which alerts may name
    """

    name, signs, blamed = "", (), ""

    def build(self, world, undo):
        del undo
        world.build()

    def plant(self, world):
        """Breaks the world that has been built."""


class SlowDonor(Trouble):
    name, blamed = "donor two answers slowly", "2"
    signs = (alert("WeirDonorSlow"),
             (lambda w: w.alerts(), '"alertname":"WeirDonorSlow"[^}]*"peer":"10.77.0.2'),
             (lambda w: w.path("10.77.0.2"), "warn +round trip .*\n.*10.77.0.2 answers slowly"),
             (World.pool, "warn +round trip +donor two at 10.77.0.2: "))

    def build(self, world, undo):
        world.build(faults={"two": "packet_delay_us=20000"})


class LossyLink(Trouble):
    name, blamed = "the link of donor three loses packets", "3"
    signs = ((lambda w: w.alerts(), '"alertname":"WeirDonorSlow"[^}]*"peer":"10.77.0.3'),
             (lambda w: w.path("10.77.0.3"), "(warn|fail) +loss .* round trips lost"),
             (World.pool, "(warn|fail) +loss +donor three at 10.77.0.3: "))

    def build(self, world, undo):
        world.build(faults={"three": "loss=8,seed=3"})


class Flood(Trouble):
    name = "a tenant of weir share, of the user root, floods"
    signs = (alert("WeirTenantWaits"),
             (lambda w: w.alerts(), '"alertname":"WeirTenantFloods"[^}]*"uid":"0"'),
             (lambda w: w.run(CLIENT, w.weir, "top", "--once", "--socket",
                              w.folder / "share.sock", "--sort", "share"),
              r"tenants of weir share, by share\nparty .*\nroot .* (9\d|100)\.\d %"),)

    def plant(self, world):
        world.tenant("flooder", 2)


class ShortMemory(Trouble):
    name, blamed = "the machine of donor one is short of memory", "1"
    signs = (alert("WeirMachineShortOfMemory"),
             (lambda w: w.doctor(host="h1"), "warn +donor memory .*the donor at 10.77.0.1:"))

    def build(self, world, undo):
        world.build(prefix=ControlGroup(undo, LITTLE).start())


class WrongDevice(Trouble):
    name = "the mount is to use a device that h4 does not have"
    signs = ((lambda w: w.log("mount"), "mlx5_7.*\n?.*softnic"),
             (lambda w: w.doctor("--device", "mlx5_7"), "mlx5_7"),
             (World.doctor, "fail +mount +.*/mount: configured in .*/fstab, not mounted"),
             (World.doctor, "fail +device +mlx5_7: not on this host"))

    def build(self, world, undo):
        world.build(mount=("--device", "mlx5_7", "--key", ), again=True)


class StaleMount(Trouble):
    name = "the process of the mount is dead"
    signs = ((lambda w: w.doctor(), "fail +mount +.*is stale.*\n.*umount"),)

    def plant(self, world):
        world.until("mount", "is mounted on")
        found = world.run(CLIENT, "pgrep", "-f", f"mount -f .*{world.folder}/mount").split()
        for number in (signal.SIGSTOP, signal.SIGKILL):  # else one unmounts for the other
            for pid in found:
                os.kill(int(pid), number)


class WrongKey(Trouble):
    name, blamed = "the mount has another key than donor one", "1"  # which rejects the mount
    signs = (alert("WeirClientsRejected"),
             (lambda w: w.log("one"), r"id=W10[12]"),
             (lambda w: w.log("mount"), "(?i)key"),
             (World.doctor, "fail +mount +.*/mount: configured in .*/fstab, not mounted"),
             (World.doctor, "fail +session +donor of .*/mount .*does not know this key"))

    def build(self, world, undo):
        world.build(mount=("--key", world.other), again=True)


class EtcdGone(Trouble):
    name = "etcd is gone"
    signs = (alert("WeirPoolMapGone"),
             (lambda w: w.doctor("--pool", POOL), "fail +map +etcd at .*\n.*look at the service"),
             (lambda w: w.log("one"), "id=W404"))

    def plant(self, world):
        world.kill("etcd")


class StuckRebuild(Trouble):
    name, blamed = "donor one is dead, and all others stand in one failure domain", "1"
    signs = (alert("WeirPoolLacksCopies"),
             (lambda w: w.doctor("--pool", POOL),
              "fail +groups +.*no rebuild can begin: they need 2 failure domains.*\n.*--domain"))

    def build(self, world, undo):
        world.build(domains="abb")

    def plant(self, world):
        world.kill("one")


class SmallMtu(Trouble):
    name, blamed = "h4 believes in packets of 9000 bytes, which the path drops", "123"
    signs = ((lambda w: w.path("10.77.0.2"), "fail +MTU .*at most 1500 bytes pass.*\n.*mtu 1500"),
             (World.pool, "fail +MTU +donor two at 10.77.0.2: .*at most 1500 bytes pass"),
             (World.doctor, "fail +MTU +donor of .*/mount at 10.77.0.1: .*at most 1500 bytes"))

    def plant(self, world):
        world.run(CLIENT, "ip", "link", "set", "eth0", "mtu", "9000")


TROUBLES = [SlowDonor, LossyLink, Flood, ShortMemory, WrongDevice, StaleMount, WrongKey, EtcdGone,
            StuckRebuild, SmallMtu]


TIMES = []  # of each trouble: name, seconds to the first sign and to the last


class Signs(unittest.TestCase):
    """Each trouble is named by each of its signs, and no other donor by an alert."""

    def check(self, kind):
        trouble, world = kind(), World(WEIR, MOVER, self.addCleanup)
        trouble.build(world, self.addCleanup)
        trouble.plant(world)
        begun = time.monotonic()
        deadline = begun + PATIENCE
        seen, texts = [], {}
        left = list(trouble.signs)
        while left:
            for sign in list(left):
                look, pattern = sign
                texts[sign] = look(world)
                if re.search(pattern, texts[sign]):
                    seen.append(time.monotonic() - begun)
                    left.remove(sign)
            missing = "\n".join(f"{sign[1]} is not in:\n{texts[sign]}" for sign in left)
            self.assertFalse(left and time.monotonic() > deadline, missing)
            time.sleep(0.5 if left else 0)
        TIMES.append((trouble.name, min(seen), max(seen)))
        time.sleep(max(0, begun + WATCH - time.monotonic()))
        named = world.named()
        self.assertLessEqual({donor for _, donor in named}, set(trouble.blamed), named)


def plant(number):
    undone = []
    kind = TROUBLES[number - 1] if number else random.choice(TROUBLES)

    def undo(function, *args, **kwargs):
        undone.append((function, args, kwargs))
    try:
        trouble, world = kind(), World(WEIR, MOVER, undo)
        trouble.build(world, undo)
        trouble.plant(world)
        net = f"WEIR_NET={os.environ['WEIR_NET']} {WEIR} lab net run {CLIENT} -- env " \
              f"LIBMOUNT_FSTAB={world.fstab}"
        print(BRIEF.format(pool=POOL, folder=world.folder, net=f"{net} {WEIR}",
                           curl=f"{net} curl -s"))
        begun = time.monotonic()
        input()
        print(f"It was: {trouble.name}. You took {time.monotonic() - begun:.0f} s.")
    finally:
        for function, args, kwargs in reversed(undone):
            function(*args, **kwargs)


def add_test(kind):
    setattr(Signs, "test_" + re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(),
            lambda self: self.check(kind))


if __name__ == "__main__":
    for each in TROUBLES:
        add_test(each)
    if len(sys.argv) < 4 or sys.argv[1] not in ("plant", "check"):
        sys.exit(__doc__)
    MODE, WEIR, MOVER = sys.argv[1], *(os.path.abspath(path) for path in sys.argv[2:4])
    REST = sys.argv[4:]
    missing = [tool for tool in ("etcd", "prometheus", "curl", "openssl") if not shutil.which(tool)]
    if os.geteuid() or missing:
        print("skipped:", f"no {missing[0]}: scripts/deps check" if missing else "needs root")
        sys.exit(77)
    if MODE == "plant":
        plant(int(REST[0]) if REST else 0)
    else:
        done = unittest.main(argv=[sys.argv[0], *REST], verbosity=2, exit=False)
        for name, first, last in TIMES:
            print(f"{first:4.0f} s {last:4.0f} s  {name}")
        sys.exit(not done.result.wasSuccessful())
