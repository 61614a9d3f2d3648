# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir lab what-if: a NIC's performance with a workload, its limit, and better settings.

A workload is a dictionary with the option names of `weir perf`; "trace", if not None, replaces op,
size and pattern. The simulator itself finds the limit: each limit in turn is doubled, and the
largest gain shows the limit that binds. Busy polling is tried first. If busy polling gains,
sleeping binds, and the other limits are tried with busy polling too, because a sleeping thread may
sleep less when other steps become a little faster.
"""

import dataclasses

from lab import beside, simulate, traces

BATCHING = {"single": {"chain": 1, "merge": 0}, "doorbell": {"merge": 0}, "merge": {"chain": 1},
            "hybrid": {}}
POLLING = {"busy": "busy", "event": "event", "event-batch": "batch", "hybrid": "hybrid",
           "adaptive": "adaptive"}
PATTERNS = {"sequential": "seq", "random": "random"}
NO_WINDOW = 1 << 30
PAGE = 4096
FRAGMENT = 1 << 20
WINDOW, WINDOW_WRS = 8 << 20, 4096  # the library's, and the most that is learned
LEARNED = ["delay", "knee"]
UNDER_WAY_MAX = 1 << 14  # requests: more would take minutes to reach a steady state
# Requests in flight at the start and end of a run blur the count, so a run must be many times as
# long as these requests take.
TURNS = 100
WARM_TURNS = 10
TURNS_OF_MANY, MANY = 10, 400000  # requests of a run; MANY make a long run in any case
RUN_BYTES = 64 << 20  # at least, unless this means too few or too many requests
WARM_US_MAX, RUN_US_MAX = 2000000, 10000000
TRIES = 6
MOPS_MAX = 10  # upper bound of the first guess
GAIN = 1.03  # smaller gains do not count
FULL = 0.95  # busy for this part of the time

# Alternatives to the user's settings.
CHOICES = {
    "channels": [1, 2, 4, 8, 16],
    "batching": list(BATCHING),
    "polling": list(POLLING),
    "window": [256 << 10, 1 << 20, 8 << 20, NO_WINDOW],
    "window_wrs": [64, 256, WINDOW_WRS],
    "mr": ["pre", "dyn"],
}

# Remedies for each limit.
REMEDIES = {
    "message rate": "fewer and longer requests; neighbours merge, --batching hybrid",
    "link": "the NIC can do no more",
    "PCIe": "a wider slot; short requests take more of it for their bytes than long ones",
    "CPU": "what the threads of a session do for each request, one at a time: other batching, more "
           "sessions",
    "WQE cache": "less under way: a smaller window, a smaller depth",
    "QP cache": "fewer connections: channels, or one NIC for many processes, weir-share(1)",
    "MTT reach": "larger pages of the donor's memory; for small writes, weir run --unload",
    "window": "a larger one",
    "requests under way": "a greater depth, or more threads",
    "sleeping": "--polling busy, which takes a core; or more under way",
}

CPU_COSTS = ["post_ns", "post_sge_ns", "doorbell_ns", "blueflame_ns", "poll_ns", "poll_wc_ns",
             "arm_ns", "lock_ns", "handoff_ns", "handoff_waiter_ns", "wake_ns", "wake_call_ns",
             "syscall_ns", "switch_ns", "irq_ns", "copy_call_ns", "reg_ns", "reg_page_ns",
             "dereg_ns", "dereg_page_ns"]
PIPELINE = [f"{way}_{what}_ns" for way in ("tx", "rx") for what in ("write", "read")]
CORE_NS = 50  # weir-sim's default


@dataclasses.dataclass(frozen=True)
class Limit:
    """A limit that may bind.

    polling, base_mops: of the run in which only this limit changes; busy: busy part of the time, if
    known; shown: the same as text, or another fact; gain: the rate with twice the limit, relative
    to base_mops
    """
    name: str
    polling: str
    base_mops: float
    busy: float | None
    shown: str
    gain: float


def of_trace(path):
    """Workload entries of a trace: mean size, and the most requests in flight."""
    facts = traces.facts(path)
    return {"trace": path, "pattern": "trace", "op": "mixed", "threads": facts["deepest"],
            "depth": 1,
            "size": PAGE * facts["pages"] // facts["requests"], "region": facts["last"] * PAGE}


def _asked(workload):
    """The requests, as weir-sim settings."""
    if workload["trace"]:
        return {"pattern": "trace", "trace": traces.plain(workload["trace"])}
    return {"op": workload["op"], "size": workload["size"],
            "pattern": PATTERNS[workload["pattern"]],
            "region_bytes": workload["region"]}


def _most(workload):
    """The most bytes and work requests that the window lets through."""
    return tuple(usual if workload[name] in LEARNED else workload[name]
                 for name, usual in (("window", WINDOW), ("window_wrs", WINDOW_WRS)))


def _window(workload):
    """The window, as weir-sim settings."""
    most, wrs = _most(workload)
    admission = workload["window"] if workload["window"] in LEARNED else \
        f"{workload['window_wrs']}-wrs" if workload["window_wrs"] in LEARNED else "static"
    return {"window": most, "window_wrs": wrs, "admission": admission,
            "fragment": min(FRAGMENT, most)}


def settings(workload):
    """Settings of weir-sim, without the run time."""
    return {
        "driver": "weir", **_asked(workload), "threads": workload["threads"],
        "depth": workload["depth"], "mr": workload["mr"], "qps": workload["channels"],
        "poll": POLLING[workload["polling"]], **_window(workload), **BATCHING[workload["batching"]],
    }


def _to_be_done(workload, numbers):
    """Requests before and during a run that give the rate of a long run."""
    asked = workload["threads"] * workload["depth"]
    # The others wait for the window.
    most, wrs = _most(workload)
    under_way = min(asked, max(1, most // workload["size"]), wrs)
    least = max(100, min(2000, RUN_BYTES // workload["size"]))
    during = max(least, min(TURNS * under_way, max(MANY, TURNS_OF_MANY * under_way)))
    return max(2 * asked, min(WARM_TURNS * under_way, during), least), during


def _touched(workload, numbers):
    """Requests before the run that fill the donor NIC's cache as a long run would."""
    pages, entries = workload["region"] / numbers["page_bytes"], numbers["mtt_entries"]
    of_each = min(1, numbers["page_bytes"] / workload["size"])
    # Each page once. If the pages exceed the cache, the next page is never cached.
    if workload["pattern"] == "sequential":
        return round(pages * of_each) if pages <= entries else 0
    return round(3 * min(pages, entries) * of_each)


