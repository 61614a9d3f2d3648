/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages that come in. Each may come late, twice, or from a stranger: a handler first finds the
 * connection, then acts by its state, and ignores what does not fit.
 */
#include <string.h>

#include "softnic/roce_cm/conn.h"

enum { TRANSPORT_RC = 0, TRANSPORT_UC = 1 };

static bool is_from(const struct roce_cm_conn *conn, const struct roce_cm_path *path)
{
	return conn->state != ROCE_CM_FREE && conn->state != ROCE_CM_ENDED &&
	       !memcmp(conn->path.peer, path->peer, sizeof(path->peer));
}

/* The connection that a message by @path names. */
static struct roce_cm_conn *named(struct roce_cm *cm, const struct roce_mad *m,
				  const struct roce_cm_path *path)
{
	uint32_t place = m->remote_id & cm->place_mask;
	struct roce_cm_conn *conn = &cm->conns[place];

	if (place >= cm->nr_conns || !is_from(conn, path) || conn->local_id != m->remote_id ||
	    conn->is_sidr)
		return NULL;
	/* Before a REP, an answer tells the peer's ID, and proves that the peer has the REQ. */
	if (conn->state == ROCE_CM_REQ_SENT ? conn->tid != m->tid : conn->remote_id != m->local_id)
		return NULL;
	conn->path = *path;
	return conn;
}

/* The connection for which the peer has the ID @m->local_id. */
static struct roce_cm_conn *known_as(struct roce_cm *cm, const struct roce_mad *m,
				     const struct roce_cm_path *path, bool is_sidr)
{
	uint32_t i;

	for (i = 0; i < cm->nr_used; i++) {
		struct roce_cm_conn *conn = &cm->conns[i];

		if (is_from(conn, path) && conn->is_sidr == is_sidr &&
		    conn->state != ROCE_CM_REQ_SENT && conn->remote_id == m->local_id)
			return conn;
	}
	return NULL;
}

/* A connection whose peer has put its queue pair to another use since. */
static struct roce_cm_conn *stale(struct roce_cm *cm, const struct roce_mad *req,
				  const struct roce_cm_path *path)
{
	uint32_t i;

	for (i = 0; i < cm->nr_used; i++) {
		struct roce_cm_conn *conn = &cm->conns[i];

		if (is_from(conn, path) && !conn->is_sidr && conn->state != ROCE_CM_REQ_SENT &&
		    conn->remote_qpn == req->qpn && conn->remote_guid == req->ca_guid)
			return conn;
	}
	return NULL;
}

static void refuse_req(struct roce_cm *cm, const struct roce_mad *req,
		       const struct roce_cm_path *path, uint16_t reason)
{
	struct roce_mad rej = { .kind = ROCE_MAD_REJ,
				.tid = req->tid,
				.remote_id = req->local_id,
				.answered = ROCE_MAD_OF_REQ,
				.reason = reason };

	roce_conn_refuse(cm, &rej, path);
}

/* Answers a REQ or SIDR_REQ that came again. */
static void repeat_answer(struct roce_cm_conn *conn)
{
	switch (conn->state) {
	case ROCE_CM_REQ_RCVD:
		conn->sends_reply = conn->reply.kind == ROCE_MAD_MRA;
		break;
	case ROCE_CM_REP_SENT:
		conn->sends_last = true;
		break;
	case ROCE_CM_TIMEWAIT:
		conn->sends_reply = conn->is_sidr;
		break;
	default:
		break;
	}
}

static void drop_stale(struct roce_cm *cm, struct roce_cm_conn *old, const struct roce_mad *req,
		       const struct roce_cm_path *path, uint64_t now_ns)
{
	refuse_req(cm, req, path, ROCE_MAD_STALE);
	if (old->state == ROCE_CM_ESTABLISHED)
		roce_conn_hang_up(old, now_ns);
}

bool roce_cm_knows(struct roce_cm *cm, const struct roce_mad *req, const struct roce_cm_path *path)
{
	return known_as(cm, req, path, req->kind == ROCE_MAD_SIDR_REQ);
}

static void take_req(struct roce_cm *cm, const struct roce_mad *m, const struct roce_cm_path *path,
		     uint64_t now_ns)
{
	struct roce_cm_conn *conn = known_as(cm, m, path, m->kind == ROCE_MAD_SIDR_REQ), *old;
	bool is_sidr = m->kind == ROCE_MAD_SIDR_REQ;

	if (conn) {
		repeat_answer(conn);
		return;
	}
	if (!is_sidr && m->transport != TRANSPORT_RC && m->transport != TRANSPORT_UC) {
		refuse_req(cm, m, path, ROCE_MAD_INVALID_TRANSPORT);
		return;
	}
	old = is_sidr ? NULL : stale(cm, m, path);
	if (old) {
		drop_stale(cm, old, m, path, now_ns);
		return;
	}
	conn = roce_conn_take(cm, ROCE_CM_REQ_RCVD, path, m->tid);
	if (!conn) {
		if (!is_sidr)
			refuse_req(cm, m, path, ROCE_MAD_NO_RESOURCES);
		return;
	}
	roce_conn_take_over(conn, m, m->local_timeout);
	conn->remote_id = m->local_id;
	conn->remote_qpn = m->qpn;
	conn->remote_guid = m->ca_guid;
	roce_conn_tell(conn, ROCE_CM_REQUEST, m);
}

