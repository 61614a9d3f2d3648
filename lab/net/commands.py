# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The commands of weir lab net."""

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading

from lab.children import undisturbed
from lab.net import link
from lab.net.cluster import HOSTS_MAX, NAME, Cluster, Failure, locked

DESCRIPTION = """A cluster in a box: hosts h1, h2, ... as network namespaces of this machine, joined
by a bridge. Needs no privilege where users may make namespaces. Nothing of the machine's own
network changes."""
PATIENCE_S = 5  # from the signal that ends a command to SIGKILL


def _misused(why):
    print(f"weir lab net: {why}", file=sys.stderr)
    sys.exit(2)


def _hosts(cluster, names):
    """The hosts of "h1,h2" or "all"."""
    return [cluster.host(name)
            for name in (cluster.hosts if names == "all" else names.split(","))]


def _show(cluster, as_json):
    if as_json:
        print(json.dumps(cluster.as_json()))
        return
    print(f"cluster {cluster.name}: {len(cluster.hosts)} hosts"
          + ("" if cluster.keeper.lives() else "; its keeper was killed: 'weir lab net down'"))
    for host in cluster.hosts.values():
        state = "dead" if not host.holder.lives() else "up" if host.up else "down"
        split = f"; in part {host.group}" if host.group else ""
        print(f"{host.name:5} {host.ipv4:12} {host.ipv6:20} {state:5} "
              f"{link.words(host.link)}{split}")


def _up(options):
    wanted = link.change({}, options)
    if link.wrong_with(wanted):
        _misused(link.wrong_with(wanted))
    if options.command and options.json:
        _misused("--json describes a cluster that stays up, without a command")
    with locked():
        cluster = Cluster.up(options.name, options.hosts, options.mtu, bool(options.command))
        try:
            for host in cluster.hosts.values():
                cluster.set_link(host, wanted)
            cluster.save()
            if not options.command:
                _show(cluster, options.json)
                sys.stdout.flush()
                return
        except BaseException:
            cluster.down()
            raise
    try:
        status = _wait_for(options.command, {**os.environ, NAME: options.name})
    finally:
        with locked():
            cluster.down()
    sys.exit(status)


def _wait_for(command, environment):
    """Exit status of a command as a shell has it. A terminal's Ctrl-C reaches the command, too."""
    try:
        with undisturbed():
            child = subprocess.Popen(command, env=environment)  # pylint: disable=R1732
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from error
    try:
        while True:
            try:
                return _status(child.wait())
            except KeyboardInterrupt:
                child.send_signal(signal.SIGINT)
    except SystemExit:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(PATIENCE_S)
        raise
    finally:
        child.kill()
        child.wait()


def _status(returncode):
    return returncode if returncode >= 0 else 128 - returncode


def _run(options):
    words = options.words
    names = "all" if options.all else words.pop(0) if words else None
    if words[:1] == ["--"]:
        words.pop(0)
    if not names or not words:
        _misused("run needs a host and a command: run h1 -- COMMAND, or run --all -- COMMAND")
    cluster = Cluster.load(options.name)
    hosts = _hosts(cluster, names)
    if len(hosts) > 1 or options.all:
        sys.exit(_run_on_each(cluster, hosts, words))
    line, environment = cluster.command(hosts[0], words)
    os.execvpe(line[0], line, environment)


def _prefix(host, pipe, out):
    for text in pipe:
        out.write(f"{host.name}: {text.rstrip(chr(10))}\n")
        out.flush()


def _run_on_each(cluster, hosts, command):
    """Runs @command in all hosts at once. Returns the first exit status but 0, in hosts' order."""
    children, readers = [], []
    try:
        with undisturbed():
            for host in hosts:
                line, environment = cluster.command(host, command)
                # pylint: disable-next=consider-using-with
                child = subprocess.Popen(line, env=environment, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         text=True, errors="replace")
                children.append(child)
                for pipe, out in ((child.stdout, sys.stdout), (child.stderr, sys.stderr)):
                    readers.append(threading.Thread(target=_prefix, args=(host, pipe, out),
                                                    daemon=True))
                    readers[-1].start()
        statuses = [_status(child.wait()) for child in children]
    except BaseException:
        for child in children:
            child.terminate()
        raise
    for reader in readers:
        reader.join(PATIENCE_S)  # a command's own child may keep the pipe
    for host, status in zip(hosts, statuses):
        if status:
            print(f"weir lab net: {host.name}: exit status {status}", file=sys.stderr)
    return next((status for status in statuses if status), 0)


