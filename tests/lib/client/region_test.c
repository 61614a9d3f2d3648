/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib region; devices: softnic rxe; timeout: 180 */
/* Regions: named, nameless, shared, exclusive, read-only, and refused. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/libweir_fixture.h"
#include "tests/support/stop_process.h"

struct region_state {
	struct donor_process donor;
	struct weir_session *a, *b;
};

static int setup(void **out)
{
	struct region_state *s = calloc(1, sizeof(*s));

	donor_process_start(&s->donor, "16777216", "quota=8388608", NULL);
	s->a = session_to(&s->donor, NULL);
	s->b = session_to(&s->donor, NULL);
	*out = s;
	return 0;
}

static int teardown(void **in)
{
	struct region_state *s = *in;

	weir_session_close(s->a);
	weir_session_close(s->b);
	donor_process_stop(&s->donor);
	free(s);
	return 0;
}

static struct weir_region *create(struct weir_session *session, const char *name,
				  unsigned int flags)
{
	struct weir_region *region;

	assert_int_equal(weir_region_create(session, name, 4096, flags, &region, NULL), 0);
	return region;
}

static void two_clients_share_a_name(void **in)
{
	struct region_state *s = *in;
	struct weir_region *a = create(s->a, "shared", 0), *b;
	char got[6] = "";

	assert_int_equal(weir_region_open(s->b, "shared", 0, &b, NULL), 0);
	assert_int_equal(weir_region_length(b), weir_region_length(a));
	assert_int_equal(weir_write(a, 100, "hello", 6), 0);
	assert_int_equal(weir_read(b, 100, got, 6), 0);
	assert_string_equal(got, "hello");
	weir_region_close(a);
	weir_region_close(b);
	assert_int_equal(weir_region_delete(s->a, "shared", NULL), 0);
}

static void a_name_outlives_its_creator(void **in)
{
	struct region_state *s = *in;
	struct weir_session *creator = session_to(&s->donor, NULL);
	struct weir_region *region = create(creator, "left behind", 0);
	char got[5] = "";

	assert_int_equal(weir_write(region, 0, "here", 5), 0);
	weir_region_close(region);
	weir_session_close(creator);
	assert_int_equal(weir_region_open(s->a, "left behind", 0, &region, NULL), 0);
	assert_int_equal(weir_read(region, 0, got, 5), 0);
	assert_string_equal(got, "here");
	weir_region_close(region);
	assert_int_equal(weir_region_delete(s->a, "left behind", NULL), 0);
	assert_int_equal(weir_region_open(s->a, "left behind", 0, &region, NULL), -ENOENT);
}

static void exclusive_means_alone(void **in)
{
	struct region_state *s = *in;
	struct weir_region *a = create(s->a, "mine", WEIR_REGION_EXCLUSIVE), *b;
	struct weir_error error;

	assert_int_equal(weir_region_open(s->b, "mine", 0, &b, &error), -EBUSY);
	assert_non_null(strstr(error.text, "mine"));
	weir_region_close(a);
	assert_int_equal(weir_region_open(s->b, "mine", 0, &b, NULL), 0);
	assert_int_equal(weir_region_open(s->a, "mine", WEIR_REGION_EXCLUSIVE, &a, NULL), -EBUSY);
	weir_region_close(b);
	assert_int_equal(weir_region_open(s->a, "mine", WEIR_REGION_EXCLUSIVE, &a, NULL), 0);
	weir_region_close(a);
	assert_int_equal(weir_region_delete(s->a, "mine", NULL), 0);
}

static void read_only_refuses_writes(void **in)
{
	struct region_state *s = *in;
	struct weir_region *a = create(s->a, "book", 0), *b;
	char byte = 1;

	assert_int_equal(weir_region_open(s->b, "book", WEIR_REGION_READ_ONLY, &b, NULL), 0);
	assert_int_equal(weir_write(b, 0, &byte, 1), -EACCES);
	assert_int_equal(weir_fetch_add(b, 0, 1, NULL), -EACCES);
	assert_int_equal(weir_read(b, 0, &byte, 1), 0);
	assert_int_equal(byte, 0);
	weir_region_close(a);
	weir_region_close(b);
	assert_int_equal(weir_region_delete(s->a, "book", NULL), 0);
}

static void what_was_freed_is_zero(void **in)
{
	struct region_state *s = *in;
	char *bytes = malloc(4 * MIB);
	struct weir_region *region;
	size_t i;

	memset(bytes, 7, 4 * MIB);
	region = region_of(s->a, 4 * MIB);
	assert_int_equal(weir_write(region, 0, bytes, 4 * MIB), 0);
	weir_region_close(region);
	region = region_of(s->b, 8 * MIB);
	assert_int_equal(weir_read(region, 0, bytes, 4 * MIB), 0);
	for (i = 0; i < 4 * MIB; i++)
		assert_int_equal(bytes[i], 0);
	weir_region_close(region);
	free(bytes);
}

static void quota_and_memory_have_an_end(void **in)
{
	struct region_state *s = *in;
	struct weir_region *a, *b, *none;
	struct weir_session *c = session_to(&s->donor, NULL);
	struct weir_error error;

	a = region_of(s->a, 8 * MIB);
	assert_int_equal(weir_region_create(s->a, NULL, 4096, 0, &none, &error), -EDQUOT);
	assert_true(strlen(error.text) > 10);
	b = region_of(s->b, 8 * MIB);
	assert_int_equal(weir_region_create(c, NULL, 4096, 0, &none, &error), -ENOSPC);
	assert_true(strlen(error.text) > 10);
	weir_region_close(a);
	a = region_of(c, 4096);
	weir_region_close(a);
	weir_region_close(b);
	weir_session_close(c);
}

static void ignore_entry(void *arg, const struct weir_region_entry *entry)
{
	(void)arg;
	(void)entry;
}

/*
 * The donor grants a region to a caller that has timed out. The next successful call returns the
 * region, so that its bytes do not count against the quota until the session ends.
 */
