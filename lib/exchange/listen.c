/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Until the key is proven the QP admits no RDMA: as rdma_accept() would open it, if only for an
 * instant, it is made and moved by hand.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/exchange/exchange.h"

#define BACKLOG 64
#define READS_MAX 4 /* looks of a peer that are answered at once: it has one under way */

struct weir_exchange_listener {
	struct weir_exchange_options options;
	struct rdma_event_channel *cm;
	struct rdma_cm_id *id;
	char address[WEIR_ADDRESS_MAX];
};

static int bind_to(struct weir_exchange_listener *listener, const char *name,
		   struct weir_error *error)
{
	struct addrinfo *list;
	int rc = weir_address_resolve(name, "0.0.0.0", &list, error);

	if (rc)
		return rc;
	if (!listener->options.key && !weir_address_is_loopback(list->ai_addr))
		rc = weir_fail(error, -EPERM, "without a key an exchange listens on loopback only, "
			       "not on %s: give it a key", name);
	else if (rdma_create_id(listener->cm, &listener->id, NULL, RDMA_PS_TCP) ||
		 rdma_bind_addr(listener->id, list->ai_addr) ||
		 rdma_listen(listener->id, BACKLOG))
		rc = weir_address_bind_failed(name, -errno, error);
	freeaddrinfo(list);
	return rc;
}

/* Rather now than when somebody has come. */
static int try_gpu(const struct weir_exchange_options *options, struct weir_error *error)
{
	struct weir_cuda *cuda = NULL;
	int rc = options->memory == WEIR_EXCHANGE_CUDA ? weir_cuda_open(options->gpu, &cuda, error) : 0;

	weir_cuda_close(cuda);
	return rc;
}

int weir_exchange_listen(const char *address, const struct weir_exchange_options *options,
			 struct weir_exchange_listener **out, struct weir_error *error)
{
	struct weir_exchange_listener *listener = calloc(1, sizeof(*listener));
	int rc;

	if (!listener)
		return weir_fail(error, -ENOMEM, "out of memory");
	rc = weir_exchange_options_fill(&listener->options, options, error);
	if (!rc)
		rc = try_gpu(&listener->options, error);
	if (!rc) {
		listener->cm = rdma_create_event_channel();
		if (!listener->cm)
			rc = weir_fail(error, -ENODEV, "no RDMA device and no connection manager "
				       "here: 'weir doctor' says what to do");
	}
	if (!rc)
		rc = bind_to(listener, address ? address : "127.0.0.1", error);
	if (rc) {
		weir_exchange_unlisten(listener);
		return rc;
	}
	fcntl(listener->cm->fd, F_SETFL, fcntl(listener->cm->fd, F_GETFL) | O_NONBLOCK);
	weir_address_print(rdma_get_local_addr(listener->id), listener->address);
	*out = listener;
	return 0;
}

const char *weir_exchange_address(const struct weir_exchange_listener *listener)
{
	return listener->address;
}

void weir_exchange_unlisten(struct weir_exchange_listener *listener)
{
	if (!listener)
		return;
	if (listener->id)
		rdma_destroy_id(listener->id);
	if (listener->cm)
		rdma_destroy_event_channel(listener->cm);
	free(listener);
}

static int check(const struct weir_exchange_listener *listener, const struct rdma_cm_id *id,
		 const struct rdma_conn_param *param, struct weir_error *error)
{
	const char *device = listener->options.device;
	struct wire_exchange_connect connect;
	int rc = wire_exchange_connect_decode(param->private_data, param->private_data_len, &connect);

	if (rc == -EPROTONOSUPPORT)
		return weir_fail(error, rc, "this end speaks version %d of the protocol",
				 WIRE_EXCHANGE_VERSION);
	if (rc)
		return weir_fail(error, rc, "an exchange listens here, and that is none");
	if (connect.key_id != weir_key_id(listener->options.key))
		return weir_fail(error, -EKEYREJECTED, "the keys differ");
	if (device && strcmp(device, ibv_get_device_name(id->verbs->device)))
		return weir_fail(error, -EHOSTUNREACH, "exchanges go through device %s only", device);
	return 0;
}

static int move(struct weir_exchange *x, enum ibv_qp_state state, uint8_t reads)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(x->id, &attr, &mask))
		return -errno;
	attr.qp_access_flags = 0;
	if (state == IBV_QPS_RTR)
		attr.max_dest_rd_atomic = reads;
	if (state == IBV_QPS_RTS)
		attr.max_rd_atomic = reads;
	return -ibv_modify_qp(x->id->qp, &attr, mask);
}

/* The QP is not the connection manager's while it accepts, or it would move it again. */
static int let_in(struct weir_exchange *x, uint8_t reads)
{
	struct rdma_conn_param param = {
		.responder_resources = reads,
		.initiator_depth = reads,
		.rnr_retry_count = 7,
		.qp_num = x->id->qp->qp_num,
	};
	struct ibv_qp *qp = x->id->qp;
	int rc = move(x, IBV_QPS_INIT, reads);

	if (!rc)
		rc = weir_exchange_expect(x, WIRE_HANDSHAKE_RECVS + WIRE_OFFERS_IN, NULL);
	if (!rc)
		rc = move(x, IBV_QPS_RTR, reads);
	if (!rc)
		rc = move(x, IBV_QPS_RTS, reads);
	if (rc)
		return rc;
	x->id->qp = NULL;
	rc = rdma_accept(x->id, &param) ? -errno : 0;
	x->id->qp = qp;
	return rc;
}

static int open_queue(struct weir_exchange *x)
{
	struct ibv_qp_attr attr = {
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	};

	return -ibv_modify_qp(x->id->qp, &attr, IBV_QP_ACCESS_FLAGS);
}

