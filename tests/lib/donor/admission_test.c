/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: donor admission; suites: donor; devices: softnic rxe; timeout: 120 */
/* Which clients are admitted, and how refused clients end. */
#include <dirent.h>

#include "lib/conn/address.h"
#include "lib/donor/donor.h"
#include "tests/support/donor_fixture.h"

static void the_right_key_gets_in(void **state)
{
	struct donor_fixture f;
	struct raw_client a;

	(void)state;
	donor_fixture_start(&f, NULL);
	assert_int_equal(raw_open(&a, f.info.address, &key_a), 0);
	assert_int_equal(donor_fixture_info(&f)->clients, 1);
	assert_int_equal(a.handshake.welcome.incarnation, f.info.incarnation);
	assert_int_equal(a.handshake.welcome.quota_bytes, 8 * MIB);
	raw_close(&a);
	assert_soon(donor_fixture_info(&f)->clients == 0);
	donor_fixture_stop(&f);
}

static void an_unknown_key_is_rejected_before_a_qp_is_made(void **state)
{
	const struct weir_key stranger = { .length = 16, .bytes = "xxxxxxxxxxxxxxxx" };
	struct donor_fixture f;
	struct raw_client a;

	(void)state;
	donor_fixture_start(&f, NULL);
	assert_int_equal(raw_open(&a, f.info.address, &stranger), -ECONNREFUSED);
	assert_int_equal(a.refusal.status, EKEYREJECTED);
	raw_close(&a);
	assert_int_equal(raw_open(&a, f.info.address, NULL), -ECONNREFUSED);
	assert_int_equal(a.refusal.status, EKEYREJECTED);
	assert_non_null(strstr(a.refusal.text, "wants a key"));
	raw_close(&a);
	assert_int_equal(donor_fixture_info(&f)->rejects, 2);
	donor_fixture_stop(&f);
}

static void a_known_key_id_without_the_key_is_refused(void **state)
{
	struct wire_handshake_connect connect = raw_request(&key_a, 0, 0);
	struct donor_fixture f;
	struct raw_client a;

	(void)state;
	donor_fixture_start(&f, NULL);
	assert_int_equal(raw_connect(&a, f.info.address, &connect, sizeof(connect)), 0);
	assert_int_equal(raw_prove(&a, &key_b, 0, 0), -EKEYREJECTED);
	assert_true(raw_is_cut_off(&a, SOON_MS));
	raw_close(&a);
	assert_int_equal(donor_fixture_info(&f)->clients, 0);
	donor_fixture_stop(&f);
}

static void without_keys_everybody_on_loopback_gets_in(void **state)
{
	struct weir_donor_options options = { .size = sizeof(options),
					      .listen = "127.0.0.1:0",
					      .memory_bytes = MIB };
	struct weir_error error;
	struct donor_fixture f = { 0 };
	struct raw_client a;

	(void)state;
	if (!donor_is_on_loopback())
		skip();
	assert_int_equal(weir_donor_open(&options, &f.donor, &error), 0);
	assert_int_equal(raw_open(&a, donor_fixture_info(&f)->address, NULL), 0);
	raw_close(&a);
	assert_int_equal(raw_open(&a, f.info.address, &key_a), -ECONNREFUSED);
	assert_int_equal(a.refusal.status, EKEYREJECTED);
	raw_close(&a);
	donor_fixture_stop(&f);
}

static void without_keys_nobody_listens_beyond_loopback(void **state)
{
	static const char *const beyond[] = { ":0", "0.0.0.0:0", "[::]:0" };
	struct weir_donor_options options = { .size = sizeof(options), .memory_bytes = MIB };
	struct weir_donor *donor;
	struct weir_error error;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		options.listen = beyond[i];
		assert_int_equal(weir_donor_open(&options, &donor, &error), -EPERM);
		assert_non_null(strstr(error.text, "key"));
	}
}

