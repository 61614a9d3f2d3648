/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors that a peer passed to us. A descriptor may be a pipe, a directory, or a file of a
 * FUSE file system that the peer runs and that never answers. So these functions first ask
 * questions that the kernel answers without the file system.
 */
#ifndef WEIR_SOFTNIC_SHM_PASSED_FD_H
#define WEIR_SOFTNIC_SHM_PASSED_FD_H

#include <stdbool.h>

/** passed_fd_is_sealed() - true for a memfd of ordinary pages that cannot shrink */
bool passed_fd_is_sealed(int fd);

/** passed_fd_is_procfs() - true for a file of procfs, such as /proc/self/mem */
bool passed_fd_is_procfs(int fd);

/** passed_fd_is_socket() - true for a local socket of that type, which obeys MSG_DONTWAIT */
bool passed_fd_is_socket(int fd, int type);

/**
 * passed_fd_close() - close a descriptor without blocking
 *
 * close() may ask a file system, too. If a peer may run that file system, a separate thread
 * calls close() and may block for ever.
 */
void passed_fd_close(int fd);

#endif
