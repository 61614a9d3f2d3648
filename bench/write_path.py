#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Shows the way of a blocking 4 KiB weir_write() of copied memory through the library.

write_path.py BUILD [--tree | --dot TITLE | --registered]

BUILD is compiled with -O0, so that each function is a call or a block of its own:

    meson setup build-o0 -Doptimization=0
    ninja -C build-o0 lib/libweir.so.0.1.0 softnic/libweir-softnic.so tests/lib/lib_donor
    bench/write_path.py build-o0

gdb steps through the write number 61 of a session on softnic, with nothing else in flight. The
script counts the functions of core/ and lib/ that the write executes, inline ones too, the files
with their definitions, and the climbs. A climb is a caller and a callee in a room above, in the
order of ROOMS. --tree prints each call once, in order. --dot prints the rooms as a graph.
--registered takes memory that needs no copy.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve()
# From the bottom to the top.
ROOMS = ("core/base", "core/poll", "core/sched", "core/unload", "core/link", "core/engine",
         "core/lane", "lib/base", "lib/conn", "lib/client/memory", "lib/client/channel",
         "lib/client/message", "lib/client/request", "lib/client")
WARM_UP = 60
LIMIT_S = 60
OURS = re.compile(r".*(?:^|/)((?:core|lib)/.*)")
PROGRAM = r"""
#include <weir/weir.h>

static char bytes[4096];

int main(int argc, char **argv)
{
	struct weir_iov iov = { bytes, sizeof(bytes) };
	struct weir_session *session;
	struct weir_region *region;
	int i, rc;

	if (weir_session_open(argv[1], NULL, &session, NULL) ||
	    weir_region_create(session, NULL, sizeof(bytes), 0, &region, NULL) ||
	    weir_memory_register(session, bytes, sizeof(bytes), &iov.memory, NULL))
		return 1;
	for (i = rc = 0; i < 64 && !rc; i++)
		rc = argc > 2 ? weir_writev(region, 0, &iov, 1) :
				weir_write(region, 0, bytes, sizeof(bytes));
	return rc;
}
"""


def step_in_gdb(call, out):
    """Inside gdb: writes [pc, sp, [[name, file, block], ...]] for each instruction of one call."""
    import gdb
    blocks, trace = {}, []

    def functions_at(pc):
        if pc not in blocks:
            block, chain = gdb.block_for_pc(pc), []
            while block and not block.is_static:
                if block.function:
                    file = OURS.search(block.function.symtab.filename)
                    chain.insert(0, (block.function.name, file and file.group(1),
                                     int(block.start)))
                block = block.superblock
            blocks[pc] = chain if chain and chain[0][1] else None
        return blocks[pc]

    def value(expression):
        return int(gdb.parse_and_eval(f"(unsigned long){expression}"))

    for setting in ("pagination off", "confirm off", "breakpoint pending on",
                    "debuginfod enabled off"):
        gdb.execute(f"set {setting}")
    begin = gdb.Breakpoint(call)
    begin.ignore_count = WARM_UP
    gdb.execute("run", to_string=True)
    begin.delete()
    gdb.execute("set scheduler-locking on")
    end = int(gdb.newest_frame().older().read_register("rsp"))
    while value("$rsp") < end:
        pc = value("$pc")
        if functions_at(pc):
            trace.append((pc, value("$rsp"), functions_at(pc)))
        else:  # just called a foreign function, or still in its stub
            back = value("*(unsigned long *)$rsp")
            if functions_at(back):
                gdb.Breakpoint(f"*{back:#x}", internal=True, temporary=True)
                gdb.execute("continue", to_string=True)
                continue
        gdb.execute("stepi", to_string=True)
    pathlib.Path(out).write_text(json.dumps(trace), encoding="utf-8")
    gdb.execute("kill")


