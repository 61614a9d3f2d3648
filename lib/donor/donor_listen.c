/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Everything that a donor needs before serving: an address, a device, PDs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/donor/donor.h"
#include "lib/base/error.h"
#include "lib/donor/keyring/keyring.h"

#define BACKLOG (2 * (WEIR_UNPROVEN_MAX + WEIR_COOKIE_PLACES))

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

int weir_donor_tenant_open(struct weir_donor *donor, unsigned int tenant)
{
	struct weir_region_key *key = &donor->keys[tenant];

	if (!key->pd)
		key->pd = ibv_alloc_pd(donor->device);
	if (key->pd && !key->pd_read)
		key->pd_read = ibv_alloc_pd(donor->device);
	return key->pd_read ? 0 : -ENOMEM;
}

static int open_tenants(struct weir_donor *donor, struct weir_error *error)
{
	int rc = weir_keyring_init(donor, error);

	for (unsigned int i = 0; !rc && i < donor->nr_tenants; i++)
		if (donor->tenants[i].has_keys && weir_donor_tenant_open(donor, i))
			rc = weir_error_set(error, -ENOMEM, "cannot allocate a PD: %s",
					    strerror(errno));
	return rc;
}

int weir_donor_listen(struct weir_donor *donor, struct weir_error *error)
{
	int rc;

	rc = weir_listener_open(&donor->listener, donor->options.listen, "a donor",
				weir_donor_has_keys(donor), BACKLOG, error);
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
	for (i = 0; i < donor->nr_tenants; i++) {
		if (donor->keys[i].pd)
			ibv_dealloc_pd(donor->keys[i].pd);
		if (donor->keys[i].pd_read)
			ibv_dealloc_pd(donor->keys[i].pd_read);
	}
	weir_keyring_fini(donor);
	weir_places_fini(&donor->places);
}
