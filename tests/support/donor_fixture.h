/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the donor's tests share: a donor of their own on any port, and keys. WEIR_TEST_ADDRESS is
 * where it may listen on the device of the tests; 127.0.0.1 if unset, which softnic reaches.
 */
#ifndef WEIR_TESTS_SUPPORT_DONOR_FIXTURE_H
#define WEIR_TESTS_SUPPORT_DONOR_FIXTURE_H

#include <poll.h>
#include <weir/donor.h>

#include "lib/base/clock.h"
#include "tests/support/raw_client.h"
#include "tests/support/cmocka_all.h"

#define MIB (1u << 20)
/* A lost packet of a connection comes again after four seconds; what is broken is given up after 30. */
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
/* Only there may a donor be without keys, and only softnic's devices are there. */
bool donor_is_on_loopback(void);

/* @n, or less on a slow device: WEIR_TEST_SIZE is the factor. */
unsigned int donor_scaled(unsigned int n);

/* Opens a donor with keys A and B, 16 MiB, 8 of them each client's, and what @options adds. */
void donor_fixture_start(struct donor_fixture *f, const struct weir_donor_options *options);
void donor_fixture_stop(struct donor_fixture *f);

/* Reads the donor's figures into f->info. */
const struct weir_donor_info *donor_fixture_info(struct donor_fixture *f);

/* Waits until the donor asks a client for memory. Return: what it may keep, bytes. */
uint64_t donor_fixture_reclaimed(struct raw_client *raw);

/* Tries @condition until it is true, or not within @ms. */
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
