/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An attempt to bring up one channel, for the first time or again. The connection manager resolves
 * and connects (connect_attempt_cm.c), then both ends prove the key over the new QP
 * (connect_attempt_prove.c). The attempt blocks, with a deadline. Until it succeeds
 * (session_connect.c), it changes nothing that other threads use. It has its own event channel, and
 * polls for the few messages of the handshake, because CQ events belong to the session's driver.
 *
 * Context of all: the thread that opens the session or reconnects; without nic->lock.
 */
#ifndef WEIR_LIB_CLIENT_CONNECT_ATTEMPT_H
#define WEIR_LIB_CLIENT_CONNECT_ATTEMPT_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

#include "lib/conn/handshake.h"
#include "lib/client/session.h"

/**
 * struct weir_connect_attempt - state of all steps
 * @session, @link: the channel, and its session
 * @cm: event channel of @id
 * @id, @recv_cq, @inline_max: become the link's
 * @qp: becomes @id's QP once connected
 * @own_cq: @recv_cq, unless shared
 * @deadline_ns: when to give up
 * @error: receives the reason of a failure
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

/* Return: 0 to continue; -ETIMEDOUT; -ECANCELED the session is closed. */
int weir_connect_attempt_check_time(const struct weir_connect_attempt *a);

/* Takes one event of @id. Return: 1 the @wanted event; 0 no event; or an error. */
int weir_connect_attempt_get_event(const struct weir_connect_attempt *a,
				   enum rdma_cm_event_type wanted);

/* Creates @cm and @id, and finds a device and a route. Return: as weir_session_open(). */
int weir_connect_attempt_resolve(struct weir_connect_attempt *a, const struct sockaddr *address);

/* Connects @qp, which has receives posted. Return: as weir_session_open(). */
int weir_connect_attempt_connect(const struct weir_connect_attempt *a);

/*
 * Proves the key at both ends, then opens the QP. @h: receives the donor's welcome.
 * Return: as weir_session_open().
 */
int weir_connect_attempt_prove(const struct weir_connect_attempt *a, struct weir_handshake *h);

/* Frees everything that the attempt has created. */
void weir_connect_attempt_fini(struct weir_connect_attempt *a);

#endif
