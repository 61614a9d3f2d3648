/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wrong bytes at a copy of a mapped volume: the steps of a repair, and a world of writes, reads,
 * fills and repairs in random order. Writes there miss copies and begin again, copies leave and
 * come back empty, and memory rots. At the end each copy must have each completed write.
 */
#include <stdio.h>

#include "tests/support/engine_bench.h"
#include "core/volume/extents.h"

#define PAGES 100u
#define SLOTS 3u
#define CHUNK WEIR_EXTENTS_CHUNK_PAGES

struct repair_fixture {
	struct weir_extents v;
	struct weir_extent extent;
	uint32_t sum[PAGES];
};

/* Three copies, all VALID; page i has the checksum 2 * i + 2. */
static void begin(struct repair_fixture *s)
{
	struct weir_extents_write write;
	uint32_t sums[PAGES];

	memset(s, 0, sizeof(*s));
	s->extent.sum = s->sum;
	assert_int_equal(weir_extents_init(&s->v, &s->extent, 1, PAGES, SLOTS, SLOTS), 0);
	s->v.is_mapped = s->v.repairs = true;
	for (uint8_t slot = 0; slot < SLOTS; slot++) {
		weir_extents_donor_up(&s->v, slot);
		weir_extents_join(&s->v, &(struct weir_extents_placement){ 0, slot, slot });
		weir_extents_trust(&s->v, 0, slot);
	}
	for (uint32_t i = 0; i < PAGES; i++)
		sums[i] = 2 * i + 2;
	assert_int_equal(weir_extents_write(&s->v, &write, 0, 0, PAGES, sums), 0);
	assert_int_equal(weir_extents_write_end(&s->v, &write, 0), 0);
}

static void expect_step(struct repair_fixture *s, uint8_t what, uint8_t slot, uint32_t page,
			uint32_t pages)
{
	struct weir_extents_copy_step step;

	weir_extents_resync_next(&s->v, 0, &step);
	assert_int_equal(step.what, what);
	assert_int_equal(step.slot, slot);
	assert_int_equal(step.page, page);
	assert_int_equal(step.pages, pages);
}

static void expect_nothing(struct repair_fixture *s)
{
	struct weir_extents_copy_step step;

	weir_extents_resync_next(&s->v, 0, &step);
	assert_int_equal(step.what, WEIR_EXTENTS_COPY_NOTHING);
}

static void was_done(struct repair_fixture *s)
{
	weir_extents_resync_done(&s->v, 0, true);
}

/* The source of the step that is under way is wrong, too. */
static void was_wrong(struct repair_fixture *s, uint8_t slot)
{
	const struct weir_extents_resync *copy = &s->v.copy[0];
	struct weir_extents_copy_step step = { .what = WEIR_EXTENTS_COPY_READ,
					       .slot = slot,
					       .page = copy->page,
					       .pages = copy->pages };

	weir_extents_resync_done(&s->v, 0, weir_extents_resync_accept(&s->v, &step, false));
}

static void wrong_pages_are_replaced_and_the_copy_stays_valid(void **state)
{
	struct repair_fixture s;

	(void)state;
	begin(&s);
	assert_true(weir_extents_distrust(&s.v, 0, 0, 10, CHUNK + 2));
	assert_int_equal(weir_extents_count_valid(&s.v, 0), SLOTS);
	expect_step(&s, WEIR_EXTENTS_COPY_READ, 1, 10, CHUNK);
	assert_true(s.extent.replica[0].users && s.extent.replica[1].users);
	was_done(&s);
	expect_step(&s, WEIR_EXTENTS_COPY_WRITE, 0, 10, CHUNK);
	was_done(&s);
	expect_step(&s, WEIR_EXTENTS_COPY_READ, 1, 10 + CHUNK, 2);
	was_done(&s);
	expect_step(&s, WEIR_EXTENTS_COPY_WRITE, 0, 10 + CHUNK, 2);
	was_done(&s);
	expect_nothing(&s);
	assert_int_equal(s.v.repaired, CHUNK + 2);
	assert_int_equal(s.v.copied, 0);
	assert_int_equal(weir_extents_count_valid(&s.v, 0), SLOTS);
	assert_false(s.extent.replica[0].users || s.extent.replica[1].users);
}

