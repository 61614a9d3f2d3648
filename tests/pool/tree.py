#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Random changes to a tree of files, which must be as a model in memory says.

tree.py FOLDER MODEL SEED
tree.py FOLDER MODEL

MODEL is a file, which the first form writes at its end. The second form compares the folder with
it. The first form removes all names first, prints "open", and runs until SIGTERM. Both end with
counters as a line of JSON. Exit status 3: a byte, a size or a name is wrong; 4: a call failed.
"""
import json
import os
import pickle
import random
import shutil
import signal
import sys
import time

FOLDERS, FILES = ["", "d0/", "d1/", "d2/"], 40
SIZE_MAX = 1 << 18


class Wrong(Exception):
    pass


class Tree:
    def __init__(self, root, files=None, seed=0):
        self.root, self.rng, self.files = root, random.Random(seed), files or {}
        self.counts = {"calls": 0, "gap_max_ms": 0}

    def clear(self):
        for name in os.listdir(self.root):
            path = self.path(name)
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        for folder in FOLDERS[1:]:
            os.mkdir(self.path(folder))

    def path(self, name):
        return os.path.join(self.root, name)

    def any_name(self):
        return f"{self.rng.choice(FOLDERS)}f{self.rng.randrange(FILES // len(FOLDERS))}"

    def any_file(self):
        return self.rng.choice(sorted(self.files)) if self.files else self.write()

    def write(self):
        """Overwrite or extend part of a file, perhaps beyond its end."""
        name = self.any_name()
        old = self.files.get(name, b"")
        at = self.rng.randrange(min(len(old) + 4096, SIZE_MAX - 1))
        data = self.rng.randbytes(self.rng.randrange(1, min(SIZE_MAX - at, 40000) + 1))
        fd = os.open(self.path(name), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.pwrite(fd, data, at) != len(data):
                raise Wrong(f"short write to {name}")
            if self.rng.random() < 0.2:
                os.fsync(fd)
        finally:
            os.close(fd)
        self.files[name] = old[:at].ljust(at, b"\0") + data + old[at + len(data):]
        return name

    def truncate(self):
        name = self.any_file()
        size = self.rng.randrange(SIZE_MAX)
        os.truncate(self.path(name), size)
        self.files[name] = self.files[name][:size].ljust(size, b"\0")

    def rename(self):
        source, target = self.any_file(), self.any_name()
        os.rename(self.path(source), self.path(target))
        self.files[target] = self.files[source]
        if target != source:
            del self.files[source]

    def unlink(self):
        name = self.any_file()
        os.unlink(self.path(name))
        del self.files[name]

    def check_file(self, name):
        with open(self.path(name), "rb") as file:
            if self.rng.random() < 0.5:  # not from the kernel's cache
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            found = file.read()
        wanted = self.files[name]
        if found == wanted:
            return
        if len(found) != len(wanted):
            raise Wrong(f"{name} has {len(found)} bytes, not {len(wanted)}")
        first = next(i for i in range(len(found)) if found[i] != wanted[i])
        raise Wrong(f"byte {first} of {name} is wrong")

    def read(self):
        self.check_file(self.any_file())

    def check_names(self, folder):
        found = {folder + name for name in os.listdir(self.path(folder)) if name[0] == "f"}
        wanted = {name for name in self.files if name.startswith(folder) and
                  "/" not in name[len(folder):]}
        if found != wanted:
            raise Wrong(f"names in {folder}: {sorted(found ^ wanted)}")

    def list(self):
        self.check_names(self.rng.choice(FOLDERS))

    def check_all(self):
        for folder in FOLDERS:
            self.check_names(folder)
        for name in self.files:
            self.check_file(name)

    def step(self):
        begin = time.monotonic()
        self.rng.choice([self.write] * 4 + [self.read] * 3 + [
            self.truncate, self.rename, self.unlink, self.list])()
        self.counts["calls"] += 1
        gap = round(1000 * (time.monotonic() - begin))
        self.counts["gap_max_ms"] = max(self.counts["gap_max_ms"], gap)


def change(root, model, seed):
    stops = []
    signal.signal(signal.SIGTERM, lambda *_: stops.append(True))
    tree = Tree(root, seed=seed)
    tree.clear()
    print("open", flush=True)
    while not stops:
        tree.step()
    tree.check_all()
    with open(model, "wb") as file:
        pickle.dump(tree.files, file)
    return tree.counts


def compare(root, model):
    with open(model, "rb") as file:
        tree = Tree(root, pickle.load(file))
    tree.check_all()
    return tree.counts


def main():
    root, model, *seed = sys.argv[1:]
    try:
        print(json.dumps(change(root, model, int(seed[0])) if seed else compare(root, model)))
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 3
    except OSError as error:
        print(error, file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
