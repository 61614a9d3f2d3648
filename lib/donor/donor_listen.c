/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Everything that a donor needs before serving: an address, a device, PDs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/conn/listen_device.h"
#include "lib/donor/donor.h"
#include "lib/base/error.h"
#include "lib/conn/key.h"

#define BACKLOG (2 * WEIR_UNPROVEN_MAX)

static int find_device(struct weir_donor *donor, struct weir_error *error)
{
	struct ibv_device_attr attr;
	int rc = weir_listen_device_find(donor->listener, donor->options.listen,
					 donor->options.device, &donor->device, error);

	if (rc)
		return rc;
	if (ibv_query_device(donor->device, &attr))
		return weir_error_set(error, -ENODEV, "device %s does not answer",
				      ibv_get_device_name(donor->device->device));
	donor->reads_max = attr.max_qp_rd_atom < UINT8_MAX ? attr.max_qp_rd_atom : UINT8_MAX;
	return 0;
}

static int open_listener(struct weir_donor *donor, struct weir_error *error)
{
	const char *listen = donor->options.listen;
	struct addrinfo *list;
	int rc;

	rc = weir_address_resolve(listen, "0.0.0.0", &list, error);
	if (rc)
		return rc;
	if (!donor->options.nr_keys && !weir_address_is_loopback(list->ai_addr)) {
		rc = weir_error_set(error, -EPERM,
				    "a donor without a key listens on loopback only, not on %s: "
				    "give it a key",
				    listen);
		goto out;
	}
	donor->events = rdma_create_event_channel();
	if (!donor->events) {
		rc = weir_error_set(error, -ENODEV,
				    "no RDMA connection manager (%s): load rdma_ucm, or use "
				    "softnic with 'weir run'",
				    strerror(errno));
		goto out;
	}
	if (rdma_create_id(donor->events, &donor->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(donor->listener, list->ai_addr))
		rc = weir_address_explain_bind(listen, -errno, error);
out:
	freeaddrinfo(list);
	return rc;
}

static int open_tenants(struct weir_donor *donor, struct weir_error *error)
{
	struct weir_donor_tenant *tenant;
	unsigned int i;

	for (i = 0; i < donor->nr_tenants; i++) {
		tenant = &donor->tenants[i];
		tenant->key = donor->options.nr_keys ? donor->options.keys[i] : NULL;
		tenant->key_id = weir_key_id(tenant->key);
		tenant->pd = ibv_alloc_pd(donor->device);
		if (!tenant->pd)
			return weir_error_set(error, -ENOMEM, "cannot allocate a PD: %s",
					      strerror(errno));
		donor->pds[i] = tenant->pd;
	}
	return 0;
}

static void set_nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int weir_donor_listen(struct weir_donor *donor, struct weir_error *error)
{
	int rc;

	rc = open_listener(donor, error);
	if (!rc)
		rc = find_device(donor, error);
	if (!rc)
		rc = open_tenants(donor, error);
	if (rc)
		return rc;
	donor->completions = ibv_create_comp_channel(donor->device);
	if (!donor->completions)
		return weir_error_set(error, -ENOMEM, "cannot create a completion channel: %s",
				      strerror(errno));
	set_nonblocking(donor->events->fd);
	set_nonblocking(donor->completions->fd);
	if (rdma_listen(donor->listener, BACKLOG))
		return weir_address_explain_bind(donor->options.listen, -errno, error);
	weir_address_format(rdma_get_local_addr(donor->listener), donor->address);
	return 0;
}

void weir_donor_unlisten(struct weir_donor *donor)
{
	unsigned int i;

	if (donor->listener)
		rdma_destroy_id(donor->listener);
	if (donor->completions)
		ibv_destroy_comp_channel(donor->completions);
	for (i = 0; i < donor->nr_tenants; i++)
		if (donor->tenants[i].pd)
			ibv_dealloc_pd(donor->tenants[i].pd);
	if (donor->events)
		rdma_destroy_event_channel(donor->events);
}
