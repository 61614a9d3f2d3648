/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The core under simulated threads, against a memory without time, where each request takes
 * effect at submit. A read must return the same as that memory, however requests were merged,
 * fragmented, chained and spread over channels.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/event/rng.h"
#include "sim/host/engine_host.h"

#define THREADS 6
#define REQUESTS 80 /* of each thread */
#define MEMORY (32u << 10)
#define BYTES_MAX 6000

struct engine_host_run;

struct engine_host_job {
	struct sim_request request;
	struct engine_host_run *run;
	unsigned char bytes[BYTES_MAX], expected[BYTES_MAX];
	int times_done;
};

struct engine_host_worker {
	struct engine_host_run *run;
	struct sim_thread thread;
	struct sim_rng rng;
	struct engine_host_job *jobs;
	int submitted, is_over;
};

struct engine_host_run {
	struct sim_settings settings;
	struct sim_world world;
	struct sim_engine_host weir;
	struct sim_session session;
	struct engine_host_worker workers[THREADS];
	struct sim_lock calls; /* with lanes: calls that overlap have no order */
	unsigned char memory[MEMORY], timeless[MEMORY];
	int done, wrong;
};

/*
 * A message takes effect in the server's memory. PCIe is fast here: a write lands before its
 * completion frees the description of its bytes.
 */
static void execute(void *arg, const struct sim_wr *wr)
{
	struct engine_host_run *run = arg;
	unsigned char *at = run->memory + wr->remote;
	int i;

	for (i = 0; i < wr->nr_sge; at += wr->sge[i++].length) {
		void *local = (void *)(uintptr_t)wr->sge[i].addr;

		if (wr->op == SIM_OP_WRITE)
			memcpy(at, local, wr->sge[i].length);
		else
			memcpy(local, at, wr->sge[i].length);
	}
}

static bool done(struct sim_request *request)
{
	struct engine_host_job *job = container_of(request, struct engine_host_job, request);
	struct engine_host_run *run = job->run;
	int i;

	job->times_done++;
	run->done++;
	run->wrong += request->req.status || memcmp(job->bytes, job->expected, request->req.length);
	for (i = 0; i < THREADS; i++)
		sim_thread_wake(&run->workers[i].thread);
	return true;
}

static void submit(struct engine_host_worker *w, struct engine_host_job *job)
{
	struct engine_host_run *run = w->run;
	struct weir_req *req = &job->request.req;
	uint32_t length = 1 + (uint32_t)sim_rng_below(&w->rng, BYTES_MAX), i;

	job->run = run;
	job->request.session = &run->session;
	job->request.done = done;
	*req = (struct weir_req){ .op = sim_rng_below(&w->rng, 2) ? WEIR_OP_READ : WEIR_OP_WRITE,
				  .length = length,
				  .deadline_ns = WEIR_NEVER,
				  .nr_sge = 1,
				  .remote = sim_rng_below(&w->rng, MEMORY - length) };
	req->sge[0] = (struct weir_sge){ (uintptr_t)job->bytes, length, 1 };
	if (req->op == WEIR_OP_READ) {
		memcpy(job->expected, run->timeless + req->remote, length);
	} else {
		for (i = 0; i < length; i++)
			job->bytes[i] = (unsigned char)sim_rng_next(&w->rng);
		memcpy(job->expected, job->bytes, length);
		memcpy(run->timeless + req->remote, job->bytes, length);
	}
	sim_engine_host_submit(&w->thread, &job->request);
}

/* On a lane, a call may wait. */
static void submit_in_turn(struct engine_host_worker *w, struct engine_host_job *job)
{
	if (w->run->settings.load.lanes)
		sim_lock_take(&w->run->calls, &w->thread);
	submit(w, job);
	if (w->run->settings.load.lanes)
		sim_lock_give(&w->run->calls, &w->thread);
}

static bool all_are_done(void *arg)
{
	const struct engine_host_run *run = ((struct engine_host_worker *)arg)->run;

	return run->done == THREADS * REQUESTS;
}

static bool few_are_left(void *arg)
{
	const struct engine_host_worker *w = arg;
	int i, left = 0;

	for (i = 0; i < w->submitted; i++)
		left += !w->jobs[i].times_done;
	return left < 12;
}

static void work(void *arg)
{
	struct engine_host_worker *w = arg;
	int burst;

	while (w->submitted < REQUESTS) {
		for (burst = 1 + (int)sim_rng_below(&w->rng, 10); burst && w->submitted < REQUESTS;
		     burst--)
			submit_in_turn(w, &w->jobs[w->submitted++]);
		sim_engine_host_await(&w->thread, &w->run->session, few_are_left, w);
		sim_thread_run(&w->thread, sim_rng_below(&w->rng, 3000) * SIM_PS_PER_NS);
	}
	sim_engine_host_await(&w->thread, &w->run->session, all_are_done, w);
	w->is_over = true;
}

