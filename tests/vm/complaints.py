# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Finds reports of a debug kernel, and decides whether they concern weir.

A report concerns weir if a module of weir is in one of its stacks: of the faulty code, or of the
allocation or release of the memory. Frames below an interrupt do not count, not even those of
weir's work items; neither do frames that the kernel marks with "?", which are stale addresses on
the stack.
"""
import collections
import re

# First line of a report, which extends to the next first line. "INFO: lockdep is turned off" occurs
# within other reports.
BEGINS = re.compile(r"BUG[: ]|WARNING:|INFO: (?!lockdep)|ODEBUG:|Oops|Kernel panic|"
                    r"general protection fault")
# Looks like a report but is none: a failed allocation.
REFUSED = re.compile(
    r"page allocation failure|vmalloc error|Unable to allocate memory|FAULT_INJECTION: "
)
# "function+0x1/0x2 [module]".
OURS = re.compile(r"\[weir\w*\]")
# Printed at the end by tests/vm/guest.
LOCKDEP_IS_OFF = "weir-vm: lockdep has given up"


class Complaint:
    def __init__(self, line):
        self.lines = [line]

    def of_who_erred(self):
        interrupted = False
        for line in self.lines:
            text = line.strip()
            if text == "</IRQ>":
                interrupted = True
            elif text == "</TASK>":
                interrupted = False
            elif not interrupted and not text.startswith(("? ", "Workqueue: ")):
                yield text

    @property
    def is_ours(self):
        return any(OURS.search(line) for line in self.of_who_erred())

    def __str__(self):
        return self.lines[0].strip()


def is_hang_of_others(text):
    """Did a CPU hang, by a kernel log, in code that no module of weir has called? Soft-RoCE and the
    emulator can do so. All frames count: the watchdog's interrupt lies above those of the hang."""
    hangs = [report for report in of_log(text) if "softlockup" in report.lines[0]]
    return bool(hangs) and not any(
        OURS.search(line) and not re.match(r"(\[ *[0-9.]+\] *)?\? ", line.strip())
        for hang in hangs for line in hang.lines)


def of_log(text):
    """The reports in a kernel log, in order."""
    found, last = [], None
    for line in text.splitlines():
        if BEGINS.search(line):
            last = Complaint(line)
            found.append(last)
        elif REFUSED.search(line):
            last = None
        elif last:
            last.lines.append(line)
    return found


def summary(complaints):
    """Each kind of report: how often, whose, and the first in full."""
    kinds = collections.defaultdict(list)
    for complaint in complaints:
        kinds[complaint.is_ours, str(complaint)].append(complaint)
    parts = []
    for (is_ours, _), alike in sorted(kinds.items(), key=lambda kind: not kind[0][0]):
        parts.append(f"{len(alike)} of {'weir' if is_ours else 'others'}; the first:")
        parts += alike[0].lines
    return "\n".join(parts)
