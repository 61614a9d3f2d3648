// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The owner of a table may write anything there, so a number means what rdma(8) makes of it. */
#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <stddef.h>
#include <string.h>

#include "message.h"
#include "objects.h"
#include "softnic/control/visit.h"
#include "softnic/verbs/device.h"
#include "tables.h"

/* An answer in the making: for a device and, unless @is_for_all, for a single object. */
struct object_list {
	const struct object_kind *kind;
	const struct nlmsghdr *request;
	nldev_sink *sink;
	void *arg;
	uint32_t device, port, wanted;
	bool is_for_all;
	uint32_t found;
	struct nldev_message message;
	bool has_begun; /* @message has an entry */
	struct nlattr *table; /* of @message; NULL in an answer about a single object */
	uint16_t srq_of[SHARED_QPS]; /* of the owner's queue pairs, in an answer about SRQs */
};

struct object_kind {
	object_visitor *list;
	const struct object_table *table_of; /* NULL: one entry a process, its context */
	uint16_t number, table, entry; /* attributes */
	uint16_t entry_bytes_max; /* in a message */
};

static void flush(struct object_list *l)
{
	if (l->table)
		nldev_close_nest(&l->message, l->table);
	if (l->has_begun)
		l->sink(l->arg, nldev_header(&l->message));
	l->has_begun = false;
	l->table = NULL;
}

static bool is_wanted(const struct object_list *l, uint32_t number)
{
	return l->is_for_all || (number == l->wanted && !l->found);
}

/* Attributes follow, and close_entry() with the result. */
static struct nlattr *open_entry(struct object_list *l)
{
	struct nldev_message *m = &l->message;

	l->found++;
	if (l->has_begun &&
	    nldev_header(m)->nlmsg_len + l->kind->entry_bytes_max > NLDEV_MESSAGE_MAX)
		flush(l);
	if (!l->has_begun) {
		nldev_begin(m, l->request);
		nldev_put_device(m, l->device);
		l->table = l->is_for_all ? nldev_open_nest(m, l->kind->table) : NULL;
		l->has_begun = true;
	}
	return l->is_for_all ? nldev_open_nest(m, l->kind->entry) : NULL;
}

static void close_entry(struct object_list *l, const struct object_owner *o, struct nlattr *entry)
{
	nldev_put_u32(&l->message, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)o->pid);
	if (entry)
		nldev_close_nest(&l->message, entry);
}

/* Numbers are unique on a host, as the kernel's: the slot of the process is above. */
static uint32_t number_of(const struct object_owner *o, uint32_t index)
{
	return o->slot << 16 | (index & 0xffff);
}

/* Processes count their PDs without end. */
static uint32_t pd_number(const struct object_owner *o, uint32_t handle)
{
	enum { BITS = 22 };

	return o->slot << BITS | (handle & ((1u << BITS) - 1));
}

static bool is_at(const struct object_list *l, uint32_t device, uint32_t port)
{
	return device == l->device && (!l->port || !port || port == l->port);
}

static void list_qp(void *arg, const struct object_owner *o, uint32_t index, const void *entry)
{
	const struct shared_qp_entry *qp = entry;
	const bool is_connected = qp->type == IBV_QPT_RC || qp->type == IBV_QPT_UC;
	struct object_list *l = arg;
	struct nldev_message *m = &l->message;
	struct nlattr *nest;

	(void)index;
	if (!qp->is_used || !is_at(l, qp->device, qp->port) || !is_wanted(l, qp->number))
		return;
	nest = open_entry(l);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_PORT_INDEX, qp->port);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_LQPN, qp->number);
	if (is_connected) {
		nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_RQPN, qp->dest);
		nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_RQ_PSN, qp->rq_psn);
		nldev_put_u8(m, RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE, IBV_MIG_MIGRATED);
	}
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_SQ_PSN, qp->sq_psn);
	nldev_put_u8(m, RDMA_NLDEV_ATTR_RES_TYPE, (uint8_t)qp->type);
	nldev_put_u8(m, RDMA_NLDEV_ATTR_RES_STATE, (uint8_t)qp->state);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_PDN, pd_number(o, qp->pd));
	close_entry(l, o, nest);
}

static void list_mr(void *arg, const struct object_owner *o, uint32_t index, const void *entry)
{
	const uint32_t number = number_of(o, index);
	const struct shared_mr *mr = entry;
	struct object_list *l = arg;
	struct nldev_message *m = &l->message;
	struct nlattr *nest;

	if (!mr->key || mr->kind != SHARED_REGION || !is_at(l, mr->device, 0) ||
	    !is_wanted(l, number))
		return;
	nest = open_entry(l);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_RKEY, mr->key);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_LKEY, mr->key);
	nldev_put_u64(m, RDMA_NLDEV_ATTR_RES_MRLEN, mr->length);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_MRN, number);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_PDN, pd_number(o, mr->pd));
	close_entry(l, o, nest);
}

