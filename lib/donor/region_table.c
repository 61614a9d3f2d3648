/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/size.h"
#include "lib/base/error.h"
#include "lib/donor/lent.h"

#define ACCESS_READ (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)
#define UMTT_SIZE (4 * WEIR_REGION_TABLE_MAX) /* two registrations each; touched when used */
#define ACCESS_ALL (ACCESS_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

struct weir_region_hold {
	struct weir_list link, lent_link;
	struct weir_region_account *account;
	uint64_t id;
	struct weir_lent_region *lent;
	uint32_t flags;
};

int weir_region_table_init(struct weir_region_table *region_table, struct weir_arena *arena,
			   struct weir_memory_worker *worker, struct weir_region_key *keys,
			   uint64_t key_bytes_max)
{
	struct weir_umtt_entry *table = calloc(UMTT_SIZE, sizeof(*table));

	if (!table)
		return -ENOMEM;
	*region_table = (struct weir_region_table){
		.arena = arena, .worker = worker, .keys = keys, .key_bytes_max = key_bytes_max
	};
	weir_list_init(&region_table->lent);
	weir_list_init(&region_table->starved);
	weir_list_init(&region_table->freed);
	return weir_umtt_init(&region_table->umtt, table, UMTT_SIZE);
}

void weir_region_account_init(struct weir_region_account *account, unsigned int tenant,
			      uint64_t quota)
{
	*account = (struct weir_region_account){ .tenant = tenant,
						 .quota = quota,
						 .keep = WIRE_CONTROL_KEEP_ALL };
	weir_list_init(&account->holds);
}

static struct weir_lent_region *find_lent(const struct weir_region_table *region_table,
					  unsigned int tenant, const char *name)
{
	struct weir_list *link;
	struct weir_lent_region *lent;

	if (!name[0])
		return NULL;
	for (link = region_table->lent.next; link != &region_table->lent; link = link->next) {
		lent = weir_list_entry(link, struct weir_lent_region, link);
		if (lent->tenant == tenant && !strcmp(lent->name, name))
			return lent;
	}
	return NULL;
}

bool weir_region_table_is_own(const struct weir_region_table *region_table,
			      const struct weir_region_account *account, const char *name)
{
	const struct weir_lent_region *lent = find_lent(region_table, account->tenant, name);

	return lent && lent->payer == account;
}

void weir_region_table_forget_budget(struct weir_region_table *region_table,
				     const struct weir_region_budget *budget)
{
	struct weir_list *link;

	for (link = region_table->lent.next; link != &region_table->lent; link = link->next) {
		struct weir_lent_region *lent =
			weir_list_entry(link, struct weir_lent_region, link);

		if (lent->budget == budget)
			lent->budget = NULL;
	}
}

void weir_region_table_purge(struct weir_region_table *region_table, unsigned int tenant)
{
	struct weir_list *link, *next;

	for (link = region_table->lent.next; link != &region_table->lent; link = next) {
		struct weir_lent_region *lent =
			weir_list_entry(link, struct weir_lent_region, link);

		next = link->next;
		if (lent->tenant != tenant || lent->is_owned)
			continue;
		lent->name[0] = '\0';
		if (lent->state == WEIR_LENT_READY)
			weir_lent_settle(region_table, lent);
	}
}

static struct weir_lent_region *first_lent(const struct weir_list *list)
{
	return weir_list_entry(list->next, struct weir_lent_region, link);
}

void weir_region_table_fini(struct weir_region_table *region_table)
{
	while (!weir_list_is_empty(&region_table->lent))
		weir_lent_free(region_table, first_lent(&region_table->lent));
	while (!weir_list_is_empty(&region_table->freed)) {
		struct weir_lent_region *lent = first_lent(&region_table->freed);

		weir_list_del(&lent->link);
		free(lent);
	}
	free(region_table->umtt.table);
}

static int check_open(const struct weir_lent_region *lent, uint32_t flags, struct weir_error *error)
{
	if (lent->is_exclusive)
		return weir_error_set(error, -EBUSY, "region '%s' is held exclusively", lent->name);
	if (flags & WIRE_REGION_EXCLUSIVE && lent->holders)
		return weir_error_set(error, -EBUSY, "region '%s' is held by %u others", lent->name,
				      lent->holders);
	return 0;
}

