/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A volume over unreliable donors, in random interleavings. Donors fail, die, come back empty,
 * reclaim memory and, in some runs, corrupt bytes. Some runs have a local disk with occasional
 * failures. A read must return the data written, or an error. A donor executes overlapping
 * requests in order, and all else in any order. Reports come in any order too.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/engine_bench.h"
#include "core/volume/extents.h"

#define EXTENTS 3u
#define PAGES 100u
#define DONORS 4u
#define OPS_MAX 64u
#define RUN_MAX 8u /* pages of a write or read */
#define STEPS 4000
#define ROOM 4u /* extents of a donor */
#ifndef WORLDS
#define WORLDS 250u
#endif
#define ROTTEN (1ull << 40) /* a bit that no write sets */

/* The memory of one replica. */
struct memory {
	uint64_t page[PAGES];
	uint32_t ops;
};

struct extents_world;

/* An operation at a donor; its end is reported to @task. */
struct world_op {
	bool is_write;
	struct memory *memory;
	uint32_t page, pages;
	uint64_t value[WEIR_EXTENTS_CHUNK_PAGES];
	struct task *task;
	uint8_t slot;
	bool is_done, succeeded;
};

struct world_donor {
	struct world_op *op[OPS_MAX];
	uint32_t nr_ops;
	bool is_up;
};

/* A write, read or copy, until all its ops are done. */
struct task {
	enum { NO_TASK, A_WRITE, A_READ, A_COPY, A_LOCAL, A_DISK_WRITE } kind;
	struct weir_extents_write write;
	uint32_t extent, page, pages;
	uint64_t value[WEIR_EXTENTS_CHUNK_PAGES];
	uint32_t sums[WEIR_EXTENTS_CHUNK_PAGES];
	struct weir_page_seal seals[WEIR_EXTENTS_CHUNK_PAGES];
	uint8_t slot, tried, failed, number;
	uint32_t ops;
	uint64_t begun;
};

/* Valid contents of a page: @sure, or any write begun after it. */
struct truth {
	uint64_t sure, maybe[16];
	uint32_t nr_maybe;
	bool is_being_written;
	uint64_t changed; /* when its last write began or ended */
};

/* Events of a run. */
struct counts {
	uint64_t reads, writes, failed_writes, errors, overtaken, filled, lost;
	uint64_t rotten, mistrusted, discarded, moved, left;
	uint64_t kept, outdated, local_reads, local_fills;
};

struct extents_world {
	uint64_t random, clock, values, nonces;
	struct weir_extents v;
	struct weir_extent extents[EXTENTS];
	struct memory *memory[EXTENTS][WEIR_EXTENTS_SLOTS_MAX];
	struct world_donor donor[DONORS];
	struct task task[12];
	struct truth page[EXTENTS][PAGES];
	uint32_t sum[EXTENTS][PAGES];
	struct weir_page_seal seal[EXTENTS][PAGES];
	uint64_t local[EXTENTS][PAGES / 64 + 1], disk[EXTENTS][PAGES];
	bool is_copying[WEIR_EXTENTS_COPIES_MAX], is_calm, rots, is_sealed;
	uint32_t fails_one_in, copies, copies_one_in, writes_one_in, slow_donors;
	uint64_t chunk[WEIR_EXTENTS_COPIES_MAX][WEIR_EXTENTS_CHUNK_PAGES];
	struct counts counts;
};

static uint64_t random_below(struct extents_world *w, uint64_t n)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return w->random * 2685821657736338717ull % n;
}

