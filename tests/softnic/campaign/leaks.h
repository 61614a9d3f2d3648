/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What processes leave behind. Files of softnic's have no names and vanish with their last user,
 * so what is left would be a process, or a socket that one still has: all sockets of a process are
 * noted while it lives, by their numbers, and none of them may be there when it has ended. The
 * kernel lists all of this host's, whoever has them; numbers tell them from other tests'.
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

/** leaks_note() - add the sockets that a process has now; those of 0 to 2 may be others' */
void leaks_note(struct leaked_sockets *l, pid_t pid);

/** litter_is_named() - do at least so many of them have a name of softnic's? Waits till then. */
bool litter_is_named(const struct leaked_sockets *l, uint32_t least);

/**
 * leaks_left() - how many of them are still there
 *
 * Waits a while for there to be none, as the kernel may collect some later.
 */
uint32_t leaks_left(const struct leaked_sockets *l);

/** litter_is_seen() - would it be found, if there was some? Plants it, and looks. */
bool litter_is_seen(void);

#endif
