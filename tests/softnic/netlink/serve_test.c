// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic netlink serve; devices: softnic */
/* Requests end early, the kernel falls silent, and the buffer of a program is full. */
#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "softnic/netlink/serve.h"

enum { SEQUENCE = 9, NO_ROOM = 1000, TAIL_BYTES = NLMSG_HDRLEN + 1 };

/* A kernel with one message to tell, and a program with room for some. */
struct serve_world {
	int asked; /* result of asking the kernel */
	struct nlmsghdr told; /* nothing if of no length */
	ssize_t told_bytes;
	unsigned int delivered, room;
	int last_type, last_error;
};

static int ask(void *arg, const struct nlmsghdr *request)
{
	struct serve_world *w = arg;

	assert_int_equal(request->nlmsg_seq, SEQUENCE);
	return w->asked;
}

static ssize_t hear(void *arg, void *bytes, size_t size)
{
	struct serve_world *w = arg;
	ssize_t n = w->told_bytes;

	assert_int_equal(size, NETLINK_REPLY_MAX);
	memset(bytes, 0x41, 64); /* nothing of value behind the message */
	memcpy(bytes, &w->told, sizeof(w->told));
	w->told_bytes = 0;
	return n;
}

static int deliver(void *arg, const struct nlmsghdr *message)
{
	struct serve_world *w = arg;

	if (w->delivered == w->room)
		return -ENOBUFS;
	w->delivered++;
	w->last_type = message->nlmsg_type;
	if (w->last_type == NLMSG_ERROR)
		w->last_error = ((const struct nlmsgerr *)NLMSG_DATA(message))->error;
	return 0;
}

static int serve(struct serve_world *w, const void *requests, size_t size)
{
	const struct netlink_ends ends = { ask, hear, deliver, w };

	return netlink_serve(&ends, requests, size);
}

static struct nlmsghdr request(uint32_t bytes, uint16_t flags)
{
	return (struct nlmsghdr){
		.nlmsg_len = bytes,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET),
		.nlmsg_flags = NLM_F_REQUEST | flags,
		.nlmsg_seq = SEQUENCE,
	};
}

/* The valid header behind the tail is no request. */
static void a_tail_of_17_bytes_is_the_last_message(void **state)
{
	struct {
		struct nlmsghdr tail;
		uint8_t padding[NLMSG_ALIGNTO];
		struct nlmsghdr behind;
	} m = { .tail = request(TAIL_BYTES, NLM_F_DUMP),
		.behind = request(NLMSG_HDRLEN, NLM_F_DUMP) };
	struct serve_world w = { .asked = -EPROTONOSUPPORT, .room = NO_ROOM };

	(void)state;
	assert_int_equal(serve(&w, &m, TAIL_BYTES), 0);
	assert_int_equal(w.delivered, 2); /* the device and the end */
	assert_int_equal(w.last_type, NLMSG_DONE);
}

static void two_requests_have_two_answers(void **state)
{
	const struct nlmsghdr m[] = { request(NLMSG_HDRLEN, NLM_F_DUMP),
				      request(NLMSG_HDRLEN, NLM_F_DUMP) };
	struct serve_world w = { .asked = -EPROTONOSUPPORT, .room = NO_ROOM };

	(void)state;
	assert_int_equal(serve(&w, m, sizeof(m)), 0);
	assert_int_equal(w.delivered, 4);
}

static void a_kernel_that_says_nothing_has_agreed(void **state)
{
	const struct nlmsghdr quiet = request(NLMSG_HDRLEN, 0),
			      asks = request(NLMSG_HDRLEN, NLM_F_ACK);
	struct serve_world w = { .room = NO_ROOM };

	(void)state;
	assert_int_equal(serve(&w, &quiet, sizeof(quiet)), 0);
	assert_int_equal(w.delivered, 0);
	assert_int_equal(serve(&w, &asks, sizeof(asks)), 0);
	assert_int_equal(w.delivered, 1);
	assert_int_equal(w.last_type, NLMSG_ERROR);
	assert_int_equal(w.last_error, 0);
}

static void an_error_without_a_number_is_one(void **state)
{
	const struct nlmsghdr m = request(NLMSG_HDRLEN, 0);
	struct serve_world w = {
		.told = { .nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = NLMSG_ERROR },
		.told_bytes = NLMSG_HDRLEN,
		.room = NO_ROOM,
	};

	(void)state;
	assert_int_equal(serve(&w, &m, sizeof(m)), 0);
	assert_int_equal(w.last_error, -EPROTO);
}

/* The kernel's message has a tail of one byte, too. */
static void a_message_of_the_kernel_may_end_early(void **state)
{
	const struct nlmsghdr m = request(NLMSG_HDRLEN, NLM_F_DUMP);
	struct serve_world w = {
		.told = { .nlmsg_len = TAIL_BYTES, .nlmsg_type = 7 },
		.told_bytes = TAIL_BYTES,
		.room = NO_ROOM,
	};

	(void)state;
	assert_int_equal(serve(&w, &m, sizeof(m)), 0);
	assert_int_equal(w.delivered, 3); /* with softnic's device and the end */
}

static void nothing_follows_a_message_without_room(void **state)
{
	const struct nlmsghdr m[] = { request(NLMSG_HDRLEN, NLM_F_DUMP),
				      request(NLMSG_HDRLEN, NLM_F_DUMP) };
	unsigned int room;

	(void)state;
	for (room = 0; room < 4; room++) {
		struct serve_world w = { .asked = -EPROTONOSUPPORT, .room = room };

		assert_int_equal(serve(&w, m, sizeof(m)), -ENOBUFS);
		assert_int_equal(w.delivered, room);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tail_of_17_bytes_is_the_last_message),
		cmocka_unit_test(two_requests_have_two_answers),
		cmocka_unit_test(a_kernel_that_says_nothing_has_agreed),
		cmocka_unit_test(an_error_without_a_number_is_one),
		cmocka_unit_test(a_message_of_the_kernel_may_end_early),
		cmocka_unit_test(nothing_follows_a_message_without_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
