/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The file servers of a donor, one per key, and their clients: binds fsd.h to weir/donor.h. */
#ifndef WEIR_APPS_SERVE_TENANT_H
#define WEIR_APPS_SERVE_TENANT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <weir/donor.h>

#include "apps/log/log.h"
#include "fsd/fsd.h"

struct fs_client;
TAILQ_HEAD(fs_client_list, fs_client);

struct fs_tenant {
	struct fs_tenants *all;
	unsigned int index; /* of the key */
	struct fsd *fsd; /* NULL until the first client joins */
	bool work_timer_set; /* a timer for fsd_work() is set */
	bool deadline_timer_set; /* a timer for fsd_expired() is set */
	struct weir_region_token *chunk; /* the file system's memory */
	unsigned int nr_chunks;
	struct log_source log; /* of lines that clients cause */
	atomic_bool has_ended; /* its last key is gone; read by another thread */
};

/* Accessed by the donor's thread only, and by other threads only while there is no donor. */
struct fs_tenants {
	pthread_mutex_t opening; /* held until @donor is set */
	struct weir_donor *donor;
	uint64_t bytes_max, chunk_bytes; /* per file system */
	struct fs_tenant *tenant;
	unsigned int nr;
	struct fs_client_list fs_clients;
};

/* Return: 0; -ENOMEM. */
int tenants_init(struct fs_tenants *tenants, unsigned int nr, uint64_t bytes_max,
		 uint64_t chunk_bytes);

/* Installs the callbacks. The caller then owes a tenants_start() with the donor, or with NULL. */
void tenants_bind(struct fs_tenants *tenants, struct weir_donor_options *options);
void tenants_start(struct fs_tenants *tenants, struct weir_donor *donor);

/* Call after weir_donor_close(): all clients have left. */
void tenants_fini(struct fs_tenants *tenants);

#endif
