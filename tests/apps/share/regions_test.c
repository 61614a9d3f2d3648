/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: weir share regions; suites: share; devices: softnic rxe; timeout: 120 */
/* weir share: tenants read, write and send with regions. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/mux/proxy/proxy.h"
#include "tests/apps/share/daemons.h"
#include "wire/mux.h"

#define LENT MIB
#define GRANTERS 8 /* connections; more grants than the other end has room for */
#define QUIET_MS 200 /* idle this long most likely means waiting */
#define HEARD_NS (8 * WEIR_NS_PER_S) /* less than the timeout, which ends any wait */

/* Grants its memory, and waits to be killed or for the peer to go. */
static int lend(struct weir_mux_listener *listener, struct weir_mux *mux)
{
	struct weir_mux_conn *conn = accept_from(listener);
	struct weir_mux_region *region;
	uint32_t handle, got;
	size_t length;

	if (weir_mux_region_open(mux, LENT, &region) ||
	    weir_mux_conn_grant(conn, region, 0, LENT, WEIR_MUX_MAY_READ | WEIR_MUX_MAY_WRITE,
				&handle) ||
	    weir_mux_conn_send(conn, &handle, sizeof(handle), 0))
		return 1;
	while (!weir_mux_conn_recv(conn, &got, sizeof(got), &length, 0))
		;
	weir_mux_conn_close(conn);
	return weir_mux_region_close(region);
}

static uint32_t handle_of(struct weir_mux_conn *conn)
{
	uint32_t handle = 0;
	size_t length;

	assert_int_equal(weir_mux_conn_recv(conn, &handle, sizeof(handle), &length, 0), 0);
	return handle;
}

static void tenants_read_and_write_by_their_own_handles_only(void **state)
{
	pid_t child = child_start(SERVICE, "lend"), second = child_start(SERVICE + 1, "lend");
	struct weir_mux *mux = tenant_of(&near), *hostile = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	struct weir_mux_conn *other = connect_to(hostile, &far, SERVICE + 1);
	uint32_t handle = handle_of(conn), others = handle_of(other);
	struct weir_mux_region *region, *foreign;
	char *data;

	(void)state;
	assert_int_equal(weir_mux_region_open(mux, 2 * LENT, &region), 0);
	assert_int_equal(weir_mux_region_open(hostile, 4096, &foreign), 0);
	data = weir_mux_region_data(region);
	fill(data, LENT, 1);
	assert_int_equal(weir_mux_conn_write(conn, handle, 0, region, 0, LENT), 0);
	assert_int_equal(weir_mux_conn_read(conn, handle, 0, region, LENT, LENT), 0);
	assert_memory_equal(data, data + LENT, LENT);
	/* A foreign handle, a foreign region, and an unknown one. */
	assert_int_equal(weir_mux_conn_write(other, others + 1, 0, foreign, 0, 1), -EACCES);
	foreign->number += 1;
	assert_int_equal(weir_mux_conn_write(other, others, 0, foreign, 0, 1), -EINVAL);
	foreign->number -= 1;
	assert_int_equal(weir_mux_conn_read(other, others, LENT, foreign, 0, 1), -EACCES);
	assert_int_equal(weir_mux_conn_read(other, others, 0, foreign, 1, 4096), -EINVAL);
	weir_mux_conn_close(conn);
	weir_mux_conn_close(other);
	assert_int_equal(weir_mux_region_close(region), 0);
	assert_int_equal(weir_mux_region_close(foreign), 0);
	weir_mux_close(mux);
	weir_mux_close(hostile);
	child_end(child, 0);
	child_end(second, 0);
}

/* Waits for older tenants to go, so that this process is the only one. */
static struct weir_mux *only_tenant(void)
{
	while (daemon_has(&near, getpid()))
		poll(NULL, 0, 1);
	return tenant_of(&near);
}

/* Checks the growth of the counters since @tenant and @flow, and updates both. */
static void is_shown(uint64_t sent, uint64_t received, struct weir_mux_ipc_tenant *tenant,
		     struct weir_mux_ipc_flow *flow)
{
	const struct weir_mux_ipc_tenant before = *tenant;
	const struct weir_mux_ipc_flow flow_before = *flow;

