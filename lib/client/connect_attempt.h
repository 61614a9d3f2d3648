/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bringing up one channel, for the first time or again: the connection manager resolves and
 * connects (route.c), then both ends prove the key over the new QP (prove.c). It blocks, with a
 * deadline, and touches nothing that others use until it has succeeded (connect.c): it has an
 * event channel of its own, and looks for the few messages of the handshake in naps, because
 * events of CQs are for whoever drives the session.
 *
 * Context of all: the thread that opens the session, or that which mends it; without nic->lock.
 */
#ifndef WEIR_LIB_CLIENT_CONNECT_ATTEMPT_H
#define WEIR_LIB_CLIENT_CONNECT_ATTEMPT_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

#include "lib/conn/handshake.h"
#include "lib/client/session.h"

/**
 * struct weir_connect_attempt - what every step needs
 * @session, @link: the channel, and whose it is
 * @cm: where the connection manager speaks of @id
 * @id, @recv_cq, @inline_max: become the link's
 * @qp: becomes @id's once it is connected
 * @own_cq: @recv_cq, if it is no other's
 * @deadline_ns: when to give up
 * @error: says why it failed
 */
struct weir_connect_attempt {
	struct weir_session *session;
	struct weir_link *link;
	struct rdma_event_channel *cm;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct ibv_cq *recv_cq, *own_cq;
	uint32_t inline_max;
	uint64_t deadline_ns;
	struct weir_error *error;
};

/* Return: 0, or why there is no point in going on: -ETIMEDOUT; -ECANCELED the session is closed. */
int weir_connect_attempt_check_time(const struct weir_connect_attempt *a);

/* Takes one event of @id's. Return: 1 what was waited for; 0 there is none; or an error. */
int weir_connect_attempt_get_event(const struct weir_connect_attempt *a,
				   enum rdma_cm_event_type wanted);

/* Makes @cm and @id, and finds a device and a route. Return: as weir_session_open(). */
int weir_connect_attempt_resolve(struct weir_connect_attempt *a, const struct sockaddr *address);

/* Connects @qp, which can receive. Return: as weir_session_open(). */
int weir_connect_attempt_connect(const struct weir_connect_attempt *a);

/*
 * Both ends prove the key, and then the QP is open. @h: its welcome is what the donor said. Return: as weir_session_open().
 */
int weir_connect_attempt_prove(const struct weir_connect_attempt *a, struct weir_handshake *h);

/* Frees all that there is of it. */
void weir_connect_attempt_fini(struct weir_connect_attempt *a);

#endif
