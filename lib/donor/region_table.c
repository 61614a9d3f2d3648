/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/donor/region_table.h"

#define ACCESS_READ (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)
#define UMTT_SIZE (4 * WEIR_LENT_MAX) /* each has two registrations at most; it touches what it
				       * uses */
#define ACCESS_ALL (ACCESS_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/**
 * struct weir_lent - one region
 * @payer: who is charged; NULL: nobody any more
 * @mr: while held, or owned; @mr_read: once somebody holds it for reading only
 * @is_exclusive: it has one holder and admits no other
 * @is_owned: the donor's application's
 * @is_movable: who pays gives it back when asked to
 */
struct weir_lent {
	struct weir_list link;
	uint64_t id;
	unsigned int tenant;
	char name[WIRE_NAME_MAX + 1];
	struct weir_extent *extent;
	struct weir_account *payer;
	struct ibv_mr *mr, *mr_read;
	unsigned int holders;
	bool is_exclusive;
	bool is_owned;
	bool is_movable;
};

struct weir_hold {
	struct weir_list link;
	uint64_t id;
	struct weir_lent *lent;
	uint32_t flags;
};

int weir_lender_init(struct weir_lender *lender, struct weir_arena *arena, struct ibv_pd **pds)
{
	struct weir_umtt_entry *table = calloc(UMTT_SIZE, sizeof(*table));

	if (!table)
		return -ENOMEM;
	*lender = (struct weir_lender){ .arena = arena, .pds = pds };
	weir_list_init(&lender->lent);
	return weir_umtt_init(&lender->umtt, table, UMTT_SIZE);
}

void weir_account_init(struct weir_account *account, unsigned int tenant, uint64_t quota)
{
	*account = (struct weir_account){ .tenant = tenant, .quota = quota, .keep = WIRE_KEEP_ALL };
	weir_list_init(&account->holds);
}

static struct weir_lent *lent_find(const struct weir_lender *lender, unsigned int tenant,
				   const char *name)
{
	struct weir_list *link;
	struct weir_lent *lent;

	if (!name[0])
		return NULL;
	for (link = lender->lent.next; link != &lender->lent; link = link->next) {
		lent = weir_list_entry(link, struct weir_lent, link);
		if (lent->tenant == tenant && !strcmp(lent->name, name))
			return lent;
	}
	return NULL;
}

/* Returns when no peer can reach it any more, and nobody copies for one. */
static void mr_deregister(struct weir_lender *lender, struct ibv_mr **mr)
{
	if (!*mr)
		return;
	weir_umtt_remove(&lender->umtt, (*mr)->rkey);
	ibv_dereg_mr(*mr);
	*mr = NULL;
}

static int mr_register(struct weir_lender *lender, struct weir_lent *lent, int access,
		       struct ibv_mr **mr, struct weir_error *error)
{
	struct weir_umtt_entry entry = {
		.addr = (uintptr_t)lent->extent->addr,
		.length = lent->extent->length,
		.owner = lent->tenant,
		.is_writable = access & IBV_ACCESS_REMOTE_WRITE,
	};

	if (*mr)
		return 0;
	*mr = ibv_reg_mr(lender->pds[lent->tenant], lent->extent->addr, lent->extent->length,
			 access);
	if (!*mr)
		return weir_fail_memlock(error, "a region", lent->extent->length, -errno);
	entry.tag = (*mr)->rkey;
	if (!weir_umtt_add(&lender->umtt, &entry))
		return 0;
	ibv_dereg_mr(*mr);
	*mr = NULL;
	return weir_fail(error, -ENOSPC, "the donor has no room for one more registration");
}

static int lent_new(struct weir_lender *lender, unsigned int tenant, const char *name,
		    uint64_t length, struct weir_lent **out, struct weir_error *error)
{
	struct weir_lent *lent;
	int ret;

	if (lender->nr_lent >= WEIR_LENT_MAX)
		return weir_fail(error, -ENOSPC, "the donor has %u regions already", WEIR_LENT_MAX);
	lent = calloc(1, sizeof(*lent));
	if (!lent)
		return weir_fail(error, -ENOMEM, "the donor is out of memory");
	ret = weir_arena_take(lender->arena, length, &lent->extent);
	if (ret) {
		free(lent);
		return weir_fail(
			error, ret, "the donor has no %llu bytes in a row: %llu of %llu are lent",
			(unsigned long long)length, (unsigned long long)lender->arena->taken,
			(unsigned long long)lender->arena->limit);
	}
	lent->id = ++lender->ids;
	lent->tenant = tenant;
	snprintf(lent->name, sizeof(lent->name), "%s", name);
	weir_list_add_tail(&lender->lent, &lent->link);
	lender->nr_lent++;
	*out = lent;
	return 0;
}

static void lent_pay(struct weir_lent *lent, struct weir_account *payer)
{
	lent->payer = payer;
	payer->charged += lent->extent->length;
	payer->movable += lent->is_movable ? lent->extent->length : 0;
	payer->nr_charged++;
}

