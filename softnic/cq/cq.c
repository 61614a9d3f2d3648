// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Creating, polling and destroying completion queues. Doorbells are in doorbell.c, channels in
 * comp_channel.c.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "comp_channel.h"
#include "cq.h"
#include "softnic/control/fault.h"
#include "softnic/loop/fork.h"
#include "softnic/verbs/nic.h"
#include "softnic/verbs/pd.h"
#include "softnic/qp/qp.h"
#include "softnic/strict/strict.h"
#include "softnic/udp/poller.h"

static struct {
	pthread_mutex_t lock;
	uint32_t next;
	struct cq *cqs[SHARED_CQS];
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int take_index(struct cq *cq)
{
	uint32_t i, index;
	int rc = -ENOMEM;

	pthread_mutex_lock(&table.lock);
	for (i = 0; i < SHARED_CQS && rc; i++) {
		index = table.next++ % SHARED_CQS;
		if (table.cqs[index])
			continue;
		table.cqs[index] = cq;
		cq->ibv.handle = index;
		rc = 0;
	}
	pthread_mutex_unlock(&table.lock);
	return rc;
}

static void give_index(uint32_t index)
{
	pthread_mutex_lock(&table.lock);
	table.cqs[index] = NULL;
	pthread_mutex_unlock(&table.lock);
}

static void reset_cqs(void)
{
	memset(table.cqs, 0, sizeof(table.cqs));
}

const struct fork_part cq_fork = { &table.lock, reset_cqs };

struct cq *cq_at(uint32_t index)
{
	struct cq *cq = NULL;

