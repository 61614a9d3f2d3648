#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Helm accepts the chart, and Kubernetes's schemas every object that Helm makes of the chart.

chart_check.py HELM

scripts/check-chart fetches Helm and the schemas, and runs this.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import kubernetes_validate
import yaml

HELM = sys.argv.pop(1)
CHART = pathlib.Path(__file__).resolve().parents[2] / "packaging/kubernetes/chart"
KUBERNETES = "1.33"
# A site's choices, as for --set-json.
CHOICES = {
    "the chart's own": {},
    "a secret for metrics": {"donors.metrics.secret": "weir-metrics"},
    "users and certificates for etcd": {"etcdSecret": "weir-etcd"},
    "softnic for pods": {"softnic.enabled": True},
    "no donors": {"donors.enabled": False},
    "where donors run": {"donors.tolerations": [{"operator": "Exists"}],
                         "donors.nodeSelector": {"memory": "much"},
                         "donors.priorityClassName": "system-node-critical",
                         "donors.resources": {"requests": {"memory": "9Gi"}}},
    "all": {"donors.metrics.secret": "m", "etcdSecret": "e", "softnic.enabled": True,
            "donors.tolerations": [{"operator": "Exists"}], "device": "mlx5_0"},
}


def helm(*words):
    done = subprocess.run([HELM, *words], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def template(chart, choice):
    words = [f"--set-json={name}={json.dumps(value)}" for name, value in choice.items()]
    code, out, errors = helm("template", "weir", str(chart), "--namespace", "weir",
                             "--kube-version", KUBERNETES, *words)
    if code:
        raise ValueError(errors)
    return [made for made in yaml.safe_load_all(out) if made]


class Chart(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-chart-")
        self.addCleanup(folder.cleanup)
        self.copy = pathlib.Path(folder.name, "chart")
        shutil.copytree(CHART, self.copy)

    def test_helm_has_no_complaint(self):
        code, out, errors = helm("lint", "--strict", str(CHART))
        self.assertEqual(code, 0, out + errors)

    def test_kubernetes_knows_each_field(self):
        for name, choice in CHOICES.items():
            for made in template(CHART, choice):
                with self.subTest(name, kind=made["kind"]):
                    kubernetes_validate.validate(made, KUBERNETES, strict=True)

    def test_a_choice_makes_and_leaves_out_what_it_says(self):
        kinds = {name: sorted(made["metadata"]["name"] for made in template(CHART, choice))
                 for name, choice in CHOICES.items()}
        usual = set(kinds["the chart's own"])
        self.assertEqual(len(set(kinds["softnic for pods"]) - usual), 1)
        self.assertEqual(len(usual - set(kinds["no donors"])), 1)

    def plant(self, right, wrong):
        planted = False
        for path in (self.copy / "templates").glob("*.yaml"):
            text = path.read_text(encoding="utf-8")
            planted |= right in text
            path.write_text(text.replace(right, wrong), encoding="utf-8")
        self.assertTrue(planted, right)

    def test_a_misspelt_field_is_found(self):
        self.plant("hostNetwork:", "hostNetwrok:")
        with self.assertRaises(kubernetes_validate.ValidationError):
            for made in template(self.copy, {}):
                kubernetes_validate.validate(made, KUBERNETES, strict=True)

    def test_a_misspelt_value_is_found(self):
        self.plant(".Values.donors.spare", ".Values.doners.spare")
        with self.assertRaises(ValueError):
            template(self.copy, {})


if __name__ == "__main__":
    unittest.main(verbosity=2)
