/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * This process's lanes, one for each mount that it uses. All functions are safe in a signal
 * handler: they take no lock, allocate nothing but pages, and a slot belongs to the thread that
 * has claimed it.
 */
#ifndef WEIR_PRELOAD_FILES_LANE_H
#define WEIR_PRELOAD_FILES_LANE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "wire/files.h"

#define LANES_MAX 4u /* mounts that a process uses so */

/* A file that requests may name, as this process knows the file. @fd: its descriptor */
struct grant {
	int fd;
	unsigned int lane, nr;
	uint32_t closes;
};

/* Bytes to move: from or to @iov, from its byte @at on. */
struct bytes {
	const struct iovec *iov;
	int nr;
	size_t at;
};

enum lane_use { LANE_MOVED, LANE_KERNEL, LANE_REFUSED, LANE_STALE };

/**
 * lane_find() - find the mount that an open regular file belongs to
 * @dev: of the file
 *
 * Return: its lane, attached; -1: the file is no mount's, or the mount has no lane for us.
 */
int lane_find(int fd, dev_t dev);

/**
 * lane_ask() - ask for a grant
 * @ino: of the file
 * @access: FILES_MAY_* that the descriptor allows
 *
 * Return: true, with all of @grant but @lane, which the caller has set.
 */
bool lane_ask(int fd, ino_t ino, unsigned int access, struct grant *grant);

/* Return: whether a grant is of this file. */
bool lane_is_of(const struct grant *grant, dev_t dev, ino_t ino);

/* The grant's closes; UINT32_MAX if the lane is gone. */
uint32_t lane_closes(unsigned int lane, unsigned int grant);

/**
 * lane_read(), lane_write() - move bytes
 * @bytes: where the bytes go, or come from
 * @length: at least 1, at most what is left in @bytes
 * @moved: bytes moved, also if the rest is not
 * @error: 0, or the errno of a write that failed half-way
 *
 * A write is not divided, so that two never mix: the kernel takes those longer than a slot.
 *
 * Return: LANE_MOVED: all, or all up to the end of the file. Otherwise the kernel must move the
 * rest: LANE_KERNEL: for now; LANE_REFUSED: the mount says so, as of a write that makes the file
 * longer; LANE_STALE: the grant has changed.
 */
enum lane_use lane_read(const struct grant *grant, struct bytes bytes, size_t length, off_t offset,
			size_t *moved);
enum lane_use lane_write(const struct grant *grant, struct bytes bytes, size_t length, off_t offset,
			 size_t *moved, int *error);

/* A descriptor of a regular file is about to be mapped, shared. */
void lane_mapped(int fd, dev_t dev);

/* From now on a sleeping mount is woken: slower, but all that can goes this way. */
void lanes_use_always(void);

/* In the child of a fork: the lanes are the parent's. */
void lanes_forget(void);

#endif
