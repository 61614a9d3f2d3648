/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Mounts of a single client and of several, and a client that does not answer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "tests/fsd/host.h"

static struct host host;
static struct fsd_peer a, b, c;

static int setup(void **state)
{
	(void)state;
	host_init(&host, 1 << 20, 1 << 19);
	peer_join(&a, &host);
	return 0;
}

static int teardown(void **state)
{
	struct fsd_peer *all[] = { &a, &b, &c };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		if (all[i]->client)
			peer_leave(all[i]);
	}
	host_fini(&host);
	return 0;
}

static int shared(struct fsd_peer *p)
{
	struct wire_fs_head head = { .op = FS_SHARED };

	return ask(p, &head, sizeof(head), NULL, NULL, 0);
}

static void the_first_is_alone(void **state)
{
	struct wire_fs_mounted mounted;

	(void)state;
	assert_int_equal(a.answer.status, 0);
	assert_false(a.answer.shared);
	assert_int_equal(a.answer.length, sizeof(mounted));
	memcpy(&mounted, a.answer.bytes, sizeof(mounted));
	assert_int_equal(mounted.root.ino, FS_ROOT);
	assert_int_equal(mounted.root.mode, S_IFDIR | 0755);
	assert_int_equal(mounted.root.nlink, 2);
	assert_int_equal(mounted.chunk_bytes, 1 << 19);
}

static void the_second_waits_until_the_first_shares(void **state)
{
	(void)state;
	peer_join(&b, &host);
	assert_int_equal(b.answer.times, 0);
	assert_int_equal(a.nr_told, 1);
	assert_int_equal(a.told[0].head.op, FS_SHARE);
	assert_int_equal(do_getattr(&a, FS_ROOT), 0);
	assert_true(a.answer.shared);
	assert_int_equal(shared(&a), 0);
	assert_int_equal(b.answer.times, 1);
	assert_int_equal(b.answer.status, 0);
	assert_true(b.answer.shared);
	peer_join(&c, &host); /* no client caches any more */
	assert_int_equal(c.answer.times, 1);
	assert_int_equal(a.nr_told, 1);
}

static void a_mount_does_not_wait_for_a_client_that_leaves(void **state)
{
	(void)state;
	peer_join(&b, &host);
	assert_int_equal(b.answer.times, 0);
	peer_leave(&a);
	assert_int_equal(b.answer.times, 1);
	assert_false(b.answer.shared);
}

static void the_last_client_may_cache_again(void **state)
{
	(void)state;
	peer_join(&b, &host);
	shared(&a);
	peer_leave(&b);
	assert_int_equal(do_getattr(&a, FS_ROOT), 0);
	assert_false(a.answer.shared);
	peer_join(&b, &host);
	assert_int_equal(b.answer.times, 0);
	assert_int_equal(a.nr_told, 2);
}

static void a_client_asked_to_share_answers_before_it_caches_again(void **state)
{
	(void)state;
	peer_join(&b, &host);
	peer_leave(&b); /* times out */
	assert_int_equal(do_getattr(&a, FS_ROOT), 0);
	assert_true(a.answer.shared);
	shared(&a);
	assert_int_equal(do_getattr(&a, FS_ROOT), 0);
	assert_false(a.answer.shared);
}

static void a_silent_client_loses_the_right_to_cache(void **state)
{
	(void)state;
	assert_int_equal(fsd_deadline_ns(host.fsd), FSD_NEVER);
	peer_join(&b, &host);
	assert_in_range(fsd_deadline_ns(host.fsd), host.now_ns + FS_ALONE_MS * 1000000ull,
			host.now_ns + 4000000000);
	fsd_expired(host.fsd);
	assert_int_equal(b.answer.times, 0);
	host.now_ns = fsd_deadline_ns(host.fsd);
	fsd_expired(host.fsd);
	assert_int_equal(b.answer.times, 1);
	assert_int_equal(b.answer.status, 0);
	assert_true(b.answer.shared);
	assert_int_equal(fsd_deadline_ns(host.fsd), FSD_NEVER);
	assert_int_equal(do_getattr(&b, FS_ROOT), 0);
	peer_join(&c, &host); /* does not wait for a again */
	assert_int_equal(c.answer.times, 1);
}

