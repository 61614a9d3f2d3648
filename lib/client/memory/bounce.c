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

/* Copies between the user's pieces and the buffers, all but the last of which are full. */
static void copy(const struct weir_req *req, const struct weir_stage *stage, bool to_user)
{
	size_t at = 0, done, part;
	unsigned int i;

	for (i = 0; i < stage->iovcnt; i++) {
		char *user = stage->iov[i].addr;

		for (done = 0; done < stage->iov[i].length; done += part, at += part) {
			const struct weir_sge *sge = &req->sge[at / WEIR_BUFFER_BYTES_MAX];
			size_t offset = at % WEIR_BUFFER_BYTES_MAX;
			char *buffer = (char *)(uintptr_t)sge->addr + offset;

			part = WEIR_BUFFER_BYTES_MAX - offset;
			if (part > stage->iov[i].length - done)
				part = stage->iov[i].length - done;
			memcpy(to_user ? user + done : buffer, to_user ? buffer : user + done,
			       part);
		}
	}
}

static void buffers_put(struct weir_buffers *buffers, const struct weir_req *req,
			struct weir_stage *stage)
{
	while (stage->nr_borrowed) {
		unsigned int i = --stage->nr_borrowed;

		weir_buffers_put(buffers, &(struct weir_buffer){
			.addr = (char *)(uintptr_t)req->sge[i].addr,
			.block = stage->blocks[i],
		});
	}
}

/* Return: 0; as weir_buffers_get(): there are not enough buffers now. */
static int pre_in(struct weir_session *session, struct weir_req *req, struct weir_stage *stage)
{
	uint32_t left = (uint32_t)req->length;
	struct weir_buffer buffers[WEIR_SGE_MAX];
	int i, nr = weir_buffers_get(session, left, buffers);

	if (nr < 0)
		return nr;
	for (i = 0; i < nr; i++) {
		uint32_t part = left < WEIR_BUFFER_BYTES_MAX ? left : WEIR_BUFFER_BYTES_MAX;

		stage->blocks[i] = buffers[i].block;
		req->sge[i] = (struct weir_sge){ (uintptr_t)buffers[i].addr, part,
						 buffers[i].block->lkey };
		left -= part;
	}
	stage->way = WEIR_STAGE_PRE;
	stage->nr_borrowed = (unsigned int)nr;
	req->nr_sge = (uint8_t)nr;
	if (!brings_data_back(req))
		copy(req, stage, false);
	return 0;
}

static void mrs_put(struct weir_stage *stage)
{
	while (stage->nr_borrowed)
		ibv_dereg_mr(stage->mrs[--stage->nr_borrowed]);
}

/* What is only sent may be memory that nobody may write to. */
static int dyn_in(struct weir_session *session, struct weir_req *req, struct weir_stage *stage)
{
	int access = brings_data_back(req) ? IBV_ACCESS_LOCAL_WRITE : 0;
	unsigned int i;

	stage->way = WEIR_STAGE_DYN;
	stage->nr_borrowed = 0;
	for (i = 0; i < stage->iovcnt; i++) {
		const struct weir_iov *iov = &stage->iov[i];
		struct ibv_mr *mr = iov->memory ? iov->memory->mr : NULL;

		if (!mr) {
			mr = ibv_reg_mr(session->nic->pd, iov->addr, iov->length, access);
			if (!mr) {
				mrs_put(stage);
				return -ENOMEM;
			}
			stage->mrs[stage->nr_borrowed++] = mr;
		}
		req->sge[i] = (struct weir_sge){ (uintptr_t)iov->addr, (uint32_t)iov->length,
						 mr->lkey };
	}
	req->nr_sge = (uint8_t)stage->iovcnt;
	return 0;
}

static bool is_to_be_copied(const struct weir_session *session, const struct weir_req *req)
{
	if (req->length > WEIR_STAGE_PRE_BYTES_MAX || session->options.mr == WEIR_MR_DYN)
		return false;
	return session->options.mr == WEIR_MR_PRE || req->length < session->options.mr_dyn_bytes;
}

