/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The scheduler, over a wire that carries one WR after another; the test measures arrivals at
 * the far end. A long random run judges each step from outside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/rng.h"
#include "core/sched/sched.h"

#define KIB 1024u
#define MIB (1024u * KIB)
#define SEGMENT WEIR_SCHED_SEGMENT_BYTES
#define FLOWS_MAX 16
#define WIRE_MAX 1024
#define BUNDLES 3 /* in a class */

static const struct weir_sched_config fair = { .weight = 1,
					       .segment_bytes = SEGMENT,
					       .wrs_max = 4 };

/* A sender with endless data, in messages of @message_bytes. */
struct sched_sender {
	struct weir_flow flow;
	uint64_t message_bytes;
	uint64_t offset; /* in the current message */
	uint64_t arrived; /* bytes */
	uint64_t wrs; /* WRs that arrived */
};

struct sched_wr {
	struct sched_sender *sender;
	uint32_t bytes;
};

/* The wire holds posted WRs until they arrive, in order. */
struct wire {
	struct weir_sched sched;
	struct weir_bundle bundles[WEIR_SCHED_CLASSES_MAX][BUNDLES];
	struct sched_sender senders[FLOWS_MAX];
	unsigned int nr_senders;
	struct sched_wr wrs[WIRE_MAX];
	unsigned int first, count, depth;
	uint64_t bytes;
};

static void wire_init(struct wire *w, const struct weir_sched_config *configs, uint8_t nr,
		      uint64_t low_bytes_max)
{
	unsigned int i, k;

	memset(w, 0, sizeof(*w));
	w->depth = WIRE_MAX;
	for (i = 0; i < nr; i++)
		for (k = 0; k < BUNDLES; k++)
			weir_sched_bundle_init(&w->bundles[i][k], (uint8_t)i, 1);
	assert_int_equal(weir_sched_init(&w->sched, configs, nr, low_bytes_max), 0);
}

static struct sched_sender *wire_add_to(struct wire *w, struct weir_bundle *bundle, uint16_t weight,
					uint64_t message)
{
	struct sched_sender *sender = &w->senders[w->nr_senders++];

	weir_sched_flow_init(&sender->flow, bundle, weight);
	sender->message_bytes = message;
	weir_sched_ready(&w->sched, &sender->flow);
	return sender;
}

static struct sched_sender *wire_add(struct wire *w, uint8_t class, uint16_t weight,
				     uint64_t message)
{
	return wire_add_to(w, &w->bundles[class][0], weight, message);
}

/* The next part of the sender's message; messages are not merged here. */
static uint32_t part_of(const struct wire *w, const struct sched_sender *sender)
{
	uint32_t segment = w->sched.classes[sender->flow.bundle->class].config.segment_bytes;
	uint64_t left = sender->message_bytes - sender->offset;

	return left < segment ? (uint32_t)left : segment;
}

static void wire_post(struct wire *w, struct sched_sender *sender)
{
	uint32_t bytes = part_of(w, sender);

	sender->offset = (sender->offset + bytes) % sender->message_bytes;
	weir_sched_posted(&w->sched, &sender->flow, bytes);
	w->wrs[(w->first + w->count++) % WIRE_MAX] = (struct sched_wr){ sender, bytes };
	w->bytes += bytes;
}

static void wire_fill(struct wire *w)
{
	struct weir_flow *flow;

	while (w->count < w->depth && weir_sched_is_wanted(&w->sched) &&
	       (flow = weir_sched_next(&w->sched, WEIR_SCHED_CLASSES_ALL)) != NULL)
		wire_post(w, container_of(flow, struct sched_sender, flow));
}

static struct sched_sender *wire_arrive(struct wire *w)
{
	struct sched_wr wr = w->wrs[w->first];

	assert_true(w->count > 0);
	w->first = (w->first + 1) % WIRE_MAX;
	w->count--;
	w->bytes -= wr.bytes;
	wr.sender->arrived += wr.bytes;
	wr.sender->wrs++;
	weir_sched_completed(&w->sched, &wr.sender->flow, wr.bytes);
	return wr.sender;
}

/* Carry @bytes. The wire is never empty while a flow may post. */
static void wire_carry(struct wire *w, uint64_t bytes)
{
	uint64_t carried = 0;

	while (carried < bytes) {
		wire_fill(w);
		carried += w->wrs[w->first].bytes;
		wire_arrive(w);
	}
}

static void assert_near(uint64_t value, uint64_t expected, unsigned int percent)
{
	assert_in_range(value * 100, expected * (100 - percent), expected * (100 + percent));
}

/*
 * Jain's index, (sum of x)^2 / (n * sum of x^2), over the bytes that arrived since @before is
 * at least 0.99.
 */
static void assert_jain(const struct wire *w, const uint64_t *before)
{
	double sum = 0, squares = 0;
	unsigned int i;

	for (i = 0; i < w->nr_senders; i++) {
		double x = (double)(w->senders[i].arrived - before[i]);

		sum += x;
		squares += x * x;
	}
	assert_true(sum * sum >= 0.99 * w->nr_senders * squares);
}

static void equal_weights_share_equally_whatever_the_size_of_their_messages(void **state)
{
	static const uint64_t sizes[] = { 1 * KIB, 1 * MIB, 100, 64 * KIB, 5000, 16 * MIB };
	uint64_t before[FLOWS_MAX] = { 0 };
	unsigned int i, second;
	struct wire w;

	(void)state;
	wire_init(&w, &fair, 1, UINT64_MAX);
	for (i = 0; i < 6; i++)
		wire_add(&w, 0, 1, sizes[i]);
	for (second = 0; second < 20; second++) {
		for (i = 0; i < 6; i++)
			before[i] = w.senders[i].arrived;
		wire_carry(&w, 6 * 20 * SEGMENT);
		assert_jain(&w, before);
	}
}

