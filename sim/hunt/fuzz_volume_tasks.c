/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads, writes and copies of a volume, on their way to donors and back. A donor executes
 * overlapping operations in the order submitted, others in any order, and completes them in any
 * order.
 */
#include "sim/hunt/fuzz_volume.h"

bool hunt_volume_is_busy(const struct fuzz_volume *v, uint32_t extent, uint8_t slot)
{
	uint32_t i;

	for (i = 0; i < VOLUME_TASKS; i++)
		if (v->tasks[i].extent == extent && v->tasks[i].ops[slot].is_asked)
			return true;
	return false;
}

void hunt_volume_task(struct fuzz_volume *v, struct fuzz_volume_task *task,
		      enum fuzz_volume_task_kind kind, uint32_t extent)
{
	memset(task, 0, sizeof(*task));
	task->kind = kind;
	task->extent = extent;
	task->page = hunt_volume_below(v, VOLUME_PAGES - VOLUME_RUN_MAX + 1);
	task->pages = 1 + hunt_volume_below(v, VOLUME_RUN_MAX);
	task->begun = v->clock;
}

static void send_to_donor(struct fuzz_volume *v, struct fuzz_volume_task *task, uint8_t slot)
{
	task->ops[slot] = (struct fuzz_volume_op){
		.is_asked = true,
		.donor = v->extents[task->extent].replica[slot].donor,
		.turn = v->turns++,
	};
}

/* As a file system does: no second write to a page being written. */
bool hunt_volume_may_write(const struct fuzz_volume *v, const struct fuzz_volume_task *task)
{
	uint32_t i;

	for (i = 0; i < task->pages; i++) {
		const struct fuzz_volume_page *page = &v->pages[task->extent][task->page + i];

		if (page->is_being_written || page->nr_maybe == VOLUME_MAYBE_MAX)
			return false;
	}
	return true;
}

/* Provides memory for a write, perhaps another extent's. Returns whether there is some. */
static bool provide_memory(struct fuzz_volume *v, uint32_t extent)
{
	uint32_t memory[VOLUME_PAGES], from;
	uint8_t slot;

	if (weir_extents_provide(&v->volume, extent, &from))
		return false;
	for (slot = 0; slot < WEIR_EXTENTS_SLOTS_MAX && from != extent; slot++) {
		bool is_there = v->is_there[extent][slot];

		hunt_expect(v->hunt,
			    !hunt_volume_is_busy(v, from, slot) &&
				    !hunt_volume_is_busy(v, extent, slot),
			    "memory in use moves");
		memcpy(memory, v->memory[extent][slot], sizeof(memory));
		memcpy(v->memory[extent][slot], v->memory[from][slot], sizeof(memory));
		memcpy(v->memory[from][slot], memory, sizeof(memory));
		v->is_there[extent][slot] = v->is_there[from][slot];
		v->is_there[from][slot] = is_there;
	}
	return true;
}

void hunt_volume_write(struct fuzz_volume *v, struct fuzz_volume_task *task)
{
	uint32_t i;
	uint8_t slot;

	hunt_volume_task(v, task, VOLUME_NO_TASK, hunt_volume_below(v, VOLUME_EXTENTS));
	for (i = 0; i < task->pages; i++)
		task->values[i] = task->sums[i] = 2 * ++v->written;
	if (!hunt_volume_may_write(v, task) || !provide_memory(v, task->extent) ||
	    weir_extents_write(&v->volume, &task->write, task->extent, task->page, task->pages,
			       task->sums))
		return;
	task->kind = VOLUME_WRITE;
	for (i = 0; i < task->pages; i++) {
		struct fuzz_volume_page *page = &v->pages[task->extent][task->page + i];

		page->maybe[page->nr_maybe++] = task->values[i];
		page->is_being_written = true;
		page->changed = v->clock;
	}
	for (slot = 0; slot < WEIR_EXTENTS_SLOTS_MAX; slot++)
		if (task->write.slots >> slot & 1)
			send_to_donor(v, task, slot);
}

