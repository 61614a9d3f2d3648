/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/inspect/stats_view.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Up to a NUL, or to the end; what is not printable ASCII becomes a question mark. */
static void copy_text(char *to, const char *from)
{
	int i;

	for (i = 0; i < WEIR_LEDGER_TEXT - 1; i++) {
		char c = *(const volatile char *)&from[i];

		if (!c)
			break;
		to[i] = c >= ' ' && c <= '~' ? c : '?';
	}
	to[i] = '\0';
}

int view_check(struct view *view, const void *map)
{
	const struct weir_ledger *ledger = map;

	if (weir_load_acquire(&ledger->magic) != WEIR_LEDGER_MAGIC)
		return -EPROTO;
	if (weir_load_acquire(&ledger->version) != WEIR_LEDGER_VERSION ||
	    weir_load_acquire(&ledger->slots) != WEIR_LEDGER_SLOTS)
		return -EPROTONOSUPPORT;
	view->ledger = ledger;
	view->opened_ns = weir_load_acquire(&ledger->opened_ns);
	view->mr_dyn_bytes = weir_load_acquire(&ledger->mr_dyn_bytes);
	copy_text(view->device, ledger->device);
	copy_text(view->peer, ledger->peer);
	return 0;
}

/* Another version may be of another size. */
static int check_version(int fd)
{
	struct {
		uint64_t magic;
		uint32_t version, slots;
	} head;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) || head.magic != WEIR_LEDGER_MAGIC)
		return -EPROTO;
	return head.version == WEIR_LEDGER_VERSION ? 0 : -EPROTONOSUPPORT;
}

int view_open(struct view *view, int fd)
{
	int rc = check_version(fd), seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;
	void *map;

	if (rc)
		return rc;
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &stat) ||
	    stat.st_size != sizeof(struct weir_ledger))
		return -EPROTO;
	map = mmap(NULL, sizeof(struct weir_ledger), PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	rc = view_check(view, map);
	if (rc)
		munmap(map, sizeof(struct weir_ledger));
	return rc;
}

void view_close(struct view *view)
{
	munmap((void *)view->ledger, sizeof(*view->ledger));
}

static void copy_numbers(uint64_t *to, const uint64_t *from, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes / sizeof(*to); i++)
		to[i] = weir_atomic_load(&from[i]);
}

void view_counters(const struct view *view, struct weir_counters *counters,
		   struct weir_ledger_window *window)
{
	copy_numbers((uint64_t *)counters, (const uint64_t *)&view->ledger->counters,
		     sizeof(*counters));
	copy_numbers((uint64_t *)window, (const uint64_t *)&view->ledger->window, sizeof(*window));
}

void view_pressure(const struct view *view, struct weir_ledger_pressure *pressure)
{
	copy_numbers((uint64_t *)pressure, (const uint64_t *)&view->ledger->pressure,
		     sizeof(*pressure));
}

/* The highest number in a slot where that number belongs. */
static uint64_t newest(const struct weir_ledger *ledger)
{
	uint64_t number, best = 0;
	uint32_t i;

	for (i = 0; i < WEIR_LEDGER_SLOTS; i++) {
		number = weir_load_acquire(&ledger->trace[i].number);
		if (number > best && (number & (WEIR_LEDGER_SLOTS - 1)) == i)
			best = number;
	}
	return best;
}

void view_trace(const struct view *view, uint64_t after, struct view_trace *trace)
{
	uint64_t last = newest(view->ledger), number = after + 1;

	trace->count = 0;
	trace->lost = 0;
	trace->newest = last > after ? last : after;
	if (last <= after)
		return;
	if (last - after > WEIR_LEDGER_SLOTS)
		number = last - WEIR_LEDGER_SLOTS + 1;
	for (; number - 1 != last; number++) {
		if (!weir_trace_read(view->ledger->trace, WEIR_LEDGER_SLOTS, number,
				     &trace->record[trace->count]))
			trace->count++;
	}
	if (after)
		trace->lost = last - after - trace->count;
}
