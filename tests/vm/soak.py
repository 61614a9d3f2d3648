#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs that swap to /dev/weir0, with two replicas, while donors die, stop, demand memory back
and return: no byte is wrong, nothing hangs, and at the end everything can be removed.

  soak.py WEIR MODULES [MINUTES]    run in the guest by 'vm soak'; with 0 or without MINUTES, as in
                                    'vm check': each fault once, with little memory
"""
import array
import mmap
import os
import random
import signal
import struct
import sys
import time
import traceback

import block
from block import DONOR, SECOND, THIRD, MIB, must, put, stat

PAGE = mmap.PAGESIZE
ADDRESSES = (DONOR, SECOND, THIRD)
GROUP = "/sys/fs/cgroup/soak"
WORKERS = 2
# Limit of every wait on a very busy machine; no wait should ever take so long.
LONG = 4 * block.LONG


def content(worker, page, version):
    return struct.pack("<4I", worker, page, version, ~version & 0xFFFFFFFF) * (PAGE // 16)


def work(worker, pages, progress):
    """Reads and rewrites whole pages repeatedly; at the end reads all. Spends half the time on an
    eighth of the memory, so that some pages are used more than others."""
    rng = random.Random(worker)
    kind = mmap.MAP_PRIVATE if worker % 2 else mmap.MAP_SHARED
    memory = mmap.mmap(-1, pages * PAGE, flags=kind | mmap.MAP_ANONYMOUS)
    versions = array.array("I", bytes(4 * pages))

    def check(page):
        found = memory[page * PAGE:(page + 1) * PAGE]
        wanted = content(worker, page, versions[page])
        assert found == wanted, f"page {page}: {found[:16].hex()}, not {wanted[:16].hex()}"
        progress[worker] += 1

    for page in range(pages):
        memory[page * PAGE:(page + 1) * PAGE] = content(worker, page, 0)
    while not progress[0]:
        page = rng.randrange(pages // 8 if rng.random() < 0.5 else pages)
        check(page)
        versions[page] += 1
        memory[page * PAGE:(page + 1) * PAGE] = content(worker, page, versions[page])
    for page in range(pages):
        check(page)


class Worker:
    """A process in the group that runs work(); progress[number] counts its checked pages, and
    progress[0] tells it to end."""

    def __init__(self, number, pages, progress):
        self.number, self.progress = number, progress
        self.seen, self.since = 0, time.monotonic()
        self.pid = os.fork()
        if self.pid:
            return
        status = 1
        try:
            put(f"{GROUP}/cgroup.procs", str(os.getpid()))
            work(number, pages, progress)
            status = 0
        except BaseException:  # the child must not continue with the parent's code
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def look(self):
        """Raises AssertionError if the worker failed or makes no progress. Returns whether it has
        ended."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        assert not status, f"worker {self.number} ended with {status}"
        if self.progress[self.number] != self.seen:
            self.seen, self.since = self.progress[self.number], time.monotonic()
        waited = time.monotonic() - self.since
        assert pid or waited < LONG, f"worker {self.number} has stood still for {waited:.0f} s"
        return bool(pid)


