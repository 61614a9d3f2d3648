/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sharers WAY BULK BYTES DEPTH URGENT SECONDS HOST [NEAR FAR PID...] - many connections, one NIC
 *
 * BULK connections that send messages of BYTES with DEPTH under way; URGENT 1: another that sends
 * URGENT_BYTES one at a time. The server listens at HOST. NEAR, FAR: the sockets of two weir share,
 * whose processes are the PIDs. Prints a line of JSON. Without an RDMA device run it as
 * `weir run -- sharers ...`.
 */
#include "bench/share/meter.h"
#include "bench/share/way.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP 0.2 /* of the time, before it is measured */
#define SAMPLES_MAX (1 << 16) /* of a connection: the last ones */

static const struct way *const ways[] = { &way_busy, &way_event, &way_locked, &way_weir,
					 &way_lent, &way_taken, &way_put };

static const struct way *way;
static struct job job;
static pthread_barrier_t start;
static _Atomic bool is_measured, is_over;

/* A connection's thread. @samples: nanoseconds, of @nr_samples messages. */
struct conn {
	pthread_t thread;
	int number;
	_Atomic uint64_t messages;
	uint64_t samples[SAMPLES_MAX], nr_samples;
};

static struct conn *conns;

void must(bool good, const char *what, const char *why)
{
	if (good)
		return;
	fprintf(stderr, "sharers: %s: %s: %s\n", way ? way->name : "", what, why);
	_exit(1);
}

static size_t message_of(int conn)
{
	return conn == job.urgent ? URGENT_BYTES : job.size;
}

size_t bytes_of(const struct job *of, int conn)
{
	return conn == of->urgent && of->size < URGENT_BYTES ? URGENT_BYTES : of->size;
}

static uint64_t now_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static void pause_for(double seconds)
{
	const struct timespec time = { (time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9) };

	nanosleep(&time, NULL);
}

static void *answer(void *arg)
{
	const struct conn *c = arg;

	for (;;) {
		way->receive(c->number);
		way->send(c->number, ANSWER_BYTES);
	}
	return NULL;
}

static void *ask(void *arg)
{
	struct conn *c = arg;
	const int depth = c->number == job.urgent ? 1 : job.depth;
	uint64_t began[DEPTH_MAX], sent = 0, answered = 0;

	pthread_barrier_wait(&start);
	while (!is_over) {
		for (; sent < answered + (uint64_t)depth; sent++) {
			began[sent % DEPTH_MAX] = now_ns();
			way->send(c->number, message_of(c->number));
		}
		way->receive(c->number);
		if (is_measured) {
			c->samples[c->nr_samples++ % SAMPLES_MAX] =
				now_ns() - began[answered % DEPTH_MAX];
			c->messages++;
		}
		answered++;
	}
	return NULL;
}

static void threads_start(void *(*run)(void *))
{
	int i;

	conns = calloc((size_t)job.conns, sizeof(*conns));
	must(conns, "memory", "none is left");
	for (i = 0; i < job.conns; i++) {
		conns[i].number = i;
		must(!pthread_create(&conns[i].thread, NULL, run, &conns[i]), "thread", "none");
	}
}

