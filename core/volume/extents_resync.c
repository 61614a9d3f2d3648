/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fills or repairs a replica during reads and writes; extents.h explains why this is correct. */
#include "core/volume/extents.h"

uint8_t weir_extents_copy_of(const struct weir_extents *v, uint32_t extent)
{
	uint8_t number = 0;

	while (number < WEIR_EXTENTS_COPIES_MAX &&
	       (v->copy[number].state == WEIR_RESYNC_IDLE || v->copy[number].extent != extent))
		number++;
	return number;
}

static struct weir_replica *replica_of(struct weir_extents *v,
				       const struct weir_extents_resync *copy, uint8_t slot)
{
	return &v->extent[copy->extent].replica[slot];
}

/* Return: a replica of @extent in @state, or slots if there is none. */
static uint8_t find_replica(const struct weir_extents *v, uint32_t extent,
			    enum weir_replica_state state)
{
	uint8_t slot = 0;

	while (slot < v->slots && v->extent[extent].replica[slot].state != state)
		slot++;
	return slot;
}

static bool has_source(const struct weir_extents *v, uint32_t extent)
{
	return weir_extents_count_valid(v, extent) || weir_extents_is_local(v, extent);
}

/* Return: a replica that a repair may read, and that is not among @tried; slots: none. */
static uint8_t find_other(const struct weir_extents *v, const struct weir_extents_resync *copy,
			  uint16_t tried)
{
	const struct weir_replica *replica = v->extent[copy->extent].replica;
	uint8_t slot = 0;

	tried |= (uint16_t)(1u << copy->target);
	while (slot < v->slots &&
	       (replica[slot].state != WEIR_REPLICA_VALID || (tried >> slot & 1)))
		slot++;
	return slot;
}

/* Return: the replica to read; slots: the local disk, if a replica is filled, or none. */
static uint8_t find_source(const struct weir_extents *v, const struct weir_extents_resync *copy)
{
	uint8_t slot = find_other(v, copy, copy->tried);

	return slot == v->slots && !copy->is_repair ? find_other(v, copy, 0) : slot;
}

/*
 * Opens the window over the next chunk and begins a phase. Writes of the phase before must end
 * before the chunk is read, or, after the last chunk, before the replica becomes VALID.
 */
static void open_window(struct weir_extents *v, struct weir_extents_resync *copy)
{
	uint32_t left = copy->end - copy->page;

	copy->state = WEIR_RESYNC_DRAINING;
	copy->pages = left < WEIR_EXTENTS_CHUNK_PAGES ? left : WEIR_EXTENTS_CHUNK_PAGES;
	copy->taken = 0;
	copy->overtaken = 0;
	v->extent[copy->extent].phase ^= 1;
}

void weir_extents_resync_restart(struct weir_extents *v, uint32_t extent)
{
	uint8_t number = weir_extents_copy_of(v, extent);
	struct weir_extents_resync *copy = &v->copy[number];

	if (number == WEIR_EXTENTS_COPIES_MAX)
		return;
	weir_bug(copy->state != WEIR_RESYNC_DRAINING);
	copy->page = 0;
	copy->tried = 0;
	open_window(v, copy);
}

void weir_extents_want(struct weir_extents *v, uint32_t extent)
{
	v->nr_wanted += !v->extent[extent].is_wanted;
	v->extent[extent].is_wanted = true;
}

/* An extent without a replica to fill. */
static void stop_wanting(struct weir_extents *v, uint32_t extent)
{
	v->nr_wanted -= v->extent[extent].is_wanted;
	v->extent[extent].is_wanted = false;
}

/* Return: a replica to repair, or slots. Forgets those that need no repair any more. */
static uint8_t find_wrong(struct weir_extents *v, uint32_t extent)
{
	struct weir_extent *e = &v->extent[extent];
	uint8_t slot = 0;

	for (uint8_t i = 0; e->wrong && i < v->slots; i++) {
		if (e->replica[i].state != WEIR_REPLICA_VALID)
			e->wrong &= (uint16_t)~(1u << i);
	}
	if (!e->wrong || weir_extents_count_valid(v, extent) < 2)
		return v->slots;
	while (!(e->wrong >> slot & 1))
		slot++;
	return slot;
}

/* Return: a replica to fill, or else one to repair, for which there is a source; or slots. */
static uint8_t find_target(struct weir_extents *v, uint32_t extent)
{
	uint8_t slot = find_replica(v, extent, WEIR_REPLICA_FILLING);

	if (slot == v->slots)
		stop_wanting(v, extent);
	return slot < v->slots && has_source(v, extent) ? slot : find_wrong(v, extent);
}

