/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib volume; devices: softnic; timeout: 180 */
/* A volume over donors that live: every byte is as in a model, at any offset and length. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/client/session.h"
#include "lib/volume/volume.h"
#include "tests/lib/volume/byte_model.h"

#define DONORS 3
#define PAGE 4096u
#define BYTES (5 * MIB + 1234)

static struct donor_process donors[DONORS];

static int start_donors(void **state)
{
	(void)state;
	for (int i = 0; i < DONORS; i++)
		donor_process_start(&donors[i], "64000000", NULL);
	return 0;
}

static int stop_donors(void **state)
{
	(void)state;
	for (int i = 0; i < DONORS; i++)
		donor_process_stop(&donors[i]);
	return 0;
}

static struct weir_volume *volume_with(unsigned int nr_donors, unsigned int copies, uint64_t bytes)
{
	const char *addresses[DONORS];
	struct weir_volume_options options = { .size = sizeof(options),
					       .donors = addresses,
					       .nr_donors = nr_donors,
					       .bytes = bytes,
					       .copies = copies,
					       .key = fixture_key() };
	struct weir_volume *volume;
	struct weir_error error = { "" };

	for (int i = 0; i < DONORS; i++)
		addresses[i] = donors[i].address;
	if (weir_volume_open(&options, &volume, &error))
		fail_msg("%s", error.text);
	return volume;
}

static struct weir_volume_info info_of(struct weir_volume *volume)
{
	struct weir_volume_info info;

	assert_int_equal(weir_volume_info(volume, &info, sizeof(info)), 0);
	return info;
}

static void its_sessions_are_tuned(void **state)
{
	const char *address = donors[0].address;
	struct weir_session_tuning tuning = { .size = sizeof(tuning), .window_wrs = 64 };
	const struct weir_volume_options options = { .size = sizeof(options),
						     .donors = &address,
						     .nr_donors = 1,
						     .bytes = BYTES,
						     .key = fixture_key(),
						     .tuning = &tuning };
	struct weir_volume *volume;

	(void)state;
	assert_int_equal(weir_volume_open(&options, &volume, NULL), 0);
	assert_int_equal(volume->targets[0].session->nic->window.wrs_top, 64);
	weir_volume_close(volume);
	tuning.size = 1;
	assert_int_equal(weir_volume_open(&options, &volume, NULL), -EINVAL);
}

static void it_begins_as_zeroes_and_has_all_copies(void **state)
{
	struct weir_volume *volume = volume_with(3, 2, BYTES);
	char *got = malloc(BYTES);
	struct weir_volume_info info = info_of(volume);

	(void)state;
	memset(got, 1, BYTES);
	assert_int_equal(weir_volume_read(volume, 0, got, BYTES), 0);
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(got[i], 0);
	assert_int_equal(info.bytes, BYTES);
	assert_int_equal(info.copies, 2);
	assert_int_equal(info.donors_up, 3);
	assert_int_equal(info.whole, info.extents);
	assert_int_equal(info.lean + info.lost, 0);
	free(got);
	weir_volume_close(volume);
}

static void every_byte_is_as_written(void **state)
{
	struct byte_model m;

	(void)state;
	for (unsigned int copies = 1; copies <= 3; copies++) {
		model_open(&m, 3, copies, BYTES, copies);
		for (int i = 0; i < fixture_rounds(500); i++)
			model_submit(&m);
		model_check(&m);
		assert_int_equal(model_info(&m).mismatches, 0);
		assert_int_equal(model_info(&m).failovers, 0);
		model_close(&m);
	}
}

/* A small volume, so that most requests overlap others. */
static void requests_that_overlap_keep_their_order(void **state)
{
	struct byte_model m;

	(void)state;
	model_open(&m, 3, 2, 30000, 7);
	for (int i = 0; i < fixture_rounds(3000); i++)
		model_submit(&m);
	model_check(&m);
	model_close(&m);
}

static void blocking_calls_do_the_same(void **state)
{
	struct weir_volume *volume = volume_with(3, 2, BYTES);
	char *bytes = malloc(3 * MIB), *got = malloc(3 * MIB);

	(void)state;
	memset(bytes, 7, 3 * MIB);
	assert_int_equal(weir_volume_write(volume, 1000, bytes, 3 * MIB), 0);
	assert_int_equal(weir_volume_discard(volume, 5000, 2 * MIB), 0);
	assert_int_equal(weir_volume_flush(volume), 0);
	memset(bytes + 4000, 0, 2 * MIB);
	assert_int_equal(weir_volume_read(volume, 1000, got, 3 * MIB), 0);
	assert_memory_equal(got, bytes, 3 * MIB);
	free(bytes);
	free(got);
	weir_volume_close(volume);
}

struct flush_watch {
	struct completion_tally writes, flush;
	int writes_before;
};

static void flush_done(void *arg, int status)
{
	struct flush_watch *watch = arg;

	watch->writes_before = __atomic_load_n(&watch->writes.done, __ATOMIC_SEQ_CST);
	tally_done(&watch->flush, status);
}

static void a_flush_ends_after_all_that_came_before(void **state)
{
	enum { WRITES = 20 };
	struct weir_volume *volume = volume_with(3, 2, BYTES);
	char *bytes = calloc(1, MIB);
	struct flush_watch watch = { { 0 } };

	(void)state;
	for (int i = 0; i < WRITES; i++)
		assert_int_equal(weir_volume_write_async(volume, (uint64_t)i * 100, bytes, MIB,
							 tally_done, &watch.writes),
				 0);
	assert_int_equal(weir_volume_flush_async(volume, flush_done, &watch), 0);
	tally_wait(&watch.flush, 1);
	assert_int_equal(watch.writes_before, WRITES);
	assert_int_equal(weir_volume_flush(volume), 0);
	free(bytes);
	weir_volume_close(volume);
}

