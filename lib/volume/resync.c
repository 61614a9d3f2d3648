/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fills new copies chunk by chunk: reads from a valid copy, verifies, writes to the new one. Pages
 * that were wrong at a copy of a pool's volume are replaced in the same way. A
 * chunk of each of a few extents is under way at a time: that hides how long a step takes, and
 * leaves most of the window to the requests.
 */
#include <stdlib.h>

#include "lib/volume/checksum.h"
#include "lib/volume/request.h"
#include "lib/volume/resync.h"

static void step_done(void *arg, int status)
{
	struct weir_volume_resync *r = arg;

	r->status = status;
	weir_volume_push(r->volume, &r->event);
}

bool weir_volume_resync_init(struct weir_volume *v)
{
	bool has_all = true;

	for (uint8_t i = 0; i < WEIR_EXTENTS_COPIES_MAX; i++) {
		struct weir_volume_resync *r = &v->resync[i];

		r->event.kind = WEIR_VOLUME_EVENT_RESYNC;
		r->volume = v;
		r->number = i;
		r->chunk = malloc((size_t)WEIR_EXTENTS_CHUNK_PAGES * WEIR_VOLUME_PAGE_BYTES);
		has_all &= r->chunk != NULL;
	}
	return has_all;
}

void weir_volume_resync_fini(struct weir_volume *v)
{
	for (uint8_t i = 0; i < WEIR_EXTENTS_COPIES_MAX; i++)
		free(v->resync[i].chunk);
}

/* With the lock held, so that its place among the writes is the core's. */
static int push_step(struct weir_volume_resync *r)
{
	struct weir_volume *v = r->volume;
	const struct weir_extents_copy_step *step = &r->step;
	struct weir_region *region = *weir_volume_region(v, step->extent, step->slot);
	struct weir_completion completion = { .done = step_done, .arg = r };
	struct weir_iov iov = { r->chunk + (size_t)step->offset * WEIR_VOLUME_PAGE_BYTES,
				(size_t)step->pages * WEIR_VOLUME_PAGE_BYTES, NULL };
	uint64_t offset = (uint64_t)step->page * WEIR_VOLUME_PAGE_BYTES;

	if (!region)
		return -ENOTCONN;
	if (step->what == WEIR_EXTENTS_COPY_WRITE)
		return weir_write_async(region, offset, &iov, 1, &completion, NULL);
	weir_extents_expect(&v->core, step->extent, step->page, step->pages, r->sums);
	return weir_read_async(region, offset, &iov, 1, &completion, NULL);
}

/* After a failure, the maintaining thread starts again. */
static void start(struct weir_volume_resync *r)
{
	struct weir_volume *v = r->volume;

	r->waits = false;
	if (r->is_busy || weir_volume_is_closing(v))
		return;
	weir_extents_resync_next(&v->core, r->number, &r->step);
	r->waits = r->step.what == WEIR_EXTENTS_COPY_WAIT;
	if (r->waits || r->step.what == WEIR_EXTENTS_COPY_NOTHING)
		return;
	r->is_busy = true;
	if (!push_step(r))
		return;
	r->is_busy = false;
	weir_extents_resync_done(&v->core, r->number, false);
}

void weir_volume_resync_start(struct weir_volume *v)
{
	for (uint8_t i = 0; i < WEIR_EXTENTS_COPIES_MAX; i++)
		start(&v->resync[i]);
}

void weir_volume_resync_write_ended(struct weir_volume *v)
{
	for (uint8_t i = 0; i < WEIR_EXTENTS_COPIES_MAX; i++) {
		if (v->resync[i].waits)
			start(&v->resync[i]);
	}
}

bool weir_volume_resync_is_busy(const struct weir_volume *v)
{
	bool any = false;

	for (uint8_t i = 0; i < WEIR_EXTENTS_COPIES_MAX; i++)
		any |= v->resync[i].is_busy;
	return any;
}

/* The number of page @i of the step. */
static uint64_t page_number(const struct weir_volume_resync *r, uint32_t i)
{
	return weir_volume_page_number(r->volume, r->step.extent, r->step.page + i);
}

static bool is_as_expected(const struct weir_volume_resync *r)
{
	bool is_right = true;

	for (uint32_t i = 0; i < r->step.pages; i++)
		is_right &= weir_volume_checksum_accept(
			&r->volume->checksum_key, page_number(r, i),
			r->chunk + (size_t)i * WEIR_VOLUME_PAGE_BYTES, r->sums[i]);
	return is_right;
}

/* Whether the step's pages may be used. An UNKNOWN page that is used has a checksum from now on. */
static bool is_accepted(struct weir_volume_resync *r)
{
	struct weir_volume *v = r->volume;
	bool is_read = r->step.what == WEIR_EXTENTS_COPY_READ;
	bool is_match = !is_read || is_as_expected(r);

	v->mismatches += !is_match;
	if (!weir_extents_resync_accept(&v->core, &r->step, is_match))
		return false;
	for (uint32_t i = 0; is_read && i < r->step.pages; i++) {
		if (r->sums[i] == WEIR_SUM_UNKNOWN)
			r->sums[i] =
				weir_volume_checksum(&v->checksum_key, page_number(r, i),
						     r->chunk + (size_t)i * WEIR_VOLUME_PAGE_BYTES);
	}
	if (is_read)
		weir_extents_resync_learn(&v->core, r->number, r->sums);
	return true;
}

void weir_volume_resync_continue(struct weir_volume_resync *r)
{
	struct weir_volume *v = r->volume;
	const uint32_t extent = r->step.extent;

	r->is_busy = false;
	if (r->status)
		v->layout->suspect(v, r->step.extent, r->step.slot);
	weir_extents_resync_done(&v->core, r->number, !r->status && is_accepted(r));
	if (!r->status)
		start(r);
	if (!r->is_busy && !r->waits)
		weir_volume_kick(v); /* replaced memory can go now, or a step has failed */
	if (!r->is_busy || r->step.extent != extent)
		weir_volume_pieces_resume(v, v->status); /* that wait for the extent */
}
