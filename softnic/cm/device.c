// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The connection manager's device. The first id that needs the device opens it; all ids share it
 * until the process ends.
 */
#include <stdlib.h>
#include <string.h>

#include "softnic/verbs/async.h"
#include "cm.h"
#include "event.h"
#include "softnic/cm_far/cm_far.h"
#include "softnic/verbs/device.h"
#include "softnic/loop/fork.h"

static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cm_device device;
static bool removed; /* never reset; device_lock */
static struct cm_id_list ids = TAILQ_HEAD_INITIALIZER(ids); /* bound ids; cm_lock */

/* In the child of a fork. */
static void reset_cm_device(void)
{
	device.verbs = NULL;
	removed = false;
	TAILQ_INIT(&ids);
}

const struct fork_part cm_device_fork = { &device_lock, reset_cm_device };

static int query_limits(struct cm_device *d)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	int rc;

	rc = ibv_query_device(d->verbs, &attr);
	if (!rc)
		rc = ibv_query_port(d->verbs, SOFTNIC_PORT, &port);
	if (rc)
		return -rc;
	d->responder_resources_max = (uint8_t)attr.max_qp_rd_atom;
	d->initiator_depth_max = (uint8_t)attr.max_qp_init_rd_atom;
	d->mtu = port.active_mtu;
	return 0;
}

static void device_event(enum ibv_event_type type);

static int open_device(struct cm_device *d)
{
	int rc;

	async_on_device(device_event);
	errno = ENODEV;
	d->verbs = ibv_open_device(softnic_device());
	if (!d->verbs)
		return -errno;
	d->pd = ibv_alloc_pd(d->verbs);
	rc = d->pd ? query_limits(d) : -errno;
	if (rc) {
		if (d->pd)
			ibv_dealloc_pd(d->pd);
		ibv_close_device(d->verbs);
		d->verbs = NULL;
	}
	return rc;
}

int cm_device_get(const struct cm_device **d)
{
	int rc = 0;

	pthread_mutex_lock(&device_lock);
	if (removed)
		rc = -ENODEV;
	else if (!device.verbs)
		rc = open_device(&device);
	pthread_mutex_unlock(&device_lock);
	if (!rc)
		*d = &device;
	return rc;
}

int cm_device_check(const struct cm_id *id)
{
	return id->id.ps == RDMA_PS_IPOIB ? -EINVAL : 0;
}

void cm_device_bind(struct cm_id *id, const struct cm_device *d)
{
	if (!id->device_link.tqe_prev)
		TAILQ_INSERT_TAIL(&ids, id, device_link);
	id->id.verbs = d->verbs;
	id->id.port_num = SOFTNIC_PORT;
	if (!id->id.pd)
		id->id.pd = d->pd;
	cm_listing_begin(id);
}

void cm_device_unbind(struct cm_id *id)
{
	pthread_mutex_lock(&cm_lock);
	if (id->device_link.tqe_prev)
		TAILQ_REMOVE(&ids, id, device_link);
	id->device_link.tqe_prev = NULL;
	listing_end(&id->listing);
	pthread_mutex_unlock(&cm_lock);
}

static bool has_connection(const struct cm_id *id)
{
	return id->state >= CM_REQ_SENT && id->state < CM_CLOSED;
}

/*
 * Each bound id gets DEVICE_REMOVAL once. The connection ends, and the user can only destroy the
 * id.
 */
static void device_event(enum ibv_event_type type)
{
	struct cm_id *id;

	if (type != IBV_EVENT_DEVICE_FATAL)
		return;
	pthread_mutex_lock(&device_lock);
	removed = true;
	pthread_mutex_unlock(&device_lock);

	pthread_mutex_lock(&cm_lock);
	TAILQ_FOREACH(id, &ids, device_link) {
		if (has_connection(id))
			cm_conn_shutdown(id);
		cm_id_set_state(id, CM_CLOSED);
		/* The user does not know a request that is not yet fetched. */
		if (!id->listener)
			cm_event_push(id, id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL);
	}
	pthread_mutex_unlock(&cm_lock);
}

void cm_device_route(struct cm_id *id, const struct cm_device *d)
{
	struct rdma_ib_addr *ib = &id->id.route.addr.addr.ibaddr;
	union cm_addr src, dst;

	cm_id_src(id, &src);
	cm_id_dst(id, &dst);
	cm_addr_gid(&src, &ib->sgid);
	cm_addr_gid(&dst, &ib->dgid);
	ib->pkey = htobe16(0xffff);
	id->path = (struct ibv_sa_path_rec){
		.sgid = ib->sgid,
		.dgid = ib->dgid,
		.pkey = ib->pkey,
		.hop_limit = 64,
		.traffic_class = id->tos,
		.reversible = 1,
		.numb_path = 1,
		.mtu_selector = 2, /* exactly */
		.mtu = d->mtu,
	};
	if (id->is_far)
		id->path.mtu = cm_far_mtu(id);
	id->id.route.path_rec = &id->path;
	id->id.route.num_paths = 1;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = calloc(2, sizeof(*list));
	const struct cm_device *d;
	int rc;

	if (!list)
		return NULL;
	rc = cm_device_get(&d);
	if (rc) {
		free(list);
		errno = -rc;
		return NULL;
	}
	list[0] = d->verbs;
	if (num_devices)
		*num_devices = 1;
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
