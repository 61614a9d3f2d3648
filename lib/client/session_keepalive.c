/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/base/clock.h"
#include "lib/client/session_keepalive.h"
#include "lib/client/session.h"

void weir_session_keepalive_start(struct weir_session *session, uint64_t now_ns)
{
	session->keepalive.posted = session->counters->work_requests;
	session->keepalive.due_ns = weir_after_ns(now_ns, session->options.keepalive_ns);
}

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
	session->keepalive.unanswered++;
	link->unanswered = true;
	link->cq->in_flight++;
}

static void check_link(struct weir_session_link *link, bool is_quiet)
{
	if (link->unanswered)
		weir_session_link_fail(link);
	else if (is_quiet && link->state == WEIR_LINK_UP && !link->in_flight)
		post_probe(link);
}

void weir_session_keepalive_check(struct weir_session *session, uint64_t now_ns)
{
	struct weir_session_keepalive *k = &session->keepalive;
	bool is_quiet = session->counters->work_requests == k->posted;
	unsigned int i;

	if (session->down || session->is_stopping) {
		k->due_ns = UINT64_MAX;
		return;
	}
	for (i = 0; i < session->nr_links && i < session->options.channels; i++)
		check_link(&session->links[i], is_quiet);
	k->posted = session->counters->work_requests;
	k->due_ns = weir_after_ns(now_ns, k->unanswered ? session->options.timeout_ns :
							  session->options.keepalive_ns);
}

static void probe_completed(struct weir_session_link *link)
{
	link->unanswered = false;
	link->cq->in_flight--;
	link->session->keepalive.unanswered--;
}

void weir_session_keepalive_completed(struct weir_session_link *link, enum ibv_wc_status status,
				      uint64_t now_ns)
{
	struct weir_session *session = link->session;

	probe_completed(link);
	if (!session->keepalive.unanswered)
		session->keepalive.due_ns = weir_after_ns(now_ns, session->options.keepalive_ns);
	if (status == IBV_WC_SUCCESS)
		return;
	session->counters->errors++;
	weir_session_link_fail(link);
}

void weir_session_keepalive_forget(struct weir_session_link *link)
{
	if (link->unanswered)
		probe_completed(link);
}
