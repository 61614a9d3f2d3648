/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: donor reconnect; suites: donor; devices: softnic rxe; timeout: 120 */
/* Clients whose connection breaks: they reconnect, leave, or stay away. */
#include <string.h>

#include "tests/support/donor_fixture.h"

static struct {
	struct weir_peer *peer;
	struct weir_call *call;
	unsigned int asks, broke, left;
} app;

static void on_join(void *arg, struct weir_peer *peer)
{
	(void)arg;
	app.peer = peer;
}

static void on_leave(void *arg, struct weir_peer *peer)
{
	(void)arg;
	(void)peer;
	__atomic_fetch_add(&app.left, 1, __ATOMIC_RELEASE);
}

static void on_message(void *arg, struct weir_peer *peer, struct weir_call *call, const void *data,
		       size_t length)
{
	(void)arg;
	(void)peer;
	(void)data;
	(void)length;
	__atomic_store_n(&app.call, call, __ATOMIC_RELEASE);
}

static void on_log(void *arg, enum weir_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	if (!strncmp(line, "asks", 4))
		__atomic_fetch_add(&app.asks, 1, __ATOMIC_RELEASE);
	if (!strncmp(line, "broke", 5))
		__atomic_fetch_add(&app.broke, 1, __ATOMIC_RELEASE);
}

static unsigned int app_read(const unsigned int *what)
{
	return __atomic_load_n(what, __ATOMIC_ACQUIRE);
}

static struct donor_fixture f;
static struct raw_client client;
static struct wire_control_region region;

static void start_with(unsigned int absence_ms, unsigned int keepalive_ms)
{
	const struct weir_donor_options options = {
		.absence_ms = absence_ms,
		.keepalive_ms = keepalive_ms,
		.on_join = on_join,
		.on_leave = on_leave,
		.on_message = on_message,
		.on_log = on_log,
	};

	memset(&app, 0, sizeof(app));
	donor_fixture_start(&f, &options);
	assert_int_equal(raw_open(&client, f.info.address, &key_a), 0);
	assert_int_equal(raw_create(&client, NULL, MIB, WIRE_REGION_EXCLUSIVE, &region), 0);
}

static void start(unsigned int absence_ms)
{
	start_with(absence_ms, 0);
}

/* A refused access breaks the connection at both ends, and closes it at neither. */
static void break_connection(void)
{
	unsigned int before = app_read(&app.broke);

	assert_int_not_equal(raw_write(&client, region.addr, region.rkey + 1, 64), 0);
	assert_soon(app_read(&app.broke) == before + 1);
}

static int come_back(struct raw_client *again)
{
	return raw_open_channel(again, f.info.address, &key_a, client.handshake.welcome.session_id,
				0);
}

static void who_comes_back_is_asked_once_more(void **state)
{
	struct wire_control_region movable;
	struct raw_client again;

	(void)state;
	start(0);
	assert_int_equal(raw_create(&client, NULL, 4 * MIB, WIRE_REGION_MOVABLE, &movable), 0);
	assert_int_equal(weir_donor_limit(f.donor, 2 * MIB), 0);
	assert_int_equal(donor_fixture_reclaimed(&client), MIB);
	break_connection();
	assert_int_equal(come_back(&again), 0);
	assert_int_equal(donor_fixture_reclaimed(&again), MIB);
	raw_close(&client);
	raw_close(&again);
	donor_fixture_stop(&f);
}

static void who_comes_back_finds_all_it_held(void **state)
{
	struct raw_client again;
	int i;

	(void)state;
	start(0);
	memset(client.data, 0x5a, 64);
	assert_int_equal(raw_write(&client, region.addr, region.rkey, 64), 0);
	break_connection();
	assert_int_equal(donor_fixture_info(&f)->clients, 1);
	assert_int_equal(come_back(&again), 0);
	assert_int_equal(again.handshake.welcome.session_id, client.handshake.welcome.session_id);
	assert_int_equal(again.handshake.welcome.incarnation, f.info.incarnation);
	assert_int_equal(raw_read(&again, region.addr, region.rkey, 64), 0);
	for (i = 0; i < 64; i++)
		assert_int_equal(again.data[i], 0x5a);
	assert_int_equal(raw_region_close(&again, region.hold), 0);
	raw_close(&client); /* the end of the old connection does not touch the new one */
	assert_int_equal(raw_create(&again, NULL, MIB, 0, &region), 0);
	assert_int_equal(app_read(&app.left), 0);
	raw_close(&again);
	assert_soon(app_read(&app.left) == 1);
	donor_fixture_stop(&f);
}

static void a_connection_that_is_replaced_reaches_nothing(void **state)
{
	struct raw_client again;

	(void)state;
	start(0);
	assert_int_equal(come_back(&again), 0);
	assert_int_not_equal(raw_write(&client, region.addr, region.rkey, 64), 0);
	assert_int_equal(raw_read(&again, region.addr, region.rkey, 64), 0);
	assert_int_equal(again.data[0], 0);
	raw_close(&again);
	raw_close(&client);
	donor_fixture_stop(&f);
}

