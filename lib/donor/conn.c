/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/donor/keepalive.h"
#include "lib/base/clock.h"
#include "lib/donor/donor.h"
#include "lib/conn/endpoint.h"
#include "lib/base/error.h"
#include "lib/donor/conn.h"
#include "lib/donor/messages.h"
#include "lib/donor/client.h"
#include "lib/donor/unload_rx.h"

#define POLL_MAX 16
#define COMPLETIONS_MAX 64 /* in one turn of one gate, so that others get theirs */

#define ACCESS_PROVEN (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

void weir_gate_kill(struct weir_gate *gate, const char *why)
{
	if (gate->is_dead)
		return;
	gate->is_dead = true;
	gate->donor->reap_due = true;
	weir_donor_log(gate->donor, gate->peer ? WEIR_LOG_DEBUG : WEIR_LOG_WARNING,
		       "gate %s channel=%u closed: %s", gate->name, gate->handshake.setup.channel,
		       why);
}

void weir_gate_break(struct weir_gate *gate, const char *why)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (gate->is_dead || gate->is_broken)
		return;
	gate->is_broken = true;
	gate->deadline_ns = weir_now_ns() + weir_ask_absence_ns(gate);
	ibv_modify_qp(gate->id->qp, &attr, IBV_QP_STATE);
	weir_peer_gate_broken(gate->peer, gate);
	weir_donor_log(gate->donor, WEIR_LOG_WARNING, "broke peer=%llu client=%s channel=%u: %s",
		       (unsigned long long)weir_peer_id(gate->peer), gate->name,
		       gate->handshake.setup.channel, why);
}

/* Sends what is in the buffer; an honest client makes us send as often as it sends. */
static void handshake_send(struct weir_gate *gate, unsigned int buffer, size_t length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)gate->buffers[buffer],
		.length = length,
		.lkey = gate->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = WEIR_GATE_HANDSHAKE_SEND | buffer,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ibv_send_wr *bad;

	if (ibv_post_send(gate->id->qp, &wr, &bad))
		weir_gate_kill(gate, "cannot send");
}

static void refuse(struct weir_gate *gate, unsigned int buffer, size_t length)
{
	gate->is_refused = true;
	gate->donor->rejects++;
	weir_donor_log(gate->donor, WEIR_LOG_WARNING, "refused client=%s: %s", gate->name,
		       gate->handshake.error.text);
	handshake_send(gate, buffer, length);
}

/* A proven client gets its peer, new or the one of its session. */
static int peer_get(struct weir_gate *gate, struct weir_peer **peer, struct weir_error *error)
{
	const struct wire_hello *hello = &gate->handshake.hello;

	if (!hello->session_id)
		return weir_peer_new(gate->donor, gate, peer, error);
	*peer = weir_peer_find(gate->donor, hello->session_id, gate->tenant);
	if (!*peer)
		return weir_fail(error, -ESTALE, "the donor knows no such session (any more)");
	return weir_peer_attach(*peer, gate, error);
}

/* The client knows the key: only now may its QP reach memory. */
static int admit(struct weir_gate *gate, struct weir_peer **peer, struct weir_error *error)
{
	bool unloads = gate->handshake.setup.channel == WIRE_CHANNEL_UNLOAD;
	struct ibv_qp_attr attr = {
		.qp_access_flags = unloads ? IBV_ACCESS_REMOTE_WRITE : ACCESS_PROVEN,
	};
	int ret = unloads ? weir_ring_open(gate, error) : 0;

	if (ret)
		return ret;
	ret = ibv_modify_qp(gate->id->qp, &attr, IBV_QP_ACCESS_FLAGS);
	if (ret)
		return weir_fail(error, -ENOMEM, "cannot open the QP: %s", strerror(ret));
	ret = peer_get(gate, peer, error);
	if (ret)
		return ret;
	gate->peer = *peer;
	gate->donor->nr_unproven--;
	return 0;
}

