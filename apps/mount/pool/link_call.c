/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/region.h>
#include <weir/request.h>

#include "apps/mount/mount.h"
#include "apps/mount/pool/link.h"
#include "lib/base/clock.h"

#define SLOT_NONE UINT32_MAX

/**
 * struct link_call - a call
 * @has_begun: it is on its way to the server, or back
 * @late: the number of another call, whose reply has arrived; 0: none
 * @slot: of the staging area, or SLOT_NONE
 * @session, @staging: that it uses, while it has begun
 * @fn: NULL: nobody waits for the reply any more
 * @reply: of an FS_READ, until its bytes are here
 * @message: a wire_fs_call, then the message
 */
struct link_call {
	TAILQ_ENTRY(link_call) entry;
	struct link *link;
	uint64_t number, late;
	bool has_begun;
	uint32_t slot;
	struct weir_session *session;
	struct weir_region *staging;
	void *data;
	weir_reply_fn *fn;
	void *arg;
	struct wire_fs_transferred reply;
	size_t length;
	uint8_t message[];
};

static struct wire_fs_transfer *transfer_of(struct link_call *call)
{
	return (struct wire_fs_transfer *)(call->message + sizeof(struct wire_fs_call));
}

static bool is_write(struct link_call *call)
{
	return transfer_of(call)->head.op == FS_WRITE;
}

static bool awaits_lock(struct link_call *call)
{
	const struct wire_fs_lock *lock = (const void *)transfer_of(call);

	return lock->head.op == FS_SETLK && lock->flags & FS_LOCK_WAIT;
}

static uint64_t place_of(const struct link_call *call, uint64_t offset)
{
	return call->slot * (uint64_t)FS_SLOT_BYTES + offset % FS_BLOCK;
}

static void give_slot(struct link *link, struct link_call *call)
{
	if (call->slot != SLOT_NONE)
		link->free_slots |= 1ull << call->slot;
	call->slot = SLOT_NONE;
}

/* Lock held. The call is over, and from now on the caller's alone. Return: its callback. */
static weir_reply_fn *take_call(struct link *link, struct link_call *call)
{
	TAILQ_REMOVE(&link->calls, call, entry);
	if (call->staging && call->staging == link->staging)
		give_slot(link, call);
	return call->fn;
}

/* Of a call that was taken. Calls that wait for a slot may begin. */
static void finish_call(struct link_call *call, weir_reply_fn *fn, int status, const void *reply,
			size_t length)
{
	struct link *link = call->link;

	if (fn)
		fn(call->arg, status, reply, length);
	if (status || !awaits_lock(call)) {
		free(call);
	} else {
		pthread_mutex_lock(&link->lock);
		TAILQ_INSERT_TAIL(&link->late, call, entry);
		pthread_mutex_unlock(&link->lock);
	}
	link_begin_calls(link);
}

static void end_call(struct link_call *call, int status, const void *reply, size_t length)
{
	struct link *link = call->link;
	weir_reply_fn *fn;

	pthread_mutex_lock(&link->lock);
	fn = take_call(link, call);
	pthread_mutex_unlock(&link->lock);
	finish_call(call, fn, status, reply, length);
}

/* The outcome is unknown. The call begins again on another connection. */
static void break_call(struct link_call *call)
{
	struct link *link = call->link;
	struct weir_session *session = call->session;

	pthread_mutex_lock(&link->lock);
	if (link->session == session)
		link->is_broken = true; /* before the call can begin again */
	call->has_begun = false;
	call->slot = SLOT_NONE;
	pthread_cond_broadcast(&link->changed);
	pthread_mutex_unlock(&link->lock);
}

/* The bytes of an FS_READ have arrived. */
static void got_data(void *arg, int status)
{
	struct link_call *call = arg;

	if (status)
		break_call(call);
	else
		end_call(call, 0, &call->reply, sizeof(call->reply));
}

static void get_data(struct link_call *call)
{
	const struct weir_completion completion = { .done = got_data, .arg = call };
	const struct wire_fs_transfer *t = transfer_of(call);
	const struct weir_iov iov = { .addr = call->data, .length = call->reply.length };

	if (!call->reply.length)
		end_call(call, 0, &call->reply, sizeof(call->reply));
	else if (call->reply.length > t->length ||
		 weir_read_async(call->staging, place_of(call, t->offset), &iov, 1, &completion,
				 NULL))
		break_call(call);
}

