/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by the donor's tests: a donor on any port, and keys. WEIR_TEST_ADDRESS is an address
 * of the test device to listen on; 127.0.0.1 if unset, which softnic reaches.
 */
#ifndef WEIR_TESTS_SUPPORT_DONOR_FIXTURE_H
#define WEIR_TESTS_SUPPORT_DONOR_FIXTURE_H

#include <poll.h>
#include <weir/donor.h>

#include "lib/base/clock.h"
#include "tests/support/raw_client.h"
#include "tests/support/cmocka_all.h"

#define MIB (1u << 20)
/*
 * A lost packet of a connection is retransmitted after four seconds; a broken connection is
 * given up after 30.
 */
#define SOON_MS 20000

extern struct weir_key key_a, key_b;

struct donor_fixture {
	struct weir_donor *donor;
	struct weir_donor_info info;
	struct weir_donor_options options;
};

/* The address of the tests, and the same with any port. */
const char *donor_host(void);
const char *donor_any_port(void);
/* A donor without keys is allowed only on loopback, which only softnic has. */
bool donor_is_on_loopback(void);

/* @n, or less on a slow device: WEIR_TEST_SIZE is the factor. */
unsigned int donor_scaled(unsigned int n);

/* Open a donor with keys A and B, 16 MiB, a quota of 8 MiB for each client, and @options. */
void donor_fixture_start(struct donor_fixture *f, const struct weir_donor_options *options);
void donor_fixture_stop(struct donor_fixture *f);

/* Read the donor's figures into f->info. */
const struct weir_donor_info *donor_fixture_info(struct donor_fixture *f);

/* Wait until the donor asks a client for memory. Return: the bytes that the client may keep. */
uint64_t donor_fixture_reclaimed(struct raw_client *raw);

/* Try @condition until true, for at most @ms. */
#define assert_within(ms, condition)                                      \
	do {                                                              \
		uint64_t _end = weir_now_ns() + (ms)*WEIR_NS_PER_MS;      \
		bool _is_true;                                            \
                                                                          \
		while (!(_is_true = (condition)) && weir_now_ns() < _end) \
			poll(NULL, 0, 2);                                 \
		if (!_is_true)                                            \
			fail_msg("not within %d ms: %s", ms, #condition); \
	} while (0)

/* The same, SOON. */
#define assert_soon(condition) assert_within(SOON_MS, condition)

#endif
