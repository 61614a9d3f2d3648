// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Checks of the verbs that change, destroy and free objects.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "softnic/control/config.h"
#include "softnic/cq/cq.h"
#include "finding.h"
#include "strict.h"
#include "wr.h"

enum { ACK_WAIT_S = 2, KEPT_MAX = 1024 };

int strict_level;

void strict_begin(void)
{
	const struct softnic_options *options = config_get();

	if (!options || !options->value[OPTION_STRICT])
		return;
	store_relaxed(&strict_level, (int)options->value[OPTION_STRICT]);
	strict_report_at_exit(options->value[OPTION_STRICT_LEAKS]);
}

void strict_overrun(const struct cq *cq)
{
	if (strict_level)
		strict_find(STRICT_CQ_OVERRUN,
			    "CQ 0x%x: more completions wait than its %d entries: the CQ and its "
			    "queue pairs fail",
			    cq->ibv.handle, cq->ibv.cqe);
}

static bool uses_region(const struct strict_wr *wr, uint32_t lkey)
{
	uint32_t i;

	for (i = 0; i < wr->num_sge; i++)
		if (wr->sges[i].lkey == lkey && wr->sges[i].length)
			return true;
	return false;
}

/* In the error and reset states a NIC has finished with all memory. */
static bool is_under_way(const struct strict_wr *wr)
{
	enum ibv_qp_state state;

	if (wr->is_receive || !wr->qp)
		return false; /* nothing is wrong until a message comes */
	state = load_acquire(&wr->qp->state);
	return state != IBV_QPS_ERR && state != IBV_QPS_RESET;
}

void strict_region_ends(const struct ibv_mr *mr, const char *call)
{
	struct strict_wr *wr;

	if (!strict_level)
		return;
	wr_lock();
	for (wr = wr_first(); wr; wr = wr->next)
		if (is_under_way(wr) && uses_region(wr, mr->lkey))
			break;
	if (wr)
		strict_find(STRICT_REGION,
			    "%s, region 0x%x (%p): QP 0x%x, wr_id %" PRIu64
			    " uses it, and no completion shows its end",
			    call, mr->lkey, mr->addr, wr_number(wr), wr->wr_id);
	wr_unlock();
}

void strict_ah_ends(const struct ibv_ah *ah)
{
	struct strict_wr *wr;

	if (!strict_level)
		return;
	wr_lock();
	for (wr = wr_first(); wr; wr = wr->next)
		if (wr->ah == ah && is_under_way(wr))
			break;
	if (wr)
		strict_find(STRICT_ADDRESS,
			    "ibv_destroy_ah(), %p: QP 0x%x, wr_id %" PRIu64
			    " uses it, and no completion shows its end",
			    (void *)ah, wr_number(wr), wr->wr_id);
	wr_unlock();
}

void strict_busy(const char *call, const char *why)
{
	if (strict_level)
		strict_find(STRICT_BUSY, "%s: EBUSY: %s", call, why);
}

static const char *state_name(enum ibv_qp_state state)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return state <= IBV_QPS_ERR ? names[state] : "?";
}

static void add_names(char *text, size_t size, const char *before, int mask)
{
	static const char *const names[] = {
		"STATE",
		"CUR_STATE",
		"EN_SQD_ASYNC_NOTIFY",
		"ACCESS_FLAGS",
		"PKEY_INDEX",
		"PORT",
		"QKEY",
		"AV",
		"PATH_MTU",
		"TIMEOUT",
		"RETRY_CNT",
		"RNR_RETRY",
		"RQ_PSN",
		"MAX_QP_RD_ATOMIC",
		"ALT_PATH",
		"MIN_RNR_TIMER",
		"SQ_PSN",
		"MAX_DEST_RD_ATOMIC",
		"PATH_MIG_STATE",
		"CAP",
		"DEST_QPN",
	};
	size_t at = strlen(text), i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && at < size; i++) {
		if (!(mask >> i & 1))
			continue;
		at += snprintf(text + at, size - at, "%s IBV_QP_%s", before, names[i]);
		before = ",";
	}
}

