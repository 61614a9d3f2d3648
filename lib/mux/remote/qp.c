/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lane: its QP, and the proof of the key over it. All QPs receive from one queue, so what is
 * said on a lane that is not proven comes there too: it is taken for the handshake's, or for
 * the end of the lane.
 *
 * A lane that fails before both ends know that it is proven fails alone: nobody uses it. So a
 * further lane is up for who was connected to when WELCOME is known to have arrived, or something
 * comes by it. On the first lane all others rest: it is up at once, or meet.c could not tell who is
 * known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "lib/base/clock.h"
#include "lib/conn/endpoint.h"
#include "lib/mux/local/local.h"

/* No class's number; and no other lane's, ever: its completion may be seen when it is gone. */
static uint64_t handshake_wr(const struct weir_lane *lane)
{
	return WEIR_MUX_CLASSES_MAX + lane->nr;
}

static int qp_create(struct weir_lane *lane)
{
	struct weir_hub *hub = lane->node->hub;
	const struct weir_intake *intake = &hub->intakes[weir_hub_is_low(hub, lane->class)];
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = lane->node->cq,
		.recv_cq = intake->cq,
		.srq = intake->srq,
		.cap = { .max_send_wr = WEIR_LANE_DEPTH + WEIR_LANE_CONTROLS +
					WEIR_LANE_HANDSHAKES,
			 .max_send_sge = 1 },
	};

	return rdma_create_qp(lane->id, hub->pd, &attr) ? -errno : 0;
}

static int memory_open(struct weir_lane *lane)
{
	size_t bytes = WEIR_LANE_CONTROLS * sizeof(struct wire_mux) +
		       WEIR_LANE_HANDSHAKES * WIRE_HANDSHAKE_MAX;

	lane->controls = calloc(1, bytes);
	if (!lane->controls)
		return -ENOMEM;
	lane->mr = ibv_reg_mr(lane->node->hub->pd, lane->controls, bytes, IBV_ACCESS_LOCAL_WRITE);
	return lane->mr ? 0 : -ENOMEM;
}

/* All but the id, which stays whoever's it was. */
static void lane_free(struct weir_lane *lane)
{
	if (lane->id->qp)
		rdma_destroy_qp(lane->id);
	if (lane->mr)
		ibv_dereg_mr(lane->mr);
	free(lane->controls);
	free(lane);
}

int weir_lane_new(struct weir_node *node, uint8_t class, struct rdma_cm_id *id,
		  struct weir_lane **out)
{
	struct weir_lane *lane = calloc(1, sizeof(*lane));
	int rc;

	if (!lane)
		return -ENOMEM;
	lane->node = node;
	lane->class = class;
	lane->id = id;
	lane->nr = node->hub->last_lane++;
	lane->deadline_ns = weir_now_ns() + WEIR_HANDSHAKE_NS;
	rc = memory_open(lane);
	if (!rc)
		rc = qp_create(lane);
	if (rc) {
		lane_free(lane);
		return rc;
	}
	id->context = lane;
	weir_list_add_tail(&node->hub->lanes, &lane->link);
	*out = lane;
	return 0;
}

static void lane_uncount(struct weir_lane *lane)
{
	if (lane->is_counted)
		lane->node->hub->nr_unproven--;
	lane->is_counted = false;
}

void weir_lane_destroy(struct weir_lane *lane)
{
	struct weir_hub *hub = lane->node->hub;
	struct rdma_event_channel *cm = lane->cm;
	struct rdma_cm_id *id = lane->id;

	lane_uncount(lane);
	__atomic_sub_fetch(&lane->node->unheard, lane->unheard, __ATOMIC_SEQ_CST);
	if (lane->node->lanes[lane->class] == lane)
		lane->node->lanes[lane->class] = NULL;
	weir_list_del(&lane->link);
	if (cm)
		epoll_ctl(hub->epoll, EPOLL_CTL_DEL, cm->fd, NULL);
	lane_free(lane);
	rdma_destroy_id(id);
	if (cm)
		rdma_destroy_event_channel(cm);
}

struct weir_lane *weir_lane_find(struct weir_hub *hub, uint32_t qpn)
{
	struct weir_list *at;

