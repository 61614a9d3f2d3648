/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The connections of mounts to a server of files: their staging areas, and the bytes that move. */
#ifndef WEIR_APPS_SERVE_FILES_STAGING_H
#define WEIR_APPS_SERVE_FILES_STAGING_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <weir/donor.h>
#include <weir/volume.h>

#include "fsd/fsd.h"

/* The area of a connection. */
#define STAGING_SLOTS 16u
#define STAGING_BYTES (STAGING_SLOTS * (uint64_t)FS_SLOT_BYTES)

/* Memory that an area takes: regions have whole pages of 2 MiB. */
#define STAGING_PAGE (2u << 20)
#define STAGING_AREA ((STAGING_BYTES + STAGING_PAGE - 1) / STAGING_PAGE * STAGING_PAGE)

/**
 * struct staging_conn - a connection
 * @memory: the staging area
 * @tenant: of the peer's key; @number: from 1, in the order of joining
 * @mount: the only mount that the connection speaks for; 0: none yet; of the server's thread
 * @refs: requests and mounts of the server that use it, and the connection itself
 * @is_gone: the peer has left; @is_revoked: because its key is no longer admitted
 */
struct staging_conn {
	TAILQ_ENTRY(staging_conn) entry;
	struct staging *staging;
	struct weir_peer *peer;
	struct weir_region_token token;
	uint8_t *memory;
	unsigned int tenant;
	uint64_t number, mount;
	unsigned int refs;
	bool is_gone, is_revoked;
};

TAILQ_HEAD(staging_conn_list, staging_conn);

/**
 * struct staging - all connections of a server
 * @donor: the listener
 * @volume: where bytes move to and from
 * @lock: guards the connections
 * @conns: those with a region; @joined: how many there were so far
 * @moving: pieces under way; atomic. The last piece stores @lost and the status of its call first
 * @lost: the volume has ended with this error; atomic
 * @settled: a futex that changes with the end of the last piece
 */
struct staging {
	struct weir_donor *donor;
	struct weir_volume *volume;
	pthread_mutex_t lock;
	struct staging_conn_list conns;
	uint64_t joined;
	atomic_uint moving;
	atomic_int lost;
	uint32_t settled;
};

void staging_init(struct staging *staging);
/* After the listener is closed. */
void staging_fini(struct staging *staging);

/* A peer has joined, or leaves. Context: the listener's thread. Return: NULL: no memory. */
struct staging_conn *staging_join(struct staging *staging, struct weir_peer *peer);
void staging_leave(struct staging *staging, struct weir_peer *peer);
/* Bytes of the areas that take no memory of the machine yet, but will soon. */
uint64_t staging_promised(struct staging *staging);

struct staging_conn *staging_find(struct staging *staging, const struct weir_peer *peer);

void staging_ref(struct staging_conn *conn);
void staging_unref(struct staging_conn *conn);
/* Whether the peer has left; @is_revoked receives whether for want of its key. */
bool staging_is_gone(struct staging_conn *conn, bool *is_revoked);

/* Begins to move bytes: see struct fsd_service_host. */
void staging_start(struct staging *staging, struct staging_conn *conn,
		   const struct fsd_data *data, int *status);
/* Waits for all. Return: 0; the error with which the volume has ended. */
int staging_settle(struct staging *staging);

/* Whether a volume that ends a request with this error is this server's no more. */
bool staging_is_end(int status);

#endif
