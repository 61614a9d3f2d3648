# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A pool whose etcd is full or wants a password, and whose hosts disagree about the time.

trouble_test.py WEIR VOLUME_CLIENT CODED_CLIENT etcd CLOCK_SHIFT
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest
import unittest.mock
import urllib.error
import urllib.request

SHIFT = os.path.abspath(sys.argv.pop(5))

from pool_test import CODED_CLIENT, GROUPS, PATIENCE, PRELOAD, WEIR, World  # noqa: E402

MIB = 1 << 20
HOUR = 3600


class Trouble(World):
    def ask_etcd(self, path, **body):
        url = f"http://127.0.0.1:{self.etcd.port}/v3/{path}"
        with urllib.request.urlopen(url, json.dumps(body).encode(), PATIENCE) as answer:
            return json.load(answer)

    def make_volume(self):
        self.ask("volume", "create", "--extent", "256K", self.pool, "v", "3M")

    def fill_volume(self):
        data = os.urandom(3 * MIB)
        done = self.move("import", self.pool, "v", input=data)
        self.assertEqual(done.returncode, 0, done.stderr)
        return data

    def export(self):
        return self.move("export", self.pool, "v")

    def must_be_whole(self):
        self.until(lambda: self.ask("status", self.pool)["whole"] == GROUPS)


class Full(Trouble):
    etcd_options = ("--quota-backend-bytes", "1000000")

    def fill_etcd(self):
        """Fills etcd with keys that are none of the pool's."""
        value = "eHh4" * 25000
        with self.assertRaises(urllib.error.HTTPError) as caught:
            for _ in range(100):
                self.ask_etcd("kv/put", key="eA==", value=value)
        caught.exception.close()

    def make_room(self):
        revision = self.ask_etcd("kv/range", key="eA==")["header"]["revision"]
        self.ask_etcd("kv/compaction", revision=revision, physical=True)
        self.ask_etcd("maintenance/defragment")
        for alarm in self.ask_etcd("maintenance/alarm", action="GET")["alarms"]:
            self.ask_etcd("maintenance/alarm", action="DEACTIVATE", **alarm)

    def test_a_full_etcd_freezes_the_map_and_loses_nothing(self):
        self.begin("abc")
        self.make_volume()
        client = subprocess.Popen(
            [CODED_CLIENT, f"{self.pool}/v", f"{self.folder}/model"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1, env=dict(os.environ, LD_PRELOAD=PRELOAD))
        for cleanup in (client.stdout.close, client.wait, client.stdin.close):
            self.addCleanup(cleanup)
        self.assertEqual(client.stdout.readline(), "open\n")
        self.tell_client(client, "work 100")
        self.fill_etcd()
        with self.subTest("a command says so"):
            done = self.weir("volume", "create", "--wait", "0", self.pool, "w", "1M")
            self.assertEqual(done.returncode, 1)
            self.assertIn("is full", done.stderr)
            self.assertIn("etcdctl alarm disarm", done.stderr)
        with self.subTest("a volume that is open goes on"):
            self.tell_client(client, "work 100")
            self.tell_client(client, "check")
        with self.subTest("a donor that is late for its lease says that it cannot return"):
            self.donors["c"][0].send_signal(signal.SIGSTOP)
            self.until(lambda: "W409" in "".join(map(self.log, "ab")))
            self.donors["c"][0].send_signal(signal.SIGCONT)
            self.until(lambda: "W409" in self.log("c"))
        with self.subTest("a donor dies: writes wait until there is room"):
            self.donors["c"][0].kill()
            self.donors["c"][0].wait()
            client.stdin.write("work 200\n")
            self.until(lambda: "W409" in "".join(map(self.log, "ab")))
            before = self.versions()
            self.until(lambda: "is full" in self.weir("drain", self.pool, "a").stderr)
            self.assertEqual(self.versions(), before)
            self.make_room()
            self.assertTrue(client.stdout.readline().startswith("done "))
            self.begin("c", listen=self.donors["c"][1])
            self.must_be_whole()
            self.tell_client(client, "check")

    def tell_client(self, client, command):
        client.stdin.write(command + "\n")
        self.assertTrue(client.stdout.readline().startswith("done "), command)


class Password(Trouble):
    def as_user(self, name, password):
        return unittest.mock.patch.dict(os.environ, ETCDCTL_USER=name, ETCDCTL_PASSWORD=password)

    def test_a_wrong_password_has_words(self):
        self.begin("ab")
        self.make_volume()
        data = self.fill_volume()
        self.ask_etcd("auth/user/add", name="root", password="secret")
        self.ask_etcd("auth/role/add", name="root")
        self.ask_etcd("auth/user/grant", user="root", role="root")
        self.ask_etcd("auth/enable")
        for user, words in ((("", ""), "ETCDCTL_USER"), (("root", "wrong"), "ETCDCTL_PASSWORD")):
            with self.as_user(*user):
                for args in ("status", self.pool), ("volume", "rm", self.pool, "v"):
                    done = self.weir(*args)
                    self.assertEqual((done.returncode, done.stdout), (1, ""))
                    self.assertIn(words, done.stderr)
                name = f"c-{user[1]}"
                process, line = self.start(name)
                self.assertEqual((line, process.wait(PATIENCE)), ("", 1))
                self.assertIn(words, self.log(name))
        # Donors that joined before have no password; their memory stays.
        self.until(lambda: all("pool unreachable" in self.log(name) for name in "ab"))
        with self.as_user("root", "secret"):
            self.ask_etcd_as_root("auth/disable")
        self.until(lambda: all("pool reachable" in self.log(name) for name in "ab"))
        done = self.export()
        self.assertEqual((done.returncode, done.stdout == data), (0, True), done.stderr)

    def ask_etcd_as_root(self, path):
        token = self.ask_etcd("auth/authenticate", name="root", password="secret")["token"]
        request = urllib.request.Request(f"http://127.0.0.1:{self.etcd.port}/v3/{path}", b"{}",
                                         {"Authorization": token})
        urllib.request.urlopen(request, timeout=PATIENCE).close()


class Clocks(Trouble):
    def test_clocks_an_hour_apart_change_nothing(self):
        late = {"LD_PRELOAD": SHIFT, "WEIR_TEST_SHIFT": f"{-HOUR}"}
        early = {"LD_PRELOAD": SHIFT, "WEIR_TEST_SHIFT": f"{HOUR}"}
        self.begin("a")
        self.begin("b", variables=late)
        self.begin("c", variables=early)
        self.make_volume()
        data = self.fill_volume()
        for name in "ab":  # so that another coordinates
            process, address = self.donors[name]
            process.kill()
            process.wait()
            self.until(lambda: self.ask("status", self.pool)["lean"])
            self.begin(name, listen=address)
            self.must_be_whole()
        with unittest.mock.patch.dict(os.environ, late):
            done = self.export()
        self.assertEqual((done.returncode, done.stdout == data), (0, True), done.stderr)


if __name__ == "__main__":
    if not shutil.which("etcd"):
        print("etcd is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
