// SPDX-License-Identifier: GPL-2.0-only
#include "kernel/weir/conn.h"
#include "kernel/weir/keepalive.h"
#include "kernel/weir/session.h"

#define QUIET_NS (10ull * NSEC_PER_SEC)

void kweir_keepalive_begin(struct kweir_session *session, u64 now_ns)
{
	if (session->keepalive.due_ns == WEIR_NEVER)
		session->keepalive.due_ns = now_ns + QUIET_NS;
}

/*
 * The target checks no rkey of a zero-length write (IB specification, C9-88). Probes count no
 * bytes.
 */
static void post_probe(struct kweir_link *link)
{
	struct kweir_session *session = link->session;
	const struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = KWEIR_CONN_KEEPALIVE,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};

	if (ib_post_send(link->conn->id->qp, &wr.wr, NULL)) {
		kweir_link_fail(link);
		return;
	}
	session->keepalive.asked++;
	link->asked = true;
}

static void check_link(struct kweir_link *link, bool is_quiet)
{
	if (link->state != KWEIR_LINK_UP)
		return;
	if (link->asked)
		kweir_link_fail(link);
	else if (is_quiet && !link->in_flight)
		post_probe(link);
}

void kweir_keepalive_check(struct kweir_session *session, u64 now_ns)
{
	struct kweir_keepalive *k = &session->keepalive;
	bool is_quiet = session->stat.work_requests == k->posted;
	unsigned int i;

	if (now_ns < k->due_ns)
		return;
	for (i = 0; i < session->options.channels; i++)
		check_link(&session->links[i], is_quiet);
	k->posted = session->stat.work_requests;
	k->due_ns = now_ns + (k->asked ? session->timeout_ns : QUIET_NS);
}

static void probe_answered(struct kweir_link *link)
{
	link->asked = false;
	link->session->keepalive.asked--;
}

void kweir_keepalive_completed(struct kweir_link *link, bool is_well, u64 now_ns)
{
	struct kweir_keepalive *k = &link->session->keepalive;

	if (!link->asked)
		return;
	probe_answered(link);
	if (!k->asked && k->due_ns != WEIR_NEVER)
		k->due_ns = now_ns + QUIET_NS;
	if (!is_well)
		kweir_link_fail(link);
}

void kweir_keepalive_forget(struct kweir_link *link)
{
	if (link->asked)
		probe_answered(link);
}
