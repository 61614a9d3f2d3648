/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/sealed/seen.h"
#include "apps/mount/mount.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct seen_page {
	uint64_t number;
	uint64_t generation[SEEN_PAGE_BLOCKS];
};

/* Blocks from @first up to before @end that were made a hole. No older slot comes back. */
struct seen_hole {
	uint64_t first, end, generation;
};

/*
 * @pages: struct seen_page, by number; @holes: struct seen_hole, without common blocks; @floor: of
 * blocks from @floor_first on; 0: none; @latest: the greatest generation of all above and of slots
 * sealed by this mount; @sealed_end: behind these slots, known or not
 */
struct seen_file {
	uint64_t ino;
	void *pages, *holes;
	uint64_t floor, floor_first, latest, sealed_end;
};

void seen_init(struct seen_blocks *seen)
{
	pthread_mutex_init(&seen->lock, NULL);
	seen->files = NULL;
	seen->changes = 0;
	seen->has_lost = false;
}

/* Both structs begin with the number that orders them. */
static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Holes with a common block are equal. */
static int compare_holes(const void *a, const void *b)
{
	const struct seen_hole *x = a, *y = b;

	return (x->first >= y->end) - (x->end <= y->first);
}

static void free_blocks(const struct seen_file *blocks)
{
	tdestroy(blocks->holes, free);
	tdestroy(blocks->pages, free);
}

static void free_file(void *node)
{
	struct seen_file *file = node;

	free_blocks(file);
	free(file);
}

void seen_fini(struct seen_blocks *seen)
{
	tdestroy(seen->files, free_file);
	pthread_mutex_destroy(&seen->lock);
}

/* The object with this number, or NULL. The lock is held. */
static void *find_object(void *const *root, uint64_t number)
{
	void *const *node = tfind(&number, root, compare);

	return node ? *node : NULL;
}

/* The same, made if it is missing. NULL: no memory. */
static void *find_or_make(void **root, uint64_t number, size_t bytes)
{
	uint64_t *object = find_object(root, number);

	if (object)
		return object;
	object = calloc(1, bytes);
	if (!object)
		return NULL;
	*object = number;
	if (tsearch(object, root, compare))
		return object;
	free(object);
	return NULL;
}

static uint64_t plain(uint64_t generation)
{
	return generation & ~SEEN_MAY_BE_HOLE;
}

static void bump_latest(struct seen_file *file, uint64_t generation)
{
	if (file->latest < plain(generation))
		file->latest = plain(generation);
}

static struct seen_hole *find_hole(const struct seen_file *file, const struct seen_hole *where)
{
	void *const *node = tfind(where, &file->holes, compare_holes);

	return node ? *node : NULL;
}

static uint64_t find_in_file(const struct seen_file *file, uint64_t block)
{
	const struct seen_hole where = { block, block + 1, 0 }, *hole = find_hole(file, &where);
	const struct seen_page *page = find_object(&file->pages, block / SEEN_PAGE_BLOCKS);
	uint64_t generation = page ? page->generation[block % SEEN_PAGE_BLOCKS] : 0;

	if (hole && hole->generation > plain(generation))
		generation = hole->generation | SEEN_MAY_BE_HOLE;
	if (block < file->floor_first || plain(generation) > plain(file->floor))
		return generation;
	return file->floor;
}

uint64_t seen_find(struct seen_blocks *seen, uint64_t ino, uint64_t block)
{
	const struct seen_file *file;
	uint64_t generation;

	pthread_mutex_lock(&seen->lock);
	file = find_object(&seen->files, ino);
	generation = file ? find_in_file(file, block) : 0;
	pthread_mutex_unlock(&seen->lock);
	return generation;
}

/* Without the lock. */
static void tell_lost(uint64_t ino)
{
	mount_log(WEIR_LOG_ERROR,
		  "block not remembered inode=%" PRIu64 " id=W511: out of memory: the "
		  "donor may put back older versions of blocks",
		  ino);
}