static void a_newer_write_is_not_overwritten(void **state)
{
	static const uint32_t sum = 500;
	struct weir_extents_write write;
	struct repair_fixture s;

	(void)state;
	begin(&s);
	weir_extents_distrust(&s.v, 0, 2, 10, 4);
	expect_step(&s, WEIR_EXTENTS_COPY_READ, 0, 10, 4);
	assert_int_equal(weir_extents_write(&s.v, &write, 0, 12, 1, &sum), 0);
	was_done(&s);
	expect_step(&s, WEIR_EXTENTS_COPY_WRITE, 2, 10, 2);
	was_done(&s);
	expect_step(&s, WEIR_EXTENTS_COPY_WRITE, 2, 13, 1);
	was_done(&s);
	expect_nothing(&s);
	assert_int_equal(weir_extents_write_end(&s.v, &write, 0), 0);
}

static void the_pages_are_read_after_the_writes_under_way(void **state)
{
	static const uint32_t sum = 500;
	struct weir_extents_copy_step step;
	struct weir_extents_write write;
	struct repair_fixture s;

	(void)state;
	begin(&s);
	assert_int_equal(weir_extents_write(&s.v, &write, 0, 10, 1, &sum), 0);
	weir_extents_distrust(&s.v, 0, 0, 10, 1);
	weir_extents_resync_next(&s.v, 0, &step);
	assert_int_equal(step.what, WEIR_EXTENTS_COPY_WAIT);
	assert_int_equal(weir_extents_write_end(&s.v, &write, 0), 0);
	expect_step(&s, WEIR_EXTENTS_COPY_READ, 1, 10, 1);
}

static void pages_that_nobody_can_check_stay(void **state)
{
	struct repair_fixture s;

	(void)state;
	begin(&s);
	weir_extents_distrust(&s.v, 0, 0, 10, 3);
	s.sum[10] = WEIR_SUM_UNKNOWN;
	s.sum[12] = WEIR_SUM_NOTHING;
	expect_step(&s, WEIR_EXTENTS_COPY_READ, 1, 10, 3);
	was_done(&s);
	expect_step(&s, WEIR_EXTENTS_COPY_WRITE, 0, 11, 1);
}

static void a_source_that_is_wrong_gives_way_and_nothing_wrong_is_written(void **state)
{
	struct repair_fixture s;

	(void)state;
	begin(&s);
	weir_extents_distrust(&s.v, 0, 1, 10, 1);
	expect_step(&s, WEIR_EXTENTS_COPY_READ, 0, 10, 1);
	was_wrong(&s, 0);
	expect_step(&s, WEIR_EXTENTS_COPY_READ, 2, 10, 1);
	was_wrong(&s, 2);
	expect_nothing(&s); /* and no repair of the sources by the wrong copy */
	assert_false(s.extent.wrong);
	assert_int_equal(s.v.repaired, 0);
}

static void a_repair_that_fails_ends_and_the_next_notice_begins_another(void **state)
{
	struct repair_fixture s;

	(void)state;
	begin(&s);
	for (uint8_t i = 0; i < 2; i++) {
		weir_extents_distrust(&s.v, 0, 0, 10, 1);
		expect_step(&s, WEIR_EXTENTS_COPY_READ, 1, 10, 1);
		was_done(&s);
		expect_step(&s, WEIR_EXTENTS_COPY_WRITE, 0, 10, 1);
		weir_extents_resync_done(&s.v, 0, false);
		expect_nothing(&s);
		assert_int_equal(s.extent.replica[0].state, WEIR_REPLICA_VALID);
		assert_int_equal(s.extent.replica[0].users, 0);
	}
}

static void notices_of_two_copies_are_repaired_one_after_the_other(void **state)
{
	struct repair_fixture s;

	(void)state;
	begin(&s);
	weir_extents_distrust(&s.v, 0, 2, 20, 2);
	weir_extents_distrust(&s.v, 0, 1, 15, 1);
	weir_extents_distrust(&s.v, 0, 1, 23, 2);
	for (uint8_t slot = 1; slot < 3; slot++) {
		expect_step(&s, WEIR_EXTENTS_COPY_READ, 0, 15, 10);
		was_done(&s);
		expect_step(&s, WEIR_EXTENTS_COPY_WRITE, slot, 15, 10);
		was_done(&s);
	}
	expect_nothing(&s);
}

