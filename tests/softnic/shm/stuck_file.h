/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_TESTS_SOFTNIC_SHM_STUCK_FILE_H
#define WEIR_TESTS_SOFTNIC_SHM_STUCK_FILE_H

/**
 * stuck_file_open() - a file whose file system answers nothing any more
 *
 * Whoever asks it anything waits until the caller's process group is killed, or a minute.
 *
 * Return: a descriptor, or -1 where none may be mounted.
 */
int stuck_file_open(void);

#endif
