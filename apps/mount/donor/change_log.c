/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/donor/change_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "apps/mount/donor/call.h"
#include "lib/base/clock.h"

#define NS_PER_MS 1000000ull
#define LOOK_MS 20 /* how often a waiter looks whether to go on */
/* Sent again without an answer: several times before another client's mount waits no longer. */
#define AGAIN_MS 500

int change_log_init(struct change_log *log)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&log->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&log->answered, &monotonic);
	pthread_condattr_destroy(&monotonic);
	log->last = &log->first;
	log->batch = malloc(WEIR_MESSAGE_MAX);
	log->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (log->fd < 0)
		return -errno;
	return log->batch ? 0 : -ENOMEM;
}

void change_log_fini(struct change_log *log)
{
	free(log->batch);
	close(log->fd);
	pthread_cond_destroy(&log->answered);
	pthread_mutex_destroy(&log->lock);
}

/* Lock held. */
static bool is_empty(const struct change_log *log)
{
	return log->settled == log->added;
}

bool change_log_is_empty(struct mount *m)
{
	bool empty;

	pthread_mutex_lock(&m->log.lock);
	empty = is_empty(&m->log);
	pthread_mutex_unlock(&m->log.lock);
	return empty;
}

bool change_log_takes(struct mount *m)
{
	if (!atomic_load(&m->log.is_used))
		return false;
	return sharing_is_alone(&m->share) || !change_log_is_empty(m);
}

bool change_log_takes_names(struct mount *m)
{
	struct change_log *log = &m->log;
	bool takes;

	if (!atomic_load(&log->is_used) || !atomic_load(&log->has_room))
		return false;
	pthread_mutex_lock(&log->lock);
	takes = log->waiting < CHANGE_LOG_MAX;
	pthread_mutex_unlock(&log->lock);
	return takes;
}

struct change *change_new(const void *message, size_t length)
{
	struct change *change = malloc(sizeof(*change) + length);
	struct timespec now;

	if (!change)
		return NULL;
	clock_gettime(CLOCK_REALTIME, &now);
	*change = (struct change){
		.head.time = { .sec = now.tv_sec, .nsec = (uint32_t)now.tv_nsec },
		.head.length = (uint32_t)length,
	};
	memcpy(change->message, message, length);
	return change;
}

static size_t padded(const struct change *change)
{
	return sizeof(change->head) + (change->head.length + 7ull) / 8 * 8;
}

/* Lock held. */
static void arm(struct change_log *log)
{
	const struct itimerspec soon = { .it_value.tv_nsec = CHANGE_LOG_MS * 1000000l };

	if (!log->is_armed)
		timerfd_settime(log->fd, 0, &soon, NULL);
	log->is_armed = true;
}

void change_log_arm(struct mount *m)
{
	pthread_mutex_lock(&m->log.lock);
	arm(&m->log);
	pthread_mutex_unlock(&m->log.lock);
}

uint64_t change_log_add(struct mount *m, struct change *change)
{
	struct change_log *log = &m->log;
	uint64_t number;

	pthread_mutex_lock(&log->lock);
	*log->last = change;
	log->last = &change->next;
	log->waiting++;
	log->bytes += padded(change);
	number = ++log->added;
	arm(log);
	pthread_mutex_unlock(&log->lock);
	return number;
}

/* Lock held. */
static bool is_full(const struct change_log *log)
{
	return log->waiting >= FS_BATCH_MAX ||
	       log->bytes + CHANGE_MAX > WEIR_MESSAGE_MAX - sizeof(struct wire_fs_batch);
}

/* Moves waiting changes into flight, as many as fit into a batch. Lock held. */
static void fill_flight(struct change_log *log)
{
	struct change **end = &log->first;
	size_t room = WEIR_MESSAGE_MAX - sizeof(struct wire_fs_batch);

	while (*end && log->flying < FS_BATCH_MAX && padded(*end) <= room) {
		const size_t bytes = padded(*end);

		room -= bytes;
		log->bytes -= bytes;
		log->flying++;
		end = &(*end)->next;
	}
	log->waiting -= log->flying;
	log->flight = log->first;
	log->first = *end;
	*end = NULL;
	if (!log->first)
		log->last = &log->first;
	log->number++;
}

/*
 * Begins to send the next batch, or the last batch again. Lock held. Return: bytes at log->batch;
 * 0: nothing waits, or a batch is under way.
 */
static size_t begin_batch(struct change_log *log)
{
	struct wire_fs_batch *batch = (struct wire_fs_batch *)log->batch;
	char *to = log->batch + sizeof(*batch);

	if (log->is_sending || (!log->flight && !log->first))
		return 0;
	if (!log->flight)
		fill_flight(log);
	for (const struct change *change = log->flight; change; change = change->next) {
		memset(to, 0, padded(change));
		memcpy(to, &change->head, sizeof(change->head));
		memcpy(to + sizeof(change->head), change->message, change->head.length);
		to += padded(change);
	}
	*batch = (struct wire_fs_batch){
		.head.op = FS_BATCH,
		.number = log->number,
		.changes = log->flying,
		.bytes = (uint32_t)(to - log->batch - sizeof(*batch)),
	};
	log->is_sending = true;
	return (size_t)(to - log->batch);
}

