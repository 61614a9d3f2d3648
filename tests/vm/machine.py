# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A virtual machine whose root is this machine's own, and its job.

A job is a directory of the host, visible to the guest as /run/vm: the host puts commands there,
the guest results.
"""
import os
import shutil
import subprocess
import time

import complaints
import counter
import initramfs
import kernel

CONSOLE_LINES = 60
EMULATOR = "qemu-system-x86_64"
ALIVE = b"weir-vm: alive"
KVM = ("-accel", "kvm", "-cpu", "host")
# Each TLB miss walks the page tables in software: four levels are faster than five. By "rep movsb"
# the emulator moves a byte at a time; kernel and C library prefer that where ERMS says it is fast.
TCG = ("-accel", "tcg,thread=multi", "-cpu", "max,la57=off,erms=off")
# Options against costs of an emulated kernel that no test needs: reading the time from a device if
# the TSC is distrusted; retpolines; zeroing of pages; and address randomisation, which makes the
# emulator translate each program again. Also skips the timer check, which panics on a loaded
# machine.
# A CPU that has not scheduled for two minutes hangs: a panic says where, and ends the guest.
APPEND = ("console=ttyS0 panic=-1 tsc=reliable mitigations=off init_on_alloc=0 norandmaps "
          "rcupdate.rcu_expedited=1 no_timer_check watchdog_thresh=60 softlockup_panic=1")
# Console output of a debug kernel, with warnings; and of other kernels. By default KASAN reports
# only once, and Soft-RoCE of Linux 6.1 causes a report.
LOUD, QUIET = "loglevel=5 kasan_multi_shot", "quiet"
# A kernel under working KVM prints within a second or two; under broken KVM, never.
KVM_SECONDS = 30
HERE = os.path.dirname(os.path.abspath(__file__))


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def say(title, data):
    print(f"--- {title}\n{data.decode(errors='replace').rstrip()}\n---", flush=True)


def tail(data):
    return b"\n".join(data.splitlines()[-CONSOLE_LINES:])


def look_for_programs():
    """Raises kernel.Unavailable if no virtual machine can run."""
    for program in (EMULATOR, "busybox"):
        if not shutil.which(program):
            raise kernel.Unavailable(f"there is no {program}")


def prepare(of):
    """Kernel @of and its initramfs, as a pair."""
    return of, initramfs.make(of, shutil.which("busybox"))


class Machine:
    """One guest, which runs run.ROLE of its job and writes ROLE.console.

    "alone" is a single host; "near" and "far" are two hosts on one wire and share a job; start
    the far guest first. @disk: a file for /dev/vda.
    """

    def __init__(self, prepared, job, role="alone", memory="3G", disk=None):
        self.kernel, archive = prepared
        self.job = job
        self.role = role
        self.console = os.path.join(job, f"{role}.console")
        self.archive = os.path.join(job, "initramfs")
        self.wire = os.path.join(job, "wire")
        self.shape = ["-m", memory, "-smp", f"{self.processors()},maxcpus=2", *self.network()]
        if disk:
            self.shape += ["-drive", f"file={disk},if=virtio,format=raw,cache=none"]
        self.process = None
        self.cpu = 0
        write(self.archive, archive)
        write(os.path.join(job, "modules"), self.kernel.modules)
        shutil.copy(os.path.join(HERE, "guest"), job)

    def processors(self):
        """Number of the guest's CPUs, at most as many as this machine can spare. A waiting CPU of
        the guest spins, perhaps for a CPU that is not running: two guests with two CPUs each, on
        a machine with two, take twice as long as two guests with one each.

        A guest limited to one CPU makes QEMU omit memory barriers (no CF_PARALLEL), although
        QEMU's devices run in parallel: a kick of a virtio queue gets lost, and the guest stops
        sending. So each guest has a maximum of two."""
        own = len(os.sched_getaffinity(0))
        return max(1, min(2, own if self.role == "alone" else own // 2))

    def network(self):
        """Datagrams: a frame arrives whole or not at all, as on a wire."""
        if self.role == "alone":
            return []
        ends = [self.wire, self.wire + ".near"]
        address = "02:00:00:00:00:02"
        if self.role == "near":
            ends.reverse()
            address = "02:00:00:00:00:01"
        return ["-netdev", f"dgram,id=wire,local.type=unix,local.path={ends[0]},"
                f"remote.type=unix,remote.path={ends[1]}",
                "-device", f"virtio-net-pci,netdev=wire,mac={address}"]

    def loudness(self):
        return LOUD if self.kernel.looks_for_mistakes else QUIET

    def complaints(self):
        """Reports of a debug kernel."""
        if not self.kernel.looks_for_mistakes:
            return []
        return complaints.of_log(read(self.console).decode(errors="replace"))

    def hung_elsewhere(self):
        return complaints.is_hang_of_others(read(self.console).decode(errors="replace"))

    def lockdep_gave_up(self):
        return complaints.LOCKDEP_IS_OFF in read(self.console).decode(errors="replace")

    def clock(self, accelerator):
        """Clock options of an emulated kernel; other kernels need none."""
        khz = counter.khz() if accelerator == TCG else None
        return f" tsc_early_khz={khz}" if khz else ""

    def command(self, accelerator, *console):
        share = "local,path={},mount_tag={},security_model=none,multidevs=remap"
        return [
            EMULATOR,
            *accelerator,
            *self.shape,
            "-no-reboot",
            "-display",
            "none",
            "-nodefaults",
            *console,
            "-kernel",
            self.kernel.image,
            "-initrd",
            self.archive,
            "-append",
            f"{APPEND} {self.loudness()} weir.role={self.role}{self.clock(accelerator)}",
            "-virtfs",
            share.format("/", "host") + ",readonly=on",
            "-virtfs",
            share.format(self.job, "job"),
        ]

    def spawn(self, accelerator):
        self.process = subprocess.Popen(
            self.command(accelerator, "-serial", f"file:{self.console}"),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def comes_alive(self):
        """Does the guest print anything in time?"""
        deadline = time.monotonic() + KVM_SECONDS
        while time.monotonic() < deadline and self.is_running() and \
                ALIVE not in read(self.console):
            time.sleep(0.05)
        return ALIVE in read(self.console)

    def kvm_works(self):
        """Does KVM work? /dev/kvm may exist without working, so this tries a guest, once per
        boot."""
        if not os.access("/dev/kvm", os.R_OK | os.W_OK):
            return False
        known = os.path.join(kernel.cache(), "kvm")
        boot = read("/proc/sys/kernel/random/boot_id")
        if not read(known).startswith(boot):
            self.spawn(KVM)
            works = self.comes_alive()
            self.stop()
            write(known, boot + (b"works" if works else b"runs nothing"))
        return read(known).endswith(b"works")

    def start(self):
        self.spawn(KVM if self.kvm_works() else TCG)
        while self.role == "far" and self.is_running() and not os.path.exists(self.wire):
            time.sleep(0.05)

    def interact(self):
        """Runs with the terminal as its console; ctrl-a x ends it."""
        accelerator = KVM if self.kvm_works() else TCG
        return subprocess.run(self.command(accelerator, "-serial", "mon:stdio")).returncode

    def cpu_seconds(self):
        """CPU time of the guest; after its end, the last value seen."""
        ticks = read(f"/proc/{self.process.pid}/stat").rpartition(b")")[2].split()[11:13]
        if ticks:
            self.cpu = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        return self.cpu

    def is_running(self):
        self.cpu_seconds()
        return self.process.poll() is None

    def stop(self):
        self.process.kill()
        self.process.wait()