class Soak:
    def __init__(self, mib):
        """@mib: memory of each worker; together they may keep half of it in RAM."""
        self.random = random.Random(7)
        self.memory = f"{4 * WORKERS * mib}M"
        self.donors = [block.Donor(address, self.memory) for address in ADDRESSES]
        self.device = block.attach("--replicas", "2", "--timeout", "120", donors=ADDRESSES,
                                   size=f"{2 * WORKERS * mib}M")
        must("mkswap", self.device)
        must("swapon", self.device)
        put("/sys/fs/cgroup/cgroup.subtree_control", "+memory")
        os.mkdir(GROUP)
        # memory.max would make the kernel kill a process that waits too long for a donor.
        put(f"{GROUP}/memory.high", str(WORKERS * mib * MIB // 2))
        self.progress = memoryview(mmap.mmap(-1, PAGE)).cast("Q")
        self.workers = [Worker(number + 1, mib * MIB // PAGE, self.progress)
                        for number in range(WORKERS)]

    def until(self, is_so):
        """Waits; meanwhile no data is lost, and every worker makes progress."""
        deadline = time.monotonic() + LONG
        while not is_so(now := stat(self.device)):
            assert not now["lost"], now
            assert time.monotonic() < deadline, now
            for worker in self.workers:
                worker.look()
            time.sleep(0.1)

    def until_whole(self):
        self.until(lambda now: now["state"] == "up" and not now["leaving"] and
                   all(donor["state"] == "up" for donor in now["donors"]))

    def checked(self):
        return sum(self.progress[worker.number] for worker in self.workers)

    def let_work(self, pages):
        """Waits until each worker has checked so many more pages."""
        wanted = [self.progress[worker.number] + pages for worker in self.workers]
        self.until(lambda _: all(self.progress[worker.number] >= number
                                 for worker, number in zip(self.workers, wanted)))

    # Faults.

    def is_killed(self, number):
        self.donors[number].end(signal.SIGKILL)
        self.until(lambda now: now["donors"][number]["state"] == "lost")
        time.sleep(self.random.random())
        self.donors[number] = block.Donor(ADDRESSES[number], self.memory)

    def is_stopped(self, number):
        self.donors[number].process.send_signal(signal.SIGSTOP)
        self.let_work(100)
        self.donors[number].process.send_signal(signal.SIGCONT)

    def wants_its_memory_back(self, number):
        self.donors[number].lend("0")
        self.until(lambda now: not now["donors"][number]["bytes"])
        self.donors[number].lend(self.memory)

    def suffer(self, what, number):
        begin, before = time.monotonic(), self.checked()
        what(self, number)
        self.until_whole()
        now = stat(self.device)
        print(
            f"{begin:7.1f} s: donor {number} {what.__name__.replace('_', ' ')}; all is whole after "
            f"{time.monotonic() - begin:.1f} s, {self.checked() - before} pages checked meanwhile; "
            "so far "
            f"{now['bytes_written'] // MIB} MiB written, {now['bytes_read'] // MIB} read, "
            f"{now['bytes_copied'] // MIB} copied, {now['mismatches']} mismatches",
            flush=True,
        )
        self.let_work(50)

    def end(self):
        """Each worker reads all of its memory; then the device is removed."""
        before, self.progress[0] = self.checked(), 1
        running = list(self.workers)
        while running:
            running = [worker for worker in running if not worker.look()]
            time.sleep(0.1)
        now = stat(self.device)
        begin = time.monotonic()
        must("swapoff", self.device, timeout=LONG)
        print(
            f"{self.checked()} pages checked, {self.checked() - before} of them in the end; "
            f"swapoff took {time.monotonic() - begin:.1f} s",
            flush=True,
        )
        assert now["bytes_read"] and now["bytes_written"], "nothing was swapped"
        assert not now["mismatches"], now
        block.detach(self.device)
        os.rmdir(GROUP)
        for donor in self.donors:
            donor.end(signal.SIGKILL)


MISFORTUNES = (Soak.is_killed, Soak.is_stopped, Soak.wants_its_memory_back)


def soak(minutes):
    here = Soak(24 if minutes else 4)
    here.let_work(50)
    if not minutes:
        for number, what in enumerate(MISFORTUNES):
            here.suffer(what, number)
    deadline = time.monotonic() + 60 * minutes
    while time.monotonic() < deadline:
        here.suffer(here.random.choice(MISFORTUNES), here.random.randrange(len(ADDRESSES)))
    here.end()


def main():
    os.environ["WEIR_DEVICE"] = "rxe0"
    block.write_key(block.KEY, "the key of the soak")
    must("dmesg", "--clear")
    block.load()
    soak(float(sys.argv[3]) if len(sys.argv) > 3 else 0)
    must("rmmod", "weir_blk", "weir")
    complaints = block.kernel_complains() + \
        [line for line in must("dmesg").splitlines() if "blocked for more than" in line]
    if complaints:
        print(must("dmesg"))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
