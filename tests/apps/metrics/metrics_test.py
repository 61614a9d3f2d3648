#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Check the formats of metrics, the places that serve metrics, and that each metric moves.

metrics_test.py host|mount|pool|wire|pages WEIR MOVER

"host" needs nothing but softnic; "mount" mounts file systems; "pool" has donors that come and go;
"wire" makes network namespaces; "pages" has huge pages, which softnic's clients cannot map.
Between them, they cover each metric that 'weir metrics --describe' knows.
"""
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
from tests.softnic.programs.perftest import listens  # noqa: E402
from tests.support.hosts import Net  # noqa: E402
from tests.support.patience import stop_process  # noqa: E402

PART, WEIR, MOVER = sys.argv[1], *(os.path.abspath(path) for path in sys.argv[2:4])
del sys.argv[1:4]
PATIENCE = 90
PERFTEST_PORT = 18515
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
PROTOBUF = ("application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; "
            "encoding=delimited")
NAME = re.compile(r"^\| `(\w+)` \|", re.M)
SAMPLE = re.compile(r"^(\w+?)(?:_bucket|_sum|_count)?(\{.*\})? ([\d.e+-]+)$")

# Metrics that no part moves, and why.
ELSEWHERE = {
    "weir_spans_total": "tests/lib/span has a collector",
    "weir_donor_info": "its labels are compared",
    "weir_build_info": "its label is compared",
}
# The packets' counters move between hosts only.
PACKETS = re.compile(r"weir_softnic_(\w+_packets|peer_\w+)_total")


def environment(**more):
    kept = {name: value for name, value in os.environ.items()
            if name not in ("LD_PRELOAD", "WEIR_SHARE", "WEIR_SOFTNIC")}
    return {**kept, "WEIR_DEVICE": "softnic", **more}


def weir(*words, **more):
    return subprocess.run([WEIR, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=PATIENCE, check=False, env=environment(**more))


def catalogue():
    return set(NAME.findall(weir("metrics", "--describe").stdout))


def part_of(name):
    if name.startswith(("weir_mount_", "weir_host_mount_", "weir_file_server_",
                        "weir_donor_messages_")):
        return "mount"
    if name.startswith("weir_pool_"):
        return "pool"
    if name.startswith("weir_blk_"):
        return "module"  # tests/apps/blk has one
    if name == "weir_donor_huge_pages":
        return "pages"
    return "wire" if PACKETS.match(name) else "host"


def request(where, target="/metrics", accept="*/*", method="GET", name="localhost"):
    """An HTTP request to "unix:PATH" or to a URL. Returns status, headers and body."""
    if where.startswith("unix:"):
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(PATIENCE)
        link.connect(where[5:])
    else:
        scheme, address = where.removesuffix("/metrics").split("://")
        host, port = address.rsplit(":", 1)
        link = socket.create_connection((host.strip("[]"), int(port)), PATIENCE)
        if scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            link = context.wrap_socket(link)
    with link:
        link.sendall(f"{method} {target} HTTP/1.1\r\nHost: {name}\r\nAccept: {accept}\r\n"
                     "Connection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: link.recv(65536), b""))
    head, body = answer.split(b"\r\n\r\n", 1)
    status, *headers = head.decode().split("\r\n")
    fields = dict(line.split(": ", 1) for line in headers)
    is_text = "protobuf" not in fields.get("Content-Type", "")
    return int(status.split()[1]), fields, body.decode() if is_text else body


def varint(data, at):
    """A number at a place of a message of protocol buffers, and the place after it."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields_of(message):
    """The values of each field of a message: numbers, or bytes for texts and messages."""
    fields, at = collections.defaultdict(list), 0
    while at < len(message):
        tag, at = varint(message, at)
        if tag & 7 == 0:
            value, at = varint(message, at)
        elif tag & 7 == 1:
            value, at = struct.unpack_from("<d", message, at)[0], at + 8
        else:
            assert tag & 7 == 2, tag
            length, at = varint(message, at)
            value, at = message[at:at + length], at + length
        fields[tag >> 3].append(value)
    return fields


def signed(number):
    return number >> 1 ^ -(number & 1)


def native_counts(histogram):
    """The count of each native bucket, by its index."""
    deltas, at = [], 0
    packed = b"".join(histogram[13])
    while at < len(packed):
        value, at = varint(packed, at)
        deltas.append(signed(value))
    counts, index, count = {}, 0, 0
    for span in map(fields_of, histogram[12]):
        index += signed(span[1][0]) if span[1] else 0
        for _ in range(span[2][0]):
            count += deltas.pop(0)
            counts[index] = count
            index += 1
    assert not deltas
    return counts


def families_of(data):
    """The metric families of an answer: their fields, by name."""
    families, at = {}, 0
    while at < len(data):
        length, at = varint(data, at)
        family, at = fields_of(data[at:at + length]), at + length
        name = family[1][0].decode()
        assert name not in families, name
        families[name] = family
    return families


