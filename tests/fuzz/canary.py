#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Plant single mistakes in files that strangers' bytes reach. The fuzz targets must find them.

canary.py ROOT BUILD CC

Each target runs its corpus and a few inputs made of that, under ASan and UBSan, as each build runs
them. BUILD says which files a target has. At least FOUND_MIN mistakes must be found. The clean run
must also reach the lines of FLOORS, in percent.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import planted  # noqa: E402

# Targets, and inputs beside the corpus.
TARGETS = {"blk_netlink": 400, "control": 400, "cm_msg": 400, "fs_request": 120, "handshake": 400,
           "mount_reply": 300, "mux": 1500, "slots": 500, "unload": 500}
PARTS = ("apps", "core", "fd", "fsd", "include", "lib", "softnic", "tests/fuzz", "wire")
# A target hangs if it uses HANG times its CPU time on clean files and SPARE_S more.
HANG, SPARE_S = 5, 2
FOUND_MIN = 29

# Each mistake: the symptom, the file, the original line, the planted line.
MISTAKES = [
    ("a listing runs past the reply", "fsd/op.c",
     "FSD_MESSAGE_MAX - r->length);", "FSD_MESSAGE_MAX + 256);"),
    ("a map runs past what a client takes", "fsd/op.c",
     "if (map.extents == FS_EXTENTS_MAX) {", "if (map.extents == 1024) {"),
    ("an existing name is made again", "fsd/op.c",
     "\treturn -EEXIST;\n}\n\nstatic int do_make", "\treturn 0;\n}\n\nstatic int do_make"),
    ("a map without an open", "fsd/op.c",
     "\tif (!fsd_handle_is_open(r->client, r->inode))\n\t\treturn -EBADF;\n"
     "\trc = fsd_file_fill", "\trc = fsd_file_fill"),
    ("a name with a slash", "fsd/op.c",
     "return !memchr(name.at, '/', name.length) &&", "return"),
    ("a second string beyond the message", "fsd/request.c",
     "if (r->second.length != strings - r->name.length)", "if (false)"),
    ("a file is used as a directory", "fsd/request.c",
     "== FSD_OP_DIR && !fsd_inode_is_dir(r->inode))", "== FSD_OP_DIR && false)"),
    ("an open removed directory keeps its parent", "fsd/dir.c",
     "inode->dir.parent = inode;", ";"),
    ("a directory moves below itself", "fsd/dir.c",
     "if (is_ancestor(a->inode, to))", "if (false)"),
    ("a directory with names is removed", "fsd/dir.c",
     "if (name->inode->dir.names)\n\t\treturn -ENOTEMPTY;\n\tremove", "remove"),
    ("a moved directory counts for its old parent", "fsd/dir.c",
     "\tfrom->nlink--;\n\tto->nlink++;", "\tto->nlink++;"),
    ("locks of all clients end with one", "fsd/lock.c",
     "if (lock->client != client)\n\t\t\tcontinue;", ";"),
    ("equal owners of two clients are one", "fsd/lock.c",
     "return a->client == b->client && a->owner", "return a->owner"),
    ("a lock cut in two keeps its end", "fsd/lock.c",
     "lock->end = new->start - 1;", "lock->end = new->start;"),
    ("a waiter outlives its client", "fsd/lock.c",
     "if (wait->inode == inode)\n\t\t\twait_end(wait, -EINTR);", ";"),
    ("a truncated block keeps its tail", "fsd/data/file.c",
     "zero(fsd, inode, size, block_end(size));", ";"),
    ("freed blocks are used again as they are", "fsd/data/space.c",
     "memset(fsd_space_memory(space, extent.volume), 0, extent.length);", ";"),
    ("a split leaf loses its last extent", "fsd/data/map.c",
     "right->nr = left->nr - slot;", "right->nr = left->nr - slot - (left->nr - slot > 1);"),
    ("the list of attributes has no bound", "fsd/xattr.c",
     "if (!old && list_bytes(inode) + name.length + 1 > FS_XATTR_MAX)", "if (false)"),
    ("a file is freed while another has it open", "fsd/handle.c",
     "\tinode->opens--;\n\tif (!--handle->opens)", "\tinode->opens = 0;\n\tif (!--handle->opens)"),
    ("a control message's length is believed", "wire/control.c",
     "|| h.length != length - sizeof(h))", ")"),
    ("a region's name has no bound", "wire/control.c",
     "if (length > WIRE_CONTROL_NAME_MAX ||", "if ("),
    ("an entry beyond the list is read", "wire/control.c",
     "|| at + sizeof(*out) > length)", ")"),
    ("a handshake's length is believed", "wire/handshake.c",
     " || head.length != length)", ")"),
    ("more slots are given back than there are", "wire/exchange.c",
     "if (length < head || length > sizeof(gives))", "if (length < head)"),
    ("credits beyond the buffers", "core/link/credit.c",
     "|| credits > credit->theirs - credit->spendable)", ")"),
    ("a donor's extents overlap", "apps/mount/inode/map.c",
     "% FS_BLOCK || e.offset < last ||", "% FS_BLOCK ||"),
    ("a donor's map is longer than its reply", "apps/mount/inode/map.c",
     "map->extents <= (length - sizeof(*map)) / sizeof(struct wire_fs_extent) &&", "true &&"),
    ("an entry's name is longer than its reply", "apps/mount/fuse/dir.c",
     " || *bytes > left)", ")"),
    ("names that only root may see are shown", "apps/mount/fuse/xattr.c",
     "if (name >= strlen(TRUSTED) &&", "if (at &&"),
    ("an unloaded write goes to another client's memory", "core/unload/umtt.c",
     "entry->owner != owner", "false"),
    ("a slot that is free is returned", "core/slots/slot_bitmap.c",
     "|| !(full_slots(o, slot / 64) & mask_of(slot)))", ")"),
    ("a ring's address wraps", "wire/mux.c",
     "return !(m->value & (m->value - 1)) && m->position + m->value > m->position;",
     "return !(m->value & (m->value - 1));"),
    ("an attribute of a newer module is stored", "apps/blk/netlink.c",
     "if (type > WEIR_BLK_ATTRIBUTE_MAX)", "if (false)"),
    ("private data beyond the message", "softnic/cm/msg.c",
     "wire->private_len <= cm_msg_private_max(wire->type) &&", ""),
]