static void begin_copy(struct weir_extents *v, struct weir_extents_resync *copy, uint32_t extent)
{
	struct weir_extent *e = &v->extent[extent];
	uint8_t target = find_target(v, extent);

	*copy = (struct weir_extents_resync){ .extent = extent, .target = target, .end = v->pages };
	if (e->replica[target].state == WEIR_REPLICA_VALID) {
		copy->is_repair = true;
		copy->page = e->wrong_first;
		copy->end = e->wrong_end;
		e->wrong &= (uint16_t)~(1u << target);
	}
	open_window(v, copy);
}

/*
 * Chooses an extent that no other copy fills: the first that is wanted, or else the first. Return:
 * COPY_READ if chosen; COPY_WAIT if one will be ready later; COPY_NOTHING.
 */
static enum weir_extents_copy_op choose_extent(struct weir_extents *v,
					       struct weir_extents_resync *copy)
{
	enum weir_extents_copy_op what = WEIR_EXTENTS_COPY_NOTHING;
	uint32_t best = v->nr_extents;

	for (uint32_t i = 0; i < v->nr_extents; i++) {
		const struct weir_extent *e = &v->extent[i];

		if (find_target(v, i) == v->slots ||
		    weir_extents_copy_of(v, i) < WEIR_EXTENTS_COPIES_MAX)
			continue;
		if (what == WEIR_EXTENTS_COPY_NOTHING)
			what = WEIR_EXTENTS_COPY_WAIT;
		if (e->writes[!e->phase] || (best < v->nr_extents && !e->is_wanted))
			continue; /* writes: of a copy that was aborted */
		what = WEIR_EXTENTS_COPY_READ;
		best = i;
		if (e->is_wanted || !v->nr_wanted)
			break;
	}
	if (what == WEIR_EXTENTS_COPY_READ)
		begin_copy(v, copy, best);
	return what;
}

/* A repair writes no page that nobody can check. */
static void leave_unknown(const struct weir_extents *v, struct weir_extents_resync *copy)
{
	const uint32_t *sum = v->extent[copy->extent].sum + copy->page;

	for (uint32_t i = 0; i < copy->pages; i++) {
		bool is_known = sum[i] != WEIR_SUM_UNKNOWN && sum[i] != WEIR_SUM_NOTHING;

		copy->overtaken |= (uint64_t)!is_known << i;
	}
}

static void read_chunk(struct weir_extents *v, struct weir_extents_resync *copy, uint8_t source,
		       struct weir_extents_copy_step *step)
{
	copy->state = WEIR_RESYNC_READING;
	copy->source = source;
	if (copy->is_repair)
		leave_unknown(v, copy);
	if (source < v->slots)
		replica_of(v, copy, source)->users++;
	replica_of(v, copy, copy->target)->users++;
	*step = (struct weir_extents_copy_step){
		.what = source < v->slots ? WEIR_EXTENTS_COPY_READ : WEIR_EXTENTS_COPY_READ_LOCAL,
		.slot = source,
		.extent = copy->extent,
		.page = copy->page,
		.pages = copy->pages,
	};
}

/* Finds the next run of pages that were not overtaken. Return: true if @step describes one. */
static bool next_run(struct weir_extents_resync *copy, struct weir_extents_copy_step *step)
{
	uint32_t first = copy->taken;

	while (first < copy->pages && (copy->overtaken >> first & 1))
		first++;
	copy->taken = first;
	while (copy->taken < copy->pages && !(copy->overtaken >> copy->taken & 1))
		copy->taken++;
	*step = (struct weir_extents_copy_step){
		.what = WEIR_EXTENTS_COPY_WRITE,
		.slot = copy->target,
		.extent = copy->extent,
		.page = copy->page + first,
		.pages = copy->taken - first,
		.offset = first,
	};
	return step->pages;
}

static void close_chunk(struct weir_extents *v, struct weir_extents_resync *copy)
{
	replica_of(v, copy, copy->target)->users--;
	*(copy->is_repair ? &v->repaired : &v->copied) += copy->pages;
	copy->page += copy->pages;
	copy->tried = 0;
	open_window(v, copy);
}