def samples_of(families):
    """Lines of samples as in the text, and the types, of families of protocol buffers."""
    lines, types = [], {}
    for name, family in families.items():
        types[name] = {0: "counter", 1: "gauge", 4: "histogram"}[sum(family[3])]
        for metric in map(fields_of, family[4]):
            labels = [tuple(part[i][0].decode() if part[i] else "" for i in (1, 2))
                      for part in map(fields_of, metric[1])]
            if types[name] != "histogram":
                [value] = metric[3 if types[name] == "counter" else 2]
                lines.append((name, tuple(labels), sum(fields_of(value)[1])))
                continue
            histogram = fields_of(metric[7][0])
            for bucket in map(fields_of, histogram[3]):
                bound = ("le", f"{bucket[2][0]:.9g}")
                lines.append((name + "_bucket", (*labels, bound), sum(bucket[1])))
            count = sum(histogram[1])
            lines.append((name + "_bucket", (*labels, ("le", "+Inf")), count))
            lines.append((name + "_sum", tuple(labels), sum(histogram[2])))
            lines.append((name + "_count", tuple(labels), count))
    return lines, types


def samples_of_text(text):
    """The same of the text, whose labels have no escapes here."""
    lines = [(name, tuple(re.findall(r'(\w+)="([^"]*)"', labels)), float(value))
             for name, labels, value in re.findall(r"^(\w+)(\{.*\})? (\S+)$", text, re.M)]
    return lines, dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))


def has_ipv6():
    """Whether this machine has the loopback of IPv6."""
    try:
        with socket.socket(socket.AF_INET6) as link:
            link.bind(("::1", 0))
    except OSError:
        return False
    return True


class Board:
    """The samples seen of each metric: the values of each of its label sets, in time."""

    def __init__(self):
        self.seen = collections.defaultdict(lambda: collections.defaultdict(set))

    def note(self, text):
        for line in text.splitlines():
            match = SAMPLE.match(line)
            if match and not line.startswith("#"):
                self.seen[match[1]][match[2]].add(float(match[3]))

    def moved(self, name):
        """A counter begins at 0; a gauge has to change."""
        series = self.seen[name].values()
        if name.endswith("_total") or name.endswith("_duration_seconds"):
            return any(value for values in series for value in values)
        return any(len(values) > 1 for values in series) or \
            len({value for values in series for value in values}) > 1


class Programs(unittest.TestCase):
    """Starts programs, and ends them after the test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-metrics-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.board = Board()

    def start(self, *words, prefix=(), name="log", **more):
        log = open(os.path.join(self.folder, name), "w+", encoding="utf-8")
        self.addCleanup(log.close)
        child = subprocess.Popen([*prefix, *words], stdin=subprocess.PIPE, stdout=log, stderr=log,
                                 env=environment(**more))
        self.addCleanup(self.end, child)
        child.log = log.name
        return child

    def end(self, child, number=signal.SIGTERM):
        child.stdin.close()
        if child.poll() is None:
            child.send_signal(number)
        try:
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise

    def told(self, child, pattern):
        """The match of a line that the child prints sooner or later."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            text = pathlib.Path(child.log).read_text(encoding="utf-8")
            match = re.search(pattern, text, re.M)
            if match:
                return match[1] if match.lastindex else match[0]
            self.assertIsNone(child.poll(), text)
            time.sleep(0.02)
        self.fail(f"{child.args}: {text}")

    def serve(self, *words, name="serve", **more):
        child = self.start(WEIR, "serve", "--listen", "127.0.0.1:0", "--metrics",
                           f"unix:{self.folder}/{name}", *words, name=name + ".log", **more)
        child.address = self.told(child, r"^ready (.*)$")
        child.metrics = self.told(child, r"metrics at (.*)$")
        return child

    def until_moved(self, names, *sources, mover=None):
        """Scrapes until all of the metrics have moved, while the program @mover runs."""
        deadline = time.monotonic() + PATIENCE
        left = set(names)
        while left:
            for source in sources:
                self.board.note(request(source)[2])
            left = {name for name in left if not self.board.moved(name)}
            if left and mover and mover.poll() is not None:
                self.fail(f"{mover.args}: {pathlib.Path(mover.log).read_text(encoding='utf-8')}")
            self.assertLess(time.monotonic(), deadline, f"these stand still: {sorted(left)}")
            time.sleep(0.05)

    def covers(self, part, names):
        wanted = {name for name in catalogue() if part_of(name) == part} - set(ELSEWHERE)
        self.assertEqual(wanted - names, set(), "no test moves these")
        self.assertEqual(names - wanted, set(), "there are no such metrics")


def names_of(prefix, text):
    return {f"weir_{prefix}_{name}" for name in text.split()}


