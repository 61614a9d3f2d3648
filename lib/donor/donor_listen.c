/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Everything that a donor needs before serving: an address, a device, PDs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/donor/donor.h"
#include "lib/base/error.h"
#include "lib/conn/key.h"

#define BACKLOG (2 * WEIR_UNPROVEN_MAX)

static int find_device(struct weir_donor *donor, struct weir_error *error)
{
	struct ibv_device_attr attr;
	int rc = weir_listener_find_device(&donor->listener, donor->options.device, &donor->device,
					   error);

	if (rc)
		return rc;
	if (ibv_query_device(donor->device, &attr))
		return weir_error_set(error, -ENODEV, "device %s does not answer",
				      ibv_get_device_name(donor->device->device));
	donor->reads_max = attr.max_qp_rd_atom < UINT8_MAX ? attr.max_qp_rd_atom : UINT8_MAX;
	return 0;
}

static int open_tenants(struct weir_donor *donor, struct weir_error *error)
{
	struct weir_donor_tenant *tenant;
	unsigned int i;

	for (i = 0; i < donor->nr_tenants; i++) {
		tenant = &donor->tenants[i];
		tenant->key = donor->options.nr_keys ? donor->options.keys[i] : NULL;
		tenant->key_id = weir_key_id(tenant->key);
		donor->keys[i].pd = ibv_alloc_pd(donor->device);
		if (!donor->keys[i].pd)
			return weir_error_set(error, -ENOMEM, "cannot allocate a PD: %s",
					      strerror(errno));
	}
	return 0;
}

int weir_donor_listen(struct weir_donor *donor, struct weir_error *error)
{
	int rc;

	rc = weir_listener_open(&donor->listener, donor->options.listen, "a donor",
				donor->options.nr_keys, BACKLOG, error);
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
	fcntl(donor->completions->fd, F_SETFL, fcntl(donor->completions->fd, F_GETFL) | O_NONBLOCK);
	return 0;
}

void weir_donor_unlisten(struct weir_donor *donor)
{
	unsigned int i;

	weir_listener_close(&donor->listener);
	if (donor->completions)
		ibv_destroy_comp_channel(donor->completions);
	for (i = 0; i < donor->nr_tenants; i++)
		if (donor->keys[i].pd)
			ibv_dealloc_pd(donor->keys[i].pd);
}
