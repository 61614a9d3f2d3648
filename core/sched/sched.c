/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each class has rounds between bundles, and each bundle has rounds between flows. The few classes
 * of a level share by start-time fair queueing: the least weighted sum sent goes first.
 *
 * A bundle stays listed until its turn comes and no flow can send, and is listed again when a flow
 * can. While the low levels have no room in flight, all rounds keep their place.
 */
#include "core/sched/sched.h"

/* Resolution of the weighted sums of classes. */
#define SHARE_SHIFT 10

static bool config_is_valid(const struct weir_sched_config *c)
{
	return c->weight && c->weight <= WEIR_SCHED_WEIGHT_MAX && c->segment_bytes &&
	       c->segment_bytes <= WEIR_SCHED_SEGMENT_MAX && c->wrs_max;
}

static bool is_low_level(const struct weir_sched *s, const struct weir_sched_class *c)
{
	return c->config.level > s->classes[0].config.level;
}

static void class_init(struct weir_sched_class *c, const struct weir_sched_config *config)
{
	memset(c, 0, sizeof(*c));
	c->config = *config;
	weir_drr_init(&c->bundles);
}

int weir_sched_init(struct weir_sched *s, const struct weir_sched_config *configs,
		    uint8_t nr_classes, uint64_t low_bytes_max)
{
	uint8_t i;

	if (!nr_classes || nr_classes > WEIR_SCHED_CLASSES_MAX)
		return -EINVAL;
	for (i = 0; i < nr_classes; i++)
		if (!config_is_valid(&configs[i]) || (i && configs[i].level < configs[i - 1].level))
			return -EINVAL;
	for (i = 0; i < nr_classes; i++)
		class_init(&s->classes[i], &configs[i]);
	s->nr_classes = nr_classes;
	s->low_bytes_max = low_bytes_max;
	s->low_bytes = s->low_floor = s->low_segment = 0;
	for (i = 0; i < nr_classes; i++)
		if (is_low_level(s, &s->classes[i]) && configs[i].segment_bytes > s->low_segment)
			s->low_segment = configs[i].segment_bytes;
	return 0;
}

void weir_sched_bundle_init(struct weir_bundle *bundle, uint8_t class, uint16_t weight)
{
	weir_drr_member_init(&bundle->turn, weight);
	bundle->class = class;
	bundle->is_paused = false;
	bundle->competing = 0;
	weir_drr_init(&bundle->flows);
}

void weir_sched_bundle_set_weight(struct weir_bundle *bundle, uint16_t weight)
{
	bundle->turn.weight = weight;
}

void weir_sched_flow_init(struct weir_flow *flow, struct weir_bundle *bundle, uint16_t weight)
{
	weir_drr_member_init(&flow->turn, weight);
	flow->bundle = bundle;
	flow->wrs = 0;
}

static struct weir_sched_class *class_of(struct weir_sched *s, const struct weir_flow *flow)
{
	return &s->classes[flow->bundle->class];
}

static struct weir_flow *flow_of(struct weir_drr_member *turn)
{
	return container_of(turn, struct weir_flow, turn);
}

static struct weir_bundle *bundle_of(struct weir_drr_member *turn)
{
	return container_of(turn, struct weir_bundle, turn);
}

static uint32_t cost_of(const struct weir_sched_class *c, uint32_t bytes)
{
	if (c->config.policy == WEIR_SCHED_ROUND_ROBIN)
		return 1;
	return bytes < WEIR_SCHED_COST_MIN ? WEIR_SCHED_COST_MIN : bytes;
}

/* The quantum of weight 1: the cost of the largest turn. */
static uint32_t unit_of(const struct weir_sched_class *c)
{
	return cost_of(c, c->config.segment_bytes);
}

/* The bundle may have something to send. */
static void bundle_enqueue(struct weir_sched_class *c, struct weir_bundle *bundle)
{
	if (!bundle->is_paused)
		weir_drr_enqueue(&c->bundles, &bundle->turn);
}

static void flow_enqueue(struct weir_sched_class *c, struct weir_flow *flow)
{
	weir_drr_enqueue(&flow->bundle->flows, &flow->turn);
	bundle_enqueue(c, flow->bundle);
}

/* Room reserved for each competing flow of the bundle; none while the bundle is paused. */
static uint64_t flow_floor(const struct weir_sched *s, const struct weir_bundle *bundle)
{
	const struct weir_sched_class *c = &s->classes[bundle->class];

	if (bundle->is_paused || !is_low_level(s, c))
		return 0;
	return c->config.segment_bytes;
}