void seen_note(struct seen_blocks *seen, uint64_t ino, uint64_t block, uint64_t generation)
{
	struct seen_file *file;
	struct seen_page *page = NULL;
	uint64_t *known;
	bool is_first;

	pthread_mutex_lock(&seen->lock);
	file = find_or_make(&seen->files, ino, sizeof(*file));
	if (file)
		page = find_or_make(&file->pages, block / SEEN_PAGE_BLOCKS, sizeof(*page));
	if (page) {
		bump_latest(file, generation);
		known = &page->generation[block % SEEN_PAGE_BLOCKS];
		if (generation > plain(*known)) {
			*known = generation;
			seen->changes++;
		}
	}
	is_first = !page && !seen->has_lost;
	seen->has_lost |= !page;
	pthread_mutex_unlock(&seen->lock);
	if (is_first)
		tell_lost(ino);
}

uint64_t seen_seal(struct seen_blocks *seen, uint64_t ino, uint64_t block, uint64_t generation)
{
	struct seen_file *file;
	uint64_t known = 0;
	bool is_first;

	pthread_mutex_lock(&seen->lock);
	file = find_or_make(&seen->files, ino, sizeof(*file));
	if (file) {
		known = plain(find_in_file(file, block));
		bump_latest(file, generation);
		if (file->sealed_end <= block)
			file->sealed_end = block + 1;
	}
	is_first = !file && !seen->has_lost;
	seen->has_lost |= !file;
	pthread_mutex_unlock(&seen->lock);
	if (is_first)
		tell_lost(ino);
	return known;
}

/* @page: of the pages from @number on that tfind() has met, the first; tfind() finds none. */
struct next {
	uint64_t number;
	struct seen_page *page;
};

static int compare_next(const void *key, const void *node)
{
	struct next *next = (struct next *)key;
	struct seen_page *page = (struct seen_page *)node;

	if (page->number < next->number)
		return 1;
	next->page = page;
	return -1;
}

/* The page with the lowest number from @number on, or NULL. */
static struct seen_page *next_page(const struct seen_file *file, uint64_t number)
{
	struct next next = { number, NULL };

	(void)tfind(&next, &file->pages, compare_next);
	return next.page;
}

static int compare_last(const void *key, const void *node)
{
	((struct next *)key)->page = (struct seen_page *)node;
	return 1;
}

/* The block after the last known one, if it comes after @first; else 0. */
static uint64_t known_end(const struct seen_file *file, uint64_t first)
{
	struct next last = { 0, NULL };
	uint64_t block, start;

	(void)tfind(&last, &file->pages, compare_last);
	if (!last.page)
		return 0;
	start = last.page->number * SEEN_PAGE_BLOCKS;
	for (block = start + SEEN_PAGE_BLOCKS; block > start && block > first; block--) {
		if (last.page->generation[block - 1 - start])
			return block;
	}
	return block > first ? block : 0;
}

/*
 * Other threads wait for the lock while a thread goes through the pages of a range, so the thread
 * gives the lock back between slices. @number: of the next page
 */
struct range {
	uint64_t first, end, number;
};

#define SLICE_PAGES 256

/* A thread that is awake would have the lock again before a thread that waits for it. */
static bool let_others_lock(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1 }, NULL);
	return true;
}

static struct seen_page *range_next(const struct seen_file *file, struct range *range)
{
	struct seen_page *page = next_page(file, range->number);

	if (!page || page->number * SEEN_PAGE_BLOCKS >= range->end)
		return NULL;
	range->number = page->number + 1;
	return page;
}

static bool range_has(const struct range *range, uint64_t block)
{
	return block >= range->first && block < range->end;
}

/* Return: whether pages are left. */
static bool cut_slice(struct seen_file *file, struct range *range)
{
	struct seen_page *page;

	for (unsigned int nr = 0; nr < SLICE_PAGES; nr++) {
		page = range_next(file, range);
		if (!page)
			return false;
		for (unsigned int i = 0; i < SEEN_PAGE_BLOCKS; i++) {
			if (page->generation[i] &&
			    range_has(range, page->number * SEEN_PAGE_BLOCKS + i))
				page->generation[i] |= SEEN_MAY_BE_HOLE;
		}
	}
	return true;
}

