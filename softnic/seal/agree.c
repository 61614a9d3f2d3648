// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Keys are BLAKE2b hashes, keyed by the X25519 secret, of what both ends know: cipher, public keys
 * and queue pair numbers, in the order of the public keys. An end thus needs no role, and a
 * message that was changed on its way leads to other keys.
 */
#include <string.h>

#include "softnic/seal/agree.h"
#include "softnic/seal/secret.h"

enum {
	OFFERS_MAX = 9, /* then the peer is no softnic: after 1.9 s, before a transport gives up */
	OFFERS_MAX_HEARD = 20, /* to a peer that has offered: after 5.4 s */
	OFFERS_MAX_CLEAR = 3, /* to a peer that sends clear text: after 140 ms */
	WAIT_MS = 20, /* for an answer, at first */
	WAIT_MS_MAX = 320,
	KIND_AT = ROCE_BTH_BYTES + 1,
	PUBLIC_AT = ROCE_BTH_BYTES + 4,
	PROOF_AT = PUBLIC_AT + AGREE_PUBLIC_BYTES,
};

#define NS_PER_MS 1000000ull

static const char label[] = "softnic wire 1";

/* The uses of the secret, each with a key of its own. */
enum use { LOWER_SENDS, HIGHER_SENDS, CONFIRMS, NAMES_SESSION };

bool agree_is_message(const uint8_t *bytes, size_t size)
{
	return size == AGREE_MESSAGE_BYTES + ROCE_ICRC_BYTES && bytes[0] == AGREE_OPCODE;
}

void agree_encode(const struct agree_message *m, uint8_t *bytes)
{
	const struct roce_packet head = { .opcode = AGREE_OPCODE,
					  .pkey = ROCE_PKEY_DEFAULT,
					  .dest_qpn = m->dest_qpn,
					  .psn = m->psn };

	roce_packet_encode(&head, bytes);
	bytes[ROCE_BTH_BYTES] = AGREE_VERSION;
	bytes[KIND_AT] = m->kind;
	bytes[KIND_AT + 1] = m->ciphers;
	bytes[KIND_AT + 2] = 0;
	memcpy(bytes + PUBLIC_AT, m->public, sizeof(m->public));
	memcpy(bytes + PROOF_AT, m->proof, sizeof(m->proof));
}

static uint32_t get_u24(const uint8_t *from)
{
	return (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
}

bool agree_decode(struct agree_message *m, const uint8_t *bytes, size_t size)
{
	if (!agree_is_message(bytes, size) || bytes[ROCE_BTH_BYTES] != AGREE_VERSION ||
	    bytes[KIND_AT] < AGREE_OFFER || bytes[KIND_AT] > AGREE_PLAIN)
		return false;
	*m = (struct agree_message){
		.dest_qpn = get_u24(bytes + 5),
		.psn = get_u24(bytes + 9),
		.kind = bytes[KIND_AT],
		.ciphers = bytes[KIND_AT + 1],
	};
	memcpy(m->public, bytes + PUBLIC_AT, sizeof(m->public));
	memcpy(m->proof, bytes + PROOF_AT, sizeof(m->proof));
	return true;
}

void agree_init(struct agree *a, const struct agree_config *config)
{
	memset(a, 0, sizeof(*a));
	a->config = *config;
	a->deadline_ns = AGREE_NEVER;
}

void agree_arm(struct agree *a, uint8_t ciphers, const uint8_t secret[SEAL_KEY_BYTES])
{
	a->is_armed = true;
	if (!ciphers || a->state != AGREE_OPEN)
		return;
	memcpy(a->secret, secret, sizeof(a->secret));
	if (!sodium_calls()->crypto_scalarmult_base(a->public, a->secret))
		a->ciphers = ciphers;
}

void agree_fini(struct agree *a)
{
	explicit_bzero(a, sizeof(*a));
}

static void forget_secret(struct agree *a)
{
	explicit_bzero(a->secret, sizeof(a->secret));
	a->deadline_ns = AGREE_NEVER;
	a->owed = 0;
}

static void decide_clear(struct agree *a)
{
	a->state = AGREE_CLEAR;
	explicit_bzero(&a->seal, sizeof(a->seal));
	forget_secret(a);
}

static void begin_to_offer(struct agree *a, uint64_t now_ns)
{
	if (a->state == AGREE_OPEN && a->asks && a->has_started && a->deadline_ns == AGREE_NEVER)
		a->deadline_ns = now_ns;
}

void agree_start(struct agree *a, uint32_t send_psn, uint64_t now_ns)
{
	if (a->has_started)
		return;
	a->has_started = true;
	a->send_psn = send_psn;
	begin_to_offer(a, now_ns);
}

void agree_ask(struct agree *a, uint64_t now_ns)
{
	if (a->ciphers)
		a->asks = true;
	begin_to_offer(a, now_ns);
}

bool agree_must_wait(const struct agree *a)
{
	return a->state == AGREE_OPEN && (a->has_candidate || (a->asks && a->has_started));
}

static void put_u32(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 24);
	to[1] = (uint8_t)(value >> 16);
	to[2] = (uint8_t)(value >> 8);
	to[3] = (uint8_t)value;
}

