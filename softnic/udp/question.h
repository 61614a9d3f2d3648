/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The message by which a softnic shows that it is there, without I/O.
 *
 *	BTH (12 bytes)   opcode QUESTION_OPCODE
 *	version (1)
 *	kind (1)         enum question_kind
 *	0 (2)
 *	nonce (8)        of an answer: that of its question
 *	0 ...            so that sizes of packets can be tried
 *
 * A process hears questions at its own port and at port 4791. An answer is as long as its question,
 * so a sender with a forged address gains nothing by it.
 *
 * Context of all: any; no state.
 */
#ifndef WEIR_SOFTNIC_UDP_QUESTION_H
#define WEIR_SOFTNIC_UDP_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softnic/roce/packet.h"

enum {
	QUESTION_OPCODE = 0xc2, /* one of the manufacturer's */
	QUESTION_VERSION = 1,
	QUESTION_BYTES_MIN = ROCE_BTH_BYTES + 12,
};

enum question_kind {
	QUESTION = 1, /* answer from your own port */
	ANSWER,
	QUESTION_SAME_PORT, /* answer from the port at which you hear this */
};

struct question {
	enum question_kind kind;
	uint32_t dest_qpn;
	uint64_t nonce;
};

/** question_is_message() - does a packet claim to be one? @size: with the ICRC */
bool question_is_message(const uint8_t *bytes, size_t size);

/** question_encode() - write a message of @size bytes, at least QUESTION_BYTES_MIN, without ICRC */
void question_encode(const struct question *q, uint8_t *bytes, size_t size);

/**
 * question_decode() - read a message for which question_is_message() holds
 *
 * Return: false if it is of another version or of no kind: drop it.
 */
bool question_decode(struct question *q, const uint8_t *bytes);

#endif
