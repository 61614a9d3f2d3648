# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The distribution's packaged kernel, unpacked into a cache and never installed.

A kernel is a directory of the cache, named for its package, with the package's files in it and
the index of modules that depmod makes.
"""
import fcntl
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Debian's and Ubuntu's names for "the newest kernel of this release".
NEWEST = ("linux-image-amd64", "linux-image-generic")
# Ubuntu has the modules in packages of their own.
OF_THE_KERNEL = re.compile(r"linux-(image|modules|modules-extra)-\d")
SBIN = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


class Unavailable(Exception):
    """There is no kernel to be had here: the reason."""


def cache():
    path = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                        "weir-vm")
    os.makedirs(path, exist_ok=True)
    return path


def output(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True,
                          env=dict(os.environ, PATH=SBIN, LC_ALL="C"), **more).stdout


def depends(package):
    """What of the kernel a package needs, by itself or through others."""
    try:
        listed = output("apt-cache", "depends", "--important", package)
    except (OSError, subprocess.CalledProcessError):
        return []
    return [name for name in re.findall(r"^\s+Depends: (\S+)", listed, re.M)
            if OF_THE_KERNEL.match(name)]


def packages_of(metas):
    """The image first."""
    found = [name for meta in metas for name in depends(meta)]
    for name in found:
        found += [needed for needed in depends(name) if needed not in found]
    return sorted(found)


def refresh_lists():
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    try:
        output(*as_root, "apt-get", "-q", "update")
    except (OSError, subprocess.CalledProcessError):
        pass


def download(packages, directory):
    """Lists may be absent (a container) or stale (a package has moved on): then fetch them."""
    command = ("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *packages)
    try:
        output(*command, cwd=directory)
    except subprocess.CalledProcessError:
        refresh_lists()
        output(*command, cwd=directory)


def unpack(packages, name):
    with tempfile.TemporaryDirectory(dir=cache()) as directory:
        download(packages, directory)
        root = os.path.join(directory, "root")
        for package in os.listdir(directory):
            output("dpkg-deb", "-x", os.path.join(directory, package), root)
        merge_usr(root)
        output("depmod", "-b", root, os.listdir(os.path.join(root, "lib/modules"))[0])
        os.rename(root, os.path.join(cache(), name))


def merge_usr(root):
    """Newer releases have the modules beneath usr; depmod looks where older ones had them."""
    if not os.path.exists(os.path.join(root, "lib")):
        os.symlink("usr/lib", os.path.join(root, "lib"))


def cached():
    """Names of the kernels that are there, the newest last."""
    return sorted((name for name in os.listdir(cache()) if name.startswith("linux-image-")),
                  key=lambda name: [int(number) for number in re.findall(r"\d+", name)])


class Kernel:
    """@looks_for_mistakes: its log is to be read. @slower: what takes a while may take so many
    times as long."""

    looks_for_mistakes = False
    slower = 1

    def __init__(self, name):
        self.root = os.path.join(cache(), name)
        self.version = os.listdir(os.path.join(self.root, "lib/modules"))[0]
        self.modules = os.path.join(self.root, "lib/modules")
        self.image = os.path.join(self.root, f"boot/vmlinuz-{self.version}")

    @property
    def headers(self):
        """What modules are built against; it may not be there."""
        return f"/lib/modules/{self.version}/build"

    def module_files(self, *names):
        """Paths of these modules and of all that they need, in the order of loading."""
        files = []
        for name in names:
            shown = output("modprobe", "-d", self.root, "-S", self.version, "--show-depends", name)
            files += [line.split()[1] for line in shown.splitlines() if line.startswith("insmod")]
        return list(dict.fromkeys(files))


def module_bytes(path):
    """A module as insmod wants it, whatever it was packed with."""
    if path.endswith(".zst"):
        return subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout
    if path.endswith(".xz"):
        with lzma.open(path) as file:
            return file.read()
    with open(path, "rb") as file:
        return file.read()


def fetched(metas):
    """The name in the cache of the kernel that one of the packages @metas stands for."""
    if not shutil.which("dpkg-deb"):
        raise Unavailable("only Debian's and Ubuntu's packaged kernels are known here")
    with open(os.path.join(cache(), "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        packages = packages_of(metas)
        if not packages:
            refresh_lists()
            packages = packages_of(metas)
        if not packages:
            raise Unavailable(f"apt knows no kernel by {' or '.join(metas)}")
        if packages[0] not in cached():
            try:
                unpack(packages, packages[0])
            except (OSError, subprocess.CalledProcessError) as error:
                said = (getattr(error, "stderr", None) or str(error)).strip()
                raise Unavailable(f"could not fetch {packages[0]}: {said}") from error
        return packages[0]


def newest():
    """The newest kernel of this release, fetched if need be; or the newest that is there, which it says."""
    try:
        return Kernel(fetched(NEWEST))
    except Unavailable as why:
        if not cached():
            raise
        print(f"the kernel is {cached()[-1]}: {why}", file=sys.stderr)
        return Kernel(cached()[-1])


def of_package(meta):
    """That of a package which stands for a kernel, linux-image-6.12-amd64 say."""
    return Kernel(fetched((meta,)))
