// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Completion queues: polling and arming. Channels are in comp.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cq.h"
#include "nic.h"

static struct {
	pthread_mutex_t lock;
	uint32_t next;
	bool taken[SHARED_CQS];
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int take_index(uint32_t *index)
{
	uint32_t i;
	int err = -ENOMEM;

	pthread_mutex_lock(&table.lock);
	for (i = 0; i < SHARED_CQS && err; i++) {
		*index = table.next++ % SHARED_CQS;
		if (table.taken[*index])
			continue;
		table.taken[*index] = true;
		err = 0;
	}
	pthread_mutex_unlock(&table.lock);
	return err;
}

static void give_index(uint32_t index)
{
	pthread_mutex_lock(&table.lock);
	table.taken[index] = false;
	pthread_mutex_unlock(&table.lock);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	uint32_t index;
	struct cq *cq;

	if (cqe < 1 || cqe > SOFTNIC_CQES_MAX || comp_vector < 0 ||
	    comp_vector >= context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq || take_index(&index)) {
		free(cq);
		errno = ENOMEM;
		return NULL;
	}
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.handle = index;
	cq->ibv.cqe = cqe;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	pthread_mutex_init(&cq->lock, NULL);
	cq->bell = &nic.bell->cqs[index];
	store_relaxed(&cq->bell->armed, ARMED_NOT);
	store_relaxed(&cq->bell->fired, 0);
	cq->seen = load_relaxed(&cq->bell->arrivals);
	if (channel)
		channel_add(to_channel(channel), cq);
	return &cq->ibv;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	if (cqe < 1 || cqe > SOFTNIC_CQES_MAX)
		return EINVAL;
	cq->cqe = cqe;
	return 0;
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct cq *cq = to_cq(ibv);
	bool busy;

	pthread_mutex_lock(&cq->lock);
	busy = cq->sources;
	pthread_mutex_unlock(&cq->lock);
	if (busy)
		return EBUSY;
	if (ibv->channel)
		channel_del(to_channel(ibv->channel), cq);
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->comp_events_completed != cq->events_delivered)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	give_index(ibv->handle);
	pthread_mutex_destroy(&cq->lock);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	free(cq);
	return 0;
}

void cq_add(struct cq *cq, struct cq_source *source)
{
	pthread_mutex_lock(&cq->lock);
	source->next = cq->sources;
	cq->sources = source;
	pthread_mutex_unlock(&cq->lock);
}

void cq_del(struct cq *cq, struct cq_source *source)
{
	struct cq_source **at;

	pthread_mutex_lock(&cq->lock);
	for (at = &cq->sources; *at != source; at = &(*at)->next)
		;
	*at = source->next;
	if (cq->turn == source)
		cq->turn = NULL;
	pthread_mutex_unlock(&cq->lock);
}

/* Each source once, beginning where the last call had to stop. */
static int poll_sources(struct cq *cq, struct ibv_wc *wc, int room)
{
	struct cq_source *first = cq->turn ? cq->turn : cq->sources, *s = first;
	int n = 0;

	while (s && n < room) {
		n += s->poll(s->qp, wc + n, room - n);
		s = s->next ? s->next : cq->sources;
		if (s == first)
			break;
	}
	cq->turn = s;
	return n;
}

int cq_poll(struct ibv_cq *ibv, int room, struct ibv_wc *wc)
{
	struct cq *cq = to_cq(ibv);
	uint32_t arrivals;
	int i, n = 0;

	pthread_mutex_lock(&cq->lock);
	arrivals = load_acquire(&cq->bell->arrivals);
	if (arrivals != cq->seen) {
		n = poll_sources(cq, wc, room);
		if (n < room)
			cq->seen = arrivals;
	}
	pthread_mutex_unlock(&cq->lock);
	if (!n)
		return 0;
	count(completions, n);
	for (i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			count(errors, 1);
	return n;
}

/*
 * Pairs with cq_ring(): we store the arm and the program polls again; the completion is
 * stored and the ringer looks at the arm. One of the two sees the other.
 */
int cq_arm(struct ibv_cq *ibv, int solicited_only)
{
	struct shared_cq *bell = to_cq(ibv)->bell;
	uint32_t none = ARMED_NOT;

	if (!ibv->channel)
		return 0;
	if (!solicited_only)
		store_ordered(&bell->armed, ARMED_ANY);
	else	/* an arm for any event stays one */
		__atomic_compare_exchange_n(&bell->armed, &none, ARMED_SOLICITED, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return 0;
}

static void fire(struct shared_cq *bell, int channel_fd)
{
	static const uint64_t one = 1;

	add_ordered(&bell->fired, 1);
	if (channel_fd >= 0 && write(channel_fd, &one, sizeof(one)) < 0)
		add_ordered(&bell->fired, -1);
}

void cq_ring(struct shared_cq *bell, int channel_fd, bool solicited)
{
	uint32_t armed;

	add_ordered(&bell->arrivals, 1);
	armed = load_ordered(&bell->armed);
	if (armed == ARMED_NOT || (armed == ARMED_SOLICITED && !solicited))
		return;
	if (swap_ordered(&bell->armed, ARMED_NOT) != ARMED_NOT)
		fire(bell, channel_fd);
}

static int channel_fd(const struct cq *cq)
{
	return cq->ibv.channel ? cq->ibv.channel->fd : -1;
}

void cq_notice(struct cq *cq, bool solicited)
{
	cq_ring(cq->bell, channel_fd(cq), solicited);
}

void cq_ring_anyway(struct cq *cq)
{
	add_ordered(&cq->bell->arrivals, 1);
	swap_ordered(&cq->bell->armed, ARMED_NOT);
	if (cq->ibv.channel)
		fire(cq->bell, channel_fd(cq));
}
