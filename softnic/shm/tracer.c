// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The kernel does not say who may attach to a process. So this file asks what the kernel asks in
 * __ptrace_may_access() of kernel/ptrace.c. It leaves out Landlock and other security modules,
 * because no process can read their rules for another. Each doubt means no: a peer that the kernel
 * does allow more opens our memory, or copies by cross-memory attach, which the kernel itself
 * checks.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "softnic/control/config.h"
#include "tracer.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5, asm-generic/socket.h */
#endif
#define PIDFS_MAGIC 0x50494446 /* linux/magic.h */

enum { REAL, EFFECTIVE, SAVED, IDS };

struct credentials {
	int pid;
	unsigned int uid[IDS], gid[IDS];
	uint64_t permitted; /* capabilities */
	char label[256]; /* AppArmor's or SELinux's; empty without such a module */
};

static bool parse_status(FILE *status, struct credentials *c)
{
	char line[256];
	int found = 0;

	while (fgets(line, sizeof(line), status)) {
		found += sscanf(line, "Pid: %d", &c->pid) == 1;
		found += sscanf(line, "Uid: %u %u %u", &c->uid[REAL], &c->uid[EFFECTIVE],
				&c->uid[SAVED]) == IDS;
		found += sscanf(line, "Gid: %u %u %u", &c->gid[REAL], &c->gid[EFFECTIVE],
				&c->gid[SAVED]) == IDS;
		found += sscanf(line, "CapPrm: %" SCNx64, &c->permitted) == 1;
	}
	return found == 4;
}

static bool read_credentials(pid_t pid, struct credentials *c)
{
	char path[64];
	FILE *file;
	bool ok;

	*c = (struct credentials){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	ok = file && parse_status(file, c);
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "/proc/%d/attr/current", (int)pid);
	file = ok ? fopen(path, "re") : NULL;
	if (file) {
		(void)!fread(c->label, 1, sizeof(c->label), file);
		fclose(file);
	}
	return ok && c->pid == (int)pid;
}

int tracer_yama_scope(void)
{
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char scope;
	bool known;

	if (fd < 0)
		return 0;
	known = read(fd, &scope, 1) == 1 && scope >= '0' && scope <= '3';
	close(fd);
	return known ? scope - '0' : 0;
}

bool tracer_shares_namespace(pid_t pid, const char *kind)
{
	struct stat theirs, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	if (stat(path, &theirs))
		return false;
	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	return !stat(path, &ours) && theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev;
}

/* The kernel compares the peer's real IDs with all three of ours. */
static bool may_attach(const struct credentials *peer, const struct credentials *own)
{
	int i;

	for (i = 0; i < IDS; i++)
		if (own->uid[i] != peer->uid[REAL] || own->gid[i] != peer->gid[REAL])
			return false;
	return !(own->permitted & ~peer->permitted) &&
	       !memcmp(own->label, peer->label, sizeof(own->label));
}

/* The inode of a process, which no other process has before the machine starts again. */
static bool identify(int fd, ino_t *process)
{
	int pidfd;
	socklen_t len = sizeof(pidfd);
	struct statfs fs;
	struct stat st;
	bool known;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len))
		return false;
	known = !fstatfs(pidfd, &fs) && fs.f_type == PIDFS_MAGIC && !fstat(pidfd, &st);
	close(pidfd);
	if (known)
		*process = st.st_ino;
	return known;
}

bool tracer_is_same(int fd, int other)
{
	ino_t a, b;

	if (!identify(fd, &a) || !identify(other, &b))
		return config_get()->value[OPTION_TRUST_USER];
	return a == b;
}

/* Before Linux 6.5 this cannot be known: the answer is yes. */
static bool is_alive(int fd)
{
	struct pollfd process = { .events = POLLIN };
	socklen_t len = sizeof(process.fd);
	bool alive;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process.fd, &len))
		return errno == ENOPROTOOPT;
	alive = poll(&process, 1, 0) == 0;
	close(process.fd);
	return alive;
}

/*
 * Our own entry shows that /proc is our PID namespace's. The last question shows that @pid meant
 * the peer until then.
 */
bool tracer_is_allowed(int fd, pid_t pid)
{
	struct credentials own, peer;

	if (config_get()->value[OPTION_TRUST_USER])
		return true;
	return pid && prctl(PR_GET_DUMPABLE) == 1 && read_credentials(getpid(), &own) &&
	       tracer_shares_namespace(getpid(), "pid") && read_credentials(pid, &peer) &&
	       may_attach(&peer, &own) && tracer_shares_namespace(pid, "user") &&
	       tracer_shares_namespace(pid, "pid") && is_alive(fd);
}
