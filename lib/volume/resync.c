/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fills new copies chunk by chunk: reads from a valid copy, verifies, writes to the new one. One
 * chunk is under way at a time, which leaves most of the window to the requests.
 */
#include "lib/base/clock.h"
#include "lib/base/futex.h"
#include "lib/volume/checksum.h"
#include "lib/volume/maintain.h"
#include "lib/volume/volume.h"

static void step_done(void *arg, int status)
{
	struct weir_volume_resync *resync = arg;

	resync->status = status;
	__atomic_store_n(&resync->ended, 1, __ATOMIC_SEQ_CST);
	weir_futex_wake(&resync->ended, 1);
}

/* Pushes a step. With the lock held, so that its place among the writes is the core's. */
static int push_step(struct weir_volume *v, const struct weir_extents_copy_step *step)
{
	struct weir_region *region = *weir_volume_region(v, step->extent, step->slot);
	struct weir_completion completion = { .done = step_done, .arg = &v->resync };
	struct weir_iov iov = { v->resync.chunk + (size_t)step->offset * WEIR_VOLUME_PAGE_BYTES,
				(size_t)step->pages * WEIR_VOLUME_PAGE_BYTES, NULL };
	uint64_t offset = (uint64_t)step->page * WEIR_VOLUME_PAGE_BYTES;

	__atomic_store_n(&v->resync.ended, 0, __ATOMIC_SEQ_CST);
	if (step->what == WEIR_EXTENTS_COPY_WRITE)
		return weir_write_async(region, offset, &iov, 1, &completion, NULL);
	weir_extents_expect(&v->core, step->extent, step->page, step->pages, v->resync.sums);
	return weir_read_async(region, offset, &iov, 1, &completion, NULL);
}

/* Return: what to do now; a READ or WRITE has been pushed unless @rc says otherwise. */
static enum weir_extents_copy_op start_step(struct weir_volume *v,
					    struct weir_extents_copy_step *step, int *rc)
{
	*rc = 0;
	weir_volume_lock(v);
	weir_extents_resync_next(&v->core, step);
	if (step->what == WEIR_EXTENTS_COPY_READ || step->what == WEIR_EXTENTS_COPY_WRITE)
		*rc = push_step(v, step);
	weir_volume_unlock(v);
	return step->what;
}

static int wait_step(struct weir_volume *v)
{
	while (!__atomic_load_n(&v->resync.ended, __ATOMIC_SEQ_CST))
		weir_futex_wait(&v->resync.ended, 0, UINT64_MAX);
	return v->resync.status;
}

static bool is_as_expected(struct weir_volume *v, const struct weir_extents_copy_step *step)
{
	bool is_right = true;

	for (uint32_t i = 0; i < step->pages; i++)
		is_right &= weir_volume_checksum_accept(
			v->resync.chunk + (size_t)i * WEIR_VOLUME_PAGE_BYTES, v->resync.sums[i]);
	return is_right;
}

/*
 * A chunk with a wrong page is read from another copy. The last copy's chunk is accepted for the
 * sake of its other pages: a reader of the wrong page will notice the mismatch.
 */
static bool is_credible(struct weir_volume *v, const struct weir_extents_copy_step *step)
{
	bool is_dropped;

	if (step->what == WEIR_EXTENTS_COPY_WRITE || is_as_expected(v, step))
		return true;
	weir_volume_lock(v);
	v->mismatches++;
	is_dropped = weir_extents_distrust(&v->core, step->extent, step->slot);
	weir_volume_unlock(v);
	return !is_dropped;
}

/* Return: whether the step succeeded. */
static bool end_step(struct weir_volume *v, const struct weir_extents_copy_step *step, int rc)
{
	bool succeeded;

	if (!rc)
		rc = wait_step(v);
	succeeded = !rc && is_credible(v, step);
	weir_volume_lock(v);
	weir_extents_resync_done(&v->core, succeeded);
	weir_volume_unlock(v);
	return !rc;
}

/* Fills until nothing is left, a step fails, or writes must end first. */
static void fill(struct weir_volume *v)
{
	struct weir_extents_copy_step step;
	enum weir_extents_copy_op what;
	bool any = false, goes_on = true;
	int rc;

	while (goes_on && !weir_volume_is_closing(v)) {
		what = start_step(v, &step, &rc);
		if (what == WEIR_EXTENTS_COPY_NOTHING || what == WEIR_EXTENTS_COPY_WAIT)
			break;
		any = goes_on = end_step(v, &step, rc);
	}
	if (any)
		weir_volume_kick(v); /* replaced memory can go now */
}

/* After a failed step, the next tick tries again. */
void *weir_volume_resync(void *arg)
{
	struct weir_volume *v = arg;

	while (!weir_volume_is_closing(v)) {
		uint32_t seen = __atomic_load_n(&v->settled, __ATOMIC_SEQ_CST);

		fill(v);
		weir_volume_sleep(&v->settled, seen, weir_now_ns() + WEIR_VOLUME_TICK_NS);
	}
	return NULL;
}
