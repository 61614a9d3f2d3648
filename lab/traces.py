# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Files for the simulator: page traces in the format of weir-perf(1), shipped or a user's, and
others.
"""

import atexit
import functools
import lzma
import pathlib
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SHIPPED = {"etc": HERE / "etc.xz", "sys": HERE / "sys.xz"}
STDIN = "-"
# weir-perf(1) describes the format.
FIRST, HEADER = "weir-trace 1 PAGES THREADS", re.compile(r"weir-trace 1 ([1-9]\d{0,9}) \d+")
FORM, REQUEST = "OP PAGE COUNT THREAD DONE US", re.compile(r"([RW]) (\d+) (\d+) \d+ (\d+) \d+")
PAGES_MAX = 256  # of a request
XZ = b"\xfd7zXZ\0"  # first bytes of an xz file
_unpacked = {}
_written = {}


class Failure(Exception):
    """The trace cannot be read."""


@functools.cache
def _folder():
    """A temporary folder, removed at exit."""
    folder = tempfile.mkdtemp(prefix="weir-lab-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return pathlib.Path(folder)


def scratch(name, text):
    """Path of a file of this name and text, which exists until the program ends."""
    if name not in _written:
        _written[name] = _folder() / name
        _written[name].write_text(text, encoding="ascii")
    return str(_written[name])


def _packed(name, path):
    """Compressed data to unpack, or None: the simulator reads the file itself."""
    if name == STDIN:
        if not sys.stdin:
            raise Failure("standard input is closed")
        return sys.stdin.buffer.read()
    return path.read_bytes() if path.suffix == ".xz" else None


def plain(name):
    """Path of a file for the simulator. @name: a shipped trace, a path, or "-" for standard input.
    """
    path = pathlib.Path(SHIPPED.get(name, name))
    if name not in _unpacked:
        try:
            text = _packed(name, path)
            if text is None:
                return str(path)
            if text.startswith(XZ) or name != STDIN:
                text = lzma.decompress(text)
        except (OSError, lzma.LZMAError) as error:
            raise Failure(f"{name}: {getattr(error, 'strerror', None) or error}") from error
        _unpacked[name] = _folder() / f"{len(_unpacked)}.trace"
        _unpacked[name].write_bytes(text)
    return str(_unpacked[name])


def _wrong_with(request, pages, before):
    """Checks a request: page, pages, and requests done at its start. before: requests so far."""
    page, count, done = request
    if not 1 <= count <= PAGES_MAX:
        return f"COUNT is {count}: 1 to {PAGES_MAX}"
    if page + count > pages:
        return f"pages {page} to {page + count - 1} of a device that has {pages}"
    return f"DONE is {done}, and only {before} came before" if done > before else ""


def _requests(name):
    """Yields for each request: whether it reads, page, pages, and requests done at its start."""
    pages = before = 0
    with open(plain(name), encoding="ascii", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if line.startswith("#"):
                continue
            found = (REQUEST if pages else HEADER).fullmatch(line.strip())
            request = found and pages and tuple(int(found[i]) for i in (2, 3, 4))
            wrong = f"expected \"{FORM if pages else FIRST}\"" if not found else \
                request and _wrong_with(request, pages, before)
            if wrong:
                raise Failure(f"{'standard input' if name == STDIN else name}:{number}: {wrong}")
            if request:
                before += 1
                yield found[1] == "R", *request
            else:
                pages = int(found[1])


def facts(name):
    """Number of requests, of reads and of pages; the most in flight; the page after the last."""
    requests = reads = pages = deepest = last = 0
    try:
        for is_read, page, count, done in _requests(name):
            requests += 1
            deepest = max(deepest, requests - done)
            reads += is_read
            pages += count
            last = max(last, page + count)
    except OSError as error:
        raise Failure(f"{name}: {error.strerror}") from error
    if not requests:
        raise Failure(f"{name}: there is no request in it")
    return {"requests": requests, "reads": reads, "pages": pages, "deepest": deepest, "last": last}
