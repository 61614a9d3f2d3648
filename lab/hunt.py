# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir lab hunt: hundreds of thousands of seeded runs of the core, with injected failures."""

import collections
import concurrent.futures
import contextlib
import hashlib
import os
import pathlib
import signal
import subprocess
import sys

from lab.children import Children, undisturbed

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "sim" / "hunt"
# Seeds a process; the digest does not depend on the number of CPUs.
CHUNKS = {"core": 1000, "pool": 100}


def program_of(world):
    """The program that runs the seeds of a world."""
    return FOLDER / ("weir-hunt" if world == "core" else f"weir-hunt-{world}")


class Failure(Exception):
    """The hunt cannot be run."""


def _chunk(children, program, first, last):
    """The last line of output of a hunt over some seeds."""
    try:
        status, said, wrong = children.run([program, str(first), str(last)])
    except OSError as error:
        raise Failure(f"cannot run {program}: {error.strerror}") from error
    lines = said.splitlines()
    if status not in (0, 1) or not lines:
        raise Failure(f"{program} {first} {last}: {wrong.strip() or f'exit status {status}'}")
    return lines[-1]


def _progress(first, done, last, chunk):
    said = f"seeds {first}-{done} of {last} kept all promises"
    if sys.stderr.isatty():
        print(f"\r\033[K{said if done < last else ''}", end="", file=sys.stderr, flush=True)
        return
    tenths, before = (
        10 * (upto - first + 1) // (last - first + 1) for upto in (done, done - chunk)
    )
    if before < tenths < 10:
        print(f"weir lab: {said}", file=sys.stderr, flush=True)


def _chunks(children, program, first, last, chunk):
    """Yields the last seed and the last output line of each chunk, in order; later chunks run
    ahead.
    """
    jobs = os.cpu_count() or 1
    begun, at = collections.deque(), first
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        try:
            while begun or at <= last:
                while at <= last and len(begun) < 4 * jobs:
                    end = min(at + chunk - 1, last)
                    with undisturbed():
                        begun.append((end, pool.submit(_chunk, children, program, at, end)))
                    at = end + 1
                end, run = begun.popleft()
                yield end, run.result()
        finally:
            children.end()
            pool.shutdown(cancel_futures=True)


def hunt(first, last, world="core", quiet=False):
    """Return: None and the digest of all runs; or the first failure and None."""
    digest, chunk = hashlib.sha256(), CHUNKS[world]
    with contextlib.closing(
            _chunks(Children(), program_of(world), first, last, chunk)) as chunks:
        for end, said in chunks:
            if said.startswith("broken "):
                return said.removeprefix("broken "), None
            digest.update(said.encode())
            if not quiet:
                _progress(first, end, last, chunk)
    return None, digest.hexdigest()[:16]


def trace(seed, world="core"):
    """Prints all events of a hunt. Return: the exit status."""
    status = subprocess.run([program_of(world), str(seed), str(seed), "trace"],
                            check=False).returncode
    return 0 if status == -signal.SIGPIPE else status  # the reader has closed the pipe
