/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Commands, time, and what goes out. receive.c has the other half: messages that come in. */
#include "softnic/roce_cm/cm.h"

#include <errno.h>
#include <string.h>

#include "softnic/roce_cm/conn.h"

void roce_cm_init(struct roce_cm *cm, struct roce_cm_conn *conns, uint32_t nr_conns,
		  uint64_t ca_guid, uint64_t seed)
{
	uint32_t places = 1;

	memset(cm, 0, sizeof(*cm));
	memset(conns, 0, nr_conns * sizeof(*conns));
	cm->conns = conns;
	cm->nr_conns = nr_conns;
	cm->ca_guid = ca_guid;
	cm->random = seed;
	while (places < nr_conns)
		places *= 2;
	cm->place_mask = places - 1;
}

void roce_cm_set_prefix(struct roce_cm *cm, uint32_t prefix, uint32_t bits)
{
	cm->prefix = prefix;
	cm->prefix_bits = bits;
}

int roce_cm_connect(struct roce_cm *cm, const struct roce_mad *req, const struct roce_cm_path *path,
		    uint64_t now_ns, struct roce_cm_conn **conn)
{
	struct roce_cm_conn *taken;
	struct roce_mad asked = *req;

	if (req->kind != ROCE_MAD_REQ && req->kind != ROCE_MAD_SIDR_REQ)
		return -EINVAL;
	taken = roce_conn_take(cm, ROCE_CM_REQ_SENT, path, 0);
	if (!taken)
		return -ENOBUFS;
	taken->tid = roce_conn_tid(cm);
	taken->qpn = req->qpn;
	asked.ca_guid = req->kind == ROCE_MAD_REQ ? cm->ca_guid : 0;
	roce_conn_take_over(taken, req, req->remote_timeout);
	roce_conn_ask(taken, &asked, now_ns);
	*conn = taken;
	return 0;
}

bool roce_cm_repeat(struct roce_cm *cm, struct roce_cm_conn *conn, uint64_t now_ns)
{
	(void)cm;
	if (conn->state != ROCE_CM_REQ_SENT || conn->deadline_ns > now_ns + conn->timeout_ns)
		return false;
	conn->sends_last = true;
	return true;
}

static int accept_sidr(struct roce_cm_conn *conn, const struct roce_mad *rep, uint64_t now_ns)
{
	if (rep->kind != ROCE_MAD_SIDR_REP)
		return -EINVAL;
	roce_conn_answer(conn, rep);
	conn->state = ROCE_CM_TIMEWAIT; /* in which a repeated request gets the same answer */
	conn->deadline_ns = now_ns + conn->wait_ns;
	return 0;
}

int roce_cm_accept(struct roce_cm *cm, struct roce_cm_conn *conn, const struct roce_mad *rep,
		   uint64_t now_ns)
{
	struct roce_mad asked = *rep;

	if (conn->state != ROCE_CM_REQ_RCVD)
		return -EINVAL;
	if (conn->is_sidr)
		return accept_sidr(conn, rep, now_ns);
	if (rep->kind != ROCE_MAD_REP)
		return -EINVAL;
	asked.ca_guid = cm->ca_guid;
	conn->qpn = rep->qpn;
	conn->state = ROCE_CM_REP_SENT;
	conn->sends_reply = false; /* an MRA says less than the REP */
	roce_conn_ask(conn, &asked, now_ns);
	return 0;
}

static void send_rej(struct roce_cm *cm, struct roce_cm_conn *conn, uint16_t reason,
		     enum roce_mad_answered answered, const uint8_t *private_data, size_t length)
{
	struct roce_mad rej = { .kind = ROCE_MAD_REJ,
				.tid = conn->tid,
				.local_id = conn->local_id,
				.remote_id = conn->remote_id,
				.reason = reason,
				.answered = (uint8_t)answered };

