// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A guest may ask for a queue pair before ours knows whom it is connected to; the
 * question then waits here until it does.
 */
#include <errno.h>
#include <stdlib.h>

#include "softnic/cq/comp_channel.h"
#include "softnic/cq/wakeup.h"
#include "softnic/cq/cq.h"
#include "client.h"
#include "softnic/cq/doorbell.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp/qp.h"
#include "softnic/rq/srq.h"

enum { ASKS_MAX = NIC_QPS };

struct ask {
	uint32_t qpn, from;
	uint64_t question;
	struct ask *next;
};

int guest_descriptors(const struct qp *qp, int *fds, uint32_t *has)
{
	int n = 0;

	*has = 0;
	fds[n++] = qp->segment.fd;
	if (qp->ibv.srq) {
		fds[n++] = to_srq(qp->ibv.srq)->fd;
		*has |= HAS_SRQ;
	}
	return n;
}

/* Who uses it from outside is to wake who sleeps. */
static int add_cord(struct guest *g, const struct qp *qp, struct message *m, int *fd)
{
	struct ibv_comp_channel *channel = qp->ibv.recv_cq->channel;
	struct cord *cord;
	int err;

	if (!channel || g->slot == nic.slot)
		return 0;
	err = cord_get(g->bell, to_channel(channel), &cord);
	if (err)
		return err;
	m->has |= HAS_CORD;
	m->channel = cord->channel->number;
	*fd = cord->far_fd;
	return 0;
}

/*
 * The way to our memory is for those alone to whom the program has connected. Where the kernel lets
 * processes of one user attach to each other it opens nothing; elsewhere it is all they have.
 */
static int add_memory(const struct guest *g, struct message *m, int *fd)
{
	nic_let_in();
	if (g->is_let_in || g->slot == nic.slot || nic.mem_fd < 0)
		return 0;
	m->has |= HAS_MEMORY;
	*fd = nic.mem_fd;
	return 1;
}

static void answer(struct guest *g, const struct ask *ask, struct qp *qp, int err)
{
	struct message m = {
		.type = MSG_QP,
		.qpn = ask->qpn,
		.from = ask->from,
		.addr = ask->question,
	};
	int fds[MESSAGE_FDS_MAX] = { -1, -1, -1, -1 }, num_fds = 0;

	if (!err && !g->bell)
		err = EPERM;
	if (!err)
		err = -line_join(g->bell, to_cq(qp->ibv.recv_cq));
	if (!err) {
		num_fds = guest_descriptors(qp, fds, &m.has);
		err = -add_cord(g, qp, &m, &fds[num_fds]);
		num_fds += !!(m.has & HAS_CORD);
	}
	if (!err)
		num_fds += add_memory(g, &m, &fds[num_fds]);
	m.value = err;
	if (err)
		num_fds = 0;
	if (message_send(g->fd, &m, fds, num_fds) || err)
		return;
	g->is_let_in = true;
	if (!qp_is_datagram(qp))
		qp->guest = g;
}

static void remember(struct guest *g, const struct ask *ask)
{
	struct ask *a;

	for (a = g->asks; a; a = a->next) {
		if (a->qpn == ask->qpn && a->from == ask->from) {
			a->question = ask->question;	/* it grows impatient */
			return;
		}
	}
	a = malloc(sizeof(*a));
	if (!a || g->num_asks == ASKS_MAX) {
		free(a);
		answer(g, ask, NULL, ENOMEM);
		return;
	}
	*a = *ask;
	a->next = g->asks;
	g->asks = a;
	g->num_asks++;
}

void guest_ask(struct guest *g, const struct message *m)
{
	struct ask ask = { m->qpn, m->from, m->addr, NULL };
	struct qp *qp = nic_qp(m->qpn);

	if (!qp)
		answer(g, &ask, NULL, ENOENT);
	else if (qp_is_datagram(qp))
		answer(g, &ask, qp, qp_is_connected(qp) ? 0 : ENOTCONN);
	else if (m->from >> SOFTNIC_QP_INDEX_BITS != g->slot)
		answer(g, &ask, NULL, EPERM);
	else if (!qp_is_connected(qp))
		remember(g, &ask);
	else if (qp->attr.dest_qp_num != m->from)
		answer(g, &ask, NULL, EPERM);
	else
		answer(g, &ask, qp, 0);
}

void guest_ready(struct guest *g, struct qp *qp)
{
	struct ask **at = &g->asks, *a;

	while ((a = *at)) {
		if (a->qpn != qp->ibv.qp_num || a->from != qp->attr.dest_qp_num) {
			at = &a->next;
			continue;
		}
		answer(g, a, qp, 0);
		*at = a->next;
		g->num_asks--;
		free(a);
	}
}

void guest_forget_asks(struct guest *g)
{
	struct ask *a;

	while ((a = g->asks)) {
		g->asks = a->next;
		free(a);
	}
}
