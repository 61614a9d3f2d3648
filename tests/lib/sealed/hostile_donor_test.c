/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib sealed hostile donor; devices: softnic; timeout: 180 */
/*
 * A donor reads and changes stored data, and a client dies in the middle of a write. A read
 * returns only bytes of a write, and none older than earlier reads returned.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/sealed/sealed_fixture.h"

static const char secret[] = "attack at dawn, by the old mill";

static bool contains(const uint8_t *bytes, size_t length, const void *what, size_t what_length)
{
	return memmem(bytes, length, what, what_length);
}

static void the_donor_sees_no_plaintext(void **state)
{
	const size_t bytes = FIXTURE_BLOCKS * WEIR_SEALED_SLOT;
	uint8_t *stored = malloc(bytes);
	uint8_t text[WEIR_SEALED_BLOCK] = { 0 };
	struct sealed_fixture f;

	(void)state;
	sealed_fixture_open(&f, "plaintext");
	for (size_t at = 0; at + sizeof(secret) <= sizeof(text); at += sizeof(secret))
		memcpy(text + at, secret, sizeof(secret));
	for (uint64_t block = 0; block < 40; block++)
		assert_int_equal(weir_sealed_write(f.sealed, block * sizeof(text), text,
						   sizeof(text), NULL),
				 0);
	assert_int_equal(weir_sealed_write(f.sealed, 50 * sizeof(text) + 99, secret, sizeof(secret),
					   NULL),
			 0);
	assert_int_equal(weir_read(f.bare, 0, stored, bytes), 0);
	for (size_t at = 0; at + 8 <= sizeof(secret); at++)
		assert_false(contains(stored, bytes, secret + at, 8));
	for (uint64_t block = 1; block < 40; block++) /* equal blocks do not look equal */
		assert_memory_not_equal(stored, stored + block * WEIR_SEALED_SLOT, 64);
	sealed_fixture_close(&f, "plaintext");
	free(stored);
}

static void altered_slots_are_refused(void **state)
{
	struct weir_sealed_info info;
	struct weir_slot slot, other;
	struct sealed_fixture f;

	(void)state;
	sealed_fixture_open(&f, "altered");
	for (uint64_t block = 0; block < 4; block++)
		assert_int_equal(block_write(f.sealed, block, (uint8_t)block), 0);
	slot = slot_of(&f, 1);
	for (size_t at = 5; at < sizeof(slot); at += at < WEIR_SEALED_BLOCK ? 1021 : 7) {
		((uint8_t *)&slot)[at] ^= 0x10;
		slot_put(&f, 1, &slot);
		block_refused(f.sealed, 1, -EBADMSG);
		((uint8_t *)&slot)[at] ^= 0x10;
	}
	slot_put(&f, 1, &slot);
	block_expect(f.sealed, 1, 1);
	other = slot_of(&f, 2); /* two slots change places */
	slot_put(&f, 1, &other);
	slot_put(&f, 2, &slot);
	block_refused(f.sealed, 1, -EBADMSG);
	block_refused(f.sealed, 2, -EBADMSG);
	block_expect(f.sealed, 3, 3); /* the others are as good as before */
	assert_int_equal(weir_sealed_info(f.sealed, &info, sizeof(info)), 0);
	assert_true(info.altered > 2);
	assert_int_equal(info.rolled_back, 0);
	sealed_fixture_close(&f, "altered");
}

static void a_slot_of_other_data_is_refused(void **state)
{
	struct sealed_fixture f, other;
	struct weir_slot slot;

	(void)state;
	sealed_fixture_open(&f, "here");
	sealed_fixture_open(&other, "there");
	assert_int_equal(block_write(other.sealed, 6, 6), 0);
	slot = slot_of(&other, 6);
	slot_put(&f, 6, &slot);
	block_refused(f.sealed, 6, -EBADMSG);
	sealed_fixture_close(&other, "there");
	sealed_fixture_close(&f, "here");
}

