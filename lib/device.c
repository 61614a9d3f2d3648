/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "lib/device.h"
#include "lib/error.h"

/* A listener on all addresses is bound to no device: take the one asked for, or the first. */
static struct ibv_context *pick(const char *name)
{
	struct ibv_context **devices, *device = NULL;
	int i, n;

	devices = rdma_get_devices(&n);
	for (i = 0; devices && i < n && !device; i++)
		if (!name || !strcmp(name, ibv_get_device_name(devices[i]->device)))
			device = devices[i];
	if (devices)
		rdma_free_devices(devices);
	return device;
}

int weir_device_find(const struct rdma_cm_id *listener, const char *listen, const char *name,
		     struct ibv_context **device, struct weir_error *error)
{
	struct ibv_context *found = listener ? listener->verbs : NULL;

	if (!found)
		found = pick(name);
	if (!found)
		return weir_fail(error, -ENODEV,
				 "no verbs device%s%s: is it up? 'weir run' needs none",
				 name ? " " : "", name ? name : "");
	if (name && strcmp(name, ibv_get_device_name(found->device)))
		return weir_fail(error, -ENODEV, "%s belongs to device %s, not to %s", listen,
				 ibv_get_device_name(found->device), name);
	*device = found;
	return 0;
}
