// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects.h"
#include "softnic/control/visit.h"
#include "tables.h"

/* The sums of a device in the making. */
struct object_count {
	uint32_t device;
	struct object_sums *sums;
};

static void count_qp(void *arg, const struct object_owner *o, uint32_t index, const void *entry)
{
	const struct shared_qp_entry *qp = entry;
	const struct object_count *c = arg;

	(void)o;
	(void)index;
	c->sums->qp += qp->is_used && qp->device == c->device;
}

static void count_mr(void *arg, const struct object_owner *o, uint32_t index, const void *entry)
{
	const struct shared_mr *mr = entry;
	const struct object_count *c = arg;

	(void)o;
	(void)index;
	c->sums->mr += mr->key && mr->kind == SHARED_REGION && mr->device == c->device;
}

static void count_other(void *arg, const struct object_owner *o, uint32_t index, const void *entry)
{
	const struct shared_object *other = entry;
	const struct object_count *c = arg;

	(void)o;
	(void)index;
	if (other->device != c->device)
		return;
	c->sums->pd += other->kind == SHARED_PD;
	c->sums->cq += other->kind == SHARED_CQ;
	c->sums->srq += other->kind == SHARED_SRQ;
	c->sums->cm_id += other->kind == SHARED_CM_ID;
}

static void count_all(void *arg, pid_t pid, int fd, const struct shared_pub *pub)
{
	const struct object_owner owner = { pid, fd, load_relaxed(&pub->slot) };
	struct object_count *c = arg;

	c->sums->ctx++;
	tables_read(&tables_qps, &owner, count_qp, c);
	tables_read(&tables_mrs, &owner, count_mr, c);
	tables_read(&tables_others, &owner, count_other, c);
}

int objects_sum(uint32_t device, struct object_sums *sums)
{
	struct object_count c = { device, sums };
	size_t silent;

	*sums = (struct object_sums){ 0 };
	return softnic_stat_visit(count_all, &c, &silent);
}
