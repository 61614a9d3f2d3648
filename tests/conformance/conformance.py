#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The table of verbs in docs/conformance.md, out of the tests.

  conformance.py check LIBRARY     fails if the table is not what the tests say
  conformance.py write LIBRARY     writes it; LIBRARY is libweir-softnic.so
  conformance.py tests VERB        the tests that call VERB

A verb is what verbs.h, rdma_cma.h and rsocket.h declare, and what the library offers. It works if a
test of softnic calls it, for the tests pass; it is refused if refused_test.c says so, which also
says what of a verb that works is refused. One that is neither fails the check.
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLE = ROOT / "docs/conformance.md"
HEADERS = ("infiniband/verbs.h", "rdma/rdma_cma.h", "rdma/rsocket.h")
DECLARATION = re.compile(r"^[\w *]*?\b((?:ibv|rdma)_\w+|r[a-z]+)\(", re.M)
SYSTEM_LINE = re.compile(r'^# \d+ "([^"]*)".*?(?=^# \d+ "|\Z)', re.M | re.S)
# Of what the library exports: it stands in for some of libc's functions, too.
VERB = re.compile(r"ibv_|rdma_|r[a-z]+$")
# Words and units for values, which libibverbs has for all devices; and what only ibv_devinfo knows of.
NO_VERB = re.compile(r"ibv_\w+_str$|ibv_rate_to_\w+$|ibv_query_gid_type$")
CALL = re.compile(r"\b((?:ibv|rdma)_\w+)\s*\(")
REFUSAL = re.compile(r"\bREFUSES(?:_OBJECT|_USE)?\((E\w+), (\w+)")
PART = re.compile(r'\bREFUSES_PART\((E\w+), (\w+), "([^"]+)"')
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# A function's head begins a line, and its end is a brace that does.
FUNCTION = re.compile(r"^[a-z][^\n;={}]*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", re.M | re.S)
DECLARED_HERE = re.compile(r"^(?:static )?[\w *]*?\b((?:ibv|rdma)_\w+)\([^;]*\)\n\{", re.M)

UNKNOWN = "no test calls it"

HEAD = """<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only -->
# What softnic does of the verbs

Made out of the tests by `tests/conformance/conformance.py`; a test fails when it is out of date. What
works is called by a test of `tests/softnic`, which says what it must do: `conformance.py tests VERB`
names them. What is refused gives this error, and harms nothing. What verbs that work refuse is
[at the end](#what-verbs-that-work-refuse); sizes and numbers are in [softnic](softnic.md#limits).
"""


def source(path):
    return COMMENT.sub("", path.read_text(encoding="utf-8"))


def test_sources():
    return sorted((ROOT / "tests/softnic").glob("*.c"))


def refusals():
    """{verb: errno}"""
    return {verb: error for error, verb in REFUSAL.findall(source(HERE / "refused_test.c"))}


def parts():
    """[(errno, verb, what of it is refused)]"""
    return PART.findall(source(HERE / "refused_test.c"))


def called():
    """The verbs that tests call."""
    verbs = set()
    for path in test_sources():
        text = source(path)
        verbs |= set(CALL.findall(text)) - set(DECLARED_HERE.findall(text))
    return verbs


def offered(library):
    listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                            capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in listed.splitlines() if " T " in line}


def declared():
    """The verbs of the headers themselves, not of what these include."""
    includes = "".join(f"#include <{header}>\n" for header in HEADERS)
    text = subprocess.run(["cc", "-E", "-"], input=includes, check=True, capture_output=True,
                          text=True).stdout
    return {verb for part in SYSTEM_LINE.finditer(text) if part[1].endswith(HEADERS)
            for verb in DECLARATION.findall(part[0])}


def state(verb, works, refused):
    if verb in refused:
        return f"refused: `{refused[verb]}`"
    return "yes" if verb in works else UNKNOWN


def table(library):
    works, refused = called(), refusals()
    verbs = sorted(verb for verb in works | set(refused) | declared() | offered(library)
                   if VERB.match(verb) and not NO_VERB.match(verb))
    groups = {"Verbs": [], "Connection manager": [], "Sockets over RDMA": []}
    for verb in verbs:
        groups["Verbs" if verb.startswith("ibv_") else "Connection manager"
               if verb.startswith("rdma_") else "Sockets over RDMA"].append(verb)
    text = HEAD
    for name, members in groups.items():
        text += f"\n## {name}\n\n| verb | softnic |\n| --- | --- |\n"
        text += "".join(f"| `{verb}` | {state(verb, works, refused)} |\n" for verb in members)
    text += "\n## What verbs that work refuse\n\n| verb | what | softnic |\n| --- | --- | --- |\n"
    return text + "".join(f"| `{verb}` | {what} | refused: `{error}` |\n" for error, verb, what in parts())


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
            sys.exit(f"docs/conformance.md is not what the tests say: run\n"
                     f"  tests/conformance/conformance.py write {args[1]}")
        if UNKNOWN in table(args[1]):
            sys.exit("docs/conformance.md: a verb is neither called by a test nor refused")
    elif len(args) == 2 and args[0] == "tests":
        tests_of(args[1])
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
