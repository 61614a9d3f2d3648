/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attacks on a donor: before the proof of a key, and after it. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "tests/hostile/attacker.h"
#include "tests/support/raw_client.h"
#include "wire/control.h"

enum {
	HALF_OPEN = 64, /* more than a donor keeps for a key */
	MESSAGES = 60,
	VANISHING = 3, /* one of so many connections breaks, instead of being closed */
};

static struct wire_handshake_connect request_of(struct attacker *a)
{
	const struct weir_key none = { 0 };
	struct wire_handshake_connect request = raw_request(a->key ? a->key : &none, 0, 0);

	if (!a->key)
		attacker_noise(a, &request.key_id, sizeof(request.key_id));
	return request;
}

/* Connects with noise, or with a request for an unknown key, each a line of the log. */
static void flood_connects(struct attacker *a)
{
	struct wire_handshake_connect request = request_of(a);
	uint8_t noise[sizeof(request)];
	struct raw_client raw;

	attacker_noise(a, noise, sizeof(noise));
	attacker_noise(a, &request.key_id, sizeof(request.key_id));
	if (attacker_dice(a, 2))
		raw_connect(&raw, a->target, noise, 1 + attacker_dice(a, sizeof(noise)));
	else
		raw_connect(&raw, a->target, &request, sizeof(request));
	raw_close(&raw);
}

/* Keeps unproven connections open. */
static void hold_half_open(struct attacker *a)
{
	static struct raw_client held[HALF_OPEN];
	struct wire_handshake_connect request = request_of(a);
	struct raw_client *raw = &held[attacker_dice(a, HALF_OPEN)];

	raw_close(raw);
	raw_connect(raw, a->target, &request, sizeof(request));
}

/* Sends noise instead of the handshake, or in the middle of it. */
static void send_garbage(struct attacker *a)
{
	struct wire_handshake_connect request = request_of(a);
	uint8_t noise[WIRE_CONTROL_MESSAGE_BYTES];
	struct raw_client raw;
	int i;

	if (!raw_connect(&raw, a->target, &request, sizeof(request))) {
		for (i = 0; i < 4; i++) {
			attacker_noise(a, noise, 64);
			if (raw_send(&raw, noise, attacker_dice(a, 2) ? attacker_dice(a, 64) :
									sizeof(noise)))
				break;
		}
	}
	raw_close(&raw);
}

static size_t make_request(struct attacker *a, uint8_t *body)
{
	static const uint64_t values[] = { 0,	     1,		 4096,	     1ull << 20,
					   1ull << 40, 1ull << 62, UINT64_MAX, 7 };
	struct wire_control_request request = {
		.op = (uint16_t)attacker_dice(a, WIRE_DONOR_INFO + 2),
		.flags = attacker_dice(a, 16),
		.value = values[attacker_dice(a, 8)],
	};
	char name[2] = { (char)('a' + attacker_dice(a, 8)), '\0' };
	int length = wire_control_request_encode(&request, attacker_dice(a, 2) ? name : NULL, body);

	return length < 0 ? 0 : (size_t)length;
}

/* Proves the key, and then sends messages of all kinds; reads few of the answers. */
static void send_messages(struct attacker *a)
{
	uint8_t body[WIRE_CONTROL_BODY_MAX];
	struct wire_control_head head;
	struct raw_client raw;
	size_t length;
	int i;

	if (!raw_open(&raw, a->target, a->key)) {
		for (i = 0; i < MESSAGES && raw.is_up; i++) {
			length = make_request(a, body);
			if (!attacker_dice(a, 8))
				attacker_noise(a, body, length = attacker_dice(a, 600));
			raw_message(&raw,
				    attacker_dice(a, 4) ? WIRE_CONTROL_CALL :
							  attacker_dice(a, 9),
				    attacker_dice(a, 100), body, length);
			if (attacker_dice(a, 4))
				raw_answer(&raw, &head, body, 0);
		}
	}
	if (raw.is_up && !attacker_dice(a, VANISHING))
		raw_vanish(&raw);
	raw_close(&raw);
}

/* Takes all memory of the key, writes there, and leaves without closing the regions. */
static void take_all_memory(struct attacker *a)
{
	struct wire_control_region region;
	uint64_t length = 1ull << 40;
	struct raw_client raw;
	int taken = 0;

	if (!raw_open(&raw, a->target, a->key)) {
		raw_create(&raw, NULL, UINT64_MAX, 0, &region);
		for (; length >= 4096 && taken < 12; length /= 2) {
			if (raw_create(&raw, NULL, length, 0, &region))
				continue;
			taken++;
			raw_write(&raw, region.addr, region.rkey, RAW_DATA);
			raw_read(&raw, region.addr, region.rkey, RAW_DATA);
		}
	}
	raw_close(&raw);
}

/* Reads and writes with rkeys of others, or none; each ends the connection. */
static void guess_rkeys(struct attacker *a)
{
	struct wire_control_region region;
	struct raw_client raw;

	if (!raw_open(&raw, a->target, a->key) && !raw_create(&raw, NULL, 4096, 0, &region)) {
		region.rkey += attacker_dice(a, 64) - 32;
		if (attacker_dice(a, 2))
			region.addr += ((uint64_t)attacker_dice(a, 4096) - 2048) * 4096;
		if (attacker_dice(a, 2))
			raw_write(&raw, region.addr, region.rkey, 4096);
		else
			raw_read(&raw, region.addr, region.rkey, 4096);
	}
	raw_close(&raw);
}

const struct attack donor_attacks[] = {
	{ "connects", flood_connects }, { "half-open", hold_half_open },
	{ "garbage", send_garbage },	{ "messages", send_messages },
	{ "memory", take_all_memory },	{ "rkeys", guess_rkeys },
	{ 0 },
};
