/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The donor's lock is held from a check to the end of its copy. Deregistration takes the same lock,
 * so nothing is written after a registration has gone. The client can write to the buffer at any
 * time, also during a read here; so the length comes from the device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/donor/keyring/keyring.h"
#include "lib/donor/donor.h"
#include "lib/base/error.h"
#include "lib/donor/conn.h"
#include "lib/donor/unload_rx.h"

/* A write with immediate consumes a receive, but puts no data there. */
static int recv_post(struct ibv_qp *qp)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = WEIR_DONOR_WR_UNLOAD_RECV };

	return -ibv_post_recv(qp, &wr, &bad);
}

static int buffer_make(struct weir_donor *donor, struct weir_donor_unload_rx *unload_rx,
		       struct ibv_pd *pd, struct weir_error *error)
{
	const size_t length = WIRE_UNLOAD_SLOTS * sizeof(struct wire_unload_slot);
	int rc;

	pthread_mutex_lock(&donor->lock);
	rc = weir_arena_take(&donor->arena, length, &unload_rx->extent);
	pthread_mutex_unlock(&donor->lock);
	if (rc)
		return weir_error_set(error, rc,
				      "the donor has no %zu bytes for a buffer of unloaded writes",
				      length);
	unload_rx->mr = ibv_reg_mr(pd, unload_rx->extent->addr, length,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return unload_rx->mr ? 0 : weir_error_set_memlock(error, "a buffer", length, -errno);
}

int weir_donor_unload_rx_open(struct weir_donor_conn *conn, struct weir_error *error)
{
	struct weir_donor_unload_rx *unload_rx = calloc(1, sizeof(*unload_rx));
	int i, rc;

	if (!unload_rx)
		return weir_error_set(error, -ENOMEM, "the donor is out of memory");
	weir_unload_rx_init(&unload_rx->core, WIRE_UNLOAD_SLOTS);
	conn->unload_rx = unload_rx;
	rc = buffer_make(conn->donor, unload_rx, weir_keyring_pd(conn->donor, conn->secret), error);
	for (i = 0; !rc && i < WIRE_UNLOAD_SLOTS; i++) {
		rc = recv_post(conn->id->qp);
		if (rc)
			weir_error_set(error, rc, "the donor cannot post receives: %s",
				       strerror(-rc));
	}
	return rc;
}

void weir_donor_unload_rx_close(struct weir_donor_conn *conn)
{
	struct weir_donor_unload_rx *unload_rx = conn->unload_rx;

	if (!unload_rx)
		return;
	if (unload_rx->mr)
		ibv_dereg_mr(unload_rx->mr);
	pthread_mutex_lock(&conn->donor->lock);
	if (unload_rx->extent)
		weir_arena_give(&conn->donor->arena, unload_rx->extent);
	pthread_mutex_unlock(&conn->donor->lock);
	free(unload_rx);
	conn->unload_rx = NULL;
}

void weir_donor_unload_rx_describe(const struct weir_donor_unload_rx *unload_rx,
				   struct wire_handshake_welcome *welcome)
{
	welcome->credits = WIRE_UNLOAD_SLOTS;
	welcome->buffer = (uintptr_t)unload_rx->extent->addr;
	welcome->rkey = unload_rx->mr->rkey;
}

/* Copies a slot's data to its target address, if allowed. */
static int copy_slot(struct weir_donor_conn *conn, const struct weir_unload_arrival *write)
{
	struct weir_donor *donor = conn->donor;
	int rc;

	pthread_mutex_lock(&donor->lock);
	rc = weir_unload_rx_copy(&conn->unload_rx->core, &donor->region_table.umtt, conn->tenant,
				 write->tag, write->addr, write->data, write->length);
	pthread_mutex_unlock(&donor->lock);
	return rc;
}

static void refuse_slot(struct weir_donor_conn *conn, uint32_t length, uint32_t tag)
{
	weir_counter_add(&conn->donor->unload_refused, 1);
	weir_donor_log_of(
		conn->donor, &conn->donor->tenants[conn->tenant], conn->name, WEIR_LOG_WARNING,
		"refused an unloaded write peer=%llu client=%s rkey=%#x length=%u id=W106",
		(unsigned long long)weir_peer_id(conn->client), conn->name, tag, length);
}

int weir_donor_unload_rx_received(struct weir_donor_conn *conn, const struct ibv_wc *wc)
{
	struct weir_donor_unload_rx *unload_rx = conn->unload_rx;
	struct weir_unload_arrival write;
	int rc;

	if (!unload_rx || !conn->client || wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM)
		return -EPROTO;
	if (recv_post(conn->id->qp))
		weir_donor_conn_break(conn, "a receive cannot be posted");
	write = weir_unload_wr_arrived(&unload_rx->core, (void *)unload_rx->extent->addr, wc);
	rc = copy_slot(conn, &write);
	weir_counter_add(&conn->donor->unloaded, !rc);
	if (rc == -EACCES)
		refuse_slot(conn, wc->byte_len, write.tag);
	return 0;
}

/* A return that cannot be posted ends with the QP. */
static void send_return(struct weir_donor_conn *conn, uint8_t pause_ms)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = WEIR_DONOR_WR_UNLOAD_RETURN,
		.opcode = IBV_WR_SEND_WITH_IMM,
	};
	struct wire_unload_return report =
		weir_unload_wr_return(&conn->unload_rx->core, pause_ms, &wr);

	wr.imm_data = htonl(wire_unload_return_encode(&report));
	if (ibv_post_send(conn->id->qp, &wr, &bad))
		weir_donor_conn_break(conn, "a return cannot be sent");
}

/* How long the client should unload nothing. */
static uint8_t budget_pause_ms(struct weir_donor_conn *conn)
{
	struct weir_donor *donor = conn->donor;
	uint8_t ms = weir_cpu_budget_pause_ms(&donor->cpu_budget, weir_cpu_ns(), weir_now_ns());

	weir_counter_add(&donor->unload_pauses, ms > 0);
	return ms;
}

void weir_donor_unload_rx_send_returns(struct weir_donor_conn *conn, bool more)
{
	if (weir_unload_rx_must_report(&conn->unload_rx->core, more))
		send_return(conn, budget_pause_ms(conn));
}
