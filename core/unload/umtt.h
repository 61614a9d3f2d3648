/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The target's CPU checks each unloaded write before copying, as its NIC would. The map gives the
 * memory, owner and rights of each tag (uRDMA, section 3.1: uMTT).
 *
 * A tag is the rkey of a registration, so the CPU grants no more access than the NIC. The host adds
 * a memory region after registering and removes it before deregistering. The host locks the map
 * from a check to the end of the copy, so nothing is written after a removal returns.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_UNLOAD_UMTT_H
#define WEIR_CORE_UNLOAD_UMTT_H

#include "core/base/platform.h"

/**
 * struct weir_umtt_entry - one registration
 * @addr: start of the memory
 * @length: bytes, at least 1; 0 for a free entry
 * @tag: the rkey
 * @owner: the peer that may use the registration
 * @is_writable: the owner may write
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
 * @table: the host's memory
 * @size: entries in @table, a power of two
 * @count: entries in use, at most three quarters
 */
struct weir_umtt {
	struct weir_umtt_entry *table;
	uint32_t size;
	uint32_t count;
};

/**
 * weir_umtt_init() - initialise an empty map
 * @m: to be initialised
 * @table: *kept*; zeroed
 * @size: entries in @table, a power of two, at least 4
 *
 * Return: 0, or -EINVAL.
 */
int weir_umtt_init(struct weir_umtt *m, struct weir_umtt_entry *table, uint32_t size);

/**
 * weir_umtt_add() - add a registration
 * @m: the map
 * @entry: copied
 *
 * Return: 0; -EINVAL if the range is empty or wraps; -EEXIST if the tag is in use; -ENOSPC if the
 *	map is full.
 */
int weir_umtt_add(struct weir_umtt *m, const struct weir_umtt_entry *entry);

/* Removes a registration before it is deregistered. An unknown tag has no effect. */
void weir_umtt_remove(struct weir_umtt *m, uint32_t tag);

/**
 * weir_umtt_check() - whether a peer may write to a range
 * @m: the map
 * @owner: the peer
 * @tag: the tag that the peer sent
 * @addr: start of the range
 * @length: bytes, at least 1
 *
 * Return: 0, or -EACCES: unknown tag, or another owner's; not writable; out of bounds; empty.
 */
int weir_umtt_check(const struct weir_umtt *m, uint32_t owner, uint32_t tag, uint64_t addr,
		    uint64_t length);

#endif
