/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib lanes; suites: lib parallel; devices: softnic; timeout: 180 */
/*
 * Lanes against a naive model, an array of bytes. Threads write and read pages, each by one of the
 * ways into the library. A page's mutex covers the call and the model's turn, so that the model
 * knows the order of the calls. The requests overlap in time all the same. The device completes
 * some posts late, refuses parts of others, and loses links.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/rng.h"
#include "lib/base/clock.h"
#include "lib/client/channel/pump.h"
#include "lib/client/request/queue.h"
#include "lib/client/session.h"
#include "tests/support/libweir_fixture.h"

#define PAGE 4096u
#define PAGES 24u
#define THREADS 4u
#define DEPTH 8u
#define ROUNDS 1500u
#define FAILURES 3
#define WAIT_MS 60000
#define CROWD 1000

/* The behaviour of the device; atomic. @before_post is called once, at the next post. */
static struct {
	void (*before_post)(void);
	int (*post)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*poll)(struct ibv_cq *cq, int count, struct ibv_wc *wc);
	unsigned int late, refused; /* of so many polls or posts, one finds nothing or is refused */
	unsigned int polls, posts;
} device;

static bool is_turn(unsigned int *count, const unsigned int *every)
{
	unsigned int of = __atomic_load_n(every, __ATOMIC_RELAXED);

	return of && !(__atomic_add_fetch(count, 1, __ATOMIC_RELAXED) % of);
}

/* Refuses the last WR. */
static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	void (*before)(void) = __atomic_exchange_n(&device.before_post, NULL, __ATOMIC_SEQ_CST);
	struct ibv_send_wr *before_last = NULL, *last;
	int rc;

	if (before)
		before();
	if (!is_turn(&device.posts, &device.refused))
		return device.post(qp, wr, bad);
	for (last = wr; last->next; last = last->next)
		before_last = last;
	if (!before_last) {
		*bad = wr;
		return ENOMEM;
	}
	before_last->next = NULL;
	rc = device.post(qp, wr, bad);
	before_last->next = last;
	if (!rc)
		*bad = last;
	return ENOMEM;
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	return is_turn(&device.polls, &device.late) ? 0 : device.poll(cq, count, wc);
}

static void behave(unsigned int late, unsigned int refused)
{
	__atomic_store_n(&device.late, late, __ATOMIC_RELAXED);
	__atomic_store_n(&device.refused, refused, __ATOMIC_RELAXED);
}

struct lanes_fixture {
	struct donor_process donor;
	struct weir_session *session;
	struct weir_region *region;
	struct weir_memory *memory;
	pthread_mutex_t locks[PAGES];
	unsigned char model[PAGES]; /* the byte that fills the page */
	unsigned char buffers[THREADS][DEPTH][PAGE];
	bool has_atomics; /* an atomic may not be repeated after a failure */
	unsigned int rounds, wrong; /* of all threads; atomic */
};

/* The next holder of the lock lends the lanes. */
static void be_crowded(struct lanes_fixture *s)
{
	__atomic_store_n(&s->session->lanes.loans.paused, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&s->session->nic->crowd, CROWD, __ATOMIC_RELAXED);
}

static struct lanes_fixture *open_with_keepalive(uint64_t keepalive_ns)
{
	const struct weir_session_options options = { .size = sizeof(options),
						      .channels = 3,
						      .keepalive_ns = keepalive_ns };
	struct lanes_fixture *s = calloc(1, sizeof(*s));
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	unsigned int i;