static void push(struct extents_world *w, struct task *task, uint8_t slot, bool is_write,
		 uint32_t page, uint32_t pages, const uint64_t *value)
{
	struct world_donor *donor = &w->donor[w->extents[task->extent].replica[slot].donor];
	struct world_op *op = calloc(1, sizeof(*op));

	assert_true(op && donor->nr_ops < OPS_MAX);
	*op = (struct world_op){ .is_write = is_write,
				 .memory = w->memory[task->extent][slot],
				 .page = page,
				 .pages = pages,
				 .task = task,
				 .slot = slot };
	if (is_write)
		memcpy(op->value, value, pages * sizeof(*value));
	op->memory->ops++;
	task->ops++;
	donor->op[donor->nr_ops++] = op;
}

static struct task *unused_task(struct extents_world *w)
{
	for (uint32_t i = 0; i < 12; i++) {
		if (w->task[i].kind == NO_TASK)
			return &w->task[i];
	}
	return NULL;
}

static void choose_range(struct extents_world *w, struct task *task)
{
	task->extent = (uint32_t)random_below(w, EXTENTS);
	task->pages = 1 + (uint32_t)random_below(w, RUN_MAX);
	/* Half of all requests go where a copy is likely under way. */
	task->page =
		(uint32_t)random_below(w, (random_below(w, 2) ? PAGES : 2 * RUN_MAX) - RUN_MAX + 1);
}

/* Like a file system, never write a page with a write in flight. */
static bool may_write(const struct extents_world *w, const struct task *task)
{
	for (uint32_t i = 0; i < task->pages; i++) {
		const struct truth *page = &w->page[task->extent][task->page + i];

		if (page->is_being_written || page->nr_maybe == 16)
			return false;
	}
	return true;
}

static uint32_t sum_of(uint64_t value)
{
	return (uint32_t)((value ^ value >> 32) * 2 + 2);
}

/* The content is the tag: no other content decrypts with the seal. */
static void seal(struct extents_world *w, struct task *task)
{
	uint64_t nonce = weir_page_seal_nonces(&w->v, task->pages);

	assert_true(nonce > w->nonces);
	w->nonces = nonce + task->pages - 1;
	for (uint32_t i = 0; i < task->pages; i++) {
		task->sums[i] = weir_page_seal_sum(nonce + i);
		task->seals[i] = (struct weir_page_seal){ .nonce = nonce + i };
		memcpy(task->seals[i].tag, &task->value[i], sizeof(task->value[i]));
	}
}

static bool page_is_right(const struct extents_world *w, const struct task *task, uint32_t i)
{
	if (!w->is_sealed)
		return task->sums[i] == sum_of(task->value[i]);
	return !memcmp(task->seals[i].tag, &task->value[i], sizeof(task->value[i]));
}

/* Expected contents for a read pushed now. */
static void expect(const struct extents_world *w, struct task *task)
{
	weir_extents_expect(&w->v, task->extent, task->page, task->pages, task->sums);
	if (w->is_sealed)
		weir_page_seal_expect(&w->v, task->extent, task->page, task->pages, task->seals);
}

/* Find memory for a write, perhaps another extent's. Return: whether there is some. */
static bool provide(struct extents_world *w, uint32_t extent)
{
	uint32_t from;

	if (weir_extents_provide(&w->v, extent, &from))
		return false;
	w->counts.moved += from != extent;
	for (uint8_t slot = 0; from != extent && slot < w->v.slots; slot++) {
		struct memory *memory = w->memory[extent][slot];

		w->memory[extent][slot] = w->memory[from][slot];
		w->memory[from][slot] = memory;
	}
	return true;
}

static void begin_write(struct extents_world *w)
{
	struct task *task = unused_task(w);

	if (!task)
		return;
	choose_range(w, task);
	for (uint32_t i = 0; i < task->pages; i++) {
		task->value[i] = ++w->values;
		task->sums[i] = sum_of(task->value[i]);
	}
	if (w->is_sealed)
		seal(w, task);
	if (!may_write(w, task) || !provide(w, task->extent) ||
	    weir_extents_write(&w->v, &task->write, task->extent, task->page, task->pages,
			       task->sums))
		return;
	if (w->is_sealed)
		weir_page_seal_written(&w->v, &task->write, task->seals);
	task->kind = A_WRITE;
	task->ops = 0;
	task->failed = 0;
	for (uint32_t i = 0; i < task->pages; i++) {
		struct truth *page = &w->page[task->extent][task->page + i];

		page->maybe[page->nr_maybe++] = task->value[i];
		page->is_being_written = true;
		page->changed = w->clock;
	}
	for (uint8_t slot = 0; slot < w->v.slots; slot++) {
		if (task->write.slots & 1u << slot)
			push(w, task, slot, true, task->page, task->pages, task->value);
	}
}

