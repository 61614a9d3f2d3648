/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sharers WAY BULK BYTES DEPTH WEIGHT URGENT SECONDS HOST [NEAR FAR PID...]
 *
 * Many connections over one NIC. BULK connections send messages of BYTES with DEPTH in flight, and
 * with WEIGHT; each of the three is a list like 1024,65536 that the connections use in turn. URGENT
 * 1: one more connection sends URGENT_BYTES, one message at a time. The server listens at HOST.
 * NEAR, FAR: the sockets of two weir share, whose processes are the PIDs. $SHARERS_KEY: a key file,
 * which muxes need beyond loopback. Prints a line of JSON. Without an RDMA device run `weir run --
 * sharers ...`.
 */
#include "apps/common/json.h"
#include "apps/common/number.h"
#include "bench/share/meter.h"
#include "bench/share/way.h"
#include "lib/base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP 0.2 /* part of the time, before the measurement */
#define SAMPLES_MAX (1 << 16) /* of a connection: the last samples */
#define LOOK_S 0.1 /* interval of the samples of received bytes */
#define LOOKS_MAX 1024

static const struct share_way *const ways[] = { &way_busy, &way_event, &way_locked, &way_weir,
						&way_lent, &way_taken, &way_put };

static const struct share_way *way;
static struct share_job job;
static pthread_barrier_t start;
static _Atomic bool is_measured, is_over;

/* A connection's thread. @samples: nanoseconds of @nr_samples messages. */
struct conn {
	pthread_t thread;
	int number;
	_Atomic uint64_t messages;
	uint64_t samples[SAMPLES_MAX], nr_samples;
};

static struct conn *conns;

/* Bytes received by the server for each connection, sampled by the caller with the time. */
static _Atomic uint64_t *received;
static struct share_look {
	uint64_t at_ns, bytes[CONNS_MAX];
} looks[LOOKS_MAX];
static int nr_looks;

void must(bool good, const char *what, const char *why)
{
	if (good)
		return;
	fprintf(stderr, "sharers: %s: %s: %s\n", way ? way->name : "", what, why);
	_exit(1);
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
		received[c->number] += job.sizes[c->number];
		way->send(c->number, ANSWER_BYTES);
	}
	return NULL;
}

