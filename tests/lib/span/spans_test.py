#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Spans of volumes and of mounts, received by a small collector of OTLP over HTTP.

spans_test.py volume|mount WEIR
"""
import collections
import contextlib
import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

PART, WEIR = sys.argv[1], os.path.abspath(sys.argv[2])
del sys.argv[1:3]
PATIENCE = 90
SERVER, CLIENT, INTERNAL = 2, 3, 1
ERROR = 2
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLE = re.compile(r'^weir_spans_total\{outcome="(\w+)"\} (\d+)$', re.M)


def value_of(attribute):
    """The value of an attribute in OTLP's mapping to JSON."""
    (kind, value), = attribute["value"].items()
    assert isinstance(value, str), attribute
    return {"stringValue": str, "intValue": int}[kind](value)


def pairs_of(attributes):
    pairs = {attribute["key"]: value_of(attribute) for attribute in attributes}
    assert len(pairs) == len(attributes), attributes
    return pairs


class Span:
    def __init__(self, span, resource):
        self.name, self.kind, self.resource = span["name"], span["kind"], resource
        self.trace, self.id, self.parent = (span["traceId"], span["spanId"],
                                            span.get("parentSpanId"))
        self.begun, self.ended = (int(span[key]) for key in
                                  ("startTimeUnixNano", "endTimeUnixNano"))
        self.attributes = pairs_of(span["attributes"])
        self.error = span.get("status", {}).get("code") == ERROR
        assert re.fullmatch("[0-9a-f]{32}", self.trace) and int(self.trace, 16), self.trace
        assert re.fullmatch("[0-9a-f]{16}", self.id) and int(self.id, 16), self.id
        assert self.parent is None or re.fullmatch("[0-9a-f]{16}", self.parent), self.parent
        assert self.begun <= self.ended, span


