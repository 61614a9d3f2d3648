/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/exchange/setup.h"
#include "lib/conn/qp.h"

#define RETRY_COUNT 7
#define RNR_RETRY_COUNT 7 /* for ever: a peer slow to post receives is still alive */
#define LISTEN_REJECT 8 /* IB spec 12.6.7.2, invalid service id: no listener */
#define READS_MAX 4
#define SLICE_MS 100 /* between two checks whether to keep waiting */
#define HEARS 3 /* CHALLENGE, WELCOME, and the peer's offer */

static int explain_cm_event(const struct weir_exchange *x, const struct rdma_cm_event *event,
			    struct weir_error *error)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	struct wire_handshake_refusal refusal;

	if (event->event != RDMA_CM_EVENT_REJECTED)
		return weir_error_set(error, event->status == -ENODEV ? -ENODEV : -EHOSTUNREACH,
				      "%s cannot be reached: %s, %s", x->info.peer,
				      rdma_event_str(event->event), weir_strerror(event->status));
	if (conn->private_data &&
	    !wire_handshake_refusal_decode(conn->private_data, conn->private_data_len, &refusal))
		return weir_handshake_refusal_explain(&refusal, error);
	if (event->status == LISTEN_REJECT || event->status == -ECONNREFUSED)
		return weir_error_set(error, -ECONNREFUSED, "nobody listens at %s", x->info.peer);
	return weir_error_set(error, -EAGAIN, "%s refused the connection for now, reason %d",
			      x->info.peer, event->status);
}

static int wait_any_cm_event(struct weir_exchange *x, struct weir_error *error)
{
	struct pollfd fd = { .fd = x->cm->fd, .events = POLLIN };
	int left_ms, rc;

	for (;;) {
		left_ms = weir_poll_ms(x->setup->deadline_ns);
		if (poll(&fd, 1, left_ms < 0 || left_ms > SLICE_MS ? SLICE_MS : left_ms) > 0)
			return 0;
		if (!left_ms)
			return weir_error_set(error, -ETIMEDOUT, "%s did not answer in time",
					      x->info.peer);
		rc = weir_exchange_check_goes_on(&x->options, error);
		if (rc)
			return rc;
	}
}

static int wait_cm_event(struct weir_exchange *x, enum rdma_cm_event_type wanted,
			 struct weir_error *error)
{
	struct rdma_cm_event *event;
	int rc = wait_any_cm_event(x, error);

	if (rc)
		return rc;
	if (rdma_get_cm_event(x->cm, &event))
		return weir_error_set(error, -errno, "no connection manager");
	rc = event->event == wanted ? 0 : explain_cm_event(x, event, error);
	rdma_ack_cm_event(event);
	return rc;
}