/* A flow refused room in flight still gets its share, because other flows wait for it. */
static void weights_hold_whatever_the_limits_in_flight(void **state)
{
	static const unsigned int wrs_max[] = { 1, 2, 16 };
	unsigned int i, depth;
	struct weir_sched_config config = fair;
	struct wire w;

	(void)state;
	for (i = 0; i < 3; i++)
		for (depth = 1; depth <= 64; depth *= 4) {
			config.wrs_max = wrs_max[i];
			wire_init(&w, &config, 1, UINT64_MAX);
			w.depth = depth;
			wire_add(&w, 0, 1, 1 * MIB);
			wire_add(&w, 0, 2, 1 * KIB);
			wire_add(&w, 0, 4, 40 * KIB);
			wire_carry(&w, 700 * SEGMENT);
			assert_near(w.senders[0].arrived, 100 * SEGMENT, 3);
			assert_near(w.senders[1].arrived, 200 * SEGMENT, 3);
			assert_near(w.senders[2].arrived, 400 * SEGMENT, 3);
		}
}

/* The bytes that have arrived from a bundle's flows. */
static uint64_t arrived_of(const struct wire *w, const struct weir_bundle *bundle)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < w->nr_senders; i++)
		if (w->senders[i].flow.bundle == bundle)
			bytes += w->senders[i].arrived;
	return bytes;
}

/*
 * A rate limit lets one bundle send a segment now and then. Inside the bundle the weights hold,
 * and the other bundle gets the rest.
 */
static void a_ceiling_leaves_weights_as_they_are(void **state)
{
	struct weir_bundle *held, *other;
	struct weir_flow *flow;
	unsigned int i, k;
	struct wire w;

	(void)state;
	wire_init(&w, &fair, 1, UINT64_MAX);
	held = &w.bundles[0][0];
	other = &w.bundles[0][1];
	wire_add_to(&w, held, 1, 1 * MIB);
	wire_add_to(&w, held, 2, 1 * KIB);
	wire_add_to(&w, held, 4, 40 * KIB);
	wire_add_to(&w, other, 1, 64 * KIB);
	for (i = 0; i < 700 * 64; i++) {
		weir_sched_resume(&w.sched, held);
		for (k = 0; k < 3; k++) {
			flow = weir_sched_next(&w.sched, WEIR_SCHED_CLASSES_ALL);
			assert_non_null(flow);
			assert_true(flow->bundle == other || !held->is_paused);
			wire_post(&w, container_of(flow, struct sched_sender, flow));
			if (flow->bundle == held)
				weir_sched_pause(&w.sched, held);
		}
		while (w.count > 2)
			wire_arrive(&w);
	}
	assert_near(w.senders[1].arrived, 2 * w.senders[0].arrived, 3);
	assert_near(w.senders[2].arrived, 4 * w.senders[0].arrived, 3);
	assert_in_range(w.senders[3].wrs, 2 * 700 * 64 - 3, 3 * 700 * 64);
}

static void an_idle_flow_is_not_held(void **state)
{
	struct wire w;

	(void)state;
	wire_init(&w, &fair, 1, UINT64_MAX);
	wire_add(&w, 0, 1, MIB);
	assert_true(weir_sched_is_wanted(&w.sched));
	weir_sched_pause(&w.sched, &w.bundles[0][0]);
	assert_false(weir_sched_is_wanted(&w.sched));
	assert_null(weir_sched_next(&w.sched, WEIR_SCHED_CLASSES_ALL));
	weir_sched_idle(&w.sched, &w.senders[0].flow);
	weir_sched_resume(&w.sched, &w.bundles[0][0]);
	assert_false(weir_sched_is_wanted(&w.sched));
	assert_null(weir_sched_next(&w.sched, WEIR_SCHED_CLASSES_ALL));
	weir_sched_pause(&w.sched, &w.bundles[0][0]);
	weir_sched_ready(&w.sched, &w.senders[0].flow);
	assert_ptr_equal(weir_sched_next(&w.sched, WEIR_SCHED_CLASSES_ALL), &w.senders[0].flow);
}

/*
 * Only competing flows count for the room of low levels. The two flows of a paused bundle leave
 * no room to the third.
 */
static void a_paused_bundle_makes_no_room_for_others(void **state)
{
	const struct weir_sched_config levels[] = {
		fair, { .level = 1, .weight = 1, .segment_bytes = SEGMENT, .wrs_max = 4 }
	};
	struct wire w;

	(void)state;
	wire_init(&w, levels, 2, 1);
	wire_add_to(&w, &w.bundles[1][0], 1, MIB);
	wire_add_to(&w, &w.bundles[1][0], 1, MIB);
	wire_add_to(&w, &w.bundles[1][1], 1, MIB);
	weir_sched_pause(&w.sched, &w.bundles[1][0]);
	wire_fill(&w);
	assert_int_equal(w.bytes, SEGMENT);
	weir_sched_resume(&w.sched, &w.bundles[1][0]);
	wire_fill(&w);
	assert_int_equal(w.bytes, 3 * SEGMENT);
	weir_sched_pause(&w.sched, &w.bundles[1][0]);
	while (w.count)
		wire_arrive(&w);
	weir_sched_idle(&w.sched, &w.senders[0].flow);
	weir_sched_idle(&w.sched, &w.senders[1].flow);
	weir_sched_idle(&w.sched, &w.senders[2].flow);
	assert_int_equal(w.sched.low_floor, 0);
}

