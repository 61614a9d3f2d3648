/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib volume failure; devices: softnic; timeout: 240 */
/*
 * Donors that are killed, stopped or come back while a volume is used. As long as a copy is left,
 * no request fails and no byte differs.
 */
#include <errno.h>
#include <isa-l/crc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/client/memory/region.h"
#include "lib/volume/target.h"
#include "lib/volume/volume.h"
#include "tests/lib/volume/byte_model.h"
#include "tests/support/stop_process.h"
#include "tests/support/test_device.h"

#define BYTES (8ull * MIB + 777)

static void submit_some(struct byte_model *m, int count)
{
	for (int i = 0; i < count; i++)
		model_submit(m);
}

static void kill_donor(struct byte_model *m, unsigned int donor)
{
	donor_process_kill(&m->donors[donor]);
	m->donors[donor].pid = 0;
}

static bool is_noticed(struct byte_model *m, unsigned int donor)
{
	bool is_down;

	weir_volume_lock(m->volume);
	is_down = m->volume->core.donor[donor].state == WEIR_EXTENTS_DONOR_DOWN;
	weir_volume_unlock(m->volume);
	return is_down;
}

/* Until the volume has noticed, its extents still seem whole. */
static void kill_and_wait(struct byte_model *m, unsigned int donor)
{
	uint64_t until_ns = now_ns() + 60 * SECOND_NS;

	kill_donor(m, donor);
	while (!is_noticed(m, donor)) {
		model_submit(m);
		assert_true(now_ns() < until_ns);
	}
}

/* Submits until the volume has noticed that a donor is gone. */
static void submit_until_lean(struct byte_model *m)
{
	uint64_t until_ns = now_ns() + 60 * SECOND_NS;

	while (model_info(m).whole == model_info(m).extents) {
		model_submit(m);
		assert_true(now_ns() < until_ns);
	}
}

static void a_killed_donor_is_a_pause_and_its_copies_are_made_elsewhere(void **state)
{
	struct byte_model m;

	(void)state;
	model_open(&m, 3, 2, BYTES, 1);
	submit_some(&m, 300);
	kill_and_wait(&m, 1);
	submit_some(&m, 300);
	model_wait_whole(&m);
	model_check(&m);
	assert_int_equal(model_info(&m).donors_up, 2);
	kill_donor(&m, 0); /* the copies made meanwhile are all that is left of some extents */
	submit_some(&m, 300);
	model_check(&m);
	model_close(&m);
}

/* Writes go on while the copy runs: none may be missing in the new copy. */
static void a_donor_that_returns_is_filled_and_serves(void **state)
{
	struct byte_model m;

	(void)state;
	model_open(&m, 2, 2, BYTES, 2);
	submit_some(&m, 200);
	for (unsigned int round = 0; round < 4; round++) {
		kill_donor(&m, round % 2);
		submit_until_lean(&m);
		donor_process_restart(&m.donors[round % 2], MODEL_MEMORY, NULL);
		while (model_info(&m).whole < model_info(&m).extents)
			model_submit(&m);
		model_check(&m);
	}
	assert_true(model_info(&m).copied_bytes >= 4 * (BYTES / 2));
	assert_int_equal(model_info(&m).sessions, 2 + 4);
	model_close(&m);
}

static void a_stopped_donor_delays_no_request_for_ever(void **state)
{
	struct byte_model m;

	(void)state;
	if (over_wire())
		skip(); /* there a stopped donor answers nothing, and both copies would be lost */
	model_open(&m, 3, 2, BYTES, 3);
	submit_some(&m, 100);
	stop_process(m.donors[2].pid);
	submit_some(&m, 300);
	model_check(&m);
	kill_donor(&m, 0);
	submit_some(&m, 100);
	model_check(&m);
	kill(m.donors[2].pid, SIGCONT);
	submit_some(&m, 100);
	model_check(&m);
	model_wait_whole(&m);
	model_check(&m);
	model_close(&m);
}

/* Exchanges a key of the first copy of extent 0, if it is valid and has the key @from. */
static void change_key(struct byte_model *m, uint32_t from, uint32_t to)
{
	struct weir_volume *v = m->volume;

	weir_volume_lock(v);
	if (v->extents[0].replica[0].state == WEIR_REPLICA_VALID &&
	    (*weir_volume_region(v, 0, 0))->rkey == from)
		(*weir_volume_region(v, 0, 0))->rkey = to;
	weir_volume_unlock(v);
}

