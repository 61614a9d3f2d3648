#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir doctor on stale and absent mounts and their keys, absent devices, a donor short of memory,
and a pool without donors or without a map.

state_test.py machine|mounts|pool WEIR
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
from tests.support.control_group import ControlGroup  # noqa: E402

PART, WEIR = sys.argv[1], os.path.abspath(sys.argv[2])
del sys.argv[1:3]
PATIENCE = 90


def environment():
    kept = {name: value for name, value in os.environ.items()
            if name not in ("LD_PRELOAD", "WEIR_SHARE", "WEIR_SOFTNIC")}
    return dict(kept, WEIR_DEVICE="softnic")


def weir(*words):
    return subprocess.run([WEIR, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE, check=False, env=environment())


def doctor(*words):
    """Exit status, and the findings."""
    done = weir("doctor", "--json", *words)
    return done.returncode, json.loads(done.stdout)["checks"]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-doctor-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, pattern, *words, prefix=()):
        """A child, once it has printed what the pattern finds."""
        path = self.folder / f"log{time.monotonic_ns()}"
        with open(path, "w", encoding="utf-8") as log:
            child = subprocess.Popen([*prefix, WEIR, *map(str, words)], stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=log, env=environment())
        self.addCleanup(self.end, child)
        deadline = time.monotonic() + PATIENCE
        while not (match := re.search(pattern, path.read_text(encoding="utf-8"), re.M)):
            self.assertIsNone(child.poll(), path.read_text(encoding="utf-8"))
            self.assertLess(time.monotonic(), deadline, pattern)
            time.sleep(0.02)
        child.match = match
        return child

    def end(self, child):
        if child.poll() is None:
            child.kill()
        child.wait(PATIENCE)

    def serve(self, *words, prefix=()):
        donor = self.start(r"^ready (.*)$", "serve", "--listen", "127.0.0.1:0", "--memory", "64M",
                           "--no-reserve", *words, prefix=prefix)
        donor.address = donor.match[1]
        return donor

    def until(self, verdict, text, remedy, *words):
        """Waits for a finding."""
        deadline = time.monotonic() + PATIENCE
        while True:
            status, findings = doctor(*words)
            for finding in findings:
                if finding["verdict"] == verdict and re.search(text, finding["text"]):
                    self.assertIn(remedy, finding.get("remedy", ""))
                    self.assertEqual(status, 1 if "fail" in {each["verdict"] for each in findings}
                                     else 0)
                    return
            self.assertLess(time.monotonic(), deadline, findings)
            time.sleep(0.2)


