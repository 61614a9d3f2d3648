/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The daemon's memory, mapped by a tenant. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/mux/local/memory.h"
#include "lib/mux/proxy/proxy.h"

static void free_slab(struct weir_mux_proxy_slab *slab)
{
	weir_list_del(&slab->link);
	if (slab->base)
		munmap(slab->base, slab->length);
	free(slab);
}

static struct weir_mux_proxy_slab *find_slab(struct weir_mux_proxy *tenant, uint32_t number)
{
	struct weir_list *at;

	for (at = tenant->slabs.next; at != &tenant->slabs; at = at->next) {
		struct weir_mux_proxy_slab *slab =
			weir_list_entry(at, struct weir_mux_proxy_slab, link);

		if (slab->number == number)
			return slab;
	}
	return NULL;
}

int weir_mux_proxy_map(int fd, size_t length, char **base)
{
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	if (at == MAP_FAILED)
		return -ENOMEM;
	*base = at;
	return 0;
}

/* Two threads may map the same slab twice, which is harmless. */
int weir_mux_proxy_slab(struct weir_mux_proxy *tenant, uint32_t number,
			struct weir_mux_proxy_slab **out)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_RING_SLAB, .nr = number };
	struct weir_mux_proxy_slab *slab;
	struct weir_mux_ipc_reply answer;
	int rc, fds[WEIR_MUX_IPC_FDS_MAX];

	pthread_mutex_lock(&tenant->lock);
	*out = find_slab(tenant, number);
	pthread_mutex_unlock(&tenant->lock);
	if (*out)
		return 0;
	rc = weir_mux_proxy_call(tenant, &ask, &answer, fds);
	if (rc)
		return rc;
	slab = calloc(1, sizeof(*slab));
	if (!slab) {
		close(fds[0]);
		return -ENOMEM;
	}
	slab->number = number;
	slab->ring_bytes = answer.ring_bytes;
	slab->length = weir_mux_ring_slab_length(answer.ring_bytes);
	rc = weir_mux_proxy_map(fds[0], slab->length, &slab->base);
	pthread_mutex_lock(&tenant->lock);
	weir_list_add(&tenant->slabs, &slab->link);
	if (rc)
		free_slab(slab);
	else
		*out = slab;
	pthread_mutex_unlock(&tenant->lock);
	return rc;
}

void weir_mux_proxy_unmap(struct weir_mux_proxy *tenant)
{
	while (!weir_list_is_empty(&tenant->slabs))
		free_slab(weir_list_entry(tenant->slabs.next, struct weir_mux_proxy_slab, link));
}
