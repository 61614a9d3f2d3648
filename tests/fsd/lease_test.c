/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The lease of all names: the holder, and other clients' requests that wait for the return. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "core/base/rng.h"
#include "fsd/internal.h"
#include "tests/fsd/host.h"

#define PEERS 3
#define QUIET_NS (FS_QUIET_MS * 1000000ull)
#define RECALL_NS (3 * FS_ALONE_MS * 1000000ull)

static struct host host;
static struct fsd_peer peers[PEERS], *a = &peers[0], *b = &peers[1], *c = &peers[2];

static int shared(struct fsd_peer *p)
{
	struct wire_fs_head head = { .op = FS_SHARED };
	struct fsd_answer answer;

	return ask_for(p, &answer, &head, sizeof(head), NULL, NULL, 0);
}

/* Two clients without a cache. */
static int setup(void **state)
{
	(void)state;
	host_init(&host, 1 << 20, 1 << 19);
	peer_join_for_leases(a, &host);
	peer_join_for_leases(b, &host);
	shared(a);
	a->nr_told = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < PEERS; i++) {
		if (peers[i].client)
			peer_leave(&peers[i]);
	}
	host_fini(&host);
	return 0;
}

/* The right to cache, by the reply to a request. */
static enum wire_fs_sharing sharing_of(struct fsd_peer *p)
{
	assert_int_equal(do_getattr(p, FS_ROOT), 0);
	return p->answer.sharing;
}

static void lease_to(struct fsd_peer *p)
{
	host.now_ns += QUIET_NS;
	assert_int_equal(sharing_of(p), FS_REPLY_LEASED);
}

static void a_client_beside_quiet_ones_has_the_lease(void **state)
{
	(void)state;
	assert_int_equal(sharing_of(a), FS_REPLY_SHARED);
	host.now_ns += QUIET_NS - 1000;
	assert_int_equal(sharing_of(a), FS_REPLY_SHARED);
	host.now_ns += 1000;
	assert_int_equal(sharing_of(a), FS_REPLY_LEASED);
	host.now_ns += 10 * QUIET_NS;
	assert_int_equal(sharing_of(a), FS_REPLY_LEASED);
	assert_int_equal(b->nr_told, 0);
}

static void a_request_waits_until_the_lease_is_returned(void **state)
{
	(void)state;
	lease_to(a);
	assert_int_equal(do_make(a, FS_ROOT, "new", S_IFREG | 0600, 0, NULL), 0);
	assert_int_equal(do_lookup(b, FS_ROOT, "new"), PENDING);
	assert_int_equal(a->nr_told, 1);
	assert_int_equal(a->told[0].head.op, FS_SHARE);
	fsd_work(host.fsd);
	assert_int_equal(b->answer.times, 0);
	/* The last changes of the holder. */
	assert_int_equal(script(a, "rename new other; file new"), 0);
	assert_int_equal(a->answer.sharing, FS_REPLY_SHARED);
	assert_int_equal(shared(a), 0);
	assert_int_equal(b->answer.times, 1);
	assert_int_equal(b->answer.status, 0);
	assert_int_equal(b->answer.sharing, FS_REPLY_SHARED);
	assert_int_equal(do_lookup(b, FS_ROOT, "other"), 0);
	assert_int_equal(a->nr_told, 1);
}

static void waiting_requests_keep_their_order(void **state)
{
	struct wire_fs_make make = { .head = { .op = FS_MAKE, .ino = FS_ROOT },
				     .mode = S_IFREG | 0600,
				     .make = FS_MAKE_EXCLUSIVE };
	struct wire_fs_head unlink = { .op = FS_UNLINK, .ino = FS_ROOT };
	static struct fsd_answer answer[3];

	(void)state;
	lease_to(a);
	ask_for(b, &answer[0], &make, sizeof(make), "f", NULL, 0);
	ask_for(b, &answer[1], &unlink, sizeof(unlink), "f", NULL, 0);
	ask_for(b, &answer[2], &make, sizeof(make), "f", NULL, 0);
	assert_int_equal(shared(a), 0);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(answer[i].times, 1);
		assert_int_equal(answer[i].status, 0);
	}
}

static void requests_about_nothing_leased_do_not_wait(void **state)
{
	struct wire_fs_head statfs = { .op = FS_STATFS };
	struct wire_fs_volume volume = { .head.op = FS_VOLUME };

	(void)state;
	lease_to(a);
	assert_int_equal(ask(b, &statfs, sizeof(statfs), NULL, NULL, 0), 0);
	assert_int_equal(ask(b, &volume, sizeof(volume), NULL, NULL, 0), 0);
	assert_int_equal(a->nr_told, 0);
	host.now_ns += 10;
	assert_int_equal(sharing_of(a), FS_REPLY_LEASED);
}

