/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Local memory that a NIC may touch: registered ranges, and pools of registered buffers.
 * Registration is explicit: weir installs no malloc hooks.
 */
#ifndef WEIR_MEMORY_H
#define WEIR_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_session;
struct weir_memory;
struct weir_pool;

/**
 * weir_memory_register() - let the session's NIC read and write a range
 * @addr, @length: stays mapped until weir_memory_deregister()
 *
 * Context: any thread. Return: 0; -EINVAL; -ENOMEM (the text names RLIMIT_MEMLOCK if that is it).
 */
int weir_memory_register(struct weir_session *session, void *addr, size_t length,
			 struct weir_memory **memory, struct weir_error *error);

/* No request may still use it. */
void weir_memory_deregister(struct weir_memory *memory);

/**
 * weir_pool_create() - buffers of one size, registered once, in huge pages when there are any
 * @size: bytes of a buffer; rounded up to 64
 * @count: buffers, at least 1
 */
int weir_pool_create(struct weir_session *session, size_t size, unsigned int count,
		     struct weir_pool **pool, struct weir_error *error);

/* All buffers must have been put back. */
void weir_pool_destroy(struct weir_pool *pool);

/* Context: any thread, never blocks. Return: a buffer, or NULL when all are out. */
void *weir_pool_get(struct weir_pool *pool);
/* Like get, but waits until one is put back. */
void *weir_pool_get_wait(struct weir_pool *pool);
void weir_pool_put(struct weir_pool *pool, void *buffer);

/* The registered memory that all buffers of @pool lie in. */
struct weir_memory *weir_pool_memory(const struct weir_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
