/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib unload; devices: softnic rxe; timeout: 180 */
/*
 * Unloaded writes, which the donor's CPU copies: in every respect they end as RDMA writes do.
 * The donor is in this process, so that the test sees both ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/rng.h"
#include "tests/support/libweir_fixture.h"
#include "lib/client/memory/region.h"
#include "lib/client/session.h"

#define CHANNELS 2u
#define REGION_BYTES (64u << 10)
#define DATA_MAX (WIRE_UNLOAD_SLOT_BYTES - 8)

struct unload_state {
	struct weir_donor *donor;
	char address[64];
	struct weir_session *session;
	struct weir_region *region;
};

static struct weir_session *session_with(const char *address,
					 const struct weir_session_options *options)
{
	struct weir_session_options o = *options;
	struct weir_session *session;
	struct weir_error error;

	o.size = sizeof(o);
	o.key = fixture_key();
	o.channels = CHANNELS;
	if (weir_session_open(address, &o, &session, &error))
		fail_msg("no session: %s", error.text);
	return session;
}

static struct weir_donor *donor_with(unsigned int percent, char *address, size_t size)
{
	const struct weir_key *key = fixture_key();
	struct weir_donor_options options = { .size = sizeof(options),
					      .listen = fixture_address(),
					      .keys = &key,
					      .nr_keys = key != NULL,
					      .memory_bytes = 4 * MIB,
					      .unload_percent_max = percent };
	struct weir_donor_info info;
	struct weir_donor *donor;
	char listen[64];
	struct weir_error error;

	snprintf(listen, sizeof(listen), "%s:0", fixture_address());
	options.listen = listen;
	if (weir_donor_open(&options, &donor, &error))
		fail_msg("no donor: %s", error.text);
	weir_donor_info(donor, &info, sizeof(info));
	snprintf(address, size, "%s", info.address);
	return donor;
}

static int setup_with(void **out, struct weir_session_options options)
{
	struct unload_state *s = calloc(1, sizeof(*s));

	s->donor = donor_with(100, s->address, sizeof(s->address));
	s->session = session_with(s->address, &options);
	s->region = region_of(s->session, REGION_BYTES);
	*out = s;
	return 0;
}

static int setup(void **out)
{
	return setup_with(out, (struct weir_session_options){ .unload = WEIR_UNLOAD_ALWAYS });
}

static int setup_hints(void **out)
{
	return setup_with(out, (struct weir_session_options){ .unload = WEIR_UNLOAD_HINTS });
}

static int setup_measured(void **out)
{
	return setup_with(out, (struct weir_session_options){ .unload = WEIR_UNLOAD_MEASURED });
}

static int setup_driven(void **out)
{
	return setup_with(out, (struct weir_session_options){ .unload = WEIR_UNLOAD_ALWAYS,
							      .no_thread = true });
}

static int teardown(void **in)
{
	struct unload_state *s = *in;

	weir_region_close(s->region);
	weir_session_close(s->session);
	weir_donor_close(s->donor);
	free(s);
	return 0;
}

static struct weir_session_info info_of(struct unload_state *s)
{
	struct weir_session_info info;

	weir_session_info(s->session, &info, sizeof(info));
	return info;
}

static struct weir_donor_info donor_info_of(struct unload_state *s)
{
	struct weir_donor_info info;

	weir_donor_info(s->donor, &info, sizeof(info));
	return info;
}

static void assert_reads(struct weir_region *region, uint64_t offset, const void *expected,
			 size_t length)
{
	char *found = malloc(length);

	assert_int_equal(weir_read(region, offset, found, length), 0);
	assert_memory_equal(found, expected, length);
	free(found);
}

/* Adjacent memory is unchanged too. */
static void small_writes_arrive_by_the_donors_cpu(void **state)
{
	static const size_t lengths[] = { 1, 7, 8, 16, 100, DATA_MAX - 1, DATA_MAX };
	struct unload_state *s = *state;
	char expected[4 * WIRE_UNLOAD_SLOT_BYTES] = { 0 };
	size_t i, limit = s->session->unload.route.config.bytes_max;

	assert_true(limit >= 16);
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		memset(expected + 33, (int)i + 1, lengths[i]);
		assert_int_equal(weir_write(s->region, 33, expected + 33, lengths[i]), 0);
		assert_reads(s->region, 0, expected, sizeof(expected));
	}
	assert_int_equal(info_of(s).unloaded, donor_info_of(s).unloaded);
	assert_true(info_of(s).unloaded >= 4);
	assert_int_equal(info_of(s).channels, CHANNELS);
}

