// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Creation, destruction and queries of queue pairs. See qp_modify.c for states, qp_error.c for
 * errors, and remote_qp.c for remote queue pairs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softnic/control/fault.h"
#include "softnic/verbs/nic.h"
#include "softnic/strict/strict.h"
#include "softnic/verbs/pd.h"
#include "softnic/xrc/xrc.h"
#include "qp.h"
#include "qp_ex.h"
#include "softnic/rq/recv.h"
#include "req.h"
#include "sq.h"
#include "softnic/rq/srq.h"
#include "softnic/qp_far/far.h"

static int check_init_attr(const struct ibv_pd *pd, const struct ibv_qp_init_attr *init,
			   const struct xrcd *xrcd)
{
	const struct ibv_qp_cap *cap = &init->cap;

	if (fault_is_gone())
		return EIO;
	if (init->qp_type != IBV_QPT_RC && init->qp_type != IBV_QPT_UC &&
	    init->qp_type != IBV_QPT_UD && init->qp_type != IBV_QPT_XRC_SEND &&
	    init->qp_type != IBV_QPT_XRC_RECV)
		return EOPNOTSUPP;
	if ((init->qp_type == IBV_QPT_XRC_RECV && !xrcd) ||
	    (init->qp_type == IBV_QPT_XRC_SEND && init->srq))
		return EINVAL;
	if (!init->send_cq || !init->recv_cq || init->send_cq->context != pd->context ||
	    init->recv_cq->context != pd->context)
		return EINVAL;
	if (init->srq && init->srq->context != pd->context)
		return EINVAL;
	if (cap->max_send_wr > SHARED_WRS_MAX || cap->max_recv_wr > SHARED_WRS_MAX ||
	    cap->max_send_sge > SHARED_SGES_MAX || cap->max_recv_sge > SHARED_SGES_MAX ||
	    cap->max_inline_data > SOFTNIC_INLINE_MAX)
		return EINVAL;
	return 0;
}

/* Grant some inline data always: providers do so, and rdma_xclient expects it. */
static void grant_inline(struct ibv_qp_cap *cap)
{
	if (cap->max_send_wr && cap->max_inline_data < SOFTNIC_INLINE_MIN)
		cap->max_inline_data = SOFTNIC_INLINE_MIN;
}

enum { CONNECTED_GUARDS = 4 }; /* fills a cache line; one would be enough */

static size_t receives_bytes(const struct recv_queue *rq)
{
	return rq_own_bytes(rq->ring.size, rq->ring.sges) + rq_bytes(rq->ring.size);
}

int qp_segment_create(const struct qp *qp, struct qp_segment *segment)
{
	const struct recv_queue *own = &qp->own_rq;
	uint32_t arrivals = arrivals_size_for(qp->rq->ring.size);
	uint32_t guards = qp_is_datagram(qp) ? SHARED_GUARDS_MAX : CONNECTED_GUARDS;
	uint32_t trays = qp_is_datagram(qp) ? qp->rq->ring.size : 0;
	size_t size = sizeof(struct shared_qp) + guards * sizeof(struct shared_guard) +
		      arrivals_bytes(arrivals) + (qp->ibv.srq ? 0 : receives_bytes(own)) +
		      trays_bytes(trays);
	struct shared_qp *s;
	void *map;
	int rc;

	rc = shared_create("softnic-qp", size, false, &segment->fd, &map);
	if (rc)
		return rc;
	s = map;
	s->magic = SHARED_MAGIC;
	s->version = SHARED_VERSION;
	s->pd = qp->ibv.pd->handle;
	s->recv_cq = qp->ibv.recv_cq->handle;
	s->arrivals = arrivals;
	s->guards = guards;
	s->type = qp_is_srq_end(qp) ? SHARED_XRC_SRQ : qp->ibv.qp_type;
	s->xrcd = qp->xrcd ? qp->xrcd->number : 0;
	s->has_trays = qp_is_datagram(qp);
	segment->qp = s;
	segment->guards = (struct copy_guards){ (void *)s->rest, guards };
	segment->trays = (struct trays){ .num = trays };
	if (s->has_trays)
		segment->trays.at = (uint8_t *)map + size - trays_bytes(trays);
	segment->size = size;
	return 0;
}

void qp_segment_use(struct qp *qp, const struct qp_segment *segment)
{
	struct recv_arrivals *a = &qp->arrivals;
	struct shared_qp *s = segment->qp;
	uint8_t *at = s->rest + segment->guards.num * sizeof(struct shared_guard);

	qp->segment = *segment;
	arrivals_format(&a->ring, at, s->arrivals);
	if (!qp->ibv.srq)
		recv_queue_format(qp->rq, at + arrivals_bytes(a->ring.size), NULL, s->pd);
	a->polled = a->batch_end = arrivals_first_position(&a->ring);
	store_release(&a->flushing, false);
}

