// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h> /* for linux/errqueue.h */

#include <linux/errqueue.h>

#include "softnic/roce/psn.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp_far/far.h"
#include "softnic/udp/mad.h"
#include "softnic/qp_far/lost.h"
#include "softnic/udp/neighbor.h"
#include "softnic/qp_far/refused.h"

enum { QUOTED_MAX = 1024, OPCODE_AT = 0, QPN_AT = 5, PSN_AT = 9 };

struct quoted {
	struct udp_address to;
	uint8_t bytes[QUOTED_MAX];
	size_t size;
};

static uint32_t read_24(const uint8_t *at)
{
	return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

static bool is_to(const struct qp *qp, const struct udp_address *to)
{
	const struct udp_path *path = &qp->far->path;

	return path->to.port == to->port &&
	       !memcmp(&path->to.gid, &to->gid, sizeof(path->to.gid));
}

static bool is_sealed(const struct qp *qp)
{
	return qp->far->agree->state == AGREE_SEALED;
}

/* Responses do not count: their PSNs would be easier to guess. */
static bool is_in_flight(const struct qp *qp, const struct quoted *q)
{
	const struct roce_requester *r = &qp->far->roce.req;
	uint64_t psn = roce_psn_extend(read_24(q->bytes + PSN_AT), r->acked);
	uint32_t traits = roce_packet_traits(q->bytes[OPCODE_AT]);

	return traits & ROCE_IS_KNOWN && !(traits & ROCE_IS_RESPONSE) &&
	       qp->attr.dest_qp_num == read_24(q->bytes + QPN_AT) && psn + 1 >= r->acked &&
	       psn < r->sent;
}

/* Before the peer has answered, it may hear another port: far_timer.c. */
static bool shares_the_peer(const struct qp *qp, const struct quoted *q)
{
	return far_is_connected(qp) && qp_is_connected(qp) && qp->far->is_known &&
	       is_to(qp, &q->to);
}

/* A sealed packet shows no PSN, but only this end can have sealed it. */
static bool is_refused(const struct qp *qp, const struct quoted *q)
{
	struct quoted copy;

	if (!shares_the_peer(qp, q))
		return false;
	if (!is_sealed(qp))
		return is_in_flight(qp, q);
	if (qp->attr.dest_qp_num != read_24(q->bytes + QPN_AT))
		return false;
	copy = *q;
	return seal_is_own(&qp->far->agree->seal, copy.bytes, copy.size);
}

/*
 * Hosts quote the first 500 bytes or so. So the queue pair asks the peer by a short packet, and a
 * host without the peer refuses that, too.
 */
static void ask_all(const struct quoted *q)
{
	struct qp *qp = NULL;

	while ((qp = nic_next_qp(qp))) {
		pthread_mutex_lock(&qp->lock);
		if (shares_the_peer(qp, q) && is_sealed(qp) &&
		    qp->attr.dest_qp_num == read_24(q->bytes + QPN_AT)) {
			roce_qp_ask(&qp->far->roce, softnic_loop_now_ns());
			far_run(qp);
		}
		pthread_mutex_unlock(&qp->lock);
	}
}

/* Declares each queue pair that @matches lost. Return: whether any does. */
static bool lose_all(const struct quoted *q, bool (*matches)(const struct qp *qp,
							     const struct quoted *q))
{
	struct qp *qp = NULL;
	bool any = false;

	while ((qp = nic_next_qp(qp))) {
		pthread_mutex_lock(&qp->lock);
		if (matches(qp, q)) {
			neighbor_ended(&q->to); /* first: the program may call again at once */
			lost_declare(qp);
			any = true;
		}
		pthread_mutex_unlock(&qp->lock);
	}
	return any;
}

/* A packet of ours proves the message. Then all queue pairs of the same port have lost it. */
static void take(const struct quoted *q)
{
	if (q->size < ROCE_BTH_BYTES)
		return;
	neighbor_refused(&q->to);
	if (read_24(q->bytes + QPN_AT) == MAD_QPN) {
		mad_refused(&q->to, q->bytes, q->size);
		return;
	}
	if (lose_all(q, is_refused))
		lose_all(q, shares_the_peer);
	else
		ask_all(q);
}

static bool is_port_unreachable(struct msghdr *m)
{
	struct sock_extended_err error;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != IPPROTO_IPV6 || c->cmsg_type != IPV6_RECVERR)
			continue;
		memcpy(&error, CMSG_DATA(c), sizeof(error));
		return error.ee_errno == ECONNREFUSED;
	}
	return false;
}

void refused_take(int fd)
{
	struct sockaddr_in6 to = { 0 };
	struct quoted q;
	struct iovec iov = { q.bytes, sizeof(q.bytes) };
	union {
		char bytes[256];
		struct cmsghdr align;
	} control;
	struct msghdr m;
	ssize_t n;

	for (;;) {
		m = (struct msghdr){ &to, sizeof(to), &iov, 1, control.bytes, sizeof(control), 0 };
		n = recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);
		if (n < 0)
			return;
		q.size = (size_t)n;
		q.to = (struct udp_address){
			.port = ntohs(to.sin6_port),
			.ifindex = to.sin6_scope_id,
		};
		memcpy(q.to.gid.raw, &to.sin6_addr, sizeof(q.to.gid.raw));
		if (is_port_unreachable(&m))
			take(&q);
	}
}