def _link(options):
    if options.clear and options.wants(link.FIELDS):
        _misused("--clear and the faults conflict")
    if not (options.clear or options.up is not None or options.wants(link.FIELDS)):
        _misused("link needs a fault, a rate, --clear, --down or --up; 'status' shows links")
    with locked():
        cluster = Cluster.load(options.name)
        for host in _hosts(cluster, options.hosts):
            wanted = {} if options.clear else link.change(host.link, options)
            if link.wrong_with(wanted):
                _misused(link.wrong_with(wanted))
            if wanted != host.link:
                cluster.set_link(host, wanted)
            if options.up is not None:
                cluster.set_up(host, options.up)
            cluster.save()


def _split(options):
    with locked():
        cluster = Cluster.load(options.name)
        groups = [_hosts(cluster, names) for names in options.groups]
        named = [host.name for group in groups for host in group]
        if len(named) != len(set(named)):
            _misused("split: a host is in two groups")
        cluster.split(groups)
        cluster.save()


def _status_of(options):
    cluster = Cluster.load(options.name)
    _show(cluster, options.json)
    sys.exit(0 if cluster.keeper.lives() else 1)


def _down(options):
    with locked():
        Cluster.load(options.name).down()


def _count(text):
    if not text.isdigit() or not 1 <= int(text) <= HOSTS_MAX:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of hosts from 1 to {HOSTS_MAX}")
    return int(text)


def _mtu(text):
    if not text.isdigit() or not 1280 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not an MTU from 1280 to 65535")
    return int(text)


def _name(text):
    if not re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,63}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a name of letters, digits, _, . and -")
    return text


class _Options(argparse.Namespace):
    def wants(self, fields):
        return any(getattr(self, field) is not None for field in fields)


def _add_up(commands, common):
    bring = commands.add_parser("up", parents=[common], help="start a cluster",
                                usage="weir lab net up N [OPTION ...] [-- COMMAND ...]",
                                description="Starts N hosts. With a command, runs the command on "
                                "this machine, where 'weir lab net run' finds the cluster, then "
                                "takes the cluster down and returns the command's exit status.")
    bring.add_argument("hosts", type=_count, metavar="N", help="number of hosts")
    bring.add_argument("--mtu", type=_mtu, default=1500, help="of all links; default 1500")
    bring.add_argument("-j", "--json", action="store_true", help="print the cluster as JSON")
    faults = bring.add_argument_group("faults of all links, in each direction")
    link.add_options(faults.add_argument)
    bring.set_defaults(do=_up)


def _add_link(commands, common):
    changing = commands.add_parser("link", parents=[common], help="change a host's link",
                                   description="Changes the links of hosts, in both directions. "
                                   "What is not named stays; 0 removes a fault.")
    changing.add_argument("hosts", metavar="HOST[,...]|all")
    link.add_options(changing.add_argument)
    changing.add_argument("--clear", action="store_true", help="a link without faults or a rate")
    plug = changing.add_mutually_exclusive_group()
    plug.add_argument("--down", dest="up", action="store_false", default=None,
                      help="pull the cable: the host sees no carrier")
    plug.add_argument("--up", dest="up", action="store_true", help="plug the cable in")
    changing.set_defaults(do=_link)


def options_of(arguments):
    """The options of a command line."""
    command = []
    if arguments[:1] == ["up"] and "--" in arguments:
        at = arguments.index("--")
        arguments, command = arguments[:at], arguments[at + 1:]
        if not command:
            _misused("up: no command after --")
    parser = argparse.ArgumentParser(prog="weir lab net", description=DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--name", type=_name, default=os.environ.get(NAME) or "lab",
                        help=f"of the cluster; default {NAME} of the environment, else lab")
    _add_up(commands, common)
    run = commands.add_parser("run", parents=[common], help="run a command in hosts",
                              usage="weir lab net run [--name NAME] (HOST[,HOST...] | --all) -- "
                              "COMMAND ...",
                              description="Runs a command in one host, or in several at once; "
                              "then each line of output names its host.")
    run.add_argument("--all", action="store_true", help="in all hosts")
    run.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    run.set_defaults(do=_run)
    _add_link(commands, common)
    part = commands.add_parser("split", parents=[common], help="partition the network",
                               description="Hosts of different groups lose each other; the hosts "
                               "in no group stay together. Without groups, all hosts are joined.")
    part.add_argument("groups", nargs="*", metavar="HOST[,...]")
    part.set_defaults(do=_split)
    state = commands.add_parser("status", parents=[common], help="show the cluster")
    state.add_argument("-j", "--json", action="store_true", help="one JSON object")
    state.set_defaults(do=_status_of)
    down = commands.add_parser("down", parents=[common],
                               help="end the commands in the hosts, and the cluster")
    down.set_defaults(do=_down)
    return parser.parse_args(arguments, _Options(command=command))


def main(arguments):
    """Runs the command, and ends this process on a failure."""
    options = options_of(arguments)
    try:
        options.do(options)
    except Failure as failure:
        sys.exit(f"weir lab net: {failure}")
