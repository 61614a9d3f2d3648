/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* From another mux's REQ to a lane that waits for its HELLO, or a REJ; and the end of lanes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/mux/local/local.h"

/* Whether a REQ is worth a QP; @node: of a further lane, or NULL. */
static int request_check(struct weir_hub *hub, const struct rdma_cm_id *id,
			 const struct wire_connect *connect, struct weir_node **node,
			 struct weir_error *error)
{
	if (hub->is_stopping)
		return weir_fail(error, -EAGAIN, "this mux is being closed");
	if (id->verbs != hub->device)
		return weir_fail(error, -EHOSTUNREACH, "this mux uses device %s only",
				 ibv_get_device_name(hub->device->device));
	if (connect->key_id != weir_key_id(hub->options.key))
		return weir_fail(error, -EKEYREJECTED, "the mux has another key");
	if (connect->channel >= hub->options.nr_classes)
		return weir_fail(error, -EPROTO, "the mux has %u classes: give both ends as many",
				 hub->options.nr_classes);
	if (hub->nr_unproven == WEIR_UNPROVEN_LANES_MAX)
		return weir_fail(error, -EAGAIN, "%u others have not proven the key yet: try again",
				 hub->nr_unproven);
	*node = connect->session_id ? weir_node_of_session(hub, connect->session_id, false) : NULL;
	if (connect->session_id && !*node && weir_hub_expects_welcome(hub))
		return weir_fail(error, -EAGAIN, "this node may be about to be known: try again");
	if (connect->session_id && (!*node || (*node)->lanes[connect->channel]))
		return weir_fail(error, -ESTALE, "the mux does not know this node");
	return 0;
}

static uint64_t session_id_new(void)
{
	uint8_t nonce[WIRE_NONCE];
	uint64_t id;

	weir_nonce(nonce);
	memcpy(&id, nonce, sizeof(id));
	return id | 1; /* 0 is none */
}

static uint8_t least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static int lane_accept(struct weir_lane *lane, const struct rdma_conn_param *asked)
{
	const uint8_t reads_max = lane->node->hub->reads_max;
	struct rdma_conn_param param = {
		.rnr_retry_count = 7,
		.responder_resources = least(asked->responder_resources, reads_max),
		.initiator_depth = least(asked->initiator_depth, reads_max),
	};
	int rc;

	if (rdma_accept(lane->id, &param))
		rc = -errno;
	else
		rc = weir_lane_hello(lane, false);
	return rc;
}

static int admit(struct weir_hub *hub, struct rdma_cm_id *id, const struct rdma_conn_param *param,
		 const struct wire_connect *connect, struct weir_node *node)
{
	char name[WEIR_ADDRESS_MAX];
	struct weir_lane *lane;
	int rc = 0;

	if (!node) {
		weir_address_print(rdma_get_peer_addr(id), name);
		rc = weir_node_new(hub, name, &node);
		if (rc)
			return rc;
		node->session_id = session_id_new();
	}
	rc = weir_lane_new(node, (uint8_t)connect->channel, id, &lane);
	if (rc) {
		if (!node->has_worker)
			weir_node_fail(node, rc);
		return rc;
	}
	lane->is_counted = true;
	hub->nr_unproven++;
	rc = lane_accept(lane, param);
	if (rc)
		weir_lane_fail(lane, rc); /* which destroys the id, too: nobody is to reject it */
	return 0;
}

static void request_received(struct weir_hub *hub, struct rdma_cm_id *id,
			     const struct rdma_conn_param *param)
{
	struct wire_refusal refusal;
	struct wire_connect connect;
	struct weir_error error;
	struct weir_node *node = NULL;
	int rc = wire_connect_decode(param->private_data, param->private_data_len, &connect);

	if (rc)
		weir_fail(&error, rc, "this mux speaks version %d of weir's protocol",
			  WIRE_VERSION);
	else
		rc = request_check(hub, id, &connect, &node, &error);
	if (!rc) {
		rc = admit(hub, id, param, &connect, node);
		weir_fail(&error, rc, "no queue pair: %s", weir_strerror(rc));
	}
	if (!rc)
		return;
	weir_refusal_fill(&refusal, rc, error.text);
	rdma_reject(id, &refusal, sizeof(refusal));
	rdma_destroy_id(id);
}

void weir_hub_cm_events(struct weir_hub *hub, struct rdma_event_channel *cm)
{
	struct rdma_cm_event *event;
	struct rdma_conn_param param;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	char data[256]; /* private data: its length is one byte */

	while (!rdma_get_cm_event(cm, &event)) {
		type = event->event;
		id = event->id;
		param = event->param.conn;
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST && param.private_data) {
			memcpy(data, param.private_data, param.private_data_len);
			param.private_data = data;
		}
		/* An id cannot be destroyed before its events are acknowledged. */
		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
			request_received(hub, id, &param);
		else if (type != RDMA_CM_EVENT_ESTABLISHED && id != hub->listener && id->context)
			weir_lane_fail(id->context, -ECONNRESET);
	}
}
