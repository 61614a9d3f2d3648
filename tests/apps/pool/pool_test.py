# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A pool of real donors on softnic, whose map is in a file or in etcd.

  pool_test.py WEIR VOLUME_CLIENT file|etcd
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

KIND = sys.argv.pop()
CLIENT = os.path.abspath(sys.argv.pop())
WEIR = os.path.abspath(sys.argv.pop())
PATIENCE = 60
LEASE = 6  # seconds: a busy machine delays a donor by less than two thirds
GROUPS = 16


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Etcd:
    """One etcd on loopback. Its data outlives a kill."""

    def __init__(self, folder):
        self.folder, self.process = folder, None
        self.port, self.peer = free_port(), free_port()

    def start(self):
        url, peer = (f"http://127.0.0.1:{port}" for port in (self.port, self.peer))
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                ["etcd", "--data-dir", os.path.join(self.folder, "data"),
                 "--listen-client-urls", url, "--advertise-client-urls", url,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", f"default={peer}", "--unsafe-no-fsync"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()


class World(unittest.TestCase):
    lease = LEASE

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weir-pool-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.donors = {}
        self.pool = f"file:{self.folder}/p"
        if KIND == "etcd":
            self.etcd = Etcd(self.folder)
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
        while not holds():
            self.assertLess(time.monotonic(), end, self.weir("status", self.pool))
            time.sleep(0.1)

    def weir(self, *args):
        return subprocess.run([WEIR, "pool", *args], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE)

    def ask(self, *args):
        done = self.weir(*args, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def start(self, name, domain=None, listen="127.0.0.1:0", pool=None, more=()):
        """Starts a donor, and returns its process and first line."""
        log = open(os.path.join(self.folder, f"log-{name}"), "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [WEIR, "serve", "--device", "softnic", "--memory", "8M", "--listen", listen,
             "--pool", pool or self.pool, "--name", name, "--domain", domain or f"r{name}",
             *more],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
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

    def log(self, name):
        with open(os.path.join(self.folder, f"log-{name}"), encoding="utf-8") as file:
            return file.read()

    def key(self, name):
        path = os.path.join(self.folder, name)
        subprocess.run([WEIR, "key", "new", path], check=True, capture_output=True)
        return path

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

    def lent(self, name):
        """Bytes of the donor's regions."""
        done = subprocess.run([WEIR, "stat", "--device", "softnic", "--json",
                               self.donors[name][1]], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["lent_bytes"]

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
                (2, "--pool needs --key", {"name": "f", "more": ("--keys", "list")})):
            with self.subTest(args):
                process, line = self.start(**args)
                self.assertEqual((line, process.wait(PATIENCE)), ("", status))
                self.assertIn(words, self.log(args["name"]))


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


if __name__ == "__main__":
    if KIND == "etcd" and not shutil.which("etcd"):
        print("etcd is not installed")
        sys.exit(77)
    unittest.main()
