/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory registered by the mux for applications: slabs for the rings of connections, and MRs for
 * regions.
 */
#ifndef WEIR_LIB_MUX_LOCAL_MEMORY_H
#define WEIR_LIB_MUX_LOCAL_MEMORY_H

#include <infiniband/verbs.h>

#include "core/base/list.h"
#include "lib/mux/handle.h"
#include "lib/mux/local/account.h"

struct weir_mux_vconn;

#define WEIR_MUX_RING_SLAB_CONNS 16 /* connections per mapping and registration */

/*
 * Memory of WEIR_MUX_RING_SLAB_CONNS connections: first the rings out, read by the device; then
 * the rings in, written by other muxes; then the control blocks, closed to the device.
 */
struct weir_mux_ring_slab {
	struct weir_list link;
	struct weir_mux_account *account;
	unsigned int number; /* within the account */
	int fd; /* the memfd, or -1 */
	char *base;
	size_t length;
	struct ibv_mr *mr, *mr_in; /* of the rings out, and in */
	uint32_t taken; /* bit i: slot i */
};

/* A region of the application's. @refs: grants and operations. Guarded by mux->lock. */
struct weir_mux_mr {
	struct weir_list link;
	struct weir_mux_account *account;
	uint32_t number;
	unsigned int refs;
	int fd; /* the memfd until the tenant has it, or -1 */
	char *base;
	size_t length;
	struct ibv_mr *mr;
};

/* Creates sealed memory of fixed size for another process to map. -ENOMEM. */
int weir_mux_memfd(const char *name, size_t length);
/* Closes *@fd if open, and sets *@fd to -1. */
void weir_mux_fd_close(int *fd);
/*
 * Maps memory for a slab, as a memfd if possible. Keep @fd open until registration: a software
 * device then lets peers map the memory, so writes within the host need no system call. NULL: no
 * memory.
 */
void *weir_mux_ring_slab_map(size_t length, int *fd);
/* Maps memory, as a memfd (@fd) if the account is a tenant, else @fd is -1. NULL: no memory. */
void *weir_mux_account_map(const struct weir_mux_account *account, size_t length, int *fd);

/*
 * Takes empty rings for a connection. @slots: the length in options.ring_bytes, a power of two
 * up to WEIR_MUX_RING_SLAB_CONNS. -EAGAIN: no slab has room; call weir_mux_ring_slab_add() and
 * retry. Context: with mux->lock held.
 */
int weir_mux_ring_slab_take(struct weir_mux_account *account, struct weir_mux_vconn *conn,
			    unsigned int slots);
void weir_mux_ring_slab_give(struct weir_mux_vconn *conn);
/*
 * Adds a slab, or waits for another thread's. Context: with mux->lock held; drops it meanwhile;
 * the caller keeps @account alive. Return: 0: look again; -EDQUOT; -ENOMEM; as
 * weir_mux_account_wait().
 */
int weir_mux_ring_slab_add(struct weir_mux_account *account, uint64_t deadline_ns);
/* Layout of a slab with slots of @size bytes and a ring of @length. Context: any. */
size_t weir_mux_ring_slab_length(uint32_t size);
struct weir_mux_conn_shm *weir_mux_ring_slab_conn_shm(char *base, unsigned int slot, uint32_t size);
void weir_mux_ring_slab_rings(char *base, unsigned int slot, uint32_t size, uint32_t length,
			      struct weir_mux_ring_end *out, struct weir_mux_ring_end *in);

/* Frees a slab of an account that goes. Context: without mux->lock. */
void weir_mux_ring_slab_free(struct weir_mux_ring_slab *slab);

/* Regions. Context: without mux->lock, since registration of a large region takes long. */
int weir_mux_mr_new(struct weir_mux_account *account, size_t length, struct weir_mux_mr **mr);
/* No grant or operation uses the MR. */
void weir_mux_mr_free(struct weir_mux_mr *mr);
/* As weir_mux_region_close(); -EINVAL: no such region. */
int weir_mux_mr_close(struct weir_mux_account *account, uint32_t number);
/* Context: with mux->lock held. */
struct weir_mux_mr *weir_mux_mr_find(const struct weir_mux_account *account, uint32_t number);

#endif
