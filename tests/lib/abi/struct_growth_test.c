/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib struct growth; devices: softnic; timeout: 60 */
/* Programs of older and newer headers, made by other sizes than the library's own. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <weir/weir.h>

/* A struct without padding at its end: the next field starts where an older program's ends. */
#define ENDS_WITH(type, field)                                                             \
	_Static_assert(offsetof(struct type, field) + sizeof(((struct type *)0)->field) == \
			       sizeof(struct type),                                        \
		       #type " has padding at its end")

ENDS_WITH(weir_session_options, donor_identity);
ENDS_WITH(weir_session_tuning, weight);
ENDS_WITH(weir_session_info, down_status);
ENDS_WITH(weir_donor_state, regions);
ENDS_WITH(weir_region_entry, flags);
ENDS_WITH(weir_donor_options, identity);
ENDS_WITH(weir_donor_info, limit_bytes);
ENDS_WITH(weir_exchange_options, peer_identity);
ENDS_WITH(weir_exchange_info, sleeps);
ENDS_WITH(weir_mux_options, peer_identity);
ENDS_WITH(weir_mux_class, pass_bytes_max);
ENDS_WITH(weir_mux_conn_options, ring_bytes);
ENDS_WITH(weir_mux_info, ahead_bytes_max);

static struct weir_mux *mux;

static int open_session(const void *options, struct weir_error *error)
{
	struct weir_session *session;

	return weir_session_open("127.0.0.1:1", options, &session, error);
}

static int open_tuned(const void *options, struct weir_error *error)
{
	const struct weir_session_options tuned = { .size = sizeof(tuned), .tuning = options };

	return open_session(&tuned, error);
}

static int open_donor(const void *options, struct weir_error *error)
{
	struct weir_donor *donor;

	return weir_donor_open(options, &donor, error);
}

static int listen_exchange(const void *options, struct weir_error *error)
{
	struct weir_exchange_listener *listener;

	return weir_exchange_listen("127.0.0.1:99999", options, &listener, error);
}

static int connect_exchange(const void *options, struct weir_error *error)
{
	struct weir_exchange *x;

	return weir_exchange_connect("127.0.0.1:1", options, &x, error);
}

static int join_group(const void *options, struct weir_error *error)
{
	struct weir_group *group;

	return weir_group_join("127.0.0.1:1", NULL, 0, 2, options, &group, error);
}

static int open_mux(const void *options, struct weir_error *error)
{
	struct weir_mux *opened = NULL;
	int rc = weir_mux_open(options, &opened, error);

	if (!rc)
		weir_mux_close(opened);
	return rc;
}

static int open_classes(const void *class, struct weir_error *error)
{
	const struct weir_mux_options options = { .size = sizeof(options),
						  .classes = class,
						  .nr_classes = 1 };

	return open_mux(&options, error);
}

static int connect_mux(const void *options, struct weir_error *error)
{
	struct weir_mux_conn *conn;

	return weir_mux_connect(mux, "127.0.0.1:1", 5, options, &conn, error);
}

/* Calls whose options are all zero but the size; some fail later, on purpose. */
static const struct growth_case {
	const char *tag;
	size_t size;
	int (*call)(const void *options, struct weir_error *error);
} cases[] = {
	{ "weir_session_options", sizeof(struct weir_session_options), open_session },
	{ "weir_session_tuning", sizeof(struct weir_session_tuning), open_tuned },
	{ "weir_donor_options", sizeof(struct weir_donor_options), open_donor },
	{ "weir_exchange_options", sizeof(struct weir_exchange_options), listen_exchange },
	{ "weir_exchange_options", sizeof(struct weir_exchange_options), connect_exchange },
	{ "weir_exchange_options", sizeof(struct weir_exchange_options), join_group },
	{ "weir_mux_options", sizeof(struct weir_mux_options), open_mux },
	{ "weir_mux_class", sizeof(struct weir_mux_class), open_classes },
	{ "weir_mux_conn_options", sizeof(struct weir_mux_conn_options), connect_mux },
};

/* Memory of a program that sets @size, and in which everything from @from on is not zero. */
static int call_with(const struct growth_case *c, size_t size, size_t from,
		     struct weir_error *error)
{
	_Alignas(16) unsigned char memory[1024] = { 0 };

	memset(memory + from, 0xa5, sizeof(memory) - from);
	memcpy(memory, &size, sizeof(size));
	error->text[0] = '\0';
	return c->call(memory, error);
}

static void options_of_other_versions(void **state)
{
	const struct growth_case *c;
	struct weir_error error, plain;
	int rc;

	(void)state;
	for (c = cases; c < cases + sizeof(cases) / sizeof(cases[0]); c++) {
		rc = call_with(c, c->size, c->size, &plain);
		/* older: only the first field */
		assert_int_equal(call_with(c, 16, 16, &error), rc);
		assert_string_equal(error.text, plain.text);
		/* newer, and leaves the new fields alone */
		assert_int_equal(call_with(c, c->size + 24, c->size + 24, &error), rc);
		assert_string_equal(error.text, plain.text);
		/* newer, and sets one */
		assert_int_equal(call_with(c, c->size + 24, c->size + 23, &error), -E2BIG);
		assert_non_null(strstr(error.text, c->tag));
		/* without a size */
		assert_int_equal(call_with(c, 0, c->size, &error), -EINVAL);
		assert_non_null(strstr(error.text, c->tag));
		assert_non_null(strstr(error.text, ".size = sizeof"));
	}
}

static void information_of_other_versions(void **state)
{
	struct {
		struct weir_mux_info info;
		uint64_t beyond;
	} newer = { .beyond = 7 };
	struct weir_mux_info older;

	(void)state;
	memset(&older, 0xa5, sizeof(older));
	assert_int_equal(weir_mux_info(mux, &older, offsetof(struct weir_mux_info, credits)), 0);
	assert_int_equal(older.size, offsetof(struct weir_mux_info, credits));
	assert_string_equal(older.address, "");
	assert_int_equal(older.credits, 0xa5a5a5a5a5a5a5a5);
	assert_int_equal(weir_mux_info(mux, &newer.info, sizeof(newer)), 0);
	assert_int_equal(newer.info.size, sizeof(newer.info));
	assert_int_equal(newer.beyond, 7);
	assert_int_equal(weir_mux_info(mux, &older, sizeof(older.size)), -EINVAL);
}

static int setup(void **state)
{
	(void)state;
	return weir_mux_open(NULL, &mux, NULL);
}

static int teardown(void **state)
{
	(void)state;
	weir_mux_close(mux);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_of_other_versions),
		cmocka_unit_test(information_of_other_versions),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
