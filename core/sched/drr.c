/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One list holds the members of this round, another those of the next. A member changes lists when
 * its quantum is spent. Overdrafts are subtracted from the next quantum, so long-term shares are
 * exact.
 */
#include "core/sched/drr.h"

void weir_drr_init(struct weir_drr *t)
{
	memset(t, 0, sizeof(*t));
	t->round = 1;
	weir_list_init(&t->present);
	weir_list_init(&t->next);
}

void weir_drr_member_init(struct weir_drr_member *m, uint16_t weight)
{
	memset(m, 0, sizeof(*m));
	weir_list_init(&m->link);
	m->weight = weight;
}

static struct weir_drr_member *first_member(const struct weir_list *list)
{
	return weir_list_entry(list->next, struct weir_drr_member, link);
}

static int64_t quantum_of_member(const struct weir_drr_member *m, uint32_t unit)
{
	return (int64_t)m->weight * unit;
}

static uint32_t *counter_of(struct weir_drr *t, const struct weir_drr_member *m)
{
	return m->round == t->round ? &t->open : &t->waiting;
}

void weir_drr_join(struct weir_drr *t, struct weir_drr_member *m, uint32_t unit)
{
	if (m->round < t->round) {
		m->round = t->round;
		m->left = quantum_of_member(m, unit);
	}
	m->is_ready = true;
	++*counter_of(t, m);
}

void weir_drr_transfer(const struct weir_drr *from, const struct weir_drr *to,
		       struct weir_drr_member *m)
{
	m->round = m->round < from->round ? 0 : to->round + (m->round - from->round);
}

void weir_drr_leave(struct weir_drr *t, struct weir_drr_member *m)
{
	weir_drr_dequeue(m);
	--*counter_of(t, m);
	m->is_ready = false;
}

void weir_drr_enqueue(struct weir_drr *t, struct weir_drr_member *m)
{
	if (weir_list_is_empty(&m->link))
		weir_list_add_tail(m->round == t->round ? &t->present : &t->next, &m->link);
}

void weir_drr_dequeue(struct weir_drr_member *m)
{
	weir_list_del(&m->link);
}

void weir_drr_charge(struct weir_drr *t, struct weir_drr_member *m, uint32_t cost, uint32_t unit)
{
	m->left -= cost;
	if (m->left > 0)
		return;
	t->open--;
	t->waiting++;
	m->round++;
	m->left += quantum_of_member(m, unit);
}

/* All members have spent their quantum: each waiting member receives the next. */
static void begin_round(struct weir_drr *t)
{
	t->round++;
	t->open = t->waiting;
	t->waiting = 0;
	if (weir_list_is_empty(&t->next))
		return;
	t->present = t->next;
	t->present.next->prev = &t->present;
	t->present.prev->next = &t->present;
	weir_list_init(&t->next);
}

struct weir_drr_member *weir_drr_first(struct weir_drr *t)
{
	if (!t->open && t->waiting)
		begin_round(t);
	return weir_list_is_empty(&t->present) ? NULL : first_member(&t->present);
}
