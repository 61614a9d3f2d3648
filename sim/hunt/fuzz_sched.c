/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The scheduler under random flows, on queue pairs of random depth. The hunt keeps its own books
 * and checks from outside: a turn goes to a flow that has data and may send; a lower level never
 * overtakes a higher one, and a starved level gets its turn in time; low levels keep to their limit
 * in flight; flows that share get shares by weight; some flow always progresses; all data is sent.
 */
#include "core/sched/sched.h"
#include "sim/hunt/hunt.h"

#define FLOWS 8
#define BUNDLES 3 /* a class */
#define CLASSES 4
#define WRS 64 /* in flight */
#define MESSAGES 60
#define WEIGHTS 4
#define WEIGHT_LCM 12 /* least common multiple of all weights: makes shares whole numbers */
/*
 * Bound on the lead of a member over another while both want turns. They shared all rounds, except
 * a quantum at either end, and each may overdraw by a turn; in units of the dearest turn at weight
 * 1.
 */
#define LEAD_MAX 4

struct fuzz_flow {
	struct weir_flow flow;
	uint64_t to_send;
	uint32_t wrs;
};

struct fuzz_wr {
	struct fuzz_flow *flow;
	uint32_t bytes;
};

/* Lead of each member over each other member, by weight, since both want turns. */
struct fuzz_accounts {
	int64_t lead[FLOWS][FLOWS];
};

struct fuzz_sched {
	struct hunt *hunt;
	struct sim_rng rng;
	struct weir_sched sched;
	struct weir_bundle bundles[CLASSES][BUNDLES];
	struct fuzz_flow flows[FLOWS];
	uint32_t nr_flows, to_come;
	struct fuzz_wr wrs[WRS];
	uint32_t nr_wrs;
	uint32_t depth[CLASSES], posted[CLASSES];
	uint64_t low_bytes;
	bool may_pass; /* a lower level may go before a higher one */
	struct fuzz_accounts flow_books, bundle_books[CLASSES];
	uint64_t passed[CLASSES]; /* bytes sent by higher levels while this class waits */
};

static uint64_t draw_upto(struct fuzz_sched *t, uint64_t most)
{
	return 1 + sim_rng_below(&t->rng, most);
}

/* One draw a statement: the compiler may evaluate an initializer in any order. */
static void config_draw(struct fuzz_sched *t, struct weir_sched_config *config, uint8_t level)
{
	config->level = level;
	config->weight = (uint16_t)draw_upto(t, 5);
	config->policy = hunt_dice(&t->rng, 500) ? WEIR_SCHED_FAIR : WEIR_SCHED_ROUND_ROBIN;
	config->segment_bytes = (uint32_t)draw_upto(t, 5000);
	config->wrs_max = (uint32_t)draw_upto(t, 4);
	config->pass_bytes_max = hunt_dice(&t->rng, 300) ? draw_upto(t, 20000) : 0;
	t->may_pass |= config->pass_bytes_max;
}

static void bundles_draw(struct fuzz_sched *t, uint8_t nr)
{
	uint8_t i, k;

	for (i = 0; i < nr; i++)
		for (k = 0; k < BUNDLES; k++)
			weir_sched_bundle_init(&t->bundles[i][k], i,
					       (uint16_t)draw_upto(t, WEIGHTS));
}

static void init_run(struct fuzz_sched *t)
{
	struct weir_sched_config configs[CLASSES];
	uint8_t i, level = 0, nr = (uint8_t)draw_upto(t, CLASSES);

	for (i = 0; i < nr; i++) {
		level = (uint8_t)(level + sim_rng_below(&t->rng, 2));
		config_draw(t, &configs[i], level);
		t->depth[i] = (uint32_t)draw_upto(t, 12);
	}
	hunt_expect(t->hunt,
		    !weir_sched_init(&t->sched, configs, nr, sim_rng_below(&t->rng, 30000)),
		    "the scheduler refuses a valid configuration");
	bundles_draw(t, nr);
	t->nr_flows = (uint32_t)draw_upto(t, FLOWS);
	for (i = 0; i < t->nr_flows; i++) {
		uint64_t class = sim_rng_below(&t->rng, nr);
		uint64_t bundle = sim_rng_below(&t->rng, BUNDLES);

		weir_sched_flow_init(&t->flows[i].flow, &t->bundles[class][bundle],
				     (uint16_t)draw_upto(t, WEIGHTS));
	}
	t->to_come = MESSAGES;
}

