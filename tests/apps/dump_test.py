#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""No core dump holds a key: neither the kernel's, nor what a debugger would write.

dump_test.py WEIR

The memory that a dump takes is searched for each key of the process, for the key that the handshake
derives from it, and for the secret of the donor's identity. The keys must be found in the memory
that a dump leaves out, and all of that must be locked.

The kernel's own core is read where its name is a plain one. Mounts skip without FUSE.
"""
import glob
import hashlib
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

WEIR = os.path.abspath(sys.argv.pop(1))
ENVIRONMENT = dict(os.environ, WEIR_DEVICE="softnic")
SOON_S = 60
FRAGMENT = 16  # bytes of a key that prove a copy
BLOCK = 1 << 20
REGION_MAX = 1 << 30  # larger ones are a sanitizer's, which a dump leaves out


def plain_core_name():
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as file:
        return file.read().strip() == "core"


class Region:
    def __init__(self, line):
        bounds, access, *_ = line.split()
        self.start, self.end = (int(bound, 16) for bound in bounds.split("-"))
        self.is_readable = access.startswith("r") and not line.rstrip().endswith("]") or \
            line.rstrip().endswith(("[heap]", "[stack]"))
        self.flags = []


def regions_of(pid):
    regions = []
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as file:
        for line in file:
            if line.startswith("VmFlags:"):
                regions[-1].flags = line.split()[1:]
            elif "-" in line.split()[0] and not line.split()[0].endswith(":"):
                regions.append(Region(line))
    return [region for region in regions
            if region.is_readable and region.end - region.start <= REGION_MAX]


def read(memory, region):
    """The bytes of a region, in blocks; a block that cannot be read is left out."""
    for at in range(region.start, region.end, BLOCK):
        try:
            yield os.pread(memory, min(BLOCK, region.end - at) + FRAGMENT, at)
        except OSError:
            pass


def fragments(secret):
    return [secret[at:at + FRAGMENT] for at in range(0, len(secret) - FRAGMENT + 1, FRAGMENT)]


class Secret:
    """A secret, by its name, and the bytes that no dump may hold."""

    def __init__(self, name, *forms):
        self.name, self.needles = name, [part for form in forms for part in fragments(form)]

    def is_in(self, text):
        return any(needle in text for needle in self.needles)


def key_of(path):
    with open(path, "rb") as file:
        digits = file.read().split(b"\n")[0]
    psk = hashlib.sha256(b"weir-4 psk\0" + digits).digest()
    return Secret(f"key {os.path.basename(path)}", digits, bytes.fromhex(digits.decode()), psk)


def identity_of(path):
    with open(path, "rb") as file:
        digits = file.read().split()[1]
    return Secret("identity", digits, bytes.fromhex(digits.decode()))


def allow_cores():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class Dumps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def weir(self, *words):
        return subprocess.run([WEIR, *words], env=ENVIRONMENT, check=True, capture_output=True,
                              text=True, timeout=SOON_S).stdout

    def key(self, name):
        self.weir("key", "new", self.path(name))
        return self.path(name)

    def start(self, *words):
        """Start a weir whose core dump would be written to the folder."""
        process = subprocess.Popen([WEIR, *words], env=ENVIRONMENT, cwd=self.folder,
                                   preexec_fn=allow_cores, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def serve(self, *words):
        process = self.start("serve", "--listen", "127.0.0.1:0", "--memory", "16M", "--no-reserve",
                             *words)
        self.assertTrue(select.select([process.stdout], [], [], SOON_S)[0])
        return process, process.stdout.readline().decode().split()[-1]

    def check(self, process, secrets, wiped=()):
        """@secrets are in locked memory that a dump leaves out, and nowhere else."""
        os.kill(process.pid, signal.SIGSTOP)
        kept = set()
        memory = os.open(f"/proc/{process.pid}/mem", os.O_RDONLY)
        try:
            for region in regions_of(process.pid):
                for text in read(memory, region):
                    for secret in (*secrets, *wiped):
                        if not secret.is_in(text):
                            continue
                        self.assertIn("dd", region.flags, f"{secret.name}: a dump has it")
                        self.assertIn("lo", region.flags, f"{secret.name}: the swap may get it")
                        kept.add(secret.name)
        finally:
            os.close(memory)
            os.kill(process.pid, signal.SIGCONT)
        self.assertEqual(kept, {secret.name for secret in secrets})
        self.check_core(process, (*secrets, *wiped))

    def check_core(self, process, secrets):
        os.kill(process.pid, signal.SIGABRT)
        process.wait(SOON_S)
        if not plain_core_name():
            return
        cores = glob.glob(self.path("core*"))
        self.assertEqual(len(cores), 1)
        with open(cores[0], "rb") as file:
            core = file.read()
        os.unlink(cores[0])
        self.assertIn(b"weir-", core)
        for secret in secrets:
            self.assertFalse(secret.is_in(core), f"{secret.name} is in the core dump")

    def test_a_donors_keys_and_identity(self):
        key, other = self.key("key"), self.key("other")
        self.weir("key", "identity", self.path("identity"))
        donor, address = self.serve("--key", key, "--key", other, "--identity",
                                    self.path("identity"))
        for _ in range(3):
            self.weir("ping", "-c", "1", "--key", key, address)
        self.check(donor, [key_of(key), key_of(other), identity_of(self.path("identity"))])

    def test_a_donors_list_of_keys(self):
        keys = self.path("keys")
        for name in "a", "b":
            self.weir("key", "add", "--tenant", 63 * name, keys, name, self.path(name))
        donor, address = self.serve("--keys", keys)
        self.weir("ping", "-c", "1", "--key", self.path("a"), address)
        self.weir("key", "add", "--donor", str(donor.pid), keys, "c", self.path("c"))
        end = time.monotonic() + SOON_S
        while subprocess.run([WEIR, "ping", "-c", "1", "--key", self.path("c"), address],
                             env=ENVIRONMENT, check=False, capture_output=True).returncode:
            self.assertLess(time.monotonic(), end)
        self.check(donor, [key_of(self.path(name)) for name in "abc"])

    def test_a_clients_key(self):
        key = self.key("key")
        _, address = self.serve("--key", key)
        client = self.start("ping", "--key", key, "-c", "1000000", address)
        self.assertTrue(select.select([client.stdout], [], [], SOON_S)[0])
        self.check(client, [key_of(key)])

    @unittest.skipUnless(os.access("/dev/fuse", os.W_OK), "no FUSE")
    def test_a_mounts_keys(self):
        """The key of --seal is wiped once others are derived from it."""
        key, seal, point = self.key("key"), self.key("seal"), self.path("point")
        os.mkdir(point)
        _, address = self.serve("--key", key)
        mount = self.start("mount", "--foreground", "--key", key, "--seal", seal, address, point)
        self.addCleanup(subprocess.run, ["umount", "-l", point], check=False, capture_output=True)
        end = time.monotonic() + SOON_S
        while not os.path.ismount(point):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        with open(f"{point}/file", "wb") as file:
            file.write(b"text" * 4096)
        self.check(mount, [key_of(key)], wiped=[key_of(seal)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
