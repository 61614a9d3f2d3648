# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The parts of an experiment, and the list of experiments.

A file in figures/ is one experiment. Its module-level names describe it:

  NAME      as given to `weir lab run`: paper, dash, figure
  TITLE     one line
  VARIED    the varied and the fixed parameters
  PROFILE   the NIC, unless the user chooses another
  run(sim)  queries the simulator (simulate.py), and returns a Result

Everything in a Result is modelled. Only the values that targets quote were measured, by the papers.
"""

import dataclasses
import hashlib
import importlib
import json
import pathlib
import re

RIPPLE = 0.02
# Why a target is missed; each missed target of the paper's NIC has one of these.
INPUT, MODEL, COST = "input", "model", "weir"
CAUSES = {
    INPUT: "the paper does not give an input that decides it",
    MODEL: "the model lacks something that decides it",
    COST: "weir works otherwise, at its own cost or gain",
}


class Why(str):
    """Why a target is missed, with its cause: one of CAUSES."""

    cause = ""

    def __new__(cls, text, cause):
        why = super().__new__(cls, text)
        why.cause = cause
        return why

    def __add__(self, more):
        return Why(str(self) + more, self.cause)

    def format(self, *values):
        return Why(str(self).format(*values), self.cause)


@dataclasses.dataclass(frozen=True)
class Series:
    """A line of a plot, or a column of a table. Series of the same unit share a plot."""

    name: str
    unit: str
    x: list
    y: list

    def at(self, x):
        """The value at x, or None."""
        return dict(zip(self.x, self.y)).get(x)

    def of(self, unit):
        """The same series in another plot, with a more specific unit."""
        return dataclasses.replace(self, unit=unit)

    def peak(self):
        """The x of the maximum."""
        return self.x[self.y.index(max(self.y))]

    def highest(self):
        """In words: the range of x within a ripple of the maximum."""
        top = [x for x, y in zip(self.x, self.y) if y >= (1 - RIPPLE) * max(self.y)]
        return f"{top[0]}" if top[0] == top[-1] else f"{top[0]} to {top[-1]}"


@dataclasses.dataclass(frozen=True)
class Target:
    """The paper's statement beside the model's.

    met is None where the paper publishes nothing to meet; why explains a False, and cause is then
    one of CAUSES. calibrated marks a
    figure that the model was fitted to. by_input marks a figure that follows from an input of the
    lab, or from a number fitted to another row. Neither proves anything. held_out marks a point set
    aside before any fitting. own: for an expectation of weir that no paper publishes, whether it
    holds.
    """

    what: str
    paper: str
    model: str
    met: bool | None
    why: str = ""
    calibrated: bool = False
    held_out: bool = False
    by_input: bool = False
    own: bool | None = None
    cause: str = ""

    def verdict(self):
        """The verdict in words."""
        said = {True: "met", False: "missed", None: "nothing to meet"}[self.met]
        if self.own is not None:
            said = f"weir's own: {'holds' if self.own else 'does not hold'}"
        marks = [
            mark
            for mark, has in (("calibrated", self.calibrated), ("by input", self.by_input))
            if has
        ]
        return f"{said} ({', '.join(marks)})" if marks else said

    def is_evidence(self):
        """Whether the target could have failed."""
        return not self.calibrated and not self.by_input


@dataclasses.dataclass(frozen=True)
class Result:
    """The results of an experiment. The caller of run() fills in ran: profile, number of seeds,
    version and sources; and beside: plain verbs beside the engine, beside.rows().

    x is the x-axis with its unit; axes has those of the units whose x-axis is another.
    """

    x: str
    series: list
    targets: list
    notes: list = dataclasses.field(default_factory=list)
    ran: dict = dataclasses.field(default_factory=dict)
    beside: list = dataclasses.field(default_factory=list)
    axes: dict = dataclasses.field(default_factory=dict)

    def axis(self, unit):
        """The x-axis of the series of a unit."""
        return self.axes.get(unit, self.x)

    def of_another(self, profile, usual):
        """The same result for another NIC than the paper's: without calibration and without
        reasons.
        """
        targets = [
            dataclasses.replace(target, calibrated=False, held_out=False, why="", cause="")
            for target in self.targets
        ]
        note = (
            f"Of {profile}, where the paper's NIC is {usual}: what is calibrated and what is held "
            f"out holds of that one only, "
            "and why a target is missed with another nobody has looked into. The notes above are "
            "of the paper's NIC, too."
        )
        return dataclasses.replace(self, targets=targets, notes=[*self.notes, note])

    def ran_in_words(self):
        return f"Profile {self.ran['profile']}, seeds {self.ran['seeds']}, " \
            f"weir {self.ran['version']}, sources {self.ran['sources']}"

    def as_json(self, name):
        return {
            "figure": name,
            "x": self.x,
            "axes": self.axes,
            "series": [dataclasses.asdict(series) for series in self.series],
            "targets": [dataclasses.asdict(target) for target in self.targets],
            "notes": self.notes,
            "beside": self.beside,
            **self.ran,
        }

    def digest(self, name):
        """Digest of the whole result. The same sources and seeds give the same digest on every
        machine.
        """
        return hashlib.sha256(
            json.dumps(dataclasses.replace(self, ran={}).as_json(name)).encode()
        ).hexdigest()[:16]


def holds(what, paper, model, met, why="", *, note="", **more):
    """An ordering or a shape. model: the outcome in words or numbers; why: a Why, only for an unmet
    target.
    """
    return Target(what, paper, model, bool(met), str(note if met else why or note),
                  cause="" if met else getattr(why, "cause", ""), **more)


def own(what, model, came_out, why="", *, note=""):
    """An expectation of weir that no paper publishes: not a target, neither met nor missed."""
    return Target(
        what, "not published", model, None, str(note if came_out else why or note),
        own=bool(came_out),
    )


def within(what, paper, model, tolerance, unit="", why="", **more):
    """A number to be met within a relative tolerance."""
    return holds(
        what,
        f"{paper:.3g}{unit}",
        f"{model:.3g}{unit}",
        abs(model - paper) <= tolerance * abs(paper),
        why,
        **more,
    )


def _place(module):
    """Sort key: rdmabox-fig10 comes after rdmabox-fig9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", module.NAME)]


def experiments():
    """All experiments by name, in the order of the papers' figures."""
    files = (pathlib.Path(__file__).parent / "figures").glob("[a-z]*.py")
    modules = [importlib.import_module(f"lab.figures.{file.stem}") for file in files]
    return {module.NAME: module for module in sorted(modules, key=_place)}
