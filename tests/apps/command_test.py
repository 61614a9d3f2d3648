# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The weir command for users: help, bad input, exit codes, keys, softnic's counters."""
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

WEIR = sys.argv.pop(1)
COMPLETION = sys.argv.pop(1)
COMMANDS = (
    "serve",
    "lend",
    "mount",
    "fs",
    "blk",
    "pool",
    "share",
    "top",
    "run",
    "ping",
    "perf",
    "stat",
    "metrics",
    "trace",
    "fault",
    "doctor",
    "config",
    "key",
)


def clean_environment(**more):
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("WEIR_DEVICE", "LD_PRELOAD")}
    return dict(environment, **more)


def weir(*args, timeout=60, **more):
    return subprocess.run([WEIR, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout, env=clean_environment(**more))


class Help(unittest.TestCase):
    def test_every_command_has_help_on_standard_output(self):
        for command in ((), *((name,) for name in COMMANDS)):
            done = weir(*command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            self.assertTrue(done.stdout.startswith("Usage: weir"), command)

    def test_the_version_is_printed(self):
        self.assertRegex(weir("--version").stdout, r"^weir \d+\.\d+\.\d+\n$")

    def test_help_names_every_command(self):
        for name in COMMANDS:
            self.assertIn(f"  {name} ", weir("--help").stdout)


    def test_help_of_a_command_is_that_commands(self):
        self.assertEqual(weir("help").stdout, weir("--help").stdout)
        for name in COMMANDS:
            self.assertEqual(weir("help", name).stdout, weir(name, "--help").stdout, name)


    def test_help_of_a_command_below_a_command_is_that_commands(self):
        for words in (("pool", "create"), ("pool", "volume", "rm"), ("key", "add"),
                      ("blk", "attach"), ("perf", "exchange")):
            self.assertEqual(weir("help", *words).stdout, weir(*words, "--help").stdout, words)
            self.assertIn(" ".join(words), weir("help", *words).stdout)
        for words in (("frobnicate",), ("pool", "frobnicate"), ("a", "b", "c", "d")):
            self.assertEqual(weir("help", *words).returncode, 2, words)


class Completion(unittest.TestCase):
    """The words that bash offers where the cursor is after the last word."""

    def offered(self, *words):
        script = ("source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _weir; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "-c", script, "-", COMPLETION, WEIR, *words], timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
                              env=clean_environment())
        self.assertEqual(done.stderr, "", words)
        return set(done.stdout.split())

    def test_commands_are_offered(self):
        self.assertLessEqual({*COMMANDS, "lab", "help"}, self.offered(""))
        self.assertEqual(self.offered("pi"), {"ping"})
        self.assertEqual(self.offered("blk", "at"), {"attach"})
        self.assertEqual(self.offered("fs", "ex"), {"export"})
        self.assertEqual(self.offered("pool", "dr"), {"drain"})
        self.assertEqual(self.offered("config", "ch"), {"check"})
        self.assertEqual(self.offered("config", "show", "se"), {"serve"})
        self.assertIn("--json", self.offered("config", "show", "-"))
        self.assertEqual(self.offered("pool", "volume", "l"), {"list"})
        self.assertLessEqual({"exchange", "volume"}, self.offered("perf", ""))
        self.assertLessEqual({"create", "rebalance"}, self.offered("pool", ""))
        self.assertLessEqual({"import", "export"}, self.offered("pool", "volume", ""))
        self.assertLessEqual({"rotate", "list"}, self.offered("key", ""))
        self.assertLessEqual({"ping", "pool"}, self.offered("help", "p"))

    def test_options_are_those_of_the_command_and_its_subcommand(self):
        for words, some, other in ((("perf",), "--preset", "--members"),
                                   (("perf", "exchange"), "--members", "--preset"),
                                   (("perf", "volume"), "--depth", "--members"),
                                   (("blk", "attach"), "--replicas", "--op"),
                                   (("pool", "create"), "--lease", "--scheme"),
                                   (("pool", "volume", "create"), "--scheme", "--lease"),
                                   (("fs", "import"), "--foreign", "--threads"),
                                   (("fs", "check"), "--threads", "--foreign"),
                                   (("lab", "run"), "--seeds", "--threads"),
                                   (("lab", "what-if"), "--threads", "--loss"),
                                   (("lab", "net", "up"), "--loss", "--threads")):
            offered = self.offered(*words, "-")
            self.assertIn(some, offered, words)
            self.assertNotIn(other, offered, words)

    def test_values_are_offered_after_their_option(self):
        for words, some in ((("perf", "--op"), {"read", "write"}),
                            (("perf", "--polling"), {"adaptive", "busy"}),
                            (("serve", "--log-level"), {"debug", "error"}),
                            (("ping", "-d"), {"softnic", "auto"}),
                            (("top", "--sort"), {"p99", "process"}),
                            (("mount", "--encrypt"), {"required", "auto", "off"}),
                            (("pool", "volume", "create", "--scheme"), {"copies=2", "code=4+2"}),
                            (("lab", "what-if", "--polling"), {"adaptive", "busy"}),
                            (("lab", "what-if", "--profile"), {"connectx-5"}),
                            (("key", "new", ""), set())):
            self.assertLessEqual(some, self.offered(*words, ""), words)
        self.assertEqual(self.offered("serve", "--memory", ""), set())
        self.assertIn("/etc/passwd", self.offered("serve", "--key", "/etc/pass"))


class BadInput(unittest.TestCase):
    def test_a_command_that_resembles_another_is_answered_with_the_other(self):
        for typed, meant in (("pnig", "ping"), ("sevre", "serve"), ("docter", "doctor"),
                             ("stats", "stat"), ("keys", "key"), ("hlep", "help")):
            self.assertIn(f"did you mean '{meant}'?", weir(typed).stderr)
        for typed in ("frobnicate", "xx", "y" * 5000, "-"):
            self.assertNotIn("did you mean", weir(typed).stderr)

    def test_a_message_passes_no_control_characters_on(self):
        for words in (("\x1b[31mping",), ("top", "--sort", "\x1b\x7f\x9b"), ("ping", "a\rb:c")):
            said = weir(*words).stderr
            self.assertRegex(said, r"\\x(1b|0d)", words)
            self.assertNotRegex(said, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", words)

    def test_a_word_or_option_that_resembles_another_is_answered_with_the_other(self):
        for typed, meant in ((("pool", "volme", "x"), "volume"), (("key", "ad"), "add"),
                             (("pool", "volume", "exprot"), "export"), (("blk", "lits"), "list"),
                             (("pool", "stauts"), "status"), (("config", "chek"), "check"),
                             (("serve", "--memroy", "1G"), "--memory"),
                             (("serve", "--memroy=1G"), "--memory"),
                             (("perf", "exchange", "--membres=3"), "--members"),
                             (("doctor", "--hlep"), "--help")):
            done = weir(*typed)
            self.assertEqual(done.returncode, 2, typed)
            self.assertIn(f"did you mean '{meant}'?", done.stderr, typed)
        for typed in (("pool", "frobnicate"), ("pool", "volume"), ("serve", "--frobnicate"),
                      ("serve", "-Z"), ("serve", "--memory"), ("ping", "--" + "y" * 5000)):
            done = weir(*typed)
            self.assertEqual(done.returncode, 2, typed)
            self.assertNotIn("did you mean", done.stderr, typed)

    def test_usage_errors_exit_with_2_and_say_where_help_is(self):
        for args in (
            (),
            ("frobnicate",),
            ("serve", "--frobnicate"),
            ("mount",),
            ("run",),
            ("run", "--device", "mlx5_0", "true"),
            ("run", "--unload=never", "true"),
            ("run", "--unload", "--device", "rxe0", "true"),
            ("run", "--key", "k", "true"),
            ("run", "--sysfs=none", "true"),
            ("run", "--strict=never", "true"),
            ("run", "--strict", "--device", "host", "--unload", "true"),
            ("run", "--sysfs", "mount", "--device", "host", "--unload", "true"),
            ("ping",),
            ("ping", "-c", "0", "x"),
            ("ping", "-c", "-1", "x"),
            ("ping", "--size", "1Q", "x"),
            ("ping", "a", "b"),
            ("perf",),
            ("perf", "--op", "fly", "x"),
            ("stat", "--watch=soon"),
            ("fault",),
            ("fault", "1"),
            ("fault", "x", "rnr=1"),
            ("fault", "1", "rnr=101"),
            ("fault", "1", "devices=2"),
            ("fault", "1", ""),
            ("stat", "a", "b"),
            ("trace",),
            ("trace", "x"),
            ("trace", "0"),
            ("trace", "-1"),
            ("trace", "1", "2"),
            ("doctor", "first-host", "second-host"),
            ("lend",),
            ("lend", "1"),
            ("lend", "x", "1G"),
            ("lend", "1", "1Q"),
            ("share", "x"),
            ("share", "--fly"),
            ("top", "x"),
            ("top", "--interval", "0"),
            ("blk",),
            ("blk", "fly"),
            ("blk", "attach"),
            ("blk", "attach", "x"),
            ("blk", "attach", "x", "1"),
            ("blk", "attach", "--polling", "busy", "x", "4K"),
            ("blk", "attach", "--channels", "17", "x", "4K"),
            ("blk", "attach", "--timeout", "0", "x", "4K"),
            ("blk", "attach", "--name", "a/b", "x"),
            ("blk", "detach"),
            ("blk", "detach", "sda"),
            ("blk", "stat"),
            ("blk", "stat", "weir256"),
            ("blk", "list", "x"),
            ("key",),
            ("key", "new"),
            ("key", "old", "x"),
        ):
            done = weir(*args)
            self.assertEqual(done.returncode, 2, args)
            self.assertIn("--help'", done.stderr, args)
            self.assertEqual(done.stdout, "", args)

    def test_faults_in_two_arguments_are_refused(self):
        done = weir("fault", "1", "rnr=30", "delay_us=2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("delay_us=2: name all faults in one argument: rnr=30,delay_us=2", done.stderr)

    def test_a_failed_write_of_output_is_a_failure(self):
        for args in (("--help",), ("--version",), ("perf", "--help"), ("stat",), ("stat", "--json"),
                     ("stat", "--watch=0.1")):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([WEIR, *args], stdin=subprocess.DEVNULL, stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=60,
                                      env=clean_environment(WEIR_DEVICE="softnic"), check=False)
            self.assertEqual(done.returncode, 1, args)
            self.assertIn("cannot write to standard output: No space left", done.stderr, args)

    def test_a_device_that_is_not_there_is_named(self):
        done = weir("ping", "--device", "mlx5_77", "127.0.0.1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("mlx5_77", done.stderr)

    def test_a_refused_connection_names_the_address(self):
        done = weir("ping", "--device", "softnic", "127.0.0.1:19")
        self.assertEqual(done.returncode, 1)
        self.assertIn("127.0.0.1:19", done.stderr)


class Device(unittest.TestCase):
    def test_the_device_is_named_once(self):
        done = weir("ping", "127.0.0.1:19", WEIR_DEVICE="softnic")
        self.assertEqual(done.stderr.count("using softnic"), 1)

    @unittest.skipIf(os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"),
                     "this machine has an RDMA device")
    def test_without_a_device_softnic_is_used_and_named(self):
        done = weir("ping", "127.0.0.1:19")
        self.assertIn("no RDMA device found: using softnic", done.stderr)


class Run(unittest.TestCase):
    def test_the_exit_code_is_the_programs(self):
        self.assertEqual(weir("run", "--", "sh", "-c", "exit 42").returncode, 42)

    def test_strict_mode_is_added_to_the_settings_of_the_environment(self):
        def settings(*options, **more):
            return weir("run", *options, "--", "printenv", "WEIR_SOFTNIC", **more).stdout.strip()

        self.assertEqual(settings("--strict"), "strict=1")
        self.assertEqual(settings("--strict=abort", WEIR_SOFTNIC="near=0"), "near=0,strict=2")
        self.assertEqual(settings("--strict=leaks"), "strict=1,strict_leaks=1")

    def test_a_program_that_is_not_found_gives_127_and_its_name(self):
        done = weir("run", "--", "no-such-program")
        self.assertEqual(done.returncode, 127)
        self.assertIn("no-such-program", done.stderr)

    def test_a_file_that_is_no_program_gives_126(self):
        self.assertEqual(weir("run", "--", "/etc/passwd").returncode, 126)

    def test_softnics_settings_are_checked_before_the_program_starts(self):
        for wrong in ("nonsense", "rnr=101", "devices=0"):
            done = weir("run", "echo", "begun", WEIR_SOFTNIC=wrong)
            self.assertEqual((done.returncode, done.stdout), (2, ""), wrong)
            self.assertIn("WEIR_SOFTNIC: ", done.stderr)
            self.assertIn(wrong.split("=")[0], done.stderr)
        for right in ("", "devices=2,rnr=5"):
            self.assertEqual(weir("run", "echo", "begun", WEIR_SOFTNIC=right).stdout, "begun\n")

    def test_a_command_without_its_library_names_it(self):
        with tempfile.TemporaryDirectory() as directory:
            alone = shutil.copy(WEIR, directory)
            for args in (("run", "--", "true"), ("ping", "--device", "softnic", "127.0.0.1:19")):
                done = subprocess.run([alone, *args], capture_output=True, text=True, timeout=60,
                                      stdin=subprocess.DEVNULL, env=clean_environment())
                if "using softnic" in done.stderr and not done.stderr.count("library"):
                    self.skipTest("weir is installed here")
                self.assertEqual(done.returncode, 1)
                self.assertIn("libweir-softnic.so", done.stderr)

    def test_a_key_is_read_before_the_program_starts_and_found_from_any_directory(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "key")
            done = weir("run", "-q", "--unload", "--key", path, "true")
            self.assertEqual((done.returncode, path in done.stderr), (1, True), done.stderr)
            self.assertEqual(weir("key", "new", path).returncode, 0)
            done = weir(
                "run",
                "-q",
                "--unload",
                "--key",
                os.path.relpath(path),
                "printenv",
                "WEIR_UNLOAD_KEY",
            )
            self.assertEqual(done.stdout, os.path.realpath(path) + "\n")

    def test_options_of_the_program_are_its_own(self):
        done = weir("run", "--quiet", "echo", "--help", "-d")
        self.assertEqual((done.stdout, done.stderr), ("--help -d\n", ""))

    @unittest.skipIf("san.so" in subprocess.run(["ldd", WEIR], capture_output=True,
                                                text=True).stdout,
                     "a sanitizer's runtime suffers no preload before it")
    def test_other_preloads_are_kept(self):
        done = weir("run", "-q", "--", "printenv", "LD_PRELOAD", LD_PRELOAD="libm.so.6")
        self.assertRegex(done.stdout, r"libweir-softnic\.so:libm\.so\.6$")


class Key(unittest.TestCase):
    def test_a_new_key_is_the_owners_alone_and_never_overwrites(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "key")
            self.assertEqual(weir("key", "new", path).returncode, 0)
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            with open(path, "rb") as file:
                first = file.read()
            self.assertGreaterEqual(len(first), 16)
            done = weir("key", "new", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn(path, done.stderr)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), first)


class Donor(unittest.TestCase):
    """With a real donor, on softnic."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.key = os.path.join(self.directory.name, "key")
        weir("key", "new", self.key)
        self.address = f"127.0.0.1:{random.randint(20000, 60000)}"
        self.donor = subprocess.Popen(
            [WEIR, "serve", "--device", "softnic", "--memory", "64M", "--key", self.key,
             "--listen", self.address], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, env=clean_environment())
        deadline = time.monotonic() + 30
        while self.ping("-c1").returncode and time.monotonic() < deadline:
            time.sleep(0.1)

    def tearDown(self):
        self.donor.terminate()
        self.donor.communicate(timeout=30)
        self.directory.cleanup()

    def ping(self, *args):
        return weir("ping", "--device", "softnic", "--key", self.key, *args, self.address)

    def test_ping_measures_all_three_kinds_and_names_the_device(self):
        done = self.ping("--json", "-c", "5", "-i", "0", "--size", "64K")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual((result["count"], result["size_bytes"]), (5, 65536))
        self.assertTrue(result["device"].startswith("softnic"))
        for kind in ("message", "read", "write"):
            self.assertLessEqual(result[kind]["min_us"], result[kind]["p50_us"])
            self.assertLessEqual(result[kind]["p50_us"], result[kind]["max_us"])

    def test_a_99th_percentile_takes_a_hundred_samples(self):
        for count, is_shown in (("99", False), ("100", True)):
            result = json.loads(self.ping("--json", "-c", count, "-i", "0").stdout)
            said = self.ping("-q", "-c", count, "-i", "0").stdout
            for kind in ("message", "read", "write"):
                self.assertEqual("p99_us" in result[kind], is_shown)
                self.assertEqual(bool(re.search(rf"^{kind} .* - +[\d.]+$", said, re.M)),
                                 not is_shown)
            self.assertEqual("A p99 takes 100 round trips" in said, not is_shown)

    def test_ping_ends_at_an_interrupt_with_its_summary(self):
        ping = subprocess.Popen([WEIR, "ping", "--device", "softnic", "--key", self.key, "-c",
                                 "100000", self.address], stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.DEVNULL, env=clean_environment())
        self.assertIn("message", ping.stdout.readline())
        ping.send_signal(signal.SIGINT)
        rest, _ = ping.communicate(timeout=20)
        self.assertIn("p99", rest)
        self.assertEqual(ping.returncode, 0)

    def test_stat_with_the_key_shows_the_donor(self):
        done = weir("stat", "--json", "--device", "softnic", "--key", self.key, self.address)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual((told["donor"], told["memory_bytes"]), (self.address, 64 << 20))
        self.assertGreaterEqual(told["clients"], 1)
        self.assertRegex(told["incarnation"], "^[0-9a-f]{16}$")

    def test_a_client_without_the_key_is_refused(self):
        other = os.path.join(self.directory.name, "other")
        weir("key", "new", other)
        for options in ((), ("--key", other)):
            done = weir("stat", "--device", "softnic", *options, self.address)
            self.assertEqual(done.returncode, 1, options)
            self.assertIn("key", done.stderr)

    def test_the_donors_process_is_listed(self):
        processes = json.loads(weir("stat", "--json").stdout)["processes"]
        self.assertIn(self.donor.pid, [process["pid"] for process in processes])

    def test_json_is_valid_whatever_a_program_is_called(self):
        for name in (b'a"b', b"a\\b", b"a\nb", b"\xff\xc3"):
            program = os.path.join(os.fsencode(self.directory.name), name)
            shutil.copy(shutil.which("ibv_rc_pingpong"), program)
            port = str(random.randint(20000, 60000))
            child = subprocess.Popen([WEIR, "run", "-q", "--", program, "-p", port, "-g", "1"],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     env=clean_environment())
            listed = []
            try:
                while child.pid not in listed and child.poll() is None:
                    done = subprocess.run([WEIR, "stat", "--json"], stdin=subprocess.DEVNULL,
                                          capture_output=True, timeout=60, check=True,
                                          env=clean_environment())
                    said = json.loads(done.stdout.decode("utf-8", "strict"))
                    listed = [process["pid"] for process in said["processes"]]
            finally:
                child.kill()
                child.wait()
            self.assertIn(child.pid, listed, name)


class Doctor(unittest.TestCase):
    def test_the_path_is_proven(self):
        done = weir("doctor", "--json", "--device", "softnic")
        checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertEqual(checks["path"]["verdict"], "ok", checks["path"])
        broken = [name for name, check in checks.items() if check["verdict"] == "fail"]
        self.assertEqual(done.returncode, 1 if broken else 0)

    def test_a_donor_on_the_default_port_is_seen(self):
        # If this donor ends at once, another donor holds the port.
        donor = subprocess.Popen([WEIR, "serve", "--device", "softnic", "--memory", "64M"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, env=clean_environment())
        try:
            donor.stdout.readline()
            done = weir("doctor", "--json", "--device", "softnic")
        finally:
            donor.terminate()
            donor.communicate(timeout=60)
        checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertIn("taken", checks["port"]["text"])

    @unittest.skipIf(os.geteuid() == 0 and os.path.isdir("/sys/module/rdma_rxe"),
                     "this machine can be repaired")
    @unittest.skipIf(os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"),
                     "this machine has an RDMA device")
    def test_a_repair_that_fails_is_a_failure(self):
        with tempfile.TemporaryDirectory() as directory:
            modprobe = os.path.join(directory, "modprobe")
            with open(modprobe, "w", encoding="ascii") as file:
                file.write("#!/bin/sh\necho no such module >&2\nexit 1\n")
            os.chmod(modprobe, 0o755)
            done = weir("doctor", "--fix", PATH=f"{directory}:{os.environ['PATH']}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("fix: modprobe rdma_rxe\nno such module\n", done.stderr)
        self.assertIn("--fix failed for Soft-RoCE", done.stderr)

    @unittest.skipIf(os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"),
                     "this machine has an RDMA device")
    def test_softnic_is_no_rdma_device(self):
        done = weir("doctor", "--json", "--device", "softnic")
        device = json.loads(done.stdout)["checks"][0]
        self.assertEqual((device["check"], device["verdict"]), ("RDMA device", "warn"), device)

    def test_every_problem_has_a_remedy(self):
        done = weir("doctor", "--json", "--device", "softnic")
        for check in json.loads(done.stdout)["checks"]:
            if check["verdict"] == "fail" or check["check"] == "Soft-RoCE":
                self.assertIn("remedy", check)


if __name__ == "__main__":
    unittest.main(verbosity=2)
