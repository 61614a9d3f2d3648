/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fills a replica during reads and writes; extents.h explains why this is correct. */
#include "core/volume/extents.h"

static struct weir_replica *replica_of(struct weir_extents *v, uint8_t slot)
{
	return &v->extent[v->copy.extent].replica[slot];
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

/*
 * Opens the window over the next chunk and begins a phase. Writes of the phase before must end
 * before the chunk is read, or, after the last chunk, before the replica becomes VALID.
 */
static void open_window(struct weir_extents *v)
{
	struct weir_extents_resync *copy = &v->copy;
	uint32_t left = v->pages - copy->page;

	copy->state = WEIR_RESYNC_DRAINING;
	copy->pages = left < WEIR_EXTENTS_CHUNK_PAGES ? left : WEIR_EXTENTS_CHUNK_PAGES;
	copy->taken = 0;
	copy->overtaken = 0;
	v->extent[copy->extent].phase ^= 1;
}

void weir_extents_resync_restart(struct weir_extents *v, uint32_t extent)
{
	if (v->copy.state == WEIR_RESYNC_IDLE || v->copy.extent != extent)
		return;
	weir_bug(v->copy.state != WEIR_RESYNC_DRAINING);
	v->copy.page = 0;
	open_window(v);
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

/*
 * Chooses an extent to fill: the first that is wanted, or else the first. Return: COPY_READ if
 * chosen; COPY_WAIT if one will be ready later; COPY_NOTHING.
 */
static enum weir_extents_copy_op choose_extent(struct weir_extents *v)
{
	enum weir_extents_copy_op what = WEIR_EXTENTS_COPY_NOTHING;
	uint32_t best = v->nr_extents;

	for (uint32_t i = 0; i < v->nr_extents; i++) {
		const struct weir_extent *e = &v->extent[i];
		uint8_t target = find_replica(v, i, WEIR_REPLICA_FILLING);

		if (target == v->slots)
			stop_wanting(v, i);
		if (target == v->slots || !has_source(v, i))
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
	if (what != WEIR_EXTENTS_COPY_READ)
		return what;
	v->copy = (struct weir_extents_resync){
		.extent = best, .target = find_replica(v, best, WEIR_REPLICA_FILLING)
	};
	open_window(v);
	return what;
}

static void read_chunk(struct weir_extents *v, uint8_t source, struct weir_extents_copy_step *step)
{
	struct weir_extents_resync *copy = &v->copy;

	copy->state = WEIR_RESYNC_READING;
	copy->source = source;
	if (source < v->slots)
		replica_of(v, source)->users++;
	replica_of(v, copy->target)->users++;
	*step = (struct weir_extents_copy_step){
		.what = source < v->slots ? WEIR_EXTENTS_COPY_READ : WEIR_EXTENTS_COPY_READ_LOCAL,
		.slot = source,
		.extent = copy->extent,
		.page = copy->page,
		.pages = copy->pages,
	};
}

/* Finds the next run of pages that were not overtaken. Return: true if @step describes one. */
static bool next_run(struct weir_extents *v, struct weir_extents_copy_step *step)
{
	struct weir_extents_resync *copy = &v->copy;
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

static void close_chunk(struct weir_extents *v)
{
	replica_of(v, v->copy.target)->users--;
	v->copied += v->copy.pages;
	v->copy.page += v->copy.pages;
	open_window(v);
}

/* Return: true if @step says what to do; false: call again. */
static bool advance(struct weir_extents *v, struct weir_extents_copy_step *step)
{
	struct weir_extents_resync *copy = &v->copy;
	struct weir_extent *e = &v->extent[copy->extent];
	uint8_t source = find_replica(v, copy->extent, WEIR_REPLICA_VALID);

	if (copy->state == WEIR_RESYNC_WRITING) {
		if (next_run(v, step))
			return true;
		close_chunk(v);
		return false;
	}
	if (replica_of(v, copy->target)->state != WEIR_REPLICA_FILLING ||
	    !has_source(v, copy->extent)) {
		copy->state = WEIR_RESYNC_IDLE;
		return false;
	}
	if (e->writes[!e->phase]) {
		*step = (struct weir_extents_copy_step){ .what = WEIR_EXTENTS_COPY_WAIT };
		return true;
	}
	if (copy->page < v->pages) {
		read_chunk(v, source, step);
		return true;
	}
	replica_of(v, copy->target)->state = WEIR_REPLICA_VALID;
	copy->state = WEIR_RESYNC_IDLE;
	return false;
}

void weir_extents_resync_next(struct weir_extents *v, struct weir_extents_copy_step *step)
{
	do {
		enum weir_extents_copy_op what = v->copy.state == WEIR_RESYNC_IDLE ?
							 choose_extent(v) :
							 WEIR_EXTENTS_COPY_READ;

		if (what != WEIR_EXTENTS_COPY_READ) {
			*step = (struct weir_extents_copy_step){ .what = (uint8_t)what };
			return;
		}
	} while (!advance(v, step));
}

/* The local disk cannot be read: clears the bits of the chunk. */
static void forget_chunk(struct weir_extents *v)
{
	for (uint32_t i = 0; i < v->copy.pages; i++)
		weir_extents_local_forget(v, v->copy.extent, v->copy.page + i);
}

void weir_extents_resync_done(struct weir_extents *v, bool succeeded)
{
	struct weir_extents_resync *copy = &v->copy;
	struct weir_replica *target = replica_of(v, copy->target);

	if (copy->state == WEIR_RESYNC_READING) {
		if (copy->source < v->slots)
			replica_of(v, copy->source)->users--;
		if (succeeded) {
			copy->state = WEIR_RESYNC_WRITING;
			return;
		}
		target->users--;
		if (copy->source == v->slots)
			forget_chunk(v);
		open_window(v); /* and read it again from a replica that is VALID then */
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
	if (is_match || step->what == WEIR_EXTENTS_COPY_READ_LOCAL)
		return is_match;
	return !weir_extents_distrust(v, step->extent, step->slot);
}

void weir_extents_resync_learn(struct weir_extents *v, const uint32_t *sums)
{
	const struct weir_extents_resync *copy = &v->copy;

	for (uint32_t i = 0; i < copy->pages; i++) {
		uint32_t *sum = &v->extent[copy->extent].sum[copy->page + i];

		if (*sum == WEIR_SUM_UNKNOWN && !(copy->overtaken >> i & 1))
			*sum = sums[i];
	}
}
