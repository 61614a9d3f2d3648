#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Slurm's prolog lends memory to a job's pool, and the epilog takes the memory back.

slurm_test.py WEIR

Two folders of one host stand for two nodes. The scripts get the variables of slurmd alone.
"""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

WEIR = os.path.abspath(sys.argv.pop(1))
SLURM = pathlib.Path(__file__).resolve().parents[2] / "packaging/slurm"
SCRIPTS = ("prolog", "epilog", "task-prolog")
PATIENCE = 120
JOB = "42"


class Job(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-slurm-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.pool = f"file:{self.folder}/job-{JOB}"
        self.site_key = self.folder / "site.key"
        self.weir("key", "new", str(self.site_key))
        for node in ("n1", "n2"):
            self.configure(node)
            self.addCleanup(self.slurm, "epilog", node)

    def configure(self, node, **more):
        settings = {"WEIR_SLURM_POOLS": f"file:{self.folder}", "WEIR_SLURM_KEY": self.site_key,
                    "WEIR_SLURM_MEMORY": "32M", "WEIR_SLURM_SPARE": "16M",
                    "WEIR_SLURM_LISTEN": "127.0.0.1:0", "WEIR": WEIR,
                    "WEIR_SLURM_RUN": self.folder / node, **more}
        (self.folder / f"{node}.conf").write_text(
            "".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")

    def slurm(self, script, node):
        return subprocess.run(
            [SLURM / script], capture_output=True, text=True, timeout=PATIENCE, check=False,
            stdin=subprocess.DEVNULL, cwd="/",
            env={"SLURM_JOB_ID": JOB, "SLURM_JOB_UID": str(os.getuid()), "SLURM_JOB_USER": "user",
                 "SLURMD_NODENAME": node, "SLURM_JOB_NODELIST": "n[1-2]",
                 "SLURM_SCRIPT_CONTEXT": script.replace("-", "_"), "WEIR_DEVICE": "softnic",
                 "WEIR_SLURM_CONF": f"{self.folder}/{node}.conf"})

    def runs(self, script, node):
        done = self.slurm(script, node)
        self.assertEqual((done.returncode, done.stderr), (0, ""), (script, node))
        return done.stdout

    def weir(self, *words, **more):
        done = subprocess.run([WEIR, *words], capture_output=True, timeout=PATIENCE, check=False,
                              env=dict(os.environ, WEIR_DEVICE="softnic"), **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def donors(self):
        return {donor["name"]: donor["incarnation"] for donor in
                json.loads(self.weir("pool", "donors", "--json", self.pool))["donors"]}

    def test_a_job_has_a_pool_while_it_runs(self):
        for node in ("n1", "n2"):
            self.runs("prolog", node)
        donors = self.donors()
        self.assertEqual(set(donors), {"n1", "n2"})
        key = self.folder / "n1" / JOB / "key"
        self.assertEqual(self.runs("task-prolog", "n1"),
                         f"export WEIR_POOL={self.pool}\nexport WEIR_KEY={key}\n")
        self.assertEqual(stat.S_IMODE(key.stat().st_mode), 0o400)
        self.assertEqual(key.read_bytes(), (self.folder / "n2" / JOB / "key").read_bytes())
        self.assertNotIn(key.read_text(encoding="ascii").strip(),
                         self.site_key.read_text(encoding="ascii"))
        data = os.urandom(1 << 20)
        self.weir("pool", "volume", "create", self.pool, "data", "4M")
        self.weir("pool", "volume", "import", "--key", str(key), self.pool, "data", input=data)
        said = self.weir("pool", "volume", "export", "--key", str(key), self.pool, "data")
        self.assertEqual(said[:len(data)], data)
        with self.subTest("a repeated prolog keeps the donor"):
            self.runs("prolog", "n1")
            self.assertEqual(self.donors(), donors)
        processes = [int((self.folder / node / JOB / "pid").read_text(encoding="ascii"))
                     for node in ("n1", "n2")]
        for node in ("n1", "n2"):
            self.runs("epilog", node)
            self.assertEqual(os.listdir(self.folder / node), [])
            self.assertEqual(self.runs("task-prolog", node), "")
        for process in processes:
            self.assertFalse(os.path.exists(f"/proc/{process}/exe") and
                             os.readlink(f"/proc/{process}/exe") == WEIR)
        self.assertEqual(list(self.folder.glob("job-*")), [])
        self.runs("epilog", "n1")

    def test_a_job_starts_without_a_pool_if_there_can_be_none(self):
        for reason, more in (("cannot read /nonexistent", {"WEIR_SLURM_KEY": "/nonexistent"}),
                             ("nosuch", {"WEIR_SLURM_POOLS": f"file:{self.folder}/nosuch"}),
                             ("address", {"WEIR_SLURM_LISTEN": "192.0.2.1"})):
            self.configure("n1", **more)
            done = self.slurm("prolog", "n1")
            self.assertEqual(done.returncode, 0)
            self.assertIn(f"job {JOB} has no pool on this node: ", done.stderr)
            self.assertIn(reason, done.stderr)
            self.assertEqual(self.slurm("task-prolog", "n1").stdout, "")
            self.configure("n1")
            self.runs("epilog", "n1")

    def test_a_wrong_configuration_keeps_the_node_in_service(self):
        conf = self.folder / "n1.conf"
        good = conf.read_text(encoding="utf-8")
        for reason, text in (("No such file", None), ("unterminated", good + "WEIR='\n"),
                             ("WEIR_SLURM_MEMORY", good.replace("WEIR_SLURM_MEMORY=", "NONE=")),
                             ("nosuchcommand", good + "nosuchcommand\n"),
                             ("a command fails", good + "false\n")):
            conf.unlink()
            if text is not None:
                conf.write_text(text, encoding="utf-8")
            for script in SCRIPTS:
                done = self.slurm(script, "n1")
                self.assertEqual((done.returncode, done.stdout), (0, ""), (script, reason))
                self.assertRegex(done.stderr, rf"(?i)^weir: job {JOB} .*: {conf}: .*{reason}")
            conf.write_text(good, encoding="utf-8")


class Source(unittest.TestCase):
    @unittest.skipUnless(shutil.which("shellcheck"), "no shellcheck: scripts/deps check")
    def test_shellcheck_finds_no_fault(self):
        paths = [f"packaging/slurm/{name}" for name in SCRIPTS]
        done = subprocess.run(["shellcheck", "-x", *paths], cwd=SLURM.parents[1],
                              capture_output=True, text=True, check=False, timeout=PATIENCE)
        self.assertEqual(done.stdout + done.stderr, "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
