/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lengths of messages from a file: a number of bytes a line; '#' starts a comment. */
#ifndef WEIR_SIM_LOAD_SIZES_H
#define WEIR_SIM_LOAD_SIZES_H

#include <stdint.h>

#define SIM_SIZES_MAX 1048576u

/* @count lengths; @most is the largest. */
struct sim_sizes {
	uint32_t *bytes;
	uint32_t count;
	uint32_t most;
};

/**
 * sim_sizes_load() - read lengths
 * @sizes: receives the lengths; sim_sizes_fini() frees them
 * @path: the file
 * @why: receives the error and its place; @why_bytes of room
 *
 * Return: 0, -EINVAL, or -ENOMEM.
 */
int sim_sizes_load(struct sim_sizes *sizes, const char *path, char *why, uint32_t why_bytes);

void sim_sizes_fini(struct sim_sizes *sizes);

#endif
