/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pages on the local disk, and the pages to copy there next; extents.h explains when the disk
 * is read.
 */
#include "core/volume/extents.h"

#define LOOK_PAGES_MAX 4096u /* pages searched in one call, with the host's lock held */

static bool page_is_local(const struct weir_extent *e, uint32_t page)
{
	return e->local[page / 64] >> page % 64 & 1;
}

bool weir_extents_local_has(const struct weir_extents *v, uint32_t extent, uint32_t page,
			    uint32_t pages)
{
	const struct weir_extent *e = &v->extent[extent];

	for (uint32_t i = page; e->local && i < page + pages; i++) {
		if (e->sum[i] != WEIR_SUM_NOTHING && !page_is_local(e, i))
			return false;
	}
	return e->local;
}

bool weir_extents_is_local(const struct weir_extents *v, uint32_t extent)
{
	return v->extent[extent].live && v->extent[extent].nr_local == v->extent[extent].live;
}

void weir_extents_local_forget(struct weir_extents *v, uint32_t extent, uint32_t page)
{
	struct weir_extent *e = &v->extent[extent];
	struct weir_extents_local_copy *local = &v->local;

	if (!e->local)
		return;
	e->nr_local -= page_is_local(e, page);
	e->local[page / 64] &= ~(1ull << page % 64);
	if (local->is_busy && local->extent == extent && page >= local->page &&
	    page < local->page + local->pages)
		local->overtaken |= 1ull << (page - local->page);
}

/* Whether the disk lacks a page that it should have. An unknown page is never copied. */
static bool is_behind(const struct weir_extent *e, uint32_t page)
{
	return e->sum[page] != WEIR_SUM_NOTHING && e->sum[page] != WEIR_SUM_UNKNOWN &&
	       !page_is_local(e, page);
}

/* Whether the current extent is worth searching. */
static bool may_be_behind(const struct weir_extents *v)
{
	const struct weir_extent *e = &v->extent[v->local.extent];

	return v->local.page < v->pages && e->local && e->live > e->nr_local &&
	       weir_extents_count_valid(v, v->local.extent);
}

static void go_to_next_extent(struct weir_extents *v)
{
	v->local.page = 0;
	v->local.extent = (v->local.extent + 1) % v->nr_extents;
	v->local.passed++;
}

/* Moves to the next page to copy. Return: true if found before the search limit. */
static bool find_next_page(struct weir_extents *v)
{
	struct weir_extents_local_copy *local = &v->local;

	for (uint32_t i = 0; i < LOOK_PAGES_MAX && local->passed <= v->nr_extents; i++) {
		if (!may_be_behind(v))
			go_to_next_extent(v);
		else if (is_behind(&v->extent[local->extent], local->page))
			return true;
		else
			local->page++;
	}
	return false;
}

void weir_extents_local_next(struct weir_extents *v, struct weir_extents_copy_step *step)
{
	struct weir_extents_local_copy *local = &v->local;

	local->page += local->pages;
	local->pages = 0;
	if (!find_next_page(v)) {
		bool is_over = local->passed > v->nr_extents;

		local->passed = is_over ? 0 : local->passed;
		*step = (struct weir_extents_copy_step){ .what = is_over ?
									 WEIR_EXTENTS_COPY_NOTHING :
									 WEIR_EXTENTS_COPY_WAIT };
		return;
	}
	while (local->pages < WEIR_EXTENTS_CHUNK_PAGES && local->page + local->pages < v->pages &&
	       is_behind(&v->extent[local->extent], local->page + local->pages))
		local->pages++;
	local->is_busy = true;
	local->overtaken = 0;
	*step = (struct weir_extents_copy_step){
		.what = WEIR_EXTENTS_COPY_READ,
		.extent = local->extent,
		.page = local->page,
		.pages = local->pages,
	};
	weir_extents_read(v, local->extent, 0, &step->slot);
}

/* A page that changed since it was read, or whose last write failed, is not recorded as copied. */
void weir_extents_local_done(struct weir_extents *v, bool succeeded)
{
	struct weir_extents_local_copy *local = &v->local;
	struct weir_extent *e = &v->extent[local->extent];

	local->is_busy = false;
	for (uint32_t i = 0; succeeded && i < local->pages; i++) {
		uint32_t page = local->page + i;

		if (local->overtaken >> i & 1)
			continue;
		e->local[page / 64] |= 1ull << page % 64;
		e->nr_local++;
	}
	if (succeeded)
		local->passed = 0;
}
