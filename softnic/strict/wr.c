// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include "softnic/verbs/mr.h"
#include "softnic/verbs/nic.h"
#include "finding.h"
#include "strict.h"
#include "veil.h"
#include "wr.h"

enum { HASHES = 4096 };

static struct {
	pthread_mutex_t lock;
	struct strict_wr *first, *last;
	struct strict_wr *hash[HASHES];
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The parent's WRs are of no concern to the child. */
static void reset_wrs(void)
{
	all.first = all.last = NULL;
	memset(all.hash, 0, sizeof(all.hash));
	strict_forget_findings();
}

const struct fork_part strict_fork = { &all.lock, reset_wrs };

void wr_lock(void)
{
	pthread_mutex_lock(&all.lock);
}

void wr_unlock(void)
{
	pthread_mutex_unlock(&all.lock);
}

struct strict_wr *wr_first(void)
{
	return all.first;
}

static struct strict_wr **bucket(uint64_t wr_id)
{
	return &all.hash[(wr_id >> 6) % HASHES];
}

void wr_add(struct strict_wr *wr)
{
	struct strict_wr **at = bucket((uintptr_t)wr);

	wr->next_in_hash = *at;
	*at = wr;
	wr->next = NULL;
	wr->prev = all.last;
	if (all.last)
		all.last->next = wr;
	else
		all.first = wr;
	all.last = wr;
}

struct strict_wr *wr_find(uint64_t wr_id)
{
	struct strict_wr *wr;

	for (wr = *bucket(wr_id); wr && (uintptr_t)wr != wr_id; wr = wr->next_in_hash)
		;
	return wr;
}

static void put_veil(struct veil *veil)
{
	if (veil && !--veil->users)
		free(veil);
}

void wr_free(struct strict_wr *wr)
{
	struct strict_wr **at = bucket((uintptr_t)wr);
	int i;

	while (*at != wr)
		at = &(*at)->next_in_hash;
	*at = wr->next_in_hash;
	if (wr->prev)
		wr->prev->next = wr->next;
	else
		all.first = wr->next;
	if (wr->next)
		wr->next->prev = wr->prev;
	else
		all.last = wr->prev;
	put_veil(wr->veil);
	for (i = 0; i < SHARED_SGES_MAX; i++)
		put_veil(wr->sources[i]);
	free(wr);
}

bool wr_locate(const struct strict_wr *wr, uint64_t addrs[])
{
	const struct mr_view own = { nic.pub, NULL, wr->pd, 0 };
	uint32_t access = wr_is_writer(wr) ? IBV_ACCESS_LOCAL_WRITE : 0;
	struct mr_place place;
	uint32_t i;

	for (i = 0; i < wr->num_sge; i++) {
		if (!mr_translate(&own, wr->sges[i].lkey, access, wr->iovas[i], wr->sges[i].length,
				  &place))
			return false;
		addrs[i] = place.addr;
	}
	return true;
}

static uint64_t overlap(const struct ibv_sge *a, const struct ibv_sge *b)
{
	uint64_t begin = a->addr > b->addr ? a->addr : b->addr;
	uint64_t end_a = a->addr + a->length, end_b = b->addr + b->length;

	return begin < end_a && begin < end_b ? begin : 0;
}

uint64_t wr_overlap(const struct strict_wr *a, const struct strict_wr *b)
{
	uint32_t i, j;
	uint64_t at;

	for (i = 0; i < a->num_sge; i++)
		for (j = 0; j < b->num_sge; j++)
			if ((at = overlap(&a->sges[i], &b->sges[j])))
				return at;
	return 0;
}

int wr_find_piece(const struct strict_wr *wr, uint64_t addr, uint64_t length, uint64_t *offset)
{
	uint32_t i;

	*offset = 0;
	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *s = &wr->sges[i];

		if (addr >= s->addr && addr + length <= s->addr + s->length) {
			*offset += addr - s->addr;
			return i;
		}
		*offset += s->length;
	}
	return -1;
}

void strict_forget(const void *queue)
{
	struct strict_wr *wr, *next;

	if (!strict_level)
		return;
	wr_lock();
	for (wr = wr_first(); wr; wr = next) {
		next = wr->next;
		if (wr->queue != queue)
			continue;
		veil_lift(wr);
		wr_free(wr);
	}
	wr_unlock();
}

void strict_drop(uint64_t wr_id)
{
	struct strict_wr *wr;

	if (!strict_level)
		return;
	wr_lock();
	wr = wr_find(wr_id);
	if (wr) {
		veil_lift(wr);
		wr_free(wr);
	}
	wr_unlock();
}
