/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posts the probes of the session's keep-alive: core/link/keepalive.h.
 *
 * The unload channel is not probed: it leads to the same host.
 *
 * All functions: with nic->lock held.
 */
#ifndef WEIR_LIB_CLIENT_SESSION_KEEPALIVE_H
#define WEIR_LIB_CLIENT_SESSION_KEEPALIVE_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct weir_session;
struct weir_session_link;

/* The check when due: probes channels, or fails those without an answer. */
void weir_session_keepalive_check(struct weir_session *session, uint64_t now_ns);

/* Handles the completion of @link's probe. */
void weir_session_keepalive_completed(struct weir_session_link *link, enum ibv_wc_status status,
				      uint64_t now_ns);

/* Drops @link's probe, if any, when the QP is gone and no completion will come. */
void weir_session_keepalive_forget(struct weir_session_link *link);

#endif
