/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A QP of a remote, and the handshake over it. All QPs receive from shared queues, so messages
 * on an unproven QP arrive there too: anything but a handshake message ends the QP.
 *
 * A QP may fail alone until both ends know the proof, since nothing uses the QP before. So the
 * donor end brings up a further QP only when the send of WELCOME has completed, or when a
 * message arrives. The first QP comes up at once: further QPs depend on the first, and dedup.c
 * must know the remote.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "lib/base/clock.h"
#include "lib/mux/local/local.h"
#include "lib/conn/identity.h"
#include "lib/conn/proof.h"
#include "lib/conn/qp.h"

#define ACCESS_PROVEN (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/* Distinct from any class, and never reused: the completion may come after the QP is gone. */
static uint64_t handshake_wr_id(const struct weir_mux_qp *qp)
{
	return WEIR_MUX_CLASSES_MAX + qp->nr;
}

static int qp_create(struct weir_mux_qp *qp)
{
	struct weir_mux_local *mux = qp->remote->mux;
	const struct weir_mux_srq *srq = &mux->srqs[weir_mux_local_is_low(mux, qp->class)];
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = qp->remote->cq,
		.recv_cq = srq->cq,
		.srq = srq->srq,
		.cap = { .max_send_wr =
				 WEIR_MUX_QP_DEPTH + WEIR_MUX_QP_CTRLS + WEIR_MUX_QP_HANDSHAKES,
			 .max_send_sge = 1 },
	};

	return weir_qp_create(qp->id, mux->pd, &attr, &qp->qp);
}

static int memory_open(struct weir_mux_qp *qp)
{
	size_t bytes = WEIR_MUX_QP_CTRLS * sizeof(struct wire_mux_control) +
		       WEIR_MUX_QP_HANDSHAKES * WIRE_HANDSHAKE_MAX;

	qp->controls = calloc(1, bytes);
	if (!qp->controls)
		return -ENOMEM;
	qp->mr = ibv_reg_mr(qp->remote->mux->pd, qp->controls, bytes, IBV_ACCESS_LOCAL_WRITE);
	return qp->mr ? 0 : -ENOMEM;
}

/* Frees all but the id, which stays the caller's. */
static void qp_free(struct weir_mux_qp *qp)
{
	if (qp->qp)
		ibv_destroy_qp(qp->qp);
	qp->id->qp = NULL;
	if (qp->mr)
		ibv_dereg_mr(qp->mr);
	free(qp->controls);
	weir_handshake_free(qp->handshake);
	free(qp);
}

int weir_mux_qp_new(struct weir_mux_remote *remote, uint8_t class, struct rdma_cm_id *id,
		    struct weir_mux_qp **out)
{
	struct weir_mux_qp *qp = calloc(1, sizeof(*qp));
	int rc;

	if (!qp)
		return -ENOMEM;
	qp->remote = remote;
	qp->class = class;
	qp->id = id;
	qp->nr = remote->mux->last_qp++;
	qp->deadline_ns = weir_now_ns() + WEIR_HANDSHAKE_NS;
	weir_list_init(&qp->newcomer.link);
	qp->handshake = weir_handshake_new();
	rc = qp->handshake ? memory_open(qp) : -ENOMEM;
	if (!rc)
		rc = qp_create(qp);
	if (rc) {
		qp_free(qp);
		return rc;
	}
	id->context = qp;
	weir_list_add_tail(&remote->mux->qps, &qp->link);
	*out = qp;
	return 0;
}

void weir_mux_qp_destroy(struct weir_mux_qp *qp)
{
	struct weir_mux_local *mux = qp->remote->mux;
	struct rdma_event_channel *cm = qp->cm;
	struct rdma_cm_id *id = qp->id;

	weir_places_leave(&qp->newcomer);
	__atomic_sub_fetch(&qp->remote->nr_handshakes_posted, qp->nr_handshakes_posted,
			   __ATOMIC_SEQ_CST);
	if (qp->remote->qps[qp->class] == qp)
		qp->remote->qps[qp->class] = NULL;
	weir_list_del(&qp->link);
	if (cm)
		epoll_ctl(mux->epoll, EPOLL_CTL_DEL, cm->fd, NULL);
	qp_free(qp);
	rdma_destroy_id(id);
	if (cm)
		rdma_destroy_event_channel(cm);
}

struct weir_mux_qp *weir_mux_qp_find(struct weir_mux_local *mux, uint32_t qpn)
{
	struct weir_list *at;

	for (at = mux->qps.next; at != &mux->qps; at = at->next) {
		struct weir_mux_qp *qp = weir_list_entry(at, struct weir_mux_qp, link);

		if (qp->qp->qp_num == qpn)
			return qp;
	}
	return NULL;
}

/* Sends a handshake message from its buffer. The worker handles the completion. */
static int send_handshake(struct weir_mux_qp *qp, void *message, size_t length)
{
	int rc = weir_proof_send(qp->qp, qp->mr->lkey, message, length, handshake_wr_id(qp));

	if (rc)
		return rc;
	qp->nr_handshakes_posted++;
	/*
	 * Store-load pairing with the worker (prepare_sleep()): we bump nr_handshakes_posted,
	 * then test asleep; the worker sets asleep, then tests the count.
	 */
	__atomic_add_fetch(&qp->remote->nr_handshakes_posted, 1, __ATOMIC_SEQ_CST);
	weir_mux_remote_wake(qp->remote);
	return 0;
}