static void end_write(struct extents_world *w, struct task *task)
{
	int rc = weir_extents_write_end(&w->v, &task->write, task->failed);

	w->counts.writes++;
	w->counts.failed_writes += rc != 0;
	for (uint32_t i = 0; i < task->pages; i++) {
		struct truth *page = &w->page[task->extent][task->page + i];

		page->is_being_written = false;
		page->changed = w->clock;
		if (rc)
			continue;
		page->sure = task->value[i];
		page->nr_maybe = 0;
	}
	task->kind = NO_TASK;
}

/* Discard pages, which then read as zero; mostly whole extents, so that some become idle. */
static void discard(struct extents_world *w)
{
	struct task task = { 0 };
	uint32_t parts = 1;

	choose_range(w, &task);
	if (random_below(w, 4)) {
		task.page = 0;
		parts = PAGES / RUN_MAX + 1;
	}
	for (; parts; parts--, task.page += task.pages) {
		task.pages = task.page + RUN_MAX > PAGES ? PAGES - task.page : RUN_MAX;
		if (!may_write(w, &task))
			continue;
		weir_extents_discard(&w->v, task.extent, task.page, task.pages,
				     !random_below(w, 8));
		w->counts.discarded++;
		for (uint32_t i = 0; i < task.pages; i++) {
			struct truth *page = &w->page[task.extent][task.page + i];

			page->sure = 0;
			page->nr_maybe = 0;
			page->changed = w->clock;
		}
	}
}

/* Whether a write, perhaps a failed one, came in between: then the expected content is unknown. */
static bool is_disturbed(const struct extents_world *w, const struct task *task)
{
	for (uint32_t i = 0; i < task->pages; i++) {
		const struct truth *page = &w->page[task->extent][task->page + i];

		if (page->changed >= task->begun || page->is_being_written)
			return true;
	}
	return false;
}

static void check_page(struct extents_world *w, const struct task *task, uint32_t i);

static void end_reading(struct extents_world *w, struct task *task)
{
	for (uint32_t i = 0; i < task->pages; i++)
		check_page(w, task, i);
	w->counts.reads++;
	task->kind = NO_TASK;
}

static bool is_as_expected(const struct extents_world *w, struct task *task);

/* The disk returns the last content written. Return: whether it has these pages. */
static bool read_disk(struct extents_world *w, struct task *task)
{
	if (!weir_extents_local_has(&w->v, task->extent, task->page, task->pages))
		return false;
	expect(w, task);
	memcpy(task->value, &w->disk[task->extent][task->page], task->pages * sizeof(*task->value));
	assert_true(is_as_expected(w, task));
	return true;
}

static void try_read(struct extents_world *w, struct task *task)
{
	if (weir_extents_is_blank(&w->v, task->extent, task->page, task->pages)) {
		memset(task->value, 0, sizeof(task->value));
		memset(task->sums, 0, sizeof(task->sums));
		end_reading(w, task);
	} else if (weir_extents_read(&w->v, task->extent, task->tried, &task->slot)) {
		if (read_disk(w, task)) {
			w->counts.local_reads++;
			end_reading(w, task);
			return;
		}
		w->counts.errors++;
		task->kind = NO_TASK;
	} else {
		expect(w, task);
		push(w, task, task->slot, false, task->page, task->pages, NULL);
	}
}

