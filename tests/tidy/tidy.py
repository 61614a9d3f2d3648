#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Checks of the source tree beyond the compiler's.

  tidy.py ROOT [OBJECT...]

Checks the source tree at ROOT: includes point in the direction of the arrows; each source
file states its licence; no file names a place that exists on one machine only; no folder
hides a target of make; only lib/conn connects QPs; a struct tag names one layout; lines have
at most 100 columns; a public function begins with the noun of its file; a room has at most 26
files; a header's guard spells its path; a public header says which threads may call a function,
and what it returns; no static function has a name without an object; tests/ mirrors the tree;
CONTRIBUTING.md lists each folder; commit subjects are short and imperative.
The OBJECTs (or archives) are those of the core, of wire/ and of softnic/roce. They may use only
what the kernel has too.
Prints each violation as FILE:LINE, with what is wrong and what to do.
"""

import collections
import pathlib
import re
import subprocess
import sys

SPDX = "SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only"
KERNEL_SPDX = "SPDX-License-Identifier: GPL-2.0-only"
SOURCE_SUFFIXES = {".c", ".h", ".py", ".sh", ".build"}

# Which folders' headers each folder may include besides its own. Tests may include all.
# softnic stands alone on both sides: only apps may pick a device. The simulator hunts in
# softnic's transport between hosts, which has no I/O.
ARROWS = {
    "core": {"wire"},
    "wire": set(),
    "include/weir": set(),
    "include/uapi": {"wire"},
    "fd": set(),
    "lib": {"core", "wire", "fd", "include/weir"},
    "kernel": {"core", "wire", "include/uapi"},
    "sim": {"core", "wire", "softnic/roce"},
    "preload": {"lib", "core", "wire", "fd", "include/weir"},
    "softnic": {"softnic/roce", "softnic/seal", "fd"},
    "softnic/roce": set(),
    "softnic/seal": {"softnic/roce"},
    "fsd": {"core", "wire", "include/weir"},
    "apps": {"fsd", "lib", "core", "wire", "fd", "include/weir", "include/uapi", "softnic"},
}
FROZEN_HEADER = "tests/lib/abi/first.h"  # a copy of the public headers' structs
FOLDERS = set(ARROWS) | {"tests", "lab"}

# Places on one machine only.
PLACES = re.compile(r"(?<![\w.])/(?:work|home|Users|root)/\w")

# The core may use these symbols from outside, and the compilers' own.
PURE = {"memchr", "memcpy", "memmove", "memset", "memcmp", "strlen"}
COMPILERS_OWN = re.compile(
    r"__stack_chk_|__mem(cpy|move|set)_chk$|_GLOBAL_OFFSET_TABLE_$"
    r"|__(asan|ubsan|tsan|msan|sanitizer|gcov|llvm)_|__sancov")

# A QP must stay closed until the peer has proven the key, so lib/conn alone connects and opens QPs.
CONNECTS = re.compile(
    r"\b(?:rdma_(?:connect|establish|accept|create_qp|create_ep|get_cm_event)\w*|ibv_create_qp\w*"
    r"|qp_access_flags|weir_qp_(?:connect|establish|accept|open))\b")

# A preloaded library makes a QP in one place: beside each of the program's, with its rights. The
# hooks pass on the program's own calls.
PRELOAD_OWN_QP = "preload/unload/discovery/own_qp.c"
PRELOAD_HOOKS = "preload/unload/hooks/interpose.c"
PRELOAD_CONNECTS = re.compile(
    r"\b(?:rdma_(?:connect|establish|accept|create_qp|create_ep)\w*|ibv_create_qp\w*)"
    r"|\.qp_access_flags\s*=")

LIBRARIES = ("core/", "fsd/", "lib/", "preload/", "softnic/", "wire/")

COLUMNS_MAX = 100
ROOM_FILES_MAX = 26

# A static function of this name shows in a backtrace, ftrace or perf, and says nothing there.
VAGUE = re.compile(r"^static .*?\b(find|look|tell)\(")

GUARD = re.compile(r"^#ifndef (\w+_H)\n#define \1$", re.MULTILINE)

# Folders of tests/ without a folder of the same path: what tests share, and tests of all rooms.
TEST_ROOMS = {"tests/fuzz", "tests/fuzz/batch", "tests/fuzz/netlink", "tests/fuzz/stored",
              "tests/hostile", "tests/kernel/host", "tests/lib/abi", "tests/model", "tests/pool",
              "tests/softnic/campaign", "tests/softnic/conformance", "tests/softnic/programs",
              "tests/support", "tests/tidy", "tests/vm"}

# The first commit after this one begins the rule of short imperative subjects.
SUBJECTS_SINCE = "4436792"
SUBJECT_MAX = 65
NO_VERB = re.compile(
    r"(?:what|who|a|an|the|it|that|which|where|when|one|all|each|no)\b", re.IGNORECASE)

# Folders whose public functions begin with their file's noun, and the prefixes they wear.
NOUN_FOLDERS = {"core", "fsd", "kernel", "lib", "preload", "sim", "softnic", "wire"}
FUNCTION = re.compile(
    r"^(?!static|typedef|extern)(?:\w+[ \t*]+)+(?:weir|softnic|wire)_(\w+)\(", re.MULTILINE)
# In softnic/ functions wear the prefix of their room or none. Some stand in for other libraries'.
SOFTNIC_FUNCTION = re.compile(
    r"^(?!.*\bstatic\b|typedef|extern)(?:\w+[ \t*]+)+(\w+)\((?:[^;{()]|\([^()]*\))*\)\n\{",
    re.MULTILINE)
STAND_IN = re.compile(r"_*(?:ibv|rdma|dl)")
TAG = re.compile(r"^[ \t]*(?:(?:static|const|typedef)\s+)*(?:struct|enum|union)\s+(\w+)\s*\{",
                 re.MULTILINE)

# A function or the type of a callback in a public header, with the comment just above it.
PUBLIC = re.compile(
    r"(?P<comment>^[ \t]*/\*(?:(?!\*/).)*\*/\n)?"
    r"^(?:typedef )?(?P<type>(?:\w+[ \t*]+)+?)(?P<name>weir_\w+)\([^;{]*\);[^\n]*\n",
    re.MULTILINE | re.DOTALL)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# The headers that know whether the kernel includes them.
PLATFORM_HEADERS = {"core": "core/base/platform.h", "wire": "wire/platform.h"}
# sys/sdt.h makes notes and nops, and no symbol.
SYSTEM_HEADERS = {"assert.h", "errno.h", "stdbool.h", "stddef.h", "stdint.h", "string.h",
                  "sys/sdt.h"}


def tracked(root):
    """The files of the git index; without a repository, all files."""
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


def folder_of(name):
    """The folder of ARROWS that holds file @name: the top folder, or a room with its own arrows."""
    parts = pathlib.PurePath(name).parts
    room = "/".join(parts[:2])
    return room if room in ARROWS or parts[0] == "include" else parts[0]


def target_of(root, name, header):
    """The folder of ARROWS that an include of @header in file @name leads to, or None."""
    if header.startswith("weir/"):
        return "include/weir"
    for base in (pathlib.Path(name).parent, pathlib.Path(".")):
        path = base / header
        if (root / path).is_file():
            return folder_of((root / path).resolve().relative_to(root.resolve()))
    folder = folder_of(header)
    return folder if folder in FOLDERS and "/" in header else None


def check_includes(root, name, lines):
    folder = folder_of(name)
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
        elif name in PLATFORM_HEADERS.values() and match[1] == "<" \
                and header not in SYSTEM_HEADERS and not header.startswith("linux/"):
            yield number, f"<{header}> is not among what the kernel has too"


def check_kernel_macro(name, lines):
    folder = name.split("/")[0]
    if name == PLATFORM_HEADERS.get(folder, name):
        return
    for number, line in enumerate(lines, 1):
        if "__KERNEL__" in line:
            yield number, f"only {PLATFORM_HEADERS[folder]} may know __KERNEL__"


def check_kernel_version(name, lines):
    if not name.startswith("kernel/") or name == "kernel/compat.h":
        return
    for number, line in enumerate(lines, 1):
        if "LINUX_VERSION_CODE" in line:
            yield number, "only kernel/compat.h may ask for the kernel's version"


def check_connections(name, lines):
    if name.startswith("lib/") and not name.startswith("lib/conn/"):
        rule, advice = CONNECTS, ("only lib/conn connects and opens QPs, after the proof of the "
                                  "key: use its dialer.h, listener.h and proof.h")
    elif name.startswith("preload/") and name not in (PRELOAD_OWN_QP, PRELOAD_HOOKS):
        rule, advice = PRELOAD_CONNECTS, f"only {PRELOAD_OWN_QP} makes and opens QPs"
    else:
        return
    for number, line in enumerate(lines, 1):
        match = rule.search(line)
        if match:
            yield number, f"{match[0]}: {advice}"


def check_atomics(name, lines):
    if name.startswith(LIBRARIES):
        for number, line in enumerate(lines, 1):
            if line.startswith("#include <stdatomic.h>"):
                yield number, "libraries use __atomic_... with its order, and lib/base/counter.h"


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
    """Make does nothing for a target when a folder of the same name exists."""
    if name != "Makefile":
        return
    phony = {word for line in lines if line.startswith(".PHONY:") for word in line.split()[1:]}
    for number, line in enumerate(lines, 1):
        target = re.match(r"([a-z][\w-]*):(?!=)", line)
        if target and target[1] not in phony:
            yield number, f"'make {target[1]}' makes no file of that name: add it to .PHONY"


def check_columns(name, lines):
    if pathlib.Path(name).suffix not in SOURCE_SUFFIXES:
        return
    for number, line in enumerate(lines, 1):
        columns = len(line.expandtabs(8))
        if name.startswith("kernel/") and line.lstrip().startswith('"'):
            continue  # the kernel's style keeps a message on one line, so that grep finds it
        if columns > COLUMNS_MAX:
            yield number, f"{columns} columns: a line has at most {COLUMNS_MAX}"


def check_static_names(name, lines):
    if not name.endswith((".c", ".h")):
        return
    for number, line in enumerate(lines, 1):
        match = VAGUE.match(line)
        if match:
            yield number, f"{match[1]}(): name the object, as in {match[1]}_region()"


def check_guard(name, text):
    """A copied header with its old guard would hide the other header."""
    if not name.endswith(".h") or name.startswith("docs/"):
        return
    path = re.sub(r"\W", "_", name.removeprefix("include/weir/")).upper()
    match = GUARD.search(text)
    if match and match[1] not in (path, f"WEIR_{path}"):
        yield line_of(text, match), f"the guard {match[1]}: the path asks for WEIR_{path}"


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def words_of_path(name):
    """The nouns that a file of this name may put first: its own and its rooms'."""
    path = pathlib.PurePath(name)
    return {word for part in (*path.parent.parts, path.stem) for word in part.split("_")}


