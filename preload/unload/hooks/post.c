/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keeps the order of one QP. An unloaded write bypasses the QP. So an unloaded write starts only
 * when nothing else of the QP is in flight, and later work waits until the target has copied the
 * data. Unloaded writes need not wait for each other, because the target copies them in order. A
 * signalled write waits for all of them. A program that asks for no completion may never post
 * again, so the service thread checks how its writes end.
 *
 * The device makes the completion of an unloaded write: after the copy, an empty write takes its
 * place in the QP. So the completion comes once and in order, and raises an event. The copied write
 * stays complete; a later failure of the QP is reported by the next request. If the target refuses
 * a write, the device gets the write in the same place, and reports the error itself.
 */
#include <errno.h>

#include "lib/base/clock.h"
#include "preload/next.h"
#include "preload/unload/discovery/own_qp.h"
#include "preload/unload/hooks/device.h"
#include "preload/unload/hooks/post.h"
#include "preload/unload/diag.h"
#include "preload/unload/service.h"
#include "preload/unload/unload_tx.h"
#include "preload/unload/hooks/eligible.h"
#include "preload/unload/hooks/tracked_qp.h"

#define ENDED "its peer refused a write, or has closed its QP"

static struct unload_tx *tx_of(struct tracked_qp *w)
{
	return __atomic_load_n(&w->tx, __ATOMIC_ACQUIRE);
}

static bool is_signalled(const struct tracked_qp *w, unsigned int send_flags)
{
	return w->sig_all || send_flags & IBV_SEND_SIGNALED;
}

/* Posts one of weir's WRs to the program's QP. */
static int post_one(struct tracked_qp *w, struct ibv_send_wr *wr, const struct tracked_wr *of)
{
	struct ibv_send_wr *bad;
	int rc;

	tracked_qp_posting(w, of);
	rc = w->device->ops.post_send(w->qp, wr, &bad);
	if (rc)
		tracked_qp_not_posted(w, of->is_signalled);
	return rc;
}

/* Posts an empty write in place of a copied write. */
static int post_copied(struct tracked_qp *w, const struct ibv_send_wr *like,
		       const struct tracked_wr *of)
{
	struct ibv_send_wr wr = {
		.wr_id = like->wr_id,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = like->send_flags & ~(unsigned int)IBV_SEND_INLINE,
		.wr.rdma = like->wr.rdma,
	};

	return post_one(w, &wr, of);
}

static int post_staged(struct tracked_qp *w, struct unload_tx *tx, uint16_t number)
{
	const struct staged_write *staged = &tx->staged[number % WIRE_UNLOAD_SLOTS];
	struct wire_unload_slot *slot = &tx->memory->slots[number % WIRE_UNLOAD_SLOTS];
	struct ibv_sge sge = { (uintptr_t)slot->data, staged->length, tx->repeat_mr->lkey };
	const struct tracked_wr of = {
		.wr_id = staged->wr_id,
		.is_signalled = is_signalled(w, staged->send_flags),
		.path = WEIR_PATH_OFFLOAD,
	};
	struct ibv_send_wr wr = {
		.wr_id = staged->wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = staged->send_flags & ~(unsigned int)IBV_SEND_INLINE,
		.wr.rdma = { slot->addr, staged->rkey },
	};

	DIAG_COUNT(repeated);
	return post_one(w, &wr, &of);
}

/*
 * Gives all writes not copied to the device. If it is unknown which were copied, the QP is put into
 * error first, as after the loss of a peer, so that nothing is written twice. The send queue has
 * room, because these writes were counted as in flight.
 */
static void repeat_refused(struct tracked_qp *w, struct unload_tx *tx)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	if (tx->is_refused) {
		tracked_qp_disable(w, ENDED);
	} else {
		tracked_qp_disable(w, "its peer has gone");
		NEXT(ibv_modify_qp)(w->qp, &error, IBV_QP_STATE);
	}
	for (; unload_tx_outstanding(tx); tx->buffer.slots.done++)
		if (post_staged(w, tx, tx->buffer.slots.done))
			NEXT(ibv_modify_qp)(w->qp, &error, IBV_QP_STATE);
}

static void pause_for(struct tracked_qp *w, uint8_t ms)
{
	if (!ms)
		return;
	pthread_mutex_lock(&w->lock);
	weir_path_pause(&w->route, weir_now_ns() + ms * WEIR_NS_PER_MS);
	pthread_mutex_unlock(&w->lock);
}

