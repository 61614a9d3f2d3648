#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Services: configuration, systemd's protocol, units, and mount.weir.

services_test.py WEIR UNITS MOUNT
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest

WEIR, UNITS, HELPER = (os.path.abspath(path) for path in sys.argv[1:4])
del sys.argv[1:4]
ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICE = str(ROOT / "packaging/systemd/weir-blk-device")
PATIENCE = 60


class Service(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-service-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "weir.toml"
        self.configure("")

    def configure(self, text):
        self.file.write_text(text, encoding="utf-8")

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("WEIR_", "LD_PRELOAD"))}
        return {**kept, "WEIR_DEVICE": "softnic", "WEIR_CONFIG": str(self.file), **more}

    def weir(self, *words, **more):
        return subprocess.run([WEIR, *words], capture_output=True, text=True, timeout=PATIENCE,
                              check=False, stdin=subprocess.DEVNULL,
                              env=self.environment(**more))

    def start(self, *words, **more):
        log = open(self.folder / "log", "w", encoding="utf-8")
        self.addCleanup(log.close)
        child = subprocess.Popen([WEIR, *words], stdout=log, stderr=log,
                                 env=self.environment(**more))
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def told(self, pattern):
        """Waits for a line of the service's log."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            text = (self.folder / "log").read_text(encoding="utf-8")
            match = re.search(pattern, text, re.M)
            if match:
                return match[match.lastindex or 0]
            time.sleep(0.02)
        return self.fail(f"no {pattern} in: {text}")


class Configuration(Service):
    def shown(self, *sections, **more):
        done = self.weir("config", "show", *sections, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_each_place_gives_way_to_the_one_before(self):
        self.configure('[serve]\nmemory = "32M"\nlog-level = "debug"\nno-reserve = true\n'
                       'quota = "4M"\n')
        said = self.shown("serve", WEIR_SERVE_MEMORY="16M", WEIR_SERVE_NO_RESERVE="no")
        self.assertIn('memory = "16M"  # WEIR_SERVE_MEMORY\n', said)
        self.assertIn("no-reserve = false  # WEIR_SERVE_NO_RESERVE\n", said)
        self.assertIn(f'quota = "4M"  # {self.file}:5: quota\n', said)
        self.start("serve", "--listen", "127.0.0.1:0", "--memory", "8M", WEIR_SERVE_MEMORY="16M")
        self.assertIn("memory=8388608", self.told("msg=listening.*"))

    def test_a_list_repeats_an_option(self):
        keys = [str(self.folder / name) for name in ("a", "b")]
        for key in keys:
            self.assertEqual(self.weir("key", "new", key).returncode, 0)
        self.configure(f'[serve]\nkey = {keys}\nmemory = "8M"\nlisten = "127.0.0.1:0"\n'
                       .replace("'", '"'))
        self.start("serve")
        address = self.told("^ready (.*)$")
        for key in keys:
            self.assertEqual(self.weir("ping", "-c", "1", "--key", key, address).returncode, 0)
        self.assertEqual(self.weir("ping", "-c", "1", address).returncode, 1)

    def test_a_mistake_is_named_with_its_line(self):
        for text, complaint in (
                ("[serve]\nmemory = 4\n", ":2: memory = 4: expected a size"),
                ('[serve]\n\nmemroy = "4M"\n',
                 ":3: weir serve has no option memroy: did you mean 'memory'?"),
                ('[serv]\nkey = "k"\n', ":1: no section serv: did you mean 'serve'?"),
                ("[quux]\na = 1\n", ":1: no section quux: there are serve, mount, share"),
                ("\n[serv]\n", ":2: no section serv: did you mean 'serve'?"),
                ('[serve]\nmemory = ["4M", "8M"]\n', ":2: memory takes one value, not a list"),
                ('[serve]\nlisten = "300.1.1.1"\n', ":2: listen = 300.1.1.1: expected host"),
                ('[serve]\nweb = "70000"\n', ":2: web = 70000: expected [ADDR:]PORT"),
                ('[serve]\nmetrics = "unix:"\n', ":2: metrics = unix:: expected [ADDR:]PORT"),
                ('[serve]\njson = "yes"\n', ":2: json = yes: expected true or false"),
                ("[serve]\nquota = true\n", ":2: quota = true: expected a size"),
                ("[serve]\nkey = [[1]]\n", ":2: key: expected a string"),
                ('[serve]\nlisten = "300.1.1.1:99999"\n', ":2: listen"),
                ("memory = 4\n", ":1: memory: stands in no section"),
                ("[serve\n", ":1: ")):
            self.configure(text)
            for command in (("config", "check"), ("serve",), ("config", "show", "serve")):
                done = self.weir(*command)
                self.assertEqual(done.returncode, 2, (text, command))
                self.assertIn(f"{self.file}{complaint}", done.stderr)
        done = self.weir("serve", WEIR_SERVE_KEY_CLIENTS="0")
        self.assertEqual(done.returncode, 2)

    def test_without_a_section_all_are_shown(self):
        self.configure('[metrics]\nlisten = "9473"\n[serve]\nmemory = "4M"\n')
        self.assertEqual(self.shown().count("\n["), 3)
        self.assertRegex(self.shown(), r'\[serve\]\nmemory = "4M"[^[]*\[mount\]')

    def test_a_misspelt_section_stops_each_service(self):
        self.configure("[serv]\nmemory = 4\n")
        for command in (("mount", "a", "b"), ("share",), ("metrics",), ("config", "check")):
            done = self.weir(*command)
            self.assertEqual(done.returncode, 2, command)
            self.assertIn(":1: no section serv: did you mean 'serve'?", done.stderr)
        self.assertEqual(self.weir("config", "show", "serv").returncode, 2)

    def make(self, name, text, mode=0o600):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def test_the_check_looks_at_what_values_name(self):
        at = self.folder
        for name in ("good", "open"):
            self.assertEqual(self.weir("key", "new", str(at / name)).returncode, 0)
        (at / "open").chmod(0o644)
        self.make("short", "x")
        self.make("half.pem", "-----BEGIN CERTIFICATE-----\n")
        self.make("open.pem", "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n", 0o644)
        self.make("rules", "default wieght 1\n")
        wrong = (
            ("serve", f'key = "{at}/none"', "key file .*none: No such file"),
            ("serve", f'key = "{at}/open"', "mode 0644: others may read it"),
            ("serve", f'key = ["{at}/good", "{at}/short"]', "holds 1 bytes"),
            ("serve", f'keys = "{at}/none"', "none"),
            ("serve", f'identity = "{at}/good"', "identity"),
            ("serve", f'metrics = "1"\nmetrics-tls = "{at}/none"', "none: No such file"),
            ("serve", f'metrics = "1"\nmetrics-tls = "{at}/half.pem"', "no private key in it"),
            ("serve", f'web = "1"\nweb-tls = "{at}/open.pem"', "mode 0644: others may read"),
            ("serve", 'web = "0.0.0.0:1"', "0.0.0.0:1: beyond loopback a certificate"),
            ("metrics", 'listen = "192.0.2.1:1"', "beyond loopback a certificate"),
            ("serve", 'pool = "nowhere"', "this host knows no pool nowhere"),
            ("metrics", 'pool = "etcd:none"', "etcd:"),
            ("mount", f'key = "{at}/open"', "mode 0644"),
            ("share", f'config = "{at}/rules"', "line 1: wieght"))
        for section, text, complaint in wrong:
            self.configure(f"[{section}]\n{text}\n")
            done = self.weir("config", "check")
            self.assertEqual(done.returncode, 1, (text, done.stderr))
            self.assertRegex(done.stderr, f"{self.file}:[23]: [a-z-]+: .*{complaint}")
        self.configure("".join(f"[{section}]\n{text}\n" for section, text, _ in
                               (wrong[0], wrong[12], wrong[13])))
        self.assertEqual(self.weir("config", "check").stderr.count("config check: "), 3)
        self.configure(f'[serve]\nkey = ["{at}/good", "/run/credentials/a/weir.key"]\n'
                       'pool = "etcd:http://127.0.0.1:1/shop"\nmetrics = "unix:m"\n')
        done = self.weir("config", "check")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("systemd hands /run/credentials/a/weir.key over", done.stdout)

    def test_the_check_refuses_what_cannot_start(self):
        key = self.folder / "key"
        self.assertEqual(self.weir("key", "new", str(key)).returncode, 0)
        for section, text, status, complaint in (
                ("serve", 'listen = "0.0.0.0:0"', 1, "a donor without a key listens on loopback"),
                ("serve", 'listen = "192.0.2.1"', 1, "give it a key"),
                ("share", 'listen = "0.0.0.0:0"', 1, "a mux without a key listens on loopback"),
                ("serve", 'metrics = "9474"\nweb = "127.0.0.1:9474"', 2, "cannot share"),
                ("serve", 'metrics = "unix:m"\nweb = "unix:m"', 2, "cannot share unix:m"),
                ("serve", "reserve = true\nno-reserve = true", 2, "exclude each other"),
                ("serve", 'domain = "rack"', 2, "need --pool"),
                ("serve", 'name = "a"', 2, "need --pool")):
            self.configure(f"[{section}]\n{text}\n")
            for command in (("config", "check"), (section,)):
                done = self.weir(*command)
                self.assertEqual(done.returncode, status, (text, command, done.stderr))
                self.assertIn(complaint, done.stderr)
        for text, count in ((f'listen = "0.0.0.0:0"\nkey = "{key}"', "2 values are valid"),
                            ('metrics = "0"\nweb = "0"', "2 values are valid"),
                            ('metrics = "1"\nweb = "2"', "2 values are valid"),
                            ("reserve = true", "1 value is valid"), ("", "0 values are valid")):
            self.configure(f"[serve]\n{text}\n")
            done = self.weir("config", "check")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(count, done.stdout)

    def test_what_is_shown_is_toml_again(self):
        name = 'a"b\\c\nd\x1b[31m'
        self.configure('[serve]\nkey = ["a", "b"]\nno-reserve = true\n')
        shown = self.shown(WEIR_SERVE_DOMAIN=name, WEIR_SERVE_RESERVE="no")
        self.assertNotIn("\x1b", shown)
        self.assertEqual(tomllib.loads(shown)["serve"],
                         {"domain": name, "key": ["a", "b"], "no-reserve": True, "reserve": False})

    def test_a_misspelt_variable_is_named(self):
        for command in (("config", "check"), ("config", "show"), ("serve", "--listen", "x:y")):
            said = self.weir(*command, WEIR_SERVE_MEMROY="64M").stderr
            self.assertEqual(said.count("WEIR_SERVE_MEMROY is ignored"), 1, said)
            self.assertIn("did you mean 'WEIR_SERVE_MEMORY'?", said)
        said = self.weir("config", "show", WEIR_SERVE_MEMORY="64M", WEIR_SHARE="x", WEIR_SERVE="y")
        self.assertEqual((said.returncode, said.stderr), (0, ""))

    def test_a_folder_is_no_file(self):
        for command in (("config", "check"), ("serve",)):
            done = self.weir(*command, WEIR_CONFIG=str(self.folder))
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("Is a directory", done.stderr)

    def test_programs_read_the_configuration_as_json(self):
        self.configure('[serve]\nmemory = "32M"\nkey = ["a", "b\\\"c"]\n')
        shown = json.loads(self.shown("--json", "serve", WEIR_SERVE_MEMORY="16M"))
        self.assertEqual(shown, {"serve": [
            {"option": "key", "value": "a", "from": f"{self.file}:3: key"},
            {"option": "key", "value": 'b"c', "from": f"{self.file}:3: key"},
            {"option": "memory", "value": "16M", "from": "WEIR_SERVE_MEMORY"}]})
        self.assertEqual(len(json.loads(self.shown("--json"))), 4)

    def test_a_file_that_was_named_must_be_there(self):
        os.unlink(self.file)
        done = self.weir("serve")
        self.assertEqual(done.returncode, 2)
        self.assertIn("No such file", done.stderr)

    def test_the_example_is_valid_with_and_without_its_comments(self):
        example = (ROOT / "packaging/weir.toml").read_text(encoding="utf-8")
        key, keys, rules = (self.folder / name for name in ("key", "keys", "rules"))
        self.assertEqual(self.weir("key", "new", str(key)).returncode, 0)
        self.assertEqual(self.weir("key", "add", str(keys), "a", str(self.folder / "a")).returncode,
                         0)
        self.make("rules", "default weight 2\n")
        whole = re.sub(r"^#(?=[a-z-]+ = )", "", example, flags=re.M)
        # The file offers a key and a list of keys as alternatives.
        for text in (example, re.sub("^key = ", "#key = ", whole, count=1, flags=re.M),
                     re.sub("^keys = ", "#keys = ", whole, flags=re.M)):
            for path, real in (("/etc/weir/key", key), ("/var/lib/weir-serve/keys", keys),
                               ("/etc/weir/share.conf", rules)):
                self.assertIn(f'"{path}"', text)
                text = text.replace(f'"{path}"', f'"{real}"')
            self.configure(text)
            done = self.weir("config", "check")
            self.assertEqual((done.returncode, done.stderr), (0, ""))


class Manager(Service):
    """systemd's side of the protocol: $NOTIFY_SOCKET and the watchdog."""

    def setUp(self):
        super().setUp()
        self.inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.inbox.close)
        self.inbox.settimeout(PATIENCE)

    def listen(self, address):
        self.inbox.bind(address)
        return address.replace("\0", "@")

    def heard(self, wanted):
        """Waits for a message that begins with @wanted."""
        while True:
            text = self.inbox.recv(4096).decode()
            if text.startswith(wanted):
                return text

    def test_a_donor_is_ready_reloads_and_stops(self):
        self.configure('[serve]\nmemory = "16M"\nlisten = "127.0.0.1:0"\n')
        donor = self.start("serve", NOTIFY_SOCKET=self.listen(str(self.folder / "notify")))
        text = self.heard("READY=1")
        self.assertRegex(text, r"^READY=1\nSTATUS=lends 16\.0 MiB at 127\.0\.0\.1:\d+$")
        self.configure('[serve]\nmemory = "4M"\nlisten = "127.0.0.2:0"\nlog-level = "warning"\n')
        donor.send_signal(signal.SIGHUP)
        self.assertRegex(self.heard("RELOADING=1"), r"\nMONOTONIC_USEC=\d+$")
        self.assertIn("lends 4.0 MiB", self.heard("READY=1"))
        self.told("msg=unchanged option=listen")
        self.assertNotIn("option=reserve", (self.folder / "log").read_text(encoding="utf-8"))
        self.configure("[serve\n")
        donor.send_signal(signal.SIGHUP)
        self.assertIn("lends 4.0 MiB", self.heard("READY=1"))
        self.told('msg="not reloaded"')
        donor.send_signal(signal.SIGTERM)
        self.heard("STOPPING=1")
        self.assertEqual(donor.wait(PATIENCE), 0)

    def test_a_watched_donor_says_that_it_is_alive(self):
        donor = self.start("serve", "--memory", "4M", "--listen", "127.0.0.1:0",
                           NOTIFY_SOCKET=self.listen(f"\0weir-{os.getpid()}"),
                           WATCHDOG_USEC="300000")
        for _ in range(3):
            self.heard("WATCHDOG=1")
        donor.send_signal(signal.SIGTERM)
        self.assertEqual(donor.wait(PATIENCE), 0)

    def test_share_and_metrics_are_ready_too(self):
        notify = self.listen(str(self.folder / "notify"))
        for words, more in ((("share", "--listen", "127.0.0.1:0", "--socket",
                              str(self.folder / "share")), {"WATCHDOG_USEC": "300000"}),
                            (("metrics", "--listen", "0"), {})):
            child = self.start(*words, NOTIFY_SOCKET=notify, **more)
            self.heard("READY=1")
            if more:
                self.heard("WATCHDOG=1")
                child.send_signal(signal.SIGHUP)
                self.heard("RELOADING=1")
                self.heard("READY=1")
                self.heard("WATCHDOG=1")
            child.send_signal(signal.SIGTERM)
            self.heard("STOPPING=1")
            self.assertEqual(child.wait(PATIENCE), 0)