static void begin_read(struct extents_world *w)
{
	struct task *task = unused_task(w);

	if (!task)
		return;
	choose_range(w, task);
	task->kind = A_READ;
	task->ops = 0;
	task->failed = 0;
	task->tried = 0;
	if (!w->rots)
		task->tried = (uint8_t)(random_below(w, 2)
					<< random_below(w, 4)); /* not always the first */
	task->begun = w->clock;
	try_read(w, task);
}

/* A page read while nothing changed has this content for all later reads. */
static void check_page(struct extents_world *w, const struct task *task, uint32_t i)
{
	struct truth *page = &w->page[task->extent][task->page + i];
	bool fits = page->sure == task->value[i];

	if (task->sums[i] == WEIR_SUM_UNKNOWN && (task->value[i] & ROTTEN))
		return; /* its last write failed: the content is unknown */
	if (w->is_sealed && task->sums[i] == WEIR_SUM_UNKNOWN && !page_is_right(w, task, i))
		return; /* the reader gets an error */
	if (page->changed >= task->begun && !page->is_being_written && !page->nr_maybe)
		return; /* a write began and ended meanwhile: old and new content are both right */
	for (uint32_t j = 0; j < page->nr_maybe; j++)
		fits |= page->maybe[j] == task->value[i];
	if (!fits && page->changed < task->begun)
		print_error("extent %u page %u: %lu, not %lu\n", task->extent, task->page + i,
			    (unsigned long)task->value[i], (unsigned long)page->sure);
	assert_true(fits || page->changed >= task->begun);
	if (page->changed < task->begun && !page->is_being_written) {
		page->sure = task->value[i];
		page->nr_maybe = 0;
	}
}

/* Check as the host does. Return: whether all pages are as expected. */
static bool is_as_expected(const struct extents_world *w, struct task *task)
{
	for (uint32_t i = 0; i < task->pages; i++) {
		if (task->sums[i] == WEIR_SUM_NOTHING)
			task->value[i] = 0;
		else if (task->sums[i] != WEIR_SUM_UNKNOWN && !page_is_right(w, task, i))
			return false;
	}
	return true;
}

static void end_read(struct extents_world *w, struct task *task)
{
	bool is_wrong = !task->failed && !is_as_expected(w, task);

	weir_extents_read_end(&w->v, task->extent, task->slot);
	assert_true(!is_wrong || w->rots || is_disturbed(w, task));
	if (is_wrong)
		w->counts.mistrusted += weir_extents_distrust(&w->v, task->extent, task->slot,
							      task->page, task->pages);
	if (!task->failed && !is_wrong) {
		end_reading(w, task);
		return;
	}
	task->tried |= (uint8_t)(1u << task->slot);
	task->failed = 0;
	try_read(w, task);
}

/* Corrupt a byte of some donor's memory. */
static void rot(struct extents_world *w)
{
	uint32_t extent = (uint32_t)random_below(w, EXTENTS),
		 page = (uint32_t)random_below(w, PAGES);
	struct memory *memory = w->memory[extent][random_below(w, w->v.slots)];

	if (!w->rots || w->is_calm || !memory || !memory->page[page])
		return;
	memory->page[page] |= ROTTEN;
	w->counts.rotten++;
}

static void fill_from_disk(struct extents_world *w, uint8_t number,
			   const struct weir_extents_copy_step *step)
{
	bool fails = !w->is_calm && !random_below(w, 20);

	memcpy(w->chunk[number], &w->disk[step->extent][step->page],
	       step->pages * sizeof(*w->chunk[number]));
	w->counts.local_fills += !fails;
	weir_extents_resync_done(&w->v, number, !fails);
}

