/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: donor keys; suites: donor; devices: softnic rxe; timeout: 120 */
/* Keys that a donor gets, loses and changes while it runs; rights and quotas of each. */
#include <stdatomic.h>

#include <weir/session.h>
#include "lib/conn/handshake.h"
#include "lib/conn/identity.h"
#include "lib/donor/donor.h"
#include "tests/support/donor_fixture.h"

#define TENANTS 4
#define NR(list) (sizeof(list) / sizeof((list)[0]))

static const struct weir_key key_c = { .length = 16, .bytes = "cccccccccccccccc" };

static struct donor_fixture f;
static atomic_uint ended; /* a bit for each tenant that has ended */

static void note_end(void *arg, unsigned int tenant)
{
	(void)arg;
	atomic_fetch_or(&ended, 1u << tenant);
}

static int setup(void **state)
{
	const struct weir_donor_options options = { .size = sizeof(options),
						    .tenants_max = TENANTS,
						    .on_tenant_end = note_end };

	(void)state;
	ended = 0;
	donor_fixture_start(&f, &options);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	donor_fixture_stop(&f);
	return 0;
}

static void set_keys(const struct weir_donor_key *keys, unsigned int nr)
{
	struct weir_error error = { 0 };

	if (weir_donor_keys_set(f.donor, keys, nr, &error))
		fail_msg("%s", error.text);
}

static int open_as(struct raw_client *raw, const struct weir_key *key)
{
	return raw_open(raw, f.info.address, key);
}

/* Whether the session still answers. */
static bool answers(struct raw_client *raw)
{
	const struct wire_control_request info = { .op = WIRE_DONOR_INFO };
	char body[WIRE_CONTROL_BODY_MAX];
	size_t length;

	return !raw_call(raw, info, NULL, body, &length);
}

static void a_key_gets_in_from_when_it_is_added(void **state)
{
	const struct weir_donor_key keys[] = { { &key_a, 0 }, { &key_b, 1 }, { &key_c, 2 } };
	struct raw_client a, c;

	(void)state;
	assert_int_equal(open_as(&a, &key_a), 0);
	assert_int_equal(open_as(&c, &key_c), -ECONNREFUSED);
	assert_int_equal(c.refusal.status, EKEYREJECTED);
	raw_close(&c);
	set_keys(keys, NR(keys));
	assert_int_equal(open_as(&c, &key_c), 0);
	assert_true(answers(&a));
	raw_close(&a);
	raw_close(&c);
}

static void a_revoked_key_loses_its_sessions_and_nobody_else_does(void **state)
{
	const struct weir_donor_key keys[] = { { &key_b, 1 } };
	struct wire_control_region region;
	struct raw_client a, a2, b;

	(void)state;
	assert_int_equal(open_as(&a, &key_a), 0);
	assert_int_equal(open_as(&a2, &key_a), 0);
	assert_int_equal(open_as(&b, &key_b), 0);
	assert_int_equal(raw_create(&a, NULL, MIB, 0, &region), 0);
	set_keys(keys, NR(keys));
	assert_true(raw_is_cut_off(&a, SOON_MS));
	assert_true(raw_is_cut_off(&a2, SOON_MS));
	assert_true(answers(&b));
	assert_soon(!donor_fixture_info(&f)->lent_bytes);
	raw_close(&a);
	assert_int_equal(open_as(&a, &key_a), -ECONNREFUSED);
	raw_close(&a);
	raw_close(&a2);
	raw_close(&b);
}

static void an_unproven_connection_ends_with_its_key(void **state)
{
	struct wire_handshake_connect connect = raw_request(&key_a, 0, 0);
	const struct weir_donor_key keys[] = { { &key_b, 1 } };
	struct raw_client a;

	(void)state;
	assert_int_equal(raw_connect(&a, f.info.address, &connect, sizeof(connect)), 0);
	set_keys(keys, NR(keys));
	assert_true(raw_is_cut_off(&a, SOON_MS));
	raw_close(&a);
	assert_int_equal(donor_fixture_info(&f)->clients, 0);
}

