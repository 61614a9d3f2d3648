/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fills new copies chunk by chunk: reads from a valid copy, verifies, writes to the new one. One
 * chunk is under way at a time, which leaves most of the window to the requests.
 */
#include "lib/volume/checksum.h"
#include "lib/volume/request.h"
#include "lib/volume/resync.h"

static void step_done(void *arg, int status)
{
	struct weir_volume *v = arg;

	v->resync.status = status;
	weir_volume_push(v, &v->resync.event);
}

/* With the lock held, so that its place among the writes is the core's. */
static int push_step(struct weir_volume *v)
{
	const struct weir_extents_copy_step *step = &v->resync.step;
	struct weir_region *region = *weir_volume_region(v, step->extent, step->slot);
	struct weir_completion completion = { .done = step_done, .arg = v };
	struct weir_iov iov = { v->resync.chunk + (size_t)step->offset * WEIR_VOLUME_PAGE_BYTES,
				(size_t)step->pages * WEIR_VOLUME_PAGE_BYTES, NULL };
	uint64_t offset = (uint64_t)step->page * WEIR_VOLUME_PAGE_BYTES;

	if (!region)
		return -ENOTCONN;
	if (step->what == WEIR_EXTENTS_COPY_WRITE)
		return weir_write_async(region, offset, &iov, 1, &completion, NULL);
	weir_extents_expect(&v->core, step->extent, step->page, step->pages, v->resync.sums);
	return weir_read_async(region, offset, &iov, 1, &completion, NULL);
}

/* After a failure, the maintaining thread starts again. */
void weir_volume_resync_start(struct weir_volume *v)
{
	struct weir_volume_resync *r = &v->resync;

	r->waits = false;
	if (r->is_busy || weir_volume_is_closing(v))
		return;
	weir_extents_resync_next(&v->core, &r->step);
	r->waits = r->step.what == WEIR_EXTENTS_COPY_WAIT;
	if (r->waits || r->step.what == WEIR_EXTENTS_COPY_NOTHING)
		return;
	r->is_busy = true;
	if (!push_step(v))
		return;
	r->is_busy = false;
	weir_extents_resync_done(&v->core, false);
}

static bool is_as_expected(const struct weir_volume_resync *r)
{
	bool is_right = true;

	for (uint32_t i = 0; i < r->step.pages; i++)
		is_right &= weir_volume_checksum_accept(
			r->chunk + (size_t)i * WEIR_VOLUME_PAGE_BYTES, r->sums[i]);
	return is_right;
}

/* Whether the step's pages may be used. An UNKNOWN page that is used has a checksum from now on. */
static bool is_accepted(struct weir_volume *v)
{
	struct weir_volume_resync *r = &v->resync;
	bool is_read = r->step.what == WEIR_EXTENTS_COPY_READ;
	bool is_match = !is_read || is_as_expected(r);

	if (!is_match) {
		v->mismatches++;
		v->layout->suspect(v, r->step.extent, r->step.slot);
	}
	if (!weir_extents_resync_accept(&v->core, &r->step, is_match))
		return false;
	for (uint32_t i = 0; is_read && i < r->step.pages; i++) {
		if (r->sums[i] == WEIR_SUM_UNKNOWN)
			r->sums[i] = weir_volume_checksum(r->chunk +
							  (size_t)i * WEIR_VOLUME_PAGE_BYTES);
	}
	if (is_read)
		weir_extents_resync_learn(&v->core, r->sums);
	return true;
}

void weir_volume_resync_continue(struct weir_volume *v)
{
	struct weir_volume_resync *r = &v->resync;
	const uint32_t extent = r->step.extent;

	r->is_busy = false;
	if (r->status)
		v->layout->suspect(v, r->step.extent, r->step.slot);
	weir_extents_resync_done(&v->core, !r->status && is_accepted(v));
	if (!r->status)
		weir_volume_resync_start(v);
	if (!r->is_busy && !r->waits)
		weir_volume_kick(v); /* replaced memory can go now, or a step has failed */
	if (!r->is_busy || r->step.extent != extent)
		weir_volume_pieces_resume(v, v->status); /* that wait for the extent */
}