class Machine(Case):
    def configure(self, variable, name, text):
        (self.folder / name).write_text(text, encoding="ascii")
        os.environ[variable] = str(self.folder / name)
        self.addCleanup(os.environ.pop, variable)

    def test_mounts_of_fstab_that_are_not_mounted_are_told(self):
        self.configure("LIBMOUNT_FSTAB", "fstab", """
            # 10.0.0.1 /comment weir defaults 0 0
            10.0.0.1:7474 /far/with\\040space weir _netdev,nofail,key=/k,hard 0 0
            pool:shop/files /far/pool weir key=/k 0 0
            10.0.0.1 /by/hand weir noauto,key=/k 0 0
            10.0.0.1 /at/access weir x-systemd.automount 0 0
            /dev/sda1 /far/disk ext4 device=mlx5_7 0 0
            """)
        status, findings = doctor()
        said = "{}: configured in " + f"{self.folder}/fstab, not mounted"
        advice = ("mount {}; the message names the cause. For the path to the donor: "
                  "weir doctor --key FILE {}")
        self.assertEqual(
            (status, [finding for finding in findings if finding["check"] in ("mount", "device")]),
            (1, [{"check": "mount", "verdict": "fail", "text": said.format(point),
                  "remedy": advice.format(point, donor)}
                 for point, donor in (("/far/with space", "10.0.0.1:7474"),
                                      ("/far/pool", "--pool POOL"))]), findings)

    def test_the_key_of_a_mount_that_is_not_mounted_is_tried(self):
        right, wrong = self.folder / "right", self.folder / "wrong"
        for key in (right, wrong):
            self.assertEqual(weir("key", "new", key).returncode, 0)
        donor = self.serve("--key", right)
        self.configure("LIBMOUNT_FSTAB", "fstab", "".join(
            f"{donor.address} /{key} weir key={self.folder}/{key},timeout=2 0 0\n"
            for key in ("right", "wrong", "absent")))
        _, findings = doctor()
        for verdict, text in (
                ("ok", "donor of /right at 127.0.0.1: on this host; a session is well"),
                ("fail", "donor of /wrong at 127.0.0.1: .* does not know this key"),
                ("fail", "absent: No such file")):
            self.assertTrue([finding for finding in findings if finding["verdict"] == verdict
                             and re.search(text, finding["text"])], findings)

    def test_devices_of_the_configuration_that_are_not_here_are_told(self):
        self.configure("LIBMOUNT_FSTAB", "fstab", "h /a weir noauto,device=mlx5_7,hard 0 0\n"
                       "h /b weir noauto,device=softnic 0 0\nh /c weir noauto,device=auto 0 0\n")
        self.configure("WEIR_CONFIG", "weir.toml", '[serve]\ndevice = "softnic"\n'
                       '[mount]\nhard = true\ndevice = "mlx5_8"\n')
        status, findings = doctor()
        self.assertEqual(
            (status, [finding["text"] for finding in findings if finding["check"] == "device"]),
            (1, [f"{name}: not on this host, but {place} names this device" for name, place in (
                ("mlx5_7", f"the line of /a in {self.folder}/fstab"),
                ("mlx5_8", f"{self.folder}/weir.toml:5"))]), findings)

    def test_a_mistake_in_the_configuration_is_told(self):
        self.configure("WEIR_CONFIG", "weir.toml", "[serve\n")
        self.until("fail", "weir.toml:1", "weir config check")
        (self.folder / "weir.toml").write_text('[serv]\nkey = "k"\n', encoding="ascii")
        self.until("fail", "weir.toml:1: no section serv: did you mean 'serve'",
                   "weir config check")

    def test_the_other_checks_go_on_without_the_device_that_was_named(self):
        text = "mlx5_9: not on this host, but {} names this device"
        self.addCleanup(os.environ.update, WEIR_DEVICE=os.environ.get("WEIR_DEVICE", "softnic"))
        for words, where in ((("--device", "mlx5_9"), "--device"), ((), "$WEIR_DEVICE")):
            done = subprocess.run([WEIR, "doctor", "--json", *words], capture_output=True,
                                  timeout=PATIENCE, check=False,
                                  env=dict(environment(), WEIR_DEVICE="mlx5_9"))
            findings = json.loads(done.stdout)["checks"]
            self.assertEqual(done.returncode, 1)
            self.assertIn(("device", text.format(where)),
                          [(each["check"], each["text"]) for each in findings])
            self.assertIn(("path", "ok"), [(each["check"], each["verdict"]) for each in findings])

    def test_a_donor_short_of_memory_in_its_group_is_told(self):
        group = ControlGroup(self.addCleanup, 96 << 20)
        donor = self.serve(prefix=group.start())
        self.until("warn", f"available to the donor at {donor.address} .*, the least of",
                   f"weir lend {donor.pid} SIZE")


