/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/run.h"
#include "apps/perf/beside.h"
#include "apps/common/cmd.h"
#include "apps/perf/worker.h"
#include "apps/common/size.h"
#include "apps/common/stop.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <weir/request.h>

/* Interval of progress lines. A stop request just before a sleep takes effect after the sleep. */
#define TICK_S 0.5

struct perf_run {
	struct load load;
	unsigned char *buffers;
	size_t buffers_bytes;
	struct verify verify;
	struct beside *beside;
};

/* Resources used by the process so far. */
struct perf_usage {
	double cpu_seconds;
	uint64_t context_switches;
};

static double seconds_of(const struct timeval *tv)
{
	return (double)tv->tv_sec + (double)tv->tv_usec * 1e-6;
}

static struct perf_usage usage_now(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (struct perf_usage){
		seconds_of(&r.ru_utime) + seconds_of(&r.ru_stime),
		(uint64_t)r.ru_nvcsw + (uint64_t)r.ru_nivcsw,
	};
}

static double now(void)
{
	return (double)weir_now_ns() / 1e9;
}

static struct timespec realtime_in(double seconds)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return weir_timespec((uint64_t)now.tv_sec * WEIR_NS_PER_S + (uint64_t)now.tv_nsec +
			     (uint64_t)(seconds * 1e9));
}

static uint64_t ops_so_far(const struct perf_run *run)
{
	uint64_t ops = 0;

	for (unsigned int i = 0; i < run->load.options->threads; i++)
		ops += __atomic_load_n(&run->load.workers[i].ops, __ATOMIC_RELAXED);
	return ops;
}

static void show_progress(const struct perf_run *run, double elapsed)
{
	const struct perf_options *o = run->load.options;
	uint64_t ops = ops_so_far(run);

	if (o->seconds > 0)
		fprintf(stderr, "\r%.0f of %.0f s: ", elapsed, o->seconds);
	else
		fprintf(stderr, "\r%.0f s: ", elapsed);
	fprintf(stderr, "%" PRIu64 " requests, %.0f a second\033[K", ops, (double)ops / elapsed);
}

/* Waits until the time is over, all workers have ended, or a stop is requested. */
static void watch_progress(struct perf_run *run)
{
	const struct perf_options *o = run->load.options;
	double begin = now(), end = o->seconds > 0 ? begin + o->seconds : begin + 1e9;
	bool shows = isatty(STDERR_FILENO), ended = false;

	while (!ended && !stop_requested() && now() < end) {
		double left = end - now();
		struct timespec at = realtime_in(left > TICK_S ? TICK_S : left > 0 ? left : 0);

		ended = !sem_timedwait(&run->load.ended, &at);
		if (shows)
			show_progress(run, now() - begin);
	}
	if (shows)
		fputs("\r\033[K", stderr);
}