static void large_writes_go_by_rdma(void **state)
{
	char data[DATA_MAX + 1] = "large";
	struct unload_state *s = *state;

	assert_int_equal(weir_write(s->region, 0, data, sizeof(data)), 0);
	assert_reads(s->region, 0, data, sizeof(data));
	assert_int_equal(info_of(s).unloaded, 0);
}

static void many_at_a_time_arrive_whatever_path_they_find(void **state)
{
	const int count = fixture_rounds(20000);
	struct completion_tally tally = { 0 };
	struct unload_state *s = *state;
	struct weir_completion completion = { .done = tally_done, .arg = &tally };
	uint64_t *data = calloc(1024, 8), i;

	for (i = 0; i < (uint64_t)count; i++) {
		struct weir_iov iov = { &data[i % 1024], 8, NULL };

		data[i % 1024] = i;
		/* With gaps, to prevent merging. */
		assert_int_equal(
			weir_write_async(s->region, i % 1024 * 16, &iov, 1, &completion, NULL), 0);
		if (i % 1024 == 1023)
			tally_wait(&tally, (int)i + 1);
	}
	tally_wait(&tally, count);
	assert_int_equal(tally.status, 0);
	for (i = 0; i < 1024 && i < (uint64_t)count; i++)
		assert_reads(s->region, i * 16, &data[i], 8);
	assert_true(info_of(s).unloaded > 0);
	assert_int_equal(info_of(s).unloaded, donor_info_of(s).unloaded);
	free(data);
}

static void hints_are_followed(void **state)
{
	struct unload_state *s = *state;
	struct completion_tally tally = { 0 };
	struct weir_completion completion = { .done = tally_done, .arg = &tally, .hint = WEIR_HOT };
	char data[8] = "hints";
	struct weir_iov iov = { data, sizeof(data), NULL };

	assert_int_equal(weir_write(s->region, 0, data, sizeof(data)), 0);
	assert_int_equal(info_of(s).unloaded, 0);
	weir_region_hint(s->region, WEIR_COLD);
	assert_int_equal(weir_write(s->region, 0, data, sizeof(data)), 0);
	assert_int_equal(info_of(s).unloaded, 1);
	assert_int_equal(weir_write_async(s->region, 0, &iov, 1, &completion, NULL), 0);
	tally_wait(&tally, 1);
	assert_int_equal(info_of(s).unloaded, 1);
}

/*
 * No device here can miss a cache, and a copy by the CPU costs more than none. If the machine
 * paused during a trial, the trial may end otherwise; the next will not.
 */
#define SETTLES_WITHIN (WEIR_PATH_PROBES + 3 * (WEIR_PATH_REST_MIN + WEIR_PATH_PROBES))

static void within_so_many_writes_it_settles_on_offload(void **state)
{
	const struct weir_path_trial *trial;
	struct unload_state *s = *state;
	char data[16] = "measured";
	uint64_t unloaded;
	uint32_t i;

	trial = &s->session->unload.route.trial;
	weir_region_hint(s->region, WEIR_COLD);
	for (i = 0; !trial->trials || trial->pays; i++) {
		assert_true(i <= SETTLES_WITHIN);
		assert_int_equal(weir_write(s->region, i % 64 * 1024, data, sizeof(data)), 0);
	}
	unloaded = info_of(s).unloaded;
	print_message("settled after %u small writes, %llu of them unloaded\n", i,
		      (unsigned long long)unloaded);
	assert_true(unloaded >= WEIR_PATH_PROBES / 2);
	for (i = 1; i < WEIR_PATH_REST_MIN; i++)
		assert_int_equal(weir_write(s->region, i % 64 * 1024, data, sizeof(data)), 0);
	assert_int_equal(info_of(s).unloaded, unloaded);
	assert_int_equal(donor_info_of(s).unloaded, unloaded);
}

