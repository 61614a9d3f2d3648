/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that the hub has registered, and applications use: chunks, in which the rings of
 * connections are, and plots, which are their regions.
 */
#ifndef WEIR_LIB_MUX_LOCAL_MEMORY_H
#define WEIR_LIB_MUX_LOCAL_MEMORY_H

#include <infiniband/verbs.h>

#include "core/base/list.h"
#include "lib/mux/handle.h"
#include "lib/mux/local/account.h"

struct weir_mux_vconn;

#define WEIR_MUX_RING_SLAB_CONNS 16 /* connections whose rings are mapped and registered together */

/*
 * Memory of WEIR_MUX_RING_SLAB_CONNS connections: rings out first, which the device reads, then rings in,
 * which other muxes write, then the doors, which none does.
 */
struct weir_mux_ring_slab {
	struct weir_list link;
	struct weir_mux_account *account;
	unsigned int number; /* among its account's */
	int fd; /* the memfd, or -1 */
	char *base;
	size_t length;
	struct ibv_mr *mr, *mr_in; /* of the rings out, and in */
	uint32_t taken; /* bit i: connection i's are */
};

/* A region of the application's. @refs: grants of it, and orders to or from it. hub->lock. */
struct weir_mux_mr {
	struct weir_list link;
	struct weir_mux_account *account;
	uint32_t number;
	unsigned int refs;
	int fd; /* the memfd, until the tenant has it, or -1 */
	char *base;
	size_t length;
	struct ibv_mr *mr;
};

/* Memory for another process to map: sealed, so that it stays as long as it is. -ENOMEM. */
int weir_memfd(const char *name, size_t length);
/* Closes it, if there is one: -1 from then on. */
void weir_fd_close(int *fd);
/*
 * Memory that much goes through that is small. It is a file's, if there may be one more, whose
 * descriptor @fd is to stay open until it has been registered: a device that is software has its
 * peers map it then, and what is written here takes no system call. NULL: none is left.
 */
void *weir_mux_ring_slab_map(size_t length, int *fd);
/* Memory that a tenant maps too, if the account has one: @fd; -1: none. NULL: none is left. */
void *weir_mux_account_map(const struct weir_mux_account *account, size_t length, int *fd);

/*
 * slab.c: rings of a connection, which are empty then. With hub->lock held. @slots: how many
 * times options.ring_bytes they are long, a power of two up to WEIR_MUX_RING_SLAB_CONNS. -EAGAIN: no slab
 * has room for them: weir_mux_ring_slab_add(), and again.
 */
int weir_mux_ring_slab_take(struct weir_mux_account *account, struct weir_mux_vconn *conn,
			    unsigned int slots);
void weir_mux_ring_slab_give(struct weir_mux_vconn *conn);
/*
 * Another slab, of this thread's or of one that is at it. With hub->lock held, which it leaves in
 * between: who is @account stays until then. Return: 0: look again; -EDQUOT; -ENOMEM; as
 * weir_mux_account_wait().
 */
int weir_mux_ring_slab_add(struct weir_mux_account *account, uint64_t deadline_ns);
/* How a slab with slots of @size bytes lies in memory, and a ring of @length; without lock. */
size_t weir_mux_ring_slab_length(uint32_t size);
struct weir_mux_conn_shm *weir_mux_ring_slab_conn_shm(char *base, unsigned int slot, uint32_t size);
void weir_mux_ring_slab_rings(char *base, unsigned int slot, uint32_t size, uint32_t length,
			      struct weir_mux_ring_end *out, struct weir_mux_ring_end *in);

/* Of an account who goes. Without hub->lock. */
void weir_mux_ring_slab_free(struct weir_mux_ring_slab *slab);

/*
 * mr.c: regions. Without hub->lock: what is large takes the device long. Free: nobody refers to
 * it. weir_mux_mr_close() as weir_mux_region_close(); -EINVAL: there is no such region.
 */
int weir_mux_mr_new(struct weir_mux_account *account, size_t length, struct weir_mux_mr **mr);
void weir_mux_mr_free(struct weir_mux_mr *mr);
int weir_mux_mr_close(struct weir_mux_account *account, uint32_t number);
/* With it. */
struct weir_mux_mr *weir_mux_mr_find(const struct weir_mux_account *account, uint32_t number);

#endif
