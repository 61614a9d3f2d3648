# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Copies of the tree in which one bug at a time is planted, for tests of the tests."""

import concurrent.futures
import contextlib
import copy
import os
import pathlib
import queue
import resource
import shutil
import subprocess
import sys

# A checker hangs if it takes longer than LONG_S of wall time.
LONG_S = 900


def cpu_seconds():
    """CPU seconds used by all finished children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_within(limit_s, *command, env=None):
    """Run a command with a limit on CPU time, not on wall time, because the machine may be busy."""
    return subprocess.run(["sh", "-c", 'ulimit -t "$0" && exec "$@"', str(limit_s), *command],
                          capture_output=True, text=True, errors="replace", timeout=LONG_S, env=env)


class Copy:
    """A copy of parts of the tree, with one planted bug at a time.

    Objects of the clean sources are kept. A file with a planted bug is compiled beside its clean
    object, and linked instead.
    """

    def __init__(self, source, cc, root, parts, options=()):
        self.root = pathlib.Path(root)
        self.cc = [*cc, "-std=gnu11", "-O1", "-w", "-fPIC", "-D_GNU_SOURCE", f"-I{root}", *options]
        for part in parts:
            shutil.copytree(pathlib.Path(source) / part, self.root / part)
        self.objects, self.needs, self.planted = {}, {}, {}

    def build(self, sources):
        """Compile sources that are not compiled yet."""
        fresh = sorted(set(sources) - set(self.objects))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda path: self.compile(path, path.with_suffix(".o"), "-MD"), fresh))
        for path in fresh:
            self.objects[path] = path.with_suffix(".o")
            self.needs[path] = path.with_suffix(".d").read_text().split()

    def clone(self, root):
        """Return another copy with the same objects, in the new folder @root."""
        other = copy.copy(self)
        other.root = pathlib.Path(root)
        shutil.copytree(self.root, other.root)
        other.cc = [option.replace(str(self.root), str(other.root)) for option in self.cc]
        other.objects = {other.moved(self, path): other.moved(self, object_)
                         for path, object_ in self.objects.items()}
        other.needs = {other.moved(self, path): [need.replace(str(self.root), str(other.root))
                                                 for need in needs]
                       for path, needs in self.needs.items()}
        other.planted = {}
        return other

    def moved(self, other, path):
        """The place here of a path of another copy."""
        return self.root / path.relative_to(other.root)

    def compile(self, path, to, *options):
        subprocess.run([*self.cc, *options, "-c", path, "-o", to], check=True)

    def object_of(self, path):
        """Return the object to link now. The first use of a planted file compiles the file."""
        if path in self.planted and not self.planted[path]:
            self.planted[path] = path.with_suffix(".planted.o")
            self.compile(path, self.planted[path])
        return self.planted.get(path) or self.objects[path]

    def link(self, sources, name, *options):
        program = self.root / name
        subprocess.run(
            [*self.cc, *map(self.object_of, sources), *options, "-o", program], check=True
        )
        return program

    @contextlib.contextmanager
    def bug(self, name, line, planted):
        """Plant a bug in the file @name. The copy is clean again afterwards."""
        path = self.root / name
        text = path.read_text()
        path.write_text(text.replace(line, planted))
        self.planted = {source: None for source, needs in self.needs.items() if str(path) in needs}
        try:
            yield
        finally:
            path.write_text(text)
            self.planted = {}


def check_patterns(root, bugs):
    """End unless the line of each bug is there exactly once."""
    for _, name, line, _ in bugs:
        count = pathlib.Path(root).joinpath(name).read_text().count(line)
        if count != 1:
            sys.exit(f"{name}: '{line}' is there {count} times: bring this list up to date")


def search(copies, bugs, checker_that_fails):
    """Return the bugs not found. Each copy takes the next bug when free.

    @checker_that_fails: takes a copy and the file with the bug; returns the checker's name, or None
    """
    free = queue.SimpleQueue()
    for copy in copies:
        free.put(copy)

    def seek(bug):
        sentence, *planted = bug
        copy = free.get()
        try:
            with copy.bug(*planted):
                by = checker_that_fails(copy, planted[0])
        finally:
            free.put(copy)
        print(f"{sentence}: {f'found by the {by}' if by else 'MISSED'}", flush=True)
        return by

    with concurrent.futures.ThreadPoolExecutor(len(copies)) as pool:
        return [bug for bug, found in zip(bugs, pool.map(seek, bugs)) if not found]