static void proven(struct weir_gate *gate, unsigned int buffer)
{
	struct weir_donor *donor = gate->donor;
	struct weir_peer *peer;
	struct wire_welcome welcome;
	size_t length;
	int ret;

	ret = admit(gate, &peer, &gate->handshake.error);
	if (ret) {
		weir_handshake_refuse(&gate->handshake, ret, gate->handshake.error.text,
				      gate->buffers[buffer], &length);
		refuse(gate, buffer, length);
		return;
	}
	welcome = (struct wire_welcome){
		.session_id = peer->session_id,
		.incarnation = donor->incarnation,
		.quota_bytes = donor->options.quota_bytes,
		.message_max = sizeof(struct wire_head) + WIRE_BODY_MAX,
		.credits = gate->handshake.setup.credits,
	};
	if (gate->ring)
		weir_ring_describe(gate->ring, &welcome);
	weir_handshake_welcome(&gate->handshake, &welcome, gate->buffers[buffer], &length);
	handshake_send(gate, buffer, length);
	if (gate->handshake.hello.session_id) {
		if (!gate->handshake.hello.channel) {
			weir_mail_go_on(peer, gate->id->qp);
			weir_recall_again(peer);
		}
		return;
	}
	donor->joins++;
	weir_donor_log(donor, WEIR_LOG_INFO, "joined peer=%llu client=%s tenant=%u",
		       (unsigned long long)peer->id, peer->name, peer->tenant);
	if (donor->options.on_join)
		donor->options.on_join(donor->options.arg, peer);
}

static void handshake_received(struct weir_gate *gate, unsigned int buffer, uint32_t length)
{
	unsigned int answer = WIRE_HANDSHAKE_RECVS + buffer;
	size_t out_length;
	int ret;

	if (gate->is_refused)
		return;
	ret = weir_handshake_input(&gate->handshake, gate->buffers[buffer], length,
				   gate->buffers[answer], &out_length);
	if (ret)
		refuse(gate, answer, out_length);
	else if (out_length)
		handshake_send(gate, answer, out_length);
	else if (gate->handshake.state == WEIR_HANDSHAKE_PROVEN)
		proven(gate, answer);
}

/*
 * A write with immediate takes a receive as well. Its length is that of the write, which is
 * none of the buffer's.
 */
static bool is_immediate(const struct ibv_wc *wc, unsigned int work)
{
	return (work == WEIR_GATE_HANDSHAKE_RECV || work == WEIR_GATE_MESSAGE_RECV) &&
	       wc->opcode != IBV_WC_RECV;
}

static bool is_receive(unsigned int work)
{
	return work == WEIR_GATE_HANDSHAKE_RECV || work == WEIR_GATE_MESSAGE_RECV ||
	       work == WEIR_GATE_SLOT;
}

/*
 * Networks fail; a message longer than its buffer, say, is the client's doing. Soft-RoCE calls
 * that LOC_QP_OP_ERR, which may be mended where it is of a send.
 */
static void failed(struct weir_gate *gate, unsigned int work, enum ibv_wc_status status)
{
	bool is_of_client = is_receive(work) && status == IBV_WC_LOC_QP_OP_ERR;

	if (gate->peer && !is_of_client && weir_wc_errno(status) == -ECONNRESET)
		weir_gate_break(gate, ibv_wc_status_str(status));
	else
		weir_gate_kill(gate, ibv_wc_status_str(status));
}

static void completed(struct weir_gate *gate, const struct ibv_wc *wc)
{
	unsigned int buffer = wc->wr_id & ~WEIR_GATE_WORK_MASK;
	unsigned int work = wc->wr_id & WEIR_GATE_WORK_MASK;

	if (wc->status != IBV_WC_SUCCESS) {
		failed(gate, work, wc->status);
		return;
	}
	if (is_immediate(wc, work)) {
		weir_gate_kill(gate, "it broke the protocol");
		return;
	}
	switch (work) {
	case WEIR_GATE_HANDSHAKE_RECV:
		handshake_received(gate, buffer, wc->byte_len);
		break;
	case WEIR_GATE_HANDSHAKE_SEND:
		if (gate->is_refused)
			weir_gate_kill(gate, "refused");
		break;
	case WEIR_GATE_MESSAGE_RECV:
		if (weir_mail_received(gate->peer, buffer, wc->byte_len))
			weir_gate_kill(gate, "it broke the protocol");
		break;
	case WEIR_GATE_MESSAGE_SEND:
		weir_mail_sent(gate->peer, buffer);
		break;
	case WEIR_GATE_SLOT:
		if (weir_ring_received(gate, wc))
			weir_gate_kill(gate, "it broke the protocol");
		break;
	case WEIR_GATE_RETURN:
		weir_ring_returned(gate->ring);
		break;
	case WEIR_GATE_ASK:
		gate->is_asked = false;
		break;
	}
}

