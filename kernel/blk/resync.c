// SPDX-License-Identifier: GPL-2.0-only
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kernel/blk/resync.h"
#include "kernel/blk/local.h"
#include "kernel/blk/checksum.h"
#include "kernel/blk/trace.h"

static void step_done(struct kweir_io *io)
{
	complete(&container_of(io, struct weir_blk_resync, io)->ended);
}

int weir_blk_resync_alloc(struct weir_blk_resync **out)
{
	struct weir_blk_resync *resync = kzalloc(sizeof(*resync), GFP_KERNEL);
	unsigned int i;

	*out = resync;
	if (!resync)
		return -ENOMEM;
	resync->io.done = step_done;
	init_completion(&resync->ended);
	for (i = 0; i < WEIR_EXTENTS_CHUNK_PAGES; i++) {
		resync->page[i] = alloc_page(GFP_KERNEL);
		if (!resync->page[i])
			return -ENOMEM;
	}
	return 0;
}

void weir_blk_resync_free(struct weir_blk_resync *resync)
{
	unsigned int i;

	for (i = 0; resync && i < WEIR_EXTENTS_CHUNK_PAGES; i++) {
		if (resync->page[i])
			__free_page(resync->page[i]);
	}
	kfree(resync);
}

/* Selects the pages of @step. */
static void choose_pages(struct weir_blk_resync *resync, const struct weir_extents_copy_step *step)
{
	u32 i;

	sg_init_table(resync->sgl, step->pages);
	for (i = 0; i < step->pages; i++)
		sg_set_page(&resync->sgl[i], resync->page[step->offset + i], PAGE_SIZE, 0);
}

int weir_blk_resync_start_step(struct weir_blk_volume *volume, struct weir_blk_resync *resync,
			       const struct weir_extents_copy_step *step)
{
	bool is_write = step->what == WEIR_EXTENTS_COPY_WRITE;
	int rc;

	choose_pages(resync, step);
	reinit_completion(&resync->ended);
	rc = kweir_io_prepare(&resync->io, weir_blk_volume_region(volume, step->extent, step->slot),
			      (u64)step->page << PAGE_SHIFT,
			      is_write ? WEIR_OP_WRITE : WEIR_OP_READ, resync->sgl, step->pages);
	if (!is_write)
		weir_extents_expect(&volume->core, step->extent, step->page, step->pages,
				    resync->sums);
	if (!rc)
		kweir_io_push(&resync->io);
	return rc;
}

int weir_blk_resync_wait_step(struct weir_blk_resync *resync)
{
	kweir_session_serve(resync->io.session);
	wait_for_completion(&resync->ended);
	return resync->io.status;
}

/*
 * Pushes the next step under the lock, so that its place among the block layer's writes is the
 * place that the core has assumed. Return: true if a step can run now, or if no work is left.
 */
static bool start_step(struct weir_blk_volume *volume, struct weir_extents_copy_step *step, int *rc)
{
	struct weir_blk_resync *resync = volume->resync;

	step->what = WEIR_EXTENTS_COPY_NOTHING;
	if (READ_ONCE(volume->closing))
		return true;
	spin_lock_bh(&volume->lock);
	weir_extents_resync_next(&volume->core, step);
	if (step->what == WEIR_EXTENTS_COPY_READ || step->what == WEIR_EXTENTS_COPY_WRITE) {
		*rc = weir_blk_resync_start_step(volume, resync, step);
	} else if (step->what == WEIR_EXTENTS_COPY_READ_LOCAL) {
		choose_pages(resync, step);
		weir_extents_expect(&volume->core, step->extent, step->page, step->pages,
				    resync->sums);
	}
	spin_unlock_bh(&volume->lock);
	return step->what != WEIR_EXTENTS_COPY_WAIT;
}

static bool is_as_expected(struct weir_blk_volume *volume,
			   const struct weir_extents_copy_step *step)
{
	if (step->what == WEIR_EXTENTS_COPY_WRITE ||
	    weir_blk_checksum_check(volume->resync->sgl, step->pages, volume->resync->sums))
		return true;
	atomic64_inc(&volume->mismatches);
	return false;
}

static int end_step(struct weir_blk_volume *volume, const struct weir_extents_copy_step *step,
		    int rc)
{
	bool is_match, succeeded;

	if (step->what == WEIR_EXTENTS_COPY_READ_LOCAL)
		rc = weir_blk_local_read(volume->local,
					 weir_blk_volume_offset(volume, step->extent, step->page),
					 volume->resync->sgl, step->pages);
	else if (!rc)
		rc = weir_blk_resync_wait_step(volume->resync);
	is_match = !rc && is_as_expected(volume, step);
	trace_weir_blk_copy(volume, step, rc);
	spin_lock_bh(&volume->lock);
	succeeded = !rc && weir_extents_resync_accept(&volume->core, step, is_match);
	weir_extents_resync_done(&volume->core, succeeded);
	spin_unlock_bh(&volume->lock);
	return rc;
}

/*
 * Fills until nothing is left or a step fails; after a failure the work retries within a second.
 * Return: true if something was filled.
 */
static bool fill_all(struct weir_blk_volume *volume)
{
	struct weir_extents_copy_step step;
	bool any = false;
	int rc = 0;

	while (!rc) {
		if (!wait_event_timeout(volume->settled, start_step(volume, &step, &rc), HZ) ||
		    step.what == WEIR_EXTENTS_COPY_NOTHING)
			return any;
		rc = end_step(volume, &step, rc);
		any = true;
	}
	return false;
}

void weir_blk_resync(struct work_struct *work)
{
	struct weir_blk_volume *volume = container_of(work, struct weir_blk_volume, resync_work);
	unsigned int flags = memalloc_noio_save();

	if (fill_all(volume))
		weir_blk_volume_kick(volume); /* replaced memory can go now */
	memalloc_noio_restore(flags);
}
