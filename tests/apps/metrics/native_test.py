#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Latencies arrive in Prometheus as native histograms, as exact as weir stat has them.

native_test.py WEIR

A donor is under traffic. A running Prometheus scrapes the donor and the host. Then the client is
stopped, so that weir stat and Prometheus look at the same requests.
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.support import prometheus  # noqa: E402
from tests.support.patience import stop_process  # noqa: E402

WEIR = os.path.abspath(sys.argv.pop(1))
PATIENCE = 120
# A native bucket is 4.4 % wide, and a bucket of weir's histogram 0.8 %.
ERROR = 1.044 * 1.008
NAME = "weir_session_request_duration_seconds"


def environment():
    kept = {name: value for name, value in os.environ.items()
            if name not in ("LD_PRELOAD", "WEIR_SHARE", "WEIR_SOFTNIC")}
    return dict(kept, WEIR_DEVICE="softnic")


def free_port():
    with socket.socket() as link:
        link.bind(("127.0.0.1", 0))
        return link.getsockname()[1]


class Native(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-native-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.port = free_port()

    def start(self, *words):
        with open(self.folder / f"log{time.monotonic_ns()}", "w", encoding="utf-8") as log:
            child = subprocess.Popen([*map(str, words)], stdin=subprocess.DEVNULL, stdout=log,
                                     stderr=log, env=environment())
        child.log = pathlib.Path(log.name)
        self.addCleanup(child.wait, PATIENCE)
        self.addCleanup(child.kill)
        return child

    def until(self, look, *children):
        deadline = time.monotonic() + PATIENCE
        while not (found := look()):
            logs = [child.log.read_text(encoding="utf-8") for child in children]
            for child, log in zip(children, logs):
                self.assertIsNone(child.poll(), log)
            self.assertLess(time.monotonic(), deadline, logs)
            time.sleep(0.2)
        return found

    def told(self, child, begin):
        def look():
            lines = child.log.read_text(encoding="utf-8").splitlines(keepends=True)
            return next((line.split(begin, 1)[1].strip() for line in lines
                         if begin in line and line.endswith("\n")), None)
        return self.until(look, child)

    def ask(self, query):
        """The samples of an instant query."""
        url = (f"http://127.0.0.1:{self.port}/api/v1/query?" +
               urllib.parse.urlencode({"query": query}))
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return json.load(answer)["data"]["result"]
        except OSError:
            return []

    def number(self, query):
        found = self.ask(query)
        return float(found[0]["value"][1]) if found else 0.0

    def stat(self, pid):
        """The latencies of the writes of a process, as weir stat has them."""
        said = subprocess.run([WEIR, "stat", "--json", str(pid)], capture_output=True, text=True,
                              timeout=PATIENCE, check=True, env=environment())
        return json.loads(said.stdout)["sessions"][0]["latency"]["write"]

    def prometheus(self, *addresses):
        # A scrape waits half a second for each stopped process of softnic on this machine.
        job = prometheus.job("weir", addresses, scrape_interval="4s", scrape_timeout="4s")
        options = prometheus.write_config(self.folder, [job])
        return self.start("prometheus", "--enable-feature=native-histograms",
                          f"--web.listen-address=127.0.0.1:{self.port}", *options)

    def test_quantiles_are_those_of_weir_stat(self):
        donor = self.start(WEIR, "serve", "--memory", "16M", "--no-reserve", "--listen",
                           "127.0.0.1:0", "--metrics", "0")
        address = self.told(donor, "ready ")
        perf = self.start(WEIR, "perf", "-S", "0", "--region", "2M", "-o", "write", "-s", "64K",
                          address)
        host = self.start(WEIR, "metrics", "--listen", "0")
        scraped = [self.told(child, "metrics at http://").removesuffix("/metrics")
                   for child in (donor, host)]
        server = self.prometheus(*scraped)
        count = f'histogram_count({NAME}{{operation="write",pid="{perf.pid}"}})'
        self.until(lambda: self.number(count) > 1000, server, perf)
        stop_process(perf)
        exact = self.stat(perf.pid)
        self.until(lambda: self.number(count) == exact["timed_requests"], server)
        for quantile, key in ((0.5, "p50_us"), (0.99, "p99_us")):
            found = self.number(f'histogram_quantile({quantile}, {NAME}'
                                f'{{operation="write",pid="{perf.pid}"}})') * 1e6
            self.assertLess(found, exact[key] * ERROR, key)
            self.assertGreater(found, exact[key] / ERROR, key)
        self.assertEqual(self.number("weir_donor_clients"), 1)
        self.assertEqual(self.number('sum(up{job="weir"})'), 2)
        labels = self.ask(f'{NAME}{{pid="{perf.pid}",operation="write"}}')[0]["metric"]
        self.assertEqual(labels["peer"], address)
        perf.send_signal(signal.SIGCONT)
        # The rules find native histograms: the server keeps no classic ones.
        rule = f'process_operation:{NAME}:p99_5m{{process="weir-perf",operation="write"}}'
        self.until(lambda: self.number(f"max({rule} > 0)") > 0, server, perf)
        self.assertEqual(self.ask(f"{NAME}_bucket"), [])


if __name__ == "__main__":
    if not shutil.which("prometheus"):
        print("skipped: no prometheus")
        sys.exit(77)
    unittest.main(verbosity=2)
