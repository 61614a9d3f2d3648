/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux fair; devices: softnic rxe; timeout: 120 */
/*
 * Fairness, measured at the receiver in bytes. All bytes lie in the rings before the first is
 * sent; then everything goes at once. At each arriving segment the test looks, in place of the
 * poller (the linker wraps weir_mux_ring_wake_at()): until a sender runs out, the arrived bytes
 * must be shared as expected. The result does not depend on scheduling of threads.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tests/lib/mux/fair.h"

#define TRIES 20

static const struct weir_mux_class one_class[] = { { .segment_bytes = SEGMENT } };
static const struct weir_mux_class two_levels[] = { { .segment_bytes = SEGMENT },
						    { .level = 1, .segment_bytes = SEGMENT } };
static const struct weir_mux_class long_segments[] = { { .level = 0 }, { .level = 1 } };

static struct fair *watched; /* set before any send */

void __real_weir_mux_ring_wake_at(struct weir_mux_ring *ring, const int *fd, uint64_t position);
void __wrap_weir_mux_ring_wake_at(struct weir_mux_ring *ring, const int *fd, uint64_t position);

static uint64_t received_of_all(const struct fair *f)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < f->count; i++)
		bytes += f->senders[i].received;
	return bytes;
}

/* Called for each segment, with the receiver's lock held by the poller, and for other wake-ups. */
void __wrap_weir_mux_ring_wake_at(struct weir_mux_ring *ring, const int *fd, uint64_t position)
{
	struct fair *f = __atomic_load_n(&watched, __ATOMIC_ACQUIRE);
	unsigned int i;

	for (i = 0; f && i < f->count; i++) {
		struct fair_sender *s = &f->senders[i];

		if (ring != s->arriving)
			continue;
		if (!s->received)
			s->others = received_of_all(f);
		s->received = circuit_of(s->far)->received;
		if (f->watch.is_on)
			watch_look(f);
	}
	__real_weir_mux_ring_wake_at(ring, fd, position);
}

/*
 * Sends all bytes in the rings. With the receiver's lock held, no more arrives than there are
 * receives, so no sender gets far ahead.
 */
static void watch(struct fair *f)
{
	unsigned int i;

	fair_gate(f, false);
	for (i = 0; i < f->count; i++)
		sender_fill(&f->senders[i]);
	pthread_mutex_lock(&f->receiver->lock);
	f->watch = (struct watch){ .is_on = true, .jain_min = 1 };
	fair_gate(f, true);
	pthread_mutex_unlock(&f->receiver->lock);
	fair_drain(f);
	pthread_mutex_lock(&f->receiver->lock);
	f->watch.is_on = false;
	pthread_mutex_unlock(&f->receiver->lock);
}

static void shares_are_as_they_should(struct fair *f)
{
	const struct watch *w = &f->watch;

	__atomic_store_n(&watched, f, __ATOMIC_RELEASE);
	watch(f);
	__atomic_store_n(&watched, NULL, __ATOMIC_RELEASE);
	if (w->rounds < ROUNDS || w->ahead_max > 2 * SEGMENT || w->off_max > 0.03 ||
	    w->jain_min < 0.99)
		fail_msg("in %u rounds somebody was %u bytes ahead, had a part of %f too much, and "
			 "Jain's index was %f",
			 w->rounds, (unsigned int)w->ahead_max, w->off_max, w->jain_min);
}

static void small_messages_get_the_same_share_as_large_messages(void **state)
{
	struct fair f;

	(void)state;
	fair_open(&f, one_class, 1);
	fair_add(&f, &f.owners[0], 1, 1024);
	fair_add(&f, &f.owners[0], 1, MESSAGE_MAX);
	fair_add(&f, &f.owners[0], 1, 100);
	fair_add(&f, &f.owners[0], 1, 65536);
	shares_are_as_they_should(&f);
	fair_close(&f);
}