class Collector(http.server.ThreadingHTTPServer):
    """Keeps all spans, answers @status, or hangs while @is_mute."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans, self.requests, self.headers = [], 0, None
        self.status, self.answer, self.is_mute = 200, b"{}", False
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def take(self, body):
        for resource in json.loads(body)["resourceSpans"]:
            about = pairs_of(resource["resource"]["attributes"])
            for scope in resource["scopeSpans"]:
                assert scope["scope"]["name"] == "weir"
                self.spans += [Span(span, about) for span in scope["spans"]]

    def named(self, name):
        return [span for span in list(self.spans) if span.name == name]

    def by_id(self):
        return {span.id: span for span in self.spans}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        collector = self.server
        collector.requests += 1
        collector.path, collector.headers = self.path, self.headers
        if collector.is_mute:
            time.sleep(PATIENCE)
        if collector.status == 200:
            collector.take(body)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has given up
            self.send_response(collector.status)
            self.send_header("Content-Length", str(len(collector.answer)))
            self.end_headers()
            self.wfile.write(collector.answer)

    def log_message(self, *_):
        pass


def environment(**more):
    kept = {name: value for name, value in os.environ.items()
            if name not in ("LD_PRELOAD", "WEIR_SHARE", "WEIR_SOFTNIC", "TRACEPARENT") and
            not name.startswith("OTEL_")}
    return dict(kept, WEIR_DEVICE="softnic", **more)


def weir(*words, **more):
    return subprocess.run([WEIR, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE, check=False, env=environment(**more))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-spans-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.collector = Collector()
        self.addCleanup(self.collector.server_close)
        self.addCleanup(self.collector.shutdown)

    def start(self, *words, **more):
        log = open(self.folder / f"log{time.monotonic_ns()}", "w+", encoding="utf-8")
        self.addCleanup(log.close)
        child = subprocess.Popen([WEIR, *map(str, words)], stdin=subprocess.DEVNULL, stdout=log,
                                 stderr=log, env=environment(**more))
        child.log = pathlib.Path(log.name)
        self.addCleanup(self.end, child)
        return child

    def end(self, child, number=signal.SIGKILL):
        if child.poll() is None:
            child.send_signal(number)
        child.wait(PATIENCE)

    def until(self, what):
        deadline = time.monotonic() + PATIENCE
        while not (found := what()):
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.05)
        return found

    def told(self, child, pattern):
        def look():
            text = child.log.read_text(encoding="utf-8")
            self.assertIsNone(child.poll(), text)
            return re.search(pattern, text, re.M)
        return self.until(look)[1]

    def serve(self, *words, **more):
        donor = self.start("serve", "--listen", "127.0.0.1:0", "--no-reserve", *words, **more)
        donor.address = self.told(donor, r"^ready (.*)$")
        return donor

    def on(self, **more):
        return dict({"OTEL_EXPORTER_OTLP_ENDPOINT": self.collector.url}, **more)

    def nested(self, part, whole):
        self.assertEqual(part.trace, whole.trace)
        self.assertGreaterEqual(part.begun, whole.begun, part.name)
        self.assertLessEqual(part.ended, whole.ended, part.name)

    def parts(self):
        """The parts of each span, by the id of the span."""
        parts = collections.defaultdict(list)
        for span in self.collector.spans:
            parts[span.parent].append(span)
        return parts


class Volume(Case):
    """Volumes of a pool, in a program of libweir."""

    def setUp(self):
        super().setUp()
        self.pool = f"file:{self.folder}/pool"
        self.volume = f"{self.pool}/vol"
        made = weir("pool", "create", "--groups", "4", "--lease", "2", self.pool)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.donors = [self.serve("--memory", "64M", "--pool", self.pool, "--domain", name,
                                  "--name", name) for name in ("one", "two", "three")]
        made = weir("pool", "volume", "create", self.pool, "vol", "8M")
        self.assertEqual(made.returncode, 0, made.stderr)

    def perf(self, *words, **more):
        def run():
            return weir("perf", "volume", "-S", "0.3", "-s", "8K", *words, self.volume, **more)
        done = run()
        deadline = time.monotonic() + PATIENCE
        while "in use" in done.stderr or "open by another" in done.stderr:
            self.assertLess(time.monotonic(), deadline, done.stderr)
            time.sleep(0.2)
            done = run()
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_nothing_is_sent_unless_asked_for(self):
        self.perf()
        self.perf(**self.on(OTEL_SDK_DISABLED="true"))
        self.perf(**self.on(OTEL_TRACES_SAMPLER="always_off"))
        self.assertEqual(self.collector.requests, 0)

    def test_a_request_has_a_part_for_each_copy(self):
        before = time.time_ns()
        # In all fewer spans than there are records on any machine, so that none is dropped.
        self.perf("-S", "2", "-o", "mix", **self.on(
            WEIR_SOFTNIC="delay_us=100",
            OTEL_SERVICE_NAME="shop", OTEL_RESOURCE_ATTRIBUTES="rack=r%201,service.name=no",
            OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20x",
            OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG="0.01"))
        self.assertEqual(self.collector.path, "/v1/traces")
        self.assertEqual(self.collector.headers["authorization"], "Bearer x")
        self.assertEqual(self.collector.headers["Content-Type"], "application/json")
        about = self.collector.spans[0].resource
        self.assertEqual((about["service.name"], about["rack"]), ("shop", "r 1"))
        self.assertGreater(about["process.pid"], 1)
        self.assertEqual(len(self.collector.by_id()), len(self.collector.spans))
        parts = self.parts()
        addresses = {donor.address for donor in self.donors}
        for name, copies in (("read", 1), ("write", 2)):
            wholes = self.collector.named(f"volume {name}")
            self.assertGreater(len(wholes), 3)
            for whole in wholes:
                self.assertIsNone(whole.parent)
                self.assertEqual((whole.kind, whole.error), (INTERNAL, False))
                self.assertEqual(whole.attributes["weir.bytes"], 8192)
                self.assertEqual(whole.attributes["weir.volume"], self.volume)
                self.assertLess(before, whole.begun)
                self.assertLess(whole.ended, time.time_ns())
                of_it = parts[whole.id]
                self.assertEqual([part.name for part in of_it], [f"copy {name}"] * copies)
                used = {part.attributes["server.address"] for part in of_it}
                self.assertEqual(len(used), copies)
                self.assertLessEqual(used, addresses)
                for part in of_it:
                    self.nested(part, whole)
                    self.assertEqual((part.kind, part.error), (CLIENT, False))
                    self.assertEqual(part.attributes["weir.bytes"], 8192)
        traces = {span.trace for span in self.collector.named("volume write")}
        self.assertEqual(len(traces), len(self.collector.named("volume write")))

    def test_the_parent_of_the_environment_decides(self):
        self.perf(**self.on(TRACEPARENT=f"00-{TRACE}-{PARENT}-00"))
        self.assertEqual(self.collector.requests, 0)
        self.perf(**self.on(TRACEPARENT=f"00-{TRACE}-{PARENT}-01"))
        self.assertEqual({span.trace for span in self.collector.spans}, {TRACE})
        wholes = self.collector.named("volume write")
        self.assertTrue(wholes)
        self.assertEqual({span.parent for span in wholes}, {PARENT})

    def test_a_dead_donor_is_an_error_of_its_copy_alone(self):
        # Some 1,000 requests a second, so that a record is left when the donor dies.
        perf = self.start("perf", "volume", "-S", "120", "-s", "8K", "-n", "128", self.volume,
                          **self.on(WEIR_SOFTNIC="delay_us=100000",
                                    OTEL_TRACES_SAMPLER="traceidratio",
                                    OTEL_TRACES_SAMPLER_ARG="0.2"))
        self.until(lambda: self.collector.named("copy write"))
        victim = self.collector.named("copy write")[-1].attributes["server.address"]
        dead = next(donor for donor in self.donors if donor.address == victim)
        self.end(dead)
        failed = self.until(lambda: [span for span in self.collector.named("copy write")
                                     if span.error])
        self.assertEqual({span.attributes["server.address"] for span in failed}, {victim})
        for span in failed:
            self.assertRegex(span.attributes["error.type"], r"^E[A-Z]+$")
        whole = failed[0].parent
        self.until(lambda: whole in self.collector.by_id())
        self.assertFalse(self.collector.by_id()[whole].error)
        self.assertIsNone(perf.poll())

    def test_a_collector_that_hangs_delays_no_request_and_no_end_for_long(self):
        self.collector.is_mute = True
        begun = time.monotonic()
        self.perf("-S", "3", **self.on())
        self.assertLess(time.monotonic() - begun, 20)
        self.assertGreater(self.collector.requests, 0)


class Mount(Case):
    def mount(self, donor, *words, **more):
        point = self.folder / f"mount{time.monotonic_ns()}"
        point.mkdir()
        child = self.start("mount", "-f", "--timeout", "1", "--metrics", "0", *words, donor, point,
                           **more)
        self.addCleanup(subprocess.run, ["umount", "-l", point], check=False, timeout=PATIENCE,
                        stderr=subprocess.DEVNULL)
        child.metrics = self.told(child, r"metrics at (http://\S+)$")
        self.told(child, r"(is mounted on)")
        child.point = point
        return child

    def write_and_read(self, point):
        """Returns the spans of the write and of the read."""
        path = point / "file"
        with open(path, "wb", buffering=0) as file:
            file.write(os.urandom(65536))
        subprocess.run(["dd", f"if={path}", "of=/dev/null", "bs=64K", "iflag=direct"], check=True,
                       stderr=subprocess.DEVNULL, timeout=PATIENCE)
        self.until(lambda: self.collector.named("file read") and self.collector.named("file write"))
        return self.collector.named("file write")[0], self.collector.named("file read")[0]

    def test_sealed_files_and_those_of_a_pool_have_spans_too(self):
        pool, key = f"file:{self.folder}/pool", self.folder / "key"
        self.assertEqual(weir("pool", "create", "--groups", "4", pool).returncode, 0)
        for name in ("one", "two"):
            self.serve("--memory", "128M", "--pool", pool, "--domain", name, "--name", name)
        made = weir("pool", "volume", "create", "--files", pool, "vol", "32M")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(weir("key", "new", key).returncode, 0)
        sealed = self.serve("--memory", "64M").address
        for donor, words in ((f"{pool}/vol", ()), (sealed, ("--seal", key))):
            with self.subTest(donor):
                self.collector.spans.clear()
                child = self.mount(donor, *words, **self.on())
                wrote, read = self.write_and_read(child.point)
                parts = self.parts()
                for whole, name in ((wrote, "donor write"), (read, "donor read")):
                    of_it = parts[whole.id]
                    self.assertIn(name, [part.name for part in of_it])
                    for part in of_it:
                        self.nested(part, whole)
                        self.assertEqual(part.attributes["server.address"], donor)

    def counts(self, child):
        with urllib.request.urlopen(child.metrics, timeout=PATIENCE) as answer:
            return {outcome: int(count) for outcome, count
                    in SAMPLE.findall(answer.read().decode())}

    def test_operations_have_the_calls_and_transfers_that_they_took(self):
        donor = self.serve("--memory", "64M")
        child = self.mount(donor.address, **self.on(OTEL_SERVICE_NAME="files"))
        self.write_and_read(child.point)
        self.assertFalse((child.point / "nothing").exists())
        self.until(lambda: self.collector.named("file read") and self.collector.spans[-1].name ==
                   "file lookup")
        parts, ids = self.parts(), self.collector.by_id()
        for span in self.collector.spans:
            if span.name.startswith("file "):
                self.assertEqual((span.kind, span.parent), (SERVER, None))
                self.assertEqual(span.attributes["weir.mountpoint"], str(child.point))
            else:
                self.assertEqual(span.kind, CLIENT)
                self.assertEqual(span.attributes["server.address"], donor.address)
                self.nested(span, ids[span.parent])
            self.assertFalse(span.error, span.name)
        made, = self.collector.named("file create")
        self.assertIn("donor make", [part.name for part in parts[made.id]])
        for whole, transfer in (("file write", "donor write"), ("file read", "donor read")):
            span = self.collector.named(whole)[0]
            self.assertEqual(span.attributes["weir.bytes"], 65536)
            moved = [part for part in parts[span.id] if part.name == transfer]
            self.assertEqual(sum(part.attributes["weir.bytes"] for part in moved), 65536)
        absent = self.collector.named("donor lookup")[-1]
        self.assertEqual(absent.attributes["error.type"], "ENOENT")
        # The mount counts what the collector has had once the answer has come.
        self.until(lambda: self.counts(child)["exported"] >= len(self.collector.spans))
        counts = self.counts(child)
        self.assertEqual((counts["refused"], counts["dropped"]), (0, 0))
        self.end(donor)
        self.assertRaises(OSError, (child.point / "other").write_bytes, b"x")
        failed = self.until(lambda: [span for span in self.collector.spans
                                     if span.error and span.parent is None])
        self.assertEqual({span.attributes["error.type"] for span in failed}, {"EIO"})

    def test_spans_that_are_refused_or_dropped_are_counted(self):
        donor = self.serve("--memory", "64M")
        child = self.mount(donor.address, **self.on())
        self.collector.status = 503
        (child.point / "file").write_bytes(b"x")
        self.until(lambda: self.counts(child)["refused"])
        self.collector.status, self.collector.answer = \
            200, b'{"partialSuccess":{"rejectedSpans":"1"}}'
        counts = self.counts(child)
        (child.point / "file").write_bytes(b"x")
        self.until(lambda: self.counts(child)["exported"] > counts["exported"])
        self.assertGreater(self.counts(child)["refused"], counts["refused"])
        self.collector.is_mute = True
        file = os.open(child.point / "file", os.O_WRONLY)
        self.addCleanup(os.close, file)

        def flood():
            for _ in range(2000):
                os.pwrite(file, b"x", 0)
            return self.counts(child)["dropped"]
        self.until(flood)

    def test_a_setting_that_is_not_valid_is_named(self):
        donor = self.serve("--memory", "64M")
        child = self.mount(donor.address, **self.on(OTEL_TRACES_SAMPLER="often"))
        self.told(child, r"(OTEL_TRACES_SAMPLER=often is ignored)")
        (child.point / "file").write_bytes(b"x")
        self.until(lambda: self.collector.spans)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], PART.capitalize()], verbosity=2)