static void a_region_granted_too_late_is_returned(void **in)
{
	struct region_state *s = *in;
	const struct weir_session_options options = { .timeout_ns = SECOND_NS / 2 };
	struct weir_session *session = session_to(&s->donor, &options);
	uint64_t until_ns = now_ns() + 20 * SECOND_NS;
	struct weir_region *region;
	int rc;

	stop_process(s->donor.pid);
	rc = weir_region_create(session, NULL, 8 * MIB, 0, &region, NULL);
	kill(s->donor.pid, SIGCONT);
	assert_int_equal(rc, -ETIMEDOUT);
	do
		weir_region_list(session, ignore_entry, NULL);
	while ((rc = weir_region_create(session, NULL, 8 * MIB, 0, &region, NULL)) &&
	       now_ns() < until_ns);
	assert_int_equal(rc, 0);
	weir_region_close(region);
	weir_session_close(session);
}

static void names_are_checked(void **in)
{
	struct region_state *s = *in;
	struct weir_region *a = create(s->a, "taken", 0), *none;
	char longest[WEIR_REGION_NAME_MAX + 2];

	assert_int_equal(weir_region_create(s->b, "taken", 4096, 0, &none, NULL), -EEXIST);
	assert_int_equal(weir_region_create(s->a, "a/b", 4096, 0, &none, NULL), -EINVAL);
	assert_int_equal(weir_region_create(s->a, "", 4096, 0, &none, NULL), -EINVAL);
	assert_int_equal(weir_region_create(s->a, NULL, 0, 0, &none, NULL), -EINVAL);
	memset(longest, 'x', sizeof(longest));
	longest[WEIR_REGION_NAME_MAX + 1] = '\0';
	assert_int_equal(weir_region_create(s->a, longest, 4096, 0, &none, NULL), -EINVAL);
	assert_int_equal(weir_region_delete(s->a, "nothing", NULL), -ENOENT);
	weir_region_close(a);
	assert_int_equal(weir_region_delete(s->a, "taken", NULL), 0);
}

struct listed_regions {
	int count;
	bool seen[300];
};

static void count_entry(void *arg, const struct weir_region_entry *entry)
{
	struct listed_regions *found = arg;
	int number;

	assert_int_equal(sscanf(entry->name, "list %d", &number), 1);
	assert_in_range(number, 0, 299);
	assert_false(found->seen[number]);
	assert_int_equal(entry->length, 4096);
	assert_int_equal(entry->holders, 0);
	found->seen[number] = true;
	found->count++;
}

/* More than fit one answer. */
static void all_names_are_listed(void **in)
{
	struct region_state *s = *in;
	struct listed_regions found = { 0 };
	char name[32];
	int i;

	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "list %d", i);
		weir_region_close(create(s->a, name, 0));
	}
	assert_int_equal(weir_region_list(s->b, count_entry, &found), 0);
	assert_int_equal(found.count, 300);
	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "list %d", i);
		assert_int_equal(weir_region_delete(s->b, name, NULL), 0);
	}
}

static void a_token_reaches_what_the_donor_made(void **in)
{
	struct region_state *s = *in;
	struct weir_region_token token;
	struct weir_region *region;
	char got[12] = "";
	size_t length;

	assert_int_equal(weir_call(s->a, "t", 1, &token, sizeof(token), &length), 0);
	assert_int_equal(length, sizeof(token));
	assert_int_equal(weir_region_attach(s->a, &token, &region), 0);
	assert_int_equal(weir_read(region, 0, got, 11), 0);
	assert_string_equal(got, "donor's own");
	weir_region_close(region);
	token.addr = UINT64_MAX - 10;
	assert_int_equal(weir_region_attach(s->a, &token, &region), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_clients_share_a_name),
		cmocka_unit_test(a_name_outlives_its_creator),
		cmocka_unit_test(exclusive_means_alone),
		cmocka_unit_test(read_only_refuses_writes),
		cmocka_unit_test(what_was_freed_is_zero),
		cmocka_unit_test(quota_and_memory_have_an_end),
		cmocka_unit_test(a_region_granted_too_late_is_returned),
		cmocka_unit_test(names_are_checked),
		cmocka_unit_test(all_names_are_listed),
		cmocka_unit_test(a_token_reaches_what_the_donor_made),
	};

	fixture_runs_on("softnic rxe");
	return cmocka_run_group_tests(tests, setup, teardown);
}
