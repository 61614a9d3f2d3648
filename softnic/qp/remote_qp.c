// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Finding the other end of a connection: its process by the upper part of its number,
 * its queue pair by asking that process. The answer comes on the engine's thread, and
 * sends wait for it; nobody else does.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "deliver.h"
#include "softnic/shm/client.h"
#include "softnic/verbs/nic.h"
#include "qp.h"
#include "req.h"
#include "softnic/shm/server.h"

static struct remote **find(struct qp *qp, uint32_t qpn)
{
	struct remote **at = &qp->remotes[qpn % REMOTE_HASHES];

	while (*at && (*at)->qpn != qpn)
		at = &(*at)->next;
	return at;
}

struct remote *qp_remote(struct qp *qp, uint32_t qpn)
{
	struct remote **at = find(qp, qpn);

	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (*at)
			(*at)->qpn = qpn;
	}
	return *at;
}

static void forget_pull(struct remote *r)
{
	if (r->pull)
		pull_put(&r->peer->pulls, r->pull);
	r->pull = NULL;
}

static void drop(struct remote *r)
{
	guard_release(&r->guard);
	forget_pull(r);
	if (r->peer)
		peer_put(r->peer);
	if (r->shared)
		munmap(r->shared, r->size);
	if (r->srq)
		munmap(r->srq, r->srq_size);
	*r = (struct remote){ .qpn = r->qpn, .next = r->next };
}

static void unlink_remotes(struct qp *qp)
{
	struct remote *r;
	uint32_t i;

	for (i = 0; i < REMOTE_HASHES; i++) {
		while ((r = qp->remotes[i])) {
			qp->remotes[i] = r->next;
			drop(r);
			free(r);
		}
	}
}

/*
 * One that is waited for is asked for anew, once: it may be of the process that has the slot since,
 * and of whose coming we knew before we were told of the end of the last.
 */
static bool forsake(struct remote *r)
{
	bool was_awaited = !r->shared && !r->is_mute, was_asked_anew = r->was_asked_anew;

	drop(r);
	r->is_refused = was_awaited && was_asked_anew;
	r->was_asked_anew = was_awaited && !was_asked_anew;
	return was_awaited;
}

/* By the work request at the head of the send queue, or by the last one. */
static bool is_in_use(struct qp *qp, const struct remote *r)
{
	struct remote **ends;
	uint32_t n = deliver_awaits(qp, &ends);

	while (n)
		if (ends[--n] == r)
			return true;
	return qp->to == r;
}