	assert_non_null(s);
	behave(0, 0);
	donor_process_start(&s->donor, "16777216", NULL);
	s->session = session_to(&s->donor, &options);
	assert_int_equal(weir_region_create(s->session, NULL, (uint64_t)PAGES * PAGE,
					    WEIR_REGION_EXCLUSIVE, &s->region, NULL),
			 0);
	assert_int_equal(weir_memory_register(s->session, s->buffers, sizeof(s->buffers),
					      &s->memory, NULL),
			 0);
	for (i = 0; i < PAGES; i++)
		pthread_mutex_init(&s->locks[i], NULL);
	assert_int_equal(weir_session_verbs(s->session, 0, &pd, &cq, &qp), 0);
	weir_session_lock(s->session); /* its thread polls */
	if (pd->context->ops.post_send != post) {
		device.post = pd->context->ops.post_send;
		device.poll = pd->context->ops.poll_cq;
		pd->context->ops.post_send = post;
		pd->context->ops.poll_cq = poll_cq;
	}
	s->session->lanes.loans.since_ns = s->session->lanes.loans.engine_rate = 1;
	weir_session_unlock(s->session);
	be_crowded(s);
	return s;
}

static struct lanes_fixture *open_all(void)
{
	return open_with_keepalive(0);
}

static void close_all(struct lanes_fixture *s)
{
	weir_memory_deregister(s->memory);
	weir_region_close(s->region);
	weir_session_close(s->session);
	donor_process_stop(&s->donor);
	free(s);
}

/* One thread's requests in flight: each fills a buffer of its own, and expects a byte there. */
struct lanes_thread {
	struct lanes_fixture *s;
	unsigned int number;
	uint64_t random;
	struct weir_queue *queue;
	unsigned char expected[DEPTH];
	bool reads[DEPTH], is_busy[DEPTH];
	pthread_t thread;
};

static uint32_t choose(struct lanes_thread *t, uint32_t count)
{
	return (uint32_t)weir_rng_scale(weir_rng_next(&t->random), count);
}

static void check(struct lanes_thread *t, unsigned int slot)
{
	const unsigned char *buffer = t->s->buffers[t->number][slot];
	unsigned int i, wrong = 0;

	for (i = 0; t->reads[slot] && i < PAGE; i++)
		wrong += buffer[i] != t->expected[slot];
	__atomic_fetch_add(&t->s->wrong, wrong, __ATOMIC_RELAXED);
	t->is_busy[slot] = false;
}

/* Prepares the next request of @slot. With the page's lock held. */
static struct weir_transfer fill(struct lanes_thread *t, unsigned int slot, unsigned int page,
				 struct weir_iov *iov)
{
	unsigned char *buffer = t->s->buffers[t->number][slot];

	t->reads[slot] = choose(t, 2);
	t->is_busy[slot] = true;
	if (!t->reads[slot])
		t->s->model[page] = (unsigned char)choose(t, 256);
	t->expected[slot] = t->s->model[page];
	memset(buffer, t->reads[slot] ? ~t->expected[slot] : t->expected[slot], PAGE);
	*iov = (struct weir_iov){ buffer, PAGE, t->s->memory };
	return (struct weir_transfer){
		.direction = t->reads[slot] ? WEIR_READ : WEIR_WRITE,
		.region = t->s->region,
		.offset = (uint64_t)page * PAGE,
		.iov = iov,
		.iovcnt = 1,
		.completion = { .queue = t->queue, .arg = (void *)(uintptr_t)slot },
	};
}

/* Submits @count requests of different pages in one call. */
static void submit_some(struct lanes_thread *t, const unsigned int *slots, unsigned int count)
{
	unsigned int i, page = choose(t, PAGES - 2 * DEPTH), pages[DEPTH];
	struct weir_transfer transfers[DEPTH];
	struct weir_iov iov[DEPTH];

	for (i = 0; i < count; i++) { /* locked in order of page, so without a deadlock */
		pages[i] = page;
		page += 1 + choose(t, 2);
		pthread_mutex_lock(&t->s->locks[pages[i]]);
		transfers[i] = fill(t, slots[i], pages[i], &iov[i]);
	}
	if (weir_transfer_async(transfers, count, NULL))
		__atomic_fetch_add(&t->s->wrong, 1, __ATOMIC_RELAXED);
	for (i = 0; i < count; i++)
		pthread_mutex_unlock(&t->s->locks[pages[i]]);
}

