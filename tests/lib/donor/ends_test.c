/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: donor ends; suites: donor; devices: softnic rxe; timeout: 120 */
/* A donor tells a client's close from a death, and from the donor's own cut. */
#include <string.h>

#include "tests/support/donor_fixture.h"

static struct {
	unsigned int left, closed; /* calls of on_leave, and those for clients that had closed */
	unsigned int logged_left, logged_died, logged_cut;
	unsigned int pushed; /* messages to the client */
} app;

/* Messages that make the donor push others. */
#define PUSH "push"
#define FLOOD "flood"
#define PUSHED 3

static void count(unsigned int *what)
{
	__atomic_fetch_add(what, 1, __ATOMIC_RELEASE);
}

static unsigned int app_read(const unsigned int *what)
{
	return __atomic_load_n(what, __ATOMIC_ACQUIRE);
}

static void on_message(void *arg, struct weir_peer *peer, struct weir_call *call, const void *data,
		       size_t length)
{
	unsigned int i, nr = !strcmp(data, PUSH) ? PUSHED : RAW_CREDITS;

	(void)arg;
	(void)call;
	(void)length;
	for (i = 0; i < nr; i++)
		assert_int_equal(weir_peer_send(peer, "pushed", 6), 0);
	__atomic_store_n(&app.pushed, nr, __ATOMIC_RELEASE);
}

static void on_leave(void *arg, struct weir_peer *peer)
{
	(void)arg;
	if (weir_peer_has_closed(peer))
		count(&app.closed);
	count(&app.left);
}

static void on_log(void *arg, enum weir_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	if (!strncmp(line, "left peer=", 10))
		count(&app.logged_left);
	if (!strncmp(line, "died peer=", 10))
		count(&app.logged_died);
	if (!strncmp(line, "cut peer=", 9))
		count(&app.logged_cut);
}

static struct donor_fixture f;
static struct raw_client client;

static int setup(void **state)
{
	const struct weir_donor_options options = {
		.absence_ms = 200,
		.on_message = on_message,
		.on_leave = on_leave,
		.on_log = on_log,
	};

	(void)state;
	memset(&app, 0, sizeof(app));
	donor_fixture_start(&f, &options);
	assert_int_equal(raw_open(&client, f.info.address, &key_a), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	raw_close(&client);
	donor_fixture_stop(&f);
	return 0;
}

/* The donor has logged the only end, of the client, as one of @left, @died and @cut. */
static void assert_ended(unsigned int left, unsigned int died, unsigned int cut)
{
	assert_soon(app_read(&app.left) == 1);
	assert_int_equal(app_read(&app.closed), left);
	assert_int_equal(app_read(&app.logged_left), left);
	assert_int_equal(app_read(&app.logged_died), died);
	assert_int_equal(app_read(&app.logged_cut), cut);
}

static int send_credit(uint32_t flags)
{
	const struct wire_control_head head = {
		.kind = WIRE_CONTROL_CREDIT,
		.credits = weir_credit_spend(&client.credit),
		.flags = flags,
	};

	return raw_send(&client, &head, sizeof(head));
}

static void a_client_that_says_so_has_closed(void **state)
{
	(void)state;
	assert_int_equal(send_credit(WIRE_CONTROL_CLOSING), 0);
	raw_close(&client);
	assert_ended(1, 0, 0);
}

static void a_client_that_only_disconnects_has_died(void **state)
{
	(void)state;
	raw_close(&client);
	assert_ended(0, 1, 0);
}

static void other_flags_are_ignored(void **state)
{
	(void)state;
	assert_int_equal(send_credit(~WIRE_CONTROL_CLOSING), 0);
	raw_close(&client);
	assert_ended(0, 1, 0);
}

/* A refused access breaks the connection, which nobody closes. */
static void a_client_that_stays_away_has_died(void **state)
{
	struct wire_control_region region;

	(void)state;
	assert_int_equal(raw_create(&client, NULL, MIB, WIRE_REGION_EXCLUSIVE, &region), 0);
	assert_int_not_equal(raw_write(&client, region.addr, region.rkey + 1, 64), 0);
	assert_ended(0, 1, 0);
}

static void a_client_that_breaks_the_protocol_is_cut(void **state)
{
	(void)state;
	assert_int_equal(raw_message(&client, WIRE_APP_REPLY, 1, NULL, 0), 0);
	assert_ended(0, 0, 1);
}

/* Take all that the donor has sent. Return: whether the last message says that it closes. */
static bool take_messages(unsigned int *nr)
{
	char message[WIRE_CONTROL_MESSAGE_BYTES];
	struct wire_control_head head;
	bool closes = false;
	const void *body;
	size_t length;

	for (*nr = 0; !raw_receive(&client, message, &length, SOON_MS); (*nr)++) {
		assert_false(closes);
		assert_int_equal(wire_control_decode(message, length, &head, &body), 0);
		closes = wire_control_is_closing(&head);
	}
	return closes;
}

static void the_donors_last_message_says_that_it_closes(void **state)
{
	unsigned int nr;

	(void)state;
	assert_int_equal(raw_message(&client, WIRE_APP_ONEWAY, 0, PUSH, sizeof(PUSH)), 0);
	assert_soon(app_read(&app.pushed) == PUSHED);
	donor_fixture_stop(&f);
	assert_true(take_messages(&nr));
	assert_int_equal(nr, PUSHED + 1);
	assert_int_equal(app_read(&app.closed), 0);
	donor_fixture_start(&f, NULL);
}

/* The client has taken nothing, so the donor lacks credits for its last message, but ends. */
static void a_client_without_credits_is_cut_off(void **state)
{
	unsigned int nr;

	(void)state;
	assert_int_equal(raw_message(&client, WIRE_APP_ONEWAY, 0, FLOOD, sizeof(FLOOD)), 0);
	assert_soon(app_read(&app.pushed) == RAW_CREDITS);
	donor_fixture_stop(&f);
	assert_false(take_messages(&nr));
	assert_int_equal(nr, RAW_CREDITS - 1);
	donor_fixture_start(&f, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_client_that_says_so_has_closed),
		TEST(a_client_that_only_disconnects_has_died),
		TEST(other_flags_are_ignored),
		TEST(a_client_that_stays_away_has_died),
		TEST(a_client_that_breaks_the_protocol_is_cut),
		TEST(the_donors_last_message_says_that_it_closes),
		TEST(a_client_without_credits_is_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
