# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A pool of real donors on softnic, whose map is in a file or in etcd.

  pool_test.py WEIR VOLUME_CLIENT CODED_CLIENT file|etcd [TEST...]
"""
import datetime
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
from tests.support.patience import look  # noqa: E402

WEIR, CLIENT, CODED_CLIENT = (os.path.abspath(path) for path in sys.argv[1:4])
KIND = sys.argv[4]
del sys.argv[1:5]
PRELOAD = os.environ.pop("WEIR_TEST_PRELOAD", "")
PATIENCE = 60
LEASE = 6  # seconds: a busy machine delays a donor by less than two thirds
GROUPS = 16


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Etcd:
    """One etcd on loopback. Its data outlives a kill."""

    def __init__(self, folder, options):
        self.folder, self.options, self.process = folder, options, None
        self.port, self.peer = free_port(), free_port()

    def start(self):
        url, peer = (f"http://127.0.0.1:{port}" for port in (self.port, self.peer))
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                ["etcd", "--data-dir", os.path.join(self.folder, "data"),
                 "--listen-client-urls", url, "--advertise-client-urls", url,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", f"default={peer}", "--unsafe-no-fsync", *self.options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()


class World(unittest.TestCase):
    lease = LEASE
    etcd_options = ()

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weir-pool-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.donors = {}
        self.pool = f"file:{self.folder}/p"
        if KIND == "etcd":
            self.etcd = Etcd(self.folder, self.etcd_options)
            self.etcd.start()
            self.addCleanup(self.etcd.kill)
            # One server of the two is never there.
            self.pool = (f"etcd:http://127.0.0.1:{self.etcd.port},"
                         f"127.0.0.1:{free_port()}/p")
        self.until(lambda: not self.create().returncode)

    def create(self):
        return self.weir("create", "--lease", str(self.lease), "--replace-after", "600",
                         "--groups", str(GROUPS), self.pool)

    def until(self, holds):
        end = time.monotonic() + PATIENCE
        while not look(holds, 0.1):
            if time.monotonic() > end:
                self.fail(f"{self.weir('status', self.pool)}\n{self.last_words()}")

    def last_words(self):
        """Of the donors, with their exit status."""
        return "".join(f"{name}, {process.poll()}: {self.log(name)[-2000:]}\n"
                       for name, (process, _) in self.donors.items())

    def weir(self, *args):
        return subprocess.run([WEIR, "pool", *args], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE)

    def ask(self, *args):
        done = self.weir(*args, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def start(self, name, domain=None, listen="127.0.0.1:0", pool=None, more=(),
              variables=None):
        """Starts a donor, and returns its process and first line."""
        log = open(os.path.join(self.folder, f"log-{name}"), "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [WEIR, "serve", "--device", "softnic", "--memory", "8M", "--listen", listen,
             "--pool", pool or self.pool, "--name", name, "--domain", domain or f"r{name}",
             *more],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
            env=dict(os.environ, **(variables or {})))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, process.stdout.readline()

    def begin(self, names, **options):
        for name in names:
            process, line = self.start(name, **options)
            self.assertTrue(line.startswith("ready "), self.log(name))
            self.donors[name] = (process, line.split()[1])

    def bytes_of(self, name):
        with open(f"{self.folder}/{name}", "rb") as file:
            return file.read()

    def move(self, what, *args, **more):
        return subprocess.run([WEIR, "pool", "volume", what, "--device", "softnic", *args],
                              capture_output=True, timeout=PATIENCE, **more)

    def lent(self, name):
        """Bytes of the donor's regions."""
        done = subprocess.run([WEIR, "stat", "--device", "softnic", "--json",
                               self.donors[name][1]], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["lent_bytes"]

    def log(self, name):
        with open(os.path.join(self.folder, f"log-{name}"), encoding="utf-8") as file:
            return file.read()

    def key(self, name):
        path = os.path.join(self.folder, name)
        subprocess.run([WEIR, "key", "new", path], check=True, capture_output=True)
        return path

    def identity(self, name):
        """Makes an identity, and returns its file and its line for the files of keys."""
        path = os.path.join(self.folder, name)
        done = subprocess.run([WEIR, "key", "identity", path], check=True, capture_output=True,
                              text=True)
        return path, done.stdout

    def client(self, volume):
        process = subprocess.Popen([CLIENT, self.pool, volume], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, bufsize=1)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), "open\n")
        return process

    def tell(self, client, command):
        client.stdin.write(command + "\n")
        self.assertEqual(client.stdout.readline(), "done\n")

    def members(self, name):
        """(group, version, state, incarnation) of each place of a donor."""
        return [(group["group"], group["version"], member["state"], member["incarnation"])
                for group in self.ask("status", self.pool)["groups"]
                for member in group["members"] if member["donor"] == name]

    def states(self, name):
        return {state for _, _, state, _ in self.members(name)}

    def versions(self):
        return {group["group"]: group["version"]
                for group in self.ask("status", self.pool)["groups"]}