/* A bundle with one flow and a bundle with nine; inside each bundle the weights hold. */
static void bundles_share_by_their_weights_however_many_flows_they_have(void **state)
{
	static const unsigned int wrs_max[] = { 1, 4 };
	unsigned int i, k, depth;
	struct weir_sched_config config = fair;
	struct wire w;

	(void)state;
	for (i = 0; i < 2; i++)
		for (depth = 1; depth <= 64; depth *= 4) {
			struct weir_bundle *of = w.bundles[0];

			config.wrs_max = wrs_max[i];
			wire_init(&w, &config, 1, UINT64_MAX);
			w.depth = depth;
			weir_sched_bundle_set_weight(&of[1], 2);
			wire_add_to(&w, &of[0], 1, 1 * MIB);
			for (k = 0; k < 9; k++)
				wire_add_to(&w, &of[1], 1, (1 + k % 2 * 1023) * KIB);
			wire_add_to(&w, &of[2], 1, 1 * MIB);
			wire_add_to(&w, &of[2], 3, 5 * KIB);
			wire_carry(&w, 1200 * SEGMENT);
			assert_near(arrived_of(&w, &of[0]), 300 * SEGMENT, 3);
			assert_near(arrived_of(&w, &of[1]), 600 * SEGMENT, 3);
			assert_near(w.senders[10].arrived, 75 * SEGMENT, 5);
			assert_near(w.senders[11].arrived, 225 * SEGMENT, 5);
			for (k = 1; k <= 9; k++)
				assert_near(w.senders[k].arrived, 600 * SEGMENT / 9, 5);
		}
}

static void another_weight_of_a_bundle_holds_from_its_next_round_on(void **state)
{
	struct sched_sender *heavy;
	uint64_t before;
	struct wire w;

	(void)state;
	wire_init(&w, &fair, 1, UINT64_MAX);
	w.depth = 4;
	wire_add_to(&w, &w.bundles[0][0], 1, 1 * MIB);
	heavy = wire_add_to(&w, &w.bundles[0][1], 1, 1 * MIB);
	wire_carry(&w, 200 * SEGMENT);
	assert_near(heavy->arrived, 100 * SEGMENT, 3);
	weir_sched_bundle_set_weight(&w.bundles[0][1], 4);
	before = heavy->arrived;
	wire_carry(&w, 500 * SEGMENT);
	assert_near(heavy->arrived - before, 400 * SEGMENT, 3);
}

static void a_moved_flow_has_its_share_of_the_new_bundle(void **state)
{
	struct weir_bundle *of;
	uint64_t before[3];
	struct sched_sender *moves;
	unsigned int i;
	struct wire w;

	(void)state;
	wire_init(&w, &fair, 1, UINT64_MAX);
	of = w.bundles[0];
	w.depth = 4;
	weir_sched_bundle_set_weight(&of[2], 2);
	wire_add_to(&w, &of[0], 1, 1 * MIB);
	moves = wire_add_to(&w, &of[0], 1, 1 * KIB);
	wire_add_to(&w, &of[1], 1, 40 * KIB);
	wire_carry(&w, 400 * SEGMENT);
	assert_near(moves->arrived, 100 * SEGMENT, 3);
	weir_sched_flow_move(&w.sched, &moves->flow, &of[2]);
	assert_ptr_equal(moves->flow.bundle, &of[2]);
	for (i = 0; i < 3; i++)
		before[i] = w.senders[i].arrived;
	wire_carry(&w, 400 * SEGMENT);
	assert_near(w.senders[0].arrived - before[0], 100 * SEGMENT, 3);
	assert_near(w.senders[1].arrived - before[1], 200 * SEGMENT, 3);
	assert_near(w.senders[2].arrived - before[2], 100 * SEGMENT, 3);
}

/*
 * A quantum spent in the old bundle stays spent in the new one: the other flow sends its three
 * segments first.
 */
static void a_move_brings_no_new_quantum(void **state)
{
	struct sched_sender *moves, *stays;
	unsigned int i;
	struct wire w;

	(void)state;
	wire_init(&w, &fair, 1, UINT64_MAX);
	moves = wire_add_to(&w, &w.bundles[0][0], 1, 1 * MIB);
	wire_post(&w, container_of(weir_sched_next(&w.sched, 1), struct sched_sender, flow));
	assert_int_equal(moves->flow.wrs, 1);
	stays = wire_add_to(&w, &w.bundles[0][1], 3, 1 * MIB);
	weir_sched_flow_move(&w.sched, &moves->flow, &w.bundles[0][1]);
	for (i = 0; i < 3; i++) {
		assert_ptr_equal(weir_sched_next(&w.sched, 1), &stays->flow);
		wire_post(&w, stays);
	}
	assert_ptr_equal(weir_sched_next(&w.sched, 1), &moves->flow);
}

/* A moved flow competes in the new bundle, even with only WRs in flight. */
static void a_moved_flow_takes_its_wrs_along(void **state)
{
	const struct weir_sched_config levels[] = {
		fair, { .level = 1, .weight = 1, .segment_bytes = SEGMENT, .wrs_max = 4 }
	};
	struct weir_bundle *of;
	unsigned int i;
	struct wire w;

	(void)state;
	wire_init(&w, levels, 2, 1);
	of = w.bundles[1];
	for (i = 0; i < 3; i++)
		wire_add_to(&w, &of[0], 1, MIB);
	wire_fill(&w);
	assert_int_equal(w.bytes, 3 * SEGMENT);
	weir_sched_idle(&w.sched, &w.senders[1].flow);
	weir_sched_flow_move(&w.sched, &w.senders[0].flow, &of[1]);
	weir_sched_flow_move(&w.sched, &w.senders[1].flow, &of[1]);
	assert_int_equal(of[0].competing, 1);
	assert_int_equal(of[1].competing, 2);
	/* A paused bundle has no room in flight, and neither has a flow that moves there. */
	weir_sched_pause(&w.sched, &of[1]);
	assert_int_equal(w.sched.low_floor, SEGMENT);
	weir_sched_flow_move(&w.sched, &w.senders[2].flow, &of[1]);
	assert_int_equal(w.sched.low_floor, 0);
	assert_null(weir_sched_next(&w.sched, WEIR_SCHED_CLASSES_ALL));
	weir_sched_resume(&w.sched, &of[1]);
	while (w.count)
		wire_arrive(&w);
	wire_fill(&w);
	assert_int_equal(w.bytes, 2 * SEGMENT);
	while (w.count)
		wire_arrive(&w);
	weir_sched_idle(&w.sched, &w.senders[0].flow);
	weir_sched_idle(&w.sched, &w.senders[2].flow);
	assert_int_equal(of[0].competing + of[1].competing, 0);
	assert_int_equal(w.sched.low_floor + w.sched.low_bytes, 0);
}