	for (at = hub->lanes.next; at != &hub->lanes; at = at->next) {
		struct weir_lane *lane = weir_list_entry(at, struct weir_lane, link);

		if (lane->id->qp->qp_num == qpn)
			return lane;
	}
	return NULL;
}

/*
 * Sends a message of the handshake: it is in its place already. The worker sees what becomes of it.
 */
static int handshake_send(struct weir_lane *lane, void *message, size_t length)
{
	struct ibv_sge sge = { (uintptr_t)message, (uint32_t)length, lane->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = handshake_wr(lane),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	int rc = -ibv_post_send(lane->id->qp, &wr, &bad);

	if (rc)
		return rc;
	lane->unheard++;
	/* This and then whether it sleeps; it says that it sleeps, and then looks at this. */
	__atomic_add_fetch(&lane->node->unheard, 1, __ATOMIC_SEQ_CST);
	weir_node_wake(lane->node);
	return 0;
}

static void *handshake_buffer(struct weir_lane *lane)
{
	char *base = (char *)(lane->controls + WEIR_LANE_CONTROLS);

	return base + lane->nr_handshakes++ % WEIR_LANE_HANDSHAKES * WIRE_HANDSHAKE_MAX;
}

int weir_lane_hello(struct weir_lane *lane, bool is_client)
{
	struct weir_node *node = lane->node;
	struct weir_handshake_setup setup = {
		.key = node->hub->options.key,
		.session_id = lane->class ? node->session_id : 0,
		.channel = lane->class,
		.ended = lane->ended,
	};
	int rc = weir_endpoint_query(lane->id, &setup.local, &setup.remote);
	size_t length;
	void *out;

	if (rc)
		return rc;
	weir_nonce(setup.nonce);
	memcpy(setup.mux, node->hub->id, sizeof(setup.mux));
	if (!is_client) {
		weir_handshake_donor(&lane->handshake, &setup);
		return 0;
	}
	out = handshake_buffer(lane);
	weir_handshake_client(&lane->handshake, &setup, out, &length);
	return handshake_send(lane, out, length);
}

/*
 * It is in proof no longer. If nobody waits for that, the node can be dialled again; or it has
 * failed.
 */
static void lane_settled(struct weir_lane *lane)
{
	struct weir_node *node = lane->node;

	pthread_cond_broadcast(&node->hub->changed);
	if (!lane->is_orphan)
		return;
	node->is_dialing = false;
	if (lane->state == WEIR_LANE_SPARE)
		rdma_disconnect(lane->id);
	if (!node->lanes[0]) {
		weir_node_uncharge(node);
		weir_node_fail(node, -ECONNRESET);
	}
	weir_fd_ring(node->hub->bell);
}

void weir_lane_leave(struct weir_lane *lane)
{
	lane->is_orphan = true;
	/* By then the other end has welcomed us, or has ended a lane that was never proven. */
	lane->deadline_ns = weir_now_ns() + WEIR_HANDSHAKE_NS;
	weir_fd_ring(lane->node->hub->bell);
}

void weir_lane_fail(struct weir_lane *lane, int status)
{
	struct weir_node *node = lane->node;

	lane_uncount(lane);
	if (node->lanes[lane->class] == lane) {
		weir_node_fail(node, status);
		return;
	}
	if (lane->state == WEIR_LANE_FAILED || lane->state == WEIR_LANE_SPARE)
		return;
	lane->state = WEIR_LANE_FAILED;
	lane->status = status;
	if (!node->is_ours && !node->lanes[0])
		weir_node_fail(node, status);
	lane_settled(lane);
	weir_fd_ring(node->hub->bell);
}

/*
 * How long a sender waits who finds no receive: the connection manager leaves it at 655 ms, for
 * which all connections of the lane would stand still. Of a transport that has no such timer it is
 * not asked.
 */
static void set_rnr_timer(const struct weir_lane *lane)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = WEIR_LANE_RNR_TIMER };

	ibv_modify_qp(lane->id->qp, &attr, IBV_QP_MIN_RNR_TIMER);
}

/* From here on it carries connections. */
static int lane_up(struct weir_lane *lane)
{
	struct weir_node *node = lane->node;
	int rc = 0;

	lane_uncount(lane);
	if (!node->has_worker)
		rc = weir_node_start(node);
	if (rc)
		return rc;
	lane->state = WEIR_LANE_UP;
	__atomic_store_n(&node->lanes[lane->class], lane, __ATOMIC_RELEASE);
	lane_settled(lane);
	return 0;
}

