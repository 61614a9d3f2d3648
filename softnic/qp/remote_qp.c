// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Finding a remote queue pair. The upper bits of a QP number give the slot of the process. We ask
 * the process there for the queue pair, and the answer arrives on the engine thread. Only sends
 * wait for an answer.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "deliver.h"
#include "gate.h"
#include "softnic/shm/client.h"
#include "softnic/verbs/nic.h"
#include "qp.h"
#include "req.h"
#include "resp.h"
#include "softnic/shm/server.h"

static struct remote_qp **find_remote(struct qp *qp, uint32_t qpn)
{
	struct remote_qp **at = &qp->remotes[qpn % REMOTE_HASHES];

	while (*at && (*at)->qpn != qpn)
		at = &(*at)->next;
	return at;
}

struct remote_qp *remote_qp_get(struct qp *qp, uint32_t qpn)
{
	struct remote_qp **at = find_remote(qp, qpn);

	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (*at)
			(*at)->qpn = qpn;
	}
	return *at;
}

static void release_waker(struct remote_qp *r)
{
	if (r->waker)
		waker_put(&r->peer->wakers, r->waker);
	r->waker = NULL;
}

static void unmap_srq(struct remote_srq *srq)
{
	if (srq->ring)
		munmap(srq->ring, srq->ring_size);
	if (srq->buffers)
		munmap(srq->buffers, srq->buffers_size);
	*srq = (struct remote_srq){ 0 };
}

static void unmap_remote(struct remote_qp *r)
{
	guard_release(&r->guard);
	release_waker(r);
	if (r->peer)
		peer_put(r->peer);
	if (r->shared)
		munmap(r->shared, r->size);
	unmap_srq(&r->srq);
	*r = (struct remote_qp){ .qpn = r->qpn, .next = r->next };
}

static void unlink_remotes(struct qp *qp)
{
	struct remote_qp *r;
	uint32_t i;

	for (i = 0; i < REMOTE_HASHES; i++) {
		while ((r = qp->remotes[i])) {
			qp->remotes[i] = r->next;
			unmap_remote(r);
			free(r);
		}
	}
}

/*
 * An awaited queue pair is requested once more: it may belong to the next process in the slot. We
 * may learn of that process before we learn that the last one has ended.
 */
static bool refuse_remote(struct remote_qp *r)
{
	bool was_awaited = !r->shared && !r->is_mute, was_requested_again = r->was_requested_again;

	unmap_remote(r);
	r->is_refused = was_awaited && was_requested_again;
	r->was_requested_again = was_awaited && !was_requested_again;
	return was_awaited;
}

/* Does the WR at the head of the send queue use @r, or did the last one? */
static bool is_in_use(struct qp *qp, const struct remote_qp *r)
{
	struct remote_qp **ends;
	uint32_t n = deliver_waits_for(qp, &ends);

	while (n)
		if (ends[--n] == r)
			return true;
	return qp->to == r;
}

/* @peer: NULL: any that has ended */
static bool is_of_ended(const struct remote_qp *r, const struct shm_peer *peer)
{
	if (peer || !r->peer)
		return peer && r->peer == peer;
	return load_acquire(&r->peer->state) == PEER_DEAD;
}