static void a_silent_client_that_wakes_answers_before_it_caches_again(void **state)
{
	(void)state;
	peer_join(&b, &host);
	host.now_ns = fsd_deadline_ns(host.fsd);
	fsd_expired(host.fsd);
	peer_leave(&b);
	assert_int_equal(do_getattr(&a, FS_ROOT), 0);
	assert_true(a.answer.shared);
	assert_int_equal(shared(&a), 0);
	assert_int_equal(do_getattr(&a, FS_ROOT), 0);
	assert_false(a.answer.shared);
}

static void a_waiting_client_that_leaves_is_answered(void **state)
{
	(void)state;
	peer_join(&b, &host);
	peer_leave(&b);
	assert_int_equal(b.answer.times, 1);
	assert_int_equal(b.answer.status, -ECONNRESET);
}

static void a_mount_is_checked(void **state)
{
	struct wire_fs_mount mount = { .head.op = FS_MOUNT, .magic = 1, .version = FS_VERSION };

	(void)state;
	peer_join_only(&b, &host);
	assert_int_equal(do_getattr(&b, FS_ROOT), -EPROTO);
	assert_int_equal(ask(&b, &mount, sizeof(mount), NULL, NULL, 0), -EPROTO);
	mount.magic = FS_MAGIC;
	mount.version++;
	assert_int_equal(ask(&b, &mount, sizeof(mount), NULL, NULL, 0), -EPROTONOSUPPORT);
	mount.version--;
	assert_int_equal(ask(&a, &mount, sizeof(mount), NULL, NULL, 0), -EALREADY);
	assert_int_equal(a.nr_told, 0);
	assert_int_equal(shared(&a), 0); /* unsolicited: no effect */
	mount.version = FS_VERSION_OLDEST - 1;
	assert_int_equal(ask(&b, &mount, sizeof(mount), NULL, NULL, 0), -EPROTONOSUPPORT);
	mount.version = FS_VERSION_OLDEST;
	assert_int_equal(ask(&b, &mount, sizeof(mount), NULL, NULL, 0), PENDING);
	assert_int_equal(shared(&a), 0);
	assert_int_equal(b.answer.status, 0);
}

static void clients_learn_chunks_as_the_volume_grows(void **state)
{
	struct wire_fs_volume volume = { .head.op = FS_VOLUME };
	struct wire_fs_chunk chunk;

	(void)state;
	assert_int_equal(ask(&a, &volume, sizeof(volume), NULL, NULL, 0), 0);
	assert_int_equal(a.answer.length, sizeof(struct wire_fs_reply));
	assert_int_equal(do_make(&a, FS_ROOT, "f", S_IFREG | 0600, FS_MAKE_OPEN, NULL), 0);
	assert_int_equal(do_alloc(&a, attr(&a).ino, 0, (1 << 19) + 1), 0);
	assert_int_equal(ask(&a, &volume, sizeof(volume), NULL, NULL, 0), 0);
	assert_int_equal(a.answer.length, sizeof(struct wire_fs_reply) + 2 * sizeof(chunk));
	volume.first = 1;
	assert_int_equal(ask(&a, &volume, sizeof(volume), NULL, NULL, 0), 0);
	assert_int_equal(a.answer.length, sizeof(struct wire_fs_reply) + sizeof(chunk));
	memcpy(&chunk, body(&a), sizeof(chunk));
	assert_int_equal(chunk.addr, (uintptr_t)host.chunk[1]);
	assert_int_equal(chunk.length, 1 << 19);
	volume.first = UINT32_MAX;
	assert_int_equal(ask(&a, &volume, sizeof(volume), NULL, NULL, 0), 0);
	assert_int_equal(a.answer.length, sizeof(struct wire_fs_reply));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_is_alone),
		TEST(the_second_waits_until_the_first_shares),
		TEST(a_mount_does_not_wait_for_a_client_that_leaves),
		TEST(the_last_client_may_cache_again),
		TEST(a_client_asked_to_share_answers_before_it_caches_again),
		TEST(a_silent_client_loses_the_right_to_cache),
		TEST(a_silent_client_that_wakes_answers_before_it_caches_again),
		TEST(a_waiting_client_that_leaves_is_answered),
		TEST(a_mount_is_checked),
		TEST(clients_learn_chunks_as_the_volume_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