static void a_copy_that_leaves_is_not_repaired(void **state)
{
	struct repair_fixture s;

	(void)state;
	begin(&s);
	weir_extents_distrust(&s.v, 0, 0, 10, 1);
	weir_extents_leave(&s.v, 0, 0);
	expect_nothing(&s);
	weir_extents_distrust(&s.v, 0, 1, 10, CHUNK + 1);
	expect_step(&s, WEIR_EXTENTS_COPY_READ, 2, 10, CHUNK);
	weir_extents_leave(&s.v, 0, 1);
	was_done(&s);
	expect_step(&s, WEIR_EXTENTS_COPY_WRITE, 1, 10, CHUNK);
	was_done(&s);
	expect_nothing(&s);
	assert_int_equal(s.extent.replica[1].users, 0);
}

static void nobody_repairs_the_last_copy_or_for_a_donor_that_rebuilds(void **state)
{
	struct repair_fixture s;

	(void)state;
	begin(&s);
	s.v.repairs = false;
	assert_true(weir_extents_distrust(&s.v, 0, 0, 10, 1));
	expect_nothing(&s);
	s.v.repairs = true;
	weir_extents_leave(&s.v, 0, 0);
	weir_extents_leave(&s.v, 0, 1);
	assert_false(weir_extents_distrust(&s.v, 0, 2, 10, 1));
	expect_nothing(&s);
}

/* Before there were repairs, such a fill read the wrong copy for ever. */
static void a_new_copy_is_filled_from_another_if_one_is_wrong(void **state)
{
	struct weir_extents_placement place;
	struct repair_fixture s;

	(void)state;
	begin(&s);
	weir_extents_leave(&s.v, 0, 2);
	assert_true(weir_extents_reclaim(&s.v, &place));
	weir_extents_join(&s.v, &place);
	expect_step(&s, WEIR_EXTENTS_COPY_READ, 0, 0, CHUNK);
	was_wrong(&s, 0);
	expect_step(&s, WEIR_EXTENTS_COPY_READ, 1, 0, CHUNK);
	was_wrong(&s, 1); /* the last one is accepted */
	expect_step(&s, WEIR_EXTENTS_COPY_WRITE, 2, 0, CHUNK);
	was_done(&s);
	expect_step(&s, WEIR_EXTENTS_COPY_READ, 0, CHUNK, PAGES - CHUNK);
	was_done(&s);
	expect_step(&s, WEIR_EXTENTS_COPY_WRITE, 2, CHUNK, PAGES - CHUNK);
	was_done(&s);
	expect_step(&s, WEIR_EXTENTS_COPY_READ, 1, 0, CHUNK); /* repairs 0 */
	assert_int_equal(weir_extents_count_valid(&s.v, 0), SLOTS);
}

/* The world. */

#define TASKS 8u
#define OPS 32u
#define RUN 6u
#define STEPS 6000u
#ifndef WORLDS
#define WORLDS 150u
#endif
#define ROTTEN (1ull << 40)

enum repair_task_kind { IDLE, WRITING, MISSED, READING, COPYING };

struct repair_task {
	enum repair_task_kind kind;
	struct weir_extents_write write;
	struct weir_extents_copy_step step;
	uint32_t page, pages, ops;
	uint64_t value[CHUNK];
	uint32_t sums[CHUNK];
	uint8_t slot, tried, failed;
};

struct repair_op {
	struct repair_task *task;
	bool is_write;
	uint32_t page, pages;
	const uint64_t *value;
	uint8_t slot;
};

struct repair_world {
	uint64_t random, values;
	struct repair_fixture s;
	uint64_t memory[SLOTS][PAGES];
	struct repair_op op[SLOTS][OPS];
	uint32_t nr_ops[SLOTS];
	struct repair_task task[TASKS];
	uint64_t newest[PAGES]; /* of the last write */
	bool is_busy[PAGES], is_calm, is_copying;
	uint64_t chunk[CHUNK];
};

struct repair_counts {
	uint64_t writes, missed, wrong, rotten, left, repaired;
};

