# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir lab: the papers' figures, on a simulated NIC."""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import sys

from lab import beside, calibrate, experiment, hunt, plot, report, simulate, traces, whatif
from lab.net import commands as net
from lab.version import SOURCES, VERSION

DESCRIPTION = """Runs the papers' experiments with weir's own engine over a simulated NIC and host,
in virtual time. All results are modelled, never measured."""


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
    """Yields each experiment with its result. Experiments on the same NIC share their runs."""
    sims = {}
    for module in _wanted(names):
        profile = options.profile or module.PROFILE
        if profile not in sims:
            sims[profile] = simulate.Sim(profile, options.seeds, options.quiet)
        result = module.run(sims[profile])
        if profile != module.PROFILE:
            result = result.of_another(profile, module.PROFILE)
        ran = {"profile": profile, "seeds": options.seeds, "version": VERSION, "sources": SOURCES}
        unsteady = sims[profile].unsteady()
        result = dataclasses.replace(result, ran=ran,
                                     beside=sims[profile].beside_engine(module.NAME))
        sims[profile].unsteady()  # counterparts have the engine's times, and may need longer
        yield module, _with_warnings(result, unsteady)


def _with_warnings(result, unsteady):
    if not unsteady:
        return result
    note = (f"Not steady: {len(unsteady)} of the runs, in which more or less by a tenth or more "
            f"was done later than before: {'; '.join(unsteady)}.")
    return dataclasses.replace(result, notes=[*result.notes, note])


