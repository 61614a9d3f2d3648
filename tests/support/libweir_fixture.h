/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by the library's tests: a donor in its own process, and a session to the donor.
 *
 * The environment selects the device. WEIR_TEST_DEVICE is its kind, "softnic" (default) or
 * "rxe". WEIR_TEST_ADDRESS is an address to listen on (127.0.0.1 if unset). WEIR_TEST_KEY is a
 * key file, needed beyond loopback. WEIR_TEST_SIZE is a factor of at most 1 for tests that move
 * many bytes, on a slow device. The test runner preloads softnic.
 */
#ifndef WEIR_TESTS_SUPPORT_LIBWEIR_FIXTURE_H
#define WEIR_TESTS_SUPPORT_LIBWEIR_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/types.h>
#include <weir/weir.h>

#define MIB (1u << 20)
#define SECOND_NS 1000000000ull

/* A process of tests/support/donor_program.c, which documents the messages. */
struct donor_process {
	pid_t pid;
	char address[64];
};

/* Skip the whole program (exit status 77) unless @kinds contains the device's kind. */
void fixture_runs_on(const char *kinds);

/* @bytes, or less on a slow device: a multiple of 4096. */
size_t fixture_scaled(size_t bytes);

/* @count, or fewer on a slow device: at least one. */
int fixture_rounds(int count);

/* The address without a port, and the key; NULL if there is no key. */
const char *fixture_address(void);
const struct weir_key *fixture_key(void);

/* @arguments: further options of tests/support/donor_program.c, ending with NULL. */
void donor_process_start(struct donor_process *donor, const char *memory, ...)
	__attribute__((sentinel));
/* Start a donor at the address of one that has ended. */
void donor_process_restart(struct donor_process *donor, const char *memory, ...)
	__attribute__((sentinel));
/* Stop the donor and check for an orderly end. */
void donor_process_stop(struct donor_process *donor);
/* kill -9. */
void donor_process_kill(struct donor_process *donor);

/* The donor of a whole program: setup and teardown of the group. */
extern struct donor_process group_donor;
int group_donor_start(void **state);
int group_donor_stop(void **state);

/* A member of struct weir_session_options: TUNING(.depth = 4). */
#define TUNING(...)                                                     \
	.tuning = &(const struct weir_session_tuning)                   \
	{                                                               \
		.size = sizeof(struct weir_session_tuning), __VA_ARGS__ \
	}

/* Open a session with @options, which may be NULL; the test fails on an error. */
struct weir_session *session_to(const struct donor_process *donor,
				const struct weir_session_options *options);
/* No session opens with @options, and the error names @word. */
void options_refused(struct weir_session_options options, const char *word);
struct weir_region *region_of(struct weir_session *session, uint64_t length);

/* For weir_done_fn: counts, and keeps the first bad status. */
struct completion_tally {
	int done;
	int status;
};

void tally_done(void *arg, int status);
/* Wait until @count are done, at most ten seconds; the session has a thread. */
void tally_wait(struct completion_tally *tally, int count);

/*
 * For tests of exchanges: run @tests by bitmaps, then by immediates. Return: the number of
 * failures.
 */
extern enum weir_exchange_mode fixture_mode;
int fixture_run_modes(const struct CMUnitTest *tests, size_t count);

uint64_t now_ns(void);

#endif