struct write_chain {
	struct weir_volume *volume;
	struct completion_tally tally;
	uint64_t block;
	char bytes[PAGE];
};

/* Each write of the chain is submitted by the callback of the write before. */
static void write_next(void *arg, int status)
{
	enum { BLOCKS = 2000 };
	struct write_chain *chain = arg;

	if (status || chain->block == BLOCKS) {
		tally_done(&chain->tally, status);
		return;
	}
	chain->bytes[0] = (char)chain->block;
	assert_int_equal(weir_volume_write_async(chain->volume, chain->block++ * PAGE % (4 * MIB),
						 chain->bytes, PAGE, write_next, chain),
			 0);
}

static void a_callback_may_submit(void **state)
{
	struct write_chain *chain = calloc(1, sizeof(*chain));

	(void)state;
	chain->volume = volume_with(2, 2, BYTES);
	write_next(chain, 0);
	tally_wait(&chain->tally, 1);
	assert_int_equal(chain->tally.status, 0);
	weir_volume_close(chain->volume);
	free(chain);
}

/* Each callback submits again until the chain is stopped: the first submitter must return. */
struct endless_chain {
	struct weir_volume *volume;
	struct completion_tally tally;
	bool stop;
	char bytes[PAGE];
};

static void read_again(void *arg, int status)
{
	struct endless_chain *chain = arg;

	if (status || __atomic_load_n(&chain->stop, __ATOMIC_SEQ_CST))
		tally_done(&chain->tally, status);
	else
		assert_int_equal(weir_volume_read_async(chain->volume, 0, chain->bytes, PAGE,
							read_again, chain),
				 0);
}

static void a_submitter_is_not_kept_for_ever(void **state)
{
	struct endless_chain *chains = calloc(8, sizeof(*chains));
	struct weir_volume *volume = volume_with(3, 2, BYTES);

	(void)state;
	assert_int_equal(weir_volume_write(volume, 0, chains[0].bytes, PAGE), 0);
	for (int i = 0; i < 8; i++) {
		chains[i].volume = volume;
		read_again(&chains[i], 0);
	}
	for (int i = 0; i < 8; i++) {
		__atomic_store_n(&chains[i].stop, true, __ATOMIC_SEQ_CST);
		tally_wait(&chains[i].tally, 1);
		assert_int_equal(chains[i].tally.status, 0);
	}
	weir_volume_close(volume);
	free(chains);
}

static void bytes_outside_are_refused(void **state)
{
	struct weir_volume *volume = volume_with(1, 1, BYTES);
	char byte = 0;

	(void)state;
	assert_int_equal(weir_volume_read(volume, BYTES, &byte, 1), -EINVAL);
	assert_int_equal(weir_volume_write(volume, BYTES - 1, &byte, 2), -EINVAL);
	assert_int_equal(weir_volume_read(volume, UINT64_MAX, &byte, 1), -EINVAL);
	assert_int_equal(weir_volume_read(volume, 0, &byte, 0), -EINVAL);
	assert_int_equal(weir_volume_write(volume, BYTES - 1, &byte, 1), 0);
	weir_volume_close(volume);
}

static void refuse(struct weir_volume_options options, int status, const char *word)
{
	struct weir_volume *volume;
	struct weir_error error = { "" };

	options.size = sizeof(options);
	options.key = fixture_key();
	assert_int_equal(weir_volume_open(&options, &volume, &error), status);
	if (!strstr(error.text, word))
		fail_msg("'%s' does not say '%s'", error.text, word);
}

static void bad_options_are_refused_with_words(void **state)
{
	const char *const two[] = { donors[0].address, donors[1].address };
	const char *const twice[] = { donors[0].address, donors[0].address };
	const char *const nobody[] = { "127.0.0.1:1" };

	(void)state;
	refuse((struct weir_volume_options){ .bytes = MIB }, -EINVAL, "donors");
	refuse((struct weir_volume_options){ .donors = two, .nr_donors = 2 }, -EINVAL, "bytes");
	refuse((struct weir_volume_options){ .donors = twice, .nr_donors = 2, .bytes = MIB },
	       -EINVAL, "twice");
	refuse(
		(struct weir_volume_options){
			.donors = two, .nr_donors = 2, .bytes = MIB, .copies = 3 },
		-EINVAL, "copies");
	refuse(
		(struct weir_volume_options){
			.donors = two, .nr_donors = 2, .bytes = 1ull << 40, .copies = 2 },
		-ENOSPC, "too little");
	refuse(
		(struct weir_volume_options){
			.donors = two, .nr_donors = 2, .bytes = MIB, .encryption = 9 },
		-EINVAL, "encryption");
	refuse((struct weir_volume_options){ .donors = nobody, .nr_donors = 1, .bytes = MIB },
	       -ECONNREFUSED, "127.0.0.1:1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_sessions_are_tuned),
		cmocka_unit_test(it_begins_as_zeroes_and_has_all_copies),
		cmocka_unit_test(every_byte_is_as_written),
		cmocka_unit_test(requests_that_overlap_keep_their_order),
		cmocka_unit_test(blocking_calls_do_the_same),
		cmocka_unit_test(a_flush_ends_after_all_that_came_before),
		cmocka_unit_test(a_callback_may_submit),
		cmocka_unit_test(a_submitter_is_not_kept_for_ever),
		cmocka_unit_test(bytes_outside_are_refused),
		cmocka_unit_test(bad_options_are_refused_with_words),
	};

	return cmocka_run_group_tests(tests, start_donors, stop_donors);
}