	daemon_shows(&near, getpid(), tenant, flow);
	assert_int_equal(tenant->bytes_sent - before.bytes_sent, sent);
	assert_int_equal(tenant->bytes_received - before.bytes_received, received);
	assert_int_equal(flow->bytes_sent - flow_before.bytes_sent, sent);
	assert_int_equal(flow->bytes_received - flow_before.bytes_received, received);
}

static void weir_top_counts_reads_and_writes_by_handle(void **state)
{
	pid_t child = child_start(SERVICE, "lend");
	struct weir_mux *mux = only_tenant();
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	uint32_t handle = handle_of(conn);
	struct weir_mux_region *region;
	struct weir_mux_ipc_tenant tenant;
	struct weir_mux_ipc_flow flow;

	(void)state;
	assert_int_equal(weir_mux_region_open(mux, LENT, &region), 0);
	daemon_shows(&near, getpid(), &tenant, &flow);
	assert_int_equal(weir_mux_conn_write(conn, handle, 0, region, 0, LENT), 0);
	is_shown(LENT, 0, &tenant, &flow);
	assert_int_equal(weir_mux_conn_read(conn, handle, 5, region, 0, 100001), 0);
	is_shown(0, 100001, &tenant, &flow);
	assert_int_equal(weir_mux_conn_read(conn, handle, LENT, region, 0, 1), -EACCES);
	is_shown(0, 0, &tenant, &flow);
	weir_mux_conn_close(conn);
	assert_int_equal(weir_mux_region_close(region), 0);
	weir_mux_close(mux);
	child_end(child, 0);
}

/* Nobody reads, so exactly both rings on the way fill up. */
static void tenants_get_rings_as_long_as_requested(void **state)
{
	const struct weir_mux_conn_options options = { .size = sizeof(options),
						       .class_nr = WEIR_MUX_CLASS_NORMAL,
						       .ring_bytes = MIB };
	const size_t length = 2 * MIB - sizeof(struct wire_mux_record);
	pid_t child = child_start(SERVICE, "hold");
	struct weir_mux *mux = tenant_of(&near);
	char *data = calloc(1, length);
	struct weir_error error = { "" };
	struct weir_mux_conn *conn;

	(void)state;
	assert_non_null(data);
	if (weir_mux_connect(mux, far.address, SERVICE, &options, &conn, &error))
		fail_msg("%s", error.text);
	assert_int_equal(weir_mux_conn_send(conn, data, length, 0), 0);
	assert_int_equal(weir_mux_conn_send(conn, data, 0, WEIR_MUX_CONN_DONTWAIT), -EAGAIN);
	child_end(child, SIGKILL);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	free(data);
}

/* The memory goes only when nothing posted refers to it, so the shared queue pair survives. */
static void a_tenant_killed_with_grants_breaks_nothing(void **state)
{
	pid_t steady = child_start(SERVICE, "echo"), child;
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *other = connect_to(mux, &far, SERVICE), *conn;
	struct weir_mux_region *region;
	uint32_t handle;
	int i, rc;

	(void)state;
	assert_int_equal(weir_mux_region_open(mux, LENT, &region), 0);
	for (i = 0; i < 5; i++) {
		child = child_start(SERVICE + 1, "lend");
		conn = connect_to(mux, &far, SERVICE + 1);
		handle = handle_of(conn);
		assert_int_equal(weir_mux_conn_write(conn, handle, 0, region, 0, LENT), 0);
		assert_int_equal(kill(child, SIGKILL), 0);
		do {
			rc = weir_mux_conn_write(conn, handle, 0, region, 0, LENT);
		} while (!rc);
		assert_int_equal(rc, -ECONNRESET);
		child_end(child, SIGKILL);
		weir_mux_conn_close(conn);
		round_trip(other, 100000);
	}
	weir_mux_conn_close(other);
	assert_int_equal(weir_mux_region_close(region), 0);
	weir_mux_close(mux);
	child_end(steady, 0);
}

/* Sends the same bytes from a region repeatedly, without a copy. */
static int send_lent(struct weir_mux_listener *listener, struct weir_mux *mux)
{
	struct weir_mux_conn *conn = accept_from(listener);
	struct weir_mux_region *region;
	int rc;

	if (weir_mux_region_open(mux, LENT, &region))
		return 1;
	fill(weir_mux_region_data(region), LENT, 9);
	while (!(rc = weir_mux_conn_send_region(conn, region, 0, LENT, 0)))
		;
	weir_mux_conn_close(conn);
	return weir_mux_region_close(region) || rc != -ENOTCONN;
}

