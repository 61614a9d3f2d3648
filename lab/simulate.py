# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs the simulator: one process a run, as many at once as there are CPUs.

A run is a matter of its settings and its seed alone, so nothing is run twice, and the order in
which runs end changes nothing.
"""

import concurrent.futures
import json
import os
import pathlib
import statistics
import sys

from lab.children import Children, undisturbed

HERE = pathlib.Path(__file__).resolve().parent
SIM = HERE.parent / "sim"
PROGRAM = SIM / "weir-sim"
PROFILES = SIM / "profiles"
ENVIRONMENT = {**os.environ, "WEIR_SIM_PROFILES": str(PROFILES)}
SHORT = {"cx3": "connectx-3", "cx5": "connectx-5", "cx5-edr": "connectx-5-edr"}


STEADY = 0.1  # the halves of a run's time may differ by so much of all
ENOUGH = 500  # operations


class Failure(Exception):
    """The simulator refused, or broke."""


def profiles():
    """The names of those that come with the lab."""
    return sorted(path.name for path in PROFILES.iterdir() if path.name.startswith("connectx"))


def profile_named(said):
    """As the simulator takes it: a name of one that comes with the lab, or a path; None: there is none."""
    name = SHORT.get(said, said)
    if name in profiles():
        return name
    return str(pathlib.Path(said).absolute()) if pathlib.Path(said).is_file() else None


def profile_path(profile):
    """Of one that profile_named() gave."""
    return pathlib.Path(profile) if "/" in profile else PROFILES / profile


def _run(children, arguments):
    try:
        status, said, wrong = children.run([PROGRAM, *arguments], env=ENVIRONMENT)
    except OSError as error:
        raise Failure(f"cannot run {PROGRAM}: {error.strerror}") from error
    if status:
        raise Failure(wrong.strip() or f"weir-sim {' '.join(arguments)}: exit status {status}")
    return json.loads(said)


def wrong_with(profile):
    """What the simulator has to say against one, or nothing."""
    try:
        _run(Children(), [f"profile={profile}", "threads=0", "run_us=1", "warmup_us=0"])
    except Failure as failure:
        return str(failure)
    return ""


def _median(outcomes):
    """Of each number in what several runs of the same settings printed."""
    first = outcomes[0]
    if isinstance(first, dict):
        return {key: _median([outcome[key] for outcome in outcomes]) for key in first}
    if isinstance(first, (int, float)) and not isinstance(first, bool):
        return statistics.median(outcomes)
    return first


def _draws(settings):
    """Whether anything in a run is random: what is not, is run once."""
    return any(settings.get(name) in ("random", "zipf") for name in ("pattern", "bg_pattern"))


def _is_steady(outcome):
    """Whether as much was done in both halves of the time, as far as so few operations can tell."""
    ops, half = outcome["load"]["ops"], outcome["half_ops"]
    return ops < ENOUGH or abs(2 * half - ops) <= STEADY * ops


class Sim:
    """What an experiment asks."""

    def __init__(self, profile, seeds=3, quiet=False):
        self.profile = profile
        self.seeds = range(1, seeds + 1)
        self.quiet = quiet
        self._said = ""
        self._known = {}
        self._unsteady = set()

    def all(self, settings, what=""):
        """What came out for each of a list of settings: medians over the seeds. In each, something did."""
        outs = self.whatever(settings, what)
        for one, out in zip(settings, outs):
            if not out["load"]["ops"]:
                raise Failure("nothing was done in the time of a run, which this profile is too slow for: "
                              f"weir-sim {' '.join(self._arguments(one, self.seeds[0]))}")
        return outs

    def whatever(self, settings, what=""):
        """As all(), but where nothing was done in a run's time that is what came out."""
        wanted = [[self._arguments(one, seed) for seed in (self.seeds if _draws(one) else self.seeds[:1])]
                  for one in settings]
        self._run_missing({tuple(a) for one in wanted for a in one} - self._known.keys(), what)
        self._unsteady |= {" ".join(a) for one in wanted for a in one if not _is_steady(self._known[tuple(a)])}
        return [_median([self._known[tuple(a)] for a in one]) for one in wanted]

    def unsteady(self):
        """The settings of runs that were not steady, of those asked for since this was asked last."""
        settings, self._unsteady = sorted(self._unsteady), set()
        return settings

    def profile_numbers(self):
        """The profile's numbers by name, as its file has them."""
        text = profile_path(self.profile).read_text(encoding="utf-8")
        lines = (line.split("#")[0] for line in text.splitlines())
        return {name.strip(): float(value) for name, _, value in
                (line.partition("=") for line in lines if line.strip())}

    def _arguments(self, settings, seed):
        all_of_them = {"profile": self.profile, **settings, "seed": seed}
        return [f"{name}={value}" for name, value in sorted(all_of_them.items())]

    def _run_missing(self, missing, what):
        children = Children()
        self._begins(what if missing else "")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            try:
                with undisturbed():
                    under_way = {pool.submit(_run, children, a): a for a in sorted(missing)}
                for done in concurrent.futures.as_completed(under_way):
                    self._known[under_way[done]] = done.result()
                    self._progress(what, sum(f.done() for f in under_way), len(under_way))
            except BaseException:
                children.end()
                pool.shutdown(cancel_futures=True)
                raise

    def _begins(self, what):
        """Where no line can be written over: one for each thing that is run."""
        if what and what != self._said and not self.quiet and not sys.stderr.isatty():
            print(f"weir lab: {what}", file=sys.stderr, flush=True)
            self._said = what

    def _progress(self, what, done, of):
        if not self.quiet and sys.stderr.isatty():
            print(f"\r\033[K{what} {done}/{of}", end="" if done < of else "\r\033[K",
                  file=sys.stderr, flush=True)
