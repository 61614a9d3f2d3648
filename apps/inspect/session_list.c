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

/* The link target by which /proc shows a memfd. */
static const char target[] = "/memfd:" WEIR_STATS_SHM_NAME " (deleted)";

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

static bool is_known(const struct session_list *find, const struct stat *stat)
{
	for (size_t i = 0; i < find->count; i++)
		if (find->found[i].inode == stat->st_ino && find->found[i].device == stat->st_dev)
			return true;
	return false;
}

/* Skips descriptors that are no statistics, and sessions already listed. */
static int add_session(struct session_list *find, int fd, int process, pid_t pid)
{
	struct found_session *found;
	struct stat stat;
	int rc;

	if (fstat(fd, &stat) || is_known(find, &stat) || find->count == SESSION_LIST_MAX)
		return 0;
	found = reallocarray(find->found, find->count + 1, sizeof(*found));
	if (!found)
		return -ENOMEM;
	find->found = found;
	found += find->count;
	rc = stats_view_open(&found->view, fd);
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

static int add_open_files(struct session_list *find, DIR *fds, int process, pid_t pid)
{
	const struct dirent *entry;
	int fd, rc = 0;

	while (!rc && (entry = readdir(fds))) {
		if (!is_called_ledger(dirfd(fds), entry->d_name))
			continue;
		/* The descriptor may have been reused: the open must not block. */
		fd = openat(dirfd(fds), entry->d_name,
			    O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			continue;
		rc = add_session(find, fd, process, pid);
		close(fd);
	}
	return rc;
}

int session_list_add_process(struct session_list *find, pid_t pid)
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
	rc = fds ? add_open_files(find, fds, process, pid) : errno == ENOENT ? -ESRCH : -errno;
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

int session_list_add_all(struct session_list *find)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	int rc = 0;
	pid_t pid;

	if (!proc)
		return -errno;
	while (rc != -ENOMEM && (entry = readdir(proc)))
		if (pid_parse(entry->d_name, &pid) &&
		    process_is_visible(dirfd(proc), entry->d_name))
			rc = session_list_add_process(find, pid);
	closedir(proc);
	return rc == -ENOMEM ? rc : 0;
}

void session_list_free(struct session_list *find)
{
	for (size_t i = 0; i < find->count; i++)
		stats_view_close(&find->found[i].view);
	free(find->found);
	*find = (struct session_list){ 0 };
}

int session_list_failure(const char *cmd, pid_t pid, int err)
{
	switch (err) {
	case -ESRCH:
		return failure(cmd, "%d: no such process", pid);
	case -EACCES:
	case -EPERM:
		return failure(cmd,
			       "%d: another user's process: only that user and root may "
			       "inspect it",
			       pid);
	default:
		return failure(cmd, "%d: %s", pid, strerror(-err));
	}
}

int session_list_empty_failure(const struct session_list *find, const char *cmd, pid_t pid)
{
	if (find->others)
		return failure(cmd,
			       "%d: runs another version of weir, which this version cannot "
			       "read",
			       pid);
	return failure(cmd, "%d: no session open; weir stat lists processes with sessions",
		       pid);
}