static int route(struct weir_exchange *x, const struct sockaddr *address, struct weir_error *error)
{
	int left_ms = weir_poll_ms(x->setup->deadline_ns), rc;

	x->cm = rdma_create_event_channel();
	if (!x->cm)
		return weir_error_set(error, -ENODEV,
				      "no RDMA device and no connection manager here: "
				      "'weir doctor' says what to do");
	if (rdma_create_id(x->cm, &x->id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(x->id, NULL, (struct sockaddr *)address, left_ms))
		return weir_error_set(error, errno == ENODEV ? -ENODEV : -EHOSTUNREACH,
				      "no verbs device reaches %s: %s", x->info.peer,
				      weir_strerror(-errno));
	rc = wait_cm_event(x, RDMA_CM_EVENT_ADDR_RESOLVED, error);
	if (rc)
		return rc;
	if (!x->id->verbs)
		return weir_error_set(error, -ENODEV, "no verbs device reaches %s", x->info.peer);
	if (x->options.device &&
	    strcmp(x->options.device, ibv_get_device_name(x->id->verbs->device)))
		return weir_error_set(error, -ENODEV,
				      "the route to %s goes by device %s, not by %s", x->info.peer,
				      ibv_get_device_name(x->id->verbs->device), x->options.device);
	if (rdma_resolve_route(x->id, left_ms))
		return weir_error_set(error, -EHOSTUNREACH, "no route to %s: %s", x->info.peer,
				      weir_strerror(-errno));
	return wait_cm_event(x, RDMA_CM_EVENT_ROUTE_RESOLVED, error);
}

static int connect_qp(struct weir_exchange *x, struct weir_error *error)
{
	struct wire_exchange_connect connect = {
		.magic = WIRE_EXCHANGE_MAGIC,
		.version = WIRE_EXCHANGE_VERSION,
		.key_id = weir_key_id(x->options.key),
	};
	struct rdma_conn_param param = {
		.private_data = &connect,
		.private_data_len = sizeof(connect),
		.responder_resources = READS_MAX,
		.initiator_depth = READS_MAX,
		.retry_count = RETRY_COUNT,
		.rnr_retry_count = RNR_RETRY_COUNT,
	};
	struct ibv_qp_init_attr attr;
	int rc = weir_exchange_create_queues(x, &attr, error);

	if (rc)
		return rc;
	rc = weir_qp_create(x->id, x->pd, &attr, &x->qp);
	if (rc)
		return weir_error_set(error, -ENOMEM, "no queue pair for %u slots: %s",
				      x->options.slots, weir_strerror(rc));
	rc = weir_exchange_post_setup_recvs(x, HEARS, error);
	if (rc)
		return rc;
	rc = weir_qp_connect(x->id, x->qp, &param);
	if (rc)
		return weir_error_set(error, rc, "cannot connect to %s: %s", x->info.peer,
				      weir_strerror(rc));
	rc = wait_cm_event(x, RDMA_CM_EVENT_CONNECT_RESPONSE, error);
	if (rc)
		return rc;
	rc = weir_qp_establish(x->id, x->qp);
	return rc ? weir_error_set(error, -EHOSTUNREACH, "cannot connect to %s: %s", x->info.peer,
				   weir_strerror(rc)) :
		    0;
}

static int prove_key(struct weir_exchange *x, struct weir_error *error)
{
	struct weir_exchange_setup_state *g = x->setup;
	struct weir_handshake_setup setup;
	const void *message;
	size_t length, out_length;
	int rc = weir_exchange_begin_handshake(x, &setup, error);

	if (rc)
		return rc;
	weir_handshake_client(&g->handshake, &setup, g->out, &out_length);
	while (g->handshake.state != WEIR_HANDSHAKE_DONE) {
		rc = out_length ? weir_exchange_send_message(x, out_length, error) : 0;
		if (!rc)
			rc = weir_exchange_wait_message(x, &message, &length, error);
		if (rc)
			return rc;
		rc = weir_handshake_input(&g->handshake, message, length, g->out, &out_length);
		if (rc)
			return weir_error_set(error, rc, "%s: %s", x->info.peer,
					      g->handshake.error.text);
	}
	return weir_exchange_open_qp(x, error);
}

static int try_address(struct weir_exchange *x, const struct sockaddr *address,
		       struct weir_error *error)
{
	int rc = route(x, address, error);

	if (!rc)
		rc = connect_qp(x, error);
	if (!rc)
		rc = prove_key(x, error);
	if (!rc)
		rc = weir_exchange_send_offer(x, error);
	if (!rc)
		rc = weir_exchange_wait_offer(x, error);
	if (!rc)
		rc = weir_exchange_start(x, error);
	return rc ? rc : weir_exchange_send_offer(x, error);
}

static int connect_at(const struct sockaddr *address, const struct weir_exchange_options *options,
		      uint64_t deadline_ns, struct weir_exchange **out, struct weir_error *error)
{
	struct weir_exchange *x;
	int rc = weir_exchange_new(options, &x, error);

	if (rc)
		return rc;
	weir_address_format(address, x->info.peer);
	x->setup->deadline_ns = deadline_ns;
	rc = try_address(x, address, error);
	if (rc)
		weir_exchange_close(x);
	else
		*out = x;
	return rc;
}

int weir_exchange_connect(const char *peer, const struct weir_exchange_options *options,
			  struct weir_exchange **out, struct weir_error *error)
{
	struct weir_exchange_options filled;
	struct addrinfo *list, *at;
	uint64_t deadline_ns;
	int rc = weir_exchange_options_fill(&filled, options, error);

	if (!rc)
		rc = weir_address_resolve(peer, NULL, &list, error);
	if (rc)
		return rc;
	deadline_ns = weir_after_ns(weir_now_ns(), filled.timeout_ns);
	for (at = list; at; at = at->ai_next) {
		rc = connect_at(at->ai_addr, &filled, deadline_ns, out, error);
		if (!weir_address_should_try_next(rc))
			break;
	}
	freeaddrinfo(list);
	return rc;
}
