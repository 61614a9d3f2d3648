/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/sealed/slot.h"

#include <endian.h>
#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/base/secret.h"
#include "lib/conn/key.h"

#define KEY_BYTES 32u
#define CACHED 16u /* derived keys that are kept; readers meet a few writers */
#define COUNTER_BITS 26 /* of counters under one key */
#define STACK_BYTES 1024u /* more than libsodium's functions use of AES-GCM */
#define HEADER_BYTES offsetof(struct weir_slot_trailer, tag)

_Static_assert(KEY_BYTES == crypto_aead_aes256gcm_KEYBYTES, "one size of key");
_Static_assert(KEY_BYTES == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "one size of key");
_Static_assert(KEY_BYTES == WIRE_MAC, "the root is a MAC");
_Static_assert(WEIR_SLOT_TAG == crypto_aead_aes256gcm_ABYTES, "one size of tag");
_Static_assert(WEIR_SLOT_TAG == crypto_aead_xchacha20poly1305_ietf_ABYTES, "one size of tag");

/* Names a derived key, which is the same for 2^COUNTER_BITS blocks of a writer. */
struct slot_key_name {
	char label[16]; /* unlike that of a state */
	uint8_t writer[WEIR_SLOT_WRITER];
	uint64_t epoch;
	uint64_t cipher;
};

/* @aes: expanded, only for AES-256-GCM */
struct slot_key {
	crypto_aead_aes256gcm_state aes;
	struct slot_key_name name;
	uint8_t bytes[KEY_BYTES];
};

/**
 * struct weir_sealed_keys - the keys for the data of one name
 * @lock: guards @cached
 * @root: everything is derived from it
 * @cached: derived keys; a name of zeroes is unused, because no cipher is 0
 */
struct weir_sealed_keys {
	struct slot_key cached[CACHED];
	struct weir_mutex lock;
	uint8_t root[KEY_BYTES];
};

/* A tag covers this beside the text. */
struct slot_extra {
	char label[16];
	struct weir_slot_place place;
	uint8_t header[HEADER_BYTES];
};

static const char root_label[] = "weir-1 sealed data";

struct weir_sealed_keys *weir_slot_keys_new(const struct weir_key *key, const char *name)
{
	const struct iovec pieces[] = {
		{ (char *)root_label, sizeof(root_label) },
		{ (char *)name, strlen(name) },
	};
	struct weir_sealed_keys *keys;

	keys = weir_secret_alloc(sizeof(*keys));
	if (!keys)
		return NULL;
	weir_key_mac(key, pieces, 2, keys->root);
	return keys;
}

void weir_slot_keys_free(struct weir_sealed_keys *keys)
{
	weir_secret_free(keys);
}

int weir_slot_supports(uint32_t cipher)
{
	return cipher == WEIR_SEALED_XCHACHA20_POLY1305 ||
	       (cipher == WEIR_SEALED_AES256_GCM && crypto_aead_aes256gcm_is_available());
}

static void derive(const struct weir_sealed_keys *keys, const struct slot_key_name *name,
		   struct slot_key *key)
{
	crypto_generichash(key->bytes, sizeof(key->bytes), (const uint8_t *)name, sizeof(*name),
			   keys->root, sizeof(keys->root));
	if (name->cipher == WEIR_SEALED_AES256_GCM)
		crypto_aead_aes256gcm_beforenm(&key->aes, key->bytes);
	key->name = *name;
}

/*
 * libsodium's AES-GCM leaves round keys, and the first of them are the key, in its stack frames and
 * in registers.
 */
static void wipe(struct slot_key *key)
{
	sodium_memzero(key, sizeof(*key));
	sodium_stackzero(STACK_BYTES);
	weir_secret_forget_registers();
}

/* The caller wipes @key. @header: in the stored byte order */
static void find_key(struct weir_sealed_keys *keys, const struct weir_slot_trailer *header,
		     struct slot_key *key)
{
	struct slot_key_name name = {
		.label = "weir-1 block key",
		.epoch = le64toh(header->counter) >> COUNTER_BITS,
		.cipher = le32toh(header->cipher),
	};
	struct slot_key *cached;

	memcpy(name.writer, header->writer, sizeof(name.writer));
	cached = &keys->cached[(name.writer[0] + name.epoch) % CACHED];
	weir_mutex_lock(&keys->lock);
	if (memcmp(&cached->name, &name, sizeof(name)))
		derive(keys, &name, cached);
	memcpy(key, cached, sizeof(*key));
	weir_mutex_unlock(&keys->lock);
}