static void a_new_key_opens_what_the_old_key_made(void **state)
{
	const struct weir_donor_key both[] = { { &key_a, 0 }, { &key_c, 0 } };
	struct wire_control_region made, seen;
	struct raw_client old, new;

	(void)state;
	assert_int_equal(open_as(&old, &key_a), 0);
	assert_int_equal(raw_create(&old, "kept", MIB, 0, &made), 0);
	memset(old.data, 0x42, 64);
	assert_int_equal(raw_write(&old, made.addr, made.rkey, 64), 0);
	set_keys(both, 2);
	assert_int_equal(open_as(&new, &key_c), 0);
	assert_true(answers(&old));
	set_keys(&both[1], 1);
	assert_true(raw_is_cut_off(&old, SOON_MS));
	assert_int_equal(raw_region_open(&new, "kept", 0, &seen), 0);
	assert_int_equal(raw_read(&new, seen.addr, seen.rkey, 64), 0);
	assert_int_equal(new.data[63], 0x42);
	assert_int_equal(ended & 1, 0);
	raw_close(&old);
	raw_close(&new);
}

static void a_tenant_ends_with_its_last_key(void **state)
{
	const struct weir_donor_key keys[] = { { &key_b, 1 }, { &key_a, 0 } };
	struct wire_control_region region;
	struct raw_client a;

	(void)state;
	assert_int_equal(open_as(&a, &key_a), 0);
	assert_int_equal(raw_create(&a, "secret", MIB, 0, &region), 0);
	memset(a.data, 0x42, 64);
	assert_int_equal(raw_write(&a, region.addr, region.rkey, 64), 0);
	set_keys(keys, 1);
	assert_true(raw_is_cut_off(&a, SOON_MS));
	raw_close(&a);
	assert_soon(ended == 1);
	assert_soon(!donor_fixture_info(&f)->lent_bytes);
	set_keys(keys, 2);
	assert_int_equal(open_as(&a, &key_a), 0);
	assert_int_equal(raw_region_open(&a, "secret", 0, &region), -ENOENT);
	assert_int_equal(raw_create(&a, NULL, 8 * MIB, 0, &region), 0);
	for (unsigned int at = 0; at < 8; at++) {
		assert_int_equal(raw_read(&a, region.addr + at * MIB, region.rkey, MIB), 0);
		for (unsigned int i = 0; i < MIB; i += 64)
			assert_int_equal(a.data[i], 0);
	}
	raw_close(&a);
}

static void a_key_that_may_only_read_reaches_nothing_to_write(void **state)
{
	const struct weir_donor_key keys[] = {
		{ &key_a, 0 }, { &key_c, 0, WEIR_RIGHT_READ | WEIR_RIGHT_REGIONS }
	};
	struct wire_control_region made, seen, none;
	struct raw_client a, c, unload;

	(void)state;
	set_keys(keys, NR(keys));
	assert_int_equal(open_as(&a, &key_a), 0);
	assert_int_equal(raw_create(&a, "r", MIB, 0, &made), 0);
	assert_int_equal(open_as(&c, &key_c), 0);
	assert_int_equal(raw_create(&c, NULL, MIB, 0, &none), -EACCES);
	assert_int_equal(raw_create(&c, "other", MIB, 0, &none), -EACCES);
	assert_int_equal(raw_region_open(&c, "r", 0, &none), -EACCES);
	assert_int_equal(raw_region_open_fenced(&c, "r", 1, &none), -EACCES);
	assert_int_equal(raw_region_delete(&c, "r"), -EACCES);
	assert_int_equal(raw_region_open(&c, "r", WIRE_REGION_READ_ONLY, &seen), 0);
	assert_int_equal(raw_read(&c, seen.addr, seen.rkey, 64), 0);
	/* WIRE_CHANNEL_UNLOAD lets the donor's CPU write */
	assert_int_equal(raw_open_channel(&unload, f.info.address, &key_c,
					  c.handshake.welcome.session_id, WIRE_CHANNEL_UNLOAD),
			 -EKEYREJECTED);
	raw_close(&unload);
	assert_int_equal(raw_write(&c, made.addr, made.rkey, 64), -EACCES);
	raw_close(&c);
	assert_int_equal(open_as(&c, &key_c), 0);
	assert_int_equal(raw_region_open(&c, "r", WIRE_REGION_READ_ONLY, &seen), 0);
	assert_int_equal(raw_write(&c, seen.addr, seen.rkey, 64), -EACCES);
	raw_close(&c);
	assert_true(answers(&a));
	raw_close(&a);
}