/* A blocking request, on memory that weir copies or not, or an atomic that changes nothing. */
static void block(struct lanes_thread *t, unsigned int slot)
{
	unsigned int page = choose(t, PAGES), way = choose(t, t->s->has_atomics ? 3 : 2);
	pthread_mutex_t *lock = &t->s->locks[page];
	struct weir_transfer transfer;
	struct weir_iov iov;
	int rc;

	pthread_mutex_lock(lock);
	transfer = fill(t, slot, page, &iov);
	if (way == 0)
		iov.memory = NULL;
	if (way == 2)
		rc = weir_fetch_add(t->s->region, transfer.offset, 0, NULL);
	else
		rc = 0;
	if (!rc)
		rc = t->reads[slot] ? weir_readv(t->s->region, transfer.offset, &iov, 1) :
				      weir_writev(t->s->region, transfer.offset, &iov, 1);
	pthread_mutex_unlock(lock);
	if (rc)
		__atomic_fetch_add(&t->s->wrong, 1, __ATOMIC_RELAXED);
	check(t, slot);
}

static void reap(struct lanes_thread *t)
{
	struct weir_event events[DEPTH];
	int i, got = weir_queue_wait(t->queue, events, DEPTH, WAIT_MS);

	if (got <= 0)
		__atomic_fetch_add(&t->s->wrong, 1, __ATOMIC_RELAXED);
	for (i = 0; i < got; i++) {
		if (events[i].status)
			__atomic_fetch_add(&t->s->wrong, 1, __ATOMIC_RELAXED);
		check(t, (unsigned int)(uintptr_t)events[i].arg);
	}
}

static unsigned int find_free(const struct lanes_thread *t, unsigned int *slots)
{
	unsigned int i, count = 0;

	for (i = 0; i < DEPTH; i++) {
		if (!t->is_busy[i])
			slots[count++] = i;
	}
	return count;
}

static void *work(void *arg)
{
	struct lanes_thread *t = arg;
	const unsigned int rounds = (unsigned int)fixture_rounds(ROUNDS);
	unsigned int slots[DEPTH], count, round;

	for (round = 0; round < rounds && !__atomic_load_n(&t->s->wrong, __ATOMIC_RELAXED);
	     round++) {
		be_crowded(t->s);
		while (!(count = find_free(t, slots)))
			reap(t);
		if (choose(t, 16) == 0)
			block(t, slots[0]);
		else
			submit_some(t, slots, 1 + choose(t, count));
		if (choose(t, 256) == 0 && weir_flush(t->s->session))
			__atomic_fetch_add(&t->s->wrong, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&t->s->rounds, 1, __ATOMIC_RELAXED);
	}
	while (find_free(t, slots) < DEPTH && !__atomic_load_n(&t->s->wrong, __ATOMIC_RELAXED))
		reap(t);
	return NULL;
}

/* Fails links under the threads, evenly over their rounds. */
static void fail_links(struct lanes_fixture *s, unsigned int failures)
{
	const unsigned int rounds = (unsigned int)fixture_rounds(ROUNDS);
	unsigned int i;

	for (i = 0; i < failures; i++) {
		while (__atomic_load_n(&s->rounds, __ATOMIC_RELAXED) <
			       i * rounds * THREADS / (failures + 1) &&
		       !__atomic_load_n(&s->wrong, __ATOMIC_RELAXED))
			sched_yield();
		weir_session_lock(s->session);
		weir_session_link_fail(&s->session->links[i % 2 + 1]);
		weir_session_unlock(s->session);
		assert_int_equal(weir_flush(s->session), 0);
	}
}

static void run(struct lanes_fixture *s, unsigned int failures)
{
	struct lanes_thread threads[THREADS];
	struct weir_session_info info;
	unsigned int i;

	s->has_atomics = !failures && !device.refused;
	for (i = 0; i < THREADS; i++) {
		threads[i] = (struct lanes_thread){ .s = s, .number = i, .random = i + 1 };
		assert_int_equal(weir_queue_create(&threads[i].queue), 0);
	}
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i].thread, NULL, work, &threads[i]), 0);
	fail_links(s, failures);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i].thread, NULL);
	assert_int_equal(s->wrong, 0);
	assert_int_equal(weir_session_info(s->session, &info, sizeof(info)), 0);
	printf("# %u requests in %u posts, %u of them unlocked\n", (unsigned int)info.requests,
	       (unsigned int)info.doorbells, (unsigned int)info.unlocked);
	for (i = 0; i < THREADS; i++)
		weir_queue_destroy(threads[i].queue);
}

