/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which volume a donor rebuilds next: one that no client has open, and of which a SYNCING member of
 * this donor lacks data. A client that is silent for a moment should keep its volume. So a donor
 * waits for half a lease after a claim is over.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_POOL_REBUILD_H
#define WEIR_CORE_POOL_REBUILD_H

#include "core/pool/map.h"

/**
 * struct weir_pool_rebuild_volume - a volume as a donor has seen it last; zeroed at first
 * @id, @stored: of the volume
 * @since_ns: since when no client has had it open, or when this donor's last try has ended
 * @failures: of this donor's tries in a row
 */
struct weir_pool_rebuild_volume {
	uint64_t id, stored, since_ns;
	uint32_t failures;
};

/**
 * struct weir_pool_rebuild - a donor's view
 * @donor: its name; @incarnation: of its memory
 * @seen: the volumes, by their index in the map
 */
struct weir_pool_rebuild {
	char donor[WEIR_POOL_NAME_MAX];
	uint64_t incarnation;
	struct weir_pool_rebuild_volume seen[WEIR_POOL_VOLUMES_MAX];
};

/* Return: how long a donor waits after @failures in a row: the pause doubles, up to four leases. */
uint64_t weir_pool_rebuild_pause_ns(uint32_t lease_ms, uint32_t failures);

/**
 * weir_pool_rebuild_next() - choose a volume to rebuild now
 * @r: the donor's view
 * @map: as just read
 * @now_ns: time
 * @due_ns: lowered to the time when there will be a volume, if nothing else changes
 *
 * Return: the volume's index in @map; or @map->nr_volumes. The host owes a
 *	weir_pool_rebuild_ended() for a volume.
 */
uint16_t weir_pool_rebuild_next(struct weir_pool_rebuild *r, const struct weir_pool_map *map,
				uint64_t now_ns, uint64_t *due_ns);

enum weir_pool_rebuild_end {
	WEIR_POOL_REBUILD_DONE,
	WEIR_POOL_REBUILD_HAS_OTHER, /* it is another donor's turn */
	WEIR_POOL_REBUILD_GAVE_WAY, /* to a client */
	WEIR_POOL_REBUILD_FAILED,
};

/* A try to rebuild the volume has ended. */
void weir_pool_rebuild_ended(struct weir_pool_rebuild *r, uint16_t volume,
			     enum weir_pool_rebuild_end end, uint64_t now_ns);

#endif
