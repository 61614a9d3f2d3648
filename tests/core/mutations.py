#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Change the core and the wire's code one operator or statement at a time: a test must notice.

mutations.py [--only TEXT]... [--state FILE] ROOT CC...
mutations.py --check ROOT

A mutation that no test notices survives. survivors.txt lists the known ones, each with a reason:
the program means the same, or nothing depends on the difference. The run ends with status 1 if
another one survives. It takes hours of CPU time, at the lowest priority. The results so far are in
FILE; a run that was stopped goes on from there, and a file that has changed begins anew.

--only TEXT limits the run to files whose path contains TEXT. --check only compares survivors.txt
with the sources.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import queue
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "support"))
import canary  # noqa: E402
import planted  # noqa: E402

SURVIVORS = HERE / "survivors.txt"
SEEDS = 1000  # of the hunt, for each mutation that the unit tests do not notice
FOLDERS = ("core/*/*.[ch]", "wire/*.[ch]")
SWAPS = [(" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "),
         (" != ", " == "), (" && ", " || "), (" || ", " && "), (" + ", " - "), (" - ", " + "),
         (" += ", " -= "), (" -= ", " += "), ("return true;", "return false;"),
         ("return false;", "return true;"), (" = true;", " = false;"), (" = false;", " = true;"),
         (" = 0;", " = 1;"), (" = 1;", " = 0;")]
# A statement of its own line: an assignment, a call or a step, but no declaration.
STATEMENT = re.compile(
    r"\t+(?!return|goto|else|if|for|while|do|switch|case)[*(]*[A-Za-z_][\w\->.\[\]*&()]*"
    r"( [-+|&^]?= .*|( <<| >>)= .*|\+\+|--|\(.*\));$")
ENDS = (";", "{", "}", ":", "else", "do", "")


def blanked(text):
    """The text with comments, strings and preprocessor lines as spaces: the same places."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    text = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", blank, text,
                  flags=re.DOTALL)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.MULTILINE)


def _lines(code):
    at = 0
    for line in code.splitlines(keepends=True):
        yield at, line.rstrip("\n")
        at += len(line)


def mutations(text):
    """All mutations of a file: pairs of the place and (before, after)."""
    code = blanked(text)
    found = [(match.start(), (before, after)) for before, after in SWAPS
             for match in re.finditer(re.escape(before), code)]
    last = ""
    for at, line in _lines(code):
        code_of = line.rstrip()
        whole = last.rstrip().endswith(ENDS) if last.strip() else True
        if whole and STATEMENT.fullmatch(code_of) and code_of.count("(") == code_of.count(")"):
            start = at + len(code_of) - len(code_of.lstrip())
            found.append((start, (text[start:at + len(code_of)], ";")))
        if code_of.strip():
            last = code_of
    return sorted(found)


def changed(text, at, change):
    before, after = change
    return text[:at] + after + text[at + len(before):]


def named(name, text, at, change):
    """A mutation as survivors.txt has it: file, line, and the line after the change."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    before, after = change
    line = text[start:end]
    return f"{name}: {line.strip()} -> " \
        f"{(line[:at - start] + after + line[at - start + len(before):]).strip()}"


def survivors():
    """The known survivors, each with its reason."""
    known, reason = {}, ""
    for line in SURVIVORS.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            known[line] = reason
    return known


def sources(root, only=()):
    return [path.relative_to(root).as_posix() for pattern in FOLDERS
            for path in sorted(root.glob(pattern))
            if not only or any(text in path.as_posix() for text in only)]


def check(root):
    """Return the survivors of survivors.txt that the sources do not have any more."""
    there = set()
    for name in {line.split(": ")[0] for line in survivors()}:
        text = (root / name).read_text() if (root / name).is_file() else ""
        there |= {named(name, text, *one) for one in mutations(text)}
    return [line for line in survivors() if line not in there]


