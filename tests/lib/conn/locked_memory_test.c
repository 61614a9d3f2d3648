/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib locked memory; suites: lib donor; devices: softnic; timeout: 120 */
/*
 * A user may lock little memory, often 8 MiB for all processes. So established connections keep no
 * locked memory at either end.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/support/libweir_fixture.h"
#include "tests/support/locked_memory.h"
#include "tests/support/mux_pair.h"

enum { CONNECTIONS = 8 };

static void sessions_lock_no_memory(void **state)
{
	struct weir_session *first, *sessions[CONNECTIONS];
	unsigned long ours, theirs;
	struct donor_process donor;

	(void)state;
	donor_process_start(&donor, "16M", NULL);
	first = session_to(&donor, NULL);
	ours = locked_kib(getpid());
	theirs = locked_kib(donor.pid);
	for (int i = 0; i < CONNECTIONS; i++)
		sessions[i] = session_to(&donor, NULL);
	assert_int_equal(locked_kib(getpid()), ours);
	assert_int_equal(locked_kib(donor.pid), theirs);
	for (int i = 0; i < CONNECTIONS; i++)
		weir_session_close(sessions[i]);
	weir_session_close(first);
	donor_process_stop(&donor);
}

static void muxes_lock_no_memory(void **state)
{
	struct mux_pair pairs[CONNECTIONS] = { 0 };
	unsigned long before;

	(void)state;
	mux_pair_open(&pairs[0], NULL);
	before = locked_kib(getpid());
	for (int i = 1; i < CONNECTIONS; i++)
		mux_pair_open(&pairs[i], NULL);
	assert_int_equal(locked_kib(getpid()), before);
	for (int i = 0; i < CONNECTIONS; i++)
		mux_pair_close(&pairs[i]);
}

static struct weir_exchange *accepted;

static void *accept_one(void *listener)
{
	weir_exchange_accept(listener, 60 * SECOND_NS, &accepted, NULL);
	return NULL;
}

static void exchanges_lock_no_memory(void **state)
{
	const struct weir_exchange_options options = { .size = sizeof(options),
						       .key = fixture_key(),
						       .slots = 8 };
	struct weir_exchange *ends[2 * CONNECTIONS];
	struct weir_exchange_listener *listener;
	unsigned long before = 0;
	char address[80];
	pthread_t thread;

	(void)state;
	snprintf(address, sizeof(address), "%s:0", fixture_address());
	assert_int_equal(weir_exchange_listen(address, &options, &listener, NULL), 0);
	for (int i = 0; i < CONNECTIONS; i++) {
		assert_int_equal(pthread_create(&thread, NULL, accept_one, listener), 0);
		assert_int_equal(weir_exchange_connect(weir_exchange_address(listener), &options,
						       &ends[2 * i], NULL),
				 0);
		pthread_join(thread, NULL);
		ends[2 * i + 1] = accepted;
		assert_non_null(accepted);
		before = i ? before : locked_kib(getpid());
	}
	assert_int_equal(locked_kib(getpid()), before);
	for (int i = 0; i < 2 * CONNECTIONS; i++)
		weir_exchange_close(ends[i]);
	weir_exchange_unlisten(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions_lock_no_memory),
		cmocka_unit_test(muxes_lock_no_memory),
		cmocka_unit_test(exchanges_lock_no_memory),
	};

	return cmocka_run_group_tests_name("locked memory", tests, NULL, NULL);
}
