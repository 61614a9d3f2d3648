#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Check a model in every interleaving, and check that each planted bug is found.

pml.py MODEL CHECK[,...] CC...

CHECK is safety: the model's assertions hold and no run hangs; or endless: no run loops for
ever, which a model that polls does not promise. Each -DBUG in the model's head comment is a
bug.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def check(model, cc, flags, folder):
    """Return spin's number of errors and of states."""
    pan = str(pathlib.Path(folder) / "pan")
    subprocess.run(["spin", *flags.get("spin", []), "-a", model], cwd=folder, check=True)
    subprocess.run([*cc, flags.get("speed", "-O2"), "-w", "-DCOLLAPSE", *flags["compile"],
                    "-o", pan, "pan.c"], cwd=folder, check=True)
    # An incomplete search would find nothing either.
    said = subprocess.run([pan, "-m100000", *flags["run"]], cwd=folder, check=True,
                          capture_output=True, text=True).stdout
    if "max search depth too small" in said or "out of memory" in said:
        sys.exit(f"the search was not complete:\n{said}")
    return (int(re.search(r"errors: (\d+)", said)[1]),
            int(re.search(r"(\d+) states, stored", said)[1]))


SAFETY = {"compile": ["-DSAFETY"], "run": []}
CHECKS = {
    "safety": ("what it promises holds, and no run hangs", SAFETY),
    "endless": ("no run goes round for ever", {"compile": ["-DNP"], "run": ["-l"]}),
}


def main(model, checks, cc):
    if not shutil.which("spin"):
        print("skipped: spin is not installed (Debian: spin)")
        return 77
    model = pathlib.Path(model).resolve()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for name, flags in (CHECKS[check_name] for check_name in checks.split(",")):
            errors, states = check(model, cc, flags, folder)
            print(f"{'not ' * bool(errors)}ok {name} ({states} states)", flush=True)
            if errors:
                wrong.append(name)
        for bug in sorted(set(re.findall(r"-D([A-Z_]+)", model.read_text()))):
            # Most bugs are found so soon that optimising would take longer.
            errors, _ = check(model, cc, {**SAFETY, "spin": [f"-D{bug}"], "speed": "-O0"}, folder)
            print(f"{'found ' if errors else 'MISSED'} {bug}", flush=True)
            if not errors:
                wrong.append(bug)
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
