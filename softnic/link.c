// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Finding the other end of a connection: its process by the upper part of its number,
 * its queue pair by asking that process. The answer comes on the engine's thread, and
 * sends wait for it; nobody else does.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nic.h"
#include "qp.h"
#include "req.h"

void qp_link(struct qp *qp)
{
	struct message ask = {
		.type = MSG_ASK_QP,
		.qpn = qp->attr.dest_qp_num,
		.from = qp->ibv.qp_num,
		.addr = qp->links,
	};
	struct remote *r = &qp->remote;

	if (r->shared || !qp_is_connected(qp))
		return;
	if (r->peer && load_acquire(&r->peer->state) == PEER_DEAD) {
		peer_put(r->peer);
		r->peer = NULL;
	}
	if (!r->peer && peer_get(ask.qpn >> SOFTNIC_QP_INDEX_BITS, &r->peer))
		r->peer = NULL;
	if (r->peer)
		peer_tell(r->peer, &ask);
}

void qp_unlink(struct qp *qp)
{
	struct message bye = {
		.type = MSG_BYE_QP,
		.qpn = qp->attr.dest_qp_num,
		.from = qp->ibv.qp_num,
	};
	struct remote *r = &qp->remote;

	if (!r->peer)
		return;
	peer_tell(r->peer, &bye);
	peer_put(r->peer);
	if (r->shared)
		munmap(r->shared, r->size);
	if (r->channel_fd >= 0)
		close(r->channel_fd);
	*r = (struct remote){ .channel_fd = -1 };
	qp->links++;
}

/* Sizes are read once: the peer's program may change them any time. */
static int check(struct remote *r, const struct shared_qp *s, size_t size)
{
	uint32_t rq_size = s->rq_size, rq_sges = s->rq_sges, cq = s->recv_cq;

	if (s->magic != SHARED_MAGIC || s->version != SHARED_VERSION)
		return -EPROTO;
	if (load_acquire(&s->state) == SHARED_QP_GONE)
		return -EAGAIN;		/* it was reset meanwhile: the next answer is a new one */
	if (rq_size > SHARED_WRS_MAX || (rq_size & (rq_size - 1)) || rq_sges > SHARED_SGES_MAX ||
	    cq >= SHARED_CQS || shared_qp_size(rq_size, rq_sges) > size)
		return -EPROTO;
	r->rq_size = rq_size;
	r->rq_sges = rq_sges;
	r->cq = &r->peer->bell->cqs[cq];
	return 0;
}

static int adopt(struct qp *qp, const struct message *m, int *fds)
{
	struct remote *r = &qp->remote;
	size_t size;
	void *map;
	int err;

	err = shared_map(fds[0], sizeof(struct shared_qp), PROT_READ | PROT_WRITE, &map, &size);
	if (err)
		return err;
	err = check(r, map, size);
	if (err) {
		munmap(map, size);
		return err;
	}
	r->shared = map;
	r->size = size;
	if (m->has_channel) {
		r->channel_fd = fds[1];
		fds[1] = -1;
	}
	return 0;
}

void qp_linked(struct peer *peer, const struct message *m, int *fds)
{
	struct qp *qp;

	pthread_mutex_lock(&nic.lock);
	qp = nic_qp(m->from);
	if (!qp)
		goto unlock;
	pthread_mutex_lock(&qp->lock);
	if (!m->value && qp->remote.peer == peer && !qp->remote.shared && qp_is_connected(qp) &&
	    qp->attr.dest_qp_num == m->qpn && qp->links == m->addr && !adopt(qp, m, fds))
		req_resume(qp);
	pthread_mutex_unlock(&qp->lock);
unlock:
	pthread_mutex_unlock(&nic.lock);
}
