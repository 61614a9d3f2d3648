/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib reconnect; devices: softnic rxe; timeout: 180 */
/* Channels that break while the donor lives: they reconnect, and nothing is lost silently. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/rng.h"
#include "tests/support/libweir_fixture.h"
#include "lib/client/session.h"
#include "tests/support/stop_process.h"

#define READS 12 /* at a time */
#define BLOCK 4096u
#define BLOCKS 256u
#define CHANNELS 3u

struct reconnect_state {
	struct donor_process donor;
	struct weir_session *session;
	struct weir_region *region;
	struct weir_pool *pool;
	struct completion_tally down;
	int handled;
	char order[16]; /* the second byte of each handled message */
	bool stop;
};

static void on_down(void *arg, int status)
{
	tally_done(&((struct reconnect_state *)arg)->down, status);
}

static void on_message(void *arg, struct weir_peer *peer, struct weir_call *call, const void *data,
		       size_t length)
{
	struct reconnect_state *s = arg;

	(void)peer;
	(void)call;
	if (length > 1 && s->handled < (int)sizeof(s->order))
		s->order[s->handled] = ((const char *)data)[1];
	__atomic_fetch_add(&s->handled, 1, __ATOMIC_RELEASE);
}

static struct weir_region *exclusive_region(struct weir_session *session)
{
	struct weir_region *region;

	assert_int_equal(weir_region_create(session, NULL, BLOCKS * BLOCK, WEIR_REGION_EXCLUSIVE,
					    &region, NULL),
			 0);
	return region;
}

static int setup_with(void **out, struct weir_session_options options)
{
	struct reconnect_state *s = calloc(1, sizeof(*s));

	options.channels = CHANNELS;
	options.retries = options.retries ? options.retries : 50;
	options.on_down = on_down;
	options.on_message = on_message;
	options.arg = s;
	donor_process_start(&s->donor, "67108864", NULL);
	s->session = session_to(&s->donor, &options);
	s->region = exclusive_region(s->session);
	assert_int_equal(weir_pool_create(s->session, MIB, READS, &s->pool, NULL), 0);
	*out = s;
	return 0;
}

static int setup(void **out)
{
	return setup_with(out, (struct weir_session_options){ 0 });
}

static int setup_shared(void **out)
{
	return setup_with(out, (struct weir_session_options){ TUNING(.cqs = 1) });
}

static int setup_of_all(void **out)
{
	return setup_with(out, (struct weir_session_options){ .polling = WEIR_POLLING_SCQ });
}

static int setup_impatient(void **out)
{
	return setup_with(out, (struct weir_session_options){ .timeout_ns = 2 * SECOND_NS });
}

static int setup_without_retries(void **out)
{
	return setup_with(out, (struct weir_session_options){ .retries = WEIR_RETRIES_NONE,
							      .no_thread = true });
}

static int setup_driven(void **out)
{
	return setup_with(out, (struct weir_session_options){ .no_thread = true });
}

static int teardown(void **in)
{
	struct reconnect_state *s = *in;

	weir_pool_destroy(s->pool);
	weir_region_close(s->region);
	weir_session_close(s->session);
	donor_process_stop(&s->donor);
	free(s);
	return 0;
}

static struct weir_session_info info_of(struct reconnect_state *s)
{
	struct weir_session_info info;

	weir_session_info(s->session, &info, sizeof(info));
	return info;
}

/* Break a QP as a pulled cable does. Return: false if the channel is down just now. */
static bool break_channel(struct reconnect_state *s, unsigned int channel)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct weir_session_link *link = &s->session->links[channel];
	bool is_up;

	weir_session_lock(s->session);
	is_up = link->core.state == WEIR_LINK_UP;
	if (is_up)
		ibv_modify_qp(link->id->qp, &attr, IBV_QP_STATE);
	weir_session_unlock(s->session);
	return is_up;
}

/* The same, but noticed at once even on an unused channel. */
static void fail_channel(struct reconnect_state *s, unsigned int channel)
{
	weir_session_lock(s->session);
	weir_session_link_fail(&s->session->links[channel]);
	weir_session_unlock(s->session);
}

/* Far longer than any request or connection attempt takes. */
static uint64_t patience_ns(void)
{
	return now_ns() + 60 * SECOND_NS;
}