def _times(rate_mops, to_be_done):
    """Run times in weir-sim's names for these requests at this rate."""
    before, during = to_be_done
    return {"warmup_us": round(min(WARM_US_MAX, 100 + before / rate_mops)),
            "run_us": round(min(RUN_US_MAX, max(1000, during / rate_mops)))}


def _better_times(times, out, to_be_done):
    """Run times for the rate that a run showed."""
    if not rate(out):  # a few requests in ten seconds are printed as 0, too
        return {"warmup_us": min(WARM_US_MAX, 8 * times["warmup_us"]),
                "run_us": min(RUN_US_MAX, 8 * times["run_us"])}
    return _times(rate(out), to_be_done)


def run(sim, workload, numbers, changes, what="", over=dict):
    """The outcome of the workload with each of these changes to weir-sim's settings.

    over: turns these settings into others, such as plain verbs'.

    The time of a request is not known beforehand. A run that was too short for its rate is repeated
    with a longer time. No request in ten seconds counts as a rate of 0.
    """
    asked = [over({**settings(workload), "touched": _touched(workload, numbers), **change})
             for change in changes]
    to_be_done = _to_be_done(workload, numbers)
    times = [_times(min(MOPS_MAX, numbers["link_gbps"] * 1000 / 8 / workload["size"]),
                    to_be_done)] * len(asked)
    for _ in range(TRIES):
        outs = sim.whatever([{**one, **long} for one, long in zip(asked, times)], what)
        better = [_better_times(long, out, to_be_done) for long, out in zip(times, outs)]
        if all(long[name] >= 0.8 * wanted[name]
               for long, wanted in zip(times, better) for name in long):
            break
        times = [{name: max(long[name], wanted[name]) for name in long}
                 for long, wanted in zip(times, better)]
    return outs


def rate(out):
    return out["load"]["mops"]