/* A hundred messages get the same share as thousands, or as part of a single message. */
static void few_messages_at_a_time_get_the_same_share_as_many(void **state)
{
	struct fair f;

	(void)state;
	fair_open(&f, one_class, 1);
	fair_add(&f, &f.owners[0], 1, 1024)->depth = 100;
	fair_add(&f, &f.owners[0], 1, 64);
	fair_add(&f, &f.owners[0], 1, MESSAGE_MAX);
	fair_add(&f, &f.owners[0], 1, 40000)->depth = 3;
	shares_are_as_they_should(&f);
	fair_close(&f);
}

static void connections_share_by_weight(void **state)
{
	struct fair f;

	(void)state;
	fair_open(&f, one_class, 1);
	fair_add(&f, &f.owners[0], 1, 1024);
	fair_add(&f, &f.owners[0], 2, MESSAGE_MAX);
	fair_add(&f, &f.owners[0], 4, 5000);
	shares_are_as_they_should(&f);
	fair_close(&f);
}

static void the_accepting_end_chooses_its_sending_weights(void **state)
{
	unsigned int i;
	struct fair f;

	(void)state;
	fair_open(&f, one_class, 1);
	fair_add(&f, &f.owners[0], 1, 1024);
	fair_add(&f, &f.owners[0], 2, MESSAGE_MAX);
	fair_add(&f, &f.owners[0], 4, 5000);
	fair_turn_round(&f);
	for (i = 0; i < f.count; i++)
		assert_int_equal(weir_mux_conn_set_weight(f.senders[i].near, f.senders[i].weight),
				 0);
	assert_int_equal(weir_mux_conn_set_weight(f.senders[0].near, 0), -EINVAL);
	assert_int_equal(weir_mux_conn_set_weight(f.senders[0].near, WEIR_SCHED_WEIGHT_MAX + 1),
			 -EINVAL);
	shares_are_as_they_should(&f);
	fair_close(&f);
}

/* Each segment waits for the rate limit. */
static void connections_under_a_rate_limit_share_by_weight(void **state)
{
	struct fair f;

	(void)state;
	fair_open(&f, one_class, 1);
	f.rate_bytes_s = 4 << 20;
	fair_add(&f, &f.owners[0], 1, 1024);
	fair_add(&f, &f.owners[0], 2, MESSAGE_MAX);
	fair_add(&f, &f.owners[0], 4, 5000);
	shares_are_as_they_should(&f);
	fair_close(&f);
}

static void owners_open(struct fair *f)
{
	fair_open(f, one_class, 1);
	fair_limit(&f->owners[1], 2, 0);
	fair_limit(&f->owners[2], 4, 0);
	fair_add(f, &f->owners[0], 1, 1024);
	fair_add(f, &f->owners[0], 1, MESSAGE_MAX);
	fair_add(f, &f->owners[0], 2, 64);
	fair_add(f, &f->owners[1], 1, 1024);
	fair_add(f, &f->owners[2], 1, MESSAGE_MAX);
}

static void accounts_share_by_weight_with_any_number_of_connections(void **state)
{
	struct fair f;

	(void)state;
	owners_open(&f);
	shares_are_as_they_should(&f);
	fair_close(&f);
}

static void a_new_weight_applies_to_existing_connections(void **state)
{
	struct fair f;

	(void)state;
	owners_open(&f);
	fair_limit(&f.owners[0], 2, 0);
	fair_limit(&f.owners[2], 1, 0);
	shares_are_as_they_should(&f);
	fair_close(&f);
}

/* More processes bring a user no larger share. */
static void accounts_of_a_group_share_as_one(void **state)
{
	const struct weir_mux_sched_group *sched_groups[3];
	unsigned int i;
	struct fair f;

	(void)state;
	fair_open(&f, one_class, 1);
	weir_mux_account_set_group(&f.owners[1], f.owners[0].group);
	for (i = 0; i < 3; i++) {
		fair_add(&f, &f.owners[i], 1, 1024);
		sched_groups[i] = circuit_of(f.senders[i].near)->sched_group;
	}
	assert_ptr_equal(sched_groups[0], sched_groups[1]);
	assert_ptr_not_equal(sched_groups[0], sched_groups[2]);
	/* Both accounts pay for the bytes of one: for minutes. */
	fair_limit(&f.owners[0], 1, 1);
	sender_pass(&f.senders[0], 1000);
	assert_true(weir_mux_rate_limit_due_ns(
			    &weir_mux_account_current_group(&f.owners[1])->rate) > weir_now_ns());
	assert_int_equal(
		weir_mux_rate_limit_due_ns(&weir_mux_account_current_group(&f.owners[2])->rate), 0);
	fair_limit(&f.owners[0], 1, 0);
	f.owners[1].group->nr_conns_max = 2;
	assert_int_equal(weir_mux_account_take_conn(&f.owners[1]), -EDQUOT);
	assert_int_equal(weir_mux_account_take_conn(&f.owners[0]), -EDQUOT);
	fair_close(&f);
}