/* Walk one list. Entries not in use are freed, because their numbers may never come back. */
static bool refuse_peer_remotes(struct qp *qp, struct remote_qp **at, const struct shm_peer *peer)
{
	bool was_awaited = false;
	struct remote_qp *r;

	while ((r = *at)) {
		if (is_of_ended(r, peer))
			was_awaited |= refuse_remote(r);
		if (r->peer || is_in_use(qp, r)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		free(r);
	}
	return was_awaited;
}

static bool drop_listed(struct qp *qp, const struct shm_peer *peer)
{
	bool was_awaited = false;
	uint32_t i;

	for (i = 0; qp->remotes && i < REMOTE_HASHES; i++)
		was_awaited |= refuse_peer_remotes(qp, &qp->remotes[i], peer);
	return was_awaited;
}

/* Is it too early, because a copy uses the mappings? remote_qp_drop_late() follows the copy. */
static bool must_drop_late(struct qp *qp)
{
	qp->sq.drops |= qp->sq.is_copying;
	return qp->sq.is_copying;
}

bool remote_qp_drop_peer(struct qp *qp, struct shm_peer *peer)
{
	bool was_awaited;

	if (must_drop_late(qp))
		return false;
	was_awaited = qp->remote.peer == peer && refuse_remote(&qp->remote);
	return drop_listed(qp, peer) || was_awaited;
}

bool remote_qp_drop_listed(struct qp *qp, struct shm_peer *peer)
{
	return !must_drop_late(qp) && drop_listed(qp, peer);
}

bool remote_qp_drop_late(struct qp *qp)
{
	bool was_awaited = !qp_is_reliable(qp) && is_of_ended(&qp->remote, NULL) &&
			   refuse_remote(&qp->remote);

	qp->sq.drops = false;
	return drop_listed(qp, NULL) || was_awaited;
}

void remote_qp_drop_all(struct qp *qp)
{
	struct shm_msg bye = {
		.type = MSG_BYE_QP,
		.qpn = qp->attr.dest_qp_num,
		.from = qp->ibv.qp_num,
	};

	server_announce_gone(qp);
	if (qp_names_srqs(qp))
		resp_give_back(qp);
	if (qp->remotes)
		unlink_remotes(qp);
	if (qp->remote.peer)
		peer_send(qp->remote.peer, &bye);
	unmap_remote(&qp->remote);
	qp->to = NULL;
	qp->links++;
}

static uint32_t type_of(const struct qp *qp, const struct remote_qp *r)
{
	if (qp->ibv.qp_type == IBV_QPT_XRC_RECV)
		return IBV_QPT_XRC_SEND;
	if (qp_names_srqs(qp))
		return r == &qp->remote ? (uint32_t)IBV_QPT_XRC_RECV : (uint32_t)SHARED_XRC_SRQ;
	return qp->ibv.qp_type;
}

/* Each size is read once: the peer's program may change shared memory at any time. */
static int check_segment(const struct qp *qp, struct remote_qp *r, const struct shared_qp *s)
{
	uint32_t cq = load_relaxed(&s->recv_cq);

	if (s->magic != SHARED_MAGIC || s->version != SHARED_VERSION)
		return -EPROTO;
	if (load_relaxed(&s->type) != type_of(qp, r))
		return -EINVAL;
	if (load_acquire(&s->state) == SHARED_QP_GONE)
		return -EAGAIN; /* reset meanwhile: ask again */
	if (cq >= SHARED_CQS)
		return -EPROTO;
	r->cq = &r->peer->doorbell_page->cqs[cq];
	r->own = r->peer->slot == nic.slot ? cq_at(cq) : NULL;
	return 0;
}

/* A datagram needs them. */
static int map_trays(struct remote_qp *r, struct shared_qp *s, void *at, size_t room)
{
	if (!load_relaxed(&s->has_trays))
		return load_relaxed(&s->type) == IBV_QPT_UD ? -EPROTO : 0;
	return trays_map(&r->trays, at, room, r->rq.size);
}

/* @fds: of both parts, or NULL without an SRQ. */
static int map_srq(struct remote_srq *srq, const int *fds)
{
	int rc;

	if (!fds)
		return 0;
	rc = shared_map(fds[0], sizeof(struct shared_rq), PROT_READ | PROT_WRITE, &srq->ring,
			&srq->ring_size);
	if (!rc)
		rc = shared_map(fds[1], sizeof(struct shared_rq_own), PROT_READ, &srq->buffers,
				&srq->buffers_size);
	return rc;
}

/* The segment holds guards, arrivals, the receive queue unless an SRQ is used, then trays. */
static int map_parts(const struct qp *qp, struct remote_qp *r, struct shared_qp *s, size_t size)
{
	struct copy_guards guards = { (void *)s->rest, load_relaxed(&s->guards) };
	size_t room = size - sizeof(*s), first = guards.num * sizeof(*guards.at);
	int rc;

	if (guards.num > SHARED_GUARDS_MAX || first > room)
		return -EPROTO;
	if (!guard_claim(&r->guard, &guards, qp->ibv.qp_num))
		return -EUSERS;
	rc = arrivals_map(&r->arrivals, s->rest + first, room - first, load_relaxed(&s->arrivals));
	if (rc)
		return rc;
	first += arrivals_bytes(r->arrivals.size);
	if (r->srq.ring) {
		rc = rq_map(&r->rq, r->srq.buffers, r->srq.buffers_size, r->srq.ring,
			    r->srq.ring_size);
	} else {
		rc = rq_map(&r->rq, s->rest + first, room - first, NULL, 0);
		first += rc ? 0 : rq_own_bytes(r->rq.size, r->rq.sges) + rq_bytes(r->rq.size);
	}
	return rc ? rc : map_trays(r, s, s->rest + first, room - first);
}

static int adopt_remote(struct qp *qp, struct remote_qp *r, const struct shm_msg *m, int *fds)
{
	int *srq_fds = shm_msg_fd(m, fds, HAS_SRQ), *cord_fd = shm_msg_fd(m, fds, HAS_WAKEUP);
	size_t size;
	void *map;
	int rc;

	rc = shared_map(fds[0], sizeof(struct shared_qp), PROT_READ | PROT_WRITE, &map, &size);
	if (rc)
		return rc;
	rc = check_segment(qp, r, map);
	if (!rc && cord_fd)
		rc = waker_get(&r->peer->wakers, m->channel, cord_fd, &r->waker);
	if (!rc)
		rc = map_srq(&r->srq, srq_fds);
	if (!rc)
		rc = map_parts(qp, r, map, size);
	if (rc) {
		unmap_srq(&r->srq);
		guard_release(&r->guard);
		release_waker(r);
		munmap(map, size);
		return rc;
	}
	if (qp_names_srqs(qp) && r != &qp->remote)
		peer_find_ways(r->peer);
	r->shared = map;
	r->is_gated = r->is_mute = r->is_refused = r->was_requested_again = false;
	r->size = size;
	return 0;
}

/* A queue pair of this process is known at once, without a request. */
static int link_own_qp(struct qp *qp, struct remote_qp *r)
{
	struct shm_msg answer = { .type = MSG_QP };
	struct qp *there = nic_qp(r->qpn);
	int fds[SHM_MSG_FDS_MAX];

	if (!there || !qp_is_datagram(there) || !qp_is_connected(there))
		return -ENOTCONN;
	client_qp_fds(there, fds, &answer.has);
	return adopt_remote(qp, r, &answer, fds);
}

static bool is_own_process(const struct remote_qp *r)
{
	return r->peer->slot == nic.slot && load_acquire(&r->peer->state) == PEER_READY;
}

static void request_remote(struct qp *qp, struct remote_qp *r)
{
	const struct shm_msg ask = {
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
	} else if (qp_is_datagram(qp) && is_own_process(r)) {
		r->is_refused = link_own_qp(qp, r);
	} else {
		peer_send(r->peer, &ask);
	}
}

/* The next step drops datagrams that wait for a refused queue pair. */
static bool is_awaited(const struct qp *qp, const struct remote_qp *r)
{
	return !r->shared && !r->is_gated && (qp_is_reliable(qp) || !r->is_refused);
}

void remote_qp_request(struct qp *qp)
{
	struct remote_qp **ends;
	uint32_t i, n = deliver_waits_for(qp, &ends);

	for (i = 0; qp_is_connected(qp) && i < n; i++) {
		if (!qp_is_reliable(qp) && remote_qp_is_gone(ends[i]))
			unmap_remote(ends[i]);
		if (is_awaited(qp, ends[i]))
			request_remote(qp, ends[i]);
	}
}

bool remote_qp_request_again(struct qp *qp)
{
	struct remote_qp *r = &qp->remote;

	if (r->shared || r->is_gated || r->was_requested_again || !qp_is_connected(qp))
		return false;
	unmap_remote(r);
	r->was_requested_again = true;
	remote_qp_request(qp);
	return r->peer;
}

static struct remote_qp *find_asked(struct qp *qp, uint32_t qpn)
{
	if (qp_is_datagram(qp) || (qp_names_srqs(qp) && qpn != qp->remote.qpn))
		return *find_remote(qp, qpn);
	return &qp->remote;
}

static int take_remote(struct qp *qp, struct remote_qp *r, const struct shm_msg *m, int *fds)
{
	if (m->value)
		return -EINVAL;
	return m->has & HAS_GATE ? gate_found(qp, r) : adopt_remote(qp, r, m, fds);
}

/* Does an answer let the send queue go on? @was_gated: before the answer. */
static bool may_go_on(const struct qp *qp, const struct remote_qp *r, bool was_gated)
{
	if (r->is_gated)
		return !was_gated || qp->gate_sender.is_told;
	return r->shared || r != &qp->remote || !qp_is_reliable(qp);
}

int remote_qp_resolved(struct shm_peer *peer, const struct shm_msg *m, int *fds)
{
	struct remote_qp *r;
	bool was_gated;
	struct qp *qp;
	int rc = 0;

	pthread_mutex_lock(&nic.lock);
	qp = nic_qp(m->from);
	if (!qp)
		goto unlock;
	pthread_mutex_lock(&qp->lock);
	r = find_asked(qp, m->qpn);
	if (r && r->peer == peer && !r->shared && qp_is_connected(qp) && r->qpn == m->qpn &&
	    qp->links == m->addr) {
		was_gated = r->is_gated;
		rc = take_remote(qp, r, m, fds);
		r->is_refused = rc;
		if (may_go_on(qp, r, was_gated))
			req_resume(qp);
	}
	pthread_mutex_unlock(&qp->lock);
unlock:
	pthread_mutex_unlock(&nic.lock);
	return rc == -EPROTO ? rc : 0;
}

/* While we hold its receive, or copy, keep the mapping: the next step finds that it is gone. */
void remote_qp_gone(struct shm_peer *peer, const struct shm_msg *m)
{
	struct remote_qp **at, *r;
	struct qp *qp;

	pthread_mutex_lock(&nic.lock);
	qp = nic_qp(m->qpn);
	if (!qp || !qp->remotes)
		goto unlock;
	pthread_mutex_lock(&qp->lock);
	at = find_remote(qp, m->from);
	r = *at;
	if (r && r->peer == peer && remote_qp_is_gone(r) && !qp->sq.has_receive &&
	    !qp->sq.is_copying) {
		unmap_remote(r);
		if (!is_in_use(qp, r)) {
			*at = r->next;
			free(r);
		}
	}
	pthread_mutex_unlock(&qp->lock);
unlock:
	pthread_mutex_unlock(&nic.lock);
}
