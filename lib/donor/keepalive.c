/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/donor/keepalive.h"
#include "lib/base/clock.h"
#include "lib/donor/donor.h"
#include "lib/donor/conn.h"
#include "lib/donor/client.h"

uint64_t weir_donor_keepalive_due_ns(const struct weir_donor_conn *conn)
{
	bool is_probed = conn->core.state == WEIR_LINK_UP && !conn->is_dead &&
			 conn->client->conns[0] == conn;

	return is_probed ? conn->keepalive.due_ns : WEIR_NEVER;
}

/* The target ignores the rkey of an empty write: IB specification, C9-88. */
void weir_donor_keepalive_check(struct weir_donor_conn *conn, uint64_t now_ns)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = WEIR_DONOR_WR_KEEPALIVE,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (now_ns < weir_donor_keepalive_due_ns(conn) ||
	    weir_keepalive_check(&conn->core, true) != WEIR_KEEPALIVE_PROBE)
		return;
	weir_keepalive_probed(&conn->keepalive, &conn->core);
	weir_keepalive_checked(&conn->keepalive, 0, now_ns);
	weir_donor_log(conn->donor, WEIR_LOG_DEBUG, "asks peer=%llu client=%s",
		       (unsigned long long)weir_peer_id(conn->client), conn->name);
	if (ibv_post_send(conn->id->qp, &wr, &bad))
		weir_donor_conn_break(conn, "its probe cannot be sent");
}

uint64_t weir_donor_keepalive_absence_ns(const struct weir_donor_conn *conn)
{
	const struct weir_donor_options *options = &conn->donor->options;
	unsigned int ms = options->absence_ms;

	if (conn->core.is_probed && options->keepalive_ms > ms)
		ms = options->keepalive_ms;
	return ms * WEIR_NS_PER_MS;
}
