/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a request reaches memory that nobody registered (RDMAbox, section IV-A): its bytes are
 * copied through buffers that are (preMR), or the memory is registered for as long as the
 * request is under way (dynMR). Which is cheaper is a matter of the length, and of the machine:
 * it is measured when a device is first used.
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
	WEIR_BOUNCE_NONE, /* the user has registered it all */
	WEIR_BOUNCE_PRE,
	WEIR_BOUNCE_DYN,
};

/**
 * struct weir_bounce - what one request borrowed
 * @mode: valid always, all else only for the other two
 * @nr_borrowed: of @blocks, or of @mrs
 * @blocks: those that the buffers are of, which the request's sge tells
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
 * @iov, @iovcnt: 1 to 8 pieces; those without a memory may be anywhere
 * @bounce: receives what weir_bounce_unmap() wants, also on failure
 *
 * Context: any thread; without locks.
 * Return: 0; -EINVAL; -ENOMEM the memory cannot be registered, or is not to be, and there is no
 * buffer; -EAGAIN it is not to be, and all buffers are in use: one will come back.
 */
int weir_bounce_map(struct weir_session *session, struct weir_req *req, const struct weir_iov *iov,
		    unsigned int iovcnt, struct weir_bounce *bounce);

/* The same for what most are, one piece that is registered. Return: false: it is none. */
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
 * The request is done, or was never begun: gives back what it borrowed, and brings the user what
 * was read, if it was. Context: any thread; without locks.
 */
void weir_bounce_unmap(struct weir_session *session, const struct weir_req *req,
		       struct weir_bounce *bounce);

/**
 * struct weir_bounce_totals - what was copied or registered, and the trace has not been told of
 * @copied, @registered: requests
 * @copied_bytes, @registered_bytes: of them
 * @told_ns: when it was told last
 *
 * A record of each would leave the trace no room for anything else. Guarded by the NIC's lock.
 */
struct weir_bounce_totals {
	uint32_t copied, registered;
	uint64_t copied_bytes, registered_bytes;
	uint64_t told_ns;
};

/* A request of @bytes is on its way, which was to be copied or registered. With nic->lock held. */
void weir_bounce_count(struct weir_session *session, enum weir_bounce_mode mode, uint64_t bytes);

/* Tells the trace of all of them, unless that was just done. With nic->lock held. */
void weir_bounce_trace(struct weir_session *session);

/* Measures from which length on registering beats copying. Return: bytes. */
uint32_t weir_bounce_measure(struct ibv_pd *pd);

#endif
