# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A large message of the first class."""

from lab.experiment import MODEL, Why
from lab.figures import avatar_fig7 as fig7

NAME = "avatar-fig8"
TITLE = "how long a large message of the first class takes beside a lower one's"
VARIED = (
    "size of the messages in the background, of a lower class; 1 MB at a time in the foreground"
)
PROFILE = "connectx-5-edr"

PAPER_NATIVE, PAPER_AVATAR = [170, 185, 228], [115, 116, 118]  # medians, read off by eye

STRICT = Why(
    "the modelled NIC keeps its classes apart, a quantum at a time, so that a message of the first "
    "class hardly waits for the "
    "lower's, however long those are; in the paper native is the later the longer they are",
    MODEL,
)


def run(sim):
    return fig7.outcome(sim, NAME, True, (PAPER_NATIVE, PAPER_AVATAR), fig7.WHY, STRICT)
