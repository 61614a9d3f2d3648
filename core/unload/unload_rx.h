/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The target's end of one unload buffer: checks and copies writes, and decides when to report.
 * Writes are executed in order of arrival. A refused write ends the buffer: no later write is
 * executed. The host receives slots and sends reports: a donor's link (lib/donor/unload_rx.h), or a
 * queue pair beside the program's (preload/unload/unload_rx.h). The initiator's end is
 * core/unload/unload_slots.h.
 *
 * At most as many reports are in flight as there are slots. Every second half of these asks for a
 * completion, which stands for all before.
 *
 * Context of all: Any; never sleeps; externally serialised, also against changes of the map.
 */
#ifndef WEIR_CORE_UNLOAD_UNLOAD_RX_H
#define WEIR_CORE_UNLOAD_UNLOAD_RX_H

#include "core/unload/umtt.h"

/**
 * struct weir_unload_rx - one buffer
 * @slots: of the buffer; a quarter of these writes may be unreported while more arrive
 * @seen: writes copied, modulo 2^16
 * @returned: writes reported, modulo 2^16
 * @in_flight: reports in flight, or not known to have arrived
 * @unsignalled: how many of the latest reports asked for no completion
 * @owes: a report is due, whatever its contents
 * @is_refused: no more writes are copied
 * @is_refusal_reported: the initiator knows of the refusal
 */
struct weir_unload_rx {
	uint16_t slots;
	uint16_t seen;
	uint16_t returned;
	uint16_t in_flight;
	uint16_t unsignalled;
	bool owes;
	bool is_refused;
	bool is_refusal_reported;
};

/* @slots: a power of two, at least 4. */
static inline void weir_unload_rx_init(struct weir_unload_rx *c, uint16_t slots)
{
	*c = (struct weir_unload_rx){ .slots = slots };
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
 *
 * A report also waits while too many others are in flight.
 */
bool weir_unload_rx_must_report(const struct weir_unload_rx *c, bool more);

/* The host reports @seen and @is_refused. Return: true if the report asks for a completion. */
bool weir_unload_rx_reported(struct weir_unload_rx *c);

/* A report that asked for a completion has arrived. */
void weir_unload_rx_report_arrived(struct weir_unload_rx *c);

#endif
