#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Plant mistakes in the journal of a file server: one of its tests must find each.

planted_test.py ROOT CC...
"""
import pathlib
import sys
import tempfile
import unittest

ROOT, CC = pathlib.Path(sys.argv[1]), sys.argv[2:]
sys.path.insert(0, str(ROOT))
from tests.support import planted  # noqa: E402

SERVICE, LOG, FILE = "fsd/journal/service.c", "fsd/journal/log.c", "fsd/data/file.c"
CHECKPOINT, TRANSFER = "fsd/journal/checkpoint.c", "fsd/data/transfer.c"
CALLS, RECOVER = "fsd/journal/calls.c", "fsd/journal/recover.c"

# (what is wrong, the file, the line, the line with the mistake)
BUGS = [
    ("a reply before the log has its request", SERVICE,
     "rc = fsd_log_append(&s->log, &s->batch);", "rc = 0;"),
    ("a torn batch counts", LOG,
     "if (!rc && sum(head, pages.at + sizeof(head)) != head.crc)", "if (0)"),
    ("a batch of an earlier log counts", LOG, " && head->salt == log->salt;", ";"),
    ("a damaged batch ends the log", LOG, "head.number > log->next)", "false)"),
    ("a torn batch damages the log", LOG, "head.number > log->next)", "true)"),
    ("a checkpoint counts before it is written", CHECKPOINT,
     "rc = write_state(disk, offset + FSD_DISK_PAGE, state);\n\tif (rc)\n\t\treturn rc;", ""),
    ("a checkpoint overwrites the newest", CHECKPOINT,
     "layout->checkpoint[generation % 2];", "layout->checkpoint[0];"),
    ("a call that is repeated runs again", SERVICE,
     "call = fsd_calls_find(mount, in->number);", "call = NULL;"),
    ("a checkpoint forgets replies", RECOVER,
     "int rc = fsd_calls_save(&s->calls, &state);",
     "struct fsd_calls none = { 0 };\n\tint rc = (fsd_calls_init(&none), "
     "fsd_calls_save(s->generation ? &none : &s->calls, &state));"),
    ("a replay moves bytes", RECOVER, "if (s->replays)\n\t\treturn;",
     "if (s->replays && piece->kind == FSD_DATA_ZERO) { static struct fsd_call c; c.to = NULL; "
     "uint8_t z[4096] = { 0 }; s->host.disk.write(s->host.disk.arg, "
     "(piece->volume + s->layout.data) / 4096 * 4096, z, 4096); } if (s->replays) return;"),
    ("freed blocks are used before the log has them", SERVICE,
     "return s->has_freed || s->error ?", "return s->error ?"),
    ("new blocks keep what they held", TRANSFER, "from = start - head;", "from = start;"),
    ("new blocks keep what they held at their end", TRANSFER,
     "to = (end + FS_BLOCK - 1) / FS_BLOCK * FS_BLOCK;", "to = end;"),
    ("a server that takes over holds all space for free", "fsd/image/load.c",
     "size_t nr = l->used.length / sizeof(*used);", "size_t nr = 0;"),
    ("a file grows over old bytes", FILE,
     "zero(fsd, inode, inode->size, size < end ? size : end);", ";"),
    ("a reply says more than the volume has", RECOVER, "at.volume += s->layout.data;",
     "at.volume += s->layout.data + FS_BLOCK * (call && call->number % 64 == 63);"),
    ("a call repeated while its bytes move is not answered first", SERVICE,
     "if (is_due(s, &in))\n\t\trc = fsd_service_commit(s);", ""),
    ("a write without its bytes is in the log", SERVICE,
     "if (call->status && !call->looks)", "if (0)"),
    ("a record has the answered calls of its message", SERVICE,
     "record.answered = call->mount->answered;", "record.answered = in.answered;"),
    ("the reply of a lock is forgotten with others", CALLS,
     "(call->number < call->mount->answered && !call->awaits_lock)",
     "call->number < call->mount->answered"),
    ("a checkpoint takes a call that awaits a lock for another", CALLS,
     "(call->awaits_lock ? SAVED_AWAITS_LOCK : 0)",
     "(call->state == FSD_CALL_WAITS ? SAVED_AWAITS_LOCK : 0)"),
    ("the next server keeps replies of locks that the mount has", SERVICE,
     "if (in->late && fsd_calls_forget_late(mount, in->late))\n\t\tput_record(",
     "if (in->late && fsd_calls_forget_late(mount, in->late) && 0)\n\t\tput_record("),
    ("replies fill a checkpoint", SERVICE, "return common <= room / 2;", "return true;"),
    ("a log of another version is repeated", LOG,
     "if (!rc && head.version != FSD_LOG_VERSION)", "if (0)"),
    ("an orderly end leaves the log", SERVICE,
     "return rc || !s->log.end ? rc : fsd_service_checkpoint(s);", "return rc;"),
    ("the end of a mount is answered before the log has it", SERVICE,
     "if (rc >= 0)\n\t\trc = fsd_service_commit(s);\n\tif (rc >= 0)\n\t\trefuse(",
     "if (rc >= 0)\n\t\trefuse("),
]


class Planted(unittest.TestCase):
    def test_each_mistake_is_found(self):
        with tempfile.TemporaryDirectory() as root:
            copy = planted.Copy(ROOT, CC, root,
                                ["fsd", "wire", "core", "include", "tests/fsd/journal"],
                                [f"-I{root}/include"])
            folder = copy.root / "tests/fsd/journal"
            tests = sorted(folder.glob("*_test.c"))
            shared = [*(copy.root / "fsd").rglob("*.c"), *(set(folder.glob("*.c")) - set(tests))]
            copy.build(shared + tests)

            def fails():
                for test in tests:
                    program = copy.link([*shared, test], "program", "-lcmocka", "-lsodium",
                                        "-lisal")
                    if planted.run_within(120, str(program)).returncode:
                        return True
                return False
            self.assertFalse(fails())
            planted.check_patterns(copy.root, BUGS)
            for what, *mistake in BUGS:
                with self.subTest(what), copy.bug(*mistake):
                    self.assertTrue(fails())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
