/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Accepting QPs: from another mux's REQ to a QP waiting for HELLO, or a REJ; and disconnects. */
#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/mux/local/local.h"
#include "lib/conn/event_channel.h"

/* Whether to answer a REQ with a QP. @remote: receives the remote of a further QP, or NULL. */
static int check_request(struct weir_mux_local *mux, const struct rdma_cm_id *id,
			 const struct wire_handshake_connect *connect,
			 struct weir_mux_remote **remote, struct weir_error *error)
{
	if (mux->is_stopping)
		return weir_error_set(error, -EAGAIN, "this mux is being closed");
	if (id->verbs != mux->device)
		return weir_error_set(error, -EHOSTUNREACH, "this mux uses device %s only",
				      ibv_get_device_name(mux->device->device));
	if (connect->key_id != weir_key_id(mux->options.key))
		return weir_error_set(error, -EKEYREJECTED, "the mux has another key");
	if (connect->channel >= mux->options.nr_classes)
		return weir_error_set(error, -EPROTO,
				      "the mux has %u classes: give both ends as many",
				      mux->options.nr_classes);
	*remote = connect->session_id ?
			  weir_mux_remote_by_session(mux, connect->session_id, false) :
			  NULL;
	if (connect->session_id && !*remote && weir_mux_local_expects_welcome(mux))
		return weir_error_set(error, -EAGAIN,
				      "this remote may be about to be known: try again");
	if (connect->session_id && (!*remote || (*remote)->qps[connect->channel]))
		return weir_error_set(error, -ESTALE, "the mux does not know this remote");
	return 0;
}

static uint64_t session_id_new(void)
{
	uint64_t id;

	weir_handshake_random(&id, sizeof(id));
	return id | 1; /* 0 means none */
}

static int accept_qp(struct weir_mux_qp *qp, const struct rdma_conn_param *asked)
{
	const uint8_t reads_max = qp->remote->mux->reads_max;
	int rc = weir_listener_accept(qp->id, qp->qp, asked, reads_max, reads_max);

	return rc ? rc : weir_mux_qp_handshake_start(qp, false);
}

/*
 * Finds a place for the sender of a REQ, and ends the QP that has to make room. Return: 0; -EAGAIN,
 * with the cookie to bring.
 */
static int find_place(struct weir_mux_local *mux, struct rdma_cm_id *id,
		      const struct wire_handshake_connect *connect,
		      struct weir_newcomer *newcomer, uint8_t cookie[WIRE_COOKIE],
		      struct weir_error *error)
{
	struct weir_newcomer *replaced;
	int rc;

	weir_places_newcomer(newcomer, &mux->places, id, NULL, connect->session_id,
			     connect->cookie);
	rc = weir_places_make_room(&mux->places, newcomer, &replaced, error);
	if (rc)
		weir_places_cookie(&mux->places, id, cookie);
	else if (replaced)
		weir_mux_qp_fail(container_of(replaced, struct weir_mux_qp, newcomer), -EAGAIN);
	return rc;
}

static int admit_peer(struct weir_mux_local *mux, struct rdma_cm_id *id,
		      const struct rdma_conn_param *param,
		      const struct wire_handshake_connect *connect,
		      const struct weir_newcomer *newcomer, struct weir_mux_remote *remote)
{
	char name[WEIR_ADDRESS_MAX];
	struct weir_mux_qp *qp;
	int rc = 0;

	if (!remote) {
		weir_address_format(rdma_get_peer_addr(id), name);
		rc = weir_mux_remote_new(mux, name, &remote);
		if (rc)
			return rc;
		remote->session_id = session_id_new();
	}
	rc = weir_mux_qp_new(remote, (uint8_t)connect->channel, id, &qp);
	if (rc) {
		if (remote->worker_state == WEIR_MUX_WORKER_NONE)
			weir_mux_remote_fail(remote, rc);
		return rc;
	}
	qp->version = connect->version;
	qp->newcomer = *newcomer;
	weir_places_take(&mux->places, &qp->newcomer);
	rc = accept_qp(qp, param);
	if (rc)
		weir_mux_qp_fail(qp, rc); /* also destroys the id: no reject */
	return 0;
}

static int take_request(struct weir_mux_local *mux, const struct weir_cm_event *request,
			struct wire_handshake_connect *connect, uint8_t cookie[WIRE_COOKIE],
			struct weir_error *error)
{
	const struct rdma_conn_param *param = &request->param;
	struct weir_mux_remote *remote = NULL;
	struct weir_newcomer newcomer;
	int rc = wire_handshake_connect_decode_as(param->private_data, param->private_data_len,
						  &weir_handshake_versions, connect);

	if (rc)
		return weir_error_set(error, rc,
				      "this mux speaks version %u of weir's protocol",
				      weir_handshake_versions.max);
	rc = check_request(mux, request->id, connect, &remote, error);
	if (!rc)
		rc = find_place(mux, request->id, connect, &newcomer, cookie, error);
	if (rc)
		return rc;
	rc = admit_peer(mux, request->id, param, connect, &newcomer, remote);
	return rc ? weir_error_set(error, rc, "no queue pair: %s", weir_strerror(rc)) : 0;
}

static void handle_request(struct weir_mux_local *mux, const struct weir_cm_event *request)
{
	struct wire_handshake_connect connect = { 0 };
	uint8_t cookie[WIRE_COOKIE] = { 0 };
	struct weir_error error;
	int rc = take_request(mux, request, &connect, cookie, &error);
	uint16_t version = wire_handshake_reject_version(&weir_handshake_versions,
							 connect.version);

	if (rc)
		weir_listener_reject(request->id, version, rc, error.text, cookie);
}

void weir_mux_remote_accept_events(struct weir_mux_local *mux, struct rdma_event_channel *cm)
{
	struct weir_cm_event event;

	while (weir_event_channel_get(cm, &event) > 0)
		if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST)
			handle_request(mux, &event);
		else if (event.type != RDMA_CM_EVENT_ESTABLISHED && event.context)
			weir_mux_qp_fail(event.context, -ECONNRESET);
}
