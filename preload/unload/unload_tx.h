/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The initiator's end of one direction: writes go into the slots of the target's buffer, and are
 * done when a return says so, which the target writes into our memory. See wire/unload.h and
 * wire/discovery.h.
 *
 * What is in a slot here stays there until it is done: what the target refuses is given to the
 * device, which is then the judge.
 *
 * Context of all: with watched.post, unless noted.
 */
#ifndef WEIR_PRELOAD_UNLOAD_UNLOAD_TX_H
#define WEIR_PRELOAD_UNLOAD_UNLOAD_TX_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/discovery.h"
#include "wire/unload.h"

#define UNLOAD_TX_DATA_MAX (WIRE_UNLOAD_SLOT_BYTES - offsetof(struct wire_unload_slot, data))

struct unload_device;
struct tracked_qp;

/* What the device must know if it is given a write after all. */
struct staged_write {
	uint64_t wr_id;
	uint32_t rkey;
	uint32_t length;
	unsigned int send_flags;
};

/**
 * struct unload_tx_memory - what the device reads and writes
 * @slots: ours, each until the target's is done
 * @told: the last return; the target's device writes it
 */
struct unload_tx_memory {
	struct wire_unload_slot slots[WIRE_UNLOAD_SLOTS];
	uint64_t told;
};

/**
 * struct unload_tx - one
 * @device: where it is
 * @qp, @cq, @mr, @memory: its own
 * @repeat_mr: over @memory's slots, for the program's QP, which may read there and no more
 * @inline_max: bytes that @qp takes inline
 * @nonce, @psn: of our offer
 * @buffer, @rkey: the target's
 * @next: the slot that is written next, modulo 2^16; @done: as far as we were told
 * @told: when we looked last
 * @is_refused: none from @done on has been copied, nor will be
 * @has_failed: which of them were is not known
 * @patience_ns: for so long nothing need move
 * @is_still: some are open, and no return has come, whoever looked, since @moved_ns
 * @moved_ns, @probed_ns: when something moved last, and an empty write went
 * @queued: in the send queue, or not known to have left it; @unsignalled: of them, the last
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
	uint64_t buffer;
	uint32_t rkey;
	uint16_t next;
	uint16_t done;
	uint64_t told;
	bool is_refused;
	bool has_failed;
	uint64_t patience_ns;
	bool is_still;
	uint64_t moved_ns;
	uint64_t probed_ns;
	uint32_t queued;
	uint32_t unsignalled;
};

/* Makes what an offer describes. Context: the service thread. Return: it, or NULL. */
struct unload_tx *unload_tx_create(const struct tracked_qp *w);

/*
 * Connects it as its answer says, and asks for a first return. Context: the service thread. Return:
 * 0 or an errno.
 */
int unload_tx_connect(struct unload_tx *tx, const struct tracked_qp *w,
		      const struct wire_discovery_offer *answer);

/*
 * Whether the first return has come. Nothing is put before. Context: the service thread. Return: 0;
 * -EAGAIN not yet; -EIO it will not.
 */
int unload_tx_check_ready(struct unload_tx *tx);

/* The QP and all else goes. NULL does nothing. */
void unload_tx_free(struct unload_tx *tx);

/* How many are not done. */
static inline uint16_t unload_tx_outstanding(const struct unload_tx *tx)
{
	return (uint16_t)(tx->next - tx->done);
}

/*
 * unload_tx_put() - a write goes into the next slot, for which there is room
 * @data: its bytes, staged->length of them, at most UNLOAD_TX_DATA_MAX
 *
 * Return: 0; or it is as if it had not been called: the tx has failed.
 */
int unload_tx_put(struct unload_tx *tx, uint64_t remote, const struct ibv_sge *data, int nr_data,
		  const struct staged_write *staged);

/*
 * unload_tx_wait() - wait until at most @open_max are not done
 * @pause_ms: for so long the target wants no more; written if it says so
 *
 * Return: 0; -EREMOTE the target refuses; -EIO the tx has failed, or the target has not answered
 * for a long time.
 */
int unload_tx_wait(struct unload_tx *tx, uint16_t open_max, uint8_t *pause_ms);

/*
 * The same for who comes again rather than wait. Return: whether to come again; if not, unload_tx_wait()
 * for all is over at once.
 */
bool unload_tx_poll(struct unload_tx *tx, uint64_t now_ns, uint8_t *pause_ms);

#endif
