/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A target's end of one buffer that an initiator unloads to: what it checks and copies, and what it
 * tells. Writes are taken in the order of their arrival; one that is refused ends the buffer: those
 * before it are done, none behind it ever is. How slots arrive and how returns leave is for its
 * host: a donor's link (lib/donor/unload_rx.h), or a queue pair beside a program's (preload/unload/unload_rx.h).
 *
 * Context of all: any; never sleeps; externally serialised, and against changes of the map.
 */
#ifndef WEIR_CORE_UNLOAD_UNLOAD_RX_H
#define WEIR_CORE_UNLOAD_UNLOAD_RX_H

#include "core/unload/umtt.h"

/**
 * struct weir_unload_rx - one buffer's
 * @tell_max: writes done that the initiator is not told of, while more come
 * @seen: writes copied, modulo 2^16; @returned: as far as the initiator was told
 * @owes: a return, whatever it says
 * @is_refused: nothing more is copied; @is_told: the initiator knows
 */
struct weir_unload_rx {
	uint16_t tell_max;
	uint16_t seen;
	uint16_t returned;
	bool owes;
	bool is_refused;
	bool is_told;
};

/* @tell_max: at least 1. */
static inline void weir_unload_rx_init(struct weir_unload_rx *c, uint16_t tell_max)
{
	*c = (struct weir_unload_rx){ .tell_max = tell_max };
}

/**
 * weir_unload_rx_check() - the next write has come
 *
 * For who looks for more himself before the copy, which is weir_unload_rx_store()'s then, or who refuses
 * it by weir_unload_rx_refuse(). The rest is as of weir_unload_rx_copy(), which is both.
 */
int weir_unload_rx_check(struct weir_unload_rx *c, const struct weir_umtt *map, uint32_t owner,
			 uint32_t tag, uint64_t addr, uint32_t length);

/* One that has been checked is copied. */
void weir_unload_rx_store(struct weir_unload_rx *c, uint64_t addr, const void *data,
			  uint32_t length);

/* One that has been checked is not copied, nor is any behind it. Return: -EACCES. */
int weir_unload_rx_refuse(struct weir_unload_rx *c);

/**
 * weir_unload_rx_copy() - the next write has come
 * @map: what may be written; @owner: whose the initiator is
 * @tag, @addr: where it goes, as the initiator says
 * @data: may change meanwhile: that decides what is written, and no more
 * @length: bytes
 *
 * When a registration has gone from @map nothing is written there any more.
 *
 * Return: 0; -EACCES it is refused; -ECANCELED one before it was.
 */
int weir_unload_rx_copy(struct weir_unload_rx *c, const struct weir_umtt *map, uint32_t owner,
			uint32_t tag, uint64_t addr, const void *data, uint32_t length);

/**
 * weir_unload_rx_must_report() - whether the initiator is to be told now
 * @more: further writes are there already: it can wait until there is enough to tell
 */
bool weir_unload_rx_must_report(const struct weir_unload_rx *c, bool more);

/* It is told of @seen and @is_refused. */
void weir_unload_rx_reported(struct weir_unload_rx *c);

#endif