/* Changes from @from on were lost. Drops waiting changes of names. Lock held. */
static void lose(struct change_log *log, uint64_t from, struct change **dropped)
{
	struct change **at = &log->first;

	if (!log->lost_first)
		log->lost_first = from;
	log->lost_last = log->added;
	while (*at) {
		struct change *change = *at;

		if (change->fn) {
			at = &change->next;
			continue;
		}
		*at = change->next;
		change->next = *dropped;
		*dropped = change;
		log->waiting--;
		log->bytes -= padded(change);
		log->settled++;
	}
	log->last = at;
}

static void free_changes(struct change *change)
{
	while (change) {
		struct change *next = change->next;

		free(change);
		change = next;
	}
}

static void end_change(const struct change *change, int status, const void *reply, size_t length)
{
	if (change->fn)
		change->fn(change->arg, status, reply, length);
}

/*
 * Ends the changes in flight, each with a part of the answer. Return: the place of the first failed
 * change of names, or the number of changes.
 */
static unsigned int end_flight(struct change *flight, int status, const char *results,
			       size_t length, uint32_t shared)
{
	unsigned int place = 0, failed = UINT32_MAX;

	for (const struct change *change = flight; change; change = change->next, place++) {
		char reply[sizeof(struct wire_fs_reply) + sizeof(struct wire_fs_attr)];
		struct wire_fs_result result = { .status = -EIO };
		struct wire_fs_reply head = { .shared = shared };

		if (!status && length >= sizeof(result))
			memcpy(&result, results, sizeof(result));
		if (result.length > sizeof(struct wire_fs_attr) ||
		    (!status && result.length > length - sizeof(result)))
			result = (struct wire_fs_result){ .status = -EIO };
		head.status = result.status;
		memcpy(reply, &head, sizeof(head));
		if (!status)
			memcpy(reply + sizeof(head), results + sizeof(result), result.length);
		end_change(change, status, reply, sizeof(head) + result.length);
		if (!change->fn && failed == UINT32_MAX && status != -ETIMEDOUT && result.status)
			failed = place;
		if (!status && length >= sizeof(result) + result.length) {
			results += sizeof(result) + result.length;
			length -= sizeof(result) + result.length;
		} else {
			length = 0;
		}
	}
	return failed < place ? failed : place;
}

static void say_lost(struct mount *m)
{
	sharing_forget(&m->share);
	if (!atomic_load(&m->is_down))
		mount_log(WEIR_LOG_WARNING,
			  "changes lost donor=%s mountpoint=%s id=W512: the donor did not hear of "
			  "this mount's last changes in time, and others use the files since: "
			  "names made or removed last may be missing",
			  m->options->donor, m->options->mountpoint);
}

/*
 * Ends a batch with the answer. @status: 0, or the session's. A batch in doubt stays in flight, to
 * be sent again.
 */
static void end_batch(struct mount *m, struct sharing_request request, int status,
		      const void *reply, size_t length)
{
	struct change_log *log = &m->log;
	struct wire_fs_batched head = { 0 };
	struct change *flight, *dropped = NULL;
	unsigned int failed;

	if (status && !atomic_load(&m->is_down)) {
		pthread_mutex_lock(&log->lock);
		log->is_sending = false;
		arm(log);
		pthread_cond_broadcast(&log->answered);
		pthread_mutex_unlock(&log->lock);
		return;
	}
	if (!status && length >= sizeof(head.reply)) {
		memcpy(&head, reply, length < sizeof(head) ? length : sizeof(head));
		sharing_note_reply(&m->share, request, head.reply.shared);
		/* The batch has taken effect before; the end of each change is unknown. */
		if (head.reply.status == -EALREADY)
			status = -ETIMEDOUT;
		else if (head.reply.status || length < sizeof(head))
			status = -EIO;
		else
			atomic_store(&log->has_room, head.has_room);
	} else if (!status) {
		status = -EIO;
	}
	pthread_mutex_lock(&log->lock);
	flight = log->flight;
	pthread_mutex_unlock(&log->lock);
	failed = end_flight(flight, status, status ? NULL : (const char *)reply + sizeof(head),
			    status ? 0 : length - sizeof(head), head.reply.shared);
	pthread_mutex_lock(&log->lock);
	if (failed < log->flying)
		lose(log, log->settled + failed + 1, &dropped);
	failed = failed < log->flying;
	log->settled += log->flying;
	log->flight = NULL;
	log->flying = 0;
	log->is_sending = false;
	pthread_cond_broadcast(&log->answered);
	pthread_mutex_unlock(&log->lock);
	free_changes(flight);
	free_changes(dropped);
	if (failed)
		say_lost(m);
}

