/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An attempt to bring up one channel, for the first time or again. The attempt blocks, with a
 * deadline. Until it succeeds, it changes nothing that other threads use. It has its own event
 * channel, and polls for the few messages of the handshake, because CQ events belong to the
 * session's driver.
 *
 * Context: the thread that opens the session or reconnects; without nic->lock.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/client/session.h"
#include "lib/conn/identity.h"
#include "lib/conn/proof.h"
#include "lib/conn/qp.h"
#include "lib/conn/encryption.h"

#define ANSWER_NS_MIN (100 * WEIR_NS_PER_MS) /* leaves time for the last attempts */
#define CHECK_MS 20 /* until an attempt sees that the session closes */

/**
 * struct channel_connect - state of all steps
 * @session, @link: the channel, and its session
 * @dialer: its id becomes the link's
 * @own_cq, @inline_max: become the link's; @own_cq: the receive CQ, unless shared
 */
struct channel_connect {
	struct weir_session *session;
	struct weir_session_link *link;
	struct weir_dialer dialer;
	struct ibv_cq *own_cq;
	uint32_t inline_max;
};

static int check_is_open(void *arg, struct weir_error *error)
{
	const struct weir_session *session = arg;

	return weir_session_is_closing(session) ?
		       weir_error_set(error, -ECANCELED, "the session is closed") :
		       0;
}

/* Shortage of descriptors, memory or device resources may pass. */
static int explain_no_resources(int err)
{
	return err == EINVAL ? -EINVAL : -ENOMEM;
}

/* With as much inline data as the device accepts. */
static int create_qp_inline(struct channel_connect *a, struct ibv_qp_init_attr *attr)
{
	static const uint32_t sizes[] = { 256, 128, 64, 0 };
	unsigned int i;
	int rc = -EINVAL;

	for (i = 0; rc && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ibv_qp_init_attr asked = *attr;

		asked.cap.max_inline_data = sizes[i];
		rc = weir_qp_create(a->dialer.id, a->session->nic->pd, &asked, &a->dialer.qp);
		if (!rc)
			a->inline_max = asked.cap.max_inline_data;
	}
	return rc;
}

/*
 * The CQ of the handshake's receives: channel 0 shares that of its messages, the unload channel
 * that of its returns.
 */
static int create_recv_cq(struct channel_connect *a, struct ibv_cq **recv_cq)
{
	struct weir_session *session = a->session;

	if (!a->link->number || weir_unload_tx_is(a->link)) {
		*recv_cq = a->link->number ? a->link->cq->ibv : session->recv_cq;
		return 0;
	}
	a->own_cq = ibv_create_cq(session->nic->context, WIRE_HANDSHAKE_RECVS, NULL, NULL, 0);
	if (!a->own_cq)
		return weir_error_set(a->dialer.error, explain_no_resources(errno),
				      "no completion queue of %u: %s", WIRE_HANDSHAKE_RECVS,
				      strerror(errno));
	*recv_cq = a->own_cq;
	return 0;
}

/* Channel 0 also has the buffers for messages. */
static int create_qp(struct channel_connect *a)
{
	struct weir_session *session = a->session;
	struct weir_session_link *link = a->link;
	unsigned int recvs = WIRE_HANDSHAKE_RECVS + (link->number ? 0 : WEIR_MESSAGE_RECVS);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr =
				 session->tuning.depth + WEIR_PROOF_SENDS + WEIR_KEEPALIVE_SENDS,
			 .max_recv_wr = recvs,
			 .max_send_sge = session->nic->sge_max,
			 .max_recv_sge = 1 },
	};
	int rc = create_recv_cq(a, &attr.recv_cq);

	if (rc)
		return rc;
	if (weir_unload_tx_is(link)) {
		attr.cap.max_send_wr = WEIR_UNLOAD_TX_SENDS + WEIR_PROOF_SENDS;
		attr.cap.max_recv_wr = WIRE_UNLOAD_SLOTS + WIRE_HANDSHAKE_RECVS;
	}
	attr.send_cq = link->cq->ibv;
	rc = create_qp_inline(a, &attr);
	return rc ? weir_error_set(a->dialer.error, explain_no_resources(-rc),
				   "no queue pair of depth %u: %s", session->tuning.depth,
				   weir_strerror(rc)) :
		    0;
}

