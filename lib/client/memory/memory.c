/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/huge_map.h"
#include "lib/client/memory/memory.h"
#include "lib/client/session.h"

int weir_memory_register(struct weir_session *session, void *addr, size_t length,
			 struct weir_memory **memory, struct weir_error *error)
{
	struct weir_memory *m;

	if (!addr || !length)
		return weir_error_set(error, -EINVAL, "cannot register %zu bytes at %p", length,
				      addr);
	m = malloc(sizeof(*m));
	if (!m)
		return weir_error_set(error, -ENOMEM, "out of memory");
	m->session = session;
	m->nic = session->nic;
	m->mr = ibv_reg_mr(session->nic->pd, addr, length, IBV_ACCESS_LOCAL_WRITE);
	if (!m->mr) {
		int rc = -errno;

		free(m);
		return weir_error_set_memlock(error, "memory", length, rc);
	}
	m->addr = (uintptr_t)addr;
	m->length = length;
	m->lkey = m->mr->lkey;
	weir_session_track(session, &session->memories, &m->link);
	*memory = m;
	return 0;
}

void weir_memory_deregister(struct weir_memory *memory)
{
	if (!memory)
		return;
	weir_session_untrack(memory->session, &memory->link);
	ibv_dereg_mr(memory->mr);
	free(memory);
}

void weir_memory_fini_all(struct weir_session *session)
{
	while (!weir_list_is_empty(&session->memories))
		weir_memory_deregister(
			weir_list_entry(session->memories.next, struct weir_memory, link));
}

static size_t round_up(size_t length)
{
	return (length + WEIR_HUGE_BYTES - 1) & ~(WEIR_HUGE_BYTES - 1);
}

/* Best effort: without memory on the node, or without nodes, any memory will do. */
static void bind_to(void *addr, size_t length, int numa_node)
{
	unsigned long nodes = 0;

	if (numa_node < 0 || numa_node >= (int)(8 * sizeof(nodes)))
		return;
	nodes = 1ul << numa_node;
	syscall(SYS_mbind, addr, length, MPOL_PREFERRED, &nodes, 8 * sizeof(nodes), 0);
}

/*
 * Touches the memory in advance, because the first touch of a page costs more than a small request.
 * Small buffers are not worth a huge page.
 */
void *weir_memory_map(size_t length, int numa_node)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *addr = MAP_FAILED;

	if (length >= WEIR_HUGE_BYTES)
		addr = mmap(NULL, round_up(length), PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1,
			    0);
	if (addr == MAP_FAILED)
		addr = mmap(NULL, round_up(length), PROT_READ | PROT_WRITE, flags, -1, 0);
	if (addr == MAP_FAILED)
		return NULL;
	bind_to(addr, round_up(length), numa_node);
	if (length >= WEIR_HUGE_BYTES)
		madvise(addr, round_up(length), MADV_HUGEPAGE);
	madvise(addr, length, MADV_POPULATE_WRITE);
	return addr;
}

void weir_memory_unmap(void *addr, size_t length)
{
	if (addr)
		munmap(addr, round_up(length));
}
