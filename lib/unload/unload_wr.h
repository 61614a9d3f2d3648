/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Work requests of unloading, for libweir's sessions and donor, and for programs under "weir run
 * --unload". See wire/unload.h. The host posts: the preloaded library must call the device's own
 * functions, because libibverbs would lead back to its hooks.
 */
#ifndef WEIR_LIB_UNLOAD_UNLOAD_WR_H
#define WEIR_LIB_UNLOAD_UNLOAD_WR_H

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>

#include "core/unload/unload_rx.h"
#include "core/unload/unload_slots.h"
#include "wire/unload.h"

#define WEIR_UNLOAD_WR_HEAD offsetof(struct wire_unload_slot, data)
#define WEIR_UNLOAD_WR_DATA_MAX (WIRE_UNLOAD_SLOT_BYTES - WEIR_UNLOAD_WR_HEAD)

/**
 * struct weir_unload_buffer - the target's buffer, as its initiator sees it
 * @slots: which are in use
 * @addr, @rkey: of the memory
 */
struct weir_unload_buffer {
	struct weir_unload_slots slots;
	uint64_t addr;
	uint32_t rkey;
};

/**
 * weir_unload_wr_write() - make the write into the next slot
 * @buffer: has a free slot
 * @tag: the rkey of the target memory
 * @wr: the caller provides the pieces (the target address, then the data) and the send flags; a
 *	flag for a completion may be added
 *
 * Return: the slot.
 */
static inline uint16_t weir_unload_wr_write(struct weir_unload_buffer *buffer, uint32_t tag,
					    struct ibv_send_wr *wr)
{
	bool is_signalled;
	uint16_t slot = weir_unload_slots_take(&buffer->slots, &is_signalled);

	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->imm_data = htonl(tag);
	wr->wr.rdma.remote_addr = buffer->addr + slot * sizeof(struct wire_unload_slot);
	wr->wr.rdma.rkey = buffer->rkey;
	if (is_signalled)
		wr->send_flags |= IBV_SEND_SIGNALED;
	return slot;
}

/**
 * struct weir_unload_arrival - a write that has arrived in a slot
 * @addr, @tag: the target memory, as the initiator sent it
 * @length: of @data; 0: none, or too many bytes, which weir_unload_rx_check() refuses
 * @data: the initiator may overwrite it at any time
 */
struct weir_unload_arrival {
	uint64_t addr;
	uint32_t tag;
	uint32_t length;
	const uint8_t *data;
};

/**
 * weir_unload_wr_arrived() - read the slot of the next write
 * @rx: the target's state
 * @slots: the buffer
 * @wc: of the receive that the write has consumed: only the device knows the true length
 */
static inline struct weir_unload_arrival
weir_unload_wr_arrived(const struct weir_unload_rx *rx, const struct wire_unload_slot *slots,
		       const struct ibv_wc *wc)
{
	const struct wire_unload_slot *slot = &slots[rx->seen % rx->slots];
	struct weir_unload_arrival arrival = { .tag = ntohl(wc->imm_data), .data = slot->data };

	arrival.length = wire_unload_slot_decode(slot, wc->byte_len, &arrival.addr);
	return arrival;
}

/**
 * weir_unload_wr_return() - make the return that is due
 * @rx: the target's state, by which the return is sent from now on
 * @pause_ms: how long the initiator should not unload
 * @wr: the WR that will carry the return; a flag for a completion may be added
 */
static inline struct wire_unload_return weir_unload_wr_return(struct weir_unload_rx *rx,
							      uint8_t pause_ms,
							      struct ibv_send_wr *wr)
{
	const struct wire_unload_return report = { .done = rx->seen,
						   .is_refused = rx->is_refused,
						   .pause_ms = pause_ms };

	if (weir_unload_rx_reported(rx))
		wr->send_flags |= IBV_SEND_SIGNALED;
	return report;
}

#endif
