// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Address and route resolution. Peers are on this host, or on another that the kernel has a route
 * to, so the result is known at once. The program still gets the result as an event, as with
 * librdmacm.
 */
#include <string.h>

#include "cm.h"
#include "event.h"
#include "softnic/control/config.h"
#include "softnic/cm_far/cm_far.h"

/* Read the source from @sa, unless NULL, or from the bound address. */
static int read_src(const struct cm_id *id, const struct sockaddr *sa, const union cm_addr *dst,
		    union cm_addr *src)
{
	int rc = 0;

	memset(src, 0, sizeof(*src));
	if (id->state == CM_BOUND)
		cm_id_src(id, src);
	else if (sa)
		rc = cm_addr_read(src, sa);
	if (rc)
		return rc;
	if (!src->sa.sa_family)
		src->sa.sa_family = dst->sa.sa_family;
	if (src->sa.sa_family != dst->sa.sa_family || cm_addr_lacks_scope(src))
		return -EINVAL;
	return cm_addr_is_any(src) || cm_addr_is_local(src) ? 0 : -EADDRNOTAVAIL;
}

/* The source address may still be the wildcard. Return: 0, or a negative errno: no route. */
static int complete_src(union cm_addr *src, const union cm_addr *dst, bool is_far)
{
	in_port_t port = cm_addr_port(src);

	if (is_far)
		return cm_far_route(src, dst);
	if (!cm_addr_is_any(src))
		return 0;
	if (cm_addr_is_multicast(dst)) {
		cm_addr_route(src, dst);
		return 0;
	}
	*src = *dst;
	cm_addr_set_port(src, port);
	return 0;
}

/* Context: cm_lock held. */
static int resolve_addr(struct cm_id *id, const struct sockaddr *sa, union cm_addr *dst,
			bool is_far)
{
	union cm_addr src;
	int rc;

	if (id->state != CM_IDLE && id->state != CM_BOUND)
		return -EINVAL;
	rc = read_src(id, sa, dst, &src);
	if (rc)
		return rc;
	if (cm_addr_is_any(dst))
		cm_addr_set_loopback(dst);
	rc = complete_src(&src, dst, is_far);
	if (!rc && id->state == CM_IDLE)
		rc = cm_id_bind(id, &src, cm_addr_port(&src) ? cm_port_take : cm_port_take_source);
	if (rc)
		return rc;
	cm_id_set_src(id, &src);
	cm_id_set_dst(id, dst);
	cm_id_set_state(id, CM_ADDR_RESOLVED);
	if (is_far)
		cm_far_begin(id);
	return 0;
}

static int find_device(struct cm_id *id, bool is_far, const struct cm_device **device)
{
	int rc = cm_device_check(id);

	if (!rc)
		rc = cm_device_get(device);
	return !rc && is_far ? cm_far_open() : rc;
}

int rdma_resolve_addr(struct rdma_cm_id *rid, struct sockaddr *src, struct sockaddr *dst_sa,
		      int timeout_ms)
{
	const struct cm_device *device;
	struct cm_id *id = cm_id(rid);
	union cm_addr dst;
	int rc, unreachable;
	bool is_far;

	(void)timeout_ms;
	rc = cm_addr_read(&dst, dst_sa);
	if (!rc && cm_addr_lacks_scope(&dst))
		rc = -EINVAL;
	if (rc)
		return cm_return(rc);
	is_far = !cm_addr_is_any(&dst) && !cm_addr_is_multicast(&dst) &&
		 !(cm_addr_is_local(&dst) && config_get()->value[OPTION_NEAR]);
	unreachable = find_device(id, is_far, &device);

	pthread_mutex_lock(&cm_lock);
	if (!unreachable)
		rc = resolve_addr(id, src, &dst, is_far);
	if (is_far && rc == -EHOSTUNREACH) {
		unreachable = rc;
		rc = 0;
	}
	if (!unreachable && !rc) {
		cm_device_bind(id, device);
		cm_device_route(id, device);
		cm_event_push(id, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL);
	}
	if (unreachable)
		cm_event_push(id, id, RDMA_CM_EVENT_ADDR_ERROR, unreachable, NULL);
	pthread_mutex_unlock(&cm_lock);
	return cm_return(rc ? rc : cm_event_complete(id));
}

int cm_resolve_route(struct cm_id *id)
{
	int rc = 0;

	pthread_mutex_lock(&cm_lock);
	if (id->state == CM_ADDR_RESOLVED) {
		id->path.traffic_class = id->tos; /* fixed from here on, as in the kernel */
		cm_id_set_state(id, CM_ROUTE_RESOLVED);
		cm_event_push(id, id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL);
	} else {
		rc = -EINVAL;
	}
	pthread_mutex_unlock(&cm_lock);
	return rc;
}

int rdma_resolve_route(struct rdma_cm_id *rid, int timeout_ms)
{
	struct cm_id *id = cm_id(rid);
	int rc;

	(void)timeout_ms;
	rc = cm_resolve_route(id);
	return cm_return(rc ? rc : cm_event_complete(id));
}
