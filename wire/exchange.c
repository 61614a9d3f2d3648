/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/exchange.h"

int wire_exchange_connect_decode(const void *data, size_t length, struct wire_exchange_connect *out)
{
	struct wire_exchange_connect connect = { 0 };

	if (!data || length < offsetof(struct wire_exchange_connect, zero))
		return -EPROTO;
	memcpy(&connect, data, length < sizeof(connect) ? length : sizeof(connect));
	if (connect.magic != WIRE_EXCHANGE_MAGIC)
		return -EPROTO;
	if (connect.version != WIRE_EXCHANGE_VERSION)
		return -EPROTONOSUPPORT;
	if (length < offsetof(struct wire_exchange_connect, cookie) || connect.zero)
		return -EPROTO;
	*out = connect;
	return 0;
}

void wire_exchange_offer_encode(struct wire_exchange_offer *offer)
{
	offer->head = (struct wire_handshake_head){
		.magic = WIRE_EXCHANGE_MAGIC,
		.version = WIRE_EXCHANGE_VERSION,
		.type = WIRE_EXCHANGE_OFFER,
		.length = sizeof(*offer),
	};
}

int wire_exchange_offer_decode(const void *data, size_t length, struct wire_exchange_offer *out)
{
	static const uint8_t zero[sizeof(out->zero)];
	struct wire_exchange_offer offer;

	if (length < sizeof(offer.head))
		return -EPROTO;
	memcpy(&offer, data, length < sizeof(offer) ? length : sizeof(offer));
	if (offer.head.magic != WIRE_EXCHANGE_MAGIC)
		return -EPROTO;
	if (offer.head.version != WIRE_EXCHANGE_VERSION)
		return -EPROTONOSUPPORT;
	if (length != sizeof(offer) || offer.head.type != WIRE_EXCHANGE_OFFER ||
	    offer.head.length != sizeof(offer))
		return -EPROTO;
	if (!offer.slots || offer.slots > WIRE_EXCHANGE_SLOTS_MAX || !offer.slot_bytes ||
	    offer.slot_bytes > WIRE_EXCHANGE_SLOT_BYTES_MAX || offer.is_imm > 1 ||
	    offer.is_unordered > 1 || memcmp(offer.zero, zero, sizeof(zero)))
		return -EPROTO;
	*out = offer;
	return 0;
}

int wire_exchange_freed_decode(const void *data, size_t length, struct wire_exchange_freed *out)
{
	const size_t head = offsetof(struct wire_exchange_freed, slots);
	struct wire_exchange_freed gives;

	if (length < head || length > sizeof(gives))
		return -EPROTO;
	memcpy(&gives, data, length);
	if (!gives.count || gives.count > WIRE_EXCHANGE_FREED_MAX ||
	    length != head + gives.count * sizeof(gives.slots[0]))
		return -EPROTO;
	*out = gives;
	return 0;
}
