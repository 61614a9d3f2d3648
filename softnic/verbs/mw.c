// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A window has an entry in the table of regions, where peers look it up like a region.
 *
 * Type 1 is accessible through every queue pair of its protection domain. So revoking its key
 * checks all guards, as for a region. ibv_bind_mw() does this before posting the next bind,
 * because that call may block.
 *
 * Type 2 (2B) is accessible only through the queue pair of its bind, so to one peer. Revoking its
 * key checks one guard. A peer must not change our table. So a peer that invalidates a window
 * writes to its own doorbell page, which all its later checks read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softnic/control/fault.h"
#include "softnic/loop/fork.h"
#include "mw.h"
#include "nic.h"
#include "pd.h"
#include "softnic/qp/post.h"
#include "softnic/qp/resp.h"
#include "softnic/shm/server.h"
#include "softnic/strict/strict.h"

/* Indexed like the table of regions. */
static struct {
	pthread_mutex_t lock;
	uint32_t region[SHARED_MRS]; /* of a bound window: the key of its region */
	uint32_t windows[SHARED_MRS]; /* of a region: number of windows bound */
	uint32_t binds[SHARED_MRS]; /* of a window: number of its latest bind, 0 if none */
	uint32_t latest[SHARED_MRS]; /* of a window: the key posted last */
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void reset_mws(void)
{
	memset(table.region, 0, sizeof(table.region));
	memset(table.windows, 0, sizeof(table.windows));
	memset(table.latest, 0, sizeof(table.latest));
}

const struct fork_part mw_fork = { &table.lock, reset_mws };

static uint32_t mr_index(uint32_t key)
{
	return key >> 16;
}

/* Under table.lock. */
static void unbind(uint32_t at)
{
	store_ordered(&nic.pub->mrs[at].key, 0);
	if (table.region[at])
		table.windows[mr_index(table.region[at])]--;
	table.region[at] = 0;
}

/* A peer may invalidate only windows bound to its queue pair @qp. */
void mw_invalidated(const struct qp *qp, uint32_t key)
{
	const struct shared_mr *mr = &nic.pub->mrs[mr_index(key)];

	pthread_mutex_lock(&table.lock);
	if (key && mr->key == key && mr->kind == SHARED_WINDOW_2 && mr->qpn == qp->ibv.qp_num)
		unbind(mr_index(key));
	pthread_mutex_unlock(&table.lock);
}

/* The invalidating message may not be polled yet. Under nic.lock and table.lock. */
static void unbind_if_invalidated(uint32_t at)
{
	const struct shared_mr *mr = &nic.pub->mrs[at];
	const struct qp *qp = nic_qp(mr->qpn);

	if (mr->key && mr->kind == SHARED_WINDOW_2 && qp &&
	    load_acquire(&server_doorbells(qp)->invalidated[at]) == mr->binds)
		unbind(at);
}

static void unbind_invalidated(uint32_t region)
{
	uint32_t at;

	pthread_mutex_lock(&nic.lock);
	pthread_mutex_lock(&table.lock);
	for (at = 1; at < SHARED_MRS && table.windows[mr_index(region)]; at++)
		if (table.region[at] == region)
			unbind_if_invalidated(at);
	pthread_mutex_unlock(&table.lock);
	pthread_mutex_unlock(&nic.lock);
}

struct ibv_mw *mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw;
	uint32_t key;

	if (fault_is_gone() || (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)) {
		errno = fault_is_gone() ? EIO : EINVAL;
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	if (!mw || mr_take_key(&key)) {
		free(mw);
		errno = ENOMEM;
		return NULL;
	}
	*mw = (struct ibv_mw){ pd->context, pd, key, mr_index(key), type };
	store_relaxed(&table.latest[mr_index(key)], key);
	pd_use(to_pd(pd));
	return mw;
}

/* The program chose the last byte of the key, so the next key must differ in the higher bits. */
int mw_dealloc(struct ibv_mw *mw)
{
	uint32_t last = mw->handle << 16 | ((mw->rkey + 0x100) & 0xffff);

	pthread_mutex_lock(&table.lock);
	unbind(mw->handle);
	store_relaxed(&table.latest[mw->handle], 0);
	pthread_mutex_unlock(&table.lock);
	mr_wait_for_copies(mw->rkey);
	mr_give_key(last);
	pd_release(to_pd(mw->pd));
	free(mw);
	return 0;
}

int mw_end_region(uint32_t key)
{
	int rc = 0;

	unbind_invalidated(key);
	pthread_mutex_lock(&table.lock);
	if (table.windows[mr_index(key)])
		rc = EBUSY;
	else
		store_ordered(&nic.pub->mrs[mr_index(key)].key, 0);
	pthread_mutex_unlock(&table.lock);
	return rc;
}

static int check_wr(const struct qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	const struct ibv_mw *mw = wr->bind_mw.mw;

	/* The program may change only the last byte of a key. */
	if (!mw || (mw->rkey ^ wr->bind_mw.rkey) > 0xff || mw->pd->handle != qp->ibv.pd->handle)
		return EINVAL;
	if (info->length && !info->mr)
		return EINVAL;
	return info->length && mw->type == IBV_MW_TYPE_1 &&
			       (info->mw_access_flags & IBV_ACCESS_ZERO_BASED) ?
		       EINVAL :
		       0;
}

/* Only ibv_bind_mw() may bind type 1, because it revokes the old key before posting. */
int mw_check_bind(const struct qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_mw *mw = wr->bind_mw.mw;
	int rc = check_wr(qp, wr);

	if (!rc && mw->type == IBV_MW_TYPE_1 &&
	    load_relaxed(&table.latest[mw->handle]) != wr->bind_mw.rkey)
		rc = EINVAL;
	return rc;
}

void mw_fill_bind(struct send_wqe *wqe, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	wqe->rkey = wr->bind_mw.rkey;
	wqe->bind = (struct mw_bind_args){
		.type = wr->bind_mw.mw->type,
		.region = info->mr ? info->mr->lkey : 0,
		.access = info->mw_access_flags,
		.addr = info->addr,
		.length = info->length,
	};
}

static bool is_within(const struct shared_mr *region, const struct mw_bind_args *b)
{
	return b->addr >= region->iova && b->addr - region->iova <= region->length &&
	       b->length <= region->length - (b->addr - region->iova);
}

/* The region's required rights, by InfiniBand 10.6.7 and 11.4.1. Under table.lock. */
static bool may_bind(const struct qp *qp, const struct mw_bind_args *b,
		     const struct shared_mr *region)
{
	const uint32_t rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				IBV_ACCESS_ZERO_BASED;
	const uint32_t writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	if (!b->region || region->key != b->region || region->kind != SHARED_REGION ||
	    region->pd != qp->ibv.pd->handle || !(region->access & IBV_ACCESS_MW_BIND))
		return false;
	if ((b->access & ~rights) ||
	    ((b->access & writes) && !(region->access & IBV_ACCESS_LOCAL_WRITE)))
		return false;
	return is_within(region, b);
}

/* Under table.lock. */
static enum ibv_wc_status bind_to(struct qp *qp, uint32_t key, const struct mw_bind_args *b)
{
	const struct shared_mr *region = &nic.pub->mrs[mr_index(b->region)];
	bool one = b->type == IBV_MW_TYPE_1;
	struct shared_mr window;
	uint32_t at = mr_index(key);

