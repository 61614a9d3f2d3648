/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_LIB_MEMORY_H
#define WEIR_LIB_MEMORY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <weir/memory.h>
#include "core/list.h"

/**
 * struct weir_memory - a registered range
 * @link: among the session's memories, guarded by its hold_lock
 * @session: whose NIC may touch it
 * @mr: says where it is
 *
 * Never changes.
 */
struct weir_memory {
	struct weir_list link;
	struct weir_session *session;
	struct ibv_mr *mr;
};

/* Does @memory cover [@addr, @addr + @length)? */
static inline bool weir_memory_covers(const struct weir_memory *memory, const void *addr,
				      size_t length)
{
	uintptr_t from = (uintptr_t)addr, base = (uintptr_t)memory->mr->addr;

	return from >= base && length <= memory->mr->length &&
	       from - base <= memory->mr->length - length;
}

/* Release what the user has not. No QP may be left. */
void weir_memories_fini(struct weir_session *session);
void weir_pools_fini(struct weir_session *session);

/*
 * Anonymous memory for buffers, touched, in huge pages when there are any, and on @numa_node if it
 * has some (-1: anywhere). NULL: none left.
 */
void *weir_memory_map(size_t length, int numa_node);
void weir_memory_unmap(void *addr, size_t length);

#endif
