// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <string.h>

#include "softnic/loop/loop.h"
#include "softnic/shm/shared.h"
#include "softnic/tap/capture.h"
#include "softnic/udp/mad.h"
#include "softnic/udp/receive.h"
#include "softnic/udp/send.h"

#define MAD_QKEY 0x80010000u

enum { WAITING_MAX = 64, PACKET_MAX = 512, DETH_BYTES = 8 };

static bool pass_to_listener(struct softnic_work *work);

/* MADs until the engine tells the listener, in the order of arrival. */
static struct {
	pthread_mutex_t lock; /* a leaf */
	struct waiting_mad {
		struct udp_packet packet;
		bool is_refused;
		uint8_t bytes[PACKET_MAX];
	} mads[WAITING_MAX];
	uint32_t first, count;
	struct softnic_work work;
} waiting = { .lock = PTHREAD_MUTEX_INITIALIZER, .work = { .fn = pass_to_listener } };

static uint32_t (*listener)(const struct udp_mad *mad);
static uint32_t next_psn; /* under udp.lock */

void mad_reset(void)
{
	listener = NULL;
	waiting.count = 0;
	pthread_mutex_init(&waiting.lock, NULL);
}

void udp_mad_listen(uint32_t (*fn)(const struct udp_mad *mad))
{
	store_release(&listener, fn);
}

static bool take_waiting(struct waiting_mad *w)
{
	bool any;

	pthread_mutex_lock(&waiting.lock);
	any = waiting.count > 0;
	if (any) {
		*w = waiting.mads[waiting.first++ % WAITING_MAX];
		waiting.count--;
	}
	pthread_mutex_unlock(&waiting.lock);
	return any;
}

static bool pass_to_listener(struct softnic_work *work)
{
	uint32_t (*fn)(const struct udp_mad *mad) = load_acquire(&listener);
	struct waiting_mad w;
	struct udp_mad mad;
	uint32_t slot;

	(void)work;
	if (!take_waiting(&w))
		return false;
	w.packet.bytes = w.bytes;
	mad = (struct udp_mad){
		.from = w.packet.from,
		.to = w.packet.to.gid,
		.bytes = w.bytes + w.packet.size - ROCE_ICRC_BYTES - UDP_MAD_BYTES,
		.was_passed_on = w.packet.was_passed_on,
		.is_refused = w.is_refused,
	};
	slot = fn ? fn(&mad) : 0;
	if (!w.is_refused && (!slot || mad.was_passed_on))
		capture_packet(&w.packet.from, &w.packet.to, w.bytes, w.packet.size);
	receive_pass_on(&w.packet, slot);
	return true;
}

/* Drops a MAD if too many wait: the network may lose it, too. */
static void let_wait(const struct udp_packet *packet, bool is_refused)
{
	struct waiting_mad *w;

	pthread_mutex_lock(&waiting.lock);
	if (waiting.count < WAITING_MAX && packet->size <= PACKET_MAX) {
		w = &waiting.mads[(waiting.first + waiting.count++) % WAITING_MAX];
		w->packet = *packet;
		w->is_refused = is_refused;
		memcpy(w->bytes, packet->bytes, packet->size);
	}
	pthread_mutex_unlock(&waiting.lock);
	softnic_loop_kick_work(&waiting.work);
}

void mad_take(const struct udp_packet *packet, const struct roce_packet *decoded)
{
	if (load_acquire(&listener) && decoded->opcode == (ROCE_UD | ROCE_SEND_ONLY) &&
	    decoded->qkey == MAD_QKEY && decoded->pkey == ROCE_PKEY_DEFAULT &&
	    decoded->payload_bytes == UDP_MAD_BYTES)
		let_wait(packet, false);
}

/* The quotation may end before the ICRC. */
void mad_refused(const struct udp_address *to, const uint8_t *bytes, size_t size)
{
	uint8_t whole[ROCE_BTH_BYTES + DETH_BYTES + UDP_MAD_BYTES + ROCE_ICRC_BYTES] = { 0 };
	const struct udp_packet packet = { .from = *to, .bytes = whole, .size = sizeof(whole) };

	if (!load_acquire(&listener) || size < sizeof(whole) - ROCE_ICRC_BYTES)
		return;
	memcpy(whole, bytes, sizeof(whole) - ROCE_ICRC_BYTES);
	let_wait(&packet, true);
}

void udp_mad_send(const union ibv_gid *from, const struct udp_address *to, const uint8_t *mad)
{
	const struct udp_path path = { *from, *to };
	struct roce_packet p = {
		.opcode = ROCE_UD | ROCE_SEND_ONLY,
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = MAD_QPN,
		.src_qpn = MAD_QPN,
		.qkey = MAD_QKEY,
		.payload_bytes = UDP_MAD_BYTES,
	};
	uint8_t *at;
	size_t size;

	send_begin();
	at = send_room();
	p.psn = next_psn++ & 0xffffff;
	size = roce_packet_encode(&p, at);
	memcpy(at + size, mad, UDP_MAD_BYTES);
	send_packet(&path, size + UDP_MAD_BYTES);
	send_end();
}
