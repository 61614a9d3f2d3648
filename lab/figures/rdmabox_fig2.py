# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Clusters of writes, and ways of waiting for their completions."""

from lab.experiment import INPUT, MODEL, Result, Series, Target, Why, holds

NAME = "rdmabox-fig2"
TITLE = "ways of polling, where requests come in clusters"
VARIED = (
    "requests in a cluster, posted as one chain; the next cluster follows when all are done; "
    "writes of 1,000 bytes, not inlined; MAX_RETRY 120, MAX_POLL_WC 50. On cores enough; and on a "
    "single core "
    "with another thread, which sleeps for each of its own requests"
)
PROFILE = "connectx-3"

CLUSTERS = [1, 10, 50, 100, 200, 400, 800]
WAYS = {"event-batch": "batch", "hybrid": "hybrid", "adaptive": "adaptive", "busy": "busy"}
SLEEPERS = ["event-batch", "hybrid"]
SHARED = {"cores": 1, "bg_threads": 1, "bg_poll": "event", "bg_size": 64}
FULL = 0.95
APART = 0.02
UNITS = {"Mops": lambda one, clusters: one["load"]["mops"],
         "cores busy": lambda one, clusters: one["clients"]["busy"]["cores"],
         "interrupts a cluster": lambda one, clusters: one["clients"]["interrupts"] / clusters}
SWITCHES = "context switches a cluster, one core for two"
ONE_BY_ONE = Why(
    "nothing jitters in the model, so that whether a look finds one completion more or none is the "
    "same each time: "
    "hybrid is ahead of event-batch with some sizes and behind with others",
    MODEL,
)
FEW_SLEEPS = Why(
    "a few interrupts and wake-ups for so many requests are hardly more than a ripple of 2 % of "
    "their time here; what they "
    "took the paper's poller is not published",
    INPUT,
)
PRICES_NS = range(0, 100, 10)  # of a completion's handler
LOOKS_END = Why(
    "event-batch takes 50 completions at most for each interrupt, hybrid as many as come before a "
    "look finds none; nothing "
    "jitters in the model, so that those are more with some sizes and fewer with others. What the "
    "paper's poller takes for "
    "a completion is not published",
    MODEL,
)


def _setting(cluster, poll, more):
    return {
        "depth": cluster,
        "batch": cluster,
        "size": 1000,
        "inline_max": 400,
        "poll": poll,
        "poll_wcs": 50,
        "poll_retries": 120 if poll == "adaptive" else 0,
        "run_us": 5000,
        **more,
    }


def _patterns(busy):
    """The paper's small, medium and large clusters: one request; the middle; the smallest cluster
    at which busy polling reaches its full rate.
    """
    large = next(n for n in CLUSTERS if busy.at(n) >= FULL * max(busy.y))
    medium = min(CLUSTERS, key=lambda n: abs(n - (1 + large) / 2))
    return {"small": 1, "medium": medium, "large": large}


def run(sim):
    series = []
    for more, units in (
        ({}, UNITS),
        (SHARED, {SWITCHES: lambda one, clusters: one["clients"]["switches"] / clusters}),
    ):
        runs = iter(
            sim.all(
                [_setting(cluster, poll, more) for poll in WAYS.values() for cluster in CLUSTERS],
                NAME,
            )
        )
        for way in WAYS:
            mine = [next(runs) for _ in CLUSTERS]
            clusters = [one["load"]["ops"] / cluster for one, cluster in zip(mine, CLUSTERS)]
            series += [
                Series(way, unit, CLUSTERS, list(map(of, mine, clusters)))
                for unit, of in units.items()
            ]
    value = {(one.name, one.unit): one for one in series}
    rate = {way: value[way, "Mops"] for way in WAYS}
    patterns = _patterns(rate["busy"])
    targets = [
        *_rates(rate, patterns, _by_price(sim, patterns["large"])),
        *_counts(
            "2c", "interrupts", {way: value[way, "interrupts a cluster"] for way in WAYS}, patterns
        ),
        *_counts("2d", "context switches", {way: value[way, SWITCHES] for way in WAYS}, patterns),
    ]
    notes = [
        f"Small is one at a time, as in the paper; large, {patterns['large']}, the least with "
        f"which busy polling has "
        f"{100 * FULL:.0f} % of its best here, and medium, {patterns['medium']}, the middle, of "
        f"those that were run: the paper "
        "names no numbers.",
        "The paper's Fig. 2b is not named in its text; CPU time is shown in its place.",
        "2d is of one core for two threads, of which one that polls all the time leaves the other "
        "next to nothing; "
        "with a core for each nobody has to make room for who is woken, and no way switches at "
        "all.",
        "With 120 looks adaptive waits longer than an answer takes: it never sleeps here, and is "
        "what busy polling is.",
        "weir's poller counts consecutive empty polls; the paper's algorithm never resets its "
        "counter.",
    ]
    return Result("requests in a cluster", series, targets, notes)