static void written(struct fuzz_volume *v, struct fuzz_volume_task *task)
{
	int rc = weir_extents_write_end(&v->volume, &task->write, task->failed);
	uint32_t i;

	for (i = 0; i < task->pages; i++) {
		struct fuzz_volume_page *page = &v->pages[task->extent][task->page + i];

		page->is_being_written = false;
		page->changed = v->clock;
		if (rc)
			continue;
		page->sure = task->values[i];
		page->nr_maybe = 0;
	}
	task->kind = VOLUME_NO_TASK;
}

/* A value read while nothing changed is the value of all later reads. */
static void watch_page(struct fuzz_volume *v, const struct fuzz_volume_task *task, uint32_t i)
{
	struct fuzz_volume_page *page = &v->pages[task->extent][task->page + i];
	bool fits = page->sure == task->values[i];
	uint32_t k;

	if (page->changed >= task->begun)
		return;
	for (k = 0; k < page->nr_maybe; k++)
		fits |= page->maybe[k] == task->values[i];
	hunt_expect(v->hunt, fits, "page %u of extent %u is read, and holds %u, not %u",
		    task->page + i, task->extent, task->values[i], page->sure);
	if (page->is_being_written)
		return;
	page->sure = task->values[i];
	page->nr_maybe = 0;
}

static void read_from_one(struct fuzz_volume *v, struct fuzz_volume_task *task)
{
	uint32_t i;
	uint8_t slot;

	if (weir_extents_is_blank(&v->volume, task->extent, task->page, task->pages)) {
		memset(task->values, 0, sizeof(task->values));
		for (i = 0; i < task->pages; i++)
			watch_page(v, task, i);
		task->kind = VOLUME_NO_TASK;
	} else if (weir_extents_read(&v->volume, task->extent, task->tried, &slot)) {
		task->kind = VOLUME_NO_TASK;
	} else {
		weir_extents_expect(&v->volume, task->extent, task->page, task->pages, task->sums);
		task->tried |= (uint8_t)(1u << slot);
		send_to_donor(v, task, slot);
	}
}

void hunt_volume_read(struct fuzz_volume *v, struct fuzz_volume_task *task)
{
	hunt_volume_task(v, task, VOLUME_READ, hunt_volume_below(v, VOLUME_EXTENTS));
	read_from_one(v, task);
}

/* As the host does. Returns whether all pages match their checksums. */
static bool is_as_expected(struct fuzz_volume_task *task)
{
	uint32_t i;

	for (i = 0; i < task->pages; i++) {
		if (task->sums[i] == WEIR_SUM_NOTHING)
			task->values[i] = 0;
		else if (task->sums[i] != WEIR_SUM_UNKNOWN && task->sums[i] != task->values[i])
			return false;
	}
	return true;
}

/* Memory changes only by writes here: a page that differs is being written, or was just now. */
static void watch_difference(struct fuzz_volume *v, const struct fuzz_volume_task *task,
			     uint8_t slot)
{
	bool is_changing = false;
	uint32_t i;

	for (i = 0; i < task->pages; i++) {
		const struct fuzz_volume_page *page = &v->pages[task->extent][task->page + i];

		is_changing |= page->changed >= task->begun || page->is_being_written;
	}
	hunt_expect(v->hunt, is_changing, "replica %u of extent %u has data that was never written",
		    slot, task->extent);
	weir_extents_distrust(&v->volume, task->extent, slot, task->page, task->pages);
}

static void was_read(struct fuzz_volume *v, struct fuzz_volume_task *task, uint8_t slot)
{
	uint32_t i;

	weir_extents_read_end(&v->volume, task->extent, slot);
	if (!task->failed && is_as_expected(task)) {
		for (i = 0; i < task->pages; i++)
			watch_page(v, task, i);
		task->kind = VOLUME_NO_TASK;
		return;
	}
	if (!task->failed)
		watch_difference(v, task, slot);
	task->failed = 0;
	read_from_one(v, task);
}

