# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A cluster: its processes, its network and its file of state.

The keeper is a shell in a network and mount namespace of its own. There, one bridge joins one
port a host. Below the keeper, a holder sleeps in the namespaces of each host: network, mount,
hostname and IPC. Without privilege, all live in one user namespace, whose root they are. No
device leads out, so clusters disturb neither each other nor the machine.

The kernel removes a namespace with its last process. A holder dies with the keeper. Commands in
the hosts have the cluster's token in the environment, so that 'down' finds them even after the
keeper was killed.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import uuid

from lab.net import link

HOSTS_MAX = 200
TOKEN = "WEIR_NET_TOKEN"
NAME = "WEIR_NET"  # the cluster's name, for commands in it
SUBNET, SUBNET6 = "10.77.0", "fd77:6569:7200::"
TERM_S, KILL_S = 2, 10
SEARCH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
PACKAGES = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux",
            "setpriv": "util-linux", "hostname": "hostname"}

# Arguments: the hosts' names. Each holder prints a line when its namespaces exist.
KEEPER = """for host; do
	setpriv --pdeathsig KILL unshare --net --uts --ipc --mount sh -c '
		hostname "$0" && echo "$0" $$ && exec sleep infinity >/dev/null' "$host" &
done
exec >/dev/null
wait"""

HOST_SETUP = """ip -batch - && mount --bind "$0" /etc/hosts &&
	if [ -d /dev/shm ]; then mount -t tmpfs -o mode=1777 shm /dev/shm; fi"""


class Failure(Exception):
    """The cluster cannot do what was asked."""


