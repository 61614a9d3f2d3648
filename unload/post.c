/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The order of one QP. An unloaded write goes past the QP: so it goes only when nothing else of the
 * QP is under way, and nothing else goes until it has been copied. Unloaded writes among themselves
 * need not wait, for they are copied in order.
 *
 * What an unloaded write completes with is made by the device: once it has been copied, a write of
 * no bytes takes its place in the QP. So its completion comes in its turn and once, raises its
 * event, and is an error if the QP has failed. A write that the target refuses is given to the
 * device in its own place, which then says itself what is wrong with it.
 */
#include <errno.h>

#include "unload/clock.h"
#include "unload/device.h"
#include "unload/next.h"
#include "unload/post.h"
#include "unload/say.h"
#include "unload/side.h"
#include "unload/watch.h"

static struct side *side_of(struct watched *w)
{
	return __atomic_load_n(&w->side, __ATOMIC_ACQUIRE);
}

static bool is_signalled(const struct watched *w, unsigned int send_flags)
{
	return w->sig_all || send_flags & IBV_SEND_SIGNALED;
}

/* One work request that is ours goes through the program's QP. */
static int post_one(struct watched *w, struct ibv_send_wr *wr, bool counts, unsigned int path,
		    uint64_t at_ns)
{
	bool signalled = is_signalled(w, wr->send_flags);
	struct ibv_send_wr *bad;
	int err;

	watch_posting(w, counts, signalled, path, at_ns);
	err = w->device->ops.post_send(w->qp, wr, &bad);
	if (err)
		watch_not_posted(w, counts, signalled);
	return err;
}

/* The place of an unloaded write that has been copied. */
static int post_copied(struct watched *w, const struct ibv_send_wr *like, unsigned int path,
		       uint64_t at_ns)
{
	struct ibv_send_wr wr = {
		.wr_id = like->wr_id,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = like->send_flags & ~(unsigned int)IBV_SEND_INLINE,
		.wr.rdma = like->wr.rdma,
	};

	return post_one(w, &wr, false, path, at_ns);
}

static int post_staged(struct watched *w, struct side *side, uint16_t number)
{
	const struct staged *staged = &side->staged[number % WIRE_SLOTS];
	struct wire_slot *slot = &side->memory->slots[number % WIRE_SLOTS];
	struct ibv_sge sge = { (uintptr_t)slot->data, staged->length, side->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = staged->wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = staged->send_flags & ~(unsigned int)IBV_SEND_INLINE,
		.wr.rdma = { slot->addr, staged->rkey },
	};

	COUNT(repeated);
	return post_one(w, &wr, true, WEIR_PATH_OFFLOAD, 0);
}

/*
 * All that has not been copied is given to the device. Where it is not known what was, the QP ends
 * first, as it would with a peer that is gone: nothing is written twice. The send queue has room:
 * the program counts them among what is under way.
 */
static void repeat(struct watched *w, struct side *side)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	if (side->is_refused) {
		watch_make_plain(w, "its peer refused a write, or has closed its QP");
	} else {
		watch_make_plain(w, "its peer has gone");
		NEXT(ibv_modify_qp)(w->qp, &error, IBV_QP_STATE);
	}
	for (; side_open(side); side->done++)
		if (post_staged(w, side, side->done))
			NEXT(ibv_modify_qp)(w->qp, &error, IBV_QP_STATE);
}

/* Waits until at most @open_max are not copied. Return: whether that could be. */
static bool settle(struct watched *w, struct side *side, uint16_t open_max)
{
	uint8_t pause_ms = 0;
	int err;

	if (side_open(side) <= open_max)
		return true;
	err = side_wait(side, open_max, &pause_ms);
	if (pause_ms) {
		pthread_mutex_lock(&w->lock);
		weir_route_pause(&w->route, clock_ns() + pause_ms * NS_PER_MS);
		pthread_mutex_unlock(&w->lock);
	}
	if (err)
		repeat(w, side);
	return !err;
}

static bool may_be_copied(const struct watched *w, const struct ibv_send_wr *wr)
{
	int i;

	if (wr->send_flags & IBV_SEND_INLINE)
		return true;
	for (i = 0; i < wr->num_sge; i++)
		if (!device_may_read(w->device, w->qp->pd, &wr->sg_list[i]))
			return false;
	return true;
}

/* Its length, or 0: it is none that could be unloaded. */
static uint32_t small_write(const struct ibv_send_wr *wr)
{
	uint64_t length = 0;
	int i;

	if (wr->opcode != IBV_WR_RDMA_WRITE)
		return 0;
	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length <= SIDE_DATA_MAX ? (uint32_t)length : 0;
}

