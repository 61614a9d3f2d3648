/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The target's end of one unload buffer: checks and copies writes, and decides when to report.
 * Writes are executed in order of arrival. A refused write ends the buffer: no later write is
 * executed. The host receives slots and sends reports: a donor's link (lib/donor/unload_rx.h), or a
 * queue pair beside the program's (preload/unload/unload_rx.h).
 *
 * Context of all: Any; never sleeps; externally serialised, also against changes of the map.
 */
#ifndef WEIR_CORE_UNLOAD_UNLOAD_RX_H
#define WEIR_CORE_UNLOAD_UNLOAD_RX_H

#include "core/unload/umtt.h"

/**
 * struct weir_unload_rx - one buffer
 * @tell_max: most writes left unreported while more arrive
 * @seen: writes copied, modulo 2^16
 * @returned: writes reported, modulo 2^16
 * @owes: a report is due, whatever its contents
 * @is_refused: no more writes are copied
 * @is_refusal_reported: the initiator knows of the refusal
 */
struct weir_unload_rx {
	uint16_t tell_max;
	uint16_t seen;
	uint16_t returned;
	bool owes;
	bool is_refused;
	bool is_refusal_reported;
};

/* @tell_max: at least 1. */
static inline void weir_unload_rx_init(struct weir_unload_rx *c, uint16_t tell_max)
{
	*c = (struct weir_unload_rx){ .tell_max = tell_max };
}

/**
 * weir_unload_rx_check() - check the next write
 *
 * For hosts with checks of their own, followed by weir_unload_rx_store() or
 * weir_unload_rx_refuse(). Otherwise as weir_unload_rx_copy().
 */
int weir_unload_rx_check(struct weir_unload_rx *c, const struct weir_umtt *map, uint32_t owner,
			 uint32_t tag, uint64_t addr, uint32_t length);

/* Copies a checked write. */
void weir_unload_rx_store(struct weir_unload_rx *c, uint64_t addr, const void *data,
			  uint32_t length);

/* Refuses a checked write and all later ones. Return: -EACCES. */
int weir_unload_rx_refuse(struct weir_unload_rx *c);

/**
 * weir_unload_rx_copy() - check and copy the next write
 * @map: registrations
 * @owner: the initiator
 * @tag: tag of the target memory, as the initiator sent it
 * @addr: target address, as the initiator sent it
 * @data: may change during the call, which affects only the bytes written
 * @length: bytes
 *
 * Nothing is written to a registration after its removal from @map.
 *
 * Return: 0; -EACCES if refused; -ECANCELED if an earlier write was refused.
 */
int weir_unload_rx_copy(struct weir_unload_rx *c, const struct weir_umtt *map, uint32_t owner,
			uint32_t tag, uint64_t addr, const void *data, uint32_t length);

/**
 * weir_unload_rx_must_report() - whether to report to the initiator now
 * @more: more writes have arrived already, so a report may wait
 */
bool weir_unload_rx_must_report(const struct weir_unload_rx *c, bool more);

/* @seen and @is_refused have been reported. */
void weir_unload_rx_reported(struct weir_unload_rx *c);

#endif