static void a_key_without_names_sees_none(void **state)
{
	const struct weir_donor_key keys[] = { { &key_a, 0 },
					       { &key_c, 0, WEIR_RIGHT_READ | WEIR_RIGHT_WRITE } };
	const struct wire_control_request list = { .op = WIRE_REGION_LIST };
	char body[WIRE_CONTROL_BODY_MAX];
	struct wire_control_region region;
	struct raw_client c;
	size_t length;

	(void)state;
	set_keys(keys, NR(keys));
	assert_int_equal(open_as(&c, &key_c), 0);
	assert_int_equal(raw_create(&c, NULL, MIB, 0, &region), 0);
	assert_int_equal(raw_create(&c, "x", MIB, 0, &region), -EACCES);
	assert_int_equal(raw_call(&c, list, NULL, body, &length), -EACCES);
	raw_close(&c);
}

static void only_an_admin_deletes_what_others_made(void **state)
{
	const unsigned int user = WEIR_RIGHTS_ALL & ~WEIR_RIGHT_ADMIN;
	const struct weir_donor_key keys[] = { { &key_a, 0, user }, { &key_c, 0 } };
	struct wire_control_region region;
	struct raw_client a, a2, c;

	(void)state;
	set_keys(keys, NR(keys));
	assert_int_equal(open_as(&a, &key_a), 0);
	assert_int_equal(open_as(&a2, &key_a), 0);
	assert_int_equal(open_as(&c, &key_c), 0);
	assert_int_equal(raw_create(&a, "mine", MIB, 0, &region), 0);
	assert_int_equal(raw_create(&a, "too", MIB, 0, &region), 0);
	assert_int_equal(raw_region_delete(&a2, "mine"), -EACCES);
	assert_int_equal(raw_region_delete(&a, "mine"), 0);
	assert_int_equal(raw_region_delete(&c, "too"), 0);
	raw_close(&a);
	raw_close(&a2);
	raw_close(&c);
}

#define VOLUME "p1f.2.0.3" /* of the first extent of a volume: lib/volume/region_name.h */
#define RIGHTS_CLIENT (WEIR_RIGHT_READ | WEIR_RIGHT_WRITE | WEIR_RIGHT_REGIONS)

static void a_pools_key_deletes_memory_of_volumes_and_nothing_else(void **state)
{
	const struct weir_donor_key keys[] = { { &key_a, 0, RIGHTS_CLIENT },
					       { &key_c, 0, RIGHTS_CLIENT | WEIR_RIGHT_POOL } };
	struct wire_control_region region;
	struct raw_client a, a2, c;

	(void)state;
	set_keys(keys, NR(keys));
	assert_int_equal(open_as(&a, &key_a), 0);
	assert_int_equal(open_as(&a2, &key_a), 0);
	assert_int_equal(open_as(&c, &key_c), 0);
	assert_int_equal(raw_create(&a, VOLUME, MIB, 0, &region), 0);
	assert_int_equal(raw_create(&a, VOLUME "x", MIB, 0, &region), 0);
	assert_int_equal(raw_region_delete(&a2, VOLUME), -EACCES);
	assert_int_equal(raw_region_delete(&c, VOLUME "x"), -EACCES);
	assert_int_equal(raw_region_delete(&c, VOLUME), 0);
	raw_close(&a);
	raw_close(&a2);
	raw_close(&c);
}

static void volumes_of_a_pool_are_those_of_its_tenant(void **state)
{
	const struct weir_donor_key keys[] = { { &key_a, 0, RIGHTS_CLIENT | WEIR_RIGHT_POOL },
					       { &key_b, 1, WEIR_RIGHTS_ALL },
					       { &key_c, 0, RIGHTS_CLIENT } };
	struct wire_control_region region;
	struct raw_client b, c;

	(void)state;
	assert_int_equal(open_as(&b, &key_b), 0);
	assert_int_equal(raw_create(&b, VOLUME, MIB, 0, &region), 0); /* there is no pool */
	assert_int_equal(raw_region_delete(&b, VOLUME), 0);
	raw_close(&b);
	set_keys(keys, NR(keys));
	assert_int_equal(open_as(&b, &key_b), 0);
	assert_int_equal(open_as(&c, &key_c), 0);
	assert_int_equal(raw_create(&b, VOLUME, MIB, 0, &region), -EACCES);
	assert_int_equal(raw_region_open(&b, VOLUME, 0, &region), -EACCES);
	assert_int_equal(raw_region_open_fenced(&b, VOLUME, 1, &region), -EACCES);
	assert_int_equal(raw_region_delete(&b, VOLUME), -EACCES);
	assert_int_equal(raw_create(&b, "own", MIB, 0, &region), 0);
	assert_int_equal(raw_create(&c, VOLUME, MIB, 0, &region), 0);
	raw_close(&b);
	raw_close(&c);
}