/* Read what the disk should have next. */
static void keep(struct extents_world *w)
{
	struct task *task = w->v.local.is_busy ? NULL : unused_task(w);
	struct weir_extents_copy_step step;

	if (!task)
		return;
	weir_extents_local_next(&w->v, &step);
	if (step.what != WEIR_EXTENTS_COPY_READ)
		return;
	*task = (struct task){ .kind = A_LOCAL,
			       .extent = step.extent,
			       .page = step.page,
			       .pages = step.pages,
			       .slot = step.slot };
	expect(w, task);
	push(w, task, step.slot, false, step.page, step.pages, NULL);
}

/* Write to the disk, if the content is as expected. */
static void end_keeping(struct extents_world *w, struct task *task)
{
	bool is_right = !task->failed && is_as_expected(w, task);

	weir_extents_read_end(&w->v, task->extent, task->slot);
	if (is_right) {
		task->kind = A_DISK_WRITE;
		return;
	}
	weir_extents_local_done(&w->v, false);
	task->kind = NO_TASK;
}

/* End a write to the disk; a failed write leaves other content. */
static void work_disk(struct extents_world *w)
{
	bool fails = !w->is_calm && !random_below(w, 20);

	for (uint32_t i = 0; i < 12; i++) {
		struct task *task = &w->task[i];

		if (task->kind != A_DISK_WRITE)
			continue;
		for (uint32_t page = 0; page < task->pages; page++)
			w->disk[task->extent][task->page + page] = fails ? ROTTEN :
									   task->value[page];
		w->counts.kept += !fails;
		w->counts.outdated += w->v.local.overtaken != 0;
		weir_extents_local_done(&w->v, !fails);
		task->kind = NO_TASK;
	}
}

static void copy(struct extents_world *w)
{
	uint8_t number = (uint8_t)random_below(w, w->copies);
	struct task *task = w->is_copying[number] ? NULL : unused_task(w);
	struct weir_extents_copy_step step;

	if (!task || random_below(w, w->copies_one_in))
		return;
	weir_extents_resync_next(&w->v, number, &step);
	if (step.what == WEIR_EXTENTS_COPY_READ_LOCAL)
		fill_from_disk(w, number, &step);
	if (step.what != WEIR_EXTENTS_COPY_READ && step.what != WEIR_EXTENTS_COPY_WRITE)
		return;
	*task = (struct task){ .kind = A_COPY,
			       .extent = step.extent,
			       .page = step.page,
			       .pages = step.pages,
			       .slot = step.slot,
			       .number = number };
	w->is_copying[number] = true;
	w->counts.overtaken += w->v.copy[number].overtaken != 0;
	push(w, task, step.slot, step.what == WEIR_EXTENTS_COPY_WRITE, step.page, step.pages,
	     w->chunk[number] + step.offset);
}

static void end_copy(struct extents_world *w, struct task *task, const struct world_op *op)
{
	if (!op->is_write && !task->failed)
		memcpy(w->chunk[task->number], op->value, op->pages * sizeof(*op->value));
	w->counts.filled += op->is_write && !task->failed;
	weir_extents_resync_done(&w->v, task->number, !task->failed);
	w->is_copying[task->number] = false;
	task->kind = NO_TASK;
}

static void execute(struct world_op *op)
{
	for (uint32_t i = 0; i < op->pages; i++) {
		if (op->is_write)
			op->memory->page[op->page + i] = op->value[i];
		else
			op->value[i] = op->memory->page[op->page + i];
	}
}

static void set_donor(struct extents_world *w, struct world_donor *donor, uint32_t number)
{
	struct world_op *op = donor->op[number];
	struct task *task = op->task;

	memmove(&donor->op[number], &donor->op[number + 1],
		(--donor->nr_ops - number) * sizeof(*donor->op));
	op->memory->ops--;
	if (!op->succeeded)
		task->failed |= (uint8_t)(1u << op->slot);
	if ((task->kind == A_READ || task->kind == A_LOCAL) && op->succeeded)
		memcpy(task->value, op->value, op->pages * sizeof(*op->value));
	if (!--task->ops && task->kind == A_WRITE)
		end_write(w, task);
	else if (!task->ops && task->kind == A_READ)
		end_read(w, task);
	else if (!task->ops && task->kind == A_LOCAL)
		end_keeping(w, task);
	else if (!task->ops)
		end_copy(w, task, op);
	free(op);
}

