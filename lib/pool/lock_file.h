/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock among processes of one host that replace a file: flock(2) on PATH.lock. flock(2) takes
 * descriptors for reading, too, so nobody may read the lock without the right to write it.
 */
#ifndef WEIR_LIB_POOL_LOCK_FILE_H
#define WEIR_LIB_POOL_LOCK_FILE_H

#include <sys/types.h>

#include <weir/error.h>

/**
 * weir_lock_file_take() - lock a file against changes by other processes
 * @path: of the file itself, which need not exist
 * @mode: most rights of the lock, less the umask: 0600 the user's own processes; 0666 those that
 *	may write new files of this user
 * @error: may be NULL
 *
 * The lock has no rights to read without the right to write. In a sticky folder the owner of the
 * lock must be this user, root or the owner of the file.
 *
 * Return: a descriptor, whose close() or end gives the lock back, or
 *	-EHOSTUNREACH another process has held it for 10 s: @error names the process;
 *	-EINTR        a signal came, or SIGINT or SIGTERM is pending;
 *	-EPERM        no right to lock, or the lock belongs to a stranger;
 *	-EIO          another error.
 */
int weir_lock_file_take(const char *path, mode_t mode, struct weir_error *error);

/* Gives the lock back and removes its file. */
void weir_lock_file_remove(const char *path, int fd);

#endif