/* Programs do not list contexts: a program with softnic open counts as a context. */
static void list_context(void *arg, const struct object_owner *o, uint32_t index,
			 const void *entry)
{
	struct object_list *l = arg;
	struct nlattr *nest;

	(void)index;
	(void)entry;
	if (!is_wanted(l, o->slot))
		return;
	nest = open_entry(l);
	nldev_put_u32(&l->message, RDMA_NLDEV_ATTR_RES_CTXN, o->slot);
	close_entry(l, o, nest);
}

static void list_pd(void *arg, const struct object_owner *o, uint32_t index, const void *entry)
{
	const struct shared_object *pd = entry;
	const uint32_t number = pd_number(o, pd->pd);
	struct object_list *l = arg;
	struct nlattr *nest;

	(void)index;
	if (pd->kind != SHARED_PD || !is_at(l, pd->device, 0) || !is_wanted(l, number))
		return;
	nest = open_entry(l);
	nldev_put_u64(&l->message, RDMA_NLDEV_ATTR_RES_USECNT, pd->users);
	nldev_put_u32(&l->message, RDMA_NLDEV_ATTR_RES_PDN, number);
	nldev_put_u32(&l->message, RDMA_NLDEV_ATTR_RES_CTXN, o->slot);
	close_entry(l, o, nest);
}

static void list_cq(void *arg, const struct object_owner *o, uint32_t index, const void *entry)
{
	const uint32_t number = number_of(o, index);
	const struct shared_object *cq = entry;
	struct object_list *l = arg;
	struct nldev_message *m = &l->message;
	struct nlattr *nest;

	if (cq->kind != SHARED_CQ || !is_at(l, cq->device, 0) || !is_wanted(l, number))
		return;
	nest = open_entry(l);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_CQE, cq->cqe);
	nldev_put_u64(m, RDMA_NLDEV_ATTR_RES_USECNT, cq->users);
	nldev_put_u8(m, RDMA_NLDEV_ATTR_DEV_DIM, 0);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_CQN, number);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_CTXN, o->slot);
	close_entry(l, o, nest);
}

static void note_srq(void *arg, const struct object_owner *o, uint32_t index, const void *entry)
{
	const struct shared_qp_entry *qp = entry;
	struct object_list *l = arg;

	(void)o;
	l->srq_of[index] = qp->is_used && qp->srq < SHARED_OBJECTS ? (uint16_t)qp->srq : 0;
}

static void put_range(struct object_list *l, uint32_t from, uint32_t to)
{
	struct nlattr *range = nldev_open_nest(&l->message, RDMA_NLDEV_ATTR_RES_QP_ENTRY);

	if (from == to) {
		nldev_put_u32(&l->message, RDMA_NLDEV_ATTR_RES_LQPN, from);
	} else {
		nldev_put_u32(&l->message, RDMA_NLDEV_ATTR_MIN_RANGE, from);
		nldev_put_u32(&l->message, RDMA_NLDEV_ATTR_MAX_RANGE, to);
	}
	nldev_close_nest(&l->message, range);
}

/* An SRQ whose queue pairs have more numbers in more ranges than that shows the first ranges. */
enum { RANGES_MAX = 100 };

static void put_srq_qps(struct object_list *l, const struct object_owner *o, uint32_t srq)
{
	const uint32_t first = o->slot << SOFTNIC_QP_INDEX_BITS;
	struct nlattr *nest = nldev_open_nest(&l->message, RDMA_NLDEV_ATTR_RES_QP);
	uint32_t i, from, ranges = 0;

	for (i = 0; i < SHARED_QPS && ranges < RANGES_MAX; i++) {
		if (l->srq_of[i] != srq)
			continue;
		from = i;
		while (i + 1 < SHARED_QPS && l->srq_of[i + 1] == srq)
			i++;
		put_range(l, first + from, first + i);
		ranges++;
	}
	nldev_close_nest(&l->message, nest);
}

static void list_srq(void *arg, const struct object_owner *o, uint32_t index, const void *entry)
{
	const uint32_t number = number_of(o, index);
	const struct shared_object *srq = entry;
	struct object_list *l = arg;
	struct nldev_message *m = &l->message;
	struct nlattr *nest;

	if (srq->kind != SHARED_SRQ || !is_at(l, srq->device, 0) || !is_wanted(l, number))
		return;
	nest = open_entry(l);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_SRQN, number);
	nldev_put_u8(m, RDMA_NLDEV_ATTR_RES_TYPE, (uint8_t)srq->type);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_PDN, pd_number(o, srq->pd));
	if (srq->type == IBV_SRQT_XRC)
		nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_CQN, number_of(o, srq->cq));
	put_srq_qps(l, o, index);
	close_entry(l, o, nest);
}

