/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor of a pool takes back memory that no volume uses: of volumes that were removed, and of
 * groups that the donor has left alive, by a drain or a move.
 *
 * The donor lists its regions first, and then reads the map. A client creates a region only for a
 * membership that stands in a map. Neither a volume's id nor a membership returns once it is gone.
 * So no client will want a region that this map does not explain.
 *
 * A client that has the volume open may not know of the newest map. It deletes the regions of
 * former members itself, and the donor leaves these to it. A client that comes later reads a map
 * that is at least as new as the donor's. A client whose claim has ended unnoticed may meet a
 * region that is gone: see has_no_data() in pool_place.c.
 */
#ifndef WEIR_LIB_VOLUME_RECLAIM_H
#define WEIR_LIB_VOLUME_RECLAIM_H

#include <weir/error.h>
#include <weir/key.h>

#include "lib/pool/client.h"

/**
 * struct weir_volume_reclaim - the donor
 * @donor: name in the pool
 * @incarnation: number of the donor's memory
 * @key: the key of the pool's donors, or NULL
 * @device: as for a session, or NULL
 * @encryption: as for a session
 */
struct weir_volume_reclaim {
	const char *donor, *device;
	uint64_t incarnation;
	const struct weir_key *key;
	uint64_t encryption;
};

/**
 * struct weir_volume_reclaimed - memory that a donor took back
 * @regions, @bytes: number and size of the regions taken back
 * @left: regions that a client may still use, or that could not be deleted; the donor looks again
 */
struct weir_volume_reclaimed {
	unsigned int regions, left;
	uint64_t bytes;
};

/* Return: a number that changes, but for chance, when the donor's memory may lose a user. */
uint64_t weir_volume_reclaim_users(const struct weir_volume_reclaim *self,
				   const struct weir_pool_map *map);

/**
 * weir_volume_reclaim() - take back memory that no volume uses
 * @self: the donor
 * @client: to read the map
 * @map: says where the donor listens; receives the map as it was after the list
 * @back: receives the memory taken back, on failure also
 * @error: may be NULL
 *
 * Context: Any thread; sleeps.
 * Return: 0; or as weir_session_open(), weir_region_list() or weir_pool_client_read().
 */
int weir_volume_reclaim(const struct weir_volume_reclaim *self, struct weir_pool_client *client,
			struct weir_pool_map *map, struct weir_volume_reclaimed *back,
			struct weir_error *error);

#endif
