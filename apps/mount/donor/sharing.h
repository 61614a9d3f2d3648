/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Is this client alone? Only then may the kernel cache names and attributes.
 *
 * The donor says so in each reply, and warns (FS_SHARE) before it lets a second client in. A
 * reply that was under way at that moment may still say "alone": so each FS_SHARE begins a new
 * phase, and what was asked in an earlier one is not believed.
 */
#ifndef WEIR_APPS_MOUNT_DONOR_SHARING_H
#define WEIR_APPS_MOUNT_DONOR_SHARING_H

#include <stdatomic.h>
#include <stdbool.h>

struct sharing {
	atomic_bool shared;
	atomic_uint phase; /* odd: from a FS_SHARE until it is answered */
	int fd; /* a timerfd: readable when it is time for that */
};

int sharing_init(struct sharing *share);
void sharing_fini(struct sharing *share);

static inline unsigned int sharing_phase(const struct sharing *share)
{
	return atomic_load(&share->phase);
}

/* A reply to a question asked in @phase has come. */
void sharing_note_reply(struct sharing *share, unsigned int phase, bool shared);

struct mount;

/*
 * FS_SHARE has come: it will be answered once all that the kernel was let cache has expired. Needs
 * no memory, and never blocks.
 */
void sharing_warned(struct mount *m);
/* The timer may have expired: answers then. Context: the main thread. */
void sharing_answer(struct mount *m);

/* How long the kernel may cache what it is told now. */
double sharing_cache_seconds(const struct sharing *share);

#endif
