# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir trace and weir stat of a running client, on softnic.

Called with the path of the weir command.
"""
import errno
import json
import os
import signal
import subprocess
import sys
import time
import unittest

WEIR = os.path.abspath(sys.argv.pop(1))
SECONDS = 60
NOBODY = 65534


def environment():
    return {name: value for name, value in os.environ.items()
            if name not in ("WEIR_DEVICE", "LD_PRELOAD")}


def start(*args, **more):
    return subprocess.Popen(
        [WEIR, *args],
        text=True,
        **{
            "env": environment(),
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **more,
        },
    )


def weir(*args):
    process = start(*args)
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err


def sessions(pid=None):
    """The sessions of @pid, or all sessions, from weir stat."""
    _, out, _ = weir("stat", "--json")
    return [each for each in json.loads(out)["sessions"] if pid in (None, each["pid"])]


class Trace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.donor = start("serve", "--device", "softnic", "--memory", "64M", "--listen",
                          "127.0.0.1:0", stderr=subprocess.DEVNULL)
        cls.address = cls.donor.stdout.readline().split()[-1]

    @classmethod
    def tearDownClass(cls):
        cls.donor.terminate()
        cls.donor.communicate(timeout=SECONDS)

    def client(self, *before, interval="0.2"):
        """A client that runs until stopped; started by a shell, it first waits for a line."""
        ping = ["ping", "--device", "softnic", "-c", "1000000", "-i", interval, self.address]
        if before:
            process = subprocess.Popen([*before, WEIR, *ping], env=environment(), text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            self.addCleanup(process.stdin.close)
        else:
            process = start(*ping, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def busy_client(self, **more):
        """A client with a session and completed requests."""
        process = self.client(**more)
        deadline = time.monotonic() + SECONDS
        while not any(each["requests"] for each in sessions(process.pid)):
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(process.poll())
        return process

    def follower(self, *args):
        process = start("trace", "--follow", *args)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_decisions_are_printed_in_words(self):
        client = self.busy_client()
        # Copies are recorded in sums, every 10 ms at most: on a busy machine the first comes late.
        deadline = time.monotonic() + SECONDS
        while True:
            status, out, err = weir("trace", str(client.pid))
            self.assertEqual((status, err), (0, ""))
            if " copy " in out or time.monotonic() > deadline:
                break
        head, *lines = out.splitlines()
        self.assertEqual(head.split(", since")[0], f"session 1: with {self.address} over softnic0")
        self.assertTrue(any(" up  " in line and "channel 1 is up" in line for line in lines), out)
        for line in lines:
            self.assertRegex(line, r"^1 \d\d:\d\d:\d\d\.\d{6} (\w+) +\S.*$")
        told = [line.split(None, 3) for line in lines]
        posts = [words for _, _, kind, words in told if kind == "post"]
        self.assertIn("1 work request posted on channel 0, ", posts[0])
        self.assertIn("copy", [kind for _, _, kind, _ in told])

    def records_of_copies(self, *options):
        """The trace of a client that repeatedly writes 4 KiB from unregistered memory.

        By then, many of its requests share records."""
        process = start(
            "perf",
            "--device",
            "softnic",
            "--mr",
            "pre",
            "--region",
            "16M",
            "--seconds",
            "600",
            *options,
            self.address,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + SECONDS
            while True:
                _, out, _ = weir("trace", "--json", str(process.pid))
                records = [json.loads(line) for line in out.splitlines()]
                if any(each["what"] == "copy" and each["requests"] > 100 and
                       each["bytes"] == each["requests"] * 4096 for each in records):
                    return records
                self.assertLess(time.monotonic(), deadline, out)
                self.assertIsNone(process.poll())
        finally:
            process.kill()
            process.wait()

    def test_copies_do_not_crowd_out_decisions(self):
        """A copy is recorded every 10 ms at most."""
        for options in (("--depth", "1"), ("--threads", "8", "--depth", "32")):
            with self.subTest(options):
                told_ns = [each["at_ns"] for each in self.records_of_copies(*options)
                           if each["what"] == "copy"]
                for before, after in zip(told_ns, told_ns[1:]):
                    self.assertGreaterEqual(after - before, 10e6)

    def test_failures_show_the_devices_status(self):
        """Each queue pair fails after some operations; the read is posted again, and the client
        continues."""
        client = start("perf", "--device", "softnic", "--op", "read", "--region", "1M", "--seconds",
                       "600", self.address, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=environment() | {"WEIR_SOFTNIC": "error_after=500"})
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        deadline = time.monotonic() + SECONDS
        failed = []
        while not failed:
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(client.poll())
            _, out, _ = weir("trace", "--json", str(client.pid))
            failed = [record for record in map(json.loads, out.splitlines())
                      if record["what"] == "fail" and record["requests"]]
        said = "transport retry counter exceeded"
        self.assertEqual(
            (failed[0]["status"], failed[0]["verbs_status"]), (-errno.ECONNRESET, said)
        )
        self.assertTrue(failed[0]["text"].endswith(f"; the device says: {said}"), failed[0]["text"])

    def test_for_programs_each_line_is_an_object(self):
        client = self.busy_client()
        status, out, _ = weir("trace", "--json", str(client.pid))
        self.assertEqual(status, 0)
        records = [json.loads(line) for line in out.splitlines()]
        for record in records:
            self.assertEqual((record["session"], record["donor"]), (1, self.address))
        post = next(record for record in records if record["what"] == "post")
        self.assertEqual((post["work_requests"], post["requests"], post["status"]), (1, 1, 0))
        times = [record["at_ns"] for record in records if record["what"] == "post"]
        self.assertEqual(times, sorted(times))

    def test_following_goes_on_until_the_program_ends(self):
        client = self.busy_client()
        process = self.follower(str(client.pid))
        while " post " not in process.stdout.readline():
            pass
        client.kill()
        client.wait()
        _, err = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, err), (0, f"weir trace: {client.pid} has ended\n"))
        self.assertEqual(sessions(client.pid), [])

    def test_following_ends_at_an_interrupt(self):
        client = self.busy_client()
        process = self.follower(str(client.pid))
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertIsNone(client.poll())

    def test_following_waits_for_the_first_session(self):
        client = self.client("sh", "-c", 'read -r _; exec "$@"', "sh")
        process = self.follower("--json", str(client.pid))
        self.assertIn("no session yet", process.stderr.readline())
        client.stdin.write("\n")
        client.stdin.flush()
        self.assertEqual(json.loads(process.stdout.readline())["what"], "up")

    def test_a_process_without_sessions_is_reported(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        for args in (("trace",), ("trace", "--follow"), ("stat",)):
            status, out, err = weir(*args, str(ended.pid))
            self.assertEqual((status, out), (1, ""))
            self.assertIn(f"{ended.pid}: no such process", err)
        for command in ("trace", "stat"):
            status, out, err = weir(command, str(os.getpid()))
            self.assertEqual((status, out), (1, ""))
            self.assertIn(f"{os.getpid()}: no session open", err)

    def test_another_users_process_stays_closed(self):
        if os.geteuid():
            self.skipTest("only root can become another user")
        client = self.busy_client()
        try:
            looks = [start(command, str(client.pid), user=NOBODY, group=NOBODY, extra_groups=[])
                     for command in ("trace", "stat")]
        except PermissionError:
            self.skipTest("another user cannot execute what was built here")
        for look in looks:
            out, err = look.communicate(timeout=SECONDS)
            self.assertEqual((look.returncode, out), (1, ""), err)
            self.assertIn(f"{client.pid}: another user's process", err)

    def test_stat_shows_all_counters_of_a_process(self):
        client = self.busy_client()
        status, out, _ = weir("stat", "--json", str(client.pid))
        self.assertEqual(status, 0)
        [session] = json.loads(out)["sessions"]
        self.assertEqual((session["pid"], session["process"]), (client.pid, "weir-ping"))
        self.assertEqual(session["donor"], self.address)
        self.assertGreaterEqual(session["work_requests"], session["requests"])
        self.assertGreater(session["bytes_read"], 0)
        self.assertEqual((session["errors"], session["merged"]), (0, 0))
        self.assertLessEqual(session["window_bytes"], session["window_limit"])
        self.assertTrue(4096 <= session["mr_dyn_bytes"] <= 512 * 1024 + 1, session)
        for kind in ("read", "write", "atomic"):
            latency = session["latency"][kind]
            self.assertLessEqual(latency["p50_us"], latency["p99_us"])
            self.assertLessEqual(latency["p99_us"], latency["max_us"])
        _, out, _ = weir("stat", str(client.pid))
        self.assertRegex(out, f"(?m)^mr_dyn_bytes +{session['mr_dyn_bytes']}  from this length on ")
        self.assertRegex(out, f"(?m)^session of weir-ping, process {client.pid}, with ")
        self.assertRegex(out, r"(?m)^requests +\d+  reads, writes and atomics submitted$")
        _, out, _ = weir("stat")
        self.assertRegex(out, f"(?m)^weir-ping +{client.pid} +{self.address} ")

    def test_stat_shows_latencies_once_some_request_was_timed(self):
        # One request of 64 is timed, by lot: many are made.
        client = self.busy_client(interval="0.002")
        deadline = time.monotonic() + SECONDS
        timed = 0
        while not timed and time.monotonic() < deadline:
            [session] = json.loads(weir("stat", "--json", str(client.pid))[1])["sessions"]
            timed = session["latency"]["read"]["timed_requests"]
        self.assertGreater(timed, 0)
        self.assertLess(timed, session["requests"])
        self.assertGreater(session["latency"]["read"]["p50_us"], 0)
        _, out, _ = weir("stat", str(client.pid))
        self.assertRegex(out, r"(?m)^read latency: p50 [\d.]+ us, p99 [\d.]+ us, longest ")

    def pressure(self, pid, nic):
        """The estimate of weir stat for small writes of @pid, on a NIC with @nic cache entries."""
        status, out, err = weir("stat", "--json", "--nic", nic, str(pid))
        self.assertEqual(status, 0, err)
        [session] = json.loads(out)["sessions"]
        return session["pressure"]

    def test_stat_estimates_the_nics_translation_cache(self):
        client = start(
            "perf",
            "--device",
            "softnic",
            "--size",
            "16",
            "--region",
            "16M",
            "--pattern",
            "random",
            "--unload",
            "frequency",
            "--hot-pages",
            "64",
            "--seconds",
            "600",
            self.address,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        deadline = time.monotonic() + SECONDS
        while not any(
            each.get("pressure", {}).get("pages", 0) == 4096 for each in sessions(client.pid)
        ):
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(client.poll())
        few, half, all_of_it = (
            self.pressure(client.pid, nic) for nic in ("64", "2048", "connectx-5")
        )
        self.assertEqual([each["entries"] for each in (few, half, all_of_it)], [64, 2048, 262144])
        self.assertLess(0, few["hit_rate"])
        self.assertLess(few["hit_rate"], half["hit_rate"])
        self.assertLess(half["hit_rate"], 1)
        self.assertEqual(
            (all_of_it["hit_rate"], few["huge_pages"], few["huge_hit_rate"]), (1, 8, 1)
        )
        for share in ("hot_share", "unloaded_share"):
            self.assertLess(0, few[share])
            self.assertLess(few[share], 1)
        _, out, _ = weir("stat", str(client.pid))
        self.assertRegex(out, r"(?m)^  pages touched +\d+  of 4 KiB, or 8 of 2 MiB$")
        self.assertRegex(out, r"(?m)^  hit rate +[\d.]+ %  estimated for a cache of 64 entries$")

    def test_an_unknown_nic_is_refused(self):
        for nic in ("connectx-0", "0", "", "../profiles/connectx-3", "12x"):
            status, out, err = weir("stat", "--nic", nic, "1")
            self.assertEqual((status, out), (2, ""))
            self.assertIn(f"--nic {nic}:", err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
