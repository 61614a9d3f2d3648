// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Ids: creation, addresses, destruction.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fd/passed_fd.h"
#include "cm.h"
#include "event.h"
#include "softnic/cm_far/cm_far.h"
#include "softnic/loop/fork.h"

static struct cm_id_list all = TAILQ_HEAD_INITIALIZER(all); /* cm_lock */

enum { ACK_TIMEOUT_DEFAULT = 18 }; /* 4.096 us << 18: about a second, the default for RoCE */

void cm_id_src(const struct cm_id *id, union cm_addr *addr)
{
	memcpy(addr, &id->id.route.addr.src_addr, sizeof(*addr));
}

void cm_id_dst(const struct cm_id *id, union cm_addr *addr)
{
	memcpy(addr, &id->id.route.addr.dst_addr, sizeof(*addr));
}

void cm_id_set_src(struct cm_id *id, const union cm_addr *addr)
{
	memcpy(&id->id.route.addr.src_storage, addr, sizeof(*addr));
}

void cm_id_set_dst(struct cm_id *id, const union cm_addr *addr)
{
	memcpy(&id->id.route.addr.dst_storage, addr, sizeof(*addr));
}

int cm_id_new(struct cm_channel *channel, void *context, enum rdma_port_space ps,
	      enum ibv_qp_type type, struct cm_id **out)
{
	struct cm_id *id = calloc(1, sizeof(*id));
	int rc;

	if (!id)
		return -ENOMEM;
	if (!channel) {
		rc = cm_channel_create(&channel);
		if (rc) {
			free(id);
			return rc;
		}
		id->sync = true;
	}
	TAILQ_INIT(&id->children);
	TAILQ_INIT(&id->groups);
	id->fd = id->fd_ipv4 = -1;
	id->ack_timeout = ACK_TIMEOUT_DEFAULT;
	id->id.channel = &channel->channel;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = type;
	TAILQ_INSERT_TAIL(&all, id, link);
	*out = id;
	return 0;
}

/* A socket left open in the child would hold the port and hide the parent's end from the peer. */
static void reset_cm(void)
{
	struct cm_id *id;

	TAILQ_FOREACH(id, &all, link) {
		if (id->fd >= 0)
			close(id->fd);
		if (id->fd_ipv4 >= 0)
			close(id->fd_ipv4);
	}
	TAILQ_INIT(&all);
	cm_far_reset();
}

const struct fork_part cm_fork = { &cm_lock, reset_cm };

static void close_socket(int fd)
{
	if (fd < 0)
		return;
	softnic_loop_del(fd);
	passed_fd_close_socket(fd);
}

void cm_id_free(struct cm_id *id)
{
	/* The timer first, because a listener's timer may watch the sockets again. */
	softnic_timer_disarm(&id->timer);
	cm_device_unbind(id);
	cm_mcast_free(id);
	close_socket(id->fd);
	close_socket(id->fd_ipv4);
	pthread_mutex_lock(&cm_lock);
	TAILQ_REMOVE(&all, id, link);
	pthread_mutex_unlock(&cm_lock);
	if (id->sync)
		cm_channel_destroy(cm_channel(id->id.channel));
	rdma_freeaddrinfo(id->found);
	free(id->qp_init_attr);
	free(id);
}

/* An IPv6 wildcard also has the second socket, for IPv4. */
static bool listens_at(const struct cm_id *id, const union cm_addr *addr)
{
	union cm_addr bound;

	cm_id_src(id, &bound);
	if (cm_addr_port(&bound) != cm_addr_port(addr))
		return false;
	if (cm_addr_is_any(&bound))
		return bound.sa.sa_family == addr->sa.sa_family ||
		       (addr->sa.sa_family == AF_INET && id->fd_ipv4 >= 0);
	return cm_addr_is_same_host(&bound, &addr->sa);
}

struct cm_id *cm_id_listening(enum rdma_port_space ps, const union cm_addr *addr)
{
	struct cm_id *id;

