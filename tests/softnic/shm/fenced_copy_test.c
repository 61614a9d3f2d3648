// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic fenced copy; devices: softnic; timeout: 120 */
/*
 * A process is stopped in the middle of copies, at random. Once it is cut off, and woken, it stores
 * nothing more.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/rng.h"
#include "softnic/shm/fenced_copy.h"
#include "softnic/shm/shared.h"

#define STOPS 400
#define LATE 0xee

/* Shared with the copier. @refused: calls that were cut off. */
struct copy_board {
	uint32_t cut, refused;
	uint64_t copies;
	uint8_t to[FENCED_BYTES_MAX];
};

static bool is_filled(const uint8_t *bytes, uint8_t value, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] != value)
			return false;
	}
	return true;
}

static void each_length_and_place_is_copied(void **in)
{
	static uint8_t from[700], to[700];
	const uint32_t never = 0;

	(void)in;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i % 251 + 1);
	for (size_t n = 1; n <= 600; n++) {
		for (size_t at = 0; at < 16; at++) {
			memset(to, 0, sizeof(to));
			assert_true(fenced_copy(to + at, from + n % 7, n, &never));
			assert_memory_equal(to + at, from + n % 7, n);
			assert_true(is_filled(to, 0, at));
			assert_true(is_filled(to + at + n, 0, sizeof(to) - at - n));
		}
	}
}

static void a_copy_that_is_cut_off_stores_nothing(void **in)
{
	static uint8_t from[64], to[64];
	const uint32_t cut = 1;

	(void)in;
	memset(from, 1, sizeof(from));
	for (size_t n = 1; n <= sizeof(from); n++) {
		assert_false(fenced_copy(to, from, n, &cut));
		assert_true(is_filled(to, 0, sizeof(to)));
	}
}

static void copy_for_ever(struct copy_board *board)
{
	static uint8_t from[FENCED_BYTES_MAX];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		uint64_t copies = load_relaxed(&board->copies);
		/* Long ones most of all, since those are stopped in the middle. */
		size_t n = copies % 4 ? sizeof(from) : 1 + copies % sizeof(from);

		if (fenced_copy(board->to, from, n, &board->cut))
			store_relaxed(&board->copies, copies + 1);
		else
			add_ordered(&board->refused, 1);
	}
}

/* How often the copier left its CPU by itself: it makes no system calls, so by stopping. */
static unsigned long switches_of(pid_t copier)
{
	char path[64], line[256];
	unsigned long switches = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", copier);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "voluntary_ctxt_switches: %lu", &switches);
	fclose(file);
	return switches;
}

/* The kernel tells us of the stop shortly before the copier leaves its CPU. */
static void stop(pid_t copier)
{
	unsigned long before = switches_of(copier);
	int status;

	kill(copier, SIGSTOP);
	assert_int_equal(waitpid(copier, &status, WUNTRACED), copier);
	assert_true(WIFSTOPPED(status));
	while (switches_of(copier) == before)
		usleep(50);
}

/* The copier is stopped, cut off, and woken; its memory has another use meanwhile. */
static void stop_once(struct copy_board *board, pid_t copier, uint64_t *rng)
{
	uint64_t copies = load_relaxed(&board->copies);
	uint32_t refused;

	while (load_relaxed(&board->copies) == copies)
		usleep(50);
	usleep((useconds_t)weir_rng_scale(weir_rng_next(rng), 200));
	stop(copier);
	store_ordered(&board->cut, 1);
	memset(board->to, LATE, sizeof(board->to));
	refused = load_ordered(&board->refused);
	kill(copier, SIGCONT);
	while (load_ordered(&board->refused) < refused + 2)
		usleep(50);
	assert_true(is_filled(board->to, LATE, sizeof(board->to)));
	store_ordered(&board->cut, 0);
}

static void a_process_that_was_stopped_stores_nothing_later(void **in)
{
	struct copy_board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t rng = 1;
	pid_t copier;

	(void)in;
	assert_ptr_not_equal(board, MAP_FAILED);
	copier = fork();
	if (!copier)
		copy_for_ever(board);
	assert_true(copier > 0);
	for (int i = 0; i < STOPS; i++)
		stop_once(board, copier, &rng);
	kill(copier, SIGKILL);
	assert_int_equal(waitpid(copier, NULL, 0), copier);
	munmap(board, sizeof(*board));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_length_and_place_is_copied),
		cmocka_unit_test(a_copy_that_is_cut_off_stores_nothing),
		cmocka_unit_test(a_process_that_was_stopped_stores_nothing_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