/* What is wrong is said to the peer, too. */
static void refuse(struct weir_exchange *x, int status, const struct weir_error *error)
{
	struct weir_exchange_greeting *g = x->greeting;
	size_t length;

	weir_handshake_refuse(&g->handshake, status, error->text, g->out, &length);
	if (!weir_exchange_say(x, length, NULL)) {
		struct ibv_wc wc;

		while (weir_now_ns() < g->deadline_ns &&
		       (!ibv_poll_cq(x->cq, 1, &wc) || wc.opcode != IBV_WC_SEND))
			;
	}
}

/* HELLO and PROOF. Return: 0; or what is wrong, which the peer has been told. */
static int prove(struct weir_exchange *x, struct weir_error *error)
{
	const struct wire_welcome welcome = { .session_id = 1, .message_max = WIRE_HANDSHAKE_MAX };
	struct weir_exchange_greeting *g = x->greeting;
	struct weir_handshake_setup setup;
	size_t length, out_length;
	const void *message;
	int rc = weir_exchange_setup(x, &setup, error);

	if (!rc)
		weir_handshake_donor(&g->handshake, &setup);
	while (!rc && g->handshake.state != WEIR_HANDSHAKE_PROVEN) {
		rc = weir_exchange_hear(x, &message, &length, error);
		if (rc)
			return rc;
		rc = weir_handshake_input(&g->handshake, message, length, g->out, &out_length);
		if (out_length && weir_exchange_say(x, out_length, NULL))
			rc = -EPROTO;
		if (rc)
			return weir_fail(error, rc, "%s: %s", x->info.peer, g->handshake.error.text);
	}
	if (!rc)
		rc = open_queue(x);
	if (rc)
		return rc;
	weir_handshake_welcome(&g->handshake, &welcome, g->out, &out_length);
	return weir_exchange_say(x, out_length, error);
}

static int agree(struct weir_exchange *x, struct weir_error *error)
{
	struct weir_error why = { "" };
	int rc = weir_exchange_consider(x, &why);

	if (!rc)
		rc = weir_exchange_begin(x, &why);
	if (rc) {
		refuse(x, rc, &why);
		return weir_fail(error, rc, "%s", why.text);
	}
	rc = weir_exchange_offer(x, error);
	return rc ? rc : weir_exchange_consider(x, error);
}

static int meet(struct weir_exchange *x, const struct rdma_conn_param *param,
		struct weir_error *error)
{
	uint8_t reads = param->responder_resources < READS_MAX ? param->responder_resources :
								  READS_MAX;
	struct ibv_qp_init_attr attr;
	int rc = weir_exchange_prepare(x, &attr, error);

	if (rc)
		return rc;
	x->id->qp = ibv_create_qp(x->pd, &attr);
	if (!x->id->qp)
		return weir_fail(error, -ENOMEM, "no queue pair for %u slots: %s",
				 x->options.slots, weir_strerror(-errno));
	x->greeting->deadline_ns = weir_now_ns() + WEIR_HANDSHAKE_NS;
	rc = let_in(x, reads ? reads : 1);
	if (rc)
		return weir_fail(error, rc, "cannot accept: %s", weir_strerror(rc));
	rc = prove(x, error);
	return rc ? rc : agree(x, error);
}

/* Return: 0; or why there is no exchange with this one. */
static int take_request(struct weir_exchange_listener *listener, struct rdma_cm_id *id,
			const struct rdma_conn_param *param, struct weir_exchange **out,
			struct weir_error *error)
{
	struct wire_refusal refusal;
	struct weir_exchange *x;
	int rc = check(listener, id, param, error);

	if (!rc)
		rc = weir_exchange_new(&listener->options, &x, error);
	if (rc) {
		weir_refusal_fill(&refusal, rc, error->text);
		rdma_reject(id, &refusal, sizeof(refusal));
		rdma_destroy_id(id);
		return rc;
	}
	x->id = id;
	x->cm = rdma_create_event_channel();
	if (!x->cm || rdma_migrate_id(id, x->cm))
		rc = weir_fail(error, -ENOMEM, "no connection manager: %s", weir_strerror(-errno));
	if (!rc)
		rc = meet(x, param, error);
	if (rc) {
		weir_exchange_close(x);
		return rc;
	}
	*out = x;
	return 0;
}

int weir_exchange_accept(struct weir_exchange_listener *listener, uint64_t timeout_ns,
			 struct weir_exchange **x, struct weir_error *error)
{
	uint64_t deadline_ns = weir_after_ns(weir_now_ns(), timeout_ns);
	struct pollfd fd = { .fd = listener->cm->fd, .events = POLLIN };
	struct weir_error why = { "" };
	struct rdma_cm_event *event;
	struct rdma_cm_event copy;
	uint8_t data[256];

	for (;;) {
		if (rdma_get_cm_event(listener->cm, &event)) {
			if (weir_now_ns() >= deadline_ns)
				return weir_fail(error, timeout_ns ? -ETIMEDOUT : -EAGAIN,
						 "nobody came%s%s", why.text[0] ? ", and " : "",
						 why.text);
			poll(&fd, 1, weir_poll_ms(deadline_ns));
			continue;
		}
		copy = *event;
		if (copy.param.conn.private_data)
			copy.param.conn.private_data =
				memcpy(data, copy.param.conn.private_data,
				       copy.param.conn.private_data_len);
		rdma_ack_cm_event(event);
		if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST &&
		    !take_request(listener, copy.id, &copy.param.conn, x, &why))
			return 0;
	}
}