static void messages_sent_from_regions_arrive(void **state)
{
	pid_t child = child_start(SERVICE, "send_lent");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	char *data = malloc(LENT), *got = malloc(LENT);
	size_t length;
	int i;

	(void)state;
	assert_true(data && got);
	fill(data, LENT, 9);
	for (i = 0; i < 3; i++) {
		assert_int_equal(weir_mux_conn_recv(conn, got, LENT, &length, 0), 0);
		assert_int_equal(length, LENT);
		assert_memory_equal(got, data, LENT);
	}
	weir_mux_conn_close(conn); /* the child gets its buffer back, and ends */
	child_end(child, 0);
	weir_mux_close(mux);
	free(data);
	free(got);
}

/* Work requests on the memory complete before the memory goes, whether the peer reads or not. */
static void a_tenant_killed_while_sending_from_a_region_breaks_nothing(void **state)
{
	pid_t steady = child_start(SERVICE, "echo"), child;
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *other = connect_to(mux, &far, SERVICE), *conn;
	char *got = malloc(LENT);
	size_t length;
	int i, rc;

	(void)state;
	assert_non_null(got);
	for (i = 0; i < fixture_rounds(6); i++) {
		child = child_start(SERVICE + 1, "send_lent");
		conn = connect_to(mux, &far, SERVICE + 1);
		if (i % 2)
			assert_int_equal(weir_mux_conn_recv(conn, got, LENT, &length, 0), 0);
		else
			wait_readable(weir_mux_conn_fd(conn));
		child_end(child, SIGKILL);
		while (!(rc = weir_mux_conn_recv(conn, got, LENT, &length, 0)))
			;
		assert_int_equal(rc, -ECONNRESET);
		weir_mux_conn_close(conn);
		round_trip(other, 100000);
	}
	weir_mux_conn_close(other);
	weir_mux_close(mux);
	child_end(steady, 0);
	free(got);
}

static void a_send_from_a_foreign_region_ends_only_its_connection(void **state)
{
	pid_t child = child_start(SERVICE, "echo"), second = child_start(SERVICE + 1, "hold");
	struct weir_mux *mux = tenant_of(&near), *hostile = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	struct weir_mux_conn *bad = connect_to(hostile, &far, SERVICE + 1);
	struct weir_mux_region *region, *foreign;
	char got[4096];
	size_t length;

	(void)state;
	assert_int_equal(weir_mux_region_open(mux, 4096, &region), 0);
	assert_int_equal(weir_mux_region_open(mux, 4096, &foreign), 0);
	assert_int_equal(weir_mux_conn_send_region(bad, foreign, 0, 1, 0), -EPROTO);
	assert_int_equal(weir_mux_conn_send(bad, "x", 1, 0), -EPROTO);
	assert_int_equal(weir_mux_conn_send_region(conn, region, 0, 4096, 0), 0);
	assert_int_equal(weir_mux_conn_recv(conn, got, sizeof(got), &length, 0), 0);
	assert_int_equal(length, 4096);
	weir_mux_conn_close(bad);
	weir_mux_conn_close(conn);
	assert_int_equal(weir_mux_region_close(region), 0);
	assert_int_equal(weir_mux_region_close(foreign), 0);
	weir_mux_close(hostile);
	weir_mux_close(mux);
	child_end(child, 0);
	child_end(second, SIGKILL);
}

/* Waits for the parent's signal. */
static int wait_told(int ready, const sigset_t *go)
{
	int sig;

	return write(ready, "", 1) != 1 || sigwait(go, &sig);
}

static void wait_begin(sigset_t *go)
{
	sigemptyset(go);
	sigaddset(go, SIGUSR1);
	sigprocmask(SIG_BLOCK, go, NULL);
}

/*
 * A tenant of @near that grants, and reports each grant, until the halted peer takes in nothing
 * and the next grant lacks room.
 */
static int grant(uint32_t service, int ready)
{
	const struct weir_mux_conn_options urgent = { .size = sizeof(urgent),
						      .class_nr = WEIR_MUX_CLASS_URGENT };
	struct weir_mux_conn *conns[GRANTERS];
	struct weir_mux_region *region;
	struct weir_mux *mux;
	uint32_t handle;
	sigset_t go;
	int i, rc;

	wait_begin(&go);
	mux = tenant_of(&near);
	for (i = 0; i < GRANTERS; i++)
		if (weir_mux_connect(mux, far.address, service, &urgent, &conns[i], NULL))
			return 1;
	if (weir_mux_region_open(mux, 4096, &region) || wait_told(ready, &go))
		return 1;
	do {
		rc = weir_mux_conn_grant(conns[i++ % GRANTERS], region, 0, 4096, WEIR_MUX_MAY_READ,
					 &handle);
	} while (!rc && write(ready, "", 1) == 1);
	return 1;
}