static void keep_the_order(void **state)
{
	struct lanes_fixture *s = open_all();

	(void)state;
	run(s, 0);
	close_all(s);
}

static void late_completions_enter_the_engine(void **state)
{
	struct lanes_fixture *s = open_all();

	(void)state;
	behave(5, 0);
	run(s, 0);
	close_all(s);
}

static void refused_requests_enter_the_engine(void **state)
{
	struct lanes_fixture *s = open_all();

	(void)state;
	behave(0, 1500); /* each time, a link fails */
	run(s, 0);
	close_all(s);
}

static void survive_failing_links(void **state)
{
	struct lanes_fixture *s = open_all();

	(void)state;
	behave(7, 0);
	run(s, FAILURES);
	close_all(s);
}

static struct weir_session_info info_of(struct lanes_fixture *s)
{
	struct weir_session_info info;

	assert_int_equal(weir_session_info(s->session, &info, sizeof(info)), 0);
	return info;
}

/* weir_session_info() takes the lanes back, and with them their counts. */
static void count_what_they_post(void **state)
{
	struct lanes_fixture *s = open_all();
	struct lanes_thread t = { .s = s, .random = 1 };
	struct weir_session_info before, after;
	unsigned int requests;

	(void)state;
	assert_int_equal(weir_queue_create(&t.queue), 0);
	do {
		before = info_of(s);
		be_crowded(s);
		for (requests = 0; requests < 100; requests++) {
			struct weir_iov iov;
			struct weir_transfer transfer = fill(&t, 0, choose(&t, PAGES), &iov);

			assert_int_equal(weir_transfer_async(&transfer, 1, NULL), 0);
			reap(&t);
			assert_false(t.is_busy[0]);
		}
		after = info_of(s);
		assert_int_equal(after.requests, before.requests + requests);
		assert_false(weir_lanes_are_lent(s->session));
	} while (after.unlocked == before.unlocked);
	assert_int_equal(s->wrong, 0);
	weir_queue_destroy(t.queue);
	close_all(s);
}

#define IN_FLIGHT 4u
#define TRIES 10000
#define LANES_NS 30000000000ull /* rates decide: a loaded machine takes long */

static void submit_one(struct lanes_thread *t, unsigned int page)
{
	struct weir_iov iov;
	struct weir_transfer transfer = fill(t, 0, page, &iov);

	assert_int_equal(weir_transfer_async(&transfer, 1, NULL), 0);
}

static void get_lanes(struct lanes_fixture *s, struct lanes_thread *t)
{
	uint64_t until_ns = weir_now_ns() + LANES_NS;

	while (weir_lanes_are_lent(s->session) != WEIR_LANES_LENT) {
		be_crowded(s);
		submit_one(t, choose(t, PAGES));
		reap(t);
		assert_true(weir_now_ns() < until_ns);
	}
}

/*
 * Brings requests into flight on lanes: the device holds its completions back. The session's thread
 * may take the lanes back meanwhile, so a few tries may be needed.
 */
static void fly(struct lanes_fixture *s, struct lanes_thread *t)
{
	struct weir_iov iov;
	struct weir_transfer transfer;
	unsigned int i;

	get_lanes(s, t);
	behave(1, 0);
	for (i = 0; i < IN_FLIGHT; i++) {
		transfer = fill(t, i, i, &iov);
		assert_int_equal(weir_transfer_async(&transfer, 1, NULL), 0);
	}
}

static unsigned int in_flight_on_lanes(struct lanes_fixture *s)
{
	struct weir_lane_set *set = s->session->lanes.set;
	unsigned int i, count = 0;

	for (i = 0; i < set->count; i++) {
		weir_spinlock_lock(&set->lane[i].lock);
		count += set->lane[i].core.is_lent ? set->lane[i].core.posted : 0;
		weir_spinlock_unlock(&set->lane[i].lock);
	}
	return count;
}

