/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Muxes of which either connects and is connected to. */
#ifndef WEIR_TESTS_LIB_MUX_ENDS_H
#define WEIR_TESTS_LIB_MUX_ENDS_H

#include "lib/base/clock.h"
#include "lib/mux/local/local.h"
#include "tests/support/libweir_fixture.h"

#define SERVICE 5
#define PATIENCE_NS (60 * WEIR_NS_PER_S) /* what does not come in so long does not come */

struct mux_end {
	struct weir_mux_local *mux;
	struct weir_mux_listener *listener;
	char address[64];
};

void end_open(struct mux_end *end, uint64_t idle_ns);
/* It listens there; its rings are of 16 KiB, and whoever connects may ask for 16 times that. */
void end_open_at(struct mux_end *end, const char *host, const struct weir_key *key,
		 uint64_t idle_ns);
void end_close(struct mux_end *end);

/* What a case begins with, as cmocka's setup and teardown; which leaves alone what is closed already. */
struct mux_ends_pair {
	struct mux_end a, b;
};
int pair_open(void **state);
int pair_open_with(void **state, uint64_t idle_ns);
int pair_close(void **state);
#define pair_test(f) cmocka_unit_test_setup_teardown(f, pair_open, pair_close)

/* The test fails if there is no connection. */
struct weir_mux_conn *connect_to(const struct mux_end *from, const struct mux_end *to);
struct weir_mux_conn *connect_at(const struct mux_end *from, const char *address,
				 unsigned int class_nr);
struct weir_mux_conn *connect_with(const struct mux_end *from, const char *address,
				   const struct weir_mux_conn_options *options);
struct weir_mux_conn *accept_at(const struct mux_end *end);
/* A message. */
void pass(struct weir_mux_conn *from, struct weir_mux_conn *to);
unsigned int nodes_of(struct weir_mux_local *mux);
/* Waits until it has so many. */
void wait_nodes(const struct mux_end *end, unsigned int count);
struct weir_mux_remote *node_of(struct weir_mux_conn *conn);

#endif
