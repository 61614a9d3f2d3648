# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir fs df, du, top, warm and check, on a donor's mount. See mount/pool_test.py for pools."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mount"))
from world import FsTest, PATIENCE_SECONDS, WEIR, main, stored, until, write  # noqa: E402

MB = 1 << 20


def weir_fs(*args, **more):
    return subprocess.run([WEIR, "fs", *args], capture_output=True, text=True,
                          timeout=PATIENCE_SECONDS, **more)


class Tools(FsTest):
    def json(self, *args, status=0):
        done = weir_fs(args[0], "--json", *args[1:])
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout)

    def fill(self):
        os.makedirs("a/b")
        write("a/file", b"x" * MB)
        write("a/b/file", b"x" * (2 * MB + 1))
        os.link("a/file", "a/again")
        write("small", b"x")
        with open("sparse", "wb") as file:
            file.truncate(100 * MB)
        os.symlink("small", "symlink")

    def test_du_counts_what_is_held(self):
        self.fill()
        paths = {entry["path"]: entry for entry in self.json("du", self.dir)["paths"]}
        a, all_ = paths[os.path.join(self.dir, "a")], paths[self.dir]
        self.assertEqual(set(paths), {self.dir, os.path.join(self.dir, "a")})
        self.assertEqual((a["files"], a["directories"]), (2, 2))
        self.assertEqual(a["size"], 3 * MB + 1)
        self.assertEqual(all_["size"], 103 * MB + 2)
        self.assertEqual(all_["files"], 4)
        self.assertGreaterEqual(all_["held"], 3 * MB)
        self.assertLess(all_["held"], stored(3 * MB) + MB)
        self.assertEqual(a["held_by_all_copies"], a["held"])
        shown = weir_fs("du", self.dir)
        self.assertIn("3.0 MiB", shown.stdout)
        self.assertEqual(json.loads(weir_fs("du", "--json", cwd=self.dir).stdout)["paths"][-1]
                         ["size"], all_["size"])

    def test_df_shows_the_mount_and_its_donor(self):
        write("file", b"x" * MB)
        mount = self.json("df", self.dir)["mounts"][0]
        self.assertEqual(mount["mountpoint"], self.world.clients[0].path)
        self.assertEqual(mount["donor"], self.world.address)
        self.assertEqual(mount["used"] + mount["free"], mount["bytes"])
        self.assertGreaterEqual(mount["used"], MB)
        self.assertEqual(mount["copies"], 1)
        self.assertIn(mount["mountpoint"],
                      [one["mountpoint"] for one in self.json("df")["mounts"]])
        self.assertIn(self.world.address, weir_fs("df").stdout)

    def test_warm_brings_files_to_this_machine(self):
        self.fill()
        self.assertEqual(self.json("warm", self.dir)["bytes"], 103 * MB + 2)
        self.assertEqual(self.json("warm", "a/file", "small")["files"], 2)

    def test_check_reads_everything(self):
        self.fill()
        about = self.json("check", "--threads", "3", self.dir)
        self.assertEqual((about["failures"], about["files"]), (0, 4))
        self.assertEqual(about["bytes"], 103 * MB + 2)
        about = self.json("check", self.world.clients[0].path)
        self.assertEqual((about["failures"], about["donors_unchecked"]), (0, 0))
        self.assertGreater(about["donor_names"], 8)
        self.assertGreater(about["donor_inodes"], 7)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_only_root_and_the_mounts_user_have_the_donor_checked(self):
        write("file")
        os.chmod(self.world.dir, 0o755)
        done = subprocess.run(["setpriv", "--reuid=1234", "--clear-groups", WEIR, "fs", "check",
                               "--json", "file"], capture_output=True, text=True,
                              timeout=PATIENCE_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("only root", done.stderr)
        self.assertEqual(json.loads(done.stdout)["donors_unchecked"], 1)

    def test_top_shows_traffic_by_file_and_program(self):
        with subprocess.Popen([WEIR, "fs", "top", "--json", "--interval", "0.3", self.dir],
                              stdout=subprocess.PIPE, text=True) as top:
            self.addCleanup(top.kill)
            with open("busy", "wb", buffering=0) as busy, open("less", "wb", buffering=0) as less:
                seen = {"busy": 0, "less": 0}
                while not all(seen.values()):
                    for _ in range(20):
                        busy.write(bytes(2 * MB))
                        busy.seek(0)
                    less.write(bytes(4096))
                    table = json.loads(top.stdout.readline())
                    for file in table["files"]:
                        name = os.path.basename(file["path"])
                        seen[name] = seen.get(name, 0) + file["written_bytes"]
                        if name == "busy":
                            self.assertIn(f" {os.getpid()}", file["programs"])
                            self.assertEqual(file["reads"], 0)
                self.assertGreater(seen["busy"], seen["less"])
            top.terminate()
            self.assertEqual(top.wait(PATIENCE_SECONDS), 0)
        done = weir_fs("top", "--count", "1", "--interval", "0.1", self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("past the kernel", done.stdout)

    def test_bad_input(self):
        for command in ("df", "du", "warm", "check", "top"):
            for path, said in (("/", "not on a mount"), (self.dir + "x", "No such file")):
                done = weir_fs(command, path)
                self.assertEqual(done.returncode, 1, command)
                self.assertIn(said, done.stderr)
            self.assertEqual(weir_fs(command, "--frobnicate").returncode, 2)
        for command in ("warm", "check", "top", "export", "import", "frobnicate"):
            self.assertEqual(weir_fs(command).returncode, 2)


class Death(FsTest):
    def test_check_fails_without_its_donor(self):
        write("file", b"x" * 8 * MB)
        self.world.kill_donor()
        self.assertTrue(until(lambda: weir_fs("check", self.dir).returncode == 1))


if __name__ == "__main__":
    main()
