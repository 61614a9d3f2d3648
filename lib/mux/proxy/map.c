/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The daemon's memory, as a tenant maps it. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/mux/local/memory.h"
#include "lib/mux/proxy/proxy.h"

static void chunk_free(struct weir_tenant_chunk *chunk)
{
	weir_list_del(&chunk->link);
	if (chunk->base)
		munmap(chunk->base, chunk->length);
	free(chunk);
}

static struct weir_tenant_chunk *chunk_find(struct weir_tenant *tenant, uint32_t number)
{
	struct weir_list *at;

	for (at = tenant->chunks.next; at != &tenant->chunks; at = at->next) {
		struct weir_tenant_chunk *chunk =
			weir_list_entry(at, struct weir_tenant_chunk, link);

		if (chunk->number == number)
			return chunk;
	}
	return NULL;
}

int weir_tenant_map(int fd, size_t length, char **base)
{
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	if (at == MAP_FAILED)
		return -ENOMEM;
	*base = at;
	return 0;
}

/* Two threads may map the same chunk: nobody is hurt. */
int weir_tenant_chunk(struct weir_tenant *tenant, uint32_t number, struct weir_tenant_chunk **out)
{
	struct weir_share_ask ask = { .what = WEIR_SHARE_CHUNK, .nr = number };
	struct weir_tenant_chunk *chunk;
	struct weir_share_answer answer;
	int rc, fds[WEIR_SHARE_FDS_MAX];

	pthread_mutex_lock(&tenant->lock);
	*out = chunk_find(tenant, number);
	pthread_mutex_unlock(&tenant->lock);
	if (*out)
		return 0;
	rc = weir_tenant_ask(tenant, &ask, &answer, fds);
	if (rc)
		return rc;
	chunk = calloc(1, sizeof(*chunk));
	if (!chunk) {
		close(fds[0]);
		return -ENOMEM;
	}
	chunk->number = number;
	chunk->ring_bytes = answer.ring_bytes;
	chunk->length = weir_chunk_length(answer.ring_bytes);
	rc = weir_tenant_map(fds[0], chunk->length, &chunk->base);
	pthread_mutex_lock(&tenant->lock);
	weir_list_add(&tenant->chunks, &chunk->link);
	if (rc)
		chunk_free(chunk);
	else
		*out = chunk;
	pthread_mutex_unlock(&tenant->lock);
	return rc;
}

void weir_tenant_unmap(struct weir_tenant *tenant)
{
	while (!weir_list_is_empty(&tenant->chunks))
		chunk_free(weir_list_entry(tenant->chunks.next, struct weir_tenant_chunk, link));
}