static void with_keys_it_listens_wherever_it_is_told(void **state)
{
	const struct {
		const char *listen, *connect;
	} cases[] = {
		{ ":0", donor_host() },
		{ "0.0.0.0:0", donor_host() },
		{ "[::1]:0", "[::1]" },
		{ "localhost:0", "localhost" },
	};
	const size_t loopback = 2; /* number of leading addresses that are on loopback */
	struct weir_donor_options options = { .size = sizeof(options) };
	char address[WEIR_ADDRESS_MAX + 16];
	struct donor_fixture f;
	struct raw_client a;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!donor_is_on_loopback() && i >= loopback)
			break;
		options.listen = cases[i].listen;
		donor_fixture_start(&f, &options);
		snprintf(address, sizeof(address), "%s%s", cases[i].connect,
			 strrchr(f.info.address, ':'));
		assert_int_equal(raw_open(&a, address, &key_b), 0);
		raw_close(&a);
		donor_fixture_stop(&f);
	}
}

static void what_is_no_request_of_weirs_is_rejected(void **state)
{
	struct wire_handshake_connect connect = raw_request(&key_a, 0, 0);
	char theirs[32];
	uint8_t noise[48];
	struct donor_fixture f;
	struct raw_client a;
	size_t i;

	(void)state;
	donor_fixture_start(&f, NULL);
	assert_int_equal(raw_connect(&a, f.info.address, NULL, 0), -ECONNREFUSED);
	assert_int_equal(a.refusal.status, EPROTO);
	raw_close(&a);
	for (i = 0; i < sizeof(noise); i++)
		noise[i] = i * 37 + 11;
	for (i = 1; i <= sizeof(noise); i += 13) {
		assert_int_equal(raw_connect(&a, f.info.address, noise, i), -ECONNREFUSED);
		assert_int_equal(a.refusal.status, EPROTO);
		raw_close(&a);
	}
	for (i = 0; i < offsetof(struct wire_handshake_connect, cookie); i += 5) {
		assert_int_equal(raw_connect(&a, f.info.address, &connect, i), -ECONNREFUSED);
		raw_close(&a);
	}
	for (i = 0; i < 2; i++) {
		connect.version = i ? WIRE_VERSION + 1 : WIRE_VERSION - 1;
		assert_int_equal(raw_connect(&a, f.info.address, &connect, sizeof(connect)),
				 -ECONNREFUSED);
		assert_int_equal(a.refusal.status, EPROTONOSUPPORT);
		assert_int_equal(a.refusal.head.version, WIRE_VERSION);
		snprintf(theirs, sizeof(theirs), "the client version %u:", connect.version);
		assert_non_null(strstr(a.refusal.text, "this donor speaks version 4 "));
		assert_non_null(strstr(a.refusal.text, theirs));
		assert_non_null(strstr(a.refusal.text, "upgrade the older one"));
		raw_close(&a);
	}
	assert_int_equal(raw_open(&a, f.info.address, &key_a), 0);
	raw_close(&a);
	donor_fixture_stop(&f);
}

static void garbage_instead_of_a_hello_is_refused(void **state)
{
	static const size_t lengths[] = { 0, 1, 8, 72, 200, 256, 257, 8192 };
	struct wire_handshake_connect connect = raw_request(&key_a, 0, 0);
	static uint8_t noise[8192];
	struct donor_fixture f;
	struct raw_client a;
	size_t i;

	(void)state;
	memset(noise, 0x77, sizeof(noise));
	donor_fixture_start(&f, NULL);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		assert_int_equal(raw_connect(&a, f.info.address, &connect, sizeof(connect)), 0);
		raw_send(&a, noise, lengths[i]);
		assert_true(raw_is_cut_off(&a, SOON_MS));
		raw_close(&a);
	}
	assert_int_equal(raw_open(&a, f.info.address, &key_b), 0);
	raw_close(&a);
	donor_fixture_stop(&f);
}