/* Its donor lives, and refuses the write. */
static void a_copy_that_missed_a_write_is_never_read_again(void **state)
{
	struct byte_model m;
	uint32_t key;

	(void)state;
	model_open(&m, 3, 2, MIB, 7);
	memset(m.bytes, 3, MIB);
	assert_int_equal(weir_volume_write(m.volume, 0, m.bytes, MIB), 0);
	key = (*weir_volume_region(m.volume, 0, 0))->rkey;
	change_key(&m, key, key ^ 1);
	memset(m.bytes + 100, 4, 10000);
	assert_int_equal(weir_volume_write(m.volume, 100, m.bytes + 100, 10000), 0);
	change_key(&m, key ^ 1, key); /* a copy that were still valid could be read */
	model_check(&m);
	while (model_info(&m).donors_up < 3) /* the refusal broke a channel */
		poll(NULL, 0, 2);
	model_wait_whole(&m);
	model_check(&m);
	assert_int_equal(model_info(&m).missed_writes, 1);
	assert_int_equal(model_info(&m).mismatches, 0);
	model_close(&m);
}

/* Changes the memory of one copy of each extent behind the volume's back. */
static void spoil_copies(struct byte_model *m)
{
	char noise[64];

	memset(noise, 0x55, sizeof(noise));
	for (uint32_t i = 0; i < m->volume->core.nr_extents; i++)
		assert_int_equal(weir_write(*weir_volume_region(m->volume, i, 0), 5000, noise,
					    sizeof(noise)),
				 0);
}

static void a_wrong_page_is_read_elsewhere_and_its_copy_replaced(void **state)
{
	struct weir_volume_info info;
	struct byte_model m;

	(void)state;
	model_open(&m, 3, 2, BYTES, 4);
	memset(m.bytes, 3, BYTES);
	assert_int_equal(weir_volume_write(m.volume, 0, m.bytes, BYTES), 0);
	spoil_copies(&m);
	model_check(&m);
	info = model_info(&m);
	assert_true(info.mismatches > 0);
	assert_int_equal(info.failovers, info.mismatches);
	model_wait_whole(&m);
	model_check(&m);
	assert_int_equal(model_info(&m).mismatches, info.mismatches);
	model_close(&m);
}

/* A wrong page has no other copy: an error, and never the wrong bytes. */
static void the_only_copy_is_wrong_until_it_is_written_again(void **state)
{
	struct byte_model m;
	char page[4096];

	(void)state;
	model_open(&m, 1, 1, MIB, 5);
	memset(m.bytes, 3, MIB);
	assert_int_equal(weir_volume_write(m.volume, 0, m.bytes, MIB), 0);
	spoil_copies(&m);
	assert_int_equal(weir_volume_read(m.volume, 4096, page, sizeof(page)), -EIO);
	assert_int_equal(weir_volume_write(m.volume, 5000, page, 10), -EIO);
	assert_int_equal(weir_volume_write(m.volume, 4096, m.bytes, sizeof(page)), 0);
	model_check(&m);
	model_close(&m);
}

/* Reads and writes a copy as a forger with the memory of the donor can. */
static void read_stored(struct byte_model *m, uint32_t page, uint8_t *bytes)
{
	assert_int_equal(weir_read(*weir_volume_region(m->volume, 0, 0),
				   (uint64_t)page * WEIR_VOLUME_PAGE_BYTES, bytes,
				   WEIR_VOLUME_PAGE_BYTES),
			 0);
}

static void write_stored(struct byte_model *m, uint32_t page, const uint8_t *bytes)
{
	assert_int_equal(weir_write(*weir_volume_region(m->volume, 0, 0),
				    (uint64_t)page * WEIR_VOLUME_PAGE_BYTES, bytes,
				    WEIR_VOLUME_PAGE_BYTES),
			 0);
}

/* Expects an error for the page with @forged, and no error with the right bytes. */
static void expect_noticed(struct byte_model *m, uint32_t page, const uint8_t *forged)
{
	uint64_t mismatches = model_info(m).mismatches;
	uint8_t right[WEIR_VOLUME_PAGE_BYTES], got[WEIR_VOLUME_PAGE_BYTES];

	read_stored(m, page, right);
	assert_memory_not_equal(right, forged, sizeof(right));
	write_stored(m, page, forged);
	assert_int_equal(weir_volume_read(m->volume, page * sizeof(got), got, sizeof(got)), -EIO);
	assert_true(model_info(m).mismatches > mismatches);
	write_stored(m, page, right);
	assert_int_equal(weir_volume_read(m->volume, page * sizeof(got), got, sizeof(got)), 0);
	assert_memory_equal(got, right, sizeof(got));
}

