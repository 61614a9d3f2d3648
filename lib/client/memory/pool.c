/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A pool hands out the most recently returned buffer, while still in the caches. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/base/error.h"
#include "lib/client/memory/memory.h"
#include "lib/client/session.h"

#define BUFFER_ALIGN 64

/**
 * struct weir_pool - buffers of one size
 * @link: in the session's pools, guarded by its hold_lock
 * @lock: guards @free and @nr_free; innermost
 * @filled: a buffer was put back
 * @memory: of all buffers
 * @bytes: of all buffers
 * @free: a stack of @nr_free free buffers
 * @waiting: threads that wait for a buffer
 */
struct weir_pool {
	struct weir_list link;
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct weir_memory *memory;
	char *base;
	size_t bytes;
	unsigned int nr_free;
	unsigned int waiting;
	void *free[];
};

static struct weir_pool *pool_alloc(size_t size, unsigned int count, int numa_node)
{
	struct weir_pool *pool = malloc(sizeof(*pool) + count * sizeof(pool->free[0]));
	unsigned int i;

	if (!pool)
		return NULL;
	pool->bytes = size * count;
	pool->base = weir_memory_map(pool->bytes, numa_node);
	if (!pool->base) {
		free(pool);
		return NULL;
	}
	pool->nr_free = count;
	pool->waiting = 0;
	for (i = 0; i < count; i++)
		pool->free[i] = pool->base + (size_t)i * size;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->filled, NULL);
	return pool;
}

static void pool_free(struct weir_pool *pool)
{
	pthread_cond_destroy(&pool->filled);
	pthread_mutex_destroy(&pool->lock);
	weir_memory_unmap(pool->base, pool->bytes);
	free(pool);
}

int weir_pool_create(struct weir_session *session, size_t size, unsigned int count,
		     struct weir_pool **pool, struct weir_error *error)
{
	struct weir_pool *p;
	size_t rounded = (size + BUFFER_ALIGN - 1) & ~((size_t)BUFFER_ALIGN - 1);
	int rc;

	if (!size || !count || rounded < size || rounded > SIZE_MAX / 2 / count)
		return weir_error_set(error, -EINVAL,
				      "cannot create a pool of %u buffers of %zu bytes", count,
				      size);
	p = pool_alloc(rounded, count, session->nic->numa_node);
	if (!p)
		return weir_error_set(error, -ENOMEM, "no memory for %u buffers of %zu bytes",
				      count, size);
	rc = weir_memory_register(session, p->base, p->bytes, &p->memory, error);
	if (rc) {
		pool_free(p);
		return rc;
	}
	weir_session_track(session, &session->pools, &p->link);
	*pool = p;
	return 0;
}

void weir_pool_destroy(struct weir_pool *pool)
{
	if (!pool)
		return;
	weir_session_untrack(pool->memory->session, &pool->link);
	weir_memory_deregister(pool->memory);
	pool_free(pool);
}

void *weir_pool_get(struct weir_pool *pool)
{
	void *buffer = NULL;

	pthread_mutex_lock(&pool->lock);
	if (pool->nr_free)
		buffer = pool->free[--pool->nr_free];
	pthread_mutex_unlock(&pool->lock);
	return buffer;
}

void *weir_pool_get_wait(struct weir_pool *pool)
{
	void *buffer;

	pthread_mutex_lock(&pool->lock);
	while (!pool->nr_free) {
		pool->waiting++;
		pthread_cond_wait(&pool->filled, &pool->lock);
		pool->waiting--;
	}
	buffer = pool->free[--pool->nr_free];
	pthread_mutex_unlock(&pool->lock);
	return buffer;
}

void weir_pool_put(struct weir_pool *pool, void *buffer)
{
	pthread_mutex_lock(&pool->lock);
	pool->free[pool->nr_free++] = buffer;
	if (pool->waiting)
		pthread_cond_signal(&pool->filled);
	pthread_mutex_unlock(&pool->lock);
}

void weir_pool_fini_all(struct weir_session *session)
{
	while (!weir_list_is_empty(&session->pools))
		weir_pool_destroy(weir_list_entry(session->pools.next, struct weir_pool, link));
}

struct weir_memory *weir_pool_memory(const struct weir_pool *pool)
{
	return pool->memory;
}
