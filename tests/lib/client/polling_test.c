/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib polling; devices: softnic rxe; timeout: 180 */
/* Every polling mode does the same work; the modes differ in how often a thread sleeps. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "tests/support/libweir_fixture.h"

#define ROUNDS 200

static const enum weir_polling modes[] = {
	WEIR_POLLING_ADAPTIVE,	  WEIR_POLLING_BUSY,   WEIR_POLLING_EVENT,
	WEIR_POLLING_EVENT_BATCH, WEIR_POLLING_HYBRID,
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

static void read_back(struct weir_region *region, unsigned int round)
{
	char to[64], from[64];

	memset(to, (int)round, sizeof(to));
	assert_int_equal(weir_write(region, round * 64, to, sizeof(to)), 0);
	assert_int_equal(weir_read(region, round * 64, from, sizeof(from)), 0);
	assert_memory_equal(to, from, sizeof(to));
}

static void call_donor(struct weir_session *session)
{
	char answer[8];
	size_t length;

	assert_int_equal(weir_call(session, "echo", 4, answer, sizeof(answer), &length), 0);
	assert_int_equal(length, 4);
}

static void write_async(struct weir_region *region, struct weir_memory *memory, void *from,
			struct completion_tally *tally, unsigned int count)
{
	struct weir_completion completion = { .done = tally_done, .arg = tally };
	struct weir_iov iov = { from, 64, memory };
	unsigned int i;

	for (i = 0; i < count; i++)
		assert_int_equal(weir_write_async(region, i * 64, &iov, 1, &completion, NULL), 0);
	tally_wait(tally, (int)count);
	assert_int_equal(tally->status, 0);
}

/* Blocking, call and asynchronous, with a thread and without. */
static struct weir_session_info work(const struct donor_process *donor,
				     const struct weir_session_options *options)
{
	struct weir_session *session = session_to(donor, options);
	struct weir_region *region = region_of(session, MIB);
	struct weir_session_info info;
	struct weir_memory *memory;
	struct completion_tally tally = { 0 };
	static char from[64];
	unsigned int i, rounds = (unsigned int)fixture_rounds(ROUNDS);

	assert_int_equal(weir_memory_register(session, from, sizeof(from), &memory, NULL), 0);
	for (i = 0; i < rounds; i++) {
		read_back(region, i);
		call_donor(session);
	}
	if (!options->no_thread)
		write_async(region, memory, from, &tally, rounds);
	weir_session_info(session, &info, sizeof(info));
	weir_memory_deregister(memory);
	weir_region_close(region);
	weir_session_close(session);
	return info;
}

static void all_of_them_do_the_same_work(void **in)
{
	struct donor_process donor;
	unsigned int i;

	(void)in;
	donor_process_start(&donor, "1048576", NULL);
	for (i = 0; i < 2 * MODES; i++) {
		struct weir_session_options options = { .polling = modes[i % MODES],
							.no_thread = i >= MODES,
							TUNING(.poll_wcs_max = 1 + i % 3) };
		struct weir_session_info info = work(&donor, &options);

		assert_true(info.requests >= 2 * (uint64_t)fixture_rounds(ROUNDS));
		assert_int_equal(info.errors, 0);
	}
	donor_process_stop(&donor);
}

static unsigned int yields; /* by the library; atomic */

int __real_sched_yield(void);
int __wrap_sched_yield(void);

int __wrap_sched_yield(void)
{
	__atomic_fetch_add(&yields, 1, __ATOMIC_RELAXED);
	return __real_sched_yield();
}

/*
 * A thread that yields runs again only after all others. Meanwhile no thread polls completions
 * or arms the CQ.
 */
static void who_is_about_to_sleep_gives_no_turn_away(void **in)
{
	static const enum weir_polling sleepers[] = {
		WEIR_POLLING_EVENT,
		WEIR_POLLING_EVENT_BATCH,
		WEIR_POLLING_HYBRID,
	};
	struct donor_process donor;
	unsigned int i;

	(void)in;
	donor_process_start(&donor, "1048576", NULL);
	for (i = 0; i < sizeof(sleepers) / sizeof(sleepers[0]); i++) {
		const struct weir_session_options options = { .polling = sleepers[i] };
		unsigned int before = __atomic_load_n(&yields, __ATOMIC_RELAXED);

		work(&donor, &options);
		assert_int_equal(__atomic_load_n(&yields, __ATOMIC_RELAXED), before);
	}
	donor_process_stop(&donor);
}

static struct ibv_cq *cq_of(struct weir_session *session, unsigned int channel)
{
	struct ibv_cq *cq = NULL;
	struct ibv_pd *pd;
	struct ibv_qp *qp;

