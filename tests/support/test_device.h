/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device that a test of verbs runs on: softnic, or the kernel's Soft-RoCE in the client of
 * tests/vm, which says so by the environment of tests/support/libweir_fixture.h. What Soft-RoCE does otherwise
 * a test says by one of two functions; out of these calls tests/conformance makes a table.
 */
#ifndef WEIR_TESTS_SUPPORT_TEST_DEVICE_H
#define WEIR_TESTS_SUPPORT_TEST_DEVICE_H

#include <stdbool.h>
#include <infiniband/verbs.h>

bool on_softnic(void);

/* True on Soft-RoCE, where it is as @how says; a string as it is, for the table. */
bool soft_roce_differs(const char *how);

/* The same, for a whole test: it is skipped there. */
void skip_on_soft_roce(const char *why);

/*
 * @found, or @wanted if the device may flush a request that its own side refuses before it tells why.
 * Soft-RoCE does so after Linux 6.1.
 */
enum ibv_wc_status refused_status(enum ibv_wc_status found, enum ibv_wc_status wanted);

/* The nth one; elsewhere than on softnic WEIR_DEVICE names the only one. */
struct ibv_context *open_device(int n);

/* One of the device's own addresses, as a GID is written. */
const char *own_address(void);

/* The index of that GID at port 1. */
uint8_t own_gid_index(struct ibv_context *ctx);

/* The way from the device to itself. softnic needs no address for it: RoCE does. */
struct ibv_ah_attr way_to_self(struct ibv_context *ctx);

/* As often, or less on a device that is emulated (WEIR_TEST_SIZE): at least once. */
int scaled(int times);

#endif
