/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One end of a RoCE v2 connection (RC, UC) or a datagram endpoint (UD), without sockets, clock,
 * threads or allocation. Packets and time go in; packets, completions and a deadline come out.
 *
 * The host owns all memory, and does each access to the program's memory itself, through struct
 * roce_ops. So every key, bound and right is checked by the host's code, for each packet.
 *
 * The loop of a host: after roce_qp_post(), roce_qp_input() or roce_qp_expired(), take packets
 * with roce_qp_output() until none is left, then completions with roce_qp_completion(). Call
 * roce_qp_expired() at roce_qp_deadline_ns().
 *
 * Context of all: serialised per queue pair by the host; no call sleeps.
 */
#ifndef WEIR_SOFTNIC_ROCE_QP_H
#define WEIR_SOFTNIC_ROCE_QP_H

#include "softnic/roce/packet.h"
#include "softnic/roce/rate.h"
#include "softnic/roce/timeout.h"

#define ROCE_NEVER UINT64_MAX

enum {
	ROCE_MTU_MIN = 256,
	ROCE_MESSAGE_MAX = 1u << 31, /* bytes, the specification's limit */
	ROCE_WINDOW_MAX = 1 << 22, /* packets; PSNs must stay within half their range */
	ROCE_RECEIVES_UNKNOWN = -1,
};

/* Operations of a work request. */
enum roce_op {
	ROCE_OP_SEND,
	ROCE_OP_SEND_IMM,
	ROCE_OP_SEND_INV,
	ROCE_OP_WRITE,
	ROCE_OP_WRITE_IMM,
	ROCE_OP_READ,
	ROCE_OP_CMP_SWAP,
	ROCE_OP_FETCH_ADD,
	ROCE_OP_ATOMIC_WRITE,
};

/* Results, as enum ibv_wc_status names them. */
enum roce_status {
	ROCE_SUCCESS,
	ROCE_LOC_LEN,
	ROCE_LOC_PROT,
	ROCE_REM_INV_REQ,
	ROCE_REM_ACCESS,
	ROCE_REM_OP,
	ROCE_RETRY_EXC,
	ROCE_RNR_RETRY_EXC,
	ROCE_FLUSHED,
};

enum roce_right {
	ROCE_RIGHT_WRITE,
	ROCE_RIGHT_READ,
	ROCE_RIGHT_ATOMIC,
};

/**
 * struct roce_wqe - a work request, and its progress
 * @id: the host's
 * @path: the host's; for UD the way to the destination, given back with the packet
 * @op: enum roce_op
 * @is_solicited: the receiver's program gets an event
 * @is_fenced: waits for earlier reads and atomics
 * @length: of the message, in bytes; 8 for atomics, of which an atomic write is one
 * @imm: immediate data in network order of its bytes, or the key to invalidate
 * @addr, @rkey: remote memory of writes, reads and atomics
 * @swap_add, @compare: of atomics
 * @dest_qpn, @qkey: UD only
 *
 * The requester's:
 *
 * @first, @end: its PSNs: from @first to before @end; a read's are those of its responses
 * @number: of its last message, counted from 1 (the specification's SSN); a long read has many
 */
struct roce_wqe {
	uint64_t id;
	uint64_t path;
	uint8_t op;
	bool is_solicited;
	bool is_fenced;
	uint32_t length;
	uint32_t imm;
	uint32_t rkey;
	uint64_t addr;
	uint64_t swap_add;
	uint64_t compare;
	uint32_t dest_qpn;
	uint32_t qkey;
	uint64_t first;
	uint64_t end;
	uint32_t number;
};

/**
 * struct roce_arrival - the end of a receive
 * @status: ROCE_SUCCESS, ROCE_LOC_LEN or ROCE_LOC_PROT
 * @is_write: a write with immediate; its bytes lie in the memory that it names
 * @has_imm, @has_inv: which of both @imm is
 * @bytes: of the message; for UD with the GRH
 * @src_qpn: UD only
 */
