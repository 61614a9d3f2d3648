# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir fs export and import: an archive brings everything back, and interruptions do no harm."""
import gzip
import hashlib
import io
import json
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mount"))
from world import PATIENCE_SECONDS, SEALED, WEIR, World, main, read, until, write  # noqa: E402

SUMS = ".weir-sums"
JOURNAL = ".weir-import"
ROOT = os.geteuid() == 0
MB = 1 << 20


def weir_fs(*args, **more):
    return subprocess.run([WEIR, "fs", *args], capture_output=True, timeout=PATIENCE_SECONDS,
                          **more)


def start(*args):
    return subprocess.Popen([WEIR, "fs", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def holes(path):
    """Where the data of a file is: [(from, to)]."""
    found, at = [], 0
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        while at < size:
            try:
                data = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            at = os.lseek(file.fileno(), data, os.SEEK_HOLE)
            found.append((data, at))
    return found


def describe(path):
    """All that an archive must keep of a name."""
    st = os.lstat(path)
    about = [stat.S_IFMT(st.st_mode), oct(st.st_mode), st.st_uid, st.st_gid, st.st_mtime_ns]
    about.append({name: os.getxattr(path, name, follow_symlinks=False)
                  for name in os.listxattr(path, follow_symlinks=False)})
    if stat.S_ISREG(st.st_mode):
        about += [st.st_size, st.st_nlink, hashlib.sha256(read(path)).hexdigest()]
        if not SEALED:
            about.append(holes(path))
    elif stat.S_ISLNK(st.st_mode):
        about.append(os.readlink(path))
    elif stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
        about.append(st.st_rdev)
    return about


def survey(root):
    """{path: description}, and the sets of names of one file."""
    tree, links = {b".": describe(os.fsencode(root))}, {}
    root = os.fsencode(root)
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, root)
            tree[relative] = describe(path)
            st = os.lstat(path)
            if st.st_nlink > 1 and not stat.S_ISDIR(st.st_mode):
                links.setdefault(st.st_ino, set()).add(relative)
    return tree, sorted(sorted(names) for names in links.values())


class ArchiveTest(unittest.TestCase):
    """Two donors, mounted here: the first one's files go to the second one."""

    @classmethod
    def setUpClass(cls):
        cls.far, cls.other = World("512M"), None
        cls.addClassCleanup(cls.far.destroy)
        cls.other = World("512M")
        cls.addClassCleanup(cls.other.destroy)
        # A donor beside other tests may have no CPU for seconds.
        cls.source, cls.target = (world.mount("--timeout", "60")
                                  for world in (cls.far, cls.other))

    def setUp(self):
        name = self.id().rsplit(".", 1)[-1]
        self.tree, self.copy = self.source / name, self.target / name
        os.mkdir(self.tree)
        os.mkdir(self.copy)
        self.disk = tempfile.mkdtemp(prefix="weir-archive-")
        self.addCleanup(shutil.rmtree, self.disk)
        self.addCleanup(shutil.rmtree, self.copy, ignore_errors=True)
        self.addCleanup(shutil.rmtree, self.tree, ignore_errors=True)
        self.file = os.path.join(self.disk, "tree.tar")

    def fill(self, files=40, size=MB, seed=1):
        for number in range(files):
            folder = os.path.join(self.tree, f"folder{number % 5}")
            os.makedirs(folder, exist_ok=True)
            write(os.path.join(folder, f"file{number:04}"),
                  random.Random(seed * 1000 + number).randbytes(size))

    def done(self, *args, status=0, said="", **more):
        """Runs a command that ends with @status. Returns its JSON, if asked for."""
        result = weir_fs(*args, **more)
        self.assertEqual(result.returncode, status, result.stderr.decode())
        self.assertIn(said, result.stderr.decode())
        return json.loads(result.stdout) if "--json" in args else result

    def export(self, **more):
        return self.done("export", "--json", self.tree, self.file, **more)

    def bring_back(self, *options, **more):
        return self.done("import", "--json", *options, self.file, self.copy, **more)

    def same(self, wanted=None):
        """The copy is the tree, or as @wanted."""
        (copy, copy_links), (tree, links) = survey(self.copy), wanted or survey(self.tree)
        self.assertEqual({path: (copy.get(path), tree.get(path))
                          for path in copy.keys() | tree.keys()
                          if copy.get(path) != tree.get(path)}, {})
        self.assertEqual(copy_links, links)


class Everything(ArchiveTest):
    def make_everything(self):
        tree = self.tree
        write(os.path.join(tree, "empty"), b"")
        write(os.path.join(tree, "file"), b"bytes\n" * 3000)
        os.utime(os.path.join(tree, "file"), ns=(1_234_567_891_987_654_321, 987_654_321))
        os.mkdir(os.path.join(tree, "folder"))
        for name in (b"sp ace", b"new\nline", b"back\\slash", b"\xff\xfe not UTF-8", "ünï".encode(),
                     b"l" * 255, b"-dash", b"=equal"):
            write(os.path.join(os.fsencode(tree), b"folder", name), name)
        deep = os.path.join(tree, *["d" * 100] * 8)
        os.makedirs(deep)
        write(os.path.join(deep, "deep"), b"deep")
        os.symlink("../nowhere", os.path.join(tree, "symlink"))
        os.symlink("t" * 4000, os.path.join(tree, "long symlink"))
        os.link(os.path.join(tree, "file"), os.path.join(tree, "folder", "hard link"))
        os.link(os.path.join(tree, "symlink"), os.path.join(tree, "hard link to symlink"))
        os.mkfifo(os.path.join(tree, "fifo"), 0o604)
        os.setxattr(os.path.join(tree, "file"), "user.note", b"a\0b=\xff" * 40)
        for name in ("of a folder", "50%", "50%25", "a=b", "a%3Db", "\n", "ü"):
            os.setxattr(os.path.join(tree, "folder"), "user." + name, name.encode())
        for name, pieces in (("hole at the end", [(0, 5)]), ("hole at the start", [(MB, 5)]),
                             ("holes", [(MB, 4096), (3 * MB, 10)]), ("one hole", [])):
            with open(os.path.join(tree, name), "wb") as file:
                for offset, length in pieces:
                    os.pwrite(file.fileno(), b"x" * length, offset)
                file.truncate(5 * MB)
        for mode in (0o000, 0o444, 0o777, 0o1777, 0o2755, 0o4755, 0o6711):
            name = os.path.join(tree, f"mode {mode:o}")
            write(name)
            os.chmod(name, mode)
        os.mkdir(os.path.join(tree, "read-only folder"))
        write(os.path.join(tree, "read-only folder", "file"))
        os.chmod(os.path.join(tree, "read-only folder"), 0o2555)
        os.utime(os.path.join(tree, "read-only folder"), ns=(7, 2**33 * 10**9 + 5))
        os.utime(os.path.join(tree, "symlink"), ns=(3, 4), follow_symlinks=False)
        if ROOT:
            os.mknod(os.path.join(tree, "device"), stat.S_IFCHR | 0o620, os.makedev(1, 3))
            for name in ("owned", "also owned"):
                write(os.path.join(tree, name))
                os.chown(os.path.join(tree, name), 12345, 54321)
            os.chmod(os.path.join(tree, "owned"), 0o6755)
            os.setxattr(os.path.join(tree, "file"), "trusted.note", b"t")
        os.chmod(tree, 0o711)
        os.utime(tree, ns=(1, 1_000_000_007))

    def test_all_kinds_of_files_come_back(self):
        self.make_everything()
        before = survey(self.tree)
        about = self.export()
        self.assertEqual(about["left_out"], 0)
        self.assertEqual(survey(self.tree), before)
        brought = self.bring_back()
        self.assertEqual(os.stat(os.path.join(self.copy, "file")).st_atime_ns,
                         1_234_567_891_987_654_321)
        self.same(before)
        self.assertEqual((brought["wrong"], brought["imperfect"]), (0, 0))
        regular = {os.lstat(os.path.join(folder, name)).st_ino
                   for folder, _, names in os.walk(self.tree) for name in names
                   if stat.S_ISREG(os.lstat(os.path.join(folder, name)).st_mode)}
        self.assertEqual(brought["verified"], len(regular))
        self.assertEqual(sorted(os.listdir(self.disk)), ["tree.tar"])

    def test_tar_and_b2sum_understand_the_archive(self):
        self.make_everything()
        self.export()
        there = os.path.join(self.disk, "there")
        os.mkdir(there)
        subprocess.run(["tar", "-x", "--xattrs", "--xattrs-include=*", "-p", "-f", self.file, "-C",
                        there], check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["b2sum", "--quiet", "--strict", "-c", SUMS], check=True, cwd=there)
        self.assertEqual(read(os.path.join(there, "file")), read(os.path.join(self.tree, "file")))

    def test_standard_output_and_input_and_compression(self):
        self.fill(5)
        archive = self.done("export", self.tree, "-").stdout
        self.done("import", "-", self.copy, input=gzip.compress(archive, 1))
        self.same()

    def test_an_empty_directory(self):
        self.assertEqual(self.export()["entries"], 1)
        self.assertEqual(self.bring_back()["verified"], 0)
        self.same()

    def test_sockets_are_counted(self):
        with socket.socket(socket.AF_UNIX) as one:
            os.chdir(self.tree)
            one.bind("socket")
            os.chdir("/")
        self.assertEqual(self.export()["sockets"], 1)


class Interrupted(ArchiveTest):
    def interrupt(self, number, condition, *args):
        """Ends a command by a signal once @condition is true, if it has not ended before."""
        with start(*args) as process:
            until(lambda: condition() or process.poll() is not None)
            process.send_signal(number)
            said = process.communicate(timeout=PATIENCE_SECONDS)[1].decode()
        self.assertIn(process.returncode, (1, -number), said)
        return said

    def length(self, path):
        return os.path.getsize(path) if os.path.exists(path) else 0

    def test_an_export_goes_on_where_it_was(self):
        self.fill(120)
        os.link(os.path.join(self.tree, "folder0/file0000"), os.path.join(self.tree, "zz link"))
        part = self.file + ".part"
        said = self.interrupt(signal.SIGINT, lambda: self.length(part) > 20 * MB,
                              "export", self.tree, self.file)
        self.assertIn("goes on from there", said)
        self.assertFalse(os.path.exists(self.file))
        at = self.length(part)
        self.interrupt(signal.SIGKILL, lambda: self.length(part) > at + 10 * MB,
                       "export", self.tree, self.file)
        # Files that have changed since, all names of one, too.
        write(os.path.join(self.tree, "folder0/file0000"), b"later")
        write(os.path.join(self.tree, "folder0/file0005"), b"later")
        os.unlink(os.path.join(self.tree, "folder0/file0010"))
        about = self.export()
        self.assertGreater(about["resumed_entries"], 10)
        self.assertEqual(about["gone_entries"], 1)
        self.assertEqual(sorted(os.listdir(self.disk)), ["tree.tar"])
        self.bring_back()
        os.unlink(os.path.join(self.copy, "folder0/file0010"))
        os.utime(os.path.join(self.copy, "folder0"),
                 ns=(0, os.stat(os.path.join(self.tree, "folder0")).st_mtime_ns))
        self.same()

    def test_a_torn_index_or_archive_is_cut(self):
        self.fill(60)
        part = self.file + ".part"
        self.interrupt(signal.SIGINT, lambda: self.length(part) > 20 * MB,
                       "export", self.tree, self.file)
        with open(part + ".index", "a", encoding="ascii") as index:
            index.write("12345 12 ")
        os.truncate(part, self.length(part) - 3 * MB)
        self.assertGreater(self.export()["resumed_entries"], 5)
        self.bring_back()
        self.same()

    def test_the_part_of_another_export_is_refused(self):
        self.fill(60)
        part = self.file + ".part"
        self.interrupt(signal.SIGINT, lambda: self.length(part) > 10 * MB,
                       "export", self.tree, self.file)
        self.done("export", self.source.path, self.file, status=1, said="--restart")
        write(part + ".index", b"something else\n")
        self.done("export", self.tree, self.file, status=1, said="--restart")
        about = self.done("export", "--json", "--restart", self.tree, self.file)
        self.assertEqual(about["resumed_entries"], 0)
        self.bring_back()
        self.same()

    def test_an_import_goes_on_where_it_was(self):
        self.fill(120)
        os.mkdir(os.path.join(self.tree, "a"))
        os.utime(os.path.join(self.tree, "a"), ns=(5, 5))
        self.export()

        def copied():
            return sum(os.path.exists(os.path.join(self.copy, f"folder{n % 5}/file{n:04}"))
                       for n in range(120))
        said = self.interrupt(signal.SIGINT, lambda: copied() > 20,
                              "import", self.file, self.copy)
        self.assertIn("goes on from there", said)
        self.interrupt(signal.SIGKILL, lambda: copied() > 50, "import", self.file, self.copy)
        self.done("export", self.copy, self.file + "2", status=1, said=JOURNAL)
        about = self.bring_back()
        self.assertGreater(about["resumed_entries"], 10)
        self.assertEqual(about["verified"], 120)
        self.same()

    def test_another_archive_does_not_go_on(self):
        self.fill(60)
        self.export()
        os.rename(os.path.join(self.tree, "folder0"), os.path.join(self.tree, "another"))
        other = self.file + "2"
        self.done("export", self.tree, other)
        self.interrupt(signal.SIGINT,
                       lambda: os.path.exists(os.path.join(self.copy, "folder1")),
                       "import", self.file, self.copy)
        self.done("import", other, self.copy, status=1, said="--restart")
        self.done("import", "--restart", "--overwrite", other, self.copy)
        shutil.rmtree(os.path.join(self.copy, "folder0"))
        os.utime(self.copy, ns=(0, os.stat(self.tree).st_mtime_ns))
        self.same()


class Changing(ArchiveTest):
    def test_a_file_that_changes_is_whole_or_left_out(self):
        path = os.path.join(self.tree, "changing")
        write(path, b"0" * 4 * MB)
        write(os.path.join(self.tree, "other"))
        stop = threading.Event()

        def change():
            number = 0
            with open(path, "r+b", buffering=0) as file:
                while not stop.is_set():
                    number += 1
                    file.seek(0)
                    file.write(b"%d" % (number % 10) * 4 * MB)
        thread = threading.Thread(target=change)
        thread.start()
        try:
            result = weir_fs("export", self.tree, self.file)
        finally:
            stop.set()
            thread.join()
        with tarfile.open(self.file) as archive:
            names = archive.getnames()
        self.assertIn("other", names)
        if result.returncode:
            self.assertIn(b"changing: left out: it changed", result.stderr)
            self.assertNotIn("changing", names)
        self.bring_back()


class Damage(ArchiveTest):
    def test_a_changed_byte_is_named(self):
        self.fill(6)
        self.export()
        archive = bytearray(read(self.file))
        victim = read(os.path.join(self.tree, "folder2/file0002"))
        at = archive.index(victim[:100])
        archive[at + 50] ^= 1
        write(self.file, archive)
        about = self.bring_back(status=1, said="folder2/file0002: the bytes do not have")
        self.assertEqual((about["wrong"], about["verified"]), (1, 5))

    def test_an_archive_that_is_cut_off_is_refused_and_the_whole_one_goes_on(self):
        self.fill(6)
        self.export()
        whole = read(self.file)
        with tarfile.open(self.file) as archive:
            entries, sums = len(archive.getmembers()), archive.getmember(SUMS).offset
        for length in (len(whole) - 600, len(whole) // 2, 700):
            write(self.file, whole[:length])
            self.assertEqual(weir_fs("import", self.file, self.copy).returncode, 1, length)
        # At the end of an entry, where tar does not notice.
        write(self.file, whole[:sums])
        self.assertEqual(weir_fs("import", self.file, self.copy).returncode, 1)
        write(self.file, whole)
        self.assertEqual(self.bring_back()["entries"], entries - 1)
        self.same()

    def test_no_archive_is_no_archive(self):
        for content in (b"", b"no archive", os.urandom(5000)):
            write(self.file, content)
            self.assertEqual(weir_fs("import", self.file, self.copy).returncode, 1)

    def test_archives_of_others_are_admitted_on_request_only(self):
        with tarfile.open(self.file, "w") as archive:
            entry = tarfile.TarInfo("file")
            entry.size = 5
            archive.addfile(entry, io.BytesIO(b"bytes"))
        self.done("import", self.file, self.copy, status=1, said="--foreign")
        self.bring_back("--foreign")
        self.assertEqual(read(os.path.join(self.copy, "file")), b"bytes")

    def test_no_entry_leaves_the_directory(self):
        outside = os.path.join(self.disk, "outside")
        for name in ("../outside", outside, "link/outside"):
            with tarfile.open(self.file, "w") as archive:
                link = tarfile.TarInfo("link")
                link.type, link.linkname = tarfile.SYMTYPE, self.disk
                archive.addfile(link)
                archive.addfile(tarfile.TarInfo(name), io.BytesIO(b""))
            result = weir_fs("import", "--foreign", "--overwrite", "--restart", self.file,
                             self.copy)
            self.assertEqual(result.returncode, 1, name)
            self.assertFalse(os.path.exists(outside), name)
            self.assertFalse(os.path.exists(os.path.join(self.copy, "..", "outside")))

    def test_a_full_donor_ends_the_import(self):
        with tarfile.open(self.file, "w") as archive:
            entry = tarfile.TarInfo("large")
            entry.size = 600 * MB
            archive.addfile(entry, io.BytesIO(bytes(600 * MB)))
        result = weir_fs("import", "--foreign", self.file, self.copy)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"No space left", result.stderr)


class BadInput(ArchiveTest):
    def test_what_cannot_be_exported(self):
        write(os.path.join(self.tree, "file"))
        self.done("export", self.disk, self.file, status=1, said="not on a mount")
        self.done("export", self.tree + "x", self.file, status=1, said="No such file")
        self.done("export", os.path.join(self.tree, "file"), self.file, status=1,
                  said="not a directory")
        self.done("export", self.tree, os.path.join(self.tree, "x.tar"), status=1, said="lies in")
        self.done("export", self.tree, "/nowhere/x.tar", status=1, said="No such file")
        self.done("export", self.tree, status=2)
        self.assertEqual(weir_fs("export", "--json", self.tree, "-").returncode, 2)
        write(self.file, b"old")
        self.done("export", self.tree, self.file, status=1, said="--overwrite")
        self.assertEqual(read(self.file), b"old")
        self.done("export", "--overwrite", self.tree, self.file)
        self.assertNotEqual(read(self.file), b"old")

    def test_where_nothing_can_be_imported(self):
        write(os.path.join(self.tree, "file"))
        self.export()
        self.done("import", self.file, self.disk, status=1, said="not on a mount")
        self.done("import", self.file + "x", self.copy, status=1, said="No such file")
        write(os.path.join(self.copy, "file"), b"mine")
        self.done("import", self.file, self.copy, status=1, said="not empty")
        self.assertEqual(read(os.path.join(self.copy, "file")), b"mine")
        self.assertFalse(os.path.exists(os.path.join(self.copy, JOURNAL)))
        self.bring_back("--overwrite")
        self.same()

    def test_a_full_disk_is_reported(self):
        self.fill(5)
        result = subprocess.run(["bash", "-c", 'ulimit -f 2048; trap "" XFSZ; exec "$@"', "-",
                                 WEIR, "fs", "export", self.tree, self.file], capture_output=True,
                                timeout=PATIENCE_SECONDS)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"File too large", result.stderr)
        self.export()
        self.bring_back()
        self.same()

    @unittest.skipUnless(ROOT, "needs root")
    def test_names_that_cannot_be_read_are_left_out(self):
        write(os.path.join(self.tree, "secret"))
        write(os.path.join(self.tree, "open"))
        os.chmod(os.path.join(self.tree, "secret"), 0o600)
        for path, mode in ((self.disk, 0o777), (self.far.dir, 0o755)):
            os.chmod(path, mode)
        result = subprocess.run(["setpriv", "--reuid=1234", "--clear-groups", WEIR, "fs", "export",
                                 self.tree, self.file], capture_output=True, text=True,
                                timeout=PATIENCE_SECONDS)
        self.assertEqual(result.returncode, 1)
        self.assertIn("secret: left out: Permission denied", result.stderr)
        with tarfile.open(self.file) as archive:
            self.assertEqual(archive.getnames(), [".", "open", SUMS])


if __name__ == "__main__":
    main()