static int post_recvs(const struct channel_connect *a)
{
	struct weir_session *session = a->session;
	struct weir_handshake_buffers *buffers = weir_messages_handshake(session, a->link->number);
	int rc = weir_proof_post_recvs(a->dialer.qp, session->messages.mr->lkey, buffers->recvs,
				       WIRE_HANDSHAKE_RECVS, WEIR_PROOF_WR);

	if (!rc && !a->link->number)
		rc = weir_messages_post(session, a->dialer.qp);
	if (!rc && weir_unload_tx_is(a->link))
		rc = weir_unload_tx_post_recvs(a->dialer.qp);
	return rc ? weir_error_set(a->dialer.error, rc, "cannot post receive buffers: %s",
				   weir_strerror(rc)) :
		    0;
}

/* The first WELCOME on channel 0 counts for the session. */
static void record_welcome(struct weir_session *session,
			   const struct wire_handshake_welcome *welcome)
{
	session->id = welcome->session_id;
	session->incarnation = welcome->incarnation;
	session->quota_bytes = welcome->quota_bytes;
}

/* Credits begin afresh with each channel 0. */
static int check_welcome(const struct channel_connect *a,
			 const struct wire_handshake_welcome *welcome)
{
	struct weir_session *session = a->session;
	struct weir_messages *m = &session->messages;

	if (!session->id)
		record_welcome(session, welcome);
	if (welcome->session_id != session->id || welcome->incarnation != session->incarnation)
		return weir_error_set(a->dialer.error, -ESTALE, "%s is no longer the same donor",
				      session->peer);
	if (weir_unload_tx_is(a->link) && weir_unload_tx_up(session, welcome, a->inline_max))
		return weir_error_set(a->dialer.error, -EPROTO,
				      "%s offers no buffer for unloaded writes", session->peer);
	if (a->link->number)
		return 0;
	if (welcome->message_max <= sizeof(struct wire_control_head) ||
	    weir_credit_init(&m->credit, WEIR_MESSAGE_RECVS, welcome->credits))
		return weir_error_set(a->dialer.error, -EPROTO, "%s takes no messages",
				      session->peer);
	m->body_max = welcome->message_max - (uint32_t)sizeof(struct wire_control_head);
	if (m->body_max > WIRE_CONTROL_BODY_MAX)
		m->body_max = WIRE_CONTROL_BODY_MAX;
	return 0;
}

/* With nic->lock held, so that no thread gets events of the id before the link has it. */
static int link_up(struct channel_connect *a, const struct wire_handshake_welcome *welcome)
{
	struct weir_session *session = a->session;
	struct weir_session_link *link = a->link;
	int rc;

	if (!weir_link_may_connect(&link->core))
		return weir_error_set(a->dialer.error, -ECANCELED, "the session has ended");
	rc = check_welcome(a, welcome);
	if (rc)
		return rc;
	rc = weir_dialer_hand_over(&a->dialer, session->cm);
	if (rc)
		return rc;
	weir_window_tick(session->engine.window, weir_now_ns());
	/*
	 * An earlier QP of another session may have had the same number: its completions must not
	 * be mistaken.
	 */
	if (link->cq->scq)
		weir_session_links_poll(session, link->cq, weir_now_ns());
	rc = weir_engine_channel_up(&session->engine, link->number,
				    weir_unload_tx_is(link) ? WIRE_UNLOAD_SLOTS :
							      session->tuning.depth);
	if (rc)
		return weir_error_set(a->dialer.error, rc, "channel %u cannot come up: %s",
				      link->number, weir_strerror(rc));
	link->id = a->dialer.id;
	link->qp_num = a->dialer.qp->qp_num;
	link->recv_cq = a->own_cq;
	link->inline_max = a->inline_max;
	weir_link_up(&link->core);
	if (link->number == session->nr_links)
		session->nr_links++;
	return 0;
}

static int connect_qp(struct channel_connect *a)
{
	const struct weir_session *session = a->session;
	struct wire_handshake_connect connect = {
		.magic = WIRE_MAGIC,
		.version = weir_dialer_version(&a->dialer.again),
		.channel = weir_unload_tx_channel(a->link),
		.session_id = session->id,
		.key_id = weir_key_id(session->options.key),
	};

	memcpy(connect.cookie, a->dialer.again.cookie, sizeof(connect.cookie));
	return weir_dialer_connect(&a->dialer, &connect, sizeof(connect), session->nic->rd_atomic,
				   WEIR_CREDIT_RNR_RETRIES);
}