/* A bundle without traffic so far waits for at most a segment of another bundle. */
static void a_newcomers_bundle_waits_for_one_segment_of_each_bundle(void **state)
{
	struct sched_sender *late;
	unsigned int i;
	struct wire w;

	(void)state;
	wire_init(&w, &fair, 1, UINT64_MAX);
	w.depth = 1;
	for (i = 0; i < 10; i++)
		wire_add_to(&w, &w.bundles[0][i % 2], (uint16_t)(1 + i), 1 * MIB);
	wire_carry(&w, 57 * SEGMENT);
	late = wire_add_to(&w, &w.bundles[0][2], 1, 1 * KIB);
	for (i = 0; i <= 2 && !late->wrs; i++) {
		wire_fill(&w);
		wire_arrive(&w);
	}
	assert_int_equal(late->wrs, 1);
}

/* The blocked flow was the last in the round of its bundle. */
static void a_leaving_flow_does_not_block_its_bundle(void **state)
{
	struct weir_sched_config config = fair;
	struct sched_sender *blocked, *other;
	struct wire w;

	(void)state;
	config.wrs_max = 1;
	wire_init(&w, &config, 1, UINT64_MAX);
	blocked = wire_add(&w, 0, 4, 1 * MIB);
	wire_fill(&w);
	other = wire_add(&w, 0, 1, 1 * MIB);
	wire_fill(&w);
	while (wire_arrive(&w) != other)
		;
	wire_post(&w, container_of(weir_sched_next(&w.sched, 1), struct sched_sender, flow));
	assert_int_equal(blocked->flow.wrs, 1);
	assert_null(weir_sched_next(&w.sched, 1));
	weir_sched_idle(&w.sched, &blocked->flow);
	assert_ptr_equal(weir_sched_next(&w.sched, 1), &other->flow);
}

static void classes_of_a_level_share_by_their_weights(void **state)
{
	struct weir_sched_config configs[] = { fair, fair };
	struct wire w;

	(void)state;
	configs[1].weight = 3;
	wire_init(&w, configs, 2, UINT64_MAX);
	w.depth = 4;
	wire_add(&w, 0, 1, 1 * MIB);
	wire_add(&w, 0, 7, 64 * KIB);
	wire_add(&w, 1, 1, 1 * MIB);
	wire_carry(&w, 400 * SEGMENT);
	assert_near(w.senders[0].arrived + w.senders[1].arrived, 100 * SEGMENT, 3);
	assert_near(w.senders[2].arrived, 300 * SEGMENT, 3);
}

/* Even after a class sent alone for long, and another class did so before it. */
static void a_class_that_was_away_has_no_claim_and_no_debt(void **state)
{
	struct weir_sched_config configs[] = { fair, fair };
	uint64_t before[2];
	struct wire w;

	(void)state;
	wire_init(&w, configs, 2, UINT64_MAX);
	w.depth = 2;
	wire_add(&w, 0, 1, 1 * MIB);
	wire_add(&w, 1, 1, 1 * MIB);
	weir_sched_idle(&w.sched, &w.senders[1].flow);
	wire_carry(&w, 500 * SEGMENT);
	weir_sched_idle(&w.sched, &w.senders[0].flow);
	weir_sched_ready(&w.sched, &w.senders[1].flow);
	wire_carry(&w, 10 * SEGMENT);
	weir_sched_ready(&w.sched, &w.senders[0].flow);
	before[0] = w.senders[0].arrived;
	before[1] = w.senders[1].arrived;
	wire_carry(&w, 20 * SEGMENT);
	assert_near(w.senders[0].arrived - before[0], 10 * SEGMENT, 20);
	assert_near(w.senders[1].arrived - before[1], 10 * SEGMENT, 20);
}

static void round_robin_gives_turns_and_does_not_look_at_bytes(void **state)
{
	struct weir_sched_config config = fair;
	struct wire w;

	(void)state;
	config.policy = WEIR_SCHED_ROUND_ROBIN;
	wire_init(&w, &config, 1, UINT64_MAX);
	w.depth = 8;
	wire_add(&w, 0, 1, 1 * MIB);
	wire_add(&w, 0, 1, 1 * KIB);
	wire_add(&w, 0, 2, 64 * KIB);
	wire_carry(&w, 300 * SEGMENT);
	assert_near(w.senders[1].wrs, w.senders[0].wrs, 3);
	assert_near(w.senders[2].wrs, 2 * w.senders[0].wrs, 3);
}

/* The bytes ahead of a strict request on the wire, with @low_bytes_max for the low levels. */
static uint64_t worst_before_strict(uint64_t low_bytes_max, unsigned int nr_low)
{
	struct weir_sched_config configs[] = { fair, fair };
	uint64_t worst = 0;
	struct sched_sender *strict;
	unsigned int i;
	struct wire w;

	configs[1].level = 1;
	wire_init(&w, configs, 2, low_bytes_max);
	strict = wire_add(&w, 0, 1, 16 * KIB);
	weir_sched_idle(&w.sched, &strict->flow);
	for (i = 0; i < nr_low; i++)
		wire_add(&w, 1, (uint16_t)(1 + i), 1 * MIB);
	for (i = 0; i < 500; i++) {
		wire_carry(&w, (i % 7 + 1) * 10000);
		wire_fill(&w);
		worst = w.bytes > worst ? w.bytes : worst;
		weir_sched_ready(&w.sched, &strict->flow);
		assert_ptr_equal(weir_sched_next(&w.sched, WEIR_SCHED_CLASSES_ALL), &strict->flow);
		wire_post(&w, strict);
		weir_sched_idle(&w.sched, &strict->flow);
		while (wire_arrive(&w) != strict)
			;
	}
	return worst;
}

