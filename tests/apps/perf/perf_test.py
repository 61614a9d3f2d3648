# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir perf with a donor: reports, counts equal to those at the verbs boundary, bad input.

perf_test.py WEIR COUNT: the command, and the library that counts at the verbs boundary. The
environment
gives device, donor's address and key: see tests/support/libweir_fixture.h.
"""
import json
import lzma
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

COUNT = sys.argv.pop(2)
WEIR = sys.argv.pop(1)
DEVICE = os.environ.get("WEIR_DEVICE") or "softnic"
ADDRESS = os.environ.get("WEIR_TEST_ADDRESS") or "127.0.0.1"
KEY = os.environ.get("WEIR_TEST_KEY")
# Libraries preloaded before libibverbs if the device is softnic.
PRELOAD = os.environ.get("WEIR_TEST_PRELOAD", "")
MIB = 1 << 20
TRACES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "bench",
                      "traces")
HAS_MORE_TIME = 300
no_matter_which_device = unittest.skipIf(DEVICE != "softnic", "the same on every device")


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return dict(kept, WEIR_DEVICE=DEVICE, **more)


class Donor:
    """A donor for a `with` statement."""

    def __init__(self, memory="64M"):
        self.memory = memory

    def __enter__(self):
        key = ["--key", KEY] if KEY else []
        self.process = subprocess.Popen(
            [WEIR, "serve", "--listen", f"{ADDRESS}:0", "--memory", self.memory, *key],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment())
        self.address = self.process.stdout.readline().split()[1]
        return self

    def __exit__(self, *_exception):
        self.process.terminate()
        self.process.wait(60)
        self.process.stdout.close()

    def perf(self, *options, **more):
        key = ["--key", KEY] if KEY else []
        return subprocess.run(['my "weir"', "perf", *key, *options, self.address],
                              executable=WEIR, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=HAS_MORE_TIME,
                              env=environment(**more))


class WithDonor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.donor = Donor()
        cls.donor.__enter__()
        cls.addClassCleanup(cls.donor.__exit__)

    def measured(self, *options, **more):
        done = self.donor.perf("--json", "--region", "4M", "--seconds", "0", *options, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)


class Report(WithDonor):
    def test_the_json_is_complete(self):
        said = self.measured("--ops", "1000", "--threads", "2", "--depth", "4", "--op", "mix")
        self.assertEqual(said["ops"], 1000)
        self.assertEqual(said["bytes"], 1000 * 4096)
        for name in ("seconds", "ops_per_second", "bytes_per_second", "cpu_seconds"):
            self.assertGreaterEqual(said[name], 0, name)
        for name in ("work_requests", "doorbells", "completions", "events", "context_switches"):
            self.assertIsInstance(said[name], int, name)
        latency = said["latency_us"]
        self.assertLessEqual(0, latency["p50"])
        self.assertLessEqual(latency["p50"], latency["p99"])
        self.assertLessEqual(latency["p99"], latency["p999"])
        self.assertLessEqual(latency["p999"], latency["max"])
        settings = said["settings"]
        self.assertEqual((settings["op"], settings["threads"], settings["depth"]), ("mix", 2, 4))
        self.assertEqual((settings["batching"], settings["mr"], settings["polling"]),
                         ("hybrid", "auto", "adaptive"))

    def test_the_text_names_the_measurement(self):
        done = self.donor.perf("--region", "1M", "--ops", "100", "--mr", "user")
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("write, 4.0 KiB, sequential over 1.0 MiB", "memory user", "work requests",
                     "p99.9"):
            self.assertIn(word, done.stdout)
        self.assertNotRegex(done.stdout, "copied|register")

    def test_the_text_counts_copies_and_registrations(self):
        for way, copied, registered in (("pre", 1000, 0), ("dyn", 0, 1000)):
            done = self.donor.perf(
                "--region", "1M", "--ops", "1000", "--threads", "4", "--depth", "64", "--mr", way
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, rf"(?m)^copied +{copied}  requests")
            self.assertRegex(done.stdout, rf"(?m)^registered +{registered}  requests")

    def test_the_length_from_which_memory_is_registered_can_be_set(self):
        for from_bytes, copied, registered in (("8K", 1000, 0), ("4K", 0, 1000)):
            options = ("--region", "1M", "--ops", "1000", "--mr-dyn", from_bytes)
            done = self.donor.perf(*options)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(
                done.stdout, rf"(?m)^registers from +{int(from_bytes[0]) * 1024}  bytes"
            )
            said = self.measured(*options)
            self.assertEqual((said["copied"], said["registered"]), (copied, registered))
            self.assertEqual(said["settings"]["mr_dyn_bytes"], int(from_bytes[0]) * 1024)

    def test_every_mode_completes_each_request_once_and_verifies(self):
        for way in ("-o read -p random -m pre -b single -l busy",
                    "-o write -p sequential -m dyn -b doorbell -l event -w 64K",
                    "-o mix -p zipf -m user -b merge -l event-batch -w off -c 4",
                    "-o write -p strided -m auto -b hybrid -l hybrid -w delay -s 777",
                    "-o mix -p clusters --gap 0 --cluster 4 -w knee -s 64K -r 16M --fragment 4K",
                    "-o read -p random -l scq -c 4", "-o write -l scq --cqs 2 -c 4",
                    "-o read -p sequential -P accelio -s 1 -c 1", "-o mix -p random -P single"):
            with self.subTest(way):
                said = self.measured("--threads", "3", "--depth", "8", "--ops", "300", "--verify",
                                     *way.split())
                self.assertEqual(said["ops"], 300)

    def test_the_region_is_given_back(self):
        self.measured("--ops", "1")
        key = ["--key", KEY] if KEY else []
        state = json.loads(subprocess.run(
            [WEIR, "stat", "--json", *key, self.donor.address], capture_output=True, text=True,
            timeout=HAS_MORE_TIME, env=environment(), check=True).stdout)
        self.assertEqual((state["lent_bytes"], state["regions"]), (0, 0))

    @no_matter_which_device
    def test_a_plot_is_well_formed(self):
        import xml.etree.ElementTree as xml
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "latency.svg")
            self.measured("--ops", "500", "--plot", path)
            bars = xml.parse(path).getroot().iter("{http://www.w3.org/2000/svg}rect")
            self.assertGreater(len(list(bars)), 1)

    @no_matter_which_device
    def test_an_interrupt_does_not_wait_for_a_stopped_donor(self):
        """A request to the stopped donor would take 10 s. A busy machine may be as slow, but not
        every time."""
        took_s = []
        while len(took_s) < 5 and (not took_s or took_s[-1] > 8):
            with Donor() as donor:
                took_s.append(self.interrupted_with_a_stopped_donor(donor))
        self.assertLess(took_s[-1], 8, took_s)

    def interrupted_with_a_stopped_donor(self, donor):
        with subprocess.Popen([WEIR, "perf", "--region", "1M", "--seconds", "0", donor.address],
                              stdout=subprocess.DEVNULL, env=environment()) as process:
            while not any(name == "weir-worker" for name in threads_of(process.pid)):
                self.assertIsNone(process.poll())
                time.sleep(0.02)
            donor.process.send_signal(signal.SIGSTOP)
            try:
                begin = time.monotonic()
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(HAS_MORE_TIME), 0)
                return time.monotonic() - begin
            finally:
                donor.process.send_signal(signal.SIGCONT)

    def test_an_interrupt_reports_the_measurement_so_far(self):
        key = ["--key", KEY] if KEY else []
        with subprocess.Popen([WEIR, "perf", "--json", *key, "--region", "1M", "--seconds", "0",
                               self.donor.address], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, env=environment()) as process:
            # There is no output during the measurement: wait for the workers instead.
            while not any(name == "weir-worker" for name in threads_of(process.pid)):
                self.assertIsNone(process.poll())
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            said, complaint = process.communicate(timeout=HAS_MORE_TIME)
        self.assertEqual(process.returncode, 0, complaint)
        self.assertGreater(json.loads(said)["ops"], 0)

    def test_each_thread_submits_however_short_the_time(self):
        done = self.donor.perf(
            "--json", "--region", "1M", "--seconds", "0.000001", "--threads", "8", "--depth", "4"
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(json.loads(done.stdout)["ops"], 8 * 4)


def threads_of(pid):
    names = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/comm", encoding="ascii") as file:
                names.append(file.read().strip())
    except OSError:
        pass  # the thread has ended
    return names


class Counts(WithDonor):
    def counted(self, ops, batching):
        with tempfile.NamedTemporaryFile() as file:
            said = self.measured("--ops", ops, "--threads", "4", "--depth", "16", "--op", "mix",
                                 "--batching", batching, WEIR_COUNT=file.name,
                                 LD_PRELOAD=PRELOAD or COUNT)
            counts = json.loads(file.read().splitlines()[-1])
            self.assertEqual(counts["program"], 'my "weir"')
            return said, counts

    def test_counts_equal_those_at_the_verbs_boundary(self):
        for batching in ("single", "hybrid"):
            with self.subTest(batching=batching):
                # Each run writes its region once before measuring: the same in both runs.
                (few_said, few), (said, verbs) = (self.counted(ops, batching)
                                                  for ops in ("1", "2000"))

                def more(*names):
                    return sum(verbs[name] - few[name] for name in names)
                self.assertEqual(said["work_requests"] - few_said["work_requests"],
                                 more("posted_writes", "posted_reads"))
                self.assertEqual(said["bytes"] - few_said["bytes"],
                                 more("posted_write_bytes", "posted_read_bytes"))
                # The session's messages to the donor have doorbells of their own.
                self.assertLessEqual(said["doorbells"],
                                     verbs["doorbells"] - verbs["posted_sends"])
                self.assertLessEqual(said["events"], verbs["cq_events"])

    def test_single_posts_each_request_alone(self):
        said = self.measured("--ops", "2000", "--threads", "4", "--depth", "16", "--batching",
                             "single")
        self.assertEqual((said["work_requests"], said["doorbells"]), (2000, 2000))


class Classes(WithDonor):
    def test_bulk_runs_beside_and_is_counted_apart(self):
        for options in (("--beside", "none"), ("--class", "urgent:2", "--beside", "bulk:3")):
            with self.subTest(options=options):
                said = self.measured("--op", "read", "--ops", "5000", *options)
                self.assertEqual((said["ops"], said["bytes"]), (5000, 5000 * 4096))
                self.assertEqual(said["settings"]["beside"], options[-1].split(":")[0])
                self.assertGreaterEqual(said["beside_bytes_per_second"], 0)
        self.assertNotIn("beside_bytes_per_second", self.measured("--ops", "1"))

    def test_a_class_cuts_long_requests(self):
        def segments(*options):
            said = self.measured("--size", "1M", "--ops", "16", "--batching", "single", *options)
            return said["work_requests"]
        self.assertEqual(segments(), 16)
        self.assertEqual(segments("--class", "bulk"), 16 * 16)


class ManyDonors(WithDonor):
    def test_threads_are_spread_over_donors_and_counts_are_summed(self):
        with Donor() as other:
            for polling in ("adaptive", "busy", "scq"):
                done = self.donor.perf(
                    "--json",
                    "--region",
                    "4M",
                    "--ops",
                    "900",
                    "--polling",
                    polling,
                    "--batching",
                    "single",
                    "--threads",
                    "3",
                    other.address,
                    self.donor.address,
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                said = json.loads(done.stdout)
                self.assertEqual((said["ops"], said["work_requests"]), (900, 900))
                self.assertEqual(said["settings"]["donors"], 3)
                self.assertEqual(said["settings"]["polling"], polling)

    @no_matter_which_device
    def test_a_missing_donor_is_named(self):
        done = self.donor.perf("--ops", "1", "127.0.0.1:1")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("127.0.0.1:1", done.stderr)


class Trace(WithDonor):
    HEAD = "# made up\nweir-trace 1 1000 2\n"

    def replay(self, text, *options):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            return self.donor.perf("--json", "--pattern", "trace", "--trace", file.name, *options)

    def test_every_request_is_replayed(self):
        lines = [f"{'RW'[i % 3 == 0]} {i % 900} {1 + i % 4} {i % 2} {max(0, i - 8)} {i}\n"
                 for i in range(1000)]
        done = self.replay(self.HEAD + "".join(lines), "--verify")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual(said["ops"], 1000)
        self.assertEqual(said["bytes"], sum(4096 * (1 + i % 4) for i in range(1000)))
        self.assertEqual(said["settings"]["threads"], 2)

    @no_matter_which_device
    def test_a_trace_of_redis_is_replayed(self):
        with Donor("192M") as donor:
            for mix in ("etc", "sys"):
                with lzma.open(os.path.join(TRACES, f"{mix}.xz"), "rt") as file, \
                        tempfile.NamedTemporaryFile("w") as plain:
                    text = file.read()
                    plain.write(text)
                    plain.flush()
                    done = donor.perf("--json", "--pattern", "trace", "--trace", plain.name)
                self.assertEqual(done.returncode, 0, done.stderr)
                requests = [line.split() for line in text.splitlines() if line[0] in "RW"]
                said = json.loads(done.stdout)
                self.assertGreater(len(requests), 10000)
                self.assertEqual(said["ops"], len(requests))
                self.assertEqual(said["bytes"], sum(4096 * int(r[2]) for r in requests))

    @no_matter_which_device
    def test_too_many_buffers_are_refused(self):
        done = self.replay("weir-trace 1 1000 256\n" + "W 0 256 0 0 0\n" * 5000)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("256 threads of depth 4096 with 1.0 MiB each need 1.0 TiB of buffers: "
                      "at most 4.0 GiB", done.stderr)

    @no_matter_which_device
    def test_a_malformed_trace_is_refused_with_its_line(self):
        for text, line, what in (
                ("", 0, "empty"), ("weir-trace 2 10 1\n", 1, "expected"),
                ("weir-trace 1 0 1\n", 1, "PAGES"), ("weir-trace 1 10 257\n", 1, "THREADS"),
                (self.HEAD, 2, "no request"), (self.HEAD + "X 1 1 0 0 0\n", 3, "OP"),
                (self.HEAD + "R 1000 1 0 0 0\n", 3, "PAGE"),
                (self.HEAD + "R 999 2 0 0 0\n", 3, "PAGE"),
                (self.HEAD + "R 1 0 0 0 0\n", 3, "COUNT"),
                (self.HEAD + "R 1 1 2 0 0\n", 3, "THREAD"),
                (self.HEAD + "R 1 1 0 1 0\n", 3, "DONE"), (self.HEAD + "R 1 1\n", 3, "expected"),
                (self.HEAD + "R 1 1 0 0 0 0\n", 3, "expected")):
            done = self.replay(text)
            self.assertEqual((done.returncode, done.stdout), (1, ""), text)
            self.assertIn(f":{line}: ", done.stderr)
            self.assertIn(what, done.stderr)


@no_matter_which_device
class BadInput(WithDonor):
    def test_a_bad_option_is_named_with_valid_values(self):
        for options, said in (
            (("--op", "fly"), "--op fly: expected read, write or mix"),
            (("--batching", ""), "--batching : expected single, doorbell, merge or hybrid"),
            (("--mr", "x"), "auto, pre, dyn or user"),
            (("--polling", "x"), "adaptive, busy, event, event-batch"),
            (("--pattern", "x"), "sequential, random"),
            (("--threads", "0"), "1 to 256"),
            (("--threads", "-1"), "1 to 256"),
            (("--depth", "4097"), "1 to 4096"),
            (("--size", "0"), "1 B to 64.0 MiB"),
            (("--size", "1Q"), "1 B to 64.0 MiB"),
            (("--seconds", "soon"), "0 to 86400"),
            (("--seconds", "-1"), "0 to 86400"),
            (("--window", "65535"), "off, delay, knee or at least 64K"),
            (("--window-wrs", "0"), "delay, knee or at least 1"),
            (("--window", "knee", "--window-wrs", "delay"), "only one limit can be learned"),
            (("--window-wrs", "delay", "--window", "knee"), "only one limit can be learned"),
            (("--class", "lowest"), "none, urgent, normal or bulk, and a weight"),
            (("--class", "bulk:0"), "none, urgent, normal or bulk, and a weight"),
            (("--class", ":3"), "none, urgent, normal or bulk, and a weight"),
            (("--beside", "bulk:1025"), "none, urgent, normal or bulk, and a weight"),
            (("--mr-dyn", "0"), "1 B to 1.0 GiB"),
            (("--mr-dyn", "4K", "-m", "dyn"), "--mr auto"),
            (("--mr-dyn", "4K", "--preset", "accelio"), "--mr auto"),
            (("--channels", "17"), "1 to 16"),
            (("--ops", "0"), "--ops 0: expected 1 to"),
            (("--seed", "18446744073709551616"), "0 to 18446744073709551615"),
            (("--pattern", "strided", "--stride", "5000"), "a multiple of --size 4096"),
            (("--stride", "8192"), "--stride requires --pattern strided"),
            (("--gap", "100"), "--gap requires --pattern clusters"),
            (("--cluster", "1", "-p", "random"), "--cluster requires --pattern clusters"),
            (("--pattern", "clusters", "--cluster", "2"), "at most --depth, 1"),
            (("--depth", "4", "--batch", "5"), "at most --depth, 4"),
            (("--region", "8K", "--threads", "3"), "smaller than --size times --threads"),
            (("--size", "64M", "--depth", "65"), "4.0 GiB"),
            (("--pattern", "trace"), "--trace FILE require each other"),
            (("--trace", "x"), "--trace FILE require each other"),
            (
                ("--pattern", "trace", "--trace", "x", "--ops", "1"),
                "--ops: the trace determines this",
            ),
            (("--verify", "another"), "--verify requires a single DONOR"),
            (("--threads", "1", "another"), "--threads 1: at least one per DONOR, 2"),
        ):
            done = self.donor.perf(*options)
            self.assertEqual((done.returncode, done.stdout), (2, ""), options)
            self.assertIn(said, done.stderr)

    def test_a_resource_that_is_missing_is_named(self):
        for options, said in (
                (("--region", "1G"), "a region of 1.0 GiB"),
                (("--pattern", "trace", "--trace", "/nowhere"), "--trace /nowhere"),
                (("--region", "1M", "--ops", "1", "--plot", "/nowhere/x"), "--plot /nowhere/x")):
            done = self.donor.perf(*options)
            self.assertEqual(done.returncode, 1, options)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