static void owner_joins(struct weir_mux_account *account, struct weir_mux_account_group *group)
{
	pthread_mutex_lock(&account->mux->lock);
	weir_mux_account_set_group(account, group);
	pthread_mutex_unlock(&account->mux->lock);
}

/*
 * An account moves to another group, with another weight, while all senders are active. Bytes
 * read by then, up to a quarter of a ring, may get no credit before the end of the watch; a
 * weight of 4 would leave too few rounds.
 */
static void an_account_in_another_group_shares_there(void **state)
{
	unsigned int i;
	struct fair f;

	(void)state;
	fair_open(&f, one_class, 1);
	weir_mux_account_set_group(&f.owners[1], f.owners[0].group);
	fair_add(&f, &f.owners[0], 1, 1024);
	fair_add(&f, &f.owners[1], 1, MESSAGE_MAX);
	fair_add(&f, &f.owners[1], 2, 64);
	fair_add(&f, &f.owners[2], 1, 1024);
	for (i = 0; i < f.count; i++)
		sender_fill(&f.senders[i]);
	owner_joins(&f.owners[1], &f.owners[1].own);
	fair_limit(&f.owners[1], 3, 0);
	fair_drain(&f);
	shares_are_as_they_should(&f);
	fair_close(&f);
}

/* Nothing is in flight or ready, and each connection is in its account's group. */
static bool nothing_is_counted(struct fair *f)
{
	struct weir_mux_remote *remote = circuit_of(f->senders[0].near)->remote;
	bool nothing;
	unsigned int i;

	while (!weir_mux_remote_claim(remote))
		sched_yield();
	nothing = !remote->posted && !remote->sched.low_bytes && !remote->sched.low_floor;
	for (i = 0; i < f->count; i++) {
		const struct weir_mux_vconn *conn = circuit_of(f->senders[i].near);

		nothing &= !conn->sched_group->bundle.competing;
		nothing &= conn->sched_group->group ==
			   weir_mux_account_current_group(conn->account);
	}
	weir_mux_remote_release(remote);
	return nothing;
}

/* Moves to and fro between a group under a rate limit and a group without. */
static void an_account_changing_groups_loses_no_message(void **state)
{
	unsigned int i, k;
	struct fair f;

	(void)state;
	fair_open(&f, two_levels, 2);
	for (i = 0; i < 6; i++)
		fair_add(&f, &f.owners[i % 3], 1 + i % 2, i % 2 ? 1000 : MESSAGE_MAX);
	fair_limit(&f.owners[0], 1, 64 << 20);
	for (k = 0; k < 10 * TRIES; k++) {
		for (i = 0; i < f.count; i++)
			sender_fill(&f.senders[i]);
		owner_joins(&f.owners[1], k % 2 ? &f.owners[1].own : f.owners[0].group);
		for (i = 0; i < f.count; i++)
			sender_drain(&f.senders[i]);
	}
	fair_limit(&f.owners[0], 1, 0);
	fair_drain(&f);
	while (!nothing_is_counted(&f))
		sched_yield();
	fair_close(&f);
}

