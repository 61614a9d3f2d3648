/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib key; suites: wire */
/* Key files: permissions, length, and content. */
#include <sys/stat.h>
#include <unistd.h>

#include "lib/conn/key.h"
#include "tests/support/cmocka_all.h"

static char dir[] = "/tmp/weir-key-XXXXXX";
static char path[64];

static void file_make(const char *content, size_t length, mode_t mode)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(content, 1, length, file), length);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
}

static int load(struct weir_key **key, struct weir_error *error)
{
	error->text[0] = '\0';
	return weir_key_load(path, key, error);
}

static int group_setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/key", dir);
	return 0;
}

static int clean(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static int group_teardown(void **state)
{
	clean(state);
	return rmdir(dir);
}

static void a_new_key_can_be_loaded_and_no_two_are_the_same(void **state)
{
	struct weir_key *a, *b;
	struct weir_error error;
	struct stat st;

	(void)state;
	assert_int_equal(weir_key_create(path, &error), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(weir_key_create(path, &error), -EEXIST);
	assert_int_equal(load(&a, &error), 0);
	assert_int_equal(a->length, 64);
	unlink(path);
	assert_int_equal(weir_key_create(path, &error), 0);
	assert_int_equal(load(&b, &error), 0);
	assert_int_not_equal(weir_key_id(a), weir_key_id(b));
	assert_int_not_equal(weir_key_id(a), weir_key_id(NULL));
	weir_key_free(a);
	weir_key_free(b);
	weir_key_free(NULL);
}

static void only_the_length_decides(void **state)
{
	static char content[WEIR_KEY_MAX + 8];
	static const struct {
		size_t length;
		bool newline;
		int rc;
		size_t loaded;
	} cases[] = {
		{ 0, false, -EINVAL, 0 },
		{ 15, false, -EINVAL, 0 },
		{ 15, true, -EINVAL, 0 },
		{ 16, false, 0, 16 },
		{ 16, true, 0, 16 },
		{ WEIR_KEY_MAX, false, 0, WEIR_KEY_MAX },
		{ WEIR_KEY_MAX, true, 0, WEIR_KEY_MAX },
		{ WEIR_KEY_MAX + 1, false, -EINVAL, 0 },
		{ WEIR_KEY_MAX + 1, true, -EINVAL, 0 },
	};
	struct weir_error error;
	struct weir_key *key;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(content, 'k', sizeof(content));
		if (cases[i].newline)
			content[cases[i].length] = '\n';
		file_make(content, cases[i].length + cases[i].newline, 0600);
		assert_int_equal(load(&key, &error), cases[i].rc);
		if (cases[i].rc) {
			assert_non_null(strstr(error.text, path));
			continue;
		}
		assert_int_equal(key->length, cases[i].loaded);
		weir_key_free(key);
	}
}

static bool is_another_user;

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);

uid_t __wrap_geteuid(void)
{
	return __real_geteuid() + is_another_user;
}

/* root can give the file away. Another user can only pretend to be somebody else. */
static void a_file_of_another_user_is_refused_and_one_of_root_is_not(void **state)
{
	const bool is_root = !__real_geteuid();
	struct weir_error error;
	struct weir_key *key;
	int rc;

	(void)state;
	file_make("0123456789abcdef", 16, 0600);
	is_another_user = true;
	rc = load(&key, &error);
	if (is_root && !rc)
		weir_key_free(key);
	assert_int_equal(rc, is_root ? 0 : -EACCES);
	if (is_root) {
		assert_int_equal(chown(path, 12345, -1), 0);
		assert_int_equal(load(&key, &error), -EACCES);
	}
	is_another_user = false;
	assert_non_null(strstr(error.text, "belongs to user"));
}

static void what_others_may_read_is_no_secret(void **state)
{
	static const mode_t open_modes[] = { 0640, 0604, 0620, 0666, 0601 };
	struct weir_error error;
	struct weir_key *key;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(open_modes) / sizeof(open_modes[0]); i++) {
		file_make("0123456789abcdef", 16, open_modes[i]);
		assert_int_equal(load(&key, &error), -EACCES);
		assert_non_null(strstr(error.text, "chmod 600"));
	}
	file_make("0123456789abcdef", 16, 0400);
	assert_int_equal(load(&key, &error), 0);
	weir_key_free(key);
}

static void what_is_no_file_is_refused(void **state)
{
	struct weir_error error;
	struct weir_key *key;

	(void)state;
	assert_int_equal(load(&key, &error), -ENOENT);
	assert_int_equal(mkfifo(path, 0600), 0); /* must not wait for a writer */
	assert_int_equal(load(&key, &error), -EINVAL);
	assert_int_equal(weir_key_load(dir, &key, &error), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_new_key_can_be_loaded_and_no_two_are_the_same, clean),
		cmocka_unit_test_teardown(only_the_length_decides, clean),
		cmocka_unit_test_teardown(a_file_of_another_user_is_refused_and_one_of_root_is_not,
					  clean),
		cmocka_unit_test_teardown(what_others_may_read_is_no_secret, clean),
		cmocka_unit_test_teardown(what_is_no_file_is_refused, clean),
	};

	return cmocka_run_group_tests_name("key", tests, group_setup, group_teardown);
}
