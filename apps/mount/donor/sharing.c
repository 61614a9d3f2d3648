/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/donor/sharing.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/mount.h"
#include "apps/mount/sealed/sealed.h"
#include "lib/base/clock.h"

/* Allows for delays of a thread between a reply "alone" and its own reply to the kernel. */
#define MARGIN_MS 200
#define EXPIRY_MS (FS_ALONE_MS + MARGIN_MS)
#define NS_PER_MS 1000000ull
#define LOOK_AGAIN_MS 5

int sharing_init(struct sharing *share)
{
	share->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return share->fd < 0 ? -errno : 0;
}

void sharing_fini(struct sharing *share)
{
	close(share->fd);
}

struct sharing_request sharing_note_request(const struct sharing *share)
{
	return (struct sharing_request){ atomic_load(&share->phase), weir_now_ns() };
}

void sharing_note_reply(struct sharing *share, struct sharing_request request, bool shared)
{
	const unsigned int phase = request.phase;

	if (shared) {
		atomic_store(&share->shared, true);
		return;
	}
	if (phase % 2 || phase != atomic_load(&share->phase))
		return;
	atomic_store(&share->alone_ns, request.sent_ns + FS_ALONE_MS * NS_PER_MS);
	atomic_store(&share->shared, false);
	/*
	 * An FS_SHARE may have arrived meanwhile. sharing_warned() begins a phase, then sets
	 * shared; here the order is reversed, so the value true wins.
	 */
	if (phase != atomic_load(&share->phase))
		atomic_store(&share->shared, true);
}

void sharing_warned(struct mount *m)
{
	const struct itimerspec expiry = {
		.it_value = {
			.tv_sec = EXPIRY_MS / 1000,
			.tv_nsec = EXPIRY_MS % 1000 * 1000000L,
		},
	};
	const bool begins = atomic_fetch_or(&m->share.phase, 1) % 2 == 0;

	atomic_store(&m->share.shared, true);
	/* A repeated FS_SHARE concerns the same clients and gets a single answer. */
	if (begins)
		timerfd_settime(m->share.fd, 0, &expiry, NULL);
}

/* The log of changes is not empty yet. */
static void look_again(const struct sharing *share)
{
	const struct itimerspec soon = { .it_value.tv_nsec = LOOK_AGAIN_MS * 1000000L };

	timerfd_settime(share->fd, 0, &soon, NULL);
}

void sharing_answer(struct mount *m)
{
	struct wire_fs_head shared = { .op = FS_SHARED };
	uint64_t count;

	if (read(m->share.fd, &count, sizeof(count)) != sizeof(count))
		return; /* not expired yet */
	sealed_warned(m);
	inodes_commit_ahead(m); /* the other client must see all changes, ... */
	(void)reserve_give_back(m, true);
	if (!change_log_is_empty(m)) { /* ... also waiting ones */
		change_log_run(m);
		look_again(&m->share);
		return;
	}
	/*
	 * End the phase before the answer: the donor may send another FS_SHARE once it has the
	 * answer.
	 */
	atomic_fetch_add(&m->share.phase, 1);
	/*
	 * The other client waits for the answer. If memory is short, begin another phase and try
	 * again.
	 */
	if (call_without_reply(m, &shared, sizeof(shared)))
		sharing_warned(m);
}

static double seconds_alone(const struct sharing *share)
{
	const uint64_t now_ns = weir_now_ns(), alone_ns = atomic_load(&share->alone_ns);

	return atomic_load(&share->shared) || alone_ns < now_ns ? 0.0 : (alone_ns - now_ns) / 1e9;
}

bool sharing_is_alone(const struct sharing *share)
{
	return seconds_alone(share) > 0;
}

/* Reads the phase last: one that has ended meanwhile has been followed by others' changes. */
double sharing_cache_seconds(const struct sharing *share, unsigned int phase)
{
	const double seconds = seconds_alone(share);

	return phase % 2 == 0 && phase == atomic_load(&share->phase) ? seconds : 0.0;
}

bool sharing_knows(const struct sharing *share, unsigned int phase)
{
	return sharing_cache_seconds(share, phase) > 0;
}

void sharing_forget(struct sharing *share)
{
	atomic_fetch_add(&share->phase, 2);
}
