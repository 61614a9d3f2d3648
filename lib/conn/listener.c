/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/conn/dialer.h"
#include "lib/conn/event_channel.h"
#include "lib/conn/handshake.h"
#include "lib/conn/listener.h"
#include "lib/conn/qp.h"

static int explain_bind(const char *listen, int status, struct weir_error *error)
{
	switch (status) {
	case -EADDRINUSE:
		return weir_error_set(error, status, "%s is in use already: listen on another port",
				      listen);
	case -ENODEV:
	case -EADDRNOTAVAIL: /* also if a wildcard and an address want the same port */
		return weir_error_set(
			error, -ENODEV,
			"no verbs device has the address %s, or its port is in use: listen "
			"on one of an RDMA device, or run on softnic with 'weir run'",
			listen);
	case -EACCES:
		return weir_error_set(error, -EPERM,
				      "may not listen on %s: choose a port above 1023", listen);
	default:
		return weir_error_set(error, -ENODEV, "cannot listen on %s: %s", listen,
				      strerror(-status));
	}
}

static int bind_and_listen(struct weir_listener *l, const struct sockaddr *address, int backlog)
{
	if (rdma_create_id(l->cm, &l->id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(l->id, (struct sockaddr *)address) || rdma_listen(l->id, backlog))
		return -errno;
	weir_address_format(rdma_get_local_addr(l->id), l->address);
	return 0;
}

int weir_listener_check(const char *address, const char *owner, bool has_key,
			struct addrinfo **list, struct weir_error *error)
{
	int rc = weir_address_resolve(address, "0.0.0.0", list, error);

	if (rc || has_key || weir_address_is_loopback((*list)->ai_addr))
		return rc;
	freeaddrinfo(*list);
	return weir_error_set(error, -EPERM,
			      "%s without a key listens on loopback only, not on %s: give it a key",
			      owner, address);
}

int weir_listener_open(struct weir_listener *l, const char *address, const char *owner,
		       bool has_key, int backlog, struct weir_error *error)
{
	struct addrinfo *list;
	int rc = weir_event_channel_open(&l->cm, error);

	if (!rc && address)
		rc = weir_listener_check(address, owner, has_key, &list, error);
	if (rc || !address)
		return rc;
	rc = bind_and_listen(l, list->ai_addr, backlog);
	if (rc)
		rc = explain_bind(address, rc, error);
	freeaddrinfo(list);
	return rc;
}

/*
 * A listener on all addresses is bound to no device. Choose the named device, or the first by name:
 * librdmacm lists devices by GUID, which a software device draws at each boot.
 */
static struct ibv_context *choose_device(const char *name)
{
	struct ibv_context **devices, *first = NULL;
	int i, n;

	devices = rdma_get_devices(&n);
	for (i = 0; devices && i < n; i++) {
		const char *found = ibv_get_device_name(devices[i]->device);

		if (name ? !strcmp(found, name) :
			   !first || strcmp(found, ibv_get_device_name(first->device)) < 0)
			first = devices[i];
	}
	if (devices)
		rdma_free_devices(devices);
	return first;
}

int weir_listener_find_device(const struct weir_listener *l, const char *name,
			      struct ibv_context **device, struct weir_error *error)
{
	struct ibv_context *found = l->id ? l->id->verbs : NULL;

	if (!found)
		found = choose_device(name);
	if (!found)
		return weir_error_set(error, -ENODEV,
				      "no verbs device%s%s: is it up? 'weir run' needs none",
				      name ? " " : "", name ? name : "");
	if (name && strcmp(name, ibv_get_device_name(found->device)))
		return weir_error_set(error, -ENODEV, "%s belongs to device %s, not to %s",
				      l->address, ibv_get_device_name(found->device), name);
	*device = found;
	return 0;
}

static uint8_t smaller(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

int weir_listener_accept(struct rdma_cm_id *id, struct ibv_qp *qp,
			 const struct rdma_conn_param *asked, uint8_t responder_max,
			 uint8_t initiator_max)
{
	struct rdma_conn_param param = {
		.responder_resources = smaller(asked->responder_resources, responder_max),
		.initiator_depth = smaller(asked->initiator_depth, initiator_max),
		.rnr_retry_count = WEIR_DIALER_RNR_FOR_EVER,
	};

	return weir_qp_accept(id, qp, &param);
}

void weir_listener_reject(struct rdma_cm_id *id, uint16_t version, int status, const char *text,
			  const uint8_t *cookie)
{
	struct wire_handshake_reject reject = { 0 };

	weir_handshake_refusal_fill(&reject.refusal, version, status, text);
	if (cookie)
		memcpy(reject.cookie, cookie, sizeof(reject.cookie));
	rdma_reject(id, &reject, sizeof(reject));
	rdma_destroy_id(id);
}

void weir_listener_close(struct weir_listener *l)
{
	if (l->id)
		rdma_destroy_id(l->id);
	if (l->cm)
		rdma_destroy_event_channel(l->cm);
}
