/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From a REQ to a connection that expects a HELLO, or to a REJ.
 *
 * A QP cannot change its PD, so the donor must know the tenant before the proof: the REQ names the
 * tenant by key id. Until the proof the QP has no access flags: lib/conn/qp.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/donor/donor.h"
#include "lib/base/error.h"
#include "lib/donor/conn.h"
#include "lib/donor/keyring/keyring.h"
#include "lib/donor/messages.h"
#include "lib/donor/client.h"
#include "lib/conn/event_channel.h"
#include "lib/conn/proof.h"
#include "lib/conn/qp.h"
#include "lib/donor/unload_rx.h"

static const char *explain_unknown_key(const struct weir_donor *donor, uint64_t key_id)
{
	if (!weir_donor_has_keys(donor))
		return "the donor has no key, and the client gave one";
	if (key_id == weir_key_id(NULL))
		return "the donor wants a key, and the client gave none";
	return "the donor does not know this key";
}

/* Checks a REQ before creating a QP. */
static int check_request(const struct weir_donor *donor, const struct rdma_cm_id *id,
			 const struct rdma_conn_param *param,
			 struct wire_handshake_connect *connect, struct weir_donor_secret **secret,
			 struct weir_error *error)
{
	int rc;

	rc = wire_handshake_connect_decode_as(param->private_data, param->private_data_len,
					      &donor->versions, connect);
	if (rc == -EPROTONOSUPPORT)
		return weir_error_set(error, rc,
				      "this donor speaks version %u of the protocol, the client "
				      "version %u: upgrade the older one",
				      connect->version < donor->versions.min ?
					      donor->versions.min :
					      donor->versions.max,
				      connect->version);
	if (rc)
		return weir_error_set(error, rc, "the request does not speak weir's protocol");
	if (id->verbs != donor->device)
		return weir_error_set(error, -EHOSTUNREACH,
				      "this donor lends through device %s only",
				      ibv_get_device_name(donor->device->device));
	*secret = weir_keyring_find(donor, connect->key_id);
	if (!*secret)
		return weir_error_set(error, -EKEYREJECTED, "%s",
				      explain_unknown_key(donor, connect->key_id));
	if (connect->session_id)
		return 0;
	return weir_donor_client_check_limits(donor, (*secret)->tenant, error);
}

/* Return: the session, if it lives and keeps places for its channels; else 0, as for newcomers. */
static uint64_t place_of_request(struct weir_donor *donor,
				 const struct wire_handshake_connect *connect,
				 const struct weir_donor_secret *secret)
{
	return weir_donor_client_find(donor, connect->session_id, secret) ? connect->session_id : 0;
}

/* Finds a place for the sender of a REQ, and ends the connection that has to make room. */
static int find_place(struct weir_donor *donor, const struct weir_newcomer *newcomer,
		      struct weir_error *error)
{
	struct weir_newcomer *replaced;
	int rc = weir_places_make_room(&donor->places, newcomer, &replaced, error);

	if (rc || !replaced)
		return rc;
	weir_counter_add(&donor->rejects, 1);
	weir_donor_conn_kill(container_of(replaced, struct weir_donor_conn, newcomer),
			     "no proof so far, and another needs its place");
	return 0;
}

static void reject_request(struct weir_donor *donor, struct rdma_cm_id *id, const char *name,
			   uint16_t asked, int status, const char *text)
{
	uint8_t cookie[WIRE_COOKIE] = { 0 };

	weir_counter_add(&donor->rejects, 1);
	weir_donor_log_of(donor, NULL, name, WEIR_LOG_WARNING, "rejected client=%s id=W101: %s",
			  name, text);
	if (status == -EAGAIN)
		weir_places_cookie(&donor->places, id, cookie);
	weir_listener_reject(id, wire_handshake_reject_version(&donor->versions, asked), status,
			     text, cookie);
}

static int create_cq_and_qp(struct weir_donor_conn *conn, uint16_t channel)
{
	struct ibv_pd *pd = weir_keyring_pd(conn->donor, conn->secret);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = WIRE_HANDSHAKE_RECVS,
			 .max_recv_wr = WIRE_HANDSHAKE_RECVS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	if (!channel) {
		init.cap.max_send_wr += WEIR_DONOR_CLIENT_SENDS + WEIR_KEEPALIVE_SENDS;
		init.cap.max_recv_wr += WEIR_DONOR_CLIENT_RECVS;
	}
	if (channel == WIRE_CHANNEL_UNLOAD) {
		init.cap.max_send_wr += WIRE_UNLOAD_SLOTS;
		init.cap.max_recv_wr += WIRE_UNLOAD_SLOTS;
	}
	conn->mr = ibv_reg_mr(pd, conn->buffers, sizeof(conn->buffers), IBV_ACCESS_LOCAL_WRITE);
	if (!conn->mr)
		return -errno;
	conn->cq = ibv_create_cq(conn->donor->device, init.cap.max_send_wr + init.cap.max_recv_wr,
				 conn, conn->donor->completions, 0);
	if (!conn->cq)
		return -errno;
	init.send_cq = conn->cq;
	init.recv_cq = conn->cq;
	return weir_qp_create(conn->id, pd, &init, &conn->id->qp);
}