class Formats(Programs):
    def test_both_formats_are_right(self):
        donor = self.serve("--memory", "8M", "--no-reserve")
        perf = self.start(WEIR, "perf", "-S", "0", "--region", "2M", donor.address)
        host = self.start(WEIR, "metrics", "--listen", "0", name="host")
        where = self.told(host, "metrics at (.*)$")
        self.until_moved({"weir_session_requests_total"}, where)
        for source in (donor.metrics, where):
            status, headers, text = request(source)
            self.assertEqual(status, 200)
            self.assertIn("version=0.0.4", headers["Content-Type"])
            if shutil.which("promtool"):
                lint = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                                      capture_output=True, timeout=PATIENCE, check=False)
                self.assertEqual((lint.returncode, lint.stdout + lint.stderr), (0, ""))
            _, headers, text = request(source, accept=OPENMETRICS)
            self.assertIn("openmetrics-text", headers["Content-Type"])
            self.assertTrue(text.endswith("\n# EOF\n"))
            self.check_openmetrics(text)
        printed = weir("metrics", "--openmetrics").stdout
        self.assertIn(f'pid="{perf.pid}"', printed)
        self.check_openmetrics(printed)

    def test_protocol_buffers_say_what_the_text_says(self):
        donor = self.serve("--memory", "8M", "--no-reserve")
        perf = self.start(WEIR, "perf", "-S", "0", "-o", "mix", "--region", "2M", donor.address)
        host = self.start(WEIR, "metrics", "--listen", "0", name="host")
        where = self.told(host, "metrics at (.*)$")
        self.until_moved({"weir_session_request_duration_seconds"}, where)
        stop_process(perf)
        self.addCleanup(perf.send_signal, signal.SIGCONT)
        _, _, text = request(where)
        status, headers, data = request(where, accept=PROTOBUF)
        self.assertEqual((status, headers["Content-Type"]), (200, PROTOBUF))
        families = families_of(data)
        lines, types = samples_of(families)
        expected, expected_types = samples_of_text(text)
        # The donor lives on, and processes of other tests come and go.
        common = set(types) & set(expected_types)
        self.assertEqual({name: types[name] for name in common},
                         {name: expected_types[name] for name in common})
        ours = [[line for line in side if ("pid", str(perf.pid)) in line[1]]
                for side in (lines, expected)]
        self.assertEqual(*ours)
        self.assertGreater(len(ours[0]), 50)
        theirs = [{line[:2] for line in side if ("pid", str(donor.pid)) in line[1]}
                  for side in (lines, expected)]
        self.assertEqual(*theirs)
        self.assertTrue(theirs[0])
        self.check_native(families["weir_session_request_duration_seconds"])

    def check_native(self, family):
        """Native buckets have all values, and agree with the classic ones at common bounds."""
        counted = 0
        for metric in map(fields_of, family[4]):
            histogram = fields_of(metric[7][0])
            counts = native_counts(histogram)
            self.assertEqual(signed(histogram[5][0]), 4)
            self.assertEqual(histogram[6], [2 ** -30])
            self.assertEqual(sum(counts.values()) + sum(histogram[7]), sum(histogram[1]))
            self.assertNotIn(0, counts.values())
            for bucket in map(fields_of, histogram[3]):
                below, upto = (sum(count for index, count in counts.items()
                                   if 2 ** ((index + past) / 16) <= bucket[2][0])
                               for past in (0, -2))
                self.assertLessEqual(below, sum(bucket[1]))
                self.assertGreaterEqual(upto, sum(bucket[1]))
            counted += sum(counts.values())
        self.assertGreater(counted, 0)

    def check_openmetrics(self, text):
        try:
            from prometheus_client.openmetrics import parser
        except ImportError:
            self.skipTest("no python3-prometheus-client")
        families = list(parser.text_string_to_metric_families(text))
        self.assertTrue(families)
        self.assertEqual(len({family.name for family in families}), len(families))

    def test_the_page_of_the_reference_is_the_commands(self):
        page = (ROOT / "docs/reference/metrics.md").read_text(encoding="utf-8")
        self.assertEqual(weir("metrics", "--describe").stdout, page,
                         "weir metrics --describe > docs/reference/metrics.md")

    def test_the_version_is_this_weirs(self):
        version = weir("--version").stdout.split()[1]
        self.assertIn(f'weir_build_info{{version="{version}"}} 1', weir("metrics").stdout)