static bool overlaps_earlier(const struct world_donor *donor, uint32_t number)
{
	const struct world_op *op = donor->op[number];

	for (uint32_t i = 0; i < number; i++) {
		const struct world_op *other = donor->op[i];

		if (other->memory == op->memory && !other->is_done &&
		    other->page < op->page + op->pages && op->page < other->page + other->pages)
			return true;
	}
	return false;
}

/* A donor executes, fails or reports an operation. */
static void work(struct extents_world *w, uint32_t which)
{
	struct world_donor *donor = &w->donor[which];
	uint32_t number;

	if (!donor->nr_ops || (which < w->slow_donors && random_below(w, 8)))
		return;
	number = (uint32_t)random_below(w, donor->nr_ops);
	if (donor->op[number]->is_done) {
		set_donor(w, donor, number);
	} else if (!overlaps_earlier(donor, number)) {
		bool fails = !donor->is_up || (!w->is_calm && !random_below(w, w->fails_one_in));

		if (!fails || (donor->is_up && random_below(w, 2)))
			execute(donor->op[number]);
		donor->op[number]->succeeded = !fails;
		donor->op[number]->is_done = true;
	}
}

/* An absent donor need not be told; some present donors cannot be reached at times. */
static uint8_t to_be_told(struct extents_world *w)
{
	uint8_t donors = (uint8_t)~0u;

	if (!w->is_calm && !random_below(w, 4))
		donors = (uint8_t)random_below(w, 256);
	for (uint8_t i = 0; i < DONORS; i++)
		donors |= (uint8_t)(!w->donor[i].is_up << i);
	return donors;
}

/* Say nothing more to a silent donor. */
static void release(struct extents_world *w)
{
	uint8_t donors = to_be_told(w);
	struct weir_extents_placement place;

	weir_extents_trim(&w->v);
	while (weir_extents_next_return(&w->v, donors, &place)) {
		struct memory **memory = &w->memory[place.extent][place.slot];
		bool is_returned = w->is_calm || !w->donor[place.donor].is_up || random_below(w, 8);

		assert_int_equal((*memory)->ops, 0);
		weir_extents_returned(&w->v, &place, is_returned);
		if (!is_returned) {
			donors &= (uint8_t) ~(1u << place.donor);
			continue;
		}
		free(*memory);
		*memory = NULL;
	}
}

static void place_one(struct extents_world *w)
{
	struct weir_extents_placement place;

	if (weir_extents_next_placement(&w->v, &place))
		return;
	assert_true(w->donor[place.donor].is_up);
	if (!w->is_calm && !random_below(w, 10)) {
		weir_extents_donor_room(&w->v, place.donor, 0);
		return;
	}
	place.extent =
		(uint32_t)random_below(w, EXTENTS); /* another extent may want the memory by then */
	if (weir_extents_granted(&w->v, &place))
		return;
	assert_null(w->memory[place.extent][place.slot]);
	w->memory[place.extent][place.slot] = calloc(1, sizeof(struct memory));
	assert_non_null(w->memory[place.extent][place.slot]);
}

/* A donor asks for memory back, or withdraws such a request. */
static void donor_asks(struct extents_world *w, uint8_t donor)
{
	uint32_t had = weir_extents_census(&w->v).leaving;

	weir_extents_donor_keeps(
		&w->v, donor, random_below(w, 2) ? random_below(w, ROOM) : WEIR_EXTENTS_KEEPS_ALL);
	w->counts.left += weir_extents_census(&w->v).leaving > had;
}