/* Prepares the QP for the HELLO, and accepts. The donor reads nothing of the client's. */
static int accept_request(struct weir_donor_conn *conn, const struct rdma_conn_param *asked)
{
	struct ibv_qp *qp = conn->id->qp;
	int rc = weir_proof_post_recvs(qp, conn->mr->lkey, conn->buffers, WIRE_HANDSHAKE_RECVS,
				       WEIR_DONOR_WR_HANDSHAKE_RECV);

	if (!rc)
		rc = -ibv_req_notify_cq(conn->cq, 0);
	return rc ? rc : weir_listener_accept(conn->id, qp, asked, conn->donor->reads_max, 0);
}

static int begin_handshake(struct weir_donor_conn *conn,
			   const struct wire_handshake_connect *connect)
{
	struct weir_handshake_setup setup = {
		.key = conn->secret->key.length ? &conn->secret->key : NULL, /* no key */
		.service.magic = connect->magic,
		.version = connect->version,
		.version_max = conn->donor->versions.max,
		.session_id = connect->session_id,
		.channel = connect->channel,
		.credits = WEIR_DONOR_CLIENT_RECVS,
		.takes_clear = conn->donor->options.encryption == WEIR_ENCRYPTION_AUTO,
	};
	int rc;

	setup.identity = *conn->donor->identity;
	rc = weir_proof_setup(conn->id, false, &setup);
	if (rc)
		weir_noise_wipe(&setup.identity, sizeof(setup.identity));
	else
		weir_handshake_donor(conn->handshake, &setup);
	return rc;
}

/* The donor thread must not spend all its time polling for clients. */
static const struct weir_poll_config poll_config = {
	.mode = WEIR_POLL_ADAPTIVE,
	.wcs_max = 16,
	.busy_percent_max = 50,
};

static int new_conn(struct weir_donor *donor, struct rdma_cm_id *id, const char *name,
		    struct weir_donor_secret *secret, const struct weir_newcomer *newcomer,
		    const struct wire_handshake_connect *connect,
		    const struct rdma_conn_param *param)
{
	struct weir_donor_conn *conn = calloc(1, sizeof(*conn));
	int rc;

	if (!conn)
		return -ENOMEM;
	conn->donor = donor;
	conn->id = id;
	conn->secret = weir_keyring_get(secret);
	conn->tenant = secret->tenant;
	conn->channel = connect->channel;
	conn->newcomer = *newcomer;
	weir_list_init(&conn->newcomer.link);
	conn->deadline_ns = newcomer->since_ns + WEIR_HANDSHAKE_NS;
	snprintf(conn->name, sizeof(conn->name), "%s", name);
	weir_keepalive_init(&conn->keepalive, donor->options.keepalive_ms * WEIR_NS_PER_MS,
			    WEIR_NEVER);
	conn->handshake = weir_handshake_new();
	rc = conn->handshake ? create_cq_and_qp(conn, connect->channel) : -ENOMEM;
	if (!rc)
		rc = accept_request(conn, param);
	if (!rc)
		rc = begin_handshake(conn, connect);
	if (rc) {
		weir_donor_conn_destroy(conn);
		return rc;
	}
	id->context = conn;
	weir_list_init(&conn->awake_link);
	weir_poll_init(&conn->poll, &poll_config, &donor->idle_time, weir_now_ns());
	weir_list_add_tail(&donor->conns, &conn->link);
	weir_places_take(&donor->places, &conn->newcomer);
	return 0;
}

void weir_donor_conn_request(struct weir_donor *donor, const struct weir_cm_event *request)
{
	const struct rdma_conn_param *param = &request->param;
	char name[WEIR_ADDRESS_MAX];
	struct wire_handshake_connect connect = { 0 };
	struct weir_error error;
	struct weir_donor_secret *secret = NULL;
	struct weir_newcomer newcomer;
	int rc;

	weir_address_format(rdma_get_peer_addr(request->id), name);
	rc = check_request(donor, request->id, param, &connect, &secret, &error);
	if (!rc) {
		weir_places_newcomer(&newcomer, &donor->places, request->id, secret,
				     place_of_request(donor, &connect, secret), connect.cookie);
		rc = find_place(donor, &newcomer, &error);
	}
	if (!rc) {
		rc = new_conn(donor, request->id, name, secret, &newcomer, &connect, param);
		if (rc)
			weir_error_set(&error, -ENOMEM, "the donor cannot make a QP: %s",
				       strerror(-rc));
	}
	if (rc)
		reject_request(donor, request->id, name, connect.version, rc, error.text);
}
