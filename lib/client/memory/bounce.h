/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests on unregistered memory (RDMAbox, section IV-A). The bytes are copied through registered
 * buffers (preMR), or the memory is registered for the duration of the request (dynMR). The cheaper
 * way depends on length and machine: weir measures both when a device is first used.
 */
#ifndef WEIR_LIB_CLIENT_MEMORY_BOUNCE_H
#define WEIR_LIB_CLIENT_MEMORY_BOUNCE_H

#include <infiniband/verbs.h>
#include <weir/request.h>
#include "core/engine/request.h"
#include "lib/client/memory/bounce_pool.h"
#include "lib/client/memory/memory.h"

struct weir_nic;
struct weir_session;

#define WEIR_BOUNCE_PRE_BYTES_MAX (WEIR_SGE_MAX * WEIR_BOUNCE_BUFFER_BYTES_MAX)

enum weir_bounce_mode {
	WEIR_BOUNCE_NONE, /* the user has registered all pieces */
	WEIR_BOUNCE_PRE,
	WEIR_BOUNCE_DYN,
};

/**
 * struct weir_bounce - resources of one request
 * @mode: always valid; the other fields only for PRE and DYN
 * @nr_borrowed: number of @blocks or @mrs
 * @blocks: of the buffers in the request's sge
 * @iov, @iovcnt: the user's memory
 */
struct weir_bounce {
	enum weir_bounce_mode mode;
	unsigned int nr_borrowed;
	union {
		struct weir_bounce_block *blocks[WEIR_SGE_MAX];
		struct ibv_mr *mrs[WEIR_SGE_MAX];
	};
	unsigned int iovcnt;
	struct weir_iov iov[WEIR_SGE_MAX];
};

/**
 * weir_bounce_map() - fill in a request's local memory
 * @req: its op is set; receives @sge, @nr_sge and @length
 * @iov, @iovcnt: 1 to 8 pieces; pieces without a memory may be anywhere
 * @bounce: receives the resources for weir_bounce_unmap(), also on failure
 *
 * Context: any thread; without locks.
 * Return: 0; -EINVAL; -ENOMEM the memory cannot or must not be registered, and there is no buffer;
 * -EAGAIN it must not be registered, and all buffers are in use: try again.
 */
int weir_bounce_map(struct weir_session *session, struct weir_req *req, const struct weir_iov *iov,
		    unsigned int iovcnt, struct weir_bounce *bounce);

/*
 * As weir_bounce_map(), for the common case of one registered piece. Return: false in other cases.
 */
static inline bool weir_bounce_map_registered(const struct weir_nic *nic, struct weir_req *req,
					      const struct weir_iov *iov, unsigned int iovcnt,
					      struct weir_bounce *bounce)
{
	if (iovcnt != 1 || !iov || !iov->memory || !weir_memory_covers(iov->memory, nic, iov))
		return false;
	req->nr_sge = 1;
	req->length = iov->length;
	req->sge[0] = weir_memory_sge(iov->memory, iov);
	bounce->mode = WEIR_BOUNCE_NONE;
	return true;
}

/*
 * Copies read data to the user after a success, and gives all resources back. Also for a request
 * never submitted. Context: any thread; without locks.
 */
void weir_bounce_unmap(struct weir_session *session, const struct weir_req *req,
		       struct weir_bounce *bounce);

/**
 * struct weir_bounce_totals - copies and registrations not yet in the trace
 * @copied, @registered: requests
 * @copied_bytes, @registered_bytes: their bytes
 * @told_ns: time of the last record
 *
 * A record for each would leave the trace no room for other events. Guarded by the NIC's lock.
 */
struct weir_bounce_totals {
	uint32_t copied, registered;
	uint64_t copied_bytes, registered_bytes;
	uint64_t told_ns;
};

/* Counts a submitted request of @bytes, by its mode. With nic->lock held. */
void weir_bounce_count(struct weir_session *session, enum weir_bounce_mode mode, uint64_t bytes);

/* Traces the totals, unless it did so recently. With nic->lock held. */
void weir_bounce_trace(struct weir_session *session);

/* Measures the length from which registering beats copying. Return: bytes. */
uint32_t weir_bounce_measure(struct ibv_pd *pd);

#endif