/* Describes the pieces that are registered. Returns how many are not, or -EINVAL. */
static int describe(const struct weir_session *session, struct weir_req *req,
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

int weir_stage_in(struct weir_session *session, struct weir_req *req, const struct weir_iov *iov,
		  unsigned int iovcnt, struct weir_stage *stage)
{
	int unregistered = describe(session, req, iov, iovcnt), rc;

	stage->way = WEIR_STAGE_USER;
	if (unregistered <= 0)
		return unregistered;
	stage->iovcnt = iovcnt;
	memcpy(stage->iov, iov, iovcnt * sizeof(*iov));
	if (!is_to_be_copied(session, req))
		return dyn_in(session, req, stage);
	rc = pre_in(session, req, stage);
	return rc && session->options.mr != WEIR_MR_PRE ? dyn_in(session, req, stage) : rc;
}

void weir_stage_out(struct weir_session *session, const struct weir_req *req,
		    struct weir_stage *stage)
{
	if (stage->way == WEIR_STAGE_PRE) {
		if (brings_data_back(req) && !req->status)
			copy(req, stage, true);
		buffers_put(&session->buffers, req, stage);
	} else if (stage->way == WEIR_STAGE_DYN) {
		mrs_put(stage);
	}
}

void weir_stage_count(struct weir_session *session, enum weir_stage_way way, uint64_t bytes)
{
	struct weir_stage_sums *sums = &session->staged;

	if (way == WEIR_STAGE_PRE) {
		session->counters->pre++;
		sums->copied++;
		sums->copied_bytes += bytes;
	} else {
		session->counters->dyn++;
		sums->registered++;
		sums->registered_bytes += bytes;
	}
}

static void tell(struct weir_session *session, enum weir_trace_what what, uint32_t reqs,
		 uint64_t bytes)
{
	if (reqs)
		weir_session_note(session, &(struct weir_trace_record){
			.what = what,
			.reqs = reqs,
			.bytes = bytes,
		});
}

void weir_stage_tell(struct weir_session *session)
{
	struct weir_stage_sums sums = session->staged;
	uint64_t now_ns = session->nic->window.now_ns;

	if ((!sums.copied && !sums.registered) || now_ns - sums.told_ns < TELL_NS)
		return;
	session->staged = (struct weir_stage_sums){ .told_ns = now_ns };
	tell(session, WEIR_TRACE_COPY, sums.copied, sums.copied_bytes);
	tell(session, WEIR_TRACE_REGISTER, sums.registered, sums.registered_bytes);
}

/* The best of a few rounds, or UINT64_MAX when it cannot be registered. */
static uint64_t time_of_dyn(struct ibv_pd *pd, void *addr, size_t length)
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

static uint64_t time_of_copy(void *to, const void *from, size_t length)
{
	uint64_t best = UINT64_MAX, begin, took;
	int i;

	for (i = 0; i < MEASURE_ROUNDS; i++) {
		begin = weir_now_ns();
		memcpy(to, from, length);
		__asm__ volatile("" ::: "memory"); /* or it would not be copied at all */
		took = weir_now_ns() - begin;
		best = took < best ? took : best;
	}
	return best;
}

uint32_t weir_stage_measure(struct ibv_pd *pd)
{
	uint32_t bytes = MEASURE_BYTES_MIN;
	char *from = weir_memory_map(WEIR_STAGE_PRE_BYTES_MAX, -1);
	char *to = weir_memory_map(WEIR_STAGE_PRE_BYTES_MAX, -1);

	while (from && to && bytes < WEIR_STAGE_PRE_BYTES_MAX &&
	       time_of_dyn(pd, from, bytes) >= time_of_copy(to, from, bytes))
		bytes *= 2;
	weir_memory_unmap(from, WEIR_STAGE_PRE_BYTES_MAX);
	weir_memory_unmap(to, WEIR_STAGE_PRE_BYTES_MAX);
	return bytes;
}
