/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The scheduler under random flows, on queue pairs with random room. What it may do is judged from
 * outside, by the hunt's own books: a turn goes to who has something to send and may, no level is
 * overtaken by a lower one, low levels keep to what they may have in flight, somebody always
 * gets on, and in the end all has been sent.
 */
#include "core/sched.h"
#include "sim/hunt/hunt.h"

#define FLOWS 8
#define BUNDLES 3 /* of a class */
#define CLASSES 4
#define WRS 64 /* in flight */
#define MESSAGES 60

struct turn_flow {
	struct weir_flow flow;
	uint64_t to_send;
	uint32_t wrs;
};

struct turn_wr {
	struct turn_flow *flow;
	uint32_t bytes;
};

struct turns {
	struct hunt *hunt;
	struct sim_rng rng;
	struct weir_sched sched;
	struct weir_bundle bundles[CLASSES][BUNDLES];
	struct turn_flow flows[FLOWS];
	uint32_t nr_flows, to_come;
	struct turn_wr wrs[WRS];
	uint32_t nr_wrs;
	uint32_t depth[CLASSES], posted[CLASSES];
	uint64_t low_bytes;
	bool may_pass; /* a lower level may go before a higher one */
};

static uint64_t upto(struct turns *t, uint64_t most)
{
	return 1 + sim_rng_below(&t->rng, most);
}

/* One draw a statement: in what order an initializer makes them the compiler may choose. */
static void config_draw(struct turns *t, struct weir_sched_config *config, uint8_t level)
{
	config->level = level;
	config->weight = (uint16_t)upto(t, 5);
	config->policy = hunt_dice(&t->rng, 500) ? WEIR_SCHED_FAIR : WEIR_SCHED_ROUND_ROBIN;
	config->segment_bytes = (uint32_t)upto(t, 5000);
	config->wrs_max = (uint32_t)upto(t, 4);
	config->pass_bytes_max = hunt_dice(&t->rng, 300) ? upto(t, 20000) : 0;
	t->may_pass |= config->pass_bytes_max;
}

static void bundles_draw(struct turns *t, uint8_t nr)
{
	uint8_t i, k;

	for (i = 0; i < nr; i++)
		for (k = 0; k < BUNDLES; k++)
			weir_bundle_init(&t->bundles[i][k], i, (uint16_t)upto(t, 4));
}

static void begin(struct turns *t)
{
	struct weir_sched_config configs[CLASSES];
	uint8_t i, level = 0, nr = (uint8_t)upto(t, CLASSES);

	for (i = 0; i < nr; i++) {
		level = (uint8_t)(level + sim_rng_below(&t->rng, 2));
		config_draw(t, &configs[i], level);
		t->depth[i] = (uint32_t)upto(t, 12);
	}
	hunt_expect(t->hunt, !weir_sched_init(&t->sched, configs, nr, sim_rng_below(&t->rng, 30000)),
		    "the scheduler does not take what makes sense");
	bundles_draw(t, nr);
	t->nr_flows = (uint32_t)upto(t, FLOWS);
	for (i = 0; i < t->nr_flows; i++) {
		uint64_t class = sim_rng_below(&t->rng, nr);
		uint64_t bundle = sim_rng_below(&t->rng, BUNDLES);

		weir_flow_init(&t->flows[i].flow, &t->bundles[class][bundle], (uint16_t)upto(t, 4));
	}
	t->to_come = MESSAGES;
}

static const struct weir_sched_config *config_of(const struct turns *t,
						 const struct turn_flow *flow)
{
	return &t->sched.classes[flow->flow.bundle->class].config;
}

static bool is_low(const struct turns *t, const struct turn_flow *flow)
{
	return config_of(t, flow)->level > t->sched.classes[0].config.level;
}

static uint32_t room(const struct turns *t)
{
	uint32_t classes = 0, i;

	for (i = 0; i < t->sched.nr_classes; i++) {
		if (t->posted[i] < t->depth[i] && t->nr_wrs < WRS)
			classes |= 1u << i;
	}
	return classes;
}

static bool may_post(const struct turns *t, const struct turn_flow *flow, uint32_t classes)
{
	return flow->to_send && flow->wrs < config_of(t, flow)->wrs_max &&
	       classes >> flow->flow.bundle->class & 1;
}

/* The only one of its class that wants to send waits for nobody's round. */
static bool is_alone(const struct turns *t, const struct turn_flow *flow)
{
	uint32_t i;

	for (i = 0; i < t->nr_flows; i++) {
		if (&t->flows[i] != flow && t->flows[i].to_send &&
		    t->flows[i].flow.bundle->class == flow->flow.bundle->class)
			return false;
	}
	return true;
}

