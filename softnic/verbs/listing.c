// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "listing.h"
#include "nic.h"
#include "softnic/loop/fork.h"

static struct {
	pthread_mutex_t lock;
	uint32_t used; /* entries below are in use; [0] stays unused */
	uint32_t forks; /* changes in the child of a fork, which has one thread */
} table = { .lock = PTHREAD_MUTEX_INITIALIZER, .used = 1 };

static void reset_listings(void)
{
	table.used = 1;
	table.forks++;
}

const struct fork_part listing_fork = { &table.lock, reset_listings };

/* The lowest free entry: a process with few objects touches few pages of the table. */
static uint32_t take_entry(void)
{
	uint32_t i = table.used;

	while (i < SHARED_OBJECTS && nic.pub->objects[i].kind)
		i++;
	table.used = i;
	return i < SHARED_OBJECTS ? i : 0;
}

void listing_begin(struct listing_place *l, const struct shared_object *o)
{
	struct shared_object *e, rest = *o;

	if (!load_acquire(&nic.is_open))
		return;
	pthread_mutex_lock(&table.lock);
	*l = (struct listing_place){ take_entry(), table.forks };
	if (l->index) {
		e = &nic.pub->objects[l->index];
		rest.kind = SHARED_NO_OBJECT;
		*e = rest;
		store_release(&e->kind, o->kind);
	}
	pthread_mutex_unlock(&table.lock);
}

struct shared_object *listing_entry(const struct listing_place *l)
{
	return l->index && l->fork == table.forks ? &nic.pub->objects[l->index] : NULL;
}

void listing_end(struct listing_place *l)
{
	struct shared_object *e = listing_entry(l);

	if (!e)
		return;
	pthread_mutex_lock(&table.lock);
	store_release(&e->kind, SHARED_NO_OBJECT);
	if (l->index < table.used)
		table.used = l->index;
	l->index = 0;
	pthread_mutex_unlock(&table.lock);
}

void listing_add_users(const struct listing_place *l, int32_t n)
{
	struct shared_object *e = listing_entry(l);

	if (e)
		__atomic_fetch_add(&e->users, (uint32_t)n, __ATOMIC_RELAXED);
}