static uint64_t below(struct repair_world *w, uint64_t n)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return w->random * 2685821657736338717ull % n;
}

static uint32_t sum_of(uint64_t value)
{
	return (uint32_t)((value ^ value >> 32) * 2 + 2);
}

static bool has_room(const struct repair_world *w)
{
	for (uint8_t slot = 0; slot < SLOTS; slot++) {
		if (w->nr_ops[slot] == OPS)
			return false;
	}
	return true;
}

static void push(struct repair_world *w, struct repair_task *task, uint8_t slot, bool is_write,
		 const uint64_t *value)
{
	w->op[slot][w->nr_ops[slot]++] =
		(struct repair_op){ task, is_write, task->page, task->pages, value, slot };
	task->ops++;
}

static void push_write(struct repair_world *w, struct repair_task *task)
{
	task->kind = WRITING;
	task->failed = 0;
	assert_int_equal(weir_extents_write(&w->s.v, &task->write, 0, task->page, task->pages,
					    task->sums),
			 0);
	for (uint8_t slot = 0; slot < SLOTS; slot++) {
		if (task->write.slots >> slot & 1)
			push(w, task, slot, true, task->value);
	}
}

static void begin_write(struct repair_world *w, struct repair_task *task)
{
	for (uint32_t i = 0; i < task->pages; i++) {
		if (w->is_busy[task->page + i])
			return;
	}
	for (uint32_t i = 0; i < task->pages; i++) {
		task->value[i] = w->newest[task->page + i] = ++w->values;
		task->sums[i] = sum_of(task->value[i]);
		w->is_busy[task->page + i] = true;
	}
	push_write(w, task);
}

/* A VALID copy that missed the write is still a member: the write begins again. */
static void end_write(struct repair_world *w, struct repair_task *task,
		      struct repair_counts *counts)
{
	uint8_t valid = 0;

	for (uint8_t slot = 0; slot < SLOTS; slot++)
		valid |= (uint8_t)((w->s.extent.replica[slot].state == WEIR_REPLICA_VALID) << slot);
	counts->writes++;
	if (task->failed & valid) {
		counts->missed++;
		weir_extents_write_undo(&w->s.v, &task->write, task->failed);
		task->kind = MISSED;
		return;
	}
	assert_int_equal(weir_extents_write_end(&w->s.v, &task->write, task->failed), 0);
	for (uint32_t i = 0; i < task->pages; i++)
		w->is_busy[task->page + i] = false;
	task->kind = IDLE;
}

static void try_read(struct repair_world *w, struct repair_task *task)
{
	task->kind = IDLE;
	task->failed = 0;
	if (weir_extents_read(&w->s.v, 0, task->tried, &task->slot))
		return;
	task->kind = READING;
	weir_extents_expect(&w->s.v, 0, task->page, task->pages, task->sums);
	push(w, task, task->slot, false, NULL);
}

static bool is_right(const struct repair_task *task, const uint64_t *value)
{
	for (uint32_t i = 0; i < task->pages; i++) {
		if (task->sums[i] != WEIR_SUM_NOTHING && task->sums[i] != WEIR_SUM_UNKNOWN &&
		    task->sums[i] != sum_of(value[i]))
			return false;
	}
	return true;
}

static void end_read(struct repair_world *w, struct repair_task *task, struct repair_counts *counts)
{
	bool is_wrong = !task->failed && !is_right(task, task->value);

	weir_extents_read_end(&w->s.v, 0, task->slot);
	if (is_wrong) {
		counts->wrong++;
		weir_extents_distrust(&w->s.v, 0, task->slot, task->page, task->pages);
	}
	task->tried |= (uint8_t)(1u << task->slot);
	if (is_wrong || task->failed)
		try_read(w, task);
	else
		task->kind = IDLE;
}

static void begin_copy(struct repair_world *w, struct repair_task *task)
{
	struct weir_extents_copy_step *step = &task->step;

	if (w->is_copying)
		return;
	weir_extents_resync_next(&w->s.v, 0, step);
	if (step->what != WEIR_EXTENTS_COPY_READ && step->what != WEIR_EXTENTS_COPY_WRITE)
		return;
	w->is_copying = true;
	task->kind = COPYING;
	task->failed = 0;
	task->page = step->page;
	task->pages = step->pages;
	weir_extents_expect(&w->s.v, 0, task->page, task->pages, task->sums);
	push(w, task, step->slot, step->what == WEIR_EXTENTS_COPY_WRITE, w->chunk + step->offset);
}