static void *next_handshake_buffer(struct weir_mux_qp *qp)
{
	char *base = (char *)(qp->controls + WEIR_MUX_QP_CTRLS);

	return base + qp->nr_handshakes++ % WEIR_MUX_QP_HANDSHAKES * WIRE_HANDSHAKE_MAX;
}

int weir_mux_qp_handshake_start(struct weir_mux_qp *qp, bool is_client)
{
	struct weir_mux_remote *remote = qp->remote;
	struct weir_handshake_setup setup = {
		.key = remote->mux->options.key,
		.takes_clear = remote->mux->options.encryption == WEIR_ENCRYPTION_AUTO,
		.service.magic = WIRE_MAGIC,
		.version = qp->version,
		.session_id = qp->class ? remote->session_id : 0,
		.channel = qp->class,
		.ended = qp->ended,
	};
	size_t length;
	void *out;
	int rc;

	if (!is_client && remote->mux->identity)
		setup.identity = *remote->mux->identity;
	rc = weir_proof_setup(qp->id, is_client, &setup);
	if (rc) {
		weir_noise_wipe(&setup.identity, sizeof(setup.identity));
		return rc;
	}
	memcpy(setup.mux,
	       weir_mux_local_pins(remote->mux) ? remote->mux->dial_id : remote->mux->id,
	       sizeof(setup.mux));
	if (!is_client) {
		weir_handshake_donor(qp->handshake, &setup);
		return 0;
	}
	weir_identity_pin(&setup, remote->mux->options.peer_identity, remote->mux->options.key);
	out = next_handshake_buffer(qp);
	weir_handshake_client(qp->handshake, &setup, out, &length);
	return send_handshake(qp, out, length);
}

/* The handshake is over. With no thread waiting, the remote may be dialled again, or has failed. */
static void settle_qp(struct weir_mux_qp *qp)
{
	struct weir_mux_remote *remote = qp->remote;

	pthread_cond_broadcast(&remote->mux->changed);
	if (!qp->is_orphan)
		return;
	remote->is_dialing = false;
	if (qp->state == WEIR_MUX_QP_SPARE)
		rdma_disconnect(qp->id);
	if (!remote->qps[0]) {
		weir_mux_remote_uncharge(remote);
		weir_mux_remote_fail(remote, -ECONNRESET);
	}
	weir_mux_fd_signal(remote->mux->wakeup_fd);
}

void weir_mux_qp_orphan(struct weir_mux_qp *qp)
{
	qp->is_orphan = true;
	/* By then the peer has welcomed us, or has dropped the unproven QP. */
	qp->deadline_ns = weir_now_ns() + WEIR_HANDSHAKE_NS;
	weir_mux_fd_signal(qp->remote->mux->wakeup_fd);
}

void weir_mux_qp_fail(struct weir_mux_qp *qp, int status)
{
	struct weir_mux_remote *remote = qp->remote;

	weir_places_leave(&qp->newcomer);
	if (remote->qps[qp->class] == qp) {
		weir_mux_remote_fail(remote, status);
		return;
	}
	if (qp->state == WEIR_MUX_QP_FAILED || qp->state == WEIR_MUX_QP_SPARE)
		return;
	qp->state = WEIR_MUX_QP_FAILED;
	qp->status = status;
	if (!remote->is_ours && !remote->qps[0])
		weir_mux_remote_fail(remote, status);
	settle_qp(qp);
	weir_mux_fd_signal(remote->mux->wakeup_fd);
}

/*
 * How long the peer waits after a receiver-not-ready NAK. The connection manager's default of
 * 655 ms would stall all connections of the QP. A transport without a timer refuses; ignore the
 * error.
 */
static void set_rnr_timer(const struct weir_mux_qp *qp)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = WEIR_MUX_QP_RNR_TIMER };

	ibv_modify_qp(qp->qp, &attr, IBV_QP_MIN_RNR_TIMER);
}

/* The peer has proven the key and may access memory. A broken QP cannot be opened. */
static int open_proven_qp(const struct weir_mux_qp *qp)
{
	set_rnr_timer(qp);
	return weir_proof_open(qp->handshake, qp->qp, ACCESS_PROVEN) ? -ECONNRESET : 0;
}

/* From here on the QP carries connections. */
static int bring_up_qp(struct weir_mux_qp *qp)
{
	struct weir_mux_remote *remote = qp->remote;
	int rc = 0;

	weir_places_leave(&qp->newcomer);
	if (remote->worker_state == WEIR_MUX_WORKER_NONE)
		rc = weir_mux_remote_start(remote);
	if (rc)
		return rc;
	qp->state = WEIR_MUX_QP_UP;
	__atomic_store_n(&remote->qps[qp->class], qp, __ATOMIC_RELEASE);
	settle_qp(qp);
	return 0;
}