static void who_proves_nothing_is_cut_off_in_time(void **state)
{
	struct wire_handshake_connect connect = raw_request(&key_a, 0, 0);
	uint64_t start_ns = weir_now_ns(), took_ns;
	struct donor_fixture f;
	struct raw_client a;

	(void)state;
	donor_fixture_start(&f, NULL);
	assert_int_equal(raw_connect(&a, f.info.address, &connect, sizeof(connect)), 0);
	assert_true(raw_is_cut_off(&a, 8000));
	took_ns = weir_now_ns() - start_ns;
	assert_in_range(took_ns, 4 * WEIR_NS_PER_S, 7 * WEIR_NS_PER_S);
	raw_close(&a);
	assert_int_equal(donor_fixture_info(&f)->rejects, 1);
	donor_fixture_stop(&f);
}

/* From @until_ns on a newcomer may replace the first of the present clients. */
static void one_more_is_refused(const char *address, uint64_t until_ns)
{
	struct raw_client late;
	int rc = raw_open(&late, address, &key_a);

	if (rc || weir_now_ns() < until_ns) {
		assert_int_equal(rc, -ECONNREFUSED);
		assert_int_equal(late.refusal.status, EAGAIN);
		assert_non_null(strstr(late.refusal.text, "try again"));
	} else {
		print_message(
			"too slow here to connect so many before the first has had its time\n");
	}
	raw_close(&late);
}

static void many_who_prove_nothing_leave_room_again_when_they_go(void **state)
{
	struct wire_handshake_connect connect = raw_request(&key_a, 0, 0);
	static struct raw_client many[32];
	uint64_t start_ns;
	struct donor_fixture f;
	struct raw_client honest;
	int i;

	(void)state;
	donor_fixture_start(&f, NULL);
	assert_int_equal(raw_open(&honest, f.info.address, &key_a), 0);
	start_ns = weir_now_ns();
	for (i = 0; i < 32; i++)
		assert_int_equal(raw_connect(&many[i], f.info.address, &connect, sizeof(connect)),
				 0);
	one_more_is_refused(f.info.address, start_ns + WEIR_UNPROVEN_NS);
	/* The admitted client does not notice. */
	assert_int_equal(raw_create(&honest, "x", 4096, 0, &(struct wire_control_region){ 0 }), 0);
	for (i = 0; i < 32; i++)
		raw_close(&many[i]);
	{
		struct raw_client late;
		int rc;

		assert_soon((rc = raw_open(&late, f.info.address, &key_a), raw_close(&late), !rc));
	}
	raw_close(&honest);
	donor_fixture_stop(&f);
}

static struct raw_client strangers[WEIR_UNPROVEN_MAX];

/* Takes all places for newcomers of key A. */
static void strangers_open(const char *address)
{
	struct wire_handshake_connect connect = raw_request(&key_a, 0, 0);
	int i;

	for (i = 0; i < WEIR_UNPROVEN_MAX; i++)
		assert_int_equal(raw_connect(&strangers[i], address, &connect, sizeof(connect)), 0);
}

static void strangers_close(void)
{
	int i;

	for (i = 0; i < WEIR_UNPROVEN_MAX; i++)
		raw_close(&strangers[i]);
}

static void strangers_keep_out_neither_who_is_in_nor_other_keys(void **state)
{
	struct raw_client honest, channel, other;
	struct donor_fixture f;

	(void)state;
	donor_fixture_start(&f, NULL);
	assert_int_equal(raw_open(&honest, f.info.address, &key_a), 0);
	strangers_open(f.info.address);
	assert_int_equal(raw_open_channel(&channel, f.info.address, &key_a,
					  honest.handshake.welcome.session_id, 1),
			 0);
	raw_close(&channel);
	/* Its broken first channel, too. */
	assert_int_equal(raw_open_channel(&channel, f.info.address, &key_a,
					  honest.handshake.welcome.session_id, 0),
			 0);
	assert_int_equal(raw_open(&other, f.info.address, &key_b), 0);
	raw_close(&other);
	raw_close(&channel);
	raw_close(&honest);
	strangers_close();
	donor_fixture_stop(&f);
}