static const struct weir_sched_config *config_of(const struct fuzz_sched *t,
						 const struct fuzz_flow *flow)
{
	return &t->sched.classes[flow->flow.bundle->class].config;
}

static bool is_low(const struct fuzz_sched *t, const struct fuzz_flow *flow)
{
	return config_of(t, flow)->level > t->sched.classes[0].config.level;
}

static uint32_t room_of_qp(const struct fuzz_sched *t)
{
	uint32_t classes = 0, i;

	for (i = 0; i < t->sched.nr_classes; i++) {
		if (t->posted[i] < t->depth[i] && t->nr_wrs < WRS)
			classes |= 1u << i;
	}
	return classes;
}

/* Limit of the low levels in flight; at least a segment of each competing flow. */
static uint64_t low_most(const struct fuzz_sched *t)
{
	uint64_t floor = 0;
	uint32_t i;

	for (i = 0; i < t->nr_flows; i++) {
		const struct fuzz_flow *flow = &t->flows[i];

		if (is_low(t, flow) && (flow->to_send || flow->wrs))
			floor += config_of(t, flow)->segment_bytes;
	}
	return floor > t->sched.low_bytes_max ? floor : t->sched.low_bytes_max;
}

/* Whether their longest segment fits; with nothing in flight, any segment fits. */
static bool low_has_room(const struct fuzz_sched *t)
{
	uint32_t longest = 0;
	uint8_t i;

	for (i = 0; i < t->sched.nr_classes; i++) {
		const struct weir_sched_config *config = &t->sched.classes[i].config;

		if (config->level > t->sched.classes[0].config.level &&
		    config->segment_bytes > longest)
			longest = config->segment_bytes;
	}
	return !t->low_bytes || t->low_bytes + longest <= low_most(t);
}

static bool may_post(const struct fuzz_sched *t, const struct fuzz_flow *flow, uint32_t classes)
{
	return flow->to_send && flow->wrs < config_of(t, flow)->wrs_max &&
	       (!is_low(t, flow) || low_has_room(t)) && classes >> flow->flow.bundle->class & 1;
}

/* The only flow of its class with data waits for no round. */
static bool is_alone(const struct fuzz_sched *t, const struct fuzz_flow *flow)
{
	uint32_t i;

	for (i = 0; i < t->nr_flows; i++) {
		if (&t->flows[i] != flow && t->flows[i].to_send &&
		    t->flows[i].flow.bundle->class == flow->flow.bundle->class)
			return false;
	}
	return true;
}

static void watch_turn(const struct fuzz_sched *t, const struct fuzz_flow *flow, uint32_t classes)
{
	uint32_t i;

	hunt_expect(t->hunt, may_post(t, flow, classes), "a flow has a turn that it may not have");
	for (i = 0; i < t->nr_flows && !t->may_pass; i++) {
		const struct fuzz_flow *other = &t->flows[i];

		hunt_expect(t->hunt,
			    config_of(t, other)->level >= config_of(t, flow)->level ||
				    !may_post(t, other, classes) || !is_alone(t, other),
			    "a lower level goes before a higher one");
	}
}

/* With nothing in flight, no flow may have to wait. */
static void watch_nobody(const struct fuzz_sched *t, uint32_t classes)
{
	uint32_t i;

	for (i = 0; i < t->nr_flows && !t->nr_wrs; i++)
		hunt_expect(t->hunt, !may_post(t, &t->flows[i], classes),
			    "no flow has a turn, and flow %u waits for nothing", i);
}

static void watch_low(const struct fuzz_sched *t, const struct fuzz_flow *flow, uint32_t bytes)
{
	hunt_expect(t->hunt,
		    !is_low(t, flow) || t->low_bytes == bytes || t->low_bytes <= low_most(t),
		    "low levels have %llu bytes in flight, and may have %llu",
		    (unsigned long long)t->low_bytes, (unsigned long long)low_most(t));
	hunt_expect(t->hunt, t->low_bytes == t->sched.low_bytes, "low bytes are miscounted");
}

