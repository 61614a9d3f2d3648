/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Local memory that a NIC may access: registered ranges, and pools of registered buffers.
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
 * @session: the session
 * @addr: start of the range, which must stay mapped until weir_memory_deregister()
 * @length: bytes
 * @memory: receives the registered memory
 * @error: may be NULL
 *
 * The caller owes a weir_memory_deregister().
 *
 * Context: Any thread.
 * Return: 0; -EINVAL; -ENOMEM (@error names RLIMIT_MEMLOCK if that limit is the cause).
 */
int weir_memory_register(struct weir_session *session, void *addr, size_t length,
			 struct weir_memory **memory, struct weir_error *error);

/*
 * Ends the registration, and frees @memory; NULL is allowed. No request may still use it. Context:
 * any thread.
 */
void weir_memory_deregister(struct weir_memory *memory);

/**
 * weir_pool_create() - register buffers of one size, in huge pages where available
 * @session: the session
 * @size: bytes per buffer; rounded up to a multiple of 64
 * @count: number of buffers, at least 1
 * @pool: receives the pool
 * @error: may be NULL
 *
 * The caller owes a weir_pool_destroy().
 *
 * Context: Any thread.
 * Return: 0; -EINVAL no size or no count; -ENOMEM (@error names RLIMIT_MEMLOCK if that limit is the
 *	cause).
 */
int weir_pool_create(struct weir_session *session, size_t size, unsigned int count,
		     struct weir_pool **pool, struct weir_error *error);

/*
 * Frees @pool and its buffers, which no request may still use; NULL is allowed. Context: any
 * thread, while no other uses the pool.
 */
void weir_pool_destroy(struct weir_pool *pool);

/* Context: any thread, never blocks. Return: a buffer, or NULL if none is free. */
void *weir_pool_get(struct weir_pool *pool);
/*
 * Like weir_pool_get(), but sleeps until a buffer is free. Context: any thread outside callbacks.
 * Return: a buffer.
 */
void *weir_pool_get_wait(struct weir_pool *pool);
/* Gives back a buffer that no request uses any more. Context: any thread, never blocks. */
void weir_pool_put(struct weir_pool *pool, void *buffer);

/* Context: any thread. Return: the registered memory that contains all buffers of @pool. */
struct weir_memory *weir_pool_memory(const struct weir_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
