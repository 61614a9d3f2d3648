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
 * struct weir_copier - one buffer's
 * @tell_max: writes done that the initiator is not told of, while more come
 * @seen: writes copied, modulo 2^16; @returned: as far as the initiator was told
 * @owes: a return, whatever it says
 * @is_refused: nothing more is copied; @is_told: the initiator knows
 */
struct weir_copier {
	uint16_t tell_max;
	uint16_t seen;
	uint16_t returned;
	bool owes;
	bool is_refused;
	bool is_told;
};

/* @tell_max: at least 1. */
static inline void weir_copier_init(struct weir_copier *c, uint16_t tell_max)
{
	*c = (struct weir_copier){ .tell_max = tell_max };
}

/**
 * weir_copier_check() - the next write has come
 *
 * For who looks for more himself before the copy, which is weir_copier_store()'s then, or who refuses
 * it by weir_copier_refuse(). The rest is as of weir_copier_copy(), which is both.
 */
int weir_copier_check(struct weir_copier *c, const struct weir_umtt *map, uint32_t owner,
		      uint32_t tag, uint64_t addr, uint32_t length);

/* One that has been checked is copied. */
void weir_copier_store(struct weir_copier *c, uint64_t addr, const void *data, uint32_t length);

/* One that has been checked is not copied, nor is any behind it. Return: -EACCES. */
int weir_copier_refuse(struct weir_copier *c);

/**
 * weir_copier_copy() - the next write has come
 * @map: what may be written; @owner: whose the initiator is
 * @tag, @addr: where it goes, as the initiator says
 * @data: may change meanwhile: that decides what is written, and no more
 * @length: bytes
 *
 * When a registration has gone from @map nothing is written there any more.
 *
 * Return: 0; -EACCES it is refused; -ECANCELED one before it was.
 */
int weir_copier_copy(struct weir_copier *c, const struct weir_umtt *map, uint32_t owner,
		     uint32_t tag, uint64_t addr, const void *data, uint32_t length);

/**
 * weir_copier_tells() - whether the initiator is to be told now
 * @more: further writes are there already: it can wait until there is enough to tell
 */
bool weir_copier_tells(const struct weir_copier *c, bool more);

/* It is told of @seen and @is_refused. */
void weir_copier_told(struct weir_copier *c);

#endif
