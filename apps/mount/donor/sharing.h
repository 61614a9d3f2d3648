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

struct share {
	atomic_bool shared;
	atomic_uint phase; /* odd: from a FS_SHARE until it is answered */
	int fd; /* a timerfd: readable when it is time for that */
};

int share_init(struct share *share);
void share_fini(struct share *share);

static inline unsigned int share_phase(const struct share *share)
{
	return atomic_load(&share->phase);
}

/* A reply to a question asked in @phase has come. */
void share_note(struct share *share, unsigned int phase, bool shared);

struct mount;

/*
 * FS_SHARE has come: it will be answered once all that the kernel was let cache has expired. Needs
 * no memory, and never blocks.
 */
void share_warned(struct mount *m);
/* The timer may have expired: answers then. Context: the main thread. */
void share_answer(struct mount *m);

/* How long the kernel may cache what it is told now. */
double share_cache_seconds(const struct share *share);

#endif
