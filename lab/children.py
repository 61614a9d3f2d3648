# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Child processes of several threads; all of them end with the lab."""

import contextlib
import signal
import subprocess
import threading


@contextlib.contextmanager
def undisturbed():
    """Delays SIGINT and SIGTERM until the new threads have started. A thread interrupted during its
    start is neither registered nor joined, and Python would free its memory on exit (a crash).
    """
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
    """Running child processes. After end(), no child starts."""

    def __init__(self):
        self._running = set()
        self._lock = threading.Lock()
        self._ends = False

    def _begin(self, arguments, **more):
        with self._lock:
            if self._ends:
                raise KeyboardInterrupt
            child = subprocess.Popen(
                arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
            )
            self._running.add(child)
            return child

    def run(self, arguments, **more):
        """Exit status, standard output and standard error. Raises OSError if the program cannot be
        run.
        """
        child = self._begin(arguments, **more)
        said, wrong = child.communicate()
        with self._lock:
            self._running.remove(child)
        # the lab received SIGINT, too, perhaps not yet handled
        if child.returncode == -signal.SIGINT:
            raise KeyboardInterrupt
        return child.returncode, said, wrong

    def end(self):
        """Kills all children; run() returns in the threads that wait for them."""
        with self._lock:
            self._ends = True
            for child in self._running:
                child.kill()
