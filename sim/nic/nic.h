/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A NIC, stage by stage. A message passes:
 *
 *	doorbell     over PCIe; a BlueFlame write brings the WQE along
 *	fetch        other WQEs are read from memory, several at a time          transmit.c
 *	PU           one WQE of a QP after the other, on the unit that the QP is bound to
 *	pipeline     what all units share: so many WQEs a second; a context that is in no
 *	             cache is read from memory, and everybody waits for a part of that
 *	payload      is is read from memory, a quantum of one QP after that of another; by class
 *	port, wire   one packet after the other, here and, after the switch, there  stream.c
 *	responder    the pipeline of the other NIC, its caches; then memory        receive.c
 *	answer       an acknowledgement before the data has landed; or the data that was read
 *	completion   in the order posted; the CQE is written to memory           complete.c
 *
 * Stages that serve in the order asked are servers (server.h); what is between two stages is an
 * event. QPs are reliable connections; nothing is lost on the wire.
 *
 * Context of all: the simulation.
 */
#ifndef WEIR_SIM_NIC_NIC_H
#define WEIR_SIM_NIC_NIC_H

#include "sim/nic/cache.h"
#include "sim/nic/cq.h"
#include "sim/nic/server.h"
#include "sim/cpu/thread.h"

#define SIM_CLASSES 4 /* traffic classes; 0 goes first */

enum sim_op { SIM_OP_WRITE, SIM_OP_READ, SIM_OP_SEND, SIM_OP_WRITE_IMM, SIM_OP_CAS, SIM_OP_FADD };

/* A piece of registered memory. */
struct sim_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t key;
};

/**
 * struct sim_wr - a work request
 * @id: what its completion says
 * @op: an enum sim_op
 * @is_inline: the WQE carries the data; at most the profile's inline_max
 * @is_silent: no completion unless it fails
 * @nr_sge: of @sge
 * @sge: local memory; *kept until* it is done
 * @bytes: in all
 * @remote, @rkey: where to
 * @compare, @operand: of atomics
 */
struct sim_wr {
	uint64_t id;
	uint8_t op;
	bool is_inline;
	bool is_silent;
	uint8_t nr_sge;
	const struct sim_sge *sge;
	uint32_t bytes;
	uint32_t rkey;
	uint64_t remote;
	uint64_t compare;
	uint64_t operand;
};

struct sim_nic;
struct sim_qp;

/**
 * struct sim_wqe - a work request in a send queue, and the message that it becomes
 * @wr: as posted
 * @qp: where
 * @event: its next step
 * @link: among the messages of a stream
 * @left: bytes that its stream has yet to send
 * @chain: WQEs that its doorbell announced
 * @is_fetched: the NIC has it
 * @is_bound: it is in the send queue
 * @is_done: confirmed
 * @status: 0 or a negative errno
 */
struct sim_wqe {
	struct sim_wr wr;
	struct sim_qp *qp;
	struct sim_event event;
	struct weir_list link;
	uint32_t left;
	uint32_t chain;
	bool is_fetched;
	bool is_bound;
	bool is_done;
	int16_t status;
};

/**
 * struct sim_stream - messages that a QP has to send, one after the other
 * @link: among those that want a turn
 * @messages: by link
 * @ready_ps: nothing of it reaches the port earlier
 * @qp: whose; requests and answers are two streams
 */
struct sim_stream {
	struct weir_list link;
	struct weir_list messages;
	uint64_t ready_ps;
	struct sim_qp *qp;
};

/**
 * struct sim_qp - one end of a connection
 * @nic, @peer: where it is, and its other end
 * @number: on its NIC
 * @class: its traffic class
 * @send_cq, @recv_cq: where completions go
 * @sq, @depth: the send queue, a ring
 * @head, @posted, @visible, @fetched, @sent: WQEs ever: done; posted; known to the NIC; that it
 *	has; taken by the PU
 * @fetching: WQEs on their way to it
 * @fetch: they have come
 * @link: among those that their PU may serve
 * @recvs: receives posted
 * @reads: under way
 * @out_ps: no WQE leaves the pipeline earlier
 * @in_ps: nor anything that comes in
 * @stalled_ps: nothing is taken before that time, because a receive was missing
 * @requests, @answers: what it has to send
 * @execute: told when a message takes effect in the memory of this end, or NULL. A write that
 *	lands after it was confirmed may have lost its pieces by then
 * @arg: for @execute
 */
