# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A Prometheus for tests, which looks each second and knows weir's rules with shorter times.

@window: seconds of all rates and quantiles; @hold: seconds until an alert fires.
"""
import json
import pathlib
import re

RULES = pathlib.Path(__file__).resolve().parents[2] / "packaging/prometheus/weir.rules.yml"


def write_config(folder, jobs, window=10, hold=1):
    """Writes rules and configuration. Returns the options that name them."""
    text = RULES.read_text(encoding="utf-8")
    text = re.sub(r"\[\d+m\]", f"[{window}s]", text)
    text = re.sub(r"\bfor: \d+m", f"for: {hold}s", text)
    (folder / "rules.yml").write_text(text, encoding="utf-8")
    config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
              "rule_files": ["rules.yml"], "scrape_configs": jobs}
    (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
    return [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]


def job(name, targets, **more):
    return dict({"job_name": name, "static_configs": [{"targets": list(targets)}]}, **more)


def names(answer, pattern):
    """Pairs of an alert and the match of @pattern in its labels, in an answer of /api/v1/query."""
    found = set()
    for result in json.loads(answer)["data"]["result"]:
        for label in ("instance", "peer", "donor"):
            if match := re.match(pattern, result["metric"].get(label, "")):
                found.add((result["metric"]["alertname"], match[1]))
    return found


def firing(answer):
    """The alerts that fire, by their names, in an answer of /api/v1/alerts."""
    return {alert["labels"]["alertname"] for alert in json.loads(answer)["data"]["alerts"]
            if alert["state"] == "firing"}
