/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/lib/pool/store_suite.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"

#define TTL_MS 4000
#define PATIENCE_MS 60000
#define TRIES 30 /* at a store that a busy machine keeps from answering */
#define WRITERS 4
#define ADDITIONS 25

static store_suite_place_fn *place;

struct weir_pool_store *store_suite_open(const char *where)
{
	struct weir_pool_store *store;
	struct weir_error error;

	if (weir_pool_store_open(where, &store, &error))
		fail_msg("%s", error.text);
	return store;
}

uint64_t store_suite_put(struct weir_pool_store *store, const char *key, const char *value)
{
	struct weir_pool_put put = { key, value, WEIR_POOL_ANY_VERSION, 0, NULL, 0 };
	struct weir_error error;
	uint64_t version;
	int rc = -EHOSTUNREACH;

	for (int i = 0; i < TRIES && rc == -EHOSTUNREACH; i++)
		rc = weir_pool_store_put(store, &put, &version, &error);
	if (rc)
		fail_msg("%s", error.text);
	return version;
}

char *store_suite_get(struct weir_pool_store *store, const char *key)
{
	struct weir_pool_listing listing;
	const struct weir_pool_key *found;
	struct weir_error error;
	char *value;
	int rc = -EHOSTUNREACH;

	for (int i = 0; i < TRIES && rc == -EHOSTUNREACH; i++)
		rc = weir_pool_store_list(store, key, &listing, &error);
	if (rc)
		fail_msg("%s", error.text);
	found = weir_pool_listing_find(&listing, key);
	value = found ? strdup(found->value) : NULL;
	weir_pool_listing_free(&listing);
	return value;
}

static void assert_value(struct weir_pool_store *store, const char *key, const char *expected)
{
	char *value = store_suite_get(store, key);

	if (expected)
		assert_string_equal(value, expected);
	else
		assert_null(value);
	free(value);
}

static uint64_t revision_of(struct weir_pool_store *store)
{
	struct weir_pool_listing listing;
	uint64_t revision;

	assert_int_equal(weir_pool_store_list(store, "", &listing, NULL), 0);
	revision = listing.revision;
	weir_pool_listing_free(&listing);
	return revision;
}

static void an_empty_pool_has_no_keys(void **state)
{
	struct weir_pool_store *store = store_suite_open(place());
	struct weir_pool_listing listing;

	(void)state;
	assert_int_equal(weir_pool_store_list(store, "", &listing, NULL), 0);
	assert_int_equal(listing.count, 0);
	weir_pool_listing_free(&listing);
	weir_pool_store_close(store);
}

static void a_put_wants_the_version_as_read(void **state)
{
	struct weir_pool_store *store = store_suite_open(place());
	struct weir_pool_put put = { .key = "group/1", .value = "one" };
	struct weir_error error;
	uint64_t first, second, version = 77;

	(void)state;
	assert_int_equal(weir_pool_store_put(store, &put, &first, NULL), 0);
	put.value = "again";
	assert_int_equal(weir_pool_store_put(store, &put, &version, &error), -EAGAIN);
	assert_non_null(strstr(error.text, "group/1"));
	assert_int_equal(version, 77);
	assert_value(store, "group/1", "one");
	put.expected = first;
	assert_int_equal(weir_pool_store_put(store, &put, &second, NULL), 0);
	assert_true(second > first);
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), -EAGAIN);
	assert_value(store, "group/1", "again");
	put.value = NULL;
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), -EAGAIN);
	put.expected = second;
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), 0);
	assert_value(store, "group/1", NULL);
	weir_pool_store_close(store);
}

static void a_guard_must_be_as_read_too(void **state)
{
	struct weir_pool_store *store = store_suite_open(place());
	uint64_t leader = store_suite_put(store, "leader", "a");
	struct weir_pool_put put = { "group/1", "one", 0, 0, "leader", leader };

	(void)state;
	put.guard_version++;
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), -EAGAIN);
	assert_value(store, "group/1", NULL);
	put.guard_version = leader;
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), 0);
	assert_value(store, "group/1", "one");
	store_suite_put(store, "leader", "b");
	put.key = "group/2";
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), -EAGAIN);
	weir_pool_store_close(store);
}