def _wider(numbers, workload):
    """Changes that double each limit, by name; for a cache, misses become free."""
    def times(names, factor):
        return {name: f"{numbers[name] * factor:.3f}" for name in names}

    def halved(names):
        return times(names, 0.5)

    return {
        "message rate": halved(PIPELINE),
        "link": times(["link_gbps"], 2),
        "PCIe": times(["pcie_read_gbps", "pcie_write_gbps"], 2),
        "CPU": {**halved(CPU_COSTS), **times(["copy_gbps"], 2), "core_ns": CORE_NS // 2},
        "WQE cache": dict.fromkeys(["wqe_miss_ns", "wqe_stall_ns", "wqe_stall_read_ns"], 0),
        "QP cache": dict.fromkeys(["qpc_miss_ns", "qpc_stall_ns"], 0),
        "MTT reach": dict.fromkeys(
            ["mtt_miss_ns", "mtt_stall_ns", "mpt_miss_ns", "mpt_stall_ns"], 0),
        "window": {"window": NO_WINDOW, "window_wrs": 65536, "admission": "static"},
        "requests under way": {"depth": min(4096, 2 * workload["depth"])},
    }


def _as_it_is(out, numbers):
    """The run's state of each limit, by name: busy and shown."""
    sides = [out["clients"], out["servers"]]

    def busy(*parts):
        share = max(side["busy"][part] for side in sides for part in parts)
        return share, f"{share:.0%} busy"

    def missed(*caches):
        share = max(side["misses"][cache] for side in sides for cache in caches)
        return None, f"{share:.1%} missed"

    idle = out["load"]["empty_polls"] * numbers["poll_empty_ns"] / 1000 / out["run_us"]
    working = max(0, out["clients"]["busy"]["cores"] - idle)
    return {
        "message rate": busy("pipeline"), "link": busy("link_out", "link_in"),
        "PCIe": busy("pcie_read", "pcie_write"), "CPU": (None, f"{working:.1f} cores at work"),
        "WQE cache": missed("wqe"), "QP cache": missed("qp"), "MTT reach": missed("mtt", "mpt"),
        "window": (None, f"{out['load']['window_waits']:.0f} waits"),
        "requests under way": (None, f"{out['load']['in_flight']:.0f} on average"),
        "sleeping": (None, f"{out['load']['sleeps']:.0f} times"),
    }


def limits(sim, workload, numbers, out):
    """All limits, the binding one first: sleeping, if it binds; then by gain."""
    def limit(name, after):
        return Limit(name, workload["polling"], rate(out), *_as_it_is(out, numbers)[name],
                     rate(after) / rate(out))
    awake = {**workload, "polling": "busy"}
    (busily,) = run(sim, awake, numbers, [{}], "limits")
    sleeping = limit("sleeping", busily)
    if sleeping.gain >= GAIN:
        workload, out = awake, busily
    wider = _wider(numbers, workload)
    outs = run(sim, workload, numbers, wider.values(), "limits")
    others = [limit(name, one) for name, one in zip(wider, outs)]
    if sleeping.gain >= GAIN:
        return [sleeping, *sorted(others, key=lambda one: -one.gain)]
    return sorted([sleeping, *others], key=lambda one: -one.gain)


def with_busy_polling(found):
    """The limits that were tried with busy polling, because sleeping binds."""
    return found[1:] if found[0].name == "sleeping" and found[0].gain >= GAIN else []


def binds(found):
    """The limits that bind: one, or several that are full; or none."""
    if found and found[0].gain >= GAIN:
        return [found[0].name]
    return [limit.name for limit in found if limit.busy is not None and limit.busy >= FULL]


def best(sim, workload, numbers):
    """Improves the settings one at a time until no change gains. Return: workload and outcome."""
    here, (out,) = workload, run(sim, workload, numbers, [{}])
    while True:
        before = here
        for name, values in CHOICES.items():
            if name == "mr" and here["mr"] == "user":
                continue  # registered already: no alternative is better
            there = [{**here, name: value} for value in values]
            outs = run(sim, workload, numbers, [settings(one) for one in there], f"trying {name}")
            most = max(range(len(there)), key=lambda i: rate(outs[i]))
            if rate(outs[most]) >= GAIN * rate(out):
                here, out = there[most], outs[most]
        if here == before:
            return here, out


@dataclasses.dataclass(frozen=True)
class Answer:
    """workload, out: the user's workload and its outcome; better, better_out: the best found;
    plain_out: over plain verbs with a queue pair a thread, or None for a trace.
    """
    profile: str
    workload: dict
    out: dict
    limits: list
    better: dict
    better_out: dict
    plain_out: dict | None

    def lost(self):
        """Rate of plain verbs over the best of weir's, if weir loses by it; else 0."""
        ratio = rate(self.plain_out) / rate(self.better_out) if self.plain_out else 0
        return ratio if ratio >= GAIN else 0

    def changed(self):
        """The settings in which the best workload differs from the user's."""
        return {name: self.better[name] for name in CHOICES
                if self.better[name] != self.workload[name]}


def answer(sim, workload):
    numbers = sim.profile_numbers()
    (out,) = run(sim, workload, numbers, [{}], "as asked")
    if not rate(out):
        raise simulate.Failure(f"too slow to tell a rate: {out['load']['ops']} requests of "
                               f"{size(workload['size'])} were done in {RUN_US_MAX // 1000000} s "
                               f"on {sim.profile}")
    found = limits(sim, workload, numbers, out)
    plain = None if workload["trace"] else \
        run(sim, workload, numbers, [{}], "plain verbs", beside.plain)[0]
    return Answer(sim.profile, workload, out, found, *best(sim, workload, numbers), plain)


def _outcome(out):
    """The part of an outcome that is shown."""
    load = out["load"]
    return {"mops": load["mops"], "gbps": load["gbps"], "latency_us": load["latency_us"],
            "client_cores": out["clients"]["busy"]["cores"],
            "donor_cores": out["servers"]["busy"]["cores"]}


def as_json(a):
    return {
        "modelled": True, "profile": a.profile, "workload": a.workload, **_outcome(a.out),
        "limits": [dataclasses.asdict(limit) for limit in a.limits],
        "binds": binds(a.limits), "binds_then": binds(with_busy_polling(a.limits)),
        "plain_verbs": a.plain_out and _outcome(a.plain_out),
        "best": {"settings": a.better, "gain": rate(a.better_out) / rate(a.out),
                 **_outcome(a.better_out)},
    }


def size(number):
    """In the notation of weir perf: 4096 is 4K."""
    for unit, letter in ((1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if number % unit == 0:
            return f"{number // unit}{letter}"
    return str(number)


def _said(name, value):
    if name != "window" or value in LEARNED:
        return str(value)
    return "off" if value == NO_WINDOW else size(value)


def _per_second(mops):
    """With three significant digits."""
    if mops >= 0.1:
        return f"{mops:.3f} M/s"
    return f"{mops * 1000:.3f} K/s" if mops >= 0.0001 else f"{mops * 1e6:.3g} /s"


def _show_outcome(out):
    result = _outcome(out)
    latency = result["latency_us"]
    print(f"  rate     {_per_second(result['mops'])}, {result['gbps']:.2f} Gb/s")
    print(f"  latency  p50 {latency['p50']:.1f} us, p99 {latency['p99']:.1f} us,"
          f" p99.9 {latency['p999']:.1f} us")
    print(f"  CPU      {result['client_cores']:.2f} cores here, {result['donor_cores']:.2f} of the"
          " donor")


def _show_limits(found):
    awake = with_busy_polling(found)
    print(f"\n{'limit':20}{'as it is':>18}   rate with twice the limit (sleeping: with busy "
          "polling)")
    for limit in found:
        if awake and limit is awake[0]:
            print(f"The others, with busy polling ({_per_second(limit.base_mops)}):")
        print(f"{limit.name:20}{limit.shown:>18}   {limit.gain - 1:+.1%}")
    if min(limit.gain for limit in found) <= 2 - GAIN:
        print("Below 0: threads that finish sooner wait for the session more often.")
    print()


def _show_binding(when, names):
    print(f"{when}: {', with '.join(names) or 'none of them alone'}.")
    for name in names:
        print(f"  {name}: {REMEDIES[name]}")


def show(a):
    w, first, changed = a.workload, binds(a.limits), a.changed()
    print(f"Modelled, not measured: weir's engine on a simulated {a.profile}, one donor.\n")
    what = f"{w['op']} of {size(w['size'])}" if not w["trace"] else \
        f"requests of {w['trace']}, {w['size'] / 1024:.1f} KB on average"
    print(f"{what}, {w['threads']} x {w['depth']} in flight, {w['pattern']}"
          f" in {size(w['region'])}; "
          + ", ".join(f"{name} {_said(name, w[name])}" for name in CHOICES))
    _show_outcome(a.out)
    _show_limits(a.limits)
    _show_binding("What binds first", first)
    if with_busy_polling(a.limits):
        _show_binding("With busy polling", binds(with_busy_polling(a.limits)))
    if changed:
        print("\nBest found: " + ", ".join(f"{name} {_said(name, value)}"
                                           for name, value in changed.items())
              + f": {rate(a.better_out) / rate(a.out) - 1:+.0%}")
        _show_outcome(a.better_out)
    else:
        print("No other channels, batching, polling, window or memory gains 3 %.")
    _show_plain(a)


def _show_plain(a):
    if not a.plain_out:
        return
    print("\nPlain verbs, a queue pair a thread, nothing merged:")
    _show_outcome(a.plain_out)
    if a.lost():
        print(f"weir loses here: plain verbs make {a.lost():.1f} times the best rate found. Where "
              "no two threads touch\nthe same bytes and nothing merges, let each thread post on a "
              "queue pair of its own.")
    else:
        print(f"weir is ahead of it, or equal: {rate(a.better_out) / rate(a.plain_out):.1f} times "
              "its rate.")
