// SPDX-License-Identifier: GPL-2.0-only
#include "kernel/weir/conn.h"
#include "kernel/weir/keepalive.h"
#include "kernel/weir/session.h"

/*
 * The target checks no rkey of a zero-length write (IB specification, C9-88). Probes count no
 * bytes.
 */
static void post_probe(struct kweir_link *link)
{
	const struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = KWEIR_CONN_KEEPALIVE,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};

	if (ib_post_send(link->conn->id->qp, &wr.wr, NULL))
		kweir_link_fail(link);
	else
		weir_keepalive_probed(&link->session->keepalive, &link->core);
}

static void check_link(struct kweir_link *link, bool is_quiet)
{
	switch (weir_keepalive_check(&link->core, is_quiet)) {
	case WEIR_KEEPALIVE_PROBE:
		post_probe(link);
		break;
	case WEIR_KEEPALIVE_FAIL:
		kweir_link_fail(link);
		break;
	case WEIR_KEEPALIVE_NOTHING:
		break;
	}
}

void kweir_keepalive_check(struct kweir_session *session, u64 now_ns)
{
	struct weir_keepalive *k = &session->keepalive;
	bool is_quiet = weir_keepalive_is_quiet(k, session->stat.work_requests);
	unsigned int i;

	if (now_ns < k->due_ns)
		return;
	for (i = 0; i < session->options.channels; i++)
		check_link(&session->links[i], is_quiet);
	weir_keepalive_checked(k, session->stat.work_requests, now_ns);
}

void kweir_keepalive_completed(struct kweir_link *link, bool is_well, u64 now_ns)
{
	weir_keepalive_answered(&link->session->keepalive, &link->core, now_ns);
	if (!is_well)
		kweir_link_fail(link);
}