int weir_region_table_hold(struct weir_region_table *region_table,
			   struct weir_region_account *account, struct weir_lent_region *lent,
			   uint32_t flags, struct wire_control_region *out,
			   struct weir_error *error)
{
	bool read_only = flags & WIRE_REGION_READ_ONLY;
	struct ibv_mr **mr = account->reads_only ? &lent->mr_guest :
			     read_only		 ? &lent->mr_read :
						   &lent->mr;
	struct weir_region_hold *hold;
	int rc = check_open(lent, flags, error);

	if (rc)
		return rc;
	if (account->nr_holds >= WEIR_REGION_HOLDS_MAX)
		return weir_error_set(error, -EDQUOT, "this session holds %u regions already",
				      WEIR_REGION_HOLDS_MAX);
	rc = weir_lent_register(region_table, lent,
				read_only || account->reads_only ? ACCESS_READ : ACCESS_ALL, mr,
				error);
	if (rc)
		return rc;
	hold = calloc(1, sizeof(*hold));
	if (!hold)
		return weir_error_set(error, -ENOMEM, "the donor is out of memory");
	hold->id = ++region_table->ids;
	hold->lent = lent;
	hold->account = account;
	hold->flags = flags;
	weir_list_add_tail(&lent->holds, &hold->lent_link);
	weir_list_add_tail(&account->holds, &hold->link);
	account->nr_holds++;
	lent->holders++;
	lent->is_exclusive = flags & WIRE_REGION_EXCLUSIVE;
	*out = (struct wire_control_region){
		.hold = hold->id,
		.addr = (uintptr_t)lent->extent->addr,
		.length = lent->extent->length,
		.rkey = (*mr)->rkey,
		.flags = flags,
	};
	return 0;
}

/* After the last hold, revokes the rkeys, and frees the region unless it has a name. */
static void drop_holder(struct weir_region_table *region_table, struct weir_lent_region *lent)
{
	if (!lent->name[0]) {
		weir_lent_free(region_table, lent);
		return;
	}
	weir_lent_deregister(region_table, lent);
}

static void hold_free(struct weir_region_table *region_table, struct weir_region_hold *hold)
{
	struct weir_lent_region *lent = hold->lent;

	weir_list_del(&hold->link);
	weir_list_del(&hold->lent_link);
	hold->account->nr_holds--;
	free(hold);
	lent->is_exclusive = false;
	if (!--lent->holders)
		drop_holder(region_table, lent);
}

void weir_region_table_leave(struct weir_region_table *region_table,
			     struct weir_region_account *account)
{
	struct weir_list *link;
	struct weir_lent_region *lent;

	while (!weir_list_is_empty(&account->holds))
		hold_free(region_table,
			  weir_list_entry(account->holds.next, struct weir_region_hold, link));
	for (link = region_table->lent.next; link != &region_table->lent; link = link->next) {
		lent = weir_list_entry(link, struct weir_lent_region, link);
		if (lent->payer != account)
			continue;
		weir_lent_uncharge(lent);
		if (lent->state == WEIR_LENT_READY)
			weir_lent_leave(region_table, lent);
		else
			weir_lent_give_up(region_table, lent);
	}
}

/* The limit of a key, for its regions and its file system together. */
static int check_key(const struct weir_region_table *region_table, unsigned int tenant,
		     uint64_t length, struct weir_error *error)
{
	uint64_t used = region_table->keys[tenant].bytes, limit = region_table->key_bytes_max;

	length = weir_lent_whole_pages(length);
	if (length <= limit && used <= limit - length)
		return 0;
	return weir_error_set(error, -EDQUOT, "%s is over this key's limit: %s of %s used",
			      weir_size_format(length).text, weir_size_format(used).text,
			      weir_size_format(limit).text);
}

/*
 * All limits of a region that a client creates: of the budget, the client and the key. A new name
 * counts beside all that clients of the key have left: else names outlive quotas.
 */
