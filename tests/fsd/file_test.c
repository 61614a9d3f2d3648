/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Files: sizes, holes, space, and extents that other clients still hold. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "tests/fsd/host.h"

#define BLOCKS(n) ((uint64_t)(n)*FS_BLOCK)
#define CHUNK BLOCKS(64)
#define VOLUME BLOCKS(256)
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

static struct host host;
static struct fsd_peer a, b;

static int setup(void **state)
{
	(void)state;
	host_init(&host, VOLUME, CHUNK);
	peer_join(&a, &host);
	peer_join(&b, &host);
	if (!b.answer.times) { /* until now, a was alone */
		struct wire_fs_head shared = { .op = FS_SHARED };

		ask(&a, &shared, sizeof(shared), NULL, NULL, 0);
		a.nr_told = 0;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (a.client)
		peer_leave(&a);
	if (b.client)
		peer_leave(&b);
	host_fini(&host);
	return 0;
}

/* Creates a file that @a has open. */
static uint64_t new_file(const char *name)
{
	assert_int_equal(do_make(&a, FS_ROOT, name, S_IFREG | 0600, FS_MAKE_OPEN, NULL), 0);
	return attr(&a).ino;
}

static struct wire_fs_attr attr_of(uint64_t ino)
{
	assert_int_equal(do_getattr(&a, ino), 0);
	return attr(&a);
}

static struct wire_fs_map map_of(struct fsd_peer *p)
{
	struct wire_fs_map map;

	memcpy(&map, p->answer.bytes, sizeof(map));
	return map;
}

static struct wire_fs_extent extent_of(struct fsd_peer *p, unsigned int i)
{
	struct wire_fs_extent e;

	memcpy(&e, p->answer.bytes + sizeof(struct wire_fs_map) + i * sizeof(e), sizeof(e));
	return e;
}

static uint64_t free_blocks(void)
{
	struct wire_fs_head head = { .op = FS_STATFS };
	struct wire_fs_statfs statfs;

	assert_int_equal(ask(&a, &head, sizeof(head), NULL, NULL, 0), 0);
	memcpy(&statfs, a.answer.bytes, sizeof(statfs));
	assert_int_equal(statfs.blocks, VOLUME / FS_BLOCK);
	return statfs.free;
}

static bool all_zero(struct fsd_peer *p, uint64_t ino, uint64_t offset, size_t length)
{
	static uint8_t buffer[VOLUME];

	assert_int_equal(do_read(p, ino, offset, buffer, length), 0);
	for (size_t i = 0; i < length; i++) {
		if (buffer[i])
			return false;
	}
	return true;
}

static void written_data_is_read_back(void **state)
{
	uint64_t f = new_file("f");
	char text[12];

	(void)state;
	assert_int_equal(do_write(&a, f, 4090, "hello, weir", 12), 0);
	assert_int_equal(do_read(&a, f, 4090, text, 12), 0);
	assert_string_equal(text, "hello, weir");
	assert_int_equal(attr_of(f).size, 4102);
	assert_int_equal(attr_of(f).blocks, 16);
	assert_true(all_zero(&a, f, 0, 4090));
}

static void a_hole_takes_no_space(void **state)
{
	uint64_t f = new_file("f");

	(void)state;
	assert_int_equal(do_write(&a, f, BLOCKS(1000), "x", 1), 0);
	assert_int_equal(attr_of(f).blocks, 8);
	assert_int_equal(free_blocks(), 255);
	assert_int_equal(do_map(&a, f, 0, BLOCKS(1000)), 0);
	assert_int_equal(map_of(&a).extents, 0);
	assert_int_equal(map_of(&a).end, BLOCKS(1000));
}

static void a_growing_file_is_contiguous(void **state)
{
	uint64_t f = new_file("f"), g = new_file("g");

	(void)state;
	assert_int_equal(do_write(&a, g, 0, "x", 1), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(do_write(&a, f, BLOCKS(i), "x", 1), 0);
	assert_int_equal(do_map(&a, f, 0, UINT64_MAX), 0);
	assert_int_equal(map_of(&a).extents, 1);
	assert_int_equal(extent_of(&a, 0).length, BLOCKS(20));
}

static void files_that_grow_side_by_side_lie_in_few_pieces(void **state)
{
	static const unsigned int steps[] = { 8, 16, 64 };

	(void)state;
	for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		uint64_t f, g;

		teardown(NULL);
		host_init(&host, BLOCKS(2048), BLOCKS(2048));
		peer_join(&a, &host);
		f = new_file("f");
		g = new_file("g");
		for (unsigned int i = 0; i < 512; i += steps[s]) {
			assert_int_equal(do_alloc(&a, f, BLOCKS(i), BLOCKS(steps[s])), 0);
			assert_int_equal(do_alloc(&a, g, BLOCKS(i), BLOCKS(steps[s])), 0);
		}
		assert_int_equal(do_map(&a, f, 0, UINT64_MAX), 0);
		assert_in_range(map_of(&a).extents, 1, 2);
		assert_int_equal(do_map(&a, g, 0, UINT64_MAX), 0);
		assert_in_range(map_of(&a).extents, 1, 2);
	}
}

static void an_extent_stays_within_its_chunk(void **state)
{
	uint64_t f = new_file("f");

	(void)state;
	assert_int_equal(do_alloc(&a, f, 0, VOLUME), 0);
	assert_int_equal(map_of(&a).extents, 4);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(extent_of(&a, i).length, CHUNK);
}

static void a_full_donor_says_so_and_nothing_is_half_done(void **state)
{
	uint64_t f = new_file("f");

	(void)state;
	assert_int_equal(do_alloc(&a, f, 0, BLOCKS(200)), 0);
	assert_int_equal(do_alloc(&a, f, BLOCKS(190), BLOCKS(67)), -ENOSPC);
	assert_int_equal(attr_of(f).blocks, 200 * 8);
	assert_int_equal(free_blocks(), 56);
	assert_int_equal(do_alloc(&a, f, BLOCKS(190), BLOCKS(66)), 0);
	assert_int_equal(free_blocks(), 0);
	assert_int_equal(do_fallocate(&a, f, 0, 0, BLOCKS(257)), -ENOSPC);
	assert_int_equal(attr_of(f).size, 0);
}

static void freed_blocks_come_back_zeroed(void **state)
{
	static uint8_t dirt[VOLUME];
	uint64_t f = new_file("f");

	(void)state;
	memset(dirt, 0xaa, sizeof(dirt));
	assert_int_equal(do_write(&a, f, 0, dirt, VOLUME), 0);
	assert_int_equal(do_truncate(&a, f, 0), 0);
	assert_true(fsd_has_work(host.fsd));
	assert_int_equal(free_blocks(), 256);
	assert_int_equal(do_alloc(&a, f, 0, VOLUME), 0);
	assert_true(all_zero(&a, f, 0, VOLUME));
}

static void start_over(uint64_t bytes, uint64_t chunk_bytes)
{
	peer_leave(&a);
	peer_leave(&b);
	host_fini(&host);
	host_init(&host, bytes, chunk_bytes);
	peer_join(&a, &host);
	b.client = NULL;
}

static void much_is_zeroed_in_steps(void **state)
{
	const uint64_t bytes = 64 << 20;
	struct wire_fs_range alloc = { { .op = FS_ALLOC }, 0, bytes };
	unsigned int steps = 0;
	uint64_t f;

	(void)state;
	start_over(bytes, bytes);
	f = alloc.head.ino = new_file("f");
	assert_int_equal(do_alloc(&a, f, 0, bytes), 0);
	assert_int_equal(do_truncate(&a, f, 0), 0);
	assert_int_equal(ask(&a, &alloc, sizeof(alloc), NULL, NULL, 0), PENDING);
	for (; !a.answer.times; steps++) {
		assert_true(fsd_has_work(host.fsd));
		fsd_work(host.fsd);
	}
	assert_int_equal(a.answer.status, 0);
	assert_in_range(steps, 2, 8);
	assert_int_equal(do_truncate(&a, f, 0), 0);
	for (steps = 0; fsd_has_work(host.fsd); steps++)
		fsd_work(host.fsd);
	assert_in_range(steps, 8, 64);
	assert_int_equal(do_truncate(&a, f, 0), 0);
}

static void a_client_that_leaves_while_waiting_for_memory_is_answered(void **state)
{
	const uint64_t bytes = 64 << 20;
	struct wire_fs_range alloc = { { .op = FS_ALLOC }, 0, bytes };

	(void)state;
	start_over(bytes, bytes);
	alloc.head.ino = new_file("f");
	assert_int_equal(do_alloc(&a, alloc.head.ino, 0, bytes), 0);
	assert_int_equal(do_truncate(&a, alloc.head.ino, 0), 0);
	assert_int_equal(ask(&a, &alloc, sizeof(alloc), NULL, NULL, 0), PENDING);
	peer_leave(&a);
	assert_int_equal(a.answer.status, -ECONNRESET);
	assert_int_equal(a.answer.times, 1);
}

static void the_volume_grows_ahead_of_need(void **state)
{
	uint64_t f = new_file("f");

	(void)state;
	assert_true(fsd_has_work(host.fsd));
	fsd_work(host.fsd);
	assert_int_equal(host.nr_chunks, 1);
	assert_false(fsd_has_work(host.fsd));
	assert_int_equal(do_alloc(&a, f, 0, BLOCKS(33)), 0);
	assert_true(fsd_has_work(host.fsd));
	fsd_work(host.fsd);
	assert_int_equal(host.nr_chunks, 2);
	host.room = 1; /* another tenant has taken the rest */
	assert_int_equal(do_alloc(&a, f, 0, BLOCKS(128)), 0);
	assert_false(fsd_has_work(host.fsd));
	assert_int_equal(do_alloc(&a, f, 0, BLOCKS(129)), -ENOSPC);
}

static void truncation_zeroes_the_tail(void **state)
{
	uint8_t data[BLOCKS(2)];
	uint64_t f = new_file("f");

	(void)state;
	memset(data, 0xaa, sizeof(data));
	assert_int_equal(do_write(&a, f, 0, data, sizeof(data)), 0);
	assert_int_equal(do_truncate(&a, f, 100), 0);
	assert_int_equal(attr(&a).blocks, 8);
	assert_int_equal(do_truncate(&a, f, BLOCKS(2)), 0);
	assert_int_equal(attr(&a).size, BLOCKS(2));
	assert_true(all_zero(&a, f, 100, BLOCKS(2) - 100));
	assert_false(all_zero(&a, f, 0, 100));
}

static void a_hole_is_punched(void **state)
{
	uint8_t data[BLOCKS(4)];
	uint64_t f = new_file("f");

	(void)state;
	memset(data, 0xaa, sizeof(data));
	assert_int_equal(do_write(&a, f, 0, data, sizeof(data)), 0);
	assert_int_equal(do_fallocate(&a, f, PUNCH, 100, BLOCKS(3)), 0);
	assert_int_equal(attr(&a).blocks, 2 * 8);
	assert_int_equal(attr(&a).size, BLOCKS(4));
	assert_true(all_zero(&a, f, 100, BLOCKS(3)));
	assert_false(all_zero(&a, f, 0, 100));
	assert_false(all_zero(&a, f, BLOCKS(3) + 100, BLOCKS(1) - 100));
}

static void a_range_is_zeroed_and_stays_allocated(void **state)
{
	uint8_t data[BLOCKS(2)];
	uint64_t f = new_file("f");

	(void)state;
	memset(data, 0xaa, sizeof(data));
	assert_int_equal(do_write(&a, f, 0, data, sizeof(data)), 0);
	assert_int_equal(do_fallocate(&a, f, FALLOC_FL_ZERO_RANGE, 1, BLOCKS(3)), 0);
	assert_int_equal(attr(&a).size, BLOCKS(3) + 1);
	assert_int_equal(attr(&a).blocks, 4 * 8);
	assert_true(all_zero(&a, f, 1, BLOCKS(3)));
	assert_false(all_zero(&a, f, 0, 1));
}

static void unknown_modes_and_ranges_are_refused(void **state)
{
	uint64_t f = new_file("f");

	(void)state;
	assert_int_equal(do_fallocate(&a, f, FALLOC_FL_COLLAPSE_RANGE, 0, 4096), -EOPNOTSUPP);
	assert_int_equal(do_fallocate(&a, f, FALLOC_FL_PUNCH_HOLE, 0, 4096), -EOPNOTSUPP);
	assert_int_equal(do_fallocate(&a, f, 0, 0, 0), -EINVAL);
	assert_int_equal(do_fallocate(&a, f, 0, UINT64_MAX, 1), -EFBIG);
	assert_int_equal(do_alloc(&a, f, 1, UINT64_MAX), -EFBIG);
	assert_int_equal(do_alloc(&a, f, 0, 1ull << 62), -ENOSPC);
	assert_int_equal(do_truncate(&a, f, UINT64_MAX), -EFBIG);
	assert_int_equal(do_truncate(&a, FS_ROOT, 0), -EISDIR);
	assert_int_equal(do_commit(&a, f, UINT64_MAX), -EFBIG);
	assert_int_equal(do_map(&a, f, UINT64_MAX, UINT64_MAX), 0);
}

static void blocks_allocated_ahead_are_freed_at_the_last_close(void **state)
{
	uint64_t f = new_file("f");

	(void)state;
	assert_int_equal(do_alloc(&a, f, 0, BLOCKS(10)), 0);
	assert_int_equal(do_commit(&a, f, 5000), 0);
	assert_int_equal(do_release(&a, f), 0);
	assert_int_equal(attr_of(f).blocks, 2 * 8);
	assert_int_equal(do_open(&a, f, 0), 0);
	assert_int_equal(do_fallocate(&a, f, FALLOC_FL_KEEP_SIZE, 0, BLOCKS(5)), 0);
	assert_int_equal(do_alloc(&a, f, 0, BLOCKS(10)), 0);
	assert_int_equal(do_release(&a, f), 0);
	assert_int_equal(attr_of(f).blocks, 5 * 8);
}

static void an_unlinked_file_lives_while_it_is_open(void **state)
{
	uint64_t f = new_file("f");

	(void)state;
	assert_int_equal(do_write(&a, f, 0, "x", 1), 0);
	assert_int_equal(do_open(&a, f, 0), 0);
	assert_int_equal(do_unlink(&a, FS_ROOT, "f"), 0);
	assert_int_equal(do_release(&a, f), 0);
	assert_false(all_zero(&a, f, 0, 1));
	assert_int_equal(attr_of(f).nlink, 0);
	assert_int_equal(do_link(&a, f, FS_ROOT, "g"), -ENOENT);
	assert_int_equal(do_release(&a, f), 0);
	assert_int_equal(do_getattr(&a, f), -ESTALE);
	assert_int_equal(free_blocks(), 256);
}

static void an_unlinked_file_goes_with_its_client(void **state)
{
	uint64_t f = new_file("f");

	(void)state;
	assert_int_equal(do_write(&a, f, 0, "x", 1), 0);
	assert_int_equal(do_unlink(&b, FS_ROOT, "f"), 0);
	peer_leave(&a);
	assert_int_equal(do_getattr(&b, f), -ESTALE);
}

static void maps_are_given_of_open_files_only(void **state)
{
	uint64_t f = new_file("f");

	(void)state;
	assert_int_equal(do_release(&a, f), 0);
	assert_int_equal(do_release(&a, f), -EBADF);
	assert_int_equal(do_map(&a, f, 0, 1), -EBADF);
	assert_int_equal(do_alloc(&a, f, 0, 1), -EBADF);
}

static void opening_with_o_trunc_truncates(void **state)
{
	uint64_t f = new_file("f");

	(void)state;
	assert_int_equal(do_write(&a, f, 0, "x", 1), 0);
	assert_int_equal(do_open(&b, f, O_TRUNC), 0);
	assert_int_equal(attr(&b).size, 0);
	assert_int_equal(attr(&b).blocks, 0);
}

static void a_large_map_comes_in_parts(void **state)
{
	uint64_t f = new_file("f"), at = 0;
	unsigned int extents = 0;

	(void)state;
	for (int i = 255; i >= 0; i--) /* backwards: no two extents are adjacent in the volume */
		assert_int_equal(do_alloc(&a, f, BLOCKS(i), 1), 0);
	assert_int_equal(do_truncate(&a, f, 0), 0);
	for (int i = 0; i < 128; i++)
		assert_int_equal(do_alloc(&a, f, BLOCKS(2 * i), 1), 0);
	while (at < BLOCKS(256)) {
		assert_int_equal(do_map(&a, f, at, BLOCKS(256) - at), 0);
		extents += map_of(&a).extents;
		assert_true(map_of(&a).end > at);
		at = map_of(&a).end;
	}
	assert_int_equal(extents, 128);
}

/* Creates a file shared by two clients: @a has written @n blocks, @b has it open and mapped. */
static uint64_t shared_file(unsigned int n)
{
	static uint8_t dirt[VOLUME];
	uint64_t f = new_file("f");

	memset(dirt, 0xaa, sizeof(dirt));
	assert_int_equal(do_write(&a, f, 0, dirt, BLOCKS(n)), 0);
	assert_int_equal(do_open(&b, f, 0), 0);
	assert_int_equal(do_map(&b, f, 0, BLOCKS(n)), 0);
	return f;
}

static struct fsd_info info(void)
{
	struct fsd_info info;

	fsd_info(host.fsd, &info);
	return info;
}

static void an_extent_that_another_holds_is_recalled(void **state)
{
	uint64_t f = shared_file(10);
	uint64_t epoch = map_of(&b).epoch;

	(void)state;
	assert_int_equal(do_truncate(&a, f, 0), 0);
	assert_int_equal(b.nr_told, 1);
	assert_int_equal(b.told[0].head.op, FS_RECALL);
	assert_int_equal(b.told[0].head.ino, f);
	assert_int_equal(b.told[0].recall.epoch, epoch);
	assert_int_equal(a.nr_told, 0); /* the client that truncates is not recalled */
	assert_int_equal(info().bytes_limbo, BLOCKS(10));
	assert_int_equal(free_blocks(), 246);
	assert_int_equal(do_return(&b, f, epoch), 0);
	assert_int_equal(info().bytes_limbo, 0);
	assert_int_equal(free_blocks(), 256);
}

static void only_a_hole_gives_the_map_back_unasked(void **state)
{
	uint64_t f = shared_file(10);

	(void)state;
	map_of(&b);
	assert_int_equal(do_fallocate(&b, f, 0, 0, BLOCKS(20)), 0);
	assert_int_equal(do_truncate(&a, f, 0), 0);
	assert_int_equal(b.nr_told, 1);
	assert_int_equal(info().bytes_limbo, BLOCKS(20));
	assert_int_equal(do_fallocate(&b, f, PUNCH, 0, BLOCKS(20)), 0);
	assert_int_equal(info().bytes_limbo, 0);
}

static void limbo_is_never_used_again(void **state)
{
	uint64_t f = shared_file(256);

	(void)state;
	assert_int_equal(do_truncate(&a, f, 0), 0);
	assert_int_equal(do_alloc(&a, f, 0, 1), -ENOSPC);
	for (int i = 0; i < 10; i++)
		fsd_work(host.fsd);
	assert_int_equal(*(uint8_t *)host_memory(&host, 0), 0xaa);
	assert_int_equal(do_release(&b, f), 0); /* returns the map, too */
	assert_int_equal(do_alloc(&a, f, 0, VOLUME), 0);
	assert_true(all_zero(&a, f, 0, VOLUME));
}

static void a_request_for_memory_in_limbo_waits_a_while(void **state)
{
	struct wire_fs_range alloc = { { .op = FS_ALLOC }, 0, VOLUME };

	(void)state;
	alloc.head.ino = shared_file(256);
	assert_int_equal(do_truncate(&a, alloc.head.ino, 0), 0);
	assert_int_equal(ask(&a, &alloc, sizeof(alloc), NULL, NULL, 0), PENDING);
	fsd_work(host.fsd);
	assert_int_equal(a.answer.times, 0);
	assert_int_equal(do_return(&b, alloc.head.ino, b.told[0].recall.epoch), 0);
	while (!a.answer.times)
		fsd_work(host.fsd);
	assert_int_equal(a.answer.status, 0);
	assert_int_equal(map_of(&a).extents, 4);
	alloc.length++; /* more than limbo can ever return */
	assert_int_equal(ask(&a, &alloc, sizeof(alloc), NULL, NULL, 0), -ENOSPC);
}

static void limbo_ends_with_the_client(void **state)
{
	uint64_t f = shared_file(10);

	(void)state;
	assert_int_equal(do_truncate(&a, f, BLOCKS(4)), 0);
	assert_int_equal(info().bytes_limbo, BLOCKS(6));
	peer_leave(&b);
	assert_int_equal(info().bytes_limbo, 0);
	assert_int_equal(info().bytes_dirty, BLOCKS(6));
}

static void a_return_covers_its_epoch_only(void **state)
{
	uint64_t f = shared_file(10);
	uint64_t old = map_of(&b).epoch;

	(void)state;
	assert_int_equal(do_truncate(&a, f, BLOCKS(8)), 0); /* in limbo with the first epoch */
	assert_int_equal(do_map(&b, f, 0, BLOCKS(8)), 0);
	assert_int_equal(map_of(&b).epoch, old + 1);
	assert_int_equal(do_truncate(&a, f, BLOCKS(6)), 0); /* with the second epoch */
	assert_int_equal(b.nr_told, 2);
	assert_int_equal(info().bytes_limbo, BLOCKS(4));
	assert_int_equal(do_return(&b, f, old), 0);
	assert_int_equal(info().bytes_limbo, BLOCKS(2));
	assert_int_equal(do_return(&b, f, old), 0); /* repeated: no effect */
	assert_int_equal(info().bytes_limbo, BLOCKS(2));
	assert_int_equal(do_return(&b, f, old + 1), 0);
	assert_int_equal(info().bytes_limbo, 0);
}

static void a_truncation_is_later_than_the_writes_of_a_client_it_recalls(void **state)
{
	uint64_t f = new_file("f");

	(void)state;
	assert_int_equal(do_open(&b, f, 0), 0);
	assert_int_equal(do_alloc(&b, f, 0, 200000), 0); /* and wrote there */
	assert_int_equal(do_truncate(&a, f, 0), 0);
	assert_int_equal(b.nr_told, 1);
	assert_int_equal(do_commit(&b, f, 200000), 0);
	assert_int_equal(attr(&b).size, 0);
	assert_int_equal(do_return(&b, f, b.told[0].recall.epoch), 0);
	assert_int_equal(do_commit(&b, f, 100), 0); /* of a write with a newer map */
	assert_int_equal(attr(&b).size, 100);
}

static void a_client_that_cannot_be_told_is_recalled_later(void **state)
{
	uint64_t f = shared_file(10);
	uint64_t epoch = map_of(&b).epoch;

	(void)state;
	b.deaf = true;
	assert_int_equal(do_truncate(&a, f, 0), 0);
	assert_int_equal(do_fallocate(&b, f, 0, 0, BLOCKS(1)), 0);
	assert_int_equal(do_truncate(&a, f, 0), 0);
	for (int i = 0; i < 3; i++) {
		b.deaf = i < 2;
		assert_true(fsd_deadline_ns(host.fsd) > host.now_ns);
		fsd_expired(host.fsd); /* too early */
		assert_int_equal(b.nr_told, 0);
		host.now_ns = fsd_deadline_ns(host.fsd);
		fsd_expired(host.fsd);
	}
	assert_int_equal(b.nr_told, 1);
	assert_int_equal(b.told[0].head.op, FS_RECALL);
	assert_int_equal(b.told[0].recall.epoch, epoch + 1);
	assert_int_equal(fsd_deadline_ns(host.fsd), FSD_NEVER);
	assert_int_equal(do_return(&b, f, epoch + 1), 0);
	assert_int_equal(info().bytes_limbo, 0);
}

static void a_truncation_within_a_block_is_recalled(void **state)
{
	uint64_t f = new_file("f");

	(void)state;
	assert_int_equal(do_write(&a, f, 0, "0123456789", 10), 0);
	assert_int_equal(do_open(&b, f, 0), 0);
	assert_int_equal(do_map(&b, f, 0, 10), 0);
	assert_int_equal(do_truncate(&a, f, 5), 0);
	assert_int_equal(b.nr_told, 1);
	assert_int_equal(do_commit(&b, f, 20), 0);
	assert_int_equal(attr(&b).size, 5);
}

static void a_newer_map_is_for_newer_writes(void **state)
{
	uint64_t f = new_file("f");

	(void)state;
	assert_int_equal(do_open(&b, f, 0), 0);
	assert_int_equal(do_alloc(&b, f, 0, 200000), 0);
	assert_int_equal(do_truncate(&a, f, 0), 0);
	assert_int_equal(do_alloc(&b, f, 0, 200000), 0);
	assert_int_equal(do_commit(&b, f, 200000), 0);
	assert_int_equal(attr(&b).size, 200000);
}

static void a_hole_does_not_limit_the_size(void **state)
{
	uint64_t f = new_file("f");

	(void)state;
	assert_int_equal(do_open(&b, f, 0), 0);
	assert_int_equal(do_alloc(&b, f, 0, 200000), 0);
	assert_int_equal(do_fallocate(&a, f, PUNCH, 0, BLOCKS(4)), 0);
	assert_int_equal(b.nr_told, 1);
	assert_int_equal(do_commit(&b, f, 200000), 0);
	assert_int_equal(attr(&b).size, 200000);
}

static void a_truncating_client_returns_its_own_map(void **state)
{
	uint64_t f = shared_file(10);

	(void)state;
	assert_int_equal(do_map(&a, f, 0, 1), 0);
	assert_int_equal(do_truncate(&a, f, BLOCKS(8)), 0);
	assert_int_equal(info().bytes_limbo, BLOCKS(2));
	/* b has no map, and a has not fetched one since */
	assert_int_equal(do_truncate(&b, f, BLOCKS(6)), 0);
	assert_int_equal(info().bytes_limbo, 0);
	assert_int_equal(info().bytes_dirty, BLOCKS(4));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Creates a file that @a has open, with its map, when the donor has memory at hand. */
static uint64_t new_file_with_map(const char *name)
{
	while (fsd_has_work(host.fsd))
		fsd_work(host.fsd);
	assert_int_equal(do_make(&a, FS_ROOT, name, S_IFREG | 0600, FS_MAKE_OPEN | FS_MAKE_MAP,
				 NULL), 0);
	return attr(&a).ino;
}

static void an_open_brings_the_map(void **state)
{
	uint64_t ino = new_file_with_map("f");
	struct wire_fs_open open = { .head = { .op = FS_OPEN, .ino = ino }, .flags = O_RDONLY,
				     .open = FS_OPEN_MAP };

	(void)state;
	assert_int_equal(attr(&a).blocks, 0);
	assert_int_equal(map_after(&a, 2).end, FS_FIRST_BYTES);
	assert_true(map_after(&a, 2).extents);
	assert_int_equal(do_write(&a, ino, 0, "abc", 3), 0);
	assert_int_equal(do_close(&a, ino, 3), 0);
	assert_int_equal(ask(&a, &open, sizeof(open), NULL, NULL, 0), 0);
	assert_int_equal(map_after(&a, 1).extents, 1);
	assert_int_equal(map_after(&a, 1).size, 3);
	assert_int_equal(do_truncate(&b, ino, 0), 0);
	assert_int_equal(a.nr_told, 1); /* the map is recalled */
	assert_int_equal(ask(&b, &open, sizeof(open), NULL, NULL, 0), 0);
	assert_int_equal(map_after(&b, 1).extents, 0); /* no blocks for a reader */
}

static void a_full_donor_makes_files_without_blocks(void **state)
{
	uint64_t ino = new_file("big");

	(void)state;
	assert_int_equal(do_alloc(&a, ino, 0, VOLUME), 0);
	ino = new_file_with_map("f");
	assert_int_equal(map_after(&a, 2).extents, 0);
	assert_int_equal(do_alloc(&a, ino, 0, 1), -ENOSPC);
}

static void an_open_waits_for_no_memory(void **state)
{
	(void)state;
	assert_int_equal(host.nr_chunks, 0);
	assert_int_equal(do_make(&a, FS_ROOT, "f", S_IFREG | 0600, FS_MAKE_OPEN | FS_MAKE_MAP,
				 NULL), 0);
	assert_int_equal(map_after(&a, 2).extents, 0);
	assert_int_equal(host.nr_chunks, 0);
}

/* Opens @number files. Return: how many of them got blocks. */
static unsigned int open_files(const char *prefix, unsigned int number)
{
	unsigned int filled = 0;
	char name[16];

	for (unsigned int i = 0; i < number; i++) {
		snprintf(name, sizeof(name), "%s%u", prefix, i);
		new_file_with_map(name);
		filled += map_after(&a, 2).extents > 0;
	}
	return filled;
}

/* Otherwise opens of files that nobody writes could keep the memory from a writer. */
static void opens_hold_few_blocks_that_nobody_wrote(void **state)
{
	uint64_t first;

	(void)state;
	start_over(BLOCKS(16384), BLOCKS(16384));
	first = new_file_with_map("first");
	assert_int_equal(open_files("a", 100), 63);
	assert_int_equal(do_close(&a, first, 1), 0);
	assert_int_equal(open_files("b", 10), 1);
}

static void a_donor_that_is_nearly_full_fills_nothing_ahead(void **state)
{
	(void)state;
	assert_int_equal(do_alloc(&a, new_file("big"), 0, VOLUME - 2 * FS_FIRST_BYTES), 0);
	new_file_with_map("f");
	assert_int_equal(map_after(&a, 2).extents, 0);
	assert_int_equal(do_alloc(&a, new_file("g"), 0, 2 * FS_FIRST_BYTES), 0);
}

static void a_close_commits_and_frees_what_is_left(void **state)
{
	uint64_t ino = new_file_with_map("f");

	(void)state;
	assert_int_equal(do_close(&a, ino, 10), 0);
	assert_int_equal(attr(&a).size, 10);
	assert_int_equal(attr(&a).blocks, FS_BLOCK / 512);
	assert_int_equal(do_close(&a, ino, 10), -EBADF);
	assert_int_equal(do_open(&a, ino, 0), 0);
	assert_int_equal(do_close(&a, ino, UINT64_MAX), -EFBIG);
	assert_int_equal(do_release(&a, ino), -EBADF); /* closed nevertheless */
}

static void the_close_of_an_unlinked_file_ends_it(void **state)
{
	uint64_t ino = new_file_with_map("f");

	(void)state;
	assert_int_equal(do_unlink(&a, FS_ROOT, "f"), 0);
	assert_int_equal(do_close(&a, ino, 10), 0);
	assert_int_equal(attr(&a).ino, ino);
	assert_int_equal(attr(&a).mode, 0);
	assert_int_equal(do_getattr(&a, ino), -ESTALE);
}

static int trim(struct fsd_peer *p, uint64_t ino)
{
	struct wire_fs_setattr set = { .head = { .op = FS_SETATTR, .ino = ino },
				       .mask = FS_SET_TRIM };

	return ask(p, &set, sizeof(set), NULL, NULL, 0);
}

static void a_trim_spares_the_blocks_of_another_writer(void **state)
{
	uint64_t ino = new_file_with_map("f");

	(void)state;
	assert_int_equal(do_open(&b, ino, 0), 0);
	assert_int_equal(do_map(&b, ino, 0, FS_FIRST_BYTES), 0);
	assert_int_equal(trim(&a, ino), 0);
	assert_int_equal(attr(&a).blocks, FS_FIRST_BYTES / 512);
	assert_int_equal(do_release(&b, ino), 0);
	assert_int_equal(trim(&a, ino), 0);
	assert_int_equal(attr(&a).blocks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(written_data_is_read_back),
		TEST(a_hole_takes_no_space),
		TEST(a_growing_file_is_contiguous),
		TEST(files_that_grow_side_by_side_lie_in_few_pieces),
		TEST(an_extent_stays_within_its_chunk),
		TEST(a_full_donor_says_so_and_nothing_is_half_done),
		TEST(freed_blocks_come_back_zeroed),
		TEST(much_is_zeroed_in_steps),
		TEST(a_client_that_leaves_while_waiting_for_memory_is_answered),
		TEST(the_volume_grows_ahead_of_need),
		TEST(truncation_zeroes_the_tail),
		TEST(a_hole_is_punched),
		TEST(a_range_is_zeroed_and_stays_allocated),
		TEST(unknown_modes_and_ranges_are_refused),
		TEST(blocks_allocated_ahead_are_freed_at_the_last_close),
		TEST(an_unlinked_file_lives_while_it_is_open),
		TEST(an_unlinked_file_goes_with_its_client),
		TEST(maps_are_given_of_open_files_only),
		TEST(opening_with_o_trunc_truncates),
		TEST(a_large_map_comes_in_parts),
		TEST(an_extent_that_another_holds_is_recalled),
		TEST(only_a_hole_gives_the_map_back_unasked),
		TEST(limbo_is_never_used_again),
		TEST(a_request_for_memory_in_limbo_waits_a_while),
		TEST(limbo_ends_with_the_client),
		TEST(a_return_covers_its_epoch_only),
		TEST(a_truncation_is_later_than_the_writes_of_a_client_it_recalls),
		TEST(a_client_that_cannot_be_told_is_recalled_later),
		TEST(a_truncation_within_a_block_is_recalled),
		TEST(a_newer_map_is_for_newer_writes),
		TEST(a_hole_does_not_limit_the_size),
		TEST(a_truncating_client_returns_its_own_map),
		TEST(an_open_brings_the_map),
		TEST(a_full_donor_makes_files_without_blocks),
		TEST(an_open_waits_for_no_memory),
		TEST(opens_hold_few_blocks_that_nobody_wrote),
		TEST(a_donor_that_is_nearly_full_fills_nothing_ahead),
		TEST(a_close_commits_and_frees_what_is_left),
		TEST(the_close_of_an_unlinked_file_ends_it),
		TEST(a_trim_spares_the_blocks_of_another_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
