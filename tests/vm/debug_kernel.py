# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A small kernel with checkers: debug.config, on the distribution's package of kernel sources.

Built once, into a directory of the cache that is named for the package and the configuration:
boot and lib as in a package, and tree for building modules. An interrupted build continues
later.
"""
import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

import kernel

FRAGMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "debug.config")
# Parts of the tree that modules need; the rest takes a gigabyte.
KEPT = ("arch", "include", "scripts", "tools", "Makefile", "Module.symvers", ".config")
LOG_LINES = 30


class DebugKernel(kernel.Kernel):
    looks_for_mistakes = True
    slower = 4

    @property
    def headers(self):
        return os.path.join(self.root, "tree")


def source_package():
    try:
        listed = kernel.output("apt-cache", "depends", "--important", "linux-source")
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r"^\s+Depends: (linux-source-\d\S*)", listed, re.M)
    return found and found[1]


def fragment_lines():
    with open(FRAGMENT, encoding="ascii") as file:
        return [line.strip() for line in file if line.startswith("CONFIG_")]


def unpack(package, tree):
    with tempfile.TemporaryDirectory(dir=kernel.cache()) as directory:
        kernel.download([package], directory)
        deb, = glob.glob(os.path.join(directory, "*.deb"))
        kernel.output("dpkg-deb", "-x", deb, os.path.join(directory, "root"))
        archive, = glob.glob(os.path.join(directory, "root/usr/src/*.tar.*"))
        unpacked = os.path.join(directory, "tree")
        os.mkdir(unpacked)
        kernel.output("tar", "-xf", archive, "--strip-components=1", "-C", unpacked)
        os.rename(unpacked, tree)


def make(tree, *args):
    log = os.path.join(tree, "build.log")
    with open(log, "wb") as file:
        done = subprocess.run(["make", "-s", f"-j{len(os.sched_getaffinity(0))}", *args], cwd=tree,
                              stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                              env=dict(os.environ, PATH=kernel.SBIN, LC_ALL="C"))
    if done.returncode:
        with open(log, encoding="utf-8", errors="replace") as file:
            said = "".join(file.readlines()[-LOG_LINES:])
        sys.exit(f"vm: the debug kernel does not build: make {' '.join(args)}\n{said}")


def configure(tree):
    """All of the fragment, and no other option beyond its dependencies."""
    make(tree, f"KCONFIG_ALLCONFIG={FRAGMENT}", "allnoconfig")
    with open(os.path.join(tree, ".config"), encoding="ascii") as file:
        had = {line.strip() for line in file}
    missing = [line for line in fragment_lines() if line not in had]
    if missing:
        sys.exit(f"vm: no kernel of these sources has: {' '.join(missing)}")


def prune(tree):
    """Leaves the files for building modules, make's own objects among them."""
    for name in os.listdir(tree):
        path = os.path.join(tree, name)
        if os.path.isdir(path) and name not in KEPT:
            shutil.rmtree(path)
        elif name.startswith(("vmlinux", ".vmlinux", ".tmp_")):
            os.unlink(path)
    for name in os.listdir(os.path.join(tree, "arch")):
        path = os.path.join(tree, "arch", name)
        if os.path.isdir(path) and name != "x86":
            shutil.rmtree(path)


def build(root):
    tree = os.path.join(root, "tree")
    configure(tree)
    make(tree, "bzImage", "modules")
    make(tree, "modules_install", f"INSTALL_MOD_PATH={root}")
    version = os.listdir(os.path.join(root, "lib/modules"))[0]
    image = os.path.join(root, "vmlinuz")
    shutil.copy(os.path.join(tree, "arch/x86/boot/bzImage"), image)
    prune(tree)
    # Last: the image marks a complete build.
    os.makedirs(os.path.join(root, "boot"), exist_ok=True)
    os.rename(image, os.path.join(root, f"boot/vmlinuz-{version}"))


def name_of(package):
    """Another fragment makes another kernel."""
    return f"debug-{package}-{hashlib.sha256(repr(fragment_lines()).encode()).hexdigest()[:12]}"


def built():
    """The debug kernel, built if necessary."""
    package = source_package() if shutil.which("dpkg-deb") else None
    if not package:
        raise kernel.Unavailable("apt knows no sources of a kernel (linux-source)")
    name = name_of(package)
    root = os.path.join(kernel.cache(), name)
    with open(os.path.join(kernel.cache(), "debug.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(os.path.join(root, "boot")):
            print(f"building the debug kernel, once, in {root}: it takes a while", file=sys.stderr)
            os.makedirs(root, exist_ok=True)
            if not os.path.isdir(os.path.join(root, "tree")):
                unpack(package, os.path.join(root, "tree"))
            build(root)
        return DebugKernel(name)
