// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Most consecutive packets belong to one queue pair. The thread keeps that queue pair locked for
 * the whole run, and lets the queue pair answer once at the end.
 */
#include <string.h>

#include "softnic/tap/peers.h"
#include "softnic/verbs/ah.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp_far/far.h"
#include "softnic/qp_far/far_input.h"
#include "softnic/qp_far/far_seal.h"
#include "softnic/qp_far/reply.h"
#include "softnic/qp_far/stage.h"

static struct qp *current; /* locked, with nic.lock; or NULL */
static uint64_t now_ns; /* when it was locked: reading the clock for each packet costs too much */

static enum ibv_event_type event_of(enum roce_status status)
{
	return status == ROCE_REM_ACCESS  ? IBV_EVENT_QP_ACCESS_ERR :
	       status == ROCE_REM_INV_REQ ? IBV_EVENT_QP_REQ_ERR :
					    IBV_EVENT_QP_FATAL;
}

void far_input_end(void)
{
	struct qp *qp = current;

	if (!qp)
		return;
	current = NULL;
	if (!qp_is_datagram(qp)) {
		stage_flush(qp);
		reply_heard(qp, now_ns);
		far_run(qp); /* the NAK leaves before the queue pair fails */
		if (qp->far->roce.error)
			qp_error_event(qp, event_of(qp->far->roce.error));
	}
	pthread_mutex_unlock(&qp->lock);
	pthread_mutex_unlock(&nic.lock);
}

static bool switch_to(uint32_t qpn)
{
	struct qp *qp;

	if (current && current->ibv.qp_num == qpn)
		return true;
	far_input_end();
	pthread_mutex_lock(&nic.lock);
	qp = nic_qp(qpn);
	if (qp) {
		pthread_mutex_lock(&qp->lock);
		if (qp->far && qp_is_connected(qp)) {
			current = qp;
			now_ns = softnic_loop_now_ns();
			return true;
		}
		pthread_mutex_unlock(&qp->lock);
	}
	pthread_mutex_unlock(&nic.lock);
	return false;
}

/* Packets that the transport took, and was not misled by. */
static uint64_t count_accepted(const struct roce_counters *c)
{
	return c->refused[ROCE_ACCEPTED] - c->duplicates - c->gaps - c->stray;
}

/*
 * A packet whose PSN fits came from the peer. If its port is that of a softnic with the queue pair
 * number of our peer, later packets go there; otherwise the peer hears port 4791 only.
 */
static void learn(struct qp *qp, const struct udp_packet *packet)
{
	struct far *f = qp->far;

	f->is_known = true;
	f->path.to.port = packet->from.port == udp_socket_port_of_qpn(qp->attr.dest_qp_num) ?
				  packet->from.port :
				  UDP_ROCE_PORT;
}

static void take_datagram(struct qp *qp, const struct udp_packet *packet,
			  const struct roce_packet *decoded)
{
	const struct av av = { .sgid = packet->from.gid, .dgid = packet->to.gid, .hop_limit = 64 };
	struct ibv_grh grh;

	ah_fill_grh(&av, decoded->payload_bytes, &grh);
	qp->far->grh_flags = IBV_WC_GRH | (ah_is_between_ipv4(&av) ? RECV_IPV4 : 0);
	roce_qp_input(&qp->far->roce, decoded, (const uint8_t *)&grh, now_ns);
	far_count(qp, peers_get(&packet->from.gid));
}

/* Returns whether the transport was not misled. */
static bool take(struct qp *qp, const struct roce_packet *decoded)
{
	struct roce_qp *roce = &qp->far->roce;
	uint64_t accepted = count_accepted(&roce->counters);

	stage_begin(qp, decoded->opcode);
	roce_qp_input(roce, decoded, NULL, now_ns);
	stage_end(qp, decoded->opcode);
	return count_accepted(&roce->counters) != accepted;
}

static bool is_of_peer(const struct qp *qp, const struct udp_packet *packet)
{
	return !memcmp(&packet->from.gid, &qp->far->path.to.gid, sizeof(packet->from.gid));
}

void far_input(const struct udp_packet *packet, const struct roce_packet *decoded)
{
	struct agree *agree;

	if (!switch_to(decoded->dest_qpn))
		return;
	if (qp_is_datagram(current)) {
		take_datagram(current, packet, decoded);
		return;
	}
	agree = current->far->agree;
	if (!is_of_peer(current, packet))
		return;
	if (!agree_takes_clear(agree)) {
		count(forged, 1);
		return;
	}
	if (take(current, decoded)) {
		learn(current, packet);
		agree_heard_clear(agree, current->far->path.to.port != UDP_ROCE_PORT);
	}
	far_complete(current);
}

void far_input_sealed(const struct udp_packet *packet)
{
	struct roce_packet decoded;

	if (!switch_to(seal_dest_qpn(packet->bytes)) || qp_is_datagram(current) ||
	    !is_of_peer(current, packet) || !far_seal_open(current, packet, &decoded))
		return;
	take(current, &decoded);
	far_complete(current);
}

void far_input_message(const struct udp_packet *packet)
{
	struct agree_message m;

	if (!agree_decode(&m, packet->bytes, packet->size))
		return;
	far_input_end();
	far_seal_load();
	if (switch_to(m.dest_qpn) && !qp_is_datagram(current) && is_of_peer(current, packet))
		far_seal_message(current, &m);
}
