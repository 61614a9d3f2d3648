/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Coded extents against a naive account: a world of members with memory. Writers die at any step
 * of a write, repair or opening. A fragment is a number, made of stripe, version and shard, or
 * SPOILED: then a read notices once, and a repair that ends well makes it right. A read
 * must give the last version done. An opening must find a version, whole in all members that count,
 * from the last done to the last begun.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/rng.h"
#include "core/volume/coded.h"

#define SEEDS 2000u
#define STEPS 3000u
#define STRIPES 5u
#define PLACES 7u
#define OPS 4u
#define MEMBERS_MAX (2 * WEIR_EXTENTS_WIDTH_MAX)
#define SPOILED UINT64_MAX /* unlike new memory, which is zeroes */

/**
 * struct member - a donor's part in the group
 * @is_used: in the map; @counts: serves, or is reported and may serve at any time
 * @slot: in the writer's extent, or -1
 * @is_noticed: the writer knows that the fragment is SPOILED
 */
struct member {
	bool is_used, counts;
	uint8_t shard;
	int slot;
	struct weir_coded_record record[PLACES];
	uint64_t fragment[PLACES];
	bool is_noticed[PLACES];
};

enum coded_op { OP_NONE, OP_WRITE, OP_REPAIR };

/* A write or repair under way. @left: slots whose fragment, or record if @has_data, is to come */
struct op {
	enum coded_op kind;
	uint32_t stripe;
	uint64_t version;
	bool has_data;
	uint16_t slots, left;
	struct weir_coded_write w;
};

/**
 * struct coded_world - the world
 * @begun, @done: versions of each stripe; a stripe without a version is zeroes. @dead: begun when
 *	the writer opened the extent
 * @epoch: of the writer; @eager: how often it writes
 */
struct coded_world {
	uint64_t rng;
	struct weir_coded_layout layout;
	struct weir_extents v;
	struct weir_extent extent;
	struct weir_coded_extent c;
	struct weir_coded_place place[PLACES];
	struct weir_coded_record record[STRIPES];
	uint32_t current[STRIPES];
	uint32_t sum[STRIPES * WEIR_EXTENTS_WIDTH_MAX * WEIR_CODED_FRAGMENT_PAGES];
	struct member member[MEMBERS_MAX];
	struct op op[OPS];
	uint64_t begun[STRIPES], done[STRIPES], dead[STRIPES];
	uint64_t epoch;
	uint32_t eager;
	uint64_t opened, written, repaired, read, promoted, healed, failed;
};

static uint32_t below(struct coded_world *w, uint32_t count)
{
	return (uint32_t)weir_rng_scale(weir_rng_next(&w->rng), count);
}

static uint64_t content(uint32_t stripe, uint64_t version, uint8_t shard)
{
	return version * 1000 + stripe * 10 + shard;
}

static struct member *at_slot(struct coded_world *w, uint8_t slot)
{
	for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
		if (w->member[i].slot == slot)
			return &w->member[i];
	}
	return NULL;
}

static uint8_t count_counting(struct coded_world *w)
{
	uint8_t count = 0;

	for (uint32_t i = 0; i < MEMBERS_MAX; i++)
		count += w->member[i].is_used && w->member[i].counts;
	return count;
}

/* The members that count and have the stripe right, but for @without. */
static uint8_t count_right(struct coded_world *w, uint32_t stripe, const struct member *without)
{
	uint32_t place = w->current[stripe];
	uint8_t count = 0;

	for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
		const struct member *m = &w->member[i];

		count += m != without && m->is_used && m->counts &&
			 (place == WEIR_CODED_NO_PLACE ||
			  (m->fragment[place] != SPOILED && !m->is_noticed[place]));
	}
	return count;
}

static void forget_notices(struct coded_world *w, uint32_t place)
{
	for (uint32_t i = 0; i < MEMBERS_MAX; i++)
		w->member[i].is_noticed[place] = false;
}

static bool is_busy(const struct coded_world *w, uint32_t stripe)
{
	for (uint32_t i = 0; i < OPS; i++) {
		if (w->op[i].kind && w->op[i].stripe == stripe)
			return true;
	}
	return false;
}

static struct op *unused_op(struct coded_world *w)
{
	for (uint32_t i = 0; i < OPS; i++) {
		if (!w->op[i].kind)
			return &w->op[i];
	}
	return NULL;
}

static void hold(struct coded_world *w, struct op *op, uint16_t slots)
{
	op->slots = op->left = slots;
	weir_coded_hold(&w->v, 0, slots);
}

