// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A client may look up a queue pair before the program has connected the queue pair. The
 * lookup then waits here until the program does.
 */
#include <errno.h>
#include <stdlib.h>

#include "softnic/control/config.h"
#include "softnic/cq/comp_channel.h"
#include "softnic/cq/wakeup.h"
#include "softnic/cq/cq.h"
#include "client.h"
#include "softnic/cq/doorbell.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp/gate.h"
#include "softnic/qp/qp.h"
#include "softnic/rq/srq.h"
#include "tracer.h"

enum { LOOKUPS_MAX = NIC_QPS };

struct pending_lookup {
	uint32_t qpn, from;
	uint64_t question;
	struct pending_lookup *next;
};

int client_qp_fds(const struct qp *qp, int *fds, uint32_t *has)
{
	int n = 0;

	*has = 0;
	fds[n++] = qp->segment.fd;
	if (qp->ibv.srq) {
		fds[n++] = to_srq(qp->ibv.srq)->ring.fd;
		fds[n++] = to_srq(qp->ibv.srq)->buffers.fd;
		*has |= HAS_SRQ;
	}
	if (qp_is_datagram(qp))
		*has |= HAS_TRAYS;
	return n;
}

/* Through the wakeup, the client wakes our threads that sleep on the channel. */
static int add_wakeup(struct shm_client *g, const struct qp *qp, struct shm_msg *m, int *fd)
{
	struct ibv_comp_channel *channel = qp->ibv.recv_cq->channel;
	struct wakeup *wakeup;
	int rc;

	if (!channel || g->slot == nic.slot)
		return 0;
	rc = wakeup_get(g->doorbell_page, to_comp_channel(channel), &wakeup);
	if (rc)
		return rc;
	m->has |= HAS_WAKEUP;
	m->channel = wakeup->channel->number;
	*fd = wakeup->far_fd;
	return 0;
}

/* Has the program admitted the process that asks for @qp? Nobody connects for datagrams. */
static bool admits(const struct qp *qp)
{
	return !qp_is_datagram(qp) && !gate_is_closed(qp);
}

/*
 * A peer opens our memory itself: the kernel asks all its rules. Only Yama, which would forbid that
 * to every peer, makes us pass our /proc/self/mem, to peers to which the program is connected and
 * which the kernel would let attach to us but for Yama. Programs with gates do not let every
 * process of the user attach: only the descriptor is for one peer.
 */
static bool must_pass_memory(void)
{
	return tracer_yama_scope() || config_get()->value[OPTION_TRUST_USER];
}

static int add_memory(const struct shm_client *g, const struct qp *qp, struct shm_msg *m, int *fd)
{
	if (!qp->gate.is_present)
		nic_allow_attach();
	if (!g->may_trace || g->is_admitted || g->slot == nic.slot || nic.mem_fd < 0)
		return 0;
	if (!must_pass_memory())
		return 0;
	if (!tracer_is_allowed(g->fd, g->pid)) /* either process may have changed meanwhile */
		return 0;
	m->has |= HAS_MEMORY;
	*fd = nic.mem_fd;
	return 1;
}

/*
 * A peer with the lock can hold it. So the lock goes only to peers whose atomics a queue pair
 * can carry. Atomics by way of an XRC SRQ come from any process of the domain.
 */
static int add_atomics(const struct shm_client *g, const struct qp *qp, struct shm_msg *m, int *fd)
{
	if (g->has_atomics || (!admits(qp) && !qp_is_srq_end(qp)))
		return 0;
	m->has |= HAS_ATOMICS;
	*fd = nic.atomics_fd;
	return 1;
}

