/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/inspect/stats_view.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Copies up to a NUL or to the end. Replaces all but printable ASCII by question marks. */
static void copy_text(char *to, const char *from)
{
	int i;

	for (i = 0; i < WEIR_STATS_SHM_TEXT - 1; i++) {
		char c = *(const volatile char *)&from[i];

		if (!c)
			break;
		to[i] = c >= ' ' && c <= '~' ? c : '?';
	}
	to[i] = '\0';
}

int stats_view_check(struct stats_view *view, const void *map)
{
	const struct weir_stats_shm *stats = map;

	if (weir_load_acquire(&stats->magic) != WEIR_STATS_SHM_MAGIC)
		return -EPROTO;
	if (weir_load_acquire(&stats->version) != WEIR_STATS_SHM_VERSION ||
	    weir_load_acquire(&stats->slots) != WEIR_STATS_SHM_SLOTS)
		return -EPROTONOSUPPORT;
	view->stats = stats;
	view->opened_ns = weir_load_acquire(&stats->opened_ns);
	view->mr_dyn_bytes = weir_load_acquire(&stats->mr_dyn_bytes);
	copy_text(view->device, stats->device);
	copy_text(view->peer, stats->peer);
	return 0;
}

/* Checked before mapping: another version may have another size. */
static int check_version(int fd)
{
	struct {
		uint64_t magic;
		uint32_t version, slots;
	} head;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) || head.magic != WEIR_STATS_SHM_MAGIC)
		return -EPROTO;
	return head.version == WEIR_STATS_SHM_VERSION ? 0 : -EPROTONOSUPPORT;
}

int stats_view_open(struct stats_view *view, int fd)
{
	int rc = check_version(fd), seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;
	void *map;

	if (rc)
		return rc;
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &stat) ||
	    stat.st_size != sizeof(struct weir_stats_shm))
		return -EPROTO;
	map = mmap(NULL, sizeof(struct weir_stats_shm), PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	rc = stats_view_check(view, map);
	if (rc)
		munmap(map, sizeof(struct weir_stats_shm));
	return rc;
}

void stats_view_close(struct stats_view *view)
{
	munmap((void *)view->stats, sizeof(*view->stats));
}

static void copy_numbers(uint64_t *to, const uint64_t *from, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes / sizeof(*to); i++)
		to[i] = weir_atomic_load(&from[i]);
}

void stats_view_counters(const struct stats_view *view, struct weir_counters *counters,
			 struct weir_stats_shm_window *window)
{
	copy_numbers((uint64_t *)counters, (const uint64_t *)&view->stats->counters,
		     sizeof(*counters));
	copy_numbers((uint64_t *)window, (const uint64_t *)&view->stats->window, sizeof(*window));
}

void stats_view_pressure(const struct stats_view *view, struct weir_stats_shm_page_heat *pressure)
{
	copy_numbers((uint64_t *)pressure, (const uint64_t *)&view->stats->pressure,
		     sizeof(*pressure));
}

const char *const stats_view_kinds[WEIR_STATS_SHM_KINDS] = { "read", "write", "atomic" };

void stats_view_latency(const struct stats_view *view, enum weir_stats_shm_kind kind,
			struct weir_histogram *latency_ns)
{
	copy_numbers((uint64_t *)latency_ns, (const uint64_t *)&view->stats->latency[kind],
		     sizeof(*latency_ns));
}

const char *const stats_view_causes[WEIR_STATS_SHM_CAUSES] = {
	[WEIR_STATS_SHM_FLUSHED] = "flushed",		[WEIR_STATS_SHM_NO_ANSWER] = "no_answer",
	[WEIR_STATS_SHM_NO_BUFFER] = "no_buffer",	[WEIR_STATS_SHM_REFUSED] = "refused",
	[WEIR_STATS_SHM_LOCAL_MEMORY] = "local_memory", [WEIR_STATS_SHM_OTHER] = "other",
};

void stats_view_failures(const struct stats_view *view, uint64_t failures[WEIR_STATS_SHM_CAUSES])
{
	copy_numbers(failures, view->stats->failures, sizeof(view->stats->failures));
}

/* The highest record number found in the slot where it belongs. */
static uint64_t newest(const struct weir_stats_shm *stats)
{
	uint64_t number, best = 0;
	uint32_t i;

	for (i = 0; i < WEIR_STATS_SHM_SLOTS; i++) {
		number = weir_load_acquire(&stats->trace[i].number);
		if (number > best && (number & (WEIR_STATS_SHM_SLOTS - 1)) == i)
			best = number;
	}
	return best;
}

void stats_view_trace(const struct stats_view *view, uint64_t after, struct stats_view_trace *trace)
{
	uint64_t last = newest(view->stats), number = after + 1;

	trace->count = 0;
	trace->lost = 0;
	trace->newest = last > after ? last : after;
	if (last <= after)
		return;
	if (last - after > WEIR_STATS_SHM_SLOTS)
		number = last - WEIR_STATS_SHM_SLOTS + 1;
	for (; number - 1 != last; number++) {
		if (!weir_trace_read(view->stats->trace, WEIR_STATS_SHM_SLOTS, number,
				     &trace->record[trace->count]))
			trace->count++;
	}
	if (after)
		trace->lost = last - after - trace->count;
}
