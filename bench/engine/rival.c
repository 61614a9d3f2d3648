/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One benchmark loop over weir, plain verbs, UCX and libfabric on the same device.
 *
 * rival WAY read|write sequential|random THREADS DEPTH BYTES SECONDS [MIB] - rates of each way
 *
 * Prints requests a second, then CPU time in microseconds and context switches a request; with
 * libweir-count.so preloaded also work requests, receives included, and doorbells a request.
 * Sequential: thread t of n accesses every n-th block, so that neighbours belong to neighbouring
 * threads. All MIB of lent memory are touched before the clock starts, which takes long on a slow
 * device. With 1000x in place of SECONDS each thread makes 1000 requests, for counting
 * instructions. Without an RDMA device run `weir run -- rival ...`.
 */
#include "bench/engine/rival.h"
#include "core/base/rng.h"
#include "lib/base/clock.h"
#include "preload/count/count.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma weak verbs_count_read
#define LENT_MIB 64
#define LENT_MIB_MAX 256
#define LOOK 16 /* requests between two reads of the clock */

static const struct transport *const rivals[] = {
	&rival_hybrid,	     &rival_single,    &rival_doorbell,
	&rival_asleep,	     &transport_verbs, &transport_events,
#ifdef WITH_UCX
	&transport_ucx,
#endif
#ifdef WITH_LIBFABRIC
	&transport_libfabric,
#endif
};

#define NR_RIVALS (sizeof(rivals) / sizeof(rivals[0]))

/* The parameters of a run. */
struct rival_job {
	bool is_read, is_random;
	size_t size; /* of a request */
	double seconds;
	uint64_t ops; /* of each lane; if not 0, replaces @seconds */
};

static const struct transport *rival;
static struct transport_job setup;
static struct rival_job job;
static char *buffers;
static pthread_barrier_t warm, start;

/* A lane and its thread, on cache lines of its own. */
struct rival_lane {
	pthread_t thread;
	int number, in_flight;
	uint64_t ops;
	double seconds;
	uint64_t random;
} __attribute__((aligned(64)));

static double now(void)
{
	return (double)weir_now_ns() / 1e9;
}

/* Use of this process so far. */
struct rival_usage {
	double cpu_seconds, switches;
};

