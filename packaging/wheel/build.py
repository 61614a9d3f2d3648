#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Build the wheel weir-softnic from the library built by Meson.

build.py LIBRARY VERSION FOLDER

Needs Python and objdump only. The wheel's tag names the newest glibc whose symbols the library
uses. So pip refuses the wheel on an older host.
"""
import base64
import hashlib
import pathlib
import platform
import re
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
# The libraries of each host with this glibc. The wheel must contain the rest.
EXPECTED = re.compile(r"lib(c|dl|pthread|m|rt)\.so\.\d+|ld-linux.*")
LAUNCHER = "[console_scripts]\nweir-softnic = weir_softnic.__main__:main\n"


def objdump(library):
    return subprocess.run(["objdump", "-p", library], check=True, text=True,
                          capture_output=True).stdout


def newest_glibc(headers):
    return max(tuple(map(int, found)) for found in re.findall(r"GLIBC_(\d+)\.(\d+)", headers))


def strangers(headers):
    return [name for name in re.findall(r"NEEDED +(\S+)", headers)
            if not EXPECTED.fullmatch(name)]


def tag(headers):
    major, minor = newest_glibc(headers)
    return f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"


def contents(library, version, wheel_tag):
    """Yield (name in the wheel, bytes)."""
    for path in sorted((HERE / "weir_softnic").glob("*.py")):
        yield f"weir_softnic/{path.name}", path.read_bytes()
    yield "weir_softnic/libweir-softnic.so", pathlib.Path(library).read_bytes()
    info = f"weir_softnic-{version}.dist-info"
    yield f"{info}/METADATA", (
        f"Metadata-Version: 2.1\nName: weir-softnic\nVersion: {version}\n"
        "Summary: An RDMA device in software, for any program that speaks verbs\n"
        "License: BSD-2-Clause OR GPL-2.0-only\nRequires-Python: >=3.9\n").encode()
    yield f"{info}/WHEEL", (
        "Wheel-Version: 1.0\nGenerator: weir\nRoot-Is-Purelib: false\n"
        f"Tag: {wheel_tag}\n").encode()
    yield f"{info}/entry_points.txt", LAUNCHER.encode()


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def main():
    library, version, folder = sys.argv[1:]
    headers = objdump(library)
    if strangers(headers):
        sys.exit(f"{library} needs {', '.join(strangers(headers))}, which hosts may lack")
    wheel_tag = tag(headers)
    target = pathlib.Path(folder) / f"weir_softnic-{version}-{wheel_tag}.whl"
    record = f"weir_softnic-{version}.dist-info/RECORD"
    lines = ""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in contents(library, version, wheel_tag):
            # A fixed date makes equal inputs give equal wheels.
            wheel.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data,
                           zipfile.ZIP_DEFLATED)
            lines += record_line(name, data)
        wheel.writestr(zipfile.ZipInfo(record, (1980, 1, 1, 0, 0, 0)),
                       lines + f"{record},,\n")
    print(target)


if __name__ == "__main__":
    main()
