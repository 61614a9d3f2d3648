# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Loads libweir; its errors and waits in Python."""
from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import cffi

from weir._cdef import CDEF

ffi = cffi.FFI()
ffi.cdef(CDEF)

# Signals do not interrupt a wait in C, so Python checks for signals between slices of a wait.
SLICE_S = 0.1
NOT_YET = (-errno.EAGAIN, -errno.ETIMEDOUT)


def _load() -> Any:
    name = os.environ.get("WEIR_LIBRARY", "libweir.so.0")
    try:
        return ffi.dlopen(name)
    except OSError as error:
        raise ImportError(
            f"cannot load {name}: install libweir, or say in WEIR_LIBRARY where it is: {error}"
        ) from error


lib = _load()
_ended = threading.local()  # exception that ended this thread's wait


def _keep(_kind: object, error: BaseException, _trace: object) -> None:
    _ended.by = error


def _hear_of_signals(closing: Any) -> bool:
    """Callback of calls that wait for peers: lets Python run signal handlers.

    Return: False ends the call: its listener, known from the handle, is closing.
    """
    return not (closing and ffi.from_handle(closing).is_set())


goes_on: Any = ffi.callback("bool(void *)", _hear_of_signals, error=False, onerror=_keep)


def failure(status: int, text: str = "") -> OSError:
    """The exception for a negative errno, e.g. ConnectionResetError for -ECONNRESET."""
    return OSError(-status, text or ffi.string(lib.weir_strerror(status)).decode())


def check(status: int, error: Any = None) -> int:
    """Raises for a negative status; error is the struct weir_error with the reason."""
    if status < 0:
        raise failure(status, ffi.string(error.text).decode(errors="replace") if error else "")
    return status


def check_met(status: int, error: Any) -> None:
    """check() for a call with the callback goes_on(): raises the callback's exception, if any."""
    if status == -errno.ECANCELED and getattr(_ended, "by", None):
        by, _ended.by = _ended.by, None
        raise by
    check(status, error)


def too_late(timeout: float | None) -> TimeoutError:
    return TimeoutError(errno.ETIMEDOUT, f"not within {timeout:g} s" if timeout else "not yet")


def wait(timeout: float | None, call: Callable[[int], Any]) -> int:
    """Repeats call(timeout_ns) for a result; TimeoutError after timeout seconds (None: never)."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = SLICE_S if deadline is None else max(0.0, deadline - time.monotonic())
        status: int = call(int(min(left, SLICE_S) * 1e9))
        if status not in NOT_YET:
            return status
        if left < SLICE_S:
            raise too_late(timeout)