static void a_further_channel_is_replaced_too(void **state)
{
	struct raw_client second, third;
	uint64_t session;

	(void)state;
	start(0);
	session = client.handshake.welcome.session_id;
	assert_int_equal(raw_open_channel(&second, f.info.address, &key_a, session, 1), 0);
	assert_int_equal(raw_open_channel(&third, f.info.address, &key_a, session, 1), 0);
	assert_int_not_equal(raw_write(&second, region.addr, region.rkey, 64), 0);
	assert_int_equal(raw_write(&third, region.addr, region.rkey, 64), 0);
	assert_int_equal(donor_fixture_info(&f)->clients, 1);
	raw_close(&second);
	raw_close(&third);
	assert_int_equal(raw_write(&client, region.addr, region.rkey, 64), 0);
	raw_close(&client);
	donor_fixture_stop(&f);
}

static void who_leaves_is_not_waited_for(void **state)
{
	(void)state;
	start(0);
	break_connection();
	raw_close(&client);
	assert_soon(app_read(&app.left) == 1);
	assert_soon(donor_fixture_info(&f)->clients == 0);
	assert_int_equal(donor_fixture_info(&f)->lent_bytes, 0);
	donor_fixture_stop(&f);
}

static void who_stays_away_too_long_is_forgotten(void **state)
{
	struct raw_client again;

	(void)state;
	start(100);
	break_connection();
	assert_soon(app_read(&app.left) == 1);
	assert_soon(donor_fixture_info(&f)->lent_bytes == 0);
	assert_int_equal(come_back(&again), -ESTALE);
	raw_close(&again);
	raw_close(&client);
	donor_fixture_stop(&f);
}

static void who_is_there_is_asked_and_stays(void **state)
{
	(void)state;
	start_with(1, 20);
	assert_soon(app_read(&app.asks) >= 3);
	assert_int_equal(raw_write(&client, region.addr, region.rkey, 64), 0);
	assert_int_equal(app_read(&app.broke), 0);
	assert_int_equal(donor_fixture_info(&f)->clients, 1);
	raw_close(&client);
	donor_fixture_stop(&f);
}

/* Soft-RoCE retransmits unacknowledged packets after four seconds: here twice. */
static void whose_host_is_gone_is_forgotten(void **state)
{
	(void)state;
	raw_retries = 2;
	start_with(1, 50);
	raw_retries = 7;
	raw_vanish(&client);
	assert_within(90000, app_read(&app.left) == 1);
	assert_int_equal(app_read(&app.broke), 1);
	assert_int_equal(donor_fixture_info(&f)->lent_bytes, 0);
	raw_close(&client);
	donor_fixture_stop(&f);
}

static void messages_wait_and_answers_do_not(void **state)
{
	char body[WIRE_CONTROL_BODY_MAX];
	struct wire_control_head head;
	struct raw_client again;

	(void)state;
	start(0);
	assert_int_equal(raw_message(&client, WIRE_APP_CALL, 5, "c", 1), 0);
	assert_soon(__atomic_load_n(&app.call, __ATOMIC_ACQUIRE));
	break_connection();
	assert_int_equal(weir_peer_send(app.peer, "waits", 5), 0);
	assert_int_equal(come_back(&again), 0);
	assert_int_equal(weir_reply(app.call, "too late", 8), -ENOTCONN);
	assert_int_equal(weir_peer_send(app.peer, "goes", 4), 0);
	assert_int_equal(raw_answer(&again, &head, body, SOON_MS), 0);
	assert_memory_equal(body, "waits", 5);
	assert_int_equal(raw_answer(&again, &head, body, SOON_MS), 0);
	assert_memory_equal(body, "goes", 4);
	raw_close(&again);
	raw_close(&client);
	donor_fixture_stop(&f);
}

/* Ten clients reconnect at once, some twice: the last connection counts. */
static void it_may_break_again_and_again(void **state)
{
	struct raw_client connections[10];
	int i;

	(void)state;
	start(0);
	for (i = 0; i < 10; i++)
		assert_int_equal(come_back(&connections[i]), 0);
	assert_int_equal(raw_write(&connections[9], region.addr, region.rkey, 64), 0);
	for (i = 0; i < 9; i++) {
		assert_int_not_equal(raw_write(&connections[i], region.addr, region.rkey, 64), 0);
		raw_close(&connections[i]);
	}
	assert_int_equal(raw_read(&connections[9], region.addr, region.rkey, 64), 0);
	raw_close(&connections[9]);
	raw_close(&client);
	assert_soon(donor_fixture_info(&f)->clients == 0);
	donor_fixture_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_comes_back_finds_all_it_held),
		cmocka_unit_test(who_comes_back_is_asked_once_more),
		cmocka_unit_test(a_connection_that_is_replaced_reaches_nothing),
		cmocka_unit_test(a_further_channel_is_replaced_too),
		cmocka_unit_test(who_leaves_is_not_waited_for),
		cmocka_unit_test(who_stays_away_too_long_is_forgotten),
		cmocka_unit_test(who_is_there_is_asked_and_stays),
		cmocka_unit_test(whose_host_is_gone_is_forgotten),
		cmocka_unit_test(messages_wait_and_answers_do_not),
		cmocka_unit_test(it_may_break_again_and_again),
	};

	return cmocka_run_group_tests_name("return", tests, NULL, NULL);
}
