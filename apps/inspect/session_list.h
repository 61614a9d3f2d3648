/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sessions of other processes, found by the ledgers that these have open. */
#ifndef WEIR_APPS_INSPECT_SESSION_LIST_H
#define WEIR_APPS_INSPECT_SESSION_LIST_H

#include "apps/inspect/stats_view.h"

#include <stddef.h>
#include <sys/types.h>

#define FIND_MAX 1024

/**
 * struct found - a session
 * @pid, @comm: of its process; the name is printable
 * @device, @inode: of the ledger's file, by which it is known again
 */
struct found {
	struct view view;
	pid_t pid;
	char comm[16];
	dev_t device;
	ino_t inode;
};

/**
 * struct find - @found[@count], FIND_MAX at most; zeroed, it is empty, and find_free() ends it
 * @others: ledgers seen that only another version of weir can read
 */
struct find {
	struct found *found;
	size_t count;
	size_t others;
};

/**
 * find_in() - add the sessions of a process that are not there yet
 *
 * Return: 0; -ESRCH no such process; -EACCES it may not be looked into: another user's; -ENOMEM;
 * what /proc says otherwise.
 */
int find_in(struct find *find, pid_t pid);

/* The same for all processes of this user; those that may not be looked into are left out. */
int find_all(struct find *find);

void find_free(struct find *find);

/* Say why find_in() failed, or why it found nothing. Return: EXIT_FAILED. */
int find_failure(const char *cmd, pid_t pid, int err);
int find_nothing(const struct find *find, const char *cmd, pid_t pid);

#endif