	pthread_mutex_lock(&table.lock);
	if (index < SHARED_CQS)
		cq = table.cqs[index];
	pthread_mutex_unlock(&table.lock);
	return cq;
}

/* One less than a power of two, as hardware providers round. */
static uint32_t capacity_for(uint32_t cqe)
{
	uint32_t n = 1;

	while (n < cqe)
		n = 2 * n + 1;
	return n;
}

static struct pd *domain_of(const struct ibv_cq_init_attr_ex *init)
{
	return init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? to_pd(init->parent_domain) : NULL;
}

static void init_fields(struct cq *cq, struct ibv_context *context,
			const struct ibv_cq_init_attr_ex *init)
{
	cq->ibv.context = context;
	cq->ibv.channel = init->channel;
	cq->ibv.cq_context = init->cq_context;
	cq->ibv.cqe = capacity_for(init->cqe);
	cq->take = cq_take;
	cq->domain = domain_of(init);
	if (cq->domain)
		pd_use(cq->domain);
	cq->events = (struct async_subject){
		.element = &cq->ibv,
		.mutex = &cq->ibv.mutex,
		.cond = &cq->ibv.cond,
		.completed = &cq->ibv.async_events_completed,
	};
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	pthread_mutex_init(&cq->lock, NULL);
	ready_list_init(&cq->ready_list);
}

static void init_bell(struct cq *cq, const struct ibv_cq_init_attr_ex *init)
{
	bool ignore = (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
		      (init->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);

	cq->capacity = ignore ? INT32_MAX : cq->ibv.cqe;
	doorbell_init(cq);
	store_relaxed(&cq->doorbell.at->is_stamped, init->wc_flags & CQ_STAMPS);
}

static int check_init_attr(const struct ibv_context *context,
			   const struct ibv_cq_init_attr_ex *init)
{
	const uint32_t flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED |
			       IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;

	if (init->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
		return EOPNOTSUPP;
	if ((init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (init->flags & ~flags))
		return EOPNOTSUPP;
	if ((init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
	    (!domain_of(init) || !domain_of(init)->parent_of))
		return EINVAL;
	if (fault_is_gone())
		return EIO;
	if (init->wc_flags & ~CQ_WC_FLAGS)
		return EOPNOTSUPP;
	if (init->cqe < 1 || init->cqe > SOFTNIC_CQES_MAX ||
	    init->comp_vector >= (uint32_t)context->num_comp_vectors)
		return EINVAL;
	return 0;
}

struct ibv_cq_ex *cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init)
{
	int rc = check_init_attr(context, init);
	struct cq *cq;

	if (rc) {
		errno = rc;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq || take_index(cq)) {
		free(cq);
		errno = ENOMEM;
		return NULL;
	}
	init_fields(cq, context, init);
	init_bell(cq, init);
	cq_ex_init(cq, init->wc_flags);
	strict_wrap_cq(cq);
	if (init->channel)
		comp_channel_add(to_comp_channel(init->channel), cq);
	listing_begin(&cq->listing, &(struct shared_object){
					    .kind = SHARED_CQ,
					    .device = device_index(context->device),
					    .cqe = cq->ibv.cqe,
				    });
	return &cq->ex;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = cqe < 0 ? 0 : cqe,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct ibv_cq_ex *cq = cq_create_ex(context, &init);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct cq *cq = to_cq(ibv);
	int rc = 0;

	if (fault_is_gone())
		return EIO;
	if (cqe < 1 || cqe > SOFTNIC_CQES_MAX)
		return EINVAL;
	pthread_mutex_lock(&cq->lock);
	if (ready_list_waiting(&cq->ready_list) > capacity_for(cqe)) {
		rc = EINVAL;
	} else {
		ibv->cqe = capacity_for(cqe);
		if (cq->capacity != INT32_MAX)
			cq->capacity = ibv->cqe;
		doorbell_resize(cq);
		if (listing_entry(&cq->listing))
			store_relaxed(&listing_entry(&cq->listing)->cqe, ibv->cqe);
	}
	pthread_mutex_unlock(&cq->lock);
	return rc;
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct cq *cq = to_cq(ibv);
	bool busy;

	if (strict_is_destroyed(ibv->context, "ibv_destroy_cq()"))
		return EINVAL;
	pthread_mutex_lock(&cq->lock);
	busy = cq->ready_list.num;
	pthread_mutex_unlock(&cq->lock);
	if (busy) {
		strict_busy("ibv_destroy_cq()", "queue pairs use the CQ");
		return EBUSY;
	}
	softnic_timer_disarm(&cq->overrun);
	if (ibv->channel)
		comp_channel_del(to_comp_channel(ibv->channel), cq);
	async_forget(ibv->context, &cq->events);
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->comp_events_completed != cq->events_delivered &&
	       strict_wait_for_ack(&ibv->cond, &ibv->mutex, "ibv_destroy_cq()",
				   cq->events_delivered - ibv->comp_events_completed))
		;
	pthread_mutex_unlock(&ibv->mutex);
	doorbell_fini(cq);
	listing_end(&cq->listing);
	give_index(ibv->handle);
	if (cq->domain)
		pd_release(cq->domain);
	pthread_mutex_destroy(&cq->lock);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	strict_free(cq, &ibv->context);
	return 0;
}

void cq_add(struct cq *cq, struct cq_source *source, uint32_t qpn)
{
	pthread_mutex_lock(&cq->lock);
	ready_list_add(&cq->ready_list, source, qpn);
	listing_add_users(&cq->listing, 1);
	pthread_mutex_unlock(&cq->lock);
}

void cq_del(struct cq *cq, struct cq_source *source)
{
	pthread_mutex_lock(&cq->lock);
	ready_list_del(&cq->ready_list, source);
	listing_add_users(&cq->listing, -1);
	pthread_mutex_unlock(&cq->lock);
}

static void count_taken(const struct ibv_wc *wc, int n)
{
	int i;

	count(completions, n);
	for (i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			count(errors, 1);
}

void cq_promise(struct cq *cq)
{
	add_ordered(&cq->promised, 1);
}

void cq_fulfil(struct cq *cq)
{
	add_ordered(&cq->promised, -1);
}

void cq_wait_for_promised(const struct cq *cq)
{
	while (load_acquire(&cq->promised))
		sched_yield();
}

/* Whether a doorbell was rung since the CQ was last empty. */
static bool has_news(const struct cq *cq)
{
	const struct cq_doorbell *l;

	for (l = &cq->doorbell; l; l = doorbell_next(l))
		if (load_acquire(&l->at->arrivals) != l->seen)
			return true;
	return false;
}

static void end_user(struct qp *qp)
{
	pthread_mutex_lock(&qp->lock);
	qp_error_event(qp, IBV_EVENT_QP_FATAL);
	pthread_mutex_unlock(&qp->lock);
}

/* Under cq->lock. */
static void look_for_overrun(struct cq *cq)
{
	if (cq->has_overrun || ready_list_waiting(&cq->ready_list) <= cq->capacity)
		return;
	cq->has_overrun = true;
	strict_overrun(cq);
	async_raise(cq->ibv.context, &cq->events, IBV_EVENT_CQ_ERR);
	ready_list_for_each(&cq->ready_list, end_user);
}

int cq_take(struct cq *cq, int room, struct ibv_wc *wc)
{
	int n;

	cq_wait_for_promised(cq);
	if (!has_news(cq))
		return 0;
	doorbell_collect(cq);
	if ((int32_t)(cq->arrived - cq->consumed) > (int32_t)cq->capacity)
		look_for_overrun(cq); /* each of several ringers sees only its own arrivals */
	n = ready_list_poll(&cq->ready_list, wc, room);
	cq->consumed += n;
	if (n < room && (int32_t)(cq->arrived - cq->consumed) > 0)
		cq->consumed = cq->arrived; /* not all arrivals were completions */
	store_relaxed(&cq->has_left_some, n == room && (int32_t)(cq->arrived - cq->consumed) > 0);
	doorbell_ack(cq, cq->arrived - cq->consumed, n < room);
	if (n)
		count_taken(wc, n);
	return n;
}

static int lock_and_take(struct cq *cq, int room, struct ibv_wc *wc)
{
	int n;

	pthread_mutex_lock(&cq->lock);
	n = cq->take(cq, room, wc);
	pthread_mutex_unlock(&cq->lock);
	if (n)
		poller_rest();
	return n;
}

int cq_poll(struct ibv_cq *ibv, int room, struct ibv_wc *wc)
{
	int n = lock_and_take(to_cq(ibv), room, wc);

	return n || !poller_try() ? n : lock_and_take(to_cq(ibv), room, wc);
}

enum { COUNT_AGAIN_NS = 1000000 };

/*
 * On the engine's thread, which must not wait for a program between ibv_start_poll() and
 * ibv_end_poll().
 */
static void count_overrun(struct softnic_timer *t)
{
	struct cq *cq = (struct cq *)((char *)t - offsetof(struct cq, overrun));

	if (pthread_mutex_trylock(&cq->lock)) {
		softnic_timer_arm(t, COUNT_AGAIN_NS, count_overrun);
		return;
	}
	look_for_overrun(cq);
	pthread_mutex_unlock(&cq->lock);
}

void cq_may_have_overrun(struct cq *cq)
{
	softnic_timer_arm(&cq->overrun, 0, count_overrun);
}
