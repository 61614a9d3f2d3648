/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages between two muxes over their shared QPs, once the handshake is done:
 * docs/explanation/mux.md.
 *
 * Immediate 0 marks a control message. Any other immediate is the receiver's id of a connection,
 * and the message a piece of the connection's byte stream. A connection's messages all use one QP
 * and so arrive in order:
 *
 *	OPEN -> ACCEPT, pieces and CREDITs both ways, FIN from each end
 *	OPEN -> REFUSE
 *
 * OPEN and ACCEPT name the sender's receive ring, as long as the window: at @position, rkey
 * @length;
 * @position 0: no ring. A piece is sent, or written to the ring with an immediate: at the stream
 *	position modulo the window, never across the ring's end.
 *
 * A mux keeps at most WIRE_MUX_OPENS_MAX OPENs unanswered. A peer that exceeds the limit may find
 * no room for a refusal, and is disconnected.
 *
 * In the stream each application message follows a struct wire_mux_record. No end sends beyond its
 * grant: the window of OPEN or ACCEPT, then the position of each CREDIT. After its FIN an end sends
 * nothing more; an end that receives a FIN owes a FIN.
 *
 * LEAVE, LEFT and STAY use the QP of class 0 and belong to no connection: two muxes without
 * connections agree to close their queue pairs. After LEAVE a mux opens nothing until it receives
 * LEFT, STAY or the peer's LEAVE, which counts as LEFT. After sending or receiving LEFT a mux opens
 * nothing more.
 *
 * A GRANT lets the peer read or write memory one-sidedly, within bounds and rights. The grant ends
 * when the peer answers WITHDRAW by WITHDRAWN, or sends FIN: all its posted accesses are done by
 * then.
 */
#ifndef WEIR_WIRE_MUX_H
#define WEIR_WIRE_MUX_H

#include "wire/platform.h"

#define WIRE_MUX_SEGMENT_MAX 65536u /* bytes of a receive buffer */
#define WIRE_MUX_WINDOW_MIN 4096u /* smaller windows are refused */
#define WIRE_MUX_WINDOW_MAX (1u << 30)
#define WIRE_MUX_RECORD_MAX (1u << 30) /* bytes of one message */
#define WIRE_MUX_OPENS_MAX 256u /* unanswered OPENs of one mux at another */

enum wire_mux_type {
	WIRE_MUX_OPEN = 1, /* @to a service, @from the opener's id, @value window; ring */
	WIRE_MUX_ACCEPT, /* @to the opener's id, @from the acceptor's, @value window; ring */
	WIRE_MUX_REFUSE, /* @to the opener's id, @value a positive errno */
	WIRE_MUX_CREDIT, /* @to the id, @position: limit of the stream */
	WIRE_MUX_FIN, /* @to the id, @value 0, or a positive errno of an abort */
	WIRE_MUX_GRANT, /* @to the id, @from a handle: memory at @position, @length, rkey @value */
	WIRE_MUX_WITHDRAW, /* @to the id, @from a handle */
	WIRE_MUX_WITHDRAWN, /* @to the id, @from a handle: no longer in use */
	WIRE_MUX_LEAVE, /* no connection at the sender: may all QPs close? */
	WIRE_MUX_LEFT, /* yes, none at the sender either */
	WIRE_MUX_STAY, /* no, keep the QPs */
};

#define WIRE_MUX_MAY_READ 1u
#define WIRE_MUX_MAY_WRITE 2u

struct wire_mux_control {
	uint16_t type;
	uint16_t rights; /* GRANT: bits; otherwise 0 */
	uint32_t to, from, value;
	uint64_t position; /* byte offset in the stream; or the address of a ring or memory */
	uint64_t length;
};
static_assert(sizeof(struct wire_mux_control) == 32, "wire_mux_control");

/* Begins each message in a stream. */
struct wire_mux_record {
	uint32_t length; /* at most WIRE_MUX_RECORD_MAX */
	uint32_t zero;
};
static_assert(sizeof(struct wire_mux_record) == 8, "wire_mux_record");

/**
 * wire_mux_control_decode() - read a control message
 * @data, @length: as received; at any alignment
 * @out: receives the message
 *
 * Return: 0; -EPROTO malformed, or a value is out of range.
 */
int wire_mux_control_decode(const void *data, size_t length, struct wire_mux_control *out);

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");

#endif
