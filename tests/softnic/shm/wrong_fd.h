/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors of anything, for processes that pass them where another is due.
 */
#ifndef WEIR_TESTS_SOFTNIC_SHM_WRONG_FD_H
#define WEIR_TESTS_SOFTNIC_SHM_WRONG_FD_H

/* What is passed where a descriptor is due. */
enum wrong_fd_kind {
	GOOD,
	NOTHING,
	PIPE,
	DIRECTORY,
	PATH_ONLY,
	EVENTS,
	UNSEALED,
	SHORT,
	STUCK,
	OF_CALLER,
};

/* A new one, or @good; -1 for none, or if it cannot be had. */
int odd_file_open(enum wrong_fd_kind kind, int good);

#endif
