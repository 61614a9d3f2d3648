# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""GlusterFS as a context manager, and the namespaces in which it leaves nothing behind."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from systems import START_SECONDS, Failed, staging, write_in_full  # noqa: E402

INSIDE = "WEIR_BENCH_FS_INSIDE"
GLUSTERD_STATE = "/var/lib/glusterd"
ADDRESS = "10.77.0.1"  # GlusterFS and libfabric need an address other than 127.0.0.1
MNT_DETACH = 2


def enter_namespaces():
    """As root, executes this program again in new mount, process and network namespaces.

    unshare ignores all signals but SIGKILL; when it dies, the kernel ends all processes inside.
    """
    unshare = shutil.which("unshare")
    if os.geteuid() or not unshare or os.environ.get(INSIDE):
        return
    inside = subprocess.Popen(
        [unshare, "--mount", "--propagation", "slave", "--pid", "--net", "--fork", "--kill-child",
         "--mount-proc", sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:]],
        env=dict(os.environ, **{INSIDE: "1"}), preexec_fn=staging.die_with_parent_at_once)
    try:
        sys.exit(inside.wait())
    except KeyboardInterrupt:
        inside.kill()
        inside.wait()
        sys.exit(130)


def run(*command, seconds=30):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=seconds)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def drop_mounts_of_others():
    """Unmounts inherited FUSE mounts: their servers would otherwise wait for this copy after an
    unmount.

    With shared mounts the kernel does this, but mounts in many containers are not shared.
    """
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = [line.split() for line in file]
    for mount in reversed(mounts):  # nested mounts come later
        if mount[mount.index("-") + 1].startswith("fuse"):
            path = mount[4].encode().decode("unicode_escape").encode("latin-1")
            staging.LIBC.umount2(path, MNT_DETACH)


def furnish():
    """Sets up the namespaces: addresses, and private places to write."""
    drop_mounts_of_others()
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{ADDRESS}/32", "dev", "lo")
    for path in ("/run", "/var/log", GLUSTERD_STATE):
        if os.path.isdir(path):
            run("mount", "-t", "tmpfs", "tmpfs", path)
    for path in ("/run/gluster", "/var/log/glusterfs"):
        os.makedirs(path)
    tempfile.tempdir = "/run"


def end_all_of_gluster():
    """Kills Gluster's background daemons. The namespace shows no other processes."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as file:
                if file.read().startswith("gluster"):
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass  # already ended


class Gluster:
    """A volume as `gluster volume create` makes it, over TCP: one brick on a tmpfs, or as many
    @replicas, which all have each byte.

    By default, Gluster completes a write while the data is still in the client's memory; with
    @through, only when the brick has the data, as all other systems here. @near: all of Gluster and
    the caller on one CPU, where wake-ups cost least; weir's mount comes as near to its caller by
    itself.
    """

    def __init__(self, size, through=False, near=False, fill=True, replicas=1):
        self.size, self.through, self.near, self.fill = size, through, near, fill
        self.replicas = replicas
        self.cpus = os.sched_getaffinity(0)

    def _gluster(self, *words):
        return run("gluster", "--mode=script", *words)

    def write_through(self, is_through):
        """See @through above. A mounted volume follows at once."""
        self._gluster("volume", "set", "v", "performance.write-behind",
                      "off" if is_through else "on")

    def _answers(self):
        try:
            self._gluster("volume", "list")
        except (Failed, subprocess.TimeoutExpired):
            return False
        return True

    def _start_daemon(self):
        self.daemon = subprocess.Popen(["glusterd", "-N"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       preexec_fn=staging.die_with_parent)
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.daemon.poll() is not None or time.monotonic() > deadline:
                raise Failed("glusterd does not answer")
            time.sleep(0.1)

    def __enter__(self):
        if not os.environ.get(INSIDE):
            raise Failed("it wants root, and util-linux's unshare")
        if not shutil.which("glusterd"):
            raise Failed("it is not installed: scripts/deps bench")
        self.dir = tempfile.mkdtemp(prefix="weir-")
        mnt = os.path.join(self.dir, "mnt")
        bricks = [os.path.join(self.dir, f"brick{number}") for number in range(self.replicas)]
        run("mount", "-t", "tmpfs", "-o", f"size={2 * self.size * self.replicas}", "tmpfs",
            self.dir)
        for path in (*bricks, mnt):
            os.mkdir(path)
        self.mnt = mnt
        if self.near:
            os.sched_setaffinity(0, {min(self.cpus)})
        try:
            self._start_daemon()
            replica = ["replica", str(self.replicas)] if self.replicas > 1 else []
            self._gluster("volume", "create", "v", *replica, "transport", "tcp",
                          *[f"{ADDRESS}:{brick}" for brick in bricks], "force")
            self.write_through(self.through)
            self._gluster("volume", "start", "v")
            run("mount.glusterfs", f"{ADDRESS}:/v", mnt)
            if self.fill:
                write_in_full(os.path.join(mnt, "data"), self.size)
        except BaseException:
            self.__exit__()
            raise
        return os.path.join(mnt, "data")

    def __exit__(self, *_exception):
        """Also after a failure, when parts no longer answer."""
        os.sched_setaffinity(0, self.cpus)
        if os.path.ismount(self.mnt):
            subprocess.run(["umount", "-l", self.mnt], timeout=60)
        for words in (("volume", "stop", "v", "force"), ("volume", "delete", "v")):
            try:
                self._gluster(*words)
            except (Failed, subprocess.TimeoutExpired):
                break
        end_all_of_gluster()
        self.daemon.wait()
        subprocess.run(["umount", "-l", self.dir], timeout=60)
        os.rmdir(self.dir)
        for left in os.listdir(GLUSTERD_STATE):
            path = os.path.join(GLUSTERD_STATE, left)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