static void begin(struct engine_host_run *run, uint64_t seed, int nr_args, const char *const args[])
{
	char why[SIM_SETTINGS_WHY_BYTES] = "";
	char *argv[8];
	int i;

	for (i = 0; i < nr_args; i++)
		argv[i] = (char *)args[i];
	assert_int_equal(sim_settings_parse(&run->settings, PROFILES, nr_args, argv, why), 0);
	run->settings.seed = seed;
	run->settings.profile.pcie_write_mbps = 10000000;
	assert_int_equal(sim_world_init(&run->world, &run->settings), 0);
	assert_int_equal(
		sim_engine_host_init(&run->weir, &run->world.nodes[0], &run->settings.load, 1), 0);
	assert_int_equal(sim_session_init(&run->session, &run->weir, &run->world), 0);
	sim_lock_init(&run->calls, false);
	run->session.lanes.loans.since_ns = run->session.lanes.loans.engine_rate = 1;
	for (i = 0; i < (int)run->settings.load.qps; i++) {
		run->session.channels[i].qp->peer->execute = execute;
		run->session.channels[i].qp->peer->arg = run;
	}
	for (i = 0; i < THREADS; i++) {
		struct engine_host_worker *w = &run->workers[i];

		w->run = run;
		w->jobs = calloc(REQUESTS, sizeof(*w->jobs));
		assert_non_null(w->jobs);
		sim_rng_init(&w->rng, seed, "worker", (uint64_t)i);
		assert_int_equal(
			sim_thread_init(&w->thread, &run->world.nodes[0].host, -1, work, w), 0);
	}
}

static void check(const struct engine_host_run *run)
{
	uint32_t lent_bytes = 0, lent_wrs = 0, k;
	int i, j;

	for (k = 0; k < run->session.lanes.count; k++) {
		const struct weir_lane *lane = &run->session.lanes.lane[k].core;

		lent_bytes += lane->is_lent ? lane->bytes_max : 0;
		lent_wrs += lane->is_lent ? lane->wrs_max : 0;
		assert_false(lane->is_lent && (lane->posted || lane->bytes));
	}
	assert_int_equal(run->wrong, 0);
	for (i = 0; i < THREADS; i++) {
		assert_true(run->workers[i].is_over);
		for (j = 0; j < REQUESTS; j++)
			assert_int_equal(run->workers[i].jobs[j].times_done, 1);
	}
	assert_memory_equal(run->memory, run->timeless, MEMORY);
	assert_int_equal(run->weir.window.bytes, lent_bytes);
	assert_int_equal(run->weir.window.wrs, lent_wrs);
	assert_int_equal(run->session.reqs_posted >= THREADS * REQUESTS, true);
}

static void end(struct engine_host_run *run)
{
	int i;

	for (i = 0; i < THREADS; i++) {
		sim_thread_fini(&run->workers[i].thread);
		free(run->workers[i].jobs);
	}
	sim_session_fini(&run->session);
	sim_engine_host_fini(&run->weir);
	sim_world_fini(&run->world);
}

static const struct sim_session *run_with(struct engine_host_run *run, uint64_t seed, int nr_args,
					  const char *const args[])
{
	memset(run, 0, sizeof(*run));
	begin(run, seed, nr_args, args);
	sim_clock_run(&run->world.clock, SIM_PS_PER_S / 10);
	check(run);
	end(run);
	return &run->session;
}

static void reads_bring_what_a_memory_without_time_would(void **state)
{
	static const char *const ways[][5] = {
		{ "qps=1", "chain=1", "merge=0", "fragment=4096", "poll=busy" },
		{ "qps=4", "chain=32", "merge=1", "fragment=8192", "poll=adaptive" },
		{ "qps=16", "chain=4", "merge=1", "window=20000", "fragment=4096" },
		{ "qps=3", "window=8192", "fragment=8192", "poll=event", "cores=2" },
		{ "qps=2", "poll=hybrid", "lock=mutex", "cores=1", "quantum_ns=5000" },
	};
	static struct engine_host_run run;
	uint64_t seed;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		for (seed = 1; seed <= 2; seed++)
			run_with(&run, seed, 5, ways[i]);
	}
}

/* Lanes need a rate of the engine first, and threads that compete. */
static void lanes_keep_the_order(void **state)
{
	static const char *const ways[][4] = {
		{ "lanes=1", "qps=4", "fragment=4096", "poll=busy" },
		{ "lanes=1", "qps=16", "poll=adaptive", "merge=0" },
		{ "lanes=1", "qps=2", "fragment=8192", "window=300000" },
		{ "lanes=1", "qps=3", "poll=event", "cores=2" },
	};
	static struct engine_host_run run;
	uint64_t seed, by_lanes = 0;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		for (seed = 1; seed <= 4; seed++)
			by_lanes += run_with(&run, seed, 4, ways[i])->lanes.done;
	}
	assert_true(by_lanes > 1000);
}

static void neighbours_are_merged_and_others_chained(void **state)
{
	static const char *const merged[] = { "qps=1", "merge=1" };
	static const char *const single[] = { "qps=1", "merge=0", "chain=1" };
	const struct sim_session *session;
	static struct engine_host_run run;

	(void)state;
	session = run_with(&run, 1, 2, merged);
	assert_true(session->wrs_posted > session->chains);
	session = run_with(&run, 1, 3, single);
	assert_int_equal(session->wrs_posted, THREADS * REQUESTS);
	assert_int_equal(session->chains, THREADS * REQUESTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_bring_what_a_memory_without_time_would),
		cmocka_unit_test(lanes_keep_the_order),
		cmocka_unit_test(neighbours_are_merged_and_others_chained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
