/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libweir_fixture.h"

#define ARGUMENTS_MAX 16
#define WAIT_MS 60000 /* for a donor to begin */
#define CONNECT_SECONDS 60
#define TALLY_SECONDS 60
#define END_SECONDS 60 /* for a donor to end: a sanitizer on a busy machine takes long */
/* Below the ports that systems choose: while a donor is down, nobody takes its port by chance. */
#define PORT_MIN 16384
#define PORTS 16384
#define PORTS_OF_PROCESS 32

extern char **environ;

static const char *environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && value[0] ? value : otherwise;
}

void fixture_runs_on(const char *kinds)
{
	const char *kind = environment("WEIR_TEST_DEVICE", "softnic");

	if (strstr(kinds, kind))
		return;
	printf("1..0 # SKIP runs on %s, not on %s\n", kinds, kind);
	exit(77);
}

static double factor(void)
{
	double size = strtod(environment("WEIR_TEST_SIZE", "1"), NULL);

	assert_true(size > 0 && size <= 1);
	return size;
}

size_t fixture_scaled(size_t bytes)
{
	return ((size_t)((double)bytes * factor()) + 4095) / 4096 * 4096;
}

int fixture_rounds(int count)
{
	int rounds = (int)(count * factor());

	return rounds ? rounds : 1;
}

const char *fixture_address(void)
{
	return environment("WEIR_TEST_ADDRESS", "127.0.0.1");
}

const struct weir_key *fixture_key(void)
{
	static struct weir_key *key;
	const char *path = environment("WEIR_TEST_KEY", NULL);

	if (path && !key)
		assert_int_equal(weir_key_load(path, &key, NULL), 0);
	return key;
}

/* The donor prints its address once it listens. Return: whether it did before its end. */
static bool read_address(int fd, char *address, size_t size)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	ssize_t got;

	assert_int_equal(poll(&pollfd, 1, WAIT_MS), 1);
	got = read(fd, address, size - 1);
	if (got <= 1)
		return false;
	address[got - 1] = '\0'; /* the newline */
	return true;
}

/* Return: whether the donor listens there; false if the port is taken. */
static bool start_at(struct donor_process *donor, const char *listen, const char *memory,
		     va_list list)
{
	const char *argv[ARGUMENTS_MAX] = { getenv("WEIR_TEST_DONOR"), listen, memory };
	posix_spawn_file_actions_t actions;
	const char *key = environment("WEIR_TEST_KEY", NULL);
	char key_argument[256];
	int argc = 3, status, fds[2];
	bool is_up;

	assert_non_null(argv[0]);
	if (key) {
		snprintf(key_argument, sizeof(key_argument), "key=%s", key);
		argv[argc++] = key_argument;
	}
	while (argc < ARGUMENTS_MAX && (argv[argc] = va_arg(list, const char *)))
		argc++;

	assert_int_equal(pipe(fds), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, fds[0]);
	posix_spawn_file_actions_addclose(&actions, fds[1]);
	assert_int_equal(posix_spawn(&donor->pid, argv[0], &actions, NULL, (char **)argv, environ),
			 0);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	is_up = read_address(fds[0], donor->address, sizeof(donor->address));
	close(fds[0]);
	if (is_up)
		return true;
	assert_int_equal(waitpid(donor->pid, &status, 0), donor->pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EADDRINUSE);
	return false;
}

/* Another process may have one of these ports: pids repeat. */
void donor_process_start(struct donor_process *donor, const char *memory, ...)
{
	static unsigned int next;
	unsigned int tries, port;
	bool is_up = false;
	char listen[80];
	va_list list;

	for (tries = 0; tries < PORTS_OF_PROCESS && !is_up; tries++) {
		port = (unsigned int)getpid() * PORTS_OF_PROCESS + next++ % PORTS_OF_PROCESS;
		snprintf(listen, sizeof(listen), "%s:%u", fixture_address(),
			 PORT_MIN + port % PORTS);
		va_start(list, memory);
		is_up = start_at(donor, listen, memory, list);
		va_end(list);
	}
	assert_true(is_up);
}

void donor_process_restart(struct donor_process *donor, const char *memory, ...)
{
	char listen[sizeof(donor->address)];
	bool is_up;
	va_list list;

	snprintf(listen, sizeof(listen), "%s", donor->address);
	va_start(list, memory);
	is_up = start_at(donor, listen, memory, list);
	va_end(list);
	assert_true(is_up);
}

