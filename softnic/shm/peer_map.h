/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Files of a peer's memory that this process has mapped, to copy without a system call. The peer
 * lists its files in shared_pub; see shared.h.
 */
#ifndef WEIR_SOFTNIC_SHM_PEER_MAP_H
#define WEIR_SOFTNIC_SHM_PEER_MAP_H

#include "softnic/verbs/mr.h"
#include "shared.h"

struct shm_peer;

struct peer_map_file {
	uint32_t number; /* 0: no file is mapped; stored last, cleared first */
	uint32_t asked; /* the last number requested */
	size_t size;
	uint8_t *at;
};

/* A file's index is number % SHARED_FILES. */
struct peer_map {
	struct peer_map_file files[SHARED_FILES];
};

/**
 * peer_map_find() - translate a place in a peer's memory to an address in this process
 * @peer: owner of the memory
 * @place: from mr_translate(); not trusted
 * @length: in bytes
 *
 * Asks the peer once for a file that is exported but not yet mapped.
 *
 * Context: a qp->lock held; the address is valid until the caller unlocks.
 * Return: the address, or NULL: the caller must copy another way.
 */
void *peer_map_find(struct shm_peer *peer, const struct mr_place *place, uint64_t length);

/**
 * peer_map_add() - map a file that the peer sent
 * @fd: not trusted; stays the caller's
 *
 * Context: the engine thread.
 */
void peer_map_add(struct shm_peer *peer, uint64_t number, int fd);

/**
 * peer_map_sweep() - unmap the files that the peer no longer exports
 *
 * Context: the engine thread.
 */
void peer_map_sweep(struct shm_peer *peer);

/** peer_map_fini() - unmap all files; no thread uses the peer */
void peer_map_fini(struct peer_map *peer_map);

#endif