void seen_cut(struct seen_blocks *seen, uint64_t ino, uint64_t first, uint64_t end)
{
	struct range range = { first, end, first / SEEN_PAGE_BLOCKS };
	struct seen_file *file;
	bool goes_on;

	if (first >= end)
		return;
	do {
		pthread_mutex_lock(&seen->lock);
		file = find_object(&seen->files, ino);
		goes_on = file && cut_slice(file, &range);
		seen->changes += file != NULL;
		pthread_mutex_unlock(&seen->lock);
	} while (goes_on && let_others_lock());
}

/* Forgets generations up to @generation, which a floor or a hole has. Return: as cut_slice(). */
static bool forget_slice(struct seen_file *file, struct range *range, uint64_t generation)
{
	struct seen_page *page;
	bool is_used;

	for (unsigned int nr = 0; nr < SLICE_PAGES; nr++) {
		page = range_next(file, range);
		if (!page)
			return false;
		is_used = false;
		for (unsigned int i = 0; i < SEEN_PAGE_BLOCKS; i++) {
			if (range_has(range, page->number * SEEN_PAGE_BLOCKS + i) &&
			    plain(page->generation[i]) <= generation)
				page->generation[i] = 0;
			is_used |= page->generation[i] != 0;
		}
		if (is_used)
			continue;
		tdelete(page, &file->pages, compare);
		free(page);
	}
	return true;
}

/* Greater than all generations of the file, and at least @generation. Becomes the latest. */
static uint64_t next_latest(struct seen_file *file, uint64_t generation)
{
	file->latest = file->latest < generation ? generation : file->latest + 1;
	return file->latest;
}

/* Keeps one number of the file. @blocks: receives what it knew of its blocks, to be freed. */
static void put_floor(struct seen_file *file, uint64_t floor, struct seen_file *blocks)
{
	blocks->pages = file->pages;
	blocks->holes = file->holes;
	file->pages = file->holes = NULL;
	file->floor = floor;
	file->floor_first = 0;
}

/* Return: false: no memory. */
static bool add_hole(struct seen_file *file, const struct seen_hole *hole)
{
	struct seen_hole *new = malloc(sizeof(*new));

	if (!new)
		return false;
	*new = *hole;
	if (tsearch(new, &file->holes, compare_holes))
		return true;
	free(new);
	return false;
}

/* Of earlier holes, the blocks outside remain. Return: false: no memory for all. */
static bool make_way(struct seen_file *file, const struct seen_hole *hole)
{
	struct seen_hole *old, rest;
	bool kept = true;

	while ((old = find_hole(file, hole))) {
		rest = (struct seen_hole){ hole->end, old->end, old->generation };
		if (old->first < hole->first) {
			old->end = hole->first;
			kept = (rest.first >= rest.end || add_hole(file, &rest)) && kept;
		} else if (rest.first < rest.end) {
			old->first = rest.first;
		} else {
			tdelete(old, &file->holes, compare_holes);
			free(old);
		}
	}
	return kept;
}

/* Adds the hole at @block to its neighbour @hole, if nothing has been sealed since. */
static void join_hole(struct seen_file *file, struct seen_hole *hole, uint64_t block)
{
	const struct seen_hole where = { block, block + 1, 0 };
	struct seen_hole *old = find_hole(file, &where);

	if (!old || old->generation != file->latest)
		return;
	if (old->first < hole->first)
		hole->first = old->first;
	else
		hole->end = old->end;
	tdelete(old, &file->holes, compare_holes);
	free(old);
}

/*
 * The generation of a new hole must not refuse slots sealed in a neighbouring hole since. So holes
 * are joined only if no slot was sealed, not even by a failed write.
 */
