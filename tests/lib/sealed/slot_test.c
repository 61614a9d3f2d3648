/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib sealed slot */
/* The stored form of a block opens in the right place, and no other bytes open. */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "lib/conn/key.h"
#include "lib/sealed/slot.h"
#include "tests/support/cmocka_all.h"

static const uint32_t ciphers[] = { WEIR_SEALED_AES256_GCM, WEIR_SEALED_XCHACHA20_POLY1305 };

static struct weir_sealed_keys *keys_of(const char *bytes, const char *name)
{
	struct weir_key key = { .length = strlen(bytes) };
	struct weir_sealed_keys *keys;

	memcpy(key.bytes, bytes, key.length);
	keys = weir_slot_keys_new(&key, name);
	assert_non_null(keys);
	return keys;
}

static struct weir_slot sealed_by(struct weir_sealed_keys *keys, uint32_t cipher, uint64_t block,
				  uint64_t counter, const uint8_t *text)
{
	struct weir_slot slot = {
		.trailer = {
			.writer = "writer",
			.counter = counter,
			.generation = 77,
			.cipher = cipher,
			.length = WEIR_SEALED_BLOCK,
		},
	};
	const struct weir_slot_place place = { 0, block };

	weir_slot_seal(keys, &place, &slot.trailer, text, slot.text);
	return slot;
}

/* Seals a random block by cipher @c. */
static struct weir_slot sealed(struct weir_sealed_keys *keys, unsigned int c, uint8_t *text)
{
	randombytes_buf(text, WEIR_SEALED_BLOCK);
	return sealed_by(keys, ciphers[c], 9, 5, text);
}

static int open_slot(struct weir_sealed_keys *keys, uint64_t block, const struct weir_slot *slot,
		     uint8_t *text, uint64_t *generation)
{
	const struct weir_slot_place place = { 0, block };

	return weir_slot_open(keys, &place, &slot->trailer, slot->text, sizeof(slot->text), text,
			      generation);
}

static void refused(struct weir_sealed_keys *keys, uint64_t block, const struct weir_slot *slot)
{
	static const uint8_t zeroes[WEIR_SEALED_BLOCK];
	uint8_t text[WEIR_SEALED_BLOCK];
	uint64_t generation = 0;

	memset(text, 1, sizeof(text));
	assert_int_equal(open_slot(keys, block, slot, text, &generation), -EBADMSG);
	assert_int_equal(generation, 0);
	assert_memory_equal(text, zeroes, sizeof(text));
}

static void a_block_opens_as_it_was(void **state)
{
	struct weir_sealed_keys *keys = keys_of("0123456789abcdef", "data");
	struct weir_sealed_keys *again = keys_of("0123456789abcdef", "data");
	uint8_t text[WEIR_SEALED_BLOCK], got[WEIR_SEALED_BLOCK];
	uint64_t generation;

	(void)state;
	for (unsigned int c = 0; c < 2; c++) {
		struct weir_slot slot;

		if (!weir_slot_supports(ciphers[c]))
			continue;
		slot = sealed(keys, c, text);
		assert_memory_not_equal(slot.text, text, sizeof(text));
		assert_int_equal(open_slot(again, 9, &slot, got, &generation), 0);
		assert_int_equal(generation, 77);
		assert_memory_equal(got, text, sizeof(text));
	}
	weir_slot_keys_free(keys);
	weir_slot_keys_free(again);
}

static void every_altered_bit_is_refused(void **state)
{
	struct weir_sealed_keys *keys = keys_of("0123456789abcdef", "data");
	uint8_t text[WEIR_SEALED_BLOCK];

	(void)state;
	for (unsigned int c = 0; c < 2; c++) {
		struct weir_slot slot;

		if (!weir_slot_supports(ciphers[c]))
			continue;
		slot = sealed(keys, c, text);
		for (size_t i = 0; i < sizeof(slot); i++) {
			uint8_t *byte = (uint8_t *)&slot + i;
			uint8_t bit = (uint8_t)(1u << i % 8);

			*byte ^= bit;
			refused(keys, 9, &slot);
			*byte ^= bit;
		}
	}
	weir_slot_keys_free(keys);
}

static void another_block_key_or_name_is_refused(void **state)
{
	struct weir_sealed_keys *keys = keys_of("0123456789abcdef", "data");
	struct weir_sealed_keys *other_key = keys_of("0123456789abcdeF", "data");
	struct weir_sealed_keys *other_name = keys_of("0123456789abcdef", "dat");
	uint8_t text[WEIR_SEALED_BLOCK];

	(void)state;
	for (unsigned int c = 0; c < 2; c++) {
		struct weir_slot slot;

		if (!weir_slot_supports(ciphers[c]))
			continue;
		slot = sealed(keys, c, text);
		refused(keys, 8, &slot);
		refused(keys, 9 + (1ull << 32), &slot);
		refused(other_key, 9, &slot);
		refused(other_name, 9, &slot);
	}
	weir_slot_keys_free(keys);
	weir_slot_keys_free(other_key);
	weir_slot_keys_free(other_name);
}

