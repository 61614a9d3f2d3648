/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define NAP_US 50000u /* in a long gap, who is to stop is not waited for longer */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void stop_all(struct load *load)
{
	__atomic_store_n(&load->stop, true, __ATOMIC_SEQ_CST);
	latch_notify(&load->turns);
}

static bool is_stopped(const struct load *load)
{
	return __atomic_load_n(&load->stop, __ATOMIC_SEQ_CST);
}

/* The first of a worker's errors ends the measurement. */
static void fail(struct worker *w, int error, const struct want *want)
{
	if (!w->error) {
		w->error = error;
		w->failed = *want;
	}
	stop_all(w->load);
}

static void push_returned(struct worker *w, struct slot *slot)
{
	slot->next = __atomic_load_n(&w->returned, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&w->returned, &slot->next, slot, true, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
}

/* Runs in whichever thread saw the completion. */
static void request_done(void *arg, int status)
{
	struct slot *slot = arg;
	struct worker *w = slot->worker;
	struct load *load = w->load;

	if (!__atomic_exchange_n(&slot->in_flight, false, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(&load->twice, 1, __ATOMIC_RELAXED);
		return;
	}
	slot->end_ns = now_ns();
	slot->status = status;
	push_returned(w, slot);
	latch_notify(&w->back);
	if (load->trace) {
		__atomic_fetch_add(&load->done, 1, __ATOMIC_SEQ_CST);
		latch_notify(&load->turns);
	}
}

static void check_contents(struct worker *w, const struct slot *slot)
{
	struct verify *verify = w->load->verify;
	const struct want *want = &slot->want;

	if (want->is_write)
		verify_note_written(verify, want->offset, want->length);
	else if (!verify_matches(verify, slot->buffer, want->offset, want->length))
		fail(w, -EILSEQ, want);
}

static void account(struct worker *w, const struct slot *slot)
{
	histogram_add(&w->latency, slot->end_ns - slot->begin_ns);
	if (slot->end_ns > w->end_ns)
		w->end_ns = slot->end_ns;
	if (slot->status) {
		fail(w, slot->status, &slot->want);
		return;
	}
	__atomic_store_n(&w->ops, w->ops + 1, __ATOMIC_RELAXED);
	w->bytes += slot->want.length;
	if (w->load->verify)
		check_contents(w, slot);
}

static void collect(struct worker *w)
{
	struct slot *slot = __atomic_exchange_n(&w->returned, NULL, __ATOMIC_SEQ_CST), *next;

	for (; slot; slot = next) {
		next = slot->next;
		account(w, slot);
		w->in_flight--;
		slot->next = w->free;
		w->free = slot;
	}
}

static bool has_returned(const void *arg)
{
	const struct worker *w = arg;

	return __atomic_load_n(&w->returned, __ATOMIC_SEQ_CST);
}

static void wait_for_some(struct worker *w)
{
	latch_wait(&w->back, has_returned, w);
	collect(w);
}

static void wait_for_all(struct worker *w)
{
	while (w->in_flight)
		wait_for_some(w);
}

static const struct trace_record *next_record(const struct worker *w)
{
	return &w->load->trace->records[w->at];
}

static bool may_go(const void *arg)
{
	const struct worker *w = arg;

	return __atomic_load_n(&w->load->done, __ATOMIC_SEQ_CST) >= next_record(w)->done ||
	       is_stopped(w->load);
}

/* Goes when as many are done as were when it was recorded. Returns false at the end. */
static bool want_recorded(struct worker *w, struct want *want)
{
	const struct trace *trace = w->load->trace;
	const struct trace_record *record;

	while (w->at < trace->nr_records && trace->records[w->at].thread != w->index)
		w->at++;
	if (w->at == trace->nr_records)
		return false;
	latch_wait(&w->load->turns, may_go, w);
	record = next_record(w);
	w->at++;
	*want = (struct want){
		record->is_write, record->page * TRACE_PAGE, (uint64_t)record->count * TRACE_PAGE,
	};
	return !is_stopped(w->load);
}

/* Returns false when there is no more to do. */
static bool want_next(struct worker *w, struct want *want)
{
	const struct perf_options *o = w->load->options;

	if (is_stopped(w->load) || !w->quota)
		return false;
	if (w->load->trace)
		return want_recorded(w, want);
	want->is_write = o->op == PERF_WRITE || (o->op == PERF_MIX && walk_random(&w->walk) >> 63);
	want->length = o->size;
	want->offset = walk_next(&w->walk) * o->size;
	w->quota--;
	return true;
}

static void fill(struct worker *w, const struct want *want)
{
	struct load *load = w->load;
	struct slot *slot = w->free;

	w->free = slot->next;
	slot->want = *want;
	if (load->verify && want->is_write)
		verify_fill(load->verify, slot->buffer, want->offset, want->length);
	slot->iov = (struct weir_iov){ slot->buffer, want->length, w->target->memory };
	w->batch[w->nr_batch++] = (struct weir_transfer){
		.direction = want->is_write ? WEIR_WRITE : WEIR_READ,
		.region = w->target->region,
		.offset = want->offset,
		.iov = &slot->iov,
		.iovcnt = 1,
		.completion = { .done = request_done, .arg = slot },
	};
}

/* Those that were refused have returned by this. */
static void submit(struct worker *w)
{
	unsigned int i, submitted;
	uint64_t begin_ns = now_ns();
	int err;

	for (i = 0; i < w->nr_batch; i++) {
		struct slot *slot = w->batch[i].completion.arg;

		__atomic_store_n(&slot->in_flight, true, __ATOMIC_RELAXED);
		slot->begin_ns = begin_ns;
	}
	w->in_flight += w->nr_batch;
	err = weir_transfer_async(w->batch, w->nr_batch, &submitted);
	for (i = submitted; i < w->nr_batch; i++)
		request_done(w->batch[i].completion.arg, err);
	w->nr_batch = 0;
}

/* How many go together now: what was recorded went one by one; a burst ends before a gap. */
static unsigned int batch_max(const struct worker *w, uint64_t submitted)
{
	const struct perf_options *o = w->load->options;
	unsigned int left;

	if (w->load->trace)
		return 1;
	if (o->pattern != PATTERN_CLUSTERS)
		return o->batch;
	left = (unsigned int)(o->cluster - submitted % o->cluster);
	return left < o->batch ? left : o->batch;
}

/* Return: how many there are to be submitted; 0 at the end. */
static unsigned int gather(struct worker *w, uint64_t submitted)
{
	unsigned int max = batch_max(w, submitted);
	struct want want;

	while (w->free && w->nr_batch < max && want_next(w, &want))
		fill(w, &want);
	return w->nr_batch;
}

/* A burst is done before there is a gap, and the gap before the next burst. */
static void pause_between_bursts(struct worker *w, uint64_t submitted)
{
	const struct perf_options *o = w->load->options;
	unsigned int left_us, part_us;

	if (o->pattern != PATTERN_CLUSTERS || submitted % o->cluster)
		return;
	wait_for_all(w);
	for (left_us = o->gap_us; left_us && !is_stopped(w->load); left_us -= part_us) {
		part_us = left_us < NAP_US ? left_us : NAP_US;
		nanosleep(&(struct timespec){ .tv_nsec = (long)part_us * 1000 }, NULL);
	}
}

static void work(struct worker *w)
{
	unsigned int batch;
	uint64_t submitted = 0;

	w->begin_ns = w->end_ns = now_ns();
	while ((batch = gather(w, submitted))) {
		submit(w);
		submitted += batch;
		pause_between_bursts(w, submitted);
		if (!w->free)
			wait_for_some(w);
	}
	wait_for_all(w);
}

static bool has_started(const void *arg)
{
	const struct load *load = arg;

	return __atomic_load_n(&load->started, __ATOMIC_SEQ_CST);
}

void *worker_run(void *arg)
{
	struct worker *w = arg;

	prctl(PR_SET_NAME, "weir-worker");
	prctl(PR_SET_TIMERSLACK, 1); /* gaps are as long as they should be */
	latch_wait(&w->load->turns, has_started, w->load);
	work(w);
	if (!__atomic_sub_fetch(&w->load->running, 1, __ATOMIC_SEQ_CST))
		sem_post(&w->load->ended);
	return NULL;
}

int worker_init(struct worker *w, struct load *load, unsigned int index, unsigned char *buffers,
		uint64_t slot_bytes)
{
	const struct perf_options *o = load->options;

	*w = (struct worker){
		.load = load, .target = &load->targets[index % o->nr_donors], .index = index,
	};
	w->slots = calloc(o->depth, sizeof(*w->slots));
	w->batch = calloc(o->depth, sizeof(*w->batch));
	if (!w->slots || !w->batch) {
		free(w->slots);
		free(w->batch);
		w->slots = NULL;
		return -ENOMEM;
	}
	for (unsigned int i = o->depth; i-- > 0;) {
		w->slots[i] = (struct slot){
			.worker = w, .next = w->free, .buffer = buffers + i * slot_bytes,
		};
		w->free = &w->slots[i];
	}
	latch_init(&w->back);
	if (!load->trace)
		walk_init(&w->walk, &w->target->plan, index / o->nr_donors);
	w->quota = UINT64_MAX;
	if (o->ops) /* the first ones do what is over */
		w->quota = o->ops / o->threads + (index < o->ops % o->threads);
	return 0;
}

void worker_fini(struct worker *w)
{
	if (!w->slots)
		return;
	latch_fini(&w->back);
	free(w->slots);
	free(w->batch);
}
