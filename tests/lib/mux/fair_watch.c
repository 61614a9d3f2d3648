/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/lib/mux/fair.h"

#define BEGUN (8 * SEGMENT) /* bytes after which a sender takes part in all rounds */
#define LEFT (8 * SEGMENT) /* bytes left that guarantee something to post */

/* Also past the round that began with the old weights. */
static bool have_all_begun(const struct fair *f)
{
	unsigned int i;

	for (i = 0; i < f->count; i++)
		if (f->senders[i].received + circuit_of(f->senders[i].near)->size <
		    f->senders[i].sent + BEGUN)
			return false;
	return true;
}

/*
 * Whether each sender surely has sendable bytes left, whatever is in flight and whether or not
 * the peer reads.
 */
static bool have_all_left(const struct fair *f)
{
	unsigned int i;

	for (i = 0; i < f->count; i++) {
		const struct fair_sender *s = &f->senders[i];
		uint64_t granted = __atomic_load_n(&circuit_of(s->near)->granted, __ATOMIC_ACQUIRE);

		if ((s->sent < granted ? s->sent : granted) - s->received < LEFT * s->weight)
			return false;
	}
	return true;
}

/* Bytes arrived since the watch began, of a sender or of all senders of an account. */
static uint64_t came(const struct fair_sender *s)
{
	return s->received - s->before;
}

static uint64_t came_of(const struct fair *f, const struct weir_mux_account *account)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < f->count; i++)
		if (f->senders[i].account == account)
			bytes += came(&f->senders[i]);
	return bytes;
}

/* Rounds seen, of accounts if there are several, else of connections. */
static unsigned int rounds_of(const struct fair *f)
{
	uint64_t rounds = UINT32_MAX;
	unsigned int i;

	for (i = 0; i < f->count; i++) {
		const struct fair_sender *s = &f->senders[i];
		uint64_t x = f->nr_owners > 1 ? came_of(f, s->account) / s->account->group->weight :
						came(s) / s->weight;

		if (x / SEGMENT < rounds)
			rounds = x / SEGMENT;
	}
	return (unsigned int)rounds;
}

/* The expected share of a sender. */
static double share_of(const struct fair *f, const struct fair_sender *s)
{
	unsigned int i, weights = 0;

	for (i = 0; i < f->count; i++)
		if (f->senders[i].account == s->account)
			weights += f->senders[i].weight;
	return (double)s->account->group->weight * s->weight / weights;
}

static void note_ahead(struct watch *w, uint64_t a, uint64_t b)
{
	if (a > b && a - b > w->ahead_max)
		w->ahead_max = a - b;
}

/* Updates the largest weighted lead of any sender over another, within accounts and overall. */
static void judge(struct fair *f)
{
	unsigned int i, k;

	for (i = 0; i < f->count; i++)
		for (k = 0; k < f->count; k++) {
			const struct fair_sender *a = &f->senders[i], *b = &f->senders[k];

			if (a->account == b->account)
				note_ahead(&f->watch, came(a) / a->weight, came(b) / b->weight);
			note_ahead(&f->watch, came_of(f, a->account) / a->account->group->weight,
				   came_of(f, b->account) / b->account->group->weight);
		}
}

/* Jain's index: (sum of x)^2 / (n * sum of x^2), with x the bytes received over the bytes due. */
static double jain(const struct fair *f)
{
	double sum = 0, squares = 0;
	unsigned int i;

	for (i = 0; i < f->count; i++) {
		double x = (double)came(&f->senders[i]) / share_of(f, &f->senders[i]);

		sum += x;
		squares += x * x;
	}
	return sum * sum / (f->count * squares);
}

/* The bytes and the weight of the unit whose rounds are counted: account or connection. */
static double part_of(const struct fair *f, unsigned int i, unsigned int *weight)
{
	const struct fair_sender *s = &f->senders[i];

	*weight = f->nr_owners > 1 ? s->account->group->weight : s->weight;
	return (double)(f->nr_owners > 1 ? came_of(f, s->account) : came(s));
}

/* The largest deviation of a sender's part, within any pair, from the part due. */
static double off(const struct fair *f)
{
	unsigned int i, k, one, other;
	double most = 0;

	for (i = 0; i < f->count; i++)
		for (k = 0; k < f->count; k++) {
			double a = part_of(f, i, &one), b = part_of(f, k, &other);
			double by = a / (a + b) * (one + other) / one - 1;

			most = by > most ? by : most;
			most = -by > most ? -by : most;
		}
	return most;
}

void watch_look(struct fair *f)
{
	struct watch *w = &f->watch;
	unsigned int i, rounds;

	if (!w->has_begun && have_all_begun(f)) {
		w->has_begun = true;
		for (i = 0; i < f->count; i++)
			f->senders[i].before = f->senders[i].received;
	}
	if (!w->has_begun)
		return;
	if (!have_all_left(f)) {
		w->is_on = false;
		return;
	}
	judge(f);
	rounds = rounds_of(f);
	w->rounds = rounds;
	if (rounds < ROUNDS)
		return;
	w->off_max = off(f) > w->off_max ? off(f) : w->off_max;
	w->jain_min = jain(f) < w->jain_min ? jain(f) : w->jain_min;
}
