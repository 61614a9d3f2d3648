/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/sched/drr.h"

void weir_turns_init(struct weir_turns *t)
{
	memset(t, 0, sizeof(*t));
	t->round = 1;
	weir_list_init(&t->current);
	weir_list_init(&t->next);
}

void weir_turn_init(struct weir_turn *m, uint16_t weight)
{
	memset(m, 0, sizeof(*m));
	weir_list_init(&m->link);
	m->weight = weight;
}

static struct weir_turn *first_of(const struct weir_list *list)
{
	return weir_list_entry(list->next, struct weir_turn, link);
}

static int64_t quantum_of(const struct weir_turn *m, uint32_t unit)
{
	return (int64_t)m->weight * unit;
}

static uint32_t *count_of(struct weir_turns *t, const struct weir_turn *m)
{
	return m->round == t->round ? &t->open : &t->waiting;
}

void weir_turns_join(struct weir_turns *t, struct weir_turn *m, uint32_t unit)
{
	if (m->round < t->round) {
		m->round = t->round;
		m->left = quantum_of(m, unit);
	}
	m->is_ready = true;
	++*count_of(t, m);
}

void weir_turns_carry(const struct weir_turns *from, const struct weir_turns *to,
		      struct weir_turn *m)
{
	m->round = m->round < from->round ? 0 : to->round + (m->round - from->round);
}

void weir_turns_leave(struct weir_turns *t, struct weir_turn *m)
{
	weir_turns_unlist(m);
	--*count_of(t, m);
	m->is_ready = false;
}

void weir_turns_list(struct weir_turns *t, struct weir_turn *m)
{
	if (weir_list_is_empty(&m->link))
		weir_list_add_tail(m->round == t->round ? &t->current : &t->next, &m->link);
}

void weir_turns_unlist(struct weir_turn *m)
{
	weir_list_del(&m->link);
}

void weir_turns_spend(struct weir_turns *t, struct weir_turn *m, uint32_t cost, uint32_t unit)
{
	m->left -= cost;
	if (m->left > 0)
		return;
	t->open--;
	t->waiting++;
	m->round++;
	m->left += quantum_of(m, unit);
}

/* All have spent their quantum: whoever waits has another. */
static void round_begin(struct weir_turns *t)
{
	t->round++;
	t->open = t->waiting;
	t->waiting = 0;
	if (weir_list_is_empty(&t->next))
		return;
	t->current = t->next;
	t->current.next->prev = &t->current;
	t->current.prev->next = &t->current;
	weir_list_init(&t->next);
}

struct weir_turn *weir_turns_first(struct weir_turns *t)
{
	if (!t->open && t->waiting)
		round_begin(t);
	return weir_list_is_empty(&t->current) ? NULL : first_of(&t->current);
}
