// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Listing, opening and closing the devices. Queries are in device_query.c.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "async.h"
#include "softnic/control/config.h"
#include "softnic/cq/cq.h"
#include "softnic/control/fault.h"
#include "gid.h"
#include "mw.h"
#include "nic.h"
#include "softnic/region/null_mr.h"
#include "softnic/region/odp.h"
#include "pd.h"
#include "softnic/qp/qp_ex.h"
#include "device_query.h"
#include "softnic/rq/recv.h"
#include "softnic/qp/req.h"
#include "softnic/rq/srq.h"
#include "softnic/qp_far/far_seal.h"
#include "softnic/strict/strict.h"
#include "softnic/xrc/xrc.h"

#undef ibv_get_device_list

#define PATHS "/sys/class/infiniband"
#define DEVICE(n)                                                                         \
	{                                                                                 \
		.node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB,             \
		.name = "softnic" #n, .dev_name = "softnic" #n,                           \
		.dev_path = PATHS "_verbs/softnic" #n, .ibdev_path = PATHS "/softnic" #n, \
	}

static struct ibv_device devices[] = {
	DEVICE(0), DEVICE(1), DEVICE(2), DEVICE(3), DEVICE(4), DEVICE(5), DEVICE(6), DEVICE(7),
};
_Static_assert(sizeof(devices) / sizeof(devices[0]) == SOFTNIC_DEVICES_MAX, "as many as may be");

struct ibv_device *softnic_device(void)
{
	return &devices[0];
}

uint32_t device_index(const struct ibv_device *dev)
{
	return dev - devices;
}

uint32_t device_count(void)
{
	const struct softnic_options *options = config_get();

	return options && !fault_is_gone() ? options->value[OPTION_DEVICES] : 0;
}

uint32_t device_ports(void)
{
	const struct softnic_options *options = config_get();

	return options ? options->value[OPTION_PORTS] : 0;
}

bool device_has_port(uint32_t port)
{
	return port >= SOFTNIC_PORT && port <= device_ports();
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(SOFTNIC_DEVICES_MAX + 1, sizeof(*list));
	uint32_t i, n = device_count();

	if (!list)
		return NULL;
	for (i = 0; i < n; i++)
		list[i] = &devices[i];
	if (num_devices)
		*num_devices = n;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *dev)
{
	return dev->name;
}

int ibv_get_device_index(struct ibv_device *dev)
{
	(void)dev;
	return -1; /* the kernel does not know the device */
}

__be64 ibv_get_device_guid(struct ibv_device *dev)
{
	return htobe64(gid_guid(device_index(dev), 0));
}

int ibv_fork_init(void)
{
	return 0; /* no memory is pinned, so copy-on-write in a child is harmless */
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

static void init_context(struct context *c, struct ibv_device *dev)
{
	struct ibv_context *ibv = &c->verbs.context;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	c->verbs.sz = sizeof(c->verbs);
	c->verbs.query_port = query_port;
	c->verbs.query_device_ex = query_device_ex;
	c->verbs.query_rt_values = query_rt_values;
	c->verbs.create_cq_ex = cq_create_ex;
	c->verbs.create_qp_ex = qp_ex_create;
	c->verbs.advise_mr = odp_advise;
	c->verbs.alloc_null_mr = null_mr_alloc;
	c->verbs.open_xrcd = xrc_open_domain;
	c->verbs.close_xrcd = xrc_close_domain;
	c->verbs.open_qp = xrc_open_qp;
	c->verbs.create_srq_ex = xrc_create_srq;
	c->verbs.get_srq_num = xrc_srq_number;
	c->verbs.alloc_td = td_alloc;
	c->verbs.dealloc_td = td_dealloc;
	c->verbs.alloc_parent_domain = pd_alloc_parent;
	ibv->device = dev;
	ibv->ops.poll_cq = cq_poll;
	ibv->ops.req_notify_cq = cq_arm;
	ibv->ops.post_send = req_post;
	ibv->ops.alloc_mw = mw_alloc;
	ibv->ops.bind_mw = mw_bind;
	ibv->ops.dealloc_mw = mw_dealloc;
	ibv->ops.post_recv = recv_post;
	ibv->ops.post_srq_recv = srq_post;
	ibv->num_comp_vectors = cpus > 0 ? cpus : 1;
	ibv->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&ibv->mutex, NULL);
	strict_wrap_context(ibv);
}

struct ibv_context *ibv_open_device(struct ibv_device *dev)
{
	struct context *c;
	int rc;

	if (dev < devices || device_index(dev) >= device_count()) {
		errno = ENODEV;
		return NULL;
	}
	rc = nic_open();
	if (rc)
		goto fail;
	far_seal_load_early();
	strict_begin();
	rc = -ENOMEM;
	c = calloc(1, sizeof(*c));
	if (!c)
		goto fail;
	init_context(c, dev);
	rc = async_init(c);
	if (!rc)
		return &c->verbs.context;
	free(c);
fail:
	errno = -rc;
	return NULL;
}

int ibv_close_device(struct ibv_context *context)
{
	struct context *c = to_context(context);

	async_fini(c);
	pthread_mutex_destroy(&context->mutex);
	free(c);
	return 0;
}
