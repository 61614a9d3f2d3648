/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: donor regions; suites: donor; devices: softnic rxe; timeout: 120 */
/* Regions at the donor: names, holders, quota, zeroed memory, tenants. */
#include "tests/support/donor_fixture.h"

static struct donor_fixture f;
static struct raw_client a, b;

/* Two clients of key A. */
static int setup(void **state)
{
	(void)state;
	donor_fixture_start(&f, NULL);
	assert_int_equal(raw_open(&a, f.info.address, &key_a), 0);
	assert_int_equal(raw_open(&b, f.info.address, &key_a), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	raw_close(&a);
	raw_close(&b);
	assert_soon(donor_fixture_info(&f)->clients == 0);
	donor_fixture_stop(&f);
	return 0;
}

static bool data_is(const struct raw_client *raw, int byte, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		if ((unsigned char)raw->data[i] != byte)
			return false;
	return true;
}

static void what_is_written_can_be_read_by_another(void **state)
{
	struct wire_control_region ra, rb;

	(void)state;
	assert_int_equal(raw_create(&a, "shared", 100000, 0, &ra), 0);
	assert_int_equal(ra.length, 102400);
	memset(a.data, 0x5a, RAW_DATA);
	assert_int_equal(raw_write(&a, ra.addr, ra.rkey, 102400), 0);
	assert_int_equal(raw_region_open(&b, "shared", 0, &rb), 0);
	assert_int_equal(rb.length, 102400);
	assert_int_equal(raw_read(&b, rb.addr, rb.rkey, 102400), 0);
	assert_true(data_is(&b, 0x5a, 102400));
}

static void a_named_region_outlives_its_creator(void **state)
{
	struct wire_control_region r;

	(void)state;
	assert_int_equal(raw_create(&a, "stays", 8192, 0, &r), 0);
	memset(a.data, 0x17, 8192);
	assert_int_equal(raw_write(&a, r.addr, r.rkey, 8192), 0);
	raw_close(&a);
	assert_soon(donor_fixture_info(&f)->clients == 1);
	assert_int_equal(f.info.regions, 1);
	assert_int_equal(raw_region_open(&b, "stays", 0, &r), 0);
	assert_int_equal(raw_read(&b, r.addr, r.rkey, 8192), 0);
	assert_true(data_is(&b, 0x17, 8192));
}

static void names_are_unique_and_must_be_there(void **state)
{
	struct wire_control_region r;

	(void)state;
	assert_int_equal(raw_create(&a, "one", 4096, 0, &r), 0);
	assert_int_equal(raw_create(&a, "one", 4096, 0, &r), -EEXIST);
	assert_int_equal(raw_create(&b, "one", 4096, 0, &r), -EEXIST);
	assert_int_equal(raw_region_open(&b, "two", 0, &r), -ENOENT);
	assert_int_equal(raw_region_delete(&b, "two"), -ENOENT);
	assert_int_equal(raw_region_close(&b, 12345), -ENOENT);
	assert_int_equal(raw_create(&a, NULL, 4096, 0, &r), 0);
	assert_int_equal(raw_create(&a, NULL, 4096, 0, &r), 0);
	assert_int_equal(donor_fixture_info(&f)->regions, 3);
}

static void nonsense_is_refused_and_hurts_nobody(void **state)
{
	struct wire_control_region r;

	(void)state;
	assert_int_equal(raw_create(&a, "x", 0, 0, &r), -EINVAL);
	assert_int_equal(raw_create(&a, "x", 4096, 0x80, &r), -EINVAL);
	assert_int_equal(raw_create(&a, "x", 4096, WIRE_REGION_READ_ONLY, &r), -EINVAL);
	assert_int_equal(raw_create(&a, "x", UINT64_MAX, 0, &r), -EINVAL);
	assert_int_equal(raw_create(&a, "x", UINT64_MAX - 4096, 0, &r), -EDQUOT);
	assert_int_equal(raw_create(&a, "x", 4096, 0, &r), 0);
	assert_int_equal(raw_region_open(&b, "x", 0x80, &r), -EINVAL);
}

static void held_exclusively_is_held_alone(void **state)
{
	struct wire_control_region ra, rb;

	(void)state;
	assert_int_equal(raw_create(&a, "mine", 4096, WIRE_REGION_EXCLUSIVE, &ra), 0);
	assert_int_equal(raw_region_open(&b, "mine", 0, &rb), -EBUSY);
	assert_int_equal(raw_region_open(&b, "mine", WIRE_REGION_READ_ONLY, &rb), -EBUSY);
	assert_int_equal(raw_region_open(&b, "mine", WIRE_REGION_EXCLUSIVE, &rb), -EBUSY);
	assert_int_equal(raw_region_delete(&b, "mine"), -EBUSY);
	assert_int_equal(raw_region_close(&a, ra.hold), 0);
	assert_int_equal(raw_region_open(&b, "mine", 0, &rb), 0);
	assert_int_equal(raw_region_open(&a, "mine", WIRE_REGION_EXCLUSIVE, &ra), -EBUSY);
	assert_int_equal(raw_region_open(&a, "mine", 0, &ra), 0);
}

static void an_earlier_holder_cannot_write_to_what_another_holds_now(void **state)
{
	struct wire_control_region ra, rb;

	(void)state;
	assert_int_equal(raw_create(&a, "mine", 4096, WIRE_REGION_EXCLUSIVE, &ra), 0);
	assert_int_equal(raw_region_close(&a, ra.hold), 0);
	assert_int_equal(raw_region_open(&b, "mine", WIRE_REGION_EXCLUSIVE, &rb), 0);
	memset(a.data, 0xbb, 64);
	assert_int_not_equal(raw_write(&a, ra.addr, ra.rkey, 64), 0);
	assert_int_equal(raw_read(&b, rb.addr, rb.rkey, 64), 0);
	assert_true(data_is(&b, 0, 64));
}

static void read_only_cannot_be_written_to(void **state)
{
	struct wire_control_region ra, rb;

	(void)state;
	assert_int_equal(raw_create(&a, "book", 4096, 0, &ra), 0);
	memset(a.data, 0x42, 64);
	assert_int_equal(raw_write(&a, ra.addr, ra.rkey, 64), 0);
	assert_int_equal(raw_region_open(&b, "book", WIRE_REGION_READ_ONLY, &rb), 0);
	assert_int_equal(raw_read(&b, rb.addr, rb.rkey, 64), 0);
	assert_true(data_is(&b, 0x42, 64));
	assert_int_equal(raw_write(&b, rb.addr, rb.rkey, 64), -EACCES);
}

static void deleted_while_held_it_lives_until_the_last_holder_goes(void **state)
{
	struct wire_control_region ra, rb, again;

	(void)state;
	assert_int_equal(raw_create(&a, "doomed", 4096, 0, &ra), 0);
	assert_int_equal(raw_region_open(&b, "doomed", 0, &rb), 0);
	assert_int_equal(raw_region_delete(&a, "doomed"), 0);
	assert_int_equal(raw_region_open(&a, "doomed", 0, &again), -ENOENT);
	memset(a.data, 1, 64);
	assert_int_equal(raw_write(&a, ra.addr, ra.rkey, 64), 0);
	assert_int_equal(raw_create(&a, "doomed", 4096, 0, &again), 0); /* the name is free */
	assert_int_equal(donor_fixture_info(&f)->lent_bytes, 8192);
	assert_int_equal(raw_region_close(&a, ra.hold), 0);
	assert_int_equal(donor_fixture_info(&f)->lent_bytes, 8192);
	assert_int_equal(raw_region_close(&b, rb.hold), 0);
	assert_int_equal(donor_fixture_info(&f)->lent_bytes, 4096);
	assert_int_equal(raw_region_delete(&a, "doomed"), 0);
	assert_int_equal(raw_region_close(&a, again.hold), 0);
	assert_int_equal(donor_fixture_info(&f)->lent_bytes, 0);
}

static void what_is_used_again_is_zero(void **state)
{
	struct wire_control_region ra, rb;
	int i;

	(void)state;
	memset(a.data, 0x99, RAW_DATA);
	for (i = 0; i < 8; i++) {
		assert_int_equal(raw_create(&a, NULL, RAW_DATA, 0, &ra), 0);
		assert_int_equal(raw_write(&a, ra.addr, ra.rkey, RAW_DATA), 0);
		assert_int_equal(raw_region_close(&a, ra.hold), 0);
		assert_int_equal(raw_create(&b, NULL, RAW_DATA, 0, &rb), 0);
		assert_int_equal(rb.addr, ra.addr);
		assert_int_equal(raw_read(&b, rb.addr, rb.rkey, RAW_DATA), 0);
		assert_true(data_is(&b, 0, RAW_DATA));
		assert_int_equal(raw_region_close(&b, rb.hold), 0);
	}
}

/* Sends a call of @raw; create_end() takes the answer. */
static void create_begin(struct raw_client *raw, const char *name, uint64_t length)
{
	struct wire_control_request request = { .op = WIRE_REGION_CREATE, .value = length };
	char call[sizeof(request) + WIRE_CONTROL_NAME_MAX];
	int n = wire_control_request_encode(&request, name, call);

	assert_int_equal(raw_message(raw, WIRE_CONTROL_CALL, ++raw->tags, call, n), 0);
}

static int create_end(struct raw_client *raw)
{
	char body[WIRE_CONTROL_BODY_MAX];
	struct wire_control_head head;

	assert_int_equal(raw_answer(raw, &head, body, SOON_MS), 0);
	assert_int_equal(head.kind, WIRE_CONTROL_REPLY);
	return head.status;
}

static void a_request_waits_for_memory_that_is_being_zeroed(void **state)
{
	struct wire_control_region r, s;

	(void)state;
	assert_int_equal(raw_create(&a, NULL, 8 * MIB, 0, &r), 0);
	assert_int_equal(raw_create(&b, NULL, 8 * MIB, 0, &s), 0);
	raw_close(&a);
	assert_soon(donor_fixture_info(&f)->clients == 1);
	assert_int_equal(raw_region_close(&b, s.hold), 0);
	assert_int_equal(raw_create(&b, NULL, 8 * MIB, 0, &s), 0);
	memset(b.data, 1, RAW_DATA);
	assert_int_equal(raw_read(&b, s.addr, s.rkey, RAW_DATA), 0);
	assert_true(data_is(&b, 0, RAW_DATA));
}

static void a_client_that_goes_in_the_middle_leaves_nothing_behind(void **state)
{
	struct wire_control_region r;
	int i;

	(void)state;
	for (i = 0; i < 20; i++) {
		create_begin(&a, "half-made", 8 * MIB);
		create_begin(&b, "other", 8 * MIB);
		raw_close(&a);
		assert_int_equal(create_end(&b), 0);
		assert_int_equal(raw_region_delete(&b, "other"), 0);
		raw_close(&b);
		assert_soon(donor_fixture_info(&f)->clients == 0);
		assert_int_equal(raw_open(&a, f.info.address, &key_a), 0);
		assert_int_equal(raw_open(&b, f.info.address, &key_a), 0);
		raw_region_delete(&a, "half-made"); /* there, if the donor was faster */
		assert_int_equal(donor_fixture_info(&f)->lent_bytes, 0);
	}
	assert_int_equal(raw_create(&a, "half-made", 8 * MIB, 0, &r), 0);
}

static void who_opens_a_region_in_the_making_waits_for_it(void **state)
{
	struct wire_control_region r;

	(void)state;
	create_begin(&a, "new", 8 * MIB);
	assert_soon(donor_fixture_info(&f)->regions == 1);
	assert_int_equal(raw_create(&b, "new", 4096, 0, &r), -EEXIST);
	assert_int_equal(raw_region_open(&b, "new", 0, &r), 0);
	assert_int_equal(r.length, 8 * MIB);
	assert_int_equal(create_end(&a), 0);
}

/* The answers come in the order in which the donor sends them. */
static void a_large_request_holds_no_other_client_up(void **state)
{
	const uint64_t large = donor_scaled(256) * (uint64_t)MIB;
	const struct weir_donor_options options = { .memory_bytes = large + MIB,
						    .quota_bytes = large };
	struct wire_control_head head;
	struct wire_control_region r;
	char body[WIRE_CONTROL_BODY_MAX];
	struct raw_client greedy, other;
	struct donor_fixture big;

	(void)state;
	donor_fixture_start(&big, &options);
	assert_int_equal(raw_open(&greedy, big.info.address, &key_a), 0);
	assert_int_equal(raw_open(&other, big.info.address, &key_b), 0);
	create_begin(&greedy, "large", large);
	assert_soon(donor_fixture_info(&big)->lent_bytes == large);
	assert_int_equal(raw_create(&other, "small", 4096, 0, &r), 0);
	assert_int_equal(raw_answer(&greedy, &head, body, 0), -ETIMEDOUT);
	assert_int_equal(create_end(&greedy), 0);
	raw_close(&greedy);
	raw_close(&other);
	assert_soon(donor_fixture_info(&big)->clients == 0);
	donor_fixture_stop(&big);
}

static void the_quota_is_what_a_client_has_created(void **state)
{
	struct wire_control_region r, s;

	(void)state;
	assert_int_equal(raw_create(&a, NULL, 8 * MIB + 1, 0, &r), -EDQUOT);
	assert_int_equal(raw_create(&a, "half", 4 * MIB, 0, &r), 0);
	assert_int_equal(raw_create(&a, NULL, 4 * MIB, 0, &s), 0);
	assert_int_equal(raw_create(&a, NULL, 1, 0, &s), -EDQUOT);
	/* Closing a named region keeps the region, and its cost. */
	assert_int_equal(raw_region_close(&a, r.hold), 0);
	assert_int_equal(raw_create(&a, NULL, 1, 0, &s), -EDQUOT);
	/* Opening another client's region is free of charge. */
	assert_int_equal(raw_create(&b, "b's", 8 * MIB, 0, &s), 0);
	assert_int_equal(raw_region_open(&a, "b's", 0, &s), 0);
	assert_int_equal(raw_region_delete(&a, "half"), 0);
	assert_int_equal(raw_create(&a, NULL, 4 * MIB, 0, &s), 0);
}

static void regions_left_behind_count_for_their_key(void **state)
{
	struct wire_control_region r;
	struct raw_client other;

	(void)state;
	assert_int_equal(raw_create(&a, "left", 6 * MIB, 0, &r), 0);
	raw_close(&a);
	assert_soon(donor_fixture_info(&f)->clients == 1);
	assert_int_equal(raw_create(&b, "more", 4 * MIB, 0, &r), -EDQUOT);
	assert_int_equal(raw_create(&b, NULL, 4 * MIB, 0, &r), 0); /* which ends with its client */
	assert_int_equal(raw_region_close(&b, r.hold), 0);
	assert_int_equal(raw_create(&b, "more", 2 * MIB, 0, &r), 0);
	assert_int_equal(raw_open(&other, f.info.address, &key_b), 0);
	assert_int_equal(raw_create(&other, "others", 8 * MIB, 0, &r), 0);
	raw_close(&other);
	assert_int_equal(raw_region_delete(&b, "left"), 0);
	assert_int_equal(raw_create(&b, "again", 6 * MIB, 0, &r), 0);
}

static void a_key_has_its_limit_in_all(void **state)
{
	const struct weir_donor_options options = { .key_bytes_max = 4 * MIB };
	struct weir_region_token token;
	struct wire_control_region r;
	struct donor_fixture small;
	struct raw_client one, two;
	void *addr;

	(void)state;
	donor_fixture_start(&small, &options);
	assert_int_equal(weir_donor_region_create(small.donor, 0, MIB, &token, &addr), 0);
	assert_int_equal(raw_open(&one, small.info.address, &key_a), 0);
	assert_int_equal(raw_open(&two, small.info.address, &key_a), 0);
	assert_int_equal(raw_create(&one, NULL, 2 * MIB, 0, &r), 0);
	assert_int_equal(raw_create(&two, NULL, 2 * MIB, 0, &r), -EDQUOT);
	assert_int_equal(raw_create(&two, NULL, MIB, 0, &r), 0);
	assert_int_equal(weir_donor_region_create(small.donor, 0, 1, &token, &addr), -EDQUOT);
	assert_int_equal(weir_donor_region_create(small.donor, 1, MIB, &token, &addr), 0);
	raw_close(&one);
	raw_close(&two);
	assert_soon(donor_fixture_info(&small)->clients == 0);
	donor_fixture_stop(&small);
}

static void a_full_donor_says_so_and_recovers(void **state)
{
	struct weir_region_token token;
	struct wire_control_region r, s;
	void *addr;

	(void)state;
	assert_int_equal(weir_donor_region_create(f.donor, 0, 9 * MIB, &token, &addr), 0);
	assert_int_equal(raw_create(&a, NULL, 7 * MIB, 0, &r), 0);
	assert_int_equal(raw_create(&b, NULL, 4096, 0, &s), -ENOSPC);
	assert_int_equal(donor_fixture_info(&f)->lent_bytes, 16 * MIB);
	assert_int_equal(raw_region_close(&a, r.hold), 0);
	assert_int_equal(raw_create(&b, NULL, 7 * MIB, 0, &s), 0);
	weir_donor_region_destroy(f.donor, &token);
	assert_int_equal(raw_create(&a, NULL, 8 * MIB, 0, &r), 0);
}

static void when_a_client_goes_what_it_held_comes_back(void **state)
{
	struct wire_control_region r, s;

	(void)state;
	assert_int_equal(raw_create(&a, NULL, 4 * MIB, 0, &r), 0);
	assert_int_equal(raw_create(&a, "kept", MIB, WIRE_REGION_EXCLUSIVE, &s), 0);
	memset(a.data, 0xdd, RAW_DATA);
	assert_int_equal(raw_write(&a, r.addr, r.rkey, RAW_DATA), 0);
	assert_int_equal(donor_fixture_info(&f)->lent_bytes, 5 * MIB);
	raw_close(&a);
	assert_soon(donor_fixture_info(&f)->lent_bytes == MIB);
	assert_int_equal(raw_region_open(&b, "kept", WIRE_REGION_EXCLUSIVE, &s), 0);
	assert_int_equal(raw_create(&b, NULL, 8 * MIB, 0, &r), 0);
	assert_int_equal(raw_read(&b, r.addr, r.rkey, RAW_DATA), 0);
	assert_true(data_is(&b, 0, RAW_DATA));
}

static void tenants_see_and_reach_nothing_of_each_other(void **state)
{
	struct wire_control_region ra, rb;
	char body[WIRE_CONTROL_BODY_MAX];
	struct wire_control_list list;
	struct raw_client other;
	size_t length;

	(void)state;
	assert_int_equal(raw_create(&a, "secret", 4096, 0, &ra), 0);
	memset(a.data, 0x33, 64);
	assert_int_equal(raw_write(&a, ra.addr, ra.rkey, 64), 0);

	assert_int_equal(raw_open(&other, f.info.address, &key_b), 0);
	assert_int_equal(raw_region_open(&other, "secret", 0, &rb), -ENOENT);
	assert_int_equal(raw_region_delete(&other, "secret"), -ENOENT);
	assert_int_equal(raw_region_close(&other, ra.hold), -ENOENT);
	assert_int_equal(raw_create(&other, "secret", 4096, 0, &rb), 0);
	assert_int_equal(raw_call(&other, (struct wire_control_request){ .op = WIRE_REGION_LIST },
				  NULL, body, &length),
			 0);
	assert_int_equal(wire_control_list_decode(body, length, &list), 0);
	assert_int_equal(list.count, 1);
	/* The rkey does not help, because it belongs to another PD. */
	assert_int_equal(raw_read(&other, ra.addr, ra.rkey, 64), -EACCES);
	assert_true(data_is(&other, 0, 64));
	raw_close(&other);
	assert_int_equal(raw_open(&other, f.info.address, &key_b), 0);
	memset(other.data, 0x44, 64);
	assert_int_equal(raw_write(&other, ra.addr, ra.rkey, 64), -EACCES);
	raw_close(&other);
	assert_int_equal(raw_read(&a, ra.addr, ra.rkey, 64), 0);
	assert_true(data_is(&a, 0x33, 64));
}

static void nothing_beyond_its_end_can_be_reached(void **state)
{
	struct wire_control_region r, s;

	(void)state;
	assert_int_equal(raw_create(&a, NULL, 4096, 0, &r), 0);
	assert_int_equal(raw_create(&b, NULL, 4096, 0, &s), 0);
	assert_int_equal(raw_write(&a, r.addr + 4096 - 32, r.rkey, 64), -EACCES);
	assert_int_equal(raw_read(&b, s.addr, s.rkey, 64), 0);
	assert_true(data_is(&b, 0, 64));
}

static void a_long_list_comes_in_parts(void **state)
{
	struct wire_control_request request = { .op = WIRE_REGION_LIST };
	char name[WIRE_CONTROL_NAME_MAX + 1], body[WIRE_CONTROL_BODY_MAX];
	unsigned int i, seen = 0, calls = 0;
	struct wire_control_region r;
	struct wire_control_entry entry;
	struct wire_control_list list;
	size_t length;

	(void)state;
	for (i = 0; i < 450; i++) {
		snprintf(name, sizeof(name), "region %u", i);
		assert_int_equal(raw_create(i % 2 ? &a : &b, name, 4096, 0, &r), 0);
	}
	do {
		assert_int_equal(raw_call(&a, request, NULL, body, &length), 0);
		assert_int_equal(wire_control_list_decode(body, length, &list), 0);
		for (i = 0; i < list.count; i++, seen++) {
			assert_int_equal(wire_control_entry_decode(body, length, i, &entry), 0);
			snprintf(name, sizeof(name), "region %u", seen);
			assert_string_equal(entry.name, name);
			assert_int_equal(entry.holders, 1);
		}
		request.value = list.next;
		calls++;
	} while (list.next);
	assert_int_equal(seen, 450);
	assert_int_equal(calls, 3);
}

static void the_donor_describes_itself(void **state)
{
	char body[WIRE_CONTROL_BODY_MAX];
	struct wire_control_region r;
	struct wire_control_info info;
	size_t length;

	(void)state;
	assert_int_equal(raw_create(&a, "x", MIB, 0, &r), 0);
	assert_int_equal(raw_call(&a, (struct wire_control_request){ .op = WIRE_DONOR_INFO }, NULL,
				  body, &length),
			 0);
	assert_int_equal(wire_control_info_decode(body, length, &info), 0);
	donor_fixture_info(&f);
	assert_int_equal(info.incarnation, f.info.incarnation);
	assert_int_equal(info.memory_bytes, 16 * MIB);
	assert_int_equal(info.lent_bytes, MIB);
	assert_int_equal(info.quota_bytes, 8 * MIB);
	assert_int_equal(info.charged_bytes, MIB);
	assert_int_equal(info.clients, 2);
	assert_int_equal(info.regions, 1);
}

static void a_donor_that_lends_less_asks_each_for_its_part_and_lends_no_more(void **state)
{
	struct wire_control_region large, small, other;

	(void)state;
	assert_int_equal(raw_create(&a, "named", 4096, WIRE_REGION_MOVABLE, &other), -EINVAL);
	assert_int_equal(raw_create(&a, NULL, 6 * MIB, WIRE_REGION_MOVABLE, &large), 0);
	assert_int_equal(raw_create(&b, NULL, 2 * MIB, WIRE_REGION_MOVABLE | WIRE_REGION_EXCLUSIVE,
				    &small),
			 0);
	assert_int_equal(raw_create(&b, "stays", MIB, 0, &other), 0);
	assert_int_equal(weir_donor_limit(f.donor, 5 * MIB), 0);
	assert_int_equal(donor_fixture_reclaimed(&a), 3 * MIB);
	assert_int_equal(donor_fixture_reclaimed(&b), MIB);
	assert_int_equal(raw_create(&b, NULL, 4096, 0, &other), -ENOSPC);
	assert_int_equal(raw_region_close(&a, large.hold), 0);
	assert_int_equal(raw_create(&a, NULL, 2 * MIB, 0, &other), 0);
	assert_int_equal(raw_create(&a, NULL, 4096, 0, &other), -ENOSPC);
	assert_int_equal(weir_donor_limit(f.donor, 16 * MIB), 0);
	assert_int_equal(donor_fixture_reclaimed(&b), WIRE_CONTROL_KEEP_ALL);
	assert_int_equal(raw_create(&b, NULL, 4096, 0, &other), 0);
	assert_int_equal(weir_donor_limit(f.donor, 17 * MIB), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static int open_at(struct raw_client *raw, uint64_t epoch, struct wire_control_region *region)
{
	return raw_region_open_fenced(raw, "fenced", epoch, region);
}

static void a_later_epoch_revokes_the_keys_of_an_earlier_one(void **state)
{
	struct wire_control_region ra, rb;

	(void)state;
	assert_int_equal(raw_create(&a, "fenced", 4096, 0, &ra), 0);
	assert_int_equal(open_at(&a, 7, &ra), 0);
	memset(a.data, 1, 4096);
	assert_int_equal(raw_write(&a, ra.addr, ra.rkey, 4096), 0);
	assert_int_equal(open_at(&b, 8, &rb), 0);
	memset(a.data, 2, 4096);
	assert_int_not_equal(raw_write(&a, ra.addr, ra.rkey, 4096), 0);
	assert_int_equal(raw_read(&b, rb.addr, rb.rkey, 4096), 0);
	assert_true(data_is(&b, 1, 4096));
}

static void an_earlier_epoch_is_refused_and_changes_nothing(void **state)
{
	struct wire_control_region ra, rb;

	(void)state;
	assert_int_equal(raw_create(&b, "fenced", 4096, 0, &rb), 0);
	assert_int_equal(open_at(&b, 8, &rb), 0);
	assert_int_equal(open_at(&a, 7, &ra), -EBUSY);
	memset(b.data, 3, 4096);
	assert_int_equal(raw_write(&b, rb.addr, rb.rkey, 4096), 0);
}

static void the_same_epoch_opens_again_after_a_lost_session(void **state)
{
	struct wire_control_region ra, rb;

	(void)state;
	assert_int_equal(raw_create(&a, "fenced", 4096, 0, &ra), 0);
	assert_int_equal(open_at(&a, 8, &ra), 0);
	assert_int_equal(open_at(&b, 8, &rb), 0);
	assert_int_equal(raw_read(&b, rb.addr, rb.rkey, 4096), 0);
	assert_int_not_equal(raw_read(&a, ra.addr, ra.rkey, 4096), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_written_can_be_read_by_another),
		TEST(a_named_region_outlives_its_creator),
		TEST(names_are_unique_and_must_be_there),
		TEST(nonsense_is_refused_and_hurts_nobody),
		TEST(held_exclusively_is_held_alone),
		TEST(an_earlier_holder_cannot_write_to_what_another_holds_now),
		TEST(a_later_epoch_revokes_the_keys_of_an_earlier_one),
		TEST(an_earlier_epoch_is_refused_and_changes_nothing),
		TEST(the_same_epoch_opens_again_after_a_lost_session),
		TEST(read_only_cannot_be_written_to),
		TEST(deleted_while_held_it_lives_until_the_last_holder_goes),
		TEST(what_is_used_again_is_zero),
		TEST(a_request_waits_for_memory_that_is_being_zeroed),
		TEST(a_client_that_goes_in_the_middle_leaves_nothing_behind),
		TEST(who_opens_a_region_in_the_making_waits_for_it),
		TEST(a_large_request_holds_no_other_client_up),
		TEST(the_quota_is_what_a_client_has_created),
		TEST(regions_left_behind_count_for_their_key),
		TEST(a_key_has_its_limit_in_all),
		TEST(a_full_donor_says_so_and_recovers),
		TEST(when_a_client_goes_what_it_held_comes_back),
		TEST(tenants_see_and_reach_nothing_of_each_other),
		TEST(nothing_beyond_its_end_can_be_reached),
		TEST(a_long_list_comes_in_parts),
		TEST(the_donor_describes_itself),
		TEST(a_donor_that_lends_less_asks_each_for_its_part_and_lends_no_more),
	};

	return cmocka_run_group_tests_name("regions", tests, NULL, NULL);
}
