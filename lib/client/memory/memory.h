/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_LIB_CLIENT_MEMORY_MEMORY_H
#define WEIR_LIB_CLIENT_MEMORY_MEMORY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <weir/request.h>
#include "core/base/list.h"
#include "core/engine/request.h"

struct weir_nic;

/**
 * struct weir_memory - a registered range
 * @link: in the session's memories, guarded by its hold_lock
 * @session: the owner
 * @nic: may access the range
 * @mr: its registration
 * @addr, @length, @lkey: of @mr
 *
 * Immutable.
 */
struct weir_memory {
	struct weir_list link;
	struct weir_session *session;
	const struct weir_nic *nic;
	struct ibv_mr *mr;
	uintptr_t addr;
	size_t length;
	uint32_t lkey;
};

/* Return: true if @iov may be a piece of a request on @nic: inside @memory and not empty. */
static inline bool weir_memory_covers(const struct weir_memory *memory, const struct weir_nic *nic,
				      const struct weir_iov *iov)
{
	uintptr_t offset = (uintptr_t)iov->addr - memory->addr;

	return memory->nic == nic && iov->length - 1 < UINT32_MAX && offset < memory->length &&
	       iov->length <= memory->length - offset;
}

/* @iov lies in @memory. */
static inline struct weir_sge weir_memory_sge(const struct weir_memory *memory,
					      const struct weir_iov *iov)
{
	return (struct weir_sge){ (uintptr_t)iov->addr, (uint32_t)iov->length, memory->lkey };
}

/* Release memories and pools that the user has not. No QP may be left. */
void weir_memory_fini_all(struct weir_session *session);
void weir_pool_fini_all(struct weir_session *session);

/*
 * Anonymous memory for buffers, touched, in huge pages if available, and preferably on @numa_node
 * (-1: anywhere). NULL: none left.
 */
void *weir_memory_map(size_t length, int numa_node);
void weir_memory_unmap(void *addr, size_t length);

#endif
