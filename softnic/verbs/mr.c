// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Memory regions are stored in the public segment, and peers look regions up there before a copy.
 * Deregistration clears the key, then waits for all users that may have seen the key. Taking its
 * lock waits for an own queue pair; the guards wait for peers. Pages are not pinned: copies use
 * virtual addresses, as the program does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "softnic/control/fault.h"
#include "softnic/loop/fork.h"
#include "softnic/shm/vma.h"
#include "mr.h"
#include "mw.h"
#include "nic.h"
#include "softnic/region/dmabuf.h"
#include "softnic/region/null_mr.h"
#include "pd.h"
#include "softnic/qp/qp.h"
#include "softnic/shm/export.h"
#include "softnic/strict/strict.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static struct {
	pthread_mutex_t lock;
	uint32_t next; /* slot to try next */
	uint16_t generation[SHARED_MRS];
	bool taken[SHARED_MRS];
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The generation, with a random start, makes the key of a deregistered region invalid. */
int mr_take_key(uint32_t *key)
{
	uint32_t i, at;
	int rc = -ENOMEM;

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
		rc = 0;
		break;
	}
	pthread_mutex_unlock(&table.lock);
	return rc;
}

void mr_give_key(uint32_t key)
{
	pthread_mutex_lock(&table.lock);
	table.generation[key >> 16] = key;
	table.taken[key >> 16] = false;
	pthread_mutex_unlock(&table.lock);
}

static void reset_mrs(void)
{
	memset(table.taken, false, sizeof(table.taken));
}

const struct fork_part mr_fork = { &table.lock, reset_mrs };

int mr_check_rights(unsigned int access)
{
	const unsigned int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				   IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
				   IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |
				   IBV_ACCESS_OPTIONAL_RANGE | FLUSH_ACCESS;
	const unsigned int writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	if (fault_is_gone())
		return EIO;
	if (access & ~known)
		return EOPNOTSUPP;
	return (access & writes) && !(access & IBV_ACCESS_LOCAL_WRITE) ? EINVAL : 0;
}

/* As a NIC does not pin them, pages on demand do not count against the fault "mr_bytes". */
static uint64_t pinned_bytes(const struct shared_mr *mr)
{
	return mr->access & IBV_ACCESS_ON_DEMAND ? 0 : mr->length;
}

/*
 * The program may map other memory at the addresses of a region on demand, so no peer may keep a
 * mapping of what is there now.
 */
static uint32_t export_region(struct shared_mr *mr)
{
	if (mr->access & IBV_ACCESS_ON_DEMAND)
		return 0;
	return export_get((void *)(uintptr_t)mr->addr, mr->length, &mr->offset);
}

/*
 * The kernel's rules for a NIC. Pages must be writable if the access flags, or a later window, can
 * allow writes. Pages on demand are looked for at each access only. The kernel maps whole pages,
 * so an iova must have the page offset of its memory.
 */
static int check_range(const struct shared_mr *mr)
{
	const uint64_t within = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	const uint32_t writes = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

	if (!mr->length || mr->addr + mr->length < mr->length || mr->iova + mr->length < mr->length)
		return EINVAL;
	if (!(mr->access & IBV_ACCESS_ZERO_BASED) && ((mr->iova ^ mr->addr) & within))
		return EINVAL;
	if (mr->access & IBV_ACCESS_ON_DEMAND)
		return 0;
	return vma_check_range((void *)(uintptr_t)mr->addr, mr->length, mr->access & writes);
}

