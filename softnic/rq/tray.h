/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Trays: room for one datagram beside each receive of a datagram queue pair.
 *
 * Nobody connects to such a queue pair, so the program has admitted no sender, and no sender may
 * reach its buffers. A sender puts the datagram into the tray of the receive that it took. The
 * owner moves it into the buffers when it polls the receive, by its own record of them. Trays lie
 * in the queue pair's segment. Pages of it that no datagram has used take no memory.
 *
 * Messages to an XRC SRQ come from processes that may be connected to another process of the
 * domain only. Such a message uses the tray, too: a long one piece by piece.
 */
#ifndef WEIR_SOFTNIC_RQ_TRAY_H
#define WEIR_SOFTNIC_RQ_TRAY_H

#include "recv_queue.h"

enum { TRAY_BYTES = 4160 }; /* a datagram with its header, in whole cache lines */

/* The trays of a queue pair, one for each receive. @at: NULL without trays. */
struct trays {
	uint8_t *at;
	uint32_t num;
};

static inline size_t trays_bytes(uint32_t num)
{
	return (size_t)num * TRAY_BYTES;
}

/**
 * trays_map() - make a view of a peer's trays
 * @room: bytes mapped at @at
 *
 * Return: 0, or -EPROTO if they do not fit.
 */
int trays_map(struct trays *trays, void *at, size_t room, uint32_t num);

/**
 * tray_put() - put a message into a tray, unless the owner has cut us off
 * @index: of a receive that the caller has taken
 * @length: at most TRAY_BYTES
 * @cut: in our guard: see fenced_copy.h
 */
void tray_put(const struct trays *trays, uint32_t index, const void *bytes, uint32_t length,
	      const uint32_t *cut);

/**
 * tray_empty() - move a message from its tray into the receive's buffers; the owner's side
 * @offset: in the buffers
 * @pd: handle of the buffers' protection domain
 *
 * Context: recv_queue.lock held.
 * Return: false if the length, a key or a buffer is invalid.
 */
bool tray_empty(const struct trays *trays, const struct recv_queue *rq, uint32_t index,
		uint64_t offset, uint64_t length, uint32_t pd);

#endif