static void begin_write(struct coded_world *w)
{
	uint32_t sums[WEIR_EXTENTS_WIDTH_MAX] = { 0 }, stripe = below(w, STRIPES);
	uint16_t slots = weir_coded_live(&w->v, 0);
	struct op *op = unused_op(w);

	if (!op || is_busy(w, stripe) ||
	    weir_coded_begin(&w->layout, &w->c, 0, stripe, w->epoch, sums, slots, &op->w))
		return;
	op->kind = OP_WRITE;
	op->stripe = stripe;
	op->version = ++w->begun[stripe];
	op->has_data = false;
	forget_notices(w, op->w.place);
	hold(w, op, slots);
}

static void begin_repair(struct coded_world *w)
{
	uint32_t extent = 0, stripe = below(w, STRIPES);
	struct op *op = unused_op(w);

	if (!op || !weir_coded_next_repair(&w->layout, &w->v, &w->c, &extent, &stripe) ||
	    is_busy(w, stripe))
		return;
	if (!below(w, 8)) {
		weir_coded_repaired(&w->c, stripe, 0);
		w->failed++;
		return;
	}
	*op = (struct op){ .kind = OP_REPAIR,
			   .stripe = stripe,
			   .version = w->done[stripe],
			   .w = { w->current[stripe], w->record[stripe] } };
	hold(w, op, weir_coded_lacking(&w->v, &w->c, 0, stripe));
}

static void end_op(struct coded_world *w, struct op *op)
{
	if (op->kind == OP_WRITE) {
		weir_coded_commit(&w->c, &op->w);
		w->done[op->stripe] = op->version;
		w->written++;
	} else {
		weir_coded_repaired(&w->c, op->stripe, op->slots);
		for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
			if (w->member[i].slot >= 0 && op->slots >> w->member[i].slot & 1)
				w->member[i].is_noticed[op->w.place] = false;
		}
		w->repaired++;
	}
	weir_coded_release(&w->v, 0, op->slots);
	op->kind = OP_NONE;
}

static void drop(struct coded_world *w, struct op *op, uint16_t slots)
{
	if (op->kind == OP_WRITE)
		weir_coded_drop(&w->c, &op->w, slots);
	op->slots &= (uint16_t)~slots;
	op->left &= (uint16_t)~slots;
	weir_coded_release(&w->v, 0, slots);
}

/* One fragment or record of an operation reaches its shard, or fails there. */
static void step_op(struct coded_world *w)
{
	struct op *op = &w->op[below(w, OPS)];
	uint8_t slot = (uint8_t)below(w, w->v.slots);
	struct member *m = at_slot(w, slot);

	if (!op->kind)
		return;
	if (op->left >> slot & 1) {
		/* A shard without a member gets no more. A FILLING shard may miss the write. */
		if (!m || (w->extent.replica[slot].state == WEIR_REPLICA_FILLING &&
			   !below(w, 16))) {
			drop(w, op, (uint16_t)(1u << slot));
			return;
		}
		if (op->has_data) {
			m->record[op->w.place] = op->w.record;
		} else {
			w->healed += op->kind == OP_REPAIR && m->is_noticed[op->w.place];
			m->fragment[op->w.place] = content(op->stripe, op->version, m->shard);
		}
		op->left &= (uint16_t)~(1u << slot);
	}
	if (op->left)
		return;
	if (op->has_data) {
		end_op(w, op);
		return;
	}
	op->has_data = true;
	op->left = op->slots;
}

/* The map says: a member is out. Enough members stay. */
static void lose_member(struct coded_world *w)
{
	struct member *m = &w->member[below(w, MEMBERS_MAX)];

	if (!m->is_used || (m->counts && count_counting(w) <= w->layout.data))
		return;
	for (uint32_t s = 0; m->counts && s < STRIPES; s++) {
		if (count_right(w, s, m) < w->layout.data)
			return;
	}
	m->is_used = m->counts = false;
	if (m->slot >= 0)
		weir_extents_leave(&w->v, 0, (uint8_t)m->slot);
	m->slot = -1;
}

static void return_memory(struct coded_world *w)
{
	struct weir_extents_placement place;

	while (weir_extents_next_return(&w->v, UINT64_MAX, &place))
		weir_extents_returned(&w->v, &place, true);
}

static void attach(struct coded_world *w, struct member *m)
{
	uint8_t slot = 0;

	while (slot < w->v.slots && w->extent.replica[slot].state != WEIR_REPLICA_NONE)
		slot++;
	if (slot == w->v.slots)
		return;
	if (!m->counts)
		memset(m->record, 0, sizeof(m->record));
	m->slot = slot;
	weir_extents_join(&w->v, &(struct weir_extents_placement){ 0, slot, slot });
	w->extent.replica[slot].shard = m->shard;
	weir_coded_join(&w->layout, &w->c, slot);
}

