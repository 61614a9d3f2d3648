// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The device: listing it, opening it, closing it. What it says of itself is in query.c.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "async.h"
#include "cq.h"
#include "gid.h"
#include "nic.h"
#include "query.h"
#include "recv.h"
#include "req.h"

#undef ibv_get_device_list

static struct ibv_device device = {
	.node_type = IBV_NODE_CA,
	.transport_type = IBV_TRANSPORT_IB,
	.name = "softnic0",
	.dev_name = "softnic0",
	.dev_path = "/sys/class/infiniband_verbs/softnic0",
	.ibdev_path = "/sys/class/infiniband/softnic0",
};

struct ibv_device *softnic_device(void)
{
	return &device;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(2, sizeof(*list));

	if (!list)
		return NULL;
	list[0] = &device;
	if (num_devices)
		*num_devices = 1;
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
	return -1;	/* the kernel does not know it */
}

__be64 ibv_get_device_guid(struct ibv_device *dev)
{
	(void)dev;
	return htobe64(SOFTNIC_GUID);
}

int ibv_fork_init(void)
{
	return 0;	/* nothing is pinned, so a child's copy-on-write harms nothing */
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

static void init_context(struct context *c)
{
	struct ibv_context *ibv = &c->verbs.context;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	c->verbs.sz = sizeof(c->verbs);
	c->verbs.query_port = query_port;
	c->verbs.query_device_ex = query_device_ex;
	ibv->device = &device;
	ibv->ops.poll_cq = cq_poll;
	ibv->ops.req_notify_cq = cq_arm;
	ibv->ops.post_send = req_post;
	ibv->ops.post_recv = recv_post;
	ibv->cmd_fd = -1;
	ibv->num_comp_vectors = cpus > 0 ? cpus : 1;
	ibv->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&ibv->mutex, NULL);
}

struct ibv_context *ibv_open_device(struct ibv_device *dev)
{
	struct context *c;
	int err;

	if (dev != &device) {
		errno = ENODEV;
		return NULL;
	}
	err = nic_open();
	if (err)
		goto fail;
	err = -ENOMEM;
	c = calloc(1, sizeof(*c));
	if (!c)
		goto fail;
	init_context(c);
	err = async_init(c);
	if (!err)
		return &c->verbs.context;
	free(c);
fail:
	errno = -err;
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
