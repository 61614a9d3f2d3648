/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib pool store file; suites: lib pool; timeout: 180 */
/* A pool's store in a file. */
#include "tests/lib/pool/store_suite.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLS 20

static char folder[] = "/tmp/weir-pool-XXXXXX";
static char latest[64];
static unsigned int places;

static const char *fresh_place(void)
{
	static char where[64][96];
	unsigned int i = places++ % 64;

	snprintf(latest, sizeof(latest), "%s/pool%u", folder, places);
	snprintf(where[i], sizeof(where[i]), "file:%s", latest);
	return where[i];
}

static void write_file(const char *suffix, const char *text)
{
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "%s%s", latest, suffix);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void a_bad_place_is_named(void **state)
{
	static const struct {
		const char *where;
		int rc;
	} cases[] = {
		{ "file:", -EINVAL },
		{ "file:/tmp/", -EINVAL },
		{ "file:/tmp/two words", -EINVAL },
		{ "file:/nowhere/at/all", -ENOENT },
		{ "elsewhere", -EINVAL },
		{ "etcd:http://h1:2379", -EINVAL },
		{ "etcd:http://h1:2379/", -EINVAL },
		{ "etcd:ftp://h1/p", -EINVAL },
		{ "etcd:http://h1,,h2/p", -EINVAL },
	};
	struct weir_pool_store *store = NULL;
	struct weir_error error;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(weir_pool_store_open(cases[i].where, &store, &error),
				 cases[i].rc);
		assert_null(store);
		assert_true(strlen(error.text) > 20);
	}
}

static void a_damaged_file_is_named_and_kept(void **state)
{
	static const char *const texts[] = { "", "not JSON", "[]", "{\"weir_pool\": 2}", "{}" };
	struct weir_pool_put put = { .key = "a", .value = "b" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct weir_pool_store *store = store_suite_open(fresh_place());
		struct weir_pool_listing listing;
		struct weir_error error;

		write_file("", texts[i]);
		assert_int_equal(weir_pool_store_list(store, "", &listing, &error), -EPROTO);
		assert_non_null(strstr(error.text, latest));
		assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), -EPROTO);
		weir_pool_store_close(store);
	}
}

static void leases_of_another_boot_are_over(void **state)
{
	const char *where = fresh_place();
	struct weir_pool_store *store = store_suite_open(where);
	struct weir_pool_put put = { .key = "donor/a", .value = "x" };
	char *value;

	(void)state;
	assert_int_equal(weir_pool_store_grant(store, 3600000, &put.lease, NULL), 0);
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), 0);
	value = store_suite_get(store, "donor/a");
	assert_non_null(value);
	free(value);
	write_file(".leases", "{\"boot\": \"another\", \"leases\": {}}");
	assert_null(store_suite_get(store, "donor/a"));
	weir_pool_store_close(store);
}

static void put_for_ever(const char *where, int ready)
{
	struct weir_pool_store *store;
	char text[4096];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	if (weir_pool_store_open(where, &store, NULL))
		_exit(1);
	for (unsigned int i = 0;; i++) {
		struct weir_pool_put put = { "key", text, WEIR_POOL_ANY_VERSION, 0, NULL, 0 };

		text[0] = (char)('a' + i % 26);
		if (weir_pool_store_put(store, &put, NULL, NULL))
			_exit(1);
		if (!i && write(ready, "", 1) != 1)
			_exit(1);
	}
}

static void a_killed_writer_leaves_a_whole_file(void **state)
{
	const char *where = fresh_place();
	struct weir_pool_store *store = store_suite_open(where);
	int ready[2], status;
	char byte, *value;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	for (int i = 0; i < KILLS; i++) {
		pid_t child = fork();

		if (!child)
			put_for_ever(where, ready[1]);
		assert_int_equal(read(ready[0], &byte, 1), 1);
		usleep((useconds_t)i * 300);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		value = store_suite_get(store, "key");
		assert_int_equal(strlen(value), 4095);
		free(value);
		store_suite_put(store, "another", "put");
	}
	close(ready[0]);
	close(ready[1]);
	weir_pool_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bad_place_is_named),
		cmocka_unit_test(a_damaged_file_is_named_and_kept),
		cmocka_unit_test(leases_of_another_boot_are_over),
		cmocka_unit_test(a_killed_writer_leaves_a_whole_file),
	};
	char command[64];
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = store_suite_run(fresh_place);
	failed += cmocka_run_group_tests_name("file", tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command) || failed;
}
