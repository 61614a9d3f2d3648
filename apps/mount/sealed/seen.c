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

/* @pages: struct seen_page, by number; @floor: of blocks from @floor_first on; 0: none */
struct seen_file {
	uint64_t ino;
	void *pages;
	uint64_t floor, floor_first;
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

static void free_file(void *node)
{
	struct seen_file *file = node;

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

static uint64_t find_in_file(const struct seen_file *file, uint64_t block)
{
	const struct seen_page *page = find_object(&file->pages, block / SEEN_PAGE_BLOCKS);
	uint64_t generation = page ? page->generation[block % SEEN_PAGE_BLOCKS] : 0;

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

struct hole {
	uint64_t first, end;
	bool done;
};

static void cut_page(const void *node, VISIT visit, void *arg)
{
	struct seen_page *page = *(struct seen_page *const *)node;
	const struct hole *hole = arg;
	uint64_t block = page->number * SEEN_PAGE_BLOCKS;

	if (visit != postorder && visit != leaf)
		return;
	for (unsigned int i = 0; i < SEEN_PAGE_BLOCKS; i++, block++)
		if (block >= hole->first && block < hole->end && page->generation[i])
			page->generation[i] = (page->generation[i] + hole->done) | SEEN_MAY_BE_HOLE;
}

void seen_cut(struct seen_blocks *seen, uint64_t ino, uint64_t first, uint64_t end, bool done)
{
	struct hole hole = { first, end, done };
	const struct seen_file *file;

	pthread_mutex_lock(&seen->lock);
	file = find_object(&seen->files, ino);
	if (file)
		twalk_r(file->pages, cut_page, &hole);
	seen->changes += file != NULL;
	pthread_mutex_unlock(&seen->lock);
}

static void find_latest(const void *node, VISIT visit, void *arg)
{
	const struct seen_page *page = *(struct seen_page *const *)node;
	uint64_t *latest = arg;

	if (visit != postorder && visit != leaf)
		return;
	for (unsigned int i = 0; i < SEEN_PAGE_BLOCKS; i++)
		if (plain(page->generation[i]) > *latest)
			*latest = plain(page->generation[i]);
}

/* Greater than @generation, and than all that the file has. */
static uint64_t newest_of(const struct seen_file *file, uint64_t generation)
{
	uint64_t latest = plain(file->floor);

	twalk_r(file->pages, find_latest, &latest);
	return latest < generation ? generation : latest + 1;
}

/* Keeps one number of the file, and forgets those of its blocks. */
static void put_floor(struct seen_file *file, uint64_t floor)
{
	tdestroy(file->pages, free);
	file->pages = NULL;
	file->floor = floor;
	file->floor_first = 0;
}

/*
 * Behind an earlier floor only this mount has written slots, and those have pages. So an older
 * floor is enough for the other blocks there, and stays if it begins earlier.
 */
static void raise_file(struct seen_file *file, uint64_t first, uint64_t generation)
{
	struct hole hole = { first, UINT64_MAX, true };

	if (!first) {
		put_floor(file, newest_of(file, generation) | SEEN_MAY_BE_HOLE);
		return;
	}
	if (!file->floor || first < file->floor_first) {
		file->floor = newest_of(file, generation) | SEEN_MAY_BE_HOLE;
		file->floor_first = first;
	}
	twalk_r(file->pages, cut_page, &hole);
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
		put_floor(file, newest_of(file, generation));
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

static void visit_file(const void *node, VISIT visit, void *arg)
{
	const struct seen_file *file = *(struct seen_file *const *)node;
	struct seen_visit *v = arg;

	if (visit != postorder && visit != leaf)
		return;
	v->entry.ino = file->ino;
	twalk_r(file->pages, visit_page, v);
	if (!file->floor)
		return;
	v->entry.page = SEEN_FLOOR;
	memset(v->entry.generation, 0, sizeof(v->entry.generation));
	v->entry.generation[0] = file->floor;
	v->entry.generation[1] = file->floor_first;
	v->fn(v->arg, &v->entry);
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

static bool restore_in_file(struct seen_file *file, const struct seen_entry *entry)
{
	struct seen_page *page;

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