static void clients_of_a_key_share_its_quota(void **state)
{
	const struct weir_donor_key keys[] = { { &key_a, 0, 0, 4 * MIB }, { &key_c, 0 } };
	struct wire_control_region region;
	struct raw_client a, a2, c;

	(void)state;
	set_keys(keys, NR(keys));
	assert_int_equal(open_as(&a, &key_a), 0);
	assert_int_equal(open_as(&a2, &key_a), 0);
	assert_int_equal(open_as(&c, &key_c), 0);
	assert_int_equal(a.handshake.welcome.quota_bytes, 4 * MIB);
	assert_int_equal(raw_create(&a, "left", 2 * MIB, 0, &region), 0);
	assert_int_equal(raw_create(&a2, NULL, 2 * MIB, 0, &region), 0);
	assert_int_equal(raw_create(&a, NULL, 2 * MIB, 0, &region), -EDQUOT);
	raw_close(&a); /* the named region stays, and counts */
	assert_soon(donor_fixture_info(&f)->clients == 2);
	assert_int_equal(raw_create(&a2, NULL, 2 * MIB, 0, &region), -EDQUOT);
	assert_int_equal(raw_create(&c, NULL, 8 * MIB, 0, &region), 0);
	assert_int_equal(raw_region_delete(&c, "left"), 0);
	assert_int_equal(raw_create(&a2, NULL, 2 * MIB, 0, &region), 0);
	raw_close(&a2);
	raw_close(&c);
}

static void changed_rights_end_the_sessions_of_before(void **state)
{
	const struct weir_donor_key keys[] = { { &key_a, 0, WEIR_RIGHT_READ }, { &key_b, 1 } };
	struct wire_control_region region;
	struct raw_client a, b;

	(void)state;
	assert_int_equal(open_as(&a, &key_a), 0);
	assert_int_equal(open_as(&b, &key_b), 0);
	set_keys(keys, NR(keys));
	assert_true(raw_is_cut_off(&a, SOON_MS));
	raw_close(&a);
	assert_int_equal(open_as(&a, &key_a), 0);
	assert_int_equal(raw_create(&a, NULL, MIB, 0, &region), -EACCES);
	set_keys(keys, NR(keys)); /* the same once more: nothing changes */
	assert_true(answers(&a) && answers(&b));
	assert_int_equal(ended, 0);
	raw_close(&a);
	raw_close(&b);
}

static void a_bad_list_changes_nothing(void **state)
{
	const struct {
		int rc;
		struct weir_donor_key keys[2];
	} cases[] = {
		{ -EEXIST, { { &key_a, 0 }, { &key_a, 1 } } },
		{ -EINVAL, { { &key_b, 0 }, { &key_a, TENANTS } } },
		{ -EINVAL, { { &key_b, 0 }, { NULL, 1 } } },
		{ -EINVAL, { { &key_b, 0 }, { &key_c, 1, WEIR_RIGHT_WRITE } } },
		{ -EINVAL, { { &key_b, 0 }, { &key_c, 1, WEIR_RIGHT_READ | WEIR_RIGHT_FILES } } },
		{ -EINVAL, { { &key_b, 0 }, { &key_c, 1, WEIR_RIGHT_READ | WEIR_RIGHT_POOL } } },
		{ -EINVAL, { { &key_b, 0 }, { &key_c, 1, 64 | WEIR_RIGHT_READ } } },
	};
	struct weir_error error;
	struct raw_client a;

	(void)state;
	assert_int_equal(open_as(&a, &key_a), 0);
	for (size_t i = 0; i < NR(cases); i++) {
		assert_int_equal(weir_donor_keys_set(f.donor, cases[i].keys, 2, &error),
				 cases[i].rc);
		assert_true(*error.text);
	}
	assert_true(answers(&a));
	raw_close(&a);
}

