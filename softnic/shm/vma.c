// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * PROCMAP_QUERY (since Linux 6.11) looks up one mapping. Older kernels only print all mappings as
 * text, so the time grows with the number of mappings.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vma.h"

/* As in <linux/fs.h>; on many machines that header is too old. */
struct vma_query {
	__u64 size;
	__u64 query_flags;
	__u64 query_addr;
	__u64 start, end;
	__u64 flags;
	__u64 page_size;
	__u64 offset;
	__u64 inode;
	__u32 dev_major, dev_minor;
	__u32 name_size, build_id_size;
	__u64 name_addr, build_id_addr;
};
#define MAPPING_QUERY _IOWR('f', 17, struct vma_query)
enum { IS_READABLE = 0x01, IS_WRITABLE = 0x02, IS_SHARED = 0x08 };

int vma_find(int maps, uint64_t addr, struct vma *m)
{
	struct vma_query q = { .size = sizeof(q), .query_addr = addr };

	if (ioctl(maps, MAPPING_QUERY, &q))
		return errno;
	*m = (struct vma){
		.start = q.start,
		.end = q.end,
		.offset = q.offset,
		.inode = q.inode,
		.dev_major = q.dev_major,
		.dev_minor = q.dev_minor,
		.is_readable = q.flags & IS_READABLE,
		.is_writable = q.flags & IS_WRITABLE,
		.is_shared = q.flags & IS_SHARED,
	};
	return 0;
}

static int check_by_query(int maps, uint64_t at, uint64_t end, bool write)
{
	struct vma m = { 0 };
	int rc;

	for (; at < end; at = m.end) {
		rc = vma_find(maps, at, &m);
		if (rc)
			return rc == ENOENT ? EFAULT : rc;
		if (write ? !m.is_writable : !m.is_readable)
			return EFAULT;
	}
	return 0;
}

/* Lines are sorted by address and begin "START-END rwxp". */
int vma_check_range_by_text(const void *addr, size_t length, bool write)
{
	uint64_t at = (uintptr_t)addr, end = at + length, first, last;
	FILE *lines = fopen("/proc/self/maps", "re");
	char line[512], right[2];
	bool is_new = true, was_new;

	if (!lines)
		return errno;
	while (at < end && fgets(line, sizeof(line), lines)) {
		was_new = is_new;
		is_new = strchr(line, '\n'); /* else a long name continues */
		if (!was_new ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64 " %c%c", &first, &last, &right[0],
			   &right[1]) != 4 ||
		    last <= at)
			continue;
		if (first > at || right[write] == '-')
			break;
		at = last;
	}
	fclose(lines);
	return at < end ? EFAULT : 0;
}

int vma_check_range(const void *addr, size_t length, bool write)
{
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), rc;

	if (maps < 0)
		return errno == EMFILE || errno == ENFILE ? errno : 0;
	rc = check_by_query(maps, (uintptr_t)addr, (uintptr_t)addr + length, write);
	if (rc == ENOTTY)
		rc = vma_check_range_by_text(addr, length, write);
	close(maps);
	return rc;
}

/* MADV_POPULATE needs Linux 5.14. EINVAL: an older kernel, or a mapping without pages. */
int vma_touch_range(const void *addr, size_t length, bool write)
{
	uintptr_t page = sysconf(_SC_PAGESIZE), at = (uintptr_t)addr & -page;

	if (!madvise((void *)at, (uintptr_t)addr + length - at,
		     write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return 0;
	return errno == EINVAL ? vma_check_range(addr, length, write) : EFAULT;
}