static bool is_over(const struct weir_gate *gate)
{
	return gate->is_dead || gate->is_broken;
}

/* Takes completions, up to a bound. Return: how many. */
static unsigned int drain(struct weir_gate *gate)
{
	struct ibv_wc wcs[POLL_MAX];
	unsigned int total = 0;
	int i, got;

	do {
		got = ibv_poll_cq(gate->cq, POLL_MAX, wcs);
		for (i = 0; i < got && !is_over(gate); i++)
			completed(gate, &wcs[i]);
		if (gate->ring && gate->peer && !is_over(gate))
			weir_ring_answer(gate, got == POLL_MAX);
		if (got < 0)
			weir_gate_kill(gate, "its CQ failed");
		else
			total += (unsigned int)got;
	} while (got == POLL_MAX && total < COMPLETIONS_MAX && !is_over(gate));
	return total;
}

static void fall_asleep(struct weir_gate *gate)
{
	weir_list_del(&gate->awake_link);
}

static enum weir_poll_verdict look(struct weir_gate *gate, enum weir_poll_verdict verdict,
				   uint64_t now_ns)
{
	unsigned int got;

	if (verdict == WEIR_POLL_ARM && ibv_req_notify_cq(gate->cq, 0))
		weir_gate_kill(gate, "its CQ cannot be armed");
	got = drain(gate);
	if (got)
		weir_ask_later(gate, now_ns);
	return weir_poll_polled(&gate->poll, got, now_ns);
}

/*
 * What is sent in answer completes at once on some devices: it is armed only when it is empty, or
 * that would raise an event of its own.
 */
void weir_gate_turn(struct weir_gate *gate, uint64_t now_ns)
{
	enum weir_poll_verdict verdict = look(gate, WEIR_POLL_AGAIN, now_ns);

	if (verdict == WEIR_POLL_ARM && !is_over(gate))
		verdict = look(gate, verdict, now_ns);
	if (verdict == WEIR_POLL_SLEEP || is_over(gate))
		fall_asleep(gate);
}

void weir_gate_event(struct weir_gate *gate, uint64_t now_ns)
{
	ibv_ack_cq_events(gate->cq, 1);
	if (is_over(gate) || !weir_list_is_empty(&gate->awake_link))
		return;
	weir_poll_woken(&gate->poll, now_ns);
	weir_list_add_tail(&gate->donor->awake, &gate->awake_link);
}

void weir_gate_retire(struct weir_gate *gate)
{
	ibv_destroy_qp(gate->id->qp);
	gate->id->qp = NULL;
	weir_gate_kill(gate, "replaced");
}

void weir_gate_drain(struct weir_gate *gate)
{
	while (!is_over(gate) && drain(gate))
		;
}

void weir_gate_disconnected(struct weir_gate *gate)
{
	weir_gate_drain(gate);
	weir_gate_kill(gate, "disconnected");
}

void weir_gate_expire(struct weir_gate *gate)
{
	if (gate->is_dead || weir_now_ns() < gate->deadline_ns)
		return;
	if (gate->is_broken) {
		weir_gate_kill(gate, "its client did not come back");
	} else if (!gate->peer) {
		gate->donor->rejects++;
		weir_gate_kill(gate, "no proof in time");
	}
}

void weir_gate_destroy(struct weir_gate *gate)
{
	if (gate->id->qp)
		ibv_destroy_qp(gate->id->qp);
	gate->id->qp = NULL;
	if (gate->cq)
		ibv_destroy_cq(gate->cq);
	if (gate->mr)
		ibv_dereg_mr(gate->mr);
	weir_ring_close(gate);
	free(gate);
}

void weir_gate_reap(struct weir_gate *gate)
{
	struct rdma_cm_id *id = gate->id;
	struct weir_peer *peer = gate->peer;

	weir_list_del(&gate->link);
	fall_asleep(gate);
	if (peer)
		weir_peer_mute(peer, gate);
	else
		gate->donor->nr_unproven--;
	/*
	 * A client whose RTU is still under way is told by the destruction: it gets a REJ. To be
	 * ahead of the RTU with rdma_notify() would leave the REP to be sent again and again after
	 * the DREQ, and the destruction waiting for more than a minute until that ends.
	 */
	rdma_disconnect(id);
	weir_gate_destroy(gate);
	rdma_destroy_id(id);
	if (peer)
		weir_peer_gate_gone(peer);
}