	TAILQ_FOREACH(id, &all, link)
		if (id->state == CM_LISTENING && id->id.ps == ps && listens_at(id, addr))
			return id;
	return NULL;
}

enum ibv_qp_type cm_id_default_type(enum rdma_port_space ps)
{
	return ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
}

int cm_id_check_type(enum rdma_port_space ps, enum ibv_qp_type type)
{
	if (type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV)
		return -EOPNOTSUPP;
	switch (ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return type == cm_id_default_type(ps) ? 0 : -EINVAL;
	case RDMA_PS_IB:
		return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **rid, void *context,
		   enum rdma_port_space ps)
{
	struct cm_id *id;
	int rc;

	rc = cm_id_check_type(ps, cm_id_default_type(ps));
	if (rc)
		return cm_return(rc);
	pthread_mutex_lock(&cm_lock);
	rc = cm_id_new(channel ? cm_channel(channel) : NULL, context, ps, cm_id_default_type(ps),
		       &id);
	pthread_mutex_unlock(&cm_lock);
	if (!rc)
		*rid = &id->id;
	return cm_return(rc);
}

int rdma_destroy_id(struct rdma_cm_id *rid)
{
	struct cm_id *id = cm_id(rid);

	pthread_mutex_lock(&cm_lock);
	if (id->state == CM_REQ_RCVD || id->state == CM_REP_RCVD)
		cm_conn_reject(id, CM_REASON_CONSUMER_DEFINED, NULL, 0);
	else if (id->is_far)
		cm_far_end(id);
	cm_id_set_state(id, CM_CLOSED);
	pthread_mutex_unlock(&cm_lock);

	/* First stop the sources of events, then drop the events. */
	softnic_timer_disarm(&id->timer);
	cm_device_unbind(id);
	pthread_mutex_lock(&cm_lock);
	cm_event_drop(id);
	pthread_mutex_unlock(&cm_lock);
	cm_listen_stop(id);
	if (rid->event)
		rdma_ack_cm_event(rid->event);
	cm_event_wait_acked(id);
	cm_id_free(id);
	return 0;
}

int cm_id_bind(struct cm_id *id, union cm_addr *addr,
	       int (*take)(struct cm_id *id, union cm_addr *addr))
{
	int rc;

	if (id->state != CM_IDLE)
		return -EINVAL;
	rc = take(id, addr);
	if (rc)
		return rc;
	cm_id_set_src(id, addr);
	cm_id_set_state(id, CM_BOUND);
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *rid, struct sockaddr *sa)
{
	const struct cm_device *device = NULL;
	struct cm_id *id = cm_id(rid);
	union cm_addr addr;
	int rc;

	rc = cm_addr_read(&addr, sa);
	if (rc)
		return cm_return(rc);
	if (cm_addr_lacks_scope(&addr))
		return cm_return(-EINVAL);
	if (!cm_addr_is_any(&addr)) {
		if (!cm_addr_is_local(&addr))
			return cm_return(-EADDRNOTAVAIL);
		rc = cm_device_check(id);
		if (!rc)
			rc = cm_device_get(&device);
		if (rc)
			return cm_return(rc);
	}

	pthread_mutex_lock(&cm_lock);
	rc = cm_id_bind(id, &addr, cm_port_take);
	if (!rc && device) {
		cm_device_bind(id, device);
		cm_addr_gid(&addr, &rid->route.addr.addr.ibaddr.sgid);
	}
	pthread_mutex_unlock(&cm_lock);
	return cm_return(rc);
}

__be16 rdma_get_src_port(struct rdma_cm_id *rid)
{
	union cm_addr addr;

	cm_id_src(cm_id(rid), &addr);
	return cm_addr_port(&addr);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *rid)
{
	union cm_addr addr;

	cm_id_dst(cm_id(rid), &addr);
	return cm_addr_port(&addr);
}
