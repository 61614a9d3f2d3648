#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Plant single mistakes in softnic's handling of passed descriptors. A test must find each.

planted_test.py ROOT BUILD CC

A mistake may make a test wait for ever, without CPU time. So a test has a limit on wall time, long
compared with the clean test's time. BUILD has the libraries for the rest of softnic.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import planted  # noqa: E402

APART = pathlib.Path(__file__).resolve().parents[2] / "support/apart"
PARTS = ("fd", "softnic", "tests/softnic/shm", "tests/support")
SOURCES = ("fd/closer.c", "fd/leaver.c", "fd/passed_fd.c", "softnic/shm/shared.c")
# The fastest first, each with the sources for mistakes.
TESTS = {"message_test": SOURCES, "slow_close_test": SOURCES, "leaver_test": ("fd/leaver.c",)}
LIBRARIES = ("tests/support/libtest-support.a", "softnic/roce/libroce.a",
             "softnic/roce_cm/libroce_cm.a", "softnic/seal/libseal.a", "softnic/libsoftnic-stat.a")
# A test hangs if it takes HANG times its time on clean files and SPARE_S more.
HANG, SPARE_S = 3, 25

# Each mistake: the symptom, the file, the original line, the planted line.
MISTAKES = [
    ("a foreign descriptor is closed at once", "fd/passed_fd.c",
     "\telse if (!is_any_socket(fd) || !leaver_give(fd))\n\t\tcloser_give(fd);",
     "\telse\n\t\tclose(fd);"),
    ("a foreign socket is closed by a thread for files", "fd/passed_fd.c",
     "!is_any_socket(fd) || !leaver_give(fd)", "true"),
    ("a foreign pipe is closed by a thread for sockets", "fd/passed_fd.c",
     "!is_any_socket(fd) || !leaver_give(fd)", "!leaver_give(fd)"),
    ("unread descriptors are closed with their socket", "fd/passed_fd.c",
     "} while (i < QUEUED_MAX && drop(socket) && ++i);", "} while (false);"),
    ("an empty message hides the next", "fd/passed_fd.c",
     "return message.msg_controllen;", "return n > 0;"),
    ("unaccepted connections are closed with their listener", "fd/passed_fd.c",
     "is_listener ? drop_connection : drop_message;", "drop_message;"),
    ("descriptors arrive where none is due", "fd/passed_fd.c",
     "|| !brings_descriptors(socket, flags))", "|| true)"),
    ("descriptors arrive while too many wait", "fd/passed_fd.c",
     "(has_room && !closer_is_full())", "has_room"),
    ("connections arrive while too many descriptors wait", "fd/passed_fd.c",
     "\tif (!closer_is_full())\n\t\treturn accept4", "\tif (true)\n\t\treturn accept4"),
    ("descriptors beyond the room stay open", "fd/passed_fd.c",
     "\t\t\telse\n\t\t\t\tpassed_fd_close(fd);", ""),
    ("an exiting thread shares the keeper's table", "fd/leaver.c",
     "if (leave_table(KEEPER_SOCKET + 1))", "if (true)"),
    ("the keeper shares the process's table", "fd/leaver.c",
     "has_table = leave_table(0),", "has_table = true,"),
    ("the process keeps the socket open", "fd/leaver.c",
     "\t\tclose(socket); /* before", "\t\t/* before"),
    ("strangers send to the process's socket", "fd/leaver.c",
     "syscall(SYS_shutdown, fd, SHUT_RD)", "0"),
    ("a child closes an unknown number", "fd/leaver.c",
     "\t\tpthread_mutex_unlock(&lock);\n\t\tif (to_keeper >= 0)\n\t\t\tclose(to_keeper);\n\t}",
     "\t\tpthread_mutex_unlock(&lock);\n\t}\n\tif (to_keeper >= 0)\n\t\tclose(to_keeper);"),
    ("threads are tried for ever", "fd/leaver.c",
     "&& failures < LEAVER_FAILURES_MAX", ""),
    ("an idle keeper stays", "fd/leaver.c",
     "\tk->ends = true;\n", ""),
    ("a refused message leaves its descriptors", "softnic/shm/shared.c",
     "\tif (fds)\n\t\tshm_msg_close_fds(fds);\n\tif (n == 0)", "\tif (n == 0)"),
    ("a message with too many descriptors is taken", "softnic/shm/shared.c",
     "msg.msg_flags |= MSG_CTRUNC;", ";"),
    ("a message of another version is taken", "softnic/shm/shared.c",
     "m->magic == SHARED_MAGIC && m->version == SHARED_VERSION)\n\t\treturn 0;",
     "m->magic == SHARED_MAGIC)\n\t\treturn 0;"),
    ("room for descriptors where none is due", "softnic/shm/shared.c",
     ".msg_control = fds ? &control : NULL,\n\t\t.msg_controllen = fds ? sizeof(control) : 0,",
     ".msg_control = &control,\n\t\t.msg_controllen = sizeof(control),"),
    ("a process of another user is believed", "softnic/shm/shared.c",
     "return cred.uid == geteuid();", "return true;"),
]


class Copy(planted.Copy):
    def __init__(self, root, build, cc, folder):
        super().__init__(root, cc, folder, PARTS,
                         ["-D_FILE_OFFSET_BITS=64", "-I/usr/include/libnl3", "-pthread"])
        self.archive = build / "softnic/libsoftnic.a"
        self.libraries = [build / name for name in LIBRARIES]
        self.build([self.root / name for name in SOURCES] +
                   [self.root / f"tests/softnic/shm/{test}.c" for test in TESTS])

    def fails(self, test, limit_s):
        """Whether a test fails, or hangs. The objects here replace those of the library.

        In a network of its own, since softnics of other tests would connect.
        """
        program = self.link(
            [self.root / name for name in (f"tests/softnic/shm/{test}.c", *TESTS[test])], test,
            "-Wl,--allow-multiple-definition", "-Wl,--whole-archive", self.archive,
            "-Wl,--no-whole-archive", "-Wl,--start-group", *self.libraries, "-Wl,--end-group",
            "-lcmocka", "-lsodium", "-ldl")
        with subprocess.Popen([APART, "net", program], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, start_new_session=True, text=True,
                              errors="replace") as run:
            try:
                output = run.communicate(timeout=limit_s)[0]
            except subprocess.TimeoutExpired:
                output = "it hangs"
                os.killpg(run.pid, 9)
        return output if run.returncode else None


def limits_of_clean(copy):
    """Run each test with nothing planted. Return the seconds that each may take."""
    limits_s = {}
    for test in TESTS:
        began_s = time.monotonic()
        output = copy.fails(test, planted.LONG_S)
        if output:
            sys.exit(f"{output}\n{test}: fails with nothing planted")
        limits_s[test] = SPARE_S + HANG * (time.monotonic() - began_s)
    return limits_s


def main(root, build, cc):
    planted.check_patterns(root, MISTAKES)
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(root, build, cc, folder + "/0")
        limits_s = limits_of_clean(copy)
        copies = [copy, *(copy.clone(f"{folder}/{number}")
                          for number in range(1, os.cpu_count()))]
        missed = planted.search(copies, MISTAKES, lambda copy, name: next(
            (test for test, sources in TESTS.items()
             if name in sources and copy.fails(test, limits_s[test])), None))
    return 1 if missed else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]))
