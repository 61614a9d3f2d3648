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
TIMES = ROOT / "tests/packaging/alert_times.yml"
STEP = 15  # seconds between scrapes in TIMES
BROKEN = 600  # seconds until everything breaks there
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
        self.assertEqual(sorted(alerts), sorted(set(fires)))

    def test_promtool_finds_no_fault(self):
        self.run_promtool(CASES.read_text(encoding="utf-8"))

    def run_promtool(self, cases):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(RULES, folder)
            (pathlib.Path(folder) / "cases.yml").write_text(cases, encoding="utf-8")
            done = subprocess.run(["promtool", "test", "rules", "cases.yml"], cwd=folder,
                                  timeout=60, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_alert_takes_the_time_that_the_documents_say(self):
        page = (ROOT / "docs/how-to/watch.md").read_text(encoding="utf-8")
        told = re.findall(r"^\| `(\w+)` \| (?:(\d+) min)? ?(?:(\d+) s)? \|", page, re.M)
        alerts = re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8"))
        self.assertEqual(sorted(name for name, _, _ in told), sorted(alerts))
        questions = ["    promql_expr_test:"]
        for name, minutes, seconds in told:
            at = BROKEN + 60 * int(minutes or 0) + int(seconds or 0)
            for when, samples in ((at - STEP, "[]"), (at, "[{labels: '{}', value: 1}]")):
                questions += [
                    f"      - expr: count(count(ALERTS{{alertname='{name}',alertstate='firing'}}))",
                    f"        eval_time: {when}s", f"        exp_samples: {samples}"]
        self.run_promtool(TIMES.read_text(encoding="utf-8") + "\n".join(questions) + "\n")


if __name__ == "__main__":
    if not shutil.which("promtool"):
        print("skipped: no promtool: scripts/deps check")
        sys.exit(77)
    unittest.main(verbosity=2)
