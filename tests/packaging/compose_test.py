#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The services of compose.yaml run together: as containers, but without an engine or images.

compose_test.py WEIR

Each service gets a host with the names of all others, a read-only root, volumes, user,
capabilities and restarts, all from compose.yaml. The root is that of this machine, with the weir
under test. Images are not built, and Grafana does not run.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.hosts import Net  # noqa: E402

WEIR = os.path.abspath(sys.argv.pop(1))
CONTAINER = ROOT / "packaging/container"
PATIENCE = 180
IMAGE_USER = "64000:64000"  # Containerfile
ENTRYPOINTS = {"weir": ["weir"], "prometheus": ["prometheus"], "etcd": []}
ABSENT = {"grafana"}
# Arguments: a folder, the file of hosts, "ro" or "rw", the build, then pairs SOURCE TARGET of
# volumes, "--", and the command. The namespace of mounts is the service's.
ENTER = r"""set -eu
base=$1 hosts=$2 mode=$3 build=$4; shift 4
mkdir -p "$base/upper" "$base/root"
mount -t tmpfs upper "$base/upper"
mkdir "$base/upper/files" "$base/upper/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$base/upper/files,workdir=$base/upper/work" \
	"$base/root"
cd "$base/root"
for folder in dev proc sys; do mount --rbind "/$folder" "$folder"; done
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs mnt mnt # empty, as in the image
cat "$hosts" >etc/hosts
mkdir -p "./$build"
mount --bind "$build" "./$build"
ln -sf "$build/weir" usr/bin/weir
while [ "$1" != -- ]; do
	if [ -d "$1" ]; then mkdir -p "./$2"; else mkdir -p "./${2%/*}" && touch "./$2"; fi
	mount --bind "$1" "./$2"
	[ "$3" = rw ] || mount -o remount,ro,bind "./$2"
	shift 3
done
shift
[ "$mode" = rw ] || mount -o remount,ro "$base/root"
exec chroot "$base/root" "$@"
"""
AGAIN = 'until "$@"; do sleep 1; done'