/* Nothing overtakes posted work requests: an urgent message waits for these. */
static void an_urgent_message_waits_for_one_segment_of_each_connection(void **state)
{
	struct fair_sender *urgent;
	struct weir_mux_info info;
	unsigned int i, k;
	struct fair f;

	(void)state;
	fair_open(&f, two_levels, 2);
	for (i = 0; i < 4; i++)
		fair_add(&f, &f.owners[i % 2], 1 + i, i % 2 ? 1024 : MESSAGE_MAX);
	f.class = WEIR_MUX_CLASS_URGENT;
	fair_add(&f, &f.owners[2], 1, 1024);
	urgent = &f.senders[4];
	for (i = 0; i < 10 * TRIES; i++) {
		for (k = 0; k < 4; k++)
			sender_fill(&f.senders[k]);
		assert_int_equal(weir_mux_conn_send(urgent->near, urgent->buffer, 1024, 0), 0);
		urgent->sent = circuit_of(urgent->near)->app.out.position;
		for (k = 0; k < 5; k++)
			sender_drain(&f.senders[k]);
		weir_mux_local_info(f.client, &info);
		assert_true(info.ahead_bytes_max <= 4 * SEGMENT);
		sched_yield();
	}
	fair_close(&f);
}

/* Waits for completions of @bytes more than @before. */
static void wait_sent(const struct fair *f, uint64_t before, uint64_t bytes)
{
	struct weir_mux_info info;

	do {
		sched_yield();
		weir_mux_local_info(f->client, &info);
	} while (info.bytes_sent - before < bytes);
}

/*
 * Arrived messages are handled in order of level: with the server's lock held, all else arrives
 * before the urgent message.
 */
static void an_urgent_message_waits_at_the_receiver_for_two_segments_at_most(void **state)
{
	struct weir_mux_info info;
	struct fair_sender *urgent;
	uint64_t all = 0;
	unsigned int i;
	struct fair f;

	(void)state;
	fair_open(&f, long_segments, 2);
	for (i = 0; i < SENDERS_MAX - 1; i++)
		fair_add(&f, &f.owners[0], 1, MESSAGE_MAX);
	f.class = WEIR_MUX_CLASS_URGENT;
	urgent = fair_add(&f, &f.owners[1], 1, 1024);
	weir_mux_local_info(f.client, &info);
	pthread_mutex_lock(&f.server->lock);
	for (i = 0; i < SENDERS_MAX - 1; i++) {
		struct fair_sender *s = &f.senders[i];
		uint32_t room = circuit_of(s->far)->app.in.size;

		sender_fill(s);
		/*
		 * Segments sent while the ring was being filled made room for more than the peer
		 * has.
		 */
		all += s->sent < room ? s->sent : room;
	}
	wait_sent(&f, info.bytes_sent, all);
	assert_int_equal(weir_mux_conn_send(urgent->near, urgent->buffer, 1024, 0), 0);
	urgent->sent = circuit_of(urgent->near)->app.out.position;
	wait_sent(&f, info.bytes_sent, all + urgent->sent);
	__atomic_store_n(&watched, &f, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&f.server->lock);
	fair_drain(&f);
	pthread_mutex_lock(&f.server->lock);
	__atomic_store_n(&watched, NULL, __ATOMIC_RELEASE);
	assert_true(all > 20 * WIRE_MUX_SEGMENT_MAX);
	assert_in_range(urgent->others, 0, 2 * WIRE_MUX_SEGMENT_MAX);
	pthread_mutex_unlock(&f.server->lock);
	fair_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_messages_get_the_same_share_as_large_messages),
		cmocka_unit_test(few_messages_at_a_time_get_the_same_share_as_many),
		cmocka_unit_test(connections_share_by_weight),
		cmocka_unit_test(the_accepting_end_chooses_its_sending_weights),
		cmocka_unit_test(connections_under_a_rate_limit_share_by_weight),
		cmocka_unit_test(accounts_share_by_weight_with_any_number_of_connections),
		cmocka_unit_test(a_new_weight_applies_to_existing_connections),
		cmocka_unit_test(accounts_of_a_group_share_as_one),
		cmocka_unit_test(an_account_in_another_group_shares_there),
		cmocka_unit_test(an_account_changing_groups_loses_no_message),
		cmocka_unit_test(an_urgent_message_waits_for_one_segment_of_each_connection),
		cmocka_unit_test(an_urgent_message_waits_at_the_receiver_for_two_segments_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
