/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The tests that each kind of store must pass. */
#ifndef WEIR_TESTS_LIB_POOL_STORE_SUITE_H
#define WEIR_TESTS_LIB_POOL_STORE_SUITE_H

#include "tests/support/cmocka_all.h"

#include "lib/pool/store.h"

/* Returns the place of an empty pool; another for each call. Kept for ever. */
typedef const char *store_suite_place_fn(void);

/* Runs all tests. Return: as cmocka_run_group_tests(). */
int store_suite_run(store_suite_place_fn *fresh_place);

/* Opens a store, or fails the test. */
struct weir_pool_store *store_suite_open(const char *where);

/* Puts a key without conditions, or fails the test. Return: its version. */
uint64_t store_suite_put(struct weir_pool_store *store, const char *key, const char *value);

/* The value of a key, or NULL; the caller frees it. */
char *store_suite_get(struct weir_pool_store *store, const char *key);

#endif
