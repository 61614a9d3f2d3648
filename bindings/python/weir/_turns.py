# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Lets several threads wait on one exchange while others use it.

A waiting thread alternates attempts with sleep. The thread holds its turn during an attempt
only. While asleep, one thread watches the exchange's descriptor; the others wait for the watcher
to wake them. A thread that finds progress during its turn wakes all waiters, because the
descriptor may not report the same progress again.
"""
from __future__ import annotations

import os
import select
import threading
import weakref
from collections.abc import Callable
from typing import Any


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def release_own(lock: Any) -> None:
    """Releases an RLock held by this thread, if any."""
    try:
        lock.release()
    except RuntimeError:
        pass


class FairLock:
    """A lock granted in the order of requests, so that no thread starves.

    Python may raise KeyboardInterrupt between any two steps, even before the first step of a
    function; the lock is then released. The lock is not recursive: a signal handler or callback
    would find the protected state half changed.
    """

    def __init__(self) -> None:
        self._next, self._lock = threading.RLock(), threading.RLock()

    def __enter__(self) -> None:
        if self._lock._is_owned():  # type: ignore[attr-defined]
            raise RuntimeError(
                "this thread is in the middle of a call on it, which is to end first"
            )
        try:
            with self._next:  # a thread that had the lock queues behind the waiters
                self._lock.acquire()
        except BaseException:
            release_own(self._lock)
            raise

    @property
    def __exit__(self) -> Callable[..., None]:
        # not a Python function, which an interrupt could end before its first step
        return self._lock.__exit__


class Turns(FairLock):
    """The lock of one exchange: `with turns:`."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 0  # number of waiting threads; changed in turn
        self.awake = threading.Event()  # set and replaced to make all waiters try again
        self._watcher: object = None  # token of the watching thread, or None
        self._is_rung = False
        self._bell = (-1, -1)  # pipe that ends the watcher's sleep

    def _rouse(self) -> None:
        self.awake.set()
        self.awake = threading.Event()

    def wake(self) -> None:
        """In turn: makes all waiters try again."""
        self._rouse()
        if self._watcher is not None and not self._is_rung:
            self._is_rung = True
            os.write(self._bell[1], b"!")

    def is_to_watch(self, who: object) -> bool:
        """In turn: tries to make the caller the watcher. True: the caller owes a leave(), even
        after errors."""
        if self._watcher is not None:
            return False
        if self._bell[0] < 0:
            bell = os.pipe()
            weakref.finalize(self, _close, *bell).atexit = False
            os.set_blocking(bell[0], False)
            self._bell = bell
        self._watcher = who
        return True

    def watch(self, descriptor: int, seconds: float) -> bool:
        """Out of turn: sleeps. Return: True after a wake-up."""
        poll = select.poll()
        for each in (descriptor, self._bell[0]):
            poll.register(each, select.POLLIN)
        return bool(poll.poll(seconds * 1e3))

    def leave(self, who: object) -> None:
        """Out of turn: ends watching. Safe to repeat after an interrupt at any point."""
        if self._watcher is not who:
            return
        with self:
            self._rouse()  # another thread must watch now
            if self._is_rung:
                try:
                    os.read(self._bell[0], 1)
                except BlockingIOError:
                    pass
                self._is_rung = False
            self._watcher = None
