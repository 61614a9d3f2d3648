// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <string.h>

#include "softnic/shm/shared.h"
#include "softnic/wire/mad.h"
#include "softnic/wire/receive.h"
#include "softnic/wire/send.h"

#define MAD_QKEY 0x80010000u

static uint32_t (*listener)(const struct wire_mad *mad);
static uint32_t next_psn; /* under wire.lock */

void mad_reset(void)
{
	listener = NULL;
}

void wire_mad_listen(uint32_t (*fn)(const struct wire_mad *mad))
{
	store_release(&listener, fn);
}

void mad_take(const struct wire_packet *packet, const struct roce_packet *decoded)
{
	uint32_t (*fn)(const struct wire_mad *mad) = load_acquire(&listener);
	const struct wire_mad mad = {
		.from = packet->from,
		.to = packet->to.gid,
		.bytes = decoded->payload,
		.was_passed_on = packet->was_passed_on,
	};

	if (fn && decoded->opcode == (ROCE_UD | ROCE_SEND_ONLY) && decoded->qkey == MAD_QKEY &&
	    decoded->pkey == ROCE_PKEY_DEFAULT && decoded->payload_bytes == WIRE_MAD_BYTES)
		receive_pass_on(packet, fn(&mad));
}

void wire_mad_send(const union ibv_gid *from, const struct wire_address *to, const uint8_t *mad)
{
	const struct wire_path path = { *from, *to };
	struct roce_packet p = {
		.opcode = ROCE_UD | ROCE_SEND_ONLY,
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = MAD_QPN,
		.src_qpn = MAD_QPN,
		.qkey = MAD_QKEY,
		.payload_bytes = WIRE_MAD_BYTES,
	};
	uint8_t *at;
	size_t size;

	send_begin();
	at = send_room();
	p.psn = next_psn++ & 0xffffff;
	size = roce_packet_encode(&p, at);
	memcpy(at + size, mad, WIRE_MAD_BYTES);
	send_packet(&path, size + WIRE_MAD_BYTES);
	send_end();
}
