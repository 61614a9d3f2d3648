/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The work requests (WRs) from their post until the program polls a completion that frees them:
 * the WR's own, or that of a later WR of the same send queue.
 *
 * The address of the record travels as the WR's wr_id, so that a completion finds its record.
 */
#ifndef WEIR_SOFTNIC_STRICT_WR_H
#define WEIR_SOFTNIC_STRICT_WR_H

#include "softnic/loop/fork.h"
#include "softnic/qp/qp.h"

/* Bytes that stand for the memory of a read or receive until its completion is polled. */
struct veil {
	uint32_t users;
	uint8_t bytes[];
};

struct strict_wr {
	struct strict_wr *prev, *next; /* all WRs, the oldest first */
	struct strict_wr *next_in_hash;
	const void *queue; /* struct send_queue or struct recv_queue */
	struct qp *qp; /* NULL: of an SRQ */
	const struct ibv_ah *ah; /* UD */
	uint64_t wr_id; /* the program's */
	uint32_t position; /* in the send queue */
	uint32_t pd;
	bool is_receive, is_fenced, is_signaled;
	enum ibv_wr_opcode opcode;
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t length;
	uint64_t room; /* bytes of the list */
	uint64_t sum; /* of the bytes to send, at the post */
	bool has_sum;
	uint64_t poisoned; /* bytes of the program's memory that hold poison */
	struct veil *veil; /* or NULL: the memory itself is written */
	struct veil *sources[SHARED_SGES_MAX]; /* of earlier reads, from which a fenced WR sends */
	bool has_access; /* each piece may be accessed */
	uint32_t num_sge;
	struct ibv_sge sges[SHARED_SGES_MAX]; /* the program's, at the memory's own addresses */
	uint64_t iovas[SHARED_SGES_MAX]; /* its addresses, as posted */
};

/* All functions but the first two need the lock. The table of regions may be locked after it. */
void wr_lock(void);
void wr_unlock(void);

/** wr_first() - the oldest record, or NULL; others follow by next */
struct strict_wr *wr_first(void);

/** wr_add() - append a record that the caller has allocated */
void wr_add(struct strict_wr *wr);

/** wr_find() - the record that travelled as @wr_id, or NULL */
struct strict_wr *wr_find(uint64_t wr_id);

/** wr_free() - unlink and free a record */
void wr_free(struct strict_wr *wr);

/** wr_locate() - find the memory of a list; false: a piece may not be accessed */
bool wr_locate(const struct strict_wr *wr, uint64_t addrs[]);

/** wr_is_writer() - does the NIC store into this process's memory for the WR? */
static inline bool wr_is_writer(const struct strict_wr *wr)
{
	return wr->is_receive || wr->opcode == IBV_WR_RDMA_READ ||
	       wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/** wr_is_read() - is it a read or an atomic, whose answer a fence waits for? */
static inline bool wr_is_read(const struct strict_wr *wr)
{
	return !wr->is_receive && wr_is_writer(wr);
}

/** wr_overlap() - a byte that both WRs use; 0: none */
uint64_t wr_overlap(const struct strict_wr *a, const struct strict_wr *b);

/** wr_find_piece() - the index of the piece of @wr in which [addr, addr + length) lies, or -1 */
int wr_find_piece(const struct strict_wr *wr, uint64_t addr, uint64_t length, uint64_t *offset);

/** wr_number() - the number of the WR's queue pair; 0: an SRQ's */
static inline uint32_t wr_number(const struct strict_wr *wr)
{
	return wr->qp ? wr->qp->ibv.qp_num : 0;
}

#endif
