/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor of a pool fills its own syncing members, of volumes that no client has open: a thread
 * that watches the map, and opens one such volume at a time. Of a volume that a client has open,
 * that client fills the members.
 *
 * The donor opens a volume as a client does, with the same claim, epoch and fencing: see pool.h.
 * So a donor and a client never write to a copy at the same time, and a donor that was stopped
 * writes nothing later. Donors take turns at a volume, each for its own members: so the bytes move
 * once, from a serving donor to the one that lacks them.
 *
 * core/pool/rebuild.h says which volume is next, and when.
 */
#ifndef WEIR_LIB_VOLUME_REBUILD_H
#define WEIR_LIB_VOLUME_REBUILD_H

#include <weir/donor.h>
#include <weir/key.h>

#include "core/pool/map.h"

struct weir_volume_rebuilder;

/**
 * struct weir_volume_rebuild - the donor of the members to fill
 * @donor: the donor's name; @incarnation: of its memory
 * @stops: the donor ends; atomic
 */
struct weir_volume_rebuild {
	char donor[WEIR_POOL_NAME_MAX];
	uint64_t incarnation;
	const bool *stops;
};

/**
 * struct weir_volume_rebuilder_options - a donor in its pool; texts are copied
 * @pool: the pool's place, as for weir_pool_client_open()
 * @donor: the donor's name in the pool
 * @device: as for a session, or NULL
 * @incarnation: number of the donor's memory
 * @key: the key of all donors of the pool, or NULL; copied
 * @old_key: for donors that do not know @key yet, or NULL; copied
 * @encryption: as for a session
 * @on_log: "EVENT[ KEY=VALUE...][: REASON]", from the rebuilder's thread
 * @arg: passed to @on_log
 */
struct weir_volume_rebuilder_options {
	const char *pool, *donor, *device;
	uint64_t incarnation;
	const struct weir_key *key, *old_key;
	uint64_t encryption;
	void (*on_log)(void *arg, enum weir_log_level level, const char *line);
	void *arg;
};

/* Starts the thread. Return: 0; -ENOMEM; or as weir_pool_client_open(). */
int weir_volume_rebuilder_start(const struct weir_volume_rebuilder_options *options,
				struct weir_volume_rebuilder **rebuilder,
				struct weir_error *error);

/*
 * Replaces the keys, which are copied. A volume that is being filled keeps the keys from before.
 * Return: 0; -ENOMEM: nothing has changed.
 */
int weir_volume_rebuilder_set_keys(struct weir_volume_rebuilder *rebuilder,
				   const struct weir_key *key, const struct weir_key *old_key);

/* Asks the thread to end. It wakes at the next change of the map, or after a third of a lease. */
void weir_volume_rebuilder_cancel(struct weir_volume_rebuilder *rebuilder);

/* Waits for the end of the thread, after a cancel, and frees all. */
void weir_volume_rebuilder_close(struct weir_volume_rebuilder *rebuilder);

#endif