	if (table.region[at])
		return IBV_WC_MW_BIND_ERR;
	if (!b->length)
		return one ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
	if (!may_bind(qp, b, region))
		return IBV_WC_MW_BIND_ERR;
	window = (struct shared_mr){
		.access = b->access & ~(uint32_t)IBV_ACCESS_LOCAL_WRITE,
		.pd = region->pd,
		.kind = one ? SHARED_WINDOW_1 : SHARED_WINDOW_2,
		.iova = b->access & IBV_ACCESS_ZERO_BASED ? 0 : b->addr,
		.addr = region->addr + (b->addr - region->iova),
		.length = b->length,
		.qpn = one ? 0 : qp->ibv.qp_num,
		.binds = ++table.binds[at],
		.file = region->file,
		.offset = region->offset + (b->addr - region->iova),
	};
	mr_publish(key, &window);
	table.region[at] = b->region;
	table.windows[mr_index(b->region)]++;
	return IBV_WC_SUCCESS;
}

/* A bind of type 1 grants nothing if the program has posted a newer bind. */
static enum ibv_wc_status step_bind(struct qp *qp, const struct send_wqe *wqe)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	uint32_t latest;

	pthread_mutex_lock(&table.lock);
	latest = table.latest[mr_index(wqe->rkey)];
	if (!latest)
		status = IBV_WC_MW_BIND_ERR; /* the window is gone */
	else if (wqe->bind.type == IBV_MW_TYPE_2 || latest == wqe->rkey)
		status = bind_to(qp, wqe->rkey, &wqe->bind);
	pthread_mutex_unlock(&table.lock);
	return status;
}

/* Under table.lock. */
static bool may_invalidate(const struct qp *qp, uint32_t key)
{
	const struct mr_view own = {
		nic.pub,
		NULL,
		qp->ibv.pd->handle,
		qp->ibv.qp_num,
	};
	struct shared_mr window;

	return mr_read(&own, key, &window) && window.kind == SHARED_WINDOW_2;
}

static int step_invalidate(struct qp *qp, uint32_t key)
{
	const struct copy_guards *guards = &qp->segment.guards;
	struct send_queue *sq = &qp->sq;
	bool valid;

	if (sq->invalidates)
		return guard_walk_on(&sq->leaving, guards) ? IBV_WC_SUCCESS : RESP_BUSY;
	pthread_mutex_lock(&table.lock);
	valid = may_invalidate(qp, key);
	if (valid)
		unbind(mr_index(key));
	pthread_mutex_unlock(&table.lock);
	if (!valid)
		return IBV_WC_MW_BIND_ERR;
	sq->leaving = (struct copy_guard_walk){ 0 };
	sq->invalidates = !guard_walk_on(&sq->leaving, guards);
	return sq->invalidates ? RESP_BUSY : IBV_WC_SUCCESS;
}

int mw_step(struct qp *qp, const struct send_wqe *wqe)
{
	if (wqe->opcode == IBV_WR_BIND_MW)
		return step_bind(qp, wqe);
	return step_invalidate(qp, wqe->imm);
}

static uint32_t next_key(uint32_t key)
{
	return (key & ~0xffu) | ((key + 1) & 0xff);
}

int mw_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *b)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = b->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = b->send_flags,
		.bind_mw = { mw, next_key(mw->rkey), b->bind_info },
	};
	int rc = check_wr(to_qp(qp), &wr);

	if (rc)
		return rc;
	pthread_mutex_lock(&table.lock);
	store_relaxed(&table.latest[mw->handle], wr.bind_mw.rkey);
	unbind(mw->handle);
	pthread_mutex_unlock(&table.lock);
	mr_wait_for_copies(mw->rkey);
	/* Not ibv_post_send(): a library that hooks the context has counted the bind already. */
	rc = post_list(to_qp(qp), &wr, &bad, strict_post_append());
	if (!rc)
		mw->rkey = wr.bind_mw.rkey;
	return rc;
}
