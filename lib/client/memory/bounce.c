/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/client/memory/memory.h"
#include "lib/client/session.h"
#include "lib/client/memory/bounce.h"

#define MEASURE_BYTES_MIN 4096
#define MEASURE_ROUNDS 5
#define TELL_NS (10 * WEIR_NS_PER_MS)

static bool brings_data_back(const struct weir_req *req)
{
	return req->op != WEIR_OP_WRITE;
}

/* Copies between the user's pieces and the buffers; all buffers but the last are full. */
static void copy_buffers(const struct weir_req *req, const struct weir_bounce *bounce, bool to_user)
{
	size_t at = 0, done, part;
	unsigned int i;

	for (i = 0; i < bounce->iovcnt; i++) {
		char *user = bounce->iov[i].addr;

		for (done = 0; done < bounce->iov[i].length; done += part, at += part) {
			const struct weir_sge *sge = &req->sge[at / WEIR_BOUNCE_BUFFER_BYTES_MAX];
			size_t offset = at % WEIR_BOUNCE_BUFFER_BYTES_MAX;
			char *buffer = (char *)(uintptr_t)sge->addr + offset;

			part = WEIR_BOUNCE_BUFFER_BYTES_MAX - offset;
			if (part > bounce->iov[i].length - done)
				part = bounce->iov[i].length - done;
			memcpy(to_user ? user + done : buffer, to_user ? buffer : user + done,
			       part);
		}
	}
}

static void put_buffers(struct weir_bounce_pool *buffers, const struct weir_req *req,
			struct weir_bounce *bounce)
{
	while (bounce->nr_borrowed) {
		unsigned int i = --bounce->nr_borrowed;

		weir_bounce_pool_put(buffers, &(struct weir_bounce_buffer){
						      .addr = (char *)(uintptr_t)req->sge[i].addr,
						      .block = bounce->blocks[i],
					      });
	}
}

/* Return: 0; without enough buffers as weir_bounce_pool_get(). */
static int map_pre(struct weir_session *session, struct weir_req *req, struct weir_bounce *bounce)
{
	uint32_t left = (uint32_t)req->length;
	struct weir_bounce_buffer buffers[WEIR_SGE_MAX];
	int i, nr = weir_bounce_pool_get(session, left, buffers);

	if (nr < 0)
		return nr;
	for (i = 0; i < nr; i++) {
		uint32_t part = left < WEIR_BOUNCE_BUFFER_BYTES_MAX ? left :
								      WEIR_BOUNCE_BUFFER_BYTES_MAX;

		bounce->blocks[i] = buffers[i].block;
		req->sge[i] = (struct weir_sge){ (uintptr_t)buffers[i].addr, part,
						 buffers[i].block->lkey };
		left -= part;
	}
	bounce->mode = WEIR_BOUNCE_PRE;
	bounce->nr_borrowed = (unsigned int)nr;
	req->nr_sge = (uint8_t)nr;
	if (!brings_data_back(req))
		copy_buffers(req, bounce, false);
	return 0;
}

static void put_mrs(struct weir_bounce *bounce)
{
	while (bounce->nr_borrowed)
		ibv_dereg_mr(bounce->mrs[--bounce->nr_borrowed]);
}

/* Memory that is only sent may be read-only. */
static int map_dyn(struct weir_session *session, struct weir_req *req, struct weir_bounce *bounce)
{
	int access = brings_data_back(req) ? IBV_ACCESS_LOCAL_WRITE : 0;
	unsigned int i;

	bounce->mode = WEIR_BOUNCE_DYN;
	bounce->nr_borrowed = 0;
	for (i = 0; i < bounce->iovcnt; i++) {
		const struct weir_iov *iov = &bounce->iov[i];
		struct ibv_mr *mr = iov->memory ? iov->memory->mr : NULL;

		if (!mr) {
			mr = ibv_reg_mr(session->nic->pd, iov->addr, iov->length, access);
			if (!mr) {
				put_mrs(bounce);
				return -ENOMEM;
			}
			bounce->mrs[bounce->nr_borrowed++] = mr;
		}
		req->sge[i] =
			(struct weir_sge){ (uintptr_t)iov->addr, (uint32_t)iov->length, mr->lkey };
	}
	req->nr_sge = (uint8_t)bounce->iovcnt;
	return 0;
}

static bool must_copy(const struct weir_session *session, const struct weir_req *req)
{
	if (req->length > WEIR_BOUNCE_PRE_BYTES_MAX || session->tuning.mr == WEIR_MR_DYN)
		return false;
	return session->tuning.mr == WEIR_MR_PRE || req->length < session->tuning.mr_dyn_bytes;
}

