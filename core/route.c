/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A decision touches one counter, or two, its place in the histogram, and now and then one counter
 * that fades. A counter loses a quarter of itself each time round, so that it stands for the last
 * few rounds, in each of which a page is written FADE_TICKS times on average: enough to tell pages
 * from each other, and far from where eight bits end.
 */
#include "core/route.h"

#define COUNT_MAX 255
#define FADE_TICKS 8
#define GOLDEN 0x9e3779b97f4a7c15ull
#define OTHER 0xd6e8feb86659fd93ull
/* Of all pairs, so many in PAIRS_OF must find the unloaded write faster. */
#define PAIRS_MIN 11
#define PAIRS_OF 16
#define TAKEN_MIN 16 /* of each path, or there is no verdict */

static void begin_trial(struct weir_route_trial *t)
{
	t->to_send = WEIR_ROUTE_PROBES;
	t->taken[0] = t->taken[1] = 0;
}

int weir_route_init(struct weir_route *r, const struct weir_route_config *config,
		    uint8_t *counters)
{
	uint32_t nr = config->nr_counters;

	if (config->policy > WEIR_ROUTE_MEASURED || !config->bytes_max || !config->hot_pages)
		return -EINVAL;
	if (weir_route_counts(config->policy) &&
	    (!counters || nr < WEIR_ROUTE_COUNTERS_MIN || nr > WEIR_ROUTE_COUNTERS_MAX ||
	     nr & (nr - 1)))
		return -EINVAL;
	*r = (struct weir_route){ .config = *config, .counters = counters, .threshold = 1 };
	r->trial.rest_next = WEIR_ROUTE_REST_MIN;
	begin_trial(&r->trial);
	return 0;
}

/* A counter of those that the histogram knows goes from @from to @to. */
static void moved(struct weir_route *r, uint8_t from, uint8_t to)
{
	if (from)
		r->histogram[from]--;
	if (to)
		r->histogram[to]++;
	r->pages += (to > 0) - (from > 0);
	r->hot_counters += (to >= r->threshold) - (from >= r->threshold);
}

/* The lowest threshold that leaves as many hot as there is room for, or fewer. */
static void settle_threshold(struct weir_route *r)
{
	while (r->hot_counters > r->config.hot_pages)
		r->hot_counters -= r->histogram[r->threshold++];
	while (r->threshold > 1 &&
	       r->hot_counters + r->histogram[r->threshold - 1] <= r->config.hot_pages)
		r->hot_counters += r->histogram[--r->threshold];
}

static bool is_known(const struct weir_route *r, uint64_t counter)
{
	return !r->is_sketch || counter < r->config.nr_counters / 2;
}

static void set(struct weir_route *r, uint64_t counter, uint8_t value)
{
	if (is_known(r, counter))
		moved(r, r->counters[counter], value);
	r->counters[counter] = value;
}

/* Where the cursor goes round: all pages that were ever counted, or the whole sketch. */
static void fade(struct weir_route *r)
{
	uint64_t mask = r->config.nr_counters - 1, counter;
	uint8_t value;

	if (++r->ticks < FADE_TICKS)
		return;
	r->ticks = 0;
	if (r->is_sketch)
		r->cursor = (r->cursor + 1) & mask;
	else if (r->cursor < r->first || r->cursor >= r->last)
		r->cursor = r->first;
	else
		r->cursor++;
	counter = r->cursor & mask;
	value = r->counters[counter];
	set(r, counter, (uint8_t)(value - (value + 3) / 4));
}

/* From here on pages share counters. Once in the life of a route: all is counted anew. */
static void become_sketch(struct weir_route *r)
{
	uint32_t i;

	r->is_sketch = true;
	for (i = 0; i < r->config.nr_counters; i++)
		r->counters[i] = 0;
	for (i = 0; i <= COUNT_MAX; i++)
		r->histogram[i] = 0;
	r->pages = 0;
	r->threshold = 1;
	r->hot_counters = 0;
	r->cursor = 0;
}

static void reach(struct weir_route *r, uint64_t page)
{
	if (!r->any)
		r->first = r->last = page;
	r->any = true;
	if (page < r->first)
		r->first = page;
	if (page > r->last)
		r->last = page;
	if (!r->is_sketch && r->last - r->first >= r->config.nr_counters)
		become_sketch(r);
}

