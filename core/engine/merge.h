/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Merging: requests with adjacent remote ranges become one work request (RDMAbox, section IV-A),
 * whatever the order of their arrival.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_ENGINE_MERGE_H
#define WEIR_CORE_ENGINE_MERGE_H

#include "core/engine/request.h"

#define WEIR_MERGE_REQS_MAX 256 /* requests in one WR */
#define WEIR_MERGE_LOOKS_MAX 16 /* candidates tested for the neighbour on one side */

/*
 * A request of this length or more is never merged. A NIC reaches line rate with far smaller WRs,
 * so little would be saved. The cost grows with the length: each request waits for the last byte of
 * the WR, which delays the user's next request. On softnic, merged 128 KiB reads at depth eight
 * reach 0.7 of the throughput of separate reads.
 */
#define WEIR_MERGE_REQ_BYTES_MAX (64u << 10)

/**
 * struct weir_merge_limits - how large a WR can be
 * @bytes_max: bytes, at most the fragment size, so that a request to be cut stays alone
 * @sge_max: scatter/gather entries, at most WEIR_WR_SGE_MAX
 */
struct weir_merge_limits {
	uint32_t bytes_max;
	uint8_t sge_max;
};

/**
 * struct weir_merge - the requests that the next WR will carry
 * @first: the lowest remote address; @merge_next leads to the others
 * @last: the highest remote address
 * @bytes: total bytes
 * @nr_reqs: how many requests
 * @nr_sge: SGEs needed at most
 *
 * Planning changes only @merge_next in the requests, which has no meaning while a request is ready.
 */
struct weir_merge {
	struct weir_req *first;
	struct weir_req *last;
	uint32_t bytes;
	uint16_t nr_reqs;
	uint8_t nr_sge;
};

/* Whether @req is short enough to be worth merging. */
static inline bool weir_merge_is_worthwhile(const struct weir_req *req)
{
	return req->length < WEIR_MERGE_REQ_BYTES_MAX;
}

/**
 * weir_merge_begin() - plan a WR with a part of one request
 * @m: the plan
 * @req: ready
 * @bytes: length of the next part of @req
 */
static inline void weir_merge_begin(struct weir_merge *m, struct weir_req *req, uint32_t bytes)
{
	req->merge_next = NULL;
	m->first = m->last = req;
	m->bytes = bytes;
	m->nr_reqs = 1;
	m->nr_sge = req->nr_sge;
}

/**
 * weir_merge_grow() - add neighbours on both sides, as many as fit
 * @m: a plan that has begun
 * @order: where to find neighbours
 * @limits: the largest WR allowed
 *
 * Merged requests are all reads or all writes, of one region, shorter than
 * WEIR_MERGE_REQ_BYTES_MAX, ready and unposted. Ready requests never wait for each other, so
 * merging breaks no order. Takes logarithmic time a request.
 */
void weir_merge_grow(struct weir_merge *m, const struct weir_order *order,
		     const struct weir_merge_limits *limits);

#endif