static void end_copy(struct repair_world *w, struct repair_task *task)
{
	bool is_read = task->step.what == WEIR_EXTENTS_COPY_READ, is_match;

	if (is_read && !task->failed)
		memcpy(w->chunk, task->value, task->pages * sizeof(w->chunk[0]));
	is_match = !is_read || is_right(task, w->chunk);
	w->is_copying = false;
	task->kind = IDLE;
	weir_extents_resync_done(&w->s.v, 0,
				 !task->failed && weir_extents_resync_accept(&w->s.v, &task->step,
									     is_match));
}

/* The donor's oldest operation is executed, or fails, executed or not. */
static void work(struct repair_world *w, uint8_t slot, struct repair_counts *counts)
{
	struct repair_op op = w->op[slot][0];
	bool fails = !w->is_calm && !below(w, 30);

	if (!w->nr_ops[slot])
		return;
	memmove(w->op[slot], &w->op[slot][1], --w->nr_ops[slot] * sizeof(op));
	if (op.is_write && (!fails || below(w, 2)))
		memcpy(&w->memory[slot][op.page], op.value, op.pages * sizeof(*op.value));
	if (!op.is_write)
		memcpy(op.task->value, &w->memory[slot][op.page],
		       op.pages * sizeof(*op.task->value));
	op.task->failed |= (uint8_t)(fails << slot);
	if (--op.task->ops)
		return;
	if (op.task->kind == WRITING)
		end_write(w, op.task, counts);
	else if (op.task->kind == READING)
		end_read(w, op.task, counts);
	else
		end_copy(w, op.task);
}

static bool is_good(const struct repair_world *w, uint8_t slot, uint32_t page)
{
	return w->s.extent.replica[slot].state == WEIR_REPLICA_VALID &&
	       !(w->memory[slot][page] & ROTTEN);
}

/* Whether each page has a good copy beside that in @slot. */
static bool is_safe(const struct repair_world *w, uint8_t slot, uint32_t page, uint32_t pages)
{
	for (uint32_t i = page; i < page + pages; i++) {
		bool any = false;

		for (uint8_t other = 0; other < SLOTS; other++)
			any |= other != slot && is_good(w, other, i);
		if (!any)
			return false;
	}
	return true;
}

static void rot(struct repair_world *w, struct repair_counts *counts)
{
	uint32_t page = (uint32_t)below(w, PAGES);
	uint8_t slot = (uint8_t)below(w, SLOTS);

	if (w->is_calm || !is_good(w, slot, page) || !is_safe(w, slot, page, 1) ||
	    w->is_busy[page] || !w->memory[slot][page])
		return;
	w->memory[slot][page] |= ROTTEN;
	counts->rotten++;
}

/* A copy leaves, or its member comes back with other memory. */
static void change_member(struct repair_world *w, struct repair_counts *counts)
{
	uint8_t slot = (uint8_t)below(w, SLOTS);
	struct weir_extents_placement place = { 0, slot, slot };
	struct weir_replica *replica = &w->s.extent.replica[slot];

	if (replica->state == WEIR_REPLICA_STALE) {
		if (!weir_extents_reclaim(&w->s.v, &place))
			return;
		memset(w->memory[place.slot], 0, sizeof(w->memory[place.slot]));
		weir_extents_join(&w->s.v, &place);
	} else if (!w->is_calm && weir_extents_count_valid(&w->s.v, 0) == SLOTS &&
		   is_safe(w, slot, 0, PAGES) && !below(w, 4)) {
		weir_extents_leave(&w->s.v, 0, slot);
		counts->left++;
	}
}