	if (length)
		memcpy(rej.private_data, private_data, length);
	if (reason == ROCE_MAD_TIMEOUT) { /* the peer may know this end only by its GUID */
		uint8_t i;

		rej.info_bytes = sizeof(cm->ca_guid);
		for (i = 0; i < rej.info_bytes; i++)
			rej.info[i] = (uint8_t)(cm->ca_guid >> (56 - 8 * i));
	}
	roce_conn_refuse(cm, &rej, &conn->path);
}

int roce_cm_reject(struct roce_cm *cm, struct roce_cm_conn *conn, uint16_t reason,
		   const uint8_t *private_data, size_t length)
{
	bool is_req = conn->state == ROCE_CM_REQ_RCVD;

	if ((!is_req && conn->state != ROCE_CM_REP_RCVD) || conn->is_sidr ||
	    length > roce_mad_private_bytes(ROCE_MAD_REJ))
		return -EINVAL;
	send_rej(cm, conn, reason, is_req ? ROCE_MAD_OF_REQ : ROCE_MAD_OF_REP, private_data,
		 length);
	roce_conn_end(conn, ROCE_CM_EVENTS, NULL);
	return 0;
}

int roce_cm_wait(struct roce_cm *cm, struct roce_cm_conn *conn, uint8_t service_timeout)
{
	bool is_req = conn->state == ROCE_CM_REQ_RCVD;
	struct roce_mad mra = { .kind = ROCE_MAD_MRA,
				.answered = is_req ? ROCE_MAD_OF_REQ : ROCE_MAD_OF_REP,
				.service_timeout = service_timeout };

	(void)cm;
	if ((!is_req && conn->state != ROCE_CM_REP_RCVD) || conn->is_sidr)
		return -EINVAL;
	roce_conn_answer(conn, &mra);
	return 0;
}

int roce_cm_confirm(struct roce_cm *cm, struct roce_cm_conn *conn)
{
	static const struct roce_mad rtu = { .kind = ROCE_MAD_RTU };

	(void)cm;
	if (conn->state != ROCE_CM_REP_RCVD)
		return -EINVAL;
	conn->state = ROCE_CM_ESTABLISHED;
	roce_conn_answer(conn, &rtu);
	return 0;
}

void roce_cm_heard_packet(struct roce_cm *cm, struct roce_cm_conn *conn)
{
	(void)cm;
	if (conn->state != ROCE_CM_REP_SENT)
		return;
	conn->state = ROCE_CM_ESTABLISHED;
	conn->sends_last = false;
	conn->deadline_ns = ROCE_CM_NEVER;
	roce_conn_tell(conn, ROCE_CM_IS_ESTABLISHED, NULL);
}

int roce_cm_disconnect(struct roce_cm *cm, struct roce_cm_conn *conn, uint64_t now_ns)
{
	(void)cm;
	if (conn->state != ROCE_CM_ESTABLISHED)
		return -EINVAL;
	roce_conn_hang_up(conn, now_ns);
	return 0;
}

void roce_cm_release(struct roce_cm *cm, struct roce_cm_conn *conn, uint64_t now_ns)
{
	conn->is_released = true;
	conn->events = 0;
	switch (conn->state) {
	case ROCE_CM_ESTABLISHED:
	case ROCE_CM_REP_SENT: /* the peer may be established already */
		roce_conn_hang_up(conn, now_ns);
		break;
	case ROCE_CM_REQ_SENT:
		if (!conn->is_sidr)
			send_rej(cm, conn, ROCE_MAD_TIMEOUT, ROCE_MAD_OF_REQ, NULL, 0);
		roce_conn_end(conn, ROCE_CM_EVENTS, NULL);
		break;
	case ROCE_CM_REQ_RCVD:
	case ROCE_CM_REP_RCVD:
		roce_cm_reject(cm, conn, ROCE_MAD_CONSUMER, NULL, 0);
		/* fall through */
	case ROCE_CM_ENDED:
		roce_conn_end(conn, ROCE_CM_EVENTS, NULL);
		break;
	default:
		break;
	}
}