void weir_lane_heard(struct weir_lane *lane)
{
	int rc;

	if (lane->state != WEIR_LANE_WELCOMED)
		return;
	/* Who has welcomed us on another meanwhile has lost this one. */
	rc = lane->node->lanes[lane->class] ? -ECONNRESET : lane_up(lane);
	if (rc)
		weir_lane_fail(lane, rc);
}

bool weir_lane_is_coming(const struct weir_node *node, uint8_t class)
{
	const struct weir_list *at;

	for (at = node->hub->lanes.next; at != &node->hub->lanes; at = at->next) {
		const struct weir_lane *lane = weir_list_entry(at, struct weir_lane, link);

		if (lane->node == node && lane->class == class && lane->state == WEIR_LANE_WELCOMED)
			return true;
	}
	return false;
}

static void said(struct weir_lane *lane, const struct ibv_wc *wc)
{
	lane->unheard--;
	__atomic_sub_fetch(&lane->node->unheard, 1, __ATOMIC_SEQ_CST);
	if (wc->status != IBV_WC_SUCCESS)
		weir_lane_fail(lane, -ECONNRESET);
	else if (!lane->unheard)
		weir_lane_heard(lane); /* WELCOME was the last */
}

void weir_lane_said(struct weir_node *node, const struct ibv_wc *wc)
{
	struct weir_hub *hub = node->hub;
	struct weir_list *at;

	pthread_mutex_lock(&hub->lock);
	for (at = hub->lanes.next; at != &hub->lanes; at = at->next) {
		struct weir_lane *lane = weir_list_entry(at, struct weir_lane, link);

		if (handshake_wr(lane) != wc->wr_id)
			continue;
		said(lane, wc);
		break;
	}
	pthread_mutex_unlock(&hub->lock);
}

/* The client knows the key, and is to be told so. */
static int lane_proven(struct weir_lane *lane)
{
	set_rnr_timer(lane);
	if (!lane->class)
		return lane_up(lane);
	lane_uncount(lane);
	lane->state = WEIR_LANE_WELCOMED;
	return 0;
}

/*
 * The client knows the key: it is told who we are to further lanes. Where the lane is of no use it
 * is told so, and ends it; if it does not, the lane ends as one that was never proven.
 */
static int welcome(struct weir_lane *lane, void *out, size_t *length)
{
	struct wire_welcome welcome = { .message_max = WIRE_PIECE_MAX };
	int rc = weir_lane_met_client(lane, &welcome);

	if (rc == -EALREADY) {
		weir_handshake_refuse(&lane->handshake, -EAGAIN, "both ends connect at once", out,
				      length);
		return 0;
	}
	if (!rc)
		rc = lane_proven(lane);
	if (rc >= 0)
		weir_handshake_welcome(&lane->handshake, &welcome, out, length);
	return rc < 0 ? rc : 0;
}

/* The donor knows it, too. */
static int welcomed(struct weir_lane *lane)
{
	int rc = weir_lane_met_donor(lane);

	if (!rc)
		set_rnr_timer(lane);
	if (rc <= 0)
		return rc ? rc : lane_up(lane);
	lane->state = WEIR_LANE_SPARE;
	lane_settled(lane);
	return 0;
}

void weir_lane_input(struct weir_lane *lane, const void *data, size_t length)
{
	struct weir_handshake *h = &lane->handshake;
	void *out = handshake_buffer(lane);
	size_t out_length = 0;
	int rc = -EPROTO;

	if (lane->state == WEIR_LANE_PROVING)
		rc = weir_handshake_input(h, data, length, out, &out_length);
	if (!rc && h->state == WEIR_HANDSHAKE_WELCOME)
		lane->proved = ++lane->node->hub->last_event;
	if (!rc && h->state == WEIR_HANDSHAKE_PROVEN)
		rc = welcome(lane, out, &out_length);
	else if (!rc && h->state == WEIR_HANDSHAKE_DONE)
		rc = welcomed(lane);
	if (out_length && !rc)
		rc = handshake_send(lane, out, out_length);
	if (rc)
		weir_lane_fail(lane, rc);
}