struct roce_arrival {
	enum roce_status status;
	bool is_write;
	bool is_solicited;
	bool has_imm;
	bool has_inv;
	uint32_t imm;
	uint32_t bytes;
	uint32_t src_qpn;
};

/**
 * struct roce_ops - memory and receives of the host
 * @gather: copy @bytes of the message of @wqe, from @offset on, to @to
 * @scatter: copy a response to @offset of the memory of @wqe; an atomic's response has 8 bytes
 * @check: whether a peer may access the whole range; called once a message. Of an empty range only
 *	the queue pair's right counts, and no key
 * @read, @write: access a range for a peer if its key, bounds and rights allow; called per packet
 * @atomic: execute the atomic of a request if the peer may; @original: the value before, except for
 *	an atomic write, whose value is the payload of 8 bytes
 * @take: take the next receive: its room in bytes, or -EAGAIN if none is posted
 * @place: copy @bytes to @offset of the receive taken
 * @finish: end the receive taken, with a completion
 * @give_back: put the receive taken back, as the next one
 * @receives: posted and not taken; or ROCE_RECEIVES_UNKNOWN, for example for an SRQ
 * @invalidate: invalidate the key for the peer, if the peer may
 *
 * All but the last five return ROCE_SUCCESS or the status of the failed access; @place and
 * @invalidate do so, too.
 */
struct roce_ops {
	enum roce_status (*gather)(void *host, const struct roce_wqe *wqe, uint32_t offset,
				   uint32_t bytes, uint8_t *to);
	enum roce_status (*scatter)(void *host, const struct roce_wqe *wqe, uint32_t offset,
				    const uint8_t *from, uint32_t bytes);
	enum roce_status (*check)(void *host, uint32_t rkey, enum roce_right right, uint64_t addr,
				  uint32_t bytes);
	enum roce_status (*read)(void *host, uint32_t rkey, uint64_t addr, uint8_t *to,
				 uint32_t bytes);
	enum roce_status (*write)(void *host, uint32_t rkey, uint64_t addr, const uint8_t *from,
				  uint32_t bytes);
	enum roce_status (*atomic)(void *host, const struct roce_packet *request,
				   uint64_t *original);
	int64_t (*take)(void *host);
	enum roce_status (*place)(void *host, uint64_t offset, const uint8_t *from, uint32_t bytes);
	void (*finish)(void *host, const struct roce_arrival *arrival);
	void (*give_back)(void *host);
	int64_t (*receives)(void *host);
	enum roce_status (*invalidate)(void *host, uint32_t key);
};

/**
 * struct roce_counters - what happened to a queue pair so far
 * @bytes_in, @bytes_out: of payload
 * @refused: packets dropped, by reason
 * @duplicates: requests seen before; @gaps: requests past a lost one
 * @stray: responses that answer no open request
 * @retransmitted: request packets sent again
 */
struct roce_counters {
	uint64_t packets_in, packets_out;
	uint64_t bytes_in, bytes_out;
	uint64_t refused[ROCE_REFUSALS];
	uint64_t duplicates, gaps, stray;
	uint64_t retransmitted, timeouts;
	uint64_t naks_in, naks_out, rnr_in, rnr_out;
};

/* A read or atomic that the responder may have to answer again; private to responder.c. */
struct roce_resource {
	uint64_t first, end; /* PSNs of its responses */
	uint64_t begun; /* PSN of the first response to the last request */
	uint64_t next; /* PSN of the next response to send */
	uint64_t addr, original;
	uint32_t rkey, length;
	uint8_t request; /* opcode */
	bool is_pending; /* responses are left to send */
	bool is_again; /* they were all sent before */
};