static void replied(void *arg, int status, const void *reply, size_t length)
{
	struct link_call *call = arg;
	struct wire_fs_reply head;

	if (status || length < sizeof(head)) {
		break_call(call);
		return;
	}
	memcpy(&head, reply, sizeof(head));
	if (head.status == -ENOTCONN) {
		link_lose(call->link);
		end_call(call, -EIO, NULL, 0);
	} else if (!head.status && call->data && !is_write(call) &&
		   length == sizeof(call->reply)) {
		memcpy(&call->reply, reply, sizeof(call->reply));
		get_data(call);
	} else {
		end_call(call, 0, reply, length);
	}
}

/* A request for a lock may wait for long; any other call has the session's timeout. */
static uint64_t timeout_of(struct link_call *call)
{
	return awaits_lock(call) ? UINT64_MAX : 0;
}

static void send_call(struct link_call *call)
{
	if (weir_call_async(call->session, call->message, call->length, timeout_of(call), replied,
			    call))
		break_call(call);
}

static void put_data(void *arg, int status)
{
	struct link_call *call = arg;

	if (status)
		break_call(call);
	else
		send_call(call);
}

static int start_put(struct link_call *call)
{
	const struct weir_completion completion = { .done = put_data, .arg = call };
	const struct wire_fs_transfer *t = transfer_of(call);
	const struct weir_iov iov = { .addr = call->data, .length = t->length };

	return weir_write_async(call->staging, place_of(call, t->offset), &iov, 1, &completion,
				NULL);
}

static void begin_call(struct link_call *call)
{
	if (!call->data || !is_write(call))
		send_call(call);
	else if (start_put(call))
		break_call(call);
}

/* The number below which all calls but those that wait for a lock have replies. Lock held. */
static uint64_t first_unanswered(const struct link *link)
{
	struct link_call *call;

	TAILQ_FOREACH(call, &link->calls, entry) {
		if (!awaits_lock(call))
			return call->number;
	}
	return link->numbers + 1;
}

/* Lock held. Return: whether the call could begin. */
static bool prepare_call(struct link *link, struct link_call *call)
{
	const struct wire_fs_call head = {
		.mount = link->id,
		.number = call->number,
		.answered = first_unanswered(link),
		.late = call->late,
	};

	if (call->data && !link->free_slots)
		return false;
	memcpy(call->message, &head, sizeof(head));
	call->has_begun = true;
	call->session = link->session;
	call->staging = call->data ? link->staging : NULL;
	if (call->data) {
		call->slot = (uint32_t)__builtin_ctzll(link->free_slots);
		link->free_slots &= link->free_slots - 1;
		transfer_of(call)->place = place_of(call, transfer_of(call)->offset);
	}
	return true;
}

/* Lock held. Return: the next call that can begin, or NULL. */
static struct link_call *next_call(struct link *link)
{
	struct link_call *call;

	if (link->state != LINK_UP || link->is_broken)
		return NULL;
	TAILQ_FOREACH(call, &link->calls, entry) {
		if (!call->has_begun && prepare_call(link, call))
			return call;
	}
	return NULL;
}

void link_begin_calls(struct link *link)
{
	struct link_call *call;

	pthread_mutex_lock(&link->lock);
	link->users++;
	while ((call = next_call(link))) {
		pthread_mutex_unlock(&link->lock);
		begin_call(call);
		pthread_mutex_lock(&link->lock);
	}
	if (!--link->users)
		pthread_cond_broadcast(&link->changed);
	pthread_mutex_unlock(&link->lock);
}

void link_reset_calls(struct link *link)
{
	struct link_call *call;

	TAILQ_FOREACH(call, &link->calls, entry) {
		call->has_begun = false;
		call->slot = SLOT_NONE;
	}
}

