/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/sealed/seen.h"
#include "apps/mount/mount.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

struct seen_page {
	uint64_t number;
	uint64_t generation[SEEN_PAGE_BLOCKS];
};

/* Blocks from @first up to before @end that were made a hole. No older slot comes back. */
struct seen_hole {
	uint64_t first, end, generation;
};

/*
 * @pages: struct seen_page, by number, @nr_pages of them; @holes: struct seen_hole, without common
 * blocks; @floor: of blocks from @floor_first on; 0: none; @latest: the greatest generation of all
 * above and of slots sealed by this mount
 */
struct seen_file {
	uint64_t ino;
	void *pages, *holes;
	uint64_t nr_pages, floor, floor_first, latest;
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

static void free_file(void *node)
{
	struct seen_file *file = node;

	tdestroy(file->holes, free);
	tdestroy(file->pages, free);
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

static struct seen_page *find_or_make_page(struct seen_file *file, uint64_t number)
{
	void *before = find_object(&file->pages, number);
	struct seen_page *page = before;

	if (!page)
		page = find_or_make(&file->pages, number, sizeof(*page));
	file->nr_pages += page && !before;
	return page;
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
		page = find_or_make_page(file, block / SEEN_PAGE_BLOCKS);
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

void seen_seal(struct seen_blocks *seen, uint64_t ino, uint64_t generation)
{
	struct seen_file *file;

	pthread_mutex_lock(&seen->lock);
	file = find_object(&seen->files, ino);
	if (file)
		bump_latest(file, generation);
	pthread_mutex_unlock(&seen->lock);
}

struct cut {
	struct seen_file *file;
	uint64_t first, end;
	bool done;
};

static void cut_page(const struct cut *cut, struct seen_page *page)
{
	uint64_t block = page->number * SEEN_PAGE_BLOCKS;

	for (unsigned int i = 0; i < SEEN_PAGE_BLOCKS; i++, block++) {
		if (block < cut->first || block >= cut->end || !page->generation[i])
			continue;
		page->generation[i] = (page->generation[i] + cut->done) | SEEN_MAY_BE_HOLE;
		bump_latest(cut->file, page->generation[i]);
	}
}

static void visit_cut(const void *node, VISIT visit, void *arg)
{
	if (visit == postorder || visit == leaf)
		cut_page(arg, *(struct seen_page *const *)node);
}

/* Looks for each page of a short range, and otherwise at all pages. */
static void cut_pages(const struct cut *cut)
{
	uint64_t number = cut->first / SEEN_PAGE_BLOCKS;
	uint64_t last = (cut->end - 1) / SEEN_PAGE_BLOCKS;
	struct seen_page *page;

	if (last - number >= cut->file->nr_pages) {
		twalk_r(cut->file->pages, visit_cut, (void *)cut);
		return;
	}
	for (; number <= last; number++) {
		page = find_object(&cut->file->pages, number);
		if (page)
			cut_page(cut, page);
	}
}

void seen_cut(struct seen_blocks *seen, uint64_t ino, uint64_t first, uint64_t end)
{
	struct cut cut = { NULL, first, end, false };

	if (first >= end)
		return;
	pthread_mutex_lock(&seen->lock);
	cut.file = find_object(&seen->files, ino);
	if (cut.file)
		cut_pages(&cut);
	seen->changes += cut.file != NULL;
	pthread_mutex_unlock(&seen->lock);
}

/* Greater than all generations of the file, and at least @generation. Becomes the latest. */
static uint64_t next_latest(struct seen_file *file, uint64_t generation)
{
	file->latest = file->latest < generation ? generation : file->latest + 1;
	return file->latest;
}

/* Keeps one number of the file, and forgets those of its blocks. */
static void put_floor(struct seen_file *file, uint64_t floor)
{
	tdestroy(file->pages, free);
	tdestroy(file->holes, free);
	file->pages = file->holes = NULL;
	file->nr_pages = 0;
	file->floor = floor;
	file->floor_first = 0;
}

/*
 * Behind an earlier floor only this mount has written slots, and those have pages. So an older
 * floor is enough for the other blocks there, and stays if it begins earlier.
 */
static void raise_file(struct seen_file *file, uint64_t first, uint64_t generation)
{
	const struct cut cut = { file, first, UINT64_MAX, true };

	if (!first) {
		put_floor(file, next_latest(file, generation) | SEEN_MAY_BE_HOLE);
		return;
	}
	if (!file->floor || first < file->floor_first) {
		file->floor = next_latest(file, generation) | SEEN_MAY_BE_HOLE;
		file->floor_first = first;
	}
	cut_pages(&cut);
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

void seen_raise(struct seen_blocks *seen, uint64_t ino, uint64_t first, uint64_t generation)
{
	struct seen_file *file;
	bool is_first;

	pthread_mutex_lock(&seen->lock);
	file = find_or_make(&seen->files, ino, sizeof(*file));
	if (file) {
		raise_file(file, first, generation);
		seen->changes++;
	}
	is_first = !file && !seen->has_lost;
	seen->has_lost |= !file;
	pthread_mutex_unlock(&seen->lock);
	if (is_first)
		tell_lost(ino);
}

void seen_end(struct seen_blocks *seen, uint64_t ino, uint64_t generation)
{
	struct seen_file *file;

	pthread_mutex_lock(&seen->lock);
	file = find_object(&seen->files, ino);
	if (file) {
		put_floor(file, next_latest(file, generation));
		seen->changes++;
	}
	pthread_mutex_unlock(&seen->lock);
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

/* The last mount may have sealed newer slots. */
static void restore_latest(struct seen_file *file, const struct seen_entry *entry)
{
	unsigned int nr = entry->page < SEEN_HOLE ? SEEN_PAGE_BLOCKS : 1;

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
	page = find_or_make_page(file, entry->page);
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
