#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Build the table of verbs in docs/reference/conformance.md from the tests.

  conformance.py check LIBRARY     fails if the table differs from the tests
  conformance.py write LIBRARY     writes the table; LIBRARY is libweir-softnic.so
  conformance.py tests VERB        lists the tests that call VERB

The verbs are those declared in verbs.h, rdma_cma.h and rsocket.h, and exported by the library.
"yes" means that a function of softnic's tests calls the verb. Each such function runs, because
the compiler warns of unused ones, and passes, or `meson test` is red. Only a reader can judge
whether the test is good. refused_test.c lists the verbs that softnic refuses, the refused parts
of working verbs, and the verbs with a constant answer. A verb in none of these groups fails the
check. A verb newer than the table, from a newer rdma-core, is only named. Tests that also run
on Soft-RoCE mark its differences with the functions of tests/support/test_device.h.
"""
import functools
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TABLE = ROOT / "docs/reference/conformance.md"
HEADERS = ("infiniband/verbs.h", "rdma/rdma_cma.h", "rdma/rsocket.h")
DECLARATION = re.compile(r"^[\w *]*?\b((?:ibv|rdma)_\w+|r[a-z]+)\(", re.M)
SYSTEM_LINE = re.compile(r'^# \d+ "([^"]*)".*?(?=^# \d+ "|\Z)', re.M | re.S)
# A filter for the library's exports, which also replace some functions of libc.
VERB = re.compile(r"ibv_|rdma_|r(?!ead(?:dir|link)|ealpath|ewinddir)[a-z]+$")
# Names and units of values, implemented by libibverbs for all devices, and a function only for
# ibv_devinfo.
NO_VERB = re.compile(r"ibv_\w+_str$|ibv_rate_to_\w+$|ibv_query_gid_type$")
CALL = re.compile(
    r"\b((?:ibv|rdma)_\w+|r(?:accept|bind|close|connect|fcntl|getpeername|getsockname|getsockopt"
    r"|iomap|iounmap|iowrite|listen|poll|readv?|recv(?:from|msg)?|select|send(?:to|msg)?"
    r"|setsockopt|shutdown|socket|writev?))\s*\(")
REFUSAL = re.compile(r"\bREFUSES(?:_OBJECT|_USE)?\((E\w+), (\w+)")
ONLY = re.compile(r'\bSAYS_ONLY\((-?\w+), (\w+), "([^"]+)"')
PART = re.compile(r'\bREFUSES_PART\((E\w+), (\w+), "([^"]+)"')
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
DEPARTURE = re.compile(r'\b(?:soft_roce_differs|skip_on_soft_roce)\(\s*((?:"[^"]*"\s*)+)\)')
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# A function begins with a line at column 0, and ends with a brace at column 0.
FUNCTION = re.compile(r"^[a-z][^\n;={}]*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", re.M | re.S)

UNKNOWN = "no test calls it"
RDMA_CORE = 56  # the latest version whose verbs are all in the table

HEAD = """<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only -->
# What softnic does of the verbs

