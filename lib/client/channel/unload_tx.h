/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The client's end of unloading: one more link, which the engine uses for unloaded writes. The
 * writes go into the slots of the donor's buffer, and complete with a return. See wire/unload.h.
 *
 * The link comes up, breaks and reconnects like the others. Writes in flight at a failure are in
 * doubt until the donor has given the buffer up. Data go inline, so that local memory is free after
 * posting; writes too long for inline are offloaded.
 *
 * All functions: with nic->lock held, unless noted.
 */
#ifndef WEIR_LIB_CLIENT_CHANNEL_UNLOAD_TX_H
#define WEIR_LIB_CLIENT_CHANNEL_UNLOAD_TX_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/engine/engine.h"
#include "lib/unload/unload_wr.h"
#include "wire/handshake.h"

struct weir_session_link;
struct weir_session;

/* Send queue entries; half may have completed unsignalled. */
#define WEIR_UNLOAD_TX_SENDS (2 * WIRE_UNLOAD_SLOTS)
/* CQ entries: sends, returns, and the handshake's sends and receives. */
#define WEIR_UNLOAD_TX_CQES (WEIR_UNLOAD_TX_SENDS + WIRE_UNLOAD_SLOTS + 4 * WIRE_HANDSHAKE_RECVS)

/**
 * struct weir_unload_tx - one session's
 * @route: chooses the path; @counters: its memory
 * @shown: number of decisions when the counters were last published
 * @buffer: the donor's
 */
struct weir_unload_tx {
	struct weir_path_selector route;
	uint8_t *counters;
	uint64_t shown;
	struct weir_unload_buffer buffer;
};

/* The SGEs of one unloaded work request: target address and data. */
struct weir_unload_tx_sges {
	uint64_t remote;
	struct ibv_sge sge[1 + WEIR_UNLOAD_SGE_MAX];
};

/* Return: true if @link is the unload link. Context: any. */
bool weir_unload_tx_is(const struct weir_session_link *link);

/* The channel number on the wire. Context: any. */
uint16_t weir_unload_tx_channel(const struct weir_session_link *link);

/* Sets up the choice of path from the options. The engine is initialised. Return: 0; -ENOMEM. */
int weir_unload_tx_init(struct weir_session *session);
void weir_unload_tx_fini(struct weir_session *session);

/*
 * Posts receives for the donor's returns. Context: the thread that connects. Return: 0 or an errno.
 */
int weir_unload_tx_post_recvs(struct ibv_qp *qp);

/**
 * weir_unload_tx_up() - start on a new QP
 * @inline_max: inline limit of the QP, bytes
 *
 * Return: 0; -EPROTO the donor describes no buffer.
 */
int weir_unload_tx_up(struct weir_session *session, const struct wire_handshake_welcome *welcome,
		      uint32_t inline_max);

/* Turns @out, filled in for @wr, into a write to the next slot. @sges: kept until posted. */
void weir_unload_tx_fill(struct weir_session_link *link, struct ibv_send_wr *out,
			 const struct weir_wr *wr, struct weir_unload_tx_sges *sges);

/* Handles a completion of the link: a return or a send. */
void weir_unload_tx_completed(struct weir_session_link *link, const struct ibv_wc *wc,
			     uint64_t now_ns);

/* Publishes the counters of the choice of path. */
void weir_unload_tx_publish(struct weir_session *session);

#endif
