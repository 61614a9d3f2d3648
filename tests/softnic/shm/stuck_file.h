/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_TESTS_SOFTNIC_SHM_STUCK_FILE_H
#define WEIR_TESTS_SOFTNIC_SHM_STUCK_FILE_H

/**
 * stuck_file_open() - open a file whose file system no longer answers
 *
 * A thread that queries the file blocks until the caller's process group is killed, or for a
 * minute.
 *
 * Return: a descriptor, or -1 where no mount is permitted.
 */
int stuck_file_open(void);

#endif