static void reap_all(struct lanes_thread *t)
{
	unsigned int slots[DEPTH];

	while (find_free(t, slots) < DEPTH)
		reap(t);
	assert_int_equal(t->s->wrong, 0);
}

/* The test's thread alone uses the lanes, but for the session's thread. */
static void requests_stay_in_flight_on_lanes(void **state)
{
	struct lanes_fixture *s = open_all();
	struct lanes_thread t = { .s = s, .random = 1 };
	unsigned int tries, kept = 0;

	(void)state;
	assert_int_equal(weir_queue_create(&t.queue), 0);
	for (tries = 0; tries < TRIES && !kept; tries++) {
		fly(s, &t);
		kept = in_flight_on_lanes(s) == IN_FLIGHT;
		behave(0, 0);
		reap_all(&t);
	}
	assert_true(kept);
	weir_queue_destroy(t.queue);
	close_all(s);
}

/* A thread that waits for long leaves its requests to the session's thread. */
static void a_waiter_gives_lanes_up(void **state)
{
	struct lanes_fixture *s = open_all();
	struct lanes_thread t = { .s = s, .random = 1 };
	struct weir_event event;

	(void)state;
	assert_int_equal(weir_queue_create(&t.queue), 0);
	fly(s, &t);
	assert_int_equal(weir_queue_wait(t.queue, &event, 1, 100), 0);
	assert_int_equal(weir_lanes_are_lent(s->session), WEIR_LANES_NONE);
	behave(0, 0);
	weir_pump_kick(s->session); /* the device has held back what its event was for */
	reap_all(&t);
	weir_queue_destroy(t.queue);
	close_all(s);
}

/* No thread polls or waits: the session's thread takes the completions. */
static void completions_come_without_a_waiter(void **state)
{
	struct lanes_fixture *s = open_all();
	struct lanes_thread t = { .s = s, .random = 1 };
	unsigned int waited_ms;

	(void)state;
	assert_int_equal(weir_queue_create(&t.queue), 0);
	fly(s, &t);
	behave(0, 0);
	for (waited_ms = 0; waited_ms < WAIT_MS && !weir_queue_may_have(t.queue); waited_ms++)
		usleep(1000);
	assert_true(waited_ms < WAIT_MS);
	reap_all(&t);
	weir_queue_destroy(t.queue);
	close_all(s);
}

/* A call for the session's thread may be taken while no lane is lent. The next one must come. */
static void a_watch_that_is_not_needed_is_called_again(void **state)
{
	struct lanes_fixture *s = open_all();
	struct lanes_thread t = { .s = s, .random = 1 };
	unsigned int i;

	(void)state;
	assert_int_equal(weir_queue_create(&t.queue), 0);
	for (i = 0; i < 20; i++) {
		fly(s, &t);
		info_of(s); /* takes the lanes back */
		behave(0, 0);
		weir_pump_kick(s->session);
		reap_all(&t);
		weir_session_lock(s->session);
		assert_false(__atomic_load_n(&s->session->lanes.is_watched, __ATOMIC_SEQ_CST));
		weir_session_unlock(s->session);
	}
	weir_queue_destroy(t.queue);
	close_all(s);
}

#define SMALL 64u
#define CALL 7u /* requests; lanes have no multiple of it */
#define CALLS 40u

