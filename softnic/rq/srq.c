// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Takers watch the limit. The first taker to find too few receives left tells the owner's
 * engine, which checks for itself. If that taker dies before it tells, the engine checks when
 * it notices the death.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softnic/control/fault.h"
#include "softnic/verbs/pd.h"
#include "softnic/qp/qp.h"
#include "softnic/strict/strict.h"
#include "srq.h"

/*
 * Peers keep the ring mapped, and each queue pair's arrivals have room for all of it. So an SRQ is
 * made with room to grow. Pages that nobody uses take no memory.
 */
enum { GROWTH_MAX = 4 };

static uint32_t room_for(uint32_t max_wr)
{
	return max_wr < SHARED_WRS_MAX / GROWTH_MAX ? max_wr * GROWTH_MAX : SHARED_WRS_MAX;
}

static void destroy_part(const struct srq_part *part)
{
	munmap(part->map, part->size);
	close(part->fd);
}

static int create_srq(struct srq *srq, struct ibv_pd *pd, const struct ibv_srq_attr *attr)
{
	int rc;

	rc = recv_queue_init(&srq->rq, attr->max_wr, room_for(attr->max_wr), attr->max_sge);
	if (rc)
		return rc;
	srq->ring.size = rq_bytes(srq->rq.ring.size);
	rc = shared_create("softnic-srq", srq->ring.size, false, &srq->ring.fd, &srq->ring.map);
	if (rc)
		return rc;
	srq->buffers.size = rq_own_bytes(srq->rq.ring.size, srq->rq.ring.sges);
	rc = shared_create("softnic-srq-buffers", srq->buffers.size, true, &srq->buffers.fd,
			   &srq->buffers.map);
	if (rc) {
		destroy_part(&srq->ring);
		return rc;
	}
	recv_queue_format(&srq->rq, srq->buffers.map, srq->ring.map, pd->handle);
	rq_set_limit(&srq->rq.ring, 0);
	return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	const struct ibv_srq_attr *attr = &init->attr;
	struct srq *srq;
	int rc = EIO;

	if (fault_is_gone())
		goto fail;
	rc = EINVAL;
	if (!attr->max_wr || attr->max_wr > SHARED_WRS_MAX || attr->max_sge > SHARED_SGES_MAX)
		goto fail;
	rc = ENOMEM;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		goto fail;
	rc = -create_srq(srq, pd, attr);
	if (rc) {
		recv_queue_fini(&srq->rq);
		free(srq);
		goto fail;
	}
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = init->srq_context;
	srq->ibv.pd = pd;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	srq->events = (struct async_subject){
		.element = &srq->ibv,
		.mutex = &srq->ibv.mutex,
		.cond = &srq->ibv.cond,
		.completed = &srq->ibv.events_completed,
	};
	pd_use(to_pd(pd));
	listing_begin(&srq->listing, &(struct shared_object){
					     .kind = SHARED_SRQ,
					     .device = device_index(pd->context->device),
					     .pd = pd->handle,
					     .type = IBV_SRQT_BASIC,
				     });
	return &srq->ibv;

fail:
	errno = rc;
	return NULL;
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct srq *srq = to_srq(ibv);

	if (strict_is_destroyed(ibv->context, "ibv_destroy_srq()"))
		return EINVAL;
	if (load_acquire(&srq->users) > !!srq->end) {
		strict_busy("ibv_destroy_srq()", "queue pairs use the SRQ");
		return EBUSY;
	}
	if (srq->end)
		ibv_destroy_qp(&srq->end->ibv);
	async_forget(ibv->context, &srq->events);
	listing_end(&srq->listing);
	pd_release(to_pd(ibv->pd));
	destroy_part(&srq->ring);
	destroy_part(&srq->buffers);
	recv_queue_fini(&srq->rq);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	strict_free(srq, &ibv->context);
	return 0;
}

/* Under rq.lock. Arming once gives one event. */
static void check_limit(struct srq *srq)
{
	if (!srq->limit || !rq_is_below_limit(&srq->rq.ring))
		return;
	srq->limit = 0;
	rq_set_limit(&srq->rq.ring, 0);
	async_raise(srq->ibv.context, &srq->events, IBV_EVENT_SRQ_LIMIT_REACHED);
}

void srq_check_limit(struct qp *qp)
{
	struct srq *srq = to_srq(qp->ibv.srq);

	if (!srq)
		return;
	pthread_mutex_lock(&srq->rq.lock);
	check_limit(srq);
	pthread_mutex_unlock(&srq->rq.lock);
}

/* Under rq.lock. */
static int check_change(const struct srq *srq, uint32_t max_wr, uint32_t limit)
{
	if (!max_wr || max_wr > SHARED_WRS_MAX || limit > max_wr)
		return EINVAL;
	if (max_wr < recv_queue_num_out(&srq->rq))
		return EINVAL;
	return max_wr > srq->rq.ring.size ? ENOMEM : 0;
}

/* Attributes that @mask does not name stay. */
int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct srq *srq = to_srq(ibv);
	uint32_t max_wr, limit;
	int rc;

	if (fault_is_gone())
		return EIO;
	if (mask & ~(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR))
		return EINVAL;
	pthread_mutex_lock(&srq->rq.lock);
	max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->rq.max_wr;
	limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit : srq->limit;
	rc = check_change(srq, max_wr, limit);
	if (!rc) {
		srq->rq.max_wr = max_wr;
		srq->limit = limit;
		rq_set_limit(&srq->rq.ring, limit);
		check_limit(srq); /* may be below already */
	}
	pthread_mutex_unlock(&srq->rq.lock);
	return rc;
}

int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct srq *srq = to_srq(ibv);

	if (fault_is_gone())
		return EIO;
	pthread_mutex_lock(&srq->rq.lock);
	*attr = (struct ibv_srq_attr){
		.max_wr = srq->rq.max_wr,
		.max_sge = srq->rq.max_sge,
		.srq_limit = srq->limit,
	};
	pthread_mutex_unlock(&srq->rq.lock);
	return 0;
}

int srq_post(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	uint32_t posted;

	return recv_queue_post(&to_srq(ibv)->rq, wr, bad_wr, &posted);
}
