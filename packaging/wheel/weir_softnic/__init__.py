# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""softnic, an RDMA device in software, for any verbs program."""
import os
import pathlib

LIBRARY = pathlib.Path(__file__).resolve().parent / "libweir-softnic.so"


def environment(base=None):
    """Return a copy of an environment, by default of this process, with softnic preloaded."""
    base = dict(os.environ if base is None else base)
    others = [word for word in base.get("LD_PRELOAD", "").split(":") if word]
    if not any(word.endswith("/" + LIBRARY.name) for word in others):
        base["LD_PRELOAD"] = ":".join([str(LIBRARY), *others])
    return base
