/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replacements of libibverbs' functions that open a device, make, change or destroy QPs, and
 * register memory. Posting and polling go through the device's table.
 */
#include "lib/base/clock.h"
#include "preload/next.h"
#include "preload/unload/discovery/own_qp.h"
#include "preload/unload/hooks/device.h"
#include "preload/unload/discovery/discovery.h"
#include "preload/unload/hooks/interpose.h"
#include "preload/unload/hooks/poll_cq.h"
#include "preload/unload/hooks/post.h"
#include "preload/unload/unload_rx.h"
#include "preload/unload/diag.h"
#include "preload/unload/service.h"
#include "preload/unload/unload_tx.h"
#include "preload/unload/hooks/tracked_qp.h"

/* These names are also macros; the functions are meant here. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static void qp_created(struct ibv_qp *qp, int sq_sig_all, const struct ibv_qp_cap *cap)
{
	if (!device_of(qp->context) || !service_is_here())
		return;
	pthread_mutex_lock(&tracked_qp_life);
	tracked_qp_created(qp, sq_sig_all, cap);
	pthread_mutex_unlock(&tracked_qp_life);
}

/* ibv_wr_start() and related calls bypass the device's table: such a QP is not tracked. */
static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	struct ibv_qp *qp = device_of(context)->create_qp_ex(context, init);

	if (qp && !(init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		qp_created(qp, init->sq_sig_all, &init->cap);
	return qp;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init)
{
	struct ibv_cq_ex *cq = device_of(context)->create_cq_ex(context, init);

	if (cq)
		diag_log("an extended CQ: writes with completions not taken by ibv_poll_cq() "
			 "go by the device");
	return cq;
}

static void hook_extended(struct unload_device *device)
{
	struct verbs_context *extended = verbs_get_ctx(device->context);

	device->create_qp_ex = extended ? extended->create_qp_ex : NULL;
	device->create_cq_ex = extended ? extended->create_cq_ex : NULL;
	if (device->create_qp_ex)
		extended->create_qp_ex = create_qp_ex;
	if (device->create_cq_ex)
		extended->create_cq_ex = create_cq_ex;
}

static struct ibv_context *context_opened(struct ibv_context *context)
{
	struct unload_device *device;

	if (!context || !service_start())
		return context;
	device = device_open(context);
	if (device) {
		post_hook(device);
		poll_cq_hook(device);
		hook_extended(device);
	}
	return context;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	return context_opened(NEXT(ibv_open_device)(device));
}

EXPORT struct ibv_context *ibv_import_device(int fd)
{
	return context_opened(NEXT(ibv_import_device)(fd));
}

/*
 * Finishes writes in flight on the QP in order, and ends unloading. The wait depends on another
 * process, so the caller does not hold tracked_qp_life.
 */
static void stop_sending(struct tracked_qp *w)
{
	pthread_mutex_lock(&tracked_qp_life);
	discovery_stop(w);
	pthread_mutex_unlock(&tracked_qp_life);
	post_end(w);
}

/* Also ends copying for the QP's peer. Context: with tracked_qp_life. */
static void stop_receiving(struct tracked_qp *w)
{
	tracked_qp_retire_rx(w);
	service_wake();
}

/* A program may close a device without destroying its QPs. */
static void close_device(struct unload_device *device)
{
	struct tracked_qp *w;

	pthread_mutex_lock(&tracked_qp_life);
	while ((w = tracked_qp_on_device(device))) {
		discovery_stop(w);
		post_end(w);
		stop_receiving(w);
		tracked_qp_destroyed(w->qp);
	}
	device_close_receivers(device, weir_now_ns() + UNLOAD_RX_LAST_NS);
	device_close(device);
	pthread_mutex_unlock(&tracked_qp_life);
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct unload_device *device = device_of(context);

	if (device && service_is_here())
		close_device(device);
	return NEXT(ibv_close_device)(context);
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = NEXT(ibv_create_qp)(pd, init);

	if (qp)
		qp_created(qp, init->sq_sig_all, &init->cap);
	return qp;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct tracked_qp *w = service_is_here() ? tracked_qp_find(qp->context, qp->qp_num) : NULL;
	int rc;

	if (!w)
		return NEXT(ibv_destroy_qp)(qp);
	stop_sending(w);
	pthread_mutex_lock(&tracked_qp_life);
	stop_receiving(w);
	tracked_qp_destroyed(qp);
	rc = NEXT(ibv_destroy_qp)(qp);
	pthread_mutex_unlock(&tracked_qp_life);
	return rc;
}

static bool ends_unloading(const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_ACCESS_FLAGS && !(attr->qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
		return true;
	return mask & IBV_QP_STATE && attr->qp_state != IBV_QPS_RTR &&
	       attr->qp_state != IBV_QPS_RTS;
}

static void qp_modified(struct tracked_qp *w, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		tracked_qp_reset(w);
	if (mask & IBV_QP_RQ_PSN)
		w->peer_psn = attr->rq_psn & PSN_BITS;
	if (mask & IBV_QP_SQ_PSN)
		w->own_psn = attr->sq_psn & PSN_BITS;
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTS && discovery_want(w))
		service_wake();
}

/* Reports a program that connects an untracked QP. */
static void untracked_qp_modified(const struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTR && qp->qp_type == IBV_QPT_RC &&
	    device_of(qp->context) && service_is_here())
		diag_disabled(
			qp->qp_num,
			"it was made for ibv_wr_start(), or by a function of its provider's own");
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct tracked_qp *w = service_is_here() ? tracked_qp_find(qp->context, qp->qp_num) : NULL;
	bool ends = w && ends_unloading(attr, mask);
	int rc;

	if (!w) {
		untracked_qp_modified(qp, attr, mask);
		return NEXT(ibv_modify_qp)(qp, attr, mask);
	}
	if (ends)
		stop_sending(w);
	pthread_mutex_lock(&tracked_qp_life);
	if (ends) {
		stop_receiving(w);
		w->seek = SEEK_NONE;
	}
	rc = NEXT(ibv_modify_qp)(qp, attr, mask);
	if (!rc)
		qp_modified(w, attr, mask);
	pthread_mutex_unlock(&tracked_qp_life);
	return rc;
}