/* Wait until the unload link is up again after @times reconnects. */
static void wait_mended(struct unload_state *s, uint64_t times)
{
	uint64_t until_ns = now_ns() + 60 * SECOND_NS;
	bool is_up = false;

	while (!is_up && now_ns() < until_ns) {
		usleep(100);
		weir_session_lock(s->session);
		is_up = s->session->counters->reconnects >= times &&
			s->session->links[CHANNELS].core.state == WEIR_LINK_UP;
		weir_session_unlock(s->session);
	}
	assert_true(is_up);
}

static struct weir_region *forged(struct unload_state *s, int64_t addr, int64_t length,
				  uint32_t rkey)
{
	struct weir_region_token token = {
		.addr = s->region->addr + (uint64_t)addr,
		.length = s->region->length + (uint64_t)length,
		.rkey = s->region->rkey + rkey,
	};
	struct weir_region *region;

	assert_int_equal(weir_region_attach(s->session, &token, &region), 0);
	return region;
}

/* A NIC would refuse all of these with the same error. */
static void what_a_nic_would_refuse_is_refused(void **state)
{
	static const struct {
		int64_t addr, length;
		uint32_t rkey;
		uint64_t offset; /* from the end of the forged region */
	} cases[] = {
		{ 0, 0, 1, 4096 }, /* another key */
		{ 0, 0, 0x10000, 4096 }, /* another key again */
		{ 0, 1, 0, 8 }, /* one byte past the end */
		{ -1, 1, 0, REGION_BYTES + 1 }, /* one byte before the start */
		{ 1 << 20, 0, 0, 4096 }, /* far outside */
	};
	struct unload_state *s = *state;
	static const char zeroes[REGION_BYTES];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct weir_region *region =
			forged(s, cases[i].addr, cases[i].length, cases[i].rkey);

		assert_int_equal(weir_write(region, weir_region_length(region) - cases[i].offset,
					    "forgery", 8),
				 -EACCES);
		weir_region_close(region);
		assert_int_equal(donor_info_of(s).unload_refused, i + 1);
		wait_mended(s, i + 1);
	}
	assert_reads(s->region, 0, zeroes, sizeof(zeroes));
}

static void a_region_that_is_read_only_is_not_written(void **state)
{
	struct unload_state *s = *state;
	struct weir_region *all, *read_only, *region;
	struct weir_region_token token;

	assert_int_equal(weir_region_create(s->session, "named", 4096, 0, &all, NULL), 0);
	assert_int_equal(
		weir_region_open(s->session, "named", WEIR_REGION_READ_ONLY, &read_only, NULL), 0);
	token = (struct weir_region_token){ read_only->addr, read_only->length, read_only->rkey,
					    0 };
	assert_int_equal(weir_region_attach(s->session, &token, &region), 0);
	assert_int_equal(weir_write(region, 0, "read me", 8), -EACCES);
	assert_int_equal(donor_info_of(s).unload_refused, 1);
	wait_mended(s, 1);
	assert_reads(all, 0, "\0\0\0\0\0\0\0", 8);
	weir_region_close(region);
	weir_region_close(read_only);
	weir_region_close(all);
}

static void a_region_that_was_given_back_is_not_written(void **state)
{
	struct unload_state *s = *state;
	struct weir_region *stale = forged(s, 0, 0, 0);

	weir_region_close(s->region);
	assert_int_equal(weir_write(stale, 0, "too late", 8), -EACCES);
	assert_int_equal(donor_info_of(s).unload_refused, 1);
	weir_region_close(stale);
	wait_mended(s, 1);
	s->region = region_of(s->session, REGION_BYTES);
	assert_int_equal(weir_write(s->region, 0, "in time", 8), 0);
	assert_reads(s->region, 0, "in time", 8);
}

/* Post a forged slot, as a hostile client would. @length: of the write, including the head. */
static void post_forged(struct unload_state *s, uint64_t addr, uint32_t length, uint32_t tag)
{
	struct weir_session_link *link = &s->session->links[CHANNELS];
	struct wire_unload_slot slot = { .addr = addr, .data = "forged" };
	struct ibv_sge sge = { .addr = (uintptr_t)&slot, .length = length };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_INLINE,
		.imm_data = htonl(tag),
	};

	weir_session_lock(s->session);
	assert_int_equal(link->core.state, WEIR_LINK_UP);
	wr.wr.rdma.remote_addr = s->session->unload.buffer.addr;
	wr.wr.rdma.rkey = s->session->unload.buffer.rkey;
	assert_int_equal(ibv_post_send(link->id->qp, &wr, &bad), 0);
	weir_session_unlock(s->session);
}

