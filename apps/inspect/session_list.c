/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/inspect/session_list.h"
#include "apps/common/cmd.h"
#include "apps/inspect/memfd_scan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_known(const struct session_list *find, const struct stat *stat)
{
	for (size_t i = 0; i < find->count; i++)
		if (find->found[i].inode == stat->st_ino && find->found[i].device == stat->st_dev)
			return true;
	return false;
}

/* Skips files that are no statistics, and sessions already listed. */
static int add_session(void *arg, int fd, pid_t pid, const char *comm)
{
	struct session_list *find = arg;
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
	snprintf(found->comm, sizeof(found->comm), "%s", comm);
	find->count++;
	return 0;
}

int session_list_add_process(struct session_list *find, pid_t pid)
{
	const struct memfd_scan scan = { WEIR_STATS_SHM_NAME, add_session, find };

	return memfd_scan_process(&scan, pid);
}

int session_list_add_all(struct session_list *find)
{
	const struct memfd_scan scan = { WEIR_STATS_SHM_NAME, add_session, find };

	return memfd_scan_all(&scan);
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