/* On a hang, say where and exit: the teardown would hang too. */
static void must_not_hang(struct reconnect_state *s, uint64_t until_ns, const char *what)
{
	const struct weir_session_link *links = s->session->links;

	if (now_ns() < until_ns)
		return;
	fprintf(stderr,
		"%s: for a minute; mended %llu times, channels in states %d, %d and %d, with %u, "
		"%u and %u work requests\n",
		what, (unsigned long long)s->session->counters->reconnects, links[0].core.state,
		links[1].core.state, links[2].core.state, links[0].core.in_flight.count,
		links[1].core.in_flight.count, links[2].core.in_flight.count);
	abort();
}

/* Each read has its own buffer, because several threads may run reads. */
static int read_much(struct reconnect_state *s)
{
	uint64_t until_ns = patience_ns();
	struct completion_tally tally = { 0 };
	struct weir_completion completion = { .done = tally_done, .arg = &tally };
	struct weir_iov iov[READS];
	int i, submitted = 0;

	for (i = 0; i < READS; i++) {
		iov[i] = (struct weir_iov){ weir_pool_get(s->pool), fixture_scaled(MIB),
					    weir_pool_memory(s->pool) };
		submitted += !weir_read_async(s->region, 0, &iov[i], 1, &completion, NULL);
	}
	while (__atomic_load_n(&tally.done, __ATOMIC_ACQUIRE) < submitted) {
		must_not_hang(s, until_ns, "reads are not done");
		weir_session_process(s->session);
	}
	for (i = 0; i < READS; i++)
		weir_pool_put(s->pool, iov[i].addr);
	return submitted ? tally.status : -ENOTCONN;
}

static void read_until_mended(struct reconnect_state *s, unsigned int times)
{
	uint64_t until_ns = patience_ns();

	while (info_of(s).reconnects < times) {
		must_not_hang(s, until_ns, "reads are done, but the channel is not mended");
		assert_int_equal(read_much(s), 0);
	}
}

static void wait_mended(struct reconnect_state *s, unsigned int times)
{
	uint64_t deadline_ns = now_ns() + 20 * SECOND_NS;
	struct weir_session_info info;

	do {
		assert_true(now_ns() < deadline_ns);
		weir_session_process(s->session);
		usleep(200);
		info = info_of(s);
	} while (info.reconnects < times || info.channels < CHANNELS);
}

static void fill(char *block, uint32_t number)
{
	uint32_t i;

	for (i = 0; i < BLOCK; i += sizeof(number))
		memcpy(block + i, &number, sizeof(number));
}

static void all_works(struct reconnect_state *s)
{
	char out[BLOCK], in[BLOCK], reply[16];
	size_t length;
	uint32_t i, blocks = fixture_rounds(BLOCKS);

	for (i = 0; i < blocks; i++) {
		fill(out, i);
		assert_int_equal(weir_write(s->region, i * BLOCK, out, BLOCK), 0);
		assert_int_equal(weir_read(s->region, i * BLOCK, in, BLOCK), 0);
		assert_memory_equal(in, out, BLOCK);
	}
	assert_int_equal(weir_call(s->session, "echo", 4, reply, sizeof(reply), &length), 0);
	assert_int_equal(length, 4);
}

static void each_channel_comes_back(void **in)
{
	struct reconnect_state *s = *in;
	unsigned int i, times = fixture_rounds(3) * CHANNELS;

	for (i = 0; i < times; i++) {
		fail_channel(s, i % CHANNELS);
		read_until_mended(s, i + 1);
		wait_mended(s, i + 1);
		all_works(s);
	}
	assert_int_equal(s->down.done, 0);
}

/* A reconnect compares the device's name, which the caller may have freed. */
static void the_name_of_the_device_is_copied(void **in)
{
	struct reconnect_state *s = *in, other = { .donor = s->donor };
	struct weir_session_options options = { .channels = CHANNELS, .retries = 50 };
	struct weir_session_info info = info_of(s);

	options.device = info.device;
	other.session = session_to(&s->donor, &options);
	memset(info.device, 'x', strlen(info.device));
	fail_channel(&other, 0);
	wait_mended(&other, 1);
	weir_session_close(other.session);
}

/*
 * On any channel the QP flushes the read; without a thread nothing has noticed the break
 * before.
 */
static void without_retries_a_lost_read_ends(void **in)
{
	struct reconnect_state *s = *in;
	unsigned int i;
	char byte;

	for (i = 0; i < CHANNELS; i++)
		assert_true(break_channel(s, i));
	assert_int_equal(weir_read(s->region, 0, &byte, 1), -ECONNRESET);
	assert_int_equal(info_of(s).retries, 0);
}