/* The device's functions call each other: only the program's outermost call counts. */
static __thread bool is_inside;

static struct ibv_mr *mr_registered(struct ibv_mr *mr, uint64_t iova, unsigned int access)
{
	is_inside = false;
	if (mr)
		device_registered(mr, iova, access);
	return mr;
}

/* Is this the outermost call? If so, registered() ends it. */
static bool enter(void)
{
	bool was = is_inside;

	is_inside = true;
	return !was;
}

struct ibv_mr *interpose_reg_own_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr;

	is_inside = true;
	mr = NEXT(ibv_reg_mr)(pd, addr, length, access);
	is_inside = false;
	return mr;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	bool outermost = enter();
	struct ibv_mr *mr = NEXT(ibv_reg_mr)(pd, addr, length, access);

	return outermost ? mr_registered(mr, (uintptr_t)addr, (unsigned int)access) : mr;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				      int access)
{
	bool outermost = enter();
	struct ibv_mr *mr = NEXT(ibv_reg_mr_iova)(pd, addr, length, iova, access);

	return outermost ? mr_registered(mr, iova, (unsigned int)access) : mr;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned int access)
{
	bool outermost = enter();
	struct ibv_mr *mr = NEXT(ibv_reg_mr_iova2)(pd, addr, length, iova, access);

	return outermost ? mr_registered(mr, iova, access) : mr;
}

/* A reregistered region goes through the device: its access rights are unknown here. */
EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
			int access)
{
	device_deregister(mr);
	return NEXT(ibv_rereg_mr)(mr, flags, pd, addr, length, access);
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	device_deregister(mr);
	return NEXT(ibv_dereg_mr)(mr);
}
