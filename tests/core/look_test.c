/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "bench.h"
#include "core/look.h"

#define SLOTS 128u
#define US 1000ull

/* One end that sends, and its peer as far as it is seen: no slot is given back unless a test says so. */
struct end {
	struct weir_look look;
	struct weir_confirm_out out;
	uint64_t bits[2], peer[2], memory[128];
	uint64_t now_ns;
};

static const struct weir_look_ring SILENT;

static void end_init(struct end *e, uint64_t slot_bytes)
{
	*e = (struct end){ .now_ns = 1000000000 };
	assert_true(weir_confirm_out_bytes(SLOTS) <= sizeof(e->memory));
	weir_confirm_out_init(&e->out, SLOTS, e->bits, e->memory);
	weir_look_init(&e->look, SLOTS, slot_bytes, 40);
}

static void put(struct end *e, unsigned int count)
{
	while (count--)
		weir_confirm_out_commit(&e->out, (uint32_t)weir_confirm_out_acquire(&e->out));
}

/* Slots that are told of. */
static void put_told(struct end *e, unsigned int count)
{
	put(e, count);
	weir_confirm_out_sent(&e->out);
}

static void post(struct end *e)
{
	weir_confirm_out_look(&e->out);
	weir_look_posted(&e->look, e->now_ns);
}

/* It was waited for all the time, and finds @found slots of the peer's. */
static void back(struct end *e, uint64_t took_ns, uint32_t found)
{
	uint64_t arrived = e->out.arrived;
	int freed;

	e->now_ns += took_ns;
	weir_look_polled(&e->look, e->now_ns);
	freed = weir_confirm_out_looked(&e->out, e->peer);
	assert_true(freed >= 0);
	weir_look_back(&e->look, &e->out, found, (uint32_t)freed, (uint32_t)(e->out.arrived - arrived),
		       e->now_ns);
}

static void look(struct end *e, uint64_t took_ns, uint32_t found)
{
	post(e);
	back(e, took_ns, found);
}

/* All that was put arrives, and is given back. */
static void drain(struct end *e)
{
	look(e, 1 * US, 0);
	memcpy(e->peer, e->bits, sizeof(e->peer));
	look(e, 1 * US, 0);
	assert_int_equal(e->out.arrived, e->out.freed);
}

static bool is_due(const struct end *e, struct weir_look_ring ring)
{
	return weir_look_is_due(&e->look, &e->out, ring, e->now_ns);
}

static void what_comes_alone_is_shown_at_once(void **state)
{
	struct end e;

	(void)state;
	end_init(&e, 512);
	assert_false(is_due(&e, SILENT)); /* there is nothing to show */
	put(&e, 1);
	assert_true(is_due(&e, SILENT));
	post(&e);
	assert_false(is_due(&e, SILENT)); /* one at a time */
	back(&e, 1 * US, 0);
	assert_false(is_due(&e, SILENT));
}

/* Who has something to do yet does not wait: what comes meanwhile is shown together. */
static void a_busy_peer_is_shown_many_together(void **state)
{
	struct end e;

	(void)state;
	end_init(&e, 512);
	put(&e, 8);
	look(&e, 1 * US, 0);
	e.now_ns += 600 * US;
	put(&e, 4);
	assert_false(is_due(&e, SILENT)); /* fewer than it has */
	assert_true(is_due(&e, (struct weir_look_ring){ 1, 64 })); /* it is through with those */
	put(&e, 4);
	assert_true(is_due(&e, SILENT)); /* as many, and long ago */
	put(&e, 32);
	look(&e, 1 * US, 0);
	put(&e, 31);
	e.now_ns += 600 * US;
	assert_false(is_due(&e, SILENT));
	put(&e, 1);
	assert_true(is_due(&e, SILENT)); /* so many are never left for long */
}

static void less_than_a_busy_peer_has_is_shown_in_the_end(void **state)
{
	struct end e;

	(void)state;
	end_init(&e, 512);
	put(&e, 8);
	look(&e, 1 * US, 0);
	put(&e, 1);
	e.now_ns += 4 * 512 * US - 1;
	assert_false(is_due(&e, SILENT));
	e.now_ns += 1;
	assert_true(is_due(&e, SILENT));
}

