// SPDX-License-Identifier: GPL-2.0-only
#include <linux/completion.h>
#include <linux/slab.h>

#include "kernel/blk/fill.h"
#include "kernel/blk/sums.h"
#include "kernel/blk/trace.h"
#include "kernel/blk/volume.h"

static_assert(WEIR_VOLUME_CHUNK_PAGES <= WEIR_IO_SEGMENTS, "a chunk is one io");

struct weir_fill {
	struct weir_io io;
	struct completion ended;
	struct scatterlist sgl[WEIR_VOLUME_CHUNK_PAGES];
	u32 sums[WEIR_VOLUME_CHUNK_PAGES];
	struct page *page[WEIR_VOLUME_CHUNK_PAGES];
};

static void done(struct weir_io *io)
{
	complete(&container_of(io, struct weir_fill, io)->ended);
}

int weir_fill_alloc(struct weir_fill **out)
{
	struct weir_fill *fill = kzalloc(sizeof(*fill), GFP_KERNEL);
	unsigned int i;

	*out = fill;
	if (!fill)
		return -ENOMEM;
	fill->io.done = done;
	init_completion(&fill->ended);
	for (i = 0; i < WEIR_VOLUME_CHUNK_PAGES; i++) {
		fill->page[i] = alloc_page(GFP_KERNEL);
		if (!fill->page[i])
			return -ENOMEM;
	}
	return 0;
}

void weir_fill_free(struct weir_fill *fill)
{
	unsigned int i;

	for (i = 0; fill && i < WEIR_VOLUME_CHUNK_PAGES; i++) {
		if (fill->page[i])
			__free_page(fill->page[i]);
	}
	kfree(fill);
}

/* Return: 0; or it cannot even be tried. */
static int prepare(struct weir_blk_volume *volume, const struct weir_copy_step *step)
{
	struct weir_fill *fill = volume->fill;
	u32 i;

	sg_init_table(fill->sgl, step->pages);
	for (i = 0; i < step->pages; i++)
		sg_set_page(&fill->sgl[i], fill->page[step->offset + i], PAGE_SIZE, 0);
	return weir_io_prepare(&fill->io, weir_blk_volume_region(volume, step->extent, step->slot),
			       (u64)step->page << PAGE_SHIFT,
			       step->what == WEIR_COPY_READ ? WEIR_OP_READ : WEIR_OP_WRITE,
			       fill->sgl, step->pages);
}

/*
 * The next step, pushed under the lock, so that its place among the writes of the block layer is
 * the one that the core has decided by. Return: whether there is something to do now.
 */
static bool begin(struct weir_blk_volume *volume, struct weir_copy_step *step, int *rc)
{
	bool is_io;

	spin_lock_bh(&volume->lock);
	weir_volume_copy_next(&volume->core, step);
	is_io = step->what == WEIR_COPY_READ || step->what == WEIR_COPY_WRITE;
	if (is_io) {
		reinit_completion(&volume->fill->ended);
		*rc = prepare(volume, step);
		if (step->what == WEIR_COPY_READ)
			weir_volume_expect(&volume->core, step->extent, step->page, step->pages,
					   volume->fill->sums);
		if (!*rc)
			weir_io_push(&volume->fill->io);
	}
	spin_unlock_bh(&volume->lock);
	return step->what != WEIR_COPY_WAIT;
}

/*
 * A chunk with a page that is not what was written is read elsewhere; but the last replica's is taken
 * as it is, for the other pages: who reads this one will see that it is wrong.
 */
static bool is_credible(struct weir_blk_volume *volume, const struct weir_copy_step *step)
{
	bool is_dropped;

	if (step->what != WEIR_COPY_READ ||
	    weir_sums_check(volume->fill->sgl, step->pages, volume->fill->sums))
		return true;
	atomic64_inc(&volume->mismatches);
	spin_lock_bh(&volume->lock);
	is_dropped = weir_volume_mistrust(&volume->core, step->extent, step->slot);
	spin_unlock_bh(&volume->lock);
	return !is_dropped;
}

static int end(struct weir_blk_volume *volume, const struct weir_copy_step *step, int rc)
{
	bool succeeded;

	if (!rc) {
		weir_session_serve(volume->fill->io.session);
		wait_for_completion(&volume->fill->ended);
		rc = volume->fill->io.status;
	}
	succeeded = !rc && is_credible(volume, step);
	trace_weir_blk_copy(volume, step, rc);
	spin_lock_bh(&volume->lock);
	weir_volume_copy_did(&volume->core, succeeded);
	spin_unlock_bh(&volume->lock);
	return rc;
}

void weir_fill(struct weir_blk_volume *volume)
{
	struct weir_copy_step step;
	int rc = 0;

	while (!rc) {
		if (!wait_event_timeout(volume->settled, begin(volume, &step, &rc), HZ) ||
		    step.what == WEIR_COPY_NOTHING)
			return;
		rc = end(volume, &step, rc);
	}
}