void strict_refuse_modify(const struct ibv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to,
			  int mask, int needed, int allowed, bool exists)
{
	const int always = IBV_QP_STATE | IBV_QP_CUR_STATE;
	char why[256] = "";

	if (!strict_level)
		return;
	if (!exists)
		snprintf(why, sizeof(why), " no such transition");
	add_names(why, sizeof(why), " misses", exists ? needed & ~mask : 0);
	add_names(why, sizeof(why), why[0] ? "; may not have" : " may not have",
		  exists ? mask & ~(needed | allowed | always) : 0);
	strict_find(STRICT_STATE, "ibv_modify_qp(), QP 0x%x, %s to %s:%s", qp->qp_num,
		    state_name(from), state_name(to), why);
}

bool strict_wait_for_ack(pthread_cond_t *cond, pthread_mutex_t *mutex, const char *call,
			 uint32_t missing)
{
	struct timespec until;

	if (!strict_level) {
		pthread_cond_wait(cond, mutex);
		return true;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ACK_WAIT_S;
	if (pthread_cond_timedwait(cond, mutex, &until) != ETIMEDOUT)
		return true;
	strict_find(STRICT_ACK,
		    "%s: %u events of the object are not acknowledged: outside strict mode it "
		    "waits for ever",
		    call, missing);
	return false;
}

/* Under wr_lock(). */
static struct {
	void *objects[KEPT_MAX];
	uint32_t next;
} kept;

static int refuse_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	strict_find(STRICT_DESTROYED,
		    "ibv_post_send(), QP 0x%x, wr_id %" PRIu64 ": the queue pair was destroyed",
		    qp->qp_num, wr->wr_id);
	*bad_wr = wr;
	return EINVAL;
}

static int refuse_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	strict_find(STRICT_DESTROYED,
		    "ibv_post_recv(), QP 0x%x, wr_id %" PRIu64 ": the queue pair was destroyed",
		    qp->qp_num, wr->wr_id);
	*bad_wr = wr;
	return EINVAL;
}

static int refuse_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
				struct ibv_recv_wr **bad_wr)
{
	strict_find(STRICT_DESTROYED, "ibv_post_srq_recv(), %p: the SRQ was destroyed",
		    (void *)srq);
	*bad_wr = wr;
	return EINVAL;
}

static int refuse_poll(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	(void)room;
	(void)wc;
	strict_find(STRICT_DESTROYED, "ibv_poll_cq(), CQ 0x%x was destroyed", cq->handle);
	return -1;
}

static int refuse_arm(struct ibv_cq *cq, int solicited_only)
{
	(void)solicited_only;
	strict_find(STRICT_DESTROYED, "ibv_req_notify_cq(), CQ 0x%x was destroyed", cq->handle);
	return EINVAL;
}

/* The context of destroyed objects. */
static struct ibv_context nowhere = {
	.ops = {
		.post_send = refuse_post_send,
		.post_recv = refuse_post_recv,
		.post_srq_recv = refuse_post_srq_recv,
		.poll_cq = refuse_poll,
		.req_notify_cq = refuse_arm,
	},
	.cmd_fd = -1,
	.async_fd = -1,
};

bool strict_is_destroyed(const struct ibv_context *context, const char *call)
{
	if (context != &nowhere)
		return false;
	strict_find(STRICT_DESTROYED, "%s: the object was destroyed", call);
	return true;
}

void strict_free(void *object, struct ibv_context **context)
{
	void *oldest = object;

	if (strict_level) {
		*context = &nowhere;
		wr_lock();
		oldest = kept.objects[kept.next % KEPT_MAX];
		kept.objects[kept.next++ % KEPT_MAX] = object;
		wr_unlock();
	}
	free(oldest);
}