static struct rival_usage usage_now(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return (struct rival_usage){
		(double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
			(double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6,
		(double)(used.ru_nvcsw + used.ru_nivcsw),
	};
}

static uint64_t next_offset(struct rival_lane *lane, uint64_t step)
{
	uint64_t blocks = setup.lent_bytes / job.size;

	if (!job.is_random)
		return (step * (uint64_t)setup.lanes + (uint64_t)lane->number) % blocks * job.size;
	return weir_rng_scale(weir_rng_next(&lane->random), blocks) * job.size;
}

/* Waits for room, then posts the lane's request @step at @offset of the lent memory. */
static void post(struct rival_lane *lane, uint64_t step, uint64_t offset)
{
	uint64_t slot = (uint64_t)lane->number * (uint64_t)setup.depth +
			step % (uint64_t)setup.depth;

	while (lane->in_flight == setup.depth)
		lane->in_flight -= rival->reap(lane->number);
	rival->post(lane->number, job.is_read, buffers + slot * job.size, job.size, offset);
	lane->in_flight++;
}

/* Waits until all requests of the lane have taken effect. */
static void finish(struct rival_lane *lane)
{
	while (lane->in_flight)
		lane->in_flight -= rival->reap(lane->number);
	if (rival->settle)
		rival->settle(lane->number);
}

/* Touches all memory before the clock starts: a first touch costs more than a request. */
static void warm_up(struct rival_lane *lane)
{
	uint64_t at, stride = (uint64_t)setup.lanes * job.size, step = 0;

	for (at = (uint64_t)lane->number * job.size; at + job.size <= setup.lent_bytes;
	     at += stride)
		post(lane, step++, at);
	finish(lane);
}

static void *lane_run(void *arg)
{
	struct rival_lane *lane = arg;
	uint64_t step = 0;
	double begin, end;

	warm_up(lane);
	pthread_barrier_wait(&warm);
	pthread_barrier_wait(&start);
	begin = now();
	end = begin + job.seconds;
	while (job.ops ? step < job.ops : step % LOOK || now() < end) {
		post(lane, step, next_offset(lane, step));
		step++;
	}
	finish(lane);
	lane->seconds = now() - begin;
	lane->ops = step;
	return NULL;
}

/* Counts at the verbs' boundary; zeroes unless libweir-count.so is loaded. */
static struct verbs_counters counted(void)
{
	struct verbs_counters now = { 0 };

	if (verbs_count_read)
		verbs_count_read(&now);
	return now;
}

static void show(uint64_t ops, double seconds, const struct rival_usage *used,
		 const struct verbs_counters *before)
{
	const struct verbs_counters now = counted();
	const struct rival_usage after = usage_now();
	double each = (double)ops;

	printf("%.1f %.4f %.4f", each / seconds,
	       (after.cpu_seconds - used->cpu_seconds) * 1e6 / each,
	       (after.switches - used->switches) / each);
	if (verbs_count_read)
		printf(" %.4f %.4f",
		       (double)(now.send_wrs + now.recv_wrs - before->send_wrs - before->recv_wrs) /
			       each,
		       (double)(now.doorbells - before->doorbells) / each);
	printf("\n");
}

static void borrow_and_run(int socket)
{
	struct verbs_counters before;
	struct rival_lane lanes[LANES_MAX] = { 0 };
	struct rival_usage used;
	double seconds = 0;
	uint64_t ops = 0;
	int i;

	buffers = transport_memory(setup.buffers_bytes);
	rival->borrow(socket, buffers, &setup);
	pthread_barrier_init(&warm, NULL, (unsigned int)setup.lanes + 1);
	pthread_barrier_init(&start, NULL, (unsigned int)setup.lanes + 1);
	for (i = 0; i < setup.lanes; i++) {
		lanes[i].number = i;
		lanes[i].random = (uint64_t)i + 1;
		must(!pthread_create(&lanes[i].thread, NULL, lane_run, &lanes[i]), "thread",
		     "none");
	}
	pthread_barrier_wait(&warm);
	before = counted();
	used = usage_now();
	pthread_barrier_wait(&start);
	for (i = 0; i < setup.lanes; i++) {
		pthread_join(lanes[i].thread, NULL);
		ops += lanes[i].ops;
		seconds = lanes[i].seconds > seconds ? lanes[i].seconds : seconds;
	}
	show(ops, seconds, &used, &before);
}

static int number(const char *text, int max)
{
	int value = atoi(text);

	must(value >= 1 && value <= max, text, "out of range");
	return value;
}

static void parse(char **argv)
{
	size_t lent_bytes;
	bool is_ops;

	for (size_t i = 0; i < NR_RIVALS; i++) {
		if (!strcmp(argv[1], rivals[i]->name))
			rival = rivals[i];
	}
	must(rival, argv[1], "is not built in, or there is no such way");
	is_ops = argv[7][strcspn(argv[7], "x")];
	lent_bytes = (size_t)(argv[8] ? number(argv[8], LENT_MIB_MAX) : LENT_MIB) << 20;
	setup = (struct transport_job){
		.lanes = number(argv[4], LANES_MAX),
		.depth = number(argv[5], DEPTH_MAX),
		.request_bytes = (size_t)number(argv[6], (int)(lent_bytes / 4)),
		.lent_bytes = lent_bytes,
	};
	setup.buffers_bytes = (size_t)setup.lanes * (size_t)setup.depth * setup.request_bytes;
	job = (struct rival_job){
		.is_read = !strcmp(argv[2], "read"),
		.is_random = !strcmp(argv[3], "random"),
		.size = setup.request_bytes,
		.seconds = atof(argv[7]),
		.ops = is_ops ? (uint64_t)atoll(argv[7]) : 0,
	};
}

int main(int argc, char **argv)
{
	int socket, status;
	pid_t lender;

	if (argc != 8 && argc != 9) {
		fprintf(stderr,
			"Usage: rival hybrid|single|doorbell|asleep|verbs|events|ucx|libfabric "
			"read|write "
			"sequential|random THREADS DEPTH BYTES SECONDS [MIB]\n");
		return 2;
	}
	parse(argv);
	lender = transport_start_lender(rival, &setup, &socket);
	borrow_and_run(socket);
	fflush(stdout);
	kill(lender, SIGKILL);
	waitpid(lender, &status, 0);
	_exit(0); /* skips the library's exit handlers, which are not measured */
}
