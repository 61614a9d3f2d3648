// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A stranger who does not hear two ends sends them arbitrary messages and sealed packets, before,
 * during and after their agreement. The ends never agree with the stranger and open none of its
 * packets. No message ends their agreement. After it each of their packets opens once.
 *
 * The input is a sequence of records: an event, the length of what follows, and bytes.
 */
#include <assert.h>
#include <string.h>

#include "softnic/seal/agree.h"

enum { QPN_A = 0x4001, QPN_B = 0x8002, PSN_A = 1, PSN_B = 2, TEXT = 32, ROOM = 512 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct agree a, b;
static uint64_t now_ns;

static void start(struct agree *end, uint32_t qpn, uint32_t dest_qpn, uint32_t psn,
		  uint32_t receive_psn)
{
	const struct agree_config config = { qpn, dest_qpn, receive_psn };
	uint8_t secret[SEAL_KEY_BYTES];

	memset(secret, (int)psn, sizeof(secret));
	agree_init(end, &config);
	agree_arm(end, seal_ciphers(), secret);
	agree_ask(end, now_ns);
	agree_start(end, psn, now_ns);
}

/* The public keys are always the same, so a fuzzer could learn one. A stranger cannot. */
static bool knows_offer(const struct agree_message *m)
{
	return !memcmp(m->public, a.public, sizeof(a.public)) ||
	       !memcmp(m->public, b.public, sizeof(b.public));
}

/* Arbitrary bytes, behind a header that often names the right queue pair and PSN. */
static void forge(const uint8_t *data, size_t size, struct agree *to)
{
	bool is_a = to == &a;
	struct agree_message m = {
		.dest_qpn = size > 1 && data[1] % 8 ? to->config.qpn : QPN_A + 1,
		.psn = size > 2 && data[2] % 2 ? to->config.receive_psn : (is_a ? PSN_A : PSN_B),
		.kind = size > 3 ? data[3] % 3 + 1 : AGREE_OFFER,
		.ciphers = size > 4 ? data[4] : 0xff,
	};
	enum agree_state before = to->state;

	memcpy(m.public, data, size < sizeof(m.public) ? size : sizeof(m.public));
	memcpy(m.proof, data, size < sizeof(m.proof) ? size : sizeof(m.proof));
	if (!knows_offer(&m))
		agree_input(to, &m, now_ns);
	assert(to->state == before);
}

static void take_raw(const uint8_t *data, size_t size, struct agree *to)
{
	uint8_t bytes[ROOM] = { SEAL_OPCODE };
	enum agree_state before = to->state;
	struct agree_message m;

	if (agree_decode(&m, data, size) && !knows_offer(&m))
		agree_input(to, &m, now_ns);
	memcpy(bytes + 1, data, size);
	if (seal_is_sealed(bytes, size + 1))
		assert(!agree_open(to, bytes, size + 1));
	assert(to->state == before);
}

/* Each end sends its messages, and the other end gets those that are not lost. */
static void exchange(bool loses)
{
	struct agree_message m;

	if (agree_output(&a, &m, now_ns) && !loses)
		agree_input(&b, &m, now_ns);
	if (agree_output(&b, &m, now_ns) && !loses)
		agree_input(&a, &m, now_ns);
}

static void carry(struct agree *from, struct agree *to)
{
	uint8_t bytes[TEXT + SEAL_EXTRA_BYTES] = { 0 }, again[sizeof(bytes)];

	if (from->state != AGREE_SEALED || to->state == AGREE_CLEAR)
		return;
	assert(seal_close(&from->seal, to->config.qpn, bytes, TEXT) == sizeof(bytes));
	memcpy(again, bytes, sizeof(again));
	if (agree_open(to, bytes, sizeof(bytes))) {
		assert(!memcmp(from->session, to->session, sizeof(to->session)));
		assert(!agree_open(to, again, sizeof(again)));
	} else {
		assert(to->state == AGREE_OPEN); /* a stranger's offer replaced the peer's */
	}
}

static void play(uint8_t event, const uint8_t *data, size_t size)
{
	struct agree *to = event & 0x80 ? &a : &b;

	switch (event % 6) {
	case 0:
		forge(data, size, to);
		break;
	case 1:
		take_raw(data, size, to);
		break;
	case 2:
		exchange(event & 0x40);
		break;
	case 3:
		carry(to, to == &a ? &b : &a);
		break;
	case 4:
		now_ns += 1000000ull * (event & 0x3f);
		break;
	default:
		exchange(false);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t length;

	now_ns = 1;
	start(&a, QPN_A, QPN_B, PSN_A, PSN_B);
	start(&b, QPN_B, QPN_A, PSN_B, PSN_A);
	while (size > 2) {
		length = data[1] < size - 2 ? data[1] : size - 2;
		play(data[0], data + 2, length);
		data += 2 + length;
		size -= 2 + length;
	}
	return 0;
}
