/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Message buffers, and incoming messages. Outgoing ones: message_send.c. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/client/message/call.h"
#include "lib/base/error.h"
#include "lib/client/memory/memory.h"
#include "lib/client/session_reconnect.h"
#include "lib/client/message/message.h"
#include "lib/client/session.h"

static_assert(WEIR_MESSAGE_MAX == WIRE_CONTROL_BODY_MAX, "the API promises what the wire carries");

/* Layout of the arena. */
struct message_arena {
	struct weir_handshake_buffers handshakes[WEIR_CHANNEL_MAX];
	char sends[WEIR_MESSAGE_SENDS][WIRE_CONTROL_MESSAGE_BYTES];
	char recvs[WEIR_MESSAGE_RECVS][WIRE_CONTROL_MESSAGE_BYTES];
};

static struct message_arena *message_arena_of(struct weir_session *session)
{
	return (struct message_arena *)session->messages.arena;
}

int weir_messages_init(struct weir_session *session, struct weir_error *error)
{
	struct weir_messages *m = &session->messages;
	int i;

	m->arena = weir_memory_map(sizeof(struct message_arena), session->nic->numa_node);
	if (!m->arena)
		return weir_error_set(error, -ENOMEM, "no memory for message buffers");
	m->mr = ibv_reg_mr(session->nic->pd, m->arena, sizeof(struct message_arena),
			   IBV_ACCESS_LOCAL_WRITE);
	if (!m->mr) {
		int rc = -errno;

		weir_memory_unmap(m->arena, sizeof(struct message_arena));
		m->arena = NULL;
		return weir_error_set_memlock(error, "message buffers",
					      sizeof(struct message_arena), rc);
	}
	for (i = 0; i < WEIR_MESSAGE_SENDS; i++) {
		struct weir_send_buffer *out = &m->outgoing[i];

		out->request.session = session;
		out->buffer = message_arena_of(session)->sends[i];
		weir_list_add_tail(&m->free_outgoing, &out->link);
	}
	return 0;
}

void weir_message_copies_free(struct weir_list *list)
{
	while (!weir_list_is_empty(list)) {
		struct weir_message_copy *copy =
			weir_list_entry(list->next, struct weir_message_copy, link);

		weir_list_del(&copy->link);
		free(copy);
	}
}

void weir_messages_fini(struct weir_session *session)
{
	struct weir_messages *m = &session->messages;

	weir_message_copies_free(&m->inbox);
	weir_message_copies_free(&m->backlog);
	if (!m->arena)
		return;
	ibv_dereg_mr(m->mr);
	weir_memory_unmap(m->arena, sizeof(struct message_arena));
	m->arena = NULL;
}

struct weir_handshake_buffers *weir_messages_handshake(struct weir_session *session,
						       unsigned int channel)
{
	return &message_arena_of(session)->handshakes[channel];
}

/* Posts one receive buffer; its index, above the handshake's numbers, is the wr_id. */
static int post_recv_buffer(struct weir_session *session, struct ibv_qp *qp, unsigned int index)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)message_arena_of(session)->recvs[index],
		.length = WIRE_CONTROL_MESSAGE_BYTES,
		.lkey = session->messages.mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = WEIR_HANDSHAKE_WR_MAX + 1 + index,
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return -ibv_post_recv(qp, &wr, &bad);
}

int weir_messages_post(struct weir_session *session, struct ibv_qp *qp)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < WEIR_MESSAGE_RECVS; i++)
		rc = post_recv_buffer(session, qp, i);
	return rc;
}

struct weir_message_copy *weir_message_copy_new(const struct wire_control_head *head,
						const void *body)
{
	struct weir_message_copy *copy = malloc(sizeof(*copy) + head->length);

	if (!copy)
		return NULL;
	copy->head = *head;
	if (head->length)
		memcpy(copy->body, body, head->length);
	return copy;
}

/* Gives up a donor that breaks the protocol. */
static void fail_channel(struct weir_session *session, int status)
{
	if (!session->down_status)
		session->down_status = status;
	weir_session_link_fail(&session->links[0]);
}

static int queue_for_handler(struct weir_messages *m, const struct wire_control_head *head,
			     const void *body)
{
	struct weir_message_copy *copy = weir_message_copy_new(head, body);

	if (!copy)
		return -ENOMEM;
	weir_list_add_tail(&m->inbox, &copy->link);
	m->inbox_count++;
	return 0;
}

static int receive_message(struct weir_session *session, const void *data, size_t length)
{
	struct weir_messages *m = &session->messages;
	struct wire_control_head head;
	const void *body;
	int rc;

	rc = wire_control_decode(data, length, &head, &body);
	if (!rc)
		rc = weir_credit_received(&m->credit, head.credits);
	if (rc)
		return rc;
	switch ((enum wire_control_kind)head.kind) {
	case WIRE_APP_ONEWAY:
		return queue_for_handler(m, &head, body);
	case WIRE_APP_REPLY:
	case WIRE_CONTROL_REPLY:
		return weir_calls_reply(session, &head, body);
	case WIRE_CONTROL_CREDIT:
		if (wire_control_is_closing(&head))
			weir_session_reconnect_give_up(session, -ENOTCONN);
		return 0;
	case WIRE_CONTROL_RECLAIM: /* nothing here is movable */
		return 0;
	case WIRE_APP_CALL:
	case WIRE_CONTROL_CALL:
		break;
	}
	return -EPROTO; /* a client answers no calls */
}

static void handle_recv_wc(struct weir_session *session, const struct ibv_wc *wc)
{
	unsigned int index;
	int rc;

	if (wc->status != IBV_WC_SUCCESS) {
		if (wc->qp_num == session->links[0].id->qp->qp_num)
			weir_session_link_fail(&session->links[0]);
		return;
	}
	index = (unsigned int)wc->wr_id - WEIR_HANDSHAKE_WR_MAX - 1;
	session->counters->completions++;
	rc = wc->opcode == IBV_WC_RECV /* a write with immediate fills no buffer */
		     ?
		     receive_message(session, message_arena_of(session)->recvs[index],
				     wc->byte_len) :
		     -EPROTO;
	if (!rc)
		rc = post_recv_buffer(session, session->links[0].id->qp, index);
	if (rc)
		fail_channel(session, rc);
}

/* While channel 0 reconnects, the reconnecting thread polls the CQ. */
static bool is_polled(const struct weir_session *session)
{
	return session->links[0].core.state == WEIR_LINK_UP ||
	       session->links[0].core.state == WEIR_LINK_FAILING;
}

bool weir_messages_have_room(const struct weir_session *session)
{
	return session->messages.inbox_count < WEIR_INBOX_MAX;
}

int weir_messages_poll(struct weir_session *session)
{
	struct ibv_wc wc;
	int taken = 0;

	while (is_polled(session) && weir_messages_have_room(session) &&
	       ibv_poll_cq(session->recv_cq, 1, &wc) > 0) {
		handle_recv_wc(session, &wc);
		taken++;
	}
	if (taken)
		weir_messages_flush(session);
	return taken;
}

void weir_messages_broken(struct weir_session *session)
{
	weir_messages_keep_unsent_calls(session);
	weir_calls_down(session, -ECONNRESET);
	if (session->messages.lost)
		weir_session_reconnect_give_up(session, -ECONNRESET);
}
