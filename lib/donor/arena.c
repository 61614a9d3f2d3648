/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * First fit over a list of extents that tiles the mapping. Taken extents stay on the list, so that
 * giving one back allocates nothing and cannot fail.
 *
 * Long extents begin on a huge page. Long zeroing returns the pages to the system, which supplies
 * zeroes on the next touch: fast, and unused memory is freed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "lib/base/size.h"
#include "lib/donor/arena.h"
#include "lib/base/error.h"
#include "lib/base/huge_map.h"

#define ZERO_BY_HAND 65536 /* bytes; below, memset is cheaper than faulting the pages in again */

static uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

static struct weir_arena_extent *extent_new(char *addr, uint64_t length)
{
	struct weir_arena_extent *extent = calloc(1, sizeof(*extent));

	if (!extent)
		return NULL;
	weir_list_init(&extent->link);
	extent->addr = addr;
	extent->length = length;
	return extent;
}

/* Systems that forbid executable memfds require the flag; older kernels do not know it. */
static int create_memfd(void)
{
#ifdef MFD_NOEXEC_SEAL
	int fd = memfd_create("weir-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd >= 0 || errno != EINVAL)
		return fd;
#endif
	return memfd_create("weir-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/*
 * Sealed, so that truncation can kill no process that maps the file. A software device can then
 * copy there without the kernel, four times as fast for 4 KiB (docs/reference/softnic.md).
 */
static char *map_file(uint64_t length, int *fd)
{
	char *base = NULL;

	*fd = create_memfd();
	if (*fd < 0)
		return NULL;
	if (!ftruncate(*fd, (off_t)length) && !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		base = weir_huge_map_aligned(length, *fd);
	if (base)
		return base;
	close(*fd);
	*fd = -1;
	return base;
}

static char *map_memory(struct weir_arena *arena, uint64_t length, bool want_huge)
{
	char *base;

	arena->huge = false;
	arena->fd = -1;
	if (want_huge)
		return weir_huge_map(length, &arena->huge);
	base = map_file(length, &arena->fd);
	return base ? base : weir_huge_map_aligned(length, -1);
}

int weir_arena_init(struct weir_arena *arena, uint64_t length, bool want_huge,
		    struct weir_error *error)
{
	struct weir_arena_extent *all;
	struct sysinfo system;

	if (!sysinfo(&system) && length > (uint64_t)system.totalram * system.mem_unit)
		return weir_error_set(
			error, -ENOMEM,
			"cannot lend %s: this machine has %s of memory",
			weir_size_format(length).text,
			weir_size_format((uint64_t)system.totalram * system.mem_unit).text);
	length = round_up(length, WEIR_ARENA_PAGE);
	all = extent_new(NULL, length);
	if (!all)
		return weir_error_set(error, -ENOMEM, "out of memory");
	all->addr = map_memory(arena, length, want_huge);
	if (!all->addr) {
		free(all);
		return weir_error_set(error, -ENOMEM, "cannot map %s to lend: %s",
				      weir_size_format(length).text, strerror(errno));
	}
	arena->base = all->addr;
	arena->length = length;
	arena->limit = length;
	arena->is_reserved = false;
	arena->taken = 0;
	arena->dirty = 0;
	weir_list_init(&arena->extents);
	weir_list_add_tail(&arena->extents, &all->link);
	return 0;
}

void weir_arena_fini(struct weir_arena *arena)
{
	struct weir_list *link;

	while (!weir_list_is_empty(&arena->extents)) {
		link = arena->extents.next;
		weir_list_del(link);
		free(weir_list_entry(link, struct weir_arena_extent, link));
	}
	munmap(arena->base, arena->length);
	if (arena->fd >= 0)
		close(arena->fd);
}

/* Splits the free @extent after @length bytes. Return: the second part. */
static struct weir_arena_extent *split_extent(struct weir_arena_extent *extent, uint64_t length)
{
	struct weir_arena_extent *rest = extent_new(extent->addr + length, extent->length - length);

	if (!rest)
		return NULL;
	extent->length = length;
	weir_list_add(&extent->link, &rest->link);
	return rest;
}

static uint64_t bytes_before(const struct weir_arena_extent *extent, uint64_t alignment)
{
	return round_up((uintptr_t)extent->addr, alignment) - (uintptr_t)extent->addr;
}

static struct weir_arena_extent *find_free_extent(struct weir_arena *arena, uint64_t length,
						  uint64_t alignment)
{
	struct weir_arena_extent *extent;
	struct weir_list *link;

	for (link = arena->extents.next; link != &arena->extents; link = link->next) {
		extent = weir_list_entry(link, struct weir_arena_extent, link);
		if (!extent->is_taken && extent->length >= length &&
		    extent->length - length >= bytes_before(extent, alignment))
			return extent;
	}
	return NULL;
}

/* Appends the next extent, if both are free. */
static void merge_next(struct weir_arena *arena, struct weir_arena_extent *extent)
{
	struct weir_arena_extent *next;

	if (extent->link.next == &arena->extents)
		return;
	next = weir_list_entry(extent->link.next, struct weir_arena_extent, link);
	if (extent->is_taken || next->is_taken)
		return;
	extent->length += next->length;
	weir_list_del(&next->link);
	free(next);
}

static void merge_with_neighbours(struct weir_arena *arena, struct weir_arena_extent *extent)
{
	struct weir_list *prev = extent->link.prev;

	merge_next(arena, extent);
	if (prev != &arena->extents)
		merge_next(arena, weir_list_entry(prev, struct weir_arena_extent, link));
}

/*
 * The kernel charges a page of a file to the process that touches the page first. The donor should
 * pay, not a client that maps the file and may have little memory. Impossible before Linux 5.14.
 */
int weir_arena_populate(char *addr, uint64_t length)
{
	return !madvise(addr, length, MADV_POPULATE_WRITE) || errno == EINVAL ? 0 : -ENOMEM;
}

/* Return: why no extent of @length bytes can be taken now. */
static int no_extent(const struct weir_arena *arena, uint64_t length)
{
	return arena->dirty && arena->taken + length <= arena->limit ? -EAGAIN : -ENOSPC;
}

int weir_arena_take(struct weir_arena *arena, uint64_t length, struct weir_arena_extent **out)
{
	uint64_t alignment = length >= WEIR_HUGE_BYTES ? WEIR_HUGE_BYTES : WEIR_ARENA_PAGE;
	struct weir_arena_extent *extent;
	uint64_t before;

	if (length > arena->length)
		return -ENOSPC;
	length = round_up(length, WEIR_ARENA_PAGE);
	if (arena->taken + arena->dirty + length > arena->limit)
		return no_extent(arena, length);
	extent = find_free_extent(arena, length, alignment);
	if (!extent) {
		alignment = WEIR_ARENA_PAGE;
		extent = find_free_extent(arena, length, alignment);
	}
	if (!extent)
		return no_extent(arena, length);
	before = bytes_before(extent, alignment);
	if (before) {
		extent = split_extent(extent, before);
		if (!extent)
			return -ENOMEM;
	}
	if (extent->length > length && !split_extent(extent, length)) {
		merge_with_neighbours(arena, extent);
		return -ENOMEM;
	}
	extent->is_taken = true;
	arena->taken += length;
	*out = extent;
	return 0;
}

void weir_arena_zero(const struct weir_arena *arena, char *addr, uint64_t length)
{
	uint64_t unit = arena->huge ? WEIR_HUGE_BYTES : WEIR_ARENA_PAGE;
	uint64_t head = round_up((uintptr_t)addr, unit) - (uintptr_t)addr;
	bool is_reserved = __atomic_load_n(&arena->is_reserved, __ATOMIC_RELAXED);
	uint64_t whole;

	if (!is_reserved && length >= ZERO_BY_HAND && length >= head + unit) {
		whole = (length - head) / unit * unit;
		if (!madvise(addr + head, whole, arena->fd >= 0 ? MADV_REMOVE : MADV_DONTNEED)) {
			memset(addr, 0, head);
			memset(addr + head + whole, 0, length - head - whole);
			return;
		}
	}
	memset(addr, 0, length);
}

void weir_arena_give(struct weir_arena *arena, struct weir_arena_extent *extent)
{
	arena->taken -= extent->length;
	arena->dirty += extent->length;
}

void weir_arena_free(struct weir_arena *arena, struct weir_arena_extent *extent)
{
	arena->dirty -= extent->length;
	extent->is_taken = false;
	merge_with_neighbours(arena, extent);
}

/* fallocate() fails if the system has no page left; to touch one then could kill the process. */
int weir_arena_reserve(struct weir_arena *arena, struct weir_error *error)
{
	int rc = arena->fd < 0 ? weir_arena_populate(arena->base, arena->length) :
				 -posix_fallocate(arena->fd, 0, (off_t)arena->length);

	if (rc)
		return weir_error_set(error, -ENOMEM, "cannot reserve %s to lend: %s",
				      weir_size_format(arena->length).text, strerror(-rc));
	__atomic_store_n(&arena->is_reserved, true, __ATOMIC_RELAXED);
	return 0;
}

void weir_arena_release(struct weir_arena *arena, uint64_t offset, uint64_t length)
{
	char *begin = arena->base + offset, *end = begin + length, *from, *to;
	struct weir_arena_extent *extent;
	struct weir_list *link;

	__atomic_store_n(&arena->is_reserved, false, __ATOMIC_RELAXED);
	for (link = arena->extents.next; link != &arena->extents; link = link->next) {
		extent = weir_list_entry(link, struct weir_arena_extent, link);
		from = extent->addr > begin ? extent->addr : begin;
		to = extent->addr + extent->length < end ? extent->addr + extent->length : end;
		if (!extent->is_taken && from < to)
			weir_arena_zero(arena, from, to - from);
	}
}