/* An enum weir_path. */
static unsigned int decide(struct watched *w, const struct ibv_send_wr *wr, uint64_t now_ns)
{
	unsigned int path;

	pthread_mutex_lock(&w->lock);
	path = weir_route_decide(&w->route, wr->wr.rdma.remote_addr, WEIR_ROUTE_HINT_NONE, now_ns);
	/* Only what completes can be compared. */
	if (path & WEIR_PATH_PROBE && !is_signalled(w, wr->send_flags)) {
		weir_route_forgo(&w->route);
		path &= ~(unsigned int)WEIR_PATH_PROBE;
	}
	pthread_mutex_unlock(&w->lock);
	return path;
}

/* How the first of a list goes. */
static unsigned int path_of_first(struct watched *w, const struct ibv_send_wr *wr, uint64_t now_ns)
{
	struct side *side = side_of(w);

	if (!side || watch_is_plain(w) || !watch_is_idle(w) || !may_be_copied(w, wr))
		return WEIR_PATH_OFFLOAD;
	if (side->has_failed) {
		watch_make_plain(w, "the connection beside it has failed");
		return WEIR_PATH_OFFLOAD;
	}
	return decide(w, wr, now_ns);
}

/* Return: 0; -EAGAIN it has not been unloaded after all; or what the device says. */
static int unload(struct watched *w, const struct ibv_send_wr *wr, uint32_t length,
		  unsigned int path, uint64_t now_ns)
{
	const struct staged staged = {
		.wr_id = wr->wr_id,
		.rkey = wr->wr.rdma.rkey,
		.length = length,
		.send_flags = wr->send_flags,
	};
	struct side *side = side_of(w);

	if (!settle(w, side, WIRE_SLOTS - 1) ||
	    side_put(side, wr->wr.rdma.remote_addr, wr->sg_list, wr->num_sge, &staged))
		return -EAGAIN;
	COUNT(unloaded);
	if (!is_signalled(w, wr->send_flags) || !settle(w, side, 0))
		return 0;
	return post_copied(w, wr, path, now_ns);
}

static void note_list(struct watched *w, const struct ibv_send_wr *wr, unsigned int path,
		      uint64_t now_ns)
{
	for (; wr; wr = wr->next, path = WEIR_PATH_OFFLOAD)
		watch_posting(w, true, is_signalled(w, wr->send_flags), path, now_ns);
}

/* @path: of the first. */
static int offload(struct watched *w, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
		   unsigned int path, uint64_t now_ns)
{
	struct side *side = side_of(w);
	int err;

	if (side)
		settle(w, side, 0);
	note_list(w, wr, path, now_ns);
	err = w->device->ops.post_send(w->qp, wr, bad);
	for (wr = err ? *bad : NULL; wr; wr = wr->next)
		watch_not_posted(w, true, is_signalled(w, wr->send_flags));
	return err;
}

/*
 * The first of a list that is not unloaded goes through the QP, and with it all that follow: they
 * would have to wait for it.
 */
static int post_in_order(struct watched *w, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	unsigned int path = WEIR_PATH_OFFLOAD;
	uint64_t now_ns = 0;
	uint32_t length;
	int err = 0;

	for (; wr && !err; wr = wr->next) {
		length = small_write(wr);
		if (length) {
			COUNT(small);
			now_ns = clock_ns();
			path = path_of_first(w, wr, now_ns);
		}
		if (!length || !(path & WEIR_PATH_UNLOAD))
			return offload(w, wr, bad, length ? path : WEIR_PATH_OFFLOAD, now_ns);
		err = unload(w, wr, length, path, now_ns);
		if (err == -EAGAIN)
			return offload(w, wr, bad, WEIR_PATH_OFFLOAD, now_ns);
		if (err)
			*bad = wr;
	}
	return err;
}

int post_list(struct watched *w, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err;

	pthread_mutex_lock(&w->post);
	err = post_in_order(w, wr, bad);
	pthread_mutex_unlock(&w->post);
	return err;
}

void post_end(struct watched *w)
{
	struct side *side;

	pthread_mutex_lock(&w->post);
	side = side_of(w);
	if (side)
		settle(w, side, 0);
	__atomic_store_n(&w->side, NULL, __ATOMIC_RELEASE);
	side_free(side);
	pthread_mutex_unlock(&w->post);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct watched *w = watch_find(qp->context, qp->qp_num);

	return w ? post_list(w, wr, bad) : device_of(qp->context)->ops.post_send(qp, wr, bad);
}

static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	int i, n = device_of(cq->context)->ops.poll_cq(cq, room, wc);

	for (i = 0; i < n; i++)
		watch_polled(cq->context, &wc[i]);
	return n;
}

void post_take_over(struct device *device)
{
	device->context->ops.post_send = post_send;
	device->context->ops.poll_cq = poll_cq;
}
