# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests that a debug kernel reports the mistakes of tests/kernel/mistake.c, and runs checkpatch of
the kernel's sources on the modules."""
import glob
import os
import shlex
import subprocess
import tempfile
import time

from machine import Machine, prepare, read, say, write

# Each mistake, and the kernel's report. A guest makes all of them, in this order: lockdep is silent
# after its first report (a mutex behind a spinlock is a second), and after memory errors.
SAID = {
    "locks": "WARNING: possible circular locking dependency detected",
    "sleep": "BUG: sleeping function called from invalid context",
    "memory": "BUG: KASAN: ",
}
LIMIT_SECONDS = 600
MODULES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../kernel")
# compat.h tests versions; and checkpatch checks line lengths of whole files only on request.
STYLE = (("--ignore", "LINUX_VERSION_CODE,CONSTANT_COMPARISON"),
         ("--strict", "--types", "LONG_LINE,LONG_LINE_COMMENT"))


def check(report, of, modules):
    """Adds to @report whether kernel @of reports each mistake and blames the module; @modules
    contains weir_mistake.ko."""
    begin = time.monotonic()
    module = shlex.quote(os.path.join(modules, "weir_mistake.ko"))
    with tempfile.TemporaryDirectory(prefix="weir-vm-") as job:
        write(os.path.join(job, "run.alone"),
              "".join(f"insmod {module} what={what}; rmmod weir_mistake\n" for what in SAID))
        machine = Machine(prepare(of), job)
        machine.start()
        while machine.is_running() and time.monotonic() - begin < LIMIT_SECONDS:
            time.sleep(0.2)
        machine.stop()
        unseen = [what for what, said in SAID.items()
                  if not any(said in str(complaint) and complaint.is_ours
                             for complaint in machine.complaints())]
        report.add("mistakes are found", "FAIL" if unseen else "OK", time.monotonic() - begin,
                   machine.cpu_seconds(), " ".join(["not seen:", *unseen]) if unseen else "")
        if unseen:
            say("the guest's console", read(machine.console))


def check_style(report, of):
    """Adds to @report whether checkpatch of kernel @of has no complaints."""
    begin = time.monotonic()
    script = os.path.join(of.headers, "scripts/checkpatch.pl")
    files = sorted(glob.glob(os.path.join(MODULES, "**/*.[ch]"), recursive=True))
    said = b"".join(
        subprocess.run(["perl", script, "--no-tree", "--terse", "--no-summary",
                        "--max-line-length=100",
                        *options, "--file", *files], capture_output=True, check=False).stdout
        for options in STYLE)
    report.add("checkpatch", "FAIL" if said else "OK", time.monotonic() - begin)
    if said:
        say("checkpatch", said)