static void watch_turn(const struct turns *t, const struct turn_flow *flow, uint32_t classes)
{
	uint32_t i;

	hunt_expect(t->hunt, may_post(t, flow, classes), "a flow has a turn that it may not have");
	for (i = 0; i < t->nr_flows && !t->may_pass; i++) {
		const struct turn_flow *other = &t->flows[i];

		hunt_expect(t->hunt, config_of(t, other)->level >= config_of(t, flow)->level ||
				     is_low(t, other) || !may_post(t, other, classes) ||
				     !is_alone(t, other),
			    "a lower level goes before a higher one");
	}
}

/* Nothing is in flight that could be waited for. */
static void watch_nobody(const struct turns *t, uint32_t classes)
{
	uint32_t i;

	for (i = 0; i < t->nr_flows && !t->nr_wrs; i++)
		hunt_expect(t->hunt, !may_post(t, &t->flows[i], classes),
			    "nobody has a turn, and flow %u waits for nothing", i);
}

static void watch_low(const struct turns *t, const struct turn_flow *flow, uint32_t bytes)
{
	hunt_expect(t->hunt, !is_low(t, flow) || flow->wrs == 1 ||
			     t->low_bytes - bytes < t->sched.low_bytes_max,
		    "low levels have %llu bytes in flight, and may have %llu",
		    (unsigned long long)t->low_bytes, (unsigned long long)t->sched.low_bytes_max);
	hunt_expect(t->hunt, t->low_bytes == t->sched.low_bytes, "low bytes are miscounted");
}

static void post(struct turns *t, struct turn_flow *flow)
{
	uint64_t bytes = upto(t, config_of(t, flow)->segment_bytes);

	if (bytes > flow->to_send || hunt_dice(&t->rng, 500))
		bytes = flow->to_send < config_of(t, flow)->segment_bytes ?
				flow->to_send : config_of(t, flow)->segment_bytes;
	flow->to_send -= bytes;
	flow->wrs++;
	t->posted[flow->flow.bundle->class]++;
	t->low_bytes += is_low(t, flow) ? bytes : 0;
	t->wrs[t->nr_wrs++] = (struct turn_wr){ flow, (uint32_t)bytes };
	weir_sched_posted(&t->sched, &flow->flow, (uint32_t)bytes);
	watch_low(t, flow, (uint32_t)bytes);
	if (!flow->to_send)
		weir_sched_idle(&t->sched, &flow->flow);
	hunt_note(t->hunt, "turn", flow - t->flows, (int64_t)bytes, t->nr_wrs);
}

static void post_all(struct turns *t)
{
	struct weir_flow *flow;
	uint32_t classes;

	while (classes = room(t), (flow = weir_sched_next(&t->sched, classes)) != NULL) {
		watch_turn(t, container_of(flow, struct turn_flow, flow), classes);
		if (*t->hunt->why)
			return;
		post(t, container_of(flow, struct turn_flow, flow));
	}
	watch_nobody(t, classes);
}

static void complete(struct turns *t, uint32_t i)
{
	struct turn_wr wr = t->wrs[i];

	t->wrs[i] = t->wrs[--t->nr_wrs];
	wr.flow->wrs--;
	t->posted[wr.flow->flow.bundle->class]--;
	t->low_bytes -= is_low(t, wr.flow) ? wr.bytes : 0;
	weir_sched_completed(&t->sched, &wr.flow->flow, wr.bytes);
}

static void come(struct turns *t)
{
	struct turn_flow *flow = &t->flows[sim_rng_below(&t->rng, t->nr_flows)];

	t->to_come--;
	flow->to_send += upto(t, hunt_dice(&t->rng, 200) ? 100000 : 3000);
	weir_sched_ready(&t->sched, &flow->flow);
}

void hunt_turns(struct hunt *h, uint64_t seed)
{
	struct turns t = { .hunt = h };
	uint32_t i;

	sim_rng_init(&t.rng, seed, "turns", 0);
	begin(&t);
	while (!*h->why && (t.to_come || t.nr_wrs)) {
		if (t.to_come && (!t.nr_wrs || hunt_dice(&t.rng, 300)))
			come(&t);
		else
			complete(&t, (uint32_t)sim_rng_below(&t.rng, t.nr_wrs));
		if (hunt_dice(&t.rng, 700) || !t.nr_wrs)
			post_all(&t);
	}
	for (i = 0; i < t.nr_flows; i++)
		hunt_expect(h, !t.flows[i].to_send, "flow %u is never sent to its end", i);
}
