/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Nonces are taken once, and readers get the seal of the newest write that was pushed. */
#include "tests/support/engine_bench.h"
#include "core/volume/extents.h"

#define PAGES 10u

struct seal_fixture {
	struct weir_extents v;
	struct weir_extent extent;
	uint32_t sum[PAGES];
	struct weir_page_seal seal[PAGES];
};

/* One extent at one donor. */
static void begin(struct seal_fixture *s)
{
	struct weir_extents_placement place;

	memset(s, 0, sizeof(*s));
	s->extent.sum = s->sum;
	s->extent.seal = s->seal;
	assert_int_equal(weir_extents_init(&s->v, &s->extent, 1, PAGES, 1, 1), 0);
	weir_extents_donor_up(&s->v, 0);
	weir_extents_donor_room(&s->v, 0, 1);
	assert_int_equal(weir_extents_next_placement(&s->v, &place), 0);
	assert_int_equal(weir_extents_granted(&s->v, &place), 0);
}

struct sealed_write {
	struct weir_extents_write write;
	uint32_t sums[2];
	struct weir_page_seal seals[2];
};

/* Two pages from @page on; the tag is @tag. */
static void push(struct seal_fixture *s, struct sealed_write *w, uint32_t page, uint8_t tag)
{
	uint64_t nonce = weir_page_seal_nonces(&s->v, 2);

	for (uint32_t i = 0; i < 2; i++) {
		w->seals[i] = (struct weir_page_seal){ .nonce = nonce + i };
		memset(w->seals[i].tag, tag + (int)i, sizeof(w->seals[i].tag));
		w->sums[i] = weir_page_seal_sum(nonce + i);
	}
	assert_int_equal(weir_extents_write(&s->v, &w->write, 0, page, 2, w->sums), 0);
	weir_page_seal_written(&s->v, &w->write, w->seals);
}

static struct weir_page_seal seal_of(const struct seal_fixture *s, uint32_t page)
{
	struct weir_page_seal seal;

	weir_page_seal_expect(&s->v, 0, page, 1, &seal);
	return seal;
}

static uint32_t sum_of(const struct seal_fixture *s, uint32_t page)
{
	uint32_t sum;

	weir_extents_expect(&s->v, 0, page, 1, &sum);
	return sum;
}

static void no_nonce_is_taken_twice(void **state)
{
	struct seal_fixture s;

	(void)state;
	begin(&s);
	assert_int_equal(weir_page_seal_nonces(&s.v, 3), 1);
	assert_int_equal(weir_page_seal_nonces(&s.v, 1), 4);
	assert_int_equal(weir_page_seal_nonces(&s.v, 32), 5);
	assert_int_equal(weir_page_seal_nonces(&s.v, 1), 37);
}

static void the_sum_of_a_page_is_its_nonces(void **state)
{
	(void)state;
	assert_int_equal(weir_page_seal_sum(1), 2);
	assert_int_equal(weir_page_seal_sum(2), 4);
	assert_int_equal(weir_page_seal_sum(0x7fffffff), 0xfffffffe);
	assert_int_equal(weir_page_seal_sum(0x80000000), 2); /* 0 is for zeroes */
}

static void a_reader_gets_the_newest_write_that_was_pushed(void **state)
{
	struct sealed_write first, second;
	struct seal_fixture s;

	(void)state;
	begin(&s);
	push(&s, &first, 4, 10);
	push(&s, &second, 5, 20);
	assert_int_equal(weir_extents_write_end(&s.v, &second.write, 0), 0);
	assert_int_equal(weir_extents_write_end(&s.v, &first.write, 0), 0);
	assert_int_equal(seal_of(&s, 3).nonce, 0);
	assert_int_equal(seal_of(&s, 4).nonce, 1);
	assert_int_equal(seal_of(&s, 5).nonce, 3);
	assert_int_equal(seal_of(&s, 6).nonce, 4);
	assert_int_equal(seal_of(&s, 4).tag[15], 10);
	assert_int_equal(seal_of(&s, 6).tag[0], 21);
}

/* Such pages may have new or old contents. */
static void a_failed_write_leaves_its_seal(void **state)
{
	struct sealed_write first, second;
	struct seal_fixture s;

	(void)state;
	begin(&s);
	push(&s, &first, 0, 10);
	assert_int_equal(weir_extents_write_end(&s.v, &first.write, 0), 0);
	push(&s, &second, 1, 20);
	assert_int_equal(weir_extents_write_end(&s.v, &second.write, 1), -EIO);
	assert_int_equal(sum_of(&s, 0), weir_page_seal_sum(1));
	assert_int_equal(sum_of(&s, 1), WEIR_SUM_UNKNOWN);
	assert_int_equal(seal_of(&s, 1).tag[0], 20);
	assert_int_equal(sum_of(&s, 2), WEIR_SUM_NOTHING); /* as before the write */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_nonce_is_taken_twice),
		cmocka_unit_test(the_sum_of_a_page_is_its_nonces),
		cmocka_unit_test(a_reader_gets_the_newest_write_that_was_pushed),
		cmocka_unit_test(a_failed_write_leaves_its_seal),
	};

	return cmocka_run_group_tests_name("core page_seal", tests, NULL, NULL);
}
