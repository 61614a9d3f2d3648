/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finds sessions of other processes by the statistics memory that each session keeps open. */
#ifndef WEIR_APPS_INSPECT_SESSION_LIST_H
#define WEIR_APPS_INSPECT_SESSION_LIST_H

#include "apps/inspect/stats_view.h"

#include <stddef.h>
#include <sys/types.h>

#define SESSION_LIST_MAX 1024

/**
 * struct found_session - a session of another process
 * @view: its statistics
 * @pid: the process
 * @comm: the process's name; printable
 * @device: of the statistics file; with @inode, identifies the session
 * @inode: of the statistics file
 */
struct found_session {
	struct stats_view view;
	pid_t pid;
	char comm[16];
	dev_t device;
	ino_t inode;
};

/**
 * struct session_list - sessions found; all zero: empty
 * @found: the sessions; session_list_free() frees them
 * @count: number of sessions, SESSION_LIST_MAX at most
 * @others: number of sessions of other, unreadable versions of weir
 */
struct session_list {
	struct found_session *found;
	size_t count;
	size_t others;
};

/**
 * session_list_add_process() - add sessions of a process that are not in the list yet
 *
 * Return: 0; -ESRCH no such process; -EACCES another user's process; -ENOMEM; other errors of
 * /proc.
 */
int session_list_add_process(struct session_list *find, pid_t pid);

/*
 * The same for all processes of this user, or of all users if root asks. Skips processes that may
 * not be inspected.
 */
int session_list_add_all(struct session_list *find);

void session_list_free(struct session_list *find);

/* Print why session_list_add_process() failed, or why it found nothing. Return: EXIT_FAILED. */
int session_list_failure(const char *cmd, pid_t pid, int rc);
int session_list_empty_failure(const struct session_list *find, const char *cmd, pid_t pid);

#endif
