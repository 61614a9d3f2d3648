# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Where the processes of a campaign run: on this host, or on hosts of their own."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.support.hosts import Net  # noqa: E402

READ_URL = "import sys, urllib.request as u; " \
    "print(u.urlopen(sys.argv[1], sys.argv[2].encode(), 60).read().decode())"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Loopback:
    """Everything on this host, in clear text."""

    DONORS, CLIENTS, MEMORY, FILES = 4, 1, "24M", None
    key = None

    def __init__(self, weir, folder):
        del weir, folder

    def on(self, _process, *words, **variables):
        return ["env", *(f"{name}={value}" for name, value in variables.items()), *words]

    def listen(self, _donor):
        return "127.0.0.1:0"

    def etcd(self, _number):
        """The address of a server, its port for clients, and its port for other servers."""
        return "127.0.0.1", free_port(), free_port()

    def post(self, url, body):
        with urllib.request.urlopen(url, body.encode(), 60) as answer:
            return json.load(answer)

    def close(self):
        pass


class Hosts:
    """Network namespaces: six hosts with a donor each, of which three also have a server of etcd,
    and two with a client each. The mount is at the first client's host, the operator at the
    second's. Packets are encrypted."""

    DONORS, CLIENTS, MEMORY, FILES = 6, 2, "128M", "96M"
    OPERATOR = "h8"

    def __init__(self, weir, folder):
        self.net = Net(weir, "campaign")
        self.cleanups = []
        self.net.up(8, lambda *call: self.cleanups.append(call))
        self.key = os.path.join(folder, "key")
        subprocess.run([weir, "key", "new", self.key], check=True, capture_output=True)

    @staticmethod
    def host_of(process):
        """Donors are a, b, ..., servers and clients numbers from 0: etcd0, client0, ..."""
        if process.startswith("client"):
            return f"h{7 + int(process[-1])}"
        if process.startswith("etcd"):
            return f"h{1 + int(process[-1])}"
        return f"h{1 + 'abcdef'.index(process)}" if process in "abcdef" else Hosts.OPERATOR

    def on(self, process, *words, **variables):
        return self.net.on(self.host_of(process), *words, **variables)

    def listen(self, donor):
        return f"10.77.0.{self.host_of(donor)[1:]}"

    def etcd(self, number):
        return f"10.77.0.{1 + number}", 2379, 2380

    def post(self, url, body):
        done = subprocess.run(self.net.on(self.OPERATOR, sys.executable, "-c", READ_URL, url, body),
                              capture_output=True, text=True, check=True, timeout=100)
        return json.loads(done.stdout)

    def must(self, *words):
        done = self.net.run(*words)
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stderr}")

    def cut(self, process):
        self.must("link", self.host_of(process), "--down")

    def join(self, process):
        self.must("link", self.host_of(process), "--up")

    def split(self, hosts):
        """Part some hosts, h1, ..., from the others. All are joined by split([])."""
        self.must("split", *([",".join(hosts)] if hosts else []))

    def close(self):
        for function, *words in self.cleanups:
            function(*words)