static uint32_t cost_of(const struct weir_sched_config *config, uint64_t bytes)
{
	if (config->policy == WEIR_SCHED_ROUND_ROBIN)
		return 1;
	return bytes < WEIR_SCHED_COST_MIN ? WEIR_SCHED_COST_MIN : (uint32_t)bytes;
}

static void books_reset(struct fuzz_accounts *books, uint32_t member)
{
	uint32_t i;

	for (i = 0; i < FLOWS; i++)
		books->lead[member][i] = books->lead[i][member] = 0;
}

static void books_add(struct fuzz_accounts *books, uint32_t member, int64_t share)
{
	uint32_t i;

	for (i = 0; i < FLOWS; i++) {
		books->lead[member][i] += share;
		books->lead[i][member] -= share;
	}
}

static bool bundle_wants(const struct fuzz_sched *t, const struct weir_bundle *bundle)
{
	uint32_t i;

	for (i = 0; i < t->nr_flows; i++)
		if (t->flows[i].flow.bundle == bundle && t->flows[i].to_send)
			return true;
	return false;
}

static bool class_wants(const struct fuzz_sched *t, uint8_t class)
{
	uint32_t i;

	for (i = 0; i < t->nr_flows; i++)
		if (t->flows[i].to_send && t->flows[i].flow.bundle->class == class)
			return true;
	return false;
}

/* Called before @flow, after its turn, says whether it wants another. */
static void watch_shares(struct fuzz_sched *t, const struct fuzz_flow *flow, uint64_t bytes)
{
	const struct weir_sched_config *config = config_of(t, flow);
	int64_t most = (int64_t)cost_of(config, config->segment_bytes) * LEAD_MAX * WEIGHT_LCM;
	int64_t cost = (int64_t)cost_of(config, bytes) * WEIGHT_LCM;
	struct weir_bundle *bundle = flow->flow.bundle, *bundles = t->bundles[bundle->class];
	struct fuzz_accounts *books = &t->bundle_books[bundle->class];
	uint32_t i, own = (uint32_t)(flow - t->flows);

	books_add(&t->flow_books, own, cost / flow->flow.turn.weight);
	books_add(books, (uint32_t)(bundle - bundles), cost / bundle->turn.weight);
	for (i = 0; i < t->nr_flows; i++)
		hunt_expect(t->hunt,
			    i == own || t->flows[i].flow.bundle != bundle || !t->flows[i].to_send ||
				    t->flow_books.lead[own][i] <= most,
			    "flow %u has more than its share beside flow %u", own, i);
	for (i = 0; i < BUNDLES; i++)
		hunt_expect(t->hunt,
			    bundle == &bundles[i] || !bundle_wants(t, &bundles[i]) ||
				    books->lead[bundle - bundles][i] <= most,
			    "a bundle of class %u has more than its share", bundle->class);
}

/* Whether some flow of @class waits for nothing but the turn. */
static bool is_kept_waiting(const struct fuzz_sched *t, uint8_t class, uint32_t classes)
{
	uint32_t i;

	for (i = 0; i < t->nr_flows; i++) {
		const struct fuzz_flow *flow = &t->flows[i];

		if (flow->flow.bundle->class == class && !flow->wrs && is_alone(t, flow) &&
		    may_post(t, flow, classes))
			return true;
	}
	return false;
}

static bool is_below(const struct fuzz_sched *t, uint8_t class, uint8_t other)
{
	return t->sched.classes[class].config.level > t->sched.classes[other].config.level;
}

static bool starves(const struct fuzz_sched *t, uint8_t class)
{
	uint64_t most = t->sched.classes[class].config.pass_bytes_max;

	return most && t->passed[class] >= most;
}

/* Called before the turn of @flow counts. */
static void watch_passed(struct fuzz_sched *t, const struct fuzz_flow *flow, uint32_t classes)
{
	uint8_t i, class = flow->flow.bundle->class;

	for (i = 0; i < t->sched.nr_classes; i++)
		hunt_expect(t->hunt,
			    !is_below(t, i, class) || !starves(t, i) || starves(t, class) ||
				    !is_kept_waiting(t, i, classes),
			    "class %u is passed for longer than it may be", i);
}

