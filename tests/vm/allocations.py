# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Allocations made by a kernel module's own code, from the kernel's tracing. Objects count by the
caller of the allocator, whole pages by the first function on the stack outside the allocator.
Functions called by the module count as their own callers."""
import os
import re

KMEM = "/sys/kernel/tracing/events/kmem"
OBJECTS = "kmalloc", "kmalloc_node", "kmem_cache_alloc", "kmem_cache_alloc_node"
COUNT_STACKS = "hist:keys=stacktrace:size=8192"
ALLOCATOR = re.compile(
    r"_*(alloc|folio_alloc|get_free_page|get_zeroed_page|k[mvz]*alloc|kmem_cache|new_slab|"
    r"slab_alloc|vmalloc)"
)


def put(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def get(path):
    with open(path, encoding="ascii") as file:
        return file.read()


class Allocations:
    """Traces within the context. @modules: names; @texts: (begin, end) of each module's code."""

    def __init__(self, modules, texts):
        self.modules = tuple(f"[{name}]" for name in modules)
        self.sites = " || ".join(
            f"(call_site >= {begin:#x} && call_site < {end:#x})" for begin, end in texts
        )
        self.events = [f"{KMEM}/{name}" for name in OBJECTS if os.path.exists(f"{KMEM}/{name}")]
        self.stacks = f"{KMEM}/mm_page_alloc"
        self.has_stacks = os.path.exists(f"{self.stacks}/hist")

    def __enter__(self):
        if not self.has_stacks:
            print("this kernel counts no stacks: pages are not looked at", flush=True)
        put("/sys/kernel/tracing/trace", "")
        for event in self.events:
            put(f"{event}/filter", self.sites)
            put(f"{event}/enable", "1")
        self.count(True)
        return self

    def __exit__(self, *_):
        self.count(False)
        for event in self.events:
            put(f"{event}/enable", "0")
            put(f"{event}/filter", "0")

    def count(self, is_wanted):
        if self.has_stacks:
            put(f"{self.stacks}/trigger", ("" if is_wanted else "!") + COUNT_STACKS)

    def forget(self):
        self.count(False)
        self.count(True)
        put("/sys/kernel/tracing/trace", "")

    def objects(self):
        return [
            line
            for line in get("/sys/kernel/tracing/trace").splitlines()
            if not line.startswith("#")
        ]

    def is_own(self, frames):
        """Is a module the first caller on the stack outside the allocator?"""
        caller = next((frame for frame in frames if not ALLOCATOR.match(frame)), "")
        return caller.endswith(self.modules)

    def pages(self):
        """Stacks of page allocations; None if the kernel has no such trace event."""
        if not self.has_stacks:
            return None
        counted = get(f"{self.stacks}/hist")
        assert re.search(r"^ +Dropped: 0$", counted, re.M), counted[-200:]
        stacks = [[frame.strip() for frame in frames.strip().splitlines()]
                  for frames in re.findall(r"\{ (?:common_)?stacktrace:\n(.*?)\}", counted, re.S)]
        return [frames for frames in stacks if self.is_own(frames)]