static void take_rep(struct roce_cm *cm, const struct roce_mad *m, const struct roce_cm_path *path)
{
	struct roce_cm_conn *conn = named(cm, m, path);
	struct roce_mad rej = { .kind = ROCE_MAD_REJ,
				.tid = m->tid,
				.remote_id = m->local_id,
				.answered = ROCE_MAD_OF_REP,
				.reason = ROCE_MAD_INVALID_ID };

	if (!conn) {
		roce_conn_refuse(cm, &rej, path);
		return;
	}
	if (conn->state == ROCE_CM_REP_RCVD || conn->state == ROCE_CM_ESTABLISHED) {
		conn->sends_reply = conn->reply.kind == ROCE_MAD_MRA ||
				    conn->reply.kind == ROCE_MAD_RTU;
		return;
	}
	if (conn->state != ROCE_CM_REQ_SENT)
		return;
	conn->state = ROCE_CM_REP_RCVD;
	conn->remote_id = m->local_id;
	conn->remote_qpn = m->qpn;
	conn->remote_guid = m->ca_guid;
	conn->sends_last = false;
	conn->deadline_ns = ROCE_CM_NEVER;
	roce_conn_tell(conn, ROCE_CM_REPLY, m);
}

static void take_rtu(struct roce_cm *cm, const struct roce_mad *m, const struct roce_cm_path *path)
{
	struct roce_cm_conn *conn = named(cm, m, path);

	if (conn)
		roce_cm_heard_packet(cm, conn);
}

static bool is_awaited(const struct roce_cm_conn *conn, enum roce_mad_answered answered)
{
	return (conn->state == ROCE_CM_REQ_SENT && answered == ROCE_MAD_OF_REQ) ||
	       (conn->state == ROCE_CM_REP_SENT && answered == ROCE_MAD_OF_REP);
}

static void take_mra(struct roce_cm *cm, const struct roce_mad *m, const struct roce_cm_path *path,
		     uint64_t now_ns)
{
	struct roce_cm_conn *conn = named(cm, m, path);

	if (!conn || !is_awaited(conn, (enum roce_mad_answered)m->answered))
		return;
	conn->sends_last = false;
	conn->deadline_ns = now_ns + conn->timeout_ns + roce_mad_timeout_ns(m->service_timeout);
}

static void take_rej(struct roce_cm *cm, const struct roce_mad *m, const struct roce_cm_path *path,
		     uint64_t now_ns)
{
	/* A peer that got no answer does not know this end's ID. */
	struct roce_cm_conn *conn = m->remote_id ? named(cm, m, path) :
						   known_as(cm, m, path, false);

	if (!conn)
		return;
	switch (conn->state) {
	case ROCE_CM_REQ_SENT:
	case ROCE_CM_REQ_RCVD:
	case ROCE_CM_REP_SENT:
	case ROCE_CM_REP_RCVD:
		roce_conn_end(conn, ROCE_CM_REJECTED, m);
		break;
	case ROCE_CM_ESTABLISHED: /* the peer gave up, or knows the connection no more */
	case ROCE_CM_DREQ_SENT:
		roce_conn_time_wait(conn, now_ns);
		break;
	default:
		break;
	}
}

static void take_dreq(struct roce_cm *cm, const struct roce_mad *m, const struct roce_cm_path *path,
		      uint64_t now_ns)
{
	struct roce_cm_conn *conn = named(cm, m, path);
	struct roce_mad drep = { .kind = ROCE_MAD_DREP,
				 .tid = m->tid,
				 .local_id = m->remote_id,
				 .remote_id = m->local_id };

	if (!conn) { /* the time wait is over: only the answer is missing */
		roce_conn_refuse(cm, &drep, path);
		return;
	}
	if (conn->qpn != m->qpn || conn->state == ROCE_CM_REQ_SENT ||
	    conn->state == ROCE_CM_REQ_RCVD)
		return;
	roce_conn_answer(conn, &drep);
	conn->reply.tid = m->tid;
	if (conn->state != ROCE_CM_TIMEWAIT)
		roce_conn_time_wait(conn, now_ns);
}

static void take_drep(struct roce_cm *cm, const struct roce_mad *m, const struct roce_cm_path *path,
		      uint64_t now_ns)
{
	struct roce_cm_conn *conn = named(cm, m, path);

	if (conn && conn->state == ROCE_CM_DREQ_SENT)
		roce_conn_time_wait(conn, now_ns);
}

static void take_sidr_rep(struct roce_cm *cm, const struct roce_mad *m,
			  const struct roce_cm_path *path)
{
	uint32_t place = m->local_id & cm->place_mask;
	struct roce_cm_conn *conn = &cm->conns[place];

	if (place >= cm->nr_conns || !is_from(conn, path) || conn->local_id != m->local_id ||
	    conn->tid != m->tid || !conn->is_sidr || conn->state != ROCE_CM_REQ_SENT)
		return;
	roce_conn_end(conn, ROCE_CM_REPLY, m);
}

void roce_cm_received(struct roce_cm *cm, const struct roce_mad *m, const struct roce_cm_path *path,
		      uint64_t now_ns)
{
	switch (m->kind) {
	case ROCE_MAD_REQ:
	case ROCE_MAD_SIDR_REQ:
		take_req(cm, m, path, now_ns);
		break;
	case ROCE_MAD_REP:
		take_rep(cm, m, path);
		break;
	case ROCE_MAD_RTU:
		take_rtu(cm, m, path);
		break;
	case ROCE_MAD_MRA:
		take_mra(cm, m, path, now_ns);
		break;
	case ROCE_MAD_REJ:
		take_rej(cm, m, path, now_ns);
		break;
	case ROCE_MAD_DREQ:
		take_dreq(cm, m, path, now_ns);
		break;
	case ROCE_MAD_DREP:
		take_drep(cm, m, path, now_ns);
		break;
	case ROCE_MAD_SIDR_REP:
		take_sidr_rep(cm, m, path);
		break;
	default:
		break;
	}
}
