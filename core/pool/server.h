/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which donor serves the files of a volume. Each donor decides for itself, by the map. All compute
 * the same order of donors for a volume (rendezvous hashing of the volume's id and the donor's
 * incarnation), and wait for their turn, so that they seldom try at once. The claim in the store
 * decides between two that do.
 *
 * Context of all: any; never sleeps.
 */
#ifndef WEIR_CORE_POOL_SERVER_H
#define WEIR_CORE_POOL_SERVER_H

#include "core/pool/map.h"

#define WEIR_POOL_SERVER_RANK_NS 300000000ull /* between the turns of two donors */

/*
 * Return: whether a volume holds files, and has no server that mounts reach. A donor that rebuilds
 * it gives way.
 */
bool weir_pool_server_is_missing(const struct weir_pool_map *map,
				 const struct weir_pool_volume *volume);

/**
 * weir_pool_server_from_ns() - when it is a donor's turn to serve a volume that lacks a server
 * @map: the map
 * @volume: the volume, in @map
 * @donor: name of the donor; @incarnation: of its memory
 * @since_ns: when the donor first saw that the server is missing
 *
 * A donor that leaves the pool, whose incarnation is out, or which a mount does not reach, has no
 * turn.
 *
 * Return: the time, which may be over; UINT64_MAX if the donor has no turn.
 */
uint64_t weir_pool_server_from_ns(const struct weir_pool_map *map,
				  const struct weir_pool_volume *volume, const char *donor,
				  uint64_t incarnation, uint64_t since_ns);

#endif