Generated from the tests by `tests/softnic/conformance/conformance.py`; a test fails when the page
is out of date. The table covers rdma-core up to version 56. "yes" means: tests in `tests/softnic`
call the verb and pass. `conformance.py tests VERB` names those tests. A refused verb returns the
error shown and changes nothing. Further tables list [options that working verbs
refuse](#what-verbs-that-work-refuse) and [differences of Soft-RoCE](#where-soft-roce-departs).
[softnic](softnic.md#limits) has sizes and numbers.
"""

SOFT_ROCE = """
## Where Soft-RoCE departs

The tests named `verbs ...` run on softnic and on the kernel's Soft-RoCE (`tests/vm/vm check`).
The table lists the differences found on Soft-RoCE with Linux 6.1 and rdma-core 44. softnic behaves
as the name of the test says.

| test, or a function of one | what it is on Soft-RoCE |
| --- | --- |
"""


def source(path):
    return COMMENT.sub("", path.read_text(encoding="utf-8"))


def test_sources():
    return sorted([*(ROOT / "tests/softnic").glob("*/*.c"), *(ROOT / "tests/support").glob("*.c")],
                  key=lambda path: path.name)


@functools.cache
def refusals():
    """Return {verb: errno}."""
    return {verb: error for error, verb in REFUSAL.findall(source(HERE / "refused_test.c"))}


@functools.cache
def only():
    """Return {verb: (constant answer, reason)}."""
    return {
        verb: (value, why) for value, verb, why in ONLY.findall(source(HERE / "refused_test.c"))
    }


def parts():
    """Return [(errno, verb, refused part)]."""
    return PART.findall(source(HERE / "refused_test.c"))


def departures():
    """Return [(test, what Soft-RoCE does)], in the order of the sources."""
    found = []
    for path in test_sources():
        program = path.stem.removesuffix("_test").replace("_", " ")
        for name, body in FUNCTION.findall(source(path)):
            test = name.removeprefix("test_").replace("_", " ")
            for strings in DEPARTURE.findall(body):
                found.append((f"{program}: {test}", "".join(re.findall('"([^"]*)"', strings))))
    return found


@functools.cache
def called():
    """Return the verbs called by functions of the tests."""
    return {verb for path in test_sources() for _name, body in FUNCTION.findall(source(path))
            for verb in CALL.findall(STRING.sub('""', body))}


def offered(library):
    listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                            capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in listed.splitlines() if " T " in line}


@functools.cache
def declared():
    """Return the verbs of the headers themselves, without nested headers."""
    includes = "".join(f"#include <{header}>\n" for header in HEADERS)
    text = subprocess.run(["cc", "-E", "-"], input=includes, check=True, capture_output=True,
                          text=True).stdout
    return {verb for part in SYSTEM_LINE.finditer(text) if part[1].endswith(HEADERS)
            for verb in DECLARATION.findall(part[0])}


def installed_rdma_core():
    version = subprocess.run(["pkg-config", "--modversion", "libibverbs"], check=True,
                             capture_output=True, text=True).stdout
    return int(version.split(".")[2])  # 1.14.VERSION.0


def state(verb):
    if verb in refusals():
        return f"refused: `{refusals()[verb]}`"
    if verb in only():
        return "says `{}`: {}".format(*only()[verb])
    return "yes" if verb in called() else UNKNOWN


def is_verb(name):
    return VERB.match(name) and not NO_VERB.match(name)


def known(library):
    return set(filter(is_verb, called() | set(refusals()) | set(only()) | offered(library)))


def too_new(library):
    """Return the verbs of the installed headers that are newer than the table."""
    new = set(filter(is_verb, declared())) - known(library)
    return new if installed_rdma_core() > RDMA_CORE else set()


def table(library):
    verbs = sorted(known(library) | set(filter(is_verb, declared())) - too_new(library))
    groups = {"Verbs": [], "Connection manager": [], "Sockets over RDMA": []}
    for verb in verbs:
        groups["Verbs" if verb.startswith("ibv_") else "Connection manager"
               if verb.startswith("rdma_") else "Sockets over RDMA"].append(verb)
    text = HEAD
    for name, members in groups.items():
        text += f"\n## {name}\n\n| verb | softnic |\n| --- | --- |\n"
        text += "".join(f"| `{verb}` | {state(verb)} |\n" for verb in members)
    text += "\n## What verbs that work refuse\n\n| verb | what | softnic |\n| --- | --- | --- |\n"
    text += "".join(
        f"| `{verb}` | {what} | refused: `{error}` |\n" for error, verb, what in parts()
    )
    return text + SOFT_ROCE + "".join(f"| {test} | {what} |\n" for test, what in departures())


def tests_of(verb):
    for path in test_sources() + [HERE / "refused_test.c"]:
        for name, body in FUNCTION.findall(source(path)):
            if re.search(rf"\b{verb}\b", body):
                print(f"{path.relative_to(ROOT)}: {name}")


def main(args):
    if len(args) == 2 and args[0] == "write":
        TABLE.write_text(table(args[1]), encoding="utf-8")
    elif len(args) == 2 and args[0] == "check":
        if not TABLE.exists() or TABLE.read_text(encoding="utf-8") != table(args[1]):
            sys.exit(f"docs/reference/conformance.md is not what the tests say: run\n"
                     f"  tests/softnic/conformance/conformance.py write {args[1]}")
        if UNKNOWN in table(args[1]):
            sys.exit(
                "docs/reference/conformance.md: a verb is neither called by a test nor refused"
            )
        if too_new(args[1]):
            print(f"# rdma-core {installed_rdma_core()} has more than the table of rdma-core "
                  f"{RDMA_CORE}: {', '.join(sorted(too_new(args[1])))}")
    elif len(args) == 2 and args[0] == "tests":
        tests_of(args[1])
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
