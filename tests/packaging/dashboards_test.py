#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Grafana's dashboards are those that the script makes, and their queries are valid.

dashboards_test.py WEIR
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support import go_build  # noqa: E402

FOLDER = ROOT / "packaging/dashboards"
CONTAINER = ROOT / "packaging/container"
WEIR = sys.argv.pop(1)


def metrics():
    """The type of each metric."""
    page = subprocess.run([WEIR, "metrics", "--describe"], capture_output=True, text=True,
                          check=True, timeout=60).stdout
    return dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", page, re.M))


def boards():
    return {path.name: json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(FOLDER.glob("*.json"))}


def queries(board):
    return [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]


class Dashboards(unittest.TestCase):
    def test_the_files_are_those_that_the_script_makes(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "metrics.md")
            page.write_text(subprocess.run([WEIR, "metrics", "--describe"], capture_output=True,
                                           text=True, check=True, timeout=60).stdout,
                            encoding="utf-8")
            subprocess.run([sys.executable, str(FOLDER / "generate.py"), str(page), folder],
                           check=True, timeout=60)
            made = {path.name: path.read_text(encoding="utf-8")
                    for path in pathlib.Path(folder).glob("*.json")}
        self.assertEqual(sorted(made), ["weir-donors.json", "weir-host.json",
                                        "weir-pool.json", "weir-tenants.json"])
        for name, text in made.items():
            self.assertEqual((FOLDER / name).read_text(encoding="utf-8"), text,
                             f"{name}: packaging/dashboards/generate.py "
                             "docs/reference/metrics.md packaging/dashboards")

    def test_each_query_names_metrics_that_exist_and_takes_rates_of_counters_only(self):
        known = metrics()
        for name, board in boards().items():
            for query in queries(board):
                native, *classic = re.findall(r"weir_\w+", query)
                kind = known.get(native)
                self.assertIsNotNone(kind, (name, query))
                self.assertEqual("rate(" in query, kind != "gauge", query)
                self.assertEqual(classic, [f"{native}_bucket"] * (kind == "histogram"), query)

    def test_numbers_and_places_of_panels_are_their_own(self):
        for name, board in boards().items():
            panels = board["panels"]
            self.assertEqual(len({panel["id"] for panel in panels}), len(panels), name)
            taken = set()
            for panel in panels:
                at = panel["gridPos"]
                cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                         for y in range(at["y"], at["y"] + at["h"])}
                self.assertFalse(cells & taken, (name, panel["title"]))
                self.assertLessEqual(at["x"] + at["w"], 24)
                taken |= cells

    def test_compose_lets_grafana_find_boards_and_source(self):
        compose = yaml.safe_load((CONTAINER / "compose.yaml").read_text(encoding="utf-8"))
        mounts = dict(volume.split(":")[:2] for volume in compose["services"]["grafana"]["volumes"])
        found = {target: (CONTAINER / source).resolve() for source, target in mounts.items()}
        [provider] = yaml.safe_load(
            found["/etc/grafana/provisioning/dashboards/weir.yaml"].read_text(encoding="utf-8"))[
                "providers"]
        self.assertEqual(found[provider["options"]["path"]], FOLDER)
        [source] = yaml.safe_load(
            found["/etc/grafana/provisioning/datasources/weir.yml"].read_text(encoding="utf-8"))[
                "datasources"]
        self.assertEqual((source["type"], source["isDefault"]), ("prometheus", True))
        self.assertEqual(source["url"], "http://prometheus:9090")
        self.assertIn("9090", compose["services"]["prometheus"]["ports"][0])

    def test_grafanas_library_reads_each_board(self):
        go = shutil.which("go", path=os.environ.get("PATH", "") + ":/usr/local/go/bin")
        if not go:
            self.skipTest("no go: scripts/deps check")
        folder = pathlib.Path(__file__).resolve().parent / "grafana"
        environment = dict(os.environ, GOFLAGS="-mod=readonly", GOTOOLCHAIN="local")
        if subprocess.run([go, "mod", "download"], cwd=folder, env=environment, timeout=120,
                          capture_output=True, check=False).returncode:
            self.skipTest("go is older than go.mod wants, or there is no network")
        with tempfile.TemporaryDirectory() as place:
            program = pathlib.Path(place, "reader")
            with go_build.alone(go):
                made = subprocess.run([go, "build", "-o", program, "."], cwd=folder,
                                      env=environment, capture_output=True, text=True,
                                      timeout=300, check=False)
            self.assertEqual(made.returncode, 0, made.stderr)
            done = subprocess.run([program, *sorted(FOLDER.glob("*.json"))], cwd=folder,
                                  capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    @unittest.skipUnless(shutil.which("promtool"), "no promtool: scripts/deps check")
    def test_promtool_reads_each_query(self):
        every = sorted({query for board in boards().values() for query in queries(board)})
        rules = "".join(
            f"      - record: a:b{i}\n        expr: '{query}'\n" for i, query in enumerate(every))
        rules = rules.replace("$__rate_interval", "5m").replace("$instance", ".*")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "rules.yml")
            path.write_text(f"groups:\n  - name: queries\n    rules:\n{rules}", encoding="utf-8")
            done = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True,
                                  text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{len(every)} rules found", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
