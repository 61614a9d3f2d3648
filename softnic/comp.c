// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Completion channels: an eventfd that counts events, one a read.
 *
 * Whoever completes writes it, peers in other processes included; which queue it was for
 * is in that queue's bell. So the descriptor can be polled, and set to not block, as any
 * other channel's.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cq.h"
#include "nic.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct channel *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->ibv.context = context;
	c->ibv.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (c->ibv.fd < 0) {
		free(c);
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	return &c->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct channel *c = to_channel(ibv);

	if (c->cqs)
		return EBUSY;
	close(ibv->fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
	return 0;
}

void channel_add(struct channel *c, struct cq *cq)
{
	pthread_mutex_lock(&c->lock);
	cq->next_in_channel = c->cqs;
	c->cqs = cq;
	c->ibv.refcnt++;
	pthread_mutex_unlock(&c->lock);
}

/* Another thread may read the descriptor at the same time, so this must never wait. */
static void take_back_events(struct channel *c, uint32_t fired)
{
	uint64_t one;
	struct iovec iov = { &one, sizeof(one) };

	while (fired-- && preadv2(c->ibv.fd, &iov, 1, -1, RWF_NOWAIT) == sizeof(one))
		;
}

void channel_del(struct channel *c, struct cq *cq)
{
	struct cq **at;

	pthread_mutex_lock(&c->lock);
	for (at = &c->cqs; *at != cq; at = &(*at)->next_in_channel)
		;
	*at = cq->next_in_channel;
	if (c->turn == cq)
		c->turn = NULL;
	c->ibv.refcnt--;
	take_back_events(c, line_take_all(cq));
	pthread_mutex_unlock(&c->lock);
}

/* The queues take turns, lest a busy one hide the others. */
static struct cq *take_fired(struct channel *c)
{
	struct cq *first = c->turn ? c->turn : c->cqs, *cq = first;

	do {
		struct cq *next;

		if (!cq)
			return NULL;
		next = cq->next_in_channel ? cq->next_in_channel : c->cqs;
		if (line_take(cq)) {
			c->turn = next;
			return cq;
		}
		cq = next;
	} while (cq != first);
	return NULL;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **out, void **cq_context)
{
	struct channel *c = to_channel(channel);
	struct cq *cq;
	uint64_t one;

	do {
		if (read(channel->fd, &one, sizeof(one)) != sizeof(one))
			return -1;
		pthread_mutex_lock(&c->lock);
		cq = take_fired(c);
		if (cq) {
			pthread_mutex_lock(&cq->ibv.mutex);
			cq->events_delivered++;
			pthread_mutex_unlock(&cq->ibv.mutex);
		}
		pthread_mutex_unlock(&c->lock);
	} while (!cq);
	*out = &cq->ibv;
	*cq_context = cq->ibv.cq_context;
	count(cq_events, 1);
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