/* A flow begins or stops competing. */
static void flow_starts_competing(struct weir_sched *s, struct weir_bundle *bundle)
{
	bundle->competing++;
	s->low_floor += flow_floor(s, bundle);
}

static void flow_stops_competing(struct weir_sched *s, struct weir_bundle *bundle)
{
	bundle->competing--;
	s->low_floor -= flow_floor(s, bundle);
}

static void bundle_set_paused(struct weir_sched *s, struct weir_bundle *bundle, bool is_paused)
{
	s->low_floor -= bundle->competing * flow_floor(s, bundle);
	bundle->is_paused = is_paused;
	s->low_floor += bundle->competing * flow_floor(s, bundle);
}

/*
 * The share that a new class of @level starts from: the least among classes that want to send, or
 * else the most among all classes of the level.
 */
static uint64_t level_share(const struct weir_sched *s, uint8_t level)
{
	uint64_t least = UINT64_MAX, most = 0;
	uint8_t i;

	for (i = 0; i < s->nr_classes; i++) {
		const struct weir_sched_class *c = &s->classes[i];

		if (c->config.level != level)
			continue;
		if (weir_drr_is_wanted(&c->bundles) && c->share < least)
			least = c->share;
		if (c->share > most)
			most = c->share;
	}
	return least != UINT64_MAX ? least : most;
}

/* A class that starts sending has no claim to bandwidth from before. */
static void class_start(const struct weir_sched *s, struct weir_sched_class *c)
{
	uint64_t share = level_share(s, c->config.level);

	if (c->share < share)
		c->share = share;
	c->passed_bytes = 0;
}

static void bundle_join(const struct weir_sched *s, struct weir_sched_class *c,
			struct weir_bundle *bundle)
{
	if (!weir_drr_is_wanted(&c->bundles))
		class_start(s, c);
	if (!bundle->turn.is_ready)
		weir_drr_join(&c->bundles, &bundle->turn, unit_of(c));
}

static void bundle_leave(struct weir_sched *s, struct weir_bundle *bundle)
{
	if (bundle->turn.is_ready)
		weir_drr_leave(&s->classes[bundle->class].bundles, &bundle->turn);
	bundle_set_paused(s, bundle, false);
}

void weir_sched_ready(struct weir_sched *s, struct weir_flow *flow)
{
	struct weir_sched_class *c = class_of(s, flow);
	struct weir_bundle *bundle = flow->bundle;

	if (flow->turn.is_ready)
		return;
	if (!flow->wrs)
		flow_starts_competing(s, bundle);
	if (!bundle->is_paused)
		bundle_join(s, c, bundle);
	weir_drr_join(&bundle->flows, &flow->turn, unit_of(c));
	if (flow->wrs < c->config.wrs_max)
		flow_enqueue(c, flow);
}

void weir_sched_idle(struct weir_sched *s, struct weir_flow *flow)
{
	struct weir_sched_class *c = class_of(s, flow);
	struct weir_bundle *bundle = flow->bundle;

	if (!flow->turn.is_ready)
		return;
	if (!flow->wrs)
		flow_stops_competing(s, bundle);
	weir_drr_leave(&bundle->flows, &flow->turn);
	if (!weir_sched_bundle_is_wanted(bundle))
		bundle_leave(s, bundle);
	else
		bundle_enqueue(c, bundle); /* other flows may have waited for this one */
}

void weir_sched_flow_move(struct weir_sched *s, struct weir_flow *flow, struct weir_bundle *bundle)
{
	struct weir_sched_class *c = class_of(s, flow), before = *c;
	struct weir_bundle *from = flow->bundle;
	bool is_ready = flow->turn.is_ready;

	if (from == bundle)
		return;
	weir_sched_idle(s, flow);
	if (flow->wrs) {
		flow_stops_competing(s, from);
		flow_starts_competing(s, bundle);
	}
	weir_drr_transfer(&from->flows, &bundle->flows, &flow->turn);
	flow->bundle = bundle;
	if (is_ready)
		weir_sched_ready(s, flow);
	if (!weir_drr_is_wanted(&before.bundles))
		return;
	/* If @flow is its class's only flow, the move must not look like a restart. */
	c->share = before.share;
	c->passed_bytes = before.passed_bytes;
}

void weir_sched_pause(struct weir_sched *s, struct weir_bundle *bundle)
{
	if (!weir_sched_bundle_is_wanted(bundle))
		return;
	bundle_leave(s, bundle);
	bundle_set_paused(s, bundle, true);
}