static void it_comes_back_without_a_thread(void **in)
{
	struct reconnect_state *s = *in;

	fail_channel(s, 1);
	while (!info_of(s).reconnects)
		assert_int_equal(read_much(s), 0);
	wait_mended(s, 1);
	all_works(s);
}

struct reconnect_writer {
	struct reconnect_state *s;
	pthread_t thread;
	uint32_t number;
	int status;
	uint32_t rounds;
};

/* Each block has one writer; completed writes must be there, and no older data. */
static void *write_and_check(void *arg)
{
	struct reconnect_writer *w = arg;
	struct weir_region *region = w->s->region;
	uint64_t offset = w->number * BLOCK;
	char out[BLOCK], in[BLOCK];

	while (!w->status && !__atomic_load_n(&w->s->stop, __ATOMIC_RELAXED)) {
		fill(out, (w->rounds + 1) * 16 + w->number);
		w->status = weir_write(region, offset, out, BLOCK);
		if (!w->status)
			w->status = weir_read(region, offset, in, BLOCK);
		if (!w->status && memcmp(in, out, BLOCK))
			w->status = -EIO;
		__atomic_store_n(&w->rounds, w->rounds + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void exclusive_writers_do_not_notice(void **in)
{
	struct reconnect_state *s = *in;
	struct reconnect_writer writers[4];
	uint64_t random = 1, until_ns;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		writers[i] = (struct reconnect_writer){ .s = s, .number = i };
		pthread_create(&writers[i].thread, NULL, write_and_check, &writers[i]);
	}
	for (i = 0; i < 4; i++) {
		until_ns = patience_ns();
		while (!__atomic_load_n(&writers[i].rounds, __ATOMIC_ACQUIRE)) {
			must_not_hang(s, until_ns, "a writer's first round");
			usleep(1000);
		}
	}
	for (i = 0; i < 20; i++) {
		while (!break_channel(s, weir_rng_next(&random) % CHANNELS))
			usleep(1000);
		usleep(weir_rng_next(&random) % 20000);
	}
	__atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 4; i++) {
		pthread_join(writers[i].thread, NULL);
		assert_int_equal(writers[i].status, 0);
	}
	assert_int_equal(s->down.done, 0);
	assert_true(info_of(s).reconnects > 0);
}

static void all_channels_may_break_together(void **in)
{
	struct reconnect_state *s = *in;
	unsigned int i;

	for (i = 0; i < CHANNELS; i++)
		fail_channel(s, i);
	read_until_mended(s, CHANNELS);
	wait_mended(s, CHANNELS);
	all_works(s);
}

static void answered(void *arg, int status, const void *data, size_t length)
{
	(void)data;
	(void)length;
	tally_done(arg, status);
}

static void a_call_under_way_ends_and_the_next_is_answered(void **in)
{
	struct reconnect_state *s = *in;
	struct completion_tally tally = { 0 };

	assert_int_equal(weir_call_async(s->session, "n", 1, 0, answered, &tally), 0);
	assert_true(break_channel(s, 0));
	tally_wait(&tally, 1);
	assert_int_equal(tally.status, -ECONNRESET);
	wait_mended(s, 1);
	all_works(s);
}

/* The messages are accepted while channel 0 seems up, and fail before the post. */
static void messages_that_were_never_posted_arrive_in_order(void **in)
{
	struct reconnect_state *s = *in;
	char message[2] = "p";

	weir_session_lock(s->session);
	for (message[1] = 'a'; message[1] <= 'e'; message[1]++)
		assert_int_equal(weir_message_send(s->session, WIRE_APP_ONEWAY, 0, message, 2), 0);
	weir_session_link_fail(&s->session->links[0]);
	for (; message[1] <= 'h'; message[1]++)
		assert_int_equal(weir_message_send(s->session, WIRE_APP_ONEWAY, 0, message, 2), 0);
	weir_session_unlock(s->session);
	wait_mended(s, 1);
	while (__atomic_load_n(&s->handled, __ATOMIC_ACQUIRE) < 8)
		weir_session_process(s->session);
	assert_memory_equal(s->order, "abcdefgh", 8);
	assert_int_equal(s->down.done, 0);
	all_works(s);
}

static void a_call_that_was_not_sent_yet_is_answered_later(void **in)
{
	struct reconnect_state *s = *in;
	struct completion_tally sent = { 0 }, unsent = { 0 };

	assert_int_equal(weir_call_async(s->session, "n", 1, 0, answered, &sent), 0);
	fail_channel(s, 0);
	assert_int_equal(weir_call_async(s->session, "e", 1, 0, answered, &unsent), 0);
	while (!sent.done || !unsent.done)
		weir_session_process(s->session);
	assert_int_equal(sent.status, -ECONNRESET);
	assert_int_equal(unsent.status, 0);
	wait_mended(s, 1);
	all_works(s);
}

/*
 * The donor has sent a message that no channel will deliver, and cannot tell whether it
 * arrived.
 */
static void a_donor_that_may_have_lost_a_message_refuses(void **in)
{
	struct reconnect_state *s = *in;
	struct weir_session *other = session_to(&s->donor, NULL);
	char reply[16], byte;
	size_t length;

	assert_int_equal(weir_call(s->session, "s", 1, reply, sizeof(reply), &length), 0);
	assert_true(break_channel(s, 0));
	assert_int_equal(weir_call(other, "S", 1, reply, sizeof(reply), &length), 0);
	while (!s->down.done)
		weir_session_process(s->session);
	assert_int_equal(s->down.status, -ESTALE);
	assert_int_equal(weir_read(s->region, 0, &byte, 1), -ENOTCONN);
	weir_session_close(other);
}

static void a_donor_that_is_stopped_ends_the_session(void **in)
{
	struct reconnect_state *s = *in;
	uint64_t begin_ns = now_ns();
	char byte;

	stop_process(s->donor.pid);
	fail_channel(s, 1);
	while (!__atomic_load_n(&s->down.done, __ATOMIC_ACQUIRE) &&
	       now_ns() - begin_ns < 60 * SECOND_NS)
		read_much(s);
	kill(s->donor.pid, SIGCONT);
	tally_wait(&s->down, 1);
	assert_int_equal(s->down.status, -ETIMEDOUT);
	assert_int_equal(weir_read(s->region, 0, &byte, 1), -ENOTCONN);
}

static void a_session_that_is_being_mended_closes(void **in)
{
	struct reconnect_state *s = *in;
	uint64_t begin_ns = now_ns();

	stop_process(s->donor.pid);
	fail_channel(s, 1);
	while (info_of(s).channels == CHANNELS)
		read_much(s);
	weir_session_close(s->session); /* closes the region and the pool too */
	kill(s->donor.pid, SIGCONT);
	assert_true(now_ns() - begin_ns < 9 * SECOND_NS);
	s->session = session_to(&s->donor, NULL);
	s->region = exclusive_region(s->session);
	assert_int_equal(weir_pool_create(s->session, MIB, READS, &s->pool, NULL), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_channel_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(the_name_of_the_device_is_copied, setup, teardown),
		cmocka_unit_test_setup_teardown(without_retries_a_lost_read_ends,
						setup_without_retries, teardown),
		cmocka_unit_test_setup_teardown(it_comes_back_without_a_thread, setup_driven,
						teardown),
		cmocka_unit_test_setup_teardown(exclusive_writers_do_not_notice, setup, teardown),
		{ "each_channel_that_shares_a_completion_queue_comes_back", each_channel_comes_back,
		  setup_shared, teardown },
		{ "exclusive_writers_on_a_shared_completion_queue_do_not_notice",
		  exclusive_writers_do_not_notice, setup_shared, teardown },
		{ "each_channel_on_the_queue_of_all_sessions_comes_back", each_channel_comes_back,
		  setup_of_all, teardown },
		{ "a_session_on_the_queue_of_all_sessions_closes_while_it_is_mended",
		  a_session_that_is_being_mended_closes, setup_of_all, teardown },
		cmocka_unit_test_setup_teardown(all_channels_may_break_together, setup, teardown),
		cmocka_unit_test_setup_teardown(a_call_under_way_ends_and_the_next_is_answered,
						setup, teardown),
		cmocka_unit_test_setup_teardown(messages_that_were_never_posted_arrive_in_order,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_call_that_was_not_sent_yet_is_answered_later,
						setup_driven, teardown),
		cmocka_unit_test_setup_teardown(a_donor_that_may_have_lost_a_message_refuses,
						setup_driven, teardown),
		cmocka_unit_test_setup_teardown(a_donor_that_is_stopped_ends_the_session,
						setup_impatient, teardown),
		cmocka_unit_test_setup_teardown(a_session_that_is_being_mended_closes, setup,
						teardown),
	};

	fixture_runs_on("softnic rxe");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