static void keys_are_listed_by_prefix_in_order(void **state)
{
	static const char *const keys[] = { "group/2", "donor/b", "group/10", "donor/a", "groups" };
	struct weir_pool_store *store = store_suite_open(place());
	struct weir_pool_listing listing;
	uint64_t versions[5];

	(void)state;
	for (size_t i = 0; i < 5; i++)
		versions[i] = store_suite_put(store, keys[i], keys[i]);
	assert_int_equal(weir_pool_store_list(store, "group/", &listing, NULL), 0);
	assert_int_equal(listing.count, 2);
	assert_string_equal(listing.keys[0].key, "group/10");
	assert_string_equal(listing.keys[1].key, "group/2");
	assert_string_equal(listing.keys[1].value, "group/2");
	assert_int_equal(listing.keys[1].version, versions[0]);
	assert_int_equal(listing.revision, versions[4]);
	weir_pool_listing_free(&listing);
	assert_int_equal(weir_pool_store_list(store, "", &listing, NULL), 0);
	assert_int_equal(listing.count, 5);
	assert_non_null(weir_pool_listing_find(&listing, "donor/b"));
	assert_null(weir_pool_listing_find(&listing, "donor/c"));
	weir_pool_listing_free(&listing);
	weir_pool_store_close(store);
}

static void any_text_can_be_a_value(void **state)
{
	struct weir_pool_store *store = store_suite_open(place());
	char *text = malloc(20001), sign;

	(void)state;
	for (size_t i = 0; i < 20000; i++) {
		sign = (char)(' ' + i % 95);
		text[i] = i % 97 ? sign : '\n';
	}
	text[20000] = 0;
	store_suite_put(store, "long", text);
	assert_value(store, "long", text);
	store_suite_put(store, "quoted", "{\"a\": \"b/\\\\\"}");
	assert_value(store, "quoted", "{\"a\": \"b/\\\\\"}");
	free(text);
	weir_pool_store_close(store);
}

static void pools_do_not_see_each_other(void **state)
{
	struct weir_pool_store *a = store_suite_open(place()), *b = store_suite_open(place());

	(void)state;
	store_suite_put(a, "donor/x", "of a");
	assert_value(b, "donor/x", NULL);
	store_suite_put(b, "donor/x", "of b");
	assert_value(a, "donor/x", "of a");
	weir_pool_store_close(a);
	weir_pool_store_close(b);
}

/* Waits until the key is gone. */
static void wait_until_gone(struct weir_pool_store *store, const char *key)
{
	uint64_t until_ns = weir_now_ns() + PATIENCE_MS * WEIR_NS_PER_MS;
	char *value;

	while ((value = store_suite_get(store, key))) {
		free(value);
		assert_true(weir_now_ns() < until_ns);
		(void)weir_pool_store_wait(store, revision_of(store), 500, NULL);
	}
}

static void a_key_ends_with_its_lease(void **state)
{
	struct weir_pool_store *store = store_suite_open(place());
	struct weir_pool_put put = { .key = "donor/a", .value = "x" };
	uint64_t lease;

	(void)state;
	assert_int_equal(weir_pool_store_grant(store, TTL_MS, &put.lease, NULL), 0);
	lease = put.lease;
	assert_int_not_equal(lease, 0);
	store_suite_put(store, "stays", "y");
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), 0);
	assert_value(store, "donor/a", "x");
	wait_until_gone(store, "donor/a");
	assert_value(store, "stays", "y");
	assert_int_equal(weir_pool_store_keep(store, lease, NULL), -ESTALE);
	assert_int_equal(weir_pool_store_revoke(store, lease, NULL), -ESTALE);
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), -ESTALE);
	weir_pool_store_close(store);
}

static void a_lease_that_is_kept_lasts(void **state)
{
	struct weir_pool_store *store = store_suite_open(place());
	struct weir_pool_put put = { .key = "donor/a", .value = "x" };
	uint64_t until_ns;

	(void)state;
	/* Long enough that a busy machine does not miss a third of it. */
	assert_int_equal(weir_pool_store_grant(store, 10 * TTL_MS, &put.lease, NULL), 0);
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), 0);
	until_ns = weir_now_ns() + 300 * WEIR_NS_PER_MS;
	while (weir_now_ns() < until_ns)
		assert_int_equal(weir_pool_store_keep(store, put.lease, NULL), 0);
	assert_value(store, "donor/a", "x");
	assert_int_equal(weir_pool_store_revoke(store, put.lease, NULL), 0);
	assert_value(store, "donor/a", NULL);
	weir_pool_store_close(store);
}

static void a_key_belongs_to_the_lease_of_its_last_put(void **state)
{
	struct weir_pool_store *store = store_suite_open(place());
	struct weir_pool_put put = { .key = "leader", .value = "a",
				     .expected = WEIR_POOL_ANY_VERSION };
	uint64_t first;

	(void)state;
	assert_int_equal(weir_pool_store_grant(store, 10 * TTL_MS, &first, NULL), 0);
	put.lease = first;
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), 0);
	assert_int_equal(weir_pool_store_grant(store, 10 * TTL_MS, &put.lease, NULL), 0);
	put.value = "b";
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), 0);
	assert_int_equal(weir_pool_store_revoke(store, first, NULL), 0);
	assert_value(store, "leader", "b");
	assert_int_equal(weir_pool_store_revoke(store, put.lease, NULL), 0);
	assert_value(store, "leader", NULL);
	weir_pool_store_close(store);
}

