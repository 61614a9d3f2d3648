# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Threads that take turns with one exchange, and wait for it without keeping it from each other.

A wait is attempts, each in its turn, and sleep between them, out of turn. One of those who sleep watches
the exchange's descriptor, the others wait for it to wake them. Whoever finds in its turn that something
has moved wakes all: the descriptor may not tell of it any more.
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
    """Of an RLock, if this thread has it."""
    try:
        lock.release()
    except RuntimeError:
        pass


class FairLock:
    """Given in the order in which it is asked for: who takes it again and again keeps it from nobody.

    An interrupt leaves it to nobody: it comes between two steps of Python, also before the first of a function.
    It is taken once: a signal's handler, or a callback, would find what it guards half changed.
    """

    def __init__(self) -> None:
        self._next, self._lock = threading.RLock(), threading.RLock()

    def __enter__(self) -> None:
        if self._lock._is_owned():  # type: ignore[attr-defined]
            raise RuntimeError("this thread is in the middle of a call on it, which is to end first")
        try:
            with self._next:  # who has had it comes behind who waits for it
                self._lock.acquire()
        except BaseException:
            release_own(self._lock)
            raise

    @property
    def __exit__(self) -> Callable[..., None]:
        return self._lock.__exit__  # no function of Python: an interrupt would end it before it begins


class Turns(FairLock):
    """Of one exchange: `with turns:`."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 0  # threads; changed in turn
        self.awake = threading.Event()  # set, and replaced, when those who wait are to try again
        self._watcher: object = None  # who watches; None: nobody does
        self._is_rung = False
        self._bell = (-1, -1)  # ends the sleep of who watches

    def _rouse(self) -> None:
        self.awake.set()
        self.awake = threading.Event()

    def wake(self) -> None:
        """In turn: all who wait try again."""
        self._rouse()
        if self._watcher is not None and not self._is_rung:
            self._is_rung = True
            os.write(self._bell[1], b"!")

    def is_to_watch(self, who: object) -> bool:
        """In turn: whether who asks is the one that watches: then he owes a leave(), whatever befalls him."""
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
        """Out of turn: sleeps. Return: whether it was woken."""
        poll = select.poll()
        for each in (descriptor, self._bell[0]):
            poll.register(each, select.POLLIN)
        return bool(poll.poll(seconds * 1e3))

    def leave(self, who: object) -> None:
        """Out of turn: who watched does so no longer. Once more does nothing more, wherever the first was interrupted."""
        if self._watcher is not who:
            return
        with self:
            self._rouse()  # another one is to watch now
            if self._is_rung:
                try:
                    os.read(self._bell[0], 1)
                except BlockingIOError:
                    pass
                self._is_rung = False
            self._watcher = None