/* Whether the target still needs the rest of the copy, which has a source. */
static bool may_go_on(const struct weir_extents *v, const struct weir_extents_resync *copy)
{
	const struct weir_replica *target = &v->extent[copy->extent].replica[copy->target];

	if (!copy->is_repair)
		return target->state == WEIR_REPLICA_FILLING && has_source(v, copy->extent);
	return target->state == WEIR_REPLICA_VALID && copy->page < copy->end &&
	       find_source(v, copy) < v->slots;
}

/* Return: true if @step says what to do; false: call again. */
static bool advance(struct weir_extents *v, struct weir_extents_resync *copy,
		    struct weir_extents_copy_step *step)
{
	struct weir_extent *e = &v->extent[copy->extent];

	if (copy->state == WEIR_RESYNC_WRITING) {
		if (next_run(copy, step))
			return true;
		close_chunk(v, copy);
		return false;
	}
	if (!may_go_on(v, copy)) {
		copy->state = WEIR_RESYNC_IDLE;
		return false;
	}
	if (e->writes[!e->phase]) {
		*step = (struct weir_extents_copy_step){ .what = WEIR_EXTENTS_COPY_WAIT };
		return true;
	}
	if (copy->page < copy->end) {
		read_chunk(v, copy, find_source(v, copy), step);
		return true;
	}
	replica_of(v, copy, copy->target)->state = WEIR_REPLICA_VALID;
	copy->state = WEIR_RESYNC_IDLE;
	return false;
}

void weir_extents_resync_next(struct weir_extents *v, uint8_t number,
			      struct weir_extents_copy_step *step)
{
	struct weir_extents_resync *copy = &v->copy[number];

	do {
		enum weir_extents_copy_op what = copy->state == WEIR_RESYNC_IDLE ?
							 choose_extent(v, copy) :
							 WEIR_EXTENTS_COPY_READ;

		if (what != WEIR_EXTENTS_COPY_READ) {
			*step = (struct weir_extents_copy_step){ .what = (uint8_t)what };
			return;
		}
	} while (!advance(v, copy, step));
}

/* The local disk cannot be read: clears the bits of the chunk. */
static void forget_chunk(struct weir_extents *v, const struct weir_extents_resync *copy)
{
	for (uint32_t i = 0; i < copy->pages; i++)
		weir_extents_local_forget(v, copy->extent, copy->page + i);
}

void weir_extents_resync_done(struct weir_extents *v, uint8_t number, bool succeeded)
{
	struct weir_extents_resync *copy = &v->copy[number];
	struct weir_replica *target = replica_of(v, copy, copy->target);

	if (copy->state == WEIR_RESYNC_READING) {
		if (copy->source < v->slots)
			replica_of(v, copy, copy->source)->users--;
		if (succeeded) {
			copy->state = WEIR_RESYNC_WRITING;
			return;
		}
		target->users--;
		if (copy->source == v->slots)
			forget_chunk(v, copy);
		else
			copy->tried |= (uint16_t)(1u << copy->source);
		open_window(v, copy); /* and read it again from a replica that is VALID then */
	} else if (!succeeded) {
		target->users--;
		if (target->state == WEIR_REPLICA_FILLING)
			target->state = WEIR_REPLICA_STALE;
		copy->state = WEIR_RESYNC_IDLE;
	}
}

bool weir_extents_resync_accept(struct weir_extents *v, const struct weir_extents_copy_step *step,
				bool is_match)
{
	const struct weir_extents_resync *copy;
	bool has_other;

	if (is_match || step->what == WEIR_EXTENTS_COPY_READ_LOCAL)
		return is_match;
	if (!v->is_mapped)
		return !weir_extents_distrust(v, step->extent, step->slot, step->page, step->pages);
	copy = &v->copy[weir_extents_copy_of(v, step->extent)];
	has_other = find_other(v, copy, (uint16_t)(copy->tried | 1u << step->slot)) < v->slots;
	/* A repair that finds its source wrong, too, must not cause the opposite repair. */
	if (!copy->is_repair)
		weir_extents_distrust(v, step->extent, step->slot, step->page, step->pages);
	return !has_other && !copy->is_repair;
}

void weir_extents_resync_learn(struct weir_extents *v, uint8_t number, const uint32_t *sums)
{
	const struct weir_extents_resync *copy = &v->copy[number];

	for (uint32_t i = 0; i < copy->pages; i++) {
		uint32_t *sum = &v->extent[copy->extent].sum[copy->page + i];

		if (*sum == WEIR_SUM_UNKNOWN && !(copy->overtaken >> i & 1))
			*sum = sums[i];
	}
}
