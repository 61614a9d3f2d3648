/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Cuts requests into work requests, and their local memory along with them. */
#ifndef WEIR_CORE_ENGINE_FRAGMENT_H
#define WEIR_CORE_ENGINE_FRAGMENT_H

#include "core/engine/request.h"

/**
 * weir_fragment_length() - how long the next part of a request is
 * @req: the request
 * @fragment_bytes: a WR is at most this long, at least 1
 *
 * Context: Any.
 * Return: bytes; 0 only for an empty message.
 */
static inline uint32_t weir_fragment_length(const struct weir_req *req, uint32_t fragment_bytes)
{
	uint64_t left = req->length - req->posted;

	return left < fragment_bytes ? (uint32_t)left : fragment_bytes;
}

/**
 * weir_fragment_begin() - begin a WR
 * @wr: to be filled in, all but its channel; empty
 * @req: the first that will be added to it
 *
 * Context: Any.
 */
void weir_fragment_begin(struct weir_wr *wr, struct weir_req *req);

/**
 * weir_fragment_add() - add the next part of a request to a WR
 * @wr: begun
 * @req: the request; its count of posted bytes and of WRs goes up
 * @length: from weir_fragment_length()
 *
 * Where the local memory goes on where that of the request before it ended, the two share
 * an entry.
 *
 * Context: Any. Externally serialised.
 */
void weir_fragment_add(struct weir_wr *wr, struct weir_req *req, uint32_t length);

/**
 * weir_fragment_whole() - fill in a WR that is all of a request of one piece, and of no other
 * @wr: to be filled in, all but its channel
 * @req: nothing of it is posted; it is told nothing
 *
 * Context: Any.
 */
static inline void weir_fragment_whole(struct weir_wr *wr, struct weir_req *req)
{
	wr->next = NULL;
	wr->req = req;
	wr->offset = 0;
	wr->length = (uint32_t)req->length;
	wr->nr_reqs = 1;
	wr->nr_sge = 1;
	wr->sge[0] = req->sge[0];
}

/**
 * weir_fragment_is_contiguous() - whether two pieces of local memory can be one entry
 * @a: a piece
 * @b: what comes after it
 *
 * Context: Any.
 * Return: true when @b begins where @a ends, and they are of one registration.
 */
static inline bool weir_fragment_is_contiguous(const struct weir_sge *a, const struct weir_sge *b)
{
	return a->addr + a->length == b->addr && a->lkey == b->lkey;
}

#endif