static void donor_changes(struct extents_world *w, uint8_t number)
{
	struct world_donor *donor = &w->donor[number];

	if (!donor->is_up) {
		if (weir_extents_donor_extents(&w->v, number))
			return;
		donor->is_up = true;
	} else if (!w->is_calm && !random_below(w, 25)) {
		donor->is_up = false;
		weir_extents_donor_lost(&w->v, number);
		return;
	} else if (random_below(w, 2)) {
		weir_extents_donor_slow(&w->v, number);
		return;
	}
	weir_extents_donor_up(&w->v, number);
	weir_extents_donor_room(&w->v, number, ROOM);
}

static void step(struct extents_world *w)
{
	w->clock++;
	switch (random_below(w, 18)) {
	case 0:
		if (!random_below(w, w->writes_one_in))
			begin_write(w);
		break;
	case 1:
		begin_read(w);
		break;
	case 2:
	case 3:
	case 4:
		copy(w);
		break;
	case 5:
		release(w);
		place_one(w);
		break;
	case 6:
		keep(w);
		break;
	case 7:
		work_disk(w);
		break;
	case 8:
		if (!random_below(w, 8))
			rot(w);
		if (!w->is_calm && !random_below(w, 24))
			discard(w);
		if (!random_below(w, 8))
			donor_changes(w, (uint8_t)random_below(w, DONORS));
		if (!w->is_calm && !random_below(w, 16))
			donor_asks(w, (uint8_t)random_below(w, DONORS));
		break;
	default:
		work(w, (uint32_t)random_below(w, DONORS));
	}
}

/* Thin extents that have memory. */
static uint32_t count_idle(const struct extents_world *w)
{
	uint32_t idle = 0;

	for (uint32_t i = 0; i < EXTENTS; i++)
		idle += w->extents[i].thin && weir_extents_count_valid(&w->v, i);
	return idle;
}

/* The replicas of an extent are equal. */
static void check_same(const struct extents_world *w, uint32_t extent)
{
	const struct memory *first = NULL;

	for (uint8_t slot = 0; slot < w->v.slots; slot++) {
		const struct memory *memory = w->memory[extent][slot];

		if (w->extents[extent].replica[slot].state != WEIR_REPLICA_VALID)
			continue;
		first = first ? first : memory;
		for (uint32_t page = 0; page < PAGES; page++) {
			if (!w->page[extent][page].is_being_written &&
			    w->sum[extent][page] != WEIR_SUM_NOTHING)
				assert_int_equal(memory->page[page], first->page[page]);
		}
	}
}

/* Writes have stopped, and the disk gets all missing pages. */
static void let_disk_catch_up(struct extents_world *w)
{
	for (uint32_t i = 0; i < 5000; i++) {
		work(w, (uint32_t)random_below(w, DONORS));
		keep(w);
		work_disk(w);
	}
}

/* The disk has every page with known content, unless lost. */
static void check_disk(const struct extents_world *w, uint32_t extent)
{
	for (uint32_t page = 0; page < PAGES; page++) {
		if (w->sum[extent][page] != WEIR_SUM_UNKNOWN &&
		    weir_extents_count_valid(&w->v, extent))
			assert_true(weir_extents_local_has(&w->v, extent, page, 1));
	}
}

/*
 * No write hangs. A replica is missing only for lack of a donor or of a source. The first donor
 * wants all memory back, and gets it if each replica has another donor.
 */