void qp_segment_destroy(struct qp_segment *segment)
{
	munmap(segment->qp, segment->size);
	close(segment->fd);
}

static void init_fields(struct qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
	qp->init = *init;
	qp->state = IBV_QPS_RESET;
	qp->work.fn = req_run;
	qp->sq.size = rq_size_for(init->cap.max_send_wr);
	qp->sq.max_sge = init->cap.max_send_sge;
	qp->sq.max_inline = init->cap.max_inline_data;
	qp->rq = init->srq ? &to_srq(init->srq)->rq : &qp->own_rq;
	qp->sends = (struct cq_source){ sq_poll, sq_waiting, qp };
	qp->recvs = (struct cq_source){ recv_poll, recv_waiting, qp };
	qp->ibv.context = pd->context;
	qp->ibv.qp_context = init->qp_context;
	qp->ibv.pd = pd;
	qp->ibv.send_cq = init->send_cq;
	qp->ibv.recv_cq = init->recv_cq;
	qp->ibv.srq = init->srq;
	qp->ibv.qp_type = init->qp_type;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	qp->events = (struct async_subject){
		.element = &qp->ibv,
		.mutex = &qp->ibv.mutex,
		.cond = &qp->ibv.cond,
		.completed = &qp->ibv.events_completed,
	};
	pthread_mutex_init(&qp->post_lock, NULL);
	pthread_mutex_init(&qp->lock, NULL);
}

static void free_qp(struct qp *qp)
{
	qp_ex_fini(qp);
	recv_queue_fini(&qp->own_rq);
	sq_fini(qp);
	free(qp->remotes);
	pthread_mutex_destroy(&qp->lock);
	pthread_mutex_destroy(&qp->post_lock);
	pthread_cond_destroy(&qp->ibv.cond);
	pthread_mutex_destroy(&qp->ibv.mutex);
	strict_free(qp, &qp->ibv.context);
}

static struct shared_qp_entry *entry_of(const struct qp *qp)
{
	return &nic.pub->qps[qp->ibv.qp_num % NIC_QPS];
}

/* Readers find fields of different moments: lists of a moment are for people. */
void qp_list(const struct qp *qp)
{
	struct shared_qp_entry *e = entry_of(qp);

	store_relaxed(&e->number, qp->ibv.qp_num);
	store_relaxed(&e->device, device_index(qp->ibv.context->device));
	store_relaxed(&e->port, qp->attr.port_num);
	store_relaxed(&e->type, qp->ibv.qp_type);
	store_relaxed(&e->state, qp->state);
	store_relaxed(&e->pd, qp->ibv.pd->handle);
	store_relaxed(&e->dest, qp->attr.dest_qp_num);
	store_relaxed(&e->rq_psn, qp->attr.rq_psn);
	store_relaxed(&e->sq_psn, qp->attr.sq_psn);
	store_relaxed(&e->srq, qp->ibv.srq ? to_srq(qp->ibv.srq)->listing.index : 0);
	store_release(&e->is_used, 1);
}

void qp_set_state(struct qp *qp, enum ibv_qp_state state)
{
	store_release(&qp->state, state);
	store_relaxed(&entry_of(qp)->state, state);
}

static int assign_qpn(struct qp *qp)
{
	int rc;

	pthread_mutex_lock(&nic.lock);
	rc = nic_add_qp(qp, &qp->ibv.qp_num);
	pthread_mutex_unlock(&nic.lock);
	qp->ibv.handle = qp->ibv.qp_num;
	return rc;
}

static int alloc_queues(struct qp *qp)
{
	const struct ibv_qp_cap *cap = &qp->init.cap;
	const uint32_t max_recv_wr = qp->ibv.srq ? 0 : cap->max_recv_wr;
	struct qp_segment segment;
	int rc;

	rc = recv_queue_init(&qp->own_rq, max_recv_wr, max_recv_wr, cap->max_recv_sge);
	if (!rc)
		rc = sq_init(qp);
	if (!rc && (qp_is_datagram(qp) || qp_names_srqs(qp))) {
		qp->remotes = calloc(REMOTE_HASHES, sizeof(*qp->remotes));
		rc = qp->remotes ? 0 : -ENOMEM;
	}
	if (!rc)
		rc = qp_segment_create(qp, &segment);
	if (rc)
		return rc;
	qp_segment_use(qp, &segment);
	rc = assign_qpn(qp);
	if (rc)
		qp_segment_destroy(&qp->segment);
	return rc;
}

/* A sending queue pair of XRC receives nothing, so the program names no CQ for it. */
static void adapt_to_xrc(struct ibv_qp_init_attr *init)
{
	init->recv_cq = init->send_cq;
	init->cap.max_recv_wr = init->cap.max_recv_sge = 0;
}