void weir_mux_qp_confirm(struct weir_mux_qp *qp)
{
	int rc;

	if (qp->state != WEIR_MUX_QP_WELCOMED)
		return;
	/* If we have been welcomed on another QP meanwhile, the peer has lost this one. */
	rc = qp->remote->qps[qp->class] ? -ECONNRESET : bring_up_qp(qp);
	if (rc)
		weir_mux_qp_fail(qp, rc);
}

bool weir_mux_qp_is_pending(const struct weir_mux_remote *remote, uint8_t class)
{
	const struct weir_list *at;

	for (at = remote->mux->qps.next; at != &remote->mux->qps; at = at->next) {
		const struct weir_mux_qp *qp = weir_list_entry(at, struct weir_mux_qp, link);

		if (qp->remote == remote && qp->class == class && qp->state == WEIR_MUX_QP_WELCOMED)
			return true;
	}
	return false;
}

static void count_handshake_sent(struct weir_mux_qp *qp, const struct ibv_wc *wc)
{
	qp->nr_handshakes_posted--;
	__atomic_sub_fetch(&qp->remote->nr_handshakes_posted, 1, __ATOMIC_SEQ_CST);
	if (wc->status != IBV_WC_SUCCESS)
		weir_mux_qp_fail(qp, -ECONNRESET);
	else if (!qp->nr_handshakes_posted)
		weir_mux_qp_confirm(qp); /* WELCOME was the last */
}

void weir_mux_qp_handshake_sent(struct weir_mux_remote *remote, const struct ibv_wc *wc)
{
	struct weir_mux_local *mux = remote->mux;
	struct weir_list *at;

	pthread_mutex_lock(&mux->lock);
	for (at = mux->qps.next; at != &mux->qps; at = at->next) {
		struct weir_mux_qp *qp = weir_list_entry(at, struct weir_mux_qp, link);

		if (handshake_wr_id(qp) != wc->wr_id)
			continue;
		count_handshake_sent(qp, wc);
		break;
	}
	pthread_mutex_unlock(&mux->lock);
}

/* The client has proven the key; WELCOME follows. */
static int mark_proven(struct weir_mux_qp *qp)
{
	int rc = open_proven_qp(qp);

	if (rc)
		return rc;
	if (!qp->class)
		return bring_up_qp(qp);
	weir_places_leave(&qp->newcomer);
	qp->state = WEIR_MUX_QP_WELCOMED;
	return 0;
}

/*
 * Answers a proven client with our id. WELCOME marks a spare QP and the client ends the QP;
 * otherwise the QP expires as unproven, as a refused QP does.
 */
static int welcome(struct weir_mux_qp *qp, void *out, size_t *length)
{
	struct wire_handshake_welcome welcome = { .message_max = WIRE_MUX_SEGMENT_MAX };
	int rc = weir_mux_qp_dedup_client(qp, &welcome);

	if (rc == -EALREADY) {
		weir_handshake_refuse(qp->handshake, -EAGAIN, "both ends connect at once", out,
				      length);
		return 0;
	}
	if (!rc)
		rc = mark_proven(qp);
	if (rc >= 0)
		weir_handshake_welcome(qp->handshake, &welcome, out, length);
	return rc < 0 ? rc : 0;
}

/* The donor has proven the key, too. */
static int handle_welcome(struct weir_mux_qp *qp)
{
	int rc = weir_mux_qp_dedup_donor(qp);

	if (rc < 0)
		return rc;
	if (!rc) {
		rc = open_proven_qp(qp);
		return rc ? rc : bring_up_qp(qp);
	}
	qp->state = WEIR_MUX_QP_SPARE;
	settle_qp(qp);
	return 0;
}

/* Its secrets take locked memory, of which a user may have little. */
static void end_handshake(struct weir_mux_qp *qp)
{
	weir_handshake_free(qp->handshake);
	qp->handshake = NULL;
}

void weir_mux_qp_handshake_input(struct weir_mux_qp *qp, const void *data, size_t length)
{
	struct weir_handshake *h = qp->handshake;
	void *out = next_handshake_buffer(qp);
	size_t out_length = 0;
	int rc = -EPROTO;

	if (qp->state == WEIR_MUX_QP_PROVING && h->state != WEIR_HANDSHAKE_FAILED)
		rc = weir_handshake_input(h, data, length, out, &out_length);
	if (!rc && h->state == WEIR_HANDSHAKE_WELCOME)
		qp->proved = ++qp->remote->mux->last_event;
	if (!rc && h->state == WEIR_HANDSHAKE_PROVEN)
		rc = welcome(qp, out, &out_length);
	else if (!rc && h->state == WEIR_HANDSHAKE_DONE)
		rc = handle_welcome(qp);
	/* A refused client ends the QP, because a failed QP would lose the refusal. */
	if (out_length && h->state == WEIR_HANDSHAKE_FAILED)
		rc = 0;
	if (out_length && !rc)
		rc = send_handshake(qp, out, out_length);
	if (qp->state == WEIR_MUX_QP_UP || qp->state == WEIR_MUX_QP_WELCOMED)
		end_handshake(qp);
	if (rc)
		weir_mux_qp_fail(qp, rc);
}