class Server(Programs):
    def test_only_metrics_are_served_and_only_read(self):
        loopback = "[::1]" if has_ipv6() else "127.0.0.1"
        host = self.start(WEIR, "metrics", "--listen", f"{loopback}:0")
        where = self.told(host, "metrics at (.*)$")
        self.assertTrue(where.startswith(f"http://{loopback}:"), where)
        self.assertEqual(request(where, "/")[0], 404)
        self.assertEqual(request(where, "/healthz")[::2], (200, "ok\n"))
        self.assertEqual(request(where, "/metrics/../etc/passwd")[0], 404)
        status, headers, _ = request(where, method="DELETE")
        self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))
        status, headers, body = request(where, method="HEAD")
        self.assertEqual((status, body), (200, ""))
        self.assertGreater(int(headers["Content-Length"]), 0)

    def half_open(self, where):
        """A connection that sends half of a request."""
        host, port = where.removesuffix("/metrics").removeprefix("http://").split(":")
        link = socket.create_connection((host, int(port)), PATIENCE)
        self.addCleanup(link.close)
        link.sendall(b"GET /metrics HTTP/1.1\r\n")
        return link

    def test_half_open_connections_keep_no_probe_out(self):
        where = self.told(self.start(WEIR, "metrics", "--listen", "0"), "metrics at (.*)$")
        links = [self.half_open(where) for _ in range(64)]
        for _ in range(3):
            self.assertEqual(request(where, "/healthz")[::2], (200, "ok\n"))
            for link in links:
                link.close()
            links = [self.half_open(where) for _ in links]
        self.assertEqual(request(where, "/healthz")[::2], (200, "ok\n"))
        links += [self.half_open(where) for _ in range(96)]
        self.assertEqual(request(where)[0], 200)
        self.assertEqual(links[0].recv(1), b"", "the idlest connection is still open")

    def test_a_name_that_points_at_the_loopback_is_refused(self):
        where = self.told(self.start(WEIR, "metrics", "--listen", "0"), "metrics at (.*)$")
        for name, status in (("localhost:9473", 200), ("127.0.0.1", 200),
                             ("attacker.example:9473", 403), ("", 403)):
            self.assertEqual(request(where, name=name)[0], status, name)

    def test_a_socket_admits_user_and_group_and_goes_with_the_server(self):
        path = os.path.join(self.folder, "socket")
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(path)
        host = self.start(WEIR, "metrics", "--listen", f"unix:{path}")
        self.told(host, "metrics at ")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o660)
        second = weir("metrics", "--listen", f"unix:{path}")
        self.assertEqual(second.returncode, 1)
        self.assertIn("Address already in use", second.stderr)
        self.assertEqual(request(f"unix:{path}")[0], 200)
        self.end(host)
        self.assertEqual((host.returncode, os.path.exists(path)), (0, False))

    def test_a_name_that_another_program_holds_delays_no_server(self):
        """The holder accepts nobody, and its queue is full."""
        path = os.path.join(self.folder, "socket")
        with contextlib.ExitStack() as stack:
            holder = stack.enter_context(socket.socket(socket.AF_UNIX))
            holder.bind(path)
            holder.listen(0)
            with self.assertRaises(BlockingIOError):
                while True:
                    caller = stack.enter_context(socket.socket(socket.AF_UNIX))
                    caller.setblocking(False)
                    caller.connect(path)
            refused = weir("metrics", "--listen", f"unix:{path}")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("Address already in use", refused.stderr)

    def test_other_hosts_need_tls(self):
        refused = weir("metrics", "--listen", "0.0.0.0:0")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("certificate", refused.stderr)
        pem = os.path.join(self.folder, "pem")
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                               "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=weir", "-days",
                               "2", "-keyout", pem + ".key", "-out", pem + ".crt"],
                              capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        with open(pem, "w", encoding="utf-8") as file:
            file.writelines(pathlib.Path(pem + end).read_text() for end in (".key", ".crt"))
        host = self.start(WEIR, "metrics", "--listen", "0.0.0.0:0", "--tls", pem)
        port = self.told(host, r"metrics at https://0\.0\.0\.0:(\d+)/metrics")
        self.assertEqual(request(f"https://127.0.0.1:{port}")[0], 200)
        for path, complaint in ((pem + ".none", "No such file"), (pem + ".crt", "no valid")):
            done = weir("metrics", "--listen", "0", "--tls", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn(complaint, done.stderr)

    def test_bad_addresses_are_refused(self):
        for address in ("x", "127.0.0.1", "::1", "127.0.0.1:x", "", ":", "unix:", "123456"):
            done = weir("metrics", "--listen", address)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("[ADDR:]PORT", done.stderr.replace("a path of", "[ADDR:]PORT"))
        self.assertEqual(weir("serve", "--metrics-tls", "x").returncode, 2)


class Host(Programs):
    """Donor, sessions, softnic and tenants."""

    def setUp(self):
        super().setUp()
        self.key = os.path.join(self.folder, "key")
        self.assertEqual(weir("key", "new", self.key).returncode, 0)
        host = self.start(WEIR, "metrics", "--listen", f"unix:{self.folder}/host", name="host.log",
                          WEIR_SHARE=f"{self.folder}/share")
        self.host = self.told(host, "metrics at (.*)$")

    @contextlib.contextmanager
    def perf(self, donor, *words, **more):
        child = self.start(WEIR, "perf", "-S", "0", "--region", "8M", "--key", self.key, *words,
                           donor.address, name="perf.log", **more)
        yield child
        child.kill()
        self.end(child)

    def test_each_metric_of_donors_and_sessions_moves(self):
        donor = self.serve("--memory", "64M", "--no-reserve", "--key", self.key, "--cpu", "1")
        small = self.serve("--memory", "16M", "--no-reserve", "--key", self.key, name="small")
        self.assertIn(f'address="{donor.address}",device="softnic0"', request(donor.metrics)[2])
        rejected = names_of("donor", "rejected_clients_total")
        self.assertEqual(weir("ping", donor.address).returncode, 1)
        self.until_moved(rejected, donor.metrics)
        donors = names_of("donor", "memory_bytes limit_bytes lent_bytes regions clients "
                          "machine_available_bytes joined_clients_total")
        self.assertEqual(weir("lend", str(donor.pid), "32M").returncode, 0)
        seen = names_of("host_donor", "memory_bytes limit_bytes lent_bytes regions clients "
                        "machine_available_bytes joined_clients_total rejected_clients_total")
        copied = names_of("host_donor", "unloaded_writes_total")
        common = names_of("session", "requests_total work_requests_total doorbells_total "
                          "completions_total empty_polls_total read_bytes_total "
                          "written_bytes_total inlined_work_requests_total "
                          "in_flight_bytes in_flight_work_requests merged_requests_total "
                          "chains_total window_waits_total copied_requests_total "
                          "window_bytes window_max_bytes request_duration_seconds")
        with self.perf(donor, "-o", "mix", "-t", "2", "-n", "128", "-s", "4K", "-b", "hybrid", "-m",
                       "pre", "-w", "64K") as perf:
            self.until_moved(donors | seen | common -
                             names_of("session", "window_bytes window_max_bytes"),
                             donor.metrics, small.metrics, self.host, mover=perf)
        events = names_of("session", "completion_events_total completion_queue_arms_total "
                          "sleeps_total registered_requests_total split_requests_total "
                          "window_bytes window_max_bytes window_work_requests")
        with self.perf(donor, "-l", "event", "-m", "dyn", "-s", "64K", "--fragment", "4K",
                       "--window-wrs", "64") as perf:
            self.until_moved(events, self.host, mover=perf)
        unloading = names_of("session", "unloadable_writes_total hot_writes_total "
                             "recently_written_pages unloaded_writes_total")
        with self.perf(donor, "--unload", "frequency", "-p", "zipf", "-s", "64", "--hot-pages",
                       "4") as perf:
            self.until_moved(unloading, self.host, mover=perf)
        full = names_of("session", "unload_refusals_total")
        with self.perf(small, "--unload", "always", "-s", "64", "-t", "2", "-n", "1024", "-p",
                       "random") as perf:
            self.until_moved(full, self.host, mover=perf)
        paused = names_of("donor", "unloaded_writes_total unload_pauses_total")
        with self.perf(donor, "--unload", "always", "-s", "64", "-n", "16", "-p",
                       "random") as perf:
            self.until_moved(paused | copied, donor.metrics, self.host, mover=perf)
        broken = names_of("session", "failed_work_requests_total failures_total retries_total "
                          "reconnects_total")
        with self.perf(donor, "-o", "read", "-n", "4", WEIR_SOFTNIC="error_after=1000") as perf:
            self.until_moved(broken, self.host, mover=perf)
        forged = names_of("donor", "refused_unloaded_writes_total")
        forger = self.start(WEIR, "run", "-d", "softnic", MOVER, "forge", donor.address, self.key,
                            name="forger")
        self.until_moved(forged, donor.metrics, mover=forger)
        self.end(forger)
        crowded = names_of("session", "unlocked_chains_total")
        with self.perf(donor, "-t", "8", "-n", "32", "-s", "64K", "-p", "random") as perf:
            self.until_moved(crowded, self.host, mover=perf)
        self.covers("host", seen | copied | rejected | donors | common | events | unloading |
                    full | paused | broken | forged | crowded | self.SOFTNIC | self.TENANTS)

    SOFTNIC = names_of("softnic", "doorbells_total send_work_requests_total queue_pairs "
                       "receive_work_requests_total completions_total completion_events_total "
                       "writes_total reads_total sends_total atomics_total written_bytes_total "
                       "read_bytes_total sent_bytes_total receives_total received_bytes_total "
                       "failed_completions_total receiver_not_ready_total memory_regions "
                       "silent_processes")
    TENANTS = names_of("share_tenant", "weight rate_limit_bytes connections "
                       "connections_limit memory_bytes "
                       "sent_bytes_total received_bytes_total turns_total waited_seconds_total")
    TENANTS |= names_of("share_tenant_class", "connections sent_bytes_total received_bytes_total "
                        "turns_total waited_seconds_total")

    def test_each_metric_of_softnic_moves(self):
        donor = self.serve("--memory", "64M", "--no-reserve", "--key", self.key)
        mover = self.start(WEIR, "run", "-d", "softnic", MOVER, "atomics", donor.address, self.key,
                           name="mover")
        self.told(mover, "^ready$")
        failed = names_of("softnic", "failed_completions_total")
        silent = names_of("softnic", "silent_processes")
        with self.perf(donor, "-o", "read", WEIR_SOFTNIC="error_after=1000") as perf:
            self.until_moved(failed, self.host, mover=perf)
        with self.perf(donor, "-o", "mix", "-l", "event", WEIR_SOFTNIC="rnr=20") as perf:
            self.until_moved(self.SOFTNIC - failed - silent, self.host, donor.metrics, mover=perf)
        self.board.note(request(self.host)[2])
        mover.send_signal(signal.SIGSTOP)
        self.addCleanup(mover.send_signal, signal.SIGCONT)
        self.until_moved(silent, self.host)
        self.assertGreater(json.loads(weir("stat", "--json").stdout)["silent_processes"], 0)

    def test_each_metric_of_tenants_moves(self):
        config = os.path.join(self.folder, "config")
        pathlib.Path(config).write_text("default weight 1 rate 4M\n", encoding="utf-8")
        share = self.start(WEIR, "share", "--socket", f"{self.folder}/share", "--listen",
                           "127.0.0.1:0", "--config", config, "--metrics",
                           f"unix:{self.folder}/metrics", name="share.log")
        own = self.told(share, "metrics at (.*)$")
        self.told(share, "^ready ")
        mover = self.start(MOVER, "tenant", name="mover", WEIR_SHARE=f"{self.folder}/share")
        self.told(mover, "^ready$")
        self.board.note(request(own)[2])
        self.classes_add_up(request(own)[2])
        limits = "weight 7 rate 3M connections 9"
        pathlib.Path(config).write_text(f"default {limits}\n", encoding="utf-8")
        share.send_signal(signal.SIGHUP)
        self.until_moved(self.TENANTS, own, self.host)

    def classes_add_up(self, text):
        """The connections of the tenants' classes: two, in the last of the classes."""
        of_class = collections.Counter()
        for nr, count in re.findall(
                r'^weir_share_tenant_class_connections\{.*class="(\d)"\} (\d+)$', text, re.M):
            of_class[nr] += int(count)
        self.assertEqual({nr: count for nr, count in of_class.items() if count},
                         {max(of_class): 2}, text)


class Mount(Programs):
    """Mounts, and the file systems of a donor."""

    def mount(self, donor, name, *words):
        point = os.path.join(self.folder, name)
        os.mkdir(point)
        done = weir("mount", *words, "--metrics", f"unix:{point}.metrics", donor.address, point)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(subprocess.run, ["umount", "-l", point], check=False, timeout=PATIENCE)
        return point, f"unix:{point}.metrics"

    def test_each_metric_moves(self):
        donor = self.serve("--memory", "64M", "--no-reserve")
        first, own = self.mount(donor, "first", "--hard", "--timeout", "1")
        host = self.told(self.start(WEIR, "metrics", "--listen", f"unix:{self.folder}/host",
                                    name="host.log"), "metrics at (.*)$")
        self.board.note(request(host)[2])
        self.board.note(request(own)[2])
        self.board.note(request(donor.metrics)[2])
        with open(os.path.join(first, "file"), "wb", buffering=0) as file:
            file.write(os.urandom(8 << 20))
        os.posix_fadvise(os.open(file.name, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)
        self.assertEqual(len(pathlib.Path(file.name).read_bytes()), 8 << 20)
        files = names_of("file_server", "files taken_bytes used_bytes")
        files |= names_of("donor", "messages_total")
        mounts = names_of("mount", "inodes operation_duration_seconds in_flight_operations")
        reader = self.start("sh", "-c", 'while :; do dd if="$1" of=/dev/null bs=1M iflag=direct; '
                            "done", "-", file.name, name="reader")
        of_host = names_of("host_mount", "inodes operations_total operation_duration_seconds "
                           "in_flight_operations")
        self.until_moved(files | mounts | of_host, own, donor.metrics, host, mover=reader)
        self.end(reader, signal.SIGKILL)
        second, _ = self.mount(donor, "second")
        shared = names_of("mount", "shared") | names_of("file_server", "clients")
        shared |= names_of("host_mount", "shared")
        self.until_moved(shared, own, donor.metrics, host)
        freed = self.free(donor, first, second)
        os.kill(donor.pid, signal.SIGSTOP)
        waiting = subprocess.Popen(["stat", "--", os.path.join(first, "nothing")],
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(donor.send_signal, signal.SIGCONT)
        waits = names_of("mount", "waiting_threads") | names_of("host_mount", "waiting_threads")
        self.until_moved(waits, own, host)
        os.kill(donor.pid, signal.SIGCONT)
        waiting.wait(PATIENCE)
        self.end(donor, signal.SIGKILL)
        up = names_of("mount", "up") | names_of("host_mount", "up")
        self.until_moved(up, own, host)
        threads = names_of("mount", "threads") | names_of("host_mount", "threads")
        self.covers("mount", files | mounts | of_host | shared | freed | waits | up | threads)

    def test_one_scrape_has_mounts_without_metrics_of_their_own(self):
        donor = self.serve("--memory", "64M", "--no-reserve")
        point = os.path.join(self.folder, "quiet")
        os.mkdir(point)
        done = weir("mount", donor.address, point)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(subprocess.run, ["umount", "-l", point], check=False, timeout=PATIENCE)
        for i in range(300):
            pathlib.Path(point, str(i)).touch()
        counted, timed = self.metadata_of(point)
        self.assertGreaterEqual(counted, 300)
        self.assertTrue(1 <= timed < counted / 8, (counted, timed))
        subprocess.run(["umount", point], check=True, timeout=PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while point in weir("metrics").stdout:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)

    def metadata_of(self, point):
        """Operations counted and timed, of a mount that shows up within a second."""
        deadline = time.monotonic() + PATIENCE
        while not (found := re.findall(
                rf'^weir_host_mount_operation(?:s_total|_duration_seconds_count)'
                rf'\{{.*mountpoint="{re.escape(point)}".*operation="metadata"\}} (\d+)$',
                weir("metrics").stdout, re.M)):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        counted, timed = map(int, found)
        return counted, timed

    def free(self, donor, first, second):
        """Frees data that a stopped client has mapped, until the bytes are seen on their way.

        A commit of the first client that comes late takes the second one's map away, and the bytes
        are not in limbo then.
        """
        limbo, dirty = (names_of("file_server", name) for name in ("limbo_bytes", "dirty_bytes"))
        deadline = time.monotonic() + PATIENCE
        while not all(self.board.moved(name) for name in limbo | dirty):
            self.assertLess(time.monotonic(), deadline, limbo | dirty)
            path = os.path.join(first, "mapped")
            pathlib.Path(path).write_bytes(bytes(24 << 20))
            others = self.processes_of(second)
            with open(os.path.join(second, "mapped"), "rb") as reader:
                self.assertEqual(len(reader.read()), 24 << 20)
                for other in others:
                    os.kill(other, signal.SIGSTOP)
                try:
                    os.truncate(path, 0)
                    self.glance(donor)
                finally:
                    for other in others:
                        os.kill(other, signal.SIGCONT)
            self.glance(donor)
        return limbo | dirty

    def glance(self, donor):
        for _ in range(20):
            self.board.note(request(donor.metrics)[2])

    def processes_of(self, point):
        """The mount, and the process that unmounts if the mount dies."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if words[1:2] == [b"mount"] and os.fsencode(point) in words:
                    found.append(int(path.parent.name))
        self.assertTrue(found)
        return found


class Pool(Programs):
    """A pool, whose donors come and go."""

    def test_each_metric_of_a_pool_moves(self):
        path = os.path.join(self.folder, "pool")
        pool = f"file:{path}"
        made = weir("pool", "create", "--groups", "8", "--lease", "2", pool)
        self.assertEqual(made.returncode, 0, made.stderr)
        host = self.start(WEIR, "metrics", "--listen", f"unix:{self.folder}/host", "--pool", pool,
                          name="host.log")
        there = self.told(host, "metrics at (.*)$")
        self.board.note(request(there)[2])
        donors = [self.start(WEIR, "serve", "--listen", "127.0.0.1:0", "--memory", "32M",
                             "--no-reserve", "--pool", pool, "--domain", name, "--name", name,
                             name=f"{name}.log") for name in ("one", "two", "three")]
        self.until_moved(names_of("pool", "memory_bytes donors"), there)
        self.until_seen(there, f'weir_pool_donors{{pool="{pool}",state="up"}} 3')
        made = weir("pool", "volume", "create", pool, "vol", "4M")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.until_moved(names_of("pool", "volumes volume_bytes groups"), there)
        wrote = weir("perf", "volume", "-S", "0.2", f"{pool}/vol")
        self.assertEqual(wrote.returncode, 0, wrote.stderr)
        told = subprocess.run([MOVER, "wrong", pool, "vol", "one"], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.until_moved(names_of("pool", "wrong_reads"), there)
        self.end(donors[2], signal.SIGKILL)
        self.until_seen(there, f'weir_pool_donors{{pool="{pool}",state="up"}} 2')
        # Members wait for the donors that have the data.
        for donor in donors[:2]:
            self.end(donor, signal.SIGKILL)
        self.until_seen(there, f'weir_pool_donors{{pool="{pool}",state="up"}} 0')
        last = self.serve("--memory", "32M", "--pool", pool, "--domain", "three", "--name", "three")
        self.until_moved(names_of("pool", "syncing_members"), there)
        self.end(last, signal.SIGKILL)  # it might write the map again
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        self.until_moved(names_of("pool", "up"), there)
        self.covers("pool", names_of("pool", "memory_bytes donors groups volumes volume_bytes up "
                                     "syncing_members wrong_reads"))

    def until_seen(self, source, line):
        deadline = time.monotonic() + PATIENCE
        while line not in request(source)[2].splitlines():
            self.assertLess(time.monotonic(), deadline, line)
            time.sleep(0.05)


class Wire(Programs):
    """softnic between two hosts on a network that loses, repeats, reorders and spoils packets."""

    RNR = names_of("softnic_peer", "sent_rnr_naks_total received_rnr_naks_total")
    FAULTS = {"WEIR_SOFTNIC": "loss=2,duplicate=5,reorder=5,corrupt=2,seed=3"}

    def setUp(self):
        super().setUp()
        self.net = Net(WEIR, "metrics")
        self.net.up(2, self.addCleanup)
        self.sources = []
        for host in ("h1", "h2"):
            child = self.start(WEIR, "metrics", "--listen", f"unix:{self.folder}/{host}",
                               name=f"{host}.log", prefix=self.net.on(host))
            self.sources.append(self.told(child, "metrics at (.*)$"))

    def traffic(self, *words):
        """Serves on one host, and reads and writes from the other."""
        key = os.path.join(self.folder, "key")
        self.assertEqual(weir("key", "new", key).returncode, 0)
        donor = self.start(WEIR, "serve", "--memory", "64M", "--no-reserve", "--listen",
                           "10.77.0.1", "--key", key, "--encrypt", "auto",
                           prefix=self.net.on("h1"), **self.FAULTS)
        self.told(donor, "^ready ")
        self.start(WEIR, "perf", "-S", "0", "-o", "mix", "--region", "2M", "--key", key, *words,
                   "10.77.0.1", name="perf.log", prefix=self.net.on("h2"), **self.FAULTS)

    def test_each_counter_of_packets_moves(self):
        packets = {name for name in catalogue() if part_of(name) == "wire"} - self.RNR
        refused = names_of("softnic", "refused_packets_total")
        self.assertGreater(len(packets), 4)
        self.traffic()
        self.until_moved(packets - refused, *self.sources)
        self.covers("wire", packets | self.RNR)

    def test_processes_of_other_networks_are_shown_on_request_only(self):
        self.traffic()
        self.until_moved(names_of("session", "requests_total"), *self.sources)
        line = re.compile(r'^weir_session_requests_total\{.*peer="10\.77\.0\.1:', re.M)
        self.assertNotRegex(weir("metrics").stdout, line)
        self.assertRegex(weir("metrics", "--containers").stdout, line)
        self.assertNotRegex(request(self.sources[0])[2], line)
        for words in (("stat", "--json"), ("top", "--once", "--json")):
            self.assertNotIn("10.77.0.1:7474", weir(*words).stdout)
            self.assertIn("10.77.0.1:7474", weir(*words, "--containers").stdout)

    def test_damaged_packets_in_clear_text_are_refused(self):
        self.traffic("--encrypt", "off")
        self.until_moved(names_of("softnic", "refused_packets_total"), *self.sources)

    @unittest.skipUnless(shutil.which("ib_send_bw"), "no perftest: scripts/deps check")
    def test_a_receiver_without_buffers_is_seen_at_both_ends(self):
        """One buffer is posted, where 64 messages arrive at once."""
        words = (WEIR, "run", "-d", "softnic", "--", "ib_send_bw", "-r", "1", "-t", "64", "-n",
                 "1000000", "-s", "4096", "-F")
        receiver = self.start(*words, name="receiver", prefix=self.net.on("h1"))
        deadline = time.monotonic() + PATIENCE
        while not listens(receiver, PERFTEST_PORT):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        sender = self.start(*words, "10.77.0.1", name="sender", prefix=self.net.on("h2"))
        self.until_moved(self.RNR, *self.sources, mover=sender)


class Pages(Programs):
    """Soft-RoCE in a guest, whose kernel may set huge pages aside."""

    def test_a_donor_in_huge_pages_says_so(self):
        if os.environ.get("WEIR_TEST_DEVICE") != "rxe":
            self.skipTest("no device but softnic, whose clients cannot map huge pages")
        pages = pathlib.Path("/proc/sys/vm/nr_hugepages")
        self.addCleanup(pages.write_text, "0")
        pages.write_text("8")
        for value, words in ((1, ()), (0, ("--no-huge-pages",))):
            donor = self.start(WEIR, "serve", "--listen", os.environ["WEIR_TEST_ADDRESS"], "--key",
                               os.environ["WEIR_TEST_KEY"], "--memory", "8M", "--metrics",
                               f"unix:{self.folder}/{value}", *words, name=f"log{value}",
                               WEIR_DEVICE=os.environ["WEIR_DEVICE"])
            self.told(donor, "^ready ")
            self.board.note(request(f"unix:{self.folder}/{value}")[2])
            self.assertEqual(self.board.seen["weir_donor_huge_pages"][None], {1, value})
            self.end(donor)
        self.covers("pages", {"weir_donor_huge_pages"})


if __name__ == "__main__":
    PARTS = {"host": (Formats, Server, Host), "mount": (Mount,), "pool": (Pool,),
             "wire": (Wire,), "pages": (Pages,)}
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(part)
                               for part in PARTS[PART])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if result.skipped and result.testsRun == len(result.skipped):
        print(f"skipped: {result.skipped[0][1]}")
        sys.exit(77)
    sys.exit(not result.wasSuccessful())
