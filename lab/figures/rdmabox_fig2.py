# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Clusters of writes, and how their completions are waited for."""

from lab.experiment import Result, Series, holds

NAME = "rdmabox-fig2"
TITLE = "adaptive polling, where requests come in clusters"
VARIED = ("requests in a cluster, posted as one chain; the next cluster follows when all are done; "
          "writes of 1,000 bytes, not inlined; MAX_RETRY 120, MAX_POLL_WC 50")
PROFILE = "connectx-3"

CLUSTERS = [10, 50, 100]
WAYS = {"event-batch": "batch", "hybrid": "hybrid", "adaptive": "adaptive", "busy": "busy"}


def _setting(cluster, poll):
    return {"depth": cluster, "batch": cluster, "size": 1000, "inline_max": 400, "poll": poll, "poll_wcs": 50,
            "poll_retries": 120 if poll == "adaptive" else 0, "run_us": 5000}


def run(sim):
    runs = sim.all([_setting(cluster, poll) for poll in WAYS.values() for cluster in CLUSTERS], NAME)
    series = []
    for i, way in enumerate(WAYS):
        mine = runs[i * len(CLUSTERS):(i + 1) * len(CLUSTERS)]
        clusters = [one["load"]["ops"] / cluster for one, cluster in zip(mine, CLUSTERS)]
        series += [
            Series(way, "Mops", CLUSTERS, [one["load"]["mops"] for one in mine]),
            Series(way, "cores busy", CLUSTERS, [one["clients"]["busy"]["cores"] for one in mine]),
            Series(way, "interrupts a cluster", CLUSTERS,
                   [one["clients"]["interrupts"] / n for one, n in zip(mine, clusters)]),
            Series(way, "context switches a cluster", CLUSTERS,
                   [one["clients"]["switches"] / n for one, n in zip(mine, clusters)]),
        ]
    value = {(one.name, one.unit): one for one in series}
    sleepers = ["event-batch", "hybrid"]
    targets = [
        holds(f"2a: adaptive has the highest throughput of those that may sleep, clusters of {n}",
              "yes", f"{value['adaptive', 'Mops'].at(n):.2f} Mops, hybrid "
              f"{value['hybrid', 'Mops'].at(n):.2f}",
              all(value["adaptive", "Mops"].at(n) >= value[way, "Mops"].at(n) for way in sleepers))
        for n in CLUSTERS]
    targets += [
        holds(f"{panel}: adaptive has the fewest {what}, clusters of {n}", "yes",
              f"{value['adaptive', unit].at(n):.2f}, hybrid {value['hybrid', unit].at(n):.2f}",
              all(value["adaptive", unit].at(n) <= value[way, unit].at(n) for way in sleepers))
        for panel, what, unit in (("2c", "interrupts", "interrupts a cluster"),
                                  ("2d", "context switches", "context switches a cluster"))
        for n in CLUSTERS]
    notes = ["The paper's Fig. 2b is not named in its text; CPU time is shown in its place.",
             "weir's poller counts consecutive empty polls; the paper's algorithm never resets its "
             "counter."]
    return Result("requests in a cluster", series, targets, notes)
