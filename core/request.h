/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the engine works on: a request as the user submitted it, and the work
 * requests (WRs) that the engine makes of it.
 *
 * A request lives in the caller's memory from weir_engine_submit() until the
 * engine hands it back in a WEIR_ACTION_DONE. In between the engine owns every
 * field of it. It may become several WRs: it is cut at the fragment size, and
 * each WR takes the channel that has room. Or it is merged with its neighbours,
 * and they become one WR.
 */
#ifndef WEIR_CORE_REQUEST_H
#define WEIR_CORE_REQUEST_H

#include "core/platform.h"
#include "core/list.h"
#include "core/order.h"
#include "core/route.h"

#define WEIR_SGE_MAX 8 /* scatter/gather entries of one request */
#define WEIR_WR_SGE_MAX 32 /* of one WR, which may carry several */
#define WEIR_NEVER UINT64_MAX

enum weir_op {
	WEIR_OP_READ,
	WEIR_OP_WRITE,
	WEIR_OP_CAS, /* 8 bytes; the old value lands in sge[0] */
	WEIR_OP_FADD, /* 8 bytes; the old value lands in sge[0] */
	WEIR_OP_SEND, /* a message, on channel 0, never cut */
	WEIR_OP_BARRIER, /* done when all before it are done; all after it wait for it */
};

/* Where a request stands; it only ever goes down this list, but for a retry. */
enum weir_req_state {
	WEIR_REQ_BEHIND, /* waits for a barrier before it, or is one */
	WEIR_REQ_HELD, /* waits for requests that it conflicts with */
	WEIR_REQ_READY, /* has parts to be posted */
	WEIR_REQ_FLIGHT, /* waits for completions, or for what went astray, only */
	WEIR_REQ_DONE, /* waits to be handed back, or has been */
};

/* One piece of local memory, registered by the host under @lkey. */
struct weir_sge {
	uint64_t addr;
	uint32_t length; /* bytes */
	uint32_t lkey;
};

/**
 * struct weir_req - one request as submitted
 * @op: what to do
 * @retries: how often a request that is safe to repeat may be posted again after a channel
 *	failed: a read, or an @exclusive write
 * @exclusive: nobody else changes the range, so that writing the same once more does no harm
 * @hint: what its user knows of how often it writes there, an enum weir_route_hint
 * @nr_sge: entries used in @sge, at most WEIR_SGE_MAX
 * @rkey: remote key of the region
 * @remote: remote virtual address; the order promise goes by it
 * @length: bytes; the sum over @sge
 * @compare: CAS: expected value
 * @operand: CAS: new value; FADD: what to add
 * @deadline_ns: when it ends with -ETIMEDOUT, or WEIR_NEVER. Later it ends while WRs of it are in
 *	flight, for the NIC may still touch its memory; and while it is astray, for what has ended
 *	must not change the range any more: its user may have given that to somebody else
 * @status: result: 0 or a negative errno from docs/reference/errors.md, valid once done
 * @sge: local memory, in order
 *
 * The members below @sge are the engine's:
 *
 * @order: its remote range among those not done
 * @link: in at most one queue: behind a barrier, ready, astray, done
 * @deadline_link: among those with a deadline
 * @epoch: how many barriers were submitted before it
 * @posted: bytes given to WRs
 * @wrs: WRs in flight
 * @astray: bit n: what it sent on channel n is lost, and may still arrive
 * @state: an enum weir_req_state
 * @sent: something of it reached a channel, so that it may have taken effect
 * @again: to be posted again from its beginning when @wrs is 0
 * @lost: doing so costs one of @retries
 * @alone: a WR that it shared was refused: it is merged no more, so that whose fault it was
 *	shows
 * @path: how it is to go, when that is decided already: an enum weir_path
 * @beside: the next of the WR that it shares, which begins where this one ends, or NULL
 */
struct weir_req {
	enum weir_op op;
	uint8_t retries;
	bool exclusive;
	uint8_t hint;
	uint8_t nr_sge;
	uint32_t rkey;
	uint64_t remote;
	uint64_t length;
	uint64_t compare;
	uint64_t operand;
	uint64_t deadline_ns;
	int status;
	struct weir_sge sge[WEIR_SGE_MAX];

	struct weir_order_node order;
	struct weir_list link;
	struct weir_list deadline_link;
	uint64_t epoch;
	uint64_t posted;
	uint32_t wrs;
	uint32_t astray;
	uint8_t state;
	bool sent;
	bool again;
	bool lost;
	bool alone;
	uint8_t path;
	struct weir_req *beside;
};

/**
 * struct weir_wr - one work request in flight
 * @next: the next of its batch, in posting order
 * @req: the request that it is a part of; or the first of several that it carries whole,
 *	linked by @beside, in the order of their remote addresses
 * @offset: where in @req it begins, bytes; its remote address is that of @req and this
 * @length: bytes
 * @channel: where it is posted
 * @posted_ns: when, as the window knew the time
 * @nr_reqs: requests that it carries, at least 1
 * @nr_sge: entries used in @sge
 * @path: how it was to go: an enum weir_path
 * @streams: it carries neighbours, or came beside one that was not done
 * @sge: the local memory of what it carries
 *
 * Its address is the wr_id that the host posts and finds in the completion.
 */
struct weir_wr {
	struct weir_wr *next;
	struct weir_req *req;
	uint64_t offset;
	uint64_t posted_ns;
	uint32_t length;
	uint16_t channel;
	uint16_t nr_reqs;
	uint8_t nr_sge;
	uint8_t path;
	bool streams;
	struct weir_sge sge[WEIR_WR_SGE_MAX];
};

/**
 * struct weir_wc - a work completion, with the verbs status translated
 * @wr: what completed
 * @status: 0, or
 *	-ECONNRESET it was posted, and flushed or failed by the transport: it may be under way
 *	            still. To be reported when the device has let go of local memory;
 *	-ENOTCONN   it was never posted: the post failed at it or before it in its chain;
 *	-EACCES     the peer refused the access, and executes nothing more on this channel;
 *	-EFAULT     local memory was not as registered;
 *	-EIO        the rest: it may be under way still, too.
 * @verbs: what it was translated from, which ibv_wc_status_str() has words for; 0 where there was
 *	no completion of its own. For the trace
 */
struct weir_wc {
	struct weir_wr *wr;
	int status;
	uint8_t verbs;
};

/**
 * weir_req_check() - whether a request makes sense
 * @req: as the user filled it in
 * @send_max: longest message, bytes
 *
 * Context: Any.
 * Return: 0, or
 *	-EINVAL   unknown op; nothing to transfer; @length is not the sum over @sge; the
 *	          remote range wraps; an atomic that is not 8 aligned bytes;
 *	-EMSGSIZE a message longer than @send_max.
 */
int weir_req_check(const struct weir_req *req, uint32_t send_max);

/* A read or write of one piece of memory that weir_req_check() accepts: what most are. */
static inline bool weir_req_is_plain(const struct weir_req *req)
{
	return req->op <= WEIR_OP_WRITE && req->nr_sge == 1 && req->length &&
	       req->length == req->sge[0].length && req->remote + (req->length - 1) >= req->remote;
}

/**
 * weir_req_modifies() - whether it changes the remote memory that it names
 * @req: the request
 *
 * Context: Any.
 * Return: true for a write or an atomic.
 */
static inline bool weir_req_modifies(const struct weir_req *req)
{
	return req->op == WEIR_OP_WRITE || req->op == WEIR_OP_CAS || req->op == WEIR_OP_FADD;
}

#endif