static bool punch_file(struct seen_file *file, struct seen_hole *hole)
{
	bool kept = make_way(file, hole);

	if (hole->first)
		join_hole(file, hole, hole->first - 1);
	join_hole(file, hole, hole->end);
	hole->generation = next_latest(file, hole->generation);
	return kept && add_hole(file, hole);
}

void seen_punch(struct seen_blocks *seen, uint64_t ino, uint64_t first, uint64_t end,
		uint64_t generation)
{
	struct seen_hole hole = { first, end, generation };
	struct seen_file *file;
	bool done, is_first;

	if (first >= end)
		return;
	pthread_mutex_lock(&seen->lock);
	file = find_or_make(&seen->files, ino, sizeof(*file));
	done = file && punch_file(file, &hole);
	seen->changes++;
	is_first = !done && !seen->has_lost;
	seen->has_lost |= !done;
	pthread_mutex_unlock(&seen->lock);
	if (is_first)
		tell_lost(ino);
}

/* The end of the holes without a gap from @block on. */
static uint64_t holes_end(const struct seen_file *file, uint64_t block)
{
	const struct seen_hole *hole;
	struct seen_hole where;

	do {
		where = (struct seen_hole){ block, block + 1, 0 };
		hole = block < UINT64_MAX ? find_hole(file, &where) : NULL;
		block = hole ? hole->end : block;
	} while (hole);
	return block;
}

/*
 * Behind an earlier floor only this mount has sealed slots. So an older floor is enough for the
 * blocks behind those, and stays if it begins earlier. The other blocks become a hole.
 *
 * @blocks: as for put_floor(). Return: false: no memory.
 */
static bool raise_file(struct seen_file *file, const struct seen_hole *gone,
		       struct seen_file *blocks)
{
	struct seen_hole hole = *gone;
	uint64_t end = known_end(file, hole.first);
	const bool is_below = !file->floor || hole.first < file->floor_first;

	hole.end = end > file->sealed_end ? end : file->sealed_end;
	if (file->sealed_end > hole.first)
		file->sealed_end = hole.first;
	if (!hole.first) {
		put_floor(file, hole.generation | SEEN_MAY_BE_HOLE, blocks);
	} else if (is_below) {
		file->floor = hole.generation | SEEN_MAY_BE_HOLE;
		file->floor_first = hole.first;
	} else if (hole.first < hole.end) {
		hole.end = holes_end(file, hole.end);
		return make_way(file, &hole) && add_hole(file, &hole);
	}
	return true;
}

static void forget(struct seen_blocks *seen, uint64_t ino, const struct seen_hole *gone)
{
	struct range range = { gone->first, UINT64_MAX, gone->first / SEEN_PAGE_BLOCKS };
	struct seen_file *file;
	bool goes_on;

	do {
		pthread_mutex_lock(&seen->lock);
		file = find_object(&seen->files, ino);
		goes_on = file && forget_slice(file, &range, gone->generation);
		pthread_mutex_unlock(&seen->lock);
	} while (goes_on && let_others_lock());
}

void seen_raise(struct seen_blocks *seen, uint64_t ino, uint64_t first, uint64_t generation)
{
	struct seen_hole gone = { first, UINT64_MAX, generation };
	struct seen_file *file, blocks = { 0 };
	bool done = false, is_first;

	pthread_mutex_lock(&seen->lock);
	file = find_or_make(&seen->files, ino, sizeof(*file));
	if (file) {
		gone.generation = next_latest(file, generation);
		done = raise_file(file, &gone, &blocks);
		seen->changes++;
	}
	is_first = !done && !seen->has_lost;
	seen->has_lost |= !done;
	pthread_mutex_unlock(&seen->lock);
	free_blocks(&blocks);
	if (done && first)
		forget(seen, ino, &gone);
	if (is_first)
		tell_lost(ino);
}

void seen_end(struct seen_blocks *seen, uint64_t ino, uint64_t generation)
{
	struct seen_file *file, blocks = { 0 };

	pthread_mutex_lock(&seen->lock);
	file = find_object(&seen->files, ino);
	if (file) {
		put_floor(file, next_latest(file, generation), &blocks);
		seen->changes++;
	}
	pthread_mutex_unlock(&seen->lock);
	free_blocks(&blocks);
}

