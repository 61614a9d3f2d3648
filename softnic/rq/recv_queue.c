// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Receives that are out form a list in the order posted, ending at posted[size]. We never read
 * wr_ids, lengths and buffers back from shared memory; they stay here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softnic/shm/iov_list.h"
#include "softnic/strict/strict.h"
#include "softnic/verbs/nic.h"
#include "recv_queue.h"

int recv_queue_init(struct recv_queue *rq, uint32_t max_wr, uint32_t room, uint32_t max_sge)
{
	uint32_t size = rq_size_for(room);

	pthread_mutex_init(&rq->lock, NULL);
	rq->max_wr = max_wr;
	rq->max_sge = max_sge;
	rq->ring.size = size;
	rq->ring.sges = max_sge;
	rq->posted = calloc(size + 1, sizeof(*rq->posted));
	rq->free = calloc(size + 1, sizeof(*rq->free));
	rq->sges = calloc((size_t)size * max_sge + 1, sizeof(*rq->sges));
	return rq->posted && rq->free && rq->sges ? 0 : -ENOMEM;
}

void recv_queue_fini(struct recv_queue *rq)
{
	strict_forget(rq);
	free(rq->posted);
	free(rq->sges);
	free(rq->free);
	pthread_mutex_destroy(&rq->lock);
}

void recv_queue_format(struct recv_queue *rq, void *own, void *at, uint32_t pd)
{
	uint32_t size = rq->ring.size, i;

	strict_forget(rq);
	rq_format(&rq->ring, own, at, size, rq->ring.sges, pd);
	for (i = 0; i < size; i++) {
		rq->free[i] = size - 1 - i;
		rq->posted[i].next = NOT_OUT;
	}
	rq->num_free = size;
	rq->posted[size].prev = rq->posted[size].next = size;
	rq->tail = rq_first_position(&rq->ring);
}

bool recv_is_out(const struct recv_queue *rq, uint32_t index)
{
	return index < rq->ring.size && rq->posted[index].next != NOT_OUT;
}

/* Append to the list. */
static void set_out(struct recv_queue *rq, uint32_t index)
{
	uint32_t end = rq->ring.size, last = rq->posted[end].prev;

	rq->posted[index].prev = last;
	rq->posted[index].next = end;
	rq->posted[last].next = index;
	rq->posted[end].prev = index;
}

void recv_set_in(struct recv_queue *rq, uint32_t index)
{
	struct posted_recv *p = &rq->posted[index];

	rq->posted[p->prev].next = p->next;
	rq->posted[p->next].prev = p->prev;
	p->next = NOT_OUT;
	rq_end(&rq->ring, index);
}

void recv_set_free(struct recv_queue *rq, uint32_t index)
{
	rq->free[rq->num_free++] = index;
}

void recv_release(struct recv_queue *rq, uint32_t index)
{
	recv_set_in(rq, index);
	recv_set_free(rq, index);
}

void recv_hand_out(struct recv_queue *rq, uint32_t index, const struct ibv_sge *sges,
		   uint32_t num_sge)
{
	set_out(rq, index);
	rq->posted[index].position = rq->tail;
	rq->posted[index].in_pieces = 0;
	rq_post(&rq->ring, rq->tail++, index, sges, num_sge);
}

void recv_hand_out_again(struct recv_queue *rq, uint32_t index)
{
	recv_set_in(rq, index);
	recv_hand_out(rq, index, NULL, 0);
}

static struct ibv_sge *sges_of(const struct recv_queue *rq, uint32_t index)
{
	return rq->sges + (size_t)index * rq->max_sge;
}

bool recv_scatter(const struct recv_queue *rq, uint32_t index, uint32_t pd, uint64_t offset,
		  const void *bytes, uint32_t length)
{
	const struct mr_view view = { nic.pub, NULL, pd, 0 };
	struct iovec here = { (void *)bytes, length };
	struct iov_list list;

	return iov_list_gather(&list, NULL, &view, IBV_ACCESS_LOCAL_WRITE, sges_of(rq, index),
			       rq->posted[index].num_sge, offset, length) &&
	       !copy_bytes(&nic.self, true, &here, 1, list.v, list.num);
}

/* A peer can have made the ring name a receive that is free, or is posted elsewhere. */
static bool is_as_posted(const struct recv_queue *rq, const struct rq_receive *r)
{
	return recv_is_out(rq, r->index) && rq->posted[r->index].position == r->position;
}

static int take_over(struct recv_queue *rq, struct rq_receive *r)
{
	int rc = -EPROTO;

	pthread_mutex_lock(&rq->lock);
	if (is_as_posted(rq, r)) {
		r->room = rq->posted[r->index].room;
		rc = 0;
	}
	pthread_mutex_unlock(&rq->lock);
	return rc;
}

int recv_queue_take(struct recv_queue *rq, uint32_t taker, struct rq_receive *r)
{
	int rc, i;

	for (i = 0; i < RQ_TAKES_MAX; i++) {
		rc = rq_peek(&rq->ring, r);
		if (rc)
			return rc;
		if (rq_take(&rq->ring, r, taker))
			return take_over(rq, r);
	}
	return -EAGAIN;
}

bool recv_queue_fill(struct recv_queue *rq, const struct rq_receive *r, uint32_t pd,
		     uint64_t offset, const void *bytes, uint32_t length)
{
	bool is_filled;

	pthread_mutex_lock(&rq->lock);
	is_filled = is_as_posted(rq, r) &&
		    recv_scatter(rq, r->index, pd, offset, bytes, length);
	pthread_mutex_unlock(&rq->lock);
	return is_filled;
}

static int post_one(struct recv_queue *rq, const struct ibv_recv_wr *wr)
{
	struct posted_recv *posted;
	uint32_t index;
	int i;

	if (recv_queue_num_out(rq) >= rq->max_wr)
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	index = rq->free[--rq->num_free];
	posted = &rq->posted[index];
	posted->wr_id = wr->wr_id;
	posted->num_sge = wr->num_sge;
	if (wr->num_sge)
		memcpy(sges_of(rq, index), wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));
	for (posted->room = 0, i = 0; i < wr->num_sge; i++)
		posted->room += wr->sg_list[i].length;
	recv_hand_out(rq, index, wr->sg_list, wr->num_sge);
	return 0;
}

int recv_queue_post(struct recv_queue *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr,
		    uint32_t *posted)
{
	uint32_t n = 0;
	int rc = 0;

	pthread_mutex_lock(&rq->lock);
	for (; wr; wr = wr->next) {
		rc = post_one(rq, wr);
		if (rc) {
			*bad_wr = wr;
			break;
		}
		n++;
	}
	pthread_mutex_unlock(&rq->lock);
	count(doorbells, 1);
	count(recv_wrs, n);
	*posted = n;
	return rc;
}
