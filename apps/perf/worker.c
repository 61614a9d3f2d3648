/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/worker.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define NAP_US 50000u /* bounds the delay of a stop request during a long gap */

static void wake_all(struct load *load)
{
	for (unsigned int i = 0; i < load->options->threads; i++)
		weir_queue_wake(load->workers[i].queue);
}

void load_start(struct load *load)
{
	__atomic_store_n(&load->started, true, __ATOMIC_SEQ_CST);
	wake_all(load);
}

void load_stop(struct load *load)
{
	__atomic_store_n(&load->stop, true, __ATOMIC_SEQ_CST);
	wake_all(load);
}

static bool is_stopped(const struct load *load)
{
	return __atomic_load_n(&load->stop, __ATOMIC_SEQ_CST);
}

/* Records a worker's first error and ends the measurement. */
static void fail(struct perf_worker *w, int error, const struct want *want)
{
	if (!w->error) {
		w->error = error;
		w->failed = *want;
	}
	load_stop(w->load);
}

static void check_contents(struct perf_worker *w, const struct perf_slot *slot)
{
	struct verify *verify = w->load->verify;
	const struct want *want = &slot->want;

	if (want->is_write)
		verify_note_written(verify, want->offset, want->length);
	else if (!verify_matches(verify, slot->buffer, want->offset, want->length))
		fail(w, -EILSEQ, want);
}

static void account_slot(struct perf_worker *w, const struct perf_slot *slot, int status,
			 uint64_t end_ns)
{
	weir_histogram_add(&w->latency, end_ns - slot->begin_ns);
	w->end_ns = end_ns;
	if (status) {
		fail(w, status, &slot->want);
		return;
	}
	__atomic_store_n(&w->ops, w->ops + 1, __ATOMIC_RELAXED);
	w->bytes += slot->want.length;
	if (w->load->verify)
		check_contents(w, slot);
}

static void slot_done(struct perf_worker *w, struct perf_slot *slot, int status, uint64_t end_ns)
{
	if (!slot->in_flight) {
		w->twice++;
		return;
	}
	account_slot(w, slot, status, end_ns);
	slot->in_flight = false;
	slot->next = w->free;
	w->free = slot;
	w->in_flight--;
}

/*
 * In a trace, workers wait until a number of requests is complete. A waiter sets turn, then reads
 * done; this thread updates done, then reads turn. Both are sequentially consistent, so at least
 * one sees the other.
 */
static void tell_done(struct load *load, unsigned int count)
{
	uint64_t done = __atomic_add_fetch(&load->done, count, __ATOMIC_SEQ_CST);

	for (unsigned int i = 0; i < load->options->threads; i++) {
		struct perf_worker *other = &load->workers[i];

		if (__atomic_load_n(&other->turn, __ATOMIC_SEQ_CST) <= done)
			weir_queue_wake(other->queue);
	}
}

/*
 * Takes all completions. With @timeout_ms -1, waits for a completion or a wake; with 0, does not
 * wait.
 */
static void collect_done(struct perf_worker *w, int timeout_ms)
{
	int count = weir_queue_wait(w->queue, w->events, (int)w->load->options->depth, timeout_ms);
	uint64_t end_ns = count ? weir_now_ns() : 0;

	for (int i = 0; i < count; i++)
		slot_done(w, w->events[i].arg, w->events[i].status, end_ns);
	if (count && w->load->trace)
		tell_done(w->load, (unsigned int)count);
}

static void wait_for_some(struct perf_worker *w)
{
	while (!w->free)
		collect_done(w, -1);
}

static void wait_for_all(struct perf_worker *w)
{
	while (w->in_flight)
		collect_done(w, -1);
}

static void wait_for_turn(struct perf_worker *w, uint64_t done)
{
	collect_done(w, 0);
	__atomic_store_n(&w->turn, done, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&w->load->done, __ATOMIC_SEQ_CST) < done && !is_stopped(w->load))
		collect_done(w, -1);
	__atomic_store_n(&w->turn, UINT64_MAX, __ATOMIC_SEQ_CST);
}

/*
 * Takes the next request of the trace, once as many are complete as when it was recorded. Returns
 * false at the end.
 */
static bool want_recorded(struct perf_worker *w, struct want *want)
{
	const struct page_trace *trace = w->load->trace;
	const struct trace_record *record;

	while (w->at < trace->nr_records && trace->records[w->at].thread != w->index)
		w->at++;
	if (w->at == trace->nr_records)
		return false;
	record = &trace->records[w->at++];
	wait_for_turn(w, record->done);
	*want = (struct want){
		record->is_write,
		record->page * TRACE_PAGE,
		(uint64_t)record->count * TRACE_PAGE,
	};
	return !is_stopped(w->load);
}