class Life(World):
    def test_a_donor_fails_and_returns_as_another_memory(self):
        self.begin("abc")
        self.assertEqual(self.weir("volume", "create", self.pool, "v", "4M").returncode, 0)
        self.assertEqual(self.ask("status", self.pool)["whole"], GROUPS)
        client = self.client("v")
        before, old = self.versions(), self.members("b")
        self.assertTrue(old)
        with self.subTest("killed"):
            self.donors["b"][0].kill()
            self.until(lambda: self.states("b") == {"out"})
            after = self.versions()
            for group, _, _, incarnation in old:
                self.assertGreater(after[group], before[group])
            self.assertIn("donor b is out", self.weir("status", self.pool).stdout)
        with self.subTest("back"):
            _, line = self.start("b", listen=self.donors["b"][1])
            self.assertTrue(line.startswith("ready "), self.log("b"))
            self.until(lambda: self.states("b") == {"syncing"})
            self.assertNotEqual({place[3] for place in self.members("b")},
                                {place[3] for place in old})
        with self.subTest("synced"):
            self.tell(client, "synced")
            self.until(lambda: self.states("b") == {"serving"})
        with self.subTest("silent"):
            donor = self.donors["c"][0]
            old = {place[3] for place in self.members("c")}
            donor.send_signal(signal.SIGSTOP)
            self.until(lambda: self.states("c") == {"out"})
            donor.send_signal(signal.SIGCONT)
            self.until(lambda: self.states("c") == {"syncing"})
            self.assertFalse(old & {place[3] for place in self.members("c")})
            self.assertIn("starting again, empty", self.log("c"))

    def test_a_report_takes_a_donor_out_before_its_lease_ends(self):
        self.begin("ab")
        self.assertEqual(self.weir("volume", "create", self.pool, "v", "4M").returncode, 0)
        client = self.client("v")
        old = {place[3] for place in self.members("a")}
        self.tell(client, "failed a")
        # The donor lives: it learns of the report, and comes back as another memory.
        self.until(lambda: self.states("a") == {"syncing"})
        self.assertFalse(old & {place[3] for place in self.members("a")})
        address = next(donor["address"] for donor in self.ask("donors", self.pool)["donors"]
                       if donor["name"] == "a")
        self.assertEqual(address, self.donors["a"][1])
        self.tell(client, "failed b")
        self.tell(client, "failed b")
        # Its memory is the only one with the data.
        self.assertEqual(self.states("b"), {"serving"})

    def test_another_donor_coordinates_and_takes_over_what_is_drained(self):
        self.begin("abc")
        self.assertEqual(self.weir("volume", "create", self.pool, "v", "4M").returncode, 0)
        first = self.ask("status", self.pool)["coordinator"]
        process = self.donors.pop(first)[0]
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 0)
        self.until(lambda: self.ask("status", self.pool)["coordinator"] in self.donors)
        self.begin("d")
        self.assertEqual(self.weir("drain", self.pool, first).returncode, 0)
        self.until(lambda: not self.states(first))
        self.until(lambda: self.ask("status", self.pool)["whole"] == GROUPS)
        last = self.ask("drain", self.pool, next(iter(self.donors)))
        self.assertTrue(last["draining"])
        self.assertGreater(last["places"], 0)

    if KIND == "file":
        def test_a_donor_whose_map_is_gone_tries_again_and_spends_no_time_on_it(self):
            self.begin("a")
            file, away = (f"{self.folder}/{name}" for name in ("p", "away"))
            process, _ = self.donors["a"]
            # Its last change puts the file back, if that comes after the rename.
            self.until(lambda: self.ask("status", self.pool)["coordinator"] == "a")

            def spent():
                with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
                    return sum(map(int, stat.read().rpartition(")")[2].split()[11:13]))
            os.rename(file, away)
            self.until(lambda: "pool unreachable" in self.log("a"))
            before = spent()
            time.sleep(2)
            self.assertLess(spent() - before, 10)  # hundredths of a second
            os.rename(away, file)
            self.until(lambda: "pool reachable" in self.log("a"))

    def test_a_volume_is_made_listed_and_removed(self):
        self.begin("ab")
        made = self.ask("volume", "create", "--extent", "64K", self.pool, "v", "1M")
        self.assertEqual((made["bytes"], made["extent_bytes"], made["scheme"], made["ready"]),
                         (1 << 20, 64 << 10, "copies=2", True))
        again = self.weir("volume", "create", self.pool, "v", "1M")
        self.assertEqual(again.returncode, 1)
        self.assertIn("has a volume v already", again.stderr)
        client = self.client("v")
        self.assertTrue(self.ask("volume", "list", self.pool)["volumes"][0]["open"])
        refused = self.weir("volume", "rm", self.pool, "v")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("a client has it open", refused.stderr)
        client.stdin.close()
        client.wait(PATIENCE)
        self.assertTrue(self.ask("volume", "rm", self.pool, "v")["removed"])
        self.assertEqual(self.ask("volume", "list", self.pool)["volumes"], [])

    def test_a_volume_waits_for_its_donors_and_the_wait_can_end(self):
        def create():
            process = subprocess.Popen(
                [WEIR, "pool", "volume", "create", "--wait", str(PATIENCE), self.pool, "v", "4M"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            self.assertIn("waiting for donors", process.stderr.readline())
            return process
        process = create()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, "volume v is not made" in said), (1, True), said)
        self.assertEqual(self.ask("volume", "list", self.pool)["volumes"], [])
        process = create()
        self.begin("ab")
        out, said = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("volume p/v", out)
        self.assertEqual(self.ask("status", self.pool)["whole"], GROUPS)

    def test_a_donor_at_all_addresses_names_one_to_the_pool(self):
        self.begin("a", listen="0.0.0.0:0",
                   more=("--key", self.key("key"), "--advertise", "127.0.0.1",
                         "--memory", "32M"))
        port = self.donors["a"][1].rpartition(":")[2]
        donor, = self.ask("donors", self.pool)["donors"]
        self.assertEqual(donor["address"], f"127.0.0.1:{port}")
        self.ask("volume", "create", "--files", "--scheme", "copies=1", "--extent", "64K",
                 self.pool, "v", "16M")
        self.until(lambda: "msg=listening address=127.0.0.1:" in self.log("a"))

    def test_donors_may_have_ipv6_addresses(self):
        key = ("--key", self.key("key"))
        self.begin("a", listen="[::1]:0", more=key)
        self.begin("b", listen="[::]:0", more=(*key, "--advertise", "::1"))
        self.begin("c", listen="[::]:0", more=(*key, "--advertise", "[::1]"))
        ports = {name: donor[1].rpartition(":")[2] for name, donor in self.donors.items()}
        self.assertEqual({donor["name"]: donor["address"]
                          for donor in self.ask("donors", self.pool)["donors"]},
                         {name: f"[::1]:{port}" for name, port in ports.items()})
        self.ask("volume", "create", "--extent", "64K", self.pool, "v", "1M")
        self.until(lambda: self.ask("status", self.pool)["whole"] == GROUPS)

    def test_a_donor_that_cannot_serve_files_tries_ever_less_often(self):
        for name in "ab":
            self.begin(name, more=("--key", self.key(f"key-{name}"), "--memory", "32M"))
        self.ask("volume", "create", "--files", "--extent", "64K", self.pool, "v", "16M")

        def failures():
            return [line for line in self.log("a").splitlines() if "does not serve files" in line]
        self.until(lambda: len(failures()) >= 4)
        first, *_, last = (datetime.datetime.fromisoformat(line[3:26])
                           for line in failures()[:4])
        # The pauses are 2, 4 and 8 s, less the time of the first try.
        self.assertGreater((last - first).total_seconds(), 6)

    def test_bytes_go_into_a_volume_and_come_back_without_a_donor(self):
        self.begin("abc")
        self.ask("volume", "create", "--extent", "256K", self.pool, "v", "6M")
        data = os.urandom((5 << 20) + 12345)
        with open(f"{self.folder}/in", "wb") as file:
            file.write(data)
        done = self.move("import", "--json", self.pool, "v", f"{self.folder}/in")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["bytes"], len(data))
        self.donors["b"][0].kill()
        self.donors["b"][0].wait()
        done = self.move("export", "--json", self.pool, "v", f"{self.folder}/out")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.bytes_of("out"), data + bytes((6 << 20) - len(data)))
        done = self.move("export", self.pool, "v")
        self.assertEqual((done.returncode, done.stdout), (0, self.bytes_of("out")), done.stderr)

        # These are refused, and change no file.
        with open(f"{self.folder}/large", "wb") as file:
            file.truncate(7 << 20)
        for args, why in ((("export", self.pool, "w", "in"), "no volume w"),
                          (("export", "--json", self.pool, "v"), "name a FILE"),
                          (("import", self.pool, "v", "nowhere"), "No such file"),
                          (("import", self.pool, "v", "large"), "and volume v only 6.0 MiB")):
            done = self.move(*args, cwd=self.folder, text=True)
            self.assertIn(done.returncode, (1, 2), args)
            self.assertIn(why, done.stderr)
        self.assertEqual(self.bytes_of("in"), data)

    def test_memory_that_no_volume_uses_returns(self):
        self.begin("ab")
        with self.subTest("removed"):
            for name in "vw":
                self.ask("volume", "create", "--extent", "256K", self.pool, name, "6M")
                self.until(lambda name=name: not self.move(
                    "import", self.pool, name, input=bytes(6 << 20)).returncode)
                self.ask("volume", "rm", self.pool, name)
            self.until(lambda: not self.lent("a") and not self.lent("b"))
        with self.subTest("drained"):
            self.ask("volume", "create", "--extent", "256K", self.pool, "v", "4M")
            data = os.urandom(4 << 20)
            self.assertEqual(self.move("import", self.pool, "v", input=data).returncode, 0)
            self.begin("c")
            self.assertEqual(self.weir("drain", self.pool, "b").returncode, 0)
            self.until(lambda: not self.lent("b"))
            self.assertEqual((self.lent("a"), self.lent("c")), (4 << 20, 4 << 20))
            done = self.move("export", self.pool, "v")
            self.assertEqual((done.returncode, done.stdout == data), (0, True), done.stderr)

    def test_donors_rebuild_a_volume_that_no_client_has_open(self):
        self.begin("abc")
        self.ask("volume", "create", "--extent", "256K", self.pool, "v", "6M")
        data = os.urandom(6 << 20)
        run = subprocess.run([WEIR, "perf", "volume", "--device", "softnic", "--seconds", "0.1",
                              "--depth", "4", "--op", "mix", "--json", self.pool + "/v"],
                             capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(run.returncode, 0, run.stderr)
        measured = json.loads(run.stdout)
        self.assertEqual(measured["bytes"], 4096 * measured["ops"])
        self.assertGreater(measured["ops"], 0)
        done = self.move("import", self.pool, "v", input=data)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.donors["b"][0].kill()
        self.donors["b"][0].wait()
        process, line = self.start("b", listen=self.donors["b"][1])
        self.assertTrue(line.startswith("ready "), self.log("b"))
        self.until(lambda: "msg=rebuilt" in self.log("b"))
        self.until(lambda: self.ask("status", self.pool)["whole"] == GROUPS)
        self.assertEqual(self.states("b"), {"serving"})
        # The groups of donors a and b have only donor b now.
        self.donors["a"][0].kill()
        done = self.move("export", self.pool, "v")
        self.assertEqual((done.returncode, done.stdout == data), (0, True), done.stderr)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_places_with_data_move_to_a_new_donor(self):
        self.begin("ab")
        self.ask("volume", "create", "--extent", "256K", self.pool, "v", "4M")
        data = os.urandom(4 << 20)
        self.assertEqual(self.move("import", self.pool, "v", input=data).returncode, 0)
        self.begin("c")
        self.assertEqual(self.states("c"), set())
        stopped = subprocess.Popen([WEIR, "pool", "rebalance", "--json", self.pool],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(stopped.kill)
        self.until(lambda: self.states("c"))
        stopped.send_signal(signal.SIGINT)
        said = json.loads(stopped.communicate(timeout=PATIENCE)[0])
        self.assertEqual(stopped.returncode, 0)
        self.assertGreater(said["left"], 0)
        self.assertGreater(self.ask("rebalance", "--moves", "64", self.pool)["moved"], 0)
        places = [len(self.members(name)) for name in "abc"]
        self.assertEqual(sum(places), 2 * GROUPS)
        self.assertLessEqual(max(places) - min(places), 2)
        self.assertEqual(self.ask("rebalance", self.pool)["moved"], 0)
        done = self.move("export", self.pool, "v")
        self.assertEqual((done.returncode, done.stdout == data), (0, True), done.stderr)

    def test_an_import_without_an_end_is_stopped(self):
        self.begin("ab")
        self.ask("volume", "create", "--extent", "256K", self.pool, "v", "6M")
        child = subprocess.Popen([WEIR, "pool", "volume", "import", "--device", "softnic",
                                  self.pool, "v"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(child.kill)
        child.stdin.write(bytes(3 << 20))
        child.stdin.flush()
        self.until(lambda: self.ask("volume", "list", self.pool)["volumes"][0]["open"])
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=PATIENCE)
        self.assertEqual(child.returncode, 1)
        self.assertIn(b"stopped", said)
        self.until(lambda: not self.ask("volume", "list", self.pool)["volumes"][0]["open"])


class Code(World):
    """A volume with a code. Its client compares each byte with a model."""

    def setUp(self):
        super().setUp()
        self.begin("abcdef")
        self.ask("volume", "create", "--scheme", "code=4+2", "--extent", "256K", self.pool, "v",
                 "3M")
        self.open()

    def open(self, volume="v"):
        """Opens the volume, once the claim of the last client is over."""
        def is_open():
            self.process = subprocess.Popen(
                [CODED_CLIENT, f"{self.pool}/{volume}", f"{self.folder}/model-{volume}"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                env=dict(os.environ, LD_PRELOAD=PRELOAD))
            for cleanup in (self.process.stdout.close, self.process.wait, self.process.stdin.close):
                self.addCleanup(cleanup)
            return self.process.stdout.readline() == "open\n"
        self.until(is_open)

    def close(self):
        self.process.stdin.close()
        self.assertEqual(self.process.wait(PATIENCE), 0)

    def do(self, command):
        """Returns the number of reads that found wrong bytes so far."""
        self.process.stdin.write(command + "\n")
        done, *numbers = (self.process.stdout.readline() or "died").split()
        self.assertEqual(done, "done", command)
        mismatches, self.repaired, self.spoilt = map(int, numbers)
        return mismatches

    def until_repaired(self, least):
        """Each read has the right bytes, before and after the client has repaired them."""
        def is_repaired():
            self.do("check")
            return self.repaired >= least
        self.until(is_repaired)

    def kill(self, names):
        for name in names:
            self.donors[name][0].kill()
            self.donors[name][0].wait()

    def restart(self, names):
        for name in names:
            self.begin(name, listen=self.donors[name][1])
        self.until(lambda: self.ask("status", self.pool)["whole"] == GROUPS)

    def test_two_donors_at_once_are_lost_without_an_error(self):
        self.do("work 200")
        self.kill("be")
        self.do("work 100")
        self.do("check")
        self.assertEqual(self.ask("status", self.pool)["lean"], GROUPS)
        self.restart("be")
        self.do("work 50")
        self.kill("cd")  # of the other four, two were filled
        self.assertEqual(self.do("check"), 0)

    def test_the_next_client_finds_each_byte_and_donors_rebuild(self):
        self.do("work 100")
        self.process.kill()
        self.process.wait()
        self.open()
        self.do("work 50")
        self.close()
        self.kill("af")
        self.restart("af")
        self.until(lambda: "msg=rebuilt" in self.log("a") + self.log("f"))
        self.kill("bc")
        self.open()
        self.assertEqual(self.do("check"), 0)

    def test_a_wrong_fragment_is_computed_from_others_and_repaired_in_place(self):
        self.do("work 200")
        donors = self.ask("donors", self.pool)["donors"]
        for known in True, False:  # whether the client has written the pages
            noticed = self.do("spoil b")
            spoilt = self.spoilt
            self.assertGreater(spoilt, 0)
            if not known:
                self.close()
                self.open()
                noticed = 0
            self.assertGreater(self.do("check"), noticed)
            self.until_repaired(spoilt)
        self.assertEqual(self.ask("donors", self.pool)["donors"], donors)  # nobody was reported
        self.kill("c")  # its data come from b's parity, which nobody has read
        self.until_repaired(spoilt + 1)

    def test_a_donor_that_rebuilds_tells_of_wrong_bytes(self):
        self.do("work 200")
        self.do("spoil b")
        self.assertGreater(self.spoilt, 0)
        self.close()
        self.kill("c")
        self.restart("c")
        self.until(lambda: "msg=rebuilt" in self.log("c"))  # no client has the volume open
        wrong = {donor["name"]: donor["wrong_reads"]
                 for donor in self.ask("donors", self.pool)["donors"]}
        self.assertGreater(wrong["b"], 0)
        self.assertEqual(sum(wrong.values()), wrong["b"])
        self.assertEqual(self.ask("status", self.pool)["wrong_reads"], wrong["b"])
        self.assertIn(f"donor b returned wrong bytes in {wrong['b']} reads",
                      self.weir("status", self.pool).stdout)
        self.kill("b")
        self.open()
        self.do("check")
        self.until(lambda: not self.ask("status", self.pool)["wrong_reads"])  # with its memory

    def test_a_wrong_page_of_a_copy_is_repaired_in_place(self):
        self.ask("volume", "create", "--scheme", "copies=2", "--extent", "256K", self.pool, "w",
                 "3M")
        self.close()
        self.open("w")
        self.do("work 400")
        found = self.do("check")
        donors = self.ask("donors", self.pool)["donors"]
        for _ in range(2):
            self.do("spoil -")
            noticed, found = found, self.do("check")
            self.assertGreater(found, noticed)
            self.until(lambda: self.do("check") == self.do("check"))
            found = self.do("check")
        self.assertEqual(self.ask("donors", self.pool)["donors"], donors)  # nobody was reported

    def test_a_code_costs_little_more_memory_than_its_parts(self):
        self.ask("volume", "create", "--scheme", "code=4+2", self.pool, "w", "16M")
        self.close()
        self.ask("volume", "rm", self.pool, "v")
        self.until(lambda: not self.lent("a"))
        done = self.move("import", self.pool, "w", input=bytes(16 << 20))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(sum(self.lent(name) for name in "abcdef"), 1.6 * (16 << 20))

    def test_places_of_a_code_move_to_a_new_donor(self):
        self.do("work 200")
        self.begin("g")
        self.assertEqual(self.weir("drain", self.pool, "b").returncode, 0)
        self.until(lambda: not self.members("b"))
        self.kill("cd")
        self.assertEqual(self.do("check"), 0)
        self.assertEqual(self.weir("volume", "rm", self.pool, "v").returncode, 1)


class LongLease(World):
    """No lease ends during a test."""

    lease = 10 * PATIENCE

    def test_a_volume_opens_although_the_coordinator_was_killed(self):
        self.begin("abc")
        self.ask("volume", "create", "--extent", "256K", self.pool, "v", "4M")
        data = os.urandom(4 << 20)
        self.until(lambda: not self.move("import", self.pool, "v", input=data).returncode)
        first = self.ask("status", self.pool)["coordinator"]
        process = self.donors.pop(first)[0]
        process.kill()
        process.wait()
        done = self.move("export", self.pool, "v")
        self.assertEqual((done.returncode, done.stdout == data), (0, True), done.stderr)
        self.assertIn(self.ask("status", self.pool)["coordinator"], self.donors)


class Refusals(World):
    def test_bad_input_is_named(self):
        place = self.pool.rsplit("/", 1)[0]
        self.begin("a")
        for status, words, args in (
                (1, "exists already", ("create", self.pool)),
                (1, "there is no pool q", ("status", place + "/q")),
                (1, "no donor z", ("drain", self.pool, "z")),
                (1, "no volume w", ("volume", "rm", self.pool, "w")),
                (1, "copies=2 needs donors in 2 failure domains; pool p has 1 donors in 1",
                 ("volume", "create", "--wait", "0", self.pool, "w", "1M")),
                (1, "more than the donors of pool p lend, 8.0 MiB",
                 ("volume", "create", "--wait", "0", "--scheme", "copies=1", self.pool, "w",
                  "1G")),
                (1, "this host knows no pool nowhere", ("status", "nowhere")),
                (1, "expected a pool's name", ("status", "http://h/p")),
                (1, "code=4+2 needs donors in 6 failure domains; pool p has 1 donors in 1",
                 ("volume", "create", "--wait", "0", "--scheme", "code=4+2", self.pool, "w",
                  "1M")),
                (2, "files need copies, not code=4+2",
                 ("volume", "create", "--files", "--scheme", "code=4+2", self.pool, "w", "64M")),
                (2, "expected a scheme",
                 ("volume", "create", "--scheme", "raid6", self.pool, "w", "1M")),
                (2, "multiple of 4096", ("volume", "create", self.pool, "w", "5")),
                (2, "power of two",
                 ("volume", "create", "--extent", "96K", self.pool, "w", "1M")),
                (2, "expected a name", ("volume", "create", self.pool, "a/b", "1M")),
                (2, "no command 'volume fly'", ("volume", "fly")),
                (2, "no command 'fly'", ("fly",)),
                (2, "no COMMAND", ()),
                (2, "", ("create",)),
                (2, "lease", ("create", "--lease", "0", self.pool))):
            with self.subTest(args):
                done = self.weir(*args)
                self.assertEqual((done.returncode, done.stdout), (status, ""))
                self.assertIn(words, done.stderr)

    def test_a_donor_that_cannot_join_says_why(self):
        place = self.pool.rsplit("/", 1)[0]
        self.begin("a")
        port = self.donors["a"][1].rpartition(":")[2]
        key = ("--key", self.key("key"))
        for status, words, args in (
                (1, "has a donor a already, at 127.0.0.1:", {"name": "a"}),
                (1, f"has a donor a already, at 127.0.0.1:{port} in domain ra",
                 {"name": "a", "domain": "other", "listen": f"127.0.0.2:{port}",
                  "more": ("--advertise", "127.0.0.1")}),
                (1, "there is no pool q", {"name": "b", "pool": place + "/q"}),
                (1, "domain 'rack 1': expected", {"name": "c", "domain": "rack 1"}),
                (1, "cannot connect to 0.0.0.0:", {"name": "d", "listen": "0.0.0.0:0",
                                                   "more": key}),
                (2, "--advertise 127.0.0.1:1: expected", {
                    "name": "e", "more": ("--advertise", "127.0.0.1:1")}),
                (2, "--advertise [::1]:1: expected", {
                    "name": "e", "more": ("--advertise", "[::1]:1")})):
            with self.subTest(args):
                process, line = self.start(**args)
                self.assertEqual((line, process.wait(PATIENCE)), ("", status))
                self.assertIn(words, self.log(args["name"]))


if KIND == "file":
    class Lists(World):
        """Donors with lists of keys: each has a copy."""

        def change(self, *args):
            done = subprocess.run([WEIR, "key", *args], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

        def path(self, name):
            return os.path.join(self.folder, name)

        def add(self, name, *options):
            self.change("add", *options, self.path("list"), name, self.path(name))
            return self.path(name)

        def give(self, *names):
            """Copies the list to donors, and lets those that run read it."""
            for name in names:
                shutil.copy(self.path("list"), self.path("new"))
                os.rename(self.path("new"), self.path(f"list-{name}"))
                if name in self.donors:
                    before = self.log(name).count('msg="key ')
                    self.donors[name][0].send_signal(signal.SIGHUP)
                    self.until(lambda: self.log(name).count('msg="key ') > before)

        def open(self, *names):
            for name in names:
                self.begin(name, more=("--keys", self.path(f"list-{name}")))

        def rebuilds(self, name):
            """Kills a donor, which returns empty, and gets its memory back from others."""
            process, address = self.donors.pop(name)
            before = self.log(name).count("msg=rebuilt")
            process.kill()
            process.wait()
            self.begin(name, listen=address, more=("--keys", self.path(f"list-{name}")))
            self.until(lambda: self.log(name).count("msg=rebuilt") > before)
            self.until(lambda: self.ask("status", self.pool)["whole"] == GROUPS)

        def export(self, key):
            return self.move("export", "--key", key, self.pool, "v")

        def test_a_list_names_the_key_of_the_donors(self):
            self.add("app")
            for words, more in (("no key has the right 'pool'", "one"), ("", "two"),
                                ("'one' and 'two' have the right 'pool'", None)):
                self.give("a")
                process, line = self.start("a", more=("--keys", self.path("list-a")))
                self.assertEqual(bool(line), not words)
                if not words:
                    process.kill()
                process.wait(PATIENCE)
                self.assertIn(words, self.log("a"))
                if more:
                    self.add(more, "--rights", "read,write,regions,pool")

        def test_a_donor_that_starts_again_waits_for_what_is_missing(self):
            self.add("pool", "--rights", "read,write,regions,pool")
            self.give("a", "b")
            self.open("a", "b")
            self.assertEqual(self.weir("volume", "create", self.pool, "v", "4M").returncode, 0)
            donor = self.donors["b"][0]
            os.unlink(self.path("list-b"))
            donor.send_signal(signal.SIGSTOP)
            self.until(lambda: self.states("b") == {"out"})
            donor.send_signal(signal.SIGCONT)
            self.until(lambda: "starting again, empty" in self.log("b") and
                       self.log("b").count("No such file") > 1)
            shutil.copy(self.path("list"), self.path("list-b"))
            self.until(lambda: self.states("b") & {"syncing", "serving"})
            os.unlink(self.path("list-b"))
            before = self.log("b").count("No such file")
            donor.send_signal(signal.SIGSTOP)
            self.until(lambda: self.states("b") == {"out"})
            donor.send_signal(signal.SIGCONT)
            self.until(lambda: self.log("b").count("No such file") > before)
            donor.send_signal(signal.SIGTERM)
            self.assertEqual(donor.wait(PATIENCE), 0)

        def test_donors_rebuild_while_their_key_is_replaced(self):
            client = "read,write,regions"
            self.add("donors", "--rights", client + ",pool")
            app = self.add("app", "--tenant", "donors", "--rights", client)
            other = self.add("other")
            self.give("a", "b", "c")
            self.open("a", "b", "c")
            self.ask("volume", "create", "--extent", "256K", self.pool, "v", "6M")
            data = os.urandom(6 << 20)
            done = self.move("import", "--key", app, self.pool, "v", input=data)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = self.export(other)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"of another tenant", done.stderr)

            self.change("rotate", self.path("list"), "donors", self.path("donors-2"))
            self.give("a")
            self.rebuilds("a")  # b and c know the old key only
            self.give("b", "c")
            self.change("revoke", "--old", self.path("list"), "donors")
            self.give("a", "b", "c")
            self.rebuilds("b")
            done = self.export(app)
            self.assertEqual((done.returncode, done.stdout == data), (0, True), done.stderr)
            self.change("revoke", self.path("list"), "app")
            self.give("a", "b", "c")
            self.assertEqual(self.export(app).returncode, 1)


if KIND == "etcd":
    class Outage(World):
        def test_without_etcd_nothing_changes(self):
            self.begin("ab")
            self.assertEqual(self.weir("volume", "create", self.pool, "v", "4M").returncode, 0)
            before = self.ask("status", self.pool)["groups"]
            incarnations = self.incarnations()
            self.etcd.kill()
            done = self.weir("status", self.pool)
            self.assertEqual(done.returncode, 1)
            self.assertIn("does not answer", done.stderr)
            self.until(lambda: all("pool unreachable" in self.log(name) for name in "ab"))
            self.etcd.start()
            self.until(lambda: all("pool reachable" in self.log(name) for name in "ab"))
            self.assertEqual(self.ask("status", self.pool)["groups"], before)
            self.assertEqual(self.incarnations(), incarnations)

        def incarnations(self):
            return [donor["incarnation"] for donor in self.ask("donors", self.pool)["donors"]]


class Identity(World):
    lease = 10 * LEASE  # the map still names a donor that was killed

    def setUp(self):
        super().setUp()
        self.file = self.key("key")
        self.own, self.line = self.identity("own")
        self.begin("a", more=("--key", self.file, "--identity", self.own))
        self.ask("volume", "create", "--scheme", "copies=1", self.pool, "v", "4M")
        self.assertEqual(self.export().returncode, 0, self.log("a"))

    def export(self, key=None):
        return self.move("export", "--key", key or self.file, self.pool, "v",
                         f"{self.folder}/out", text=True)

    def replace(self, name):
        """Kills the donor. Another process with the pool's key answers at its address."""
        self.donors["a"][0].kill()
        self.donors["a"][0].wait()
        identity = ("--identity", self.identity(name)[0]) if name else ()
        impostor = subprocess.Popen(
            [WEIR, "serve", "--device", "softnic", "--memory", "8M", "--key", self.file,
             "--listen", self.donors["a"][1], *identity],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(impostor.stdout.close)
        self.addCleanup(impostor.wait)
        self.addCleanup(impostor.kill)
        self.assertTrue(impostor.stdout.readline())

    def test_the_map_shows_identities(self):
        self.begin("b", more=("--key", self.file))
        donors = {donor["name"]: donor for donor in self.ask("donors", self.pool)["donors"]}
        digits = self.line.split()[1]
        self.assertEqual(donors["a"]["identity"], digits)
        self.assertEqual(donors["b"]["identity"], "")
        lines = self.weir("donors", self.pool).stdout.splitlines()
        self.assertEqual([line.split()[-1] for line in lines], ["identity", digits[:16], "-"])

    def test_a_donor_of_another_identity_is_refused(self):
        self.replace("other")
        done = self.export()
        self.assertEqual(done.returncode, 1)
        self.assertIn("donor a, " + self.donors["a"][1], done.stderr)
        self.assertIn("another identity than the key file or the pool names", done.stderr)

    def test_a_process_without_an_identity_is_refused(self):
        self.replace(None)
        self.assertIn("another identity", self.export().stderr)

    def test_a_file_that_names_donors_trusts_no_other_donor_of_the_map(self):
        with open(self.file, encoding="ascii") as file:
            secret = file.read()
        for name, line, status, said in (("right", self.line, 0, ""),
                                         ("wrong", self.identity("other")[1], 1,
                                          "an identity that the key's file does not name")):
            path = os.path.join(self.folder, name)
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w",
                      encoding="ascii") as file:
                file.write(secret + line)
            done = self.export(path)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    if KIND == "etcd" and not shutil.which("etcd"):
        print("etcd is not installed")
        sys.exit(77)
    unittest.main()