/* Only the lower of the two is raised: the other one counts others, too. */
static uint8_t count_in_sketch(struct weir_route *r, uint64_t page)
{
	uint32_t half = r->config.nr_counters / 2;
	uint64_t a = (page * GOLDEN >> 32) & (half - 1);
	uint64_t b = half + ((page * OTHER >> 32) & (half - 1));
	uint8_t low = r->counters[a] < r->counters[b] ? r->counters[a] : r->counters[b];

	if (low == COUNT_MAX)
		return low;
	if (r->counters[a] == low)
		set(r, a, low + 1);
	if (r->counters[b] == low)
		set(r, b, low + 1);
	return low + 1;
}

static uint8_t count(struct weir_route *r, uint64_t page)
{
	uint64_t counter = page & (r->config.nr_counters - 1);

	if (r->is_sketch)
		return count_in_sketch(r, page);
	if (r->counters[counter] < COUNT_MAX)
		set(r, counter, r->counters[counter] + 1);
	return r->counters[counter];
}

static bool page_is_hot(struct weir_route *r, uint64_t page)
{
	uint8_t value;

	reach(r, page);
	fade(r);
	value = count(r, page);
	settle_threshold(r);
	return value >= r->threshold;
}

/* In the order offload, unload, unload, offload: what drifts meanwhile hits both alike. */
static unsigned int probe(struct weir_route_trial *t)
{
	uint32_t n = t->to_send--;

	t->out++;
	return WEIR_PATH_PROBE |
	       ((n ^ n >> 1) & 1 ? WEIR_PATH_UNLOAD : WEIR_PATH_OFFLOAD);
}

static unsigned int measured(struct weir_route_trial *t)
{
	if (!t->to_send && !t->out && !--t->rest)
		begin_trial(t);
	if (t->to_send)
		return probe(t);
	return t->pays ? WEIR_PATH_UNLOAD : WEIR_PATH_OFFLOAD;
}

static unsigned int path_of_cold(struct weir_route *r, uint64_t now_ns)
{
	if (r->config.policy == WEIR_ROUTE_OFFLOAD || now_ns < r->paused_ns)
		return WEIR_PATH_OFFLOAD;
	if (r->config.policy == WEIR_ROUTE_MEASURED)
		return measured(&r->trial);
	return WEIR_PATH_UNLOAD;
}

static bool is_hot(struct weir_route *r, uint64_t remote, enum weir_route_hint hint)
{
	if (hint != WEIR_ROUTE_HINT_NONE)
		return hint == WEIR_ROUTE_HINT_HOT;
	if (weir_route_counts(r->config.policy))
		return page_is_hot(r, remote >> WEIR_ROUTE_PAGE_SHIFT);
	return r->config.policy != WEIR_ROUTE_UNLOAD;
}

unsigned int weir_route_decide(struct weir_route *r, uint64_t remote, enum weir_route_hint hint,
			       uint64_t now_ns)
{
	bool hot = is_hot(r, remote, hint);
	unsigned int path = hot ? WEIR_PATH_OFFLOAD : path_of_cold(r, now_ns);

	r->decided++;
	r->hot += hot;
	r->unloaded += (path & WEIR_PATH_UNLOAD) != 0;
	return path;
}

/* Each with each: how long the slowest took, say, counts for no more than that it was slow. */
static bool unload_is_faster(const struct weir_route_trial *t)
{
	uint32_t i, j, faster = 0;

	for (i = 0; i < t->taken[0]; i++)
		for (j = 0; j < t->taken[1]; j++)
			faster += t->ns[1][j] < t->ns[0][i];
	return faster * PAIRS_OF > t->taken[0] * t->taken[1] * PAIRS_MIN;
}

static void end_trial(struct weir_route_trial *t)
{
	if (t->taken[0] >= TAKEN_MIN && t->taken[1] >= TAKEN_MIN)
		t->pays = unload_is_faster(t);
	t->trials++;
	if (t->pays)
		t->rest_next = WEIR_ROUTE_REST_MIN;
	t->rest = t->rest_next;
	if (!t->pays && t->rest_next < WEIR_ROUTE_REST_MAX)
		t->rest_next *= 2;
}

void weir_route_forgo(struct weir_route *r)
{
	if (!--r->trial.out && !r->trial.to_send)
		end_trial(&r->trial);
}

void weir_route_completed(struct weir_route *r, unsigned int path, uint64_t took_ns)
{
	struct weir_route_trial *t = &r->trial;
	unsigned int side = (path & WEIR_PATH_UNLOAD) != 0;

	if (t->taken[side] < WEIR_ROUTE_PROBES / 2)
		t->ns[side][t->taken[side]++] =
			took_ns < UINT32_MAX ? (uint32_t)took_ns : UINT32_MAX;
	weir_route_forgo(r);
}
