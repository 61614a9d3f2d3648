/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory for the rings of many connections at a time: a registration per connection would fill
 * the NIC's translation cache, which sharing is meant to spare. A slab's rings in share one
 * rkey; only muxes with a proof of the key learn the rkey. Slabs live as long as their account.
 *
 * Registration may take a device milliseconds, so no lock is held meanwhile.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/mux/local/local.h"

#define ALL_TAKEN ((1u << WEIR_MUX_RING_SLAB_CONNS) - 1)

static void slab_destroy(struct weir_mux_ring_slab *slab)
{
	if (slab->mr)
		ibv_dereg_mr(slab->mr);
	if (slab->mr_in)
		ibv_dereg_mr(slab->mr_in);
	if (slab->base)
		munmap(slab->base, slab->length);
	weir_mux_fd_close(&slab->fd);
	weir_list_del(&slab->link);
	free(slab);
}

static int slab_map(struct weir_mux_account *account, struct weir_mux_ring_slab *slab)
{
	size_t rings = (size_t)account->mux->options.ring_bytes * WEIR_MUX_RING_SLAB_CONNS;

	slab->base = weir_mux_ring_slab_map(slab->length, &slab->fd);
	if (!slab->base || (account->is_shared && slab->fd < 0))
		return -ENOMEM;
	slab->mr = ibv_reg_mr(account->mux->pd, slab->base, rings, IBV_ACCESS_LOCAL_WRITE);
	if (slab->mr)
		slab->mr_in = ibv_reg_mr(account->mux->pd, slab->base + rings, rings,
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!account->is_shared)
		weir_mux_fd_close(&slab->fd);
	return slab->mr_in ? 0 : -ENOMEM;
}

/* The new slab is in no list and not counted. Context: without mux->lock. NULL: no memory. */
static struct weir_mux_ring_slab *slab_new(struct weir_mux_account *account, size_t length)
{
	struct weir_mux_ring_slab *slab = calloc(1, sizeof(*slab));

	if (!slab)
		return NULL;
	weir_list_init(&slab->link);
	slab->account = account;
	slab->fd = -1;
	slab->length = length;
	if (!slab_map(account, slab))
		return slab;
	slab_destroy(slab);
	return NULL;
}

int weir_mux_ring_slab_add(struct weir_mux_account *account, uint64_t deadline_ns)
{
	struct weir_mux_local *mux = account->mux;
	const size_t length = weir_mux_ring_slab_length(mux->options.ring_bytes);
	struct weir_mux_ring_slab *slab;
	int rc;

	/* One at a time: the new slab may have room for the waiters. */
	if (account->is_adding_slab)
		return weir_mux_account_wait(account, &account->changed, deadline_ns);
	rc = weir_mux_account_take_bytes(account, length);
	if (rc)
		return rc;
	account->is_adding_slab = true;
	pthread_mutex_unlock(&mux->lock);
	slab = slab_new(account, length);
	pthread_mutex_lock(&mux->lock);
	account->is_adding_slab = false;
	if (slab) {
		slab->number = account->nr_slabs++;
		weir_list_add(&account->slabs, &slab->link);
	} else {
		weir_mux_account_give_bytes(account, length);
	}
	pthread_cond_broadcast(&account->changed);
	return slab ? 0 : -ENOMEM;
}

void weir_mux_ring_slab_free(struct weir_mux_ring_slab *slab)
{
	struct weir_mux_account *account = slab->account;
	const size_t length = slab->length;

	slab_destroy(slab);
	pthread_mutex_lock(&account->mux->lock);
	weir_mux_account_give_bytes(account, length);
	pthread_mutex_unlock(&account->mux->lock);
}

/* A mask of @slots bits from @first on. */
static uint32_t bits_of(unsigned int first, unsigned int slots)
{
	return ((1u << slots) - 1) << first;
}

/* Return: the first of @slots free slots in a row, aligned to @slots; -1: none. */
static int find_slots(const struct weir_mux_ring_slab *slab, unsigned int slots)
{
	unsigned int first;

	for (first = 0; first < WEIR_MUX_RING_SLAB_CONNS; first += slots)
		if (!(slab->taken & bits_of(first, slots)))
			return (int)first;
	return -1;
}

/* Slabs with room come before full ones. */
static struct weir_mux_ring_slab *find_slab_with_room(const struct weir_mux_account *account,
						      unsigned int slots)
{
	struct weir_list *at;

	for (at = account->slabs.next; at != &account->slabs; at = at->next) {
		struct weir_mux_ring_slab *slab =
			weir_list_entry(at, struct weir_mux_ring_slab, link);

		if (slab->taken == ALL_TAKEN)
			break;
		if (find_slots(slab, slots) >= 0)
			return slab;
	}
	return NULL;
}

size_t weir_mux_ring_slab_length(uint32_t size)
{
	return WEIR_MUX_RING_SLAB_CONNS * (2 * (size_t)size + sizeof(struct weir_mux_conn_shm));
}

struct weir_mux_conn_shm *weir_mux_ring_slab_conn_shm(char *base, unsigned int slot, uint32_t size)
{
	return (struct weir_mux_conn_shm *)(base + WEIR_MUX_RING_SLAB_CONNS * 2 * (size_t)size) +
	       slot;
}

void weir_mux_ring_slab_rings(char *base, unsigned int slot, uint32_t size, uint32_t length,
			      struct weir_mux_ring_end *out, struct weir_mux_ring_end *in)
{
	struct weir_mux_conn_shm *shm = weir_mux_ring_slab_conn_shm(base, slot, size);

	*out = (struct weir_mux_ring_end){ &shm->out, base + (size_t)slot * size, length, 0 };
	*in = (struct weir_mux_ring_end){ &shm->in,
					  base + (size_t)(WEIR_MUX_RING_SLAB_CONNS + slot) * size,
					  length, 0 };
}

int weir_mux_ring_slab_take(struct weir_mux_account *account, struct weir_mux_vconn *conn,
			    unsigned int slots)
{
	const uint32_t size = account->mux->options.ring_bytes;
	struct weir_mux_ring_slab *slab = find_slab_with_room(account, slots);

	if (!slab)
		return -EAGAIN;
	conn->slab = slab;
	conn->slot = (unsigned int)find_slots(slab, slots);
	conn->nr_slots = slots;
	conn->size = size * slots;
	conn->shm = weir_mux_ring_slab_conn_shm(slab->base, conn->slot, size);
	memset(conn->shm, 0, sizeof(*conn->shm));
	weir_mux_ring_slab_rings(slab->base, conn->slot, size, conn->size, &conn->leaving,
				 &conn->arriving);
	conn->app.shm = conn->shm;
	conn->app.out = conn->leaving;
	conn->app.in = conn->arriving;
	slab->taken |= bits_of(conn->slot, slots);
	if (slab->taken == ALL_TAKEN) {
		weir_list_del(&slab->link);
		weir_list_add_tail(&account->slabs, &slab->link);
	}
	return 0;
}

void weir_mux_ring_slab_give(struct weir_mux_vconn *conn)
{
	struct weir_mux_ring_slab *slab = conn->slab;

	if (!slab)
		return;
	slab->taken &= ~bits_of(conn->slot, conn->nr_slots);
	weir_list_del(&slab->link);
	weir_list_add(&conn->account->slabs, &slab->link);
}
