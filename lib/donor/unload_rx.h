/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor's end of what one client unloads: the buffer that it writes to, and the returns that
 * complete its writes. See core/unload/unload_rx.h and wire/unload.h.
 *
 * All but weir_donor_unload_rx_close(): in the donor's thread.
 */
#ifndef WEIR_LIB_DONOR_UNLOAD_RX_H
#define WEIR_LIB_DONOR_UNLOAD_RX_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>
#include "core/unload/unload_rx.h"
#include "wire/handshake.h"
#include "wire/unload.h"

#define WEIR_UNLOAD_RX_RETURNS_MAX WIRE_UNLOAD_SLOTS /* in flight */

struct weir_donor_conn;
struct weir_arena_extent;

/**
 * struct weir_donor_unload_rx - one buffer
 * @extent: in the donor's arena, so in huge pages when that is; @mr: over it
 * @copier: what is copied, and told
 * @returns: in flight, or not known to have arrived; @unsignalled: of them, the last
 */
struct weir_donor_unload_rx {
	struct weir_arena_extent *extent;
	struct ibv_mr *mr;
	struct weir_unload_rx copier;
	uint32_t returns;
	uint32_t unsignalled;
};

/**
 * weir_donor_unload_rx_open() - make a proven client's buffer, and be ready for what it unloads
 *
 * Return: 0; -ENOSPC; -ENOMEM.
 */
int weir_donor_unload_rx_open(struct weir_donor_conn *conn, struct weir_error *error);

/* The conn's QP is destroyed: nobody writes there any more. Without a ring it does nothing. */
void weir_donor_unload_rx_close(struct weir_donor_conn *conn);

/* What the client has to know. */
void weir_donor_unload_rx_describe(const struct weir_donor_unload_rx *unload_rx,
				   struct wire_handshake_welcome *welcome);

/* A slot was written, or something else came. Return: 0; -EPROTO it is none of what may come. */
int weir_donor_unload_rx_received(struct weir_donor_conn *conn, const struct ibv_wc *wc);

/* A signalled return has arrived, and all before it. */
void weir_donor_unload_rx_return_arrived(struct weir_donor_unload_rx *unload_rx);

/**
 * weir_donor_unload_rx_send_returns() - tell the client what is done
 * @more: further slots are there already: it can wait until there is enough to tell
 */
void weir_donor_unload_rx_send_returns(struct weir_donor_conn *conn, bool more);

#endif