def trace_write(build, call, folder):
    preload = f"LD_PRELOAD={build}/softnic/libweir-softnic.so"
    (folder / "write.c").write_text(PROGRAM, encoding="utf-8")
    subprocess.run(["cc", "-g", "-O0", f"-I{HERE.parents[1]}/include", folder / "write.c", "-o",
                    folder / "write", f"-L{build}/lib", "-lweir", f"-Wl,-rpath,{build}/lib"],
                   check=True)
    donor = subprocess.Popen(["env", preload, build / "tests/lib/lib_donor", "127.0.0.1:0",
                              "16777216"], stdout=subprocess.PIPE, text=True)
    try:
        arguments = [donor.stdout.readline().strip()] + ["registered"] * (call == "weir_writev")
        script = (f"python __file__ = {str(HERE)!r}; exec(open(__file__).read()); "
                  f"step_in_gdb({call!r}, {str(folder / 'trace')!r})")
        done = subprocess.run(
            ["gdb", "-batch", "-ex", "set environment " + preload.replace("=", " "),
             "-ex", "set startup-with-shell off", "-ex", script, "--args", folder / "write",
             *arguments], capture_output=True, text=True, timeout=LIMIT_S)
    finally:
        donor.terminate()
        donor.wait()
    if not (folder / "trace").exists():
        sys.exit(f"write_path.py: gdb did not reach the end of the write:\n{done.stderr}")
    return json.loads((folder / "trace").read_text(encoding="utf-8"))


def calls_of(trace):
    """Lists (depth, caller, callee) in order; a function is (name, file)."""
    executed = collections.defaultdict(set)
    for pc, _, chain in trace:
        for function in chain:
            executed[tuple(function)].add(pc)
    calls, frames, last = [], [], None
    for _, sp, chain in trace:
        # A jump of the caller may count for an inline function that it passes.
        chain = [tuple(f[:2]) for f in chain if len(executed[tuple(f)]) > 1]
        if not frames or (chain[0] != last[1] and sp < last[0]):
            frames.append((sp, []))
        while len(frames) > 1 and chain[0] != last[1] and frames[-1][0] < sp:
            frames.pop()
        inside = frames[-1][1]
        same = len(os.path.commonprefix([inside, chain]))
        outer = [f for _, functions in frames[:-1] for f in functions]
        for i, function in enumerate(chain[same:], same):
            path = outer + chain[:i]
            calls.append((len(path), path[-1] if path else None, function))
        inside[:] = chain
        last = sp, chain[0]
    return calls


def room_of(function):
    return function[1].rpartition("/")[0]


def is_climb(caller, callee):
    return caller and ROOMS.index(room_of(caller)) < ROOMS.index(room_of(callee))


def print_tree(calls):
    seen = set()
    for depth, caller, callee in calls:
        if (caller, callee) not in seen:
            mark = "  ^ climb" if is_climb(caller, callee) else ""
            print(f"{'  ' * depth}{callee[0]}()  {callee[1]}{mark}")
        seen.add((caller, callee))


def print_dot(calls, title):
    functions = {callee for _, _, callee in calls}
    edges = {(caller, callee) for _, caller, callee in calls if caller}
    rooms = collections.Counter((room_of(a), room_of(b)) for a, b in edges
                                if room_of(a) != room_of(b))
    print(f'digraph "{title}" {{\n\tlabel="{title}"\n\tlabelloc=t')
    print('\tnode [shape=box, style="rounded,filled", fillcolor="#6f9fd83a", margin="0.12,0.06"]')
    print("\tedge [arrowsize=0.7]")
    for room in reversed(ROOMS):
        here = [f for f in functions if room_of(f) == room]
        files = {f[1] for f in here}
        if here:
            counts = f"functions: {len(here)}, files: {len(files)}"
            print(f'\t"{room}" [label="{room}\\n{counts}"]')
    for (a, b), count in sorted(rooms.items()):
        climb = ROOMS.index(a) < ROOMS.index(b)
        style = ', color="#c0392b", fontcolor="#c0392b", constraint=false' if climb else ""
        print(f'\t"{a}" -> "{b}" [label=" {count}"{style}]')
    print("}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--tree", action="store_true")
    parser.add_argument("--dot", metavar="TITLE")
    parser.add_argument("--registered", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        calls = calls_of(trace_write(options.build, "weir_writev" if options.registered else
                                     "weir_write", pathlib.Path(folder)))
    functions = {callee for _, _, callee in calls}
    climbs = {(a, b) for _, a, b in calls if is_climb(a, b)}
    files = {file for _, file in functions}
    title = f"{len(functions)} functions in {len(files)} files, {len(climbs)} climbs"
    if options.dot:
        print_dot(calls, f"{options.dot}: {title}")
        return
    if options.tree:
        print_tree(calls)
    print(title)


if __name__ == "__main__" and "gdb" not in sys.modules:
    main()
