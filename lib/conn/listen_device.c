/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "lib/conn/listen_device.h"
#include "lib/base/error.h"

/*
 * A listener on all addresses is bound to no device. Choose the named device, or the first by name:
 * librdmacm lists devices by GUID, which a software device draws at each boot.
 */
static struct ibv_context *choose_device(const char *name)
{
	struct ibv_context **devices, *first = NULL;
	int i, n;

	devices = rdma_get_devices(&n);
	for (i = 0; devices && i < n; i++) {
		const char *found = ibv_get_device_name(devices[i]->device);

		if (name ? !strcmp(found, name) :
			   !first || strcmp(found, ibv_get_device_name(first->device)) < 0)
			first = devices[i];
	}
	if (devices)
		rdma_free_devices(devices);
	return first;
}

int weir_listen_device_find(const struct rdma_cm_id *listener, const char *listen, const char *name,
			    struct ibv_context **device, struct weir_error *error)
{
	struct ibv_context *found = listener ? listener->verbs : NULL;

	if (!found)
		found = choose_device(name);
	if (!found)
		return weir_error_set(error, -ENODEV,
				      "no verbs device%s%s: is it up? 'weir run' needs none",
				      name ? " " : "", name ? name : "");
	if (name && strcmp(name, ibv_get_device_name(found->device)))
		return weir_error_set(error, -ENODEV, "%s belongs to device %s, not to %s", listen,
				      ibv_get_device_name(found->device), name);
	*device = found;
	return 0;
}