static void a_strict_request_waits_for_one_segment_of_each_flow(void **state)
{
	(void)state;
	assert_int_equal(worst_before_strict(0, 5), 5 * SEGMENT);
	assert_int_equal(worst_before_strict(2 * SEGMENT, 1), 2 * SEGMENT);
	assert_int_equal(worst_before_strict(2 * SEGMENT, 4), 4 * SEGMENT);
	assert_int_equal(worst_before_strict(3 * SEGMENT, 5), 5 * SEGMENT);
	assert_in_range(worst_before_strict(100 * SEGMENT, 2), 6 * SEGMENT, 8 * SEGMENT);
}

/* A single low flow fills the wire up to the limit plus one segment. */
static void a_low_flow_that_is_alone_fills_the_wire(void **state)
{
	struct weir_sched_config configs[] = { fair, fair };
	struct wire w;

	(void)state;
	configs[1].level = 1;
	configs[1].wrs_max = 64;
	wire_init(&w, configs, 2, 10 * SEGMENT);
	wire_add(&w, 1, 1, 1 * MIB);
	wire_fill(&w);
	assert_int_equal(w.bytes, 10 * SEGMENT);
	wire_arrive(&w);
	wire_fill(&w);
	assert_int_equal(w.bytes, 10 * SEGMENT);
}

/*
 * A flow that was alone has more than a segment in flight. The others wait until the excess has
 * arrived.
 */
static void a_lone_flow_leaves_others_their_room(void **state)
{
	struct weir_sched_config configs[] = { fair, fair };
	struct wire w;
	unsigned int i;

	(void)state;
	configs[1].level = 1;
	wire_init(&w, configs, 2, 2 * SEGMENT);
	wire_add(&w, 1, 1, 1 * MIB);
	wire_fill(&w);
	assert_int_equal(w.bytes, 2 * SEGMENT);
	for (i = 1; i < 4; i++)
		wire_add(&w, 1, 1, 1 * MIB);
	wire_fill(&w);
	assert_int_equal(w.bytes, 4 * SEGMENT);
	wire_arrive(&w);
	wire_fill(&w);
	assert_int_equal(w.bytes, 4 * SEGMENT);
	for (i = 0; i < 4; i++)
		assert_int_equal(w.senders[i].flow.wrs, 1);
	/* An idle flow gives its room back once nothing is in flight. */
	for (i = 1; i < 4; i++)
		weir_sched_idle(&w.sched, &w.senders[i].flow);
	for (i = 0; i < 20; i++) {
		wire_arrive(&w);
		wire_fill(&w);
	}
	assert_int_equal(w.bytes, 2 * SEGMENT);
}

/* If a long segment does not fit, short segments do not pass. */
static void long_segments_have_their_share_beside_short_ones(void **state)
{
	static const uint64_t low_bytes_max[] = { 0, 2 * SEGMENT, 4 * SEGMENT };
	struct weir_sched_config configs[] = { fair, fair, fair };
	struct wire w;
	unsigned int i, k;

	(void)state;
	configs[1].level = configs[2].level = 1;
	configs[2].segment_bytes = 1 * KIB;
	configs[2].wrs_max = 64; /* as many bytes as class 1 */
	for (i = 0; i < 3; i++) {
		wire_init(&w, configs, 3, low_bytes_max[i]);
		wire_add(&w, 1, 1, 1 * MIB);
		for (k = 0; k < 8; k++)
			wire_add(&w, 2, 1, 1 * MIB);
		wire_carry(&w, 200 * SEGMENT);
		assert_near(w.senders[0].arrived, 100 * SEGMENT, 3);
	}
}

/* No competing flow has brought as much room as the longest possible segment. */
static void a_short_segment_goes_where_a_long_one_has_no_room(void **state)
{
	struct weir_sched_config configs[] = { fair, fair, fair };
	struct wire w;

	(void)state;
	configs[1].level = configs[2].level = 1;
	configs[2].segment_bytes = 1 * KIB;
	wire_init(&w, configs, 3, 0);
	wire_add(&w, 2, 1, 1 * MIB);
	wire_fill(&w);
	assert_int_equal(w.bytes, 1 * KIB);
	wire_arrive(&w);
	wire_fill(&w);
	assert_int_equal(w.bytes, 1 * KIB);
}

static void a_newcomer_waits_for_one_segment_of_each_flow(void **state)
{
	struct sched_sender *late;
	unsigned int i;
	struct wire w;

	(void)state;
	wire_init(&w, &fair, 1, UINT64_MAX);
	w.depth = 1;
	for (i = 0; i < 5; i++)
		wire_add(&w, 0, (uint16_t)(1 + 20 * i), 1 * MIB);
	wire_carry(&w, 57 * SEGMENT);
	late = wire_add(&w, 0, 1, 1 * KIB);
	for (i = 0; i <= 5 && !late->wrs; i++) {
		wire_fill(&w);
		wire_arrive(&w);
	}
	assert_int_equal(late->wrs, 1);
}

