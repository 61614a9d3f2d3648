/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether this client is alone, or has the lease while all other clients are quiet (wire/fs.h).
 * Only then may the kernel cache names and attributes. Here, "alone" means both.
 *
 * Each reply of the donor says so, and the donor warns (FS_SHARE) before it admits a second client,
 * or handles the next request of one. A reply in flight at that moment may still say "alone". Each
 * FS_SHARE therefore begins a new phase, and replies to requests of earlier phases are ignored. A
 * client that was stopped may hear FS_SHARE late, so the right to cache ends FS_ALONE_MS after the
 * request whose reply gave it.
 *
 * Knowledge: the mount itself remembers attributes and names that replies told it, each with the
 * phase of the request. It is current while the client is alone and the phase is the same, because
 * nobody else changes anything.
 */
#ifndef WEIR_APPS_MOUNT_DONOR_SHARING_H
#define WEIR_APPS_MOUNT_DONOR_SHARING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/fs.h"

struct sharing {
	atomic_bool shared;
	atomic_uint phase; /* odd between an FS_SHARE and its answer */
	atomic_ullong alone_ns; /* until then this client is known to be alone */
	atomic_bool is_leased; /* so, beside other clients */
	atomic_ullong cached_ns; /* until then the kernel may cache */
	pthread_rwlock_t sending; /* read: by who takes changes of a file, until these are sent */
	int fd; /* a timerfd: readable when the answer is due */
};

#define SHARING_NO_PHASE 1u /* knowledge with this phase is never current */

int sharing_init(struct sharing *share);
void sharing_fini(struct sharing *share);

/* The mount's memory of a request until its reply. */
struct sharing_request {
	unsigned int phase;
	uint64_t sent_ns;
};

/* Whether a reply with @shared gives the right to cache. */
static inline bool sharing_allows(uint32_t shared)
{
	return shared == FS_REPLY_ALONE || shared == FS_REPLY_LEASED;
}

struct sharing_request sharing_note_request(const struct sharing *share);
/* @shared: enum wire_fs_sharing */
void sharing_note_reply(struct sharing *share, struct sharing_request request, uint32_t shared);

struct mount;

/*
 * Handles FS_SHARE. The answer is sent once everything in the kernel's caches has expired. Needs no
 * memory and never blocks.
 */
void sharing_warned(struct mount *m);
/* Sends the answer if the timer has expired. Context: the main thread. */
void sharing_answer(struct mount *m);

/* Whether what this client learned in @phase is current. */
bool sharing_knows(const struct sharing *share, unsigned int phase);

/* Nobody knows what the donor did with a call: forgets all knowledge. */
void sharing_forget(struct sharing *share);

/* Whether this client is alone, or has the lease. */
bool sharing_is_alone(const struct sharing *share);

/*
 * How long the kernel may cache what this client learned in @phase: 0 while clients share, and if
 * others may have changed it since.
 */
double sharing_cache_seconds(struct sharing *share, unsigned int phase);

#endif