static void lent_unpay(struct weir_lent *lent)
{
	if (!lent->payer)
		return;
	lent->payer->charged -= lent->extent->length;
	lent->payer->movable -= lent->is_movable ? lent->extent->length : 0;
	lent->payer->nr_charged--;
	lent->payer = NULL;
}

static void lent_free(struct weir_lender *lender, struct weir_lent *lent)
{
	mr_deregister(lender, &lent->mr);
	mr_deregister(lender, &lent->mr_read);
	lent_unpay(lent);
	weir_arena_give(lender->arena, lent->extent);
	weir_list_del(&lent->link);
	lender->nr_lent--;
	free(lent);
}

void weir_lender_fini(struct weir_lender *lender)
{
	while (!weir_list_is_empty(&lender->lent))
		lent_free(lender, weir_list_entry(lender->lent.next, struct weir_lent, link));
	free(lender->umtt.table);
}

static int hold_new(struct weir_lender *lender, struct weir_account *account,
		    struct weir_lent *lent, uint32_t flags, struct wire_region *out,
		    struct weir_error *error)
{
	bool read_only = flags & WIRE_READ_ONLY;
	struct ibv_mr **mr = read_only ? &lent->mr_read : &lent->mr;
	struct weir_hold *hold;
	int ret;

	if (account->nr_holds >= WEIR_HOLDS_MAX)
		return weir_fail(error, -EDQUOT, "this session holds %u regions already",
				 WEIR_HOLDS_MAX);
	ret = mr_register(lender, lent, read_only ? ACCESS_READ : ACCESS_ALL, mr, error);
	if (ret)
		return ret;
	hold = calloc(1, sizeof(*hold));
	if (!hold)
		return weir_fail(error, -ENOMEM, "the donor is out of memory");
	hold->id = ++lender->ids;
	hold->lent = lent;
	hold->flags = flags;
	weir_list_add_tail(&account->holds, &hold->link);
	account->nr_holds++;
	lent->holders++;
	lent->is_exclusive = flags & WIRE_EXCLUSIVE;
	*out = (struct wire_region){
		.hold = hold->id,
		.addr = (uintptr_t)lent->extent->addr,
		.length = lent->extent->length,
		.rkey = (*mr)->rkey,
		.flags = flags,
	};
	return 0;
}

/* The last holder has gone: its rkeys go too, and the region, unless it has a name. */
static void lent_unheld(struct weir_lender *lender, struct weir_lent *lent)
{
	if (!lent->name[0]) {
		lent_free(lender, lent);
		return;
	}
	mr_deregister(lender, &lent->mr);
	mr_deregister(lender, &lent->mr_read);
}

static void hold_free(struct weir_lender *lender, struct weir_account *account,
		      struct weir_hold *hold)
{
	struct weir_lent *lent = hold->lent;

	weir_list_del(&hold->link);
	account->nr_holds--;
	free(hold);
	lent->is_exclusive = false;
	if (!--lent->holders)
		lent_unheld(lender, lent);
}

void weir_lender_leave(struct weir_lender *lender, struct weir_account *account)
{
	struct weir_list *link;
	struct weir_lent *lent;

	while (!weir_list_is_empty(&account->holds))
		hold_free(lender, account,
			  weir_list_entry(account->holds.next, struct weir_hold, link));
	for (link = lender->lent.next; link != &lender->lent; link = link->next) {
		lent = weir_list_entry(link, struct weir_lent, link);
		if (lent->payer == account)
			lent_unpay(lent);
	}
}

static int quota_check(const struct weir_account *account, uint64_t length,
		       struct weir_error *error)
{
	if (account->nr_charged >= WEIR_HOLDS_MAX)
		return weir_fail(error, -EDQUOT, "this client has created %u regions already",
				 WEIR_HOLDS_MAX);
	if (length <= account->quota && account->charged <= account->quota - length)
		return 0;
	return weir_fail(error, -EDQUOT,
			 "%llu bytes are over this client's quota: %llu of %llu used",
			 (unsigned long long)length, (unsigned long long)account->charged,
			 (unsigned long long)account->quota);
}

int weir_lender_create(struct weir_lender *lender, struct weir_account *account, const char *name,
		       uint64_t length, uint32_t flags, struct wire_region *out,
		       struct weir_error *error)
{
	struct weir_lent *lent = NULL;
	int ret;

