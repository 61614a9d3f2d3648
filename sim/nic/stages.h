/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls between the stages of a NIC; nic.h describes the stages in order. */
#ifndef WEIR_SIM_NIC_STAGES_H
#define WEIR_SIM_NIC_STAGES_H

#include "sim/nic/nic.h"
#include "sim/nic/profile.h"

/**
 * struct sim_cache_misses - cost of context lookups
 * @stall_ps: stall of the pipeline
 * @later_ps: delay of the message
 */
struct sim_cache_misses {
	uint64_t stall_ps;
	uint64_t later_ps;
};

/* nic.c: look up a QP's context; @bytes of memory at @addr under @key; a WQE. */
void sim_lookup_qp(struct sim_nic *nic, const struct sim_qp *qp, struct sim_cache_misses *looks);
void sim_lookup_memory(struct sim_nic *nic, uint32_t key, uint64_t addr, uint32_t bytes,
		       struct sim_cache_misses *looks);
void sim_lookup_wqe(struct sim_nic *nic, const struct sim_wqe *wqe, struct sim_cache_misses *looks);

/* nic.c: insert or drop the entries of a WQE in the WQE cache. */
void sim_wqe_cached(struct sim_nic *nic, const struct sim_wqe *wqe);
void sim_wqe_forgotten(struct sim_nic *nic, const struct sim_wqe *wqe);

/* nic.c: take a free packet; give it back. */
struct sim_packet *sim_packet_get(struct sim_nic *nic, struct sim_wqe *wqe, uint32_t bytes,
				  enum sim_packet_kind kind);
void sim_packet_put(struct sim_nic *nic, struct sim_packet *packet);

/* nic.c: time when a read or write of @bytes of memory is over. */
uint64_t sim_pcie_read(struct sim_nic *nic, uint64_t from_ps, uint32_t bytes);
uint64_t sim_pcie_write(struct sim_nic *nic, uint64_t from_ps, uint32_t bytes);

/* transmit.c: a QP may have work for its PU; a PU is free again; a fetch is over. */
void sim_qp_wants_pu(struct sim_qp *qp);
void sim_pu_free(struct sim_event *event);
void sim_fetch_over(struct sim_event *event);

/* stream.c: append a message to a stream. */
void sim_stream_init(struct sim_stream *stream, struct sim_qp *qp);
void sim_stream_put(struct sim_stream *stream, struct sim_wqe *wqe, uint32_t bytes);
void sim_stream_quantum_over(struct sim_event *event);

/* stream.c: @nic sends a packet to its peer's NIC, not before @at_ps. */
void sim_port_send(struct sim_nic *nic, struct sim_packet *packet, uint64_t at_ps);

/* receive.c: a packet arrives from the wire. */
void sim_packet_arrives(struct sim_event *event);

/* complete.c: @wqe is done, and its memory is free. */
void sim_wqe_done(struct sim_wqe *wqe);

static inline bool sim_op_is_atomic(uint8_t op)
{
	return op == SIM_OP_CAS || op == SIM_OP_FADD;
}

/* Whether the answer carries data. */
static inline bool sim_op_is_read(uint8_t op)
{
	return op == SIM_OP_READ || sim_op_is_atomic(op);
}

/* Whether the message consumes a receive at the peer. */
static inline bool sim_op_wants_recv(uint8_t op)
{
	return op == SIM_OP_SEND || op == SIM_OP_WRITE_IMM;
}

#endif