class Copy(canary.Copy):
    """A copy of the core in which a mutation is made. Its tests, by the room of the file."""

    def __init__(self, source, cc, root):
        super().__init__(source, cc, root)
        self.units = {}
        for test in sorted(self.root.glob("tests/core/*/*_test.c")):
            self.units.setdefault(test.parent.name, []).append(test.relative_to(self.root))

    def tests_of(self, name):
        """Unit tests, those that are most likely to notice first."""
        stem = pathlib.Path(name).stem
        room = [str(test) for test in self.units.get(pathlib.Path(name).parent.name, [])]
        room.sort(key=lambda test: pathlib.Path(test).stem.removesuffix("_test") != stem)
        return list(dict.fromkeys([*canary.UNITS.get(name, ()), *room]))

    def notices(self, limits_s, name):
        """The checker that notices the mutation of the file @name, or None."""
        try:
            for unit in self.tests_of(name):
                if limits_s.get(unit) and self.unit_fails(limits_s[unit], unit):
                    return unit
            if name not in canary.ONLY_BY_UNIT and self.hunts(limits_s[canary.HUNT]):
                return canary.HUNT
        except subprocess.CalledProcessError:
            return "compiler"
        except subprocess.TimeoutExpired:
            return "patience"
        return None

    def unit_fails(self, limit_s, unit):
        self.build([self.root / unit])
        return super().unit_fails(limit_s, unit)


def clean_limits(copy, names):
    """CPU seconds for each checker. A unit test that does not run by itself is left out."""
    limits_s = {}
    for checker in [canary.HUNT, *dict.fromkeys(t for name in names for t in copy.tests_of(name))]:
        began_s = planted.cpu_seconds()
        try:
            failed = copy.hunts(planted.LONG_S) if checker == canary.HUNT else \
                copy.unit_fails(planted.LONG_S, checker)
        except subprocess.CalledProcessError:
            failed = True
        if failed and checker == canary.HUNT:
            sys.exit("the hunt finds something with nothing changed")
        limits_s[checker] = 0 if failed else \
            canary.SPARE_S + int(canary.HANG * (planted.cpu_seconds() - began_s))
    return limits_s


class State:
    """Results so far: a line of JSON each, by the digest of the file and the mutation."""

    def __init__(self, path):
        self.path = path
        self.known = {}
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                one = json.loads(line)
                self.known[tuple(one["key"])] = one["by"]

    def add(self, key, by):
        self.known[key] = by
        with open(self.path, "a", encoding="utf-8") as file:
            print(json.dumps({"key": key, "by": by}), file=file)


def jobs_of(root, names):
    for name in names:
        text = (root / name).read_text()
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        for at, change in mutations(text):
            yield name, text, at, change, (name, digest, at, change[1])


def run(root, cc, only, state):
    jobs = list(jobs_of(root, sources(root, only)))
    todo = [job for job in jobs if job[-1] not in state.known]
    print(f"{len(jobs)} mutations, {len(todo)} to try", flush=True)
    canary.SEEDS = SEEDS
    with tempfile.TemporaryDirectory() as folder:
        count = len(os.sched_getaffinity(0))
        copies = [Copy(root, cc, f"{folder}/{number}") for number in range(count)] if todo else []
        limits_s = clean_limits(copies[0], {job[0] for job in todo}) if todo else {}
        free = queue.SimpleQueue()
        for copy in copies:
            free.put(copy)

        def attempt(job):
            name, text, at, change, _ = job
            copy = free.get()
            try:
                with copy.bug(name, text, changed(text, at, change)):
                    return copy.notices(limits_s, name)
            finally:
                free.put(copy)

        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            for done, (job, by) in enumerate(zip(todo, pool.map(attempt, todo)), 1):
                state.add(job[-1], by)
                if not by:
                    print(f"{done}/{len(todo)} survives: {named(*job[:4])}", flush=True)
                elif done % 50 == 0:
                    print(f"{done}/{len(todo)}", flush=True)
    return [named(*job[:4]) for job in jobs if not state.known[job[-1]]]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--state", type=pathlib.Path, default=pathlib.Path("mutations.jsonl"))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("cc", nargs="*")
    options = parser.parse_args()
    root = options.root.resolve()
    stale = check(root)
    for line in stale:
        print(f"{SURVIVORS.name}: the sources have no such line any more: {line}")
    if options.check or stale:
        return 1 if stale else 0
    os.nice(19)
    known = survivors()
    unknown = [line for line in run(root, options.cc, options.only, State(options.state))
               if line not in known]
    for line in unknown:
        print(f"survives, and survivors.txt does not say why: {line}")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
