/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What two muxes send each other over the QPs that their connections share, once the handshake
 * is done: docs/explanation/mux.md tells the story.
 *
 * The immediate says what a message is: 0 is one of these; any other is the id of the
 * connection at the receiver, and the message a piece of its stream of bytes. One connection's
 * messages all go by one QP, so that they arrive in the order sent:
 *
 *	OPEN -> ACCEPT, pieces and CREDITs both ways, FIN from each end
 *	OPEN -> REFUSE
 *
 * OPEN and ACCEPT say where the ring lies that pieces come to, as long as the window: at @position,
 * rkey @length; @position 0: nowhere. A piece is sent, or written there, with an immediate too: at
 * its place in the stream, modulo the window, and not across the ring's end.
 *
 * Nobody has more than WIRE_OPENS_MAX of his OPENs unanswered: who does not keep to that may find
 * that there is no room for a refusal, and is cut off.
 *
 * In the stream each of the application's messages follows a struct wire_record. Nobody sends
 * beyond what has been granted: the window of OPEN or ACCEPT, and then each CREDIT's position.
 * After its FIN an end sends nothing more; who gets one owes one.
 *
 * LEAVE, LEFT and STAY are of the lane of class 0, and of no connection: whether the queue pairs
 * between two muxes may go, since none is left. Who has said LEAVE opens nothing until he has heard
 * LEFT, STAY or the other's LEAVE, which is as good as LEFT; who has said LEFT, or has heard it,
 * opens nothing more.
 *
 * A GRANT lets the other end read or write memory one-sidedly, within its bounds and rights, until
 * it has answered a WITHDRAW by WITHDRAWN, or has sent FIN: whatever it had posted is done by then.
 */
#ifndef WEIR_WIRE_MUX_H
#define WEIR_WIRE_MUX_H

#include "wire/platform.h"

#define WIRE_PIECE_MAX 65536u /* bytes: receive buffers are that long */
#define WIRE_WINDOW_MIN 4096u /* less is refused */
#define WIRE_WINDOW_MAX (1u << 30)
#define WIRE_RECORD_MAX (1u << 30) /* bytes of one message */
#define WIRE_OPENS_MAX 256u /* of a mux at another, that are not answered yet */

enum wire_mux_type {
	WIRE_MUX_OPEN = 1, /* @to a service, @from the opener's id, @value its window; its ring */
	WIRE_MUX_ACCEPT, /* @to the opener's id, @from the acceptor's, @value its window; its ring */
	WIRE_MUX_REFUSE, /* @to the opener's id, @value a positive errno */
	WIRE_MUX_CREDIT, /* @to the id, @position: the stream may be sent up to it */
	WIRE_MUX_FIN, /* @to the id, @value 0, or a positive errno: it is cut off */
	WIRE_MUX_GRANT, /* @to the id, @from a handle: memory at @position of @length, rkey @value */
	WIRE_MUX_WITHDRAW, /* @to the id, @from a handle */
	WIRE_MUX_WITHDRAWN, /* @to the id, @from a handle: it is used no more */
	WIRE_MUX_LEAVE, /* there is no connection here: may all end? */
	WIRE_MUX_LEFT, /* nor here: it may */
	WIRE_MUX_STAY, /* it may not */
};

#define WIRE_MAY_READ 1u
#define WIRE_MAY_WRITE 2u

struct wire_mux {
	uint16_t type;
	uint16_t rights; /* of a GRANT: bits; all else has 0 */
	uint32_t to, from, value;
	uint64_t position; /* bytes from the stream's beginning; or an address, of a ring or memory */
	uint64_t length;
};
static_assert(sizeof(struct wire_mux) == 32, "wire_mux");

/* Begins each message in a stream. */
struct wire_record {
	uint32_t length; /* at most WIRE_RECORD_MAX */
	uint32_t zero;
};
static_assert(sizeof(struct wire_record) == 8, "wire_record");

/**
 * wire_mux_decode() - read a control message
 * @data, @length: as received; at any alignment
 * @out: what is said
 *
 * Return: 0; -EPROTO it is none, or a number is out of its range.
 */
int wire_mux_decode(const void *data, size_t length, struct wire_mux *out);

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");

#endif