/* Return: the end of the bytes. */
static uint8_t *append_end(uint8_t *to, const uint8_t *public, uint32_t qpn)
{
	memcpy(to, public, AGREE_PUBLIC_BYTES);
	put_u32(to + AGREE_PUBLIC_BYTES, qpn);
	return to + AGREE_PUBLIC_BYTES + sizeof(qpn);
}

static void derive(const struct agree *a, const uint8_t *shared, const uint8_t *peer,
		   enum seal_cipher cipher, enum use use, uint8_t key[SEAL_KEY_BYTES])
{
	uint8_t bytes[sizeof(label) + 2 + 2 * (AGREE_PUBLIC_BYTES + 4)], *end = bytes;
	bool is_lower = memcmp(a->public, peer, AGREE_PUBLIC_BYTES) < 0;

	memcpy(end, label, sizeof(label));
	end += sizeof(label);
	*end++ = (uint8_t)use;
	*end++ = (uint8_t)cipher;
	if (is_lower)
		end = append_end(end, a->public, a->config.qpn);
	end = append_end(end, peer, a->config.dest_qpn);
	if (!is_lower)
		end = append_end(end, a->public, a->config.qpn);
	sodium_calls()->crypto_generichash(key, SEAL_KEY_BYTES, bytes, end - bytes, shared,
					   crypto_scalarmult_BYTES);
}

/* The proof of the end with the public key @prover. */
static void prove(const uint8_t *prover, const uint8_t confirm[SEAL_KEY_BYTES],
		  uint8_t proof[AGREE_PROOF_BYTES])
{
	sodium_calls()->crypto_generichash(proof, AGREE_PROOF_BYTES, prover, AGREE_PUBLIC_BYTES,
					   confirm, SEAL_KEY_BYTES);
}

/*
 * Derives the keys that an offer or answer leads to. The keys of an open agreement have sealed
 * nothing, so they may be replaced.
 */
static bool take_public(struct agree *a, const struct agree_message *m)
{
	enum seal_cipher cipher = seal_choose(m->ciphers & a->ciphers);
	uint8_t shared[crypto_scalarmult_BYTES], lower[SEAL_KEY_BYTES], higher[SEAL_KEY_BYTES];
	uint8_t confirm[SEAL_KEY_BYTES];
	bool is_lower = memcmp(a->public, m->public, AGREE_PUBLIC_BYTES) < 0;

	if (!cipher || !memcmp(a->public, m->public, AGREE_PUBLIC_BYTES) ||
	    sodium_calls()->crypto_scalarmult(shared, a->secret, m->public))
		return false;
	derive(a, shared, m->public, cipher, LOWER_SENDS, lower);
	derive(a, shared, m->public, cipher, HIGHER_SENDS, higher);
	derive(a, shared, m->public, cipher, CONFIRMS, confirm);
	derive(a, shared, m->public, cipher, NAMES_SESSION, a->session);
	seal_init(&a->seal, cipher, is_lower ? lower : higher, is_lower ? higher : lower);
	memcpy(a->peer, m->public, sizeof(a->peer));
	prove(a->public, confirm, a->proof);
	prove(a->peer, confirm, a->peer_proof);
	explicit_bzero(confirm, sizeof(confirm));
	explicit_bzero(shared, sizeof(shared));
	explicit_bzero(lower, sizeof(lower));
	explicit_bzero(higher, sizeof(higher));
	secret_forget_registers();
	return true;
}

/* The peer's key is proven. */
static void agree_on(struct agree *a)
{
	a->state = AGREE_SEALED;
	forget_secret(a);
}

static bool knows_offer(const struct agree *a, const struct agree_message *m)
{
	return a->has_candidate && !memcmp(a->peer, m->public, sizeof(a->peer));
}

