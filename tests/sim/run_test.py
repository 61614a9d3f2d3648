#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run weir-sim as a program: the same run gives the same bytes, and errors name bad settings.

run_test.py WEIR_SIM PROFILES
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

WEIR_SIM, PROFILES = sys.argv[1], pathlib.Path(sys.argv[2])

RUNS = [
    "threads=8 depth=4 op=read pattern=random region_bytes=16777216",
    "threads=6 share=1 size=4096 poll=busy depth=4 lock=mutex",
    "threads=40 cores=4 quantum_ns=20000 poll=adaptive depth=2 clients=2 both=1",
    "profile=connectx-5 threads=3 op=send poll=event bg_threads=1 bg_size=1048576 bg_depth=4",
    "driver=weir threads=8 depth=16 batch=8 size=4096 qps=4 window=262144 poll=adaptive",
    "driver=weir threads=6 poller=1 poll=hybrid clients=2 both=1 size=512 depth=4 mr=pre",
    "op=read pattern=zipf mrs=4096 region_bytes=4096 size=16 threads=4 qps=8 poll=hybrid depth=4",
    "driver=weir threads=8 servers=4 cqs=2 poller=1 poll=event depth=4 pattern=random",
    "driver=weir threads=3 pattern=random size=4096 region_bytes=1073741824 touched=30000",
    "driver=mux op=send threads=4 conns=40 depth=10 size=9000 segment=4096 poll=adaptive "
    "bg_driver=mux bg_op=send bg_threads=1 bg_conns=3 bg_depth=6 bg_size=65536 bg_class=1",
    "driver=exchange size=700 clients=2 servers=3 slots=70 batch=4 handle_ns=50",
    "driver=exchange size=3000 clients=3 imm=1 credit_batch=5 slots=64 mr=pre",
    "driver=mux op=send threads=3 conns=7 depth=8 size=200 policy=turns poll=busy handle_ns=100",
    "driver=trip size=16 pattern=zipf mrs=256 region_bytes=4096 threads=2 unload=measured hot=16 "
    "learn=1000",
]

REFUSED = [
    ("thread=1", "there is no setting 'thread'"),
    ("threads", "'threads' is not of the form name=value"),
    ("threads=many", "threads=many: a whole number from 0 to 1024"),
    ("op=wirte", "op=wirte: one of write read send write_imm cas fadd"),
    ("pcie_ns=-1", "pcie_ns=-1: no such value"),
    ("pus=0", "pus is out of its range"),
    ("profile=connectx-1", "connectx-1: No such file"),
    ("op=cas", "an atomic is of 8 bytes: say size=8"),
    ("driver=weir qps=17", "at most 16 channels"),
    ("driver=exchange batch=33", "up to 32 messages at a time"),
    ("driver=exchange size=70000", "size is larger than slot_bytes"),
    ("driver=exchange slots=4 credit_batch=5", "credit_batch is more than slots"),
    ("sizes=/nowhere", "/nowhere: No such file"),
    ("driver=mux", "a mux sends messages: say op=send"),
    ("driver=mux op=send threads=4 conns=3", "each thread has a connection at least"),
    ("driver=trip depth=2", "a round trip is one write"),
    ("driver=trip unload=sometimes", "one of off always hints frequency measured"),
    ("threads=1000 depth=4096 qps=100", "room for more than 4194304 requests"),
    ("driver=weir servers=64 qps=16 sq_depth=16384 clients=8",
     "room for more than 4194304 requests"),
    ("both=1", "both=1 wants clients=2 at least"),
    ("driver=weir pattern=trace", "pattern=trace wants trace=FILE"),
    ("trace=/nowhere", "/nowhere: No such file"),
]

# A trace, and traces with errors.
TRACE = "# two\nweir-trace 1 100 1\nR 8 1 0 0 0\nW 9 3 0 1 7\n"
BAD_TRACES = [
    ("", "expected \"weir-trace 1 PAGES THREADS\""),
    ("weir-trace 1 100 1\n", "there is no request in it"),
    ("weir-trace 1 100 1\nX 1 1 0 0 0\n", ":2: expected \"OP PAGE COUNT ...\""),
    ("weir-trace 1 100 1\nR 99 2 0 0 0\n", ":2: PAGE and COUNT lie outside"),
    ("weir-trace 1 100 1\nR 1 0 0 0 0\n", ":2: PAGE and COUNT lie outside"),
]