/* A hanging donor is reported long before the test's own silent timeout. */
static int donor_end(struct donor_process *donor, int signal)
{
	uint64_t deadline_ns = now_ns() + END_SECONDS * SECOND_NS;
	int status = -1;
	pid_t ended;

	kill(donor->pid, signal);
	while (!(ended = waitpid(donor->pid, &status, WNOHANG)) && now_ns() < deadline_ns)
		usleep(1000);
	if (!ended) {
		fprintf(stderr, "the donor has not ended %d seconds after signal %d\n", END_SECONDS,
			signal);
		kill(donor->pid, SIGKILL);
		ended = waitpid(donor->pid, &status, 0);
	}
	assert_int_equal(ended, donor->pid);
	return status;
}

/* No assertions: cmocka ignores a failure in the teardown of a group. */
void donor_process_stop(struct donor_process *donor)
{
	int status = donor_end(donor, SIGTERM);

	if (!status)
		return;
	fprintf(stderr, "the donor ended with wait status %#x\n", status);
	_exit(1);
}

void donor_process_kill(struct donor_process *donor)
{
	assert_true(WIFSIGNALED(donor_end(donor, SIGKILL)));
}

struct donor_process group_donor;

int group_donor_start(void **state)
{
	(void)state;
	donor_process_start(&group_donor, "16777216", NULL);
	return 0;
}

int group_donor_stop(void **state)
{
	(void)state;
	donor_process_stop(&group_donor);
	return 0;
}

struct weir_session *session_to(const struct donor_process *donor,
				const struct weir_session_options *options)
{
	struct weir_session_options with_key = { 0 };
	struct weir_error error = { "" };
	struct weir_session *session;
	uint64_t begin_ns = now_ns();
	int rc;

	if (options)
		with_key = *options;
	with_key.size = sizeof(with_key);
	if (!with_key.key)
		with_key.key = fixture_key();
	/* The session's timeout covers connecting too; a busy machine may take longer. */
	do
		rc = weir_session_open(donor->address, &with_key, &session, &error);
	while (rc == -ETIMEDOUT && now_ns() - begin_ns < CONNECT_SECONDS * SECOND_NS);
	if (rc)
		fail_msg("cannot open a session: %s", error.text);
	return session;
}

void options_refused(struct weir_session_options options, const char *word)
{
	struct weir_error error = { "" };
	struct weir_session *session;

	options.size = sizeof(options);
	assert_int_equal(weir_session_open("127.0.0.1", &options, &session, &error), -EINVAL);
	if (!strstr(error.text, word))
		fail_msg("'%s' does not speak of '%s'", error.text, word);
}

struct weir_region *region_of(struct weir_session *session, uint64_t length)
{
	struct weir_error error = { "" };
	struct weir_region *region;

	if (weir_region_create(session, NULL, length, 0, &region, &error))
		fail_msg("cannot create a region: %s", error.text);
	return region;
}

void tally_done(void *arg, int status)
{
	struct completion_tally *tally = arg;
	int good = 0;

	if (status)
		__atomic_compare_exchange_n(&tally->status, &good, status, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	__atomic_fetch_add(&tally->done, 1, __ATOMIC_RELEASE);
}

void tally_wait(struct completion_tally *tally, int count)
{
	uint64_t deadline_ns = now_ns() + TALLY_SECONDS * SECOND_NS;

	while (__atomic_load_n(&tally->done, __ATOMIC_ACQUIRE) < count) {
		if (now_ns() > deadline_ns)
			fail_msg("only %d of %d were done after %d seconds",
				 __atomic_load_n(&tally->done, __ATOMIC_RELAXED), count,
				 TALLY_SECONDS);
		usleep(200);
	}
	assert_int_equal(tally->done, count);
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

enum weir_exchange_mode fixture_mode;

static int use_bitmap(void **state)
{
	(void)state;
	fixture_mode = WEIR_EXCHANGE_BITMAP;
	return 0;
}

static int use_imm(void **state)
{
	(void)state;
	fixture_mode = WEIR_EXCHANGE_IMM;
	return 0;
}

int fixture_run_modes(const struct CMUnitTest *tests, size_t count)
{
	int failed = _cmocka_run_group_tests("bitmaps", tests, count, use_bitmap, NULL);

	return failed + _cmocka_run_group_tests("immediates", tests, count, use_imm, NULL);
}
