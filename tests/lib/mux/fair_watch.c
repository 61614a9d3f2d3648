/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/lib/mux/fair.h"

#define BEGUN (8 * SEGMENT) /* who has sent so much is in the rounds of all */
#define LEFT (8 * SEGMENT) /* who has so much left has something to be posted */

/* And are past the round that began with the weights they had before. */
static bool have_all_begun(const struct fair *f)
{
	unsigned int i;

	for (i = 0; i < f->count; i++)
		if (f->senders[i].received + circuit_of(f->senders[i].near)->size <
		    f->senders[i].sent + BEGUN)
			return false;
	return true;
}

/* Whether each has something left that may go, whatever is in flight, and whoever reads or not. */
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

/* What has come since the looking began, of one or of all of an account's. */
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

/* The rounds that have been seen of owners, if there are several, and else of connections. */
static unsigned int rounds_of(const struct fair *f)
{
	uint64_t rounds = UINT32_MAX;
	unsigned int i;

	for (i = 0; i < f->count; i++) {
		const struct fair_sender *s = &f->senders[i];
		uint64_t x = f->nr_owners > 1 ? came_of(f, s->account) / s->account->party->weight :
						came(s) / s->weight;

		if (x / SEGMENT < rounds)
			rounds = x / SEGMENT;
	}
	return (unsigned int)rounds;
}

/* What is due to one, of what all get. */
static double share_of(const struct fair *f, const struct fair_sender *s)
{
	unsigned int i, weights = 0;

	for (i = 0; i < f->count; i++)
		if (f->senders[i].account == s->account)
			weights += f->senders[i].weight;
	return (double)s->account->party->weight * s->weight / weights;
}

static void note_ahead(struct watch *w, uint64_t a, uint64_t b)
{
	if (a > b && a - b > w->ahead_max)
		w->ahead_max = a - b;
}

/* How far anybody is ahead of another, each by his weight: of his account's, and of all. */
static void judge(struct fair *f)
{
	unsigned int i, k;

	for (i = 0; i < f->count; i++)
		for (k = 0; k < f->count; k++) {
			const struct fair_sender *a = &f->senders[i], *b = &f->senders[k];

			if (a->account == b->account)
				note_ahead(&f->watch, came(a) / a->weight, came(b) / b->weight);
			note_ahead(&f->watch, came_of(f, a->account) / a->account->party->weight,
				   came_of(f, b->account) / b->account->party->weight);
		}
}

/* (sum of x)^2 / (n * sum of x^2), of what each got by what is due to him. */
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

/* What has come of whom rounds are counted of: his account, or the connection; and his weight. */
static double part_of(const struct fair *f, unsigned int i, unsigned int *weight)
{
	const struct fair_sender *s = &f->senders[i];

	*weight = f->nr_owners > 1 ? s->account->party->weight : s->weight;
	return (double)(f->nr_owners > 1 ? came_of(f, s->account) : came(s));
}

/* By how much anybody's part of what he and another have got together differs from what is due. */
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