static void strangers_who_linger_give_way_to_newcomers(void **state)
{
	struct raw_client newcomer;
	struct donor_fixture f;

	(void)state;
	donor_fixture_start(&f, NULL);
	strangers_open(f.info.address);
	assert_within(3000, !raw_open(&newcomer, f.info.address, &key_a) ||
				    (raw_close(&newcomer), false));
	raw_close(&newcomer);
	strangers_close();
	donor_fixture_stop(&f);
}

static void one_key_takes_no_other_keys_clients(void **state)
{
	const struct weir_donor_options options = { .key_clients_max = 1 };
	struct raw_client a, b, c;
	struct donor_fixture f;

	(void)state;
	donor_fixture_start(&f, &options);
	assert_int_equal(raw_open(&a, f.info.address, &key_a), 0);
	assert_int_equal(raw_open(&c, f.info.address, &key_a), -ECONNREFUSED);
	assert_int_equal(c.refusal.status, EDQUOT);
	raw_close(&c);
	assert_int_equal(raw_open(&b, f.info.address, &key_b), 0);
	raw_close(&b);
	raw_close(&a);
	donor_fixture_stop(&f);
}

static unsigned int heard;

static void hear(void *arg, enum weir_log_level level, const char *line)
{
	(void)arg;
	(void)line;
	heard += level < WEIR_LOG_DEBUG;
}

static void strangers_fill_no_log(void **state)
{
	const struct weir_key stranger = { .length = 16, .bytes = "xxxxxxxxxxxxxxxx" };
	const unsigned int times = 4 * WEIR_RATE_LIMIT_MAX;
	struct weir_donor_options options = { .on_log = hear };
	struct donor_fixture f;
	struct raw_client a;
	uint64_t start_ns = weir_now_ns(), periods;
	unsigned int i;

	(void)state;
	heard = 0;
	donor_fixture_start(&f, &options);
	for (i = 0; i < times; i++) {
		assert_int_equal(raw_open(&a, f.info.address, &stranger), -ECONNREFUSED);
		raw_close(&a);
	}
	assert_int_equal(donor_fixture_info(&f)->rejects, times);
	/* The donor's own first line, a report of each period, and its lines. */
	periods = (weir_now_ns() - start_ns) / WEIR_RATE_LIMIT_NS + 2;
	assert_true(heard <= 1 + periods * (WEIR_RATE_LIMIT_MAX + 1));
	/* A key has lines of its own. */
	assert_int_equal(raw_open(&a, f.info.address, &key_a), 0);
	raw_close(&a);
	assert_soon(donor_fixture_info(&f)->clients == 0);
	donor_fixture_stop(&f);
}

static unsigned int refusals;

static void hear_refusals(void *arg, enum weir_log_level level, const char *line)
{
	(void)arg;
	refusals += level == WEIR_LOG_WARNING && strstr(line, "id=W106") &&
		    strstr(line, "refused an unloaded write");
}

/* A refusal ends the channel's buffer, so each takes a channel. */
static void refused_writes_fill_no_log(void **state)
{
	const unsigned int times = 4 * WEIR_RATE_LIMIT_MAX;
	struct weir_donor_options options = { .on_log = hear_refusals };
	struct wire_handshake_welcome *welcome;
	struct raw_client a, channel;
	struct donor_fixture f;
	uint64_t start_ns;
	unsigned int i;

	(void)state;
	refusals = 0;
	donor_fixture_start(&f, &options);
	assert_int_equal(raw_open(&a, f.info.address, &key_a), 0);
	start_ns = weir_now_ns();
	for (i = 0; i < times; i++) {
		assert_int_equal(raw_open_channel(&channel, f.info.address, &key_a,
						  a.handshake.welcome.session_id,
						  WIRE_CHANNEL_UNLOAD),
				 0);
		welcome = &channel.handshake.welcome;
		assert_int_equal(raw_write_imm(&channel, welcome->buffer, welcome->rkey, 64), 0);
		assert_soon(donor_fixture_info(&f)->unload_refused == i + 1);
		raw_close(&channel);
	}
	raw_close(&a);
	assert_true(refusals > 0);
	assert_true(refusals <=
		    ((weir_now_ns() - start_ns) / WEIR_RATE_LIMIT_NS + 1) * WEIR_RATE_LIMIT_MAX);
	donor_fixture_stop(&f);
}