static void fill_extra(struct slot_extra *extra, const struct weir_slot_place *place,
		       const struct weir_slot_trailer *header)
{
	*extra = (struct slot_extra){
		.label = "weir-1 block",
		.place = { htole64(place->object), htole64(place->block) },
	};
	memcpy(extra->header, header, sizeof(extra->header));
}

void weir_slot_seal(struct weir_sealed_keys *keys, const struct weir_slot_place *place,
		    struct weir_slot_trailer *t, const uint8_t *text, uint8_t *stored)
{
	uint8_t nonce[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES] = { 0 };
	const uint32_t length = t->length;
	bool is_aes = t->cipher == WEIR_SEALED_AES256_GCM;
	struct slot_extra extra;
	struct slot_key key;

	t->counter = htole64(t->counter);
	t->generation = htole64(t->generation);
	t->cipher = htole32(t->cipher);
	t->length = htole32(t->length);
	t->reserved = 0;
	fill_extra(&extra, place, t);
	memcpy(nonce, &t->counter, sizeof(t->counter));
	find_key(keys, t, &key);
	if (is_aes)
		crypto_aead_aes256gcm_encrypt_detached_afternm(stored, t->tag, NULL, text, length,
							       (uint8_t *)&extra, sizeof(extra),
							       NULL, nonce, &key.aes);
	else
		crypto_aead_xchacha20poly1305_ietf_encrypt_detached(stored, t->tag, NULL, text,
								    length, (uint8_t *)&extra,
								    sizeof(extra), NULL, nonce,
								    key.bytes);
	wipe(&key);
}

/* Return: 0 if the tag is right. */
static int decrypt(struct weir_sealed_keys *keys, const struct weir_slot_place *place,
		   const struct weir_slot_trailer *t, const uint8_t *stored, uint8_t *text)
{
	uint8_t nonce[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES] = { 0 };
	const uint32_t length = le32toh(t->length);
	struct slot_extra extra;
	struct slot_key key;
	int rc;

	fill_extra(&extra, place, t);
	memcpy(nonce, &t->counter, sizeof(t->counter));
	find_key(keys, t, &key);
	if (key.name.cipher == WEIR_SEALED_AES256_GCM)
		rc = crypto_aead_aes256gcm_decrypt_detached_afternm(text, NULL, stored, length,
								    t->tag, (uint8_t *)&extra,
								    sizeof(extra), nonce, &key.aes);
	else
		rc = crypto_aead_xchacha20poly1305_ietf_decrypt_detached(text, NULL, stored, length,
									 t->tag, (uint8_t *)&extra,
									 sizeof(extra), nonce,
									 key.bytes);
	wipe(&key);
	return rc;
}

uint64_t weir_slot_generation(uint64_t *latest, uint64_t floor)
{
	uint64_t last = __atomic_load_n(latest, __ATOMIC_RELAXED), next;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	do {
		next = (uint64_t)now.tv_sec * WEIR_NS_PER_S + (uint64_t)now.tv_nsec;
		if (next <= last)
			next = last + 1;
		if (next <= floor)
			next = floor + 1;
	} while (!__atomic_compare_exchange_n(latest, &last, next, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return next;
}

static bool was_never_written(const struct weir_slot_trailer *trailer, const uint8_t *stored,
			      size_t room)
{
	static const struct weir_slot never;

	return !memcmp(trailer, &never.trailer, sizeof(never.trailer)) &&
	       !memcmp(stored, never.text, room);
}

int weir_slot_open(struct weir_sealed_keys *keys, const struct weir_slot_place *place,
		   const struct weir_slot_trailer *trailer, const uint8_t *stored, size_t room,
		   uint8_t *text, uint64_t *generation)
{
	uint32_t cipher = le32toh(trailer->cipher), length = le32toh(trailer->length);
	int rc = -EBADMSG;

	if (was_never_written(trailer, stored, room)) {
		memset(text, 0, WEIR_SEALED_BLOCK);
		*generation = WEIR_SLOT_NEVER;
		return 0;
	}
	if (length <= room && weir_slot_supports(cipher)) {
		if (!decrypt(keys, place, trailer, stored, text)) {
			memset(text + length, 0, WEIR_SEALED_BLOCK - length);
			*generation = le64toh(trailer->generation);
			return 0;
		}
	} else if (cipher == WEIR_SEALED_AES256_GCM && !weir_slot_supports(cipher)) {
		rc = -EOPNOTSUPP;
	}
	memset(text, 0, WEIR_SEALED_BLOCK);
	return rc;
}

void weir_slot_mac_state(const struct weir_sealed_keys *keys, const void *state, size_t length,
			 uint8_t mac[WEIR_SLOT_STATE_MAC])
{
	crypto_generichash(mac, WEIR_SLOT_STATE_MAC, state, length, keys->root, sizeof(keys->root));
}
