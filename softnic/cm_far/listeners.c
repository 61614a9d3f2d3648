// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <string.h>

#include "softnic/cm_far/listeners.h"
#include "softnic/udp/neighbor.h"

enum { LISTENERS = 64 };

struct listener {
	enum rdma_port_space ps;
	union cm_addr at;
	uint16_t port; /* of the process; 0: a free place */
};

static struct listener listeners[LISTENERS]; /* under cm_lock */
static uint32_t next;

static struct listener *find_listener(const struct cm_id *id)
{
	union cm_addr at;
	uint32_t i;

	cm_id_dst(id, &at);
	for (i = 0; i < LISTENERS; i++) {
		struct listener *l = &listeners[i];

		if (l->port && l->ps == id->id.ps && !memcmp(&l->at, &at, sizeof(at)))
			return l;
	}
	return NULL;
}

void listeners_learn(const struct cm_id *id, uint32_t qpn)
{
	struct listener *l = find_listener(id);

	if (!l) {
		l = &listeners[next++ % LISTENERS];
		l->ps = id->id.ps;
		cm_id_dst(id, &l->at);
	}
	l->port = udp_socket_port_of_qpn(qpn);
}

bool listeners_have_lost(const struct cm_id *id)
{
	const struct listener *l = find_listener(id);
	struct udp_address process = { 0 };

	if (!l)
		return false;
	memcpy(&process.gid, &id->id.route.addr.addr.ibaddr.dgid, sizeof(process.gid));
	process.port = l->port;
	if (l->at.sa.sa_family == AF_INET6)
		process.ifindex = l->at.in6.sin6_scope_id;
	return neighbor_has_ended(&process);
}