	if (!length || length > UINT64_MAX - WEIR_ARENA_PAGE)
		return weir_fail(error, -EINVAL, "a region cannot have %llu bytes",
				 (unsigned long long)length);
	if (flags & ~(WIRE_EXCLUSIVE | WIRE_MOVABLE) || (flags & WIRE_MOVABLE && name[0]))
		return weir_fail(error, -EINVAL, "flags %#x cannot be given to a new region",
				 flags);
	if (lent_find(lender, account->tenant, name))
		return weir_fail(error, -EEXIST, "there is a region '%s' already", name);
	length = (length + WEIR_ARENA_PAGE - 1) / WEIR_ARENA_PAGE * WEIR_ARENA_PAGE;
	ret = quota_check(account, length, error);
	if (ret)
		return ret;
	ret = lent_new(lender, account->tenant, name, length, &lent, error);
	if (ret)
		return ret;
	ret = hold_new(lender, account, lent, flags, out, error);
	if (ret) {
		lent_free(lender, lent);
		return ret;
	}
	lent->is_movable = flags & WIRE_MOVABLE;
	lent_pay(lent, account);
	return 0;
}

int weir_lender_open(struct weir_lender *lender, struct weir_account *account, const char *name,
		     uint32_t flags, struct wire_region *out, struct weir_error *error)
{
	struct weir_lent *lent = lent_find(lender, account->tenant, name);

	if (flags & ~(WIRE_EXCLUSIVE | WIRE_READ_ONLY))
		return weir_fail(error, -EINVAL, "flags %#x are unknown", flags);
	if (!lent)
		return weir_fail(error, -ENOENT, "there is no region '%s'", name);
	if (lent->is_exclusive)
		return weir_fail(error, -EBUSY, "region '%s' is held exclusively", name);
	if (flags & WIRE_EXCLUSIVE && lent->holders)
		return weir_fail(error, -EBUSY, "region '%s' is held by %u others", name,
				 lent->holders);
	return hold_new(lender, account, lent, flags, out, error);
}

static struct weir_hold *hold_find(const struct weir_account *account, uint64_t id,
				   const struct weir_lent *lent)
{
	struct weir_list *link;
	struct weir_hold *hold;

	for (link = account->holds.next; link != &account->holds; link = link->next) {
		hold = weir_list_entry(link, struct weir_hold, link);
		if (hold->id == id || hold->lent == lent)
			return hold;
	}
	return NULL;
}

int weir_lender_close(struct weir_lender *lender, struct weir_account *account, uint64_t id)
{
	struct weir_hold *hold = hold_find(account, id, NULL);

	if (!hold)
		return -ENOENT;
	hold_free(lender, account, hold);
	return 0;
}

int weir_lender_delete(struct weir_lender *lender, struct weir_account *account, const char *name,
		       struct weir_error *error)
{
	struct weir_lent *lent = lent_find(lender, account->tenant, name);

	if (!lent)
		return weir_fail(error, -ENOENT, "there is no region '%s'", name);
	if (lent->is_exclusive && !hold_find(account, 0, lent))
		return weir_fail(error, -EBUSY, "region '%s' is held exclusively", name);
	lent->name[0] = '\0';
	if (!lent->holders)
		lent_free(lender, lent);
	return 0;
}

void weir_lender_list(const struct weir_lender *lender, unsigned int tenant, uint64_t from,
		      struct wire_list *list, struct wire_entry *entries)
{
	struct weir_list *link;
	struct weir_lent *lent;

	*list = (struct wire_list){ 0 };
	for (link = lender->lent.next; link != &lender->lent; link = link->next) {
		lent = weir_list_entry(link, struct weir_lent, link);
		if (lent->tenant != tenant || !lent->name[0] || lent->id < from)
			continue;
		if (list->count == WIRE_ENTRIES_MAX) {
			list->next = lent->id;
			return;
		}
		entries[list->count] = (struct wire_entry){
			.length = lent->extent->length,
			.holders = lent->holders,
			.flags = lent->is_exclusive ? WIRE_EXCLUSIVE : 0,
		};
		memcpy(entries[list->count].name, lent->name, sizeof(lent->name));
		list->count++;
	}
}

int weir_lender_own(struct weir_lender *lender, unsigned int tenant, uint64_t length,
		    struct weir_region_token *token, void **addr, struct weir_error *error)
{
	struct weir_lent *lent = NULL;
	int ret;

	ret = lent_new(lender, tenant, "", length, &lent, error);
	if (ret)
		return ret;
	ret = mr_register(lender, lent, ACCESS_ALL, &lent->mr, error);
	if (ret) {
		lent_free(lender, lent);
		return ret;
	}
	lent->is_owned = true;
	*token = (struct weir_region_token){
		.addr = (uintptr_t)lent->extent->addr,
		.length = lent->extent->length,
		.rkey = lent->mr->rkey,
	};
	*addr = lent->extent->addr;
	return 0;
}

int weir_lender_disown(struct weir_lender *lender, const struct weir_region_token *token)
{
	struct weir_list *link;
	struct weir_lent *lent;

	for (link = lender->lent.next; link != &lender->lent; link = link->next) {
		lent = weir_list_entry(link, struct weir_lent, link);
		if (!lent->is_owned || (uintptr_t)lent->extent->addr != token->addr)
			continue;
		lent_free(lender, lent);
		return 0;
	}
	return -ENOENT;
}