/* A refusal ends the link; the next write notices. */
static void wait_refused(struct unload_state *s, uint64_t count)
{
	uint64_t until_ns = now_ns() + 60 * SECOND_NS;
	char data[8] = "notices";

	while (donor_info_of(s).unload_refused < count && now_ns() < until_ns)
		usleep(100);
	assert_int_equal(donor_info_of(s).unload_refused, count);
	weir_write(s->region, REGION_BYTES - 8, data, 8);
	wait_mended(s, count);
}

static void break_link(struct unload_state *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	char data[8] = "notices";

	weir_session_lock(s->session);
	ibv_modify_qp(s->session->links[CHANNELS].id->qp, &attr, IBV_QP_STATE);
	weir_session_unlock(s->session);
	weir_write(s->region, REGION_BYTES - 8, data, 8); /* the next write notices the break */
}

static void slots_of_no_length_or_a_wrong_one_are_refused(void **state)
{
	static const uint32_t lengths[] = { 0, 1, 7, 8 };
	static const char zeroes[REGION_BYTES];
	struct unload_state *s = *state;
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		post_forged(s, s->region->addr, lengths[i], s->region->rkey);
		wait_refused(s, i + 1);
	}
	assert_reads(s->region, 0, zeroes, REGION_BYTES - 8);
}

static void slots_that_wrap_the_address_space_are_refused(void **state)
{
	static const struct {
		uint64_t addr;
		uint32_t length;
	} cases[] = {
		{ UINT64_MAX, 16 }, { UINT64_MAX - 7, 16 }, { 0, 16 }, { UINT64_MAX - 3, 12 }
	};
	struct unload_state *s = *state;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		post_forged(s, cases[i].addr, cases[i].length, s->region->rkey);
		wait_refused(s, i + 1);
	}
}

static void a_link_that_breaks_is_mended_and_the_writes_are_repeated(void **state)
{
	const int rounds = fixture_rounds(30);
	struct unload_state *s = *state;
	struct weir_region *region;
	uint64_t data;
	int i;

	assert_int_equal(weir_region_create(s->session, NULL, 4096, WEIR_REGION_EXCLUSIVE, &region,
					    NULL),
			 0);
	for (i = 0; i < rounds; i++) {
		data = (uint64_t)i + 1;
		break_link(s);
		assert_int_equal(weir_write(region, 8, &data, 8), 0);
		assert_reads(region, 8, &data, 8);
		wait_mended(s, (uint64_t)i + 1);
	}
	weir_region_close(region);
}

/* One client keeps its region while others come and go: each write must hit its own region. */
static void regions_come_and_go_and_none_is_written_after_it_has_gone(void **state)
{
	const int rounds = fixture_rounds(300);
	uint64_t seed = 7, data, found, zero = 0;
	struct unload_state *s = *state;
	struct weir_region *region;
	int i, j;

	for (i = 0; i < rounds; i++) {
		struct completion_tally tally = { 0 };
		struct weir_completion completion = { .done = tally_done, .arg = &tally };

		assert_int_equal(weir_region_create(s->session, NULL, 4096, 0, &region, NULL), 0);
		assert_int_equal(weir_read(region, 64, &found, 8), 0);
		assert_int_equal(found, zero); /* not written since it was zeroed */
		for (j = 0; j < 20; j++) {
			struct weir_iov iov = { &data, 8, NULL };

			data = weir_rng_next(&seed) | 1;
			assert_int_equal(weir_write_async(region, 64, &iov, 1, &completion, NULL),
					 0);
		}
		assert_int_equal(weir_fetch_add(region, 64, 1, &found), 0);
		assert_int_equal(found, data);
		tally_wait(&tally, 20);
		assert_int_equal(tally.status, 0);
		weir_region_close(region);
	}
	assert_true(info_of(s).unloaded > 0);
}

