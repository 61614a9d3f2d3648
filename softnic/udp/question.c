// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <string.h>

#include "softnic/udp/question.h"

enum {
	VERSION_AT = ROCE_BTH_BYTES,
	KIND_AT = VERSION_AT + 1,
	NONCE_AT = VERSION_AT + 4,
};

bool question_is_message(const uint8_t *bytes, size_t size)
{
	return size >= QUESTION_BYTES_MIN + ROCE_ICRC_BYTES && bytes[0] == QUESTION_OPCODE;
}

void question_encode(const struct question *q, uint8_t *bytes, size_t size)
{
	const struct roce_packet head = {
		.opcode = QUESTION_OPCODE,
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = q->dest_qpn,
	};

	memset(bytes, 0, size);
	roce_packet_encode(&head, bytes);
	bytes[VERSION_AT] = QUESTION_VERSION;
	bytes[KIND_AT] = q->kind;
	memcpy(bytes + NONCE_AT, &q->nonce, sizeof(q->nonce));
}

bool question_decode(struct question *q, const uint8_t *bytes)
{
	q->kind = bytes[KIND_AT];
	memcpy(&q->nonce, bytes + NONCE_AT, sizeof(q->nonce));
	return bytes[VERSION_AT] == QUESTION_VERSION && q->kind >= QUESTION &&
	       q->kind <= QUESTION_SAME_PORT;
}