static void a_wait_ends_with_a_change_or_its_time(void **state)
{
	struct weir_pool_store *store = store_suite_open(place());
	uint64_t before = revision_of(store), after;

	(void)state;
	assert_int_equal(weir_pool_store_wait(store, before, 50, NULL), -ETIMEDOUT);
	after = store_suite_put(store, "a", "1");
	assert_int_equal(weir_pool_store_wait(store, before, PATIENCE_MS, NULL), 0);
	assert_int_equal(weir_pool_store_wait(store, after, 50, NULL), -ETIMEDOUT);
	weir_pool_store_close(store);
}

static void *put_later(void *arg)
{
	struct weir_pool_store *store = store_suite_open(arg);

	usleep(100000);
	store_suite_put(store, "a", "1");
	weir_pool_store_close(store);
	return NULL;
}

static void a_change_by_another_wakes_a_waiter(void **state)
{
	const char *where = place();
	struct weir_pool_store *store = store_suite_open(where);
	uint64_t begun_ns, before;
	pthread_t thread;

	(void)state;
	before = revision_of(store);
	begun_ns = weir_now_ns();
	assert_int_equal(pthread_create(&thread, NULL, put_later, (void *)where), 0);
	assert_int_equal(weir_pool_store_wait(store, before, PATIENCE_MS, NULL), 0);
	assert_true(weir_now_ns() - begun_ns < PATIENCE_MS * WEIR_NS_PER_MS / 2);
	pthread_join(thread, NULL);
	assert_value(store, "a", "1");
	weir_pool_store_close(store);
}

static void the_end_of_a_lease_wakes_a_waiter(void **state)
{
	struct weir_pool_store *store = store_suite_open(place());
	struct weir_pool_put put = { .key = "donor/a", .value = "x" };
	uint64_t version;

	(void)state;
	assert_int_equal(weir_pool_store_grant(store, TTL_MS, &put.lease, NULL), 0);
	assert_int_equal(weir_pool_store_put(store, &put, &version, NULL), 0);
	assert_int_equal(weir_pool_store_wait(store, version, PATIENCE_MS, NULL), 0);
	assert_value(store, "donor/a", NULL);
	weir_pool_store_close(store);
}

/* Adds 1 to a counter, as often as told, beside other processes that do so. */
static int add_by_compare_and_set(const char *where)
{
	struct weir_pool_store *store;
	unsigned int done = 0;

	if (weir_pool_store_open(where, &store, NULL))
		return 1;
	while (done < ADDITIONS) {
		struct weir_pool_listing listing;
		struct weir_pool_put put = { .key = "counter" };
		char text[16];
		int rc;

		if (weir_pool_store_list(store, "counter", &listing, NULL))
			continue;
		if (listing.count != 1)
			return 1;
		snprintf(text, sizeof(text), "%d", atoi(listing.keys[0].value) + 1);
		put.value = text;
		put.expected = listing.keys[0].version;
		rc = weir_pool_store_put(store, &put, NULL, NULL);
		weir_pool_listing_free(&listing);
		if (rc && rc != -EAGAIN)
			return 1;
		done += !rc;
	}
	weir_pool_store_close(store);
	return 0;
}

static void no_change_of_several_processes_is_lost(void **state)
{
	const char *where = place();
	struct weir_pool_store *store = store_suite_open(where);
	char expected[16];
	int status;

	(void)state;
	store_suite_put(store, "counter", "0");
	for (int i = 0; i < WRITERS; i++) {
		if (!fork())
			_exit(add_by_compare_and_set(where));
	}
	for (int i = 0; i < WRITERS; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	snprintf(expected, sizeof(expected), "%d", WRITERS * ADDITIONS);
	assert_value(store, "counter", expected);
	weir_pool_store_close(store);
}

int store_suite_run(store_suite_place_fn *fresh_place)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_pool_has_no_keys),
		cmocka_unit_test(a_put_wants_the_version_as_read),
		cmocka_unit_test(a_guard_must_be_as_read_too),
		cmocka_unit_test(keys_are_listed_by_prefix_in_order),
		cmocka_unit_test(any_text_can_be_a_value),
		cmocka_unit_test(pools_do_not_see_each_other),
		cmocka_unit_test(a_key_ends_with_its_lease),
		cmocka_unit_test(a_lease_that_is_kept_lasts),
		cmocka_unit_test(a_key_belongs_to_the_lease_of_its_last_put),
		cmocka_unit_test(a_wait_ends_with_a_change_or_its_time),
		cmocka_unit_test(a_change_by_another_wakes_a_waiter),
		cmocka_unit_test(the_end_of_a_lease_wakes_a_waiter),
		cmocka_unit_test(no_change_of_several_processes_is_lost),
	};

	place = fresh_place;
	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