/* Waits until at most @open_max writes are not copied. Return: true on success. */
static bool settle_unloaded(struct tracked_qp *w, struct unload_tx *tx, uint16_t open_max)
{
	uint8_t pause_ms = 0;
	int rc;

	if (unload_tx_outstanding(tx) <= open_max)
		return true;
	rc = unload_tx_wait(tx, open_max, &pause_ms);
	pause_for(w, pause_ms);
	if (rc)
		repeat_refused(w, tx);
	return !rc;
}

/* Returns an enum weir_path. */
static unsigned int choose_path(struct tracked_qp *w, const struct ibv_send_wr *wr, uint64_t now_ns)
{
	unsigned int path;

	pthread_mutex_lock(&w->lock);
	path = weir_path_decide(&w->route, wr->wr.rdma.remote_addr, WEIR_PATH_HINT_NONE,
				is_signalled(w, wr->send_flags), now_ns);
	pthread_mutex_unlock(&w->lock);
	return path;
}

/* A QP may fail by itself. Only a query of the QP or its completions tell. */
static bool has_ended(struct tracked_qp *w, uint64_t now_ns)
{
	if (now_ns - w->asked_ns < OWN_QP_ASK_NS)
		return false;
	w->asked_ns = now_ns;
	return own_qp_is_in_error(w->qp);
}

/* The reason to disable unloading; or NULL. */
static const char *end_of(struct tracked_qp *w, const struct unload_tx *tx, uint64_t now_ns)
{
	if (tx->is_refused)
		return ENDED;
	if (tx->has_failed)
		return "the connection beside it has failed";
	return has_ended(w, now_ns) ? "it has fallen into an error" : NULL;
}

/* The path of the first WR of a list. */
static unsigned int path_of_first(struct tracked_qp *w, const struct ibv_send_wr *wr,
				  uint32_t length, uint64_t now_ns)
{
	struct unload_tx *tx = tx_of(w);
	unsigned int path;
	const char *why;

	if (!tx || tracked_qp_is_disabled(w) || !tracked_qp_is_idle(w) ||
	    !eligible_may_be_posted(w, wr, length) || !eligible_may_be_copied(w, wr))
		return WEIR_PATH_OFFLOAD;
	/* Check for room first: after the copy, "queue full" would come too late. */
	if (!tracked_qp_has_room(w))
		return WEIR_PATH_OFFLOAD;
	path = choose_path(w, wr, now_ns);
	if (!(path & WEIR_PATH_UNLOAD))
		return path;
	why = end_of(w, tx, now_ns);
	if (!why && eligible_is_readable(wr))
		return path;
	if (why)
		tracked_qp_disable(w, why);
	tracked_qp_cancel(w, path);
	return WEIR_PATH_OFFLOAD;
}

/* Return: 0; -EAGAIN not unloaded after all; or the device's error. */
static int unload_write(struct tracked_qp *w, const struct ibv_send_wr *wr, uint32_t length,
			unsigned int path, uint64_t now_ns)
{
	const struct staged_write staged = {
		.wr_id = wr->wr_id,
		.rkey = wr->wr.rdma.rkey,
		.length = length,
		.send_flags = wr->send_flags,
	};
	const struct tracked_wr of = {
		.wr_id = wr->wr_id,
		.at_ns = now_ns,
		.is_copied = true,
		.is_signalled = is_signalled(w, wr->send_flags),
		.path = (uint8_t)path,
	};
	struct unload_tx *tx = tx_of(w);

	if (!settle_unloaded(w, tx, WIRE_UNLOAD_SLOTS - 1) ||
	    unload_tx_put(tx, wr->wr.rdma.remote_addr, wr->sg_list, wr->num_sge, &staged)) {
		tracked_qp_cancel(w, path);
		return -EAGAIN;
	}
	DIAG_COUNT(unloaded);
	if (!of.is_signalled) {
		tracked_qp_posting(w, &of);
		return 0;
	}
	if (settle_unloaded(w, tx, 0))
		return post_copied(w, wr, &of);
	tracked_qp_cancel(w, path);
	return 0;
}

static void note_list(struct tracked_qp *w, const struct ibv_send_wr *wr, unsigned int path,
		      uint64_t now_ns)
{
	struct tracked_wr of = { .at_ns = now_ns, .path = (uint8_t)path };

	for (; wr; wr = wr->next, of.path = WEIR_PATH_OFFLOAD) {
		of.wr_id = wr->wr_id;
		of.is_signalled = is_signalled(w, wr->send_flags);
		tracked_qp_posting(w, &of);
	}
}

