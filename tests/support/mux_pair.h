/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two muxes in one process, with a connection. Each function fails the test on an error. */
#ifndef WEIR_TESTS_SUPPORT_MUX_PAIR_H
#define WEIR_TESTS_SUPPORT_MUX_PAIR_H

#include "tests/support/libweir_fixture.h"

#define SERVICE 5
#define PATIENCE_MS 60000 /* limit for any wait */

/**
 * struct mux_pair - two muxes, a listener, and a connection
 * @near, @far: the client's end, and the server's; mux_pair_close() passes over NULL
 * @ours, @theirs: regions of the client and the server, or NULL
 * @address: the server's
 */
struct mux_pair {
	struct weir_mux *server, *client;
	struct weir_mux_listener *listener;
	struct weir_mux_conn *near, *far;
	struct weir_mux_region *ours, *theirs;
	char address[64];
};

/* @options of both, or NULL; the pair sets the address and the key. */
void mux_pair_open(struct mux_pair *p, const struct weir_mux_options *options);
void mux_pair_close(struct mux_pair *p);
/* One more connection. */
void mux_pair_connect(struct mux_pair *p, const struct weir_mux_conn_options *options,
		      struct weir_mux_conn **near, struct weir_mux_conn **far);

struct weir_mux *mux_open(const struct weir_mux_options *options);
void wait_readable(int fd);
struct weir_mux_conn *accept_from(struct weir_mux_listener *listener);

#endif
