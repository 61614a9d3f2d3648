#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run unmodified programs that look for RDMA devices in /sys.

sysfs.py LIBRARY WALK STATIC WEIR: the library to preload, the C++ program walk.cc, the same
linked statically, and the command.
"""
import json
import os
import shutil
import subprocess
import sys
import time
import unittest

LIBRARY = os.path.abspath(sys.argv.pop(1))
WALK = os.path.abspath(sys.argv.pop(1))
STATIC = os.path.abspath(sys.argv.pop(1))
WEIR = os.path.abspath(sys.argv.pop(1))
CLASS = "/sys/class/infiniband"
PORT = f"{CLASS}/softnic0/ports/1"
PATIENCE_S = 100
GUID = "0277:6569:7200:0001"


def may_make_namespaces():
    return not subprocess.run(["unshare", "-rm", "true"], check=False,
                              capture_output=True).returncode


class Programs(unittest.TestCase):
    def run_program(self, *command, **settings):
        if not shutil.which(command[0]):
            self.skipTest(f"{command[0]} is not installed")
        done = subprocess.run(
            command, env={**os.environ, "LD_PRELOAD": LIBRARY, **settings}, text=True,
            capture_output=True, check=False, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_ibstat_shows_the_device(self):
        output = self.run_program("/usr/sbin/ibstat")
        for line in ("CA 'softnic0'", "Number of ports: 1", "State: Active", "Rate: 100",
                     "Node GUID: 0x0277656972000001", "Link layer: Ethernet"):
            self.assertIn(line, output)

    def test_ibstat_shows_all_devices_and_ports(self):
        output = self.run_program("/usr/sbin/ibstat", WEIR_SOFTNIC="devices=2,ports=3")
        self.assertEqual(output.count("CA 'softnic"), 2)
        self.assertEqual(output.count("State: Active"), 6)

    def test_ibstatus_shows_the_device(self):
        output = self.run_program("/usr/sbin/ibstatus")
        for line in ("Infiniband device 'softnic0' port 1 status:",
                     f"fe80:0000:0000:0000:{GUID}", "4: ACTIVE", "100 Gb/sec (4X EDR)"):
            self.assertIn(line, output)

    def test_ibv_devices_shows_the_device(self):
        self.assertIn("softnic0", self.run_program("ibv_devices"))

    def test_rdma_shows_devices_and_ports(self):
        links = json.loads(self.run_program("rdma", "-j", "link", WEIR_SOFTNIC="devices=2,ports=2"))
        ours = [(link["ifname"], link["port"], link["state"], link["physical_state"])
                for link in links if link["ifname"].startswith("softnic")]
        self.assertEqual(ours, [(f"softnic{device}", port, "ACTIVE", "LINK_UP")
                                for device in range(2) for port in (1, 2)])
        devices = self.run_program("rdma", "dev", "show", "softnic0")
        self.assertIn(f"node_guid {GUID}", devices)
        self.assertIn(" doorbells ", self.run_program("rdma", "statistic"))

    def test_rdma_counts_objects_of_running_programs(self):
        def contexts():
            sums = json.loads(self.run_program("rdma", "-j", "res"))
            return next(entry for entry in sums if entry["ifname"] == "softnic0")["ctx"]

        def owners():
            shown = self.run_program("rdma", "-j", "res", "show", "ctx")
            return [entry["pid"] for entry in json.loads(shown)]

        if not shutil.which("ibv_asyncwatch"):
            self.skipTest("ibv_asyncwatch is not installed")
        self.assertEqual(contexts(), 0)  # alone in this network namespace
        with subprocess.Popen(["ibv_asyncwatch"], env={**os.environ, "LD_PRELOAD": LIBRARY},
                              stdout=subprocess.DEVNULL) as watcher:
            deadline = time.monotonic() + PATIENCE_S
            # An answer leaves out a process that is slow on a busy machine.
            while contexts() != 1 or owners() != [watcher.pid]:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.1)
            for kind in ("pd", "cq", "qp", "cm_id", "mr", "srq"):
                self.assertEqual(json.loads(self.run_program("rdma", "-j", "res", "show", kind)),
                                 [])
            watcher.kill()

    def test_each_way_to_send_reaches_the_devices(self):
        """Ask for the devices by raw messages, and count answers and ends."""
        script = r"""import socket, struct
def messages(s):
    while True:
        data = s.recv(65536)
        while data:
            length, kind = struct.unpack_from("IH", data)
            yield kind, data[:length]
            data = data[length:]
