// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Ids: their life, their addresses, their options.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm.h"

enum { ACK_TIMEOUT_DEFAULT = 18 }; /* 4.096 us << 18: about a second, as RoCE has it */

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

int cm_id_new(struct cm_channel *channel, void *context, struct cm_id **out)
{
	struct cm_id *id = calloc(1, sizeof(*id));
	int err;

	if (!id)
		return -ENOMEM;
	if (!channel) {
		err = cm_channel_create(&channel);
		if (err) {
			free(id);
			return err;
		}
		id->sync = true;
	}
	TAILQ_INIT(&id->children);
	id->fd = id->fd_ipv4 = -1;
	id->ack_timeout = ACK_TIMEOUT_DEFAULT;
	id->id.channel = &channel->channel;
	id->id.context = context;
	id->id.ps = RDMA_PS_TCP;
	id->id.qp_type = IBV_QPT_RC;
	*out = id;
	return 0;
}

static void close_socket(int fd)
{
	if (fd < 0)
		return;
	softnic_loop_del(fd);
	close(fd);
}

void cm_id_free(struct cm_id *id)
{
	/* In this order: a listener's timer may watch its sockets again. */
	softnic_timer_disarm(&id->timer);
	close_socket(id->fd);
	close_socket(id->fd_ipv4);
	if (id->sync)
		cm_channel_destroy(cm_channel(id->id.channel));
	free(id->qp_init_attr);
	free(id);
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **rid, void *context,
		   enum rdma_port_space ps)
{
	struct cm_id *id;
	int err;

	if (ps != RDMA_PS_TCP)
		return cm_return(-EPROTONOSUPPORT);
	err = cm_id_new(channel ? cm_channel(channel) : NULL, context, &id);
	if (!err)
		*rid = &id->id;
	return cm_return(err);
}

int rdma_destroy_id(struct rdma_cm_id *rid)
{
	struct cm_id *id = cm_id(rid);

	pthread_mutex_lock(&cm_lock);
	if (id->state == CM_REQ_RCVD || id->state == CM_REP_RCVD)
		cm_conn_reject(id, CM_REASON_CONSUMER_DEFINED, NULL, 0);
	id->state = CM_CLOSED;
	cm_event_drop(id);
	pthread_mutex_unlock(&cm_lock);
	cm_listen_stop(id);
	if (rid->event)
		rdma_ack_cm_event(rid->event);
	cm_event_wait_acked(id);
	cm_id_free(id);
	return 0;
}

/* Context: cm_lock held. Return: 0 or a negative errno. */
static int bind_id(struct cm_id *id, union cm_addr *addr)
{
	int err;

	if (id->state != CM_IDLE)
		return -EINVAL;
	err = cm_port_take(id, addr);
	if (err)
		return err;
	cm_id_set_src(id, addr);
	id->state = CM_BOUND;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *rid, struct sockaddr *sa)
{
	const struct cm_device *device = NULL;
	struct cm_id *id = cm_id(rid);
	union cm_addr addr;
	int err;

	err = cm_addr_read(&addr, sa);
	if (err)
		return cm_return(err);
	if (!cm_addr_is_any(&addr)) {
		if (!cm_addr_is_local(&addr))
			return cm_return(-EADDRNOTAVAIL);
		err = cm_device_get(&device);
		if (err)
			return cm_return(err);
	}

	pthread_mutex_lock(&cm_lock);
	err = bind_id(id, &addr);
	pthread_mutex_unlock(&cm_lock);
	if (!err && device) {
		cm_device_bind(id, device);
		cm_addr_gid(&addr, &rid->route.addr.addr.ibaddr.sgid);
	}
	return cm_return(err);
}

/* From @addr, if it is not NULL, or from the source that was bound, or from where it goes. */
static int choose_src(struct cm_id *id, const struct sockaddr *sa, const union cm_addr *dst,
		      union cm_addr *src)
{
	int err = 0;