/* A new member for a shard without a member. The memory is zeroed. */
static void add_member(struct coded_world *w)
{
	uint8_t shard = (uint8_t)below(w, w->layout.width);
	struct member *m = NULL;

	for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
		if (w->member[i].is_used && w->member[i].shard == shard)
			return;
		if (!w->member[i].is_used)
			m = &w->member[i];
	}
	if (!m)
		return;
	*m = (struct member){ .is_used = true, .shard = shard, .slot = -1 };
	attach(w, m);
}

/* A shard with all stripes becomes VALID, and is then reported. */
static void promote(struct coded_world *w)
{
	for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
		struct member *m = &w->member[i];

		if (!m->is_used || m->slot < 0 || m->counts)
			continue;
		if (weir_coded_is_whole(&w->layout, &w->c, (uint8_t)m->slot))
			weir_extents_trust(&w->v, 0, (uint8_t)m->slot);
		m->counts = w->extent.replica[m->slot].state == WEIR_REPLICA_VALID;
		w->promoted += m->counts;
	}
}

/* Memory fails, as long as each stripe can be read. */
static void spoil(struct coded_world *w)
{
	struct member *m = &w->member[below(w, MEMBERS_MAX)];
	uint32_t stripe = below(w, STRIPES), place = w->current[stripe];

	if (m->is_used && m->counts && place != WEIR_CODED_NO_PLACE && !is_busy(w, stripe) &&
	    count_right(w, stripe, m) >= w->layout.data)
		m->fragment[place] = SPOILED;
}

/* Return: whether a fragment is as written. The writer is told otherwise, and only once. */
static bool accept(struct coded_world *w, uint32_t stripe, uint8_t slot, uint8_t shard)
{
	uint32_t place = w->current[stripe];
	struct member *m = at_slot(w, slot);

	if (m->fragment[place] != SPOILED) {
		assert_int_equal(m->fragment[place], content(stripe, w->done[stripe], shard));
		return true;
	}
	assert_false(m->is_noticed[place]);
	m->is_noticed[place] = true;
	weir_coded_distrust(&w->c, stripe, (uint16_t)(1u << slot));
	return false;
}

static void read_stripe(struct coded_world *w)
{
	uint32_t stripe = below(w, STRIPES);
	uint16_t wanted = (uint16_t)(1 + below(w, (1u << w->layout.data) - 1));
	uint16_t tried = (uint16_t)(1u << below(w, w->v.slots));
	struct weir_coded_set set;

	if (w->current[stripe] == WEIR_CODED_NO_PLACE) {
		assert_int_equal(w->done[stripe], 0);
		return;
	}
	for (uint8_t i = 0; i < w->v.nr_donors; i++) {
		if (below(w, 4))
			weir_extents_donor_up(&w->v, i);
		else
			weir_extents_donor_slow(&w->v, i);
	}
	if (weir_coded_choose(&w->layout, &w->v, &w->c, 0, stripe, 0, wanted, &set))
		fail_msg("stripe %u cannot be read", stripe);
	weir_coded_release(&w->v, 0, set.slots);
	if (weir_coded_choose(&w->layout, &w->v, &w->c, 0, stripe, tried, wanted, &set))
		return;
	assert_false(set.slots & tried);
	for (uint8_t shard = 0; shard < w->layout.width; shard++) {
		if (set.shards >> shard & 1 && !is_busy(w, stripe))
			accept(w, stripe, set.slot[shard], shard);
	}
	assert_true(set.is_direct ? set.shards == wanted :
				    __builtin_popcount(set.shards) == w->layout.data);
	weir_coded_release(&w->v, 0, set.slots);
	w->read++;
}

/* The version by the records. All members that count must have the same. */
static uint64_t version_at(struct coded_world *w, uint32_t stripe)
{
	uint32_t place = w->current[stripe];
	uint64_t version = 0;

	if (place == WEIR_CODED_NO_PLACE)
		return 0;
	for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
		struct member *m = &w->member[i];

		if (!m->is_used || !m->counts || m->fragment[place] == SPOILED)
			continue;
		if (!version)
			version = m->fragment[place] / 1000;
		assert_int_equal(m->fragment[place], content(stripe, version, m->shard));
	}
	return version;
}

