/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: donor version; suites: donor; devices: softnic rxe; timeout: 60 */
/* Ends of the present version of the protocol and of a future version meet. */
#include <weir/session.h>

#include "lib/conn/handshake.h"
#include "tests/support/donor_fixture.h"

#define NEXT (WIRE_VERSION + 1)
#define NR(list) (sizeof(list) / sizeof((list)[0]))

static struct donor_fixture f;

static void start_donor(uint16_t min, uint16_t max)
{
	weir_handshake_versions = (struct wire_handshake_versions){ min, max };
	donor_fixture_start(&f, NULL);
}

static int open_session(uint16_t min, uint16_t max, struct weir_error *error)
{
	const struct weir_session_options options = { .size = sizeof(options), .key = &key_a };
	struct weir_session *session;
	int rc;

	weir_handshake_versions = (struct wire_handshake_versions){ min, max };
	rc = weir_session_open(f.info.address, &options, &session, error);
	if (!rc)
		weir_session_close(session);
	return rc;
}

static void ends_meet_if_they_have_a_version_in_common(void **state)
{
	static const struct {
		uint16_t donor[2], client[2];
		int rc;
	} cases[] = {
		{ { WIRE_VERSION, WIRE_VERSION }, { WIRE_VERSION, WIRE_VERSION }, 0 },
		{ { WIRE_VERSION, WIRE_VERSION }, { WIRE_VERSION, NEXT }, 0 },
		{ { WIRE_VERSION, NEXT }, { WIRE_VERSION, WIRE_VERSION }, 0 },
		{ { WIRE_VERSION, NEXT }, { WIRE_VERSION, NEXT }, 0 },
		{ { NEXT, NEXT }, { WIRE_VERSION, NEXT }, 0 },
		{ { NEXT, NEXT }, { WIRE_VERSION, WIRE_VERSION }, -EPROTONOSUPPORT },
		{ { WIRE_VERSION, WIRE_VERSION }, { NEXT, NEXT }, -EPROTONOSUPPORT },
	};
	struct weir_error error = { "" };

	(void)state;
	for (size_t i = 0; i < NR(cases); i++) {
		start_donor(cases[i].donor[0], cases[i].donor[1]);
		assert_int_equal(open_session(cases[i].client[0], cases[i].client[1], &error),
				 cases[i].rc);
		if (cases[i].rc)
			assert_non_null(strstr(error.text, "upgrade the older one"));
		donor_fixture_stop(&f);
	}
}

/* A donor rejects other versions with the newest of its own. */
static void a_donor_says_what_it_speaks(void **state)
{
	struct wire_handshake_connect connect = raw_request(&key_a, 0, 0);
	struct raw_client raw;

	(void)state;
	start_donor(WIRE_VERSION, NEXT);
	connect.version = NEXT;
	assert_int_equal(raw_connect(&raw, f.info.address, &connect, sizeof(connect)), 0);
	raw_close(&raw);
	connect.version = WIRE_VERSION - 1;
	assert_int_equal(raw_connect(&raw, f.info.address, &connect, sizeof(connect)),
			 -ECONNREFUSED);
	assert_int_equal(raw.refusal.status, EPROTONOSUPPORT);
	assert_int_equal(raw.refusal.head.version, NEXT);
	raw_close(&raw);
	/* Another reason comes in the version of the request, for an old client to read. */
	connect.version = WIRE_VERSION;
	connect.key_id++;
	assert_int_equal(raw_connect(&raw, f.info.address, &connect, sizeof(connect)),
			 -ECONNREFUSED);
	assert_int_equal(raw.refusal.status, EKEYREJECTED);
	assert_int_equal(raw.refusal.head.version, WIRE_VERSION);
	raw_close(&raw);
	donor_fixture_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_meet_if_they_have_a_version_in_common),
		cmocka_unit_test(a_donor_says_what_it_speaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
