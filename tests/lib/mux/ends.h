/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Muxes where either end connects and accepts. */
#ifndef WEIR_TESTS_LIB_MUX_ENDS_H
#define WEIR_TESTS_LIB_MUX_ENDS_H

#include "lib/base/clock.h"
#include "lib/mux/local/local.h"
#include "tests/support/mux_pair.h"

#define PATIENCE_NS (60 * WEIR_NS_PER_S) /* limit for any wait */

struct mux_end {
	struct weir_mux_local *mux;
	struct weir_mux_listener *listener;
	char address[64];
};

void end_open(struct mux_end *end, uint64_t idle_ns);
/* Listens at @host with rings of 16 KiB; a connection may ask for 16 times that. */
void end_open_at(struct mux_end *end, const char *host, const struct weir_key *key,
		 uint64_t idle_ns);
void end_close(struct mux_end *end);

/* Setup and teardown for cmocka; the teardown skips closed ends. */
struct mux_ends_pair {
	struct mux_end a, b;
};
int pair_open(void **state);
int pair_open_with(void **state, uint64_t idle_ns);
int pair_close(void **state);
#define pair_test(f) cmocka_unit_test_setup_teardown(f, pair_open, pair_close)

/* Fails the test on error. */
struct weir_mux_conn *connect_to(const struct mux_end *from, const struct mux_end *to);
struct weir_mux_conn *connect_at(const struct mux_end *from, const char *address,
				 unsigned int class_nr);
struct weir_mux_conn *connect_with(const struct mux_end *from, const char *address,
				   const struct weir_mux_conn_options *options);
struct weir_mux_conn *accept_at(const struct mux_end *end);
/* Passes a message. */
void pass(struct weir_mux_conn *from, struct weir_mux_conn *to);
unsigned int nodes_of(struct weir_mux_local *mux);
/* Waits for that number of remotes. */
void wait_nodes(const struct mux_end *end, unsigned int count);
struct weir_mux_remote *node_of(struct weir_mux_conn *conn);

#endif