struct ibv_qp *qp_create_in(struct ibv_pd *pd, struct ibv_qp_init_attr *init, struct xrcd *xrcd)
{
	struct qp *qp;
	int rc;

	if (init->qp_type == IBV_QPT_XRC_SEND)
		adapt_to_xrc(init);
	rc = check_init_attr(pd, init, xrcd);
	if (rc) {
		errno = rc;
		return NULL;
	}
	grant_inline(&init->cap);
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->xrcd = xrcd;
	init_fields(qp, pd, init);
	rc = alloc_queues(qp);
	if (rc) {
		free_qp(qp);
		errno = -rc;
		return NULL;
	}
	pd_use(to_pd(pd));
	if (init->srq)
		add_ordered(&to_srq(init->srq)->users, 1);
	if (xrcd)
		add_ordered(&xrcd->users, 1);
	cq_add(to_cq(init->send_cq), &qp->sends, qp->ibv.qp_num);
	cq_add(to_cq(init->recv_cq), &qp->recvs, qp->ibv.qp_num);
	fault_init_qp(qp);
	if (!qp_is_srq_end(qp))
		qp_list(qp);
	count(qps, 1);
	return &qp->ibv;
}

struct ibv_qp *qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	return qp_create_in(pd, init, NULL);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	return qp_create(pd, init);
}

#define LINGER_NS 500000000ull

/*
 * With hardware, posted datagrams have left long before ibv_destroy_qp(). So a program that sends
 * unsignalled datagrams, such as mckey, does not wait for completions.
 */
static void wait_until_drained(struct qp *qp)
{
	uint64_t deadline_ns = softnic_loop_now_ns() + LINGER_NS;

	while (qp_is_datagram(qp) && req_is_sending(qp) && softnic_loop_now_ns() < deadline_ns)
		usleep(50);
}

static bool is_attached(const struct qp *qp)
{
	bool attached;

	pthread_mutex_lock(&nic.lock);
	attached = qp->groups;
	pthread_mutex_unlock(&nic.lock);
	return attached;
}

/* The order: refuse new users, wait for current users, then free. */
static int destroy_qp(struct ibv_qp *ibv)
{
	struct qp *qp = to_qp(ibv);

	if (is_attached(qp)) {
		strict_busy("ibv_destroy_qp()", "the queue pair is attached to a group");
		return EBUSY;
	}
	wait_until_drained(qp);
	pthread_mutex_lock(&qp->lock);
	qp_set_state(qp, IBV_QPS_RESET);
	store_ordered(&qp->segment.qp->state, SHARED_QP_GONE);
	pthread_mutex_unlock(&qp->lock);
	qp_wait_for_copies(qp, 0);
	softnic_timer_disarm(&qp->quiet); /* its function uses the client */
	store_release(&entry_of(qp)->is_used, 0);
	nic_del_qp(qp, ibv->qp_num);
	softnic_timer_disarm(&qp->timer);
	softnic_loop_cancel_work(&qp->work);
	pthread_mutex_lock(&nic.lock);
	pthread_mutex_lock(&qp->lock);
	remote_qp_drop_all(qp);
	far_destroy(qp);
	pthread_mutex_unlock(&qp->lock);
	pthread_mutex_unlock(&nic.lock);
	cq_del(to_cq(ibv->send_cq), &qp->sends);
	cq_del(to_cq(ibv->recv_cq), &qp->recvs);
	recv_forget(qp);
	async_forget(ibv->context, &qp->events);
	qp_segment_destroy(&qp->segment);
	pd_release(to_pd(ibv->pd));
	if (ibv->srq)
		add_ordered(&to_srq(ibv->srq)->users, -1);
	if (qp->xrcd)
		add_ordered(&qp->xrcd->users, -1);
	count(qps, -1);
	free_qp(qp);
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct qp *qp;

	if (strict_is_destroyed(ibv->context, "ibv_destroy_qp()"))
		return EINVAL;
	qp = xrc_close_qp(to_qp(ibv));
	return qp ? destroy_qp(&qp->ibv) : 0;
}

int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init)
{
	struct qp *qp = xrc_opened(to_qp(ibv));

	(void)attr_mask; /* a hint: more may be returned */
	if (fault_is_gone())
		return EIO;
	pthread_mutex_lock(&qp->lock);
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = qp->state;
	attr->sq_draining = qp->state == IBV_QPS_SQD && sq_has_begun(qp);
	attr->cap = qp->init.cap;
	*init = qp->init;
	pthread_mutex_unlock(&qp->lock);
	return 0;
}

/* No option enhances a connection. The vendor is named: librdmacm passes on no ECE without one. */
int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	*ece = (struct ibv_ece){ .vendor_id = SOFTNIC_VENDOR };
	return 0;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	if (ece->comp_mask)
		return EINVAL;
	return ece->vendor_id == SOFTNIC_VENDOR ? 0 : EOPNOTSUPP;
}