/* The server, until it is killed. */
static void serve(int socket)
{
	char address[ADDRESS_MAX] = "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	way->serve(&job, address);
	must(write(socket, address, sizeof(address)) == sizeof(address), "caller", "it has gone");
	way->accept(&job);
	threads_start(answer);
	pause();
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Of connections @first to before @last: how many messages, and how long they took. */
static void say(const char *name, int first, int last)
{
	uint64_t *all = malloc((size_t)(last - first + 1) * SAMPLES_MAX * sizeof(*all)), n = 0;
	uint64_t messages = 0;
	int i;

	must(all, "memory", "none is left");
	for (i = first; i < last; i++) {
		uint64_t of = conns[i].nr_samples < SAMPLES_MAX ? conns[i].nr_samples : SAMPLES_MAX;

		memcpy(all + n, conns[i].samples, of * sizeof(*all));
		n += of;
		messages += conns[i].messages;
	}
	qsort(all, n, sizeof(*all), by_value);
	printf(", \"%s\": {\"messages\": %llu, \"p50_us\": %.1f, \"p99_us\": %.1f}", name,
	       (unsigned long long)messages, n ? (double)all[n / 2] / 1e3 : 0,
	       n ? (double)all[n * 99 / 100] / 1e3 : 0);
	free(all);
}

static void measure(struct meter *m)
{
	struct tally before, after;
	struct reading used;
	uint64_t began_ns, took_ns;
	int i;

	pthread_barrier_wait(&start);
	pause_for(job.seconds * WARM_UP);
	meter_begin(m);
	way->count(&before);
	began_ns = now_ns();
	is_measured = true;
	pause_for(job.seconds);
	is_measured = false;
	took_ns = now_ns() - began_ns;
	way->count(&after);
	used = meter_read(m);
	is_over = true;
	for (i = 0; i < job.conns; i++)
		pthread_join(conns[i].thread, NULL);
	printf("{\"seconds\": %.3f, \"cpu_s\": %.4f, \"switches\": %llu, \"syscalls\": %lld, "
	       "\"work_requests\": %llu, \"doorbells\": %llu, \"sleeps\": %llu, "
	       "\"ahead_bytes_max\": %llu", (double)took_ns / 1e9, (double)used.cpu_ns / 1e9,
	       (unsigned long long)used.switches,
	       m->has_syscalls ? (long long)used.syscalls : -1,
	       (unsigned long long)(after.work_requests - before.work_requests),
	       (unsigned long long)(after.doorbells - before.doorbells),
	       (unsigned long long)(after.sleeps - before.sleeps),
	       (unsigned long long)after.ahead_bytes_max);
	say("bulk", 0, job.urgent < 0 ? job.conns : job.urgent);
	if (job.urgent >= 0)
		say("urgent", job.urgent, job.conns);
	printf("}\n");
}

static void parse(int argc, char **argv, struct meter *m)
{
	size_t i;

	must(argc >= 8, "arguments", "WAY BULK BYTES DEPTH URGENT SECONDS HOST [NEAR FAR PID...]");
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(ways[i]->name, argv[1]))
			way = ways[i];
	must(way, argv[1], "there are busy, event, locked, weir, lent, taken and put");
	job = (struct job){ .conns = atoi(argv[2]) + atoi(argv[5]), .urgent = -1,
			    .size = (size_t)atol(argv[3]), .depth = atoi(argv[4]),
			    .seconds = atof(argv[6]) };
	if (atoi(argv[5]))
		job.urgent = job.conns - 1;
	must(job.conns >= 1 && job.conns <= CONNS_MAX && job.size >= ANSWER_BYTES &&
	     job.depth >= 1 && job.depth <= DEPTH_MAX && job.seconds > 0, "arguments",
	     "1 to 256 connections, a depth to 64, messages from 8 bytes on");
	job.host = argv[7];
	if (argc >= 10) {
		job.near = argv[8];
		job.far = argv[9];
	}
	for (i = 10; i < (size_t)argc && m->nr_pids < METER_PIDS_MAX - 2; i++)
		m->pids[m->nr_pids++] = atoi(argv[i]);
}

int main(int argc, char **argv)
{
	static struct meter meter;
	char address[ADDRESS_MAX];
	int sockets[2];
	pid_t server;

	parse(argc, argv, &meter);
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), "socket", "none");
	server = fork();
	if (!server)
		serve(sockets[1]);
	close(sockets[1]);
	must(read(sockets[0], address, sizeof(address)) == sizeof(address), "server", "it has gone");
	way->call(&job, address);
	pthread_barrier_init(&start, NULL, (unsigned int)job.conns + 1);
	meter.pids[meter.nr_pids++] = getpid();
	meter.pids[meter.nr_pids++] = server;
	threads_start(ask);
	measure(&meter);
	kill(server, SIGKILL);
	fflush(stdout);
	_exit(0); /* the server is gone: there is nobody to say goodbye to */
}