/* Several threads may fail calls at once: each takes a call before another can see it. */
void link_fail_calls(struct link *link)
{
	struct link_call *call;
	weir_reply_fn *fn;

	do {
		fn = NULL;
		pthread_mutex_lock(&link->lock);
		TAILQ_FOREACH(call, &link->calls, entry) {
			if (!call->has_begun)
				break;
		}
		if (call)
			fn = take_call(link, call);
		pthread_mutex_unlock(&link->lock);
		if (call)
			finish_call(call, fn, -EIO, NULL, 0);
	} while (call);
}

static struct link_call *new_call(struct link *link, const void *message, size_t length,
				  void *data, weir_reply_fn *fn, void *arg)
{
	struct link_call *call = malloc(sizeof(*call) + sizeof(struct wire_fs_call) + length);

	if (!call)
		return NULL;
	*call = (struct link_call){
		.link = link,
		.slot = SLOT_NONE,
		.data = data,
		.fn = fn,
		.arg = arg,
		.length = sizeof(struct wire_fs_call) + length,
	};
	memcpy(call->message + sizeof(struct wire_fs_call), message, length);
	return call;
}

void link_free_calls(struct link *link)
{
	struct link_call *call;

	while ((call = TAILQ_FIRST(&link->late))) {
		TAILQ_REMOVE(&link->late, call, entry);
		free(call);
	}
}

int link_call(struct link *link, const void *message, size_t length, void *data, weir_reply_fn *fn,
	      void *arg)
{
	struct link_call *call = new_call(link, message, length, data, fn, arg), *late;
	bool is_lost;

	if (!call)
		return -ENOMEM;
	pthread_mutex_lock(&link->lock);
	call->number = ++link->numbers;
	TAILQ_INSERT_TAIL(&link->calls, call, entry);
	late = TAILQ_FIRST(&link->late);
	if (late) {
		TAILQ_REMOVE(&link->late, late, entry);
		call->late = late->number;
	}
	is_lost = link->state == LINK_LOST;
	pthread_mutex_unlock(&link->lock);
	free(late);
	if (is_lost)
		link_fail_calls(link);
	else
		link_begin_calls(link);
	return 0;
}

/* A caller that waits. It may give up, and then @call is freed without it. */
struct link_waiter {
	sem_t done;
	int status;
	void *reply;
	size_t max, length;
};

static void wake_waiter(void *arg, int status, const void *reply, size_t length)
{
	struct link_waiter *waiter = arg;

	waiter->status = status;
	waiter->length = length < waiter->max ? length : waiter->max;
	if (!status)
		memcpy(waiter->reply, reply, waiter->length);
	sem_post(&waiter->done);
}

/* Return: false if the reply is on its way to the waiter already. */
static bool abandon_call(struct link *link, const struct link_waiter *waiter)
{
	struct link_call *call;

	pthread_mutex_lock(&link->lock);
	TAILQ_FOREACH(call, &link->calls, entry) {
		if (call->arg == waiter)
			break;
	}
	if (call)
		call->fn = NULL;
	pthread_mutex_unlock(&link->lock);
	return call;
}

static bool wait_moment(struct link_waiter *waiter, uint64_t ns)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)(ns / WEIR_NS_PER_S);
	until.tv_nsec += (long)(ns % WEIR_NS_PER_S);
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return !sem_timedwait(&waiter->done, &until);
}

int link_call_wait(struct link *link, const void *message, size_t length, void *reply,
		   size_t reply_max, size_t *reply_length, bool (*goes_on)(void *arg), void *arg)
{
	struct link_waiter waiter = { .reply = reply, .max = reply_max };
	uint64_t ns = link->mount->options->timeout * WEIR_NS_PER_S;
	bool is_done;

	sem_init(&waiter.done, 0, 0);
	if (link_call(link, message, length, NULL, wake_waiter, &waiter)) {
		sem_destroy(&waiter.done);
		return -ENOMEM;
	}
	while (!(is_done = wait_moment(&waiter, ns))) {
		ns = 100 * WEIR_NS_PER_MS;
		if (!goes_on(arg) && abandon_call(link, &waiter))
			break;
	}
	sem_destroy(&waiter.done);
	*reply_length = waiter.length;
	return is_done ? waiter.status : -ECANCELED;
}