/* Calls of several requests meet the end of a lane's room. Return: requests on lanes at once. */
static unsigned int fill_lanes(struct lanes_fixture *s, struct weir_queue *queue)
{
	struct weir_transfer transfers[CALL];
	struct weir_iov iov[CALL];
	unsigned int i, j, n = 0, found, most = 0;

	for (i = 0; i < CALLS; i++) {
		for (j = 0; j < CALL; j++, n++) {
			iov[j] = (struct weir_iov){ s->buffers[0][0] + SMALL * (n % 60), SMALL,
						    s->memory };
			transfers[j] = (struct weir_transfer){
				.direction = WEIR_READ,
				.region = s->region,
				.offset = (uint64_t)(n * 37 % 1500) * SMALL,
				.iov = &iov[j],
				.iovcnt = 1,
				.completion = { .queue = queue, .arg = (void *)(uintptr_t)n },
			};
		}
		assert_int_equal(weir_transfer_async(transfers, CALL, NULL), 0);
		found = in_flight_on_lanes(s);
		most = found > most ? found : most;
	}
	return most;
}

static void a_full_lane_keeps_its_requests(void **state)
{
	struct lanes_fixture *s = open_all();
	struct lanes_thread t = { .s = s, .random = 1 };
	unsigned int i, done, tries, most = 0, told[CALL * CALLS];
	struct weir_event events[64];
	int j, got;

	(void)state;
	assert_int_equal(weir_queue_create(&t.queue), 0);
	for (tries = 0; tries < TRIES && most < WEIR_LANE_WRS - CALL; tries++) {
		memset(told, 0, sizeof(told));
		get_lanes(s, &t);
		behave(1, 0);
		most = fill_lanes(s, t.queue);
		behave(0, 0);
		weir_pump_kick(s->session);
		for (done = 0; done < CALL * CALLS; done += (unsigned int)got) {
			got = weir_queue_wait(t.queue, events, 64, WAIT_MS);
			assert_true(got > 0);
			for (j = 0; j < got; j++)
				told[(uintptr_t)events[j].arg]++;
		}
		for (i = 0; i < CALL * CALLS; i++)
			assert_int_equal(told[i], 1);
	}
	assert_true(tries < TRIES);
	weir_queue_destroy(t.queue);
	close_all(s);
}

/* Another thread, which submits during the post of the test's thread. */
static struct {
	struct lanes_thread t;
	pthread_t thread;
	bool calls_back;
	unsigned int started, called; /* atomic */
} other;

static void note_call(void *arg, int status)
{
	(void)arg, (void)status;
	__atomic_store_n(&other.called, 1, __ATOMIC_SEQ_CST);
}