/**
 * struct roce_config - attributes of a queue pair, as ibv_modify_qp() sets them
 * @ops, @host: *kept until* the queue pair's end
 * @wqes: memory of the send queue, @send_size entries, a power of two; *kept*, as the next
 * @resources: memory for @max_dest_rd_atomic entries
 * @mtu: bytes; 256 to 4096
 * @window: packets in flight at most, even without congestion; 1 to ROCE_WINDOW_MAX
 * @read_packets: responses to one read request at most; a longer read is requested in pieces
 * @max_rd_atomic: reads and atomics in flight at most
 * @timeout: local ACK timeout: 4.096 us * 2^n; 0: none
 * @early_ns: packets are sent again as early as this if round trips are short, instead of after
 *	@timeout; 0: never early
 * @retries, @rnr_retries: 7 for the last means no limit
 * @rnr_timer: the code that our RNR NAKs carry
 * @idle_ns: RC: a peer that was heard once, and is silent for so long, is asked whether it lives;
 *	0: never
 * @qkey: UD only; a WQE whose Q_Key has the highest bit sends this one, too
 */
struct roce_config {
	const struct roce_ops *ops;
	void *host;
	struct roce_wqe *wqes;
	struct roce_resource *resources;
	enum roce_transport transport;
	uint32_t send_size;
	uint32_t qpn, dest_qpn;
	uint32_t send_psn, receive_psn;
	uint32_t mtu;
	uint32_t window;
	uint32_t read_packets;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t timeout, retries, rnr_retries, rnr_timer;
	uint64_t early_ns, idle_ns;
	uint32_t qkey;
};

enum { ROCE_ASKS = 12 }; /* without an answer, then the peer is gone */

/**
 * struct roce_requester - the sending half; private to requester.c and requester_reply.c
 * @done, @current, @tail: of the ring: the first WQE that has not ended, the WQE to transmit next,
 *	the end; @reported: completions before it are taken
 * @acked: the first PSN that is not acknowledged; it lies in the WQE at @done
 * @next: the PSN to transmit next, in the WQE at @current
 * @sent: one past the highest PSN ever transmitted
 * @posted: PSN after the last WQE; @number: of the last message
 * @rate: bounds the packets in flight; @timeout: the wait for their answers
 * @reads_out: requests for data sent since the queue pair last went back, and not answered
 * @has_rewound: went back since the last progress
 * @unasked: packets since the last that wants an acknowledgement
 * @retries_left, @rnr_left: until the next progress
 * @deadline_ns: of the acknowledgement; @wait_until_ns: after an RNR NAK, else 0
 * @has_limit, @limit: the last message that the responder has a receive for
 * @probed: PSN after the packet sent without a receive to learn of new ones
 * @stuck: why the WQE at @stuck_at cannot be transmitted, or ROCE_SUCCESS
 * @failed_at: position of the WQE that failed with @failure; those after it are flushed
 * @heard_ns: when the peer was heard last, or asked last; 0: the peer was never heard
 * @asks: questions without an answer; @must_ask: one is to be sent; @hinted_ns: for a hint, when
 */
struct roce_requester {
	uint32_t reported, done, current, tail;
	uint64_t acked, next, sent, posted;
	uint32_t number;
	struct roce_rate rate;
	struct roce_timeout timeout;
	uint32_t reads_out;
	bool has_rewound;
	bool has_limit;
	bool is_failed;
	uint32_t unasked;
	uint8_t retries_left, rnr_left;
	uint64_t deadline_ns, wait_until_ns;
	uint32_t limit;
	uint64_t probed;
	enum roce_status stuck;
	uint32_t stuck_at, failed_at;
	enum roce_status failure;
	uint64_t heard_ns, hinted_ns;
	uint8_t asks;
	bool must_ask;
};

