#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What the compiler does not check about the tree.

  tidy.py ROOT [OBJECT...]

Checks the source tree at ROOT: that includes point in the direction of the arrows, that
every source file says its licence, that nothing names a place of somebody's machine, that
no folder keeps make from making what is called like it. Of
the OBJECTs (or archives), those of the core, it checks what they want from outside: only what
the kernel has too. Prints each violation as FILE:LINE: what is wrong and what to do.
"""

import pathlib
import re
import subprocess
import sys

SPDX = "SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only"
KERNEL_SPDX = "SPDX-License-Identifier: GPL-2.0-only"
SOURCE_SUFFIXES = {".c", ".h", ".py", ".sh", ".build"}

# Which folders' headers each folder may include besides its own. Tests may include all.
# softnic stands alone on both sides: only apps may pick a device.
ARROWS = {
    "core": set(),
    "wire": set(),
    "include": set(),
    "lib": {"core", "wire", "include"},
    "kernel": {"core", "wire"},
    "sim": {"core"},
    "unload": {"lib", "core", "wire", "include"},
    "softnic": set(),
    "verbs": set(),
    "apps": {"lib", "core", "wire", "include", "softnic"},
}
FOLDERS = set(ARROWS) | {"tests", "lab"}

# Places that exist on one machine only.
PLACES = re.compile(r"(?<![\w.])/(?:work|home|Users|root)/\w")

# What the core may want from outside: these, and what compilers put in by themselves.
PURE = {"memcpy", "memmove", "memset", "memcmp"}
COMPILERS_OWN = re.compile(
    r"__stack_chk_|__mem(cpy|move|set)_chk$|_GLOBAL_OFFSET_TABLE_$"
    r"|__(asan|ubsan|tsan|msan|sanitizer|gcov|llvm)_|__sancov")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Where a header knows whether it is in the kernel.
PLATFORMS = {"core", "wire"}
SYSTEM_HEADERS = {"assert.h", "errno.h", "stdbool.h", "stddef.h", "stdint.h", "string.h"}


def tracked(root):
    """The files that git would commit, or all where there is no repository."""
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True)
    if listing.returncode == 0:
        names = [name for name in listing.stdout.split("\0") if name]
    else:
        names = [path.relative_to(root).as_posix() for path in root.rglob("*")]
    return sorted(name for name in names if (root / name).is_file())


def is_source(name, text):
    return pathlib.Path(name).suffix in SOURCE_SUFFIXES or text.startswith("#!")


def target_of(root, name, header):
    """The top folder that an include of @header in file @name leads to, or None."""
    if header.startswith("weir/"):
        return "include"
    for base in (pathlib.Path(name).parent, pathlib.Path(".")):
        path = base / header
        if (root / path).is_file():
            return (root / path).resolve().relative_to(root.resolve()).parts[0]
    first = header.split("/")[0]
    return first if first in FOLDERS and "/" in header else None


def check_includes(root, name, lines):
    folder = name.split("/")[0]
    if folder not in ARROWS or not name.endswith((".c", ".h")):
        return
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match[2]
        target = target_of(root, name, header)
        if target in FOLDERS and target != folder and target not in ARROWS[folder]:
            yield number, (f"{folder}/ must not include {header}: it may see "
                           f"{', '.join(sorted(ARROWS[folder])) or 'nothing'} besides itself")
        elif folder == "core" and match[1] == "<" and name != "core/base/platform.h":
            yield number, f"core/ includes <{header}>: only core/base/platform.h knows the host"
        elif name in ("core/base/platform.h", "wire/platform.h") and match[1] == "<" \
                and header not in SYSTEM_HEADERS and not header.startswith("linux/"):
            yield number, f"<{header}> is not among what the kernel has too"


def check_kernel_macro(name, lines):
    folder = name.split("/")[0]
    if folder not in PLATFORMS or name == f"{folder}/platform.h":
        return
    for number, line in enumerate(lines, 1):
        if "__KERNEL__" in line:
            yield number, f"only {folder}/platform.h may know __KERNEL__"


def check_kernel_version(name, lines):
    if not name.startswith("kernel/") or name == "kernel/compat.h":
        return
    for number, line in enumerate(lines, 1):
        if "LINUX_VERSION_CODE" in line:
            yield number, "only kernel/compat.h may ask for the kernel's version"


def check_licence(name, text, lines):
    wanted = KERNEL_SPDX if name.startswith("kernel/") or name == "Kbuild" else SPDX
    if (name == "Kbuild" or is_source(name, text)) and \
            not any(wanted in line for line in lines[:2]):
        yield 1, f"the licence is missing: begin with '{wanted}'"


def check_places(lines):
    for number, line in enumerate(lines, 1):
        match = PLACES.search(line)
        if match:
            yield number, f"{match[0]}... exists on one machine only: make it relative"


def check_makefile(name, lines):
    """Make does nothing for a target that is there already, as a folder of its name would be."""
    if name != "Makefile":
        return
    phony = {word for line in lines if line.startswith(".PHONY:") for word in line.split()[1:]}
    for number, line in enumerate(lines, 1):
        target = re.match(r"([a-z][\w-]*):(?!=)", line)
        if target and target[1] not in phony:
            yield number, f"'make {target[1]}' makes no file of that name: add it to .PHONY"


def check_file(root, name):
    try:
        text = (root / name).read_text()
    except UnicodeDecodeError:
        return
    lines = text.splitlines()
    yield from check_includes(root, name, lines)
    yield from check_kernel_macro(name, lines)
    yield from check_kernel_version(name, lines)
    yield from check_licence(name, text, lines)
    yield from check_places(lines)
    yield from check_makefile(name, lines)


def symbols(objects):
    """Yields (object, type, symbol) of each."""
    listing = subprocess.run(["nm", "-A", "-P", *objects], check=True, capture_output=True,
                             text=True)
    for line in listing.stdout.splitlines():
        place, symbol, kind = line.split()[:3]
        yield place.rstrip(":"), kind, symbol


def check_purity(objects):
    entries = list(symbols(objects))
    own = {symbol for _, kind, symbol in entries if kind not in "Uvw"}
    for place, kind, symbol in entries:
        if kind in "Uvw" and symbol not in own | PURE and not COMPILERS_OWN.match(symbol):
            yield f"{place}: core/ uses {symbol}, which the kernel may not have: " \
                  f"it may use {', '.join(sorted(PURE))}"


def main(root, objects):
    root = pathlib.Path(root)
    names = tracked(root)
    wrong = [f"{name}:{number}: {what}" for name in names
             for number, what in check_file(root, name)]
    if objects:
        wrong += check_purity(objects)
    for line in wrong:
        print(line)
    if not wrong:
        print(f"tidy: {len(names)} files, {len(objects)} objects, nothing to mend")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