/* A batch sent without a waiter. */
struct sent_batch {
	struct mount *mount;
	struct sharing_request request;
};

static void batch_answered(void *arg, int status, const void *reply, size_t length)
{
	struct sent_batch *sent = arg;
	struct mount *m = sent->mount;

	end_batch(m, sent->request, status, reply, length);
	free(sent);
	change_log_full(m);
	mount_end(m);
}

/* @length: of the batch begun */
static void send_batch(struct mount *m, size_t length)
{
	const struct sharing_request request = sharing_note_request(&m->share);
	struct sent_batch *sent = malloc(sizeof(*sent));
	int rc = -EAGAIN;

	mount_begin(m);
	if (sent) {
		*sent = (struct sent_batch){ m, request };
		rc = weir_call_async(m->session, m->log.batch, length, AGAIN_MS * NS_PER_MS,
				     batch_answered, sent);
	}
	if (!rc)
		return;
	free(sent);
	end_batch(m, request, rc, NULL, 0);
	mount_end(m);
}

void change_log_full(struct mount *m)
{
	struct change_log *log = &m->log;
	size_t length = 0;

	pthread_mutex_lock(&log->lock);
	if (!log->flight && is_full(log))
		length = begin_batch(log);
	pthread_mutex_unlock(&log->lock);
	if (length)
		send_batch(m, length);
}

void change_log_run(struct mount *m)
{
	struct change_log *log = &m->log;
	uint64_t count;
	size_t length;

	pthread_mutex_lock(&log->lock);
	if (read(log->fd, &count, sizeof(count)) == sizeof(count))
		log->is_armed = false;
	length = begin_batch(log);
	if (log->is_sending && log->first)
		arm(log);
	pthread_mutex_unlock(&log->lock);
	if (length)
		send_batch(m, length);
}

int change_log_send(struct mount *m, const void *message, size_t length, uint64_t timeout_ns,
		    weir_reply_fn *fn, void *arg)
{
	struct change *change;

	if (!change_log_takes(m))
		return call_later(m, message, length, timeout_ns, fn, arg);
	change = change_new(message, length);
	if (!change)
		return -EIO;
	change->fn = fn;
	change->arg = arg;
	change_log_add(m, change);
	change_log_full(m);
	return 0;
}

/* Lock held. */
static void wait_for_answer(struct change_log *log)
{
	const uint64_t until_ns = weir_now_ns() + LOOK_MS * NS_PER_MS;
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / 1000000000u),
		.tv_nsec = (long)(until_ns % 1000000000u),
	};

	pthread_cond_timedwait(&log->answered, &log->lock, &until);
}

struct settling {
	uint64_t until_ns;
	bool waits; /* the timeout has passed */
};

/* Return: 0 to go on, as call_wait() does. */
static int gives_up(struct mount *m, struct fuse_req *req, struct settling *settling)
{
	if (weir_now_ns() < settling->until_ns)
		return 0;
	if (!m->options->hard || (m->fuse && fuse_session_exited(m->fuse)))
		return -EIO;
	if (call_is_late())
		return -EINTR;
	if (!settling->waits)
		loop_wait_begin(m);
	settling->waits = true;
	return req && fuse_req_interrupted(req) ? -EINTR : 0;
}

/* Lock held, and dropped meanwhile. */
static void settle_part(struct mount *m)
{
	struct change_log *log = &m->log;
	const size_t length = begin_batch(log);

	if (length) {
		pthread_mutex_unlock(&log->lock);
		send_batch(m, length);
		pthread_mutex_lock(&log->lock);
	}
	if (log->flight) /* under way, or to be sent again */
		wait_for_answer(log);
}

int change_log_settle(struct mount *m, struct fuse_req *req)
{
	struct change_log *log = &m->log;
	struct settling settling = { 0 };
	uint64_t upto;
	int rc = 0;

	if (!atomic_load(&log->is_used))
		return 0;
	settling.until_ns = weir_now_ns() + m->options->timeout * 1000 * NS_PER_MS;
	pthread_mutex_lock(&log->lock);
	for (upto = log->added; log->settled < upto && !rc; rc = gives_up(m, req, &settling))
		settle_part(m);
	if (log->settled >= upto)
		rc = 0;
	pthread_mutex_unlock(&log->lock);
	if (settling.waits)
		loop_wait_end(m);
	return rc;
}

bool change_log_has_lost(struct mount *m, uint64_t number)
{
	struct change_log *log = &m->log;
	bool lost;

	pthread_mutex_lock(&log->lock);
	lost = number && number >= log->lost_first && number <= log->lost_last;
	pthread_mutex_unlock(&log->lock);
	return lost;
}
