# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Builds Go programs one after another.

Packages that several programs share, such as Go's own library and gRPC, are compiled once. Builds
at the same time would each compile them.
"""
import contextlib
import fcntl
import os
import subprocess


@contextlib.contextmanager
def alone(go):
    """No other test builds by the command @go meanwhile."""
    cache = subprocess.run([go, "env", "GOCACHE"], capture_output=True, text=True,
                           check=True).stdout.strip()
    os.makedirs(cache, exist_ok=True)
    with open(os.path.join(cache, "weir-tests.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
