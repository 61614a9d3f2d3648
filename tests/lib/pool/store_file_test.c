/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib pool store file; suites: lib pool; timeout: 180 */
/* A pool's store in a file. */
#include "tests/lib/pool/store_suite.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
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

static const char *lock_path(void)
{
	static char path[96];

	snprintf(path, sizeof(path), "%s.lock", latest);
	return path;
}

static int hold_lock(void)
{
	int fd = open(lock_path(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	return fd;
}

static mode_t lock_mode(void)
{
	struct stat st;

	assert_int_equal(lstat(lock_path(), &st), 0);
	return st.st_mode & ALLPERMS;
}

static void only_writers_may_open_the_lock(void **state)
{
	static const struct {
		mode_t umask, expected;
	} cases[] = { { 0022, 0600 }, { 0077, 0600 }, { 0002, 0660 }, { 0, 0666 } };
	mode_t before = umask(0);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_pool_store *store = store_suite_open(fresh_place());

		umask(cases[i].umask);
		store_suite_put(store, "a", "b");
		assert_int_equal(lock_mode(), cases[i].expected);
		/* A lock of an older weir, which all could read. */
		assert_int_equal(chmod(lock_path(), 0664), 0);
		store_suite_put(store, "a", "c");
		assert_int_equal(lock_mode(), 0660);
		weir_pool_store_close(store);
	}
	umask(before);
}

static void a_lock_of_a_stranger_is_refused(void **state)
{
	struct weir_pool_store *store = store_suite_open(fresh_place());
	struct weir_pool_put put = { .key = "a", .value = "b" };
	struct weir_error error;

	(void)state;
	assert_int_equal(symlink("/dev/null", lock_path()), 0);
	assert_int_equal(weir_pool_store_put(store, &put, NULL, &error), -EIO);
	assert_int_equal(unlink(lock_path()), 0);
	if (!geteuid()) {
		close(hold_lock());
		assert_int_equal(chown(lock_path(), 64001, (gid_t)-1), 0);
		assert_int_equal(chmod(folder, 01777), 0);
		assert_int_equal(weir_pool_store_put(store, &put, NULL, &error), -EPERM);
		assert_non_null(strstr(error.text, "user 64001"));
		/* Members of a group share a folder that is not sticky. */
		assert_int_equal(chmod(folder, 02770), 0);
	}
	store_suite_put(store, "a", "b");
	assert_int_equal(chmod(folder, 0700), 0);
	weir_pool_store_close(store);
}

static void a_stopped_holder_of_the_lock_is_named(void **state)
{
	struct weir_pool_store *store = store_suite_open(fresh_place());
	struct weir_pool_put put = { .key = "donor/a", .value = "x" };
	struct weir_pool_listing listing;
	struct weir_error error;
	char holder[32];
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(weir_pool_store_grant(store, 3600000, &put.lease, NULL), 0);
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), 0);
	child = fork();
	if (!child) {
		hold_lock();
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	snprintf(holder, sizeof(holder), "process %d (", child);
	assert_int_equal(weir_pool_store_keep(store, put.lease, &error), -EHOSTUNREACH);
	assert_non_null(strstr(error.text, holder));
	/* The reader would remove the key of the ended lease. */
	write_file(".leases", "{\"boot\": \"another\", \"leases\": {}}");
	assert_int_equal(weir_pool_store_list(store, "", &listing, &error), -EHOSTUNREACH);
	assert_non_null(strstr(error.text, holder));
	kill(child, SIGCONT);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_null(store_suite_get(store, "donor/a"));
	weir_pool_store_close(store);
}

static void do_nothing(int signal)
{
	(void)signal;
}

static void a_signal_ends_the_wait_for_the_lock(void **state)
{
	const struct itimerval often = { { 0, 50000 }, { 0, 50000 } };
	const struct itimerval never = { { 0, 0 }, { 0, 0 } };
	const struct sigaction action = { .sa_handler = do_nothing, .sa_flags = SA_RESTART };
	struct weir_pool_store *store = store_suite_open(fresh_place());
	struct weir_pool_put put = { .key = "a", .value = "b" };
	struct sigaction before;
	int fd = hold_lock(), taken;
	sigset_t end;

	(void)state;
	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), -EINTR);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);

	/* A service blocks the signal, and takes it later. */
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	kill(getpid(), SIGTERM);
	assert_int_equal(weir_pool_store_put(store, &put, NULL, NULL), -EINTR);
	assert_int_equal(sigwait(&end, &taken), 0);
	sigprocmask(SIG_UNBLOCK, &end, NULL);
	close(fd);
	store_suite_put(store, "a", "b");
	weir_pool_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bad_place_is_named),
		cmocka_unit_test(a_damaged_file_is_named_and_kept),
		cmocka_unit_test(leases_of_another_boot_are_over),
		cmocka_unit_test(a_killed_writer_leaves_a_whole_file),
		cmocka_unit_test(only_writers_may_open_the_lock),
		cmocka_unit_test(a_lock_of_a_stranger_is_refused),
		cmocka_unit_test(a_stopped_holder_of_the_lock_is_named),
		cmocka_unit_test(a_signal_ends_the_wait_for_the_lock),
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
