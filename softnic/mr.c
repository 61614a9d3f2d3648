// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Protection domains and memory regions.
 *
 * A region lives in the public segment, where peers look it up themselves before they
 * copy. Deregistration clears the key and then waits for everyone who may have seen it:
 * for this process's own queue pairs by taking their locks, for peers by their guards.
 * Pages are not pinned: a copy goes by virtual address, as the program itself does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "fault.h"
#include "mr.h"
#include "nic.h"
#include "qp.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static struct {
	pthread_mutex_t lock;
	uint32_t next;			/* slot to try next */
	uint32_t used;
	uint16_t generation[SHARED_MRS];
	bool taken[SHARED_MRS];
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint32_t next_pd;

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct pd *pd;

	if (fault_is_gone()) {
		errno = EIO;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->ibv.context = context;
	pd->ibv.handle = add_ordered(&next_pd, 1);
	return &pd->ibv;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	if (load_acquire(&to_pd(pd)->users))
		return EBUSY;
	free(to_pd(pd));
	return 0;
}

/* The generation makes a key that outlived its region useless; its start is random. */
static int take_slot(uint32_t *key)
{
	uint32_t i, at;
	int err = -ENOMEM;

	pthread_mutex_lock(&table.lock);
	for (i = 0; i < SHARED_MRS; i++) {
		at = table.next++ % SHARED_MRS;
		if (at == 0 || table.taken[at])
			continue;
		if (!table.generation[at] &&
		    getrandom(&table.generation[at], sizeof(table.generation[at]), 0) < 0)
			table.generation[at] = 1;
		table.generation[at]++;
		table.taken[at] = true;
		*key = at << 16 | table.generation[at];
		err = 0;
		break;
	}
	pthread_mutex_unlock(&table.lock);
	return err;
}

static void give_slot(uint32_t key)
{
	pthread_mutex_lock(&table.lock);
	table.taken[key >> 16] = false;
	pthread_mutex_unlock(&table.lock);
}

static bool is_mapped(const void *addr, size_t length)
{
	uintptr_t page = sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)addr & ~(page - 1), end = (uintptr_t)addr + length, next;
	unsigned char resident[4096];

	for (; at < end; at = next) {
		next = at + sizeof(resident) * page;
		if (next > end || next < at)
			next = end;
		if (mincore((void *)at, next - at, resident) < 0)
			return false;
	}
	return true;
}

static int check_access(void *addr, size_t length, uint64_t iova, unsigned int access)
{
	const unsigned int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	const unsigned int writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	if (fault_is_gone())
		return EIO;
	if (access & ~(known | IBV_ACCESS_OPTIONAL_RANGE))
		return EOPNOTSUPP;
	if ((access & writes) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	if (!length || (uintptr_t)addr + length < length || iova + length < length)
		return EINVAL;
	return is_mapped(addr, length) ? 0 : EFAULT;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct shared_mr *shared;
	struct ibv_mr *mr;
	uint32_t key;
	int err;

	err = check_access(addr, length, iova, access);
	if (err)
		goto fail;
	err = ENOMEM;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		goto fail;
	if (!fault_mr_take(length))
		goto free;
	if (take_slot(&key))
		goto give;
	*mr = (struct ibv_mr){ pd->context, pd, addr, length, key >> 16, key, key };
	shared = &nic.pub->mrs[key >> 16];
	shared->access = access;
	shared->pd = pd->handle;
	shared->iova = iova;
	shared->addr = (uintptr_t)addr;
	shared->length = length;
	store_release(&shared->key, key);
	add_ordered(&to_pd(pd)->users, 1);
	count(mrs, 1);
	return mr;

give:
	fault_mr_give(length);
free:
	free(mr);
fail:
	errno = err;
	return NULL;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct qp *qp = NULL;

	store_ordered(&nic.pub->mrs[mr->handle].key, 0);
	while ((qp = nic_next_qp(qp)))
		qp_wait_for_copies(qp);
	give_slot(mr->lkey);
	fault_mr_give(mr->length);
	add_ordered(&to_pd(mr->pd)->users, -1);
	count(mrs, -1);
	free(mr);
	return 0;
}

bool mr_translate(const struct shared_pub *pub, uint32_t key, uint32_t pd, uint32_t access,
		  uint64_t iova, uint64_t length, uint64_t *addr)
{
	const struct shared_mr *mr = &pub->mrs[key >> 16];
	uint64_t offset;

	if (!length) {
		*addr = 0;
		return true;
	}
	if (!key || load_ordered(&mr->key) != key)
		return false;
	offset = iova - mr->iova;
	if (mr->pd != pd || (mr->access & access) != access || iova < mr->iova ||
	    offset > mr->length || length > mr->length - offset)
		return false;
	*addr = mr->addr + offset;
	return true;
}
