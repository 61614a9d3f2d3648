#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run weir lab as a user does.

lab_test.py WEIR
"""

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import record

WEIR = os.path.abspath(sys.argv.pop(1))
# A shell's background job ignores interrupts, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)


def lab(*arguments, **more):
    return subprocess.run([WEIR, "lab", *arguments], capture_output=True, text=True, check=False,
                          **more)


def figures():
    return [line.split()[0] for line in lab("list").stdout.splitlines()]


class Lab(unittest.TestCase):
    def test_list_names_figures_in_the_order_of_the_papers(self):
        names = figures()
        self.assertIn("rdmabox-fig1", names)
        self.assertLess(names.index("avatar-fig1"), names.index("avatar-fig2"))

    def test_json_has_what_was_promised(self):
        done = lab("run", "avatar-fig1", "--seeds", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(result["figure"], "avatar-fig1")
        for series in result["series"]:
            self.assertEqual(len(series["x"]), len(series["y"]))
            self.assertTrue(series["name"] and series["unit"])
        for target in result["targets"]:
            self.assertIn(target["met"], (True, False, None))
            self.assertTrue(target["what"] and target["paper"] and target["model"])
            self.assertTrue(target["calibrated"])

    def test_what_no_paper_publishes_is_not_met(self):
        done = lab("run", "avatar-fig5", "--seeds", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        targets = json.loads(done.stdout)["targets"]
        own = [target for target in targets if target["paper"] == "not published"]
        self.assertIn(True, [target["own"] for target in own])
        self.assertEqual({target["met"] for target in own}, {None})
        self.assertEqual({target["own"] for target in targets if target not in own}, {None})

    def test_the_same_seeds_say_the_same(self):
        first, second = (lab("run", "avatar-fig3", "--seeds", "2", "--json") for _ in range(2))
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(first.stdout, second.stdout)

    def test_text_says_that_it_is_modelled(self):
        done = lab("run", "rdmabox-fig5", "--seeds", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("(modelled)", done.stdout)

    def test_an_unknown_figure_is_refused(self):
        done = lab("run", "rdmabox-fig99")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no figure 'rdmabox-fig99'; 'weir lab list' names them", done.stderr)

    def test_a_profile_that_is_not_there_is_named(self):
        for profile in ("connectx-99", "./nowhere"):
            done = lab("run", "avatar-fig1", "--seeds", "1", "--profile", profile)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"no profile '{profile}'", done.stderr)

    def test_a_profile_that_is_too_slow_for_a_run_is_named(self):
        with tempfile.NamedTemporaryFile("w") as file:
            shipped = (pathlib.Path(WEIR).parent / "sim/profiles/connectx-3").read_text()
            file.write(re.sub(r"(?m)^pcie_ns = .*", "pcie_ns = 900000000", shipped))
            file.flush()
            for arguments, why in ((("what-if",), "requests of 4K were done in 10 s"),
                                   (("run", "rdmabox-fig1"),
                                    "nothing was done in the time of a run")):
                done = lab(*arguments, "--profile", file.name)
                self.assertEqual(done.returncode, 1)
                self.assertIn(why, done.stderr)

    def test_a_profile_is_a_name_or_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "mine")
            shipped = pathlib.Path(WEIR).parent / "sim/profiles/connectx-3"
            file.write_text(shipped.read_text())
            mine = json.loads(lab("run", "rdmabox-fig5", "--profile", "mine", "--json",
                                  cwd=folder).stdout)
            usual = json.loads(lab("run", "rdmabox-fig5", "--json").stdout)
            self.assertEqual(mine["series"], usual["series"])
            self.assertEqual((mine["profile"], usual["profile"]), (str(file), "connectx-3"))
            for bad, why in (("", "mine: cores is missing"),
                             ("cores is 3\n", "mine:1: not of the form"),
                             ("cores = x\n", "mine:1: "), ("coers = 3\n", "mine:1: ")):
                file.write_text(bad)
                done = lab("run", "rdmabox-fig5", "--profile", str(file))
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(why, done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_another_nic_is_named_and_nothing_is_said_to_be_fitted_to_it(self):
        done = lab("run", "avatar-fig1", "--profile", "connectx-5", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual((said["profile"], said["seeds"]), ("connectx-5", 3))
        self.assertEqual({(target["calibrated"], target["why"]) for target in said["targets"]},
                         {(False, "")})
        self.assertIn("connectx-5-edr", said["notes"][-1])
        self.assertEqual(said["sources"], record.stamp.digest())
        self.assertIn("Profile connectx-5, seeds 3, weir ",
                      lab("run", "avatar-fig1", "--profile", "connectx-5").stdout)

    def test_what_if_says_what_binds_and_what_would_be_better(self):
        done = lab("what-if", "--depth", "16", "--polling", "busy", "--mr", "user", "--size", "64K",
                   "--region", "1M", "--profile", "connectx-3", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertIs(said["modelled"], True)
        # Long messages in few pages: only the way to the wire can be full.
        self.assertTrue(said["binds"])
        self.assertLessEqual(set(said["binds"]), {"link", "PCIe"})
        gains = {limit["name"]: limit["gain"] for limit in said["limits"]}
        self.assertLess(gains["WQE cache"], 1.02)
        self.assertGreaterEqual(said["best"]["gain"], 1)
        self.assertEqual(set(said["best"]["settings"]), set(said["workload"]))

    def test_what_if_in_words_says_that_it_is_modelled(self):
        done = lab("what-if", "--polling", "busy", "--region", "1M")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Modelled, not measured", done.stdout)
        self.assertIn("What binds first: requests under way.", done.stdout)

    def test_what_if_takes_a_trace(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("weir-trace 1 64 2\nR 8 1 0 0 0\nW 9 3 1 0 7\n")
            file.flush()
            done = lab("what-if", "--trace", file.name, "--polling", "busy", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            said = json.loads(done.stdout)
            with open(file.name, encoding="ascii") as again:
                done = lab("what-if", "--trace", "-", "--polling", "busy", "--json", stdin=again)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["mops"], said["mops"])
        asked = said["workload"]
        self.assertEqual((asked["threads"], asked["depth"], asked["size"]), (2, 1, 8192))
        for trace, why in (("/nowhere", "No such file"), ("/dev/null", "no request in it")):
            done = lab("what-if", "--trace", trace)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"{trace}: ", done.stderr)
            self.assertIn(why, done.stderr)

    def test_what_if_names_what_is_wrong_with_a_trace(self):
        for line, why in (("R 8 1 0 0", "expected \"OP PAGE"),
                          ("R 8 99999999 0 0 0", "COUNT is 99999999: 1 to 256"),
                          ("W 63 2 0 0 0", "pages 63 to 64 of a device that has 64"),
                          ("R 8 1 0 3 0", "DONE is 3"),
                          ("R 8 1 0 -100 0", "expected"), ("", "expected")):
            done = lab("what-if", "--trace", "-", input=f"weir-trace 1 64 2\n{line}\n")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"standard input:2: {why}", done.stderr)
        done = lab("what-if", "--trace", "-", input="R 8 1 0 0 0\n")
        self.assertIn("standard input:1: expected \"weir-trace 1 PAGES THREADS\"", done.stderr)

    def test_what_if_refuses_what_it_cannot_run(self):
        for arguments, why in ((("--op", "mix"), "'mix'"), (("--size", "0"), "from 1 to 16M"),
                               (("--size", "x"), "'x'"), (("--threads", "2000"), "from 1 to 1024"),
                               (("--channels", "17"), "from 1 to 16"),
                               (("--window", "3K"), "from 64K to 1G"),
                               (("--window-wrs", "0"), "from 1 to 65536"),
                               (("--window", "knee", "--window-wrs", "delay"),
                                "only one limit can be learned"),
                               (("--region", "2T"), "from 4K to 1T"),
                               (("--threads", "1024", "--depth", "17"), "are more than 16384"),
                               (("--size", "8M", "--region", "4M"), "more than --region 4M"),
                               (("--op", "read", "--trace", "etc"), "--op and --trace"),
                               (("--trace", "sys", "--size", "4K"), "--size and --trace"),
                               (("--pattern", "random", "--trace", "-"), "--pattern and --trace"),
                               (("--profile", "connectx-99"), "no profile 'connectx-99'")):
            done = lab("what-if", *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(why, done.stderr)

    def test_calibrate_shows_the_error_of_each_point(self):
        done = lab("calibrate", "--series", "inlined WRITE")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| 1024 | 2.40 |", done.stdout)
        self.assertIn("3 points; out of tolerance: 0", done.stdout)
        done = lab("calibrate", "--series", "nothing like it")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nothing like it", done.stderr)

    def test_who_reads_only_the_beginning_hears_no_complaint(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([WEIR, "lab", "list"], stdout=writer, stderr=subprocess.PIPE,
                              text=True, check=False)
        os.close(writer)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_cannot_be_printed_is_said_once(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([WEIR, "lab", "list"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "weir lab: No space left on device\n"))
        for closed, status, said in ((">&-", 1, "weir lab: standard output is closed\n"),
                                     ("2>&-", 0, "")):
            done = subprocess.run(["sh", "-c", f'"$1" lab run rdmabox-fig5 {closed}', "sh", WEIR],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (status, said))

    def test_without_a_terminal_what_is_run_is_said_once_each(self):
        arguments = ("run", "avatar-fig1", "rdmabox-fig5", "avatar-fig3", "--seeds", "1")
        self.assertEqual(lab(*arguments).stderr, "weir lab: avatar-fig1\nweir lab: avatar-fig3\n")
        self.assertEqual(lab(*arguments, "--quiet").stderr, "")
        said = lab("what-if", "--region", "1M", "--polling", "busy").stderr.splitlines()
        self.assertEqual(said[:2], ["weir lab: as asked", "weir lab: limits"])
        self.assertIn("weir lab: trying window", said)

    def test_no_seeds_are_refused(self):
        for seeds in ("0", "-1", "x"):
            self.assertEqual(lab("run", "avatar-fig1", "--seeds", seeds).returncode, 2, seeds)

    def test_it_works_from_a_folder_with_another_lab_in_it(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "lab").mkdir()
            pathlib.Path(folder, "lab", "__init__.py").write_text("raise SystemExit('wrong lab')\n")
            done = lab("list", cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_ctrl_c_ends_it_and_its_runs(self):
        child = subprocess.Popen([WEIR, "lab", "hunt", "--seeds", "1-100000000"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 start_new_session=True)
        self.addCleanup(self.kill_all_of, child)
        while "weir-hunt" not in self.names_of_children(child.pid):
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGINT)
        child.communicate(timeout=60)
        self.assertEqual(child.returncode, 130)

    def test_ctrl_c_at_the_very_beginning_is_no_news(self):
        for delay in (0, 0.01, 0.03, 0.1, 0.3):
            child = subprocess.Popen([WEIR, "lab", "hunt", "--seeds", "1-100000000"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     start_new_session=True)
            self.addCleanup(self.kill_all_of, child)
            time.sleep(delay)
            os.killpg(child.pid, signal.SIGINT)
            _, said = child.communicate(timeout=60)
            self.assertIn(child.returncode, (130, -signal.SIGINT))
            self.assertEqual(said, "")

    def test_who_ends_the_lab_alone_ends_its_runs(self):
        child = subprocess.Popen([WEIR, "lab", "run", "urdma-fig3", "--quiet"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True)
        self.addCleanup(self.kill_all_of, child)
        while "weir-sim" not in self.names_of_children(child.pid):
            self.assertIsNone(child.poll())
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGTERM)
        _, said = child.communicate(timeout=60)
        self.assertEqual((child.returncode, said), (128 + signal.SIGTERM, ""))

    def test_a_hunt_without_an_end_takes_no_memory(self):
        child = subprocess.Popen([WEIR, "lab", "hunt", "--seeds", f"1-{2**63}"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True)
        self.addCleanup(self.kill_all_of, child)
        while "weir-hunt" not in self.names_of_children(child.pid):
            self.assertIsNone(child.poll())
            time.sleep(0.01)
        resident = re.search(r"VmRSS:\s+(\d+) kB",
                             pathlib.Path(f"/proc/{child.pid}/status").read_text())
        self.assertLess(int(resident[1]), 200 << 10)

    @staticmethod
    def kill_all_of(child):
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()

    @staticmethod
    def names_of_children(pid):
        def said(path):
            try:
                return path.read_text().split()
            except OSError:
                return []  # the thread or the child has ended meanwhile
        return [name for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                for child in said(task / "children")
                for name in said(pathlib.Path(f"/proc/{child}/comm"))]


@unittest.skipIf(os.environ.get("WEIR_LAB_SHORT"), "the numbers are the same under a sanitizer")
class Advice(unittest.TestCase):
    """Checks numbers, each of dozens of runs. The class Lab covers words and traces."""

    def test_what_if_advises_against_the_engine_where_it_loses(self):
        losing = ("--region", "1M", "--threads", "8", "--size", "64", "--polling", "busy",
                  "--mr", "user", "--quiet")
        said = json.loads(lab("what-if", "--json", *losing).stdout)
        self.assertGreater(said["plain_verbs"]["mops"], said["mops"] * said["best"]["gain"])
        done = lab("what-if", *losing)
        self.assertIn("weir loses here: plain verbs make", done.stdout)
        winning = lab("what-if", "--region", "1M", "--size", "1M", "--depth", "4", "--quiet")
        self.assertIn("\nPlain verbs, a queue pair a thread, nothing merged:\n", winning.stdout)
        self.assertIn("weir is ahead of it, or equal", winning.stdout)

    def test_what_if_models_each_window(self):
        def mops(*arguments):
            done = lab("what-if", "--region", "1M", "--depth", "64", "--json", "--quiet",
                       "--polling", "busy", *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)["mops"]
        wide, narrow = mops(), mops("--window-wrs", "1", "--batching", "single")
        self.assertLess(2 * narrow, wide)
        for learned in (("--window", "delay"), ("--window-wrs", "knee")):
            self.assertGreater(mops(*learned), narrow)

    def test_what_if_says_of_each_gain_of_which_run_it_is(self):
        def said(*arguments):
            done = lab("what-if", "--region", "1M", "--json", "--quiet", *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)
        asleep, awake = said("--polling", "event"), said("--polling", "busy")
        first, *others = asleep["limits"]
        self.assertEqual((first["name"], first["polling"]), ("sleeping", "event"))
        self.assertEqual(first["base_mops"], asleep["mops"])
        self.assertAlmostEqual(first["gain"] * asleep["mops"], awake["mops"])
        self.assertEqual((asleep["binds"], asleep["binds_then"]), (["sleeping"], awake["binds"]))
        # Every other limit is the busy poller's, relative to the rate of that run.
        self.assertEqual(others,
                         [limit for limit in awake["limits"] if limit["name"] != "sleeping"])
        self.assertEqual({(limit["polling"], limit["base_mops"]) for limit in others},
                         {("busy", awake["mops"])})
        gains = {limit["name"]: limit["gain"] for limit in others}
        for name, change in (("requests under way", ("--depth", "2")),
                             ("window", ("--window", "off"))):
            changed = said("--polling", "busy", *change)["mops"]
            self.assertAlmostEqual(gains[name] * awake["mops"], changed, delta=0.01 * changed)
        words = lab("what-if", "--region", "1M", "--quiet", "--polling", "event").stdout
        before, after = words.split(f"The others, with busy polling ({awake['mops']:.3f} M/s):\n")
        self.assertTrue(before.splitlines()[-1].startswith("sleeping "))
        for name in gains:
            self.assertIn(f"\n{name} ", "\n" + after)
        self.assertIn("What binds first: sleeping.\n  sleeping: ", after)
        self.assertIn(f"\nWith busy polling: {awake['binds'][0]}", after)

    def test_a_large_memory_of_the_donor_takes_no_longer(self):
        # The NIC holds translations for a part of 64 GB: most requests miss from the first on.
        asked = ("what-if", "--pattern", "random", "--polling", "busy", "--profile", "connectx-3",
                 "--json", "--quiet", "--region")
        done = lab(*asked, "64G")
        self.assertEqual(done.returncode, 0, done.stderr)
        large = json.loads(done.stdout)
        missed = {limit["name"]: limit["shown"] for limit in large["limits"]}["MTT reach"]
        self.assertGreater(float(missed.split("%")[0]), 90)
        done = lab(*asked, "1M")
        self.assertGreater(json.loads(done.stdout)["mops"], 1.1 * large["mops"])


@unittest.skipIf(os.environ.get("WEIR_LAB_SHORT"), "all figures take long under a sanitizer")
class Report(unittest.TestCase):
    def test_the_page_has_every_figure_and_calls_nothing_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.html")
            # calibrate takes a minute; without its part the page is the same.
            done = lab(*record.REPORT, str(page))
            self.assertEqual(done.returncode, 0, done.stderr)
            text = page.read_text()
        self.has_what_was_recorded(record.figures(text))
        self.assertEqual(text.count("Profile connectx-"), len(figures()))
        for name in figures():
            self.assertIn(f'id="{name}"', text)
        self.assertIn("it is modelled, not\nmeasured", text)
        self.assertNotIn("Not steady", text)
        self.assertIn("weir lab calibrate", text)
        targets = re.findall(r'<tr class="(met|missed|open)">(.*?)</tr>', text)
        self.assertGreater(len(targets), 100)
        self.assertEqual([row for verdict, row in targets
                          if verdict != "open" and "<td>not published</td>" in row], [])
        for verdict, row in targets:
            cells = re.findall(r"<td>(.*?)</td>", row)
            # A cause stands only beside a miss.
            self.assertLessEqual(cells[:-1].count(""), int(verdict != "missed"), row)
            if verdict == "missed":
                self.assertIn(cells[-2], ("input", "model", "weir"), f"no cause: {row}")
                self.assertTrue(cells[-1], f"nothing says why: {row}")
        self.assertLess(text.index("missed because"), text.index("it is modelled, not\nmeasured"))
        for name in figures():  # the navigation, and the summary
            self.assertEqual(len(re.findall(f"href=['\"]#{name}['\"]", text)), 2)
        self.assertIn("Plain verbs beside the engine", text)
        held_out = text[text.index("id='held-out'"):text.index('id="avatar-fig1"')]
        for figure in ("rdmabox-fig1", "rdmabox-fig8", "urdma-fig3", "hipower-fig5"):
            self.assertIn(f"<td>{figure}</td>", held_out)
        self.assertEqual(re.findall(r"https?://(?!www\.w3\.org/)[^\"<]*", text), [])

    def test_one_thing_has_one_colour_in_all_figures(self):
        sys.path.insert(0, str(pathlib.Path(WEIR).parent))
        from lab import plot
        for names in (("weir", "mux", "paper, Avatar", "5a, paper"),
                      ("native", "paper, native", "plain verbs, w/o PRI", "5a, a QP each"),
                      ("poll", "busy", "paper, poll"), ("event", "paper, event"),
                      ("unload, parity", "unload, no parity", "unload"),
                      ("hybrid preMR", "hybrid dynMR"), ("16 KB", "16 KB of a segment")):
            self.assertEqual(len(set(map(plot.colour, names))), 1, names)
        for one, other in (("hybrid", "hybrid preMR"), ("event", "event-batch"),
                           ("bitmaps", "immediates"), ("offload", "unload"), ("weir", "native"),
                           ("connectx-5", "connectx-5-edr"), ("with, 4 KB", "without, 4 KB")):
            self.assertNotEqual(plot.colour(one), plot.colour(other))
        with self.assertRaises(IndexError):
            plot.colour("a name of nothing")

    def test_a_panel_of_categories_has_bars_and_others_have_lines(self):
        sys.path.insert(0, str(pathlib.Path(WEIR).parent))
        from lab import experiment, plot
        if not plot.pyplot():
            self.skipTest("no matplotlib")
        words = [experiment.Series(name, "us", ["few", "many"], [1.0, 1000.0])
                 for name in ("weir", "paper, native")]
        shown = plot.svg("us", "flows", words)
        for text in ("flows", "us (modelled)", "few", "many", "weir", "paper, native"):
            self.assertIn(f">{text}</text>", shown)
        self.assertIn(plot.BLUE, shown)
        self.assertIn(plot.ORANGE, shown)
        self.assertEqual(shown, plot.svg("us", "flows", words))
        numbers = [experiment.Series("weir", "us", [1, 2], [1.0, 2.0])]
        self.assertIn(">threads</text>", plot.svg("us", "threads", numbers))
        self.assertFalse(plot.has_categories(numbers))

    def test_of_another_nic_nothing_stands_over_an_empty_column(self):
        sys.path.insert(0, str(pathlib.Path(WEIR).parent))
        from lab import experiment, report, simulate
        module = experiment.experiments()["avatar-fig3"]
        ran = {"seeds": 1, "version": "0", "sources": "0"}
        own = module.run(simulate.Sim(module.PROFILE, 1, quiet=True))
        other = module.run(simulate.Sim("connectx-3", 1, quiet=True)).of_another("connectx-3",
                                                                                 module.PROFILE)
        other = dataclasses.replace(other, ran={**ran, "profile": "connectx-3"})
        page = report.page([(module, other)], [])
        for words in ("Held out", "why not", "calibrated or by input</th>"):
            self.assertNotIn(words, page)
        self.assertIn("(another NIC than the paper&#x27;s)", page)
        self.assertIn("This page is of connectx-3, by request", page)
        own = dataclasses.replace(own, ran={**ran, "profile": module.PROFILE})
        page = report.page([(module, own)], [])
        self.assertIn("<th>why not, or note</th>", page)
        self.assertNotIn("another NIC", page)

    def test_with_the_seeds_that_a_user_gets_only_what_is_said_to_wander_is_not_steady(self):
        done = lab("run", "rdmabox-fig8", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        notes = json.loads(done.stdout)["notes"]
        self.assertIn("Writes of 1 KB by 4 threads and more go back and forth", " ".join(notes))
        unsteady = " ".join(note for note in notes if note.startswith("Not steady"))
        for run in re.findall(r"depth=[^;]*", unsteady):
            self.assertIn(" size=1024 ", run)

    def has_what_was_recorded(self, digests):
        self.assertEqual(list(digests), figures())
        self.assertEqual(digests, record.recorded()["figures"])

    def test_hunts_are_the_same_bytes_as_on_the_machine_where_they_were_recorded(self):
        elsewhere = record.recorded()
        said = lab("hunt", "--seeds", record.HUNTS).stdout
        self.assertEqual(record.hunts(said), elsewhere["hunts"])
        self.assertTrue(said.endswith(f", sources {elsewhere['sources']}\n"), said)

    def test_what_if_runs_for_as_long_as_a_workload_needs(self):
        # Many requests in flight, and variants with a registration for each: in a millisecond
        # none would finish.
        done = lab("what-if", "--depth", "128", "--region", "1M", "--polling", "busy", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["best"]["settings"]["mr"], "pre")
        # Bytes put on the link before the start do not count, or the sum would exceed the
        # link's rate.
        done = lab("what-if", "--threads", "2", "--depth", "256", "--region", "1M", "--mr", "user",
                   "--polling", "busy", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual(said["binds"], ["link"])
        self.assertLess(said["gbps"], 99)

    def test_what_if_knows_that_random_pages_are_the_translation_caches_to_miss(self):
        done = lab("what-if", "--threads", "4", "--depth", "16", "--size", "64", "--pattern",
                   "random", "--region", "1G", "--polling", "busy", "--profile", "connectx-3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("What binds first: MTT reach.\n  MTT reach: larger pages", done.stdout)

    def test_what_the_model_misses_of_its_anchors_is_counted_by_whether_it_is_explained(self):
        done = lab("calibrate", "--quiet")
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
        self.assertIn(", 0 not spoken of.", done.stdout)
        counts = re.search(r"(\d+) explained, (\d+) of unknown cause", done.stdout)
        explained, unknown = map(int, counts.groups())
        # In each series: the marked points, and a drop at the wrong place.
        wrong = {"Why it is off:": 0, "Why it is off is not known:": 0}
        for series in done.stdout.split("\n### ")[1:]:
            off = series.count("| more than ") + series.count(": not within one step")
            why = next((why for why in wrong if why in series), None)
            self.assertEqual(bool(off), bool(why), series)
            if why:
                wrong[why] += off
        self.assertEqual(list(wrong.values()), [explained, unknown])
        self.assertGreater(unknown, 0)

    def test_a_report_that_is_there_stays_until_the_next_is_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.html")
            page.write_text("the one before")
            child = subprocess.Popen([WEIR, "lab", *record.REPORT, str(page)],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     start_new_session=True)
            self.addCleanup(Lab.kill_all_of, child)
            while "weir-sim" not in Lab.names_of_children(child.pid):
                self.assertIsNone(child.poll())
                time.sleep(0.01)
            os.killpg(child.pid, signal.SIGINT)
            child.communicate(timeout=60)
            self.assertEqual(child.returncode, 130)
            self.assertEqual(page.read_text(), "the one before")
            self.assertEqual([one.name for one in pathlib.Path(folder).iterdir()], ["page.html"])

    def test_a_page_goes_into_what_is_no_file_and_a_link_stays_one(self):
        sys.path.insert(0, str(pathlib.Path(WEIR).parent))
        from lab import __main__ as command
        with tempfile.TemporaryDirectory() as folder:
            page, link, null = (pathlib.Path(folder, name) for name in ("page", "link", "null"))
            page.write_text("the one before")
            link.symlink_to(page)
            with command._whole(link) as file:
                file.write("new")
                self.assertEqual(page.read_text(), "the one before")
            self.assertEqual((page.read_text(), link.is_symlink()), ("new", True))
            os.mkfifo(null)
            reader = os.open(null, os.O_RDONLY | os.O_NONBLOCK)
            self.addCleanup(os.close, reader)
            with command._whole(null) as file:
                file.write("new")
            self.assertEqual((os.read(reader, 9), null.is_fifo()), (b"new", True))

    def test_a_page_that_cannot_be_written_is_named(self):
        done = lab("report", "--seeds", "1", "-o", "/nowhere/page.html")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/page.html", done.stderr)


unittest.main(verbosity=2)