static void give_up(struct channel_connect *a)
{
	weir_dialer_close(&a->dialer);
	if (a->own_cq)
		ibv_destroy_cq(a->own_cq);
	a->own_cq = NULL;
}

/* All steps before the proof. Shared session state is only read. */
static int try_once(struct channel_connect *a, const struct sockaddr *address)
{
	struct weir_dialer *d = &a->dialer;
	int rc = weir_dialer_resolve(d, address);

	if (!rc) {
		d->id->context = a->link;
		rc = weir_session_attach_device(a->session, d->id->verbs, d->error);
	}
	if (!rc)
		rc = create_qp(a);
	if (!rc)
		rc = post_recvs(a);
	return rc ? rc : connect_qp(a);
}

/* A donor under load wants its cookie back; an old one wants an older version. */
static int resolve_and_connect(struct channel_connect *a, const struct sockaddr *address)
{
	int rc;

	while (weir_dialer_tries_again(&a->dialer.again, rc = try_once(a, address)))
		give_up(a);
	return rc;
}

/*
 * On channel 0 the donor writes only its keep-alives, which are empty: lib/donor/keepalive.h. The
 * other channels stay closed to RDMA.
 */
static int prove(struct channel_connect *a, struct wire_handshake_welcome *welcome)
{
	struct weir_session *session = a->session;
	struct weir_handshake_buffers *buffers = weir_messages_handshake(session, a->link->number);
	const struct weir_key *key = session->options.key;
	struct weir_proof proof = {
		.setup = { .key = key,
			   .service.magic = WIRE_MAGIC,
			   .session_id = session->id,
			   .channel = weir_unload_tx_channel(a->link),
			   .credits = WEIR_MESSAGE_RECVS,
			   .takes_clear = session->options.encryption == WEIR_ENCRYPTION_AUTO },
		.recvs = buffers->recvs,
		.sends = buffers->sends,
		.lkey = session->messages.mr->lkey,
		.access = a->link->number ? 0 : IBV_ACCESS_REMOTE_WRITE,
	};
	int rc;

	weir_identity_pin(&proof.setup, session->options.donor_identity, key);
	rc = weir_proof_run(&a->dialer, &proof);
	*welcome = proof.welcome;
	__atomic_store_n(&session->cipher, weir_encryption_cipher(a->dialer.qp), __ATOMIC_RELAXED);
	return rc;
}

/*
 * A reconnecting attempt stuck on lost packets must leave time for the next, so it gets half of the
 * remaining time. The proof may take all: breaking the proof off tells the donor that the client
 * leaves.
 */
static uint64_t answer_deadline_ns(const struct channel_connect *a)
{
	uint64_t now_ns = weir_now_ns(), deadline_ns = a->dialer.deadline_ns, by_ns;

	if (!a->link->id || deadline_ns <= now_ns)
		return deadline_ns;
	by_ns = now_ns + (deadline_ns - now_ns) / 2 + ANSWER_NS_MIN;
	return by_ns < deadline_ns ? by_ns : deadline_ns;
}

static int attempt(struct channel_connect *a, const struct sockaddr *address,
		   struct wire_handshake_welcome *welcome)
{
	uint64_t deadline_ns = a->dialer.deadline_ns;
	int rc;

	a->dialer.deadline_ns = answer_deadline_ns(a);
	rc = resolve_and_connect(a, address);
	a->dialer.deadline_ns = deadline_ns;
	return rc ? rc : prove(a, welcome);
}

int weir_session_connect(struct weir_session *session, uint16_t number,
			 const struct sockaddr *address, uint64_t deadline_ns,
			 struct weir_error *error)
{
	struct channel_connect a = {
		.session = session,
		.link = &session->links[number],
		.dialer = { .peer = session->peer,
			    .device = session->options.device,
			    .deadline_ns = deadline_ns,
			    .check = check_is_open,
			    .arg = session,
			    .check_ms = CHECK_MS,
			    .error = error },
	};
	struct rdma_cm_id *old = a.link->id;
	struct wire_handshake_welcome welcome;
	int rc = attempt(&a, address, &welcome);

	if (!rc) {
		weir_session_lock(session);
		rc = link_up(&a, &welcome);
		weir_session_unlock(session);
	}
	if (rc) {
		give_up(&a);
		return rc;
	}
	/*
	 * Only now: ending the old connection earlier would tell the donor that the client has
	 * left.
	 */
	if (old)
		rdma_destroy_id(old);
	return 0;
}