/* Of those in one list. What is not in use is forgotten, for its number may never come again. */
static bool forsake_all(struct qp *qp, struct remote **at, const struct peer *peer)
{
	bool was_awaited = false;
	struct remote *r;

	while ((r = *at)) {
		if (r->peer == peer)
			was_awaited |= forsake(r);
		if (r->peer || is_in_use(qp, r)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		free(r);
	}
	return was_awaited;
}

bool qp_unlink_peer(struct qp *qp, struct peer *peer)
{
	bool was_awaited = false;
	uint32_t i;

	if (qp->remote.peer == peer)
		was_awaited = forsake(&qp->remote);
	for (i = 0; qp->remotes && i < REMOTE_HASHES; i++)
		was_awaited |= forsake_all(qp, &qp->remotes[i], peer);
	return was_awaited;
}

void qp_unlink(struct qp *qp)
{
	struct message bye = {
		.type = MSG_BYE_QP,
		.qpn = qp->attr.dest_qp_num,
		.from = qp->ibv.qp_num,
	};

	serve_gone(qp);
	if (qp->remotes)
		unlink_remotes(qp);
	if (qp->remote.peer)
		peer_tell(qp->remote.peer, &bye);
	drop(&qp->remote);
	qp->to = NULL;
	qp->links++;
}

/* Sizes are read once: the peer's program may change them any time. */
static int check(const struct qp *qp, struct remote *r, const struct shared_qp *s)
{
	uint32_t cq = load_relaxed(&s->recv_cq);

	if (s->magic != SHARED_MAGIC || s->version != SHARED_VERSION)
		return -EPROTO;
	if (load_relaxed(&s->type) != qp->ibv.qp_type)
		return -EINVAL;
	if (load_acquire(&s->state) == SHARED_QP_GONE)
		return -EAGAIN;		/* it was reset meanwhile: the next answer is a new one */
	if (cq >= SHARED_CQS)
		return -EPROTO;
	r->cq = &r->peer->bell->cqs[cq];
	r->own = r->peer->slot == nic.slot ? cq_at(cq) : NULL;
	return 0;
}

/* Guards, arrivals, then the receive queue, unless that is an SRQ. */
static int map_parts(const struct qp *qp, struct remote *r, struct shared_qp *s, size_t size,
		     int srq_fd)
{
	struct guards guards = { (void *)s->rest, load_relaxed(&s->guards) };
	size_t room = size - sizeof(*s), first = guards.num * sizeof(*guards.at);
	int err;

	if (guards.num > SHARED_GUARDS_MAX || first > room)
		return -EPROTO;
	if (!guard_claim(&r->guard, &guards, qp->ibv.qp_num))
		return -EUSERS;
	err = arrivals_map(&r->arrivals, s->rest + first, room - first,
			   load_relaxed(&s->arrivals));
	if (err)
		return err;
	first += arrivals_bytes(r->arrivals.size);
	if (srq_fd < 0)
		return rq_map(&r->rq, s->rest + first, room - first);
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

static int adopt(struct qp *qp, struct remote *r, const struct message *m, int *fds)
{
	int *srq_fd = message_fd(m, fds, HAS_SRQ), *cord_fd = message_fd(m, fds, HAS_CORD);
	size_t size;
	void *map;
	int err;

	err = shared_map(fds[0], sizeof(struct shared_qp), PROT_READ | PROT_WRITE, &map, &size);
	if (err)
		return err;
	err = check(qp, r, map);
	if (!err && cord_fd)
		err = pull_get(&r->peer->pulls, m->channel, cord_fd, &r->pull);
	if (!err)
		err = map_parts(qp, r, map, size, srq_fd ? *srq_fd : -1);
	if (err) {
		guard_release(&r->guard);
		forget_pull(r);
		munmap(map, size);
		return err;
	}
	r->shared = map;
	r->is_mute = r->is_refused = r->was_asked_anew = false;
	r->size = size;
	return 0;
}

/* Nobody needs asking for one of this process: what a program sends itself is sent at once. */
static int link_here(struct qp *qp, struct remote *r)
{
	struct message answer = { .type = MSG_QP };
	struct qp *there = nic_qp(r->qpn);
	int fds[MESSAGE_FDS_MAX];

	if (!there || !qp_is_datagram(there) || !qp_is_connected(there))
		return -ENOTCONN;
	guest_descriptors(there, fds, &answer.has);
	return adopt(qp, r, &answer, fds);
}

static bool is_here(const struct remote *r)
{
	return r->peer->slot == nic.slot && load_acquire(&r->peer->state) == PEER_READY;
}

static void find_out(struct qp *qp, struct remote *r)
{
	const struct message ask = {
		.type = MSG_ASK_QP,
		.qpn = r->qpn,
		.from = qp->ibv.qp_num,
		.addr = qp->links,
	};

	if (r->peer && load_acquire(&r->peer->state) == PEER_DEAD) {
		peer_put(r->peer);
		r->peer = NULL;
	}
	if (!r->peer && peer_get(r->qpn >> SOFTNIC_QP_INDEX_BITS, &r->peer)) {
		r->peer = NULL;
		r->is_refused = true;
	} else if (qp_is_datagram(qp) && is_here(r)) {
		r->is_refused = link_here(qp, r);
	} else {
		peer_tell(r->peer, &ask);
	}
}

/* What waits for one that is not there is dropped, with the next step. */
static bool is_awaited(const struct qp *qp, const struct remote *r)
{
	return !r->shared && (qp_is_reliable(qp) || !r->is_refused);
}

void qp_link(struct qp *qp)
{
	struct remote **ends;
	uint32_t i, n = deliver_awaits(qp, &ends);

	for (i = 0; qp_is_connected(qp) && i < n; i++) {
		if (!qp_is_reliable(qp) && remote_is_gone(ends[i]))
			drop(ends[i]);
		if (is_awaited(qp, ends[i]))
			find_out(qp, ends[i]);
	}
}

bool qp_ask_anew(struct qp *qp)
{
	struct remote *r = &qp->remote;

	if (r->shared || r->was_asked_anew || !qp_is_connected(qp))
		return false;
	drop(r);
	r->was_asked_anew = true;
	qp_link(qp);
	return r->peer;
}

int qp_linked(struct peer *peer, const struct message *m, int *fds)
{
	struct remote *r;
	struct qp *qp;
	int err = 0;

	pthread_mutex_lock(&nic.lock);
	qp = nic_qp(m->from);
	if (!qp)
		goto unlock;
	pthread_mutex_lock(&qp->lock);
	r = qp->remotes ? *find(qp, m->qpn) : &qp->remote;
	if (r && r->peer == peer && !r->shared && qp_is_connected(qp) && r->qpn == m->qpn &&
	    qp->links == m->addr) {
		err = m->value ? -EINVAL : adopt(qp, r, m, fds);
		r->is_refused = err;
		if (r->shared || !qp_is_reliable(qp))
			req_resume(qp);
	}
	pthread_mutex_unlock(&qp->lock);
unlock:
	pthread_mutex_unlock(&nic.lock);
	return err == -EPROTO ? err : 0;
}

/* One whose receive we have is let go of when we learn that by ourselves. */
void qp_gone(struct peer *peer, const struct message *m)
{
	struct remote **at, *r;
	struct qp *qp;

	pthread_mutex_lock(&nic.lock);
	qp = nic_qp(m->qpn);
	if (!qp || !qp->remotes)
		goto unlock;
	pthread_mutex_lock(&qp->lock);
	at = find(qp, m->from);
	r = *at;
	if (r && r->peer == peer && remote_is_gone(r) && !qp->sq.has_receive) {
		drop(r);
		if (!is_in_use(qp, r)) {
			*at = r->next;
			free(r);
		}
	}
	pthread_mutex_unlock(&qp->lock);
unlock:
	pthread_mutex_unlock(&nic.lock);
}