/* @entry: its inode number is that of the file */
struct seen_visit {
	void (*fn)(void *arg, const struct seen_entry *entry);
	void *arg;
	struct seen_entry entry;
};

static void visit_page(const void *node, VISIT visit, void *arg)
{
	const struct seen_page *page = *(struct seen_page *const *)node;
	struct seen_visit *v = arg;

	if (visit != postorder && visit != leaf)
		return;
	v->entry.page = page->number;
	memcpy(v->entry.generation, page->generation, sizeof(page->generation));
	v->fn(v->arg, &v->entry);
}

static void visit_numbers(struct seen_visit *v, uint64_t page, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t numbers[SEEN_PAGE_BLOCKS] = { a, b, c };

	v->entry.page = page;
	memcpy(v->entry.generation, numbers, sizeof(numbers));
	v->fn(v->arg, &v->entry);
}

static void visit_hole(const void *node, VISIT visit, void *arg)
{
	const struct seen_hole *hole = *(struct seen_hole *const *)node;

	if (visit == postorder || visit == leaf)
		visit_numbers(arg, SEEN_HOLE, hole->generation, hole->first, hole->end);
}

static void visit_file(const void *node, VISIT visit, void *arg)
{
	const struct seen_file *file = *(struct seen_file *const *)node;
	struct seen_visit *v = arg;

	if (visit != postorder && visit != leaf)
		return;
	v->entry.ino = file->ino;
	twalk_r(file->pages, visit_page, v);
	twalk_r(file->holes, visit_hole, v);
	if (file->floor)
		visit_numbers(v, SEEN_FLOOR, file->floor, file->floor_first, 0);
}

uint64_t seen_walk(struct seen_blocks *seen, void (*fn)(void *arg, const struct seen_entry *entry),
		   void *arg)
{
	struct seen_visit v = { .fn = fn, .arg = arg };
	uint64_t changes;

	pthread_mutex_lock(&seen->lock);
	twalk_r(seen->files, visit_file, &v);
	changes = seen->changes;
	pthread_mutex_unlock(&seen->lock);
	return changes;
}

/* The last mount may have sealed newer slots, of any blocks. */
static void restore_latest(struct seen_file *file, const struct seen_entry *entry)
{
	unsigned int nr = entry->page < SEEN_HOLE ? SEEN_PAGE_BLOCKS : 1;

	file->sealed_end = UINT64_MAX;
	for (unsigned int i = 0; i < nr; i++)
		bump_latest(file, plain(entry->generation[i]) + 1);
}

static bool restore_in_file(struct seen_file *file, const struct seen_entry *entry)
{
	const struct seen_hole hole = { entry->generation[1], entry->generation[2],
					entry->generation[0] };
	struct seen_page *page;

	restore_latest(file, entry);
	if (entry->page == SEEN_HOLE)
		return make_way(file, &hole) && add_hole(file, &hole);
	if (entry->page == SEEN_FLOOR) {
		file->floor = entry->generation[0];
		file->floor_first = entry->generation[1];
		return true;
	}
	page = find_or_make(&file->pages, entry->page, sizeof(*page));
	if (page)
		memcpy(page->generation, entry->generation, sizeof(page->generation));
	return page;
}

bool seen_restore(struct seen_blocks *seen, const struct seen_entry *entry)
{
	struct seen_file *file;
	bool done;

	pthread_mutex_lock(&seen->lock);
	file = find_or_make(&seen->files, entry->ino, sizeof(*file));
	done = file && restore_in_file(file, entry);
	pthread_mutex_unlock(&seen->lock);
	return done;
}

uint64_t seen_changes(struct seen_blocks *seen)
{
	uint64_t changes;

	pthread_mutex_lock(&seen->lock);
	changes = seen->changes;
	pthread_mutex_unlock(&seen->lock);
	return changes;
}
