// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Senders need of an SRQ what they need of a datagram queue pair: guards for many users, arrivals,
 * a completion queue. So each XRC SRQ has a queue pair of its own, the SRQ's end. Its number is the
 * SRQ's number, and the program never sees it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "softnic/control/fault.h"
#include "softnic/qp/qp.h"
#include "softnic/rq/srq.h"
#include "softnic/strict/strict.h"
#include "softnic/verbs/nic.h"
#include "xrc.h"

#define IS_OF_A_FILE (1ull << 63)

/* A file's domain is common to all processes. One without a file is this process's. */
static int number_of(int fd, uint64_t *number)
{
	static uint32_t last;
	struct stat file;

	if (fd == -1) {
		*number = (uint64_t)nic.slot << 32 | add_ordered(&last, 1);
		return 0;
	}
	if (fstat(fd, &file))
		return errno;
	*number = (file.st_ino + file.st_dev * 0x9e3779b97f4a7c15) | IS_OF_A_FILE;
	return 0;
}

static void *refuse(int rc)
{
	errno = rc;
	return NULL;
}

struct ibv_xrcd *xrc_open_domain(struct ibv_context *context, struct ibv_xrcd_init_attr *init)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct xrcd *x;
	int rc;

	if (fault_is_gone())
		return refuse(EIO);
	if (init->comp_mask != needed)
		return refuse(EINVAL);
	x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	x->ibv.context = context;
	rc = number_of(init->fd, &x->number);
	if (rc)
		goto free;
	x->pd = ibv_alloc_pd(context);
	if (!x->pd)
		goto keep_errno;
	x->cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	if (!x->cq)
		goto dealloc;
	return &x->ibv;

dealloc:
	rc = errno;
	ibv_dealloc_pd(x->pd);
	errno = rc;
keep_errno:
	rc = errno;
free:
	free(x);
	return refuse(rc);
}

int xrc_close_domain(struct ibv_xrcd *ibv)
{
	struct xrcd *x = to_xrcd(ibv);

	if (load_acquire(&x->users))
		return EBUSY;
	ibv_destroy_cq(x->cq);
	ibv_dealloc_pd(x->pd);
	free(x);
	return 0;
}

struct ibv_qp *xrc_create_receiver(const struct ibv_qp_init_attr_ex *init)
{
	struct xrcd *x = to_xrcd(init->xrcd);
	struct ibv_qp_init_attr own = {
		.qp_context = init->qp_context,
		.send_cq = x->cq,
		.recv_cq = x->cq,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return qp_create_in(x->pd, &own, x);
}

/* The end takes messages from now on, as a datagram queue pair in RTR. */
static void open_end(struct qp *end)
{
	pthread_mutex_lock(&end->lock);
	store_release(&end->state, IBV_QPS_RTR);
	store_ordered(&end->segment.qp->state, SHARED_QP_READY);
	pthread_mutex_unlock(&end->lock);
}

static void list_cq(const struct srq *srq, const struct cq *cq)
{
	struct shared_object *e = listing_entry(&srq->listing);

	if (!e)
		return;
	store_relaxed(&e->type, IBV_SRQT_XRC);
	store_relaxed(&e->cq, cq->listing.index);
}

struct ibv_srq *xrc_create_srq(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
	const uint32_t needed = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
				IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	struct ibv_qp_init_attr end = { .qp_type = IBV_QPT_UD };
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	int rc;

	(void)context;
	if ((init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && init->srq_type != IBV_SRQT_XRC)
		return refuse(EOPNOTSUPP);
	if (init->comp_mask != needed)
		return refuse(EINVAL);
	srq = ibv_create_srq(init->pd, (struct ibv_srq_init_attr *)init);
	if (!srq)
		return NULL;
	end.send_cq = end.recv_cq = init->cq;
	end.srq = srq;
	qp = qp_create_in(init->pd, &end, to_xrcd(init->xrcd));
	if (!qp) {
		rc = errno;
		ibv_destroy_srq(srq);
		return refuse(rc);
	}
	to_srq(srq)->end = to_qp(qp);
	list_cq(to_srq(srq), to_cq(init->cq));
	open_end(to_qp(qp));
	return srq;
}

int xrc_srq_number(struct ibv_srq *srq, uint32_t *number)
{
	if (!to_srq(srq)->end)
		return EOPNOTSUPP;
	*number = to_srq(srq)->end->ibv.qp_num;
	return 0;
}

static bool is_in_domain(const struct qp *qp, const struct xrcd *x)
{
	return qp && qp->ibv.qp_type == IBV_QPT_XRC_RECV && !qp->is_closed &&
	       qp->xrcd->number == x->number;
}

/* nic.lock is held: the queue pair cannot end. */
static struct ibv_qp *open_handle(struct ibv_context *context, const struct ibv_qp_open_attr *attr)
{
	struct qp *qp = nic_qp(attr->qp_num), *handle;

	if (attr->qp_num >> SOFTNIC_QP_INDEX_BITS != nic.slot)
		return refuse(EOPNOTSUPP);
	if (!is_in_domain(qp, to_xrcd(attr->xrcd)))
		return refuse(EINVAL);
	handle = calloc(1, sizeof(*handle));
	if (!handle)
		return NULL;
	handle->ibv = qp->ibv;
	handle->ibv.context = context;
	handle->ibv.qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context :
									      NULL;
	handle->opened = qp;
	handle->xrcd = to_xrcd(attr->xrcd);
	qp->handles++;
	return &handle->ibv;
}

struct ibv_qp *xrc_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
				IBV_QP_OPEN_ATTR_TYPE;
	struct ibv_qp *handle;

	if (fault_is_gone())
		return refuse(EIO);
	if ((attr->comp_mask & ~IBV_QP_OPEN_ATTR_CONTEXT) != needed ||
	    attr->qp_type != IBV_QPT_XRC_RECV)
		return refuse(EINVAL);
	pthread_mutex_lock(&nic.lock);
	handle = open_handle(context, attr);
	pthread_mutex_unlock(&nic.lock);
	if (handle)
		add_ordered(&to_xrcd(attr->xrcd)->users, 1);
	return handle;
}

struct qp *xrc_close_qp(struct qp *handle)
{
	struct qp *qp = xrc_opened(handle);
	bool is_last;

	pthread_mutex_lock(&nic.lock);
	if (handle == qp)
		qp->is_closed = true;
	else
		qp->handles--;
	is_last = qp->is_closed && !qp->handles;
	pthread_mutex_unlock(&nic.lock);
	if (handle != qp) {
		add_ordered(&handle->xrcd->users, -1);
		strict_free(handle, &handle->ibv.context);
	}
	return is_last ? qp : NULL;
}
