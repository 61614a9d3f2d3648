/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes and sockets left behind by a run. Softnic's files have no names and vanish with
 * their last user, so only a process or a socket can leak. The judge notes the inode numbers of
 * a process's sockets while the process lives. No noted socket may outlive the process. The
 * kernel lists the sockets of the whole host; the numbers exclude other tests' sockets.
 */
#ifndef WEIR_TESTS_SOFTNIC_CAMPAIGN_LEAKS_H
#define WEIR_TESTS_SOFTNIC_CAMPAIGN_LEAKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { LITTER_MAX = 4096 };

struct leaked_sockets {
	uint64_t sockets[LITTER_MAX];
	uint32_t num;
};

/**
 * leaks_note() - add the current sockets of a process, except descriptors 0 to 2, which may be
 * inherited
 */
void leaks_note(struct leaked_sockets *l, pid_t pid);

/**
 * litter_is_named() - wait until @least sockets of @l have a softnic name
 *
 * Return: false if the wait timed out.
 */
bool litter_is_named(const struct leaked_sockets *l, uint32_t least);

/**
 * leaks_left() - count the sockets that still exist
 *
 * Wait a while for zero, because the kernel may free some late.
 */
uint32_t leaks_left(const struct leaked_sockets *l);

/** litter_is_seen() - plant a leak, and look for the leak */
bool litter_is_seen(void);

#endif