static void an_unproven_qp_reaches_no_memory(void **state)
{
	struct wire_handshake_connect connect = raw_request(&key_a, 0, 0);
	struct weir_region_token token;
	struct donor_fixture f;
	struct raw_client a;
	void *addr;

	(void)state;
	donor_fixture_start(&f, NULL);
	assert_int_equal(weir_donor_region_create(f.donor, 0, 4096, &token, &addr), 0);
	/* The stranger even knows the rkey. */
	assert_int_equal(raw_connect(&a, f.info.address, &connect, sizeof(connect)), 0);
	memset(a.data, 0xee, 64);
	assert_int_not_equal(raw_write(&a, token.addr, token.rkey, 64), 0);
	assert_int_equal(*(char *)addr, 0);
	raw_close(&a);
	assert_int_equal(raw_connect(&a, f.info.address, &connect, sizeof(connect)), 0);
	assert_int_not_equal(raw_read(&a, token.addr, token.rkey, 64), 0);
	raw_close(&a);
	/* After the proof the access succeeds. */
	assert_int_equal(raw_open(&a, f.info.address, &key_a), 0);
	memset(a.data, 0xee, 64);
	assert_int_equal(raw_write(&a, token.addr, token.rkey, 64), 0);
	assert_int_equal(*(unsigned char *)addr, 0xee);
	raw_close(&a);
	donor_fixture_stop(&f);
}

static void further_channels_want_the_session_and_its_key(void **state)
{
	struct raw_client first, second, third;
	struct donor_fixture f;
	uint64_t session;

	(void)state;
	donor_fixture_start(&f, NULL);
	assert_int_equal(raw_open(&first, f.info.address, &key_a), 0);
	session = first.handshake.welcome.session_id;
	assert_int_equal(raw_open_channel(&second, f.info.address, &key_a, session, 1), 0);
	assert_int_equal(second.handshake.welcome.session_id, session);
	assert_int_equal(raw_open_channel(&third, f.info.address, &key_a, session + 1, 1), -ESTALE);
	raw_close(&third);
	assert_int_equal(raw_open_channel(&third, f.info.address, &key_b, session, 2), -ESTALE);
	raw_close(&third);
	assert_int_equal(donor_fixture_info(&f)->clients, 1);
	/* A channel may come and go; without the first channel the session ends. */
	raw_close(&second);
	assert_soon(!raw_open_channel(&second, f.info.address, &key_a, session, 1) ||
		    (raw_close(&second), false));
	raw_close(&first);
	assert_true(raw_is_cut_off(&second, SOON_MS));
	raw_close(&second);
	assert_soon(donor_fixture_info(&f)->clients == 0);
	donor_fixture_stop(&f);
}

static void one_client_too_many_is_rejected(void **state)
{
	const struct weir_donor_options options = { .clients_max = 2 };
	struct raw_client a, b, c;
	struct donor_fixture f;

	(void)state;
	donor_fixture_start(&f, &options);
	assert_int_equal(raw_open(&a, f.info.address, &key_a), 0);
	assert_int_equal(raw_open(&b, f.info.address, &key_a), 0);
	assert_int_equal(raw_open(&c, f.info.address, &key_a), -ECONNREFUSED);
	assert_int_equal(c.refusal.status, EDQUOT);
	raw_close(&c);
	raw_close(&b);
	assert_soon(!raw_open(&c, f.info.address, &key_a) || (raw_close(&c), false));
	raw_close(&c);
	raw_close(&a);
	donor_fixture_stop(&f);
}

