// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic netlink nldev; devices: softnic */
/*
 * Answers about softnic's devices, as rdma(8) reads the answers. Requests come from the program,
 * and may be malformed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_netlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "softnic/netlink/nldev.h"
#include "softnic/verbs/device.h"
#include "softnic/verbs/nic.h"

enum { SEQUENCE = 77, PATIENCE_S = 100 };

/* A process that does not answer in half a second is left out: so is this one on a busy machine. */
#define EVENTUALLY(condition)                                        \
	do {                                                         \
		time_t until = time(NULL) + PATIENCE_S;              \
                                                                     \
		while (!(condition))                                 \
			assert_true(time(NULL) < until);             \
	} while (0)

/* The messages of one answer, one after the other. */
struct nldev_answers {
	unsigned int count;
	uint8_t last[NLDEV_MESSAGE_MAX];
};

/* A request with two numbers; @attrs of them count. */
struct nldev_request {
	struct nlmsghdr h;
	struct {
		struct nlattr a;
		uint32_t value;
	} attr[2];
};

static struct nldev_request request(uint32_t command, uint16_t flags, unsigned int attrs,
				    uint32_t device, uint32_t port)
{
	struct nldev_request r = {
		.h = { .nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
		       .nlmsg_flags = NLM_F_REQUEST | flags,
		       .nlmsg_seq = SEQUENCE },
		.attr = { { { sizeof(r.attr[0]), RDMA_NLDEV_ATTR_DEV_INDEX }, device },
			  { { sizeof(r.attr[0]), RDMA_NLDEV_ATTR_PORT_INDEX }, port } },
	};

	r.h.nlmsg_len = (uint32_t)(sizeof(r.h) + attrs * sizeof(r.attr[0]));
	return r;
}

static void keep(void *arg, const struct nlmsghdr *message)
{
	struct nldev_answers *answers = arg;

	assert_true(message->nlmsg_len <= sizeof(answers->last));
	assert_int_equal(message->nlmsg_seq, SEQUENCE);
	memcpy(answers->last, message, message->nlmsg_len);
	answers->count++;
}

/* The value of an attribute of the last message, or of the nest @from; NULL: missing. */
static const void *find_in(const uint8_t *from, size_t size, uint16_t type, size_t *length)
{
	while (size >= NLA_HDRLEN) {
		const struct nlattr *a = (const struct nlattr *)from;

		assert_true(a->nla_len >= NLA_HDRLEN && a->nla_len <= size);
		if ((a->nla_type & NLA_TYPE_MASK) == type) {
			*length = a->nla_len - NLA_HDRLEN;
			return from + NLA_HDRLEN;
		}
		from += NLA_ALIGN(a->nla_len);
		size -= NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

static const void *value_of(const struct nldev_answers *answers, uint16_t type, size_t *length)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)answers->last;

	return find_in(answers->last + NLMSG_HDRLEN, h->nlmsg_len - NLMSG_HDRLEN, type, length);
}

static uint32_t u32_of(const struct nldev_answers *answers, uint16_t type)
{
	size_t length = 0;
	const void *value = value_of(answers, type, &length);
	uint32_t n;

	assert_int_equal(length, sizeof(n));
	memcpy(&n, value, sizeof(n));
	return n;
}

static int ask(struct nldev_request r, struct nldev_answers *answers)
{
	answers->count = 0;
	return nldev_answer(&r.h, keep, answers);
}

static void a_dump_names_each_device(void **state)
{
	struct nldev_answers answers;
	size_t length;

	(void)state;
	assert_int_equal(ask(request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP, 0, 0, 0), &answers), 0);
	assert_int_equal(answers.count, 1);
	assert_string_equal(value_of(&answers, RDMA_NLDEV_ATTR_DEV_NAME, &length), "softnic0");
	assert_int_equal(u32_of(&answers, RDMA_NLDEV_ATTR_DEV_INDEX), NLDEV_INDEX_FIRST);
	assert_int_equal(u32_of(&answers, RDMA_NLDEV_ATTR_PORT_INDEX), 1);
	assert_true(((const struct nlmsghdr *)answers.last)->nlmsg_flags & NLM_F_MULTI);
}