def _show(module, result):
    print(f"\n{module.NAME} (modelled): {module.TITLE}\n\n{result.ran_in_words()}\n")
    for unit in dict.fromkeys(series.unit for series in result.series):
        shown = [series for series in result.series if series.unit == unit]
        widths = [max(10, len(series.name) + 2) for series in shown]
        print(f"{result.axis(unit):>20}" + "".join(f"{series.name:>{width}}"
                                          for series, width in zip(shown, widths)) + f"   {unit}")
        for x in dict.fromkeys(x for series in shown for x in series.x):
            cells = ["" if series.at(x) is None else f"{series.at(x):.4g}" for series in shown]
            print(f"{x:>20}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths)))
    for target in result.targets:
        print(f"  {target.verdict()}: {target.what}: paper {target.paper},"
              f" model {target.model}" + (f" [{target.cause}]" if target.cause else "")
              + (f" ({target.why})" if target.why else ""))
    for note in result.notes:
        print(f"  note: {note}")
    if result.beside:
        print(f"  {beside.sentence(result.beside)}")


def _run(options):
    for module, result in _results(options, options.figures):
        if options.json:
            print(json.dumps(result.as_json(module.NAME)), flush=True)
        else:
            _show(module, result)


def _report(options):
    if not plot.pyplot():
        print(f"weir lab: {report.NO_PLOTS}", file=sys.stderr)
    path = pathlib.Path(options.output)
    if path.is_dir():
        _misused(f"-o {path} is a folder: name a file, such as {path / 'weir-lab.html'}")
    with _whole(path) as page:
        results = list(_results(options, []))
        page.write(report.page(results, [] if options.no_calibration else _fits(options)))
    if path.is_file():
        print(path)


@contextlib.contextmanager
def _whole(path):
    """Opens a file for writing. A path that cannot be written fails at once. The text goes to a
    temporary file beside the path, so that an existing file stays intact until the new file is
    complete.
    """
    if path.exists() and not path.is_file():  # a pipe or a terminal: cannot be replaced
        with open(path, "w", encoding="utf-8") as page:
            yield page
        return
    path = path.resolve()  # keeps a symbolic link a link
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        with open(unfinished, "w", encoding="utf-8") as page:
            yield page
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _fits(options, titled=""):
    # Each series names its own NIC.
    return list(calibrate.fits(simulate.Sim("connectx-3", 1, options.quiet), titled))


def _calibrate(options):
    fits = _fits(options, options.series)
    if not fits:
        _misused(f"no series has '{options.series}' in its title")
    print("# The model beside what was measured\n\nModelled, not measured: virtual time. "
          "The model's numbers were fitted to these series, as far as these agree.")
    for fit in fits:
        calibrate.show(fit)
    if not options.series:
        unused = "\n".join(f"- {line}" for line in calibrate.unused())
        print(f"\nGathered, and not used:\n\n{unused}")
    print(f"\n{calibrate.summary(fits)}")
    sys.exit(1 if calibrate.silent(fits) else 0)


USUAL = {"op": "write", "size": 4096, "threads": 1, "depth": 1, "pattern": "sequential",
         "region": 64 << 20}
OF_A_TRACE = ("op", "size", "pattern", "region")


def _what_if(options):
    names = (*USUAL, "mr", "trace", *whatif.CHOICES)
    workload = {name: getattr(options, name) for name in names}
    for name in OF_A_TRACE:
        if options.trace and workload[name]:
            _misused(f"--{name} and --trace conflict: a trace gives the kind, length and place "
                     "of each request")
    if options.trace:
        asked = {name: workload[name] for name in ("threads", "depth") if workload[name]}
        workload.update(whatif.of_trace(options.trace), **asked)
    workload.update({name: workload[name] or usual for name, usual in USUAL.items()})
    if not options.trace and workload["size"] > workload["region"]:
        _misused(f"--size {whatif.size(workload['size'])} is more than --region"
                 f" {whatif.size(workload['region'])}")
    if workload["window"] in whatif.LEARNED and workload["window_wrs"] in whatif.LEARNED:
        _misused("--window and --window-wrs: only one limit can be learned")
    if workload["threads"] * workload["depth"] > whatif.UNDER_WAY_MAX:
        _misused(f"{workload['threads']} threads with {workload['depth']} requests in flight each "
                 f"are more than {whatif.UNDER_WAY_MAX}")
    sim = simulate.Sim(options.profile, options.seeds, options.quiet)
    found = whatif.answer(sim, workload)
    if options.json:
        print(json.dumps(whatif.as_json(found)))
    else:
        whatif.show(found)


def _hunt(options):
    first, last = options.seeds
    if options.trace:
        if first != last:
            _misused("hunt --trace shows one seed: --seeds N-N")
        sys.exit(hunt.trace(first, options.world))
    broken, digest = hunt.hunt(first, last, options.world, options.quiet)
    if broken:
        seed, what = broken.split(" ", 1)
        again = "" if options.world == "core" else f"--world {options.world} "
        sys.exit(f"weir lab hunt: seed {seed}: {what}\n"
                 f"See it again: weir lab hunt {again}--seeds {seed}-{seed} --trace")
    print(f"{last - first + 1} seeds kept all promises; digest {digest}; "
          f"weir {VERSION}, sources {SOURCES}")


def _range(text):
    numbers = re.fullmatch(r"(\d+)-(\d+)", text)
    if not numbers or int(numbers[1]) > int(numbers[2]) or int(numbers[2]) >= 2**64 - 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a range of seeds such as 1-1000")
    return int(numbers[1]), int(numbers[2])


def _count(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 on")
    return int(text)


def _upto(most):
    def number(text):
        if not text.isdigit() or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 to {most}")
        return int(text)
    return number


def _bytes(least, most):
    def number(text):
        parts = re.fullmatch(r"(\d+)([KMGT]?)", text)
        value = parts and int(parts[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[parts[2]]
        if not parts or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number of bytes from"
                                             f" {whatif.size(least)} to {whatif.size(most)}")
        return value
    return number


def _profile(text):
    found = simulate.profile_named(text)
    if not found:
        raise argparse.ArgumentTypeError(f"no profile '{text}': "
                                         f"{', '.join(simulate.profiles())}, or a file")
    wrong = simulate.wrong_with(found)
    if wrong:
        raise argparse.ArgumentTypeError(wrong)
    return found


def _window(text):
    if text in whatif.LEARNED:
        return text
    return whatif.NO_WINDOW if text == "off" else _bytes(64 << 10, whatif.NO_WINDOW)(text)


def _window_wrs(text):
    return text if text in whatif.LEARNED else _upto(65536)(text)


def _add_what_if(commands):
    """The options of weir perf that the simulator can model."""
    asking = commands.add_parser("what-if", help="model a workload of weir perf on a NIC",
                                 description="Models a workload of weir perf on a NIC: its rate, "
                                 "the limit that binds, and better settings. About forty runs: "
                                 "seconds, or minutes with many requests in flight. Takes these "
                                 "of weir perf's options; not --op mix, the patterns strided, "
                                 "zipf and clusters, --mr auto, --polling "
                                 "scq, --batch, --preset, --cqs, --fragment, --unload and "
                                 "--hot-pages.")
    asking.set_defaults(do=_what_if)
    add = asking.add_argument
    add("-o", "--op", choices=["read", "write"], help="default write")
    add("-s", "--size", type=_bytes(1, 16 << 20), metavar="BYTES", help="default 4K")
    add("-t", "--threads", type=_upto(1024), metavar="N",
        help="default 1; with a trace, its most requests in flight")
    add("-n", "--depth", type=_upto(4096), metavar="N",
        help="requests in flight for each thread; default 1")
    add("-r", "--region", type=_bytes(4096, 1 << 40), metavar="BYTES",
        help="size of the donor's memory; default 64M")
    add("-p", "--pattern", choices=list(whatif.PATTERNS),
        help="sequential: each thread has a part of the region; default sequential")
    add("--trace", metavar="FILE",
        help="requests from a file in the format of weir-perf(1), from the traces etc or sys, or"
        " from - (standard input); .xz is unpacked; replaces --op, --size, --pattern and --region")
    add("-m", "--mr", choices=["pre", "dyn", "user"], default="pre", help="default pre")
    add("-c", "--channels", type=_upto(16), default=2, metavar="N", help="default 2")
    add("-b", "--batching", choices=list(whatif.BATCHING), default="hybrid", help="default hybrid")
    add("-l", "--polling", choices=list(whatif.POLLING), default="adaptive",
        help="default adaptive")
    add("-w", "--window", type=_window, default=whatif.WINDOW, metavar="off|BYTES|delay|knee",
        help="default 8M")
    add("--window-wrs", type=_window_wrs, default=whatif.WINDOW_WRS, metavar="N|delay|knee",
        help="work requests in flight; default 4096")
    add("--profile", type=_profile, default="connectx-5", metavar="NAME|FILE",
        help="the NIC: connectx-3, connectx-5, connectx-5-edr or a file; default "
             "connectx-5")
    add("--seeds", type=_count, default=1, metavar="N",
        help="runs of each setting; the median counts; default 1")
    add("-j", "--json", action="store_true", help="one JSON object")
    add("-q", "--quiet", action="store_true", help="no progress")


def _options():
    parser = argparse.ArgumentParser(prog="weir lab", description=DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--seeds", type=_count, default=3, metavar="N",
                        help="runs of each random point; the median is shown (default 3)")
    common.add_argument("--profile", type=_profile, metavar="NAME|FILE",
                        help="another NIC than the paper's: connectx-3, connectx-5, "
                             "connectx-5-edr, or a file like those in sim/profiles")
    common.add_argument("-q", "--quiet", action="store_true", help="no progress")

    listing = commands.add_parser("list", help="name the figures")
    listing.set_defaults(do=_list)
    run = commands.add_parser("run", parents=[common], help="run figures, and print the results")
    run.add_argument("figures", nargs="+", metavar="FIGURE")
    run.add_argument("--json", action="store_true", help="one JSON object a figure")
    run.set_defaults(do=_run)
    page = commands.add_parser("report", parents=[common],
                               help="run all figures, and write a page of HTML")
    page.add_argument("-o", "--output", metavar="FILE", default="weir-lab.html",
                      help="default weir-lab.html")
    page.add_argument("--no-calibration", action="store_true",
                      help="leave out the calibration")
    page.set_defaults(do=_report)
    _add_what_if(commands)
    fitting = commands.add_parser("calibrate",
                                  help="the calibration data, and how well the model fits")
    fitting.add_argument("--series", default="", metavar="TEXT",
                         help="only series with this text in the title")
    fitting.add_argument("-q", "--quiet", action="store_true", help="no progress")
    fitting.set_defaults(do=_calibrate)
    hunting = commands.add_parser("hunt", help="look for bugs in the core, seed by seed")
    hunting.add_argument("--world", choices=list(hunt.CHUNKS), default="core",
                         help="core: the engine and what belongs to it; pool: donors, clients and "
                         "coordinators around a map; default core")
    hunting.add_argument("--seeds", type=_range, default=(1, 10000), metavar="A-B",
                         help="default 1-10000; the same seeds give the same runs to the byte")
    hunting.add_argument("--trace", action="store_true",
                         help="print all events of a single seed")
    hunting.add_argument("-q", "--quiet", action="store_true", help="no progress")
    hunting.set_defaults(do=_hunt)
    commands.add_parser("net", add_help=False,
                        help="a cluster on this machine: weir lab net --help")
    return parser.parse_args()


def _hush():
    """Avoids an error from Python's last flush when standard output cannot be written."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main():
    if not sys.stderr:
        sys.stderr = open(os.devnull, "w", encoding="ascii")
    if not sys.stdout:
        sys.exit("weir lab: standard output is closed")
    try:
        # The parent may have blocked SIGINT.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        if sys.argv[1:2] == ["net"]:
            net.main(sys.argv[2:])
        else:
            options = _options()
            options.do(options)
        sys.stdout.flush()
    except (hunt.Failure, simulate.Failure, traces.Failure) as failure:
        sys.exit(f"weir lab: {failure}")
    except BrokenPipeError:
        _hush()  # the reader has closed the pipe
    except OSError as error:
        _hush()
        sys.exit(f"weir lab: {f'{error.filename}: ' if error.filename else ''}{error.strerror}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
