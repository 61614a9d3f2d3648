/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The objects of the engine: the user's request, and the work requests (WRs) that the engine makes
 * from a request.
 *
 * A request lives in the caller's memory, and the engine owns every field from weir_engine_submit()
 * until the WEIR_ACTION_DONE. A long request is cut into several WRs, each on a channel with room.
 * Short neighbours are merged into one WR.
 */
#ifndef WEIR_CORE_ENGINE_REQUEST_H
#define WEIR_CORE_ENGINE_REQUEST_H

#include "core/base/platform.h"
#include "core/base/list.h"
#include "core/engine/order.h"
#include "core/unload/path.h"

#define WEIR_SGE_MAX 8 /* scatter/gather entries of one request */
#define WEIR_WR_SGE_MAX 32 /* of one WR, which may carry several requests */
#define WEIR_NEVER UINT64_MAX

enum weir_op {
	WEIR_OP_READ,
	WEIR_OP_WRITE,
	WEIR_OP_CAS, /* 8 bytes; the old value lands in sge[0] */
	WEIR_OP_FADD, /* 8 bytes; the old value lands in sge[0] */
	WEIR_OP_SEND, /* a message, on channel 0, never cut */
	WEIR_OP_BARRIER, /* done when all requests before it are done; later requests wait for it */
};

/* The state of a request. It moves down this list, except for a retry and an unposted WR. */
enum weir_req_state {
	WEIR_REQ_BEHIND_BARRIER, /* waits for an earlier barrier, or is a barrier */
	WEIR_REQ_HELD, /* waits for conflicting requests */
	WEIR_REQ_READY, /* has parts to post */
	WEIR_REQ_IN_FLIGHT, /* waits only for completions, or for WRs in doubt */
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
 * @op: the operation
 * @retries: how often a request may be posted again after a channel failure. Only reads and
 *	@exclusive writes are
 * @exclusive: no other session changes the range, so repeating the write is harmless
 * @hint: the user's hint on how often it writes there, an enum weir_path_hint
 * @nr_sge: entries used in @sge, at most WEIR_SGE_MAX
 * @rkey: remote key of the region
 * @class: an enum weir_window_class plus 1, or 0: the session's. Messages are of the session's
 * @remote: remote virtual address, by which requests are ordered
 * @length: bytes; the sum over @sge
 * @compare: CAS: expected value
 * @operand: CAS: new value; FADD: addend
 * @deadline_ns: when the request ends with -ETIMEDOUT, or WEIR_NEVER. The end is delayed while WRs
 *	are in flight, because the NIC may touch local memory. The end is also delayed while in
 *	doubt, because the user may pass on the remote range after the end
 * @status: result: 0 or a negative errno from docs/reference/errors.md, valid once done
 * @sge: local memory, in order
 *
 * The members below @sge are the engine's:
 *
 * @order: the remote range in the order
 * @link: in at most one queue: behind a barrier, ready, in doubt, or done
 * @deadline_link: in the list of deadlines
 * @barriers: barriers submitted before this request
 * @posted: bytes given to WRs
 * @wrs: WRs in flight
 * @in_doubt: bit n: a WR lost on channel n may still take effect
 * @state: an enum weir_req_state
 * @sent: a WR reached a channel, so the request may have taken effect
 * @must_repeat: post again from the beginning when @wrs is 0
 * @spends_retry: posting again costs one of @retries
 * @no_merge: a merged WR was refused: never merge this request again, so that the guilty request
 *	shows
 * @path: the path, if decided already: an enum weir_path
 * @merge_next: the next request of the shared WR, which begins where this one ends, or NULL
 */
struct weir_req {
	enum weir_op op;
	uint8_t retries;
	bool exclusive;
	uint8_t hint;
	uint8_t nr_sge;
	uint32_t rkey;
	uint8_t class;
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
	uint64_t barriers;
	uint64_t posted;
	uint32_t wrs;
	uint32_t in_doubt;
	uint8_t state;
	bool sent;
	bool must_repeat;
	bool spends_retry;
	bool no_merge;
	uint8_t path;
	struct weir_req *merge_next;
};

/**
 * struct weir_wr - one work request in flight
 * @next: the next of the batch, in posting order
 * @req: the request that this WR is a part of; or the first of several whole requests, linked by
 *	@merge_next in order of remote address
 * @offset: where in @req the WR begins, bytes, relative to the remote address of @req
 * @posted_ns: time of the post, by the window's clock
 * @length: bytes
 * @channel: number of the channel
 * @nr_reqs: requests carried, at least 1
 * @nr_sge: entries used in @sge
 * @path: the chosen path: an enum weir_path
 * @in_stream: carries neighbours, or arrived beside an unfinished request
 * @has_class: the window counts it for its class
 * @sge: local memory
 *
 * The host posts the address of this struct as wr_id and finds it in the completion.
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
	bool in_stream;
	bool has_class;
	struct weir_sge sge[WEIR_WR_SGE_MAX];
};

/**
 * struct weir_wc - a work completion, with the verbs status translated
 * @wr: the completed WR
 * @status: 0, or
 *	-ECONNRESET posted, then flushed or failed by the transport: may still be under way. Report
 *	  only when the device no longer uses local memory;
 *	-ENOTCONN   never posted: the post failed at this WR or before it in its chain;
 *	-EACCES     the peer refused the access, and executes nothing more on this channel;
 *	-EFAULT     local memory was not as registered;
 *	-EIO        any other error; may also be under way still.
 * @verbs: the original status, for ibv_wc_status_str(); 0 without a completion of its own. For the
 *	trace
 */
struct weir_wc {
	struct weir_wr *wr;
	int status;
	uint8_t verbs;
};

/**
 * weir_request_check() - validate a request
 * @req: as the user filled it in
 * @send_max: longest message, bytes
 *
 * Context: Any.
 * Return: 0, or
 *	-EINVAL   unknown op; nothing to transfer; @length is not the sum over @sge; the remote
 *	  range wraps; an atomic that is not 8 aligned bytes;
 *	-EMSGSIZE a message longer than @send_max.
 */
int weir_request_check(const struct weir_req *req, uint32_t send_max);

/* The usual case: a read or write of one SGE that weir_request_check() accepts. */
static inline bool weir_req_is_plain(const struct weir_req *req)
{
	return req->op <= WEIR_OP_WRITE && req->nr_sge == 1 && req->length &&
	       req->length == req->sge[0].length && req->remote + (req->length - 1) >= req->remote;
}

/**
 * weir_req_modifies() - whether a request changes its remote memory
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
