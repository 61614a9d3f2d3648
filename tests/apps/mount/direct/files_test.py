# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Files past the kernel: programs under 'weir files' and others on one mount, against a model.

Workers are processes, some under 'weir files' and some not. A single worker acts at a time, so each
must see what the others did at once. A worker makes a burst of calls,
each past the kernel if it can.
"""
import hashlib
import os
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from world import PATIENCE_SECONDS, WEIR, FsTest, main, read, scaled, write  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
WORKER = os.path.join(HERE, "worker.py")
SIZE_MAX = 1 << 20
COUNTS = re.compile(rb"(\d+) reads and (\d+) writes past the kernel")


def under_files(*command):
    return [WEIR, "files", "--count", "--always", "--", *command]


class Worker:
    """A process that makes the calls it is told."""

    def __init__(self, past):
        command = [sys.executable, WORKER]
        self.past = past
        self.process = subprocess.Popen(under_files(*command) if past else command,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def do(self, calls):
        """Makes the calls, and returns their results."""
        self.process.stdin.write(repr(calls).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"a worker died: {self.process.stderr.read().decode()}")
        return eval(line)  # pylint: disable=eval-used

    def kill(self):
        self.process.kill()
        self.end()

    def end(self):
        """Returns the number of reads and writes past the kernel."""
        self.process.stdin.close()
        said = self.process.stderr.read()
        self.process.wait(PATIENCE_SECONDS)
        self.process.stdout.close()
        self.process.stderr.close()
        found = [(int(a), int(b)) for a, b in COUNTS.findall(said)]
        return sum(a for a, _ in found), sum(b for _, b in found)


class Model:
    """The bytes of a file, and the positions of its descriptors, which duplicates share."""

    def __init__(self):
        self.bytes = bytearray()
        self.position = {}

    def pwrite(self, data, offset):
        if offset > len(self.bytes):
            self.bytes.extend(bytes(offset - len(self.bytes)))
        self.bytes[offset:offset + len(data)] = data

    def truncate(self, size):
        del self.bytes[size:]
        self.bytes.extend(bytes(size - len(self.bytes)))


def digest(data):
    return len(data), hashlib.sha256(data).hexdigest()


class Script:
    """Random calls, and what the model says that they return."""

    def __init__(self, rng, model, path):
        self.rng, self.model, self.path = rng, model, path
        self.opened = {}  # worker: {its name of a descriptor: (position's key, appends)}
        self.number = 0

    def burst(self, worker):
        calls, wanted = [], []
        for _ in range(self.rng.randrange(1, 30)):
            call, result = self.one(worker)
            calls.append(call)
            wanted.append(result)
        return calls, wanted

    def one(self, worker):
        fds = self.opened.setdefault(worker, {})
        if not fds or (len(fds) < 4 and self.rng.random() < 0.05):
            return self.open(fds)
        name = self.rng.choice(list(fds))
        kind = self.rng.choices(
            ["pread", "pwrite", "read", "write", "readv", "writev", "lseek", "truncate", "close",
             "dup", "size", "fsync", "replace"],
            [30, 25, 15, 12, 5, 5, 4, 1, 2, 2, 4, 1, 1])[0]
        return getattr(self, kind)(fds, name)

    def open(self, fds):
        self.number += 1
        appends = self.rng.random() < 0.15
        fds[self.number] = (self.number, appends)
        self.model.position[self.number] = 0
        return ("open", self.number, self.path, appends), None

    def extent(self):
        """An offset and a length, mostly inside the file."""
        size = len(self.model.bytes)
        length = self.rng.choice([1, 100, 4096, 5000, 65536, 200000, 400000])
        length = self.rng.randrange(1, length + 1)
        if size > length and self.rng.random() < 0.85:
            return self.rng.randrange(size - length + 1), length
        return self.rng.randrange(min(size + 5000, SIZE_MAX - length) + 1), length

    def data(self, length):
        return self.rng.randrange(256), length

    def bytes_of(self, data):
        return bytes((data[0] + i) % 251 for i in range(data[1]))

    def pread(self, fds, name):
        offset, length = self.extent()
        return ("pread", name, length, offset), digest(self.model.bytes[offset:offset + length])

    def pwrite(self, fds, name):
        offset, length = self.extent()
        data = self.data(length)
        if fds[name][1]:
            offset = len(self.model.bytes)
        if offset + length <= SIZE_MAX:
            self.model.pwrite(self.bytes_of(data), offset)
            return ("pwrite", name, data, offset), length
        return self.size(fds, name)

    def read(self, fds, name, kind="read"):
        _, length = self.extent()
        at = self.model.position[fds[name][0]]
        found = self.model.bytes[at:at + length]
        self.model.position[fds[name][0]] = at + len(found)
        return (kind, name, length), digest(found)

    def readv(self, fds, name):
        return self.read(fds, name, "readv")

    def write(self, fds, name, kind="write"):
        _, length = self.extent()
        key, appends = fds[name]
        at = len(self.model.bytes) if appends else self.model.position[key]
        data = self.data(length)
        if at + length > SIZE_MAX:
            return self.lseek(fds, name)
        self.model.pwrite(self.bytes_of(data), at)
        self.model.position[key] = at + length
        return (kind, name, data), length

    def writev(self, fds, name):
        return self.write(fds, name, "writev")

    def lseek(self, fds, name):
        offset, _ = self.extent()
        self.model.position[fds[name][0]] = offset
        return ("lseek", name, offset), offset

    def truncate(self, fds, name):
        size = self.rng.randrange(SIZE_MAX)
        self.model.truncate(size)
        return ("truncate", name, size), None

    def close(self, fds, name):
        del fds[name]
        return ("close", name), None

    def dup(self, fds, name):
        self.number += 1
        fds[self.number] = fds[name]
        return ("dup", name, self.number), None

    def replace(self, fds, name):
        """dup2() of another file's descriptor onto this one, and back."""
        return ("replace", name), digest(b"another file")

    def size(self, fds, name):
        return ("size", name), len(self.model.bytes)

    def fsync(self, fds, name):
        return ("fsync", name), None


