/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the tests of the library share: a donor in a process of its own, and a session to it.
 *
 * The device comes from the environment: WEIR_TEST_DEVICE is its kind, "softnic" or "rxe"
 * (softnic if unset), WEIR_TEST_ADDRESS where a donor may listen on it (127.0.0.1 if
 * unset), WEIR_TEST_KEY a key file, which is needed beyond loopback, and WEIR_TEST_SIZE a
 * factor of at most 1 for what moves many bytes, where a device is slow. softnic itself is
 * preloaded by whoever runs the tests.
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

/* A donor that runs tests/support/donor_program.c; what it does with messages is written there. */
struct donor_process {
	pid_t pid;
	char address[64];
};

/* Skips the whole program (exit status 77) unless the device's kind is in @kinds. */
void fixture_runs_on(const char *kinds);

/* @bytes, or less of them on a slow device: a multiple of 4096. */
size_t fixture_scaled(size_t bytes);

/* As many rounds, or fewer on a slow device: at least one. */
int fixture_rounds(int count);

/* The address without a port, and the key, NULL if there is none. */
const char *fixture_address(void);
const struct weir_key *fixture_key(void);

/* @arguments: further options of tests/support/donor_program.c, ending with NULL. */
void donor_process_start(struct donor_process *donor, const char *memory, ...)
	__attribute__((sentinel));
/* Ends it in order and checks that it says so. */
void donor_process_stop(struct donor_process *donor);
/* kill -9. */
void donor_process_kill(struct donor_process *donor);

/* A session with @options, which may be NULL; the test fails if there is none. */
struct weir_session *session_to(const struct donor_process *donor,
				const struct weir_session_options *options);
struct weir_region *region_of(struct weir_session *session, uint64_t length);

/* For weir_done_fn: counts, and keeps the first bad status. */
struct completion_tally {
	int done;
	int status;
};

void tally_done(void *arg, int status);
/* Waits until @count are done, at most ten seconds; the session has a thread. */
void tally_wait(struct completion_tally *tally, int count);

/* For tests of exchanges: all @tests by bitmaps, and then by immediates. Return: how many failed. */
extern enum weir_exchange_mode fixture_mode;
int fixture_run_modes(const struct CMUnitTest *tests, size_t count);

uint64_t now_ns(void);
/* The next number of a small generator. */
uint64_t random_next(uint64_t *state);

#endif