# Percent of a file's lines that the targets reach.
FLOORS = {
    "fsd/client.c": 80, "fsd/data/file.c": 90, "fsd/data/map.c": 90, "fsd/data/space.c": 90,
    "fsd/dir.c": 85, "fsd/handle.c": 80, "fsd/lock.c": 90, "fsd/op.c": 90, "fsd/request.c": 95,
    "fsd/xattr.c": 90, "wire/control.c": 65, "wire/exchange.c": 80, "wire/handshake.c": 75,
    "wire/mux.c": 85, "apps/mount/inode/map.c": 70, "apps/mount/fuse/dir.c": 90,
    "apps/blk/netlink.c": 45, "core/slots/slot_bitmap.c": 80, "core/unload/umtt.c": 90,
    "softnic/cm/msg.c": 90, "core/link/handshake.c": 80,
}


def read_targets(root, build):
    """The sources of each target, relative to ROOT, and the include folders and libraries."""
    sources, options = {}, set()
    for target in json.loads((build / "meson-info/intro-targets.json").read_text()):
        name = target["name"].removeprefix("drive_")
        if target["name"] == name or name not in TARGETS:
            continue
        paths = [pathlib.Path(os.path.normpath(path)) for group in target["target_sources"]
                 for path in group.get("sources", ())]
        sources[name] = [path.relative_to(root) for path in paths]
        options |= {option for group in target["target_sources"]
                    for option in group.get("parameters", ()) if option.startswith("-I/usr")}
    return sources, sorted(options)


class Copy(planted.Copy):
    def __init__(self, root, build, cc, folder):
        relative, options = read_targets(root, build)
        super().__init__(root, cc, folder, PARTS, [
            f"-I{folder}/include", "-fsanitize=address,undefined",
            "-fno-sanitize-recover=undefined", "--coverage", *options])
        self.targets = {name: [self.root / path for path in paths]
                        for name, paths in relative.items()}
        self.build({path for paths in self.targets.values() for path in paths})

    def target_fails(self, limit_s, name):
        """Return the output of a target that fails, or None."""
        program = self.link(self.targets[name], name + ".drive", *LIBRARIES)
        corpus = self.root / "tests/fuzz/corpus" / name
        run = planted.run_within(limit_s, program, "1", str(TARGETS[name]),
                                 *([corpus] if corpus.exists() else []))
        return run.stderr or "no output" if run.returncode else None

    def targets_of(self, name):
        """The targets that are made of a file."""
        path = str(self.root / name)
        return [target for target, paths in self.targets.items()
                if any(path in self.needs[source] for source in paths)]

    def coverage(self, name):
        """Percent of a file's lines that ran."""
        path = self.root / name
        run = subprocess.run(["gcov", "-n", "-o", path.parent, path], cwd=self.root, check=True,
                             capture_output=True, text=True)
        found = re.search(rf"File '{re.escape(str(path))}'\nLines executed:([\d.]+)%", run.stdout)
        return float(found[1]) if found else 0.0


LIBRARIES = ("-lsodium", "-lfuse3", "-lisal", "-lmnl", "-lpthread")


def limits_of_clean(copy):
    """Run each target with nothing planted. Return the CPU seconds that it may use."""
    limits_s = {}
    for name in copy.targets:
        began_s = planted.cpu_seconds()
        output = copy.target_fails(planted.LONG_S, name)
        if output:
            sys.exit(f"{output}\n{name}: fails with nothing planted")
        limits_s[name] = SPARE_S + int(HANG * (planted.cpu_seconds() - began_s))
    return limits_s


def floors_missed(copy, cc):
    if "gcc" not in " ".join(cc):
        return []
    found = {name: copy.coverage(name) for name in FLOORS}
    for name, percent in sorted(found.items()):
        print(f"{name}: {percent:.0f} % of its lines", flush=True)
    return [name for name, percent in found.items() if percent < FLOORS[name]]


def main(root, build, cc):
    planted.check_patterns(root, MISTAKES)
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(root, build, cc, folder)
        limits_s = limits_of_clean(copy)
        low = floors_missed(copy, cc)
        missed = planted.search([copy], MISTAKES, lambda copy, name: next(
            (f"target {target}" for target in copy.targets_of(name)
             if copy.target_fails(limits_s[target], target)), None))
    for name in low:
        print(f"{name}: the targets reach less than {FLOORS[name]} % of its lines")
    found = len(MISTAKES) - len(missed)
    print(f"{found} of {len(MISTAKES)} mistakes found; {FOUND_MIN} are needed")
    return 1 if low or found < FOUND_MIN else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]))
