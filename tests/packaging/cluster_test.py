#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Recipes for containers and Kubernetes agree, and have commands and options of weir.

cluster_test.py WEIR

A few lines of Python fill in the templates: just enough of Helm for the chart.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import yaml

WEIR = os.path.abspath(sys.argv.pop(1))
PACKAGING = pathlib.Path(__file__).resolve().parents[2] / "packaging"
CONTAINER, KUBERNETES = PACKAGING / "container", PACKAGING / "kubernetes"
TEMPLATES = sorted((KUBERNETES / "chart/templates").glob("*.yaml"))
# Of the base image, or dependencies of packages that are named.
IN_ALL_IMAGES = {"libc6", "libgcc-s1", "libstdc++6", "libibverbs1", "libtinfo6"}
OPTION = re.compile(r"(?<!\S)(--[a-z][a-z-]*)")
# A command line of weir in a script of the shell, to the end of the command.
SHELL_LINE = re.compile(r"\bweir ((?:[a-z]+ )+)([^\n|&]*)")


def read(path):
    return path.read_text(encoding="utf-8")


def load(path):
    return yaml.safe_load(read(path))


def help_of(*command):
    done = subprocess.run([WEIR, *command, "--help"], capture_output=True, text=True, timeout=60,
                          check=False)
    return done.stdout if done.returncode == 0 else ""


def packages_of(paths):
    """The packages of files. To dpkg a library may lie where it was before /usr was merged."""
    places = [place for path in paths for place in {path, path.removeprefix("/usr"), "/usr" + path}]
    said = subprocess.run(["dpkg", "-S", *places], capture_output=True, text=True, check=False)
    return {line.split(":")[0] for line in said.stdout.splitlines()}


class Case(unittest.TestCase):
    def fits_weir(self, command, options):
        """weir has the command, and the command has the options."""
        said = help_of(*command)
        self.assertTrue(said, command)
        for option in options:
            self.assertRegex(said, rf"(?m){option}\b", command)


