/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who sends: anybody, under the peer's lock, at once if there is a credit and a buffer; otherwise
 * it waits its turn in the queue. Who receives: the donor's thread, which copies a message out,
 * posts its buffer again and only then looks at it, so that an answer may carry the credit.
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

#define BUFFERS (WEIR_PEER_RECVS + WEIR_PEER_SENDS) /* those to receive come first */
#define BUFFERS_BYTES ((size_t)BUFFERS * WIRE_MESSAGE_BYTES)

/* A message that waits for room. */
struct parcel {
	struct weir_list link;
	struct wire_head head;
	char body[];
};

struct weir_call {
	struct weir_peer *peer;
	uint64_t tag;
	unsigned int epoch;
};

static char *buffer_at(const struct weir_peer *peer, unsigned int buffer)
{
	return peer->buffers + (size_t)buffer * WIRE_MESSAGE_BYTES;
}

static void buffers_free(struct weir_peer *peer)
{
	if (peer->mr)
		ibv_dereg_mr(peer->mr);
	peer->mr = NULL;
	munmap(peer->buffers, BUFFERS_BYTES);
}

static int recv_post(struct weir_peer *peer, struct ibv_qp *qp, unsigned int buffer)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)buffer_at(peer, buffer),
		.length = WIRE_MESSAGE_BYTES,
		.lkey = peer->mr->lkey,
	};
	struct ibv_recv_wr wr = {
		.wr_id = WEIR_GATE_MESSAGE_RECV | buffer,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ibv_recv_wr *bad;

	return -ibv_post_recv(qp, &wr, &bad);
}

static int recvs_post(struct weir_peer *peer, struct ibv_qp *qp, struct weir_error *error)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < WEIR_PEER_RECVS; i++)
		ret = recv_post(peer, qp, i);
	return ret ? weir_fail(error, -ENOMEM, "cannot post receive buffers: %s", strerror(-ret)) :
		     0;
}

int weir_mail_init(struct weir_peer *peer, struct ibv_pd *pd, uint16_t credits,
		   struct weir_error *error)
{
	int ret;

	weir_list_init(&peer->queue);
	peer->sends = (1u << WEIR_PEER_SENDS) - 1;
	ret = wire_credit_init(&peer->credit, WEIR_PEER_RECVS, credits);
	if (ret)
		return weir_fail(error, ret, "%u credits are too few", credits);

	peer->buffers = mmap(NULL, BUFFERS_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (peer->buffers == MAP_FAILED)
		return weir_fail(error, -ENOMEM, "the donor is out of memory");
	peer->mr = ibv_reg_mr(pd, peer->buffers, BUFFERS_BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!peer->mr)
		ret = weir_fail_memlock(error, "buffers for messages", BUFFERS_BYTES, -errno);
	if (!ret)
		ret = recvs_post(peer, peer->qp, error);
	if (ret)
		buffers_free(peer);
	return ret;
}

static bool is_reply(const struct wire_head *head)
{
	return head->kind == WIRE_REPLY || head->kind == WIRE_CONTROL_REPLY;
}

void weir_mail_fini(struct weir_peer *peer)
{
	struct weir_list *link;

	while (!weir_list_is_empty(&peer->queue)) {
		link = peer->queue.next;
		weir_list_del(link);
		free(weir_list_entry(link, struct parcel, link));
	}
	buffers_free(peer);
}

/* A promise cannot be kept: better no client than a silent one. Its flushed receives end it. */
static void peer_break(struct weir_peer *peer)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	ibv_modify_qp(peer->qp, &attr, IBV_QP_STATE);
}

