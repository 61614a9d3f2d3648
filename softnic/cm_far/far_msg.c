// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <string.h>

#include "softnic/cm_far/far_msg.h"
#include "softnic/roce_cm/cma.h"

enum {
	ANSWER_TIMEOUT = 17, /* 4.096 us << 17: half a second */
	RETRIES_MAX = 15, /* 4 bits: a peer that does not answer is unreachable after 9 s */
	PKEY = 0xffff,
	HOP_LIMIT = 64,
	RATE_10_GBPS = 3,
	TRANSPORT_RC = 0,
	TRANSPORT_UC = 1,
};

static const uint16_t kinds[] = {
	[CM_MSG_REQ] = ROCE_MAD_REQ,	       [CM_MSG_REP] = ROCE_MAD_REP,
	[CM_MSG_REJ] = ROCE_MAD_REJ,	       [CM_MSG_RTU] = ROCE_MAD_RTU,
	[CM_MSG_SIDR_REQ] = ROCE_MAD_SIDR_REQ, [CM_MSG_SIDR_REP] = ROCE_MAD_SIDR_REP,
};

static void write_names(struct roce_mad *m, const struct cm_id *id, const struct cm_msg *msg)
{
	union cm_addr src = msg->src, dst = msg->dst;
	struct roce_cma names = { 0 };

	cm_addr_unmap(&src);
	cm_addr_unmap(&dst);
	names.is_ipv6 = dst.sa.sa_family == AF_INET6;
	names.src_port = ntohs(cm_addr_port(&src));
	if (names.is_ipv6) {
		memcpy(names.src, &src.in6.sin6_addr, sizeof(names.src));
		memcpy(names.dst, &dst.in6.sin6_addr, sizeof(names.dst));
	} else {
		memcpy(names.src, &src.in.sin_addr, sizeof(src.in.sin_addr));
		memcpy(names.dst, &dst.in.sin_addr, sizeof(dst.in.sin_addr));
	}
	roce_cma_encode(&names, m->private_data);
	m->service_id =
		roce_cma_service_id((enum roce_cma_space)id->id.ps, ntohs(cm_addr_port(&dst)));
}

static void write_path(struct roce_mad *m, const struct cm_id *id)
{
	const struct rdma_ib_addr *ib = &id->id.route.addr.addr.ibaddr;

	m->transport = id->id.qp_type == IBV_QPT_UC ? TRANSPORT_UC : TRANSPORT_RC;
	m->pkey = PKEY;
	m->mtu = id->path.mtu;
	m->hop_limit = HOP_LIMIT;
	m->rate = RATE_10_GBPS;
	m->traffic_class = id->path.traffic_class;
	m->ack_timeout = id->ack_timeout;
	memcpy(m->local_gid, &ib->sgid, sizeof(m->local_gid));
	memcpy(m->remote_gid, &ib->dgid, sizeof(m->remote_gid));
}

void far_msg_write(struct roce_mad *m, const struct cm_id *id, const struct cm_msg *msg)
{
	size_t at = 0;

	memset(m, 0, sizeof(*m));
	m->kind = kinds[msg->type];
	m->qpn = msg->qp_num;
	m->psn = msg->psn;
	m->responder_resources = msg->responder_resources;
	m->initiator_depth = msg->initiator_depth;
	m->flow_control = msg->flow_control;
	m->retry_count = msg->retry_count;
	m->rnr_retry_count = msg->rnr_retry_count;
	m->srq = msg->srq;
	m->vendor_id = msg->ece_vendor;
	m->options = msg->ece_options;
	m->reason = msg->type == CM_MSG_REJ ? msg->reason : 0;
	m->status = msg->type == CM_MSG_SIDR_REP ? (uint8_t)msg->reason : 0;
	m->qkey = cm_id_is_datagram(id) ? RDMA_UDP_QKEY : 0;
	if (far_msg_is_request(m)) {
		m->remote_timeout = ANSWER_TIMEOUT;
		m->local_timeout = ANSWER_TIMEOUT;
		m->max_cm_retries = RETRIES_MAX;
		write_names(m, id, msg);
		write_path(m, id);
		at = ROCE_CMA_BYTES;
	}
	memcpy(m->private_data + at, msg->private_data, msg->private_len);
}

static enum cm_msg_type type_of(const struct roce_mad *m)
{
	enum cm_msg_type type = CM_MSG_REQ;

	while (type < CM_MSG_SIDR_REP && kinds[type] != m->kind)
		type++;
	return type;
}

void far_msg_read(struct cm_msg *msg, const struct roce_mad *m)
{
	size_t at = far_msg_is_request(m) ? ROCE_CMA_BYTES : 0;

	memset(msg, 0, sizeof(*msg));
	msg->type = type_of(m);
	msg->qp_num = m->qpn;
	msg->psn = m->psn;
	msg->mtu = m->mtu;
	msg->responder_resources = m->responder_resources;
	msg->initiator_depth = m->initiator_depth;
	msg->retry_count = m->retry_count;
	msg->rnr_retry_count = m->rnr_retry_count;
	msg->srq = m->srq;
	msg->flow_control = m->flow_control;
	msg->traffic_class = m->traffic_class;
	msg->ece_vendor = m->vendor_id;
	msg->ece_options = m->options;
	msg->reason = msg->type == CM_MSG_REJ ? m->reason : m->status;
	msg->private_len = (uint8_t)cm_msg_private_max(msg->type);
	memcpy(msg->private_data, m->private_data + at, msg->private_len);
}

static void read_name(union cm_addr *addr, const struct roce_cma *names, const uint8_t *bytes,
		      uint16_t port, uint32_t ifindex)
{
	memset(addr, 0, sizeof(*addr));
	addr->sa.sa_family = names->is_ipv6 ? AF_INET6 : AF_INET;
	cm_addr_set_port(addr, htons(port));
	if (!names->is_ipv6) {
		memcpy(&addr->in.sin_addr, bytes, sizeof(addr->in.sin_addr));
		return;
	}
	memcpy(&addr->in6.sin6_addr, bytes, sizeof(addr->in6.sin6_addr));
	if (IN6_IS_ADDR_LINKLOCAL(&addr->in6.sin6_addr))
		addr->in6.sin6_scope_id = ifindex;
}

/* Data goes to the address that sent the request, not to any address that it names. */
static bool is_named(const union cm_addr *addr, const uint8_t *gid)
{
	union ibv_gid named;

	cm_addr_gid(addr, &named);
	return !memcmp(&named, gid, sizeof(named));
}

int far_msg_read_request(struct cm_msg *msg, const struct roce_mad *m,
			 const struct roce_cm_path *path, enum rdma_port_space *ps)
{
	static const enum rdma_port_space spaces[] = { RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB };
	struct roce_cma names;
	uint16_t port;
	size_t i;

	if (roce_cma_decode(&names, m->private_data))
		return -EPROTO;
	for (i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		if (!roce_cma_port(m->service_id, (enum roce_cma_space)spaces[i], &port))
			break;
	if (i == sizeof(spaces) / sizeof(spaces[0]))
		return -EPROTO;
	*ps = spaces[i];
	far_msg_read(msg, m);
	read_name(&msg->src, &names, names.src, names.src_port, path->ifindex);
	read_name(&msg->dst, &names, names.dst, port, path->ifindex);
	return is_named(&msg->src, path->peer) && is_named(&msg->dst, path->local) ? 0 : -EPROTO;
}
