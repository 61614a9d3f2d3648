/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Of huge pages nothing is decided: a sample of the writes says enough of them. It is drawn, for
 * programs write in patterns.
 */
#include "core/unload/path.h"

#define SAMPLE_SHIFT 29 /* one in eight */
/* Of all pairs, so many in PAIRS_OF must find the unloaded write faster. */
#define PAIRS_MIN 11
#define PAIRS_OF 16
#define TAKEN_MIN 16 /* of each path, or there is no verdict */

static void begin_trial(struct weir_route_trial *t)
{
	t->to_send = WEIR_ROUTE_PROBES;
	t->taken[0] = t->taken[1] = 0;
}

static int counters_init(struct weir_route *r, uint8_t *counters)
{
	const struct weir_route_config *config = &r->config;
	int rc = weir_pages_init(&r->pages, counters, config->nr_counters, config->hot_pages);

	return rc ? rc : weir_pages_init(&r->huge, counters + WEIR_PAGES_BYTES(config->nr_counters),
					 WEIR_ROUTE_HUGE_COUNTERS, config->hot_pages);
}

int weir_route_init(struct weir_route *r, const struct weir_route_config *config,
		    uint8_t *counters)
{
	if (config->policy > WEIR_ROUTE_MEASURED || !config->bytes_max || !config->hot_pages)
		return -EINVAL;
	*r = (struct weir_route){ .config = *config };
	r->trial.rest_next = WEIR_ROUTE_REST_MIN;
	begin_trial(&r->trial);
	return weir_route_counts(config->policy) ? counters_init(r, counters) : 0;
}

static bool page_is_hot(struct weir_route *r, uint64_t remote)
{
	r->draw = r->draw * 1664525 + 1013904223;
	if (!(r->draw >> SAMPLE_SHIFT))
		weir_pages_written(&r->huge, remote >> WEIR_ROUTE_HUGE_SHIFT);
	return weir_pages_written(&r->pages, remote >> WEIR_ROUTE_PAGE_SHIFT);
}

/* In the order offload, unload, unload, offload: what drifts meanwhile hits both alike. */
static unsigned int probe(struct weir_route_trial *t)
{
	uint32_t n = t->to_send--;

	t->out++;
	return WEIR_PATH_PROBE |
	       ((n ^ n >> 1) & 1 ? WEIR_PATH_UNLOAD : WEIR_PATH_OFFLOAD);
}

static unsigned int measured(struct weir_route_trial *t, bool is_told)
{
	if (!t->to_send && !t->out && !--t->rest)
		begin_trial(t);
	if (t->to_send && is_told)
		return probe(t);
	return t->pays ? WEIR_PATH_UNLOAD : WEIR_PATH_OFFLOAD;
}

static unsigned int path_of_cold(struct weir_route *r, bool is_told, uint64_t now_ns)
{
	if (r->config.policy == WEIR_ROUTE_OFFLOAD || now_ns < r->paused_ns)
		return WEIR_PATH_OFFLOAD;
	if (r->config.policy == WEIR_ROUTE_MEASURED)
		return measured(&r->trial, is_told);
	return WEIR_PATH_UNLOAD;
}

static bool is_hot(struct weir_route *r, uint64_t remote, enum weir_route_hint hint)
{
	if (hint != WEIR_ROUTE_HINT_NONE)
		return hint == WEIR_ROUTE_HINT_HOT;
	if (weir_route_counts(r->config.policy))
		return page_is_hot(r, remote);
	return r->config.policy != WEIR_ROUTE_UNLOAD;
}

unsigned int weir_route_decide(struct weir_route *r, uint64_t remote, enum weir_route_hint hint,
			       bool is_told, uint64_t now_ns)
{
	bool hot = is_hot(r, remote, hint);
	unsigned int path = hot ? WEIR_PATH_OFFLOAD : path_of_cold(r, is_told, now_ns);

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