/* Of an altered block no part can be written, but the whole block can. */
static void a_whole_write_heals(void **state)
{
	struct weir_error error = { "" };
	struct weir_slot slot;
	struct sealed_fixture f;

	(void)state;
	sealed_fixture_open(&f, "heals");
	memset(&slot, 0xa5, sizeof(slot));
	slot_put(&f, 7, &slot);
	assert_int_equal(weir_sealed_write(f.sealed, 7 * WEIR_SEALED_BLOCK + 1, "x", 1, &error),
			 -EBADMSG);
	assert_non_null(strstr(error.text, "block 7 "));
	assert_int_equal(block_write(f.sealed, 7, 9), 0);
	block_expect(f.sealed, 7, 9);
	sealed_fixture_close(&f, "heals");
}

static void old_slots_are_refused(void **state)
{
	const struct weir_slot zeroes = { 0 };
	struct weir_slot first, second;
	struct weir_sealed_info info;
	struct sealed_fixture f;

	(void)state;
	sealed_fixture_open(&f, "old");
	assert_int_equal(block_write(f.sealed, 2, 1), 0);
	first = slot_of(&f, 2);
	assert_int_equal(block_write(f.sealed, 2, 2), 0);
	second = slot_of(&f, 2);
	slot_put(&f, 2, &first);
	block_refused(f.sealed, 2, -ESTALE);
	assert_int_equal(weir_sealed_write(f.sealed, 2 * WEIR_SEALED_BLOCK, "x", 1, NULL), -ESTALE);
	slot_put(&f, 2, &zeroes);
	block_refused(f.sealed, 2, -ESTALE);
	slot_put(&f, 2, &second);
	block_expect(f.sealed, 2, 2);
	assert_int_equal(weir_sealed_info(f.sealed, &info, sizeof(info)), 0);
	assert_int_equal(info.rolled_back, 3);
	assert_int_equal(info.altered, 0);
	sealed_fixture_close(&f, "old");
}

/* A new opening trusts the first slot, and later no older slot. */
static void what_an_opening_has_read_it_remembers(void **state)
{
	struct weir_slot first, second;
	struct sealed_fixture f;

	(void)state;
	sealed_fixture_open(&f, "remembers");
	assert_int_equal(block_write(f.sealed, 0, 1), 0);
	first = slot_of(&f, 0);
	assert_int_equal(block_write(f.sealed, 0, 2), 0);
	second = slot_of(&f, 0);
	sealed_fixture_reopen(&f, "remembers");
	slot_put(&f, 0, &first);
	block_expect(f.sealed, 0, 1);
	slot_put(&f, 0, &second);
	block_expect(f.sealed, 0, 2);
	slot_put(&f, 0, &first);
	block_refused(f.sealed, 0, -ESTALE);
	/* a write also reads the old slot, to be newer */
	sealed_fixture_reopen(&f, "remembers");
	slot_put(&f, 0, &second);
	assert_int_equal(block_write(f.sealed, 0, 3), 0);
	slot_put(&f, 0, &second);
	block_refused(f.sealed, 0, -ESTALE);
	sealed_fixture_close(&f, "remembers");
}

static void an_imported_state_is_remembered(void **state)
{
	struct weir_slot first, second;
	struct sealed_fixture f;
	size_t length;
	uint8_t *kept;

	(void)state;
	sealed_fixture_open(&f, "state");
	assert_int_equal(block_write(f.sealed, 0, 1), 0);
	first = slot_of(&f, 0);
	assert_int_equal(block_write(f.sealed, 0, 2), 0);
	second = slot_of(&f, 0);
	length = weir_sealed_state_bytes(f.sealed);
	kept = malloc(length);
	weir_sealed_state_export(f.sealed, kept);
	sealed_fixture_reopen(&f, "state");
	assert_int_equal(weir_sealed_state_import(f.sealed, kept, length - 1), -EBADMSG);
	kept[length / 2] ^= 1;
	assert_int_equal(weir_sealed_state_import(f.sealed, kept, length), -EBADMSG);
	kept[length / 2] ^= 1;
	assert_int_equal(weir_sealed_state_import(f.sealed, kept, length), 0);
	slot_put(&f, 0, &first);
	block_refused(f.sealed, 0, -ESTALE);
	slot_put(&f, 0, &second);
	block_expect(f.sealed, 0, 2);
	sealed_fixture_close(&f, "state");
	free(kept);
}