def check_nouns(name, text, public):
    """A reader who sees a function in a backtrace finds its file by the function's first noun.

    The library's public functions are named for the reader of its headers instead.
    """
    if name.split("/")[0] not in NOUN_FOLDERS or not name.endswith(".c"):
        return
    nouns = words_of_path(name)
    nouns |= {noun + "s" for noun in nouns} | {noun.rstrip("s") for noun in nouns}
    for match in FUNCTION.finditer(text):
        if match[1].split("_")[0] not in nouns and f"weir_{match[1]}" not in public:
            yield line_of(text, match), (f"{match[1]}() begins with no noun of its file or "
                                         "rooms: move or rename it")


def nouns_of_softnic(texts):
    """For each room of softnic/, the words of its files and of the structs in its headers."""
    rooms = collections.defaultdict(set)
    for name, text in texts.items():
        if name.startswith("softnic/") and name.endswith((".c", ".h")):
            room = rooms[pathlib.PurePath(name).parent.as_posix()]
            room |= words_of_path(name) - {"softnic"}
            if name.endswith(".h"):
                room |= {tag.split("_")[0] for tag in TAG.findall(text)}
    return rooms


def check_softnic_nouns(name, text, rooms):
    """The same in softnic/: a function's first word leads to its room."""
    if not name.startswith("softnic/") or not name.endswith(".c"):
        return
    nouns = rooms[pathlib.PurePath(name).parent.as_posix()]
    for match in SOFTNIC_FUNCTION.finditer(text):
        function = match[1].removeprefix("softnic_")
        if function.split("_")[0] not in nouns and not STAND_IN.match(function):
            yield line_of(text, match), (f"{match[1]}() begins with no noun of its room: "
                                         "move or rename it")


