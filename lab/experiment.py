# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What an experiment is, and which there are.

One file in figures/ is one experiment. It says in module-level names what it is:

  NAME      as given to `weir lab run`: paper, dash, figure
  TITLE     one line
  VARIED    what is varied, and what stays fixed
  PROFILE   the NIC that it is about, unless the user says otherwise
  run(sim)  asks the simulator (simulate.py), and returns a Result

Everything in a Result is modelled; only what the targets quote was measured, by the papers.
"""

import dataclasses
import hashlib
import importlib
import json
import pathlib
import re

RIPPLE = 0.02


@dataclasses.dataclass(frozen=True)
class Series:
    """One line of a plot, or one column of a table. Those of one unit share a plot."""

    name: str
    unit: str
    x: list
    y: list

    def at(self, x):
        """Its value there, or None."""
        return dict(zip(self.x, self.y)).get(x)

    def of(self, unit):
        """The same in another plot, whose unit says more."""
        return dataclasses.replace(self, unit=unit)

    def peak(self):
        """Where it is highest."""
        return self.x[self.y.index(max(self.y))]

    def highest(self):
        """In words, from where to where it is as high as anywhere, give or take a ripple."""
        top = [x for x, y in zip(self.x, self.y) if y >= (1 - RIPPLE) * max(self.y)]
        return f"{top[0]}" if top[0] == top[-1] else f"{top[0]} to {top[-1]}"


@dataclasses.dataclass(frozen=True)
class Target:
    """What the paper says, beside what the model says.

    met is None where the paper publishes nothing that could be met; where it is False, why says why. calibrated
    marks a figure that the model was fitted to, by_input one that follows from an input of the lab's, or from a
    number that was fitted to another row: neither proves anything. held_out marks a point that was set aside
    before anything was fitted. own: of what is expected of weir, and no paper publishes, whether it came out.
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

    def verdict(self):
        """In words."""
        said = {True: "met", False: "missed", None: "nothing to meet"}[self.met]
        if self.own is not None:
            said = f"weir's own: {'holds' if self.own else 'does not hold'}"
        marks = [mark for mark, has in (("calibrated", self.calibrated), ("by input", self.by_input)) if has]
        return f"{said} ({', '.join(marks)})" if marks else said

    def is_evidence(self):
        """Whether it could have gone wrong."""
        return not self.calibrated and not self.by_input


@dataclasses.dataclass(frozen=True)
class Result:
    """What came out. ran: of which profile, with how many seeds, by which weir and sources; that
    run() leaves to its caller."""

    x: str
    series: list
    targets: list
    notes: list = dataclasses.field(default_factory=list)
    ran: dict = dataclasses.field(default_factory=dict)

    def of_another(self, profile, usual):
        """The same of another NIC than the paper's: nothing was fitted to that, and no why was written of it."""
        targets = [dataclasses.replace(target, calibrated=False, held_out=False, why="") for target in self.targets]
        note = (f"Of {profile}, where the paper's NIC is {usual}: what is calibrated and what is held out holds of that one only, "
                "and why a target is missed with another nobody has looked into. The notes above are of the paper's NIC, too.")
        return dataclasses.replace(self, targets=targets, notes=[*self.notes, note])

    def ran_in_words(self):
        return f"Profile {self.ran['profile']}, seeds {self.ran['seeds']}, " \
            f"weir {self.ran['version']}, sources {self.ran['sources']}"

    def as_json(self, name):
        return {
            "figure": name,
            "x": self.x,
            "series": [dataclasses.asdict(series) for series in self.series],
            "targets": [dataclasses.asdict(target) for target in self.targets],
            "notes": self.notes,
            **self.ran,
        }

    def digest(self, name):
        """Of all of it: the same sources and seeds give the same on every machine."""
        return hashlib.sha256(json.dumps(dataclasses.replace(self, ran={}).as_json(name)).encode()).hexdigest()[:16]


def holds(what, paper, model, met, why="", *, note="", **more):
    """An ordering or a shape: model says in words or numbers what came out. why: only if it is not met."""
    return Target(what, paper, model, bool(met), note if met else why or note, **more)


def own(what, model, came_out, why="", *, note=""):
    """What is expected of weir, and nothing is published of: it is no target, met or missed."""
    return Target(what, "not published", model, None, note if came_out else why or note, own=bool(came_out))


def within(what, paper, model, tolerance, unit="", why="", **more):
    """A number that is to come out, give or take a share of it."""
    return holds(what, f"{paper:.3g}{unit}", f"{model:.3g}{unit}", abs(model - paper) <= tolerance * abs(paper), why,
                 **more)


def _place(module):
    """rdmabox-fig10 comes after rdmabox-fig9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", module.NAME)]


def experiments():
    """All of them by name, in the order of their papers' figures."""
    files = (pathlib.Path(__file__).parent / "figures").glob("[a-z]*.py")
    modules = [importlib.import_module(f"lab.figures.{file.stem}") for file in files]
    return {module.NAME: module for module in sorted(modules, key=_place)}
