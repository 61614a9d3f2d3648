# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""How fast the time stamp counter of an emulated guest runs: that of this machine, which the emulator hands on.

A guest that is left to find out compares it with a timer that the emulator drives, in moments in which
this machine has other things to do. It may then take it for a twentieth of what it is, and all of its time
limits are over in a twentieth of their time.
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
    """What it shows, and the time in nanoseconds, as much at once as is to be had."""
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
    """None where nobody can say."""
    if platform.machine() != "x86_64":
        return None
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    memory.write(CODE)
    counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    count, now_ns = both(counter)
    time.sleep(SECONDS)
    later, then_ns = both(counter)
    return round((later - count) * 1e6 / (then_ns - now_ns))
