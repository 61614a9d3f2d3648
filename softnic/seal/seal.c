// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <string.h>

#include "softnic/roce/packet.h"
#include "softnic/seal/seal.h"

enum { NONCE_BYTES = 12, QPN_AT = 5, COUNTER_AT = ROCE_BTH_BYTES, COUNTER_BYTES = 8 };

_Static_assert(COUNTER_AT + COUNTER_BYTES == SEAL_HEADER_BYTES, "the counter ends the header");
_Static_assert(SEAL_TAG_BYTES == crypto_aead_aes256gcm_ABYTES &&
	       SEAL_TAG_BYTES == crypto_aead_chacha20poly1305_ietf_ABYTES, "one size of tags");

uint8_t seal_ciphers(void)
{
	const struct sodium_calls *sodium = sodium_calls();

	if (!sodium)
		return 0;
	return SEAL_CHACHA20_POLY1305 | (sodium->has_aes ? SEAL_AES_256_GCM : 0);
}

enum seal_cipher seal_choose(uint8_t ciphers)
{
	return ciphers & SEAL_AES_256_GCM	? SEAL_AES_256_GCM :
	       ciphers & SEAL_CHACHA20_POLY1305 ? SEAL_CHACHA20_POLY1305 :
						  SEAL_NONE;
}

const char *seal_cipher_name(enum seal_cipher cipher)
{
	return cipher == SEAL_AES_256_GCM	? "AES-256-GCM" :
	       cipher == SEAL_CHACHA20_POLY1305 ? "ChaCha20-Poly1305" :
						  "none";
}

static void init_key(struct seal_key *key, enum seal_cipher cipher, const uint8_t *bytes)
{
	memcpy(key->bytes, bytes, sizeof(key->bytes));
	if (cipher == SEAL_AES_256_GCM)
		sodium_calls()->crypto_aead_aes256gcm_beforenm(&key->aes, bytes);
}

void seal_init(struct seal *s, enum seal_cipher cipher, const uint8_t out[SEAL_KEY_BYTES],
	       const uint8_t in[SEAL_KEY_BYTES])
{
	memset(s, 0, sizeof(*s));
	s->cipher = cipher;
	init_key(&s->out, cipher, out);
	init_key(&s->in, cipher, in);
}

static void put_counter(uint8_t *to, uint64_t counter)
{
	int i;

	for (i = COUNTER_BYTES - 1; i >= 0; i--, counter >>= 8)
		to[i] = (uint8_t)counter;
}

static uint64_t get_counter(const uint8_t *from)
{
	uint64_t counter = 0;
	int i;

	for (i = 0; i < COUNTER_BYTES; i++)
		counter = counter << 8 | from[i];
	return counter;
}

static void make_nonce(uint8_t nonce[NONCE_BYTES], const uint8_t *header)
{
	memset(nonce, 0, NONCE_BYTES - COUNTER_BYTES);
	memcpy(nonce + NONCE_BYTES - COUNTER_BYTES, header + COUNTER_AT, COUNTER_BYTES);
}

static void encrypt(const struct seal *s, uint8_t *at, size_t size)
{
	const struct sodium_calls *sodium = sodium_calls();
	uint8_t nonce[NONCE_BYTES], *text = at + SEAL_HEADER_BYTES;

	make_nonce(nonce, at);
	if (s->cipher == SEAL_AES_256_GCM)
		sodium->crypto_aead_aes256gcm_encrypt_afternm(text, NULL, text, size, at,
							      SEAL_HEADER_BYTES, NULL, nonce,
							      &s->out.aes);
	else
		sodium->crypto_aead_chacha20poly1305_ietf_encrypt(text, NULL, text, size, at,
								  SEAL_HEADER_BYTES, NULL, nonce,
								  s->out.bytes);
}

/* Returns 0 if the tag is right. */
static int decrypt(const struct seal *s, uint8_t *at, size_t size)
{
	const struct sodium_calls *sodium = sodium_calls();
	uint8_t nonce[NONCE_BYTES], *text = at + SEAL_HEADER_BYTES;

	make_nonce(nonce, at);
	if (s->cipher == SEAL_AES_256_GCM)
		return sodium->crypto_aead_aes256gcm_decrypt_afternm(
			text, NULL, NULL, text, size, at, SEAL_HEADER_BYTES, nonce, &s->in.aes);
	return sodium->crypto_aead_chacha20poly1305_ietf_decrypt(
		text, NULL, NULL, text, size, at, SEAL_HEADER_BYTES, nonce, s->in.bytes);
}

size_t seal_close(struct seal *s, uint32_t dest_qpn, uint8_t *at, size_t size)
{
	const struct roce_packet outer = { .opcode = SEAL_OPCODE,
					   .pkey = ROCE_PKEY_DEFAULT,
					   .dest_qpn = dest_qpn };

	if (s->sent == SEAL_PACKETS_MAX)
		return 0;
	s->sent++;
	roce_packet_encode(&outer, at);
	put_counter(at + COUNTER_AT, s->sent);
	encrypt(s, at, size);
	return size + SEAL_EXTRA_BYTES;
}

bool seal_is_sealed(const uint8_t *bytes, size_t size)
{
	return size >= SEAL_EXTRA_BYTES + ROCE_BTH_BYTES && bytes[0] == SEAL_OPCODE;
}

uint32_t seal_dest_qpn(const uint8_t *bytes)
{
	return (uint32_t)bytes[QPN_AT] << 16 | (uint32_t)bytes[QPN_AT + 1] << 8 |
	       bytes[QPN_AT + 2];
}

static uint64_t *word_of(struct seal *s, uint64_t counter)
{
	return &s->seen[counter % SEAL_WINDOW / 64];
}

static uint64_t bit_of(uint64_t counter)
{
	return 1ull << counter % 64;
}

static bool may_come(struct seal *s, uint64_t counter)
{
	if (!counter || counter > SEAL_PACKETS_MAX)
		return false;
	if (counter > s->highest)
		return true;
	return s->highest - counter < SEAL_WINDOW && !(*word_of(s, counter) & bit_of(counter));
}

/* Counters between the old and the new highest may still come: their bits are cleared. */
static void mark_seen(struct seal *s, uint64_t counter)
{
	uint64_t i;

	if (counter > s->highest) {
		if (counter - s->highest >= SEAL_WINDOW)
			memset(s->seen, 0, sizeof(s->seen));
		else
			for (i = s->highest + 1; i < counter; i++)
				*word_of(s, i) &= ~bit_of(i);
		s->highest = counter;
	}
	*word_of(s, counter) |= bit_of(counter);
}

size_t seal_open(struct seal *s, uint8_t *bytes, size_t size)
{
	uint64_t counter = get_counter(bytes + COUNTER_AT);

	if (!may_come(s, counter)) {
		s->replayed++;
		return 0;
	}
	if (decrypt(s, bytes, size - SEAL_HEADER_BYTES)) {
		s->forged++;
		return 0;
	}
	mark_seen(s, counter);
	return size - SEAL_EXTRA_BYTES;
}
