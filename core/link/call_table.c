/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/link/call_table.h"

static struct weir_call_entry *entry_of(const struct weir_list *link)
{
	return container_of(link, struct weir_call_entry, link);
}

/* No reply is expected any more. */
static void retire(struct weir_call_table *t, struct weir_call_entry *e)
{
	weir_list_del(&e->link);
	e->tag = 0;
	e->is_kept = false;
	e->state = e->hold ? WEIR_CALL_GRANTED : WEIR_CALL_FREE;
	if (e->hold)
		weir_list_add_tail(&t->granted, &e->link);
	else
		weir_list_add(&t->free, &e->link);
}

void weir_call_table_init(struct weir_call_table *t, struct weir_call_entry *entries,
			  unsigned int count)
{
	unsigned int i;

	*t = (struct weir_call_table){ .entries = entries, .count = count, .generation = 1 };
	weir_list_init(&t->free);
	weir_list_init(&t->waiting);
	weir_list_init(&t->granted);
	memset(entries, 0, count * sizeof(*entries));
	for (i = 0; i < count; i++)
		weir_list_add_tail(&t->free, &entries[i].link);
}

/* The entry that keeps @hold, or else a free one; NULL: there is none. */
static struct weir_call_entry *find_entry(const struct weir_call_table *t, uint64_t hold)
{
	const struct weir_list *at;

	for (at = t->granted.next; hold && at != &t->granted; at = at->next)
		if (entry_of(at)->hold == hold)
			return entry_of(at);
	return weir_list_is_empty(&t->free) ? NULL : entry_of(t->free.next);
}

int weir_call_table_begin(struct weir_call_table *t, uint64_t deadline_ns, uint64_t hold)
{
	struct weir_call_entry *e = find_entry(t, hold);
	struct weir_list *before = t->waiting.prev;

	if (!e)
		return -EAGAIN;
	while (before != &t->waiting && entry_of(before)->deadline_ns > deadline_ns)
		before = before->prev;
	weir_list_del(&e->link);
	weir_list_add(before, &e->link);
	e->state = WEIR_CALL_WAITING;
	e->deadline_ns = deadline_ns;
	e->tag = t->generation++ * t->count + (e - t->entries);
	return e - t->entries;
}

void weir_call_table_cancel(struct weir_call_table *t, unsigned int index)
{
	retire(t, &t->entries[index]);
}

/* Of all replies, only one that grants a region has this length. Return: the hold, or 0. */
static uint64_t hold_of(const struct wire_control_head *head, const void *body)
{
	struct wire_control_region region;

	if (head->kind != WIRE_CONTROL_REPLY || head->status ||
	    wire_control_region_decode(body, head->length, &region))
		return 0;
	return region.hold;
}

int weir_call_table_reply(struct weir_call_table *t, const struct wire_control_head *head,
			  const void *body, unsigned int *index)
{
	struct weir_call_entry *e = &t->entries[head->tag & (t->count - 1)];
	bool is_waiting = e->state == WEIR_CALL_WAITING;

	if (!head->tag || e->tag != head->tag)
		return -EPROTO;
	/* The reply of a call that returns a hold says that the donor no longer has it. */
	e->hold = is_waiting || e->hold ? 0 : hold_of(head, body);
	*index = e - t->entries;
	retire(t, e);
	return is_waiting ? 0 : -ESTALE;
}

bool weir_call_table_abandon(struct weir_call_table *t, unsigned int index)
{
	struct weir_call_entry *e = &t->entries[index];

	if (e->state != WEIR_CALL_WAITING)
		return false;
	weir_list_del(&e->link);
	e->state = WEIR_CALL_LATE;
	return true;
}

int weir_call_table_expire(struct weir_call_table *t, uint64_t now_ns)
{
	struct weir_call_entry *first = entry_of(t->waiting.next);

	if (weir_list_is_empty(&t->waiting) || first->deadline_ns > now_ns)
		return -1;
	weir_call_table_abandon(t, first - t->entries);
	return first - t->entries;
}

void weir_call_table_keep(struct weir_call_table *t, uint64_t tag)
{
	struct weir_call_entry *e = &t->entries[tag & (t->count - 1)];

	if (tag && e->tag == tag)
		e->is_kept = true;
}

bool weir_call_table_broken(struct weir_call_table *t, unsigned int index)
{
	struct weir_call_entry *e = &t->entries[index];
	bool is_waiting = e->state == WEIR_CALL_WAITING;

	if (!e->tag || e->is_kept) {
		e->is_kept = false;
		return false;
	}
	retire(t, e);
	return is_waiting;
}

uint64_t weir_call_table_granted(const struct weir_call_table *t)
{
	return weir_list_is_empty(&t->granted) ? 0 : entry_of(t->granted.next)->hold;
}