/* A flow gains nothing by going idle for a moment and returning. */
static void leaving_and_returning_brings_no_advantage(void **state)
{
	struct sched_sender *restless, *steady;
	unsigned int i;
	struct wire w;

	(void)state;
	wire_init(&w, &fair, 1, UINT64_MAX);
	w.depth = 4;
	restless = wire_add(&w, 0, 1, 64 * KIB);
	steady = wire_add(&w, 0, 1, 64 * KIB);
	for (i = 0; i < 400; i++) {
		wire_fill(&w);
		weir_sched_idle(&w.sched, &restless->flow);
		wire_arrive(&w);
		weir_sched_ready(&w.sched, &restless->flow);
	}
	assert_true(restless->arrived <= steady->arrived + 5 * SEGMENT);
}

static void a_low_level_is_passed_by_so_many_bytes_and_no_more(void **state)
{
	struct weir_sched_config configs[] = { fair, fair, fair };
	uint64_t passed = 0, worst = 0;
	struct sched_sender *low;
	unsigned int i;
	struct wire w;

	(void)state;
	configs[1].level = 1;
	configs[2].level = 2;
	configs[2].pass_bytes_max = 10 * SEGMENT;
	wire_init(&w, configs, 3, UINT64_MAX);
	w.depth = 1;
	wire_add(&w, 0, 1, 1 * MIB);
	wire_add(&w, 1, 1, 1 * MIB);
	low = wire_add(&w, 2, 1, 4 * KIB);
	for (i = 0; i < 2000; i++) {
		wire_fill(&w);
		passed = w.wrs[w.first].sender == low ? 0 : passed + w.bytes;
		worst = passed > worst ? passed : worst;
		wire_arrive(&w);
	}
	assert_int_equal(worst, 10 * SEGMENT);
	assert_int_equal(w.senders[1].wrs, 0);
}

static void a_class_without_room_lets_the_others_go(void **state)
{
	struct weir_sched_config configs[] = { fair, fair };
	struct wire w;

	(void)state;
	configs[1].level = 1;
	wire_init(&w, configs, 2, UINT64_MAX);
	wire_add(&w, 0, 1, 1 * MIB);
	wire_add(&w, 1, 1, 1 * MIB);
	assert_ptr_equal(weir_sched_next(&w.sched, 3), &w.senders[0].flow);
	assert_ptr_equal(weir_sched_next(&w.sched, 2), &w.senders[1].flow);
	assert_null(weir_sched_next(&w.sched, 0));
}

#define MANY 100000

static void a_hundred_thousand_flows_take_turns(void **state)
{
	struct weir_flow *flows = calloc(MANY, sizeof(*flows));
	struct weir_bundle bundle;
	struct weir_sched s;
	unsigned int i, round;

	(void)state;
	assert_non_null(flows);
	assert_int_equal(weir_sched_init(&s, &fair, 1, UINT64_MAX), 0);
	weir_sched_bundle_init(&bundle, 0, 1);
	for (i = 0; i < MANY; i++) {
		weir_sched_flow_init(&flows[i], &bundle, 1);
		weir_sched_ready(&s, &flows[i]);
	}
	for (round = 1; round <= 3; round++)
		for (i = 0; i < MANY; i++) {
			struct weir_flow *flow = weir_sched_next(&s, WEIR_SCHED_CLASSES_ALL);

			assert_ptr_equal(flow, &flows[i]);
			weir_sched_posted(&s, flow, SEGMENT);
			weir_sched_completed(&s, flow, SEGMENT);
		}
	free(flows);
}

static void refuses_values_out_of_range(void **state)
{
	struct weir_sched_config configs[WEIR_SCHED_CLASSES_MAX + 1];
	struct weir_sched s;
	unsigned int i;

	(void)state;
	for (i = 0; i <= WEIR_SCHED_CLASSES_MAX; i++)
		configs[i] = fair;
	assert_int_equal(weir_sched_init(&s, configs, 0, 0), -EINVAL);
	assert_int_equal(weir_sched_init(&s, configs, WEIR_SCHED_CLASSES_MAX + 1, 0), -EINVAL);
	assert_int_equal(weir_sched_init(&s, configs, WEIR_SCHED_CLASSES_MAX, 0), 0);
	configs[0].level = 1;
	assert_int_equal(weir_sched_init(&s, configs, 2, 0), -EINVAL);
	configs[0] = fair;
	configs[1].weight = 0;
	assert_int_equal(weir_sched_init(&s, configs, 2, 0), -EINVAL);
	configs[1].weight = WEIR_SCHED_WEIGHT_MAX + 1;
	assert_int_equal(weir_sched_init(&s, configs, 2, 0), -EINVAL);
	configs[1] = fair;
	configs[1].segment_bytes = 0;
	assert_int_equal(weir_sched_init(&s, configs, 2, 0), -EINVAL);
	configs[1].segment_bytes = WEIR_SCHED_SEGMENT_MAX + 1;
	assert_int_equal(weir_sched_init(&s, configs, 2, 0), -EINVAL);
	configs[1] = fair;
	configs[1].wrs_max = 0;
	assert_int_equal(weir_sched_init(&s, configs, 2, 0), -EINVAL);
}

/* A random player by the rules; @wire follows the scheduler. */
struct judge {
	struct wire wire;
	uint64_t seed;
	uint64_t posted[FLOWS_MAX]; /* cost since the flow and its whole class were ready */
	uint64_t passed[3]; /* bytes that passed a class able to post */
};

static uint32_t draw(struct judge *j, uint32_t below)
{
	return (uint32_t)weir_rng_scale(weir_rng_next(&j->seed), below);
}

static const struct weir_sched_class *class_of(const struct judge *j, unsigned int i)
{
	return &j->wire.sched.classes[j->wire.senders[i].flow.bundle->class];
}

/* Whether another flow has quantum left in the current round. */
static bool flows_owe(const struct judge *j, const struct weir_bundle *bundle)
{
	unsigned int k;

	for (k = 0; k < j->wire.nr_senders; k++) {
		const struct weir_flow *flow = &j->wire.senders[k].flow;

		if (flow->bundle == bundle && flow->turn.is_ready &&
		    flow->turn.round == bundle->flows.round)
			return true;
	}
	return false;
}

