/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/donor/keepalive.h"
#include "lib/base/clock.h"
#include "lib/donor/donor.h"
#include "lib/base/error.h"
#include "lib/donor/conn.h"
#include "lib/donor/keyring/keyring.h"
#include "lib/donor/messages.h"
#include "lib/donor/client.h"
#include "lib/conn/proof.h"
#include "lib/conn/encryption.h"
#include "lib/donor/unload_rx.h"

#define POLL_MAX 16
#define COMPLETIONS_MAX 64 /* in one turn of a connection, so that others get theirs */

#define ACCESS_PROVEN (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* The key proven, or NULL. */
static struct weir_donor_tenant *tenant_of(const struct weir_donor_conn *conn)
{
	return conn->client ? &conn->donor->tenants[conn->tenant] : NULL;
}

/* Marks a connection to end; the client may have ended it. */
static void end_conn(struct weir_donor_conn *conn, const char *why)
{
	if (conn->is_dead)
		return;
	conn->is_dead = true;
	weir_places_leave(&conn->newcomer);
	conn->donor->reap_due = true;
	weir_donor_log_of(conn->donor, tenant_of(conn), conn->name,
			  conn->client ? WEIR_LOG_DEBUG : WEIR_LOG_WARNING,
			  "conn %s channel=%u id=W104 closed: %s", conn->name, conn->channel, why);
}

void weir_donor_conn_kill(struct weir_donor_conn *conn, const char *why)
{
	struct weir_peer *client = conn->client;

	if (client && client->conns[0] == conn && client->end == WEIR_PEER_DIED)
		client->end = WEIR_PEER_CUT;
	end_conn(conn, why);
}

void weir_donor_conn_break(struct weir_donor_conn *conn, const char *why)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (conn->is_dead || !weir_link_fail(&conn->core))
		return;
	conn->deadline_ns = weir_now_ns() + weir_donor_keepalive_absence_ns(conn);
	ibv_modify_qp(conn->id->qp, &attr, IBV_QP_STATE);
	weir_donor_client_conn_broken(conn->client, conn);
	weir_donor_log_of(conn->donor, tenant_of(conn), conn->name, WEIR_LOG_WARNING,
			  "broke peer=%llu client=%s channel=%u id=W103: %s",
			  (unsigned long long)weir_peer_id(conn->client), conn->name,
			  conn->channel, why);
}

/* Sends a buffer. An honest client makes the donor send as often as the client does. */
static void send_handshake(struct weir_donor_conn *conn, unsigned int buffer, size_t length)
{
	if (weir_proof_send(conn->id->qp, conn->mr->lkey, conn->buffers[buffer], length,
			    WEIR_DONOR_WR_HANDSHAKE_SEND | buffer))
		weir_donor_conn_kill(conn, "cannot send");
}

static void send_refusal(struct weir_donor_conn *conn, unsigned int buffer, size_t length,
			 const char *why)
{
	conn->is_refused = true;
	weir_counter_add(&conn->donor->rejects, 1);
	weir_donor_log_of(conn->donor, tenant_of(conn), conn->name, WEIR_LOG_WARNING,
			  "refused client=%s id=W102: %s", conn->name, why);
	send_handshake(conn, buffer, length);
}

/* Finds or creates the client of a proven connection. */
static int get_client(struct weir_donor_conn *conn, struct weir_peer **client,
		      struct weir_error *error)
{
	const struct wire_handshake_hello *hello = &conn->handshake->hello;

	if (!hello->session_id)
		return weir_donor_client_new(conn->donor, conn, client, error);
	*client = weir_donor_client_find(conn->donor, hello->session_id, conn->secret);
	if (!*client)
		return weir_error_set(error, -ESTALE,
				      "the donor does not know this session any more");
	return weir_donor_client_attach(*client, conn, error);
}

/* Only a client that has proven the key may reach memory. */
static int attach_to_client(struct weir_donor_conn *conn, struct weir_peer **client,
			    struct weir_error *error)
{
	bool unloads = conn->channel == WIRE_CHANNEL_UNLOAD;
	int rc;

