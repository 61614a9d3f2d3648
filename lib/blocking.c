/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The blocking forms: any memory goes, because the bytes are staged through a pool that
 * the session registered once. What is longer than one buffer of it is cut into parts,
 * several of which are under way while others are copied.
 */
#include <errno.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/deliver.h"
#include "lib/pump.h"
#include "lib/region.h"
#include "lib/request.h"
#include "lib/session.h"
#include "lib/waiter.h"

#define STAGE_BYTES (64u << 10)
#define STAGE_COUNT 32
#define PARTS_MAX 8 /* of one transfer under way */

static int stage_get(struct weir_session *session, struct weir_pool **pool)
{
	int rc = 0;

	*pool = __atomic_load_n(&session->stage, __ATOMIC_ACQUIRE);
	if (*pool)
		return 0;
	pthread_mutex_lock(&session->stage_lock);
	*pool = session->stage;
	if (!*pool) {
		rc = weir_pool_create(session, STAGE_BYTES, STAGE_COUNT, pool, NULL);
		if (!rc)
			__atomic_store_n(&session->stage, *pool, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&session->stage_lock);
	return rc;
}

/* One buffer's worth. */
struct part {
	struct weir_waiter waiter;
	void *buffer;
	size_t at; /* in the user's memory */
	size_t length;
};

/*
 * A transfer: parts are begun and ended in order, in a ring. In @buf a write finds its
 * bytes and a read leaves them; one of the two is NULL.
 */
struct transfer {
	struct weir_region *region;
	struct weir_pool *pool;
	uint64_t offset;
	char *to;
	const char *from;
	size_t length;
	size_t begun;
	unsigned int first, count;
	struct part parts[PARTS_MAX];
};

static int part_begin(struct transfer *t, void *buffer)
{
	struct part *part = &t->parts[(t->first + t->count) % PARTS_MAX];
	struct weir_iov iov = { .addr = buffer, .memory = weir_pool_memory(t->pool) };
	int rc;

	iov.length = t->length - t->begun < STAGE_BYTES ? t->length - t->begun : STAGE_BYTES;
	*part = (struct part){ WEIR_WAITER_INIT, buffer, t->begun, iov.length };
	if (t->from)
		memcpy(buffer, t->from + t->begun, iov.length);
	rc = weir_request_transfer_wait(t->region, t->from ? WEIR_OP_WRITE : WEIR_OP_READ,
					t->offset + t->begun, &iov, 0, 0, &part->waiter);
	if (rc) {
		weir_pool_put(t->pool, buffer);
		return rc;
	}
	t->begun += iov.length;
	t->count++;
	return 0;
}

static int part_end(struct transfer *t)
{
	struct weir_session *session = t->region->session;
	struct part *part = &t->parts[t->first];
	int status;

	weir_waiter_wait(&part->waiter, session, &session->op_gaps, UINT64_MAX);
	status = part->waiter.status;
	if (t->to && !status)
		memcpy(t->to + part->at, part->buffer, part->length);
	weir_pool_put(t->pool, part->buffer);
	t->first = (t->first + 1) % PARTS_MAX;
	t->count--;
	return status;
}

/* A buffer, if there is one or nothing else to do than to wait for one. */
static void *buffer_get(struct transfer *t)
{
	return t->count ? weir_pool_get(t->pool) : weir_pool_get_wait(t->pool);
}

/* Begins all that fits. */
static int transfer_begin(struct transfer *t)
{
	int rc = 0;

	while (!rc && t->begun < t->length && t->count < PARTS_MAX) {
		void *buffer = buffer_get(t);

		if (!buffer)
			break;
		rc = part_begin(t, buffer);
	}
	return rc;
}

static int transfer_run(struct transfer *t)
{
	int rc = 0, ended;

	do {
		if (!rc)
			rc = transfer_begin(t);
		ended = t->count ? part_end(t) : 0;
		rc = rc ? rc : ended;
	} while (t->count || (!rc && t->begun < t->length));
	return rc;
}

static int transfer(struct weir_region *region, uint64_t offset, void *to, const void *from,
		    size_t length)
{
	struct transfer t;
	int rc;

	if (!length || offset > region->length || length > region->length - offset)
		return -EINVAL;
	rc = stage_get(region->session, &t.pool);
	if (rc)
		return rc;
	t.region = region;
	t.offset = offset;
	t.to = to;
	t.from = from;
	t.length = length;
	t.begun = 0;
	t.first = t.count = 0;
	return transfer_run(&t);
}

int weir_read(struct weir_region *region, uint64_t offset, void *buf, size_t length)
{
	return transfer(region, offset, buf, NULL, length);
}

int weir_write(struct weir_region *region, uint64_t offset, const void *buf, size_t length)
{
	return transfer(region, offset, NULL, buf, length);
}

static int atomic(struct weir_region *region, enum weir_op op, uint64_t offset, uint64_t compare,
		  uint64_t operand, uint64_t *old)
{
	struct weir_waiter waiter = WEIR_WAITER_INIT;
	struct weir_session *session = region->session;
	struct weir_pool *pool;
	struct weir_iov iov;
	int rc;

	rc = stage_get(session, &pool);
	if (rc)
		return rc;
	iov.addr = weir_pool_get_wait(pool);
	iov.length = sizeof(*old);
	iov.memory = weir_pool_memory(pool);
	rc = weir_request_transfer_wait(region, op, offset, &iov, compare, operand, &waiter);
	if (!rc) {
		weir_waiter_wait(&waiter, session, &session->op_gaps, UINT64_MAX);
		rc = waiter.status;
	}
	if (!rc && old)
		memcpy(old, iov.addr, sizeof(*old));
	weir_pool_put(pool, iov.addr);
	return rc;
}

int weir_compare_swap(struct weir_region *region, uint64_t offset, uint64_t expected,
		      uint64_t desired, uint64_t *old)
{
	return atomic(region, WEIR_OP_CAS, offset, expected, desired, old);
}

int weir_fetch_add(struct weir_region *region, uint64_t offset, uint64_t add, uint64_t *old)
{
	return atomic(region, WEIR_OP_FADD, offset, 0, add, old);
}

int weir_flush(struct weir_session *session)
{
	struct weir_waiter waiter = WEIR_WAITER_INIT;
	int rc;

	rc = weir_request_barrier_wait(session, &waiter);
	if (rc)
		return rc;
	weir_waiter_wait(&waiter, session, &session->op_gaps, UINT64_MAX);
	return waiter.status;
}
