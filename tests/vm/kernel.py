# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The distribution's packaged kernel, unpacked into a cache and never installed.

A kernel is a directory of the cache, named for its package, with the package's files and the
module index of depmod.
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
    """No kernel is available here, for this reason."""


def cache():
    path = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                        "weir-vm")
    os.makedirs(path, exist_ok=True)
    return path


def output(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True,
                          env=dict(os.environ, PATH=SBIN, LC_ALL="C"), **more).stdout


def depends(package):
    """Kernel packages that a package needs, directly or through others."""
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
    """Package lists may be absent (a container) or outdated: then fetch them."""
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
    """Newer releases have the modules below usr; depmod looks in the old place."""
    if not os.path.exists(os.path.join(root, "lib")):
        os.symlink("usr/lib", os.path.join(root, "lib"))


def cached():
    """Names of the cached kernels, the newest last."""
    return sorted((name for name in os.listdir(cache()) if name.startswith("linux-image-")),
                  key=lambda name: [int(number) for number in re.findall(r"\d+", name)])


class Kernel:
    """@looks_for_mistakes: a debug kernel, whose log is checked. @slower: factor for time
      limits."""

    looks_for_mistakes = False
    slower = 1

    def __init__(self, name):
        self.root = os.path.join(cache(), name)
        self.version = os.listdir(os.path.join(self.root, "lib/modules"))[0]
        self.modules = os.path.join(self.root, "lib/modules")
        self.image = os.path.join(self.root, f"boot/vmlinuz-{self.version}")

    @property
    def headers(self):
        """Directory for building modules; may be absent."""
        return f"/lib/modules/{self.version}/build"

    def module_files(self, *names):
        """Paths of these modules and their dependencies, in the order of loading."""
        files = []
        for name in names:
            shown = output("modprobe", "-d", self.root, "-S", self.version, "--show-depends", name)
            files += [line.split()[1] for line in shown.splitlines() if line.startswith("insmod")]
        return list(dict.fromkeys(files))


def module_bytes(path):
    """A module's bytes for insmod, decompressed."""
    if path.endswith(".zst"):
        return subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout
    if path.endswith(".xz"):
        with lzma.open(path) as file:
            return file.read()
    with open(path, "rb") as file:
        return file.read()


def fetched(metas):
    """The cached kernel's name for one of the meta packages @metas."""
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
    """The newest kernel of this release, fetched if necessary; otherwise the newest cached one,
    with a message."""
    try:
        return Kernel(fetched(NEWEST))
    except Unavailable as why:
        if not cached():
            raise
        print(f"the kernel is {cached()[-1]}: {why}", file=sys.stderr)
        return Kernel(cached()[-1])


def of_package(meta):
    """The kernel of a meta package, e.g. linux-image-6.12-amd64."""
    return Kernel(fetched((meta,)))