	if (unloads && !(conn->secret->rights & WEIR_RIGHT_WRITE))
		return weir_error_set(error, -EKEYREJECTED, "this key lacks the right 'write'");
	rc = unloads ? weir_donor_unload_rx_open(conn, error) : 0;
	if (rc)
		return rc;
	rc = weir_proof_open(conn->handshake, conn->id->qp,
			     unloads ? IBV_ACCESS_REMOTE_WRITE : ACCESS_PROVEN);
	if (rc)
		return weir_error_set(error, -ENOMEM, "cannot open the QP: %s", strerror(-rc));
	rc = get_client(conn, client, error);
	if (rc)
		return rc;
	conn->client = *client;
	weir_places_leave(&conn->newcomer);
	weir_link_up(&conn->core);
	return 0;
}

/* Its secrets take locked memory, of which a user may have little. */
static void end_handshake(struct weir_donor_conn *conn)
{
	weir_handshake_free(conn->handshake);
	conn->handshake = NULL;
}

static void handle_proof(struct weir_donor_conn *conn, unsigned int buffer)
{
	struct weir_donor *donor = conn->donor;
	bool is_known = conn->handshake->hello.session_id;
	struct weir_peer *client;
	struct wire_handshake_welcome welcome;
	const char *cipher = weir_encryption_cipher(conn->id->qp);
	struct weir_error error;
	size_t length;
	int rc;

	rc = attach_to_client(conn, &client, &error);
	if (rc) {
		weir_handshake_refuse(conn->handshake, rc, error.text, conn->buffers[buffer],
				      &length);
		send_refusal(conn, buffer, length, error.text);
		return;
	}
	welcome = (struct wire_handshake_welcome){
		.session_id = client->session_id,
		.incarnation = donor->incarnation,
		.quota_bytes = weir_donor_client_quota(donor, conn->secret),
		.message_max = sizeof(struct wire_control_head) + WIRE_CONTROL_BODY_MAX,
		.credits = conn->handshake->setup.credits,
	};
	if (conn->unload_rx)
		weir_donor_unload_rx_describe(conn->unload_rx, &welcome);
	weir_handshake_welcome(conn->handshake, &welcome, conn->buffers[buffer], &length);
	end_handshake(conn);
	send_handshake(conn, buffer, length);
	if (is_known) {
		if (!conn->channel) {
			weir_donor_messages_flush(client, conn->id->qp);
			weir_donor_reclaim_repeat(client);
		}
		return;
	}
	weir_counter_add(&donor->joins, 1);
	weir_donor_log_of(donor, tenant_of(conn), conn->name, WEIR_LOG_INFO,
			  "joined peer=%llu client=%s tenant=%u%s%s",
			  (unsigned long long)client->id, client->name, client->tenant,
			  cipher ? " encryption=" : "", cipher ? cipher : "");
	if (donor->options.on_join)
		donor->options.on_join(donor->options.arg, client);
}

static void handshake_received(struct weir_donor_conn *conn, unsigned int buffer, uint32_t length)
{
	unsigned int answer = WIRE_HANDSHAKE_RECVS + buffer;
	size_t out_length;
	int rc;

	if (conn->is_refused)
		return;
	if (!conn->handshake) {
		weir_donor_conn_kill(conn, "the client broke the protocol");
		return;
	}
	rc = weir_handshake_input(conn->handshake, conn->buffers[buffer], length,
				  conn->buffers[answer], &out_length);
	if (rc)
		send_refusal(conn, answer, out_length, conn->handshake->why);
	else if (out_length)
		send_handshake(conn, answer, out_length);
	else if (conn->handshake->state == WEIR_HANDSHAKE_PROVEN)
		handle_proof(conn, answer);
}

/*
 * A write with immediate consumes a receive too, but its length is that of the write, not of the
 * buffer.
 */
