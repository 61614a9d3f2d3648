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
TARGETS = {"batch_reply": 300, "blk_netlink": 400, "control": 400, "cm_msg": 400,
           "fs_batch": 150, "fs_request": 120, "handshake": 400,
           "mount_reply": 300, "mux": 1500, "netlink_serve": 400, "roce_mad": 1000,
           "roce_packet": 1000, "seal": 1000, "sealed": 500, "slots": 500,
           "softnic_message": 800, "unload": 500}
# Of softnic's own target, only these files are compiled here, with sanitizers. The rest is BUILD's
# library.
SOFTNIC = ("fd/passed_fd.c", "softnic/qp/gate.c", "softnic/qp/remote_qp.c", "softnic/rq/rq.c",
           "softnic/shm/client.c", "softnic/shm/peer.c", "softnic/shm/peer_map.c",
           "softnic/shm/server.c", "softnic/shm/shared.c")
SOFTNIC_LIBRARY = "softnic/libsoftnic.a"
PARTS = ("apps", "core", "fd", "fsd", "include", "lib", "softnic", "tests/fuzz", "wire")
# A target hangs if it uses HANG times its CPU time on clean files and SPARE_S more.
HANG, SPARE_S = 5, 2
# A run under load found 80. Timing of an engine thread may decide about some of the others.
FOUND_MIN = 78

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
     "if (wait->wanted.client == client)\n\t\t\twait_end(wait, -EINTR);", ";"),
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
    ("a rejection's length is believed", "wire/handshake.c",
     "memcpy(&reject, data, length < sizeof(reject) ? length : sizeof(reject));",
     "memcpy(&reject, data, sizeof(reject));"),
    ("more slots are given back than there are", "wire/exchange.c",
     "if (length < head || length > sizeof(gives))", "if (length < head)"),
    ("credits beyond the buffers", "core/link/credit.c",
     "|| credits > credit->theirs - credit->spendable)", ")"),
    ("a batch that is sent again takes effect again", "fsd/batch/batch.c",
     "\tr->client->batch++;", "\t;"),
    ("names change after the right to has gone", "fsd/request.c",
     "if (r->is_lease && !r->client->caches)", "if (false)"),
    ("a batch goes on after a name that failed", "fsd/batch/batch.c",
     "return is_cut || (result.status && part.is_lease);", "return false;"),
    ("a directory is made with any number", "fsd/batch/batch.c",
     "if (name->ino < r->client->first_number || name->ino >= r->client->end_number)",
     "if (!name->ino)"),
    ("a change is longer than its batch", "fsd/batch/batch.c",
     "if (bytes > rest->length)", "if (false)"),
    ("a result is longer than attributes", "apps/mount/donor/change_log.c",
     "if (result.length > sizeof(struct wire_fs_attr) ||", "if ("),
    ("a lost name ends nothing", "apps/mount/donor/change_log.c",
     "\tlog->settled += log->flying;", "\tlog->settled += failed ? 0 : log->flying;"),
    ("a reserved file has a longer map than fits", "apps/mount/donor/reserve.c",
     "if (map.extents > FS_FIRST_BYTES / FS_BLOCK)", "if (map.extents > 64)"),
    ("a donor's extents overlap", "apps/mount/inode/map.c",
     "% FS_BLOCK || e.offset < last ||", "% FS_BLOCK ||"),
    ("a donor's map is longer than its reply", "apps/mount/inode/map.c",
     "map->extents <= (length - sizeof(*map)) / sizeof(struct wire_fs_extent) &&", "true &&"),
    ("an entry's name is longer than its reply", "apps/mount/fuse/dir.c",
     " || *bytes > left)", ")"),
    ("names that only root may see are shown", "apps/mount/fuse/xattr.c",
     "if (name >= begin_length &&", "if (at &&"),
    ("a sealed block opens in another place", "lib/sealed/slot.c",
     "htole64(place->block) },", "htole64(place->block / 2) },"),
    ("a sealed block opens in another file", "lib/sealed/slot.c",
     "{ htole64(place->object),", "{ 0,"),
    ("a sealed block is longer than its place", "lib/sealed/slot.c",
     "if (length <= room && weir_slot", "if (weir_slot"),
    ("the generation of a sealed block is believed", "lib/sealed/slot.c",
     "memcpy(extra->header, header, sizeof(extra->header));", "(void)header;"),
    ("bytes without a trailer are a block never written", "lib/sealed/slot.c",
     "!memcmp(stored, never.text, room);", "(stored || room);"),
    ("a sealed block that is refused leaves its bytes", "lib/sealed/slot.c",
     "\tmemset(text, 0, WEIR_SEALED_BLOCK);\n\treturn rc;", "\treturn rc;"),
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
    ("a MAD's additional information has no bound", "softnic/roce_cm/mad.c",
     "if (read.info_bytes > ROCE_MAD_INFO_MAX)", "if (false)"),
    ("a MAD names a connection beyond the table", "softnic/roce_cm/receive.c",
     "if (place >= cm->nr_conns || !is_from(conn, path) || conn->local_id != m->remote_id ||",
     "if (!is_from(conn, path) || conn->local_id != m->remote_id ||"),
    ("a packet's padding is longer than its payload", "softnic/roce/packet.c",
     "if (pad > payload || payload % 4 ||", "if (payload % 4 ||"),
    ("a message is longer than its receive", "softnic/roce/responder.c",
     "if (p->payload_bytes > r->room - r->offset) {", "if (false) {"),
    ("a write is longer than it has said", "softnic/roce/responder.c",
     "if (p->payload_bytes > r->length - r->offset)", "if (false)"),
    ("a sealed packet is accepted twice", "softnic/seal/seal.c",
     "return s->highest - counter < SEAL_WINDOW && !(*word_of(s, counter) & bit_of(counter));",
     "return s->highest - counter < SEAL_WINDOW;"),
    ("an answer without a proof is believed", "softnic/seal/agree.c",
     "if (sodium_calls()->crypto_verify_32(a->peer_proof, m->proof))", "if (false)"),
    ("anybody ends an agreement", "softnic/seal/agree.c",
     "m->psn == a->send_psn &&\n\t    !memcmp(m->public, a->public, sizeof(a->public)))",
     "true)"),
    ("a message in another's name ends a queue pair", "softnic/shm/server.c",
     "if (!qp || server_find_client(qp, m->from) != g)", "if (!qp)"),
    ("a process claims the slot of another", "softnic/shm/server.c",
     "!g->doorbell_page && has_slot(g, slot);", "!g->doorbell_page;"),
    ("a process greets twice", "softnic/shm/server.c",
     "slot < SOFTNIC_SLOTS && !g->doorbell_page &&", "slot < SOFTNIC_SLOTS &&"),
    ("a file goes to a process without a queue pair", "softnic/shm/server.c",
     "if (g->is_admitted && g->may_trace)", "if (true)"),
    ("the questions of a client outlive it", "softnic/shm/server.c",
     "\tclient_drop_lookups(g);\n", ""),
    ("a queue pair goes to another slot's process", "softnic/shm/client.c",
     "else if (m->from >> SOFTNIC_QP_INDEX_BITS != g->slot)", "else if (false)"),
    ("a queue pair goes to one that it is not connected to", "softnic/shm/client.c",
     "else if (qp->attr.dest_qp_num != m->from)", "else if (false)"),
    ("a queue pair goes to a process without doorbells", "softnic/shm/client.c",
     "if (!rc && !g->doorbell_page)", "if (false)"),
    ("a last netlink message is followed by another", "softnic/netlink/serve.c",
     "if (bytes > *left)", "if (false)"),
    ("a queue pair is given before its gate opens", "softnic/shm/client.c",
     "if (!rc && gate_is_closed(qp))", "if (false)"),
    ("datagrams give memory away", "softnic/shm/client.c",
     "return !qp_is_datagram(qp) && !gate_is_closed(qp);", "return !gate_is_closed(qp);"),
    ("a gate takes messages in another's name", "softnic/qp/gate.c",
     "!qp->gate.is_present || qp->attr.dest_qp_num != m->from)", "!qp->gate.is_present)"),
    ("a message to a gate brings fewer bytes than it says", "softnic/shm/shared.c",
     "m->value <= SHM_MSG_BYTES_MAX && n == sizeof(*m) + m->value;", "true;"),
    ("a queue pair before the welcome", "softnic/shm/peer.c",
     "m.type == MSG_QP && p->state == PEER_READY)", "m.type == MSG_QP)"),
    ("a region lies beyond its file", "softnic/shm/peer_map.c",
     "if (place->offset > file->size || length > file->size - place->offset)", "if (false)"),
    ("a file is shorter than its contents", "softnic/shm/shared.c",
     "|| (uint64_t)st.st_size < size_min)", ")"),
    ("a file without seals is mapped", "fd/passed_fd.c",
     "return seals >= 0 && (seals & F_SEAL_SHRINK) &&", "return"),
    ("more descriptors than there is room for", "fd/passed_fd.c",
     "if (nr < nr_max)", "if (true)"),
    ("a completion queue beyond the doorbells", "softnic/qp/remote_qp.c",
     "if (cq >= SHARED_CQS)", "if (false)"),
    ("guards beyond the segment", "softnic/qp/remote_qp.c",
     "if (guards.num > SHARED_GUARDS_MAX || first > room)", "if (false)"),
    ("a segment of another kind of queue pair", "softnic/qp/remote_qp.c",
     "if (load_relaxed(&s->type) != type_of(qp, r))", "if (false)"),
    ("a ring whose size is no power of two", "softnic/rq/rq.c",
     "return size <= max && !(size & (size - 1));", "return size <= max;"),
    ("a receive queue beyond the segment", "softnic/rq/rq.c",
     "||\n\t    rq_own_bytes(size, sges) > own_room)", ")"),
    ("a receive with more segments than there is room for", "softnic/rq/rq.c",
     "|| sges > SHARED_SGES_MAX ||", "||"),
]

