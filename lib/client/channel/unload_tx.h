/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client's end of unloading: one more link, of which the engine knows that it unloads. Its writes
 * go into the slots of the donor's buffer, and are complete when a return says so. See
 * wire/unload.h.
 *
 * The link comes up, breaks and is mended as the others are: what it had in flight then is astray,
 * until the donor has given the buffer up. Data go inline: local memory is free once they are
 * posted, and what is too long for that is offloaded.
 *
 * All functions: with nic->lock held, unless noted.
 */
#ifndef WEIR_LIB_CLIENT_CHANNEL_UNLOAD_TX_H
#define WEIR_LIB_CLIENT_CHANNEL_UNLOAD_TX_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/engine/engine.h"
#include "wire/handshake.h"
#include "wire/unload.h"

struct weir_link;
struct weir_session;

/* In the send queue; half of them may have completed without a word. */
#define WEIR_UNLOAD_TX_SENDS (2 * WIRE_UNLOAD_SLOTS)
#define WEIR_UNLOAD_HOT_PAGES_DEFAULT 4096
/* All that may be in its CQ at once: what was sent, returns, and the handshake's of it. */
#define WEIR_UNLOAD_TX_CQES (WEIR_UNLOAD_TX_SENDS + WIRE_UNLOAD_SLOTS + 4 * WIRE_HANDSHAKE_RECVS)

/**
 * struct weir_unload_tx - one session's
 * @route: who decides; @counters: its
 * @shown: of its decisions, when others were last shown what it has counted
 * @buffer, @rkey: the donor's
 * @next: the slot that is written next, modulo 2^16; @done: as far as the donor has said
 */
struct weir_unload_tx {
	struct weir_path_selector route;
	uint8_t *counters;
	uint64_t shown;
	uint64_t buffer;
	uint32_t rkey;
	uint16_t next;
	uint16_t done;
};

/* The pieces of one unloaded work request: where it goes, and what it carries. */
struct weir_unload_tx_pieces {
	uint64_t remote;
	struct ibv_sge sge[1 + WEIR_UNLOAD_SGE_MAX];
};

/* Whether @link is the one that unloads. Context: any. */
bool weir_unload_tx_is(const struct weir_link *link);

/* The channel as the wire numbers it. Context: any. */
uint16_t weir_unload_tx_channel(const struct weir_link *link);

/* Sets up the choice of path, as the options say. The engine is initialised. Return: 0; -ENOMEM. */
int weir_unload_tx_init(struct weir_session *session);
void weir_unload_tx_fini(struct weir_session *session);

/*
 * Posts receives for the donor's returns. Context: who brings the link up. Return: 0 or an errno.
 */
int weir_unload_tx_post_recvs(struct ibv_qp *qp);

/**
 * weir_unload_tx_up() - the link has a new QP
 * @inline_max: bytes that it takes inline
 *
 * Return: 0; -EPROTO the donor describes no buffer.
 */
int weir_unload_tx_up(struct weir_session *session, const struct wire_handshake_welcome *welcome,
		      uint32_t inline_max);

/*
 * Makes of @out, filled in for @wr, a write into the next slot. @pieces: kept until it is posted.
 */
void weir_unload_tx_fill(struct weir_link *link, struct ibv_send_wr *out, const struct weir_wr *wr,
			 struct weir_unload_tx_pieces *pieces);

/* One completion of the link's: a return, or of what was sent. Return: WRs that it tells of. */
int weir_unload_tx_completed(struct weir_link *link, const struct ibv_wc *wc, uint64_t now_ns);

/* Shows what the choice of path has come to, to those who look from outside. */
void weir_unload_tx_publish(struct weir_session *session);

#endif
