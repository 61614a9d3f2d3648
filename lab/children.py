# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs that several threads run, and that end when the lab does."""

import contextlib
import signal
import subprocess
import threading


@contextlib.contextmanager
def undisturbed():
    """What ends the lab waits until threads have begun: one that was interrupted while it began is
    known to nobody and joined by nobody, and Python, ending, frees what it runs on (a crash)."""
    came = []
    handlers = {number: handler for number in (signal.SIGINT, signal.SIGTERM)
                if callable(handler := signal.getsignal(number))}
    for number in handlers:
        signal.signal(number, lambda *signalled: came.append(signalled))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in came[:1]:
            handlers[number](number, frame)


class Children:
    """Once they are to end, none begins."""

    def __init__(self):
        self._running = set()
        self._lock = threading.Lock()
        self._ends = False

    def _begin(self, arguments, **more):
        with self._lock:
            if self._ends:
                raise KeyboardInterrupt
            child = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
            self._running.add(child)
            return child

    def run(self, arguments, **more):
        """Its exit status, what it said and what it complained of. OSError: it cannot be run."""
        child = self._begin(arguments, **more)
        said, wrong = child.communicate()
        with self._lock:
            self._running.remove(child)
        if child.returncode == -signal.SIGINT:  # so were we, and perhaps have yet to hear of it
            raise KeyboardInterrupt
        return child.returncode, said, wrong

    def end(self):
        """Whoever waits for one hears of its end."""
        with self._lock:
            self._ends = True
            for child in self._running:
                child.kill()