static bool bundles_owe(const struct judge *j, unsigned int class)
{
	const struct weir_bundle *bundles = j->wire.bundles[class];
	unsigned int k;

	for (k = 0; k < BUNDLES; k++)
		if (bundles[k].turn.is_ready &&
		    bundles[k].turn.round == j->wire.sched.classes[class].bundles.round)
			return true;
	return false;
}

/* The bytes that low levels may have in flight: at least a segment of each competing flow. */
static uint64_t low_most(const struct judge *j)
{
	uint64_t floor = 0;
	unsigned int i;

	for (i = 0; i < j->wire.nr_senders; i++) {
		const struct weir_flow *flow = &j->wire.senders[i].flow;

		if (class_of(j, i)->config.level && (flow->turn.is_ready || flow->wrs))
			floor += SEGMENT;
	}
	return floor > j->wire.sched.low_bytes_max ? floor : j->wire.sched.low_bytes_max;
}

/* Whether a flow could post, by the rules and not by the scheduler's lists. */
static bool could_post(const struct judge *j, unsigned int i)
{
	const struct weir_flow *flow = &j->wire.senders[i].flow;
	const struct weir_bundle *bundle = flow->bundle;
	const struct weir_sched *s = &j->wire.sched;
	const struct weir_sched_class *c = class_of(j, i);

	return flow->turn.is_ready && flow->wrs < c->config.wrs_max &&
	       (flow->turn.round == bundle->flows.round || !flows_owe(j, bundle)) &&
	       (bundle->turn.round == c->bundles.round || !bundles_owe(j, bundle->class)) &&
	       (!c->config.level || !s->low_bytes || s->low_bytes + SEGMENT <= low_most(j));
}

static bool class_could_post(const struct judge *j, unsigned int class)
{
	unsigned int i;

	for (i = 0; i < j->wire.nr_senders; i++)
		if (j->wire.senders[i].flow.bundle->class == class && could_post(j, i))
			return true;
	return false;
}

static void judge_limits(const struct judge *j)
{
	const struct weir_sched *s = &j->wire.sched;
	uint64_t low = 0;
	unsigned int i;

	for (i = 0; i < j->wire.nr_senders; i++) {
		const struct weir_flow *flow = &j->wire.senders[i].flow;

		assert_true(flow->wrs <= class_of(j, i)->config.wrs_max);
		assert_true(flow->turn.left > 0 || !flow->turn.round);
	}
	for (i = 0; i < j->wire.count; i++) {
		const struct sched_wr *wr = &j->wire.wrs[(j->wire.first + i) % WIRE_MAX];

		low += s->classes[wr->sender->flow.bundle->class].config.level ? wr->bytes : 0;
	}
	assert_int_equal(low, s->low_bytes);
}

/*
 * @chosen was chosen: no flow of a higher level could post, unless the class of @chosen was
 * starving.
 */
static void judge_choice(struct judge *j, const struct weir_flow *chosen, uint32_t bytes)
{
	const struct weir_sched_class *classes = j->wire.sched.classes;
	bool passes = false;
	unsigned int c;

	for (c = 0; c < 3; c++)
		passes |= classes[c].config.level < classes[chosen->bundle->class].config.level &&
			  class_could_post(j, c);
	if (passes)
		assert_true(classes[chosen->bundle->class].passed_bytes >=
			    classes[chosen->bundle->class].config.pass_bytes_max);
	for (c = 0; c < 3; c++) {
		if (!class_could_post(j, c) || c == chosen->bundle->class)
			j->passed[c] = 0;
		else if (classes[c].config.level > classes[chosen->bundle->class].config.level)
			j->passed[c] += bytes;
		if (classes[c].config.pass_bytes_max)
			assert_true(j->passed[c] <= classes[c].config.pass_bytes_max + 3 * SEGMENT);
	}
}

/*
 * Two equals with endless data stay close. Either may lead by two quanta: a segment overdrawn
 * at the end, and a quantum at the start.
 */
static void judge_near(uint64_t a, uint16_t a_weight, uint64_t b, uint16_t b_weight)
{
	uint64_t x = a / a_weight, y = b / b_weight;

	assert_true((x > y ? x - y : y - x) <= 4 * SEGMENT);
}

/* The flows of a bundle, and the bundles of a class. */
static void judge_shares(const struct judge *j)
{
	uint64_t sent[3][BUNDLES] = { 0 };
	unsigned int i, k, c;

	for (i = 0; i < j->wire.nr_senders; i++) {
		const struct weir_flow *a = &j->wire.senders[i].flow;

		sent[a->bundle->class][a->bundle - j->wire.bundles[a->bundle->class]] +=
			j->posted[i];
		for (k = 0; k < i; k++) {
			const struct weir_flow *b = &j->wire.senders[k].flow;

			if (a->bundle == b->bundle && a->turn.is_ready && b->turn.is_ready)
				judge_near(j->posted[i], a->turn.weight, j->posted[k],
					   b->turn.weight);
		}
	}
	for (c = 0; c < 3; c++)
		for (i = 0; i < BUNDLES; i++)
			for (k = 0; k < i; k++) {
				const struct weir_drr_member *a = &j->wire.bundles[c][i].turn;
				const struct weir_drr_member *b = &j->wire.bundles[c][k].turn;

				if (a->is_ready && b->is_ready)
					judge_near(sent[c][i], a->weight, sent[c][k], b->weight);
			}
}

