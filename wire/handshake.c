/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/handshake.h"

static const uint8_t type_length[] = {
	[WIRE_HELLO] = sizeof(struct wire_handshake_sealed_hello),
	[WIRE_CHALLENGE] = sizeof(struct wire_handshake_sealed_challenge),
	[WIRE_PROOF] = sizeof(struct wire_handshake_proof),
	[WIRE_WELCOME] = sizeof(struct wire_handshake_sealed_welcome),
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

int wire_handshake_connect_decode_as(const void *data, size_t length,
				     const struct wire_handshake_versions *versions,
				     struct wire_handshake_connect *out)
{
	struct wire_handshake_connect connect = { 0 };

	if (!data || length < offsetof(struct wire_handshake_connect, channel))
		return -EPROTO;
	memcpy(&connect, data, length < sizeof(connect) ? length : sizeof(connect));
	if (connect.magic != WIRE_MAGIC)
		return -EPROTO;
	if (connect.version < versions->min || connect.version > versions->max) {
		out->version = connect.version;
		return -EPROTONOSUPPORT;
	}
	if (length < offsetof(struct wire_handshake_connect, cookie) ||
	    connect.channel > WIRE_CHANNEL_UNLOAD || (!connect.session_id && connect.channel))
		return -EPROTO;
	*out = connect;
	return 0;
}

int wire_handshake_connect_decode(const void *data, size_t length,
				  struct wire_handshake_connect *out)
{
	return wire_handshake_connect_decode_as(data, length, &WIRE_VERSIONS, out);
}

uint16_t wire_handshake_reject_version(const struct wire_handshake_versions *versions,
				       uint16_t asked)
{
	return asked >= versions->min && asked <= versions->max ? asked : versions->max;
}

uint16_t wire_handshake_next_version(const struct wire_handshake_versions *versions, uint16_t asked,
				     uint16_t offered)
{
	return offered >= versions->min && offered < asked ? offered : 0;
}

int wire_handshake_reject_decode(const void *data, size_t length, struct wire_handshake_reject *out)
{
	struct wire_handshake_reject reject = { 0 };

	if (!data || length < sizeof(reject.refusal))
		return -EPROTO;
	memcpy(&reject, data, length < sizeof(reject) ? length : sizeof(reject));
	if (reject.refusal.head.magic != WIRE_MAGIC || reject.refusal.head.type != WIRE_REFUSAL)
		return -EPROTO;
	text_mask(reject.refusal.text, sizeof(reject.refusal.text));
	*out = reject;
	return 0;
}

bool wire_handshake_has_cookie(const uint8_t cookie[WIRE_COOKIE])
{
	static const uint8_t none[WIRE_COOKIE];

	return memcmp(cookie, none, sizeof(none));
}

size_t wire_handshake_encode_as(union wire_handshake_message *message,
				enum wire_handshake_type type, uint16_t version)
{
	message->head = (struct wire_handshake_head){
		.magic = WIRE_MAGIC,
		.version = version,
		.type = type,
		.length = type_length[type],
	};
	return message->head.length;
}

size_t wire_handshake_encode(union wire_handshake_message *message, enum wire_handshake_type type)
{
	return wire_handshake_encode_as(message, type, WIRE_VERSION);
}

int wire_handshake_decode_as(const void *data, size_t length, uint16_t version,
			     union wire_handshake_message *out)
{
	struct wire_handshake_head head;

	if (length < sizeof(head))
		return -EPROTO;
	memcpy(&head, data, sizeof(head));
	if (head.magic != WIRE_MAGIC)
		return -EPROTO;
	if (head.version != version)
		return -EPROTONOSUPPORT;
	if (head.type < WIRE_HELLO || head.type > WIRE_REFUSAL ||
	    head.length != type_length[head.type] || head.length != length)
		return -EPROTO;
	memcpy(out, data, length);
	if (head.type == WIRE_REFUSAL)
		text_mask(out->refusal.text, sizeof(out->refusal.text));
	return 0;
}

int wire_handshake_decode(const void *data, size_t length, union wire_handshake_message *out)
{
	return wire_handshake_decode_as(data, length, WIRE_VERSION, out);
}