void mr_publish(uint32_t key, const struct shared_mr *mr)
{
	struct shared_mr *at = &nic.pub->mrs[key >> 16];

	at->access = mr->access;
	at->pd = mr->pd;
	at->kind = mr->kind;
	at->iova = mr->iova;
	at->addr = mr->addr;
	at->length = mr->length;
	at->qpn = mr->qpn;
	at->binds = mr->binds;
	at->file = mr->file;
	at->offset = mr->offset;
	at->device = mr->device;
	store_release(&at->key, key);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct shared_mr shared = {
		.access = access,
		.pd = pd->handle,
		.kind = SHARED_REGION,
		.iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
		.addr = (uintptr_t)addr,
		.length = length,
		.device = device_index(pd->context->device),
	};
	int rc = mr_check_rights(access);
	struct ibv_mr *mr;
	uint32_t key;

	if (!rc)
		rc = check_range(&shared);
	if (rc)
		goto fail;
	rc = ENOMEM;
	mr = calloc(1, sizeof(struct mr));
	if (!mr)
		goto fail;
	if (!fault_mr_take(pinned_bytes(&shared)))
		goto free;
	if (mr_take_key(&key))
		goto give;
	*mr = (struct ibv_mr){ pd->context, pd, addr, length, key >> 16, key, key };
	if (access & IBV_ACCESS_ON_DEMAND)
		nic_note_pages_on_demand();
	shared.file = export_region(&shared);
	mr_publish(key, &shared);
	pd_use(to_pd(pd));
	count(mrs, 1);
	return mr;

give:
	fault_mr_give(pinned_bytes(&shared));
free:
	free(mr);
fail:
	errno = rc;
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

void mr_wait_for_copies(uint32_t key)
{
	struct qp *qp = NULL;

	while ((qp = nic_next_qp(qp)))
		qp_wait_for_copies(qp, key);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int rc;

	if (strict_is_destroyed(mr->context, "ibv_dereg_mr()"))
		return EINVAL;
	strict_region_ends(mr, "ibv_dereg_mr()");
	rc = mw_end_region(mr->lkey);
	if (rc) {
		strict_busy("ibv_dereg_mr()", "memory windows are bound to the region");
		return rc;
	}
	mr_wait_for_copies(mr->lkey);
	export_put(nic.pub->mrs[mr->handle].file);
	dmabuf_unmap(to_mr(mr));
	fault_mr_give(pinned_bytes(&nic.pub->mrs[mr->handle]));
	mr_give_key(mr->lkey);
	pd_release(to_pd(mr->pd));
	count(mrs, -1);
	strict_free(mr, &mr->context);
	return 0;
}

/* Computes the new region; attributes without a bit in @flags do not change. */
static int plan_change(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		       size_t length, int access, struct shared_mr *to)
{
	const int known = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |
			  IBV_REREG_MR_CHANGE_ACCESS;
	int rc = 0;

	*to = nic.pub->mrs[mr->handle];
	if (!flags || (flags & ~known) || to->kind == SHARED_NULL || to_mr(mr)->map)
		return EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
		rc = mr_check_rights(access);
		to->access = access;
	}
	if (!rc && (flags & IBV_REREG_MR_CHANGE_PD)) {
		rc = pd ? 0 : EINVAL;
		to->pd = pd ? pd->handle : 0;
	}
	if (!rc && (flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
		to->addr = (uintptr_t)addr;
		to->length = length;
		to->iova = to->access & IBV_ACCESS_ZERO_BASED ? 0 : to->addr;
	}
	return rc ? rc : check_range(to);
}

/* The keys stay the same. An access during the change finds no region. */
int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	const uint64_t pinned = pinned_bytes(&nic.pub->mrs[mr->handle]);
	struct shared_mr to;
	int rc = plan_change(mr, flags, pd, addr, length, access, &to);
	uint32_t old_file;

	if (!rc && !fault_mr_change(pinned, pinned_bytes(&to)))
		rc = ENOMEM;
	if (rc)
		goto fail;
	rc = mw_end_region(mr->lkey);
	if (rc)
		goto give;
	mr_wait_for_copies(mr->lkey);
	old_file = nic.pub->mrs[mr->handle].file;
	to.file = export_region(&to);
	mr_publish(mr->lkey, &to);
	export_put(old_file);
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		pd_use(to_pd(pd));
		pd_release(to_pd(mr->pd));
		mr->pd = pd;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->addr = addr;
		mr->length = length;
	}
	return 0;

give:
	fault_mr_give(pinned_bytes(&to) - pinned);
fail:
	errno = rc;
	return IBV_REREG_MR_ERR_INPUT;
}

/* Regions are visible anyway. */
static bool is_visible(const struct mr_view *v, uint32_t key, uint32_t kind, uint32_t qpn,
		       uint32_t binds)
{
	switch (kind) {
	case SHARED_NULL:
		return !v->qpn;
	case SHARED_WINDOW_1:
		return v->qpn;
	case SHARED_WINDOW_2:
		return v->qpn && qpn == v->qpn &&
		       (!v->doorbell_page ||
			load_acquire(&v->doorbell_page->invalidated[key >> 16]) != binds);
	default:
		return false;
	}
}

/*
 * The owner may write at any time, so each field is read once. The key is stored last and read
 * first. Inlined, because each work request does this twice, and needs few of the fields.
 */
static inline __attribute__((always_inline)) bool read_entry(const struct mr_view *v, uint32_t key,
							     struct shared_mr *mr)
{
	const struct shared_mr *at = &v->pub->mrs[key >> 16];

	if (!key || load_ordered(&at->key) != key)
		return false;
	*mr = (struct shared_mr){
		.key = key,
		.access = load_relaxed(&at->access),
		.pd = load_relaxed(&at->pd),
		.kind = load_relaxed(&at->kind),
		.iova = load_relaxed(&at->iova),
		.addr = load_relaxed(&at->addr),
		.length = load_relaxed(&at->length),
		.qpn = load_relaxed(&at->qpn),
		.file = load_relaxed(&at->file),
		.offset = load_relaxed(&at->offset),
		.binds = load_relaxed(&at->binds),
	};
	return mr->pd == v->pd && (mr->kind == SHARED_REGION ||
				   is_visible(v, key, mr->kind, mr->qpn, mr->binds));
}

bool mr_read(const struct mr_view *v, uint32_t key, struct shared_mr *mr)
{
	return read_entry(v, key, mr);
}

bool mr_translate(const struct mr_view *v, uint32_t key, uint32_t access, uint64_t iova,
		  uint64_t length, struct mr_place *place)
{
	struct shared_mr mr;
	uint64_t offset;

	if (!length) {
		*place = (struct mr_place){ 0 };
		return true;
	}
	if (!read_entry(v, key, &mr) || (mr.access & access) != access)
		return false;
	if (mr.kind == SHARED_NULL) {
		*place = null_mr_place(mr.addr, access);
		return true;
	}
	offset = iova - mr.iova;
	if (iova < mr.iova || offset > mr.length ||
	    length > mr.length - offset)
		return false;
	*place = (struct mr_place){ mr.addr + offset, mr.offset + offset, mr.file };
	return true;
}

bool mr_may_flush(const struct mr_view *v, uint32_t key, uint64_t iova, uint64_t length,
		  bool whole)
{
	struct mr_place place;
	struct shared_mr mr;

	if (!mr_read(v, key, &mr) || !(mr.access & FLUSH_ACCESS))
		return false;
	return whole || mr_translate(v, key, FLUSH_ACCESS, iova, length, &place);
}