/* No answer for one timeout. */
static void expire(struct roce_cm *cm, struct roce_cm_conn *conn, uint64_t now_ns)
{
	enum roce_cm_state state = conn->state;

	if (state == ROCE_CM_TIMEWAIT) {
		roce_conn_end(conn, conn->is_sidr ? ROCE_CM_EVENTS : ROCE_CM_FINISHED, NULL);
		return;
	}
	if (conn->sends_left) {
		conn->sends_left--;
		conn->sends_last = true;
		conn->deadline_ns = now_ns + conn->timeout_ns;
		return;
	}
	if (state == ROCE_CM_DREQ_SENT) {
		roce_conn_time_wait(conn, now_ns);
		return;
	}
	if (!conn->is_sidr)
		send_rej(cm, conn, ROCE_MAD_TIMEOUT,
			 state == ROCE_CM_REQ_SENT ? ROCE_MAD_OF_REQ : ROCE_MAD_OF_REP, NULL, 0);
	roce_conn_end(conn, ROCE_CM_UNREACHABLE, NULL);
}

void roce_cm_expired(struct roce_cm *cm, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < cm->nr_used; i++)
		if (cm->conns[i].state != ROCE_CM_FREE && cm->conns[i].deadline_ns <= now_ns)
			expire(cm, &cm->conns[i], now_ns);
}

uint64_t roce_cm_deadline_ns(const struct roce_cm *cm)
{
	uint64_t deadline_ns = ROCE_CM_NEVER;
	uint32_t i;

	for (i = 0; i < cm->nr_used; i++)
		if (cm->conns[i].state != ROCE_CM_FREE && cm->conns[i].deadline_ns < deadline_ns)
			deadline_ns = cm->conns[i].deadline_ns;
	return deadline_ns;
}

static bool take_mad(struct roce_cm_conn *conn, struct roce_mad *m)
{
	if (conn->state == ROCE_CM_FREE || (!conn->sends_last && !conn->sends_reply))
		return false;
	if (conn->sends_reply) {
		*m = conn->reply;
		conn->sends_reply = false;
	} else {
		*m = conn->last;
		conn->sends_last = false;
	}
	return true;
}

bool roce_cm_next_mad(struct roce_cm *cm, struct roce_mad *m, struct roce_cm_path *path)
{
	struct roce_cm_refusal *refusal;
	struct roce_cm_conn *conn;
	uint32_t i;

	if (cm->refusals_head != cm->refusals_tail) {
		refusal = &cm->refusals[cm->refusals_head++ % ROCE_CM_REFUSALS];
		*m = refusal->mad;
		*path = refusal->path;
		return true;
	}
	for (i = 0; i < cm->nr_used; i++) {
		conn = &cm->conns[cm->turn];
		if (take_mad(conn, m)) {
			*path = conn->path;
			return true;
		}
		cm->turn = (cm->turn + 1) % cm->nr_used;
	}
	return false;
}

static bool has_mad(enum roce_cm_event_kind kind)
{
	return kind == ROCE_CM_REQUEST || kind == ROCE_CM_REPLY || kind == ROCE_CM_REJECTED;
}

bool roce_cm_next_event(struct roce_cm *cm, struct roce_cm_event *event)
{
	struct roce_cm_conn *conn;
	uint32_t i, kind;

	for (i = 0; i < cm->nr_used; i++) {
		conn = &cm->conns[i];
		if (conn->state == ROCE_CM_FREE || !conn->events)
			continue;
		for (kind = 0; !(conn->events & 1 << kind); kind++)
			;
		conn->events &= (uint8_t) ~(1 << kind);
		event->kind = (enum roce_cm_event_kind)kind;
		event->conn = conn;
		event->mad = has_mad(event->kind) ? &conn->heard : NULL;
		return true;
	}
	return false;
}