#define DYING_BLOCKS 128u

/*
 * The writer is a process of this program. Each block of a round has the round's number in all of
 * its bytes. Says each round that is complete on its standard output.
 */
static int write_until_killed(const char *address)
{
	struct donor_process donor = { 0 };
	uint8_t *text = malloc(DYING_BLOCKS * WEIR_SEALED_BLOCK);
	struct weir_session *session;
	struct weir_region *region;
	struct weir_sealed *sealed;
	uint8_t round = 1;

	snprintf(donor.address, sizeof(donor.address), "%s", address);
	session = session_to(&donor, NULL);
	if (weir_region_open(session, "dying", 0, &region, NULL))
		return 1;
	sealed = sealed_of(region, "dying", WEIR_SEALED_DEFAULT);
	do {
		memset(text, round, DYING_BLOCKS * WEIR_SEALED_BLOCK);
		if (weir_sealed_write(sealed, 0, text, DYING_BLOCKS * WEIR_SEALED_BLOCK, NULL))
			return 1;
	} while (write(STDOUT_FILENO, &round, 1) == 1 && ++round);
	return 1;
}

static pid_t start_writer(int *rounds)
{
	int pipes[2];
	pid_t child;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		dup2(pipes[1], STDOUT_FILENO);
		execl("/proc/self/exe", "writer", group_donor.address, (char *)NULL);
		_exit(127);
	}
	close(pipes[1]);
	*rounds = pipes[0];
	return child;
}

/* Return: the last complete round. */
static uint8_t kill_in_a_write(pid_t child, int rounds, unsigned int delay_us)
{
	uint8_t round = 0;

	while (round < 3)
		assert_int_equal(read(rounds, &round, 1), 1); /* or the writer has failed */
	usleep(delay_us);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	while (read(rounds, &round, 1) == 1)
		;
	close(rounds);
	return round;
}

/* The last complete round, the next one, or the error of a torn block. */
static void expect_after_death(struct sealed_fixture *f, uint8_t round)
{
	uint8_t text[WEIR_SEALED_BLOCK];

	for (uint64_t block = 0; block < DYING_BLOCKS; block++) {
		int rc =
			weir_sealed_read(f->sealed, block * sizeof(text), text, sizeof(text), NULL);

		assert_true(!rc || rc == -EBADMSG);
		if (rc)
			continue;
		assert_true(text[0] == (uint8_t)round || text[0] == (uint8_t)(round + 1));
		for (size_t i = 1; i < sizeof(text); i++)
			assert_int_equal(text[i], text[0]);
	}
}

static void a_killed_writer_leaves_old_or_new_or_unreadable_blocks(void **state)
{
	struct sealed_fixture f;
	uint8_t round;
	pid_t child;
	int rounds;

	(void)state;
	for (int i = 0; i < fixture_rounds(5); i++) {
		sealed_fixture_open(&f, "dying");
		child = start_writer(&rounds);
		round = kill_in_a_write(child, rounds, 137 * (unsigned int)i);
		expect_after_death(&f, round);
		for (uint64_t block = 0; block < DYING_BLOCKS; block++)
			assert_int_equal(block_write(f.sealed, block, 200), 0);
		for (uint64_t block = 0; block < DYING_BLOCKS; block++)
			block_expect(f.sealed, block, 200);
		sealed_fixture_close(&f, "dying");
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_donor_sees_no_plaintext),
		cmocka_unit_test(altered_slots_are_refused),
		cmocka_unit_test(a_slot_of_other_data_is_refused),
		cmocka_unit_test(a_whole_write_heals),
		cmocka_unit_test(old_slots_are_refused),
		cmocka_unit_test(what_an_opening_has_read_it_remembers),
		cmocka_unit_test(an_imported_state_is_remembered),
		cmocka_unit_test(a_killed_writer_leaves_old_or_new_or_unreadable_blocks),
	};

	if (argc == 2 && !strcmp(argv[0], "writer"))
		return write_until_killed(argv[1]);
	return cmocka_run_group_tests(tests, group_donor_start, group_donor_stop);
}
