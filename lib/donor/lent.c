/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/size.h"
#include "lib/base/error.h"
#include "lib/donor/lent.h"

static void deregister_mr(struct weir_region_table *region_table, struct ibv_mr **mr)
{
	if (!*mr)
		return;
	weir_umtt_remove(&region_table->umtt, (*mr)->rkey);
	ibv_dereg_mr(*mr);
	*mr = NULL;
}

void weir_lent_deregister(struct weir_region_table *region_table, struct weir_lent_region *lent)
{
	deregister_mr(region_table, &lent->mr);
	deregister_mr(region_table, &lent->mr_read);
	deregister_mr(region_table, &lent->mr_guest);
}

int weir_lent_register(struct weir_region_table *region_table, struct weir_lent_region *lent,
		       int access, struct ibv_mr **mr, struct weir_error *error)
{
	struct weir_umtt_entry entry = {
		.addr = (uintptr_t)lent->extent->addr,
		.length = lent->extent->length,
		.owner = lent->tenant,
		.is_writable = access & IBV_ACCESS_REMOTE_WRITE,
	};
	const struct weir_region_key *key = &region_table->keys[lent->tenant];

	if (*mr)
		return 0;
	*mr = ibv_reg_mr(mr == &lent->mr_guest ? key->pd_read : key->pd, lent->extent->addr,
			 lent->extent->length, access);
	if (!*mr)
		return weir_error_set_memlock(error, "a region", lent->extent->length, -errno);
	entry.tag = (*mr)->rkey;
	if (!weir_umtt_add(&region_table->umtt, &entry))
		return 0;
	ibv_dereg_mr(*mr);
	*mr = NULL;
	return weir_error_set(error, -ENOSPC, "the donor has no room for one more registration");
}

/* Return: 0; -EAGAIN the region is starved; -ENOSPC; -ENOMEM. */
static int take_extent(struct weir_region_table *region_table, struct weir_lent_region *lent)
{
	int rc = weir_arena_take(region_table->arena, lent->length, &lent->extent);

	if (rc)
		return rc;
	lent->state = WEIR_LENT_GROWING;
	lent->job.extent = lent->extent;
	weir_memory_worker_populate(region_table->worker, &lent->job);
	return 0;
}

int weir_lent_explain_no_extent(const struct weir_region_table *region_table, uint64_t length,
				int rc, struct weir_error *error)
{
	return weir_error_set(error, rc,
			      "the donor has no %s in a row: %s of %s are lent",
			      weir_size_format(length).text,
			      weir_size_format(region_table->arena->taken).text,
			      weir_size_format(region_table->arena->limit).text);
}

static void lent_list_add(struct weir_region_table *region_table, struct weir_lent_region *lent)
{
	lent->id = ++region_table->ids;
	weir_list_add_tail(&region_table->lent, &lent->link);
	region_table->nr_lent++;
	region_table->keys[lent->tenant].bytes += lent->length;
}

static void lent_list_del(struct weir_region_table *region_table, struct weir_lent_region *lent)
{
	weir_list_del(&lent->link);
	weir_list_del(&lent->starved_link);
	region_table->nr_lent--;
	region_table->keys[lent->tenant].bytes -= lent->length;
	if (lent->budget)
		lent->budget->bytes -= lent->length;
	if (lent->is_left)
		region_table->keys[lent->tenant].left_bytes -= lent->length;
}

int weir_lent_new(struct weir_region_table *region_table, unsigned int tenant, const char *name,
		  uint64_t length, struct weir_lent_region **out, struct weir_error *error)
{
	struct weir_lent_region *lent;
	int rc;

	if (region_table->nr_lent >= WEIR_REGION_TABLE_MAX)
		return weir_error_set(error, -ENOSPC, "the donor has %u regions already",
				      WEIR_REGION_TABLE_MAX);
	length = weir_lent_whole_pages(length);
	lent = calloc(1, sizeof(*lent));
	if (!lent)
		return weir_error_set(error, -ENOMEM, "the donor is out of memory");
	weir_list_init(&lent->link);
	weir_list_init(&lent->starved_link);
	weir_list_init(&lent->waits);
	weir_list_init(&lent->holds);
	weir_list_init(&lent->job.link);
	lent->tenant = tenant;
	lent->job.key = tenant;
	lent->length = length;
	snprintf(lent->name, sizeof(lent->name), "%s", name);
	rc = take_extent(region_table, lent);
	if (rc && rc != -EAGAIN) {
		free(lent);
		return weir_lent_explain_no_extent(region_table, length, rc, error);
	}
	if (rc)
		weir_list_add_tail(&region_table->starved, &lent->starved_link);
	lent_list_add(region_table, lent);
	*out = lent;
	return 0;
}