static void a_port_is_active(void **state)
{
	struct nldev_answers answers;
	const uint8_t *port_state;
	size_t length;

	(void)state;
	assert_int_equal(
		ask(request(RDMA_NLDEV_CMD_PORT_GET, 0, 2, NLDEV_INDEX_FIRST, 1), &answers), 0);
	assert_int_equal(answers.count, 1);
	port_state = value_of(&answers, RDMA_NLDEV_ATTR_PORT_STATE, &length);
	assert_non_null(port_state);
	assert_int_equal(*port_state, 4);
}

static void counters_have_names(void **state)
{
	struct nldev_answers answers;
	const uint8_t *nest, *entry;
	size_t length = 0;

	(void)state;
	assert_int_equal(
		ask(request(RDMA_NLDEV_CMD_STAT_GET, 0, 2, NLDEV_INDEX_FIRST, 1), &answers), 0);
	nest = value_of(&answers, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS, &length);
	assert_non_null(nest);
	entry = find_in(nest, length, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY, &length);
	assert_non_null(entry);
	assert_string_equal(find_in(entry, length, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME,
				    &length),
			    "doorbells");
}

/* A request for one object, by the attribute that has its number. */
static struct nldev_request request_one(uint32_t command, uint16_t type, uint32_t number)
{
	struct nldev_request r = request(command, 0, 2, NLDEV_INDEX_FIRST, number);

	r.attr[1].a.nla_type = type;
	return r;
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	return qp;
}

/* Entries whose number is one of some, in whichever message. */
struct nldev_count {
	uint16_t table, entry, type;
	const uint32_t *numbers;
	unsigned int count, found;
};

static void count_entry(struct nldev_count *c, const uint8_t *entry, size_t length)
{
	size_t size = 0;
	const void *value = find_in(entry, length, c->type, &size);

	assert_int_equal(size, sizeof(uint32_t));
	for (unsigned int i = 0; i < c->count; i++)
		c->found += !memcmp(value, &c->numbers[i], size);
}

static void count_entries(void *arg, const struct nlmsghdr *message)
{
	struct nldev_count *c = arg;
	size_t length = 0, left = 0;
	const uint8_t *at, *entry;

	at = find_in((const uint8_t *)message + NLMSG_HDRLEN, message->nlmsg_len - NLMSG_HDRLEN,
		     c->table, &left);
	assert_non_null(at);
	for (; left; left -= NLA_HDRLEN + NLA_ALIGN(length), at += NLA_HDRLEN + NLA_ALIGN(length)) {
		entry = find_in(at, left, c->entry, &length);
		assert_ptr_equal(entry, at + NLA_HDRLEN); /* a table has entries only */
		count_entry(c, entry, length);
	}
}

/* Other programs of this user may be listed, too. */
static unsigned int listed(uint32_t command, uint16_t table, uint16_t type, const uint32_t *numbers,
			   unsigned int count)
{
	struct nldev_request r = request(command, NLM_F_DUMP, 0, 0, 0);
	struct nldev_count c = { table, table + 1, type, numbers, count, 0 };

	assert_int_equal(nldev_answer(&r.h, count_entries, &c), 0);
	return c.found;
}

