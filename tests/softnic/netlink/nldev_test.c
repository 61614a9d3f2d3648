// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic netlink nldev; devices: softnic */
/*
 * Answers about softnic's devices, as rdma(8) reads the answers. Requests come from the program,
 * and may be malformed.
 */
#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softnic/netlink/nldev.h"

enum { SEQUENCE = 77 };

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
	assert_int_equal(ask(request(RDMA_NLDEV_CMD_PORT_GET, 0, 2, NLDEV_INDEX_FIRST, 1),
			     &answers),
			 0);
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
	assert_int_equal(ask(request(RDMA_NLDEV_CMD_STAT_GET, 0, 2, NLDEV_INDEX_FIRST, 1),
			     &answers),
			 0);
	nest = value_of(&answers, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS, &length);
	assert_non_null(nest);
	entry = find_in(nest, length, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY, &length);
	assert_non_null(entry);
	assert_string_equal(find_in(entry, length, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME,
				    &length),
			    "doorbells");
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
		{ request(RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP, 0, 0, 0), -EOPNOTSUPP },
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
		cmocka_unit_test(what_is_not_there_is_refused),
		cmocka_unit_test(lengths_that_lie_are_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
