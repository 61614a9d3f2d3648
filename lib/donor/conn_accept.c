/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From a REQ to a connection that waits for its HELLO, or a REJ.
 *
 * A QP cannot change its PD, so the tenant has to be known before the proof: the REQ names it by
 * key id. Until the proof the QP has no access flags; and as rdma_accept() gives a QP
 * of the connection manager's all of them, if only for an instant, this one is made and moved by
 * hand: rdma_init_qp_attr() tells how, and the flags are taken out.
 */
#include <errno.h>
#include <stdio.h>
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

static int recv_post(struct weir_gate *gate, unsigned int buffer)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)gate->buffers[buffer],
		.length = WIRE_HANDSHAKE_MAX,
		.lkey = gate->mr->lkey,
	};
	struct ibv_recv_wr wr = {
		.wr_id = WEIR_GATE_HANDSHAKE_RECV | buffer,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ibv_recv_wr *bad;

	return -ibv_post_recv(gate->id->qp, &wr, &bad);
}

static int tenant_find(const struct weir_donor *donor, uint64_t key_id, unsigned int *tenant)
{
	unsigned int i;

	for (i = 0; i < donor->nr_tenants; i++)
		if (donor->tenants[i].key_id == key_id) {
			*tenant = i;
			return 0;
		}
	return -EKEYREJECTED;
}

static const char *key_complaint(const struct weir_donor *donor, uint64_t key_id)
{
	if (!donor->options.nr_keys)
		return "the donor has no key, and the client gave one";
	if (key_id == weir_key_id(NULL))
		return "the donor wants a key, and the client gave none";
	return "the donor does not know this key";
}

/* Whether a REQ is worth a QP. */
static int request_check(const struct weir_donor *donor, const struct rdma_cm_id *id,
			 const struct rdma_conn_param *param, struct wire_connect *connect,
			 unsigned int *tenant, struct weir_error *error)
{
	int ret;

	ret = wire_connect_decode(param->private_data, param->private_data_len, connect);
	if (ret == -EPROTONOSUPPORT)
		return weir_fail(error, ret, "this donor speaks version %d of the protocol",
				 WIRE_VERSION);
	if (ret)
		return weir_fail(error, ret, "that is not weir's protocol");
	if (id->verbs != donor->device)
		return weir_fail(error, -EHOSTUNREACH, "this donor lends through device %s only",
				 ibv_get_device_name(donor->device->device));
	if (donor->nr_unproven >= WEIR_UNPROVEN_MAX)
		return weir_fail(error, -EAGAIN,
				 "%u others have not proven their keys yet: try again",
				 donor->nr_unproven);
	if (tenant_find(donor, connect->key_id, tenant))
		return weir_fail(error, -EKEYREJECTED, "%s", key_complaint(donor, connect->key_id));
	if (!connect->session_id && donor->nr_peers >= donor->options.clients_max)
		return weir_fail(error, -EDQUOT, "the donor has %u clients already: its limit",
				 donor->options.clients_max);
	return 0;
}

static void reject(struct weir_donor *donor, struct rdma_cm_id *id, const char *name, int status,
		   const char *text)
{
	struct wire_refusal refusal;

	donor->rejects++;
	weir_donor_log(donor, WEIR_LOG_WARNING, "rejected client=%s: %s", name, text);
	weir_refusal_fill(&refusal, status, text);
	rdma_reject(id, &refusal, sizeof(refusal));
	rdma_destroy_id(id);
}

static int verbs_create(struct weir_gate *gate, uint16_t channel)
{
	struct ibv_pd *pd = gate->donor->tenants[gate->tenant].pd;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = WIRE_HANDSHAKE_RECVS,
			 .max_recv_wr = WIRE_HANDSHAKE_RECVS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	if (!channel) {
		init.cap.max_send_wr += WEIR_PEER_SENDS + WEIR_ASK_SENDS;
		init.cap.max_recv_wr += WEIR_PEER_RECVS;
	}
	if (channel == WIRE_CHANNEL_UNLOAD) {
		init.cap.max_send_wr += WEIR_RETURNS_MAX;
		init.cap.max_recv_wr += WIRE_SLOTS;
	}
	gate->mr = ibv_reg_mr(pd, gate->buffers, sizeof(gate->buffers), IBV_ACCESS_LOCAL_WRITE);
	if (!gate->mr)
		return -errno;
	gate->cq = ibv_create_cq(gate->donor->device, init.cap.max_send_wr + init.cap.max_recv_wr,
				 gate, gate->donor->completions, 0);
	if (!gate->cq)
		return -errno;
	init.send_cq = gate->cq;
	init.recv_cq = gate->cq;
	gate->id->qp = ibv_create_qp(pd, &init);
	return gate->id->qp ? 0 : -errno;
}