/* 1 % of 10 ms is not enough time for many copies. */
static void above_its_ceiling_the_donor_says_so(void **state)
{
	struct weir_session_options options = { .unload = WEIR_UNLOAD_ALWAYS };
	uint64_t until_ns = now_ns() + 60 * SECOND_NS;
	struct completion_tally tally = { 0 };
	struct weir_completion completion = { .done = tally_done, .arg = &tally };
	struct unload_state s = { 0 };
	uint64_t data = 1, i = 0;

	(void)state;
	s.donor = donor_with(1, s.address, sizeof(s.address));
	s.session = session_with(s.address, &options);
	s.region = region_of(s.session, REGION_BYTES);
	while (!donor_info_of(&s).unload_pauses && now_ns() < until_ns) {
		struct weir_iov iov = { &data, 8, NULL };

		assert_int_equal(
			weir_write_async(s.region, i % 1024 * 16, &iov, 1, &completion, NULL), 0);
		if (++i % 512 == 0)
			tally_wait(&tally, (int)i);
	}
	tally_wait(&tally, (int)i);
	assert_int_equal(tally.status, 0);
	assert_true(donor_info_of(&s).unload_pauses > 0);
	weir_session_lock(s.session);
	assert_true(s.session->unload.route.paused_ns > 0);
	weir_session_unlock(s.session);
	weir_region_close(s.region);
	weir_session_close(s.session);
	weir_donor_close(s.donor);
}

static void options_that_make_no_sense_are_refused(void **state)
{
	struct weir_session_options options = { .size = sizeof(options),
						.unload = WEIR_UNLOAD_MEASURED + 1 };
	struct weir_session *session;
	struct weir_error error;

	(void)state;
	assert_int_equal(weir_session_open("127.0.0.1:1", &options, &session, &error), -EINVAL);
	assert_non_null(strstr(error.text, "way of unloading"));
	options = (struct weir_session_options){ .size = sizeof(options),
						 .unload = WEIR_UNLOAD_ALWAYS,
						 .polling = WEIR_POLLING_SCQ };
	assert_int_equal(weir_session_open("127.0.0.1:1", &options, &session, &error), -EINVAL);
	assert_non_null(strstr(error.text, "a queue of its own"));
	options = (struct weir_session_options){ .size = sizeof(options),
						 .unload = WEIR_UNLOAD_ALWAYS,
						 .channels = 16 };
	assert_int_equal(weir_session_open("127.0.0.1:1", &options, &session, &error), -EINVAL);
	assert_non_null(strstr(error.text, "at most 15"));
}

#define SAYS_WITH(sentence, function, setup_function) \
	{ (sentence), (function), (setup_function), teardown, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS_WITH("small writes arrive by the donor's CPU",
			  small_writes_arrive_by_the_donors_cpu, setup),
		SAYS_WITH("large writes go by RDMA", large_writes_go_by_rdma, setup),
		SAYS_WITH("many at a time arrive, whatever path they find",
			  many_at_a_time_arrive_whatever_path_they_find, setup),
		SAYS_WITH("so they do where the caller drives the session",
			  small_writes_arrive_by_the_donors_cpu, setup_driven),
		SAYS_WITH("hints are followed", hints_are_followed, setup_hints),
		SAYS_WITH("within so many writes it settles on offload",
			  within_so_many_writes_it_settles_on_offload, setup_measured),
		SAYS_WITH("what a NIC would refuse is refused", what_a_nic_would_refuse_is_refused,
			  setup),
		SAYS_WITH("a region that is read-only is not written",
			  a_region_that_is_read_only_is_not_written, setup),
		SAYS_WITH("a region that was given back is not written",
			  a_region_that_was_given_back_is_not_written, setup),
		SAYS_WITH("regions come and go, and none is written after it has gone",
			  regions_come_and_go_and_none_is_written_after_it_has_gone, setup),
		SAYS_WITH("slots of no length, or a wrong one, are refused",
			  slots_of_no_length_or_a_wrong_one_are_refused, setup),
		SAYS_WITH("slots that wrap the address space are refused",
			  slots_that_wrap_the_address_space_are_refused, setup),
		SAYS_WITH("a link that breaks is mended, and the writes are repeated",
			  a_link_that_breaks_is_mended_and_the_writes_are_repeated, setup),
		{ "above its ceiling the donor says so", above_its_ceiling_the_donor_says_so, NULL,
		  NULL, NULL },
		{ "options that make no sense are refused", options_that_make_no_sense_are_refused,
		  NULL, NULL, NULL },
	};

	fixture_runs_on("softnic rxe");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
