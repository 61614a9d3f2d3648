// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A null region has no bounds, but a message has. So one range of addresses, as long as the longest
 * message, serves all accesses: a sink, then zeros. The data path copies as for any region. The
 * sink is a short file, mapped over and over, so that a long message takes no more memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softnic/control/fault.h"
#include "softnic/verbs/nic.h"
#include "softnic/verbs/pd.h"
#include "null_mr.h"

#define SINK_BYTES (16ul << 20)
#define RANGE_BYTES ((size_t)SOFTNIC_MESSAGE_MAX)

struct mr_place null_mr_place(uint64_t base, uint32_t access)
{
	return (struct mr_place){ .addr = base +
					  (access & IBV_ACCESS_LOCAL_WRITE ? 0 : RANGE_BYTES) };
}

static uint8_t *range; /* never unmapped: a later null region uses it, too */

static int map_sink(uint8_t *base)
{
	int fd = memfd_create("softnic-null", MFD_CLOEXEC), rc = 0;
	size_t at;

	if (fd < 0 || ftruncate(fd, SINK_BYTES))
		rc = errno;
	for (at = 0; at < RANGE_BYTES && !rc; at += SINK_BYTES)
		if (mmap(base + at, SINK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 0) == MAP_FAILED)
			rc = errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

static int map_range(void)
{
	uint8_t *none = NULL, *base;
	int rc;

	base = mmap(NULL, 2 * RANGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (base == MAP_FAILED)
		return errno;
	rc = map_sink(base);
	if (rc || !__atomic_compare_exchange_n(&range, &none, base, false, __ATOMIC_SEQ_CST,
					       __ATOMIC_SEQ_CST))
		munmap(base, 2 * RANGE_BYTES); /* failed, or another thread was first */
	return rc;
}

static struct ibv_mr *fail(int rc)
{
	errno = rc;
	return NULL;
}

struct ibv_mr *null_mr_alloc(struct ibv_pd *pd)
{
	struct shared_mr shared = {
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND,
		.pd = pd->handle,
		.kind = SHARED_NULL,
		.length = SIZE_MAX,
	};
	int rc = fault_is_gone() ? EIO : load_acquire(&range) ? 0 : map_range();
	struct ibv_mr *mr;
	uint32_t key;

	if (rc)
		return fail(rc);
	mr = calloc(1, sizeof(struct mr));
	if (!mr || mr_take_key(&key)) {
		free(mr);
		return fail(ENOMEM);
	}
	*mr = (struct ibv_mr){ pd->context, pd, NULL, SIZE_MAX, key >> 16, key, 0 };
	shared.addr = (uintptr_t)load_acquire(&range);
	mr_publish(key, &shared);
	pd_use(to_pd(pd));
	count(mrs, 1);
	return mr;
}
