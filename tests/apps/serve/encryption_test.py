#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A donor and its clients on two hosts, which are network namespaces: encrypted if there is a key,
in clear text if both ends allow that, and not admitted if an attacker suppresses the encryption.

encryption_test.py WEIR SUPPRESS

SUPPRESS is a library that loses what two softnics agree by.

Skips without namespaces.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
from tests.support.hosts import Net  # noqa: E402

WEIR, SUPPRESS = (os.path.abspath(path) for path in sys.argv[1:3])
# A sanitizer's runtime comes before any preloaded library.
PRELOAD = f"{os.environ.get('WEIR_TEST_RUNTIME', '')}:{SUPPRESS}".lstrip(":")
del sys.argv[1:3]
PATIENCE = 100
DONOR, CLIENT = "h1", "h2"
CIPHER = r"AES-256-GCM|ChaCha20-Poly1305"
signal.signal(signal.SIGINT, signal.default_int_handler)


NET = Net(WEIR, "key")


def on(host, *words, **variables):
    return NET.on(host, WEIR, *words, **{"WEIR_DEVICE": "softnic", **variables})


class Encryption(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        NET.up(2, cls.addClassCleanup)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.key = f"{folder.name}/key"
        subprocess.run([WEIR, "key", "new", self.key], check=True, capture_output=True)

    def serve(self, *options, **variables):
        """Start a donor. Return its address and its log, a file."""
        log = tempfile.TemporaryFile("w+")
        self.addCleanup(log.close)
        donor = subprocess.Popen(
            on(DONOR, "serve", "--listen", "10.77.0.1:0", "--memory", "64M", "--no-reserve",
               "--key", self.key, *options, **variables),
            text=True, stdout=subprocess.PIPE, stderr=log)
        self.addCleanup(donor.stdout.close)
        self.addCleanup(donor.wait)
        self.addCleanup(donor.kill)
        return donor.stdout.readline().split()[1], log

    def stat(self, address, *options, **variables):
        return subprocess.run(
            on(CLIENT, "stat", "--json", "--key", self.key, *options, address, **variables),
            capture_output=True, text=True, check=False, timeout=PATIENCE)

    def expect_refusal(self, reason, donor, *client, **variables):
        address, log = self.serve(*donor)
        done = self.stat(address, *client, **variables)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, reason)
        self.assertIn("--encrypt=auto", done.stderr)
        log.seek(0)
        self.assertNotIn("joined", log.read())

    def expect(self, cipher, *options, client=(), **variables):
        address, log = self.serve(*options)
        done = self.stat(address, *client, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(json.loads(done.stdout)["encryption"], f"^({cipher})$")
        log.seek(0)
        self.assertTrue(re.search(f"joined .*encryption=({cipher})\\b", log.read()))

    def test_a_key_encrypts(self):
        self.expect(CIPHER)

    def test_a_lossy_network_encrypts_too(self):
        self.expect(CIPHER, WEIR_SOFTNIC="loss=10,reorder=10,duplicate=5,seed=5")

    def test_an_end_that_allows_clear_text_still_encrypts(self):
        self.expect(CIPHER, "--encrypt=auto", client=["--encrypt", "auto"])
        self.expect(CIPHER, "--encrypt=required", client=["--encrypt", "required"])

    def test_the_donor_can_leave_encryption_off(self):
        for off in "--no-encrypt", "--encrypt=off":
            self.expect("none", off, client=["--encrypt=auto"])

    def test_the_client_can_leave_encryption_off(self):
        self.expect("none", "--encrypt=auto", client=["--encrypt=off"])
        self.expect("none", "--encrypt=auto", WEIR_SOFTNIC="encrypt=0")

    def test_encryption_is_required_unless_an_end_allows_clear_text(self):
        self.expect_refusal("the donor does not encrypt", ["--no-encrypt"])
        self.expect_refusal("the donor does not encrypt", ["--no-encrypt"], "--encrypt=required")
        self.expect_refusal("admits encrypted connections only", [], "--encrypt=off")
        self.expect_refusal("admits encrypted connections only", [], WEIR_SOFTNIC="encrypt=0")

    def test_required_encryption_needs_a_key(self):
        done = subprocess.run(on(CLIENT, "stat", "--encrypt=required", "127.0.0.1:1"),
                              capture_output=True, text=True, check=False, timeout=PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no key", done.stderr)
        done = subprocess.run(on(CLIENT, "stat", "--encrypt=maybe", "127.0.0.1:1"),
                              capture_output=True, text=True, check=False, timeout=PATIENCE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("required, auto or off", done.stderr)

    def test_suppressed_encryption_is_noticed_and_not_admitted(self):
        address, log = self.serve(LD_PRELOAD=PRELOAD)
        for _ in range(10):  # on a busy machine the donor's limit of time may end a handshake first
            done = self.stat(address, LD_PRELOAD=PRELOAD)
            self.assertNotEqual(done.returncode, 0)
            log.seek(0)
            self.assertNotIn("joined", log.read())
            if "suppresses encryption" in done.stderr:
                return
        self.fail(done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