def _by_price(sim, cluster):
    """In words: the lead of hybrid over event-batch with slower handlers."""
    runs = iter(sim.all([{**_setting(cluster, poll, {}), "handle_ns": price}
                         for price in PRICES_NS for poll in ("batch", "hybrid")], NAME))
    batches = [(next(runs)["load"]["mops"], next(runs)["load"]["mops"]) for _ in PRICES_NS]
    ahead = [100 * (hybrid / batch - 1) for batch, hybrid in batches]
    return (
        f"and, with {cluster} and a handler of {PRICES_NS[0]} to {PRICES_NS[-1]} ns, by "
        f"{min(ahead):+.1f} to "
        f"{max(ahead):+.1f} %, {sum(ahead) / len(ahead):+.1f} % on average"
    )


def _rates(rate, patterns, by_price):
    large = patterns["large"]
    ahead = {n: rate["hybrid"].at(n) / rate["event-batch"].at(n) for n in CLUSTERS}
    said = ", ".join(f"{100 * (part - 1):+.0f} % with {n}" for n, part in ahead.items() if n > 10)
    return [
        *(
            holds(
                f"2a: adaptive has the highest throughput of those that may sleep, {name} ({n})",
                "yes",
                ", ".join(f"{way} {rate[way].at(n):.2f}" for way in ("adaptive", *SLEEPERS))
                + " Mops",
                all(rate["adaptive"].at(n) >= rate[way].at(n) for way in SLEEPERS),
            )
            for name, n in patterns.items()
        ),
        holds(
            f"2a: hybrid is better than event-batch, large ({large})",
            "yes",
            f"{100 * (ahead[large] - 1):+.1f} %",
            ahead[large] > 1 + APART,
            ONE_BY_ONE + f" ({said}; {by_price})",
        ),
        *(
            holds(
                f"2a: hybrid is suboptimal: behind adaptive, {name} ({n})",
                "yes",
                f"{rate['hybrid'].at(n) / rate['adaptive'].at(n):.2f} of it",
                rate["hybrid"].at(n) < (1 - APART) * rate["adaptive"].at(n),
                FEW_SLEEPS,
            )
            for name, n in patterns.items()
            if name != "large"
        ),
    ]


def _counts(panel, what, lines, patterns):
    """The paper's statements on Figs. 2c and 2d, where any way of polling shows such an effect."""
    targets = []
    for name, n in patterns.items():
        here = {way: lines[way].at(n) for way in ("event-batch", "hybrid", "adaptive")}
        batch, hybrid, adaptive = here.values()
        said = ", ".join(f"{way} {count:.2f}" for way, count in here.items())
        if not any(here.values()):
            targets.append(
                Target(
                    f"{panel}: {what}, {name} ({n})",
                    "adaptive has fewest",
                    "none, by any way",
                    None,
                )
            )
            continue
        alone = {"by_input": n == 1, "note": "one request, one event" if n == 1 else ""}
        targets += [
            holds(
                f"{panel}: adaptive has the fewest {what}, {name} ({n})",
                "yes",
                said,
                adaptive < min(batch, hybrid),
            ),
            holds(
                f"{panel}: event-batch has the most {what}, {name} ({n})",
                "yes",
                said,
                batch >= max(hybrid, adaptive),
                LOOKS_END,
                **alone,
            ),
            holds(
                f"{panel}: hybrid has about as many {what}, within 15 %, {name} ({n})",
                "yes",
                f"{hybrid / batch:.2f} of event-batch's" if batch else said,
                abs(hybrid - batch) <= 0.15 * batch,
                LOOKS_END,
                **alone,
            ),
        ]
    return targets
