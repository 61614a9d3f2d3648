/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors that a peer passed to us, which may be of anything: a pipe, a directory, a
 * file of a file system that the peer itself runs and that never answers. So none of these
 * asks whoever is behind a descriptor, before the kernel alone has said what it is.
 */
#ifndef WEIR_SOFTNIC_SHM_PASSED_FD_H
#define WEIR_SOFTNIC_SHM_PASSED_FD_H

#include <stdbool.h>

/** passed_fd_is_sealed() - a memfd of ordinary pages that cannot shrink: may be mapped */
bool passed_fd_is_sealed(int fd);

/** passed_fd_is_procfs() - a file of procfs, as /proc/self/mem is */
bool passed_fd_is_procfs(int fd);

/** passed_fd_is_socket() - a local socket of that type: sending there never waits if it must not */
bool passed_fd_is_socket(int fd, int type);

/**
 * passed_fd_close() - done with it
 *
 * Closing may ask a file system, too. Where that could be a peer's, a thread of its own
 * does it, which may wait for as long as it likes.
 */
void passed_fd_close(int fd);

#endif
