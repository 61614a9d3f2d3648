// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ready_list.h"

enum { SEAT_BITS = 8, WORD_BITS = 64, WORDS = SHARED_SEATS / WORD_BITS };
_Static_assert(SHARED_SEATS == 1 << SEAT_BITS, "a seat for each hash");

/*
 * Fibonacci hashing (Knuth, volume 3, 6.4) spreads numbers at any constant distance evenly.
 * Programs that deal queue pairs out to CQs in turn make such numbers.
 */
static uint32_t seat_of(uint32_t qpn)
{
	return qpn * 0x9e3779b1u >> (32 - SEAT_BITS);
}

void ready_list_mark(struct shared_cq *doorbell, uint32_t qpn)
{
	uint32_t seat = seat_of(qpn);

	__atomic_fetch_or(&doorbell->ready[seat / WORD_BITS], 1ull << seat % WORD_BITS,
			  __ATOMIC_SEQ_CST);
}

void ready_list_mark_all(struct shared_cq *doorbell)
{
	int i;

	for (i = 0; i < WORDS; i++)
		store_ordered(&doorbell->ready[i], UINT64_MAX);
}

void ready_list_init(struct ready_list *s)
{
	int i;

	for (i = 0; i < SHARED_SEATS; i++)
		LIST_INIT(&s->seats[i]);
	TAILQ_INIT(&s->ready);
}

void ready_list_add(struct ready_list *s, struct cq_source *source, uint32_t qpn)
{
	LIST_INSERT_HEAD(&s->seats[seat_of(qpn)], source, at_seat);
	s->num++;
}

static void set_ready(struct ready_list *s, struct cq_source *source)
{
	if (!source->is_ready)
		TAILQ_INSERT_TAIL(&s->ready, source, among_ready);
	source->is_ready = true;
}

static void set_done(struct ready_list *s, struct cq_source *source)
{
	if (source->is_ready)
		TAILQ_REMOVE(&s->ready, source, among_ready);
	source->is_ready = false;
}

void ready_list_del(struct ready_list *s, struct cq_source *source)
{
	set_done(s, source);
	LIST_REMOVE(source, at_seat);
	s->num--;
}

void ready_list_collect(struct ready_list *s, struct shared_cq *doorbell)
{
	struct cq_source *source;
	uint64_t bits;
	int i;

	for (i = 0; i < WORDS; i++) {
		if (!load_relaxed(&doorbell->ready[i]))
			continue;
		for (bits = swap_ordered(&doorbell->ready[i], 0); bits; bits &= bits - 1)
			LIST_FOREACH(source, &s->seats[i * WORD_BITS + __builtin_ctzll(bits)],
				     at_seat)
		set_ready(s, source);
	}
}

int ready_list_poll(struct ready_list *s, struct ibv_wc *wc, int room)
{
	struct cq_source *source;
	int n = 0;

	while (n < room && (source = TAILQ_FIRST(&s->ready))) {
		set_done(s, source);
		n += source->poll(source->qp, wc + n, room - n);
		if (n == room)
			set_ready(s, source); /* may have more: goes behind the others */
	}
	return n;
}

uint32_t ready_list_waiting(const struct ready_list *s)
{
	const struct cq_source *source;
	uint32_t n = 0;
	int i;

	for (i = 0; i < SHARED_SEATS; i++)
		LIST_FOREACH(source, &s->seats[i], at_seat)
	n += source->waiting(source->qp);
	return n;
}

void ready_list_for_each(const struct ready_list *s, void (*fn)(struct qp *qp))
{
	const struct cq_source *source;
	int i;

	for (i = 0; i < SHARED_SEATS; i++)
		LIST_FOREACH(source, &s->seats[i], at_seat)
	fn(source->qp);
}
