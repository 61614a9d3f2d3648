/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/donor/sharing.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/mount.h"
#include "apps/mount/sealed/sealed.h"
#include "lib/base/clock.h"

/* Allows for delays of threads between a use of the right to cache and the kernel's use. */
#define MARGIN_MS 200
/*
 * How long the kernel may cache under a lease. Other clients wait as long for a recall. The mount's
 * knowledge answers the kernel's next question without a message.
 */
#define LEASED_MS 50
#define NS_PER_MS 1000000ull
#define LOOK_AGAIN_MS 5

int sharing_init(struct sharing *share)
{
	pthread_rwlock_init(&share->sending, NULL);
	share->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return share->fd < 0 ? -errno : 0;
}

void sharing_fini(struct sharing *share)
{
	close(share->fd);
	pthread_rwlock_destroy(&share->sending);
}

struct sharing_request sharing_note_request(const struct sharing *share)
{
	return (struct sharing_request){ atomic_load(&share->phase), weir_now_ns() };
}

void sharing_note_reply(struct sharing *share, struct sharing_request request, uint32_t shared)
{
	const unsigned int phase = request.phase;

	if (!sharing_allows(shared)) {
		atomic_store(&share->shared, true);
		return;
	}
	if (phase % 2 || phase != atomic_load(&share->phase))
		return;
	atomic_store(&share->is_leased, shared == FS_REPLY_LEASED);
	atomic_store(&share->alone_ns, request.sent_ns + FS_ALONE_MS * NS_PER_MS);
	atomic_store(&share->shared, false);
	/*
	 * An FS_SHARE may have arrived meanwhile. sharing_warned() begins a phase, then sets
	 * shared; here the order is reversed, so the value true wins.
	 */
	if (phase != atomic_load(&share->phase))
		atomic_store(&share->shared, true);
}

/* @ns: at least 1: an expiry of 0 would stop the timer */
static void answer_in(const struct sharing *share, uint64_t ns)
{
	const struct itimerspec expiry = {
		.it_value = {
			.tv_sec = (time_t)(ns / (1000 * NS_PER_MS)),
			.tv_nsec = (long)(ns % (1000 * NS_PER_MS)),
		},
	};

	timerfd_settime(share->fd, 0, &expiry, NULL);
}

/* Begins a phase, and answers in @wait_ns at the earliest. */
static void begin_phase(struct mount *m, uint64_t wait_ns)
{
	const bool begins = atomic_fetch_or(&m->share.phase, 1) % 2 == 0;
	const uint64_t now_ns = weir_now_ns();
	uint64_t cached_ns;

	atomic_store(&m->share.shared, true);
	/* A repeated FS_SHARE concerns the same clients and gets a single answer. */
	if (!begins)
		return;
	/* A thread sees the new phase, and lets the kernel cache nothing; or is seen here. */
	cached_ns = atomic_load(&m->share.cached_ns);
	if (cached_ns > now_ns + wait_ns)
		wait_ns = cached_ns - now_ns;
	answer_in(&m->share, wait_ns);
}

void sharing_warned(struct mount *m)
{
	begin_phase(m, 1);
}

/* Another client waits for the answer: after a failure, soon answers again. */
static void answered(void *arg, int status, const void *reply, size_t length)
{
	struct mount *m = arg;

	(void)reply;
	(void)length;
	if (status && !atomic_load(&m->is_down))
		begin_phase(m, LOOK_AGAIN_MS * NS_PER_MS);
	mount_end(m);
}

void sharing_answer(struct mount *m)
{
	struct wire_fs_head shared = { .op = FS_SHARED };
	uint64_t count;

	if (read(m->share.fd, &count, sizeof(count)) != sizeof(count))
		return; /* not expired yet */
	sealed_warned(m);
	names_wait(&m->names); /* for changes begun in the phase before */
	inodes_commit_ahead(m); /* the other client must see all changes, ... */
	/* ... those that another thread has taken and sends, ... */
	pthread_rwlock_wrlock(&m->share.sending);
	pthread_rwlock_unlock(&m->share.sending);
	(void)reserve_give_back(m, true);
	if (inodes_pay(m) || !change_log_is_empty(m)) { /* ... and waiting ones */
		change_log_run(m);
		answer_in(&m->share, LOOK_AGAIN_MS * NS_PER_MS);
		return;
	}
	/*
	 * End the phase before the answer: the donor may send another FS_SHARE once it has the
	 * answer.
	 */
	atomic_fetch_add(&m->share.phase, 1);
	mount_begin(m);
	if (call_later(m, &shared, sizeof(shared), 0, answered, m))
		answered(m, -EIO, NULL, 0);
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
static double seconds_known(const struct sharing *share, unsigned int phase)
{
	const double seconds = seconds_alone(share);

	return phase % 2 == 0 && phase == atomic_load(&share->phase) ? seconds : 0.0;
}

bool sharing_knows(const struct sharing *share, unsigned int phase)
{
	return seconds_known(share, phase) > 0;
}

/* Notes until when the kernel may cache at the latest. */
static void note_cached(struct sharing *share, double seconds)
{
	const uint64_t until_ns = weir_now_ns() + (uint64_t)(seconds * 1e9) + MARGIN_MS * NS_PER_MS;
	unsigned long long cached_ns = atomic_load(&share->cached_ns);

	while (cached_ns < until_ns &&
	       !atomic_compare_exchange_weak(&share->cached_ns, &cached_ns, until_ns))
		;
}

/* Notes the use of the right first, and then checks the right again. */
double sharing_cache_seconds(struct sharing *share, unsigned int phase)
{
	double seconds = seconds_known(share, phase);

	if (seconds > LEASED_MS / 1e3 && atomic_load(&share->is_leased))
		seconds = LEASED_MS / 1e3;
	if (seconds <= 0)
		return 0;
	note_cached(share, seconds);
	return sharing_knows(share, phase) ? seconds : 0.0;
}

void sharing_forget(struct sharing *share)
{
	atomic_fetch_add(&share->phase, 2);
}