/*
 * A tenant of @near that closes a connection with a granted region, and then the region: the
 * close waits for the peer.
 */
static int take_back(uint32_t service, int ready)
{
	struct weir_mux_region *region;
	struct weir_mux_conn *conn;
	struct weir_mux *mux;
	uint32_t handle;
	sigset_t go;

	wait_begin(&go);
	mux = tenant_of(&near);
	conn = connect_to(mux, &far, service);
	if (weir_mux_region_open(mux, 4096, &region) ||
	    weir_mux_conn_grant(conn, region, 0, 4096, WEIR_MUX_MAY_READ, &handle) ||
	    wait_told(ready, &go))
		return 1;
	weir_mux_conn_close(conn);
	if (write(ready, "", 1) != 1)
		return 1;
	weir_mux_region_close(region);
	return 1;
}

static void wait_quiet(int ready)
{
	struct pollfd in = { .fd = ready, .events = POLLIN };
	char bytes[64];

	while (poll(&in, 1, QUIET_MS) == 1)
		assert_true(read(ready, bytes, sizeof(bytes)) > 0); /* 0: it has not waited */
}

/*
 * The killed tenant's RPC thread waits for a halted peer. It must notice the death before the
 * timeout. When the peer continues, everything else goes on.
 */
static void is_heard_of(const char *role)
{
	pid_t steady = child_start(SERVICE, "echo"), other = child_start(SERVICE + 1, "hold");
	struct weir_mux *mux = tenant_of(&near);
	struct weir_mux_conn *conn = connect_to(mux, &far, SERVICE);
	uint64_t killed_ns;
	pid_t victim;
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	victim = child_exec(role, SERVICE + 1, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	round_trip(conn, 1000);
	daemon_halt(&far);
	assert_int_equal(kill(victim, SIGUSR1), 0);
	wait_readable(ready[0]);
	wait_quiet(ready[0]);
	close(ready[0]);
	assert_true(daemon_has(&near, victim));
	killed_ns = weir_now_ns();
	child_end(victim, SIGKILL);
	while (daemon_has(&near, victim))
		poll(NULL, 0, 1);
	assert_in_range(weir_now_ns() - killed_ns, 0, HEARD_NS);
	assert_int_equal(kill(far.pid, SIGCONT), 0);
	round_trip(conn, 100000);
	weir_mux_conn_close(conn);
	weir_mux_close(mux);
	child_end(steady, 0);
	child_end(other, SIGKILL);
}

static void a_tenant_killed_while_granting_goes_at_once(void **state)
{
	(void)state;
	is_heard_of("grant");
}

static void a_tenant_killed_while_closing_a_region_goes_at_once(void **state)
{
	(void)state;
	is_heard_of("take_back");
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {
		ROLE_ECHO,
		ROLE_HOLD,
		ROLE_HOLD,
		{ "lend", lend, NULL },
		{ "send_lent", send_lent, NULL },
		{ "grant", NULL, grant },
		{ "take_back", NULL, take_back },
		{ 0 },
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tenants_read_and_write_by_their_own_handles_only),
		cmocka_unit_test(weir_top_counts_reads_and_writes_by_handle),
		cmocka_unit_test(tenants_get_rings_as_long_as_requested),
		cmocka_unit_test(a_tenant_killed_with_grants_breaks_nothing),
		cmocka_unit_test(messages_sent_from_regions_arrive),
		cmocka_unit_test(a_tenant_killed_while_sending_from_a_region_breaks_nothing),
		cmocka_unit_test(a_send_from_a_foreign_region_ends_only_its_connection),
		cmocka_unit_test(a_tenant_killed_while_granting_goes_at_once),
		cmocka_unit_test(a_tenant_killed_while_closing_a_region_goes_at_once),
	};

	if (IS_CHILD(argc))
		return child_main(argv, roles);
	return cmocka_run_group_tests(tests, daemons_start, daemons_stop);
}
