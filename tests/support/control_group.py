# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A control group that limits memory."""
import os
import pathlib
import time
import unittest


class ControlGroup:
    """A new group, until @undo. Without the right to make groups, the test is skipped."""

    def __init__(self, undo, limit):
        for root, file in (("/sys/fs/cgroup", "memory.max"),
                           ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
            self.path = pathlib.Path(root, f"weir-test-{os.getpid()}")
            self.file = self.path / file
            if pathlib.Path(root, "cgroup.procs").exists():
                try:
                    self.path.mkdir()
                    undo(self.remove)
                    self.limit(limit)
                except OSError:
                    continue
                return
        raise unittest.SkipTest("no control group can be made here")

    def limit(self, limit):
        self.file.write_text(str(limit), encoding="ascii")

    def take(self, pid):
        """Memory used so far may stay with the group that the process leaves."""
        (self.path / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def start(self):
        """The start of a command in the group."""
        return ("sh", "-c", f'echo $$ > {self.path}/cgroup.procs && exec "$@"', "-")

    def remove(self):
        """Killed processes may not have ended yet."""
        for _ in range(100):
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.1)
