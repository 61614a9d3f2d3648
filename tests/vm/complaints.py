# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a kernel that looks for mistakes says of them, and whether they are weir's.

They are where one of weir's modules is in a stack of the report: of who erred, or of who allocated
or freed the memory. What an interrupt interrupted did not err, even if that was a work item of
weir's; nor did what the kernel marks with "?": addresses that lie on the stack and that nobody
returns to.
"""
import collections
import re

# The first line of a report; what follows until the next one belongs to it. "INFO: lockdep is
# turned off" is said within others.
BEGINS = re.compile(r"BUG[: ]|WARNING:|INFO: (?!lockdep)|ODEBUG:|Oops|Kernel panic|"
                    r"general protection fault")
# As is what begins so, and is none: who wanted memory was refused it.
REFUSED = re.compile(r"page allocation failure|vmalloc error|Unable to allocate memory|FAULT_INJECTION: ")
# "function+0x1/0x2 [module]".
OURS = re.compile(r"\[weir\w*\]")
# tests/vm/guest says so in the end.
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


def of_log(text):
    """The complaints in what a kernel said, in order."""
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
    """Each kind of them: how often, whose, and the first one whole."""
    kinds = collections.defaultdict(list)
    for complaint in complaints:
        kinds[complaint.is_ours, str(complaint)].append(complaint)
    parts = []
    for (is_ours, _), alike in sorted(kinds.items(), key=lambda kind: not kind[0][0]):
        parts.append(f"{len(alike)} of {'weir' if is_ours else 'others'}; the first:")
        parts += alike[0].lines
    return "\n".join(parts)