/* Return: 0 or an errno. */
static int add_all(struct shm_client *g, const struct qp *qp, struct shm_msg *m, int *fds,
		   int *num_fds)
{
	int rc = -doorbell_attach(g->doorbell_page, to_cq(qp->ibv.recv_cq));

	if (rc)
		return rc;
	*num_fds = client_qp_fds(qp, fds, &m->has);
	rc = -add_wakeup(g, qp, m, &fds[*num_fds]);
	if (rc)
		return rc;
	*num_fds += !!(m->has & HAS_WAKEUP);
	if (admits(qp))
		*num_fds += add_memory(g, qp, m, &fds[*num_fds]);
	*num_fds += add_atomics(g, qp, m, &fds[*num_fds]);
	return 0;
}

static void answer_lookup(struct shm_client *g, const struct pending_lookup *ask, struct qp *qp,
			  int rc)
{
	struct shm_msg m = {
		.type = MSG_QP,
		.qpn = ask->qpn,
		.from = ask->from,
		.addr = ask->question,
	};
	int fds[SHM_MSG_FDS_MAX] = { 0 }, num_fds = 0;

	if (!rc && !g->doorbell_page)
		rc = EPERM;
	if (!rc && gate_is_closed(qp))
		m.has = HAS_GATE;
	else if (!rc)
		rc = add_all(g, qp, &m, fds, &num_fds);
	m.value = rc;
	if (rc)
		num_fds = 0;
	if (shm_msg_send(g->fd, &m, fds, num_fds) || rc)
		return;
	g->is_admitted |= admits(qp);
	g->has_atomics |= !!(m.has & HAS_ATOMICS);
	if (qp_is_datagram(qp))
		return;
	qp->client = g;
	qp->gate.question = ask->question;
}

void client_gate_opened(struct shm_client *g, struct qp *qp)
{
	const struct pending_lookup ask = {
		.qpn = qp->ibv.qp_num,
		.from = qp->attr.dest_qp_num,
		.question = qp->gate.question,
	};

	answer_lookup(g, &ask, qp, 0);
}

static void remember_lookup(struct shm_client *g, const struct pending_lookup *ask)
{
	struct pending_lookup *a;

	for (a = g->asks; a; a = a->next) {
		if (a->qpn == ask->qpn && a->from == ask->from) {
			a->question = ask->question; /* the client repeats the lookup */
			return;
		}
	}
	a = malloc(sizeof(*a));
	if (!a || g->num_lookups == LOOKUPS_MAX) {
		free(a);
		answer_lookup(g, ask, NULL, ENOMEM);
		return;
	}
	*a = *ask;
	a->next = g->asks;
	g->asks = a;
	g->num_lookups++;
}

void client_lookup(struct shm_client *g, const struct shm_msg *m)
{
	struct pending_lookup ask = { m->qpn, m->from, m->addr, NULL };
	struct qp *qp = nic_qp(m->qpn);

	if (!qp)
		answer_lookup(g, &ask, NULL, ENOENT);
	else if (qp_is_datagram(qp))
		answer_lookup(g, &ask, qp, qp_is_connected(qp) ? 0 : ENOTCONN);
	else if (m->from >> SOFTNIC_QP_INDEX_BITS != g->slot)
		answer_lookup(g, &ask, NULL, EPERM);
	else if (!qp_is_connected(qp))
		remember_lookup(g, &ask);
	else if (qp->attr.dest_qp_num != m->from)
		answer_lookup(g, &ask, NULL, EPERM);
	else
		answer_lookup(g, &ask, qp, 0);
}

void client_qp_ready(struct shm_client *g, struct qp *qp)
{
	struct pending_lookup **at = &g->asks, *a;

	while ((a = *at)) {
		if (a->qpn != qp->ibv.qp_num || a->from != qp->attr.dest_qp_num) {
			at = &a->next;
			continue;
		}
		answer_lookup(g, a, qp, 0);
		*at = a->next;
		g->num_lookups--;
		free(a);
	}
}

void client_drop_lookups(struct shm_client *g)
{
	struct pending_lookup *a;

	while ((a = g->asks)) {
		g->asks = a->next;
		free(a);
	}
}
