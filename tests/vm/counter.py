# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Frequency of an emulated guest's time stamp counter: that of this machine, passed on by the
emulator.

A guest without this value calibrates the counter against a timer of the emulator, while this
machine is busy with other work. The result may be a twentieth of the true frequency, and the
guest's time limits then expire twenty times too early.
"""
import ctypes
import functools
import mmap
import platform
import time

# rdtsc; shl rdx, 32; or rax, rdx; ret
CODE = bytes.fromhex("0f31 48c1e220 4809d0 c3")
SECONDS = 0.1


def both(counter):
    """The counter and the time in nanoseconds, read as close together as possible."""
    looks = []
    for _ in range(100):
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        count = counter()
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        looks.append((end - begin, count, begin))
    took, count, begin = min(looks)
    return count, begin + took // 2


@functools.cache
def khz():
    """None if the frequency cannot be found."""
    if platform.machine() != "x86_64":
        return None
    try:
        memory = mmap.mmap(
            -1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        )
    except OSError:
        return None
    memory.write(CODE)
    counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    count, now_ns = both(counter)
    time.sleep(SECONDS)
    later, then_ns = both(counter)
    return round((later - count) * 1e6 / (then_ns - now_ns))
