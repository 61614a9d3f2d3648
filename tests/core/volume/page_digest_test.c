/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A digest follows its definition; each byte, its place and the page's number count. */
#include "tests/support/engine_bench.h"
#include "core/volume/page_digest.h"

#define WORDS 512u
#define BYTES (WORDS * 8)

struct digest_fixture {
	uint64_t key[WORDS];
	uint8_t page[BYTES];
};

static struct digest_fixture s;

static void begin(void)
{
	for (uint32_t i = 0; i < WORDS; i++)
		s.key[i] = i * 0x9e3779b97f4a7c15ull + 1;
	for (uint32_t i = 0; i < BYTES; i++)
		s.page[i] = (uint8_t)(i * 7 + (i >> 8));
}

static struct weir_page_digest digest_of(uint64_t number)
{
	struct weir_page_digest digest;

	weir_page_digest_begin(&digest, number);
	weir_page_digest_add(&digest, s.key, 0, s.page, BYTES);
	return digest;
}

static bool is_equal(struct weir_page_digest a, struct weir_page_digest b)
{
	return !memcmp(&a, &b, sizeof(a));
}

/* The sum was computed by other means: in Python, from the definition of NH. */
static void the_digest_is_nh_with_the_number_of_the_page(void **state)
{
	struct weir_page_digest digest;

	(void)state;
	begin();
	digest = digest_of(77);
	assert_true(digest.sum[0] == 0x467af4bcd5f1a000 && digest.sum[1] == 0xc26f266ae060b8e7);
	assert_int_equal(digest.number, 77);
	assert_false(is_equal(digest, digest_of(78)));
}

/* A page of the block device may lie in several places. */
static void pieces_add_up_in_any_order(void **state)
{
	static const uint32_t cuts[] = { 0, 16, 512, 528, 4080, BYTES };
	struct weir_page_digest digest;

	(void)state;
	begin();
	weir_page_digest_begin(&digest, 5);
	for (uint32_t i = 5; i-- > 0;)
		weir_page_digest_add(&digest, s.key, cuts[i], s.page + cuts[i],
				     cuts[i + 1] - cuts[i]);
	assert_true(is_equal(digest, digest_of(5)));
}

static void each_bit_counts(void **state)
{
	struct weir_page_digest before;

	(void)state;
	begin();
	before = digest_of(0);
	for (uint32_t bit = 0; bit < 8 * BYTES; bit += 61) {
		s.page[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(is_equal(digest_of(0), before));
		s.page[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* A linear checksum without a key misses the second. */
static void what_a_forger_would_try_changes_the_digest(void **state)
{
	static const uint8_t polynomial[] = { 0xf1, 0x76, 0xec, 0x05, 0x01 }; /* of CRC32C */
	struct weir_page_digest before;
	uint8_t unit[WEIR_PAGE_DIGEST_UNIT];

	(void)state;
	begin();
	before = digest_of(0);
	memcpy(unit, s.page, sizeof(unit));
	memcpy(s.page, s.page + 64, sizeof(unit));
	memcpy(s.page + 64, unit, sizeof(unit));
	assert_false(is_equal(digest_of(0), before));
	begin();
	for (uint32_t i = 0; i < sizeof(polynomial); i++)
		s.page[100 + i] ^= polynomial[i];
	assert_false(is_equal(digest_of(0), before));
}

static void another_key_makes_another_digest(void **state)
{
	struct weir_page_digest before;

	(void)state;
	begin();
	before = digest_of(0);
	for (uint32_t i = 0; i < WORDS; i += 37) {
		s.key[i] ^= 1ull << i % 64;
		assert_false(is_equal(digest_of(0), before));
		s.key[i] ^= 1ull << i % 64;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_digest_is_nh_with_the_number_of_the_page),
		cmocka_unit_test(pieces_add_up_in_any_order),
		cmocka_unit_test(each_bit_counts),
		cmocka_unit_test(what_a_forger_would_try_changes_the_digest),
		cmocka_unit_test(another_key_makes_another_digest),
	};

	return cmocka_run_group_tests_name("core page_digest", tests, NULL, NULL);
}