/* Return: whether the writer lives to use the extent. */
static bool complete_records(struct coded_world *w)
{
	for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
		struct member *m = &w->member[i];

		for (uint32_t s = 0; m->is_used && m->counts && s < STRIPES; s++) {
			if (!weir_coded_lacks_record(&w->c, s, m->record))
				continue;
			if (!below(w, 8))
				return false;
			m->record[w->current[s]] = w->record[s];
		}
	}
	return true;
}

static void recover(struct coded_world *w)
{
	const struct weir_coded_record *records[WEIR_EXTENTS_SLOTS_MAX] = { NULL };
	uint16_t slots = 0;

	for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
		struct member *m = &w->member[i];

		if (m->slot < 0 || !m->counts)
			continue;
		records[m->slot] = m->record;
		slots |= (uint16_t)(1u << m->slot);
	}
	assert_int_equal(weir_coded_recover(&w->layout, &w->c, 0, records, slots), 0);
}

/* Another writer, after the death of the last. */
static void open_again(struct coded_world *w)
{
	do {
		w->epoch++;
		memset(w->op, 0, sizeof(w->op));
		memset(&w->extent, 0, sizeof(w->extent));
		weir_coded_init(&w->layout, &w->c);
		for (uint32_t i = 0; i < PLACES; i++)
			forget_notices(w, i);
		for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
			w->member[i].slot = -1;
			if (w->member[i].is_used)
				attach(w, &w->member[i]);
		}
		recover(w);
		w->opened++;
	} while (!complete_records(w));
	for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
		if (w->member[i].counts && w->member[i].slot >= 0)
			weir_extents_trust(&w->v, 0, (uint8_t)w->member[i].slot);
	}
	w->eager = below(w, 13);
	for (uint32_t s = 0; s < STRIPES; s++) {
		uint64_t version = version_at(w, s);

		/* A version ruled out by an earlier opening never comes back. */
		if (version != w->done[s])
			assert_in_range(version, w->dead[s] + 1, w->begun[s]);
		assert_true(version >= w->done[s]);
		w->done[s] = version;
		w->dead[s] = w->begun[s];
	}
}

static void init(struct coded_world *w, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->rng = seed;
	weir_coded_lay_out(&w->layout, (uint8_t)(2 + below(w, 3)), (uint8_t)(1 + below(w, 2)), 0);
	w->layout.stripes = STRIPES;
	w->layout.places = PLACES;
	w->c = (struct weir_coded_extent){ .place = w->place,
					   .record = w->record,
					   .current = w->current,
					   .sum = w->sum };
	assert_int_equal(weir_extents_init(&w->v, &w->extent, 1, 1, WEIR_EXTENTS_SLOTS_MAX,
					   w->layout.width),
			 0);
	for (uint8_t i = 0; i < MEMBERS_MAX; i++)
		w->member[i] = (struct member){ .is_used = i < w->layout.width,
						.counts = i < w->layout.width,
						.shard = i,
						.slot = -1 };
	open_again(w);
}

static void step(struct coded_world *w)
{
	uint32_t what = below(w, 64);

	if (what < w->eager)
		begin_write(w);
	else if (what < 15)
		read_stripe(w);
	else if (what < 20)
		begin_repair(w);
	else if (what == 20 && !below(w, 2))
		lose_member(w);
	else if (what == 21)
		add_member(w);
	else if (what == 22)
		promote(w);
	else if (what == 23 && !below(w, 3))
		open_again(w);
	else if (what == 24)
		return_memory(w);
	else if (what == 25)
		spoil(w);
	else
		step_op(w);
}

static void every_stripe_is_old_or_new_whoever_dies(void **state)
{
	uint64_t opened = 0, written = 0, repaired = 0, read = 0, promoted = 0, healed = 0;
	uint64_t failed = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct coded_world w;

		init(&w, seed);
		for (uint32_t i = 0; i < STEPS; i++)
			step(&w);
		open_again(&w);
		opened += w.opened;
		written += w.written;
		repaired += w.repaired;
		read += w.read;
		promoted += w.promoted;
		healed += w.healed;
		failed += w.failed;
	}
	assert_true(opened > SEEDS && written > 10 * SEEDS && repaired > SEEDS && read > SEEDS &&
		    promoted > SEEDS / 4 && healed > SEEDS && failed > SEEDS / 4);
}

