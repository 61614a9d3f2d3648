/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Deficit round robin (Shreedhar and Varghese, 1996) in the form that lets a flow overdraw on its
 * last turn instead of asking for the length beforehand, so that whoever has the turn can
 * still decide how much goes along; and with turns of one segment, so that a flow of
 * large weight spends its quantum between the others' turns and not in one go. Classes of a level
 * share by the least weighted sum sent (start-time fair queueing): they are few.
 */
#include "core/sched.h"

/* The sums of classes of a level are compared at this resolution. */
#define SHARE_SHIFT 10

static bool config_is_valid(const struct weir_sched_config *c)
{
	return c->weight && c->weight <= WEIR_SCHED_WEIGHT_MAX && c->segment_bytes &&
	       c->segment_bytes <= WEIR_SCHED_SEGMENT_MAX && c->wrs_max;
}

static void class_init(struct weir_sched_class *c, const struct weir_sched_config *config)
{
	memset(c, 0, sizeof(*c));
	c->config = *config;
	c->round = 1;
	weir_list_init(&c->current);
	weir_list_init(&c->next);
	weir_list_init(&c->held);
}

int weir_sched_init(struct weir_sched *s, const struct weir_sched_config *configs,
		    uint8_t nr_classes, uint64_t low_bytes_max)
{
	uint8_t i;

	if (!nr_classes || nr_classes > WEIR_SCHED_CLASSES_MAX)
		return -EINVAL;
	for (i = 0; i < nr_classes; i++)
		if (!config_is_valid(&configs[i]) ||
		    (i && configs[i].level < configs[i - 1].level))
			return -EINVAL;
	for (i = 0; i < nr_classes; i++)
		class_init(&s->classes[i], &configs[i]);
	s->nr_classes = nr_classes;
	s->low_bytes_max = low_bytes_max;
	s->low_bytes = 0;
	return 0;
}

void weir_flow_init(struct weir_flow *flow, uint8_t class, uint16_t weight)
{
	memset(flow, 0, sizeof(*flow));
	weir_list_init(&flow->link);
	flow->class = class;
	flow->weight = weight;
}

static struct weir_sched_class *class_of(struct weir_sched *s, const struct weir_flow *flow)
{
	return &s->classes[flow->class];
}

static struct weir_flow *first_of(const struct weir_list *list)
{
	return weir_list_entry(list->next, struct weir_flow, link);
}

static bool class_waits(const struct weir_sched_class *c)
{
	return c->open || c->waiting;
}

static bool is_low(const struct weir_sched *s, const struct weir_sched_class *c)
{
	return c->config.level > s->classes[0].config.level;
}

static uint32_t cost_of(const struct weir_sched_class *c, uint32_t bytes)
{
	if (c->config.policy == WEIR_SCHED_ROUND_ROBIN)
		return 1;
	return bytes < WEIR_SCHED_COST_MIN ? WEIR_SCHED_COST_MIN : bytes;
}

/* No less than the dearest turn, or who has overdrawn would have nothing in the next round. */
static int64_t quantum_of(const struct weir_sched_class *c, const struct weir_flow *flow)
{
	return (int64_t)flow->weight * cost_of(c, c->config.segment_bytes);
}

/* Puts a flow that wants to send and may post where it belongs; @flow is in no list. */
static void flow_enlist(struct weir_sched_class *c, struct weir_flow *flow)
{
	weir_list_add_tail(flow->round == c->round ? &c->current : &c->next, &flow->link);
}

static void flow_delist(struct weir_flow *flow)
{
	weir_list_del(&flow->link);
	flow->is_held = false;
}

static uint32_t *count_of(struct weir_sched_class *c, const struct weir_flow *flow)
{
	return flow->round == c->round ? &c->open : &c->waiting;
}

/* What @level has come to: of those who want to send the least, of nobody the most. */
static uint64_t level_share(const struct weir_sched *s, uint8_t level)
{
	uint64_t least = UINT64_MAX, most = 0;
	uint8_t i;

	for (i = 0; i < s->nr_classes; i++) {
		const struct weir_sched_class *c = &s->classes[i];

		if (c->config.level != level)
			continue;
		if (class_waits(c) && c->share < least)
			least = c->share;
		if (c->share > most)
			most = c->share;
	}
	return least != UINT64_MAX ? least : most;
}

/* A class that begins to send has no claim to what it did not send before. */
static void class_begin(const struct weir_sched *s, struct weir_sched_class *c)
{
	uint64_t share = level_share(s, c->config.level);

	if (c->share < share)
		c->share = share;
	c->passed_bytes = 0;
}