static void objects_are_listed_while_they_are_there(void **state)
{
	enum { QPS = 100 }; /* more than one message has room for */
	struct ibv_context *context = ibv_open_device(softnic_device());
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, &context, sizeof(context), 0);
	const uint32_t slot = softnic_nic_slot(), mrn = slot << 16 | mr->lkey >> 16;
	struct nldev_answers answers;
	struct ibv_qp *qp[QPS];
	uint32_t qpns[QPS];
	uint64_t bytes;
	size_t length, i;
	uint32_t qpn;

	(void)state;
	for (i = 0; i < QPS; i++) {
		qp[i] = make_qp(pd, cq);
		qpns[i] = qp[i]->qp_num;
	}
	EVENTUALLY(listed(RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP,
			  RDMA_NLDEV_ATTR_RES_LQPN, qpns, QPS) == QPS);
	qpn = qpns[7];
	EVENTUALLY(!ask(request_one(RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_LQPN, qpn),
			&answers));
	assert_int_equal(answers.count, 1);
	assert_int_equal(u32_of(&answers, RDMA_NLDEV_ATTR_RES_LQPN), qpn);
	assert_int_equal(u32_of(&answers, RDMA_NLDEV_ATTR_RES_PID), getpid());
	assert_int_equal(*(const uint8_t *)value_of(&answers, RDMA_NLDEV_ATTR_RES_STATE, &length),
			 IBV_QPS_INIT);

	EVENTUALLY(listed(RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MR,
			  RDMA_NLDEV_ATTR_RES_MRN, &mrn, 1) == 1);
	EVENTUALLY(!ask(request_one(RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MRN, mrn),
			&answers));
	memcpy(&bytes, value_of(&answers, RDMA_NLDEV_ATTR_RES_MRLEN, &length), sizeof(bytes));
	assert_int_equal(bytes, sizeof(context));
	EVENTUALLY(listed(RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTX,
			  RDMA_NLDEV_ATTR_RES_CTXN, &slot, 1) == 1);

	for (i = 0; i < QPS; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ask(request_one(RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_LQPN, qpn),
			     &answers),
			 -ENOENT);
	EVENTUALLY(listed(RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MR,
			  RDMA_NLDEV_ATTR_RES_MRN, &mrn, 1) == 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

/* The entries of this process in a list; @last is the last of them. */
struct nldev_own {
	uint16_t table;
	unsigned int count;
	uint8_t last[NLDEV_MESSAGE_MAX];
	size_t last_bytes;
};

static void note_own(void *arg, const struct nlmsghdr *message)
{
	const uint32_t pid = (uint32_t)getpid();
	size_t length = 0, left = 0, size = 0;
	struct nldev_own *own = arg;
	const uint8_t *at, *entry;

	at = find_in((const uint8_t *)message + NLMSG_HDRLEN, message->nlmsg_len - NLMSG_HDRLEN,
		     own->table, &left);
	assert_non_null(at);
	for (; left; left -= NLA_HDRLEN + NLA_ALIGN(length), at += NLA_HDRLEN + NLA_ALIGN(length)) {
		entry = find_in(at, left, own->table + 1, &length);
		assert_ptr_equal(entry, at + NLA_HDRLEN);
		if (memcmp(find_in(entry, length, RDMA_NLDEV_ATTR_RES_PID, &size), &pid,
			   sizeof(pid)) != 0)
			continue;
		memcpy(own->last, entry, length);
		own->last_bytes = length;
		own->count++;
	}
}

static unsigned int list_own(uint32_t command, uint16_t table, struct nldev_own *own)
{
	struct nldev_request r = request(command, NLM_F_DUMP, 0, 0, 0);

	*own = (struct nldev_own){ .table = table };
	assert_int_equal(nldev_answer(&r.h, note_own, own), 0);
	return own->count;
}

/* A number of 1, 4 or 8 bytes. */
static uint64_t own_number(const struct nldev_own *own, uint16_t type)
{
	size_t length = 0;
	uint64_t n = 0;
	const void *value = find_in(own->last, own->last_bytes, type, &length);

	assert_non_null(value);
	assert_in_range(length, 1, sizeof(n));
	memcpy(&n, value, length);
	return n;
}

static uint64_t sum_of(const char *name)
{
	struct nldev_answers answers;
	size_t left = 0, length = 0, size = 0;
	const uint8_t *at, *entry;
	uint64_t n = 0;

	assert_int_equal(ask(request(RDMA_NLDEV_CMD_RES_GET, 0, 1, NLDEV_INDEX_FIRST, 0), &answers),
			 0);
	at = value_of(&answers, RDMA_NLDEV_ATTR_RES_SUMMARY, &left);
	for (; left; left -= NLA_HDRLEN + NLA_ALIGN(length), at += NLA_HDRLEN + NLA_ALIGN(length)) {
		entry = find_in(at, left, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY, &length);
		if (strcmp(find_in(entry, length, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, &size),
			   name) != 0)
			continue;
		memcpy(&n, find_in(entry, length, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, &size),
		       sizeof(n));
		return n;
	}
	fail_msg("no sum %s", name);
	return 0;
}

static void domains_and_completion_queues_are_listed_with_their_users(void **state)
{
	struct ibv_context *context = ibv_open_device(softnic_device());
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 100, NULL, NULL, 0);
	struct nldev_own own;
	struct ibv_qp *qp;

	(void)state;
	EVENTUALLY(list_own(RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD, &own) == 1);
	assert_int_equal(own_number(&own, RDMA_NLDEV_ATTR_RES_USECNT), 0);
	EVENTUALLY(list_own(RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ, &own) == 1);
	assert_int_equal(own_number(&own, RDMA_NLDEV_ATTR_RES_CQE), 127);
	assert_int_equal(own_number(&own, RDMA_NLDEV_ATTR_RES_USECNT), 0);

	qp = make_qp(pd, cq);
	assert_int_equal(ibv_resize_cq(cq, 200), 0);
	EVENTUALLY(list_own(RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ, &own) == 1);
	assert_int_equal(own_number(&own, RDMA_NLDEV_ATTR_RES_CQE), 255);
	assert_int_equal(own_number(&own, RDMA_NLDEV_ATTR_RES_USECNT), 2);
	assert_int_equal(own_number(&own, RDMA_NLDEV_ATTR_RES_CTXN), softnic_nic_slot());
	EVENTUALLY(list_own(RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD, &own) == 1);
	assert_int_equal(own_number(&own, RDMA_NLDEV_ATTR_RES_USECNT), 1);
	EVENTUALLY(sum_of("pd") >= 1 && sum_of("cq") >= 1 && sum_of("qp") >= 1 &&
		   sum_of("ctx") >= 1);

	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	EVENTUALLY(list_own(RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD, &own) == 0);
	EVENTUALLY(list_own(RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ, &own) == 0);
	assert_int_equal(ibv_close_device(context), 0);
}

