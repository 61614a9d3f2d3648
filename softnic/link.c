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
	if (r->srq)
		munmap(r->srq, r->srq_size);
	if (r->channel_fd >= 0)
		close(r->channel_fd);
	*r = (struct remote){ .channel_fd = -1 };
	qp->links++;
}

/* Sizes are read once: the peer's program may change them any time. */
static int check(struct remote *r, const struct shared_qp *s)
{
	uint32_t cq = load_relaxed(&s->recv_cq);

	if (s->magic != SHARED_MAGIC || s->version != SHARED_VERSION)
		return -EPROTO;
	if (load_acquire(&s->state) == SHARED_QP_GONE)
		return -EAGAIN;		/* it was reset meanwhile: the next answer is a new one */
	if (cq >= SHARED_CQS)
		return -EPROTO;
	r->cq = &r->peer->bell->cqs[cq];
	return 0;
}

/* Arrivals, then the receive queue, unless that is an SRQ. */
static int map_receives(struct remote *r, struct shared_qp *s, size_t size, int srq_fd)
{
	size_t room = size - sizeof(*s);
	int err;

	err = arrivals_map(&r->arrivals, s->rest, room, load_relaxed(&s->arrivals));
	if (err)
		return err;
	room -= arrivals_bytes(r->arrivals.size);
	if (srq_fd < 0)
		return rq_map(&r->rq, s->rest + arrivals_bytes(r->arrivals.size), room);
	err = shared_map(srq_fd, sizeof(struct shared_rq), PROT_READ | PROT_WRITE, &r->srq,
			 &r->srq_size);
	if (err)
		return err;
	err = rq_map(&r->rq, r->srq, r->srq_size);
	if (err) {
		munmap(r->srq, r->srq_size);
		r->srq = NULL;
	}
	return err;
}

static int adopt(struct qp *qp, const struct message *m, int *fds)
{
	int *channel_fd = m->has & HAS_CHANNEL ? &fds[1] : NULL;
	int *srq_fd = m->has & HAS_SRQ ? &fds[channel_fd ? 2 : 1] : NULL;
	struct remote *r = &qp->remote;
	size_t size;
	void *map;
	int err;

	err = shared_map(fds[0], sizeof(struct shared_qp), PROT_READ | PROT_WRITE, &map, &size);
	if (err)
		return err;
	err = check(r, map);
	if (!err)
		err = map_receives(r, map, size, srq_fd ? *srq_fd : -1);
	if (err) {
		munmap(map, size);
		return err;
	}
	r->shared = map;
	r->size = size;
	if (channel_fd) {
		r->channel_fd = *channel_fd;
		*channel_fd = -1;
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