void weir_sched_ready(struct weir_sched *s, struct weir_flow *flow)
{
	struct weir_sched_class *c = class_of(s, flow);

	if (flow->is_ready)
		return;
	if (!class_waits(c))
		class_begin(s, c);
	if (flow->round < c->round) {
		flow->round = c->round;
		flow->left = quantum_of(c, flow);
	}
	flow->is_ready = true;
	++*count_of(c, flow);
	if (flow->wrs < c->config.wrs_max)
		flow_enlist(c, flow);
}

void weir_sched_idle(struct weir_sched *s, struct weir_flow *flow)
{
	if (!flow->is_ready)
		return;
	flow_delist(flow);
	--*count_of(class_of(s, flow), flow);
	flow->is_ready = false;
}

/* All have spent their quantum: whoever waits has another. */
static void round_begin(struct weir_sched_class *c)
{
	c->round++;
	c->open = c->waiting;
	c->waiting = 0;
	if (weir_list_is_empty(&c->next))
		return;
	c->current = c->next;
	c->current.next->prev = &c->current;
	c->current.prev->next = &c->current;
	weir_list_init(&c->next);
}

/* A low flow always has one WR, or it might never come to post; more only as there is room. */
static bool may_post(const struct weir_sched *s, const struct weir_sched_class *c,
		     const struct weir_flow *flow)
{
	return !flow->wrs || !is_low(s, c) || s->low_bytes < s->low_bytes_max;
}

/*
 * Whose turn it would be in a class. Those that were held came to their turn before any in
 * @current. Each flow is moved to @held once for a WR that it posted.
 */
static struct weir_flow *class_next(const struct weir_sched *s, struct weir_sched_class *c)
{
	struct weir_flow *flow;

	if (!weir_list_is_empty(&c->held) && may_post(s, c, first_of(&c->held)))
		return first_of(&c->held);
	if (!c->open && c->waiting)
		round_begin(c);
	while (!weir_list_is_empty(&c->current)) {
		flow = first_of(&c->current);
		if (may_post(s, c, flow))
			return flow;
		weir_list_del(&flow->link);
		weir_list_add_tail(&c->held, &flow->link);
		flow->is_held = true;
	}
	return NULL;
}

static bool class_starves(const struct weir_sched_class *c)
{
	return c->config.pass_bytes_max && c->passed_bytes >= c->config.pass_bytes_max;
}

/* Whether @a goes before @b, which is of no higher level. */
static bool class_precedes(const struct weir_sched_class *a, const struct weir_sched_class *b)
{
	if (class_starves(a) != class_starves(b))
		return class_starves(a);
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

		if (!(classes & 1u << i) || (best && !class_precedes(c, best)))
			continue;
		flow = class_next(s, c);
		if (!flow)
			continue;
		best = c;
		found = flow;
	}
	return found;
}

/* The class of @flow has sent: it is served, its level goes on, those below were passed. */
static void class_posted(struct weir_sched *s, struct weir_sched_class *c, uint32_t cost)
{
	uint8_t i;

	c->passed_bytes = 0;
	c->share += ((uint64_t)cost << SHARE_SHIFT) / c->config.weight;
	for (i = 0; i < s->nr_classes; i++) {
		struct weir_sched_class *other = &s->classes[i];

		if (other->config.level > c->config.level && class_waits(other))
			other->passed_bytes += cost;
	}
}

void weir_sched_posted(struct weir_sched *s, struct weir_flow *flow, uint32_t bytes)
{
	struct weir_sched_class *c = class_of(s, flow);

	if (weir_bug(!flow->is_ready || bytes > c->config.segment_bytes))
		return;
	flow_delist(flow);
	flow->left -= cost_of(c, bytes);
	if (flow->left <= 0) {
		c->open--;
		c->waiting++;
		flow->round++;
		flow->left += quantum_of(c, flow);
	}
	flow->wrs++;
	if (is_low(s, c))
		s->low_bytes += bytes;
	if (flow->wrs < c->config.wrs_max)
		flow_enlist(c, flow);
	class_posted(s, c, bytes < WEIR_SCHED_COST_MIN ? WEIR_SCHED_COST_MIN : bytes);
}

void weir_sched_completed(struct weir_sched *s, struct weir_flow *flow, uint32_t bytes)
{
	struct weir_sched_class *c = class_of(s, flow);

	if (weir_bug(!flow->wrs))
		return;
	if (is_low(s, c))
		s->low_bytes -= bytes;
	flow->wrs--;
	if (!flow->is_ready)
		return;
	if (flow->is_held && !flow->wrs) {
		flow_delist(flow);
		weir_list_add(&c->current, &flow->link);
	} else if (weir_list_is_empty(&flow->link)) {
		flow_enlist(c, flow);
	}
}