/**
 * struct roce_responder - the receiving half; private to responder.c and responder_reply.c
 * @expected: the next PSN in order
 * @msn: messages completed
 * @message: traits ROCE_IS_SEND or ROCE_IS_WRITE of the message begun, or 0
 * @offset: its bytes received; @room: of its receive
 * @rkey, @addr, @length: its RETH
 * @has_receive: a receive is taken
 * @has_gap: a NAK has reported the missing PSN
 * @nak: syndrome to send, or 0; @nak_psn: with this PSN
 * @owes_ack: an acknowledgement is to be sent
 * @newest: position in the ring of resources of the next entry; @nr_pending: those pending
 * @is_failed: a NAK has ended the queue pair
 */
struct roce_responder {
	uint64_t expected;
	uint32_t msn;
	uint32_t message;
	uint32_t rkey;
	uint32_t length;
	uint64_t addr;
	uint64_t offset, room;
	bool has_receive;
	bool has_gap;
	bool owes_ack;
	bool is_failed;
	uint8_t nak;
	uint64_t nak_psn;
	uint64_t newest;
	uint32_t nr_pending;
};

/**
 * struct roce_qp - a queue pair
 * @error: why the responder ended the queue pair, or ROCE_SUCCESS; for the asynchronous event
 * @is_lost: the peer has not answered while nothing was in flight; the queue pair has failed
 */
struct roce_qp {
	struct roce_config config;
	struct roce_requester req;
	struct roce_responder resp;
	struct roce_counters counters;
	enum roce_status error;
	bool is_lost;
	bool responds_next; /* both halves send by turns */
};

/**
 * struct roce_completion - a work request that has ended
 * @wqe: a copy
 */
struct roce_completion {
	struct roce_wqe wqe;
	enum roce_status status;
};

/**
 * roce_qp_ask() - something hints that the peer is gone: ask it, as after @idle_ns
 *
 * At most ten times a second. The hint shortens no other time.
 */
void roce_qp_ask(struct roce_qp *qp, uint64_t now_ns);

/** roce_qp_init() - a queue pair ready to send and receive; any contents of @qp before */
void roce_qp_init(struct roce_qp *qp, const struct roce_config *config);

/**
 * roce_qp_start_sending() - begin with an empty send queue, by the attributes now in @config
 *
 * For the transition to RTS: the queue pair may have received before. All completions are taken.
 */
void roce_qp_start_sending(struct roce_qp *qp);

/**
 * roce_qp_post() - append a work request
 * @wqe: copied
 *
 * Return: 0; -ENOMEM if the send queue is full; -EINVAL if the transport lacks the operation, or
 *	the message is too long.
 */
int roce_qp_post(struct roce_qp *qp, const struct roce_wqe *wqe);

/**
 * roce_qp_input() - a packet arrived
 * @p: decoded, from the peer's address, with a right ICRC as far as the host can know
 * @grh: ROCE_GRH_BYTES for UD's receives; ignored otherwise
 */
void roce_qp_input(struct roce_qp *qp, const struct roce_packet *p, const uint8_t *grh,
		   uint64_t now_ns);

/**
 * roce_qp_output() - take the next packet to send
 * @bytes: room for ROCE_PACKET_MAX
 * @path: written for UD: of the WQE
 *
 * Return: length without ICRC, which the caller appends; 0 if nothing is to be sent.
 */
size_t roce_qp_output(struct roce_qp *qp, uint8_t *bytes, uint64_t *path, uint64_t now_ns);

/** roce_qp_deadline_ns() - when to call roce_qp_expired(), or ROCE_NEVER */
uint64_t roce_qp_deadline_ns(const struct roce_qp *qp);

/** roce_qp_expired() - time has passed; too early: no effect */
void roce_qp_expired(struct roce_qp *qp, uint64_t now_ns);

/** roce_qp_completion() - take the next completion, in order of posting; false if none */
bool roce_qp_completion(struct roce_qp *qp, struct roce_completion *c);

/** roce_qp_fail() - enter the error state: open work requests are flushed, packets are dropped */
void roce_qp_fail(struct roce_qp *qp);

#endif
