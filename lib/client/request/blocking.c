/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The blocking forms: submit a request, then wait. */
#include <errno.h>

#include "lib/client/memory/bounce_pool.h"
#include "lib/base/clock.h"
#include "lib/client/channel/pump.h"
#include "lib/client/memory/region.h"
#include "lib/client/request/request.h"
#include "lib/client/session.h"
#include "lib/client/request/waiter.h"

#define WAIT_MS 5 /* poll interval of a thread that drives a session without a thread */
#define PART_BYTES (1u << 30) /* the maximum of one piece of a request, with a margin */

/* Waits for the request, if the submission succeeded. */
static int wait_for_request(struct weir_session *session, struct weir_waiter *waiter, int rc)
{
	if (rc)
		return rc;
	weir_waiter_wait(waiter, session, &session->op_idle_time, UINT64_MAX);
	if (waiter->request)
		return weir_request_release(waiter->request, waiter->status);
	return waiter->status;
}

struct blocking_request {
	struct weir_region *region;
	enum weir_op op;
	uint64_t offset;
	const struct weir_iov *iov;
	unsigned int iovcnt;
	uint64_t compare, operand;
};

static int submit_and_wait(const struct blocking_request *w)
{
	struct weir_waiter waiter = WEIR_WAITER_INIT;
	int rc;

	if (w->op <= WEIR_OP_WRITE)
		rc = weir_request_move_wait(w->region, w->op, w->offset, w->iov, w->iovcnt,
					    &waiter);
	else
		rc = weir_request_atomic_wait(w->region, w->op, w->offset, w->iov, w->compare,
					      w->operand, &waiter);
	return wait_for_request(w->region->session, &waiter, rc);
}

/*
 * All bounce buffers are in use. The session's thread completes their requests, or, in a session
 * without a thread, the caller does.
 */
__attribute__((noinline, cold)) static int retry_until_buffer_free(const struct blocking_request *w)
{
	struct weir_session *session = w->region->session;
	struct weir_bounce_pool *buffers = &session->buffers;
	uint64_t until_ns = weir_after_ns(weir_now_ns(), session->options.timeout_ns);
	uint32_t turns = weir_bounce_pool_begin_wait(buffers);
	int rc;

	while ((rc = submit_and_wait(w)) == -EAGAIN) {
		if (weir_now_ns() >= until_ns) {
			rc = -ETIMEDOUT;
			break;
		}
		if (weir_session_has_thread(session))
			turns = weir_bounce_pool_wait(buffers, turns, until_ns);
		else
			weir_pump_step(session, WAIT_MS, true);
	}
	weir_bounce_pool_end_wait(buffers);
	return rc;
}

static inline int transfer_iov(struct weir_region *region, enum weir_op op, uint64_t offset,
			       const struct weir_iov *iov, unsigned int iovcnt)
{
	struct weir_waiter waiter = WEIR_WAITER_INIT;
	int rc = wait_for_request(region->session, &waiter,
				  weir_request_move_wait(region, op, offset, iov, iovcnt, &waiter));

	if (rc != -EAGAIN)
		return rc;
	return retry_until_buffer_free(
		&(struct blocking_request){ region, op, offset, iov, iovcnt, 0, 0 });
}

static int transfer(struct weir_region *region, enum weir_op op, uint64_t offset, char *buf,
		    size_t length)
{
	const bool copies = region->session->tuning.mr == WEIR_MR_PRE;
	const size_t part_max = copies ? WEIR_BOUNCE_PRE_BYTES_MAX : PART_BYTES;
	size_t done = 0;
	int rc;

	if (!length || offset > region->length || length > region->length - offset)
		return -EINVAL;
	do {
		const struct weir_iov iov = {
			.addr = buf + done,
			.length = length - done < part_max ? length - done : part_max,
		};

		rc = transfer_iov(region, op, offset + done, &iov, 1);
		done += iov.length;
	} while (!rc && done < length);
	return rc;
}

int weir_read(struct weir_region *region, uint64_t offset, void *buf, size_t length)
{
	return transfer(region, WEIR_OP_READ, offset, buf, length);
}

int weir_write(struct weir_region *region, uint64_t offset, const void *buf, size_t length)
{
	return transfer(region, WEIR_OP_WRITE, offset, (char *)buf, length); /* only read */
}

int weir_readv(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
	       unsigned int iovcnt)
{
	return transfer_iov(region, WEIR_OP_READ, offset, iov, iovcnt);
}

int weir_writev(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
		unsigned int iovcnt)
{
	return transfer_iov(region, WEIR_OP_WRITE, offset, iov, iovcnt);
}

static int atomic(struct weir_region *region, enum weir_op op, uint64_t offset, uint64_t compare,
		  uint64_t operand, uint64_t *old)
{
	uint64_t before;
	const struct weir_iov iov = { .addr = &before, .length = sizeof(before) };
	const struct blocking_request blocking_request = { region, op,	    offset, &iov,
							   1,	   compare, operand };
	int rc = submit_and_wait(&blocking_request);

	if (rc == -EAGAIN)
		rc = retry_until_buffer_free(&blocking_request);
	if (!rc && old)
		*old = before;
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

	return wait_for_request(session, &waiter, weir_request_barrier_wait(session, &waiter));
}