/* Queue pair numbers in an SRQ's ranges. */
static unsigned int count_in_ranges(const struct nldev_own *own)
{
	size_t left = 0, length = 0, size = 0;
	const uint8_t *at, *entry;
	const uint32_t *min, *max;
	unsigned int count = 0;

	at = find_in(own->last, own->last_bytes, RDMA_NLDEV_ATTR_RES_QP, &left);
	for (; left; left -= NLA_HDRLEN + NLA_ALIGN(length), at += NLA_HDRLEN + NLA_ALIGN(length)) {
		entry = find_in(at, left, RDMA_NLDEV_ATTR_RES_QP_ENTRY, &length);
		min = find_in(entry, length, RDMA_NLDEV_ATTR_MIN_RANGE, &size);
		max = find_in(entry, length, RDMA_NLDEV_ATTR_MAX_RANGE, &size);
		if (!min)
			assert_non_null(find_in(entry, length, RDMA_NLDEV_ATTR_RES_LQPN, &size));
		count += min ? *max - *min + 1 : 1;
	}
	return count;
}

static void an_srq_is_listed_with_its_queue_pairs(void **state)
{
	enum { QPS = 3 };
	struct ibv_context *context = ibv_open_device(softnic_device());
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &attr);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp[QPS];
	struct nldev_own own;
	int i;

	(void)state;
	for (i = 0; i < QPS; i++)
		qp[i] = ibv_create_qp(pd, &init);
	EVENTUALLY(list_own(RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_ATTR_RES_SRQ, &own) == 1);
	assert_int_equal(own_number(&own, RDMA_NLDEV_ATTR_RES_TYPE), IBV_SRQT_BASIC);
	assert_int_equal(count_in_ranges(&own), QPS);
	EVENTUALLY(sum_of("srq") >= 1);

	for (i = 0; i < QPS; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	EVENTUALLY(list_own(RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_ATTR_RES_SRQ, &own) == 1);
	assert_int_equal(count_in_ranges(&own), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	EVENTUALLY(list_own(RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_ATTR_RES_SRQ, &own) == 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

static void a_listener_is_listed_with_its_address(void **state)
{
	enum { LISTEN = 8 };
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	const struct sockaddr_in *src;
	struct rdma_cm_id *id;
	struct nldev_own own;
	size_t length = 0;

	(void)state;
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&any), 0);
	assert_int_equal(rdma_listen(id, 1), 0);
	EVENTUALLY(list_own(RDMA_NLDEV_CMD_RES_CM_ID_GET, RDMA_NLDEV_ATTR_RES_CM_ID, &own) == 1);
	assert_int_equal(own_number(&own, RDMA_NLDEV_ATTR_RES_STATE), LISTEN);
	assert_int_equal(own_number(&own, RDMA_NLDEV_ATTR_RES_PS), RDMA_PS_TCP);
	src = find_in(own.last, own.last_bytes, RDMA_NLDEV_ATTR_RES_SRC_ADDR, &length);
	assert_int_equal(length, sizeof(struct sockaddr_storage));
	assert_int_equal(src->sin_port, rdma_get_src_port(id));
	assert_null(find_in(own.last, own.last_bytes, RDMA_NLDEV_ATTR_RES_DST_ADDR, &length));
	EVENTUALLY(sum_of("cm_id") >= 1);

	assert_int_equal(rdma_destroy_id(id), 0);
	EVENTUALLY(list_own(RDMA_NLDEV_CMD_RES_CM_ID_GET, RDMA_NLDEV_ATTR_RES_CM_ID, &own) == 0);
	rdma_destroy_event_channel(channel);
}

static void objects_beyond_the_table_work_unlisted(void **state)
{
	enum { PDS = SHARED_OBJECTS + 10 };
	struct ibv_context *context = ibv_open_device(softnic_device());
	struct ibv_pd **pd = calloc(PDS, sizeof(*pd));
	struct nldev_own own;
	unsigned int count;
	size_t i;

	(void)state;
	for (i = 0; i < PDS; i++) {
		pd[i] = ibv_alloc_pd(context);
		assert_non_null(pd[i]);
	}
	EVENTUALLY((count = list_own(RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD,
		    &own)) > SHARED_OBJECTS - 10);
	assert_true(count < SHARED_OBJECTS);
	for (i = 0; i < PDS; i++)
		assert_int_equal(ibv_dealloc_pd(pd[i]), 0);
	EVENTUALLY(list_own(RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD, &own) <= 1);
	free(pd);
	assert_int_equal(ibv_close_device(context), 0);
}

static void what_is_not_there_is_refused(void **state)
{
	const struct {
		struct nldev_request r;
		int rc;
	} cases[] = {
		{ request(RDMA_NLDEV_CMD_GET, 0, 0, 0, 0), -ENODEV },
		{ request(RDMA_NLDEV_CMD_GET, 0, 1, 0, 0), -ENODEV },
		{ request(RDMA_NLDEV_CMD_GET, 0, 1, NLDEV_INDEX_FIRST + 1, 0), -ENODEV },
		{ request(RDMA_NLDEV_CMD_PORT_GET, 0, 1, NLDEV_INDEX_FIRST, 0), -EINVAL },
		{ request(RDMA_NLDEV_CMD_PORT_GET, 0, 2, NLDEV_INDEX_FIRST, 2), -EINVAL },
		{ request(RDMA_NLDEV_CMD_NEWLINK, 0, 0, 0, 0), -EOPNOTSUPP },
		{ request(RDMA_NLDEV_CMD_RES_CQ_GET_RAW, NLM_F_DUMP, 0, 0, 0), -EOPNOTSUPP },
		{ request(RDMA_NLDEV_CMD_RES_SRQ_GET, 0, 1, NLDEV_INDEX_FIRST, 0), -EINVAL },
		{ request(RDMA_NLDEV_CMD_RES_QP_GET, 0, 0, 0, 0), -ENODEV },
		{ request(RDMA_NLDEV_CMD_RES_QP_GET, 0, 1, NLDEV_INDEX_FIRST, 0), -EINVAL },
		{ request(RDMA_NLDEV_NUM_OPS, NLM_F_DUMP, 0, 0, 0), -EOPNOTSUPP },
		{ request(1023, NLM_F_DUMP, 0, 0, 0), -EOPNOTSUPP },
	};
	struct nldev_answers answers;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(ask(cases[i].r, &answers), cases[i].rc);
		assert_int_equal(answers.count, 0);
	}
}

