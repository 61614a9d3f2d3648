# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""python -m weir_softnic run [--] PROGRAM [ARGUMENT...]"""
import argparse
import os
import sys

from . import LIBRARY, environment

NOT_FOUND, NOT_EXECUTABLE = 127, 126


def parse():
    parser = argparse.ArgumentParser(
        prog="weir-softnic", description="Runs verbs programs on an RDMA device in software.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("library", help="print the path of the library, for LD_PRELOAD")
    run = commands.add_parser(
        "run", help="run a program on softnic",
        epilog="Exit status: the program's; 127 program not found; 126 not executable.")
    run.add_argument("-q", "--quiet", action="store_true", help="do not print the device")
    run.add_argument("program", metavar="PROGRAM")
    run.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER)
    return parser.parse_args()


def main():
    args = parse()
    if args.command == "library":
        print(LIBRARY)
        return 0
    if not args.quiet:
        print("using softnic", file=sys.stderr, flush=True)
    try:
        os.execvpe(args.program, [args.program, *args.arguments], environment())
    except OSError as error:
        print(f"weir-softnic run: {args.program}: {error.strerror}", file=sys.stderr)
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


if __name__ == "__main__":
    sys.exit(main())
