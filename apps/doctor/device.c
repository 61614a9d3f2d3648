/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks for RDMA devices, softnic's cipher, and whether softnic may copy between processes. */
#include "apps/common/device.h"
#include "apps/doctor/check.h"
#include "apps/doctor/sysfs.h"
#include "softnic/control/cipher.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

void check_rdma_devices(struct report *report)
{
	char name[64], path[PATH_MAX], state[64] = "state unknown";

	if (!sysfs_rdma_device(name, sizeof(name))) {
		report_add(report, "RDMA device", VERDICT_WARN,
			   "none: weir uses softnic, which reaches other hosts over UDP");
		report_remedy(report, "for speed between hosts: an RDMA NIC");
		return;
	}
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/state", name);
	sysfs_line(path, state, sizeof(state));
	if (access("/dev/infiniband/uverbs0", R_OK | W_OK)) {
		report_add(report, "RDMA device", VERDICT_FAIL,
			   "%s (%s), but /dev/infiniband/uverbs0: %s", name, state,
			   strerror(errno));
		report_remedy(report,
			      "modprobe ib_uverbs; in a container: --device /dev/infiniband");
		return;
	}
	report_add(report, "RDMA device", strstr(state, "ACTIVE") ? VERDICT_OK : VERDICT_WARN,
		   "%s, port 1 %s", name, state);
	if (!strstr(state, "ACTIVE"))
		report_remedy(report, "bring the link up: ip link set NETDEV up; rdma link");
}

/*
 * The child reads a word of the parent, as softnic's processes do. Yama forbids this direction
 * unless the parent has agreed by prctl().
 */
static bool child_reads_parent(int *error)
{
	static volatile long word = 0x77656972;
	long copy = 0;
	struct iovec local = { &copy, sizeof(copy) }, remote = { (void *)&word, sizeof(word) };
	int status = 0;
	pid_t pid;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	pid = fork();
	if (!pid) {
		ssize_t got = process_vm_readv(getppid(), &local, 1, &remote, 1, 0);

		_exit(got == sizeof(copy) && copy == word ? 0 : got < 0 ? errno : EIO);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status)) {
		*error = errno;
		return false;
	}
	*error = WEXITSTATUS(status);
	return !*error;
}

void check_softnic(struct report *report)
{
	char path[PATH_MAX];
	uint64_t scope = 0;
	bool yama = sysfs_number("/proc/sys/kernel/yama/ptrace_scope", &scope);
	int error;

	if (device_softnic_path(path, sizeof(path))) {
		report_add(report, "softnic", VERDICT_FAIL, "no library %s", path);
		report_remedy(report,
			      "build it (make build), or install all of weir (make install)");
		return;
	}
	report_add(report, "softnic", VERDICT_OK, "%s", path);

	if (child_reads_parent(&error)) {
		report_add(report, "memory attach", VERDICT_OK,
			   "processes may copy to each other%s", yama ? ", with Yama too" : "");
		return;
	}
	report_add(report, "memory attach", VERDICT_WARN,
		   "copying between processes is refused: %s%s", strerror(error),
		   yama && scope > 1 ? " (Yama's ptrace_scope)" : "");
	report_remedy(report,
		      "sysctl kernel.yama.ptrace_scope=1; in a container: --cap-add SYS_PTRACE "
		      "or a newer seccomp profile");
}

void check_encryption(struct report *report)
{
	const char *cipher = softnic_cipher();

	if (!strcmp(cipher, SOFTNIC_CIPHER_NONE)) {
		report_add(report, "encryption", VERDICT_WARN,
			   "no libsodium: softnic encrypts nothing, so with a key it reaches no "
			   "other host");
		report_remedy(report, "apt-get install libsodium23");
		return;
	}
	report_add(report, "encryption", VERDICT_OK, "%s between softnics with a key, as %s",
		   cipher,
		   !strcmp(cipher, SOFTNIC_CIPHER_AES) ?
			   "this CPU has AES instructions; ChaCha20-Poly1305 to a CPU without" :
			   "this CPU has no AES instructions");
}
