/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any thread sends, under the client's lock: at once with a credit and a buffer, otherwise by way
 * of the queue. The donor's thread receives: it copies a message out and posts the buffer again
 * before handling the message, so that an answer may carry the credit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/donor/donor.h"
#include "lib/base/error.h"
#include "lib/donor/conn.h"
#include "lib/donor/messages.h"
#include "lib/donor/client.h"

#define BUFFERS (WEIR_DONOR_CLIENT_RECVS + WEIR_DONOR_CLIENT_SENDS) /* receive buffers first */
#define BUFFERS_BYTES ((size_t)BUFFERS * WIRE_CONTROL_MESSAGE_BYTES)
#define SENDS_FREE ((1u << WEIR_DONOR_CLIENT_SENDS) - 1)

struct queued_message {
	struct weir_list link;
	struct wire_control_head head;
	char body[];
};

struct weir_call {
	struct weir_peer *client;
	uint64_t tag;
	unsigned int reconnects;
	uint16_t reply; /* the kind of the answer */
};

static char *buffer_at(const struct weir_peer *client, unsigned int buffer)
{
	return client->buffers + (size_t)buffer * WIRE_CONTROL_MESSAGE_BYTES;
}

static void buffers_free(struct weir_peer *client)
{
	if (client->mr)
		ibv_dereg_mr(client->mr);
	client->mr = NULL;
	munmap(client->buffers, BUFFERS_BYTES);
}

static int post_recv(struct weir_peer *client, struct ibv_qp *qp, unsigned int buffer)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)buffer_at(client, buffer),
		.length = WIRE_CONTROL_MESSAGE_BYTES,
		.lkey = client->mr->lkey,
	};
	struct ibv_recv_wr wr = {
		.wr_id = WEIR_DONOR_WR_MESSAGE_RECV | buffer,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ibv_recv_wr *bad;

	return -ibv_post_recv(qp, &wr, &bad);
}

static int post_recvs(struct weir_peer *client, struct ibv_qp *qp, struct weir_error *error)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < WEIR_DONOR_CLIENT_RECVS; i++)
		rc = post_recv(client, qp, i);
	return rc ? weir_error_set(error, -ENOMEM, "cannot post receive buffers: %s",
				   strerror(-rc)) :
		    0;
}

int weir_donor_messages_init(struct weir_peer *client, struct ibv_pd *pd, uint16_t credits,
			     struct weir_error *error)
{
	int rc;

	weir_list_init(&client->queue);
	client->sends = SENDS_FREE;
	rc = weir_credit_init(&client->credit, WEIR_DONOR_CLIENT_RECVS, credits);
	if (rc)
		return weir_error_set(error, rc, "%u credits are too few", credits);

	client->buffers = mmap(NULL, BUFFERS_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (client->buffers == MAP_FAILED)
		return weir_error_set(error, -ENOMEM, "the donor is out of memory");
	client->mr = ibv_reg_mr(pd, client->buffers, BUFFERS_BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!client->mr)
		rc = weir_error_set_memlock(error, "buffers for messages", BUFFERS_BYTES, -errno);
	if (!rc)
		rc = post_recvs(client, client->qp, error);
	if (rc)
		buffers_free(client);
	return rc;
}

static bool is_reply(const struct wire_control_head *head)
{
	return head->kind == WIRE_APP_REPLY || head->kind == WIRE_CONTROL_REPLY;
}

void weir_donor_messages_fini(struct weir_peer *client)
{
	struct weir_list *link;

	while (!weir_list_is_empty(&client->queue)) {
		link = client->queue.next;
		weir_list_del(link);
		free(weir_list_entry(link, struct queued_message, link));
	}
	buffers_free(client);
}

/*
 * When a promise cannot be kept, no client is better than a silent one. Flushed receives end the
 * client.
 */
static void break_channel_0(struct weir_peer *client)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	ibv_modify_qp(client->qp, &attr, IBV_QP_STATE);
}