/* Describes registered pieces. Return: the number of unregistered pieces, or -EINVAL. */
static int describe_registered(const struct weir_session *session, struct weir_req *req,
			       const struct weir_iov *iov, unsigned int iovcnt)
{
	const struct weir_nic *nic = session->nic;
	int unregistered = 0;
	unsigned int i;

	if (!iov || iovcnt < 1 || iovcnt > WEIR_SGE_MAX)
		return -EINVAL;
	req->nr_sge = (uint8_t)iovcnt;
	req->length = 0;
	for (i = 0; i < iovcnt; i++) {
		const struct weir_memory *memory = iov[i].memory;
		size_t length = iov[i].length;

		if (!iov[i].addr || !length || length > UINT32_MAX)
			return -EINVAL;
		req->length += length;
		if (!memory) {
			unregistered++;
			continue;
		}
		if (!weir_memory_covers(memory, nic, &iov[i]))
			return -EINVAL;
		req->sge[i] = weir_memory_sge(memory, &iov[i]);
	}
	return unregistered;
}

int weir_bounce_map(struct weir_session *session, struct weir_req *req, const struct weir_iov *iov,
		    unsigned int iovcnt, struct weir_bounce *bounce)
{
	int unregistered = describe_registered(session, req, iov, iovcnt), rc;

	bounce->mode = WEIR_BOUNCE_NONE;
	if (unregistered <= 0)
		return unregistered;
	bounce->iovcnt = iovcnt;
	memcpy(bounce->iov, iov, iovcnt * sizeof(*iov));
	if (!must_copy(session, req))
		return map_dyn(session, req, bounce);
	rc = map_pre(session, req, bounce);
	return rc && session->tuning.mr != WEIR_MR_PRE ? map_dyn(session, req, bounce) : rc;
}

void weir_bounce_unmap(struct weir_session *session, const struct weir_req *req,
		       struct weir_bounce *bounce)
{
	if (bounce->mode == WEIR_BOUNCE_PRE) {
		if (brings_data_back(req) && !req->status)
			copy_buffers(req, bounce, true);
		put_buffers(&session->buffers, req, bounce);
	} else if (bounce->mode == WEIR_BOUNCE_DYN) {
		put_mrs(bounce);
	}
}

void weir_bounce_count(struct weir_session *session, enum weir_bounce_mode mode, uint64_t bytes)
{
	struct weir_bounce_totals *sums = &session->bounce_totals;

	if (mode == WEIR_BOUNCE_PRE) {
		session->counters->pre++;
		sums->copied++;
		sums->copied_bytes += bytes;
	} else {
		session->counters->dyn++;
		sums->registered++;
		sums->registered_bytes += bytes;
	}
}

static void trace_totals(struct weir_session *session, enum weir_trace_event event, uint32_t reqs,
			 uint64_t bytes)
{
	if (reqs)
		weir_session_trace(session, &(struct weir_trace_record){
						    .event = event,
						    .reqs = reqs,
						    .bytes = bytes,
					    });
}

void weir_bounce_trace(struct weir_session *session)
{
	struct weir_bounce_totals sums = session->bounce_totals;
	uint64_t now_ns = session->nic->window.now_ns;

	if ((!sums.copied && !sums.registered) || now_ns - sums.told_ns < TELL_NS)
		return;
	session->bounce_totals = (struct weir_bounce_totals){ .told_ns = now_ns };
	trace_totals(session, WEIR_TRACE_COPY, sums.copied, sums.copied_bytes);
	trace_totals(session, WEIR_TRACE_REGISTER, sums.registered, sums.registered_bytes);
}

/* The best of a few rounds, or UINT64_MAX when registration fails. */
static uint64_t measure_register_ns(struct ibv_pd *pd, void *addr, size_t length)
{
	uint64_t best = UINT64_MAX, begin, took;
	struct ibv_mr *mr;
	int i;

	for (i = 0; i < MEASURE_ROUNDS; i++) {
		begin = weir_now_ns();
		mr = ibv_reg_mr(pd, addr, length, IBV_ACCESS_LOCAL_WRITE);
		if (!mr)
			return UINT64_MAX;
		ibv_dereg_mr(mr);
		took = weir_now_ns() - begin;
		best = took < best ? took : best;
	}
	return best;
}

static uint64_t measure_copy_ns(void *to, const void *from, size_t length)
{
	uint64_t best = UINT64_MAX, begin, took;
	int i;

	for (i = 0; i < MEASURE_ROUNDS; i++) {
		begin = weir_now_ns();
		memcpy(to, from, length);
		__asm__ volatile("" ::: "memory"); /* or the compiler would drop the copy */
		took = weir_now_ns() - begin;
		best = took < best ? took : best;
	}
	return best;
}

uint32_t weir_bounce_measure(struct ibv_pd *pd)
{
	uint32_t bytes = MEASURE_BYTES_MIN;
	char *from = weir_memory_map(WEIR_BOUNCE_PRE_BYTES_MAX, -1);
	char *to = weir_memory_map(WEIR_BOUNCE_PRE_BYTES_MAX, -1);

	while (from && to && bytes < WEIR_BOUNCE_PRE_BYTES_MAX &&
	       measure_register_ns(pd, from, bytes) >= measure_copy_ns(to, from, bytes))
		bytes *= 2;
	weir_memory_unmap(from, WEIR_BOUNCE_PRE_BYTES_MAX);
	weir_memory_unmap(to, WEIR_BOUNCE_PRE_BYTES_MAX);
	return bytes;
}
