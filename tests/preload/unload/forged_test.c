/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: unload forged; devices: softnic rxe; timeout: 300 */
/*
 * A peer that forges unloaded writes: the target writes nothing that the peer's QP could not write
 * through the device, and tells the peer.
 */
#include "tests/preload/unload/forger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_untouched(const struct forger *f)
{
	size_t i;

	for (i = 0; i < sizeof(f->area); i++)
		if (f->area[i])
			return false;
	return true;
}

static void expect_refused(struct forger *f, uint64_t addr, uint32_t length, uint32_t tag)
{
	uint64_t before = forger_refusals();
	struct wire_unload_return r;

	forger_write(f, addr, length, tag);
	r = forger_returned(f, 1);
	assert_true(r.is_refused);
	assert_int_equal(r.done, 0);
	assert_true(is_untouched(f));
	assert_int_equal(forger_refusals(), before + 1);
	forger_buffer(f);
}

static void forged_tags_are_refused(void **state)
{
	static struct forger f;
	uint32_t tag, bit;

	(void)state;
	forger_open(&f, RIGHTS);
	tag = f.target->rkey;
	for (bit = 0; bit < 32; bit += 5)
		expect_refused(&f, forger_area(&f), HEAD + 16, tag ^ 1u << bit);
	expect_refused(&f, forger_area(&f), HEAD + 16, 0);
	assert_int_equal(ibv_dereg_mr(f.target), 0);
	f.target = NULL;
	expect_refused(&f, forger_area(&f), HEAD + 16, tag);
	forger_close(&f);
}

static void bounds_are_kept_to_the_byte(void **state)
{
	static struct forger f;

	(void)state;
	forger_open(&f, RIGHTS);
	expect_refused(&f, forger_area(&f) - 1, HEAD + 16, f.target->rkey);
	expect_refused(&f, forger_area(&f) + AREA - 15, HEAD + 16, f.target->rkey);
	expect_refused(&f, forger_area(&f) + AREA, HEAD + 1, f.target->rkey);
	expect_refused(&f, UINT64_MAX - 7, HEAD + 16, f.target->rkey);
	expect_refused(&f, 0, HEAD + 16, f.target->rkey);
	forger_write(&f, forger_area(&f) + AREA - 16, HEAD + 16, f.target->rkey);
	assert_false(forger_returned(&f, 1).is_refused);
	assert_int_equal(f.area[2 * AREA - 1], 0x66);
	assert_int_equal(f.area[2 * AREA - 17], 0);
	assert_int_equal(f.area[2 * AREA], 0);
	forger_close(&f);
}

static void read_only_memory_is_not_written(void **state)
{
	static struct forger f;

	(void)state;
	forger_open(&f, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	expect_refused(&f, forger_area(&f), HEAD + 16, f.target->rkey);
	forger_close(&f);
}

static void another_protection_domain_is_another_tenant(void **state)
{
	static struct forger f;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	(void)state;
	forger_open(&f, RIGHTS);
	pd = ibv_alloc_pd(f.pair.context);
	assert_non_null(pd);
	mr = ibv_reg_mr(pd, f.area + AREA, AREA, RIGHTS);
	assert_non_null(mr);
	expect_refused(&f, forger_area(&f), HEAD + 16, mr->rkey);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	forger_close(&f);
}

static void only_lengths_of_a_slot_with_data_are_copied(void **state)
{
	static struct forger f;
	uint16_t done = 0;
	uint32_t length;

	(void)state;
	forger_open(&f, RIGHTS);
	for (length = 4; length <= HEAD; length += 4)
		expect_refused(&f, forger_area(&f), length, f.target->rkey);
	for (length = HEAD + 1; length <= sizeof(struct wire_unload_slot); length += 13) {
		memset(f.area, 0, sizeof(f.area));
		forger_write(&f, forger_area(&f), length, f.target->rkey);
		assert_false(forger_returned(&f, ++done).is_refused);
		assert_int_equal(f.area[AREA + length - HEAD - 1], 0x66);
		assert_int_equal(f.area[AREA + length - HEAD], 0);
	}
	forger_write(&f, forger_area(&f), 0, f.target->rkey);
	assert_true(forger_returned(&f, UINT16_MAX).is_refused);
	forger_close(&f);
}

static void behind_a_refusal_nothing_is_copied(void **state)
{
	static struct forger f;

	(void)state;
	forger_open(&f, RIGHTS);
	forger_write(&f, forger_area(&f), HEAD + 16, f.target->rkey ^ 1);
	assert_true(forger_returned(&f, 1).is_refused);
	forger_write(&f, forger_area(&f), HEAD + 16, f.target->rkey);
	/* A peer gets a new slot buffer only after all writes of the last buffer are done. */
	forger_buffer(&f);
	assert_true(is_untouched(&f));
	forger_write(&f, forger_area(&f), HEAD + 16, f.target->rkey);
	assert_false(forger_returned(&f, 1).is_refused);
	assert_int_equal(f.area[AREA], 0x66);
	forger_close(&f);
}

/* How the kernel maps @at: the line of /proc/self/smaps that starts with @what. */
static bool mapping_says(uint64_t at, const char *what, char *line, int size)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	uint64_t from = 0, to = 0, a, b;
	bool found = false;

	assert_non_null(smaps);
	while (!found && fgets(line, size, smaps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &a, &b) == 2) {
			from = a;
			to = b;
		}
		found = at >= from && at < to && !strncmp(line, what, strlen(what));
	}
	fclose(smaps);
	return found;
}

/* In reserved huge pages if available; otherwise the kernel is asked to make a huge page. */
static void a_buffer_is_in_huge_pages_when_there_are_any(void **state)
{
	static struct forger f;
	char line[256];

	(void)state;
	forger_open(&f, RIGHTS);
	if (!mapping_says(f.answer.addr, "VmFlags:", line, sizeof(line)))
		skip();
	assert_true(strstr(line, " hg") || strstr(line, " ht") ||
		    access("/sys/kernel/mm/transparent_hugepage", F_OK));
	assert_int_equal(f.answer.addr % (WIRE_UNLOAD_SLOTS * sizeof(struct wire_unload_slot)), 0);
	forger_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forged_tags_are_refused),
		cmocka_unit_test(bounds_are_kept_to_the_byte),
		cmocka_unit_test(read_only_memory_is_not_written),
		cmocka_unit_test(another_protection_domain_is_another_tenant),
		cmocka_unit_test(only_lengths_of_a_slot_with_data_are_copied),
		cmocka_unit_test(behind_a_refusal_nothing_is_copied),
		cmocka_unit_test(a_buffer_is_in_huge_pages_when_there_are_any),
	};

	return cmocka_run_group_tests_name("unload forged", tests, NULL, NULL);
}