static bool is_immediate(const struct ibv_wc *wc, unsigned int work)
{
	return (work == WEIR_DONOR_WR_HANDSHAKE_RECV || work == WEIR_DONOR_WR_MESSAGE_RECV) &&
	       wc->opcode != IBV_WC_RECV;
}

static bool is_receive(unsigned int work)
{
	return work == WEIR_DONOR_WR_HANDSHAKE_RECV || work == WEIR_DONOR_WR_MESSAGE_RECV ||
	       work == WEIR_DONOR_WR_UNLOAD_RECV;
}

/*
 * Network failures may be repaired; a message longer than the buffer, for example, is the client's
 * fault. Soft-RoCE reports such a message as LOC_QP_OP_ERR; for sends, the same status may be
 * repaired.
 */
static void handle_failed_wc(struct weir_donor_conn *conn, unsigned int work,
			     enum ibv_wc_status status)
{
	bool is_of_client = is_receive(work) && status == IBV_WC_LOC_QP_OP_ERR;

	if (conn->client && !is_of_client && weir_error_of_wc(status) == -ECONNRESET)
		weir_donor_conn_break(conn, ibv_wc_status_str(status));
	else
		weir_donor_conn_kill(conn, ibv_wc_status_str(status));
}

static void handle_wc(struct weir_donor_conn *conn, const struct ibv_wc *wc)
{
	unsigned int buffer = wc->wr_id & ~WEIR_DONOR_WR_MASK;
	unsigned int work = wc->wr_id & WEIR_DONOR_WR_MASK;

	if (wc->status != IBV_WC_SUCCESS) {
		handle_failed_wc(conn, work, wc->status);
		return;
	}
	if (is_immediate(wc, work)) {
		weir_donor_conn_kill(conn, "the client broke the protocol");
		return;
	}
	switch (work) {
	case WEIR_DONOR_WR_HANDSHAKE_RECV:
		handshake_received(conn, buffer, wc->byte_len);
		break;
	case WEIR_DONOR_WR_HANDSHAKE_SEND:
		if (conn->is_refused)
			weir_donor_conn_kill(conn, "refused");
		break;
	case WEIR_DONOR_WR_MESSAGE_RECV:
		if (weir_donor_messages_received(conn->client, buffer, wc->byte_len))
			weir_donor_conn_kill(conn, "the client broke the protocol");
		break;
	case WEIR_DONOR_WR_MESSAGE_SEND:
		weir_donor_messages_sent(conn->client, buffer);
		break;
	case WEIR_DONOR_WR_UNLOAD_RECV:
		if (weir_donor_unload_rx_received(conn, wc))
			weir_donor_conn_kill(conn, "the client broke the protocol");
		break;
	case WEIR_DONOR_WR_UNLOAD_RETURN:
		weir_unload_rx_report_arrived(&conn->unload_rx->core);
		break;
	case WEIR_DONOR_WR_KEEPALIVE:
		weir_keepalive_forget(&conn->keepalive, &conn->core);
		break;
	}
}

static bool is_finished(const struct weir_donor_conn *conn)
{
	return conn->is_dead || conn->core.state == WEIR_LINK_FAILING;
}

/* Takes completions, up to a bound. Return: number of completions. */
static unsigned int poll_cq(struct weir_donor_conn *conn)
{
	struct ibv_wc wcs[POLL_MAX];
	unsigned int total = 0;
	int i, got;

	do {
		got = ibv_poll_cq(conn->cq, POLL_MAX, wcs);
		for (i = 0; i < got && !is_finished(conn); i++)
			handle_wc(conn, &wcs[i]);
		if (conn->unload_rx && conn->client && !is_finished(conn))
			weir_donor_unload_rx_send_returns(conn, got == POLL_MAX);
		if (got < 0)
			weir_donor_conn_kill(conn, "its CQ failed");
		else
			total += (unsigned int)got;
	} while (got == POLL_MAX && total < COMPLETIONS_MAX && !is_finished(conn));
	return total;
}

static void leave_awake_list(struct weir_donor_conn *conn)
{
	weir_list_del(&conn->awake_link);
}

