// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic cm lookup; devices: softnic */
/* Names to addresses, synchronously and as an event, and events of the user's own. */
#include <netdb.h>

#include "cm_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_ends, close_ends)

/* Headers before rdma-core 58 lack this declaration. */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg);

#define ADDRINFO_RESOLVED ((enum rdma_cm_event_type)16)
#define USER ((enum rdma_cm_event_type)18)
#define FLAG_SA 0x10

static void names_are_looked_up_as_hinted(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE | RAI_NUMERICHOST };
	struct rdma_addrinfo *res;

	(void)state;
	assert_int_equal(rdma_getaddrinfo(NULL, "7471", &hints, &res), 0);
	assert_int_equal(res->ai_flags & RAI_PASSIVE, RAI_PASSIVE);
	assert_int_equal(res->ai_port_space, RDMA_PS_TCP);
	assert_int_equal(res->ai_qp_type, IBV_QPT_RC);
	assert_non_null(res->ai_src_addr);
	assert_null(res->ai_dst_addr);
	rdma_freeaddrinfo(res);

	assert_int_equal(rdma_getaddrinfo("localhost", "1", &hints, &res), EAI_NONAME);
	hints = (struct rdma_addrinfo){ .ai_flags = RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY,
					.ai_family = AF_INET6,
					.ai_qp_type = IBV_QPT_UD };
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res), EAI_ADDRFAMILY);
	assert_int_equal(rdma_getaddrinfo("::1", "1", &hints, &res), 0);
	assert_int_equal(res->ai_family, AF_INET6);
	assert_int_equal(res->ai_port_space, RDMA_PS_UDP);
	assert_int_equal(res->ai_dst_len, sizeof(struct sockaddr_in6));
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_getaddrinfo(NULL, NULL, NULL, &res), -1);
	assert_int_equal(errno, EINVAL);
}

static void a_link_local_name_keeps_its_scope(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST };
	struct rdma_addrinfo *res;

	(void)state;
	assert_int_equal(rdma_getaddrinfo("fe80::1%lo", "1", &hints, &res), 0);
	assert_true(((struct sockaddr_in6 *)res->ai_dst_addr)->sin6_scope_id > 0);
	rdma_freeaddrinfo(res);
}

static void a_name_is_looked_up_as_an_event(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP };
	struct cm_ends *e = *state;
	struct rdma_addrinfo *res;

	assert_int_equal(rdma_create_id(e->a_channel, &e->a, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_query_addrinfo(e->a, &res), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(rdma_resolve_addrinfo(e->a, "127.0.0.1", "1", &hints), 0);
	assert_int_equal(rdma_resolve_addrinfo(e->a, "127.0.0.1", "1", &hints), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(expect(e->a_channel, ADDRINFO_RESOLVED), 0);
	assert_int_equal(rdma_query_addrinfo(e->a, &res), 0);
	assert_int_equal(res->ai_family, AF_INET);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_query_addrinfo(e->a, &res), -1);
	assert_int_equal(errno, ENOENT);
	/* A result never fetched is freed with the id. */
	assert_int_equal(rdma_resolve_addrinfo(e->a, "127.0.0.1", "1", &hints), 0);
}

static void a_name_not_found_is_an_error_and_may_be_followed_by_another(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST };
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addrinfo(id, "localhost", "1", &hints), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(rdma_resolve_addrinfo(id, "::1", "1", &hints), 0);
	assert_int_equal(rdma_query_addrinfo(id, &res), 0);
	assert_int_equal(res->ai_family, AF_INET6);
	rdma_freeaddrinfo(res);
	rdma_destroy_id(id);
}

static void there_is_no_subnet_administrator(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = FLAG_SA };
	struct cm_ends *e = *state;
	struct rdma_addrinfo *res;

	assert_int_equal(rdma_getaddrinfo(NULL, "1", &hints, &res), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(rdma_create_id(e->a_channel, &e->a, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addrinfo(e->a, NULL, "1", &hints), -1);
	assert_int_equal(errno, EOPNOTSUPP);
}

static void the_user_sends_events_to_itself(void **state)
{
	struct cm_ends *e = *state;
	struct rdma_cm_event *event;
	uint64_t arg;

	assert_int_equal(rdma_create_id(e->a_channel, &e->a, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_write_cm_event(e->a, RDMA_CM_EVENT_ESTABLISHED, 0, 1), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_write_cm_event(e->a, USER, 5, 0x123456789abcdefull), 0);
	event = next_event(e->a_channel, USER);
	assert_int_equal(event->status, 5);
	assert_ptr_equal(event->id, e->a);
	memcpy(&arg, &event->param, sizeof(arg));
	assert_int_equal(arg, 0x123456789abcdefull);
	rdma_ack_cm_event(event);
}

static void every_event_has_a_name(void **state)
{
	(void)state;
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED),
			    "RDMA_CM_EVENT_ADDR_RESOLVED");
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT),
			    "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	assert_string_equal(rdma_event_str(USER), "RDMA_CM_EVENT_USER");
	assert_string_equal(rdma_event_str(1000), "UNKNOWN EVENT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_are_looked_up_as_hinted),
		TEST(a_link_local_name_keeps_its_scope),
		TEST(a_name_is_looked_up_as_an_event),
		TEST(a_name_not_found_is_an_error_and_may_be_followed_by_another),
		TEST(there_is_no_subnet_administrator),
		TEST(the_user_sends_events_to_itself),
		TEST(every_event_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