/* A repeated offer costs no public-key operation, and after the agreement no other counts. */
static void offer_received(struct agree *a, const struct agree_message *m, uint64_t now_ns)
{
	if (m->psn != a->config.receive_psn)
		return;
	if (a->state == AGREE_CLEAR || !seal_choose(m->ciphers & a->ciphers)) {
		if (a->state == AGREE_SEALED)
			return;
		a->owed = AGREE_PLAIN;
		memcpy(a->refused, m->public, sizeof(a->refused));
		return;
	}
	if (!knows_offer(a, m)) {
		if (a->state == AGREE_SEALED || !take_public(a, m))
			return;
		a->has_candidate = true;
	}
	a->owed = AGREE_ANSWER;
	agree_ask(a, now_ns);
}

static void answer_received(struct agree *a, const struct agree_message *m)
{
	if (a->state != AGREE_OPEN || !a->offers || m->psn != a->send_psn)
		return;
	if (!knows_offer(a, m)) {
		a->has_candidate = false;
		if (!take_public(a, m))
			return;
	}
	if (sodium_calls()->crypto_verify_32(a->peer_proof, m->proof))
		return;
	a->has_candidate = true;
	agree_on(a);
}

/* Without the echo, anybody who guesses the PSN could end the encryption. */
static void plain_received(struct agree *a, const struct agree_message *m)
{
	if (a->state == AGREE_OPEN && a->offers && m->psn == a->send_psn &&
	    !memcmp(m->public, a->public, sizeof(a->public)))
		decide_clear(a);
}

void agree_input(struct agree *a, const struct agree_message *m, uint64_t now_ns)
{
	if (m->dest_qpn != a->config.qpn)
		return;
	if (m->kind == AGREE_OFFER)
		offer_received(a, m, now_ns);
	else if (m->kind == AGREE_ANSWER)
		answer_received(a, m);
	else
		plain_received(a, m);
}

size_t agree_open(struct agree *a, uint8_t *bytes, size_t size)
{
	size_t opened;

	if (a->state == AGREE_CLEAR || !a->has_candidate)
		return 0;
	opened = seal_open(&a->seal, bytes, size);
	if (opened && a->state == AGREE_OPEN)
		agree_on(a);
	return opened;
}

/*
 * Another device that we keep waiting gives up sooner than we do, so its clear text shortens our
 * wait. A peer that has offered sends clear text only after it has given up. But a stranger may
 * have guessed the PSN, so a softnic still gets the time for an answer.
 */
void agree_heard_clear(struct agree *a, bool of_softnic)
{
	if (a->state != AGREE_OPEN)
		return;
	if (!a->asks || (a->has_candidate && !a->has_started))
		decide_clear(a);
	else if (a->has_candidate || !of_softnic)
		a->hears_clear = true;
}

static uint64_t wait_ns(uint32_t offers)
{
	uint64_t ms = (uint64_t)WAIT_MS << (offers < 8 ? offers : 8);

	return (ms < WAIT_MS_MAX ? ms : WAIT_MS_MAX) * NS_PER_MS;
}

/* A peer that has offered is a softnic, and may have agreed already. It gets more time. */
static uint32_t offers_max(const struct agree *a)
{
	return a->hears_clear	? OFFERS_MAX_CLEAR :
	       a->has_candidate ? OFFERS_MAX_HEARD :
				  OFFERS_MAX;
}

/* Sets what is owed once the deadline has passed. */
static void expire(struct agree *a, uint64_t now_ns)
{
	if (now_ns < a->deadline_ns || a->owed)
		return;
	if (a->offers >= offers_max(a)) {
		decide_clear(a);
		return;
	}
	a->owed = AGREE_OFFER;
	a->deadline_ns = now_ns + wait_ns(a->offers);
	a->offers++;
}

bool agree_output(struct agree *a, struct agree_message *m, uint64_t now_ns)
{
	expire(a, now_ns);
	if (!a->owed)
		return false;
	*m = (struct agree_message){
		.dest_qpn = a->config.dest_qpn,
		.psn = a->owed == AGREE_OFFER ? a->send_psn : a->config.receive_psn,
		.kind = a->owed,
		.ciphers = a->owed == AGREE_PLAIN ? 0 : a->ciphers,
	};
	memcpy(m->public, a->owed == AGREE_PLAIN ? a->refused : a->public, sizeof(m->public));
	if (a->owed == AGREE_ANSWER)
		memcpy(m->proof, a->proof, sizeof(m->proof));
	a->owed = 0;
	return true;
}

uint64_t agree_deadline_ns(const struct agree *a)
{
	return a->deadline_ns;
}