void hunt_volume_copy(struct fuzz_volume *v, struct fuzz_volume_task *task)
{
	struct weir_extents_copy_step step;
	uint32_t i;

	for (i = 0; i < VOLUME_TASKS; i++)
		if (v->tasks[i].kind >= VOLUME_COPY_READ)
			return;
	weir_extents_resync_next(&v->volume, 0, &step);
	if (step.what != WEIR_EXTENTS_COPY_READ && step.what != WEIR_EXTENTS_COPY_WRITE)
		return;
	hunt_volume_task(v, task,
			 step.what == WEIR_EXTENTS_COPY_READ ? VOLUME_COPY_READ : VOLUME_COPY_WRITE,
			 step.extent);
	task->page = step.page;
	task->pages = step.pages;
	memcpy(task->values, v->chunk + step.offset, step.pages * sizeof(*v->chunk));
	send_to_donor(v, task, step.slot);
}

static void copy_is_done(struct fuzz_volume *v, struct fuzz_volume_task *task)
{
	if (task->kind == VOLUME_COPY_READ && !task->failed)
		memcpy(v->chunk, task->values, task->pages * sizeof(*v->chunk));
	task->kind = VOLUME_NO_TASK;
	weir_extents_resync_done(&v->volume, 0, !task->failed);
}

static bool is_first(const struct fuzz_volume *v, const struct fuzz_volume_task *task, uint8_t slot)
{
	uint32_t i;

	for (i = 0; i < VOLUME_TASKS; i++) {
		const struct fuzz_volume_task *other = &v->tasks[i];
		const struct fuzz_volume_op *op = &other->ops[slot];

		if (op->is_asked && !op->is_done && other->extent == task->extent &&
		    op->turn < task->ops[slot].turn && other->page < task->page + task->pages &&
		    task->page < other->page + other->pages)
			return false;
	}
	return true;
}

/* A donor executes an operation or fails; a failed operation may have taken effect. */
static void donor_executes(struct fuzz_volume *v, struct fuzz_volume_task *task, uint8_t slot)
{
	struct fuzz_volume_op *op = &task->ops[slot];
	uint32_t *memory = v->memory[task->extent][slot] + task->page;
	bool fails = !v->donors[op->donor].is_up || (!v->is_calm && hunt_dice(&v->rng, v->peril));
	size_t bytes = task->pages * sizeof(*memory);

	if (!is_first(v, task, slot))
		return;
	op->is_done = true;
	op->succeeded = !fails;
	if (fails && (!v->donors[op->donor].is_up || hunt_volume_below(v, 2)))
		return;
	if (task->kind == VOLUME_WRITE || task->kind == VOLUME_COPY_WRITE)
		memcpy(memory, task->values, bytes);
	else
		memcpy(task->values, memory, bytes);
}

static void donor_answers(struct fuzz_volume *v, struct fuzz_volume_task *task, uint8_t slot)
{
	uint8_t i;

	task->ops[slot].is_asked = false;
	task->failed |= (uint8_t)(!task->ops[slot].succeeded << slot);
	for (i = 0; i < WEIR_EXTENTS_SLOTS_MAX; i++)
		if (task->ops[i].is_asked)
			return;
	if (task->kind == VOLUME_WRITE)
		written(v, task);
	else if (task->kind == VOLUME_READ)
		was_read(v, task, slot);
	else
		copy_is_done(v, task);
}

void hunt_volume_work(struct fuzz_volume *v)
{
	struct fuzz_volume_task *task = &v->tasks[hunt_volume_below(v, VOLUME_TASKS)];
	uint8_t slot = (uint8_t)hunt_volume_below(v, v->volume.slots);

	if (!task->kind || !task->ops[slot].is_asked)
		return;
	if (task->ops[slot].is_done)
		donor_answers(v, task, slot);
	else
		donor_executes(v, task, slot);
}