static void count_passed(struct fuzz_sched *t, const struct fuzz_flow *flow, uint64_t bytes)
{
	uint8_t i, class = flow->flow.bundle->class;

	t->passed[class] = 0;
	for (i = 0; i < t->sched.nr_classes; i++) {
		if (is_below(t, i, class) && class_wants(t, i))
			t->passed[i] += bytes < WEIR_SCHED_COST_MIN ? WEIR_SCHED_COST_MIN : bytes;
	}
}

static void post_turn(struct fuzz_sched *t, struct fuzz_flow *flow)
{
	uint64_t bytes = draw_upto(t, config_of(t, flow)->segment_bytes);

	if (bytes > flow->to_send || hunt_dice(&t->rng, 500))
		bytes = flow->to_send < config_of(t, flow)->segment_bytes ?
				flow->to_send :
				config_of(t, flow)->segment_bytes;
	watch_shares(t, flow, bytes);
	count_passed(t, flow, bytes);
	flow->to_send -= bytes;
	flow->wrs++;
	t->posted[flow->flow.bundle->class]++;
	t->low_bytes += is_low(t, flow) ? bytes : 0;
	t->wrs[t->nr_wrs++] = (struct fuzz_wr){ flow, (uint32_t)bytes };
	weir_sched_posted(&t->sched, &flow->flow, (uint32_t)bytes);
	watch_low(t, flow, (uint32_t)bytes);
	if (!flow->to_send)
		weir_sched_idle(&t->sched, &flow->flow);
	hunt_note(t->hunt, "turn", flow - t->flows, (int64_t)bytes, t->nr_wrs);
}

static void post_all_turns(struct fuzz_sched *t)
{
	struct weir_flow *flow;
	uint32_t classes;

	while (classes = room_of_qp(t), (flow = weir_sched_next(&t->sched, classes)) != NULL) {
		watch_turn(t, container_of(flow, struct fuzz_flow, flow), classes);
		watch_passed(t, container_of(flow, struct fuzz_flow, flow), classes);
		if (*t->hunt->why)
			return;
		post_turn(t, container_of(flow, struct fuzz_flow, flow));
	}
	watch_nobody(t, classes);
}

static void complete_oldest(struct fuzz_sched *t, uint32_t i)
{
	struct fuzz_wr wr = t->wrs[i];

	t->wrs[i] = t->wrs[--t->nr_wrs];
	wr.flow->wrs--;
	t->posted[wr.flow->flow.bundle->class]--;
	t->low_bytes -= is_low(t, wr.flow) ? wr.bytes : 0;
	weir_sched_completed(&t->sched, &wr.flow->flow, wr.bytes);
}

static void flow_gets_work(struct fuzz_sched *t)
{
	struct fuzz_flow *flow = &t->flows[sim_rng_below(&t->rng, t->nr_flows)];

	struct weir_bundle *bundle = flow->flow.bundle;

	if (!class_wants(t, bundle->class))
		t->passed[bundle->class] = 0;
	if (!bundle_wants(t, bundle))
		books_reset(&t->bundle_books[bundle->class],
			    (uint32_t)(bundle - t->bundles[bundle->class]));
	if (!flow->to_send)
		books_reset(&t->flow_books, (uint32_t)(flow - t->flows));
	t->to_come--;
	flow->to_send += draw_upto(t, hunt_dice(&t->rng, 200) ? 100000 : 3000);
	weir_sched_ready(&t->sched, &flow->flow);
}

void hunt_sched(struct hunt *h, uint64_t seed)
{
	struct fuzz_sched t = { .hunt = h };
	uint32_t i;

	sim_rng_init(&t.rng, seed, "turns", 0);
	init_run(&t);
	while (!*h->why && (t.to_come || t.nr_wrs)) {
		if (t.to_come && (!t.nr_wrs || hunt_dice(&t.rng, 300)))
			flow_gets_work(&t);
		else
			complete_oldest(&t, (uint32_t)sim_rng_below(&t.rng, t.nr_wrs));
		if (hunt_dice(&t.rng, 700) || !t.nr_wrs)
			post_all_turns(&t);
	}
	for (i = 0; i < t.nr_flows; i++)
		hunt_expect(h, !t.flows[i].to_send, "flow %u is never sent completely", i);
}