request = struct.pack("IHHII", 16, 5 << 10 | 1, 0x301, 9, 0)
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20) as s:
    for send in (lambda: s.sendto(request, (0, 0)), lambda: s.send(request),
                 lambda: s.sendmsg([request[:8], request[8:]])):
        assert send() == 16
        found = []
        for kind, message in messages(s):
            if kind == 3:
                break
            found.append(message)
        assert sum(b"softnic0" in m for m in found) == 1, found
    s.send(struct.pack("IHHII", 16, 2 << 10 | 1, 5, 10, 0))  # another client of RDMA
    kind, message = next(messages(s))
    assert kind == 2 and struct.unpack_from("i", message, 16)[0] == -22, message
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:  # routing: the kernel answers
    s.send(struct.pack("IHHIIBxHiII", 32, 18, 5, 1, 0, 0, 0, 1, 0, 0))
    assert b"lo\0" in s.recv(65536)
print("answered")"""
        self.assertEqual(self.run_program("python3", "-c", script), "answered\n")

    def test_ls_shows_links_and_types(self):
        output = self.run_program("ls", "-lan", CLASS)
        self.assertIn("softnic0 -> ../../devices/softnic0/infiniband/softnic0", output)
        self.assertIn("dr-xr-xr-x", output)

    def test_find_and_cat_read_every_attribute(self):
        files = self.run_program("find", f"{CLASS}/softnic0/", "-maxdepth", "3", "-type", "f")
        self.assertGreater(len(files.split()), 15)
        self.assertEqual(self.run_program("cat", *files.split()).count("\n"), len(files.split()))

    def test_a_shell_expands_and_walks(self):
        output = self.run_program("sh", "-c", f"echo {CLASS}/*/ports/*/state; cd {CLASS}; echo *;"
                                  "cd softnic0/ports; cat 1/state; cd ../device; cat numa_node;"
                                  "cd net/lo; cat ifindex; cd /; ls -d dev")
        self.assertEqual(output.split("\n"),
                         [f"{PORT}/state", "softnic0", "4: ACTIVE", "-1", "1", "dev", ""])

    def test_filesystem_of_cpp_walks(self):
        lines = self.run_program(WALK, f"{CLASS}/softnic0").split("\n")
        self.assertEqual(lines[0], "/sys/devices/softnic0/infiniband/softnic0")
        for line in (f"node_guid={GUID}", "state=4: ACTIVE", "device=../../../softnic0"):
            self.assertIn(line, lines)
        self.assertEqual(lines.count("255="), 2)  # no type, no netdev
        self.assertGreater(len(lines), 3 * 256)

    def test_python_walks(self):
        script = (f"import os\nfor d, _, files, fd in os.fwalk('{CLASS}/softnic0/'):\n"
                  " for name in files:\n  if d.endswith('/counters'):\n"
                  "   print(name, open(os.open(name, 0, dir_fd=fd)).read().strip())\n"
                  "print(sum(len(f) for _, _, f in os.walk(os.path.realpath('"
                  f"{CLASS}/softnic0'))))")
        output = self.run_program("python3", "-c", script)
        self.assertIn("symbol_error 0\n", output)
        self.assertGreater(int(output.split()[-1]), 3 * 256)

    def test_counters_are_those_of_running_programs(self):
        def words():
            return [int(self.run_program("cat", f"{PORT}/counters/port_{way}_data"))
                    for way in ("xmit", "rcv")]

        if not shutil.which("ib_write_bw"):
            self.skipTest("perftest is not installed")
        before = words()
        pair = []
        for address in ((), ("localhost",)):
            pair.append(subprocess.Popen(
                ["ib_write_bw", "-p", "18517", "-s", "65536", "-D", "8", *address],
                env={**os.environ, "LD_PRELOAD": LIBRARY}, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL))
            time.sleep(1)
        try:
            deadline = time.monotonic() + PATIENCE_S
            while min(words()) < max(before) + 65536 // 4 and time.monotonic() < deadline:
                time.sleep(0.2)
            self.assertGreater(min(words()), max(before))
            self.assertGreater(int(self.run_program("cat", f"{PORT}/hw_counters/qps")), 1)
        finally:
            for process in pair:
                process.kill()
                process.wait()

    def test_entries_of_the_kernel_stay_visible(self):
        if not may_make_namespaces():
            self.skipTest("user namespaces are not allowed")
        script = ("mount -t tmpfs none /dev && mkdir /dev/infiniband && "
                  "touch /dev/infiniband/uverbs0 && LD_PRELOAD=$0 exec sh -c '"
                  "ls /dev/infiniband; cd /dev; echo infiniband/*; cat infiniband/uverbs0'")
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script, LIBRARY], text=True,
                              capture_output=True, check=False, timeout=PATIENCE_S)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.split(),
                         ["softnic0", "uverbs0", "infiniband/softnic0", "infiniband/uverbs0"])

    def test_nothing_is_shown_with_a_mistake_in_the_settings(self):
        done = subprocess.run(
            ["ls", CLASS], env={**os.environ, "LD_PRELOAD": LIBRARY, "WEIR_SOFTNIC": "devices=9"},
            text=True, capture_output=True, check=False, timeout=PATIENCE_S)
        if not os.path.exists(CLASS):
            self.assertEqual(done.returncode, 2)
        self.assertNotIn("softnic0", done.stdout)
        self.assertIn("devices=9", done.stderr)


@unittest.skipUnless(may_make_namespaces(), "user namespaces are not allowed")
class Mounted(unittest.TestCase):
    def run_mounted(self, *command, before=(), expected=0):
        done = subprocess.run([*before, WEIR, "run", "-q", "--sysfs=mount", "--", *command],
                              text=True, capture_output=True, check=False, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, expected, done.stderr)
        self.assertEqual(bool(done.stderr), bool(expected), done.stderr)
        return done.stdout or done.stderr

    def check_walk(self, lines):
        self.assertEqual(lines[0], "/sys/devices/softnic0/infiniband/softnic0")
        for line in (f"node_guid={GUID}", "state=4: ACTIVE", "device=../../../softnic0",
                     "symbol_error=0", "254=RoCE v2"):
            self.assertIn(line, lines)

    def test_a_static_program_walks(self):
        self.check_walk(self.run_mounted(STATIC, f"{CLASS}/softnic0").split("\n"))

    def test_a_static_program_walks_without_privilege(self):
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if os.getuid() or subprocess.run([*nobody, "unshare", "-rm", WEIR, "--version"],
                                         check=False, capture_output=True).returncode:
            self.skipTest("no other user may run the command in a user namespace")
        output = self.run_mounted("sh", "-c", f"id -u; {STATIC} {CLASS}/softnic0", before=nobody)
        self.assertEqual(output.split("\n")[0], "65534")
        self.check_walk(output.split("\n")[1:])

    def test_programs_of_infiniband_show_the_device(self):
        for program in ("/usr/sbin/ibstat", "/usr/sbin/ibstatus", "ibv_devices", "rdma link"):
            with self.subTest(program):
                if not shutil.which(program.split()[0]):
                    self.skipTest(f"{program} is not installed")
                self.assertIn("softnic0", self.run_mounted(*program.split()))

    def test_the_rest_of_sys_is_as_before(self):
        script = ("ls /sys/class /sys/devices; cat /sys/class/net/lo/mtu; ls /sys/kernel;"
                  "cd /sys/class/infiniband/softnic0/device/net/lo && pwd -P")
        before = subprocess.run(["sh", "-c", script], text=True, capture_output=True, check=False)
        after = self.run_mounted("sh", "-c", script).split("\n")
        for line in before.stdout.split("\n"):
            self.assertIn(line, after)
        self.assertIn("/sys/devices/virtual/net/lo", after)
        self.assertIn("softnic0", after)

    def test_nothing_is_left_outside(self):
        with open("/proc/self/mountinfo", encoding="ascii") as before:
            mounts = before.read()
        self.run_mounted("true")
        with open("/proc/self/mountinfo", encoding="ascii") as after:
            self.assertEqual(after.read(), mounts)
        self.assertFalse(os.path.exists(f"{CLASS}/softnic0"))

    def test_programs_connect_and_counters_are_the_present_ones(self):
        if not shutil.which("ib_write_bw"):
            self.skipTest("perftest is not installed")
        script = ("ib_write_bw -p 18519 >/dev/null & sleep 2;"
                  "ib_write_bw -p 18519 -D 6 localhost >/dev/null & sleep 3;"
                  f"cat {PORT}/hw_counters/qps; cd {PORT}; {STATIC} hw_counters | grep qps=; wait")
        qps, copied, _ = self.run_mounted("sh", "-c", script).split("\n")
        self.assertGreater(int(qps), 1)
        self.assertRegex(copied, r"qps=\d+")

    def test_a_refused_namespace_is_explained(self):
        limit = "echo 0 > /proc/sys/user/max_mnt_namespaces; exec \"$@\""
        output = self.run_mounted("true", before=("unshare", "-r", "sh", "-c", limit, "sh"),
                                  expected=1)
        self.assertIn("--sysfs=mount: no mount namespace", output)


if __name__ == "__main__":
    unittest.main()