static void write_both_pages(struct byte_model *m, int first, int second)
{
	memset(m->bytes, first, WEIR_VOLUME_PAGE_BYTES);
	memset(m->bytes + WEIR_VOLUME_PAGE_BYTES, second, WEIR_VOLUME_PAGE_BYTES);
	assert_int_equal(weir_volume_write(m->volume, 0, m->bytes, 2 * WEIR_VOLUME_PAGE_BYTES), 0);
}

/* The change is a multiple of CRC32C's polynomial, so the CRC stays the same. */
static void keep_crc(uint8_t *page, uint32_t at)
{
	static const uint8_t polynomial[] = { 0xf1, 0x76, 0xec, 0x05, 0x01 };
	uint32_t before = crc32_iscsi(page, WEIR_VOLUME_PAGE_BYTES, ~0u);

	for (uint32_t i = 0; i < sizeof(polynomial); i++)
		page[at + i] ^= polynomial[i];
	assert_int_equal(crc32_iscsi(page, WEIR_VOLUME_PAGE_BYTES, ~0u), before);
}

static void a_forged_page_is_noticed(void **state)
{
	uint8_t old[WEIR_VOLUME_PAGE_BYTES], other[WEIR_VOLUME_PAGE_BYTES];
	struct byte_model m;

	(void)state;
	model_open(&m, 1, 1, MIB, 8);
	write_both_pages(&m, 3, 4);
	read_stored(&m, 0, old);
	write_both_pages(&m, 5, 6);
	read_stored(&m, 1, other);
	expect_noticed(&m, 0, old);
	expect_noticed(&m, 0, other);
	for (uint32_t at = 0; at < 600; at++) {
		read_stored(&m, 0, old);
		keep_crc(old, 6 * at);
		expect_noticed(&m, 0, old);
	}
	model_check(&m);
	model_close(&m);
}

static void without_any_copy_data_are_lost_and_said_to_be(void **state)
{
	struct byte_model m;
	char byte;

	(void)state;
	model_open(&m, 2, 2, MIB, 6);
	memset(m.bytes, 3, MIB);
	assert_int_equal(weir_volume_write(m.volume, 0, m.bytes, MIB / 2), 0);
	kill_donor(&m, 0);
	kill_donor(&m, 1);
	assert_true(weir_volume_read(m.volume, 0, &byte, 1) < 0);
	while (!model_info(&m).lost)
		poll(NULL, 0, 2);
	assert_int_equal(weir_volume_read(m.volume, 0, &byte, 1), -EIO);
	assert_int_equal(weir_volume_write(m.volume, 0, m.bytes, 4096), -EIO);
	assert_int_equal(weir_volume_read(m.volume, MIB - 1, &byte, 1), 0); /* never written */
	donor_process_restart(&m.donors[0], MODEL_MEMORY, NULL);
	donor_process_restart(&m.donors[1], MODEL_MEMORY, NULL);
	assert_int_equal(weir_volume_read(m.volume, 0, &byte, 1), -EIO);
	memset(m.bytes, 0, MIB);
	assert_int_equal(weir_volume_discard(m.volume, 0, MIB), 0);
	while (weir_volume_write(m.volume, 0, m.bytes, 4096))
		poll(NULL, 0, 10);
	model_wait_whole(&m);
	model_check(&m);
	model_close(&m);
}

static bool has_all_copies(struct byte_model *m)
{
	struct weir_volume_info info = model_info(m);

	return !info.lean && !info.lost;
}

/* One misfortune after the other; each leaves a copy of everything. */
static void meet_misfortune(struct byte_model *m)
{
	unsigned int donor = model_below(m, m->nr_donors);
	struct donor_process *process = &m->donors[donor];

	if (!process->pid) {
		donor_process_restart(process, MODEL_MEMORY, NULL);
	} else if (model_below(m, 2)) {
		stop_process(process->pid);
		submit_some(m, 50);
		kill(process->pid, SIGCONT);
	} else if (has_all_copies(m)) {
		kill_and_wait(m, donor);
	}
}

static void any_misfortunes_leave_every_byte(void **state)
{
	const char *seeds = getenv("WEIR_VOLUME_SEEDS"); /* more, by hand */

	(void)state;
	for (int seed = 100; seed < 100 + (seeds ? atoi(seeds) : 2); seed++) {
		struct byte_model m;

		model_open(&m, 4, 2 + (seed & 1), BYTES, (uint64_t)seed);
		for (int i = 0; i < 12; i++) {
			submit_some(&m, 40);
			meet_misfortune(&m);
		}
		model_check(&m);
		for (unsigned int i = 0; i < m.nr_donors; i++) {
			if (!m.donors[i].pid)
				donor_process_restart(&m.donors[i], MODEL_MEMORY, NULL);
		}
		model_wait_whole(&m);
		model_check(&m);
		assert_int_equal(model_info(&m).lost + model_info(&m).mismatches, 0);
		model_close(&m);
	}
}

