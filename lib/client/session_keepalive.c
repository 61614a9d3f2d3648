/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/client/session_keepalive.h"
#include "lib/base/error.h"
#include "lib/client/session.h"

/* The target ignores the rkey of an empty write: IB specification, C9-88. */
static void post_probe(struct weir_session_link *link)
{
	struct weir_session *session = link->session;
	struct ibv_send_wr *bad, wr = {
		.wr_id = WEIR_KEEPALIVE_WR,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (ibv_post_send(link->id->qp, &wr, &bad)) {
		weir_session_link_fail(link);
		return;
	}
	session->counters->work_requests++;
	session->counters->doorbells++;
	weir_keepalive_probed(&session->keepalive, &link->core);
	link->cq->in_flight++;
}

static void check_link(struct weir_session_link *link, bool is_quiet)
{
	switch (weir_keepalive_check(&link->core, is_quiet)) {
	case WEIR_KEEPALIVE_PROBE:
		post_probe(link);
		break;
	case WEIR_KEEPALIVE_FAIL:
		weir_session_link_fail(link);
		break;
	case WEIR_KEEPALIVE_NOTHING:
		break;
	}
}

void weir_session_keepalive_check(struct weir_session *session, uint64_t now_ns)
{
	struct weir_keepalive *k = &session->keepalive;
	bool is_quiet = weir_keepalive_is_quiet(k, session->counters->work_requests);
	unsigned int i;

	if (!weir_session_is_usable(session)) {
		weir_keepalive_stop(k);
		return;
	}
	for (i = 0; i < session->nr_links && i < session->options.channels; i++)
		check_link(&session->links[i], is_quiet);
	weir_keepalive_checked(k, session->counters->work_requests, now_ns);
}

void weir_session_keepalive_completed(struct weir_session_link *link, enum ibv_wc_status status,
				      uint64_t now_ns)
{
	struct weir_session *session = link->session;

	link->cq->in_flight--;
	weir_keepalive_answered(&session->keepalive, &link->core, now_ns);
	if (status == IBV_WC_SUCCESS)
		return;
	weir_stats_shm_failed(session->stats_shm, weir_error_of_wc(status), status);
	weir_session_link_fail(link);
}

void weir_session_keepalive_forget(struct weir_session_link *link)
{
	link->cq->in_flight -= weir_keepalive_forget(&link->session->keepalive, &link->core);
}