class Compose(Case):
    def setUp(self):
        self.file = load(CONTAINER / "compose.yaml")
        self.services = self.file["services"]

    def own(self):
        """The services with an image of weir."""
        return {name: service for name, service in self.services.items()
                if service["image"].startswith("weir:")}

    def test_each_command_is_one_of_weir(self):
        for name, service in self.own().items():
            with self.subTest(name):
                words = service["command"]
                if "entrypoint" not in service:
                    self.fits_weir(words[:1], [word.split("=")[0] for word in words[1:]])
                    continue
                found = SHELL_LINE.findall(words[0])
                self.assertTrue(found)
                for command, rest in found:
                    self.fits_weir(command.split(), OPTION.findall(rest))

    def test_services_have_no_more_rights_than_they_need(self):
        for name, service in self.own().items():
            self.assertTrue(service["read_only"], name)
            self.assertEqual(service["cap_drop"], ["ALL"], name)
            self.assertEqual("user" in service, name in ("setup", "client"), name)

    def test_each_service_that_goes_on_tells_its_health(self):
        for name, service in self.services.items():
            self.assertEqual("healthcheck" in service, name != "setup", name)
            needs = service.get("depends_on", ())
            for other, need in needs.items() if isinstance(needs, dict) else ():
                self.assertEqual(need["condition"] == "service_healthy", other != "setup", name)
        words = self.services["donor1"]["healthcheck"]["test"]
        self.fits_weir(words[2:3], [word.split("=")[0] for word in words[3:] if word[0] == "-"])

    def test_names_files_and_volumes_are_there(self):
        for name, service in self.services.items():
            self.assertLessEqual(set(service.get("depends_on", ())), set(self.services), name)
            for volume in service.get("volumes", ()):
                source = volume.split(":")[0]
                if source.startswith("."):
                    self.assertTrue((CONTAINER / source).exists(), volume)
                else:
                    self.assertIn(source, self.file["volumes"], volume)

    def test_prometheus_finds_what_the_services_serve(self):
        served = {f"{name}:{match[1]}" for name, service in self.own().items()
                  for match in re.finditer(r"--metrics=0\.0\.0\.0:(\d+)", str(service["command"]))}
        jobs = {job["job_name"]: job["static_configs"][0]["targets"]
                for job in load(CONTAINER / "prometheus.yml")["scrape_configs"]}
        self.assertEqual(set(jobs["hosts"]), served)
        port = re.search(r"--listen=(\d+)", str(self.services["metrics"]["command"]))[1]
        self.assertEqual(jobs["pool"], [f"localhost:{port}"])
        self.assertEqual(self.services["metrics"]["network_mode"], "service:prometheus")

    @unittest.skipUnless(shutil.which("promtool"), "no promtool: scripts/deps check")
    def test_promtool_reads_the_configuration(self):
        done = subprocess.run(["promtool", "check", "config", "--syntax-only",
                               str(CONTAINER / "prometheus.yml")], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Image(Case):
    def test_the_targets_of_the_documents_are_there(self):
        text = read(CONTAINER / "Containerfile")
        targets = re.findall(r"^FROM \S+ AS (\S+)", text, re.M)
        self.assertEqual(targets, ["build", "csi", "weir", "weir-csi"])
        self.assertNotRegex(text.split(" AS weir\n")[1].split("FROM")[0], r"(?m)^USER 0")

    def test_the_libraries_of_the_command_are_installed(self):
        """The names of packages are those of Debian 12, the base of the images."""
        if "VERSION_CODENAME=bookworm" not in read(pathlib.Path("/etc/os-release")):
            return
        named = set(re.findall(r"\S+", read(CONTAINER / "Containerfile").split(" AS weir\n")[1]))
        needed = re.findall(r"NEEDED.*\[(.*)\]", subprocess.run(
            ["readelf", "-d", WEIR], capture_output=True, text=True, check=True).stdout)
        paths = subprocess.run(["ldd", WEIR], capture_output=True, text=True, check=True).stdout
        self.assertLessEqual(packages_of([path for library, path in
                                          re.findall(r"(\S+) => (/\S+)", paths)
                                          if library in needed]), named | IN_ALL_IMAGES)


class Chart(Case):
    secret = ""  # of the donors' metrics
    etcd = ""  # the secret for etcd
    donors = {}  # what a site chooses

    def chosen(self, text, look_up):
        """The lines whose conditions hold."""
        holds = [True]
        for line in text.splitlines():
            word = re.match(r"\{\{- (if|else|end)(?: (\S+))? \}\}$", line)
            if not word:
                if all(holds):
                    yield line
            elif word[1] == "if":
                holds.append(bool(look_up(word[2])))
            elif word[1] == "else":
                holds[-1] = not holds[-1]
            else:
                holds.pop()

    def filled(self, path):
        """A template with the chart's own values."""
        values = {"Values": load(KUBERNETES / "chart/values.yaml"),
                  "Release": {"Namespace": "default"}}
        values["Values"]["softnic"]["enabled"] = True
        values["Values"]["donors"]["metrics"]["secret"] = self.secret
        values["Values"]["etcdSecret"] = self.etcd
        values["Values"]["donors"].update(self.donors)

        def look_up(name):
            value = values
            for part in name.strip(".").split("."):
                self.assertIn(part, value, f"{path.name}: {name}")
                value = value[part]
            return value

        def fill(match):
            expression, *filters = (part.strip() for part in match[1].split("|"))
            if expression.startswith("toYaml "):
                return json.dumps(look_up(expression.split()[1]))
            words = re.fullmatch(r'printf "([^"]*)" (\S+)', expression)
            text = words[1].replace("%v", "%s") % look_up(words[2]) if words else \
                str(look_up(expression))
            return json.dumps(text) if filters == ["quote"] else text

        lines = "\n".join(self.chosen(read(path), look_up))
        return re.sub(r"\{\{-?\s*(.*?)\s*\}\}", fill, lines)

    def objects(self):
        for path in TEMPLATES:
            for found in yaml.safe_load_all(self.filled(path)):
                yield path.name, found

    def pods(self):
        for name, found in self.objects():
            if found["kind"] in ("Deployment", "DaemonSet"):
                labels = found["spec"]["template"]["metadata"]["labels"]
                self.assertEqual(found["spec"]["selector"]["matchLabels"], labels, name)
                yield name, found["spec"]["template"]["spec"]

    def test_each_object_has_kind_and_name(self):
        seen = set()
        for name, found in self.objects():
            identity = found["apiVersion"], found["kind"], found["metadata"]["name"]
            self.assertNotIn(identity, seen, name)
            seen.add(identity)
        kinds = {kind for _, kind, _ in seen}
        self.assertLessEqual({"CSIDriver", "StorageClass"}, kinds)

    def test_mounted_volumes_are_there(self):
        for name, pod in self.pods():
            volumes = {volume["name"] for volume in pod["volumes"]}
            used = {mount["name"] for container in pod["containers"]
                    for mount in container["volumeMounts"]}
            self.assertEqual(used, volumes, name)

    def test_each_command_is_one_of_weir(self):
        driver, plugin = ({"--" + name for name in re.findall(
            r'flag\.\w+\((?:&p\.\w+, )?"(\w+)"', read(KUBERNETES / program / "main.go"))}
                          for program in ("csi", "device-plugin"))
        image = load(KUBERNETES / "chart/values.yaml")["image"]
        seen = 0
        for name, pod in self.pods():
            for container in pod["containers"]:
                if container["image"] != image:
                    continue
                seen += 1
                options = [word.split("=")[0] for word in container["args"] if word[0] == "-"]
                if container.get("command") == ["weir"]:
                    self.fits_weir(container["args"][:1], options)
                elif container.get("command") == ["weir-device-plugin"]:
                    self.assertLessEqual(set(options), plugin, name)
                else:
                    self.assertLessEqual(set(options), driver, name)
        self.assertEqual(seen, 4)

    def test_probes_ask_what_is_served(self):
        """The probes that fail restart the container, which must not end the mounts of others."""
        image = load(KUBERNETES / "chart/values.yaml")["image"]
        for self.secret in ("", "weir-metrics"):
            seen = {}
            for _, pod in self.pods():
                for container in pod["containers"]:
                    if container["image"] != image:
                        continue
                    seen[pod.get("serviceAccountName", container["name"])] = \
                        {name for name in container if name.endswith("Probe")}
                    served = str(container["args"])
                    for name in seen[pod.get("serviceAccountName", container["name"])]:
                        probe = container[name]
                        if "exec" in probe:
                            self.assertIn(probe["exec"]["command"][0], ("weir-csi", "test"))
                            continue
                        get, port = probe["httpGet"], container["ports"][0]["containerPort"]
                        self.assertEqual((get["path"], get["port"]), ("/healthz", "metrics"))
                        self.assertIn(f"--metrics={get.get('host', '$(ADDRESS)')}:{port}", served)
                        self.assertEqual("--metrics-tls=" in served, get.get("scheme") == "HTTPS")
            self.assertEqual(seen, {
                "donor": {"startupProbe", "readinessProbe"},
                "driver": {"readinessProbe"}, "plugin": {"readinessProbe"},
                "weir-csi-controller": {"readinessProbe", "livenessProbe"}})
            self.test_mounted_volumes_are_there()
            self.test_each_command_is_one_of_weir()

    def test_users_and_certificates_for_etcd_reach_all_that_open_the_pool(self):
        for self.etcd in ("", "weir-etcd"):
            seen = 0
            for name, pod in self.pods():
                for container in pod["containers"]:
                    if not any(word.startswith("--pool=") for word in container["args"]):
                        continue
                    seen += 1
                    self.assertEqual(container.get("envFrom"), self.etcd and
                                     [{"secretRef": {"name": self.etcd}}] or None, name)
                    self.assertEqual(any(mount["mountPath"] == "/etcd" and mount["readOnly"]
                                         for mount in container["volumeMounts"]), bool(self.etcd))
            self.assertEqual(seen, 3)
            self.test_mounted_volumes_are_there()

    def test_a_site_chooses_where_donors_run_and_what_they_are_granted(self):
        wanted = {"tolerations": [{"operator": "Exists"}], "priorityClassName": "critical",
                  "nodeSelector": {"memory": "much"},
                  "resources": {"requests": {"memory": "9Gi"}}}
        self.donors = wanted
        pod = next(pod for name, pod in self.pods() if name == "donors.yaml")
        found = dict(pod, resources=pod["containers"][0]["resources"])
        self.assertEqual({name: found[name] for name in wanted}, wanted)

    def test_names_are_those_of_the_driver(self):
        name = re.search(r'driverName = "(.*)"', read(KUBERNETES / "csi/identity.go"))[1]
        kinds = {found["kind"]: found for _, found in self.objects()}
        self.assertEqual(kinds["CSIDriver"]["metadata"]["name"], name)
        self.assertEqual(kinds["StorageClass"]["provisioner"], name)
        parameter = re.search(r'schemeParameter = "(.*)"', read(KUBERNETES / "csi/controller.go"))
        self.assertEqual(list(kinds["StorageClass"]["parameters"]), [parameter[1]])
        self.assertIn(f"plugins/{name}/csi.sock", read(KUBERNETES / "chart/templates/node.yaml"))

    def test_the_version_is_that_of_the_tree(self):
        version = re.search(r"^  version: '(.*)'", read(PACKAGING.parent / "meson.build"), re.M)[1]
        chart = load(KUBERNETES / "chart/Chart.yaml")
        self.assertEqual((chart["version"], chart["appVersion"]), (version, version))
        for path in (KUBERNETES / "chart/values.yaml", CONTAINER / "compose.yaml",
                     CONTAINER / "Containerfile"):
            self.assertRegex(read(path), rf"weir(-csi)?:{re.escape(version)}\b")


if __name__ == "__main__":
    unittest.main(verbosity=2)