static void check_end(struct extents_world *w)
{
	bool can_move = w->v.replicas < DONORS;
	struct weir_extents_census census;

	w->is_calm = true;
	w->copies_one_in = w->writes_one_in = 1;
	w->slow_donors = 0;
	for (uint8_t i = 0; i < DONORS; i++) {
		donor_changes(w, i);
		weir_extents_donor_keeps(&w->v, i, i || !can_move ? WEIR_EXTENTS_KEEPS_ALL : 0);
	}
	for (uint32_t i = 0; i < 20000; i++)
		step(w);
	if (can_move)
		assert_int_equal(weir_extents_donor_extents(&w->v, 0), 0);
	census = weir_extents_census(&w->v);
	w->counts.lost += census.lost;
	assert_int_equal(census.lost, census.bare);
	assert_int_equal(census.lean, 0);
	assert_true(census.thin == 0 || count_idle(w) == w->v.reserve);
	assert_int_equal(census.local, 0);
	let_disk_catch_up(w);
	for (uint32_t i = 0; i < EXTENTS && !w->rots; i++) {
		check_same(w, i);
		if (w->extents[i].local)
			check_disk(w, i);
	}
}

static void end_world(struct extents_world *w)
{
	for (uint32_t i = 0; i < EXTENTS; i++) {
		for (uint8_t slot = 0; slot < WEIR_EXTENTS_SLOTS_MAX; slot++)
			free(w->memory[i][slot]);
	}
	for (uint32_t i = 0; i < DONORS; i++) {
		while (w->donor[i].nr_ops)
			free(w->donor[i].op[--w->donor[i].nr_ops]);
	}
	free(w);
}

/*
 * One world in three corrupts bytes, half have a disk, half are encrypted; the number of replicas
 * changes every few.
 */
static struct extents_world *new_world(uint64_t seed)
{
	static const uint8_t replicas[] = { 3, 2, 3, 4, 3, 1 };
	struct extents_world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->random = seed * 0x9e3779b97f4a7c15ull;
	w->fails_one_in = seed & 1 ? 60 : 20;
	w->copies_one_in = seed & 2 ? 1 : 4;
	w->copies = seed & 8 ? 1 : WEIR_EXTENTS_COPIES_MAX; /* with a disk, as the kernel does */
	w->writes_one_in = (seed & 8) && (seed & 48) ? 20 : 1;
	w->slow_donors = seed >> 2 & 3;
	w->rots = seed % 3 == 0;
	w->is_sealed = seed >> 1 & 1;
	for (uint32_t i = 0; i < EXTENTS; i++) {
		w->extents[i].sum = w->sum[i];
		w->extents[i].seal = w->is_sealed ? w->seal[i] : NULL;
		w->extents[i].local = seed & 8 ? w->local[i] : NULL;
	}
	assert_int_equal(weir_extents_init(&w->v, w->extents, EXTENTS, PAGES, DONORS,
					   replicas[seed * 6 / WORLDS % 6]),
			 0);
	w->v.reserve = 1;
	return w;
}

static void add_counts(struct counts *sum, const struct counts *counts)
{
	const uint64_t *from = &counts->reads;
	uint64_t *to = &sum->reads;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

static void reads_return_the_last_write_whatever_donors_do(void **state)
{
	struct counts sum = { 0 };

	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++) {
		struct extents_world *w = new_world(seed);

		for (uint32_t i = 0; i < STEPS; i++)
			step(w);
		check_end(w);
		add_counts(&sum, &w->counts);
		end_world(w);
	}
	/* Enough must have happened. */
	assert_true(sum.reads > 4 * WORLDS && sum.failed_writes > WORLDS / 2);
	assert_true(sum.errors > WORLDS / 2 && sum.overtaken > WORLDS / 2);
	assert_true(sum.filled > 4 * WORLDS && sum.lost > WORLDS / 25);
	assert_true(sum.rotten > WORLDS / 2 && sum.mistrusted > WORLDS / 25);
	assert_true(sum.kept > WORLDS && sum.outdated > WORLDS / 25);
	assert_true(sum.local_reads > WORLDS / 25 && sum.local_fills > WORLDS / 50);
	assert_true(sum.discarded > WORLDS / 2 && sum.moved > WORLDS / 25 && sum.left > WORLDS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_return_the_last_write_whatever_donors_do),
	};

	return cmocka_run_group_tests_name("core volume world", tests, NULL, NULL);
}
