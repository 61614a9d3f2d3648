/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <pthread.h>
#include <stdlib.h>

#include "wrap.h"

#define BUCKETS 1024 /* a power of two */

struct wrapped {
	struct wrapped *next;
	const void *object;
	enum wrapped_kind kind;
	_Alignas(max_align_t) char kept[];
};

static struct wrapped *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for additions */

/* malloc() aligns objects, so the lowest bits carry no information. */
static struct wrapped **bucket_of(const void *object)
{
	uint64_t at = (uintptr_t)object / _Alignof(max_align_t);

	return &buckets[at * 0x9e3779b97f4a7c15ull >> 54 & (BUCKETS - 1)];
}

void *wrapped_find(enum wrapped_kind kind, const void *object)
{
	struct wrapped *w = __atomic_load_n(bucket_of(object), __ATOMIC_ACQUIRE);

	while (w && (w->object != object || w->kind != kind))
		w = w->next;
	return w ? w->kept : NULL;
}

void *wrapped_get(enum wrapped_kind kind, const void *object, size_t size)
{
	struct wrapped **bucket = bucket_of(object), *w;
	void *kept;

	pthread_mutex_lock(&lock);
	kept = wrapped_find(kind, object);
	w = kept ? NULL : calloc(1, sizeof(*w) + size);
	if (w) {
		w->object = object;
		w->kind = kind;
		w->next = *bucket;
		kept = w->kept;
		__atomic_store_n(bucket, w, __ATOMIC_RELEASE); /* pairs with wrapped_find() */
	}
	pthread_mutex_unlock(&lock);
	return kept;
}