static int check_quota(const struct weir_region_table *region_table,
		       const struct weir_region_account *account, bool is_named, uint64_t length,
		       struct weir_error *error)
{
	uint64_t left = region_table->keys[account->tenant].left_bytes;
	uint64_t used = account->charged + (is_named ? left : 0);
	const struct weir_region_budget *budget = account->budget;

	if (length > budget->bytes_max || budget->bytes > budget->bytes_max - length)
		return weir_error_set(error, -EDQUOT,
				      "%s is over this key's quota: %s of %s used",
				      weir_size_format(length).text,
				      weir_size_format(budget->bytes).text,
				      weir_size_format(budget->bytes_max).text);
	if (account->nr_charged >= WEIR_REGION_HOLDS_MAX)
		return weir_error_set(error, -EDQUOT, "this client has created %u regions already",
				      WEIR_REGION_HOLDS_MAX);
	if (length <= account->quota && used <= account->quota - length)
		return check_key(region_table, account->tenant, length, error);
	return weir_error_set(error, -EDQUOT,
			      "%s is over this client's quota: %s of %s used",
			      weir_size_format(length).text, weir_size_format(used).text,
			      weir_size_format(account->quota).text);
}

int weir_region_table_create(struct weir_region_table *region_table,
			     struct weir_region_account *account, const char *name, uint64_t length,
			     uint32_t flags, struct weir_lent_region **out,
			     struct weir_error *error)
{
	struct weir_lent_region *lent = NULL;
	int rc;

	if (!length || length > UINT64_MAX - WEIR_ARENA_PAGE)
		return weir_error_set(error, -EINVAL, "a region cannot have %llu bytes",
				      (unsigned long long)length);
	if (flags & ~(WIRE_REGION_EXCLUSIVE | WIRE_REGION_MOVABLE) ||
	    (flags & WIRE_REGION_MOVABLE && name[0]))
		return weir_error_set(error, -EINVAL, "flags %#x cannot be given to a new region",
				      flags);
	if (find_lent(region_table, account->tenant, name))
		return weir_error_set(error, -EEXIST, "there is a region '%s' already", name);
	length = (length + WEIR_ARENA_PAGE - 1) / WEIR_ARENA_PAGE * WEIR_ARENA_PAGE;
	rc = check_quota(region_table, account, name[0], length, error);
	if (rc)
		return rc;
	rc = weir_lent_new(region_table, account->tenant, name, length, &lent, error);
	if (rc)
		return rc;
	lent->is_movable = flags & WIRE_REGION_MOVABLE;
	weir_lent_charge(lent, account);
	*out = lent;
	return -EINPROGRESS;
}

int weir_region_table_open(struct weir_region_table *region_table,
			   struct weir_region_account *account, const char *name, uint32_t flags,
			   struct weir_lent_region **growing, struct wire_control_region *out,
			   struct weir_error *error)
{
	struct weir_lent_region *lent = find_lent(region_table, account->tenant, name);

	if (flags & ~(WIRE_REGION_EXCLUSIVE | WIRE_REGION_READ_ONLY | WIRE_REGION_FENCED))
		return weir_error_set(error, -EINVAL, "flags %#x are unknown", flags);
	if (!lent)
		return weir_error_set(error, -ENOENT, "there is no region '%s'", name);
	if (lent->state == WEIR_LENT_READY)
		return weir_region_table_hold(region_table, account, lent, flags, out, error);
	*growing = lent;
	return -EINPROGRESS;
}

int weir_region_table_fence(struct weir_region_table *region_table, unsigned int tenant,
			    const char *name, uint64_t epoch, struct weir_error *error)
{
	struct weir_lent_region *lent = find_lent(region_table, tenant, name);

	if (!lent)
		return 0;
	if (epoch < lent->epoch)
		return weir_error_set(error, -EBUSY,
				      "region '%s' was opened at epoch %llu, after %llu", name,
				      (unsigned long long)lent->epoch, (unsigned long long)epoch);
	lent->epoch = epoch;
	while (!weir_list_is_empty(&lent->holds))
		hold_free(region_table, weir_list_entry(lent->holds.next, struct weir_region_hold,
							lent_link));
	return 0;
}

