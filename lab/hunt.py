# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir lab hunt: seeded runs of the engine over a world that fails, by the hundred thousand."""

import concurrent.futures
import hashlib
import os
import pathlib
import signal
import subprocess
import sys
import threading

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "sim" / "hunt" / "weir-hunt"
CHUNK = 1000  # seeds that one process runs; the digest of all does not depend on how many CPUs


class Failure(Exception):
    """It cannot be run."""


class _Runs:
    """Processes that hunt, of several threads; once they are to end, none begins."""

    def __init__(self, program):
        self._program = program
        self._running = set()
        self._lock = threading.Lock()
        self._ends = False

    def _begin(self, first, last):
        with self._lock:
            if self._ends:
                raise KeyboardInterrupt
            try:
                child = subprocess.Popen([self._program, str(first), str(last)], stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True)
            except OSError as error:
                raise Failure(f"cannot run {self._program}: {error.strerror}") from error
            self._running.add(child)
            return child

    def end(self):
        with self._lock:
            self._ends = True
            for child in self._running:
                child.kill()

    def chunk(self, first, last):
        """What the hunt of some seeds printed last, in words."""
        child = self._begin(first, last)
        said, wrong = child.communicate()
        with self._lock:
            self._running.remove(child)
        if child.returncode == -signal.SIGINT:  # so were we, and perhaps have yet to hear of it
            raise KeyboardInterrupt
        lines = said.splitlines()
        if child.returncode not in (0, 1) or not lines:
            raise Failure(f"{self._program} {first} {last}: {wrong.strip() or f'exit status {child.returncode}'}")
        return lines[-1]


def _progress(first, done, last):
    if sys.stderr.isatty():
        print(f"\r\033[Kseeds {first}-{done} of {last} kept all promises" if done < last
              else "\r\033[K", end="", file=sys.stderr, flush=True)


def hunt(first, last, program=PROGRAM):
    """Return: None and the digest of all runs, or what was broken first and None."""
    chunks = [(at, min(at + CHUNK - 1, last)) for at in range(first, last + 1, CHUNK)]
    digest, hunts = hashlib.sha256(), _Runs(program)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        try:
            runs = [pool.submit(hunts.chunk, *chunk) for chunk in chunks]
            for (_, end), run in zip(chunks, runs):
                said = run.result()
                if said.startswith("broken "):
                    hunts.end()
                    pool.shutdown(cancel_futures=True)
                    return said.removeprefix("broken "), None
                digest.update(said.encode())
                _progress(first, end, last)
        except BaseException:
            hunts.end()
            pool.shutdown(cancel_futures=True)
            raise
    return None, digest.hexdigest()[:16]


def trace(seed, program=PROGRAM):
    """Prints all that happens in one hunt. Return: the exit status."""
    return subprocess.run([program, str(seed), str(seed), "trace"], check=False).returncode
