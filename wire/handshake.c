/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/handshake.h"

static const uint8_t type_length[] = {
	[WIRE_HELLO] = sizeof(struct wire_handshake_hello),
	[WIRE_CHALLENGE] = sizeof(struct wire_handshake_challenge),
	[WIRE_PROOF] = sizeof(struct wire_handshake_proof),
	[WIRE_WELCOME] = sizeof(struct wire_handshake_welcome),
	[WIRE_REFUSAL] = sizeof(struct wire_handshake_refusal),
};

/* A peer's text goes to logs and terminals: only printable ASCII may pass. */
static void text_mask(char *text, size_t size)
{
	size_t i;

	text[size - 1] = '\0';
	for (i = 0; text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
}

int wire_handshake_connect_decode(const void *data, size_t length,
				  struct wire_handshake_connect *out)
{
	struct wire_handshake_connect connect;

	if (!data || length < offsetof(struct wire_handshake_connect, channel))
		return -EPROTO;
	memcpy(&connect, data, length < sizeof(connect) ? length : sizeof(connect));
	if (connect.magic != WIRE_MAGIC)
		return -EPROTO;
	if (connect.version != WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if (length < sizeof(connect) || connect.channel > WIRE_CHANNEL_UNLOAD ||
	    (!connect.session_id && connect.channel))
		return -EPROTO;
	*out = connect;
	return 0;
}

int wire_handshake_refusal_decode(const void *data, size_t length,
				  struct wire_handshake_refusal *out)
{
	struct wire_handshake_refusal refusal;

	if (!data || length < sizeof(refusal))
		return -EPROTO;
	memcpy(&refusal, data, sizeof(refusal));
	if (refusal.head.magic != WIRE_MAGIC || refusal.head.type != WIRE_REFUSAL)
		return -EPROTO;
	text_mask(refusal.text, sizeof(refusal.text));
	*out = refusal;
	return 0;
}

size_t wire_handshake_encode(union wire_handshake_message *message, enum wire_handshake_type type)
{
	message->head = (struct wire_handshake_head){
		.magic = WIRE_MAGIC,
		.version = WIRE_VERSION,
		.type = type,
		.length = type_length[type],
	};
	return message->head.length;
}

int wire_handshake_decode(const void *data, size_t length, union wire_handshake_message *out)
{
	struct wire_handshake_head head;

	if (length < sizeof(head))
		return -EPROTO;
	memcpy(&head, data, sizeof(head));
	if (head.magic != WIRE_MAGIC)
		return -EPROTO;
	if (head.version != WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if (head.type < WIRE_HELLO || head.type > WIRE_REFUSAL ||
	    head.length != type_length[head.type] || head.length != length)
		return -EPROTO;
	memcpy(out, data, length);
	if (head.type == WIRE_REFUSAL)
		text_mask(out->refusal.text, sizeof(out->refusal.text));
	return 0;
}
