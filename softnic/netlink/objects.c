// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Each program lists its objects in its public segment. This file reads the tables and maps none: a
 * read of untouched pages takes no memory. The owner may write anything into its tables.
 */
#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <stddef.h>
#include <unistd.h>

#include "message.h"
#include "objects.h"
#include "softnic/control/visit.h"
#include "softnic/verbs/device.h"

enum { ENTRY_BYTES_MAX = 256, READ_ENTRIES = 256 };

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
};

/* A process and its public segment. */
struct object_owner {
	pid_t pid;
	int fd; /* of the segment */
	const struct shared_pub *pub;
};

struct object_kind {
	void (*list)(struct object_list *l, const struct object_owner *o);
	uint16_t number, table, entry; /* attributes */
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
	if (l->has_begun && nldev_header(m)->nlmsg_len > NLDEV_MESSAGE_MAX - ENTRY_BYTES_MAX)
		flush(l);
	if (!l->has_begun) {
		nldev_begin(m, l->request);
		nldev_put_device(m, l->device);
		l->table = l->is_for_all ? nldev_open_nest(m, l->kind->table) : NULL;
		l->has_begun = true;
	}
	return l->is_for_all ? nldev_open_nest(m, l->kind->entry) : NULL;
}

static void close_entry(struct object_list *l, struct nlattr *entry)
{
	if (entry)
		nldev_close_nest(&l->message, entry);
}

static void put_qp(struct object_list *l, const struct object_owner *o,
		   const struct shared_qp_entry *qp)
{
	const bool is_connected = qp->type == IBV_QPT_RC || qp->type == IBV_QPT_UC;
	struct nldev_message *m = &l->message;
	struct nlattr *entry = open_entry(l);

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
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_PDN, qp->pd);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)o->pid);
	close_entry(l, entry);
}

static void list_qps(struct object_list *l, const struct object_owner *o)
{
	struct shared_qp_entry some[READ_ENTRIES];
	size_t at, i;

	for (at = 0; at < SHARED_QPS; at += READ_ENTRIES) {
		if (pread(o->fd, some, sizeof(some),
			  (off_t)(offsetof(struct shared_pub, qps) + at * sizeof(some[0]))) !=
		    sizeof(some))
			return;
		for (i = 0; i < READ_ENTRIES; i++)
			if (some[i].is_used && some[i].device == l->device &&
			    (!l->port || !some[i].port || some[i].port == l->port) &&
			    is_wanted(l, some[i].number))
				put_qp(l, o, &some[i]);
	}
}

static void put_mr(struct object_list *l, const struct object_owner *o, uint32_t number,
		   const struct shared_mr *mr)
{
	struct nldev_message *m = &l->message;
	struct nlattr *entry = open_entry(l);

	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_RKEY, mr->key);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_LKEY, mr->key);
	nldev_put_u64(m, RDMA_NLDEV_ATTR_RES_MRLEN, mr->length);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_MRN, number);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_PDN, mr->pd);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)o->pid);
	close_entry(l, entry);
}

/* The upper half of a region's number is the slot of the process, so numbers are unique. */
static void list_mrs(struct object_list *l, const struct object_owner *o)
{
	struct shared_mr some[READ_ENTRIES];
	size_t at, i;
	uint32_t number;

	for (at = 0; at < SHARED_MRS; at += READ_ENTRIES) {
		if (pread(o->fd, some, sizeof(some),
			  (off_t)(offsetof(struct shared_pub, mrs) + at * sizeof(some[0]))) !=
		    sizeof(some))
			return;
		for (i = 0; i < READ_ENTRIES; i++) {
			number = (load_relaxed(&o->pub->slot) << 16) + (uint32_t)(at + i);
			if (some[i].key && some[i].device == l->device &&
			    some[i].kind == SHARED_REGION && is_wanted(l, number))
				put_mr(l, o, number, &some[i]);
		}
	}
}

/* Programs do not list contexts: a program with softnic open counts as a context. */
static void list_contexts(struct object_list *l, const struct object_owner *o)
{
	const uint32_t slot = load_relaxed(&o->pub->slot);
	struct nldev_message *m = &l->message;
	struct nlattr *entry;

	if (!is_wanted(l, slot))
		return;
	entry = open_entry(l);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_CTXN, slot);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)o->pid);
	close_entry(l, entry);
}

static const struct object_kind kinds[RDMA_NLDEV_NUM_OPS] = {
	[RDMA_NLDEV_CMD_RES_QP_GET] = { list_qps, RDMA_NLDEV_ATTR_RES_LQPN, RDMA_NLDEV_ATTR_RES_QP,
					RDMA_NLDEV_ATTR_RES_QP_ENTRY },
	[RDMA_NLDEV_CMD_RES_MR_GET] = { list_mrs, RDMA_NLDEV_ATTR_RES_MRN, RDMA_NLDEV_ATTR_RES_MR,
					RDMA_NLDEV_ATTR_RES_MR_ENTRY },
	[RDMA_NLDEV_CMD_RES_CTX_GET] = { list_contexts, RDMA_NLDEV_ATTR_RES_CTXN,
					 RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTX_ENTRY },
};

bool objects_are_asked(uint32_t command)
{
	return command < RDMA_NLDEV_NUM_OPS && kinds[command].list;
}

static void visit(void *arg, pid_t pid, int fd, const struct shared_pub *pub)
{
	struct object_list *l = arg;
	const struct object_owner owner = { pid, fd, pub };

	l->kind->list(l, &owner);
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
