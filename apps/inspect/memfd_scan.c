/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/inspect/memfd_scan.h"
#include "apps/common/pid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void read_comm(int process, char *comm, size_t size)
{
	int fd = openat(process, "comm", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : read(fd, comm, size - 1);

	if (fd >= 0)
		close(fd);
	comm[got > 0 ? got : 0] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
	pid_clean_comm(comm);
}

/* By the link target that /proc shows. */
static bool is_called(int fds, const char *entry, const char *name)
{
	char text[300], target[300];
	ssize_t length = readlinkat(fds, entry, text, sizeof(text));
	int wanted = snprintf(target, sizeof(target), "/memfd:%s (deleted)", name);

	return length == wanted && !memcmp(text, target, (size_t)wanted);
}

static int scan_descriptors(const struct memfd_scan *scan, DIR *fds, int process, pid_t pid)
{
	const struct dirent *entry;
	char comm[16];
	int fd, rc = 0;

	while (!rc && (entry = readdir(fds))) {
		if (!is_called(dirfd(fds), entry->d_name, scan->name))
			continue;
		/* The descriptor may have been reused: the open must not block. */
		fd = openat(dirfd(fds), entry->d_name,
			    O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			continue;
		read_comm(process, comm, sizeof(comm));
		rc = scan->found(scan->arg, fd, pid, comm);
		close(fd);
	}
	return rc;
}

int memfd_scan_process(const struct memfd_scan *scan, pid_t pid)
{
	char path[32];
	int process, fd, rc;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	process = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (process < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	fd = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fds = fd < 0 ? NULL : fdopendir(fd);
	rc = fds ? scan_descriptors(scan, fds, process, pid) :
	     errno == ENOENT ? -ESRCH : -errno;
	if (fds)
		closedir(fds);
	else if (fd >= 0)
		close(fd);
	close(process);
	return rc;
}

/* Root sees the processes of all users, others see their own. */
static bool process_is_visible(int proc, const char *name)
{
	struct stat stat;

	return !geteuid() || (!fstatat(proc, name, &stat, 0) && stat.st_uid == geteuid());
}

static bool includes_containers;

void memfd_scan_include_containers(bool containers)
{
	includes_containers = containers;
}

/* True for a process that does not tell, because its descriptors are not readable either. */
static bool is_in_our_network(int proc, const char *name)
{
	struct stat ours, other;
	char path[300];

	snprintf(path, sizeof(path), "%s/ns/net", name);
	return includes_containers || stat("/proc/self/ns/net", &ours) ||
	       fstatat(proc, path, &other, 0) ||
	       (ours.st_ino == other.st_ino && ours.st_dev == other.st_dev);
}

int memfd_scan_all(const struct memfd_scan *scan)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	int rc = 0;
	pid_t pid;

	if (!proc)
		return -errno;
	while (rc != -ENOMEM && (entry = readdir(proc)))
		if (pid_parse(entry->d_name, &pid) &&
		    process_is_visible(dirfd(proc), entry->d_name) &&
		    is_in_our_network(dirfd(proc), entry->d_name))
			rc = memfd_scan_process(scan, pid);
	closedir(proc);
	return rc == -ENOMEM ? rc : 0;
}

void memfd_scan_clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}
