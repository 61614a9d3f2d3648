/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sessions of other processes, found by the ledgers that these have open. */
#ifndef WEIR_APPS_INSPECT_SESSION_LIST_H
#define WEIR_APPS_INSPECT_SESSION_LIST_H

#include "apps/inspect/stats_view.h"

#include <stddef.h>
#include <sys/types.h>

#define SESSION_LIST_MAX 1024

/**
 * struct found_session - a session
 * @pid, @comm: of its process; the name is printable
 * @device, @inode: of the ledger's file, by which it is known again
 */
struct found_session {
	struct stats_view view;
	pid_t pid;
	char comm[16];
	dev_t device;
	ino_t inode;
};

/**
 * struct session_list - @found[@count], SESSION_LIST_MAX at most; zeroed, it is empty, and session_list_free() ends it
 * @others: ledgers seen that only another version of weir can read
 */
struct session_list {
	struct found_session *found;
	size_t count;
	size_t others;
};

/**
 * session_list_add_process() - add the sessions of a process that are not there yet
 *
 * Return: 0; -ESRCH no such process; -EACCES it may not be looked into: another user's; -ENOMEM;
 * what /proc says otherwise.
 */
int session_list_add_process(struct session_list *find, pid_t pid);

/* The same for all processes of this user; those that may not be looked into are left out. */
int session_list_add_all(struct session_list *find);

void session_list_free(struct session_list *find);

/* Say why session_list_add_process() failed, or why it found nothing. Return: EXIT_FAILED. */
int session_list_failure(const char *cmd, pid_t pid, int rc);
int session_list_empty_failure(const struct session_list *find, const char *cmd, pid_t pid);

#endif