void weir_lent_charge(struct weir_lent_region *lent, struct weir_region_account *payer)
{
	lent->payer = payer;
	lent->budget = payer->budget;
	lent->budget->bytes += lent->length;
	payer->charged += lent->length;
	payer->movable += lent->is_movable ? lent->length : 0;
	payer->nr_charged++;
}

void weir_lent_uncharge(struct weir_lent_region *lent)
{
	if (!lent->payer)
		return;
	lent->payer->charged -= lent->length;
	lent->payer->movable -= lent->is_movable ? lent->length : 0;
	lent->payer->nr_charged--;
	lent->payer = NULL;
}

void weir_lent_free(struct weir_region_table *region_table, struct weir_lent_region *lent)
{
	weir_lent_deregister(region_table, lent);
	weir_lent_uncharge(lent);
	lent_list_del(region_table, lent);
	if (!lent->extent) {
		free(lent);
		return;
	}
	lent->state = WEIR_LENT_FREED;
	weir_list_add_tail(&region_table->freed, &lent->link);
	weir_arena_give(region_table->arena, lent->extent);
	weir_memory_worker_zero(region_table->worker, &lent->job);
}

void weir_lent_settle(struct weir_region_table *region_table, struct weir_lent_region *lent)
{
	if (lent->state == WEIR_LENT_FREED) {
		weir_arena_free(region_table->arena, lent->extent);
		weir_list_del(&lent->link);
		free(lent);
	} else if (lent->status || (!lent->holders && !lent->name[0])) {
		weir_lent_free(region_table, lent);
	}
}

void weir_lent_leave(struct weir_region_table *region_table, struct weir_lent_region *lent)
{
	lent->is_left = true;
	region_table->keys[lent->tenant].left_bytes += lent->length;
}

void weir_lent_give_up(struct weir_region_table *region_table, struct weir_lent_region *lent)
{
	lent->status = -ECANCELED;
	lent->name[0] = '\0';
	if (lent->state == WEIR_LENT_GROWING)
		weir_memory_worker_cancel(region_table->worker, &lent->job);
}

/* Return: the eldest starved region, if its wait ends without an extent; else NULL. */
static struct weir_lent_region *feed_starved(struct weir_region_table *region_table)
{
	struct weir_lent_region *lent;

	while (!weir_list_is_empty(&region_table->starved)) {
		lent = weir_list_entry(region_table->starved.next, struct weir_lent_region,
				       starved_link);
		if (!lent->status)
			lent->status = take_extent(region_table, lent);
		if (lent->status == -EAGAIN) {
			lent->status = 0;
			return NULL;
		}
		weir_list_del(&lent->starved_link);
		if (lent->status)
			return lent;
	}
	return NULL;
}

static void lent_is_grown(struct weir_lent_region *lent)
{
	if (!lent->status)
		lent->status = lent->job.status;
	lent->state = WEIR_LENT_READY;
}

struct weir_lent_region *weir_lent_next(struct weir_region_table *region_table)
{
	struct weir_lent_region *lent = feed_starved(region_table);
	struct weir_memory_job *job;

	while (!lent && (job = weir_memory_worker_finished(region_table->worker))) {
		lent = container_of(job, struct weir_lent_region, job);
		if (lent->state == WEIR_LENT_READY)
			lent = NULL; /* the application's, in use already */
		else if (lent->state == WEIR_LENT_GROWING)
			lent_is_grown(lent);
	}
	return lent;
}