static void *ask(void *arg)
{
	struct conn *c = arg;
	const int depth = job.depths[c->number];
	uint64_t began[DEPTH_MAX], sent = 0, answered = 0;

	pthread_barrier_wait(&start);
	while (!is_over) {
		for (; sent < answered + (uint64_t)depth; sent++) {
			began[sent % DEPTH_MAX] = weir_now_ns();
			way->send(c->number, job.sizes[c->number]);
		}
		way->receive(c->number);
		if (is_measured) {
			c->samples[c->nr_samples++ % SAMPLES_MAX] =
				weir_now_ns() - began[answered % DEPTH_MAX];
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

/* The server; runs until killed. */
static void serve(int socket)
{
	char address[ADDRESS_MAX] = "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/*
	 * Only the caller's device is slowed down: otherwise each answer and credit would take as
	 * long as a segment.
	 */
	unsetenv("WEIR_SOFTNIC");
	way->serve(&job, address);
	must(write(socket, address, sizeof(address)) == sizeof(address), "caller", "it has gone");
	way->accept(&job);
	threads_start(answer);
	pause();
}

/* Prints the number of messages of connections @first to @last - 1, and their latency. */
static void print_latencies(struct json *json, const char *name, int first, int last)
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
	qsort(all, n, sizeof(*all), number_compare);
	json_open_object(json, name);
	json_uint(json, "messages", messages);
	json_double(json, "p50_us", n ? (double)all[n / 2] / 1e3 : 0);
	json_double(json, "p99_us", n ? (double)all[n * 99 / 100] / 1e3 : 0);
	json_close(json);
	free(all);
}

static void take_sample(void)
{
	struct share_look *at = &looks[nr_looks++];
	int i;

	at->at_ns = weir_now_ns();
	for (i = 0; i < job.conns; i++)
		at->bytes[i] = received[i];
}

/* Samples until the time is over. */
static void watch(void)
{
	const uint64_t end_ns = weir_now_ns() + (uint64_t)(job.seconds * 1e9);
	uint64_t at_ns;

	take_sample();
	while ((at_ns = weir_now_ns()) < end_ns) {
		const double left = (double)(end_ns - at_ns) / 1e9;

		pause_for(left < LOOK_S ? left : LOOK_S);
		if (nr_looks < LOOKS_MAX)
			take_sample();
	}
}

/* For each sample: microseconds since the first, then bytes of each connection. */
static void say_received(struct json *json)
{
	int i, k;

	json_open_array(json, "received");
	for (i = 0; i < nr_looks; i++) {
		json_open_array(json, NULL);
		json_uint(json, NULL, (looks[i].at_ns - looks[0].at_ns) / 1000);
		for (k = 0; k < job.conns; k++)
			json_uint(json, NULL, looks[i].bytes[k] - looks[0].bytes[k]);
		json_close(json);
	}
	json_close(json);
}

static void report(const struct share_tally *before, const struct share_tally *after,
		   const struct meter_reading *used, bool has_syscalls, uint64_t took_ns)
{
	struct json json;

	json_begin_line(&json, stdout);
	json_double(&json, "seconds", (double)took_ns / 1e9);
	json_uint(&json, "cpu_us", used->cpu_ns / 1000);
	json_uint(&json, "switches", used->switches);
	json_int(&json, "syscalls", has_syscalls ? (int64_t)used->syscalls : -1);
	json_uint(&json, "work_requests", after->work_requests - before->work_requests);
	json_uint(&json, "doorbells", after->doorbells - before->doorbells);
	json_uint(&json, "sleeps", after->sleeps - before->sleeps);
	json_uint(&json, "ahead_bytes_max", after->ahead_bytes_max);
	print_latencies(&json, "bulk", 0, job.urgent < 0 ? job.conns : job.urgent);
	if (job.urgent >= 0)
		print_latencies(&json, "urgent", job.urgent, job.conns);
	say_received(&json);
	json_end(&json);
}

static void measure(struct meter *m)
{
	struct share_tally before, after;
	struct meter_reading used;
	uint64_t began_ns, took_ns;
	int i;

	pthread_barrier_wait(&start);
	pause_for(job.seconds * WARM_UP);
	meter_begin(m);
	way->count(&before);
	began_ns = weir_now_ns();
	is_measured = true;
	watch();
	is_measured = false;
	took_ns = weir_now_ns() - began_ns;
	way->count(&after);
	used = meter_read(m);
	is_over = true;
	for (i = 0; i < job.conns; i++)
		pthread_join(conns[i].thread, NULL);
	report(&before, &after, &used, m->has_syscalls, took_ns);
}

/* The @nth number of a list, cyclically. */
static unsigned long nth_of(const char *list, int nth)
{
	int count = 1;
	const char *at;

	for (at = list; *at; at++)
		count += *at == ',';
	for (at = list, nth %= count; nth; nth--)
		at = strchr(at, ',') + 1;
	return strtoul(at, NULL, 10);
}

static void job_fill(char **argv)
{
	const int bulk = atoi(argv[2]);
	bool good = true;
	int i;

	job = (struct share_job){ .conns = bulk + atoi(argv[6]),
				  .urgent = -1,
				  .seconds = atof(argv[7]),
				  .host = argv[8] };
	must(job.conns >= 1 && job.conns <= CONNS_MAX && job.seconds > 0, "arguments",
	     "1 to 256 connections");
	for (i = 0; i < bulk; i++) {
		job.sizes[i] = nth_of(argv[3], i);
		job.depths[i] = (int)nth_of(argv[4], i);
		job.weights[i] = (unsigned int)nth_of(argv[5], i);
		good &= job.sizes[i] >= ANSWER_BYTES && job.depths[i] >= 1 &&
			job.depths[i] <= DEPTH_MAX;
	}
	must(good, "arguments", "messages from 8 bytes on, a depth to 1024");
	if (bulk == job.conns)
		return;
	job.urgent = bulk;
	job.sizes[bulk] = URGENT_BYTES;
	job.depths[bulk] = 1;
	job.weights[bulk] = 1;
}

static void parse(int argc, char **argv, struct meter *m)
{
	size_t i;

	must(argc >= 9, "arguments",
	     "WAY BULK BYTES DEPTH WEIGHT URGENT SECONDS HOST [NEAR FAR PID...]");
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(ways[i]->name, argv[1]))
			way = ways[i];
	must(way, argv[1], "there are busy, event, locked, weir, lent, taken and put");
	job_fill(argv);
	if (argc >= 11) {
		job.near = argv[9];
		job.far = argv[10];
	}
	for (i = 11; i < (size_t)argc && m->nr_pids < METER_PIDS_MAX - 2; i++)
		m->pids[m->nr_pids++] = atoi(argv[i]);
}

int main(int argc, char **argv)
{
	static struct meter meter;
	char address[ADDRESS_MAX];
	int sockets[2];
	pid_t server;

	parse(argc, argv, &meter);
	received = mmap(NULL, CONNS_MAX * sizeof(*received), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(received != MAP_FAILED, "memory", "none is left");
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), "socket", "none");
	server = fork();
	if (!server)
		serve(sockets[1]);
	close(sockets[1]);
	must(read(sockets[0], address, sizeof(address)) == sizeof(address), "server",
	     "it has gone");
	way->call(&job, address);
	pthread_barrier_init(&start, NULL, (unsigned int)job.conns + 1);
	meter.pids[meter.nr_pids++] = getpid();
	meter.pids[meter.nr_pids++] = server;
	threads_start(ask);
	measure(&meter);
	kill(server, SIGKILL);
	fflush(stdout);
	_exit(0); /* no goodbye: the server is gone */
}