/* Exactly as long as the request says, so that a sanitizer sees a read beyond the end. */
static void lengths_that_lie_are_not_believed(void **state)
{
	static const uint16_t lengths[] = { 0, 1, 3, 4, 7, 9, 65535 };
	struct nldev_request r = request(RDMA_NLDEV_CMD_GET, 0, 1, NLDEV_INDEX_FIRST, 0);
	struct nldev_answers answers;
	struct nlmsghdr *copy;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		r.attr[0].a.nla_len = lengths[i];
		copy = malloc(r.h.nlmsg_len);
		memcpy(copy, &r, r.h.nlmsg_len);
		assert_int_equal(nldev_answer(copy, keep, &answers), -ENODEV);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dump_names_each_device),
		cmocka_unit_test(a_port_is_active),
		cmocka_unit_test(counters_have_names),
		cmocka_unit_test(objects_are_listed_while_they_are_there),
		cmocka_unit_test(domains_and_completion_queues_are_listed_with_their_users),
		cmocka_unit_test(an_srq_is_listed_with_its_queue_pairs),
		cmocka_unit_test(a_listener_is_listed_with_its_address),
		cmocka_unit_test(objects_beyond_the_table_work_unlisted),
		cmocka_unit_test(what_is_not_there_is_refused),
		cmocka_unit_test(lengths_that_lie_are_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
