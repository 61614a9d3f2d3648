/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wrong descriptors, to pass where softnic expects a valid one. */
#ifndef WEIR_TESTS_SOFTNIC_SHM_WRONG_FD_H
#define WEIR_TESTS_SOFTNIC_SHM_WRONG_FD_H

/* The kind of descriptor to pass. */
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

/* Return: a new descriptor, or @good; -1 for none or on failure. */
int odd_file_open(enum wrong_fd_kind kind, int good);

#endif