# Percent of a file's lines that the targets reach.
FLOORS = {
    "fsd/client.c": 80, "fsd/data/file.c": 90, "fsd/data/map.c": 90, "fsd/data/space.c": 90,
    "fsd/dir.c": 85, "fsd/handle.c": 80, "fsd/lock.c": 90, "fsd/op.c": 90, "fsd/request.c": 95,
    "fsd/xattr.c": 90, "wire/control.c": 65, "wire/exchange.c": 80, "wire/handshake.c": 75,
    "wire/mux.c": 85, "apps/mount/inode/map.c": 70, "apps/mount/fuse/dir.c": 90,
    "apps/blk/netlink.c": 45, "core/slots/slot_bitmap.c": 80, "core/unload/umtt.c": 90,
    "softnic/cm/msg.c": 90, "softnic/netlink/serve.c": 90, "core/link/handshake.c": 80,
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
        paths += map(pathlib.Path, target["extra_files"])
        sources[name] = [path.relative_to(root) for path in paths]
        if name == "softnic_message":
            sources[name] += map(pathlib.Path, SOFTNIC)
        options |= {option for group in target["target_sources"]
                    for option in group.get("parameters", ()) if option.startswith("-I/usr")}
    return sources, sorted(options)


class Copy(planted.Copy):
    def __init__(self, root, build, cc, folder):
        relative, options = read_targets(root, build)
        super().__init__(root, cc, folder, PARTS, [
            f"-I{folder}/include", "-fsanitize=address,undefined",
            "-fno-sanitize-recover=undefined", "--coverage", *options])
        self.libraries = {"softnic_message": [build / SOFTNIC_LIBRARY]}
        self.targets = {name: [self.root / path for path in paths]
                        for name, paths in relative.items()}
        self.build({path for paths in self.targets.values() for path in paths})

    def clone(self, root):
        other = super().clone(root)
        other.targets = {name: [other.moved(self, path) for path in paths]
                         for name, paths in self.targets.items()}
        return other

    def target_fails(self, limit_s, name, env=None):
        """Return the output of a target that fails, or None."""
        program = self.link(self.targets[name], name + ".drive", *self.libraries.get(name, ()),
                            *LIBRARIES)
        corpus = self.root / "tests/fuzz/corpus" / name
        run = planted.run_within(limit_s, program, "1", str(TARGETS[name]),
                                 *([corpus] if corpus.exists() else []), env=env)
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


# Where planted mistakes are searched, nobody reads what lines they reach.
NO_COVERAGE = {**os.environ, "GCOV_PREFIX": "/dev/null"}
LIBRARIES = ("-lsodium", "-lfuse3", "-lisal", "-lmnl", "-lpthread", "-ldl")


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
        copy = Copy(root, build, cc, folder + "/0")
        limits_s = limits_of_clean(copy)
        low = floors_missed(copy, cc)
        copies = [copy, *(copy.clone(f"{folder}/{number}")
                          for number in range(1, os.cpu_count()))]
        missed = planted.search(copies, MISTAKES, lambda copy, name: next(
            (f"target {target}" for target in sorted(copy.targets_of(name), key=limits_s.get)
             if copy.target_fails(limits_s[target], target, NO_COVERAGE)), None))
    for name in low:
        print(f"{name}: the targets reach less than {FLOORS[name]} % of its lines")
    found = len(MISTAKES) - len(missed)
    print(f"{found} of {len(MISTAKES)} mistakes found; {FOUND_MIN} are needed")
    return 1 if low or found < FOUND_MIN else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]))
