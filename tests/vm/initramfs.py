# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The guest's initial file system: busybox, a few modules, and tests/vm/init."""
import os
import stat

import kernel

# Modules for mounting this machine's root; other modules are loaded from there.
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
DIRECTORIES = ("bin", "modules", "proc", "sys", "dev", "host", "over", "new")


class Archive:
    """A cpio archive as the kernel unpacks it ("newc")."""

    def __init__(self):
        self.data = bytearray()
        self.entries = 0

    def add(self, name, mode, content=b"", device=(0, 0)):
        self.entries += 1
        path = name.encode() + b"\0"
        fields = (self.entries, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(path), 0)
        self.data += b"070701" + b"".join(b"%08x" % field for field in fields) + path
        self.pad()
        self.data += content
        self.pad()

    def pad(self):
        self.data += bytes(-len(self.data) % 4)

    def finished(self):
        self.add("TRAILER!!!", 0)
        return bytes(self.data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def make(of, busybox):
    """The archive for kernel @of."""
    archive = Archive()
    for name in DIRECTORIES:
        archive.add(name, stat.S_IFDIR | 0o755)
    archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    archive.add("bin/busybox", stat.S_IFREG | 0o755, read(busybox))
    archive.add("init", stat.S_IFREG | 0o755,
                read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "init")))
    for number, path in enumerate(of.module_files(*MODULES)):
        archive.add(f"modules/{number:02}.ko", stat.S_IFREG | 0o644, kernel.module_bytes(path))
    return archive.finished()
