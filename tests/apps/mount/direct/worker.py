# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Makes the calls that files_test.py tells it, one list a line, and prints the results."""
import hashlib
import os
import sys

fds = {}


def digest(data):
    return len(data), hashlib.sha256(data).hexdigest()


def bytes_of(data):
    return bytes((data[0] + i) % 251 for i in range(data[1]))


def halves(data):
    return [data[:len(data) // 3], data[len(data) // 3:]]


def do_open(name, path, appends):
    fds[name] = os.open(path, os.O_RDWR | (os.O_APPEND if appends else 0))


def do_pread(name, length, offset):
    return digest(os.pread(fds[name], length, offset))


def do_pwrite(name, data, offset):
    return os.pwrite(fds[name], bytes_of(data), offset)


def do_read(name, length):
    return digest(os.read(fds[name], length))


def do_readv(name, length):
    parts = [bytearray(length // 3), bytearray(length - length // 3)]
    n = os.readv(fds[name], parts)
    return digest((parts[0] + parts[1])[:n])


def do_write(name, data):
    return os.write(fds[name], bytes_of(data))


def do_writev(name, data):
    return os.writev(fds[name], halves(bytes_of(data)))


def do_lseek(name, offset):
    return os.lseek(fds[name], offset, os.SEEK_SET)


def do_truncate(name, size):
    os.ftruncate(fds[name], size)


def do_close(name):
    os.close(fds.pop(name))


def do_dup(name, other):
    fds[other] = os.dup(fds[name])


def do_replace(name):
    """Another file in the descriptor's place for a while."""
    kept = os.dup(fds[name])
    other = os.open(os.readlink(f"/proc/self/fd/{kept}") + ".other", os.O_RDONLY)
    os.dup2(other, fds[name])
    os.close(other)
    found = os.pread(fds[name], 100, 0)
    os.dup2(kept, fds[name])
    os.close(kept)
    return digest(found)


def do_size(name):
    return os.fstat(fds[name]).st_size


def do_fsync(name):
    os.fsync(fds[name])


def do_fails(name):
    try:
        os.pwrite(fds[name], bytes(100), 0)
    except OSError:
        return True
    return False


for line in sys.stdin:
    results = [globals()["do_" + call[0]](*call[1:])
               for call in eval(line)]  # pylint: disable=eval-used
    print(results, flush=True)
