# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Whether a kernel that looks for mistakes finds them: those of tests/kernel/mistake.c."""
import os
import shlex
import tempfile
import time

from machine import Machine, prepare, read, say, write

# A mistake, and what is said of it. A guest makes all of them, in this order: lockdep says nothing
# more after its first report (a mutex behind a spinlock is another), or once memory has been
# misused.
SAID = {
    "locks": "WARNING: possible circular locking dependency detected",
    "sleep": "BUG: sleeping function called from invalid context",
    "memory": "BUG: KASAN: ",
}
LIMIT_SECONDS = 600


def check(report, of, modules):
    """Adds to @report whether kernel @of finds each, and it is seen whose it is; @modules has
    weir_mistake.ko."""
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