/* Takes a credit and a buffer, both available, and posts. @client->lock is held. */
static void post_message(struct weir_peer *client, const struct wire_control_head *head,
			 const void *body)
{
	unsigned int send = __builtin_ctz(client->sends);
	char *buffer = buffer_at(client, WEIR_DONOR_CLIENT_RECVS + send);
	struct ibv_sge sge = {
		.addr = (uintptr_t)buffer,
		.length = sizeof(*head) + head->length,
		.lkey = client->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = WEIR_DONOR_WR_MESSAGE_SEND | send,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct wire_control_head h = *head;
	struct ibv_send_wr *bad;

	h.credits = weir_credit_spend(&client->credit);
	memcpy(buffer, &h, sizeof(h));
	if (h.length)
		memcpy(buffer + sizeof(h), body, h.length);
	client->sends &= ~(1u << send);
	if (is_reply(&h))
		client->nr_calls--;
	if (ibv_post_send(client->qp, &wr, &bad))
		break_channel_0(client);
}

static bool has_room(const struct weir_peer *client)
{
	return client->sends && weir_credit_has_room(&client->credit);
}

/* No message follows the CREDIT that closes the session. */
static bool is_close_due(const struct weir_peer *client)
{
	return client->is_closing && weir_list_is_empty(&client->queue) &&
	       weir_credit_may_send_bare(&client->credit);
}

/* A credit for which there is a buffer. @client->lock is held. */
static void post_credit(struct weir_peer *client)
{
	bool closes = is_close_due(client);
	const struct wire_control_head credit = {
		.kind = WIRE_CONTROL_CREDIT,
		.flags = closes ? WIRE_CONTROL_CLOSING : 0,
	};

	post_message(client, &credit, NULL);
	client->is_closing &= !closes;
}

/* Sends queued messages while there is room, and a bare credit if due. @client->lock is held. */
static void send_queued(struct weir_peer *client)
{
	struct queued_message *queued_message;

	while (client->qp && has_room(client) && !weir_list_is_empty(&client->queue)) {
		queued_message = weir_list_entry(client->queue.next, struct queued_message, link);
		weir_list_del(&queued_message->link);
		if (!is_reply(&queued_message->head))
			client->nr_queued--;
		post_message(client, &queued_message->head, queued_message->body);
		free(queued_message);
	}
	if (client->qp && client->sends &&
	    (weir_credit_is_due(&client->credit) || is_close_due(client)))
		post_credit(client);
}

/* Only one-way messages count: the loss of an answer is noticed. @client->lock is held. */
static bool has_lost_messages(const struct weir_peer *client)
{
	struct wire_control_head head;
	unsigned int send;

	for (send = 0; send < WEIR_DONOR_CLIENT_SENDS; send++) {
		memcpy(&head, buffer_at(client, WEIR_DONOR_CLIENT_RECVS + send), sizeof(head));
		if (!(client->sends & 1u << send) && head.kind == WIRE_APP_ONEWAY)
			return true;
	}
	return false;
}

static void drop_answers(struct weir_peer *client)
{
	struct weir_list *link, *next;
	struct queued_message *queued_message;

	for (link = client->queue.next; link != &client->queue; link = next) {
		next = link->next;
		queued_message = weir_list_entry(link, struct queued_message, link);
		if (!is_reply(&queued_message->head))
			continue;
		weir_list_del(link);
		free(queued_message);
	}
	client->nr_calls = 0;
	client->reconnects++;
}

int weir_donor_messages_resume(struct weir_peer *client, struct ibv_qp *qp, uint16_t credits,
			       struct weir_error *error)
{
	struct weir_credit credit;
	int rc;

	rc = weir_credit_init(&credit, WEIR_DONOR_CLIENT_RECVS, credits);
	if (rc)
		return weir_error_set(error, rc, "%u credits are too few", credits);
	pthread_mutex_lock(&client->lock);
	if (has_lost_messages(client))
		rc = weir_error_set(
			error, -ESTALE,
			"messages to this client were under way when its connection broke");
	if (!rc)
		rc = post_recvs(client, qp, error);
	if (!rc) {
		drop_answers(client);
		client->credit = credit;
		client->sends = SENDS_FREE;
	}
	pthread_mutex_unlock(&client->lock);
	return rc;
}

void weir_donor_messages_flush(struct weir_peer *client, struct ibv_qp *qp)
{
	pthread_mutex_lock(&client->lock);
	client->qp = qp;
	send_queued(client);
	pthread_mutex_unlock(&client->lock);
}

static int queue_message(struct weir_peer *client, const struct wire_control_head *head,
			 const void *body)
{
	struct queued_message *queued_message;

	if (!is_reply(head) && client->nr_queued >= WEIR_DONOR_CLIENT_QUEUE_MAX)
		return -EAGAIN;
	queued_message = malloc(sizeof(*queued_message) + head->length);
	if (!queued_message) {
		if (is_reply(head))
			break_channel_0(client);
		return -ENOMEM;
	}
	queued_message->head = *head;
	if (head->length)
		memcpy(queued_message->body, body, head->length);
	weir_list_add_tail(&client->queue, &queued_message->link);
	if (!is_reply(head))
		client->nr_queued++;
	return 0;
}

/* @client->lock is held. */
static int send_message(struct weir_peer *client, const struct wire_control_head *head,
			const void *body)
{
	if (client->is_gone || (!client->qp && is_reply(head)))
		return -ENOTCONN;
	if (!client->qp || !weir_list_is_empty(&client->queue) || !has_room(client))
		return queue_message(client, head, body);
	post_message(client, head, body);
	return 0;
}

/* @call->client->lock is held. */
static bool is_wanted(const struct weir_call *call)
{
	return !call->client->is_gone && call->reconnects == call->client->reconnects;
}

bool weir_donor_messages_is_wanted(const struct weir_call *call)
{
	bool wanted;

	pthread_mutex_lock(&call->client->lock);
	wanted = is_wanted(call);
	pthread_mutex_unlock(&call->client->lock);
	return wanted;
}

void weir_donor_messages_drop(struct weir_call *call)
{
	pthread_mutex_lock(&call->client->lock);
	weir_donor_client_put(call->client);
	free(call);
}

/* Sends the answer, unless the client has given the call up, and frees @call. */
static int answer_call(struct weir_call *call, int status, const void *body, size_t length)
{
	struct wire_control_head head = {
		.kind = call->reply,
		.status = status,
		.tag = call->tag,
		.length = length,
	};
	struct weir_peer *client = call->client;
	int rc;

	pthread_mutex_lock(&client->lock);
	rc = is_wanted(call) ? send_message(client, &head, body) : -ENOTCONN;
	weir_donor_client_put(client);
	free(call);
	return rc;
}

void weir_donor_messages_reply(struct weir_call *call, int status, const void *body, size_t length)
{
	answer_call(call, status, body, length);
}

void weir_donor_messages_reclaim(struct weir_peer *client,
				 const struct wire_control_reclaim *recall)
{
	const struct wire_control_head head = { .kind = WIRE_CONTROL_RECLAIM,
						.length = sizeof(*recall) };

	pthread_mutex_lock(&client->lock);
	send_message(client, &head, recall);
	pthread_mutex_unlock(&client->lock);
}

int weir_reply(struct weir_call *call, const void *data, size_t length)
{
	bool fits = length <= WEIR_MESSAGE_MAX;
	int rc = answer_call(call, fits ? 0 : -EMSGSIZE, data, fits ? length : 0);

	return !rc && !fits ? -EMSGSIZE : rc;
}

int weir_peer_send(struct weir_peer *client, const void *data, size_t length)
{
	const struct wire_control_head head = { .kind = WIRE_APP_ONEWAY, .length = length };
	int rc;

	if (length > WEIR_MESSAGE_MAX)
		return -EMSGSIZE;
	pthread_mutex_lock(&client->lock);
	rc = send_message(client, &head, data);
	pthread_mutex_unlock(&client->lock);
	return rc;
}

/* Counts a received call. Return: 0; -ENOMEM; -EPROTO the client has too many open calls. */
static int begin_call(struct weir_peer *client, const struct wire_control_head *head,
		      struct weir_call **out)
{
	struct weir_call *call = malloc(sizeof(*call));

	if (!call)
		return -ENOMEM;
	pthread_mutex_lock(&client->lock);
	if (client->nr_calls >= WIRE_CONTROL_CALLS_MAX) {
		pthread_mutex_unlock(&client->lock);
		free(call);
		return -EPROTO;
	}
	*call = (struct weir_call){
		.client = client,
		.tag = head->tag,
		.reconnects = client->reconnects,
		.reply = head->kind == WIRE_APP_CALL ? WIRE_APP_REPLY : WIRE_CONTROL_REPLY,
	};
	client->nr_calls++;
	client->refs++;
	pthread_mutex_unlock(&client->lock);
	*out = call;
	return 0;
}

static int call_on_message(struct weir_peer *client, struct weir_call *call, const void *body,
			   size_t length)
{
	const struct weir_donor_options *options = &client->donor->options;

	weir_counter_add(&client->donor->messages, 1);
	if (options->on_message)
		options->on_message(options->arg, client, call, body, length);
	else if (call)
		weir_reply(call, NULL, 0);
	return 0;
}

static int handle_message(struct weir_peer *client, const struct wire_control_head *head,
			  const void *body)
{
	struct weir_call *call = NULL;
	int rc;

	switch (head->kind) {
	case WIRE_APP_CALL:
	case WIRE_CONTROL_CALL:
		rc = begin_call(client, head, &call);
		if (rc)
			return rc;
		if (head->kind == WIRE_CONTROL_CALL)
			return weir_donor_control_serve(call, client, body, head->length);
		return call_on_message(client, call, body, head->length);
	case WIRE_APP_ONEWAY:
		return call_on_message(client, NULL, body, head->length);
	case WIRE_CONTROL_CREDIT:
		if (wire_control_is_closing(head))
			client->end = WEIR_PEER_CLOSED;
		return 0;
	default: /* replies: the donor calls no client; RECLAIM: only donors send it */
		return -EPROTO;
	}
}

int weir_donor_messages_received(struct weir_peer *client, unsigned int buffer, uint32_t length)
{
	_Alignas(16) char copy[WIRE_CONTROL_MESSAGE_BYTES];
	struct wire_control_head head;
	const void *body;
	int rc;

	memcpy(copy, buffer_at(client, buffer), length);
	rc = wire_control_decode(copy, length, &head, &body);
	if (rc)
		return rc;
	rc = client->qp ? post_recv(client, client->qp, buffer) :
			  0; /* the next channel has its own */
	if (rc)
		return rc;
	pthread_mutex_lock(&client->lock);
	rc = weir_credit_received(&client->credit, head.credits);
	pthread_mutex_unlock(&client->lock);
	if (!rc)
		rc = handle_message(client, &head, body);
	pthread_mutex_lock(&client->lock);
	send_queued(client);
	pthread_mutex_unlock(&client->lock);
	return rc;
}

void weir_donor_messages_close(struct weir_peer *client)
{
	pthread_mutex_lock(&client->lock);
	client->is_closing = true;
	send_queued(client);
	pthread_mutex_unlock(&client->lock);
}

bool weir_donor_messages_are_sent(struct weir_peer *client)
{
	bool are_sent;

	pthread_mutex_lock(&client->lock);
	are_sent = !client->qp || (!client->is_closing && client->sends == SENDS_FREE);
	pthread_mutex_unlock(&client->lock);
	return are_sent;
}

void weir_donor_messages_sent(struct weir_peer *client, unsigned int buffer)
{
	pthread_mutex_lock(&client->lock);
	client->sends |= 1u << buffer;
	send_queued(client);
	pthread_mutex_unlock(&client->lock);
}