class PastTest(FsTest):
    def check_script(self, seed, bursts):
        rng = random.Random(seed)
        model, path = Model(), os.path.join(self.dir, f"file{seed}")
        write(path, b"")
        write(path + ".other", b"another file")
        script = Script(rng, model, path)
        workers = [Worker(past) for past in (True, True, False, True)]
        try:
            for number in range(bursts):
                worker = rng.randrange(len(workers))
                if rng.random() < 0.02:  # its descriptors go with it
                    workers[worker].kill()
                    script.opened.pop(worker, None)
                    workers[worker] = Worker(workers[worker].past)
                calls, wanted = script.burst(worker)
                got = workers[worker].do(calls)
                for call, a, b in zip(calls, got, wanted):
                    self.assertEqual(a, b, f"seed {seed}, burst {number}, worker {worker}: {call}")
        finally:
            sums = [worker.end() for worker in workers]
        self.assertEqual(read(path), bytes(model.bytes))
        return sum(reads for reads, _ in sums), sum(writes for _, writes in sums)

    def test_workers_see_what_the_model_says(self):
        reads = writes = 0
        seed = int(os.environ.get("WEIR_TEST_SEED") or random.randrange(1 << 32))
        print(f"seed {seed}", flush=True)
        for number in range(scaled(4)):
            more = self.check_script(seed + number, 25)
            reads, writes = reads + more[0], writes + more[1]
        print(f"{reads} reads and {writes} writes past the kernel", flush=True)
        self.assertGreater(reads, scaled(100) // 2)
        self.assertGreater(writes, scaled(40) // 4)

    def run_program(self, text, *arguments):
        """Runs a program in Python under 'weir files', and returns what it prints."""
        done = subprocess.run(under_files(sys.executable, "-c", text, *arguments),
                              stdout=subprocess.PIPE, check=True, timeout=PATIENCE_SECONDS,
                              stderr=subprocess.DEVNULL)
        return done.stdout.decode()

    def test_a_child_reads_on_where_its_parent_stopped(self):
        path = os.path.join(self.dir, "file")
        data = os.urandom(1 << 20)
        write(path, data)
        program = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
parts = [os.read(fd, 1000) for _ in range(100)]
child = os.fork()
for _ in range(100):
    part = os.read(fd, 1000)
    if child == 0:
        os.write(1, part)
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print(os.lseek(fd, 0, os.SEEK_CUR), end="")
"""
        done = subprocess.run(under_files(sys.executable, "-c", program, path), check=True,
                              stdout=subprocess.PIPE, timeout=PATIENCE_SECONDS,
                              stderr=subprocess.DEVNULL)
        self.assertTrue(done.stdout.endswith(b"300000"))
        self.assertEqual(len(done.stdout), 100 * 1000 + len(b"300000"))

    def test_another_program_inherits_the_descriptor(self):
        path = os.path.join(self.dir, "file")
        data = os.urandom(200000)
        write(path, data)
        program = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.read(fd, 1000)
for i in range(50):
    os.pread(fd, 100, i)
os.dup2(fd, 0)
os.execvp("sha256sum", ["sha256sum"])
"""
        self.assertEqual(self.run_program(program, path).split()[0],
                         hashlib.sha256(data[1000:]).hexdigest())

    def test_a_descriptor_replaced_unseen_is_noticed(self):
        """By a system call of the program's own, which the library cannot see."""
        path = os.path.join(self.dir, "file")
        write(path, bytes(1000))
        write(path + ".other", b"other" * 200)
        program = """
import ctypes, os, platform, sys
dup3 = {"x86_64": 292, "aarch64": 24}[platform.machine()]
fds = [os.open(sys.argv[1] + end, os.O_RDWR) for end in ("", ".other")]
kept = os.dup(fds[0])
for i in range(20):
    for fd in fds:
        os.pread(fd, 100, 0)
ctypes.CDLL(None).syscall(dup3, fds[1], fds[0], 0)
os.pwrite(fds[0], b"O", 0)
print(os.pread(fds[0], 5, 0).decode(), end="")
"""
        self.assertEqual(self.run_program(program, path), "Other")
        self.assertEqual(read(path), bytes(1000))

    def test_a_killed_process_leaves_nothing_behind(self):
        path = os.path.join(self.dir, "file")
        program = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
os.write(1, b"x")
while True:
    os.pwrite(fd, bytes([7]) * 4096, 4096)
    os.pread(fd, 100000, 0)
"""
        for _ in range(scaled(20)):
            write(path, bytes(1 << 20))
            with subprocess.Popen(under_files(sys.executable, "-c", program, path),
                                  stdout=subprocess.PIPE) as process:
                process.stdout.read(1)
                time.sleep(0.02)
                process.send_signal(signal.SIGKILL)
            os.truncate(path, 1000)
            self.assertEqual(read(path), bytes(1000))
            os.unlink(path)

    def test_a_stopped_process_holds_up_nobody(self):
        path = os.path.join(self.dir, "file")
        write(path, bytes(1 << 20))
        program = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
os.write(1, b"x")
while True:
    os.pwrite(fd, bytes([7]) * 100000, 0)
"""
        with subprocess.Popen(under_files(sys.executable, "-c", program, path),
                              stdout=subprocess.PIPE) as process:
            process.stdout.read(1)
            for _ in range(scaled(20)):
                time.sleep(0.01)
                process.send_signal(signal.SIGSTOP)
                os.truncate(path, 0)
                os.truncate(path, 1 << 20)
                self.assertEqual(read(path)[100000:], bytes((1 << 20) - 100000))
                process.send_signal(signal.SIGCONT)
            process.kill()

    def test_a_mapping_and_writes_agree(self):
        path = os.path.join(self.dir, "file")
        write(path, bytes(1 << 16))
        program = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
for i in range(50):
    os.pwrite(fd, b"a", 10)
with mmap.mmap(fd, 1 << 16) as mapped:
    for i in range(200):
        mapped[100] = i
        assert os.pread(fd, 1, 100) == bytes([i]), i
        os.pwrite(fd, bytes([i]), 200)
        assert mapped[200] == i, i
print("agree", end="")
"""
        self.assertEqual(self.run_program(program, path), "agree")

    def test_attributes_tell_of_writes(self):
        path = os.path.join(self.dir, "file")
        write(path, bytes(1 << 16))
        worker = Worker(True)
        worker.do([("open", 1, path, False)])
        for _ in range(20):
            worker.do([("pread", 1, 100, 0)] * 20)
            before = os.stat(path).st_mtime_ns
            time.sleep(0.002)
            worker.do([("pwrite", 1, (1, 100), 0)])
            self.assertGreater(os.stat(path).st_mtime_ns, before)
        worker.end()

    def test_a_descriptor_only_for_reading_cannot_write(self):
        path = os.path.join(self.dir, "file")
        write(path, bytes(1 << 16))
        program = """
import errno, os, sys
both = os.open(sys.argv[1], os.O_RDWR)
fd = os.open(sys.argv[1], os.O_RDONLY)
for i in range(100):
    os.pread(fd, 100, 0)
    os.pwrite(both, b"a", 0)
    try:
        os.pwrite(fd, b"b", 0)
        sys.exit("wrote")
    except OSError as error:
        assert error.errno == errno.EBADF
"""
        self.run_program(program, path)

    def test_the_mount_may_end_first(self):
        other = self.world.mount()
        path = os.path.join(other.path, "file")
        write(path, bytes(1 << 16))
        worker = Worker(True)
        worker.do([("open", 1, path, False)] + [("pread", 1, 100, 0)] * 50)
        other.process.kill()
        other.process.wait(PATIENCE_SECONDS)
        subprocess.run(["fusermount3", "-u", "-z", other.path], check=False,
                       timeout=PATIENCE_SECONDS)
        self.assertEqual(worker.do([("fails", 1)] * 10), [True] * 10)
        worker.end()


if __name__ == "__main__":
    main()
