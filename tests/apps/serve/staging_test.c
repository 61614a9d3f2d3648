/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: serve staging; suites: serve */
/* A client that writes its staging area while bytes move: the volume never sees that. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "apps/serve/files/staging.h"

#define PLACE 5000u
#define LENGTH 9000u

/* The request that the volume has. */
static struct {
	void *to;
	const void *from;
	size_t length;
	weir_done_fn *done;
	void *arg;
} asked;

int __wrap_weir_volume_read_async(struct weir_volume *volume, uint64_t offset, void *buf,
				  size_t length, weir_done_fn *done, void *arg);
int __wrap_weir_volume_write_async(struct weir_volume *volume, uint64_t offset, const void *buf,
				   size_t length, weir_done_fn *done, void *arg);

int __wrap_weir_volume_read_async(struct weir_volume *volume, uint64_t offset, void *buf,
				  size_t length, weir_done_fn *done, void *arg)
{
	(void)volume;
	assert_int_equal(offset, 1 << 20);
	asked.to = buf;
	asked.length = length;
	asked.done = done;
	asked.arg = arg;
	return 0;
}

int __wrap_weir_volume_write_async(struct weir_volume *volume, uint64_t offset, const void *buf,
				   size_t length, weir_done_fn *done, void *arg)
{
	(void)volume;
	assert_int_equal(offset, 1 << 20);
	asked.from = buf;
	asked.length = length;
	asked.done = done;
	asked.arg = arg;
	return 0;
}

static struct staging staging;
static struct staging_conn conn;
static struct fsd_data piece;
static int status;

static int setup(void **state)
{
	(void)state;
	staging_init(&staging);
	conn = (struct staging_conn){ .staging = &staging, .memory = calloc(1, STAGING_BYTES) };
	assert_non_null(conn.memory);
	piece = (struct fsd_data){ .volume = 1 << 20, .place = PLACE, .length = LENGTH };
	status = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(conn.memory);
	staging_fini(&staging);
	return 0;
}

static bool is_all(const uint8_t *bytes, uint8_t value, size_t length)
{
	return bytes[0] == value && !memcmp(bytes, bytes + 1, length - 1);
}

static void a_write_has_the_bytes_of_its_start(void **state)
{
	const uint8_t *bytes;

	(void)state;
	piece.kind = FSD_DATA_WRITE;
	piece.before = 10;
	piece.after = 20;
	memset(conn.memory, 'a', STAGING_BYTES);
	staging_start(&staging, &conn, &piece, &status);
	memset(conn.memory, 'b', STAGING_BYTES);
	assert_int_equal(asked.length, LENGTH);
	bytes = asked.from;
	assert_true(is_all(bytes, 0, 10));
	assert_true(is_all(bytes + 10, 'a', LENGTH - 30));
	assert_true(is_all(bytes + LENGTH - 20, 0, 20));
	asked.done(asked.arg, 0);
	assert_int_equal(staging_settle(&staging), 0);
	assert_int_equal(status, 0);
	assert_true(is_all(conn.memory, 'b', STAGING_BYTES));
}

static void a_read_reaches_the_area_when_it_is_done(void **state)
{
	(void)state;
	piece.kind = FSD_DATA_READ;
	staging_start(&staging, &conn, &piece, &status);
	memset(asked.to, 'c', asked.length);
	memset(conn.memory, 'b', STAGING_BYTES);
	assert_true(is_all(asked.to, 'c', LENGTH));
	asked.done(asked.arg, 0);
	assert_int_equal(staging_settle(&staging), 0);
	assert_true(is_all(conn.memory + PLACE, 'c', LENGTH));
	assert_true(is_all(conn.memory, 'b', PLACE));
	assert_int_equal(conn.memory[PLACE + LENGTH], 'b');
}

static void a_read_that_fails_changes_no_byte_of_the_area(void **state)
{
	(void)state;
	piece.kind = FSD_DATA_READ;
	staging_start(&staging, &conn, &piece, &status);
	memset(asked.to, 'c', asked.length);
	asked.done(asked.arg, -EIO);
	assert_int_equal(staging_settle(&staging), 0);
	assert_int_equal(status, -EIO);
	assert_true(is_all(conn.memory, 0, STAGING_BYTES));
}

static void a_piece_beyond_the_area_moves_nothing(void **state)
{
	(void)state;
	asked.done = NULL;
	piece.kind = FSD_DATA_WRITE;
	piece.place = STAGING_BYTES - LENGTH + 1;
	staging_start(&staging, &conn, &piece, &status);
	assert_int_equal(status, -EINVAL);
	piece.place = UINT64_MAX;
	staging_start(&staging, &conn, &piece, &status);
	assert_null(asked.done);
	assert_int_equal(staging_settle(&staging), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_write_has_the_bytes_of_its_start),
		TEST(a_read_reaches_the_area_when_it_is_done),
		TEST(a_read_that_fails_changes_no_byte_of_the_area),
		TEST(a_piece_beyond_the_area_moves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
