/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/donor/keepalive.h"
#include "lib/base/clock.h"
#include "lib/donor/donor.h"
#include "lib/donor/conn.h"
#include "lib/donor/client.h"

static bool may_probe(const struct weir_donor_conn *conn)
{
	return conn->client && conn->client->conns[0] == conn && !conn->is_probe_in_flight &&
	       !conn->is_broken && !conn->is_dead;
}

void weir_donor_keepalive_reset(struct weir_donor_conn *conn, uint64_t now_ns)
{
	conn->probe_ns = now_ns + conn->donor->options.keepalive_ms * WEIR_NS_PER_MS;
}

uint64_t weir_donor_keepalive_due_ns(const struct weir_donor_conn *conn)
{
	return may_probe(conn) ? conn->probe_ns : UINT64_MAX;
}

/* The target ignores the rkey of an empty write: IB specification, C9-88. */
void weir_donor_keepalive_check(struct weir_donor_conn *conn, uint64_t now_ns)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = WEIR_DONOR_WR_KEEPALIVE,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (now_ns < weir_donor_keepalive_due_ns(conn))
		return;
	conn->is_probe_in_flight = true;
	weir_donor_log(conn->donor, WEIR_LOG_DEBUG, "asks peer=%llu client=%s",
		       (unsigned long long)weir_peer_id(conn->client), conn->name);
	if (ibv_post_send(conn->id->qp, &wr, &bad))
		weir_donor_conn_break(conn, "its probe cannot be sent");
}

uint64_t weir_donor_keepalive_absence_ns(const struct weir_donor_conn *conn)
{
	const struct weir_donor_options *options = &conn->donor->options;
	unsigned int ms = options->absence_ms;

	if (conn->is_probe_in_flight && options->keepalive_ms > ms)
		ms = options->keepalive_ms;
	return ms * WEIR_NS_PER_MS;
}
