/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A NIC, stage by stage. A message passes these stages:
 *
 *	doorbell     over PCIe; a BlueFlame write carries the WQE
 *	fetch        other WQEs are read from memory, several at a time          transmit.c
 *	PU           serves the WQEs of its QPs in order; a QP is bound to one PU
 *	pipeline     shared by all PUs; bounds the WQEs a second. A context that no cache
 *	             holds is read from memory, and the whole pipeline stalls for a part of
 *	             this time
 *	payload      read from memory in quanta, QPs in turn, by class
 *	port, wire   packets in order: this port, the switch, the peer's port    stream.c
 *	responder    the pipeline and caches of the peer's NIC; then memory      receive.c
 *	answer       an acknowledgement before the data has landed, or the data of a read
 *	completion   in the order posted; the CQE is written to memory           complete.c
 *
 * A stage that serves in order of arrival is a server (server.h). Between two stages lies an event.
 * QPs are reliable connections; the wire loses nothing.
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

/* A range of registered memory. */
struct sim_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t key;
};

/**
 * struct sim_wr - a work request
 * @id: copied to the completion
 * @op: an enum sim_op
 * @is_inline: the WQE carries the data, at most the profile's inline_max bytes
 * @is_silent: no completion unless the request fails
 * @nr_sge: entries of @sge
 * @sge: local memory; *kept until* the request is done
 * @bytes: total length
 * @remote, @rkey: the target
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
 * struct sim_wqe - a work request in a send queue, and its message
 * @wr: as posted
 * @qp: the QP
 * @event: the next step
 * @link: in the messages of a stream
 * @left: bytes that the stream has yet to send
 * @chain: WQEs announced by the same doorbell
 * @is_fetched: the NIC has the WQE
 * @is_bound: the WQE is in the send queue
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
 * struct sim_stream - messages that a QP sends in order
 * @link: in the list of streams that wait for a turn
 * @messages: by link
 * @ready_ps: earliest time for the next packet at the port
 * @qp: the QP; it has two streams, requests and answers
 */
struct sim_stream {
	struct weir_list link;
	struct weir_list messages;
	uint64_t ready_ps;
	struct sim_qp *qp;
};

/**
 * struct sim_qp - one end of a connection
 * @nic, @peer: the NIC, and the other end
 * @number: on @nic
 * @class: traffic class
 * @send_cq, @recv_cq: for completions
 * @sq, @depth: the send queue, a ring
 * @head, @posted, @visible, @fetched, @sent: total counts of WQEs: done; posted; announced to the
 *	NIC; fetched; taken by the PU
 * @fetching: WQEs being fetched
 * @fetch: end of the fetch
 * @link: in the ready list of the PU
 * @recvs: receives posted
 * @reads: reads and atomics under way
 * @out_ps: earliest time for the next WQE to leave the pipeline
 * @in_ps: earliest time for the next incoming packet to leave the pipeline
 * @stalled_ps: end of the wait for a missing receive
 * @requests, @answers: the streams
 * @execute: called when a message takes effect in the memory of this end, or NULL. A write that
 *	lands after its confirmation may have lost its @sge by then
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
 * @event: the unit is free again
 * @ready: QPs with a WQE for this unit, by class
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
 * @event: the next step
 * @wqe: the message
 * @bytes: data bytes
 * @offset: of the data in the message
 * @kind: an enum sim_packet_kind
 * @is_first, @is_last: position in the message
 * @wr: copy of the request; the sender may be done with the WQE before this packet has landed
 * @next: in the free list
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
 * struct sim_nic_counts - counters of a NIC
 * @wqes, @reads, @doorbells, @fetches, @cqes, @rnrs, @packets: counts; @reads is part of @wqes
 */
struct sim_nic_counts {
	uint64_t wqes, reads, doorbells, fetches, cqes, rnrs, packets;
};

/**
 * struct sim_nic - one NIC
 * @host: the machine
 * @clock, @profile: the host's
 * @pus: processing units
 * @pipe: the pipeline shared by @pus
 * @pcie_read, @pcie_write: reads and writes of memory
 * @port_out, @port_in: the link
 * @atomics: executes atomics one by one
 * @streams: streams that wait to read their payload, by class
 * @turn: end of the quantum being read
 * @reading: the stream whose quantum is being read, until @turn, or NULL
 * @wqes, @qpcs, @mtts, @mpts: caches
 * @free_packets: freed only by sim_nic_fini()
 * @slabs: allocations that hold the packets
 * @nr_qps: QPs so far
 * @counts: counters
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

/* Frees all memory of the NIC. The caller has finished its QPs. */
void sim_nic_fini(struct sim_nic *nic);

/* Puts the contexts of @bytes of memory at @addr under @key in @nic's caches. Counts nothing. */
void sim_memory_cached(struct sim_nic *nic, uint32_t key, uint64_t addr, uint64_t bytes);

/**
 * sim_qp_init() - one end of a connection
 * @qp: *kept*
 * @nic, @send_cq, @recv_cq: *kept*
 * @depth: capacity of the send queue in WQEs
 * @class: traffic class, below SIM_CLASSES
 *
 * Return: 0, or -ENOMEM.
 */
int sim_qp_init(struct sim_qp *qp, struct sim_nic *nic, struct sim_cq *send_cq,
		struct sim_cq *recv_cq, uint32_t depth, uint8_t class);

/* Frees the send queue. */
void sim_qp_fini(struct sim_qp *qp);

/* Connects two QPs. */
void sim_qp_connect(struct sim_qp *a, struct sim_qp *b);

/**
 * sim_qp_put() - write a WQE into the send queue, for a later sim_qp_ring()
 *
 * Return: the WQE, or NULL: the queue is full.
 */
struct sim_wqe *sim_qp_put(struct sim_qp *qp, const struct sim_wr *wr);

/*
 * Announces @count WQEs to the NIC, starting at @first. With @blueflame, the doorbell write carries
 * the (only) WQE.
 */
void sim_qp_ring(struct sim_qp *qp, struct sim_wqe *first, uint32_t count, bool blueflame);

#endif
