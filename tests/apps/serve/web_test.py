#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The page of weir serve --web: the answers of its server, and the page in a browser with traffic.

web_test.py page|browser WEIR MOVER [SCREENSHOTS]

"browser" writes pictures of the page to the folder SCREENSHOTS, for docs/how-to/watch.md.
"""
import html.parser
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
from tests.support import browser as browsers  # noqa: E402

PART, WEIR, MOVER = sys.argv[1], *map(os.path.abspath, sys.argv[2:4])
PICTURES = pathlib.Path(sys.argv[4]).resolve() if len(sys.argv) > 4 else None
del sys.argv[1:]
PATIENCE = 120
MARKUP = "<img onerror=1>"  # a process's name has at most 15 bytes
MEBIBYTE = 1 << 20


def environment():
    kept = {name: value for name, value in os.environ.items()
            if name not in ("LD_PRELOAD", "WEIR_SHARE", "WEIR_SOFTNIC")}
    return dict(kept, WEIR_DEVICE="softnic")


def weir(*words):
    return subprocess.run([WEIR, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=PATIENCE, check=False, env=environment())


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


def request(where, path="/", method="GET", **headers):
    """Status, headers and body."""
    if where.startswith("unix:"):
        link = UnixConnection(where[5:])
    else:
        link = http.client.HTTPConnection(where.removeprefix("http://").rstrip("/"),
                                          timeout=PATIENCE)
    try:
        link.request(method, path, headers=headers)
        answer = link.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        link.close()


def state(where):
    return json.loads(request(where, "/state.json")[2])


class Programs(unittest.TestCase):
    """Starts programs, and ends them after the test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-web-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *words):
        log = open(self.folder / f"log{time.monotonic_ns()}", "w+", encoding="utf-8")
        self.addCleanup(log.close)
        child = subprocess.Popen([WEIR, *map(str, words)], stdin=subprocess.PIPE, stdout=log,
                                 stderr=log, env=environment())
        self.addCleanup(self.end, child)
        child.log = pathlib.Path(log.name)
        return child

    def end(self, child):
        child.stdin.close()
        if child.poll() is None:
            child.terminate()
        try:
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise

    def told(self, child, pattern):
        """The match of a line that the child prints sooner or later."""
        deadline = time.monotonic() + PATIENCE
        while not (match := re.search(pattern, child.log.read_text(encoding="utf-8"), re.M)):
            self.assertIsNone(child.poll(), child.log.read_text(encoding="utf-8"))
            self.assertLess(time.monotonic(), deadline, pattern)
            time.sleep(0.02)
        return match[1]

    def serve(self, *words, web="0", memory="64M"):
        child = self.start("serve", "--listen", "127.0.0.1:0", "--memory", memory, "--no-reserve",
                           "--web", web, *words)
        child.web = self.told(child, r"page at (\S+)$")
        child.address = self.told(child, r"^ready (.*)$")
        return child

    def perf(self, donor, *words):
        return self.start("perf", "-S", "0", "--region", "8M", *words, donor.address)

    def client_named(self, name, donor, key):
        """A client whose process has a name of its choice."""
        program = self.folder / name
        program.symlink_to(MOVER)
        return self.start("run", "-d", "softnic", program, "atomics", donor.address, key)

    def until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not (value := condition()):
            self.assertLess(time.monotonic(), deadline, "it does not happen")
            time.sleep(0.05)
        return value