def contracts(text):
    """Yield the position, name and comment of each function or callback type of a public header.

    Declarations that follow one another without a blank line share the first one's comment.
    """
    end, comment = None, ""
    for match in PUBLIC.finditer(text):
        if match["comment"] or match.start() != end:
            comment = match["comment"] or ""
        end = match.end()
        yield match.start("name"), match["name"], comment, match["type"].strip()


def check_contracts(name, text):
    """The header tells a user which threads may call a function, and what it returns."""
    if not name.startswith("include/weir/"):
        return
    has_context = "Context of all calls:" in text
    for at, function, comment, kind in contracts(text):
        if not has_context and "Context" not in comment:
            yield text.count("\n", 0, at) + 1, (f"{function}: say by 'Context:' which threads "
                                                "may call it")
        if not kind.endswith("void") and "Return:" not in comment:
            yield text.count("\n", 0, at) + 1, f"{function}: say by 'Return:' what it returns"


def check_tags(texts):
    """One tag names one layout, so that a debugger, a reader and ctags find the right layout."""
    places = collections.defaultdict(list)
    for name, text in texts.items():
        if name.endswith((".c", ".h")) and name != FROZEN_HEADER:
            for match in TAG.finditer(text):
                places[match[1]].append((name, line_of(text, match)))
    for tag, found in places.items():
        for name, number in found[1:]:
            yield name, number, (f"the tag {tag} names a layout in {found[0][0]} too: "
                                 "choose another name")