static void zeroes_were_never_written(void **state)
{
	struct weir_sealed_keys *keys = keys_of("0123456789abcdef", "data");
	uint8_t text[WEIR_SEALED_BLOCK];
	struct weir_slot slot = { 0 };
	uint64_t generation;

	(void)state;
	memset(text, 1, sizeof(text));
	assert_int_equal(open_slot(keys, 3, &slot, text, &generation), 0);
	assert_int_equal(generation, WEIR_SLOT_NEVER);
	assert_true(sodium_is_zero(text, sizeof(text)));
	slot.text[WEIR_SEALED_BLOCK - 1] = 1;
	refused(keys, 3, &slot);
	memset(&slot, 0xff, sizeof(slot));
	refused(keys, 3, &slot);
	weir_slot_keys_free(keys);
}

/* The last block of a file: zeroes follow, and the slot ends with the text. */
static void a_short_block_has_its_length(void **state)
{
	struct weir_sealed_keys *keys = keys_of("0123456789abcdef", "data");
	const struct weir_slot_place place = { 4, 2 }, other = { 5, 2 };
	uint8_t text[100], stored[100], got[WEIR_SEALED_BLOCK], expected[WEIR_SEALED_BLOCK] = { 0 };
	uint64_t generation;

	(void)state;
	randombytes_buf(text, sizeof(text));
	memcpy(expected, text, sizeof(text));
	for (unsigned int c = 0; c < 2; c++) {
		struct weir_slot_trailer trailer = {
			.generation = 7,
			.cipher = ciphers[c],
			.length = sizeof(text),
		};

		if (!weir_slot_supports(ciphers[c]))
			continue;
		weir_slot_seal(keys, &place, &trailer, text, stored);
		assert_int_equal(weir_slot_open(keys, &place, &trailer, stored, sizeof(stored), got,
						&generation),
				 0);
		assert_memory_equal(got, expected, sizeof(got));
		assert_int_equal(weir_slot_open(keys, &other, &trailer, stored, sizeof(stored), got,
						&generation),
				 -EBADMSG);
		assert_int_equal(weir_slot_open(keys, &place, &trailer, stored, sizeof(stored) - 1,
						got, &generation),
				 -EBADMSG);
	}
	weir_slot_keys_free(keys);
}

/* The lower bits of the counter number a key's blocks, and the upper bits name the key. */
static void no_key_seals_too_many_blocks(void **state)
{
	struct weir_sealed_keys *keys = keys_of("0123456789abcdef", "data");
	static const uint8_t text[WEIR_SEALED_BLOCK];
	uint8_t got[WEIR_SEALED_BLOCK];
	uint64_t generation;

	(void)state;
	for (unsigned int c = 0; c < 2; c++) {
		struct weir_slot last, next;

		if (!weir_slot_supports(ciphers[c]))
			continue;
		last = sealed_by(keys, ciphers[c], 1, (1u << 26) - 1, text);
		next = sealed_by(keys, ciphers[c], 1, 1u << 26, text);
		assert_memory_not_equal(last.text, next.text, sizeof(last.text));
		assert_int_equal(open_slot(keys, 1, &last, got, &generation), 0);
		assert_int_equal(open_slot(keys, 1, &next, got, &generation), 0);
		next.trailer.counter = last.trailer.counter;
		refused(keys, 1, &next);
	}
	weir_slot_keys_free(keys);
}

/* The stored form must not change: a newer weir reads what an older one wrote. */
static void the_format_stays(void **state)
{
	static const char *const hashes[] = {
		"0a589e44a6f5be729fc9d882a740ee71ea2d9058e1d2ecb6571b74d8f1cbe208",
		"f8c4acab8ba33ce1616c282df8a676e2da557a5b06ef87b8ae2d265ee73e41ed",
	};
	struct weir_sealed_keys *keys = keys_of("0123456789abcdef", "data");
	uint8_t text[WEIR_SEALED_BLOCK], hash[crypto_generichash_BYTES];
	char hex[2 * sizeof(hash) + 1];

	(void)state;
	memset(text, 'x', sizeof(text));
	for (unsigned int c = 0; c < 2; c++) {
		struct weir_slot slot;

		if (!weir_slot_supports(ciphers[c]))
			continue;
		slot = sealed_by(keys, ciphers[c], 9, 5, text);
		crypto_generichash(hash, sizeof(hash), (uint8_t *)&slot, sizeof(slot), NULL, 0);
		sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
		assert_string_equal(hex, hashes[c]);
	}
	weir_slot_keys_free(keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_opens_as_it_was),
		cmocka_unit_test(every_altered_bit_is_refused),
		cmocka_unit_test(another_block_key_or_name_is_refused),
		cmocka_unit_test(zeroes_were_never_written),
		cmocka_unit_test(a_short_block_has_its_length),
		cmocka_unit_test(no_key_seals_too_many_blocks),
		cmocka_unit_test(the_format_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