class Compose(unittest.TestCase):
    def setUp(self):
        self.file = yaml.safe_load((CONTAINER / "compose.yaml").read_text(encoding="utf-8"))
        self.services = {name: service for name, service in self.file["services"].items()
                         if name not in ABSENT}
        self.net = Net(WEIR, "compose")
        own = [name for name, service in self.services.items() if "network_mode" not in service]
        self.net.up(len(own), self.addCleanup)
        folder = tempfile.mkdtemp(prefix="weir-compose-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.folder = pathlib.Path(folder)
        self.hosts = {name: f"h{number}" for number, name in enumerate(own, 1)}
        for name, service in self.services.items():
            if "network_mode" in service:
                self.hosts[name] = self.hosts[service["network_mode"].split(":")[1]]
        text = "127.0.0.1 localhost\n" + "".join(
            f"10.77.0.{self.hosts[name][1:]} {name}\n" for name in own)
        (self.folder / "hosts").write_text(text, encoding="ascii")
        for volume in self.file["volumes"]:
            (self.folder / "volumes" / volume).mkdir(parents=True)
        self.children = {}

    def volumes(self, service):
        for volume in service.get("volumes", ()):
            source, target, *mode = volume.split(":")
            place = CONTAINER / source if source.startswith(".") else \
                self.folder / "volumes" / source
            yield from (str(place.resolve()), target, mode[0] if mode else "rw")

    def command(self, service):
        image = service["image"].split(":")[0].rsplit("/", 1)[-1]
        entrypoint = service.get("entrypoint", ENTRYPOINTS[image])
        return [*entrypoint, *service["command"]]

    def rights(self, service):
        """The user and capabilities of a service, as options of setpriv."""
        user, group = service.get("user", IMAGE_USER if service["image"].startswith("weir:")
                                  else "0:0").split(":")
        options = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
        if "cap_drop" in service:
            kept = [f"+{name.lower()}" for name in service.get("cap_add", ())]
            options += ["--inh-caps=-all", "--bounding-set=" + ",".join(["-all", *kept])]
        if "no-new-privileges:true" in service.get("security_opt", ()):
            options.append("--no-new-privs")
        return [*options, "--", "env", *(f"{key}={value}" for key, value
                                         in service.get("environment", {}).items())]

    def start(self, name):
        service = self.services[name]
        again = ["sh", "-c", AGAIN, "-"] if service.get("restart") == "on-failure" else []
        words = self.net.on(
            self.hosts[name], "unshare", "--mount", "sh", "-c", ENTER, "-", f"{self.folder}/{name}",
            f"{self.folder}/hosts", "ro" if service.get("read_only") else "rw",
            os.path.dirname(WEIR), *self.volumes(service), "--", *again, *self.rights(service),
            *self.command(service))
        with open(self.folder / f"{name}.log", "w", encoding="utf-8") as log:
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     start_new_session=True)
        self.addCleanup(self.end, child)
        self.children[name] = child

    def end(self, child):
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait(PATIENCE)

    def up(self):
        """Starts each service after its dependencies."""
        left = dict(self.services)
        while left:
            ready = [name for name, service in left.items()
                     if not set(service.get("depends_on", ())) & set(left)]
            self.assertTrue(ready)
            for name in ready:
                needs = left.pop(name).get("depends_on", {})
                for other, need in needs.items() if isinstance(needs, dict) else ():
                    if need["condition"] == "service_healthy":
                        self.await_health(other)
                    else:
                        self.assertEqual(self.children[other].wait(PATIENCE), 0, self.log(other))
                self.start(name)

    def await_health(self, name):
        """Runs the service's health check in its container, as its user, until it passes."""
        kind, *words = self.services[name]["healthcheck"]["test"]
        words = words if kind == "CMD" else ["sh", "-c", *words]
        if shutil.which(words[0]):  # else only the service's own image has the program
            self.until(lambda: self.execute(name, *self.rights(self.services[name]), *words)
                       .returncode == 0)

    def log(self, name):
        return f"{name}: " + (self.folder / f"{name}.log").read_text(encoding="utf-8")

    def logs(self):
        return "\n".join(self.log(name)[-600:] for name in self.children)

    def execute(self, name, *words):
        """docker compose exec"""
        path = str(self.folder / name / "root")
        found = self.until(lambda: [pid for pid in os.listdir("/proc") if pid.isdigit() and
                                    self.root_of(pid) == path])
        return subprocess.run(["nsenter", "--target", found[-1], "--mount", "--net", "--root",
                               "--wd=/", "--", *words], stdin=subprocess.DEVNULL, check=False,
                              capture_output=True, text=True, timeout=PATIENCE)

    def root_of(self, pid):
        try:
            return os.readlink(f"/proc/{pid}/root")
        except OSError:
            return None

    def until(self, look):
        deadline = time.monotonic() + PATIENCE
        while not (found := look()):
            for name, child in self.children.items():
                self.assertIn(child.poll(), (None, 0), self.log(name))
            self.assertLess(time.monotonic(), deadline, self.logs())
            time.sleep(0.5)
        return found

    def targets(self):
        """The health of what Prometheus scrapes, by address."""
        said = self.execute("prometheus", "curl", "-sf",
                            "http://127.0.0.1:9090/api/v1/targets")
        if said.returncode:  # 22: Prometheus listens, and answers 503 while it starts
            return {}
        return {target["labels"]["instance"]: target["health"]
                for target in json.loads(said.stdout)["data"]["activeTargets"]}

    def test_the_whole_comes_up_and_is_seen(self):
        self.up()
        expected = {f"donor{number}:9474" for number in (1, 2, 3)} | {"client:9475",
                                                                      "localhost:9473"}
        self.until(lambda: self.targets() == dict.fromkeys(expected, "up"))
        for name, service in self.services.items():
            if "healthcheck" in service:
                self.await_health(name)
        copied = self.execute("client", "cp", "-r", "/etc/apt", "/mnt")
        self.assertEqual(copied.returncode, 0, copied.stderr)
        same = self.execute("client", "diff", "-r", "/etc/apt", "/mnt/apt")
        self.assertEqual((same.returncode, same.stdout), (0, ""), same.stderr)
        status = self.execute("client", "weir", "pool", "status", "etcd:http://etcd:2379/demo")
        self.assertIn("3 donors in 3 failure domains", status.stdout, status.stderr)
        value = self.until(lambda: json.loads(self.execute(
            "prometheus", "curl", "-s", "http://127.0.0.1:9090/api/v1/query?query=weir_mount_up")
            .stdout)["data"]["result"])
        self.assertEqual(value[0]["value"][1], "1")
        refused = self.execute("donor1", "touch", "/usr/file")
        self.assertIn("Read-only file system", refused.stderr)


if __name__ == "__main__":
    missing = [tool for tool in ("etcd", "prometheus", "curl", "openssl", "setpriv", "unshare")
               if not shutil.which(tool)]
    if os.geteuid() or missing or "overlay" not in pathlib.Path("/proc/filesystems").read_text():
        print("skipped:", f"no {missing[0]}" if missing else "needs root and overlay file systems")
        sys.exit(77)
    unittest.main(verbosity=2)
