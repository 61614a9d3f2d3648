#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The rules for Prometheus are valid, name metrics that exist, and fire: alerts_test.yml.

alerts_test.py WEIR
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "packaging/prometheus/weir.rules.yml"
CASES = ROOT / "tests/packaging/alerts_test.yml"
WEIR = sys.argv.pop(1)


class Alerts(unittest.TestCase):
    def test_each_metric_of_a_rule_exists(self):
        known = set(re.findall(r"^\| `(\w+)` \|", subprocess.run(
            [WEIR, "metrics", "--describe"], capture_output=True, text=True, check=True,
            timeout=60).stdout, re.M))
        used = set(re.findall(r"(?<![:\w])weir_\w+", RULES.read_text(encoding="utf-8")))
        used = {name.removesuffix("_bucket") for name in used}
        self.assertGreater(len(used), 10)
        self.assertEqual(used - known, set())

    def test_each_alert_has_a_case_where_it_fires(self):
        alerts = re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8"))
        fires = re.findall(r"alertname: (\w+)\n +exp_alerts:\n", CASES.read_text(encoding="utf-8"))
        self.assertEqual(sorted(alerts), sorted(fires))

    def test_promtool_finds_no_fault(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in (RULES, CASES):
                shutil.copy(path, folder)
            done = subprocess.run(["promtool", "test", "rules", CASES.name], cwd=folder, timeout=60,
                                  capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    if not shutil.which("promtool"):
        print("skipped: no promtool: scripts/deps check")
        sys.exit(77)
    unittest.main(verbosity=2)