class Units(unittest.TestCase):
    SERVICES = ("weir-serve", "weir-serve@", "weir-share", "weir-metrics")
    DEVICES = {"weir-blk@": "weir-blk-device", "weir-blk-swap@": "weir-blk-swap"}

    def setUp(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        folder = tempfile.TemporaryDirectory(prefix="weir-units-")
        self.addCleanup(folder.cleanup)
        self.units = []
        self.folder = pathlib.Path(folder.name)
        for name in self.SERVICES:
            text = pathlib.Path(UNITS, f"{name}.service").read_text(encoding="utf-8")
            path = self.folder / f"{name.replace('@', '@shop')}.service"
            path.write_text(re.sub(r"^ExecStart=\S+/weir ", f"ExecStart={WEIR} ", text,
                                   flags=re.M), encoding="utf-8")
            self.units.append(str(path))
        for name, script in self.DEVICES.items():
            text = pathlib.Path(UNITS, f"{name}.service").read_text(encoding="utf-8")
            path = self.folder / f"{name}data.service"
            path.write_text(re.sub(rf"=\S+/{script} ", f"={ROOT}/packaging/systemd/{script} ",
                                   text), encoding="utf-8")
            self.units.append(str(path))

    def analyze(self, *words):
        return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)

    def test_systemd_finds_no_fault(self):
        done = self.analyze("verify", "--man=no", *self.units)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_sandbox_is_tight(self):
        for unit, most in zip(self.units, (16, 16, 16, 25, 35, 35), strict=True):
            done = self.analyze("security", "--offline=true", f"--threshold={most}", unit)
            if "unrecognized option" in done.stderr:
                self.skipTest("an older systemd")
            self.assertEqual(done.returncode, 0, done.stdout[-200:] + done.stderr)

    def test_a_block_device_needs_few_capabilities(self):
        for name in self.DEVICES:
            settings = self.settings(name)
            self.assertIn("CapabilityBoundingSet=CAP_SYS_ADMIN CAP_NET_ADMIN CAP_SYS_RESOURCE",
                          settings)
            # Not by the unit's own scripts, which may load no module.
            self.assertIn("Wants=network-online.target modprobe@weir_blk.service", settings)
            swaps = "SystemCallFilter=@system-service seccomp @swap" in settings
            self.assertEqual(swaps, name == "weir-blk-swap@")

    def test_the_folder_of_the_sockets_of_mounts_is_there(self):
        folder = re.search(r"unix:(\S+)/m\.sock",
                           (ROOT / "docs/how-to/watch.md").read_text(encoding="utf-8"))[1]
        path = ROOT / "packaging/systemd/tmpfiles.conf"
        self.assertIn(f"\nd {folder} 0755 root root -\n", path.read_text(encoding="utf-8"))
        # weir-share's folder ends with weir-share.
        self.assertNotIn(f"RuntimeDirectory={pathlib.Path(folder).name}",
                         self.settings("weir-share"))

    def settings(self, name):
        text = pathlib.Path(UNITS, f"{name}.service").read_text(encoding="utf-8")
        return [line for line in text.splitlines() if "=" in line and not line.startswith("#")]

    def test_services_have_a_user_of_their_own_and_no_capability(self):
        for name in self.SERVICES[:3]:
            settings = self.settings(name)
            self.assertIn("DynamicUser=yes", settings)
            self.assertIn("LoadCredential=weir.key", settings)
            self.assertEqual([line for line in settings if "Capabilit" in line],
                             ["CapabilityBoundingSet="])
            self.assertIn("NoNewPrivileges=yes", settings)
            # Else the program cannot set its own filter, and goes on without.
            self.assertIn("SystemCallFilter=@system-service seccomp", settings)
        # For a changing list of keys.
        self.assertIn("StateDirectory=weir-serve", self.settings("weir-serve"))
        self.assertIn("StateDirectoryMode=0700", self.settings("weir-serve"))
        # Donors of one machine have nothing in common.
        settings = self.settings("weir-serve@")
        for setting in ("Environment=WEIR_CONFIG=/etc/weir/%i.toml", "StateDirectory=weir-serve-%i",
                        "EnvironmentFile=-/etc/default/weir-serve-%i"):
            self.assertIn(setting, settings)
        # softnic's peers are processes of one user.
        softnic = (ROOT / "packaging/systemd/softnic.conf").read_text(encoding="utf-8")
        self.assertIn("\nDynamicUser=no\n", softnic)