static void put_address(struct nldev_message *m, uint16_t type, const struct sockaddr_in6 *addr)
{
	struct sockaddr_storage whole = { 0 };

	if (addr->sin6_family != AF_INET && addr->sin6_family != AF_INET6)
		return;
	memcpy(&whole, addr, sizeof(*addr));
	nldev_put(m, type, &whole, sizeof(whole));
}

static void list_cm_id(void *arg, const struct object_owner *o, uint32_t index, const void *entry)
{
	const uint32_t number = number_of(o, index);
	const struct shared_object *id = entry;
	struct object_list *l = arg;
	struct nldev_message *m = &l->message;
	struct nlattr *nest;

	if (id->kind != SHARED_CM_ID || !is_at(l, id->device, id->port) || !is_wanted(l, number))
		return;
	nest = open_entry(l);
	if (id->port)
		nldev_put_u32(m, RDMA_NLDEV_ATTR_PORT_INDEX, id->port);
	if (id->qpn) {
		nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_LQPN, id->qpn);
		nldev_put_u8(m, RDMA_NLDEV_ATTR_RES_TYPE, (uint8_t)id->type);
	}
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_PS, id->port_space);
	nldev_put_u8(m, RDMA_NLDEV_ATTR_RES_STATE, (uint8_t)id->state);
	put_address(m, RDMA_NLDEV_ATTR_RES_SRC_ADDR, &id->src);
	put_address(m, RDMA_NLDEV_ATTR_RES_DST_ADDR, &id->dst);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_CM_IDN, number);
	close_entry(l, o, nest);
}

#define KIND(name, list, table, bytes_max)                                           \
	{                                                                            \
		list, table, RDMA_NLDEV_ATTR_RES_##name##N, RDMA_NLDEV_ATTR_RES_##name, \
			RDMA_NLDEV_ATTR_RES_##name##_ENTRY, bytes_max                \
	}
static const struct object_kind kinds[RDMA_NLDEV_NUM_OPS] = {
	[RDMA_NLDEV_CMD_RES_QP_GET] = { list_qp, &tables_qps, RDMA_NLDEV_ATTR_RES_LQPN,
					RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY, 256 },
	[RDMA_NLDEV_CMD_RES_MR_GET] = KIND(MR, list_mr, &tables_mrs, 256),
	[RDMA_NLDEV_CMD_RES_CTX_GET] = KIND(CTX, list_context, NULL, 256),
	[RDMA_NLDEV_CMD_RES_PD_GET] = KIND(PD, list_pd, &tables_others, 256),
	[RDMA_NLDEV_CMD_RES_CQ_GET] = KIND(CQ, list_cq, &tables_others, 256),
	[RDMA_NLDEV_CMD_RES_SRQ_GET] = KIND(SRQ, list_srq, &tables_others, 256 + 20 * RANGES_MAX),
	[RDMA_NLDEV_CMD_RES_CM_ID_GET] = KIND(CM_ID, list_cm_id, &tables_others, 512),
};

bool objects_are_asked(uint32_t command)
{
	return command < RDMA_NLDEV_NUM_OPS && kinds[command].list;
}

static void visit(void *arg, pid_t pid, int fd, const struct shared_pub *pub)
{
	const struct object_owner owner = { pid, fd, load_relaxed(&pub->slot) };
	struct object_list *l = arg;

	if (!l->kind->table_of) {
		l->kind->list(l, &owner, 0, NULL);
		return;
	}
	if (l->kind->list == list_srq)
		tables_read(&tables_qps, &owner, note_srq, l);
	tables_read(l->kind->table_of, &owner, l->kind->list, l);
}

static int list_device(struct object_list *l)
{
	size_t silent;
	int rc = softnic_stat_visit(visit, l, &silent);

	flush(l);
	return rc;
}

int objects_answer(const struct nlmsghdr *request, nldev_sink *sink, void *arg)
{
	const uint32_t only = nldev_asked(request, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
	struct object_list l = {
		.kind = &kinds[RDMA_NL_GET_OP(request->nlmsg_type)],
		.request = request,
		.sink = sink,
		.arg = arg,
		.port = nldev_asked(request, RDMA_NLDEV_ATTR_PORT_INDEX, 0),
		.is_for_all = request->nlmsg_flags & NLM_F_DUMP,
	};
	int rc = 0;

	if (!l.is_for_all && !nldev_is_about_ours(request))
		return -ENODEV;
	l.wanted = nldev_asked(request, l.kind->number, UINT32_MAX);
	if (!l.is_for_all && l.wanted == UINT32_MAX)
		return -EINVAL;
	for (l.device = 0; l.device < device_count() && !rc; l.device++)
		if (!only || only == NLDEV_INDEX_FIRST + l.device)
			rc = list_device(&l);
	if (!rc && !l.is_for_all && !l.found)
		rc = -ENOENT;
	return rc;
}
