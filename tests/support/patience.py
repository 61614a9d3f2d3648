# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Waits for conditions that take a process to look at.

A weir command starts in 20 to 50 ms of CPU time, and under a sanitizer in several times as much.
A test that runs one again and again for the seconds of a lease takes a CPU from the donors that it
waits for, and from other tests.
"""
import os
import signal
import time

REST_MAX_S = 1
STOP_MAX_S = 60


def look(is_so, rest_s=0.02):
    """Returns is_so(), and if false, after a rest: @rest_s, or twice as long as the look took."""
    began = time.monotonic()
    found = is_so()
    if not found:
        took_s = time.monotonic() - began
        time.sleep(max(rest_s, min(REST_MAX_S, 2 * took_s)))
    return found


def stop_process(process):
    """Stops every thread of a process before it returns."""
    tasks = f"/proc/{process.pid}/task"
    deadline = time.monotonic() + STOP_MAX_S

    def is_stopped(task):
        with open(f"{tasks}/{task}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "T"
    process.send_signal(signal.SIGSTOP)
    while not look(lambda: all(is_stopped(task) for task in os.listdir(tasks))):
        assert time.monotonic() < deadline
