/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "preload/files/table.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define FDS_MAX 65536
#define CALLS_MIN 3u /* before it is worthwhile to ask for a grant */
#define GROWTH_WRITES 16u

enum entry_kind { UNKNOWN, FOREIGN, CALLED, GRANTED };

/*
 * An entry is one word, so that a signal handler or another thread sees a whole entry.
 * Two bits: enum entry_kind; 2: FILES_MAY_*; 12 unused; 8: lane; 8: grant; 32: closes, or the
 * number of calls.
 */
static uint64_t entries[FDS_MAX];
static uint8_t growth[FDS_MAX];
static int highest = -1; /* of the entries in use */

#define KIND_SHIFT 62
#define ACCESS_SHIFT 60
#define LANE_SHIFT 40
#define GRANT_SHIFT 32

static uint64_t load(int fd)
{
	return __atomic_load_n(&entries[fd], __ATOMIC_RELAXED);
}

/* Never lowered: the child of a fork must forget every entry, whatever threads did meanwhile. */
static void note_highest(int fd)
{
	int before = __atomic_load_n(&highest, __ATOMIC_RELAXED);

	while (fd > before && !__atomic_compare_exchange_n(&highest, &before, fd, true,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void store(int fd, uint64_t entry)
{
	note_highest(fd);
	__atomic_store_n(&entries[fd], entry, __ATOMIC_RELAXED);
}

static uint64_t granted(const struct grant *grant, unsigned int access)
{
	return (uint64_t)GRANTED << KIND_SHIFT | (uint64_t)access << ACCESS_SHIFT |
	       (uint64_t)grant->lane << LANE_SHIFT | (uint64_t)grant->nr << GRANT_SHIFT |
	       grant->closes;
}

static unsigned int access_of(int flags)
{
	if (flags < 0 || flags & O_PATH)
		return 0;
	return files_access(flags & O_ACCMODE);
}

/* Without a call to the file system: neither type nor number ever changes. */
static bool is_regular(int fd, dev_t *dev, ino_t *ino)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st) ||
	    !S_ISREG(st.stx_mode))
		return false;
	*dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	*ino = st.stx_ino;
	return true;
}

/* Asks for a grant. Another thread may put another file there meanwhile: @before, still there. */
static bool ask(int fd, unsigned int access, uint64_t before, struct grant *grant)
{
	unsigned int may = access_of(fcntl(fd, F_GETFL));
	int lane = -1;
	dev_t dev;
	ino_t ino;

	if (may && is_regular(fd, &dev, &ino))
		lane = lane_find(fd, dev);
	grant->fd = fd;
	grant->lane = (unsigned int)lane;
	if (lane < 0 || !lane_ask(fd, ino, may, grant)) {
		store(fd, (uint64_t)FOREIGN << KIND_SHIFT);
		return false;
	}
	__atomic_compare_exchange_n(&entries[fd], &before, granted(grant, may), false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return may & access;
}

/* The first calls are the kernel's: most files are read once, and closed. */
static bool count_call(int fd, uint64_t entry)
{
	uint32_t calls = (uint32_t)entry + 1;
	dev_t dev;
	ino_t ino;

	if (entry >> KIND_SHIFT == UNKNOWN && !is_regular(fd, &dev, &ino)) {
		store(fd, (uint64_t)FOREIGN << KIND_SHIFT);
		return false;
	}
	store(fd, (uint64_t)CALLED << KIND_SHIFT | calls);
	return calls > CALLS_MIN;
}

bool table_find(int fd, unsigned int access, struct grant *grant)
{
	uint64_t entry;

	if (fd < 0 || fd >= FDS_MAX)
		return false;
	entry = load(fd);
	switch (entry >> KIND_SHIFT) {
	case FOREIGN:
		return false;
	case GRANTED:
		grant->fd = fd;
		grant->lane = entry >> LANE_SHIFT & 0xff;
		grant->nr = entry >> GRANT_SHIFT & 0xff;
		grant->closes = (uint32_t)entry;
		if (lane_closes(grant->lane, grant->nr) == grant->closes)
			return entry >> ACCESS_SHIFT & access;
		return ask(fd, access, entry, grant);
	default:
		return count_call(fd, entry) && ask(fd, access, load(fd), grant);
	}
}

bool table_holds(int fd, const struct grant *grant)
{
	dev_t dev;
	ino_t ino;

	return is_regular(fd, &dev, &ino) && lane_is_of(grant, dev, ino);
}

void table_forget(int fd)
{
	if (fd < 0 || fd >= FDS_MAX)
		return;
	__atomic_store_n(&entries[fd], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&growth[fd], 0, __ATOMIC_RELAXED);
}

void table_forget_all(void)
{
	for (int fd = __atomic_load_n(&highest, __ATOMIC_RELAXED); fd >= 0; fd--)
		table_forget(fd);
}

void table_note_growth(int fd)
{
	__atomic_store_n(&growth[fd], GROWTH_WRITES, __ATOMIC_RELAXED);
}

bool table_grows(int fd)
{
	uint8_t left = __atomic_load_n(&growth[fd], __ATOMIC_RELAXED);

	if (left)
		__atomic_store_n(&growth[fd], left - 1, __ATOMIC_RELAXED);
	return left;
}

void table_mapped(int fd)
{
	dev_t dev;
	ino_t ino;

	if (access_of(fcntl(fd, F_GETFL)) & FILES_MAY_WRITE && is_regular(fd, &dev, &ino))
		lane_mapped(fd, dev);
}