/* A key in a file of its own, whose name goes to @argument behind "key=". */
static struct weir_key *make_key(const char *text, char *argument, size_t size)
{
	struct weir_key *key;
	char *path;
	int fd;

	snprintf(argument, size, "key=/tmp/weir-key-XXXXXX");
	path = argument + strlen("key=");
	fd = mkstemp(path);
	assert_true(write(fd, text, strlen(text)) > 0);
	close(fd);
	assert_int_equal(weir_key_load(path, &key, NULL), 0);
	return key;
}

/* Until @status is that of the last try to connect @donor, and there were as many @sessions. */
static void wait_connected(struct weir_volume *v, unsigned int donor, int status,
			   uint64_t sessions)
{
	uint64_t until_ns = now_ns() + 60 * SECOND_NS;
	bool is_so = false;

	while (!is_so) {
		weir_volume_lock(v);
		is_so = v->targets[donor].connect_status == status && v->sessions == sessions;
		weir_volume_unlock(v);
		assert_true(now_ns() < until_ns);
		poll(NULL, 0, 5);
	}
}

/*
 * While a key is being replaced. A thief of the old key can refuse the new key at a donor's
 * address, and then prove the old key.
 */
static void the_old_key_does_for_donors_that_have_never_proven_the_new_one(void **state)
{
	char new_argument[64], old_argument[64];
	struct weir_key *new_key = make_key("the new key of the donors", new_argument, 64);
	struct weir_key *old_key = make_key("the old key of the donors", old_argument, 64);
	struct donor_process donors[2];
	const char *addresses[2] = { donors[0].address, donors[1].address };
	struct weir_volume_options options = {
		.size = sizeof(options),
		.donors = addresses,
		.nr_donors = 2,
		.bytes = MIB,
		.copies = 2,
		.key = new_key,
		.old_key = old_key,
		.device = "softnic0",
	};
	struct weir_error error = { "" };
	uint64_t sessions = 2;
	struct weir_volume *v;

	(void)state;
	donor_process_start(&donors[0], MODEL_MEMORY, new_argument, NULL);
	donor_process_start(&donors[1], MODEL_MEMORY, old_argument, NULL);
	if (weir_volume_open(&options, &v, &error))
		fail_msg("%s", error.text);
	assert_int_equal(weir_volume_count_old_keys(v), 1);
	for (unsigned int donor = 0; donor < 2; donor++) {
		donor_process_kill(&donors[donor]);
		donor_process_restart(&donors[donor], MODEL_MEMORY, new_argument, NULL);
		wait_connected(v, donor, 0, ++sessions);
		donor_process_kill(&donors[donor]);
		donor_process_restart(&donors[donor], MODEL_MEMORY, old_argument, NULL);
		wait_connected(v, donor, -EKEYREJECTED, sessions);
		donor_process_kill(&donors[donor]);
		donor_process_restart(&donors[donor], MODEL_MEMORY, new_argument, NULL);
		wait_connected(v, donor, 0, ++sessions);
	}
	assert_int_equal(weir_volume_count_old_keys(v), 0);
	weir_volume_close(v);
	for (unsigned int donor = 0; donor < 2; donor++)
		donor_process_stop(&donors[donor]);
	unlink(new_argument + strlen("key="));
	unlink(old_argument + strlen("key="));
	weir_key_free(new_key);
	weir_key_free(old_key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_donor_is_a_pause_and_its_copies_are_made_elsewhere),
		cmocka_unit_test(a_donor_that_returns_is_filled_and_serves),
		cmocka_unit_test(a_stopped_donor_delays_no_request_for_ever),
		cmocka_unit_test(a_copy_that_missed_a_write_is_never_read_again),
		cmocka_unit_test(a_wrong_page_is_read_elsewhere_and_its_copy_replaced),
		cmocka_unit_test(the_only_copy_is_wrong_until_it_is_written_again),
		cmocka_unit_test(a_forged_page_is_noticed),
		cmocka_unit_test(without_any_copy_data_are_lost_and_said_to_be),
		cmocka_unit_test(the_old_key_does_for_donors_that_have_never_proven_the_new_one),
		cmocka_unit_test(any_misfortunes_leave_every_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