/* Takes a credit and a buffer, both of which are there, and posts. @peer->lock is held. */
static void message_post(struct weir_peer *peer, const struct wire_head *head, const void *body)
{
	unsigned int send = __builtin_ctz(peer->sends);
	char *buffer = buffer_at(peer, WEIR_PEER_RECVS + send);
	struct ibv_sge sge = {
		.addr = (uintptr_t)buffer,
		.length = sizeof(*head) + head->length,
		.lkey = peer->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = WEIR_GATE_MESSAGE_SEND | send,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct wire_head h = *head;
	struct ibv_send_wr *bad;

	h.credits = wire_credit_spend(&peer->credit);
	memcpy(buffer, &h, sizeof(h));
	if (h.length)
		memcpy(buffer + sizeof(h), body, h.length);
	peer->sends &= ~(1u << send);
	if (is_reply(&h))
		peer->nr_calls--;
	if (ibv_post_send(peer->qp, &wr, &bad))
		peer_break(peer);
}

static bool has_room(const struct weir_peer *peer)
{
	return peer->sends && wire_credit_has_room(&peer->credit);
}

/* Sends what waits, while there is room, and a bare credit if one is due. @peer->lock is held. */
static void queue_pump(struct weir_peer *peer)
{
	static const struct wire_head credit = { .kind = WIRE_CREDIT };
	struct parcel *parcel;

	while (peer->qp && has_room(peer) && !weir_list_is_empty(&peer->queue)) {
		parcel = weir_list_entry(peer->queue.next, struct parcel, link);
		weir_list_del(&parcel->link);
		if (!is_reply(&parcel->head))
			peer->nr_queued--;
		message_post(peer, &parcel->head, parcel->body);
		free(parcel);
	}
	if (peer->qp && peer->sends && wire_credit_is_due(&peer->credit))
		message_post(peer, &credit, NULL);
}

/* @peer->lock is held. A message of the application has no answer that would be missed. */
static bool has_lost_messages(const struct weir_peer *peer)
{
	struct wire_head head;
	unsigned int send;

	for (send = 0; send < WEIR_PEER_SENDS; send++) {
		memcpy(&head, buffer_at(peer, WEIR_PEER_RECVS + send), sizeof(head));
		if (!(peer->sends & 1u << send) && head.kind == WIRE_ONEWAY)
			return true;
	}
	return false;
}

static void drop_answers(struct weir_peer *peer)
{
	struct weir_list *link, *next;
	struct parcel *parcel;

	for (link = peer->queue.next; link != &peer->queue; link = next) {
		next = link->next;
		parcel = weir_list_entry(link, struct parcel, link);
		if (!is_reply(&parcel->head))
			continue;
		weir_list_del(link);
		free(parcel);
	}
	peer->nr_calls = 0;
	peer->epoch++;
}

int weir_mail_resume(struct weir_peer *peer, struct ibv_qp *qp, uint16_t credits,
		     struct weir_error *error)
{
	struct wire_credit credit;
	int ret;

	ret = wire_credit_init(&credit, WEIR_PEER_RECVS, credits);
	if (ret)
		return weir_fail(error, ret, "%u credits are too few", credits);
	pthread_mutex_lock(&peer->lock);
	if (has_lost_messages(peer))
		ret = weir_fail(error, -ESTALE,
				"messages to this client were under way when its connection broke");
	if (!ret)
		ret = recvs_post(peer, qp, error);
	if (!ret) {
		drop_answers(peer);
		peer->credit = credit;
		peer->sends = (1u << WEIR_PEER_SENDS) - 1;
	}
	pthread_mutex_unlock(&peer->lock);
	return ret;
}

void weir_mail_go_on(struct weir_peer *peer, struct ibv_qp *qp)
{
	pthread_mutex_lock(&peer->lock);
	peer->qp = qp;
	queue_pump(peer);
	pthread_mutex_unlock(&peer->lock);
}

static int queue_add(struct weir_peer *peer, const struct wire_head *head, const void *body)
{
	struct parcel *parcel;

	if (!is_reply(head) && peer->nr_queued >= WEIR_PEER_QUEUE_MAX)
		return -EAGAIN;
	parcel = malloc(sizeof(*parcel) + head->length);
	if (!parcel) {
		if (is_reply(head))
			peer_break(peer);
		return -ENOMEM;
	}
	parcel->head = *head;
	if (head->length)
		memcpy(parcel->body, body, head->length);
	weir_list_add_tail(&peer->queue, &parcel->link);
	if (!is_reply(head))
		peer->nr_queued++;
	return 0;
}

/* @peer->lock is held. */
static int message_send(struct weir_peer *peer, const struct wire_head *head, const void *body)
{
	if (peer->is_gone || (!peer->qp && is_reply(head)))
		return -ENOTCONN;
	if (!peer->qp || !weir_list_is_empty(&peer->queue) || !has_room(peer))
		return queue_add(peer, head, body);
	message_post(peer, head, body);
	return 0;
}

void weir_mail_answer(struct weir_peer *peer, uint64_t tag, int status, const void *body,
		      size_t length)
{
	const struct wire_head head = {
		.kind = WIRE_CONTROL_REPLY,
		.status = status,
		.tag = tag,
		.length = length,
	};

	pthread_mutex_lock(&peer->lock);
	message_send(peer, &head, body);
	pthread_mutex_unlock(&peer->lock);
}

void weir_mail_recall(struct weir_peer *peer, const struct wire_recall *recall)
{
	const struct wire_head head = { .kind = WIRE_RECALL, .length = sizeof(*recall) };

	pthread_mutex_lock(&peer->lock);
	message_send(peer, &head, recall);
	pthread_mutex_unlock(&peer->lock);
}

int weir_reply(struct weir_call *call, const void *data, size_t length)
{
	bool fits = length <= WEIR_MESSAGE_MAX;
	struct weir_peer *peer = call->peer;
	struct wire_head head = {
		.kind = WIRE_REPLY,
		.status = fits ? 0 : -EMSGSIZE,
		.tag = call->tag,
		.length = fits ? length : 0,
	};
	unsigned int epoch = call->epoch;
	int ret;

	free(call);
	pthread_mutex_lock(&peer->lock);
	ret = epoch == peer->epoch ? message_send(peer, &head, data) : -ENOTCONN;
	weir_peer_put(peer);
	return !ret && !fits ? -EMSGSIZE : ret;
}

int weir_peer_send(struct weir_peer *peer, const void *data, size_t length)
{
	const struct wire_head head = { .kind = WIRE_ONEWAY, .length = length };
	int ret;

	if (length > WEIR_MESSAGE_MAX)
		return -EMSGSIZE;
	pthread_mutex_lock(&peer->lock);
	ret = message_send(peer, &head, data);
	pthread_mutex_unlock(&peer->lock);
	return ret;
}

/* Counts a call in. Return: 0; -EPROTO the client has more of them open than it may. */
static int call_begin(struct weir_peer *peer, const struct wire_head *head, struct weir_call **out)
{
	struct weir_call *call = NULL;

	if (head->kind == WIRE_CALL) {
		call = malloc(sizeof(*call));
		if (!call)
			return -ENOMEM;
		*call = (struct weir_call){ .peer = peer, .tag = head->tag, .epoch = peer->epoch };
	}
	pthread_mutex_lock(&peer->lock);
	if (peer->nr_calls >= WIRE_CALLS_MAX) {
		pthread_mutex_unlock(&peer->lock);
		free(call);
		return -EPROTO;
	}
	peer->nr_calls++;
	peer->refs += call != NULL;
	pthread_mutex_unlock(&peer->lock);
	*out = call;
	return 0;
}

static int message_deliver(struct weir_peer *peer, struct weir_call *call, const void *body,
			   size_t length)
{
	const struct weir_donor_options *options = &peer->donor->options;

	peer->donor->messages++;
	if (options->on_message)
		options->on_message(options->arg, peer, call, body, length);
	else if (call)
		weir_reply(call, NULL, 0);
	return 0;
}

/* A message, checked and copied out of its buffer. */
static int message_serve(struct weir_peer *peer, const struct wire_head *head, const void *body)
{
	struct weir_call *call = NULL;
	int ret;

	switch (head->kind) {
	case WIRE_CALL:
	case WIRE_CONTROL_CALL:
		ret = call_begin(peer, head, &call);
		if (ret)
			return ret;
		if (!call)
			return weir_clerk_serve(peer, head->tag, body, head->length);
		return message_deliver(peer, call, body, head->length);
	case WIRE_ONEWAY:
		return message_deliver(peer, NULL, body, head->length);
	case WIRE_CREDIT:
		return 0;
	default: /* replies: nobody here calls a client; and who is asked for memory does not ask */
		return -EPROTO;
	}
}

int weir_mail_received(struct weir_peer *peer, unsigned int buffer, uint32_t length)
{
	_Alignas(16) char copy[WIRE_MESSAGE_BYTES];
	struct wire_head head;
	const void *body;
	int ret;

	memcpy(copy, buffer_at(peer, buffer), length);
	ret = wire_control_decode(copy, length, &head, &body);
	if (ret)
		return ret;
	ret = peer->qp ? recv_post(peer, peer->qp, buffer) : 0; /* the next channel has its own */
	if (ret)
		return ret;
	pthread_mutex_lock(&peer->lock);
	ret = wire_credit_received(&peer->credit, head.credits);
	pthread_mutex_unlock(&peer->lock);
	if (!ret)
		ret = message_serve(peer, &head, body);
	pthread_mutex_lock(&peer->lock);
	queue_pump(peer);
	pthread_mutex_unlock(&peer->lock);
	return ret;
}

void weir_mail_sent(struct weir_peer *peer, unsigned int buffer)
{
	pthread_mutex_lock(&peer->lock);
	peer->sends |= 1u << buffer;
	queue_pump(peer);
	pthread_mutex_unlock(&peer->lock);
}
