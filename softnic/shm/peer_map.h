/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Files of a peer's memory that are mapped here, so that what is in them can be reached as
 * if it were our own. Which there are, the peer publishes; see share.h.
 */
#ifndef WEIR_SOFTNIC_SHM_PEER_MAP_H
#define WEIR_SOFTNIC_SHM_PEER_MAP_H

#include "softnic/verbs/mr.h"
#include "shared.h"

struct shm_peer;

struct peer_map_file {
	uint32_t number; /* 0: none is mapped; stored last, taken back first */
	uint32_t asked; /* the number that was asked for last */
	size_t size;
	uint8_t *at;
};

/* Each in the place that its number says. */
struct peer_map {
	struct peer_map_file files[SHARED_FILES];
};

/**
 * peer_map_find() - a place in a peer's memory as an address of ours
 * @peer: whose
 * @place: as mr_translate() says it; not trusted
 * @length: how far one may go from there
 *
 * What may be mapped but is not yet is asked for, once.
 *
 * Context: some qp->lock held, without which the answer is out of date.
 * Return: where it is, or NULL: reach it another way.
 */
void *peer_map_find(struct shm_peer *peer, const struct mr_place *place, uint64_t length);

/** peer_map_add() - the peer handed out a file. Which may be any. The engine's thread. */
void peer_map_add(struct shm_peer *peer, uint64_t number, int fd);

/** peer_map_sweep() - let go of what the peer does not share any more. The engine's thread. */
void peer_map_sweep(struct shm_peer *peer);

/** peer_map_fini() - let go of all; nobody has to do with that peer any more */
void peer_map_fini(struct peer_map *peer_map);

#endif
