/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counts of huge pages decide nothing, so a sample of the writes is enough. The sample is random,
 * because programs write in patterns.
 */
#include "core/unload/path.h"

#define SAMPLE_SHIFT 29 /* one in eight */
/* The unloaded write must be faster in more than PAIRS_MIN of PAIRS_OF pairs. */
#define PAIRS_MIN 11
#define PAIRS_OF 16
#define TAKEN_MIN 16 /* samples of each path needed for a verdict */

static void begin_trial(struct weir_path_trial *t)
{
	t->to_send = WEIR_PATH_PROBES;
	t->taken[0] = t->taken[1] = 0;
}

static int counters_init(struct weir_path_selector *r, uint8_t *counters)
{
	const struct weir_path_config *config = &r->config;
	int rc = weir_page_heat_init(&r->pages, counters, config->nr_counters, config->hot_pages);

	return rc ? rc :
		    weir_page_heat_init(&r->huge,
					counters + WEIR_PAGE_HEAT_BYTES(config->nr_counters),
					WEIR_PATH_HUGE_COUNTERS, config->hot_pages);
}

int weir_path_init(struct weir_path_selector *r, const struct weir_path_config *config,
		   uint8_t *counters)
{
	if (config->policy > WEIR_PATH_POLICY_MEASURED || !config->bytes_max || !config->hot_pages)
		return -EINVAL;
	*r = (struct weir_path_selector){ .config = *config };
	r->trial.rest_next = WEIR_PATH_REST_MIN;
	begin_trial(&r->trial);
	return weir_path_policy_counts(config->policy) ? counters_init(r, counters) : 0;
}

static bool page_is_hot(struct weir_path_selector *r, uint64_t remote)
{
	r->draw = r->draw * 1664525 + 1013904223;
	if (!(r->draw >> SAMPLE_SHIFT))
		weir_page_heat_record_write(&r->huge, remote >> WEIR_PATH_HUGE_SHIFT);
	return weir_page_heat_record_write(&r->pages, remote >> WEIR_PATH_PAGE_SHIFT);
}

/* Alternates offload, unload, unload, offload, so that drift affects both paths alike. */
static unsigned int choose_probe(struct weir_path_trial *t)
{
	uint32_t n = t->to_send--;

	t->out++;
	return WEIR_PATH_PROBE | ((n ^ n >> 1) & 1 ? WEIR_PATH_UNLOAD : WEIR_PATH_OFFLOAD);
}

static unsigned int choose_by_trial(struct weir_path_trial *t, bool is_timed)
{
	if (!t->to_send && !t->out && !--t->rest)
		begin_trial(t);
	if (t->to_send && is_timed)
		return choose_probe(t);
	return t->pays ? WEIR_PATH_UNLOAD : WEIR_PATH_OFFLOAD;
}

static unsigned int choose_cold(struct weir_path_selector *r, bool is_timed, uint64_t now_ns)
{
	if (r->config.policy == WEIR_PATH_POLICY_OFFLOAD || now_ns < r->paused_ns)
		return WEIR_PATH_OFFLOAD;
	if (r->config.policy == WEIR_PATH_POLICY_MEASURED)
		return choose_by_trial(&r->trial, is_timed);
	return WEIR_PATH_UNLOAD;
}

static bool is_hot(struct weir_path_selector *r, uint64_t remote, enum weir_path_hint hint)
{
	if (hint != WEIR_PATH_HINT_NONE)
		return hint == WEIR_PATH_HINT_HOT;
	if (weir_path_policy_counts(r->config.policy))
		return page_is_hot(r, remote);
	return r->config.policy != WEIR_PATH_POLICY_UNLOAD;
}

unsigned int weir_path_decide(struct weir_path_selector *r, uint64_t remote,
			      enum weir_path_hint hint, bool is_timed, uint64_t now_ns)
{
	bool hot = is_hot(r, remote, hint);
	unsigned int path = hot ? WEIR_PATH_OFFLOAD : choose_cold(r, is_timed, now_ns);

	r->decided++;
	r->hot += hot;
	r->unloaded += (path & WEIR_PATH_UNLOAD) != 0;
	return path;
}

/* Compares all pairs, so that an outlier counts only as slow, however slow. */
static bool unload_is_faster(const struct weir_path_trial *t)
{
	uint32_t i, j, faster = 0;

	for (i = 0; i < t->taken[0]; i++)
		for (j = 0; j < t->taken[1]; j++)
			faster += t->ns[1][j] < t->ns[0][i];
	return faster * PAIRS_OF > t->taken[0] * t->taken[1] * PAIRS_MIN;
}

static void end_trial(struct weir_path_trial *t)
{
	if (t->taken[0] >= TAKEN_MIN && t->taken[1] >= TAKEN_MIN)
		t->pays = unload_is_faster(t);
	t->trials++;
	if (t->pays)
		t->rest_next = WEIR_PATH_REST_MIN;
	t->rest = t->rest_next;
	if (!t->pays && t->rest_next < WEIR_PATH_REST_MAX)
		t->rest_next *= 2;
}

void weir_path_abandon_probe(struct weir_path_selector *r)
{
	if (!--r->trial.out && !r->trial.to_send)
		end_trial(&r->trial);
}

void weir_path_completed(struct weir_path_selector *r, unsigned int path, uint64_t took_ns)
{
	struct weir_path_trial *t = &r->trial;
	unsigned int side = (path & WEIR_PATH_UNLOAD) != 0;

	if (t->taken[side] < WEIR_PATH_PROBES / 2)
		t->ns[side][t->taken[side]++] = took_ns < UINT32_MAX ? (uint32_t)took_ns :
								       UINT32_MAX;
	weir_path_abandon_probe(r);
}
