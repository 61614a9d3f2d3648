/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The initiator's end of one direction. Writes go into the slots of the target's buffer, and are
 * done when the target reports so by a return, an RDMA write to our memory. See wire/unload.h and
 * wire/discovery.h.
 *
 * A local slot keeps its data until the write is done. If the target refuses a write, the device
 * gets the write and decides.
 *
 * Context of all: with tracked_qp.post, unless noted.
 */
#ifndef WEIR_PRELOAD_UNLOAD_UNLOAD_TX_H
#define WEIR_PRELOAD_UNLOAD_UNLOAD_TX_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/unload/unload_wr.h"
#include "wire/discovery.h"

struct unload_device;
struct tracked_qp;

/* What the device needs to repeat a write. */
struct staged_write {
	uint64_t wr_id;
	uint32_t rkey;
	uint32_t length;
	unsigned int send_flags;
};

/**
 * struct unload_tx_memory - memory that the device reads and writes
 * @slots: local slots, each kept until the target's slot is done
 * @last_return: the last return, written by the target's device
 */
struct unload_tx_memory {
	struct wire_unload_slot slots[WIRE_UNLOAD_SLOTS];
	uint64_t last_return;
};

/**
 * struct unload_tx - one initiator end
 * @device: the device
 * @qp, @cq, @mr, @memory: of this end
 * @repeat_mr: over @memory's slots, read-only, for the program's QP
 * @inline_max: bytes that @qp takes inline
 * @nonce, @psn: of our offer
 * @buffer: the target's
 * @last_return: the last return read
 * @is_refused: the target has copied none of the open writes, and never will
 * @has_failed: how much the target has copied is unknown
 * @stall_timeout_ns: longest time without progress
 * @is_still: writes are open, and no poll has found a return since @moved_ns
 * @moved_ns, @probed_ns: time of the last progress, and of the last empty write
 * @queued: WRs in the send queue, or not known to have left
 */
struct unload_tx {
	struct unload_device *device;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_mr *repeat_mr;
	struct unload_tx_memory *memory;
	struct staged_write staged[WIRE_UNLOAD_SLOTS];
	uint32_t inline_max;
	uint64_t nonce;
	uint32_t psn;
	struct weir_unload_buffer buffer;
	uint64_t last_return;
	bool is_refused;
	bool has_failed;
	uint64_t stall_timeout_ns;
	bool is_still;
	uint64_t moved_ns;
	uint64_t probed_ns;
	uint32_t queued;
};

/* Makes the objects of an offer. Context: the service thread. Return: the new end, or NULL. */
struct unload_tx *unload_tx_create(const struct tracked_qp *w);

/*
 * Connects @tx as the answer says, and asks for a first return. Context: the service thread.
 * Return: 0 or an errno.
 */
int unload_tx_connect(struct unload_tx *tx, const struct tracked_qp *w,
		      const struct wire_discovery_offer *answer);

/*
 * Has the first return arrived? No write is put before. Context: the service thread. Return: 0;
 * -EAGAIN not yet; -EIO the connection has failed.
 */
int unload_tx_check_ready(struct unload_tx *tx);

/* Frees the QP and all other objects. NULL does nothing. */
void unload_tx_free(struct unload_tx *tx);

/* Writes not done. */
static inline uint16_t unload_tx_outstanding(const struct unload_tx *tx)
{
	return weir_unload_slots_open(&tx->buffer.slots);
}

/*
 * unload_tx_put() - put a write into the next slot, which must be free
 * @data: staged->length bytes, at most WEIR_UNLOAD_WR_DATA_MAX
 *
 * Return: 0; or an errno without any effect: @tx has failed.
 */
int unload_tx_put(struct unload_tx *tx, uint64_t remote, const struct ibv_sge *data, int nr_data,
		  const struct staged_write *staged);

/*
 * unload_tx_wait() - wait until at most @open_max writes are not done
 * @pause_ms: set if the target asks for a pause
 *
 * Return: 0; -EREMOTE the target refuses; -EIO @tx has failed, or the target has not answered for a
 * long time.
 */
int unload_tx_wait(struct unload_tx *tx, uint16_t open_max, uint8_t *pause_ms);

/*
 * unload_tx_wait() without waiting. Return: true: call again; false: unload_tx_wait() for all
 * writes would return at once.
 */
bool unload_tx_poll(struct unload_tx *tx, uint64_t now_ns, uint8_t *pause_ms);

#endif