struct sim_qp {
	struct sim_nic *nic;
	struct sim_qp *peer;
	uint32_t number;
	uint8_t class;
	struct sim_cq *send_cq;
	struct sim_cq *recv_cq;
	struct sim_wqe *sq;
	uint32_t depth;
	uint64_t head, posted, visible, fetched, sent;
	uint32_t fetching;
	struct sim_event fetch;
	struct weir_list link;
	uint32_t recvs;
	uint32_t reads;
	uint64_t out_ps, in_ps, stalled_ps;
	struct sim_stream requests;
	struct sim_stream answers;
	void (*execute)(void *arg, const struct sim_wr *wr);
	void *arg;
};

/**
 * struct sim_pu - a processing unit
 * @event: it is free again
 * @ready: QPs with a WQE for it, by class
 * @is_busy: until @event
 */
struct sim_pu {
	struct sim_event event;
	struct weir_list ready[SIM_CLASSES];
	bool is_busy;
};

enum sim_packet_kind { SIM_REQUEST, SIM_RESPONSE };

/**
 * struct sim_packet - up to a burst of one message, on its way
 * @event: its next step
 * @wqe: the message
 * @bytes: of data
 * @offset: of it in the message
 * @kind: an enum sim_packet_kind
 * @is_first, @is_last: of its message
 * @wr: of the message, when it may be over for its sender before it has landed
 * @next: free ones
 */
struct sim_packet {
	struct sim_event event;
	struct sim_wqe *wqe;
	uint32_t bytes;
	uint32_t offset;
	uint8_t kind;
	bool is_first;
	bool is_last;
	struct sim_wr wr;
	struct sim_packet *next;
};

/**
 * struct sim_nic_counts - what passed
 * @wqes, @reads, @doorbells, @fetches, @cqes, @rnrs, @packets: so many; @reads: of @wqes
 */
struct sim_nic_counts {
	uint64_t wqes, reads, doorbells, fetches, cqes, rnrs, packets;
};

/**
 * struct sim_nic - one NIC
 * @host: where it is
 * @clock, @profile: the host's
 * @pus: processing units
 * @pipe: what they share
 * @pcie_read, @pcie_write: reading memory and writing it
 * @port_out, @port_in: the link
 * @atomics: one after the other
 * @streams: that want their payload read, by class
 * @turn: the quantum that is being read is over
 * @reading: whose quantum is being read, until @turn, or NULL
 * @wqes, @qpcs, @mtts, @mpts: its caches
 * @free_packets: none is ever given back to the system before sim_nic_fini()
 * @slabs: where they came from
 * @nr_qps: so far
 * @counts: what passed
 */
struct sim_nic {
	struct sim_host *host;
	struct sim_clock *clock;
	const struct sim_profile *profile;
	struct sim_pu *pus;
	struct sim_server pipe;
	struct sim_server pcie_read, pcie_write;
	struct sim_server port_out, port_in;
	struct sim_server atomics;
	struct weir_list streams[SIM_CLASSES];
	struct sim_event turn;
	struct sim_stream *reading;
	struct sim_cache wqes, qpcs, mtts, mpts;
	struct sim_packet *free_packets;
	struct sim_slab *slabs;
	uint32_t nr_qps;
	struct sim_nic_counts counts;
};

/* An idle NIC in @host, *kept*. Return: 0, or -ENOMEM. */
int sim_nic_init(struct sim_nic *nic, struct sim_host *host);

/* Frees what it holds; its QPs were finished before. */
void sim_nic_fini(struct sim_nic *nic);

/* The contexts of @bytes of memory at @addr under @key are in @nic's caches, as after a request; no look. */
void sim_memory_cached(struct sim_nic *nic, uint32_t key, uint64_t addr, uint64_t bytes);

/**
 * sim_qp_init() - one end of a connection
 * @qp: *kept*
 * @nic, @send_cq, @recv_cq: *kept*
 * @depth: WQEs that its send queue holds
 * @class: traffic class, below SIM_CLASSES
 *
 * Return: 0, or -ENOMEM.
 */
int sim_qp_init(struct sim_qp *qp, struct sim_nic *nic, struct sim_cq *send_cq,
		struct sim_cq *recv_cq, uint32_t depth, uint8_t class);

/* Frees what it holds. */
void sim_qp_fini(struct sim_qp *qp);

/* Makes the two ends of a connection of them. */
void sim_qp_connect(struct sim_qp *a, struct sim_qp *b);

/**
 * sim_qp_put() - write a WQE into the send queue, for a later sim_qp_ring()
 *
 * Return: the WQE, or NULL: the queue is full.
 */
struct sim_wqe *sim_qp_put(struct sim_qp *qp, const struct sim_wr *wr);

/* Tells the NIC of @count WQEs, @first and those after it; @blueflame: and brings the one. */
void sim_qp_ring(struct sim_qp *qp, struct sim_wqe *first, uint32_t count, bool blueflame);

#endif