static enum weir_poll_verdict poll_or_sleep(struct weir_donor_conn *conn,
					    enum weir_poll_verdict verdict, uint64_t now_ns)
{
	unsigned int got;

	if (verdict == WEIR_POLL_ARM && ibv_req_notify_cq(conn->cq, 0))
		weir_donor_conn_kill(conn, "its CQ cannot be armed");
	got = poll_cq(conn);
	if (got)
		weir_keepalive_heard(&conn->keepalive, now_ns);
	return weir_poll_polled(&conn->poll, got, now_ns);
}

/* On some devices answers complete at once. Arming only an empty CQ avoids events for them. */
void weir_donor_conn_poll(struct weir_donor_conn *conn, uint64_t now_ns)
{
	enum weir_poll_verdict verdict = poll_or_sleep(conn, WEIR_POLL_AGAIN, now_ns);

	if (verdict == WEIR_POLL_ARM && !is_finished(conn))
		verdict = poll_or_sleep(conn, verdict, now_ns);
	if (verdict == WEIR_POLL_SLEEP || is_finished(conn))
		leave_awake_list(conn);
}

void weir_donor_conn_handle_event(struct weir_donor_conn *conn, uint64_t now_ns)
{
	ibv_ack_cq_events(conn->cq, 1);
	if (is_finished(conn) || !weir_list_is_empty(&conn->awake_link))
		return;
	weir_poll_woken(&conn->poll, now_ns);
	weir_list_add_tail(&conn->donor->awake, &conn->awake_link);
}

void weir_donor_conn_retire(struct weir_donor_conn *conn)
{
	ibv_destroy_qp(conn->id->qp);
	conn->id->qp = NULL;
	weir_donor_conn_kill(conn, "replaced");
}

void weir_donor_conn_drain(struct weir_donor_conn *conn)
{
	while (!is_finished(conn) && poll_cq(conn))
		;
}

void weir_donor_conn_disconnected(struct weir_donor_conn *conn)
{
	weir_donor_conn_drain(conn);
	if (!conn->client && !conn->is_dead && !conn->is_refused)
		weir_counter_add(&conn->donor->rejects, 1);
	end_conn(conn, conn->client ? "disconnected" : "left without a proof of the key");
}

void weir_donor_conn_expire(struct weir_donor_conn *conn)
{
	if (conn->is_dead || weir_now_ns() < conn->deadline_ns)
		return;
	if (conn->core.state == WEIR_LINK_FAILING) {
		end_conn(conn, "its client did not come back");
	} else if (!conn->client) {
		weir_counter_add(&conn->donor->rejects, 1);
		weir_donor_conn_kill(conn, "no proof in time");
	}
}

void weir_donor_conn_destroy(struct weir_donor_conn *conn)
{
	if (conn->id->qp)
		ibv_destroy_qp(conn->id->qp);
	conn->id->qp = NULL;
	if (conn->cq)
		ibv_destroy_cq(conn->cq);
	if (conn->mr)
		ibv_dereg_mr(conn->mr);
	weir_donor_unload_rx_close(conn);
	weir_handshake_free(conn->handshake);
	weir_keyring_put(conn->donor, conn->secret);
	free(conn);
}

void weir_donor_conn_reap(struct weir_donor_conn *conn)
{
	struct rdma_cm_id *id = conn->id;
	struct weir_peer *client = conn->client;

	weir_list_del(&conn->link);
	leave_awake_list(conn);
	if (client)
		weir_donor_client_mute(client, conn);
	/*
	 * If the client's RTU is still on its way, destroying the id sends a REJ. Forcing the state
	 * by rdma_notify() before the RTU would be worse: the CM would resend the REP after the
	 * DREQ, and the destruction would wait for more than a minute.
	 */
	rdma_disconnect(id);
	weir_donor_conn_destroy(conn);
	rdma_destroy_id(id);
	if (client)
		weir_donor_client_conn_gone(client);
}
