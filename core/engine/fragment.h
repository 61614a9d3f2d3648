/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cuts requests, and their local memory, into work requests.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_ENGINE_FRAGMENT_H
#define WEIR_CORE_ENGINE_FRAGMENT_H

#include "core/engine/request.h"

/**
 * weir_fragment_length() - the length of a request's next part
 * @req: the request
 * @fragment_bytes: maximum length of a WR, at least 1
 *
 * Return: bytes; 0 only for an empty message.
 */
static inline uint32_t weir_fragment_length(const struct weir_req *req, uint32_t fragment_bytes)
{
	uint64_t left = req->length - req->posted;

	return left < fragment_bytes ? (uint32_t)left : fragment_bytes;
}

/**
 * weir_fragment_begin() - begin an empty WR
 * @wr: to be filled in, all but its channel
 * @req: the first request that will be added
 */
void weir_fragment_begin(struct weir_wr *wr, struct weir_req *req);

/**
 * weir_fragment_add() - add the next part of a request to a WR
 * @wr: begun
 * @req: the request; its posted bytes and WRs go up
 * @length: from weir_fragment_length()
 *
 * If the local memory continues that of the request before, both share an SGE.
 */
void weir_fragment_add(struct weir_wr *wr, struct weir_req *req, uint32_t length);

/**
 * weir_fragment_whole() - fill in a WR with one whole request of one SGE
 * @wr: to be filled in, all but its channel
 * @req: with nothing posted; its counts do not change
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
 * weir_fragment_is_contiguous() - whether two pieces of local memory fit one SGE
 * @a: a piece
 * @b: the next piece
 *
 * Return: true if @b begins where @a ends, under the same lkey.
 */
static inline bool weir_fragment_is_contiguous(const struct weir_sge *a, const struct weir_sge *b)
{
	return a->addr + a->length == b->addr && a->lkey == b->lkey;
}

#endif