static int qp_move(struct weir_gate *gate, enum ibv_qp_state state,
		   const struct rdma_conn_param *param)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(gate->id, &attr, &mask))
		return -errno;
	attr.qp_access_flags = 0;
	if (state == IBV_QPS_RTR)
		attr.max_dest_rd_atomic = param->responder_resources;
	if (state == IBV_QPS_RTS)
		attr.max_rd_atomic = param->initiator_depth;
	return -ibv_modify_qp(gate->id->qp, &attr, mask);
}

/* Makes the QP ready to receive the HELLO, and says so to the client. */
static int accept_request(struct weir_gate *gate, const struct rdma_conn_param *asked)
{
	uint8_t reads_max = gate->donor->reads_max;
	struct rdma_conn_param param = {
		.responder_resources = asked->responder_resources < reads_max
					       ? asked->responder_resources
					       : reads_max,
		.rnr_retry_count = 7,
		.qp_num = gate->id->qp->qp_num,
	};
	struct ibv_qp *qp = gate->id->qp;
	unsigned int i;
	int ret;

	ret = qp_move(gate, IBV_QPS_INIT, &param);
	for (i = 0; !ret && i < WIRE_HANDSHAKE_RECVS; i++)
		ret = recv_post(gate, i);
	if (!ret)
		ret = qp_move(gate, IBV_QPS_RTR, &param);
	if (!ret)
		ret = qp_move(gate, IBV_QPS_RTS, &param);
	if (!ret)
		ret = -ibv_req_notify_cq(gate->cq, 0);
	if (ret)
		return ret;
	/* Not the connection manager's while it accepts, or it would move it again. */
	gate->id->qp = NULL;
	ret = rdma_accept(gate->id, &param) ? -errno : 0;
	gate->id->qp = qp;
	return ret;
}

static int handshake_begin(struct weir_gate *gate, const struct wire_connect *connect)
{
	struct weir_handshake_setup setup = {
		.key = gate->donor->tenants[gate->tenant].key,
		.session_id = connect->session_id,
		.channel = connect->channel,
		.credits = WEIR_PEER_RECVS,
	};
	int ret;

	ret = weir_endpoint_query(gate->id, &setup.local, &setup.remote);
	if (ret)
		return ret;
	weir_nonce(setup.nonce);
	weir_handshake_donor(&gate->handshake, &setup);
	return 0;
}

/* A donor has other things to do than to wait for its clients. */
static const struct weir_poll_config poll_config = {
	.mode = WEIR_POLL_ADAPTIVE,
	.wcs_max = 16,
	.busy_percent_max = 50,
};

static int gate_new(struct weir_donor *donor, struct rdma_cm_id *id, const char *name,
		    unsigned int tenant, const struct wire_connect *connect,
		    const struct rdma_conn_param *param)
{
	struct weir_gate *gate = calloc(1, sizeof(*gate));
	int ret;

	if (!gate)
		return -ENOMEM;
	gate->donor = donor;
	gate->id = id;
	gate->tenant = tenant;
	gate->deadline_ns = weir_now_ns() + WEIR_HANDSHAKE_NS;
	snprintf(gate->name, sizeof(gate->name), "%s", name);
	ret = verbs_create(gate, connect->channel);
	if (!ret)
		ret = accept_request(gate, param);
	if (!ret)
		ret = handshake_begin(gate, connect);
	if (ret) {
		weir_gate_destroy(gate);
		return ret;
	}
	id->context = gate;
	weir_list_init(&gate->awake_link);
	weir_poll_init(&gate->poll, &poll_config, &donor->gaps, weir_now_ns());
	weir_list_add_tail(&donor->gates, &gate->link);
	donor->nr_unproven++;
	return 0;
}

void weir_gate_request(struct weir_donor *donor, struct rdma_cm_id *id,
		       const struct rdma_conn_param *param)
{
	char name[WEIR_ADDRESS_MAX];
	struct wire_connect connect;
	struct weir_error error;
	unsigned int tenant = 0;
	int ret;

	weir_address_print(rdma_get_peer_addr(id), name);
	ret = request_check(donor, id, param, &connect, &tenant, &error);
	if (!ret) {
		ret = gate_new(donor, id, name, tenant, &connect, param);
		if (ret)
			weir_fail(&error, -ENOMEM, "the donor cannot make a QP: %s",
				  strerror(-ret));
	}
	if (ret)
		reject(donor, id, name, ret, error.text);
}
