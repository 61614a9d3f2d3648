#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run rdma-core's own tests on softnic.

pyverbs.py LIBRARY [PATTERN]...: the library to preload; only matching tests run.

The tests come with Debian's python3-pyverbs, as documentation. They skip features that a device
does not claim.
"""
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

SUITE = "/usr/share/doc/rdma-core/tests"
PATIENCE_S = 240

# The suite asks sysfs for the address of the device's interface; softnic uses the host's
# addresses.
# The collector frees a cycle in any order. From Python 3.12 on, it closes a context before the
# completion queues of that context, and libibverbs crashes. So collection is off.
DRIVER = """
import gc, os, sys, unittest
gc.disable()
sys.path[:0] = [{root!r}, {root!r} + "/tests"]
from args_parser import parser
import tests, tests.base
def add_loopback(self, dev, port, index):
    self.args.append([dev, port, index, "127.0.0.1", "00:00:00:00:00:00"])
tests.base.RDMATestCase._get_ip_mac = add_loopback
parser.parse_args()
unittest.main(module=tests, exit=False)
sys.stderr.flush()
os._exit(0)
"""


def skip(reason):
    print(f"left out: {reason}")
    sys.exit(77)


def unpack(root):
    shutil.copytree(SUITE, f"{root}/tests")
    for packed in glob.glob(f"{root}/tests/*.gz"):
        with gzip.open(packed) as source, open(packed[:-3], "wb") as target:
            shutil.copyfileobj(source, target)
    with open(f"{root}/drive.py", "w") as driver:
        driver.write(DRIVER.format(root=root))


def run(library, patterns):
    with tempfile.TemporaryDirectory() as root:
        unpack(root)
        command = ["/usr/bin/python3", f"{root}/drive.py", "-v"]
        for pattern in patterns:
            command += ["-k", pattern]
        process = subprocess.run(command, env={**os.environ, "LD_PRELOAD": library}, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 timeout=PATIENCE_S)
    return process.stdout


def main():
    library, patterns = os.path.abspath(sys.argv[1]), sys.argv[2:]
    if not os.path.isdir(SUITE):
        skip("rdma-core's tests are not installed (python3-pyverbs)")
    if subprocess.run(["/usr/bin/python3", "-c", "import pyverbs"],
                      stderr=subprocess.DEVNULL).returncode:
        skip("python3-pyverbs is not installed")

    output = run(library, patterns)
    ran = re.search(r"^Ran (\d+) test", output, re.MULTILINE)
    failed = re.findall(r"^(?:ERROR|FAIL): (\w+) ", output, re.MULTILINE)
    if not ran or not int(ran[1]) or failed:
        print(output, f"failed: {' '.join(failed)}", sep="\n")
        sys.exit(1)
    print(output.splitlines()[-1])


if __name__ == "__main__":
    main()
