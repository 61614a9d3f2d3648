// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Extended completion queues: the program reads one completion at a time while the CQ is
 * locked. The device's clock is CLOCK_MONOTONIC in nanoseconds, common to all processes of the
 * host.
 */
#include <errno.h>
#include <time.h>

#include "cq.h"
#include "softnic/udp/poller.h"

static struct cq *from_ex(struct ibv_cq_ex *ex)
{
	return to_cq(ibv_cq_ex_to_cq(ex));
}

static int next(struct ibv_cq_ex *ex)
{
	struct cq *cq = from_ex(ex);

	if (!cq->take(cq, 1, &cq->wc))
		return ENOENT;
	ex->status = cq->wc.status;
	ex->wr_id = cq->wc.wr_id;
	return 0;
}

/* Keeps the lock if there is a completion. */
static int lock_and_take(struct ibv_cq_ex *ex)
{
	int rc;

	pthread_mutex_lock(&from_ex(ex)->lock);
	rc = next(ex);
	if (rc)
		pthread_mutex_unlock(&from_ex(ex)->lock);
	else
		poller_rest();
	return rc;
}

static int start(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	int rc;

	if (attr->comp_mask)
		return EINVAL;
	rc = lock_and_take(ex);
	return rc && poller_try() ? lock_and_take(ex) : rc;
}

static void end(struct ibv_cq_ex *ex)
{
	pthread_mutex_unlock(&from_ex(ex)->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->wc.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->wc.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->wc.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->wc.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->wc.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->wc.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->wc.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->done_ns;
}

/* By the wall clock as set now; setting the clock in between shifts the result. */
static uint64_t read_wallclock_ns(struct ibv_cq_ex *ex)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec -
	       (softnic_loop_now_ns() - from_ex(ex)->done_ns);
}

/* A reader not asked for stays NULL, as with hardware. */
#define IF(flag, fn) (wc_flags & IBV_WC_EX_WITH_##flag ? fn : NULL)

void cq_ex_init(struct cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = start;
	ex->next_poll = next;
	ex->end_poll = end;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	ex->read_byte_len = IF(BYTE_LEN, read_byte_len);
	ex->read_imm_data = IF(IMM, read_imm_data);
	ex->read_qp_num = IF(QP_NUM, read_qp_num);
	ex->read_src_qp = IF(SRC_QP, read_src_qp);
	ex->read_slid = IF(SLID, read_slid);
	ex->read_sl = IF(SL, read_sl);
	ex->read_dlid_path_bits = IF(DLID_PATH_BITS, read_dlid_path_bits);
	ex->read_completion_ts = IF(COMPLETION_TIMESTAMP, read_completion_ts);
	ex->read_completion_wallclock_ns = IF(COMPLETION_TIMESTAMP_WALLCLOCK, read_wallclock_ns);
}
