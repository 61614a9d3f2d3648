# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir lab hunt: seeded runs of the engine over a world that fails, by the hundred thousand."""

import concurrent.futures
import hashlib
import os
import pathlib
import signal
import subprocess
import sys

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "sim" / "hunt" / "weir-hunt"
CHUNK = 1000  # seeds that one process runs; the digest of all does not depend on how many CPUs


class Failure(Exception):
    """It cannot be run."""


def _chunk(program, first, last):
    """What the hunt of some seeds printed last, in words."""
    try:
        done = subprocess.run([program, str(first), str(last)], capture_output=True, text=True,
                              check=False)
    except OSError as error:
        raise Failure(f"cannot run {program}: {error.strerror}") from error
    if done.returncode == -signal.SIGINT:  # so were we, and perhaps have yet to hear of it
        raise KeyboardInterrupt
    lines = done.stdout.splitlines()
    if done.returncode not in (0, 1) or not lines:
        raise Failure(f"{program} {first} {last}: {done.stderr.strip() or 'exit status '}"
                      f"{'' if done.stderr.strip() else done.returncode}")
    return lines[-1]


def _progress(first, done, last):
    if sys.stderr.isatty():
        print(f"\r\033[Kseeds {first}-{done} of {last} kept all promises" if done < last
              else "\r\033[K", end="", file=sys.stderr, flush=True)


def hunt(first, last, program=PROGRAM):
    """Return: None and the digest of all runs, or what was broken first and None."""
    chunks = [(at, min(at + CHUNK - 1, last)) for at in range(first, last + 1, CHUNK)]
    digest = hashlib.sha256()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        try:
            runs = [pool.submit(_chunk, program, *chunk) for chunk in chunks]
            for (_, end), run in zip(chunks, runs):
                said = run.result()
                if said.startswith("broken "):
                    pool.shutdown(cancel_futures=True)
                    return said.removeprefix("broken "), None
                digest.update(said.encode())
                _progress(first, end, last)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return None, digest.hexdigest()[:16]


def trace(seed, program=PROGRAM):
    """Prints all that happens in one hunt. Return: the exit status."""
    return subprocess.run([program, str(seed), str(seed), "trace"], check=False).returncode