def _run(arguments, given=""):
    """Runs a tool. Raises Failure with the tool's words."""
    done = subprocess.run(arguments, input=given, capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": SEARCH})
    if done.returncode:
        said = done.stderr.strip() or f"exit status {done.returncode}"
        if "qdisc kind is unknown" in said:
            raise Failure(link.NO_NETEM)
        raise Failure(f"{' '.join(map(str, arguments[-3:]))}: {said}")


def _need_tools():
    for tool, package in PACKAGES.items():
        if not shutil.which(tool, path=SEARCH):
            raise Failure(f"found no '{tool}': install the package {package}")


def _remedy():
    """The setting that stops an unprivileged user on this machine, if the kernel shows one."""
    for path, bad, setting in (
            ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
            ("kernel/apparmor_restrict_unprivileged_userns", "1",
             "kernel.apparmor_restrict_unprivileged_userns=0"),
            ("user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
            ("user/max_net_namespaces", "0", "user.max_net_namespaces=10000")):
        with contextlib.suppress(OSError):
            if pathlib.Path("/proc/sys", path).read_text(encoding="ascii").strip() == bad:
                return f"as root, 'sysctl {setting}', or run the lab as root"
    return ("run as root; a container needs the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN "
            "(docker run --privileged)")


def folder():
    """The folder with the clusters' state, which belongs to this user alone."""
    user = os.geteuid()
    for base in (os.environ.get("XDG_RUNTIME_DIR", ""), "/run"):
        with contextlib.suppress(OSError):
            if base and os.stat(base).st_uid == user and os.access(base, os.W_OK):
                path = pathlib.Path(base, "weir-net")
                break
    else:
        path = pathlib.Path(tempfile.gettempdir(), f"weir-net-{user}")
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user or found.st_mode & 0o077:
        raise Failure(f"{path} is not a private folder of this user: remove it")
    return path


@contextlib.contextmanager
def locked():
    """One command at a time changes clusters."""
    with open(folder() / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _started(pid):
    """When a process started, in the kernel's ticks: with the PID, a name that is never reused."""
    try:
        said = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = said.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def _network_of(pid):
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return None


class Process:
    """A keeper or holder, recognised after its PID has gone to another process."""

    def __init__(self, pid, started=None):
        self.pid = pid
        self.started = started or _started(pid)

    def lives(self):
        return self.started is not None and _started(self.pid) == self.started

    def as_json(self):
        return {"pid": self.pid, "started": self.started}


class Host:
    """A host: its holder, its addresses and its link."""

    def __init__(self, name, holder, state):
        self.name = name
        self.holder = holder
        self.link = state.get("link", {})
        self.up = state.get("up", True)
        self.group = state.get("group", 0)

    @property
    def number(self):
        return int(self.name[1:])

    @property
    def ipv4(self):
        return f"{SUBNET}.{self.number}"

    @property
    def ipv6(self):
        return f"{SUBNET6}{self.number}"

    def as_json(self):
        return {"name": self.name, "ipv4": self.ipv4, "ipv6": self.ipv6,
                "holder": self.holder.as_json(), "alive": self.holder.lives(), "up": self.up,
                "group": self.group, "link": self.link}


class Cluster:
    """Changes need the lock. @user: the cluster lives in a user namespace."""

    def __init__(self, name, token, user, keeper, hosts):
        self.name, self.token, self.user, self.keeper = name, token, user, keeper
        self.hosts = hosts

    @classmethod
    def load(cls, name):
        """Raises Failure if there is no such cluster."""
        try:
            state = json.loads((folder() / f"{name}.json").read_text(encoding="ascii"))
        except FileNotFoundError:
            others = ", ".join(sorted(path.stem for path in folder().glob("*.json")))
            raise Failure(f"cluster '{name}' is not up" +
                          (f"; up: {others} (see --name)" if others else "")) from None
        hosts = {host["name"]: Host(host["name"], Process(**host["holder"]), host)
                 for host in state["hosts"]}
        return cls(name, state["token"], state["user"], Process(**state["keeper"]), hosts)

    def as_json(self):
        return {"name": self.name, "token": self.token, "user": self.user,
                "keeper": self.keeper.as_json(), "alive": self.keeper.lives(),
                "hosts": [host.as_json() for host in self.hosts.values()]}

    def save(self):
        path = folder() / f"{self.name}.json"
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(self.as_json()), encoding="ascii")
        os.replace(unfinished, path)

    @classmethod
    def up(cls, name, count, mtu, attached):
        """Starts a cluster. @attached: the cluster's processes die with this one. After a failure
        nothing is left.
        """
        _need_tools()
        if (folder() / f"{name}.json").exists():
            before = cls.load(name)
            if before.keeper.lives():
                raise Failure(f"cluster '{name}' is up already, with {len(before.hosts)} hosts: "
                              "'weir lab net down', or choose another --name")
            before.down()
        token = uuid.uuid4().hex
        names = [f"h{number}" for number in range(1, count + 1)]
        user, child = _start_keeper(token, names, attached)
        cluster = cls(name, token, user, Process(child.pid), {})
        try:
            cluster.save()
            for _ in names:
                host, _, pid = child.stdout.readline().partition(" ")
                if not pid:
                    child.kill()  # ends the holders, too, so that the pipe ends
                    raise Failure(f"cannot make the hosts' namespaces: {child.stderr.read()}")
                cluster.hosts[host] = Host(host, Process(int(pid)), {})
            cluster.hosts = {host: cluster.hosts[host] for host in names}
            cluster.save()
            cluster._connect(mtu)
        except BaseException:
            cluster.down()
            raise
        child.stdout.close()
        child.stderr.close()
        return cluster

    def enter(self, pid, command):
        """The command line that runs @command in the namespaces of @pid."""
        user = ["--user", "--preserve-credentials"] if self.user else []
        return ["nsenter", "--target", str(pid), *user, "--net", "--uts", "--ipc", "--mount",
                "--root", "--", *command]

    def host(self, name):
        """Raises Failure if the host does not exist or has died."""
        if name not in self.hosts:
            raise Failure(f"no host '{name}' in cluster '{self.name}': h1 to h{len(self.hosts)}")
        if not self.hosts[name].holder.lives():
            raise Failure(f"the process that holds {name} was killed: 'weir lab net down', then up")
        return self.hosts[name]

    def command(self, host, command):
        """Command line and environment that run @command as a user of @host would."""
        line = self.enter(host.holder.pid, ["env", "-C", os.getcwd(), *command])
        return line, {**os.environ, "PATH": SEARCH, TOKEN: self.token, NAME: self.name}

    def _connect(self, mtu):
        """Gives the hosts their ports, addresses and names."""
        ipv6 = os.path.exists("/proc/net/if_inet6")
        lines = ["link set lo up", "link add br0 type bridge", "link set br0 up"]
        for host in self.hosts.values():
            lines += [f"link add {host.name} mtu {mtu} type veth peer name eth0 mtu {mtu} "
                      f"netns {host.holder.pid}", f"link set {host.name} master br0 up"]
        _run(self.enter(self.keeper.pid, ["ip", "-batch", "-"]), "\n".join(lines))
        names = folder() / f"{self.name}.hosts"
        names.write_text("127.0.0.1 localhost\n::1 localhost\n" + "".join(
            f"{host.ipv4} {host.name}\n" + (f"{host.ipv6} {host.name}\n" if ipv6 else "")
            for host in self.hosts.values()), encoding="ascii")
        names.chmod(0o644)
        for host in self.hosts.values():
            lines = ["link set lo up", "link set eth0 up", f"addr add {host.ipv4}/24 dev eth0"]
            if ipv6:
                lines.append(f"addr add {host.ipv6}/64 dev eth0 nodad")
            _run(self.enter(host.holder.pid, ["sh", "-c", HOST_SETUP, names]), "\n".join(lines))

    def set_link(self, host, wanted):
        """Gives both directions of the host's link the same faults and the same rate. If the
        kernel refuses, the link is as before.
        """
        for pid, device in ((self.keeper.pid, host.name), (host.holder.pid, "eth0")):
            try:
                self._set_queue(pid, device, host.link, wanted)
            except Failure:
                if device == "eth0":
                    self._set_queue(self.keeper.pid, host.name, wanted, host.link)
                raise
        host.link = wanted

    def _set_queue(self, pid, device, before, wanted):
        tc = self.enter(pid, ["tc", "-batch", "-"])
        if before:
            _run(tc, f"qdisc del dev {device} root")
        try:
            _run(tc, "\n".join(link.tc_lines(wanted, device)))
        except Failure:
            _run(self.enter(pid, ["sh", "-c", f"tc qdisc del dev {device} root 2>&1 || true"]))
            _run(tc, "\n".join(link.tc_lines(before, device)))
            raise

    def set_up(self, host, is_up):
        """Plugs the host's cable in or out."""
        _run(self.enter(self.keeper.pid,
                        ["ip", "link", "set", host.name, "up" if is_up else "down"]))
        host.up = is_up

    def split(self, groups):
        """Joins the hosts of each group by a bridge of their own. @groups: lists of hosts."""
        group_of = {host.name: number for number, group in enumerate(groups, 1) for host in group}
        lines = []
        for number in sorted(set(group_of.values()) - {host.group for host in self.hosts.values()}):
            lines += [f"link add br{number} type bridge", f"link set br{number} up"]
        for host in self.hosts.values():
            lines.append(f"link set {host.name} master br{group_of.get(host.name, 0)}")
        unused = {host.group for host in self.hosts.values()} - set(group_of.values()) - {0}
        lines += [f"link del br{number}" for number in sorted(unused)]
        _run(self.enter(self.keeper.pid, ["ip", "-batch", "-"]), "\n".join(lines))
        for host in self.hosts.values():
            host.group = group_of.get(host.name, 0)

    def _holders(self):
        return [self.keeper, *(host.holder for host in self.hosts.values())]

    def processes(self):
        """PIDs of the commands in the hosts. A network namespace's number may be reused once its
        holder has died; from then on only the token counts.
        """
        holders = self._holders()
        networks = {_network_of(holder.pid) for holder in holders if holder.lives()}
        token = f"{TOKEN}={self.token}".encode()
        found = []
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            environment = b""
            with contextlib.suppress(OSError):
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
            if token in environment.split(b"\0") or _network_of(pid) in networks - {None}:
                found.append(pid)
        return sorted(set(found) - {holder.pid for holder in holders} - {os.getpid()})

    def down(self):
        """Ends the commands in the hosts and the cluster, whatever is left of it."""
        begin, asked = time.monotonic(), set()
        while (left := self.processes()) and time.monotonic() < begin + KILL_S:
            is_late = time.monotonic() > begin + TERM_S
            for pid in left if is_late else set(left) - asked:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL if is_late else signal.SIGTERM)
            asked.update(left)
            time.sleep(0.02)
        while (holders := [it.pid for it in self._holders() if it.lives()]) and \
                time.monotonic() < begin + 2 * KILL_S:
            for pid in holders:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        for end in (".json", ".hosts"):
            (folder() / f"{self.name}{end}").unlink(missing_ok=True)
        if left := left + holders:
            raise Failure(f"these processes of cluster '{self.name}' do not end: "
                          f"{', '.join(map(str, left))}")


def _start_keeper(token, names, attached):
    """Returns whether the keeper has a user namespace, and its process. Root tries without one
    first: there, all users and modules of the machine work.
    """
    dies = ["setpriv", "--pdeathsig", "KILL"] if attached else []
    said = ""
    for user in ([], ["--user", "--map-root-user"]):
        if not user and os.geteuid():
            continue
        # pylint: disable-next=consider-using-with
        child = subprocess.Popen(
            [*dies, "unshare", *user, "--net", "--mount", "--uts", "--ipc", "sh", "-c",
             f"echo ready; {KEEPER}", "keeper", *names], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "PATH": SEARCH, TOKEN: token})
        if child.stdout.readline():
            return bool(user), child
        said = child.communicate()[1].strip()
    raise Failure(f"cannot make namespaces: {re.sub('^unshare: ', '', said)}: {_remedy()}")
