/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device for tests of verbs: softnic, or the kernel's Soft-RoCE in the client of tests/vm.
 * The environment of tests/support/libweir_fixture.h selects the device. A test declares
 * differences of Soft-RoCE with one of two functions; tests/softnic/conformance makes a table
 * of these calls.
 */
#ifndef WEIR_TESTS_SUPPORT_TEST_DEVICE_H
#define WEIR_TESTS_SUPPORT_TEST_DEVICE_H

#include <stdbool.h>
#include <infiniband/verbs.h>

bool on_softnic(void);

/* Does softnic reach this host's programs by UDP, as if they were on another host? */
bool over_wire(void);

/* True on Soft-RoCE, which behaves as @how says; @how is a plain string, for the table. */
bool soft_roce_differs(const char *how);

/* The same for a whole test, which is skipped there. */
void skip_on_soft_roce(const char *why);

/*
 * Returns @found, or @wanted if the device may flush a request that its own side refuses before it
 * reports the reason. Soft-RoCE does so after Linux 6.1.
 */
enum ibv_wc_status refused_status(enum ibv_wc_status found, enum ibv_wc_status wanted);

/* Device number @n; without softnic WEIR_DEVICE names the only device. */
struct ibv_context *open_device(int n);

/* An address of the device, in GID notation. */
const char *own_address(void);

/* The index of that GID at port 1. */
uint8_t own_gid_index(struct ibv_context *ctx);

/* The path from the device to itself. RoCE and softnic's near=0 need an address in it. */
struct ibv_ah_attr way_to_self(struct ibv_context *ctx);

/* @times, or fewer on an emulated device (WEIR_TEST_SIZE): at least once. */
int scaled(int times);

#endif