static void judge_post(struct judge *j)
{
	struct weir_flow *flow = weir_sched_next(&j->wire.sched, WEIR_SCHED_CLASSES_ALL);
	struct sched_sender *sender;
	uint32_t bytes;
	unsigned int i;

	if (!flow) {
		for (i = 0; i < j->wire.nr_senders; i++)
			assert_false(could_post(j, i));
		return;
	}
	assert_true(weir_sched_is_wanted(&j->wire.sched));
	sender = container_of(flow, struct sched_sender, flow);
	assert_true(could_post(j, (unsigned int)(sender - j->wire.senders)));
	bytes = part_of(&j->wire, sender);
	judge_choice(j, flow, bytes);
	j->posted[sender - j->wire.senders] += bytes < WEIR_SCHED_COST_MIN ? WEIR_SCHED_COST_MIN :
									     bytes;
	wire_post(&j->wire, sender);
	assert_true(!j->wire.sched.classes[flow->bundle->class].config.level ||
		    j->wire.sched.low_bytes == bytes || j->wire.sched.low_bytes <= low_most(j));
}

/* A flow comes, goes or moves: the counts of its class start over. */
static void judge_turn(struct judge *j)
{
	unsigned int i, k = draw(j, j->wire.nr_senders);
	struct weir_flow *flow = &j->wire.senders[k].flow;

	if (draw(j, 3) == 0)
		weir_sched_flow_move(&j->wire.sched, flow,
				     &j->wire.bundles[flow->bundle->class][draw(j, BUNDLES)]);
	else if (flow->turn.is_ready)
		weir_sched_idle(&j->wire.sched, flow);
	else
		weir_sched_ready(&j->wire.sched, flow);
	for (i = 0; i < j->wire.nr_senders; i++)
		if (j->wire.senders[i].flow.bundle->class == flow->bundle->class)
			j->posted[i] = 0;
	/* A class that goes and comes again between two posts has begun to wait anew. */
	if (!class_could_post(j, flow->bundle->class))
		j->passed[flow->bundle->class] = 0;
}

/* Flows use several QPs: WRs may arrive in another order than posted. */
static void judge_arrive(struct judge *j)
{
	struct wire *w = &j->wire;
	unsigned int k = (w->first + draw(j, w->count)) % WIRE_MAX;
	struct sched_wr wr = w->wrs[k];

	w->wrs[k] = w->wrs[w->first];
	w->wrs[w->first] = wr;
	wire_arrive(w);
}

static void judge_run(uint64_t seed)
{
	struct weir_sched_config configs[] = { fair, fair, fair };
	struct judge j = { .seed = seed };
	unsigned int i;

	configs[1].level = 1;
	configs[1].pass_bytes_max = draw(&j, 2) ? 0 : 4 * SEGMENT;
	configs[2].level = draw(&j, 2) ? 1 : 2;
	configs[2].pass_bytes_max = 8 * SEGMENT;
	configs[2].wrs_max = 1 + draw(&j, 8);
	wire_init(&j.wire, configs, 3, (uint64_t)draw(&j, 12) * 20000);
	for (i = 0; i < 3 * BUNDLES; i++)
		weir_sched_bundle_set_weight(&j.wire.bundles[i / BUNDLES][i % BUNDLES],
					     (uint16_t)(1 + draw(&j, 4)));
	for (i = 0; i < 3 + draw(&j, FLOWS_MAX - 3); i++)
		wire_add_to(&j.wire, &j.wire.bundles[draw(&j, 3)][draw(&j, BUNDLES)],
			    (uint16_t)(1 + draw(&j, 4)), 1 + draw(&j, 4 * SEGMENT));
	for (i = 0; i < 3000; i++) {
		unsigned int what = draw(&j, 100);

		if (what < 48)
			judge_post(&j);
		else if (what < 99 && j.wire.count)
			judge_arrive(&j);
		else if (what == 99)
			judge_turn(&j);
		judge_limits(&j);
		judge_shares(&j);
	}
}

static void whatever_comes_each_step_is_right(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 100; seed++)
		judge_run(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_weights_share_equally_whatever_the_size_of_their_messages),
		cmocka_unit_test(weights_hold_whatever_the_limits_in_flight),
		cmocka_unit_test(bundles_share_by_their_weights_however_many_flows_they_have),
		cmocka_unit_test(another_weight_of_a_bundle_holds_from_its_next_round_on),
		cmocka_unit_test(a_moved_flow_has_its_share_of_the_new_bundle),
		cmocka_unit_test(a_move_brings_no_new_quantum),
		cmocka_unit_test(a_moved_flow_takes_its_wrs_along),
		cmocka_unit_test(a_newcomers_bundle_waits_for_one_segment_of_each_bundle),
		cmocka_unit_test(a_leaving_flow_does_not_block_its_bundle),
		cmocka_unit_test(classes_of_a_level_share_by_their_weights),
		cmocka_unit_test(a_class_that_was_away_has_no_claim_and_no_debt),
		cmocka_unit_test(round_robin_gives_turns_and_does_not_look_at_bytes),
		cmocka_unit_test(a_strict_request_waits_for_one_segment_of_each_flow),
		cmocka_unit_test(a_low_flow_that_is_alone_fills_the_wire),
		cmocka_unit_test(a_lone_flow_leaves_others_their_room),
		cmocka_unit_test(long_segments_have_their_share_beside_short_ones),
		cmocka_unit_test(a_short_segment_goes_where_a_long_one_has_no_room),
		cmocka_unit_test(a_newcomer_waits_for_one_segment_of_each_flow),
		cmocka_unit_test(leaving_and_returning_brings_no_advantage),
		cmocka_unit_test(a_low_level_is_passed_by_so_many_bytes_and_no_more),
		cmocka_unit_test(a_class_without_room_lets_the_others_go),
		cmocka_unit_test(a_ceiling_leaves_weights_as_they_are),
		cmocka_unit_test(an_idle_flow_is_not_held),
		cmocka_unit_test(a_paused_bundle_makes_no_room_for_others),
		cmocka_unit_test(a_hundred_thousand_flows_take_turns),
		cmocka_unit_test(refuses_values_out_of_range),
		cmocka_unit_test(whatever_comes_each_step_is_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