	assert_int_equal(weir_session_verbs(session, channel, &pd, &cq, &qp), 0);
	assert_ptr_equal(qp->send_cq, cq);
	return cq;
}

static void channels_share_as_many_completion_queues_as_asked_for(void **in)
{
	struct weir_session_tuning tuning = { .size = sizeof(tuning) };
	struct weir_session_options options = { .size = sizeof(options),
						.channels = 4,
						.tuning = &tuning };
	struct weir_session *session;
	struct donor_process donor;
	unsigned int i;

	(void)in;
	donor_process_start(&donor, "1048576", NULL);
	for (tuning.cqs = 0; tuning.cqs <= 4; tuning.cqs++) {
		unsigned int cqs = tuning.cqs ? tuning.cqs : options.channels;

		session = session_to(&donor, &options);
		for (i = 1; i < options.channels; i++) {
			assert_ptr_equal(cq_of(session, i), cq_of(session, i % cqs));
			if (i < cqs)
				assert_ptr_not_equal(cq_of(session, i), cq_of(session, i - 1));
		}
		weir_session_close(session);
	}
	assert_int_equal(weir_session_open(donor.address, &options, &session, NULL), -EINVAL);
	donor_process_stop(&donor);
}

static void with_shared_completion_queues_they_do_the_same_work(void **in)
{
	struct donor_process donor;
	unsigned int i;

	(void)in;
	donor_process_start(&donor, "1048576", NULL);
	for (i = 0; i < 2 * MODES; i++) {
		struct weir_session_options options = { .polling = modes[i % MODES],
							.no_thread = i >= MODES,
							.channels = 3,
							TUNING(.cqs = 1 + i % 2,
							       .comp_vectors = 1) };
		struct weir_session_info info = work(&donor, &options);

		assert_true(info.requests >= 2 * (uint64_t)fixture_rounds(ROUNDS));
		assert_int_equal(info.errors, 0);
	}
	donor_process_stop(&donor);
}

static void busy_never_arms(void **in)
{
	const struct weir_session_options options = { .polling = WEIR_POLLING_BUSY };
	struct weir_session_info info;
	struct donor_process donor;

	(void)in;
	donor_process_start(&donor, "1048576", NULL);
	info = work(&donor, &options);
	assert_int_equal(info.arms, 0);
	assert_int_equal(info.sleeps, 0);
	donor_process_stop(&donor);
}

/* The answer takes a thread of another process, so a caller that polls only once must sleep. */
static void event_sleeps_for_an_answer(void **in)
{
	const struct weir_session_options options = { .polling = WEIR_POLLING_EVENT };
	struct weir_session_info info;
	struct donor_process donor;

	(void)in;
	donor_process_start(&donor, "1048576", NULL);
	info = work(&donor, &options);
	assert_true(info.arms > 0);
	assert_true(info.sleeps > 0);
	assert_true(info.events > 0);
	donor_process_stop(&donor);
}

/* An unsolicited message from the donor to an idle client. */
static void told(void *arg, struct weir_peer *peer, struct weir_call *call, const void *data,
		 size_t length)
{
	(void)peer;
	(void)call;
	assert_memory_equal(data, "p", 1);
	assert_int_equal(length, 1);
	tally_done(arg, 0);
}

static void what_nobody_waits_for_arrives_too(void **in)
{
	struct donor_process donor;
	unsigned int i;

	(void)in;
	donor_process_start(&donor, "1048576", NULL);
	for (i = 0; i < MODES; i++) {
		struct completion_tally tally = { 0 };
		const struct weir_session_options options = {
			.polling = modes[i],
			.on_message = told,
			.arg = &tally,
		};
		struct weir_session *session = session_to(&donor, &options);
		int sent;

		for (sent = 1; sent <= 20; sent++) {
			assert_int_equal(weir_send(session, "p", 1), 0);
			tally_wait(&tally, sent);
		}
		weir_session_close(session);
	}
	donor_process_stop(&donor);
}

static void what_makes_no_sense_is_refused(void **in)
{
	(void)in;
	options_refused((struct weir_session_options){ .polling = 77 }, "77");
	options_refused((struct weir_session_options){ TUNING(.poll_wcs_max = 33) }, "33");
	options_refused((struct weir_session_options){ TUNING(.poll_percent_max = 101) }, "101");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_them_do_the_same_work),
		cmocka_unit_test(who_is_about_to_sleep_gives_no_turn_away),
		cmocka_unit_test(channels_share_as_many_completion_queues_as_asked_for),
		cmocka_unit_test(with_shared_completion_queues_they_do_the_same_work),
		cmocka_unit_test(busy_never_arms),
		cmocka_unit_test(event_sleeps_for_an_answer),
		cmocka_unit_test(what_nobody_waits_for_arrives_too),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
