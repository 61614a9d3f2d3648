/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Merging: requests that lie side by side at the destination become one work request
 * (RDMAbox, section IV-A), whatever the order they came in.
 */
#ifndef WEIR_CORE_ENGINE_MERGE_H
#define WEIR_CORE_ENGINE_MERGE_H

#include "core/engine/request.h"

#define WEIR_MERGE_REQS_MAX 256 /* requests in one WR */
#define WEIR_MERGE_LOOKS_MAX 16 /* requests looked at for the neighbour on one side */

/*
 * A request of so many bytes or more stays by itself. What merging saves is a matter of work
 * requests, not of bytes: a NIC that is given far smaller ones sends at line rate, so there is next
 * to nothing to save. What it costs is a matter of bytes: each part waits for the last of all, and
 * its user meanwhile cannot ask for more. On softnic reads of 128 KiB, eight at a time, made 0.7 of
 * what they make apart.
 */
#define WEIR_MERGE_REQ_BYTES_MAX (64u << 10)

/**
 * struct weir_merge_limits - how large a WR can be
 * @bytes_max: no request is added that would make it longer; at most what requests are cut
 *	at, so that one that will be cut stays alone
 * @sge_max: entries of local memory, at most WEIR_WR_SGE_MAX
 */
struct weir_merge_limits {
	uint32_t bytes_max;
	uint8_t sge_max;
};

/**
 * struct weir_merge - the requests that the next WR will carry
 * @first: the first by remote address; @merge_next leads to the others
 * @last: the last
 * @bytes: in all
 * @nr_reqs: how many
 * @nr_sge: entries of local memory that they need at most
 *
 * A plan, until somebody carries it out: nothing of the requests changes but @merge_next, which
 * means nothing while they are ready.
 */
struct weir_merge {
	struct weir_req *first;
	struct weir_req *last;
	uint32_t bytes;
	uint16_t nr_reqs;
	uint8_t nr_sge;
};

/* Whether it is short enough to be worth merging. */
static inline bool weir_merge_is_worthwhile(const struct weir_req *req)
{
	return req->length < WEIR_MERGE_REQ_BYTES_MAX;
}

/**
 * weir_merge_begin() - plan a WR with a part of one request
 * @m: the plan
 * @req: ready
 * @bytes: of its next part
 *
 * Context: Any; never sleeps. Externally serialised.
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
 * weir_merge_grow() - add what lies merge_next it, on both sides, as far as it goes
 * @m: a plan that has begun
 * @order: where the neighbours are found
 * @limits: what the WR may grow to
 *
 * Only reads with reads and writes with writes, of one region, each shorter than
 * WEIR_MERGE_REQ_BYTES_MAX, all ready and with nothing posted yet: two that are ready never wait for
 * each other, so no order is broken. Takes logarithmic time for each request added.
 *
 * Context: Any; never sleeps. Externally serialised.
 */
void weir_merge_grow(struct weir_merge *m, const struct weir_order *order,
		     const struct weir_merge_limits *limits);

#endif
