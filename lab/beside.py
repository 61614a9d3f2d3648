# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Plain verbs with a queue pair a thread, beside weir's engine.

Each run of the engine has a counterpart: the same requests, each posted by its thread on a queue
pair of its own, with neither a lock nor merging, chains, order, window or deadlines. Where that is
faster, the engine costs more than it gains.
"""

import statistics

# Settings of the engine alone. Its queue pairs belong to a session.
OF_ENGINE = {"merge", "sge_max", "fragment", "window", "window_wrs", "admission", "sq_depth", "cqs",
             "poller", "core_ns", "touched", "qps", "chain", "batch", "share", "lock", "hold"}
AHEAD = 1.03


def can_have(settings):
    """Whether a run has a counterpart: a run of the engine, without a trace."""
    return settings.get("driver") == "weir" and settings.get("pattern") != "trace"


def plain(settings):
    """The counterpart's settings."""
    return {**{name: value for name, value in settings.items() if name not in OF_ENGINE},
            "driver": "verbs"}


def _label(settings, varied):
    return ", ".join(f"{name} {settings[name]}" for name in varied if name in settings)


def rows(sim, ran, what):
    """A row for each run of the engine: the varied settings, its rate, and plain verbs' (Mops).

    ran: pairs of settings and outcome. Runs that differ in the engine alone have one row, with the
    best rate.
    """
    best = {}
    for settings, out in ran:
        if can_have(settings):
            key = tuple(sorted(plain(settings).items()))
            best[key] = max(best.get(key, 0), out["load"]["mops"])
    names = {name for key in best for name, _ in key}
    varied = sorted(name for name in names if len({dict(key).get(name) for key in best}) > 1)
    outs = sim.whatever([dict(key) for key in best], what)
    return [{"run": _label(dict(key), varied), "engine": engine, "verbs": out["load"]["mops"]}
            for (key, engine), out in zip(best.items(), outs)]


def sentence(found):
    """The meaning of the rows in words, or ""."""
    ratios = [row["verbs"] / row["engine"] for row in found if row["engine"]]
    if not ratios:
        return ""
    ahead = sum(ratio > AHEAD for ratio in ratios)
    behind = sum(ratio * AHEAD < 1 for ratio in ratios)
    said = (f"Plain verbs with a queue pair a thread: {min(ratios):.2f} to {max(ratios):.2f} times "
            f"the rate of weir's engine (median {statistics.median(ratios):.2f}); ahead in {ahead} "
            f"of {len(ratios)} loads, behind in {behind}.")
    if ahead > behind:
        said += (" For such loads, whose threads never touch the same bytes and need no merging, "
                 "plain verbs are the better choice.")
    return said
