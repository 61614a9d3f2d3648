// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <string.h>

#include "softnic/roce/packet.h"
#include "softnic/seal/seal.h"
#include "softnic/seal/secret.h"

static const uint8_t next_label[] = "softnic next key";

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
	secret_forget_registers();
}

void seal_init(struct seal *s, enum seal_cipher cipher, const uint8_t out[SEAL_KEY_BYTES],
	       const uint8_t in[SEAL_KEY_BYTES])
{
	memset(s, 0, sizeof(*s));
	s->cipher = cipher;
	init_key(&s->out, cipher, out);
	init_key(&s->in[0], cipher, in);
}

static uint64_t number_of_key(uint64_t counter)
{
	return counter / SEAL_KEY_PACKETS;
}

/* @to may be @from. */
static void init_next_key(struct seal_key *to, const struct seal_key *from, enum seal_cipher cipher)
{
	uint8_t bytes[SEAL_KEY_BYTES];

	sodium_calls()->crypto_generichash(bytes, sizeof(bytes), next_label, sizeof(next_label),
					   from->bytes, sizeof(from->bytes));
	to->number = from->number + 1;
	init_key(to, cipher, bytes);
	explicit_bzero(bytes, sizeof(bytes));
}

/*
 * Returns the key of a packet, or NULL. The next key is made in @fresh: a forged packet must not
 * replace the key before the current one, under which late packets still come.
 */
static const struct seal_key *key_for(const struct seal *s, uint64_t counter,
				      struct seal_key *fresh)
{
	uint64_t number = number_of_key(counter);
	const struct seal_key *key = &s->in[number % 2];

	if (key->number == number)
		return key;
	if (number != number_of_key(s->highest) + 1)
		return NULL;
	init_next_key(fresh, &s->in[(number - 1) % 2], s->cipher);
	return fresh;
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

/*
 * libsodium's AES-GCM leaves round keys, and the first of them are the key, in registers and in its
 * stack frames. They are below the caller's, where this function's own frame lies.
 */
static __attribute__((noinline)) void wipe_rest(void)
{
	uint8_t frames[1024]; /* more than they use */

	explicit_bzero(frames, sizeof(frames));
	secret_forget_registers();
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
	wipe_rest();
}

/* Returns 0 if the tag is right. */
static int decrypt(const struct seal *s, const struct seal_key *key, uint8_t *at, size_t size)
{
	const struct sodium_calls *sodium = sodium_calls();
	uint8_t nonce[NONCE_BYTES], *text = at + SEAL_HEADER_BYTES;
	int rc;

	make_nonce(nonce, at);
	if (s->cipher == SEAL_AES_256_GCM)
		rc = sodium->crypto_aead_aes256gcm_decrypt_afternm(
			text, NULL, NULL, text, size, at, SEAL_HEADER_BYTES, nonce, &key->aes);
	else
		rc = sodium->crypto_aead_chacha20poly1305_ietf_decrypt(
			text, NULL, NULL, text, size, at, SEAL_HEADER_BYTES, nonce, key->bytes);
	wipe_rest();
	return rc;
}

size_t seal_close(struct seal *s, uint32_t dest_qpn, uint8_t *at, size_t size)
{
	const struct roce_packet outer = { .opcode = SEAL_OPCODE,
					   .pkey = ROCE_PKEY_DEFAULT,
					   .dest_qpn = dest_qpn };

	s->sent++;
	if (number_of_key(s->sent) != s->out.number)
		init_next_key(&s->out, &s->out, s->cipher);
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
	if (!counter)
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

bool seal_is_own(const struct seal *s, uint8_t *bytes, size_t size)
{
	uint64_t counter;

	if (!seal_is_sealed(bytes, size))
		return false;
	counter = get_counter(bytes + COUNTER_AT);
	return counter <= s->sent && s->sent - counter < SEAL_WINDOW &&
	       number_of_key(counter) == s->out.number &&
	       !decrypt(s, &s->out, bytes, size - SEAL_HEADER_BYTES);
}

size_t seal_open(struct seal *s, uint8_t *bytes, size_t size)
{
	uint64_t counter = get_counter(bytes + COUNTER_AT);
	const struct seal_key *key;
	struct seal_key fresh;
	bool is_right;

	if (!may_come(s, counter)) {
		s->replayed++;
		return 0;
	}
	key = key_for(s, counter, &fresh);
	is_right = key && !decrypt(s, key, bytes, size - SEAL_HEADER_BYTES);
	if (key == &fresh) {
		if (is_right)
			s->in[fresh.number % 2] = fresh;
		explicit_bzero(&fresh, sizeof(fresh));
		secret_forget_registers();
	}
	if (!is_right) {
		s->forged++;
		return 0;
	}
	mark_seen(s, counter);
	return size - SEAL_EXTRA_BYTES;
}