class Mounts(Case):
    def processes_of(self, point):
        """The mount, and the process that unmounts if the mount dies."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if words[1:2] == [b"mount"] and os.fsencode(point) in words:
                    found.append(int(path.parent.name))
        return found

    def test_a_mount_is_well_then_waits_then_is_stale(self):
        donor = self.serve()
        point = self.folder / "mount point"
        point.mkdir()
        mount = self.start("is mounted on", "mount", "-f", "--hard", donor.address, point)
        self.addCleanup(subprocess.run, ["umount", "-l", point], check=False, timeout=PATIENCE,
                        stderr=subprocess.DEVNULL)
        self.until("ok", f"^{point} answers, from {donor.address}$", "")
        fstab = self.folder / "fstab"
        fstab.write_text(str(point).join((f"{donor.address} ", " weir hard 0 0\n"))
                         .replace("mount point", "mount\\040point"), encoding="ascii")
        os.environ["LIBMOUNT_FSTAB"] = str(fstab)
        self.addCleanup(os.environ.pop, "LIBMOUNT_FSTAB")
        self.assertNotIn("not mounted", str(doctor()))
        donor.send_signal(signal.SIGSTOP)
        self.until("fail", f"^{point} waits: {donor.address} does not answer", "weir doctor --key")
        donor.send_signal(signal.SIGCONT)
        self.until("ok", f"^{point} answers", "")
        self.end(donor)
        self.until("fail", f"^{point} is stale .*: {donor.address} is gone", f"umount {point}")
        found = self.processes_of(point)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                os.kill(pid, number)
        self.end(mount)
        self.until("fail", f"^{point} is stale: the process of weir mount is gone",
                   f"umount {point}")


class Pool(Case):
    def test_a_pool_is_well_then_stuck_then_gone(self):
        path = self.folder / "pool"
        pool = f"file:{path}"
        made = weir("pool", "create", "--groups", "4", "--lease", "2", pool)
        self.assertEqual(made.returncode, 0, made.stderr)
        donors = {name: self.serve("--pool", pool, "--domain", domain, "--name", name)
                  for name, domain in (("one", "a"), ("two", "b"), ("three", "b"))}
        made = weir("pool", "volume", "create", pool, "vol", "4M")
        self.assertEqual(made.returncode, 0, made.stderr)
        wrote = weir("perf", "volume", "-S", "0.2", f"{pool}/vol")
        self.assertEqual(wrote.returncode, 0, wrote.stderr)
        status, findings = doctor("--pool", pool)
        self.assertEqual((status, [finding["check"] for finding in findings]),
                         (0, ["map", "coordinator", "donors", "groups"]), findings)
        self.end(donors["one"])
        self.until("warn", r"one \((gone|failed)\)", "start these donors", "--pool", pool)
        self.until("fail", "no rebuild can begin: they need 2 failure domains, and donors are up "
                   "in 1", "--domain", "--pool", pool)
        for name in ("two", "three"):
            self.end(donors[name])
        self.until("fail", "^4 cannot be read or written: all donors with the data are away",
                   "without a restart", "--pool", pool)
        said = weir("pool", "status", pool).stdout
        self.assertRegex(said, r"groups: 0 whole, 0 lack a member, 4 away, 0 lost\n4 groups cannot")
        self.assertRegex(said, r"group 0 has 0 of 2 copies since [^:]+:\d\d: donor ")
        known = json.loads(weir("pool", "status", "--json", pool).stdout)
        self.assertEqual((known["away"], known["groups"][0]["state"]), (4, "away"))
        self.assertEqual([member["present"] for member in known["groups"][0]["members"]],
                         [False, False])
        path.unlink()
        self.until("fail", ".", "the map's file", "--pool", pool)

    def test_bad_input_is_told_in_words(self):
        for words, text in ((("--pool", "file:/x", "1.2.3.4"), "leave out 1.2.3.4"),
                            (("--pool", "file:/x", "--fix"), "leave out --fix")):
            done = weir("doctor", *words)
            self.assertEqual((done.returncode, text in done.stderr), (2, True), done.stderr)


if __name__ == "__main__":
    if PART == "mounts" and not os.access("/dev/fuse", os.W_OK):
        print("skipped: no /dev/fuse")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], PART.capitalize()], verbosity=2)
