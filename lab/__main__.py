# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir lab: the papers' figures, on a simulated NIC."""

import argparse
import json
import re
import sys

from lab import experiment, hunt, report, simulate

DESCRIPTION = """Runs the papers' experiments with weir's own engine over a simulated NIC and host,
in virtual time. What comes out is modelled, never measured."""


def _list(_options):
    for name, module in experiment.experiments().items():
        print(f"{name:16} {module.TITLE}")


def _misused(why):
    print(f"weir lab: {why}", file=sys.stderr)
    sys.exit(2)


def _wanted(names):
    known = experiment.experiments()
    for name in names:
        if name not in known:
            _misused(f"no figure '{name}'; 'weir lab list' names them")
    return [known[name] for name in names or known]


def _results(options, names):
    """Each experiment and its result, as they come."""
    for module in _wanted(names):
        sim = simulate.Sim(options.profile or module.PROFILE, options.seeds, options.quiet)
        yield module, module.run(sim)


VERDICTS = {True: "met", False: "NOT MET", None: "-"}


def _show(module, result):
    print(f"\n{module.NAME}: {module.TITLE} (modelled)\n")
    for unit in dict.fromkeys(series.unit for series in result.series):
        shown = [series for series in result.series if series.unit == unit]
        widths = [max(10, len(series.name) + 2) for series in shown]
        print(f"{result.x:>20}" + "".join(f"{series.name:>{width}}"
                                          for series, width in zip(shown, widths)) + f"   {unit}")
        for x in dict.fromkeys(x for series in shown for x in series.x):
            cells = ["" if series.at(x) is None else f"{series.at(x):.4g}" for series in shown]
            print(f"{x:>20}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths)))
    for target in result.targets:
        fitted = ", calibrated" if target.calibrated else ""
        print(f"  {VERDICTS[target.met] + fitted:8} {target.what}: paper {target.paper},"
              f" model {target.model}" + (f" ({target.why})" if target.why else ""))
    for note in result.notes:
        print(f"  note: {note}")


def _run(options):
    for module, result in _results(options, options.figures):
        if options.json:
            print(json.dumps(result.as_json(module.NAME)), flush=True)
        else:
            _show(module, result)


def _report(options):
    # First, so that a path that cannot be written is not found out in the end.
    with open(options.output, "w", encoding="utf-8") as page:
        page.write(report.page(list(_results(options, []))))
    print(options.output)


def _hunt(options):
    first, last = options.seeds
    if options.trace:
        if first != last:
            _misused("hunt --trace shows one seed: --seeds N-N")
        sys.exit(hunt.trace(first))
    broken, digest = hunt.hunt(first, last)
    if broken:
        seed, what = broken.split(" ", 1)
        sys.exit(f"weir lab hunt: seed {seed}: {what}\n"
                 f"See it again: weir lab hunt --seeds {seed}-{seed} --trace")
    print(f"{last - first + 1} seeds kept all promises; digest {digest}")


def _range(text):
    numbers = re.fullmatch(r"(\d+)-(\d+)", text)
    if not numbers or int(numbers[1]) > int(numbers[2]) or int(numbers[2]) >= 2**64 - 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a range of seeds such as 1-1000")
    return int(numbers[1]), int(numbers[2])


def _count(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 on")
    return int(text)


def _options():
    parser = argparse.ArgumentParser(prog="weir lab", description=DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--seeds", type=_count, default=3, metavar="N",
                        help="runs of each point, of which the median is shown (default 3)")
    common.add_argument("--profile", metavar="NAME|FILE",
                        help="another NIC than the paper's: connectx-3, connectx-5, "
                             "connectx-5-edr")
    common.add_argument("-q", "--quiet", action="store_true", help="no progress")

    listing = commands.add_parser("list", help="name the figures")
    listing.set_defaults(do=_list)
    run = commands.add_parser("run", parents=[common], help="run some, and print what came out")
    run.add_argument("figures", nargs="+", metavar="FIGURE")
    run.add_argument("--json", action="store_true", help="one JSON object a figure")
    run.set_defaults(do=_run)
    page = commands.add_parser("report", parents=[common],
                               help="run all, and write a page of HTML")
    page.add_argument("-o", "--output", metavar="FILE", default="weir-lab.html",
                      help="default weir-lab.html")
    page.set_defaults(do=_report)
    hunting = commands.add_parser("hunt", help="look for bugs in the engine, seed by seed")
    hunting.add_argument("--seeds", type=_range, default=(1, 10000), metavar="A-B",
                         help="default 1-10000; the same seeds give the same runs to the byte")
    hunting.add_argument("--trace", action="store_true",
                         help="of one seed: print all that happens")
    hunting.set_defaults(do=_hunt)
    return parser.parse_args()


def main():
    options = _options()
    try:
        options.do(options)
    except (hunt.Failure, simulate.Failure) as failure:
        sys.exit(f"weir lab: {failure}")
    except OSError as error:
        sys.exit(f"weir lab: {error.filename}: {error.strerror}")
    except BrokenPipeError:
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