# Errors in a profile after a good line.
BAD_LINES = [
    ("cores 4", "not of the form 'name = value'"),
    ("colour = 4", "there is no 'colour'"),
    ("cores = 4.5", "'4.5' is no value for cores"),
    ("cores = 4", "cores is given twice"),
    ("pcie_ns = 1.2345", "'1.2345' is no value for pcie_ns"),
]


def call(*args):
    return subprocess.run([WEIR_SIM, *args], capture_output=True, text=True,
                          env=dict(os.environ, WEIR_SIM_PROFILES=str(PROFILES)))


def run(settings):
    done = call(*settings.split(), "run_us=300", "warmup_us=50")
    assert done.returncode == 0, done.stderr
    return done.stdout


class Run(unittest.TestCase):
    def test_the_same_run_is_the_same_bytes(self):
        for settings in RUNS:
            with self.subTest(settings):
                self.assertEqual(run(settings), run(settings))

    def test_each_run_does_something_and_says_it_in_json(self):
        for settings in RUNS:
            with self.subTest(settings):
                out = json.loads(run(settings))
                self.assertGreater(out["load"]["ops"], 20)
                self.assertGreater(out["load"]["latency_us"]["p50"], 0.5)

    def test_another_seed_is_another_run(self):
        self.assertNotEqual(run(RUNS[0] + " seed=1"), run(RUNS[0] + " seed=2"))

    def test_a_mux_is_fair_and_lets_the_first_class_go_first(self):
        base = "driver=mux op=send poll=adaptive threads=1 conns=1 depth=4 size=16384 " \
               "segment=16384 " \
               "bg_driver=mux bg_op=send bg_poll=adaptive bg_threads=1 bg_conns=1 bg_depth=4 " \
               "bg_size=1048576"
        load, background = (json.loads(run(base))[name]["gbps"] for name in ("load", "background"))
        self.assertLess(abs(load - background), 0.3 * load)
        first = json.loads(run(base + " bg_class=1"))
        self.assertLess(first["background"]["gbps"], 0.5 * first["load"]["gbps"])

    def test_one_look_tells_of_many_messages(self):
        base = "driver=exchange size=512 slots=256 "
        looked, told = (json.loads(run(base + more)) for more in ("", "imm=1"))
        self.assertLess(looked["load"]["bitmap_reads"], looked["load"]["ops"] / 8)
        self.assertEqual(told["load"]["bitmap_reads"], 0)
        self.assertLess(looked["servers"]["cqes"], told["servers"]["cqes"] / 8)

    def test_messages_have_the_lengths_that_a_file_says(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# three\n100\n200\n600\n")
            file.flush()
            load = json.loads(run(f"driver=exchange sizes={file.name}"))["load"]
            self.assertAlmostEqual(load["gbps"] / load["mops"], 300 * 8 / 1000, delta=0.1)
            done = call("driver=exchange", f"sizes={file.name}", "slot_bytes=500", "size=1")
            self.assertIn("larger than slot_bytes", done.stderr)
            file.write("many\n")
            file.flush()
            done = call("driver=exchange", f"sizes={file.name}")
        self.assertEqual(done.returncode, 2)
        self.assertIn(":5: expected a number of bytes", done.stderr)

    def test_a_trace_is_repeated_as_it_stands(self):
        with tempfile.NamedTemporaryFile("w", suffix=".trace") as file:
            file.write(TRACE)
            file.flush()
            out = json.loads(run(f"driver=weir pattern=trace trace={file.name} merge=0 qps=2"))
        load = out["load"]
        # One read of a page and one write of three pages, alternating.
        self.assertAlmostEqual(load["gbps"] / load["mops"], 2 * 4096 * 8 / 1000, delta=1)

    def test_what_was_touched_before_the_run_is_in_the_cache_as_after_a_long_one(self):
        # 256 MB are 65536 pages, a quarter of the cache's entries; 64 GB are far more.
        base = "driver=weir profile=connectx-5 size=4096 threads=4 depth=8 pattern="
        for pattern, mib, touched, least, most in (
                ("random", 256, 0, 0.9, 1), ("random", 256, 400000, 0, 0.05),
                ("random", 65536, 1000000, 0.95, 1),
                ("seq", 256, 0, 1, 1), ("seq", 256, 30000, 1, 1), ("seq", 256, 65536, 0, 0.05)):
            with self.subTest(f"{pattern} {mib} {touched}"):
                out = json.loads(run(f"{base}{pattern} region_bytes={mib << 20} touched={touched}"))
                self.assertGreaterEqual(out["servers"]["misses"]["mtt"], least)
                self.assertLessEqual(out["servers"]["misses"]["mtt"], most)
        out = json.loads(run("driver=weir profile=connectx-5 size=64 region_bytes=268435456 "
                             "touched=65536"))
        self.assertEqual(out["servers"]["misses"]["mtt"], 0)

    def test_touching_many_pages_comes_to_what_a_long_run_comes_to(self):
        base = "driver=weir size=4096 threads=2 depth=4 pattern=random region_bytes=16777216 " \
               "run_us=20000 touched="
        soon, late = (json.loads(call(*f"{base}{more}".split()).stdout)
                      for more in ("12000", "0 warmup_us=40000"))
        self.assertAlmostEqual(soon["servers"]["misses"]["mtt"], late["servers"]["misses"]["mtt"],
                               delta=0.03)
        self.assertAlmostEqual(soon["load"]["mops"], late["load"]["mops"],
                               delta=0.03 * late["load"]["mops"])

    def test_what_is_wrong_in_a_trace_is_named(self):
        for text, why in BAD_TRACES:
            with self.subTest(text), tempfile.NamedTemporaryFile("w") as file:
                file.write(text)
                file.flush()
                done = call("driver=weir", "pattern=trace", f"trace={file.name}")
                self.assertEqual(done.returncode, 2)
                self.assertIn(why, done.stderr)

    def test_each_way_unloads_what_it_says(self):
        trip = "driver=trip size=16 pattern=zipf mrs=64 region_bytes=4096 hot=16 unload="
        for way, least, most in (("off", 0, 0), ("always", 1, 1), ("hints", 0.2, 0.8),
                                 ("frequency learn=10000", 0.2, 0.8)):
            with self.subTest(way):
                load = json.loads(run(trip + way))["load"]
                self.assertGreaterEqual(load["unloaded"] + 1, least * load["ops"])
                self.assertLessEqual(load["unloaded"] - 1, most * load["ops"])

    def test_unloading_costs_a_copy_and_saves_misses(self):
        trip = "driver=trip profile=connectx-5 size=16 pattern=random region_bytes=4096 " \
               "handle_ns=500"
        def latency(regions, way):
            load = json.loads(run(f"{trip} mrs={regions} unload={way}"))["load"]
            return load["latency_us"]["mean"]
        self.assertLess(latency(1, "off"), latency(1, "always"))
        self.assertGreater(latency(1 << 20, "off"), latency(1 << 20, "always"))

    @unittest.skipIf(os.environ.get("WEIR_SIM_SANITIZED"), "a sanitizer's own memory grows")
    def test_memory_does_not_grow_with_the_length_of_a_run(self):
        settings = "threads=8 depth=8 size=8 pattern=random"
        short, long = (self.peak_kib(*settings.split(), f"run_us={us}") for us in (500, 10000))
        self.assertLess(long, 1.1 * short + 512)

    @staticmethod
    def peak_kib(*arguments):
        child = subprocess.Popen([WEIR_SIM, *arguments], stdout=subprocess.DEVNULL,
                                 env=dict(os.environ, WEIR_SIM_PROFILES=str(PROFILES)))
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0
        return usage.ru_maxrss

    def test_what_is_refused_is_named(self):
        for settings, why in REFUSED:
            with self.subTest(settings):
                done = call(*settings.split())
                self.assertEqual(done.returncode, 2)
                self.assertIn(why, done.stderr)
                self.assertEqual(done.stdout, "")


class Profile(unittest.TestCase):
    def load(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".profile") as file:
            file.write(text)
            file.flush()
            return call(f"profile={file.name}", "run_us=10"), file.name

    def test_a_bad_line_is_named(self):
        good = (PROFILES / "connectx-3").read_text()
        for line, why in BAD_LINES:
            with self.subTest(line):
                done, name = self.load(good + line + "\n")
                number = good.count("\n") + 1
                self.assertEqual(done.returncode, 2)
                self.assertIn(f"{name}:{number}: {why}", done.stderr)

    def test_a_missing_number_is_named(self):
        good = (PROFILES / "connectx-3").read_text()
        done, _ = self.load(good.replace("\nmtu = ", "\n# mtu = "))
        self.assertIn("mtu is missing", done.stderr)

    def test_each_number_says_where_it_comes_from(self):
        for profile in PROFILES.iterdir():
            for line in profile.read_text().splitlines():
                name, _, source = line.partition("#")
                if "_ns" in name or "_gbps" in name or "entries" in name:
                    self.assertTrue(source.strip(), f"{profile.name}: {line}")


if __name__ == "__main__":
    del sys.argv[1:]
    unittest.main()
