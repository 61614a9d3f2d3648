#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Check that a run gives the same bytes from every compiler and optimisation level. The test
builds the simulator and the hunt again, with the other compiler and without optimisation.

builds_test.py ROOT WEIR_SIM HUNT OTHER_CC
"""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, WEIR_SIM, HUNT, OTHER = pathlib.Path(sys.argv[1]), *sys.argv[2:5]
del sys.argv[1:]
FLAGS = ["-std=gnu11", "-O0", "-w", "-D_GNU_SOURCE", "-ffp-contract=off", f"-I{ROOT}",
         '-DWEIR_SIM_PROFILES=""']

RUNS = [
    "threads=40 cores=4 quantum_ns=20000 poll=adaptive depth=2 clients=2 both=1",
    "driver=weir threads=8 depth=16 batch=8 size=4096 qps=4 window=262144 poll=adaptive",
    "driver=weir threads=3 pattern=random size=4096 region_bytes=1073741824 touched=30000",
    "driver=weir threads=6 servers=3 poller=1 poll=hybrid size=512 depth=4 mr=pre cqs=1",
    "op=read pattern=zipf mrs=4096 region_bytes=4096 size=16 threads=4 qps=8 poll=hybrid depth=4",
    "driver=trip size=16 pattern=zipf mrs=256 region_bytes=4096 unload=measured hot=16 learn=1000",
    "driver=trip size=300 pattern=zipf skew=120 mrs=256 region_bytes=4096 threads=3 unload=hints"
    " hot=16 parity=1 until=complete",
    "driver=mux op=send threads=4 conns=40 depth=10 size=9000 segment=4096 poll=adaptive",
    "driver=exchange size=700 clients=2 servers=3 slots=70 batch=4",
]


def compile_all(folder, name, sources):
    objects = [folder / f"{'-'.join(source.relative_to(ROOT).parts)}.o" for source in sources]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(lambda pair: subprocess.run([OTHER, *FLAGS, "-c", pair[0], "-o", pair[1]],
                                                  check=True)
                      if not pair[1].exists() else None, zip(sources, objects)))
    subprocess.run([OTHER, *objects, "-lm", "-ljson-c", "-o", folder / name], check=True)
    return folder / name


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=True,
                          env={**os.environ, "WEIR_SIM_PROFILES": str(ROOT / "sim/profiles")})
    return done.stdout


class Builds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        core = sorted((ROOT / "core").glob("*/*.c")) + sorted((ROOT / "wire").glob("*.c"))
        sim = [source for source in sorted((ROOT / "sim").glob("*/*.c"))
               if source.parent.name != "hunt"]
        cls.sim = compile_all(folder, "weir-sim", core + sim)
        hunt = [source for source in sim if source.name != "weir_sim.c"]
        roce = sorted((ROOT / "softnic/roce").glob("*.c"))
        cls.hunt = compile_all(folder, "weir-hunt",
                               core + hunt + roce + sorted((ROOT / "sim/hunt").glob("*.c")))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_a_run_is_the_same_bytes(self):
        for settings in RUNS:
            with self.subTest(settings):
                arguments = [*settings.split(), "run_us=300", "warmup_us=50"]
                self.assertEqual(said(WEIR_SIM, *arguments), said(self.sim, *arguments))

    def test_a_hunt_is_the_same_bytes(self):
        self.assertEqual(said(HUNT, "1", "300"), said(self.hunt, "1", "300"))
        self.assertEqual(said(HUNT, "7", "7", "trace"), said(self.hunt, "7", "7", "trace"))


if not shutil.which(OTHER):
    print(f"{OTHER} is not installed")
    sys.exit(77)
unittest.main(verbosity=2)
