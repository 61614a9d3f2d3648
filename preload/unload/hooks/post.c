/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The order of one QP. An unloaded write goes past the QP: so it goes only when nothing else of the
 * QP is under way, and nothing else goes until it has been copied. Unloaded writes need not wait
 * for each other, for they are copied in order; who wants a completion waits for all. For who asks
 * for none, and may never post again, the service thread looks how they end.
 *
 * What an unloaded write completes with is made by the device: once it has been copied, a write of
 * no bytes takes its place in the QP. So its completion comes in its turn and once, and raises its
 * event; that it is done nothing can change any more, and what has befallen the QP since is for the
 * next request to say. A write that the target refuses is given to the device in its own place,
 * which then says itself what is wrong with it.
 */
#include <errno.h>

#include "preload/unload/clock.h"
#include "preload/unload/discovery/own_qp.h"
#include "preload/unload/hooks/device.h"
#include "preload/unload/hooks/next.h"
#include "preload/unload/hooks/post.h"
#include "preload/unload/diag.h"
#include "preload/unload/service.h"
#include "preload/unload/unload_tx.h"
#include "preload/unload/hooks/eligible.h"
#include "preload/unload/hooks/tracked_qp.h"

#define ENDED "its peer refused a write, or has closed its QP"

static struct side *side_of(struct watched *w)
{
	return __atomic_load_n(&w->side, __ATOMIC_ACQUIRE);
}

static bool is_signalled(const struct watched *w, unsigned int send_flags)
{
	return w->sig_all || send_flags & IBV_SEND_SIGNALED;
}

/* One work request that is ours goes through the program's QP. */
static int post_one(struct watched *w, struct ibv_send_wr *wr, const struct posting *of)
{
	struct ibv_send_wr *bad;
	int err;

	watch_posting(w, of);
	err = w->device->ops.post_send(w->qp, wr, &bad);
	if (err)
		watch_not_posted(w, of->is_signalled);
	return err;
}

/* The place of an unloaded write that has been copied. */
static int post_copied(struct watched *w, const struct ibv_send_wr *like, const struct posting *of)
{
	struct ibv_send_wr wr = {
		.wr_id = like->wr_id,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = like->send_flags & ~(unsigned int)IBV_SEND_INLINE,
		.wr.rdma = like->wr.rdma,
	};

	return post_one(w, &wr, of);
}

static int post_staged(struct watched *w, struct side *side, uint16_t number)
{
	const struct staged *staged = &side->staged[number % WIRE_SLOTS];
	struct wire_slot *slot = &side->memory->slots[number % WIRE_SLOTS];
	struct ibv_sge sge = { (uintptr_t)slot->data, staged->length, side->repeat_mr->lkey };
	const struct posting of = {
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

	COUNT(repeated);
	return post_one(w, &wr, &of);
}

/*
 * All that has not been copied is given to the device. Where it is not known what was, the QP ends
 * first, as it would with a peer that is gone: nothing is written twice. The send queue has room:
 * they are among what was counted as under way.
 */
static void repeat(struct watched *w, struct side *side)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	if (side->is_refused) {
		watch_make_plain(w, ENDED);
	} else {
		watch_make_plain(w, "its peer has gone");
		NEXT(ibv_modify_qp)(w->qp, &error, IBV_QP_STATE);
	}
	for (; side_open(side); side->done++)
		if (post_staged(w, side, side->done))
			NEXT(ibv_modify_qp)(w->qp, &error, IBV_QP_STATE);
}

static void pause_for(struct watched *w, uint8_t ms)
{
	if (!ms)
		return;
	pthread_mutex_lock(&w->lock);
	weir_route_pause(&w->route, clock_ns() + ms * NS_PER_MS);
	pthread_mutex_unlock(&w->lock);
}

/* Waits until at most @open_max are not copied. Return: whether that could be. */
static bool settle(struct watched *w, struct side *side, uint16_t open_max)
{
	uint8_t pause_ms = 0;
	int err;

	if (side_open(side) <= open_max)
		return true;
	err = side_wait(side, open_max, &pause_ms);
	pause_for(w, pause_ms);
	if (err)
		repeat(w, side);
	return !err;
}

/* An enum weir_path. */
static unsigned int decide(struct watched *w, const struct ibv_send_wr *wr, uint64_t now_ns)
{
	unsigned int path;

	pthread_mutex_lock(&w->lock);
	path = weir_route_decide(&w->route, wr->wr.rdma.remote_addr, WEIR_ROUTE_HINT_NONE,
				 is_signalled(w, wr->send_flags), now_ns);
	pthread_mutex_unlock(&w->lock);
	return path;
}

/* A QP may end by itself, of which nobody is told before it is asked, or its completions are. */
static bool has_ended(struct watched *w, uint64_t now_ns)
{
	if (now_ns - w->asked_ns < CONNECT_ASK_NS)
		return false;
	w->asked_ns = now_ns;
	return connect_has_ended(w->qp);
}