static void each_read_of_a_stripe_with_wrong_bytes_causes_one_repair(void **state)
{
	uint32_t sums[WEIR_EXTENTS_WIDTH_MAX] = { 0 }, extent = 0, stripe = 0;
	struct weir_coded_write write;
	struct weir_coded_set set;
	struct coded_world w;
	uint16_t all;

	(void)state;
	init(&w, 1);
	all = weir_coded_live(&w.v, 0);
	assert_int_equal(weir_coded_begin(&w.layout, &w.c, 0, 3, 9, sums, all, &write), 0);
	weir_coded_commit(&w.c, &write);
	assert_false(weir_coded_next_repair(&w.layout, &w.v, &w.c, &extent, &stripe));
	weir_coded_distrust(&w.c, 3, 1);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(weir_coded_next_repair(&w.layout, &w.v, &w.c, &extent, &stripe));
		assert_int_equal(stripe, 3);
		assert_int_equal(weir_coded_lacking(&w.v, &w.c, 0, 3), 1);
		assert_int_equal(weir_coded_choose(&w.layout, &w.v, &w.c, 0, 3, 0, 1, &set), 0);
		assert_false(set.slots & 1);
		weir_coded_release(&w.v, 0, set.slots);
		weir_coded_repaired(&w.c, 3, (uint16_t)i); /* the first repair fails */
		assert_false(weir_coded_next_repair(&w.layout, &w.v, &w.c, &extent, &stripe));
		assert_int_equal(weir_coded_choose(&w.layout, &w.v, &w.c, 0, 3, 0, 1, &set), 0);
		assert_int_equal(set.slots & 1, i);
		weir_coded_release(&w.v, 0, set.slots);
	}
	assert_false(weir_coded_next_repair(&w.layout, &w.v, &w.c, &extent, &stripe));
}

static void a_record_of_another_place_or_volume_is_none(void **state)
{
	struct weir_coded_record records[2][PLACES] = { 0 };
	const struct weir_coded_record *tables[] = { records[0], records[1] };
	struct weir_coded_write write;
	uint32_t sums[WEIR_EXTENTS_WIDTH_MAX] = { 0 };
	struct coded_world w;

	(void)state;
	init(&w, 1);
	assert_int_equal(weir_coded_begin(&w.layout, &w.c, 0, 3, 9, sums, 3, &write), 0);
	records[0][write.place] = write.record;
	assert_int_equal(weir_coded_recover(&w.layout, &w.c, 0, tables, 3), 0);
	assert_int_equal(w.current[3], write.place);
	assert_false(weir_coded_lacks_record(&w.c, 3, records[0]));
	assert_true(weir_coded_lacks_record(&w.c, 3, records[1]));
	assert_int_equal(weir_coded_recover(&w.layout, &w.c, 1, tables, 3), 0);
	assert_int_equal(w.current[3], WEIR_CODED_NO_PLACE);
	w.layout.volume++;
	assert_int_equal(weir_coded_recover(&w.layout, &w.c, 0, tables, 3), 0);
	assert_int_equal(w.current[3], WEIR_CODED_NO_PLACE);
	w.layout.volume--;
	records[0][write.place + 1] = write.record;
	records[0][write.place].stripe = 4;
	assert_int_equal(weir_coded_recover(&w.layout, &w.c, 0, tables, 3), 0);
	assert_int_equal(w.current[3], WEIR_CODED_NO_PLACE);
	records[0][write.place] = write.record;
	records[0][write.place].sum[1]++;
	assert_int_equal(weir_coded_recover(&w.layout, &w.c, 0, tables, 3), 0);
	assert_int_equal(w.current[3], WEIR_CODED_NO_PLACE);
}

static void an_extent_has_a_stripe_at_least_and_places_to_spare(void **state)
{
	static const struct {
		uint8_t data, spare;
		uint32_t pages, stripes, places;
	} cases[] = {
		{ 4, 2, 1024, 64, 66 },
		{ 4, 2, 64, 4, 6 },
		{ 3, 2, 1024, 85, 87 },
		{ 7, 1, 16, 1, 3 },
		{ 4, 2, 16384, 1024, 1056 },
	};
	struct weir_coded_layout layout;

	(void)state;
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		weir_coded_lay_out(&layout, cases[i].data, cases[i].spare, cases[i].pages);
		assert_int_equal(layout.stripes, cases[i].stripes);
		assert_int_equal(layout.places, cases[i].places);
	}
	assert_int_equal(weir_coded_place_page(&layout, layout.places),
			 weir_coded_shard_pages(&layout));
	assert_true(weir_coded_record_pages(&layout) * 4096ull >=
		    layout.places * sizeof(struct weir_coded_record));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_stripe_is_old_or_new_whoever_dies),
		cmocka_unit_test(each_read_of_a_stripe_with_wrong_bytes_causes_one_repair),
		cmocka_unit_test(a_record_of_another_place_or_volume_is_none),
		cmocka_unit_test(an_extent_has_a_stripe_at_least_and_places_to_spare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