static void step(struct repair_world *w, struct repair_counts *counts)
{
	struct repair_task *task = &w->task[below(w, TASKS)];
	uint64_t what = below(w, 10);

	if (!has_room(w) || what > 5) {
		work(w, (uint8_t)below(w, SLOTS), counts);
	} else if (what == 5) {
		change_member(w, counts);
		if (!below(w, 4))
			rot(w, counts);
	} else if (task->kind == MISSED) {
		push_write(w, task);
	} else if (task->kind == IDLE) {
		task->pages = 1 + (uint32_t)below(w, RUN);
		task->page = (uint32_t)below(w, PAGES - RUN + 1);
		task->tried = (uint8_t)below(w, 1u << SLOTS); /* each copy is read */
		if (what < 2)
			begin_copy(w, task);
		else if (what == 2 && !w->is_calm)
			begin_write(w, task);
		else
			try_read(w, task);
	}
}

/* Work until nothing is under way. */
static void finish_all(struct repair_world *w, struct repair_counts *counts)
{
	do {
		for (uint8_t slot = 0; slot < SLOTS; slot++) {
			while (w->nr_ops[slot])
				work(w, slot, counts);
		}
		if (w->task[0].kind == IDLE)
			begin_copy(w, &w->task[0]);
	} while (w->nr_ops[0] || w->nr_ops[1] || w->nr_ops[2]);
}

/* So that each wrong page is noticed. */
static void read_all(struct repair_world *w, struct repair_counts *counts)
{
	struct repair_task *task = &w->task[0];

	finish_all(w, counts);
	for (uint32_t i = 0; i < SLOTS * PAGES; i++) {
		task->page = i / SLOTS;
		task->pages = 1;
		task->tried = (uint8_t)~(1u << i % SLOTS);
		try_read(w, task);
		finish_all(w, counts);
	}
}

static void check_copies(const struct repair_world *w)
{
	assert_int_equal(weir_extents_count_valid(&w->s.v, 0), SLOTS);
	for (uint8_t slot = 0; slot < SLOTS; slot++) {
		for (uint32_t i = 0; i < PAGES; i++) {
			if (w->memory[slot][i] != w->newest[i])
				print_error("slot %u page %u: %lx, not %lx\n", slot, i,
					    (unsigned long)w->memory[slot][i],
					    (unsigned long)w->newest[i]);
			assert_int_equal(w->memory[slot][i], w->newest[i]);
		}
	}
}

/* Page 0 is 0, and so on: the first write of the fixture. */
static void begin_world(struct repair_world *w, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	begin(&w->s);
	w->random = seed * 0x9e3779b97f4a7c15ull;
	w->values = PAGES;
	for (uint32_t i = 0; i < PAGES; i++) {
		w->newest[i] = i;
		for (uint8_t slot = 0; slot < SLOTS; slot++)
			w->memory[slot][i] = i;
	}
}

static void each_copy_has_each_write_in_the_end(void **state)
{
	struct repair_counts counts = { 0 };
	static struct repair_world w;

	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++) {
		begin_world(&w, seed);
		for (uint32_t i = 0; i < STEPS; i++)
			step(&w, &counts);
		w.is_calm = true;
		for (uint32_t i = 0; i < STEPS; i++)
			step(&w, &counts);
		read_all(&w, &counts);
		check_copies(&w);
		counts.repaired += w.s.v.repaired;
	}
	assert_true(counts.writes > 20 * WORLDS && counts.missed > WORLDS);
	assert_true(counts.rotten > WORLDS && counts.wrong > WORLDS);
	assert_true(counts.left > WORLDS / 2 && counts.repaired > WORLDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_pages_are_replaced_and_the_copy_stays_valid),
		cmocka_unit_test(a_newer_write_is_not_overwritten),
		cmocka_unit_test(the_pages_are_read_after_the_writes_under_way),
		cmocka_unit_test(pages_that_nobody_can_check_stay),
		cmocka_unit_test(a_source_that_is_wrong_gives_way_and_nothing_wrong_is_written),
		cmocka_unit_test(a_repair_that_fails_ends_and_the_next_notice_begins_another),
		cmocka_unit_test(notices_of_two_copies_are_repaired_one_after_the_other),
		cmocka_unit_test(a_copy_that_leaves_is_not_repaired),
		cmocka_unit_test(nobody_repairs_the_last_copy_or_for_a_donor_that_rebuilds),
		cmocka_unit_test(a_new_copy_is_filled_from_another_if_one_is_wrong),
		cmocka_unit_test(each_copy_has_each_write_in_the_end),
	};

	return cmocka_run_group_tests_name("core volume repair", tests, NULL, NULL);
}