static void *submit_beside(void *arg)
{
	struct weir_iov iov;
	struct weir_transfer transfer = fill(&other.t, 0, 3, &iov);
	struct weir_event event;

	(void)arg;
	if (other.calls_back)
		transfer.completion = (struct weir_completion){ .done = note_call };
	assert_int_equal(weir_transfer_async(&transfer, 1, NULL), 0);
	if (!other.calls_back && weir_queue_wait(other.t.queue, &event, 1, WAIT_MS) == 1)
		__atomic_store_n(&other.called, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* Until the other thread has submitted, and sleeps if it waits. */
static void start_other(void)
{
	struct weir_nic *nic = other.t.s->session->nic;
	unsigned int i;

	assert_int_equal(pthread_create(&other.thread, NULL, submit_beside, NULL), 0);
	for (i = 0; i < 10000 && !weir_inbox_may_have(&nic->combine.inbox); i++)
		usleep(100);
	for (i = 0; i < 10000 && !other.calls_back && !weir_queue_has_sleeper(other.t.queue); i++)
		usleep(100);
	__atomic_store_n(&other.started, 1, __ATOMIC_SEQ_CST);
}

/* Lending finishes the other thread's request: its event or callback must come all the same. */
static void finish_beside_a_loan(bool calls_back)
{
	struct lanes_fixture *s = open_all();
	struct lanes_thread t = { .s = s, .random = 1 };
	unsigned int i, waited;

	assert_int_equal(weir_queue_create(&t.queue), 0);
	other.t = (struct lanes_thread){ .s = s, .number = 1, .random = 2 };
	other.calls_back = calls_back;
	assert_int_equal(weir_queue_create(&other.t.queue), 0);
	for (i = 0; i < 50; i++) {
		info_of(s);
		be_crowded(s);
		__atomic_store_n(&other.started, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&other.called, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&device.before_post, start_other, __ATOMIC_SEQ_CST);
		submit_one(&t, 1);
		reap(&t);
		__atomic_store_n(&device.before_post, NULL, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&other.started, __ATOMIC_SEQ_CST))
			continue; /* a lane had the post */
		for (waited = 0;
		     waited < WAIT_MS && !__atomic_load_n(&other.called, __ATOMIC_SEQ_CST);
		     waited++)
			usleep(1000);
		assert_true(waited < WAIT_MS / 2);
		pthread_join(other.thread, NULL);
	}
	assert_int_equal(s->wrong, 0);
	weir_queue_destroy(t.queue);
	weir_queue_destroy(other.t.queue);
	close_all(s);
}

static void a_sleeper_is_woken_beside_a_loan(void **state)
{
	(void)state;
	finish_beside_a_loan(false);
}

static void a_callback_runs_beside_a_loan(void **state)
{
	(void)state;
	finish_beside_a_loan(true);
}

/* Waits until the timer has fired, and the session's thread has yet to set it again. */
static void await_timer(struct lanes_fixture *s)
{
	bool is_unset = false;
	unsigned int tries;

	for (tries = 0; tries < 1000 && !is_unset; tries++) {
		usleep(10);
		weir_session_lock(s->session);
		is_unset = s->session->timer_ns == UINT64_MAX;
		weir_session_unlock(s->session);
	}
}

/* The session's thread was awake, and owes the timer and the arming of messages. */
static void lanes_that_are_idle_leave_the_timer_set(void **state)
{
	struct lanes_fixture *s = open_with_keepalive(2000000);
	struct lanes_thread t = { .s = s, .random = 1 };
	unsigned int i, waited;

	(void)state;
	assert_int_equal(weir_queue_create(&t.queue), 0);
	for (i = 0; i < 30; i++) {
		await_timer(s);
		get_lanes(s, &t);
		for (waited = 0; waited < WAIT_MS && weir_lanes_are_lent(s->session); waited++)
			usleep(1000); /* keep-alive takes them back */
		assert_true(waited < WAIT_MS);
	}
	weir_queue_destroy(t.queue);
	close_all(s);
}

static void a_wait_without_time_takes_what_is_there(void **state)
{
	struct lanes_fixture *s = open_all();
	struct lanes_thread t = { .s = s, .random = 1 };
	struct weir_event event;
	unsigned int tries, kept = 0;
	int got;

	(void)state;
	assert_int_equal(weir_queue_create(&t.queue), 0);
	for (tries = 0; tries < TRIES && !kept; tries++) {
		fly(s, &t);
		assert_int_equal(weir_queue_wait(t.queue, &event, 1, 0), 0);
		behave(0, 0);
		got = weir_queue_wait(t.queue, &event, 1, 0);
		if (got == 1)
			t.is_busy[(uintptr_t)event.arg] = false;
		kept = got == 1 && weir_lanes_are_lent(s->session) == WEIR_LANES_LENT;
		weir_pump_kick(s->session);
		reap_all(&t);
	}
	assert_true(kept);
	weir_queue_destroy(t.queue);
	close_all(s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_stay_in_flight_on_lanes),
		cmocka_unit_test(a_waiter_gives_lanes_up),
		cmocka_unit_test(completions_come_without_a_waiter),
		cmocka_unit_test(a_watch_that_is_not_needed_is_called_again),
		cmocka_unit_test(a_full_lane_keeps_its_requests),
		cmocka_unit_test(a_sleeper_is_woken_beside_a_loan),
		cmocka_unit_test(a_callback_runs_beside_a_loan),
		cmocka_unit_test(lanes_that_are_idle_leave_the_timer_set),
		cmocka_unit_test(a_wait_without_time_takes_what_is_there),
		cmocka_unit_test(count_what_they_post),
		cmocka_unit_test(keep_the_order),
		cmocka_unit_test(late_completions_enter_the_engine),
		cmocka_unit_test(refused_requests_enter_the_engine),
		cmocka_unit_test(survive_failing_links),
	};

	fixture_runs_on("softnic");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
