/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file systems of a donor, one for each key, and the clients they have: binds fsd.h to
 * weir/donor.h.
 */
#ifndef WEIR_SERVE_TENANT_H
#define WEIR_SERVE_TENANT_H

#include <pthread.h>
#include <sys/queue.h>
#include <weir/donor.h>

#include "fsd/fsd.h"

struct fs_client;
struct prefault;
TAILQ_HEAD(fs_client_list, fs_client);

struct fs_tenant {
	struct fs_tenants *all;
	unsigned int index; /* of its key */
	struct fsd *fsd; /* NULL until its first client comes */
	bool work_timer_set; /* a timer for work() is set */
	bool deadline_timer_set; /* one for the deadline is set */
};

/* Touched by the donor's thread alone; by others only while there is none. */
struct fs_tenants {
	pthread_mutex_t opening; /* held until @donor is set */
	struct weir_donor *donor;
	uint64_t bytes_max, chunk_bytes; /* of each file system */
	struct fs_tenant *tenant;
	unsigned int nr;
	struct fs_client_list fs_clients;
	struct prefault *prefault;
};

/* Return: 0; -ENOMEM. */
int tenants_init(struct fs_tenants *tenants, unsigned int nr, uint64_t bytes_max,
		 uint64_t chunk_bytes);

/* Puts the callbacks in; then tenants_start() must follow with the donor, or with NULL. */
void tenants_bind(struct fs_tenants *tenants, struct weir_donor_options *options);
void tenants_start(struct fs_tenants *tenants, struct weir_donor *donor);

/* Before weir_donor_close(): the memory stays until then. */
void tenants_stop(struct fs_tenants *tenants);
/* After weir_donor_close(): all clients have left. */
void tenants_fini(struct fs_tenants *tenants);

#endif
