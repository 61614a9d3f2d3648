#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir doctor HOST between two hosts, which are network namespaces: on a good path, and on paths
that are broken in one way each.

host_test.py WEIR

Skips without namespaces.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
from tests.support.hosts import Net  # noqa: E402

WEIR = os.path.abspath(sys.argv.pop(1))
PATIENCE = 100
DONOR, CLIENT, ADDRESS = "h1", "h2", "10.77.0.1"
ALL_PORTS = "28673-29695"
# Holds all names of this user's softnics: root as another user, others without listening.
SQUATTER = """
import os, resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
user = os.geteuid()
try:
    os.setuid(65534)
except OSError:
    pass
held = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(1023)]
for number, name in enumerate(held, 1):
    name.bind(f"\\0weir-softnic-{user}-{number}")
    if os.geteuid() != user:
        name.listen()
print(os.geteuid() != user, flush=True)
sys.stdin.read()
"""
signal.signal(signal.SIGINT, signal.default_int_handler)


NET = Net(WEIR, "doctor")


def on(host, *words, **variables):
    return NET.on(host, *words, **{"WEIR_DEVICE": "softnic", **variables})


def ip(host, *words):
    subprocess.run(on(host, "ip", *words), check=True, timeout=PATIENCE)


class Host(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        NET.up(2, cls.addClassCleanup)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.key = f"{folder.name}/key"
        subprocess.run([WEIR, "key", "new", cls.key], check=True, capture_output=True)
        # Rules with a lower number come before the host's own addresses.
        for host in DONOR, CLIENT:
            ip(host, "rule", "add", "pref", "5", "lookup", "local")
            ip(host, "rule", "del", "pref", "0")

    def serve(self, *options, **variables):
        donor = subprocess.Popen(
            on(DONOR, WEIR, "serve", "--listen", ADDRESS, "--memory", "64M", "--no-reserve",
               "--key", self.key, *options, **variables),
            text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(donor.stdout.close)
        self.addCleanup(donor.wait)
        self.addCleanup(donor.kill)
        self.assertIn(ADDRESS, donor.stdout.readline())

    def drop(self, host, ports):
        """A firewall that drops the UDP packets to some ports of a host."""
        rule = ["pref", "1", "iif", "eth0", "ipproto", "udp", "dport", ports, "blackhole"]
        ip(host, "rule", "add", *rule)
        self.addCleanup(ip, host, "rule", "del", *rule)

    def set_mtu(self, host, mtu):
        ip(host, "link", "set", "eth0", "mtu", str(mtu))
        self.addCleanup(ip, host, "link", "set", "eth0", "mtu", "1500")

    def doctor(self, *words, host=CLIENT, **variables):
        """Exit status, the checks by name, and the measured numbers."""
        done = subprocess.run(on(host, WEIR, "doctor", "--json", *words, **variables),
                              capture_output=True, text=True, check=False, timeout=PATIENCE)
        self.assertTrue(done.stdout, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual(said["ok"], done.returncode == 0)
        for check in said["checks"]:
            self.assertEqual("remedy" in check, check["verdict"] != "ok", check)
        return (done.returncode, {check["check"]: check for check in said["checks"]},
                said.get("measured", {}))

    def expect_failure(self, name, text, remedy, *words):
        status, checks, _ = self.doctor(*(words or ("--key", self.key, ADDRESS)))
        self.assertEqual(status, 1)
        self.assertEqual([check["check"] for check in checks.values()
                          if check["verdict"] == "fail"], [name], checks)
        self.assertIn(text, checks[name]["text"])
        self.assertIn(remedy, checks[name]["remedy"])
        return checks

    def test_a_good_path_is_proven(self):
        self.serve()
        status, checks, measured = self.doctor("--key", self.key, ADDRESS)
        bad = {name: check for name, check in checks.items() if check["verdict"] == "fail"}
        self.assertEqual((status, bad), (0, {}))
        self.assertEqual(list(checks), [
            "route", "UDP 4791", "UDP to there", "UDP to here", "round trip", "loss", "order",
            "MTU", "session", "encryption", "throughput"])
        self.assertIn("far", checks["route"]["text"])
        self.assertRegex(checks["encryption"]["text"],
                         "(AES-256-GCM|ChaCha20-Poly1305), as .*CPU.*; required")
        self.assertIn("all equal", checks["throughput"]["text"])
        self.assertEqual(measured["softnic_mtu_bytes"], 1024)
        self.assertGreater(measured["round_trip_median_us"], 0)
        self.assertGreater(measured["write_bytes_per_s"], 0)
        self.assertGreater(measured["read_bytes_per_s"], 0)

    def test_ipv6_is_proven_up_to_the_session(self):
        self.serve()
        checks = self.expect_failure("session", "nobody listens", "--listen", "--key", self.key,
                                     "fd77:6569:7200::1")
        self.assertEqual(checks["MTU"]["verdict"], "ok")

    def test_the_own_host_is_near(self):
        self.serve()
        status, checks, _ = self.doctor("--key", self.key, ADDRESS, host=DONOR)
        self.assertEqual(status, 0, checks)
        self.assertIn("near", checks["route"]["text"])
        self.assertIn("no packet leaves", checks["encryption"]["text"])
        self.assertNotIn("UDP 4791", checks)

    def test_a_host_without_a_donor_is_told(self):
        self.expect_failure("UDP 4791", "refuses UDP port 4791", "start weir serve")

    def test_an_absent_host_is_told(self):
        checks = self.expect_failure("UDP 4791", "10.77.0.9", "10.77.0.9", "10.77.0.9")
        self.assertRegex(checks["UDP 4791"]["text"], "cannot be reached|gets no answer")

    def test_names_that_another_user_holds_are_told(self):
        holder = subprocess.Popen(on(CLIENT, sys.executable, "-c", SQUATTER), text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(holder.communicate)
        who = {"True\n": "another user's process (user 65534)",
               "False\n": "a process that does not answer"}[holder.stdout.readline()]
        _, checks, _ = self.doctor()
        self.assertEqual(checks["port"]["text"], f"{who} holds softnic's names")
        self.assertIn("ss -xlp | grep @weir-softnic-", checks["port"]["remedy"])
        ping = subprocess.run(on(CLIENT, WEIR, "ping", "-c", "1", f"{ADDRESS}:1"), text=True,
                              capture_output=True, check=False, timeout=PATIENCE)
        self.assertIn(f"softnic: no device: {who} holds softnic's names", ping.stderr)

    def test_a_missing_key_is_told(self):
        self.serve()
        self.expect_failure("session", "key", "--key FILE", ADDRESS)

    def test_a_firewall_before_port_4791_is_found(self):
        self.serve()
        self.drop(DONOR, "4791")
        self.expect_failure("UDP 4791", f"UDP port 4791 to {ADDRESS} gets no answer, but port",
                            "open UDP port 4791")

    def test_a_firewall_before_the_other_ports_is_found(self):
        self.serve()
        self.drop(DONOR, ALL_PORTS)
        checks = self.expect_failure("UDP to there", "28673 to 29695", "open UDP ports")
        self.assertEqual(checks["UDP 4791"]["verdict"], "ok")

    def test_a_firewall_before_all_ports_is_found(self):
        self.serve()
        self.drop(DONOR, "1-65534")
        self.expect_failure("UDP 4791", "gets no answer, nor do ports", "in the firewalls of both")

    def test_a_smaller_mtu_in_between_is_found(self):
        self.serve()
        self.set_mtu(CLIENT, 9000)
        self.expect_failure("MTU", "at most 1500 bytes pass", "mtu 1500")
        self.set_mtu(CLIENT, 1400)
        self.set_mtu(DONOR, 1400)
        status, checks, measured = self.doctor("--key", self.key, ADDRESS)
        self.assertEqual((status, measured["softnic_mtu_bytes"]), (0, 1024), checks)

    def test_loss_repetition_and_disorder_are_counted(self):
        self.serve(WEIR_SOFTNIC="loss=2,duplicate=5,reorder=5,seed=3")
        status, checks, measured = self.doctor("--key", self.key, ADDRESS)
        self.assertEqual(status, 0, checks)
        for name in "loss", "order":
            self.assertEqual(checks[name]["verdict"], "warn", checks[name])
        for name in "loss_percent", "reordered_percent", "duplicated_percent":
            self.assertGreater(measured[name], 0, name)
            self.assertLess(measured[name], 10, name)

    def test_heavy_loss_is_a_failure(self):
        self.serve(WEIR_SOFTNIC="loss=20,seed=3")
        status, checks, _ = self.doctor("--key", self.key, ADDRESS)
        self.assertEqual(status, 1)
        self.assertEqual(checks["loss"]["verdict"], "fail")

    def test_clear_text_is_told(self):
        self.serve("--no-encrypt")
        status, checks, _ = self.doctor("--key", self.key, "--encrypt=auto", ADDRESS)
        self.assertEqual((status, checks["encryption"]["verdict"]), (0, "warn"), checks)
        self.expect_failure("session", "does not encrypt", "say more")

    def test_a_donor_without_room_is_told(self):
        self.serve("--memory", "8M")
        status, checks, _ = self.doctor("--key", self.key, ADDRESS)
        self.assertEqual((status, checks["throughput"]["verdict"]), (0, "warn"), checks)
        self.assertIn("16 MiB", checks["throughput"]["remedy"])

    def test_the_path_to_each_donor_of_a_pool_is_checked(self):
        pool = f"file:{os.path.dirname(self.key)}/pool"
        subprocess.run(on(CLIENT, WEIR, "pool", "create", "--groups", "4", pool), check=True,
                       capture_output=True, timeout=PATIENCE)
        self.serve("--pool", pool, "--name", "one")
        _, checks, _ = self.doctor("--key", self.key, "--pool", pool)
        self.assertEqual((checks["path"]["verdict"], checks["path"]["text"]),
                         ("ok", f"donor one at {ADDRESS}: packets and a session are well"))
        _, checks, _ = self.doctor("--pool", pool)
        self.assertIn("packets are well; no session", checks["path"]["text"])
        self.set_mtu(CLIENT, 9000)
        for words in ((), ("--key", self.key)):
            status, checks, _ = self.doctor("--pool", pool, *words)
            self.assertEqual((status, checks["MTU"]["verdict"], "path" in checks),
                             (1, "fail", False), checks)
            self.assertIn(f"donor one at {ADDRESS}: IP packets of at most 1500",
                          checks["MTU"]["text"])
            self.assertIn("mtu 1500", checks["MTU"]["remedy"])

    @unittest.skipUnless(os.access("/dev/fuse", os.W_OK), "no /dev/fuse")
    def test_the_path_to_the_donor_of_a_mount_is_checked(self):
        self.serve()
        folder = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, folder)
        words = [WEIR, "mount", "-f", "--key", self.key, ADDRESS, folder]
        mount = subprocess.Popen(on(CLIENT, *words), text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)
        self.addCleanup(mount.stdout.close)
        self.addCleanup(mount.wait, PATIENCE)
        self.addCleanup(mount.kill)
        self.addCleanup(subprocess.run, on(CLIENT, "umount", "-l", folder), check=False,
                        timeout=PATIENCE)
        self.assertTrue(any("is mounted on" in line for line in mount.stdout))
        _, checks, _ = self.doctor()
        self.assertNotIn("MTU", checks)
        self.set_mtu(CLIENT, 9000)
        _, checks, _ = self.doctor()
        self.assertEqual(checks["MTU"]["verdict"], "fail")
        self.assertIn(f"donor of {folder} at {ADDRESS}: IP packets of at most 1500",
                      checks["MTU"]["text"])

    def test_ctrl_c_ends_and_leaves_the_findings_so_far(self):
        self.serve()
        self.drop(DONOR, ALL_PORTS)
        doctor = subprocess.Popen(on(CLIENT, WEIR, "doctor", "--key", self.key, ADDRESS),
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  start_new_session=True)
        self.addCleanup(doctor.stderr.close)
        self.addCleanup(doctor.stdout.close)
        self.addCleanup(doctor.kill)
        self.assertIn("route", doctor.stdout.readline())
        os.killpg(doctor.pid, signal.SIGINT)
        self.assertNotEqual(doctor.wait(PATIENCE), 0)
        self.assertNotIn("Traceback", doctor.stderr.read())

    def test_bad_input_is_told_in_words(self):
        for words, text in ((("224.0.0.1",), "one host"), (("0.0.0.0",), "one host"),
                            (("1.2.3.4:99999",), "not an address"), (("a", "b"), "at most one"),
                            (("--fix", "1.2.3.4"), "--fix"), (("--key", "k"), "name the HOST")):
            done = subprocess.run([WEIR, "doctor", "--device", "softnic", *words], check=False,
                                  capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(text, done.stderr, words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