static void free_slots_are_looked_for_when_few_are_left(void **state)
{
	struct end e;

	(void)state;
	end_init(&e, 512);
	put_told(&e, SLOTS * 60 / 100);
	assert_false(is_due(&e, SILENT));
	put_told(&e, 1);
	assert_true(is_due(&e, SILENT)); /* fewer than 40 % */
	assert_false(is_due(&e, (struct weir_look_ring){ 1, WEIR_LOOK_TELLS_MAX })); /* it sleeps */
	assert_true(is_due(&e, (struct weir_look_ring){ 1, 1 }));
	look(&e, 1 * US, 0);
	e.now_ns += 1000 * US;
	assert_false(is_due(&e, SILENT)); /* in vain: not before half as many are left */
	put_told(&e, e.out.free / 2 + 1);
	assert_true(is_due(&e, SILENT));
}

static void large_slots_are_looked_for_while_caches_have_them(void **state)
{
	struct end e;

	(void)state;
	end_init(&e, 1 << 20);
	put_told(&e, 3);
	assert_false(is_due(&e, SILENT));
	put_told(&e, 1);
	assert_true(is_due(&e, SILENT));
}

/* A peer that rings for each message is told of each, and of as many as its ring allows. */
static void who_rings_often_is_told(void **state)
{
	struct end e;
	uint64_t ring;

	(void)state;
	end_init(&e, 512);
	assert_int_equal(weir_look_tells(&e.look, &e.out, SILENT, 1, e.now_ns), 0);
	for (ring = 1; ring <= 3; ring++) {
		e.now_ns += 1000 * US;
		(void)weir_look_tells(&e.look, &e.out, (struct weir_look_ring){ ring, 7 }, 1, e.now_ns);
		put_told(&e, 1);
	}
	e.now_ns += 1000 * US;
	assert_int_equal(weir_look_tells(&e.look, &e.out, (struct weir_look_ring){ 9, 7 }, 1, e.now_ns), 7);
	assert_int_equal(weir_look_tells(&e.look, &e.out, (struct weir_look_ring){ 9, 7 }, 5, e.now_ns), 0);
	assert_int_equal(weir_look_tells(&e.look, &e.out, SILENT, 1, e.now_ns), 0);
	put(&e, 1); /* what is not shown yet comes first */
	assert_int_equal(weir_look_tells(&e.look, &e.out, (struct weir_look_ring){ 9, 7 }, 1, e.now_ns), 0);
}

static void who_rings_after_many_is_shown_them_together(void **state)
{
	struct end e;
	uint64_t ring;

	(void)state;
	end_init(&e, 512);
	for (ring = 1; ring < 9; ring++) {
		put(&e, 16);
		drain(&e);
		e.now_ns += 1000 * US;
		assert_int_equal(weir_look_tells(&e.look, &e.out, (struct weir_look_ring){ ring, 64 }, 1,
						 e.now_ns), 0);
	}
}

/* Told of many one after the other, quickly: whether a look would show them together is tried. */
static void a_ring_that_is_followed_by_many_is_doubted(void **state)
{
	const struct weir_look_ring ring = { 1, 64 };
	struct end e;
	unsigned int told;

	(void)state;
	end_init(&e, 512);
	for (told = 0; told < SLOTS && weir_look_tells(&e.look, &e.out, ring, 1, e.now_ns); told++) {
		e.now_ns += 1 * US;
		put_told(&e, 1);
	}
	assert_in_range(told, 8, 16);
	/* Slowly: they would be alone anyhow. */
	end_init(&e, 512);
	for (told = 0; told < SLOTS && weir_look_tells(&e.look, &e.out, ring, 1, e.now_ns); told++) {
		e.now_ns += 600 * US;
		put_told(&e, 1);
	}
	assert_int_equal(told, SLOTS);
}

/* Where looks take long. */
static void whose_looks_take_long_is_told_of_all(void **state)
{
	const struct weir_look_ring ring = { 1, 64 };
	struct end e;
	unsigned int told;

	(void)state;
	end_init(&e, 512);
	look(&e, 40 * US, 1);
	assert_true(weir_look_is_slow(&e.look));
	for (told = 0; told < SLOTS && weir_look_tells(&e.look, &e.out, ring, 1, e.now_ns); told++) {
		e.now_ns += 1 * US;
		put_told(&e, 1);
	}
	assert_int_equal(told, SLOTS);
	assert_false(weir_look_is_better_told(&e.look)); /* it has found something */
	look(&e, 40 * US, 0);
	assert_true(weir_look_is_better_told(&e.look));
	weir_look_woken(&e.look);
	assert_false(weir_look_is_better_told(&e.look));
}

/* Nobody has polled since it was posted. */
static void unattended(struct end *e, uint64_t took_ns)
{
	post(e);
	e->now_ns += took_ns;
	assert_int_equal(weir_confirm_out_looked(&e->out, e->peer), 0);
	weir_look_back(&e->look, &e->out, 0, 0, 0, e->now_ns);
}

