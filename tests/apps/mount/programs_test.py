# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Common programs on a mounted file system."""
import os
import shutil
import sqlite3
import subprocess
import sys
import unittest

from world import SEALED, FsTest, main, scaled, write

TREE = "/usr/include/linux" if scaled(100) == 100 else "/usr/include/linux/netfilter"


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"there is no {program}")


def run(*args):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120)
    if done.returncode:
        raise AssertionError(f"{' '.join(args)}: {done.stdout}")
    return done.stdout


@unittest.skipUnless(os.path.isdir(TREE), f"there is no {TREE}")
class Trees(FsTest):
    def same_for_a_new_client(self, there):
        """A second client, so that no data comes from the first client's page cache."""
        path = os.path.relpath(there, self.world.clients[0].path)
        os.chdir("/")
        if SEALED:  # one at a time
            self.assertEqual(self.world.clients.pop().unmount(), 0)
        client = self.world.mount()
        run("diff", "-r", "--no-dereference", TREE, client / path)
        if not SEALED:
            self.assertEqual(client.unmount(), 0)

    def test_tar(self):
        os.mkdir("tree")
        run("sh", "-c", f"tar -C {TREE} -cf - . | tar -C tree -xpf -")
        self.same_for_a_new_client(os.path.abspath("tree"))

    @needs("rsync")
    def test_rsync(self):
        run("rsync", "-aX", TREE + "/", "tree/")
        self.assertEqual(run("rsync", "-anX", "--itemize-changes", TREE + "/", "tree/"), "")
        self.same_for_a_new_client(os.path.abspath("tree"))


class Programs(FsTest):
    @needs("git")
    def test_git(self):
        def git(*args):
            return run("git", "-c", "user.name=n", "-c", "user.email=e@x", "-C", "work", *args)
        os.mkdir("work")
        git("init", "-q")
        for number in range(scaled(50)):
            write(f"work/file{number}", b"%d\n" % number * 100)
        git("add", ".")
        git("commit", "-qm", "one")
        run("git", "clone", "-q", "--no-local", "work", "clone")
        git("-C", "../clone", "gc", "-q")
        git("-C", "../clone", "fsck", "--strict")
        self.assertEqual(git("-C", "../clone", "status", "--short"), "")

    @needs("cc")
    @needs("make")
    def test_make(self):
        numbers = range(scaled(20))
        for number in numbers:
            write(f"f{number}.c", b"int f%d(void) { return %d; }\n" % (number, number))
        calls = "+".join(f"f{number}()" for number in numbers)
        declared = "".join(f"int f{number}(void);" for number in numbers)
        write("main.c", f"{declared}\n"
              f"int main(void) {{ return {calls} != {sum(numbers)}; }}\n".encode())
        objects = " ".join(["main.o"] + [f"f{number}.o" for number in numbers])
        write("Makefile", f"prog: {objects}\n\tcc -o $@ $^\n".encode())
        run("make", "-j4")
        run("./prog")
        self.assertIn("up to date", run("make"))

    def test_sqlite(self):
        rows, more = scaled(5000), scaled(20)
        for mode in ("delete", "wal"):
            base = sqlite3.connect(f"{mode}.db", timeout=30)
            base.execute(f"pragma journal_mode={mode}")
            base.execute("create table t(a integer primary key, b)")
            with base:
                base.executemany("insert into t(b) values(?)",
                                 ((os.urandom(50),) for _ in range(rows)))
            base.close()
            writers = [subprocess.Popen(
                [sys.executable, "-c",
                 "import sqlite3\n"
                 f"base = sqlite3.connect('{mode}.db', timeout=60)\n"
                 f"for i in range({more}):\n"
                 "    with base: base.execute('insert into t(b) values(1)')\n"])
                for _ in range(3)]
            for writer in writers:
                self.assertEqual(writer.wait(100), 0)
            base = sqlite3.connect(f"{mode}.db")
            self.assertEqual(base.execute("select count(*) from t").fetchone(),
                             (rows + 3 * more,))
            self.assertEqual(base.execute("pragma integrity_check").fetchone(), ("ok",))
            base.close()

    @needs("fio")
    def test_fio_verifies_its_data(self):
        jobs = (("--rw=write", "--bs=1M", "--ioengine=libaio", "--direct=1", "--iodepth=16"),
                ("--rw=randwrite", "--bs=4k", "--ioengine=libaio", "--direct=1", "--iodepth=16"),
                ("--rw=randrw", "--bs=16k", "--ioengine=psync", "--direct=0"),
                ("--rw=randrw", "--bs=4k", "--ioengine=mmap"))
        for job in jobs:
            with self.subTest(job=job):
                run("fio", "--name=job", "--filename=file", f"--size={scaled(24)}M",
                    "--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", *job)
                os.unlink("file")


if __name__ == "__main__":
    main()
