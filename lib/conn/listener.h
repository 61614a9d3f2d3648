/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The listening end of a connection: an address and its device, and the answers to requests.
 *
 * A request is a weir_cm_event of type RDMA_CM_EVENT_CONNECT_REQUEST. The host checks its private
 * data, then either rejects, or creates a QP by weir_qp_create(), posts receives and accepts.
 */
#ifndef WEIR_LIB_CONN_LISTENER_H
#define WEIR_LIB_CONN_LISTENER_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include <weir/error.h>
#include "lib/conn/address.h"

/**
 * struct weir_listener - an address listened on
 * @cm: its events; reads do not block
 * @id: NULL: does not listen
 * @address: as bound, with the port that the system chose
 */
struct weir_listener {
	struct rdma_event_channel *cm;
	struct rdma_cm_id *id;
	char address[WEIR_ADDRESS_MAX];
};

/**
 * weir_listener_check() - resolve an address to listen at, and decide whether to listen there
 * @address: without a host: all addresses
 * @owner: for errors, such as "a donor"
 * @has_key: without a key only on loopback
 * @list: receives the addresses; free it with freeaddrinfo()
 * @error: may be NULL
 *
 * Return: 0; -EPERM no key; weir_address_resolve()'s.
 */
int weir_listener_check(const char *address, const char *owner, bool has_key,
			struct addrinfo **list, struct weir_error *error);

/**
 * weir_listener_open() - listen
 * @address: NULL: only open @cm. Without a host: on all addresses
 * @owner: for errors, such as "a donor"
 * @has_key: without a key only on loopback
 * @backlog: requests that wait
 * @error: may be NULL
 *
 * The caller owes weir_listener_close() even after a failure.
 *
 * Return: 0; -EINVAL, -EHOSTUNREACH: weir_address_resolve(); -EPERM no key, or the port is
 * privileged; -EADDRINUSE; -ENODEV; -ENOMEM.
 */
int weir_listener_open(struct weir_listener *l, const char *address, const char *owner,
		       bool has_key, int backlog, struct weir_error *error);

/**
 * weir_listener_find_device() - choose the device for the queue pairs
 * @name: the device asked for, or NULL
 * @device: receives the device, which the connection manager owns
 * @error: may be NULL
 *
 * Return: 0; -ENODEV there is no device, or the address belongs to another device.
 */
int weir_listener_find_device(const struct weir_listener *l, const char *name,
			      struct ibv_context **device, struct weir_error *error);

/**
 * weir_listener_accept() - connect @qp, which has receives posted, to the requesting end
 * @id: from the request
 * @asked: of the request: @responder_max and @initiator_max are cut to it
 * @responder_max: the peer's reads that @qp serves at once
 * @initiator_max: reads in flight of this end
 *
 * The QP stays closed to RDMA: lib/conn/proof.h opens it.
 *
 * Return: 0 or a negative errno.
 */
int weir_listener_accept(struct rdma_cm_id *id, struct ibv_qp *qp,
			 const struct rdma_conn_param *asked, uint8_t responder_max,
			 uint8_t initiator_max);

/**
 * weir_listener_reject() - refuse a request, and destroy @id
 * @version: of wire_handshake_reject_version()
 * @status: a negative errno
 * @cookie: for the peer's next request; NULL: none
 */
void weir_listener_reject(struct rdma_cm_id *id, uint16_t version, int status, const char *text,
			  const uint8_t *cookie);

void weir_listener_close(struct weir_listener *l);

#endif