static struct weir_region_hold *find_hold(const struct weir_region_account *account, uint64_t id,
					  const struct weir_lent_region *lent)
{
	struct weir_list *link;
	struct weir_region_hold *hold;

	for (link = account->holds.next; link != &account->holds; link = link->next) {
		hold = weir_list_entry(link, struct weir_region_hold, link);
		if (hold->id == id || hold->lent == lent)
			return hold;
	}
	return NULL;
}

int weir_region_table_close(struct weir_region_table *region_table,
			    struct weir_region_account *account, uint64_t id,
			    struct weir_lent_region **lent)
{
	struct weir_region_hold *hold = find_hold(account, id, NULL);

	if (!hold)
		return -ENOENT;
	*lent = hold->lent;
	hold_free(region_table, hold);
	return (*lent)->state == WEIR_LENT_FREED ? -EINPROGRESS : 0;
}

int weir_region_table_delete(struct weir_region_table *region_table,
			     struct weir_region_account *account, const char *name,
			     struct weir_lent_region **freed, struct weir_error *error)
{
	struct weir_lent_region *lent = find_lent(region_table, account->tenant, name);

	if (!lent)
		return weir_error_set(error, -ENOENT, "there is no region '%s'", name);
	if (lent->is_exclusive && !find_hold(account, 0, lent))
		return weir_error_set(error, -EBUSY, "region '%s' is held exclusively", name);
	lent->name[0] = '\0';
	if (lent->state == WEIR_LENT_READY)
		weir_lent_settle(region_table, lent);
	*freed = lent;
	return lent->state == WEIR_LENT_FREED ? -EINPROGRESS : 0;
}

void weir_region_table_list(const struct weir_region_table *region_table, unsigned int tenant,
			    uint64_t from, struct wire_control_list *list,
			    struct wire_control_entry *entries)
{
	struct weir_list *link;
	struct weir_lent_region *lent;

	*list = (struct wire_control_list){ 0 };
	for (link = region_table->lent.next; link != &region_table->lent; link = link->next) {
		lent = weir_list_entry(link, struct weir_lent_region, link);
		if (lent->tenant != tenant || !lent->name[0] || lent->id < from ||
		    lent->state != WEIR_LENT_READY)
			continue;
		if (list->count == WIRE_CONTROL_ENTRIES_MAX) {
			list->next = lent->id;
			return;
		}
		entries[list->count] = (struct wire_control_entry){
			.length = lent->length,
			.holders = lent->holders,
			.flags = lent->is_exclusive ? WIRE_REGION_EXCLUSIVE : 0,
		};
		memcpy(entries[list->count].name, lent->name, sizeof(lent->name));
		list->count++;
	}
}

int weir_region_table_own(struct weir_region_table *region_table, unsigned int tenant,
			  uint64_t length, struct weir_region_token *token, void **addr,
			  struct weir_error *error)
{
	struct weir_lent_region *lent = NULL;
	int rc;

	rc = check_key(region_table, tenant, length, error);
	if (!rc)
		rc = weir_lent_new(region_table, tenant, "", length, &lent, error);
	if (rc)
		return rc;
	if (lent->state == WEIR_LENT_STARVED)
		rc = weir_lent_explain_no_extent(region_table, length, -ENOSPC, error);
	else
		rc = weir_lent_register(region_table, lent, ACCESS_ALL, &lent->mr, error);
	if (rc) {
		weir_lent_free(region_table, lent);
		return rc;
	}
	lent->state = WEIR_LENT_READY; /* the worker populates it beside its use */
	lent->is_owned = true;
	*token = (struct weir_region_token){
		.addr = (uintptr_t)lent->extent->addr,
		.length = lent->extent->length,
		.rkey = lent->mr->rkey,
	};
	*addr = lent->extent->addr;
	return 0;
}

int weir_region_table_disown(struct weir_region_table *region_table,
			     const struct weir_region_token *token)
{
	struct weir_list *link;
	struct weir_lent_region *lent;

	for (link = region_table->lent.next; link != &region_table->lent; link = link->next) {
		lent = weir_list_entry(link, struct weir_lent_region, link);
		if (!lent->is_owned || (uintptr_t)lent->extent->addr != token->addr)
			continue;
		weir_lent_free(region_table, lent);
		return 0;
	}
	return -ENOENT;
}