static void a_donor_without_keys_stays_without(void **state)
{
	struct weir_donor_options options = { .size = sizeof(options),
					      .listen = "127.0.0.1:0",
					      .memory_bytes = MIB };
	const struct weir_donor_key keys[] = { { &key_a, 0 } };
	struct weir_donor *donor;

	(void)state;
	if (!donor_is_on_loopback())
		skip();
	assert_int_equal(weir_donor_open(&options, &donor, NULL), 0);
	assert_int_equal(weir_donor_keys_set(donor, keys, 1, NULL), -EPERM);
	weir_donor_close(donor);
}

static void a_donor_may_wait_for_its_first_key(void **state)
{
	struct weir_donor_options options = { .size = sizeof(options),
					      .listen = donor_any_port(),
					      .memory_bytes = MIB,
					      .tenants_max = 1 };
	const struct weir_donor_key keys[] = { { &key_a, 0 } };
	struct donor_fixture waiting = { 0 };
	struct raw_client a;

	(void)state;
	assert_int_equal(weir_donor_open(&options, &waiting.donor, NULL), 0);
	donor_fixture_info(&waiting);
	assert_int_equal(raw_open(&a, waiting.info.address, NULL), -ECONNREFUSED);
	assert_int_equal(a.refusal.status, EKEYREJECTED);
	raw_close(&a);
	assert_int_equal(weir_donor_keys_set(waiting.donor, keys, 1, NULL), 0);
	assert_int_equal(raw_open(&a, waiting.info.address, &key_a), 0);
	raw_close(&a);
	donor_fixture_stop(&waiting);
}

static int open_session(const char *address, const unsigned char *identity,
			struct weir_error *error)
{
	const struct weir_session_options options = { .size = sizeof(options),
						      .key = &key_a,
						      .donor_identity = identity };
	struct weir_session *session;
	int rc = weir_session_open(address, &options, &session, error);

	if (!rc)
		weir_session_close(session);
	return rc;
}

/* Both donors have the key; only one has the identity. */
static void a_session_trusts_the_donor_that_it_names(void **state)
{
	static const struct weir_key *const keys[] = { &key_a };
	struct weir_identity identity = { .pair.secret = { 1, 2, 3 } };
	struct weir_donor_options options = { .size = sizeof(options),
					      .listen = donor_any_port(),
					      .keys = keys,
					      .nr_keys = 1,
					      .memory_bytes = MIB,
					      .identity = &identity };
	struct donor_fixture known = { 0 };
	struct weir_error error;
	unsigned char public[32];

	(void)state;
	weir_noise_pair_init(&identity.pair, &weir_handshake_crypto);
	weir_identity_public(&identity, public);
	assert_int_equal(weir_donor_open(&options, &known.donor, NULL), 0);
	donor_fixture_info(&known);
	assert_int_equal(open_session(known.info.address, public, &error), 0);
	assert_int_equal(open_session(known.info.address, NULL, &error), 0);
	assert_int_equal(open_session(f.info.address, NULL, &error), 0);
	assert_int_equal(open_session(f.info.address, public, &error), -EKEYREJECTED);
	assert_non_null(strstr(error.text, "another identity"));
	donor_fixture_stop(&known);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_key_gets_in_from_when_it_is_added),
		TEST(a_revoked_key_loses_its_sessions_and_nobody_else_does),
		TEST(an_unproven_connection_ends_with_its_key),
		TEST(a_new_key_opens_what_the_old_key_made),
		TEST(a_tenant_ends_with_its_last_key),
		TEST(a_key_that_may_only_read_reaches_nothing_to_write),
		TEST(a_key_without_names_sees_none),
		TEST(only_an_admin_deletes_what_others_made),
		TEST(a_pools_key_deletes_memory_of_volumes_and_nothing_else),
		TEST(volumes_of_a_pool_are_those_of_its_tenant),
		TEST(clients_of_a_key_share_its_quota),
		TEST(changed_rights_end_the_sessions_of_before),
		TEST(a_bad_list_changes_nothing),
		TEST(a_donor_without_keys_stays_without),
		TEST(a_donor_may_wait_for_its_first_key),
		TEST(a_session_trusts_the_donor_that_it_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
