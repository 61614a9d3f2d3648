# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The file with which the benchmark compares ways to remote memory: each way carries the bytes.

Called with the paths of the weir command and of the benchmark's clients over plain verbs and over
the
library. UCX and libfabric are not tested: they are not part of weir, nor installed everywhere.
"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import unittest

import world
from world import WEIR, until

CLIENTS = {os.path.basename(path): os.path.abspath(path) for path in sys.argv[1:]}
del sys.argv[1:]
MIB = 1 << 20
SIZE_MIB = 8
SECONDS = 60


class Remote(unittest.TestCase):
    def mounted(self, transport):
        directory = tempfile.mkdtemp(prefix="weir-")
        process = subprocess.Popen(
            [WEIR, "run", "-q", "--", CLIENTS[f"client-{transport}"], str(SIZE_MIB), directory],
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.addCleanup(os.rmdir, directory)
        self.addCleanup(subprocess.run, ["fusermount3", "-u", "-z", directory],
                        capture_output=True)
        until(lambda: os.path.ismount(directory) or process.poll() is not None, SECONDS)
        self.assertIsNone(process.poll(), "it has ended")
        return process, os.path.join(directory, "data")

    def carries(self, transport):
        process, path = self.mounted(transport)
        self.assertEqual(os.path.getsize(path), SIZE_MIB * MIB)
        dice, expected = random.Random(1), bytearray(SIZE_MIB * MIB)
        with open(path, "r+b", buffering=0) as file:
            for length in (1, 511, 4096, 4097, 65536, MIB, 2 * MIB + 5):
                at = dice.randrange(SIZE_MIB * MIB - length)
                block = dice.randbytes(length)
                self.assertEqual(os.pwrite(file.fileno(), block, at), length)
                expected[at:at + length] = block
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self.assertEqual(os.pread(file.fileno(), SIZE_MIB * MIB, 0), expected)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertFalse(os.path.ismount(os.path.dirname(path)))

    def test_the_library_carries_the_bytes(self):
        self.carries("weir")

    def test_plain_verbs_carry_the_bytes(self):
        self.carries("verbs")


if __name__ == "__main__":
    world.main()
