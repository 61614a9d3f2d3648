// SPDX-License-Identifier: GPL-2.0-only
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kernel/blk/resync.h"
#include "kernel/blk/local.h"
#include "kernel/blk/trace.h"

static void step_done(struct kweir_io *io)
{
	complete(&container_of(io, struct weir_blk_resync, io)->ended);
}

static int alloc_pages_of(struct weir_blk_resync *resync)
{
	unsigned int i;

	for (i = 0; i < WEIR_EXTENTS_CHUNK_PAGES; i++) {
		resync->page[i] = alloc_page(GFP_KERNEL);
		if (!resync->page[i])
			return -ENOMEM;
	}
	return 0;
}

int weir_blk_resync_alloc(const struct weir_blk_cipher *cipher, struct weir_blk_resync **out,
			  struct kweir_error *error)
{
	struct weir_blk_resync *resync = kzalloc(sizeof(*resync), GFP_KERNEL);
	int rc = -ENOMEM;

	*out = resync;
	if (resync)
		rc = alloc_pages_of(resync);
	if (!rc && cipher->aead)
		rc = weir_blk_seal_alloc(cipher, 1, &resync->seal);
	if (rc)
		return kweir_fail(error, rc, "no memory for copies of pages");
	resync->io.done = step_done;
	init_completion(&resync->ended);
	return 0;
}

void weir_blk_resync_free(struct weir_blk_resync *resync)
{
	unsigned int i;

	if (!resync)
		return;
	for (i = 0; i < WEIR_EXTENTS_CHUNK_PAGES; i++) {
		if (resync->page[i])
			__free_page(resync->page[i]);
	}
	weir_blk_seal_free(resync->seal);
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
	struct kweir_region *region = weir_blk_volume_region(volume, step->extent, step->slot);
	bool is_write = step->what == WEIR_EXTENTS_COPY_WRITE;
	int rc;

	choose_pages(resync, step);
	reinit_completion(&resync->ended);
	if (!region->session) /* a pool's donor, not connected now */
		return -ENODEV;
	rc = kweir_io_prepare(&resync->io, region, (u64)step->page << PAGE_SHIFT,
			      is_write ? WEIR_OP_WRITE : WEIR_OP_READ, resync->sgl, step->pages);
	if (!is_write)
		weir_blk_volume_expect(volume, step->extent, step->page, step->pages, resync->sums,
				       resync->seal);
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
	weir_extents_resync_next(&volume->core, 0, step);
	if (step->what == WEIR_EXTENTS_COPY_READ || step->what == WEIR_EXTENTS_COPY_WRITE) {
		*rc = weir_blk_resync_start_step(volume, resync, step);
	} else if (step->what == WEIR_EXTENTS_COPY_READ_LOCAL) {
		choose_pages(resync, step);
		weir_blk_volume_expect(volume, step->extent, step->page, step->pages, resync->sums,
				       resync->seal);
	}
	spin_unlock_bh(&volume->lock);
	return step->what != WEIR_EXTENTS_COPY_WAIT;
}

bool weir_blk_resync_is_right(const struct weir_blk_volume *volume, struct weir_blk_resync *resync,
			      const struct weir_extents_copy_step *step)
{
	u64 first = weir_blk_volume_page(volume, step->extent, step->page);

	if (resync->seal)
		return !weir_blk_seal_verify(resync->seal, resync->sgl, first, step->pages,
					     resync->sums);
	return weir_blk_checksum_check(&volume->checksum_key, resync->sgl, first, step->pages,
				       resync->sums);
}

static bool is_as_expected(struct weir_blk_volume *volume,
			   const struct weir_extents_copy_step *step)
{
	if (step->what == WEIR_EXTENTS_COPY_WRITE ||
	    weir_blk_resync_is_right(volume, volume->resync, step))
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
	weir_extents_resync_done(&volume->core, 0, succeeded);
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
