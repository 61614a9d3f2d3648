/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/inspect/session_list.h"
#include "apps/common/cmd.h"
#include "apps/common/pid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As the kernel shows a memfd. */
static const char target[] = "/memfd:" WEIR_LEDGER_NAME " (deleted)";

static void read_comm(int process, char *comm, size_t size)
{
	int fd = openat(process, "comm", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : read(fd, comm, size - 1);

	if (fd >= 0)
		close(fd);
	comm[got > 0 ? got : 0] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
	for (char *c = comm; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

static bool is_known(const struct find *find, const struct stat *stat)
{
	for (size_t i = 0; i < find->count; i++)
		if (find->found[i].inode == stat->st_ino && find->found[i].device == stat->st_dev)
			return true;
	return false;
}

/* What is no ledger, or is one already known, is passed over. */
static int add(struct find *find, int fd, int process, pid_t pid)
{
	struct found *found;
	struct stat stat;
	int rc;

	if (fstat(fd, &stat) || is_known(find, &stat) || find->count == FIND_MAX)
		return 0;
	found = reallocarray(find->found, find->count + 1, sizeof(*found));
	if (!found)
		return -ENOMEM;
	find->found = found;
	found += find->count;
	rc = view_open(&found->view, fd);
	find->others += rc == -EPROTONOSUPPORT;
	if (rc)
		return rc == -ENOMEM ? rc : 0;
	found->pid = pid;
	found->device = stat.st_dev;
	found->inode = stat.st_ino;
	read_comm(process, found->comm, sizeof(found->comm));
	find->count++;
	return 0;
}

static bool is_called_ledger(int fds, const char *name)
{
	char text[sizeof(target)];

	return readlinkat(fds, name, text, sizeof(text)) == sizeof(target) - 1 &&
	       !memcmp(text, target, sizeof(target) - 1);
}

static int look_at(struct find *find, DIR *fds, int process, pid_t pid)
{
	const struct dirent *entry;
	int fd, rc = 0;

	while (!rc && (entry = readdir(fds))) {
		if (!is_called_ledger(dirfd(fds), entry->d_name))
			continue;
		/* By now it may be something else, which must not hold us up. */
		fd = openat(dirfd(fds), entry->d_name,
			    O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			continue;
		rc = add(find, fd, process, pid);
		close(fd);
	}
	return rc;
}

int find_in(struct find *find, pid_t pid)
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
	rc = fds ? look_at(find, fds, process, pid) : errno == ENOENT ? -ESRCH : -errno;
	if (fds)
		closedir(fds);
	else if (fd >= 0)
		close(fd);
	close(process);
	return rc;
}

static bool is_mine(int proc, const char *name)
{
	struct stat stat;

	return !fstatat(proc, name, &stat, 0) && stat.st_uid == geteuid();
}

int find_all(struct find *find)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	int rc = 0;
	pid_t pid;

	if (!proc)
		return -errno;
	while (rc != -ENOMEM && (entry = readdir(proc)))
		if (pid_parse(entry->d_name, &pid) && is_mine(dirfd(proc), entry->d_name))
			rc = find_in(find, pid);
	closedir(proc);
	return rc == -ENOMEM ? rc : 0;
}

void find_free(struct find *find)
{
	for (size_t i = 0; i < find->count; i++)
		view_close(&find->found[i].view);
	free(find->found);
	*find = (struct find){ 0 };
}

int find_failure(const char *cmd, pid_t pid, int err)
{
	switch (err) {
	case -ESRCH:
		return failure(cmd, "%d: no such process", pid);
	case -EACCES:
	case -EPERM:
		return failure(cmd, "%d: another user's process: only that user and root may look "
				    "into it", pid);
	default:
		return failure(cmd, "%d: %s", pid, strerror(-err));
	}
}

int find_nothing(const struct find *find, const char *cmd, pid_t pid)
{
	if (find->others)
		return failure(cmd, "%d: it runs another version of weir, which this one cannot "
				    "read", pid);
	return failure(cmd, "%d: it has no session open; weir stat lists those that have", pid);
}