class Tags(html.parser.HTMLParser):
    """The elements of a page, and the text inside scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.inline, self.in_script = [], "", False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.in_script = tag in ("script", "style")

    def handle_endtag(self, tag):
        self.in_script = False

    def handle_data(self, data):
        self.inline += data.strip() if self.in_script else ""


class Served(Programs):
    """Answers of the server, without a browser."""

    def test_the_page_is_whole_and_has_no_script_of_its_own(self):
        donor = self.serve()
        status, headers, body = request(donor.web)
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        page = Tags(body.decode())
        self.assertEqual(page.inline, "")
        links = [value for _, attrs in page.tags for name, value in attrs.items()
                 if name in ("href", "src") and not value.startswith("#")]
        self.assertEqual(sorted(set(links)), ["icon.svg", "state.json", "weir.css", "weir.js"])
        for link in links:
            status, headers, body = request(donor.web, "/" + link)
            self.assertEqual((status, headers["Cache-Control"]), (200, "no-store"), link)
            found = re.findall(rb"(?:https?:)?//[\w.]+", re.sub(rb"// .*", b"", body))
            self.assertEqual(set(found) - {b"http://www.w3.org"}, set(), link)
        self.assertFalse([attrs for _, attrs in page.tags if "style" in attrs
                          or any(name.startswith("on") for name in attrs)])

    def test_the_policy_lets_the_browser_load_nothing_else(self):
        donor = self.serve()
        for path in ("/", "/state.json", "/weir.js", "/none"):
            headers = request(donor.web, path)[1]
            policy = dict(part.strip().split(" ", 1)
                          for part in headers["Content-Security-Policy"].split(";"))
            self.assertEqual(policy["default-src"], "'none'")
            self.assertEqual({source for name, source in policy.items() if name.endswith("-src")},
                             {"'none'", "'self'"})
            self.assertEqual(policy["frame-ancestors"], "'none'")
            self.assertEqual(policy["require-trusted-types-for"], "'script'")
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")

    def test_it_is_read_only(self):
        donor = self.serve()
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            status, headers, _ = request(donor.web, "/state.json", method)
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))
        self.assertEqual(request(donor.web, "/../etc/passwd")[0], 404)
        self.assertEqual(request(donor.web, "/", "HEAD")[2], b"")

    def test_a_name_that_points_at_the_loopback_is_refused(self):
        donor = self.serve()
        port = donor.web.rstrip("/").rsplit(":", 1)[1]
        for host, status in (("127.0.0.1", 200), ("localhost", 200), ("LOCALHOST", 200),
                             (f"[::1]:{port}", 200), (f"127.0.0.1:{port}", 200),
                             ("attacker.example", 403), (f"127.0.0.1.example:{port}", 403),
                             ("localhost.example", 403), ("", 403), ("[::1", 403)):
            self.assertEqual(request(donor.web, "/state.json", Host=host)[0], status, host)

    def test_a_socket_and_other_hosts(self):
        path = self.folder / "socket"
        donor = self.serve(web=f"unix:{path}")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o660)
        self.assertEqual(state(f"unix:{path}")["donor"]["address"], donor.address)
        self.end(donor)
        self.assertFalse(path.exists())
        refused = weir("serve", "--listen", "127.0.0.1:0", "--web", "0.0.0.0:0")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("page at 0.0.0.0:0: beyond loopback a certificate", refused.stderr)
        for words in (("--web", "x"), ("--web-tls", "x")):
            self.assertEqual(weir("serve", *words).returncode, 2)

    def test_the_map_has_each_holder(self):
        donor = self.serve()
        clients = [self.perf(donor, "-o", "write", "--seed", str(i)) for i in (1, 2)]
        now = self.until(lambda: self.with_clients(donor.web, len(clients)))
        held = {holder["name"]: holder["bytes"] for holder in now["holders"]}
        self.assertEqual(set(held.values()), {8 * MEBIBYTE})
        self.assertEqual(now["donor"]["lent_bytes"], 16 * MEBIBYTE)
        cell = now["map"]["cell_bytes"]
        self.assertEqual(len(now["map"]["cells"]) * cell, 64 * MEBIBYTE)
        for at in range(2):
            self.assertEqual(now["map"]["cells"].count(at) * cell, 8 * MEBIBYTE)
        self.end(clients[0])
        self.until(lambda: self.with_clients(donor.web, 1))

    @staticmethod
    def with_clients(where, count):
        now = state(where)
        clients = [holder for holder in now["holders"] if holder["kind"] == "client"]
        return now if len(clients) == count and len(now["sources"]) == count else None

    def test_numbers_move_and_latencies_are_counted(self):
        donor = self.serve()
        self.perf(donor, "-o", "mix", "-s", "4K")
        before = self.until(lambda: self.with_clients(donor.web, 1))["sources"][0]

        def moved():
            after = self.with_clients(donor.web, 1)
            source = after and after["sources"][0]
            return source if source and all(source[name] > before[name] for name in (
                "requests", "work_requests", "written_bytes", "read_bytes")) and all(
                    source["latencies"][kind] for kind in ("read", "write")) else None

        after = self.until(moved)
        for kind in ("read", "write"):
            bounds = [bound for bound, _ in after["latencies"][kind]]
            self.assertEqual(bounds, sorted(set(bounds)))
            self.assertTrue(all(count > 0 for _, count in after["latencies"][kind]))

    def test_names_from_others_arrive_as_they_are(self):
        key, keys = self.folder / "key", self.folder / "<b>keys"
        self.assertEqual(weir("key", "add", str(keys), "one", str(key)).returncode, 0)
        donor = self.serve("--keys", keys)
        self.client_named(MARKUP, donor, key)
        source = self.until(lambda: state(donor.web)["sources"])[0]
        self.assertRegex(source["name"], rf"^{MARKUP} \(\d+\)$")
        keys.unlink()
        os.kill(donor.pid, signal.SIGHUP)
        line = self.until(lambda: [entry for entry in state(donor.web)["log"]
                                   if "keys not reloaded" in entry["text"]])[0]
        self.assertIn("<b>keys", line["text"])
        self.assertEqual(line["level"], "error")
        numbers = [entry["number"] for entry in state(donor.web)["log"]]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))


TEXT_CONTRAST = """(() => {
	const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
	const numbers = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
	const light = ([r, g, b]) =>
		0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
	const ratio = (a, b) => {
		const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
		return (high + 0.05) / (low + 0.05);
	};
	const ground = (element) => {
		for (let at = element; at; at = at.parentElement) {
			const colour = numbers(getComputedStyle(at).backgroundColor);
			if (colour.length === 3 || colour[3] > 0)
				return colour;
		}
		return [255, 255, 255];
	};
	const bad = [];
	let seen = 0;
	for (const element of document.querySelectorAll("body *")) {
		if (!element.checkVisibility() || element.closest("title, noscript"))
			continue;
		const style = getComputedStyle(element);
		const isText = (node) => node.nodeType === 3 && node.data.trim();
		if ([...element.childNodes].some(isText)) {
			seen++;
			const ink = numbers(element.closest("svg") ? style.fill : style.color);
			const got = ratio(ink, ground(element));
			if (got < 4.5)
				bad.push(`${element.tagName} ${got.toFixed(2)}`);
		}
	}
	for (const name of ["h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7", "zeroing"]) {
		const cell = document.createElementNS("http://www.w3.org/2000/svg", "rect");
		cell.setAttribute("class", name);
		document.getElementById("map").append(cell);
		const got = ratio(numbers(getComputedStyle(cell).fill), ground(document.body));
		cell.remove();
		if (got < 3)
			bad.push(`${name} ${got.toFixed(2)}`);
	}
	return { bad, seen };
})()"""

UNLABELLED = """[...document.querySelectorAll("table, section, nav, svg[role], [role=region]")]
	.filter((e) => !(e.getAttribute("aria-label") || e.caption?.textContent ||
		document.getElementById(e.getAttribute("aria-labelledby"))))
	.map((e) => e.outerHTML)"""


class InBrowser(Programs):
    """The page in a browser, with a donor, clients and their traffic."""

    def setUp(self):
        super().setUp()
        self.donor = self.serve()
        self.perf(self.donor, "-o", "mix", "-s", "4K", "--seed", "1")
        self.perf(self.donor, "-o", "write", "-s", "64", "--seed", "2")
        self.browser = browsers.Browser()
        self.addCleanup(self.browser.close)
        self.browser.resize(800, 900)
        self.browser.open(self.donor.web)
        self.browser.until("document.querySelectorAll('#sources th').length === 2")
        self.browser.until("document.getElementById('status').textContent === 'Live'")

    def cells(self, table, column):
        return self.browser.run(f"[...document.querySelectorAll('#{table} tr')].map("
                                f"(row) => row.children[{column}].textContent)")

    def test_numbers_move(self):
        first = self.cells("sources", 4)
        self.browser.until("[...document.querySelectorAll('#sources tr')].every((row) => "
                           "row.children[1].textContent !== '0')")
        self.until(lambda: all(now != then for now, then in zip(self.cells("sources", 4), first)))
        self.browser.until("document.querySelectorAll('#latencies td').length >= 6")
        for value in self.cells("latencies", 4):
            self.assertRegex(value, r"^[\d.]+ (ns|µs|ms|s)$")
        self.browser.until("document.querySelectorAll('#latency-chart .bar').length > 0")
        self.browser.until("document.querySelector('#traffic-chart polyline.written')"
                           ".getAttribute('points').split(' ').length > 2")
        proof = dict(zip(self.cells("proof", 0), self.cells("proof", 2)))
        self.assertIn("softnic0", self.cells("proof", 1)[0])
        self.assertNotEqual(proof["Work requests that the device did for them"], "0")
        self.assertEqual(self.browser.run("document.querySelectorAll('#map rect.h0').length"), 64)
        self.assertEqual(self.browser.run("document.querySelectorAll('#map rect.h1').length"), 64)
        self.assertIn(self.donor.address, self.browser.run("document.title"))
        self.assertIn("msg=joined", self.browser.run(
            "document.getElementById('lines').textContent"))
        self.check_quiet()

    def check_quiet(self):
        """No message on the console, and no request elsewhere."""
        self.assertEqual(self.browser.messages, [])
        self.assertGreater(len(self.browser.requests), 4)
        elsewhere = [url for url in self.browser.requests if not url.startswith(self.donor.web)]
        self.assertEqual([url for url in elsewhere if url != "about:blank"], [])

    def test_a_name_with_markup_stays_text(self):
        key = self.folder / "key"
        self.assertEqual(weir("key", "new", str(key)).returncode, 0)
        donor = self.serve("--key", key)
        self.client_named(MARKUP, donor, key)
        self.browser.open(donor.web)
        self.browser.until(f"document.body.textContent.includes({json.dumps(MARKUP)})")
        self.assertEqual(self.browser.run("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.browser.messages, [])

    def test_contrast_and_labels_hold_in_both_schemes(self):
        for scheme in ("light", "dark"):
            self.browser.scheme(scheme)
            found = self.browser.run(TEXT_CONTRAST)
            self.assertEqual(found["bad"], [], scheme)
            self.assertGreater(found["seen"], 50)
        grounds = []
        for scheme in ("light", "dark"):
            self.browser.scheme(scheme)
            grounds.append(self.browser.run("getComputedStyle(document.body).backgroundColor"))
        self.assertNotEqual(*grounds)
        self.assertEqual(self.browser.run(UNLABELLED), [])
        tree = self.browser.ask("Accessibility.getFullAXTree")["nodes"]
        roles = [node["role"]["value"] for node in tree if not node["ignored"]]
        for role in ("banner", "navigation", "main", "contentinfo", "log", "status"):
            self.assertEqual(roles.count(role), 1, role)
        nameless = [node["role"]["value"] for node in tree if not node["ignored"]
                    and node["role"]["value"] in ("button", "link", "image", "table", "region",
                                                  "columnheader", "navigation", "heading")
                    and not node.get("name", {}).get("value")]
        self.assertEqual(nameless, [])
        levels = self.browser.run("[...document.querySelectorAll('h1, h2, h3')].map("
                                  "(head) => Number(head.tagName[1]))")
        self.assertEqual(levels, [1, 2, 2, 2, 2, 2])

    def test_the_keyboard_reaches_all(self):
        reached = []
        for _ in range(14):
            self.browser.press("Tab", "Tab", 9)
            reached.append(self.browser.run(
                "document.activeElement.id || document.activeElement.textContent.trim()"))
            if reached[-1] == "lines":
                break
        self.assertEqual(reached[:2], ["Skip to the content", "pause"])
        self.assertIn("Latency", reached)
        self.assertEqual(reached[-1], "lines")
        self.browser.run("document.getElementById('pause').focus()")
        self.browser.press(" ", "Space", 32)
        self.browser.until("document.getElementById('status').textContent === 'Paused'")
        self.assertEqual(self.browser.run(
            "document.getElementById('pause').getAttribute('aria-pressed')"), "true")
        self.browser.press(" ", "Space", 32)
        self.browser.until("document.getElementById('status').textContent === 'Live'")

    def test_a_narrow_window_does_not_scroll_sideways(self):
        self.browser.resize(360, 800)
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 360)

    def test_the_end_of_the_donor_is_said(self):
        self.end(self.donor)
        self.browser.until("document.getElementById('status').textContent.startsWith("
                           "'The donor does not answer')")

    @unittest.skipUnless(PICTURES, "only when pictures are asked for")
    def test_pictures(self):
        self.browser.until("document.querySelector('#traffic-chart polyline.written')"
                           ".getAttribute('points').split(' ').length > 20")
        for scheme, end in (("light", ""), ("dark", "-dark")):
            self.browser.scheme(scheme)
            self.browser.screenshot(PICTURES / f"web{end}.webp")


if __name__ == "__main__":
    if PART == "browser" and not browsers.find():
        print("skipped: no browser: scripts/deps check, on Debian")
        sys.exit(77)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(
        {"page": Served, "browser": InBrowser}[PART])
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
