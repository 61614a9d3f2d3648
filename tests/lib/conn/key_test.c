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

#define DIGITS "00112233445566778899aabbccddeeff0123456789abcdef0123456789ABCDEF"

static void lines_of_donors_are_no_part_of_the_key(void **state)
{
	static const char content[] = "0123456789abcdef\ndonor " DIGITS "\n";
	uint8_t formatted[WEIR_KEY_FILE_MAX];
	struct weir_key *alone, *pinned;
	struct weir_error error;
	unsigned char other[32] = { 7 };

	(void)state;
	file_make(content, 16, 0600);
	assert_int_equal(load(&alone, &error), 0);
	assert_int_equal(alone->nr_donors, 0);
	file_make(content, sizeof(content) - 1, 0600);
	assert_int_equal(load(&pinned, &error), 0);
	assert_int_equal(weir_key_id(pinned), weir_key_id(alone));
	assert_int_equal(pinned->nr_donors, 1);
	assert_memory_equal(pinned->donors[0], "\x00\x11\x22\x33", 4);
	weir_key_free(pinned);
	assert_int_equal(weir_key_trust(path, other, &error), 0);
	assert_int_equal(load(&pinned, &error), 0);
	assert_int_equal(pinned->nr_donors, 2);
	assert_int_equal(weir_key_id(pinned), weir_key_id(alone));
	assert_int_equal(weir_key_format(pinned, formatted), 16 + 2 * WEIR_KEY_DONOR_LINE);
	weir_key_free(pinned);
	/* A file without the newline gets it. */
	file_make(content, sizeof(content) - 2, 0600);
	assert_int_equal(weir_key_trust(path, other, &error), 0);
	assert_int_equal(load(&pinned, &error), 0);
	assert_int_equal(pinned->nr_donors, 2);
	weir_key_free(pinned);
	weir_key_free(alone);
}

static void a_donor_with_a_mistake_makes_no_key(void **state)
{
	static const char *const contents[] = {
		"0123456789abcdef\ndonor 0011\n",
		"0123456789abcdef\ndonor " DIGITS "0\n",
		"0123456789abcdef\ndonor x" DIGITS "\n",
		"0123456789abcdef\r\ndonor " DIGITS "\r\n",
		"0123456789abcdef\ndonor " DIGITS " \n",
		"0123456789abcdef\ndonor " DIGITS "\n\n",
		"0123456789abcdef\ndonor " DIGITS "\nname\n",
		"0123456789abcdefdonor " DIGITS "\n",
	};
	struct weir_key *key;
	struct weir_error error;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		file_make(contents[i], strlen(contents[i]), 0600);
		assert_int_equal(load(&key, &error), -EINVAL);
		assert_non_null(strstr(error.text, "mistake"));
	}
}

static void a_key_is_no_identity_and_an_identity_no_key(void **state)
{
	struct weir_identity *identity;
	struct weir_key *key;
	struct weir_error error;

	(void)state;
	assert_int_equal(weir_identity_create(path, &error), 0);
	assert_int_equal(weir_key_load(path, &key, &error), -EINVAL);
	assert_non_null(strstr(error.text, "identity"));
	assert_int_equal(weir_identity_load(path, &identity, &error), 0);
	weir_identity_free(identity);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(weir_key_create(path, &error), 0);
	assert_int_equal(weir_identity_load(path, &identity, &error), -EINVAL);
}

static void append(const char *line)
{
	FILE *file = fopen(path, "a");

	assert_non_null(file);
	fputs(line, file);
	fclose(file);
}

static void too_many_donors_are_refused(void **state)
{
	static const char line[] = "donor " DIGITS "\n";
	struct weir_key *key;
	struct weir_error error;
	unsigned char other[32] = { 7 };
	int i;

	(void)state;
	file_make("0123456789abcdef\n", 17, 0600);
	for (i = 0; i < WEIR_KEY_DONORS_MAX; i++)
		assert_int_equal(weir_key_trust(path, other, &error), 0);
	assert_int_equal(load(&key, &error), 0);
	assert_int_equal(key->nr_donors, WEIR_KEY_DONORS_MAX);
	weir_key_free(key);
	assert_int_equal(weir_key_trust(path, other, &error), -EINVAL);
	append(line);
	assert_int_equal(load(&key, &error), -EINVAL);
	assert_int_equal(sizeof(line) - 1, WEIR_KEY_DONOR_LINE);
}

static void an_identity_is_kept_in_a_file_of_its_own(void **state)
{
	struct weir_identity *identity;
	unsigned char public[32], again[32];
	struct weir_error error;

	(void)state;
	unlink(path);
	assert_int_equal(weir_identity_create(path, &error), 0);
	assert_int_equal(weir_identity_load(path, &identity, &error), 0);
	weir_identity_public(identity, public);
	weir_identity_free(identity);
	assert_int_equal(weir_identity_load(path, &identity, &error), 0);
	weir_identity_public(identity, again);
	weir_identity_free(identity);
	assert_memory_equal(public, again, sizeof(public));
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(weir_identity_load(path, &identity, &error), -EACCES);
	file_make("0123456789abcdef\n", 17, 0600);
	assert_int_equal(weir_identity_load(path, &identity, &error), -EINVAL);
}

static void a_credential_of_systemd_may_show_an_access_list(void **state)
{
	static const mode_t open_modes[] = { 0444, 0460, 0441 };
	struct weir_error error;
	struct weir_key *key;

	(void)state;
	file_make("0123456789abcdef", 16, 0440);
	assert_int_equal(load(&key, &error), -EACCES);
	setenv("CREDENTIALS_DIRECTORY", dir, 1);
	assert_int_equal(load(&key, &error), 0);
	weir_key_free(key);
	for (size_t i = 0; i < 3; i++) {
		file_make("0123456789abcdef", 16, open_modes[i]);
		assert_int_equal(load(&key, &error), -EACCES);
	}
	/* Only the files in the folder itself. */
	file_make("0123456789abcdef", 16, 0440);
	setenv("CREDENTIALS_DIRECTORY", "/tmp", 1);
	assert_int_equal(load(&key, &error), -EACCES);
	setenv("CREDENTIALS_DIRECTORY", "/tmp/weir", 1);
	assert_int_equal(load(&key, &error), -EACCES);
	setenv("CREDENTIALS_DIRECTORY", "", 1);
	assert_int_equal(load(&key, &error), -EACCES);
	unsetenv("CREDENTIALS_DIRECTORY");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_new_key_can_be_loaded_and_no_two_are_the_same, clean),
		cmocka_unit_test_teardown(only_the_length_decides, clean),
		cmocka_unit_test_teardown(a_credential_of_systemd_may_show_an_access_list, clean),
		cmocka_unit_test_teardown(a_file_of_another_user_is_refused_and_one_of_root_is_not,
					  clean),
		cmocka_unit_test_teardown(what_others_may_read_is_no_secret, clean),
		cmocka_unit_test_teardown(what_is_no_file_is_refused, clean),
		cmocka_unit_test_teardown(lines_of_donors_are_no_part_of_the_key, clean),
		cmocka_unit_test_teardown(a_donor_with_a_mistake_makes_no_key, clean),
		cmocka_unit_test_teardown(a_key_is_no_identity_and_an_identity_no_key, clean),
		cmocka_unit_test_teardown(too_many_donors_are_refused, clean),
		cmocka_unit_test_teardown(an_identity_is_kept_in_a_file_of_its_own, clean),
	};

	return cmocka_run_group_tests_name("key", tests, group_setup, group_teardown);
}