def check_rooms(names):
    """A room with too many files to survey at a glance is two rooms."""
    rooms = collections.Counter(pathlib.PurePath(name).parent.as_posix() for name in names
                                if name.endswith((".c", ".h")))
    for room, count in rooms.items():
        if count > ROOM_FILES_MAX:
            yield room, 0, f"{count} sources: a room has at most {ROOM_FILES_MAX}; make two of it"


def check_mirror(root, names):
    """A reader finds the tests of a folder below the same path in tests/."""
    folders = {pathlib.PurePath(name).parent.as_posix() for name in names
               if name.startswith("tests/") and name.endswith((".c", ".h", ".py"))} - {"tests"}
    for folder in sorted(folders - TEST_ROOMS):
        if not (root / folder.removeprefix("tests/")).is_dir():
            yield folder, 0, "no folder of the tree has this path: move the tests"


def check_floor_plan(root, names):
    """CONTRIBUTING.md lists the folders that hold sources, and no others."""
    page = root / "CONTRIBUTING.md"
    if not page.is_file():
        return
    listed = {}
    for number, line in enumerate(page.read_text().splitlines(), 1):
        match = re.match(r"\| `([\w./-]+)/` \|", line)
        if match:
            listed[match[1]] = number
    folders = {pathlib.PurePath(name).parent.as_posix() for name in names
               if name.endswith((".c", ".h", ".py"))} - {"."}
    for folder in sorted(folders):
        if not any(folder == room or folder.startswith(room + "/") for room in listed):
            yield "CONTRIBUTING.md", 1, f"{folder}/ is missing from the tree: say what it holds"
    for room, number in listed.items():
        if not (root / room).is_dir():
            yield "CONTRIBUTING.md", number, f"there is no folder {room}/: take it out"


def check_subjects(root):
    """Commit subjects: short, and led by a verb, as in 'kernel: unlink closing sessions'."""
    log = subprocess.run(["git", "-C", root, "log", "--no-merges", "--format=%h %s",
                          f"{SUBJECTS_SINCE}..HEAD"], capture_output=True, text=True)
    if not log.returncode:  # an archive or a shallow clone has no history
        yield from wrong_subjects(log.stdout.splitlines())


def wrong_subjects(log):
    for line in log:
        commit, subject = line.split(" ", 1)
        thought = subject.rsplit(": ", 1)[-1]
        if len(subject) > SUBJECT_MAX or NO_VERB.match(thought):
            yield commit, 0, (f"'{subject}': begin with a verb, in at most {SUBJECT_MAX} "
                              "characters")


def read(root, names):
    """The text files among @names."""
    texts = {}
    for name in names:
        try:
            texts[name] = (root / name).read_text()
        except UnicodeDecodeError:
            pass
    return texts


def public_functions(texts):
    return set(re.findall(r"^\t(weir_\w+);", texts.get("lib/libweir.map", ""), re.MULTILINE))


def check_file(root, name, text, public, rooms):
    lines = text.splitlines()
    yield from check_includes(root, name, lines)
    yield from check_kernel_macro(name, lines)
    yield from check_kernel_version(name, lines)
    yield from check_connections(name, lines)
    yield from check_atomics(name, lines)
    yield from check_licence(name, text, lines)
    yield from check_places(lines)
    yield from check_makefile(name, lines)
    yield from check_columns(name, lines)
    yield from check_static_names(name, lines)
    yield from check_guard(name, text)
    yield from check_nouns(name, text, public)
    yield from check_softnic_nouns(name, text, rooms)
    yield from check_contracts(name, text)


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
    texts = read(root, names)
    public = public_functions(texts)
    rooms = nouns_of_softnic(texts)
    wrong = [f"{name}:{number}: {what}" for name, text in texts.items()
             for number, what in check_file(root, name, text, public, rooms)]
    wrong += [f"{place}:{number}: {what}" for place, number, what in (
        *check_tags(texts), *check_rooms(texts), *check_mirror(root, texts),
        *check_floor_plan(root, texts),
        *check_subjects(root))]
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
