# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""File systems with a single file, "data", as context managers, and fio on it. Used by bench/run
and bench/fs.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts"))
import stage as staging  # noqa: E402
from stage import Failed, Stage  # noqa: E402

MIB = 1 << 20
START_SECONDS = 30


def fio(path, options, size, seconds):
    """MiB/s of one job on a fully written file."""
    done = subprocess.run(
        [
            "fio",
            "--name=job",
            f"--filename={path}",
            f"--size={size}",
            "--direct=1",
            "--time_based",
            f"--runtime={round(1000 * seconds)}ms",
            "--output-format=json",
            "--fallocate=none",
            *options,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds + 60,
    )
    if done.returncode:
        raise Failed(f"fio: {done.stderr.strip() or done.stdout.strip()}")
    job = json.loads(done.stdout)["jobs"][0]
    return (job["read"]["bw_bytes"] + job["write"]["bw_bytes"]) / MIB


def write_in_full(path, size):
    block = os.urandom(MIB)
    with open(path, "wb") as file:
        for _ in range(size // MIB):
            file.write(block)


def spread(rates):
    """Median, least and most."""
    return f"{statistics.median(rates):6.0f} ({min(rates):.0f}..{max(rates):.0f})"


class Program:
    """A program that mounts a file system while running; its last argument is the mount point."""

    def __init__(self, *command):
        self.command = command

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="weir-")
        self.said = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*self.command, self.dir], stdin=subprocess.DEVNULL,
                                        stdout=self.said, stderr=self.said,
                                        start_new_session=True,
                                        preexec_fn=staging.die_with_parent)
        deadline = time.monotonic() + START_SECONDS
        while not os.path.ismount(self.dir):
            if self.process.poll() is not None or time.monotonic() > deadline:
                ended = self.process.poll() is not None
                self.__exit__()
                self.said.seek(0)
                text = self.said.read().decode(errors="replace").strip()
                raise Failed(f"{'it ended' if ended else f'not mounted after {START_SECONDS} s'}"
                             f"{': ' + text if text else ''}")
            time.sleep(0.05)
        return os.path.join(self.dir, "data")

    def __exit__(self, *_exception):
        if os.path.ismount(self.dir):
            subprocess.run(["fusermount3", "-u", "-z", self.dir], timeout=60)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.rmdir(self.dir)


class Mount(Stage):
    """weir's file system, with a fully written file of the given size."""

    def __init__(self, weir, size):
        super().__init__(weir, 2 * size)
        self.size = size

    def __enter__(self):
        super().__enter__()
        try:
            self.mount()
            path = os.path.join(self.mountpoint, "data")
            write_in_full(path, self.size)
        except BaseException:
            self.__exit__()
            raise
        return path
