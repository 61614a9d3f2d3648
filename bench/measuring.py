# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Shared by the measuring programs: failures, exit statuses, results as JSON, runs of parts."""
import argparse
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts"))
from stage import Failed, Stage, die_with_parent, die_with_parent_at_once  # noqa: E402, F401


def status_of(name, run, *errors):
    """Calls run(). Return: its exit status; 1 after a failure or one of @errors, with a message;
    130 after an interrupt."""
    try:
        return run()
    except (Failed, OSError, subprocess.SubprocessError, *errors) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def write_json(path, found, indent=2):
    """Writes @found, if a path was given."""
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=indent)


def parser_of_parts(description, parts, rounds, seconds):
    """@rounds and @seconds are defaults."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(parts)}; default all")
    parser.add_argument("--weir", default="build/weir", help="the weir command")
    parser.add_argument("--device", default="softnic")
    parser.add_argument("--address", default="127.0.0.1", help="where the other end listens")
    parser.add_argument("--quick", action="store_true", help="fewer cells, shorter")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds,
                        help="length of each measurement")
    parser.add_argument("--json", metavar="FILE", help="write all results to FILE")
    return parser


def parse_parts(parser, parts):
    """The options; their parts are all, if none was chosen."""
    options = parser.parse_args()
    unknown = set(options.parts) - set(parts)
    if unknown:
        parser.error(f"no part {', '.join(unknown)}: {', '.join(parts)}")
    options.weir = os.path.abspath(options.weir)
    options.parts = options.parts or list(parts)
    return options


def measure_parts(options, parts, *args):
    """Measures the chosen parts: parts[name](*args). Return: an exit status."""
    print(f"{options.device}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    found = {name: parts[name](*args) for name in options.parts}
    print(f"load at the end {os.getloadavg()[0]:.1f}")
    write_json(options.json, found)
    return 0