	if (id->state == CM_BOUND)
		cm_id_src(id, src);
	else if (sa)
		err = cm_addr_read(src, sa);
	else
		memset(src, 0, sizeof(*src));
	if (err)
		return err;
	if (!src->sa.sa_family)
		src->sa.sa_family = dst->sa.sa_family;
	if (src->sa.sa_family != dst->sa.sa_family)
		return -EINVAL;
	return cm_addr_is_any(src) || cm_addr_is_local(src) ? 0 : -EADDRNOTAVAIL;
}

/* Context: cm_lock held. */
static int resolve(struct cm_id *id, const struct sockaddr *sa, union cm_addr *dst)
{
	union cm_addr src;
	int err;

	if (id->state != CM_IDLE && id->state != CM_BOUND)
		return -EINVAL;
	err = choose_src(id, sa, dst, &src);
	if (err)
		return err;
	if (cm_addr_is_any(dst))
		cm_addr_set_loopback(dst);
	if (cm_addr_is_any(&src)) {
		in_port_t port = cm_addr_port(&src);

		src = *dst;
		cm_addr_set_port(&src, port);
	}
	if (id->state == CM_IDLE)
		err = bind_id(id, &src);
	if (err)
		return err;
	cm_id_set_src(id, &src);
	cm_id_set_dst(id, dst);
	id->state = CM_ADDR_RESOLVED;
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *rid, struct sockaddr *src, struct sockaddr *dst_sa,
		      int timeout_ms)
{
	const struct cm_device *device;
	struct cm_id *id = cm_id(rid);
	union cm_addr dst;
	bool local;
	int err;

	(void)timeout_ms; /* the answer is always at hand */
	err = cm_addr_read(&dst, dst_sa);
	if (!err)
		err = cm_device_get(&device);
	if (err)
		return cm_return(err);
	local = cm_addr_is_any(&dst) || cm_addr_is_local(&dst);

	pthread_mutex_lock(&cm_lock);
	if (local)
		err = resolve(id, src, &dst);
	if (local && !err) {
		cm_device_bind(id, device);
		cm_device_route(id, device);
		cm_event_push(id, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL);
	}
	if (!local)
		cm_event_push(id, id, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH, NULL);
	pthread_mutex_unlock(&cm_lock);
	return cm_return(err ? err : cm_event_complete(id));
}

int rdma_resolve_route(struct rdma_cm_id *rid, int timeout_ms)
{
	struct cm_id *id = cm_id(rid);
	int err = 0;

	(void)timeout_ms;
	pthread_mutex_lock(&cm_lock);
	if (id->state == CM_ADDR_RESOLVED) {
		id->state = CM_ROUTE_RESOLVED;
		cm_event_push(id, id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL);
	} else {
		err = -EINVAL;
	}
	pthread_mutex_unlock(&cm_lock);
	return cm_return(err ? err : cm_event_complete(id));
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

/*
 * Two options make a difference here. Type of service has no wire to be marked on, and an address
 * is free for the next one as soon as its holder is gone, without SO_REUSEADDR.
 */
int rdma_set_option(struct rdma_cm_id *rid, int level, int optname, void *optval, size_t optlen)
{
	struct cm_id *id = cm_id(rid);
	int value;

	if (level != RDMA_OPTION_ID)
		return cm_return(-EOPNOTSUPP);
	switch (optname) {
	case RDMA_OPTION_ID_TOS:
		return cm_return(optlen == sizeof(uint8_t) ? 0 : -EINVAL);
	case RDMA_OPTION_ID_REUSEADDR:
		return cm_return(optlen == sizeof(int) ? 0 : -EINVAL);
	case RDMA_OPTION_ID_AFONLY:
		if (optlen != sizeof(int) || id->state != CM_IDLE)
			return cm_return(-EINVAL);
		memcpy(&value, optval, sizeof(value));
		id->afonly = value;
		return 0;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (optlen != sizeof(uint8_t) || *(uint8_t *)optval > 31)
			return cm_return(-EINVAL);
		id->ack_timeout = *(uint8_t *)optval;
		return 0;
	default:
		return cm_return(-EOPNOTSUPP);
	}
}