void weir_sched_resume(struct weir_sched *s, struct weir_bundle *bundle)
{
	struct weir_sched_class *c = &s->classes[bundle->class];

	if (!bundle->is_paused)
		return;
	bundle_set_paused(s, bundle, false);
	bundle_join(s, c, bundle);
	bundle_enqueue(c, bundle);
}

/* Whether the low levels may have more in flight. With nothing in flight, any size may go. */
static bool low_levels_have_room(const struct weir_sched *s)
{
	uint64_t most = s->low_floor > s->low_bytes_max ? s->low_floor : s->low_bytes_max;

	return !s->low_bytes || s->low_bytes + s->low_segment <= most;
}

/* The next flow of a class. Delists bundles whose flows all wait for completions. */
static struct weir_flow *class_next_flow(const struct weir_sched *s, struct weir_sched_class *c)
{
	struct weir_drr_member *turn, *of_bundle;

	if (is_low_level(s, c) && !low_levels_have_room(s))
		return NULL;
	while ((turn = weir_drr_first(&c->bundles)) != NULL) {
		of_bundle = weir_drr_first(&bundle_of(turn)->flows);
		if (of_bundle)
			return flow_of(of_bundle);
		weir_drr_dequeue(turn);
	}
	return NULL;
}

static bool class_is_starved(const struct weir_sched_class *c)
{
	return c->config.pass_bytes_max && c->passed_bytes >= c->config.pass_bytes_max;
}

/* Whether @a goes before @b. The level number of @b is at most that of @a. */
static bool class_precedes(const struct weir_sched_class *a, const struct weir_sched_class *b)
{
	if (class_is_starved(a) != class_is_starved(b))
		return class_is_starved(a);
	return a->config.level == b->config.level && a->share < b->share;
}

struct weir_flow *weir_sched_next(struct weir_sched *s, uint32_t classes)
{
	struct weir_sched_class *best = NULL;
	struct weir_flow *found = NULL;
	struct weir_flow *flow;
	uint8_t i;

	for (i = 0; i < s->nr_classes; i++) {
		struct weir_sched_class *c = &s->classes[i];

		if (!weir_drr_is_wanted(&c->bundles) || !(classes & 1u << i) ||
		    (best && !class_precedes(c, best)))
			continue;
		flow = class_next_flow(s, c);
		if (!flow)
			continue;
		best = c;
		found = flow;
	}
	return found;
}

/* Class @c has sent: charges its share, ends its wait, and counts bytes passing lower levels. */
static void class_posted(struct weir_sched *s, struct weir_sched_class *c, uint32_t cost)
{
	uint8_t i;

	c->passed_bytes = 0;
	c->share += ((uint64_t)cost << SHARE_SHIFT) / c->config.weight;
	for (i = 0; i < s->nr_classes; i++) {
		struct weir_sched_class *other = &s->classes[i];

		if (other->config.level > c->config.level && weir_drr_is_wanted(&other->bundles))
			other->passed_bytes += cost;
	}
}

void weir_sched_posted(struct weir_sched *s, struct weir_flow *flow, uint32_t bytes)
{
	struct weir_sched_class *c = class_of(s, flow);
	struct weir_bundle *bundle = flow->bundle;

	if (weir_bug(!flow->turn.is_ready || bytes > c->config.segment_bytes))
		return;
	weir_drr_dequeue(&flow->turn);
	weir_drr_dequeue(&bundle->turn);
	weir_drr_charge(&bundle->flows, &flow->turn, cost_of(c, bytes), unit_of(c));
	weir_drr_charge(&c->bundles, &bundle->turn, cost_of(c, bytes), unit_of(c));
	flow->wrs++;
	if (is_low_level(s, c))
		s->low_bytes += bytes;
	if (flow->wrs < c->config.wrs_max)
		weir_drr_enqueue(&bundle->flows, &flow->turn);
	weir_drr_enqueue(&c->bundles, &bundle->turn);
	class_posted(s, c, bytes < WEIR_SCHED_COST_MIN ? WEIR_SCHED_COST_MIN : bytes);
}

void weir_sched_completed(struct weir_sched *s, struct weir_flow *flow, uint32_t bytes)
{
	struct weir_sched_class *c = class_of(s, flow);

	if (weir_bug(!flow->wrs))
		return;
	if (is_low_level(s, c))
		s->low_bytes -= bytes;
	flow->wrs--;
	if (flow->turn.is_ready)
		flow_enqueue(c, flow);
	else if (!flow->wrs)
		flow_stops_competing(s, flow->bundle);
}
