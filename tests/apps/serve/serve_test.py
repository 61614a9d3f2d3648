# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir serve as a process: start, refusals, end.

Called with the path of the weir command. WEIR_DEVICE chooses the device; default softnic.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

WEIR = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build/weir"
SECONDS = 20
LOG_LINE = re.compile(r"ts=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
                      r"level=(error|warning|info|debug) msg=(\S+|\".*\")( \S+=(\S+|\".*\"))*$")


def process_environment():
    return dict(os.environ, WEIR_DEVICE=os.environ.get("WEIR_DEVICE") or "softnic")


def start(*args):
    return subprocess.Popen(
        [WEIR, "serve", *args],
        env=process_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*args):
    """Exit status and standard error of a donor that cannot start."""
    process = start(*args)
    try:
        err = process.communicate(timeout=SECONDS)[1]
    finally:
        process.kill()
    return process.returncode, err


class Serve(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="weir-")
        self.addCleanup(directory.cleanup)
        self.dir = directory.name

    def key(self, name="key", mode=0o600, content="0123456789abcdef"):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(content)
        os.chmod(path, mode)
        return path

    def donor(self, *args):
        process = start("--listen", "127.0.0.1:0", "--memory", "8M", *args)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process, process.stdout.readline()

    def ends(self, process):
        out, err = process.communicate(timeout=SECONDS)
        return process.returncode, out, err

    def test_memory_that_does_not_fit_is_refused_before_it_is_promised(self):
        status, err = run("--listen", "127.0.0.1:0", "--memory", "1T")
        self.assertEqual(status, 1)
        self.assertRegex(err, r"cannot reserve 1\.0 TiB: .* allow [\d.]+ [KMG]iB: use --no-reserve")
        status, err = run("--listen", "127.0.0.1:0", "--memory", "900T", "--no-reserve")
        self.assertEqual(status, 1)
        self.assertRegex(err, r"cannot lend 900\.0 TiB: this machine has [\d.]+ [MGT]iB of memory")

    def test_reserved_memory_is_there_from_the_start(self):
        for options, least, most in (([], 64 << 20, 1 << 40), (["--no-reserve"], 0, 63 << 20)):
            process = start("--listen", "127.0.0.1:0", "--memory", "64M", *options)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            self.assertIn("ready", process.stdout.readline())
            used = self.memfd_bytes(process.pid)
            self.assertTrue(least <= used <= most, (options, used))

    def memfd_bytes(self, pid):
        """Bytes that the donor's memory file has from the system."""
        for entry in os.scandir(f"/proc/{pid}/fd"):
            if "weir-arena" in os.readlink(entry.path):
                return os.stat(entry.path).st_blocks * 512
        return 0

    def test_it_prints_its_address(self):
        process, line = self.donor()
        self.assertRegex(line, r"^ready 127\.0\.0\.1:\d+\n$")
        process.terminate()
        status, out, _err = self.ends(process)
        self.assertEqual((status, out), (0, ""))

    def test_it_prints_its_address_as_json(self):
        process, line = self.donor("--json", "--key", self.key())
        said = json.loads(line)
        self.assertEqual(said["ready"], True)
        self.assertEqual(said["memory_bytes"], 8 << 20)
        self.assertEqual(said["pid"], process.pid)
        self.assertTrue(said["device"])
        self.assertRegex(said["address"], r"^127\.0\.0\.1:\d+$")

    def test_both_signals_end_it_cleanly(self):
        for number in signal.SIGINT, signal.SIGTERM:
            process, _line = self.donor()
            process.send_signal(number)
            status, _out, err = self.ends(process)
            self.assertEqual(status, 0)
            self.assertIn(f"msg=stopping signal={int(number)}", err)

    def test_its_log_is_logfmt(self):
        process, _line = self.donor("--log-level", "debug")
        process.terminate()
        lines = [line for line in self.ends(process)[2].splitlines() if line.startswith("ts=")]
        self.assertGreaterEqual(len(lines), 2)
        for line in lines:
            self.assertRegex(line, LOG_LINE)

    def test_its_log_has_levels(self):
        process, _line = self.donor("--log-level", "warning")
        process.terminate()
        self.assertNotIn("ts=", self.ends(process)[2])

    def lend(self, pid, size, *options):
        return subprocess.run([WEIR, "lend", *options, str(pid), size], stdin=subprocess.DEVNULL,
                              text=True, capture_output=True, timeout=60)

    def test_the_amount_lent_can_be_changed_up_to_the_amount_at_start(self):
        process, _line = self.donor()
        for size, lent in (("4M", 4 << 20), ("0", 0)):
            self.assertEqual(self.lend(process.pid, size).returncode, 0)
            said = next(line for line in process.stderr if "msg=limit " in line)
            self.assertIn(f"bytes={lent} ", said)
        told = self.lend(process.pid, "1T", "--json")
        self.assertEqual(json.loads(told.stdout), {"pid": process.pid, "asked_bytes": 1 << 40,
                                                   "limit_bytes": 8 << 20})
        self.assertIn("more than the donor was started with: it lends 8.0 MiB", told.stderr)
        said = next(line for line in process.stderr if "msg=" in line)
        self.assertIn(f"level=warning msg=clamped asked={1 << 40} bytes={8 << 20} ", said)
        self.assertIn(f"msg=limit bytes={8 << 20} ", next(process.stderr))
        process.terminate()
        self.assertEqual(self.ends(process)[0], 0)

    def test_it_lends_nothing_if_less_is_available_than_to_spare(self):
        process, _line = self.donor("--spare", "1000T")
        said = next(line for line in process.stderr if "lends nothing" in line)
        self.assertIn('level=warning msg="lends nothing" ', said)
        said = next(line for line in process.stderr if "msg=limit " in line)
        self.assertIn("bytes=0 ", said)
        self.assertEqual(self.lend(process.pid, "4M").returncode, 0)
        process.terminate()
        status, _out, err = self.ends(process)
        self.assertEqual(status, 0)
        self.assertNotIn("msg=limit ", err)

    def test_a_silent_client_is_probed_after_the_keepalive_time(self):
        process, line = self.donor("--keepalive", "1", "--log-level", "debug")
        client = subprocess.Popen(
            [WEIR, "perf", "--region", "1M", "--seconds", "600", line.split()[1]],
            env=process_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        self.assertTrue(any("asks peer=" in said for said in process.stderr))

    def test_it_ends_cleanly_with_a_change_pending(self):
        process, _line = self.donor()
        process.send_signal(signal.SIGSTOP)
        self.assertEqual(self.lend(process.pid, "4M").returncode, 0)
        process.terminate()
        process.send_signal(signal.SIGCONT)
        self.assertEqual(self.ends(process)[0], 0)

    def test_lend_refuses_a_process_that_is_no_donor(self):
        done = self.lend(os.getpid(), "4M")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("weir serve", done.stderr)

    def test_a_port_in_use_is_named(self):
        _process, line = self.donor()
        address = line.split()[1]
        status, err = run("--listen", address, "--memory", "8M")
        self.assertEqual(status, 1)
        self.assertIn(address, err)

    def test_without_a_key_it_stays_on_loopback(self):
        status, err = run("--listen", "0.0.0.0:0", "--memory", "8M")
        self.assertEqual(status, 1)
        self.assertIn("key", err)

    def test_keys_are_checked(self):
        for path, why in ((os.path.join(self.dir, "none"), "none"),
                          (self.key("open", 0o644), "open"),
                          (self.key("short", content="short"), "short")):
            status, err = run("--listen", "127.0.0.1:0", "--memory", "8M", "--key", path)
            self.assertEqual(status, 1)
            self.assertIn(os.path.join(self.dir, why), err)

    def test_a_bad_command_line_is_status_2(self):
        for args in (
            ("--memory", "much"),
            ("--memory", "1K"),
            ("--quota", "-1"),
            ("--cpu", "101"),
            ("--cpu", "0"),
            ("--keepalive", "0"),
            ("--keepalive", "1s"),
            ("--keepalive", "-1"),
            ("--log-level", "loud"),
            ("here",),
            ("--frobnicate",),
            ("--key",),
        ):
            status, err = run(*args)
            self.assertEqual(status, 2, args)
            self.assertIn("--help", err)

    def test_more_memory_than_there_can_be_is_refused(self):
        status, err = run("--listen", "127.0.0.1:0", "--memory", "4000000T")
        self.assertEqual(status, 1)
        self.assertIn("memory", err.lower())


if __name__ == "__main__":
    unittest.main(verbosity=2)
