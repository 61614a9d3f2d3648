/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who gets how much, at the receiver, by bytes: what several connections have to send lies in their
 * rings before the first byte goes, and all goes at once. With each piece that arrives the test
 * looks, in the poller's place (the linker wraps weir_mux_ring_wake_at()), and until one of them has
 * nothing left it finds the bytes that have arrived shared as they should be. Nothing depends on
 * who runs when.
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

static struct fair *watched; /* set before anything is sent */

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

/* A piece is in a ring, and the poller holds the receiver's lock; or it is about something else. */
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
 * All that is in the rings goes. While the receiver's lock is held no more arrives than it has
 * receives for, so that nobody is far ahead before all may send.
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

static void small_messages_get_as_much_as_large_ones(void **state)
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

/* Who has a hundred messages waiting gets as much as who has thousands, or a part of a single one. */
static void few_messages_at_a_time_get_as_much_as_many(void **state)
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

static void connections_share_by_their_weights(void **state)
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

static void who_has_accepted_says_by_which_weights_he_sends(void **state)
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
		assert_int_equal(weir_mux_conn_weigh(f.senders[i].near, f.senders[i].weight), 0);
	assert_int_equal(weir_mux_conn_weigh(f.senders[0].near, 0), -EINVAL);
	assert_int_equal(weir_mux_conn_weigh(f.senders[0].near, WEIR_SCHED_WEIGHT_MAX + 1),
			 -EINVAL);
	shares_are_as_they_should(&f);
	fair_close(&f);
}

/* Each segment has to wait until it is paid for. */
static void connections_below_a_ceiling_share_by_their_weights(void **state)
{
	struct fair f;

	(void)state;
	fair_open(&f, one_class, 1);
	f.ceiling = 4 << 20;
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

static void owners_share_by_their_weights_however_many_connections_they_have(void **state)
{
	struct fair f;

	(void)state;
	owners_open(&f);
	shares_are_as_they_should(&f);
	fair_close(&f);
}

static void another_weight_holds_for_the_connections_that_there_are(void **state)
{
	struct fair f;

	(void)state;
	owners_open(&f);
	fair_limit(&f.owners[0], 2, 0);
	fair_limit(&f.owners[2], 1, 0);
	shares_are_as_they_should(&f);
	fair_close(&f);
}

/* So that more processes bring a user no more. */
static void owners_of_a_party_have_one_share_between_them(void **state)
{
	const struct weir_mux_sched_group *sched_groups[3];
	unsigned int i;
	struct fair f;

	(void)state;
	fair_open(&f, one_class, 1);
	weir_mux_account_set_group(&f.owners[1], f.owners[0].party);
	for (i = 0; i < 3; i++) {
		fair_add(&f, &f.owners[i], 1, 1024);
		sched_groups[i] = circuit_of(f.senders[i].near)->sched_group;
	}
	assert_ptr_equal(sched_groups[0], sched_groups[1]);
	assert_ptr_not_equal(sched_groups[0], sched_groups[2]);
	/* What one has sent is paid for by all of them: for minutes. */
	fair_limit(&f.owners[0], 1, 1);
	sender_pass(&f.senders[0], 1000);
	assert_true(weir_mux_rate_limit_due_ns(
			    &weir_mux_account_current_group(&f.owners[1])->rate) > weir_now_ns());
	assert_int_equal(
		weir_mux_rate_limit_due_ns(&weir_mux_account_current_group(&f.owners[2])->rate), 0);
	fair_limit(&f.owners[0], 1, 0);
	f.owners[1].party->nr_conns_max = 2;
	assert_int_equal(weir_mux_account_take_conn(&f.owners[1]), -EDQUOT);
	assert_int_equal(weir_mux_account_take_conn(&f.owners[0]), -EDQUOT);
	fair_close(&f);
}

static void owner_joins(struct weir_mux_account *account, struct weir_mux_account_group *party)
{
	pthread_mutex_lock(&account->mux->lock);
	weir_mux_account_set_group(account, party);
	pthread_mutex_unlock(&account->mux->lock);
}

/*
 * Something of all is under way when one of two owners of a party is of another, with a weight of its own. What
 * has been read of that, up to a quarter of a ring, may not be granted anew before the end of the watch: with a
 * weight of 4 too few rounds would be left.
 */
static void who_is_of_another_party_has_his_share_there(void **state)
{
	unsigned int i;
	struct fair f;

	(void)state;
	fair_open(&f, one_class, 1);
	weir_mux_account_set_group(&f.owners[1], f.owners[0].party);
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

/* Nothing is in flight, nor does anybody compete, and each is of his account's party. */
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
		nothing &= conn->sched_group->party ==
			   weir_mux_account_current_group(conn->account);
	}
	weir_mux_remote_release(remote);
	return nothing;
}

/* To and fro, from and to one that has to wait for its ceiling and one that has not. */
static void who_changes_parties_amid_his_messages_loses_none(void **state)
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
		owner_joins(&f.owners[1], k % 2 ? &f.owners[1].own : f.owners[0].party);
		for (i = 0; i < f.count; i++)
			sender_drain(&f.senders[i]);
	}
	fair_limit(&f.owners[0], 1, 0);
	fair_drain(&f);
	while (!nothing_is_counted(&f))
		sched_yield();
	fair_close(&f);
}

/* What is posted nobody overtakes: it is what an urgent message waits for. */
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

/* The client has sent @bytes more than it had @before, completions seen. */
static void wait_sent(const struct fair *f, uint64_t before, uint64_t bytes)
{
	struct weir_mux_info info;

	do {
		sched_yield();
		weir_mux_local_info(f->client, &info);
	} while (info.bytes_sent - before < bytes);
}

/*
 * What has arrived nobody overtakes, either, but by being dealt with first: while the server's
 * lock is held all else lies there before the urgent message.
 */
static void an_urgent_message_waits_at_the_receiver_for_a_segment_or_two(void **state)
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
		/* What was sent while it filled made room for more than the other end has. */
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
		cmocka_unit_test(small_messages_get_as_much_as_large_ones),
		cmocka_unit_test(few_messages_at_a_time_get_as_much_as_many),
		cmocka_unit_test(connections_share_by_their_weights),
		cmocka_unit_test(who_has_accepted_says_by_which_weights_he_sends),
		cmocka_unit_test(connections_below_a_ceiling_share_by_their_weights),
		cmocka_unit_test(owners_share_by_their_weights_however_many_connections_they_have),
		cmocka_unit_test(another_weight_holds_for_the_connections_that_there_are),
		cmocka_unit_test(owners_of_a_party_have_one_share_between_them),
		cmocka_unit_test(who_is_of_another_party_has_his_share_there),
		cmocka_unit_test(who_changes_parties_amid_his_messages_loses_none),
		cmocka_unit_test(an_urgent_message_waits_for_one_segment_of_each_connection),
		cmocka_unit_test(an_urgent_message_waits_at_the_receiver_for_a_segment_or_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