class Credential(Service):
    def test_a_donor_takes_the_key_that_systemd_hands_over(self):
        """As an access list shows: root's, and readable by a group."""
        key, shared = self.folder / "weir.key", self.folder / "own.key"
        self.assertEqual(self.weir("key", "new", str(key)).returncode, 0)
        shutil.copy(key, shared)
        key.chmod(0o440)
        words = ("serve", "--memory", "4M", "--listen", "127.0.0.1:0", "--key", str(key))
        self.assertIn("others may read it", self.weir(*words).stderr)
        self.start(*words, CREDENTIALS_DIRECTORY=str(self.folder))
        address = self.told("^ready (.*)$")
        shared.chmod(0o600)
        self.assertEqual(self.weir("ping", "-c", "1", "--key", str(shared), address).returncode, 0)


class DeviceHelper(unittest.TestCase):
    """weir-blk-device, with a weir that makes a file, and no module."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-device-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.link = self.folder / "links/data"
        self.fake("modprobe", "exit 0")
        self.fake("weir", f'echo "$@" >>{folder.name}/calls\n'
                  f'case $2 in attach) touch {folder.name}/weir3; echo {folder.name}/weir3 ;;\n'
                  'detach) rm "$3" ;; esac')

    def fake(self, name, text):
        (self.folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (self.folder / name).chmod(0o755)

    def device(self, what, conf=None, name="data"):
        if conf is not None:
            (self.folder / "data.conf").write_text(conf, encoding="utf-8")
        (self.folder / "calls").write_text("", encoding="utf-8")
        done = subprocess.run([DEVICE, what, name], capture_output=True, text=True, check=False,
                              timeout=PATIENCE, env={"PATH": f"{self.folder}:{os.environ['PATH']}",
                                                     "WEIR_CONF": str(self.folder),
                                                     "RUNTIME_DIRECTORY": str(self.link.parent)})
        return (done.returncode, done.stderr,
                (self.folder / "calls").read_text(encoding="utf-8").splitlines())

    def test_the_link_leads_to_the_device_until_the_end(self):
        for conf, call in (("donors=a,b size=4G options='--key /k --replicas 2'",
                            "blk attach --key /k --replicas 2 a,b 4G"),
                           ("volume=pool:shop/disk options='--key /k'",
                            "blk attach --key /k pool:shop/disk")):
            self.assertEqual(self.device("attach", conf), (0, "", [call]))
            self.assertEqual(os.readlink(self.link), f"{self.folder}/weir3")
            # Another attempt takes away what the first one has left.
            self.assertEqual(self.device("attach")[2], [f"blk detach {self.folder}/weir3", call])
            self.assertEqual(self.device("detach")[0], 0)
            self.assertFalse(self.link.is_symlink())
            self.assertEqual(self.device("detach"), (0, "", []))

    def test_mistakes_are_told(self):
        for conf, complaint in (("size=4G", "volume=, or donors= and size=, are wanted"),
                                ("donors=a", "volume=, or donors="),
                                ("donors=a size=1G volume=pool:p/v", "exclude each other")):
            status, said, calls = self.device("attach", conf)
            self.assertEqual((status, calls), (1, []))
            self.assertIn(complaint, said)
        self.assertIn("other.conf cannot be read", self.device("attach", name="other")[1])
        self.assertEqual(self.device("start")[0], 1)
        self.fake("weir", "exit 2")  # which systemd does not try again
        self.assertEqual(self.device("attach", "volume=pool:p/v")[0], 2)


class MountHelper(unittest.TestCase):
    """mount.weir, with a weir that prints its arguments."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-helper-")
        self.addCleanup(folder.cleanup)
        self.path = folder.name
        for name, status in (("weir", 0), ("mount", 0), ("umount", 0), ("bad/mount", 1)):
            fake = pathlib.Path(folder.name, name)
            fake.parent.mkdir(exist_ok=True)
            fake.write_text('#!/bin/sh\n[ "${0##*/}" = weir ] || echo "${0##*/}"\n'
                            f'printf "%s\\n" "$@"\nexit {status}\n', encoding="utf-8")
            fake.chmod(0o755)

    def mount(self, *words, first=""):
        path = f"{first}:{self.path}:{os.environ['PATH']}"
        done = subprocess.run([HELPER, *words], capture_output=True, text=True, check=False,
                              env={"PATH": path.strip(":")}, timeout=PATIENCE)
        return done.returncode, done.stdout.splitlines()

    def test_options_become_those_of_weir_mount(self):
        self.assertEqual(self.mount("donor:1", "/a b", "-n", "-o",
                                    "rw,_netdev,nofail,key=/k e y,timeout=3,hard,x-systemd.mount"),
                         (0, ["mount", "--key=/k e y", "--timeout=3", "--hard", "--", "donor:1",
                              "/a b"]))
        self.assertEqual(self.mount("d", "/m", "-o", "ro", "-o", "noatime,threads=2"),
                         (0, ["mount", "--read-only", "--threads=2", "--", "d", "/m"]))
        self.assertEqual(self.mount("d", "/m"), (0, ["mount", "--", "d", "/m"]))

    def test_noexec_is_kept_or_nothing_is_mounted(self):
        mounted = ["mount", "--read-only", "--", "d", "/m"]
        flags = ["mount", "-o", "remount,bind,nodev,nosuid,noexec,ro", "/m"]
        self.assertEqual(self.mount("d", "/m", "-o", "noexec,ro"), (0, [*mounted, *flags]))
        self.assertEqual(self.mount("d", "/m", "-o", "noexec,ro", first=f"{self.path}/bad"),
                         (1, [*mounted, *flags, "umount", "/m"]))

    def test_usual_words_of_fstab_are_taken(self):
        for word in ("nodiratime", "diratime", "async", "sync", "dirsync", "owner", "group",
                     "lazytime", "nolazytime", "strictatime", "norelatime", "iversion", "nomand",
                     "silent", "user=alice", "users", "nousers", "X-mount.mkdir"):
            self.assertEqual(self.mount("d", "/m", "-o", word), (0, ["mount", "--", "d", "/m"]),
                             word)

    def test_a_remount_changes_what_the_kernel_can_change(self):
        for words, flags in (("remount,ro,key=/k", "nodev,nosuid,ro"),
                             ("rw,remount,noexec", "nodev,nosuid,noexec,rw")):
            self.assertEqual(self.mount("d", "/m", "-o", words),
                             (0, ["mount", "-i", "-o", f"remount,bind,{flags}", "/m"]))

    def test_help_is_no_error(self):
        status, lines = self.mount("--help")
        self.assertEqual((status, len(lines)), (0, 1))

    def test_a_trial_mounts_nothing(self):
        self.assertEqual(self.mount("d", "/m", "-f", "-o", "hard"), (0, []))

    def test_wrong_calls_are_refused(self):
        for words in ((), ("d",), ("d", "/m", "-o"), ("d", "/m", "--hard")):
            self.assertEqual(self.mount(*words), (1, []))


if __name__ == "__main__":
    unittest.main(verbosity=2)