static void a_client_with_an_open_file_is_not_quiet(void **state)
{
	(void)state;
	assert_int_equal(do_make(b, FS_ROOT, "f", S_IFREG | 0600, FS_MAKE_OPEN, NULL), 0);
	host.now_ns += 2 * QUIET_NS;
	assert_int_equal(sharing_of(a), FS_REPLY_SHARED);
	assert_int_equal(do_release(b, attr(b).ino), 0);
	lease_to(a);
}

static void a_client_without_knowledge_of_leases_gets_none(void **state)
{
	(void)state;
	peer_join(c, &host);
	host.now_ns += QUIET_NS;
	assert_int_equal(sharing_of(c), FS_REPLY_SHARED);
	lease_to(a); /* but is as good as others when quiet */
	assert_int_equal(do_getattr(c, FS_ROOT), PENDING);
	assert_int_equal(shared(a), 0);
	assert_int_equal(c->answer.times, 1);
}

static void a_silent_holder_loses_the_lease(void **state)
{
	(void)state;
	lease_to(a);
	assert_int_equal(fsd_deadline_ns(host.fsd), FSD_NEVER);
	assert_int_equal(do_getattr(b, FS_ROOT), PENDING);
	assert_in_range(fsd_deadline_ns(host.fsd), host.now_ns, host.now_ns + RECALL_NS);
	host.now_ns = fsd_deadline_ns(host.fsd) - 1;
	fsd_expired(host.fsd);
	assert_int_equal(b->answer.times, 0);
	host.now_ns++;
	fsd_expired(host.fsd);
	assert_int_equal(b->answer.times, 1);
	assert_int_equal(b->answer.status, 0);
	/* No lease before the answer, even long afterwards, and nobody waits for the client. */
	host.now_ns += 10 * QUIET_NS;
	assert_int_equal(sharing_of(a), FS_REPLY_SHARED);
	assert_int_equal(do_getattr(b, FS_ROOT), 0);
	assert_int_equal(shared(a), 0);
	lease_to(a);
}

static void a_holder_that_leaves_is_waited_for_no_longer(void **state)
{
	(void)state;
	lease_to(a);
	assert_int_equal(do_getattr(b, FS_ROOT), PENDING);
	peer_leave(a);
	assert_int_equal(b->answer.times, 1);
	assert_int_equal(b->answer.status, 0);
	assert_int_equal(sharing_of(b), FS_REPLY_ALONE);
}

static void a_waiting_client_that_leaves_is_answered(void **state)
{
	(void)state;
	lease_to(a);
	assert_int_equal(do_getattr(b, FS_ROOT), PENDING);
	peer_leave(b);
	assert_int_equal(b->answer.times, 1);
	assert_int_equal(b->answer.status, -ECONNRESET);
	assert_int_equal(sharing_of(a), FS_REPLY_SHARED);
	assert_int_equal(shared(a), 0);
	assert_int_equal(sharing_of(a), FS_REPLY_ALONE);
}

static void a_mount_waits_for_the_holder_too(void **state)
{
	(void)state;
	lease_to(a);
	peer_join_for_leases(c, &host);
	assert_int_equal(c->answer.times, 0);
	assert_int_equal(do_getattr(b, FS_ROOT), PENDING);
	assert_int_equal(a->nr_told, 1);
	assert_int_equal(shared(a), 0);
	assert_int_equal(c->answer.times, 1);
	assert_int_equal(c->answer.sharing, FS_REPLY_SHARED);
	assert_int_equal(b->answer.times, 1);
	assert_int_equal(sharing_of(c), FS_REPLY_SHARED);
}

static void a_recall_that_could_not_be_sent_is_sent_later(void **state)
{
	(void)state;
	lease_to(a);
	a->deaf = true;
	assert_int_equal(do_getattr(b, FS_ROOT), PENDING);
	a->deaf = false;
	assert_int_equal(a->nr_told, 0);
	assert_int_equal(sharing_of(a), FS_REPLY_SHARED);
	assert_int_equal(a->nr_told, 1);
	assert_int_equal(sharing_of(a), FS_REPLY_SHARED);
	assert_int_equal(a->nr_told, 1);
	assert_int_equal(shared(a), 0);
	assert_int_equal(b->answer.times, 1);
}

static void a_wait_for_the_lease_is_longer_than_one_for_memory(void **state)
{
	uint64_t ino;

	(void)state;
	assert_int_equal(do_make(b, FS_ROOT, "f", S_IFREG | 0600, FS_MAKE_OPEN, NULL), 0);
	ino = attr(b).ino;
	assert_int_equal(do_release(b, ino), 0);
	lease_to(a);
	assert_int_equal(do_open(b, ino, 0), PENDING);
	host.now_ns += RECALL_NS / 2; /* longer than a request waits for memory */
	fsd_work(host.fsd);
	assert_int_equal(b->answer.times, 0);
	assert_int_equal(shared(a), 0);
	assert_int_equal(b->answer.times, 1);
	assert_int_equal(b->answer.status, 0);
	assert_int_equal(do_release(b, ino), 0);
}