/* @path: of the first WR. */
static int post_to_device(struct tracked_qp *w, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
			  unsigned int path, uint64_t now_ns)
{
	struct unload_tx *tx = tx_of(w);
	int rc;

	if (tx)
		settle_unloaded(w, tx, 0);
	note_list(w, wr, path, now_ns);
	rc = w->device->ops.post_send(w->qp, wr, bad);
	for (wr = rc ? *bad : NULL; wr; wr = wr->next)
		tracked_qp_not_posted(w, is_signalled(w, wr->send_flags));
	return rc;
}

/*
 * If the first WR of a list goes through the QP, all others follow: unloaded writes would have to
 * wait for the first WR.
 */
static int post_in_order(struct tracked_qp *w, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	unsigned int path = WEIR_PATH_OFFLOAD;
	uint64_t now_ns = 0;
	uint32_t length;
	int rc = 0;

	for (; wr && !rc; wr = wr->next) {
		length = eligible_bytes(wr);
		if (length) {
			DIAG_COUNT(small);
			now_ns = weir_now_ns();
			path = path_of_first(w, wr, length, now_ns);
		}
		if (!length || !(path & WEIR_PATH_UNLOAD))
			return post_to_device(w, wr, bad, length ? path : WEIR_PATH_OFFLOAD,
					      now_ns);
		rc = unload_write(w, wr, length, path, now_ns);
		if (rc == -EAGAIN)
			return post_to_device(w, wr, bad, WEIR_PATH_OFFLOAD, now_ns);
		if (rc)
			*bad = wr;
	}
	return rc;
}

int post_list(struct tracked_qp *w, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int rc;

	pthread_mutex_lock(&w->post);
	rc = post_in_order(w, wr, bad);
	if (tx_of(w) && unload_tx_outstanding(tx_of(w)))
		service_poll_tx();
	pthread_mutex_unlock(&w->post);
	return rc;
}

/* Context: with w->post. Return: as post_poll(). */
static bool poll_unloaded(struct tracked_qp *w, struct unload_tx *tx, uint64_t now_ns)
{
	uint8_t pause_ms = 0;
	bool again = unload_tx_outstanding(tx) && unload_tx_poll(tx, now_ns, &pause_ms);

	pause_for(w, pause_ms);
	if (!again)
		settle_unloaded(w, tx, 0);
	return again;
}

bool post_poll(struct tracked_qp *w, uint64_t now_ns)
{
	bool again = false;

	if (!tx_of(w))
		return false;
	if (pthread_mutex_trylock(&w->post))
		return true;
	if (tx_of(w))
		again = poll_unloaded(w, tx_of(w), now_ns);
	pthread_mutex_unlock(&w->post);
	return again;
}

void post_end(struct tracked_qp *w)
{
	struct unload_tx *tx;

	pthread_mutex_lock(&w->post);
	tx = tx_of(w);
	if (tx)
		settle_unloaded(w, tx, 0);
	__atomic_store_n(&w->tx, NULL, __ATOMIC_RELEASE);
	unload_tx_free(tx);
	pthread_mutex_unlock(&w->post);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct tracked_qp *w = tracked_qp_find(qp->context, qp->qp_num);

	return w ? post_list(w, wr, bad) : device_of(qp->context)->ops.post_send(qp, wr, bad);
}

/* ibv_bind_mw() queues like a work request, but does not call ibv_post_send(). */
static int bind_in_order(struct tracked_qp *w, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	const struct tracked_wr of = {
		.wr_id = bind->wr_id,
		.is_signalled = is_signalled(w, bind->send_flags),
		.path = WEIR_PATH_OFFLOAD,
	};
	int rc;

	if (tx_of(w))
		settle_unloaded(w, tx_of(w), 0);
	tracked_qp_posting(w, &of);
	rc = w->device->ops.bind_mw(w->qp, mw, bind);
	if (rc)
		tracked_qp_not_posted(w, of.is_signalled);
	return rc;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct tracked_qp *w = tracked_qp_find(qp->context, qp->qp_num);
	int rc;

	if (!w)
		return device_of(qp->context)->ops.bind_mw(qp, mw, bind);
	pthread_mutex_lock(&w->post);
	rc = bind_in_order(w, mw, bind);
	pthread_mutex_unlock(&w->post);
	return rc;
}

void post_hook(struct unload_device *device)
{
	device->context->ops.bind_mw = bind_mw;
	device->context->ops.post_send = post_send;
}
