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
import importlib
import pathlib
import re


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


@dataclasses.dataclass(frozen=True)
class Target:
    """What the paper says, beside what the model says.

    met is None where the paper publishes nothing that could be met; where it is False, why says why. calibrated
    marks a figure that the model was fitted to: then it proves nothing. held_out marks a point that was set aside
    before anything was fitted.
    """

    what: str
    paper: str
    model: str
    met: bool | None
    why: str = ""
    calibrated: bool = False
    held_out: bool = False


@dataclasses.dataclass(frozen=True)
class Result:
    x: str
    series: list
    targets: list
    notes: list = dataclasses.field(default_factory=list)

    def as_json(self, name):
        return {
            "figure": name,
            "x": self.x,
            "series": [dataclasses.asdict(series) for series in self.series],
            "targets": [dataclasses.asdict(target) for target in self.targets],
            "notes": self.notes,
        }


def holds(what, paper, model, met, why="", *, note="", calibrated=False, held_out=False):
    """An ordering or a shape: model says in words or numbers what came out. why: only if it is not met."""
    return Target(what, paper, model, bool(met), note if met else why or note, calibrated, held_out)


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