static unsigned int descriptors_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void hundreds_who_come_and_go_leave_nothing_behind(void **state)
{
	struct wire_handshake_connect connect = raw_request(&key_a, 0, 0);
	unsigned int i, before = 0, times = donor_scaled(300);
	struct donor_fixture f;
	struct raw_client a;

	(void)state;
	donor_fixture_start(&f, NULL);
	for (i = 0; i < times; i++) {
		if (i == 10)
			before = descriptors_count();
		assert_int_equal(raw_open(&a, f.info.address, &key_a), 0);
		assert_int_equal(raw_create(&a, NULL, MIB, 0, &(struct wire_control_region){ 0 }),
				 0);
		raw_close(&a);
		assert_int_equal(raw_open(&a, f.info.address, NULL), -ECONNREFUSED);
		raw_close(&a);
		assert_int_equal(raw_connect(&a, f.info.address, &connect, sizeof(connect)), 0);
		raw_close(&a);
	}
	assert_soon(donor_fixture_info(&f)->clients == 0);
	assert_int_equal(f.info.joins, times);
	assert_int_equal(f.info.lent_bytes, 0);
	assert_soon(descriptors_count() <= before + 4);
	donor_fixture_stop(&f);
}

static void opening_says_what_is_wrong(void **state)
{
	struct weir_donor_options options = { .size = sizeof(options), .listen = "127.0.0.1:0" };
	struct weir_donor *donor;
	struct weir_error error;
	struct donor_fixture f;

	(void)state;
	assert_int_equal(weir_donor_open(&options, &donor, &error), -EINVAL);
	options.memory_bytes = MIB;
	options.device = "mlx5_7";
	assert_int_equal(weir_donor_open(&options, &donor, &error), -ENODEV);
	assert_non_null(strstr(error.text, "mlx5_7"));
	options.device = NULL;
	options.listen = "127.0.0.1:99999";
	assert_int_equal(weir_donor_open(&options, &donor, &error), -EINVAL);
	donor_fixture_start(&f, NULL);
	options.listen = f.info.address;
	options.keys = f.options.keys;
	options.nr_keys = f.options.nr_keys;
	assert_int_equal(weir_donor_open(&options, &donor, &error), -EADDRINUSE);
	assert_non_null(strstr(error.text, f.info.address));
	donor_fixture_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_right_key_gets_in),
		cmocka_unit_test(an_unknown_key_is_rejected_before_a_qp_is_made),
		cmocka_unit_test(a_known_key_id_without_the_key_is_refused),
		cmocka_unit_test(without_keys_everybody_on_loopback_gets_in),
		cmocka_unit_test(without_keys_nobody_listens_beyond_loopback),
		cmocka_unit_test(with_keys_it_listens_wherever_it_is_told),
		cmocka_unit_test(what_is_no_request_of_weirs_is_rejected),
		cmocka_unit_test(garbage_instead_of_a_hello_is_refused),
		cmocka_unit_test(who_proves_nothing_is_cut_off_in_time),
		cmocka_unit_test(many_who_prove_nothing_leave_room_again_when_they_go),
		cmocka_unit_test(strangers_keep_out_neither_who_is_in_nor_other_keys),
		cmocka_unit_test(strangers_who_linger_give_way_to_newcomers),
		cmocka_unit_test(one_key_takes_no_other_keys_clients),
		cmocka_unit_test(strangers_fill_no_log),
		cmocka_unit_test(refused_writes_fill_no_log),
		cmocka_unit_test(an_unproven_qp_reaches_no_memory),
		cmocka_unit_test(further_channels_want_the_session_and_its_key),
		cmocka_unit_test(one_client_too_many_is_rejected),
		cmocka_unit_test(hundreds_who_come_and_go_leave_nothing_behind),
		cmocka_unit_test(opening_says_what_is_wrong),
	};

	return cmocka_run_group_tests_name("admission", tests, NULL, NULL);
}
