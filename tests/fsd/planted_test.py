#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Plant mistakes in the leases of a file server: the test of leases must find each.

planted_test.py ROOT CC...
"""
import pathlib
import sys
import tempfile
import unittest

ROOT, CC = pathlib.Path(sys.argv[1]), sys.argv[2:]
sys.path.insert(0, str(ROOT))
from tests.support import planted  # noqa: E402

CLIENT, DEFERRED, REQUEST, OP = ("fsd/client.c", "fsd/deferred.c", "fsd/request.c", "fsd/op.c")

# (what is wrong, the file, the line, the line with the mistake)
BUGS = [
    ("a request beside the lease does not wait", REQUEST,
     "if (fsd_request_must_wait(client, message, length) ||", "if ("),
    ("a waiting request is retried before the lease is returned", DEFERRED,
     "if (fsd_request_must_wait(p->client, p->message, p->length)) {", "if (0) {"),
    ("a request that waits long for the lease has no time for memory", DEFERRED,
     "set_deadline(p); /* the wait for memory has not begun */\n\t\t\tcontinue;",
     "if (!is_hopeless(fsd, p))\n\t\t\t\tcontinue;\n\t\t\t"
     "fsd_client_answer(p->client, p->call, -ENOSPC);\n\t\t\tdeferred_end(p);\n\t\t\tcontinue;"),
    ("a client without knowledge of leases has one", CLIENT,
     "client->state != FSD_MOUNTED || !client->has_leases", "client->state != FSD_MOUNTED"),
    ("a client with an open file is quiet", CLIENT, "TAILQ_EMPTY(&client->handles) &&", "true &&"),
    ("a busy client is quiet", CLIENT, "client->active_ns + QUIET_NS <= now_ns", "true"),
    ("two have the lease", CLIENT, "client->state == FSD_MOUNTED && !client->caches &&",
     "client->state == FSD_MOUNTED &&"),
    ("the lease returns before the answer", CLIENT,
     "if (client->asked_to_share || client->fsd->host.data)", "if (client->fsd->host.data)"),
    ("the lease goes to its holder again while others wait", CLIENT,
     "if (!TAILQ_EMPTY(&fsd->deferred) || fsd->snapshot)", "if (fsd->snapshot)"),
    ("a silent holder keeps the lease", CLIENT,
     "client->caches = false;\n\t\t\trevoked = true;", "revoked = true;"),
    ("those that wait for a silent holder are not answered", CLIENT,
     "\tif (revoked)\n", "\tif (0)\n"),
    ("a recall that could not be sent is lost", CLIENT,
     "client->asked_to_share && !client->is_told)", "false)"),
    ("a recall is sent again and again", CLIENT,
     "client->is_told = !host->tell(", "client->is_told = false && !host->tell("),
    ("a holder that leaves is waited for", CLIENT,
     "\tfree(client);\n\tanswer_waiting(fsd);", "\tfree(client);"),
    ("a client has less room for waiting requests than calls", DEFERRED,
     "client->nr_deferred < DEFERRED_MAX", "client->nr_deferred < DEFERRED_MAX / 2"),
    ("a request about nothing leased recalls the lease", OP,
     "sizeof(struct wire_fs_head), FSD_OP_LOOKS | FSD_OP_APART }",
     "sizeof(struct wire_fs_head), FSD_OP_LOOKS }"),
]


class Planted(unittest.TestCase):
    def test_each_mistake_is_found(self):
        with tempfile.TemporaryDirectory() as root:
            copy = planted.Copy(ROOT, CC, root, ["fsd", "wire", "core", "include", "tests/fsd"],
                                [f"-I{root}/include"])
            folder = copy.root / "tests/fsd"
            sources = [*(copy.root / "fsd").rglob("*.c"), folder / "host.c",
                       folder / "lease_test.c"]
            copy.build(sources)

            def fails():
                program = copy.link(sources, "program", "-lcmocka", "-lsodium", "-lisal")
                return planted.run_within(120, str(program)).returncode != 0
            self.assertFalse(fails())
            planted.check_patterns(copy.root, BUGS)
            for what, *mistake in BUGS:
                with self.subTest(what), copy.bug(*mistake):
                    self.assertTrue(fails())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