/* Starts workers with all signals blocked. Return: number of threads started. */
static unsigned int start_workers(struct perf_run *run)
{
	unsigned int wanted = run->load.options->threads, started = 0;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (started < wanted && !pthread_create(&run->load.workers[started].thread, NULL,
						   worker_run, &run->load.workers[started]))
		started++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

static void join_workers(struct perf_run *run, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		pthread_join(run->load.workers[i].thread, NULL);
}

static int run_workers(struct perf_run *run, struct perf_result *result)
{
	const struct perf_options *o = run->load.options;
	struct perf_usage before, after;
	unsigned int started;

	run->load.running = o->threads;
	started = start_workers(run);
	if (started < o->threads) {
		load_stop(&run->load);
		load_start(&run->load);
		join_workers(run, started);
		return failure(o->cmd,
			       "cannot start more than %u threads: use fewer --threads, or a "
			       "higher limit (ulimit -u)",
			       started);
	}
	targets_info(o, run->load.targets, &result->before);
	before = usage_now();
	result->beside_bytes = beside_bytes(run->beside);
	load_start(&run->load);
	watch_progress(run);
	load_stop(&run->load);
	join_workers(run, started);
	result->beside_bytes = beside_bytes(run->beside) - result->beside_bytes;
	after = usage_now();
	targets_info(o, run->load.targets, &result->after);
	result->cpu_seconds = after.cpu_seconds - before.cpu_seconds;
	result->context_switches = after.context_switches - before.context_switches;
	return 0;
}

static void sum_up(const struct perf_run *run, struct perf_result *result)
{
	uint64_t begin_ns = UINT64_MAX, end_ns = 0;

	for (unsigned int i = 0; i < run->load.options->threads; i++) {
		const struct perf_worker *w = &run->load.workers[i];

		result->ops += w->ops;
		result->bytes += w->bytes;
		weir_histogram_merge(&result->latency, &w->latency);
		if (w->begin_ns < begin_ns)
			begin_ns = w->begin_ns;
		if (w->end_ns > end_ns)
			end_ns = w->end_ns;
	}
	result->seconds = (double)(end_ns - begin_ns) * 1e-9;
}

/* Reports the failure of the first failed worker. */
static int first_failure(const struct perf_run *run)
{
	const struct perf_options *o = run->load.options;

	for (unsigned int i = 0; i < o->threads; i++) {
		const struct perf_worker *w = &run->load.workers[i];

		if (w->error == -EILSEQ)
			return failure(o->cmd,
				       "%s: the data read at %" PRIu64 " is not the data "
				       "expected",
				       target_name(w->target).text, w->failed.offset);
		if (w->twice)
			return failure(o->cmd, "%s: %" PRIu64 " requests completed more than once",
				       target_name(w->target).text, w->twice);
		if (w->error)
			return failure(o->cmd, "%s: %s of %" PRIu64 " bytes at %" PRIu64 ": %s",
				       target_name(w->target).text,
				       w->failed.is_write ? "write" : "read", w->failed.length,
				       w->failed.offset, weir_strerror(w->error));
	}
	return 0;
}

static int compare_what_was_written(const struct perf_run *run)
{
	const struct perf_options *o = run->load.options;
	uint64_t wrong;
	struct perf_target *target = run->load.targets; /* the only target */
	int rc = verify_read_back(&run->verify, target->region, &wrong);

	if (rc)
		return failure(o->cmd, "%s: reading back: %s", target_name(target).text,
			       weir_strerror(rc));
	if (wrong != UINT64_MAX)
		return failure(o->cmd, "%s: the data written at %" PRIu64 " is missing",
			       target_name(target).text, wrong);
	return 0;
}

int run_measure(struct perf_run *run, struct perf_result *result)
{
	const struct perf_options *o = run->load.options;
	int status;

	*result = (struct perf_result){ 0 };
	status = beside_start(o, &run->beside);
	if (!status)
		status = run_workers(run, result);
	if (status)
		return status;
	sum_up(run, result);
	status = first_failure(run);
	if (!status && run->load.verify)
		status = compare_what_was_written(run);
	if (!status && !result->ops)
		status = failure(o->cmd, "stopped before any request completed");
	return status;
}

static int make_verify(struct perf_run *run)
{
	const struct perf_options *o = run->load.options;
	int rc;

	if (!o->verify)
		return 0;
	rc = verify_init(&run->verify, o->seed, o->region_bytes, o->size);
	if (rc)
		return failure(o->cmd, "out of memory to verify");
	run->load.verify = &run->verify;
	if (o->op == PERF_WRITE && !run->load.trace)
		return 0; /* unwritten memory contains 0, which never matches */
	rc = verify_write_all(&run->verify, run->load.targets->region);
	if (rc)
		return failure(o->cmd, "%s: writing test data: %s",
			       target_name(run->load.targets).text, weir_strerror(rc));
	return 0;
}

/* Populates the buffers, so that no page fault is measured. */
static int make_buffers(struct perf_run *run, size_t slot_bytes)
{
	const struct perf_options *o = run->load.options;
	struct weir_error error;
	void *at;

	run->buffers_bytes = slot_bytes * o->depth * o->threads;
	at = mmap(NULL, run->buffers_bytes, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (at == MAP_FAILED)
		return failure(o->cmd,
			       "no memory for %s of buffers: use fewer --threads or less --depth",
			       size_format(run->buffers_bytes).text);
	run->buffers = at;
	for (unsigned int i = 0; o->user_mr && i < o->nr_donors; i++) {
		struct perf_target *target = &run->load.targets[i];

		if (weir_memory_register(target->client.session, at, run->buffers_bytes,
					 &target->memory, &error))
			return failure(o->cmd, "%s", error.text);
	}
	return 0;
}

static int make_workers(struct perf_run *run, size_t slot_bytes)
{
	const struct perf_options *o = run->load.options;

	run->load.workers = calloc(o->threads, sizeof(*run->load.workers));
	if (!run->load.workers)
		return failure(o->cmd, "out of memory");
	for (unsigned int i = 0; i < o->threads; i++) {
		if (worker_init(&run->load.workers[i], &run->load, i,
				run->buffers + i * slot_bytes * o->depth, slot_bytes))
			return failure(o->cmd, "out of memory");
	}
	return 0;
}

/* Threads are distributed over the donors in turn. */
static unsigned int workers_of(const struct perf_options *o, unsigned int donor)
{
	return o->threads / o->nr_donors + (donor < o->threads % o->nr_donors);
}

int run_create(const struct perf_options *o, const struct page_trace *trace,
	       struct perf_target *targets, struct perf_run **run)
{
	size_t slot_bytes = trace ? trace->count_max * (size_t)TRACE_PAGE : o->size;
	struct perf_run *r = calloc(1, sizeof(*r));
	int status;

	*run = r;
	if (!r)
		return failure(o->cmd, "out of memory");
	r->load.options = o;
	r->load.trace = trace;
	r->load.targets = targets;
	sem_init(&r->load.ended, 0, 0);
	for (unsigned int i = 0; !trace && i < o->nr_donors; i++)
		walk_plan_init(&targets[i].plan, o->pattern, o->region_bytes / o->size, o->stride,
			       workers_of(o, i), o->seed + i);
	status = make_buffers(r, slot_bytes);
	if (!status)
		status = make_workers(r, slot_bytes);
	if (!status)
		status = targets_touch(o, targets);
	if (!status)
		status = make_verify(r);
	return status;
}

int run_end(struct perf_run *run)
{
	int status = run ? beside_stop(run->load.options, run->beside) : 0;

	if (run)
		run->beside = NULL;
	return status;
}

void run_destroy(struct perf_run *run)
{
	if (!run)
		return;
	for (unsigned int i = 0; run->load.workers && i < run->load.options->threads; i++)
		worker_fini(&run->load.workers[i]);
	free(run->load.workers);
	verify_fini(&run->verify);
	if (run->buffers)
		munmap(run->buffers, run->buffers_bytes);
	sem_destroy(&run->load.ended);
	free(run);
}