/* As many calls as a session has, of each of two clients. */
static void no_request_is_refused_for_many_that_wait(void **state)
{
	enum { CALLS = 1024 };
	struct wire_fs_head getattr = { .op = FS_GETATTR, .ino = FS_ROOT };
	struct fsd_answer *answer = test_calloc(2 * CALLS, sizeof(*answer));

	(void)state;
	peer_join_for_leases(c, &host);
	lease_to(a);
	for (unsigned int i = 0; i < 2 * CALLS; i++)
		ask_for(i % 2 ? b : c, &answer[i], &getattr, sizeof(getattr), NULL, NULL, 0);
	for (unsigned int i = 0; i < 2 * CALLS; i++)
		assert_int_equal(answer[i].times, 0);
	assert_int_equal(shared(a), 0);
	for (unsigned int i = 0; i < 2 * CALLS; i++) {
		assert_int_equal(answer[i].times, 1);
		assert_int_equal(answer[i].status, 0);
	}
	test_free(answer);
}

/*
 * Random requests of three clients; holders answer late, or never. After each step at
 * most one client may cache, and no request has been answered while another client may.
 */
struct turn {
	struct fsd_answer answer;
	bool waits;
};

static struct turn turns[PEERS];
static bool owes[PEERS]; /* an answer to FS_SHARE */

static bool may_cache(const struct fsd_peer *p)
{
	return p->client->caches;
}

static void check_turn(unsigned int i, bool before[PEERS])
{
	if (!turns[i].waits || !turns[i].answer.times)
		return;
	turns[i].waits = false;
	assert_int_equal(turns[i].answer.status, 0);
	for (unsigned int other = 0; other < PEERS; other++) {
		if (other != i) /* the right is elsewhere, or has just been returned */
			assert_false(before[other] && may_cache(&peers[other]));
	}
}

static void run_turn(unsigned int i)
{
	struct wire_fs_head getattr = { .op = FS_GETATTR, .ino = FS_ROOT };

	if (turns[i].waits)
		return;
	turns[i].waits = true;
	ask_for(&peers[i], &turns[i].answer, &getattr, sizeof(getattr), NULL, NULL, 0);
}

static void at_most_one_client_may_cache(uint64_t seed)
{
	uint64_t random = seed;

	for (unsigned int step = 0; step < 300; step++) {
		const unsigned int i = (unsigned int)weir_rng_scale(weir_rng_next(&random), PEERS);
		bool before[PEERS];
		unsigned int caching = 0;

		for (unsigned int p = 0; p < PEERS; p++)
			before[p] = may_cache(&peers[p]);
		switch (weir_rng_scale(weir_rng_next(&random), 8)) {
		case 0:
			host.now_ns += QUIET_NS / 2;
			break;
		case 1:
			host.now_ns += QUIET_NS;
			break;
		case 2:
			if (fsd_deadline_ns(host.fsd) != FSD_NEVER &&
			    !weir_rng_scale(weir_rng_next(&random), 4))
				host.now_ns = fsd_deadline_ns(host.fsd);
			break;
		case 3:
		case 4:
			if (owes[i])
				shared(&peers[i]);
			owes[i] = false;
			break;
		default:
			run_turn(i);
		}
		fsd_expired(host.fsd);
		for (unsigned int p = 0; p < PEERS; p++) {
			owes[p] |= peers[p].nr_told;
			peers[p].nr_told = 0;
			caching += may_cache(&peers[p]);
			check_turn(p, before);
		}
		assert_true(caching <= 1);
	}
}

static void random_requests_find_one_holder_at_a_time(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		if (seed > 1) {
			teardown(state);
			setup(state);
		}
		peer_join_for_leases(c, &host);
		memset(turns, 0, sizeof(turns));
		memset(owes, 0, sizeof(owes));
		at_most_one_client_may_cache(seed);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_client_beside_quiet_ones_has_the_lease),
		TEST(a_request_waits_until_the_lease_is_returned),
		TEST(waiting_requests_keep_their_order),
		TEST(requests_about_nothing_leased_do_not_wait),
		TEST(a_client_with_an_open_file_is_not_quiet),
		TEST(a_client_without_knowledge_of_leases_gets_none),
		TEST(a_silent_holder_loses_the_lease),
		TEST(a_holder_that_leaves_is_waited_for_no_longer),
		TEST(a_waiting_client_that_leaves_is_answered),
		TEST(a_mount_waits_for_the_holder_too),
		TEST(a_recall_that_could_not_be_sent_is_sent_later),
		TEST(a_wait_for_the_lease_is_longer_than_one_for_memory),
		TEST(no_request_is_refused_for_many_that_wait),
		TEST(random_requests_find_one_holder_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
