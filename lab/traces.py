# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Files for the simulator: page traces in the form of weir-perf(1), shipped or a user's, and others."""

import atexit
import functools
import lzma
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SHIPPED = {"etc": HERE / "etc.xz", "sys": HERE / "sys.xz"}
STDIN = "-"
XZ = b"\xfd7zXZ\0"  # how such a file begins
_unpacked = {}
_written = {}


class Failure(Exception):
    """It cannot be read."""


@functools.cache
def _folder():
    """Goes when the program ends."""
    folder = tempfile.mkdtemp(prefix="weir-lab-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return pathlib.Path(folder)


def scratch(name, text):
    """A file of that name with this text in it, for as long as the program runs."""
    if name not in _written:
        _written[name] = _folder() / name
        _written[name].write_text(text, encoding="ascii")
    return str(_written[name])


def _packed(name, path):
    """What is to be unpacked, or None: the simulator reads the file itself."""
    if name == STDIN:
        return sys.stdin.buffer.read()
    return path.read_bytes() if path.suffix == ".xz" else None


def plain(name):
    """Of one that is shipped, by its name, of any by its path, or what comes in: a file that the simulator
    reads."""
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


def facts(name):
    """How many requests, reads of them, and pages; how many at a time at most; the page after the last."""
    requests = reads = pages = deepest = last = 0
    try:
        with open(plain(name), encoding="ascii", errors="replace") as lines:
            for line in lines:
                if not line.startswith(("R ", "W ")):
                    continue
                fields = line.split()
                deepest = max(deepest, requests + 1 - int(fields[4]))
                requests += 1
                reads += line[0] == "R"
                pages += int(fields[2])
                last = max(last, int(fields[1]) + int(fields[2]))
    except (OSError, ValueError, IndexError) as error:
        raise Failure(f"{name}: {getattr(error, 'strerror', None) or 'not a trace: weir-perf(1)'}") from error
    if not requests:
        raise Failure(f"{name}: there is no request in it")
    return {"requests": requests, "reads": reads, "pages": pages, "deepest": deepest, "last": last}
