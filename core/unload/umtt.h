/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the target's CPU checks before it copies an unloaded write, in the place of its NIC: which
 * memory a tag stands for, whose it is, and whether it may be written (uRDMA, section 3.1: uMTT).
 *
 * A tag is the rkey of a registration: who may not write by the NIC may not by the CPU. The
 * host adds a registration when it stands, and takes it out before it goes; between a check
 * and the end of the copy it keeps the map locked, so that nothing is written after a removal has
 * returned. The table is the host's memory; it is looked through by open addressing, and
 * what is taken out leaves no trace.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_UNLOAD_UMTT_H
#define WEIR_CORE_UNLOAD_UMTT_H

#include "core/base/platform.h"

/**
 * struct weir_umtt_entry - one registration
 * @addr, @length: of its memory; @length is at least 1, or the entry is free
 * @tag: its rkey
 * @owner: who may use it
 * @is_writable: its holder may write
 */
struct weir_umtt_entry {
	uint64_t addr;
	uint64_t length;
	uint32_t tag;
	uint32_t owner;
	bool is_writable;
};

/**
 * struct weir_umtt - the map
 * @table: the host's, @size of them, a power of two
 * @count: in use, at most three in four
 */
struct weir_umtt {
	struct weir_umtt_entry *table;
	uint32_t size;
	uint32_t count;
};

/**
 * weir_umtt_init() - an empty map
 * @m: to be initialised
 * @table: *kept*; zeroed
 * @size: of @table, a power of two, at least 4
 *
 * Return: 0, or -EINVAL.
 */
int weir_umtt_init(struct weir_umtt *m, struct weir_umtt_entry *table, uint32_t size);

/**
 * weir_umtt_add() - something was registered
 * @m: the map
 * @entry: copied
 *
 * Return: 0; -EINVAL no bytes, or they wrap; -EEXIST the tag is in use; -ENOSPC.
 */
int weir_umtt_add(struct weir_umtt *m, const struct weir_umtt_entry *entry);

/* It is about to be deregistered. A tag that is not there does nothing. */
void weir_umtt_remove(struct weir_umtt *m, uint32_t tag);

/**
 * weir_umtt_check() - whether somebody may write somewhere
 * @m: the map
 * @owner: who
 * @tag: what he shows
 * @addr, @length: where; at least 1 byte
 *
 * Return: 0, or -EACCES: no such tag, or another's; it may not be written; out of bounds; no
 *	bytes.
 */
int weir_umtt_check(const struct weir_umtt *m, uint32_t owner, uint32_t tag, uint64_t addr,
		    uint64_t length);

#endif