/*
 * Returns false when all is submitted. Each worker submits at least once, however short the time.
 */
static bool want_next(struct perf_worker *w, struct want *want)
{
	const struct perf_options *o = w->load->options;

	if (!w->quota || (w->has_begun && is_stopped(w->load)))
		return false;
	if (w->load->trace)
		return want_recorded(w, want);
	want->is_write = o->op == PERF_WRITE || (o->op == PERF_MIX && walk_random(&w->walk) >> 63);
	want->length = o->size;
	want->offset = walk_next(&w->walk) * o->size;
	w->quota--;
	return true;
}

static void fill_slot(struct perf_worker *w, const struct want *want)
{
	struct load *load = w->load;
	struct perf_slot *slot = w->free;

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
		.completion = { .queue = w->queue, .arg = slot },
	};
}

/* Refused requests complete immediately. */
static void submit_batch(struct perf_worker *w)
{
	unsigned int i, submitted;
	uint64_t begin_ns = weir_now_ns();
	int rc;

	for (i = 0; i < w->nr_batch; i++) {
		struct perf_slot *slot = w->batch[i].completion.arg;

		slot->in_flight = true;
		slot->begin_ns = begin_ns;
	}
	w->in_flight += w->nr_batch;
	w->has_begun = true;
	rc = weir_transfer_async(w->batch, w->nr_batch, &submitted);
	for (i = submitted; i < w->nr_batch; i++)
		slot_done(w, w->batch[i].completion.arg, rc, begin_ns);
	w->nr_batch = 0;
}

/* Number of requests to submit together: a trace's singly; a burst's not across a gap. */
static unsigned int batch_max(const struct perf_worker *w, uint64_t submitted)
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

/* Return: number of requests to submit; 0 at the end. */
static unsigned int gather_batch(struct perf_worker *w, uint64_t submitted)
{
	unsigned int max = batch_max(w, submitted);
	struct want want;

	while (w->free && w->nr_batch < max && want_next(w, &want))
		fill_slot(w, &want);
	return w->nr_batch;
}

/* A gap begins when the whole burst is complete. */
static void pause_between_bursts(struct perf_worker *w, uint64_t submitted)
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

static void work(struct perf_worker *w)
{
	unsigned int batch;
	uint64_t submitted = 0;

	w->begin_ns = w->end_ns = weir_now_ns();
	while ((batch = gather_batch(w, submitted))) {
		submit_batch(w);
		submitted += batch;
		pause_between_bursts(w, submitted);
		wait_for_some(w);
	}
	wait_for_all(w);
}

void *worker_run(void *arg)
{
	struct perf_worker *w = arg;

	prctl(PR_SET_NAME, "weir-worker");
	prctl(PR_SET_TIMERSLACK, 1); /* makes gaps precise */
	while (!__atomic_load_n(&w->load->started, __ATOMIC_SEQ_CST))
		collect_done(w, -1);
	work(w);
	if (!__atomic_sub_fetch(&w->load->running, 1, __ATOMIC_SEQ_CST))
		sem_post(&w->load->ended);
	return NULL;
}

int worker_init(struct perf_worker *w, struct load *load, unsigned int index,
		unsigned char *buffers, uint64_t slot_bytes)
{
	const struct perf_options *o = load->options;

	*w = (struct perf_worker){
		.load = load,
		.target = &load->targets[index % o->nr_donors],
		.index = index,
		.turn = UINT64_MAX,
		.quota = UINT64_MAX,
	};
	w->slots = calloc(o->depth, sizeof(*w->slots));
	w->batch = calloc(o->depth, sizeof(*w->batch));
	w->events = calloc(o->depth, sizeof(*w->events));
	if (!w->slots || !w->batch || !w->events || weir_queue_create(&w->queue))
		return -ENOMEM;
	for (unsigned int i = o->depth; i-- > 0;) {
		w->slots[i] =
			(struct perf_slot){ .next = w->free, .buffer = buffers + i * slot_bytes };
		w->free = &w->slots[i];
	}
	if (!load->trace)
		walk_init(&w->walk, &w->target->plan, index / o->nr_donors);
	if (o->ops) /* the first workers take the remainder */
		w->quota = o->ops / o->threads + (index < o->ops % o->threads);
	return 0;
}

void worker_fini(struct perf_worker *w)
{
	weir_queue_destroy(w->queue);
	free(w->events);
	free(w->batch);
	free(w->slots);
}
