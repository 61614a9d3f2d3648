/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The donor's end of one client's unloading: the buffer that the client writes to, and the returns
 * that complete the writes. See core/unload/unload_rx.h and wire/unload.h. All but
 * weir_donor_unload_rx_close(): in the donor's thread.
 */
#ifndef WEIR_LIB_DONOR_UNLOAD_RX_H
#define WEIR_LIB_DONOR_UNLOAD_RX_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>
#include "lib/unload/unload_wr.h"
#include "wire/handshake.h"

struct weir_donor_conn;
struct weir_arena_extent;

/**
 * struct weir_donor_unload_rx - one buffer
 * @extent: in the donor's arena, so in huge pages if the arena is; @mr: over @extent
 * @core: counts copied and reported writes
 */
struct weir_donor_unload_rx {
	struct weir_arena_extent *extent;
	struct ibv_mr *mr;
	struct weir_unload_rx core;
};

/**
 * weir_donor_unload_rx_open() - create a proven client's buffer and post receives
 *
 * Return: 0; -ENOSPC; -ENOMEM.
 */
int weir_donor_unload_rx_open(struct weir_donor_conn *conn, struct weir_error *error);

/* Frees the buffer, if any, after the QP: the client can no longer write there. */
void weir_donor_unload_rx_close(struct weir_donor_conn *conn);

/* Describes the buffer in the client's WELCOME. */
void weir_donor_unload_rx_describe(const struct weir_donor_unload_rx *unload_rx,
				   struct wire_handshake_welcome *welcome);

/* Handles a written slot. Return: 0; -EPROTO another completion. */
int weir_donor_unload_rx_received(struct weir_donor_conn *conn, const struct ibv_wc *wc);

/**
 * weir_donor_unload_rx_send_returns() - report completed writes to the client
 * @more: further slots are waiting: the report may wait for them
 */
void weir_donor_unload_rx_send_returns(struct weir_donor_conn *conn, bool more);

#endif