/* A device that is done with a look when it is posted never has one waited for. */
static void a_look_that_is_back_at_once_counts_though_nobody_waited(void **state)
{
	struct end e;

	(void)state;
	end_init(&e, 512);
	unattended(&e, 2 * US);
	assert_int_equal(e.look.took_ns, 2 * US);
	unattended(&e, 20 * US);
	assert_int_equal(e.look.took_ns, 2 * US);
}

/* What was put waits for as long as sixteen looks take, up to a bound; who did not wait has learnt nothing. */
static void how_long_looks_take_is_learnt_from_those_that_are_waited_for(void **state)
{
	struct end e;

	(void)state;
	end_init(&e, 512);
	unattended(&e, 400 * US);
	assert_int_equal(e.look.took_ns, 0);
	look(&e, 100 * US, 0);
	assert_int_equal(e.look.took_ns, 100 * US);
	assert_int_equal(e.look.confirm.gap_ns_max, 1600 * US);
	look(&e, 900 * US, 0);
	assert_int_equal(e.look.took_ns, 200 * US);
	look(&e, 100000 * US, 0);
	assert_int_equal(e.look.confirm.gap_ns_max, WEIR_LOOK_CONFIRM_NS_MAX);
}

/* Nothing is put meanwhile. */
static void who_has_no_slot_left_is_not_patient(void **state)
{
	struct end e;
	unsigned int i;

	(void)state;
	end_init(&e, 512);
	for (i = 0; i < 12; i++)
		look(&e, 2 * US, 0);
	assert_true(e.look.room.gap_ns > 100 * US);
	e.now_ns += 8 * US - 1;
	assert_false(weir_look_is_wanted(&e.look, WEIR_LOOK_ROOM, false, e.now_ns));
	e.now_ns += 1;
	assert_true(weir_look_is_wanted(&e.look, WEIR_LOOK_ROOM, false, e.now_ns));
}

static void who_has_rung_looks_no_more_until_there_is_a_sign(void **state)
{
	struct end e;
	unsigned int i;

	(void)state;
	end_init(&e, 512);
	assert_true(weir_look_is_wanted(&e.look, WEIR_LOOK_NEWS, false, e.now_ns));
	weir_look_rung(&e.look, WEIR_LOOK_NEWS);
	post(&e);
	assert_false(weir_look_has_asked(&e.look, WEIR_LOOK_NEWS, false)); /* that look may find it */
	assert_false(weir_look_is_wanted(&e.look, WEIR_LOOK_NEWS, true, e.now_ns));
	back(&e, 1 * US, 0);
	assert_true(weir_look_has_asked(&e.look, WEIR_LOOK_NEWS, false));
	assert_false(weir_look_has_asked(&e.look, WEIR_LOOK_ROOM, false));
	assert_false(weir_look_is_wanted(&e.look, WEIR_LOOK_NEWS, false, e.now_ns));
	assert_true(weir_look_is_wanted(&e.look, WEIR_LOOK_NEWS, true, e.now_ns));
	weir_look_woken(&e.look);
	assert_true(weir_look_is_wanted(&e.look, WEIR_LOOK_NEWS, false, e.now_ns));
	weir_look_rung(&e.look, WEIR_LOOK_NEWS);
	for (i = 0; i < WEIR_LOOK_TELLS_MAX; i++) {
		assert_int_equal(e.look.rung, WEIR_LOOK_NEWS);
		weir_look_told(&e.look);
	}
	assert_int_equal(e.look.rung, 0); /* and a ring is good for so many */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_alone_is_shown_at_once),
		cmocka_unit_test(a_busy_peer_is_shown_many_together),
		cmocka_unit_test(less_than_a_busy_peer_has_is_shown_in_the_end),
		cmocka_unit_test(free_slots_are_looked_for_when_few_are_left),
		cmocka_unit_test(large_slots_are_looked_for_while_caches_have_them),
		cmocka_unit_test(who_rings_often_is_told),
		cmocka_unit_test(who_rings_after_many_is_shown_them_together),
		cmocka_unit_test(a_ring_that_is_followed_by_many_is_doubted),
		cmocka_unit_test(whose_looks_take_long_is_told_of_all),
		cmocka_unit_test(a_look_that_is_back_at_once_counts_though_nobody_waited),
		cmocka_unit_test(how_long_looks_take_is_learnt_from_those_that_are_waited_for),
		cmocka_unit_test(who_has_no_slot_left_is_not_patient),
		cmocka_unit_test(who_has_rung_looks_no_more_until_there_is_a_sign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
