# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs the simulator: a process for each run, as many at once as there are CPUs.

A run depends on its settings and seed only. So no run is repeated, and the order in which runs end
has no effect.
"""

import concurrent.futures
import json
import os
import pathlib
import statistics
import sys

from lab import beside
from lab.children import Children, undisturbed

HERE = pathlib.Path(__file__).resolve().parent
SIM = HERE.parent / "sim"
PROGRAM = SIM / "weir-sim"
PROFILES = SIM / "profiles"
ENVIRONMENT = {**os.environ, "WEIR_SIM_PROFILES": str(PROFILES)}


STEADY = 0.1  # the halves of a run may differ by this part of the total
ENOUGH = 500  # operations


class Failure(Exception):
    """The simulator refused the settings, or failed."""


def profiles():
    """Names of the profiles shipped with the lab."""
    return sorted(path.name for path in PROFILES.iterdir() if path.name.startswith("connectx"))


def profile_named(said):
    """The name of a shipped profile, or a path, as the simulator takes it; None: no such profile.
    """
    if said in profiles():
        return said
    return str(pathlib.Path(said).absolute()) if pathlib.Path(said).is_file() else None


def profile_path(profile):
    """Path of a profile returned by profile_named()."""
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
    """The simulator's objection to a profile, or ""."""
    try:
        _run(Children(), [f"profile={profile}", "threads=0", "run_us=1", "warmup_us=0"])
    except Failure as failure:
        return str(failure)
    return ""


def _median(outcomes):
    """Median of each number over several runs of the same settings."""
    first = outcomes[0]
    if isinstance(first, dict):
        return {key: _median([outcome[key] for outcome in outcomes]) for key in first}
    if isinstance(first, (int, float)) and not isinstance(first, bool):
        return statistics.median(outcomes)
    return first


def _draws(settings):
    """Whether a run uses random numbers; other runs are run once."""
    return any(settings.get(name) in ("random", "zipf") for name in ("pattern", "bg_pattern"))


def _is_steady(outcome):
    """Whether both halves of the run did as much, as far as so few operations can tell."""
    ops, half = outcome["load"]["ops"], outcome["half_ops"]
    return ops < ENOUGH or abs(2 * half - ops) <= STEADY * ops


class Sim:
    """The simulator, as used by an experiment."""

    def __init__(self, profile, seeds=3, quiet=False):
        self.profile = profile
        self.seeds = range(1, seeds + 1)
        self.quiet = quiet
        self._said = ""
        self._known = {}
        self._unsteady = set()
        self._engine = []

    def all(self, settings, what=""):
        """The outcome for each settings: medians over the seeds. Each run must complete operations.
        """
        outs = self.whatever(settings, what)
        for one, out in zip(settings, outs):
            if not out["load"]["ops"]:
                raise Failure(
                    "nothing was done in the time of a run, which this profile is too slow for: "
                    f"weir-sim {' '.join(self._arguments(one, self.seeds[0]))}"
                )
        return outs

    def whatever(self, settings, what=""):
        """As all(), but a run without operations is an outcome."""
        wanted = [
            [self._arguments(one, seed) for seed in (self.seeds if _draws(one) else self.seeds[:1])]
            for one in settings
        ]
        self._run_missing({tuple(a) for one in wanted for a in one} - self._known.keys(), what)
        self._unsteady |= {
            " ".join(a) for one in wanted for a in one if not _is_steady(self._known[tuple(a)])
        }
        outs = [_median([self._known[tuple(a)] for a in one]) for one in wanted]
        self._engine += [pair for pair in zip(settings, outs) if beside.can_have(pair[0])]
        return outs

    def unsteady(self):
        """Settings of the unsteady runs since the last call."""
        settings, self._unsteady = sorted(self._unsteady), set()
        return settings

    def beside_engine(self, what=""):
        """Plain verbs beside the runs of the engine since the last call: beside.rows()."""
        ran, self._engine = self._engine, []
        return beside.rows(self, ran, what)

    def profile_numbers(self):
        """The profile's numbers by name, in the file's units."""
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
        """Not on a terminal: prints a line for each experiment."""
        if what and what != self._said and not self.quiet and not sys.stderr.isatty():
            print(f"weir lab: {what}", file=sys.stderr, flush=True)
            self._said = what

    def _progress(self, what, done, of):
        if not self.quiet and sys.stderr.isatty():
            print(f"\r\033[K{what} {done}/{of}", end="" if done < of else "\r\033[K",
                  file=sys.stderr, flush=True)