/* Why nothing more is unloaded; or NULL. */
static const char *end_of(struct watched *w, const struct side *side, uint64_t now_ns)
{
	if (side->is_refused)
		return ENDED;
	if (side->has_failed)
		return "the connection beside it has failed";
	return has_ended(w, now_ns) ? "it has fallen into an error" : NULL;
}

/* How the first of a list goes. */
static unsigned int path_of_first(struct watched *w, const struct ibv_send_wr *wr, uint32_t length,
				  uint64_t now_ns)
{
	struct side *side = side_of(w);
	unsigned int path;
	const char *why;

	if (!side || watch_is_plain(w) || !watch_is_idle(w) || !small_may_be_posted(w, wr, length) ||
	    !small_may_be_copied(w, wr))
		return WEIR_PATH_OFFLOAD;
	/* Once it is copied it is too late to hear that the queue is full. */
	if (!watch_has_room(w))
		return WEIR_PATH_OFFLOAD;
	path = decide(w, wr, now_ns);
	if (!(path & WEIR_PATH_UNLOAD))
		return path;
	why = end_of(w, side, now_ns);
	if (!why && small_is_there(wr))
		return path;
	if (why)
		watch_make_plain(w, why);
	watch_forgo(w, path);
	return WEIR_PATH_OFFLOAD;
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
	const struct posting of = {
		.wr_id = wr->wr_id,
		.at_ns = now_ns,
		.is_copied = true,
		.is_signalled = is_signalled(w, wr->send_flags),
		.path = (uint8_t)path,
	};
	struct side *side = side_of(w);

	if (!settle(w, side, WIRE_SLOTS - 1) ||
	    side_put(side, wr->wr.rdma.remote_addr, wr->sg_list, wr->num_sge, &staged)) {
		watch_forgo(w, path);
		return -EAGAIN;
	}
	COUNT(unloaded);
	if (!of.is_signalled) {
		watch_posting(w, &of);
		return 0;
	}
	if (settle(w, side, 0))
		return post_copied(w, wr, &of);
	watch_forgo(w, path);
	return 0;
}

static void note_list(struct watched *w, const struct ibv_send_wr *wr, unsigned int path,
		      uint64_t now_ns)
{
	struct posting of = { .at_ns = now_ns, .path = (uint8_t)path };

	for (; wr; wr = wr->next, of.path = WEIR_PATH_OFFLOAD) {
		of.wr_id = wr->wr_id;
		of.is_signalled = is_signalled(w, wr->send_flags);
		watch_posting(w, &of);
	}
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
		watch_not_posted(w, is_signalled(w, wr->send_flags));
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
		length = small_bytes(wr);
		if (length) {
			COUNT(small);
			now_ns = clock_ns();
			path = path_of_first(w, wr, length, now_ns);
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
	if (side_of(w) && side_open(side_of(w)))
		service_tend();
	pthread_mutex_unlock(&w->post);
	return err;
}

/* Context: with w->post. Return: as post_tend(). */
static bool tend(struct watched *w, struct side *side, uint64_t now_ns)
{
	uint8_t pause_ms = 0;
	bool again = side_open(side) && side_tend(side, now_ns, &pause_ms);

	pause_for(w, pause_ms);
	if (!again)
		settle(w, side, 0);
	return again;
}

bool post_tend(struct watched *w, uint64_t now_ns)
{
	bool again = false;

	if (!side_of(w))
		return false;
	if (pthread_mutex_trylock(&w->post))
		return true;
	if (side_of(w))
		again = tend(w, side_of(w), now_ns);
	pthread_mutex_unlock(&w->post);
	return again;
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

/* A window's binding goes through the QP as a work request does, though not by ibv_post_send(). */
static int bind_in_order(struct watched *w, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	const struct posting of = {
		.wr_id = bind->wr_id,
		.is_signalled = is_signalled(w, bind->send_flags),
		.path = WEIR_PATH_OFFLOAD,
	};
	int err;

	if (side_of(w))
		settle(w, side_of(w), 0);
	watch_posting(w, &of);
	err = w->device->ops.bind_mw(w->qp, mw, bind);
	if (err)
		watch_not_posted(w, of.is_signalled);
	return err;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct watched *w = watch_find(qp->context, qp->qp_num);
	int err;

	if (!w)
		return device_of(qp->context)->ops.bind_mw(qp, mw, bind);
	pthread_mutex_lock(&w->post);
	err = bind_in_order(w, mw, bind);
	pthread_mutex_unlock(&w->post);
	return err;
}

void post_take_over(struct device *device)
{
	device->context->ops.bind_mw = bind_mw;
	device->context->ops.post_send = post_send;
}
