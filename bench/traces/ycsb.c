/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ycsb load|run PORT SERVERS CLIENTS RECORDS OPS READS - uses Redis as YCSB does
 *
 * Servers listen on PORT and the next ports, each with RECORDS records of its own. "load" stores
 * all records. "run" opens CLIENTS connections to each server, each with one operation in flight,
 * like YCSB's threads. READS percent of the OPS operations are GET, the others SET, on records
 * chosen like YCSB's scrambled Zipfian generator does. Then "run" prints the operations a second
 * and their latency.
 */
#include "apps/common/number.h"
#include "apps/perf/pattern.h"
#include "lib/base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define VALUE_BYTES 1000 /* YCSB's ten fields of 100 */
#define CLIENTS_MAX 256
#define BATCH 64 /* records stored at a time; storing is not measured */
#define KEY "user%020" PRIu64

static unsigned int port, servers, clients, reads;
static uint64_t records, ops;
static uint64_t *took_ns; /* time of each operation */
static struct walk_plan plan;

/* One connection. */
struct ycsb_client {
	pthread_t thread;
	unsigned int number;
	FILE *in, *out;
	struct perf_walk walk;
};

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "ycsb: %s: %s\n", what, errno ? strerror(errno) : "unexpected answer");
	exit(1);
}

static void client_open(struct ycsb_client *c, unsigned int number)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(port + number % servers)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	must(fd >= 0, "socket");
	must(!connect(fd, (struct sockaddr *)&to, sizeof(to)), "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->number = number;
	c->in = fdopen(fd, "r");
	c->out = fdopen(dup(fd), "w");
	must(c->in && c->out, "fdopen");
	walk_init(&c->walk, &plan, number);
}

static void client_close(struct ycsb_client *c)
{
	fclose(c->in);
	fclose(c->out);
}

static void get(struct ycsb_client *c, uint64_t record)
{
	fprintf(c->out, "*2\r\n$3\r\nGET\r\n$24\r\n" KEY "\r\n", record);
}

/* Incompressible contents, as real values. */
static void set(struct ycsb_client *c, uint64_t record)
{
	uint64_t value[VALUE_BYTES / 8];

	for (unsigned int i = 0; i < VALUE_BYTES / 8; i++)
		value[i] = walk_random(&c->walk);
	fprintf(c->out, "*3\r\n$3\r\nSET\r\n$24\r\n" KEY "\r\n$%d\r\n", record, VALUE_BYTES);
	fwrite(value, VALUE_BYTES, 1, c->out);
	fputs("\r\n", c->out);
}

static void answer(struct ycsb_client *c)
{
	char line[64], value[VALUE_BYTES + 2];

	must(fgets(line, sizeof(line), c->in), "a server's answer");
	if (!strcmp(line, "$1000\r\n"))
		must(fread(value, sizeof(value), 1, c->in) == 1, "a server's value");
	else
		must(!strcmp(line, "+OK\r\n"), line);
}

static void *load(void *arg)
{
	struct ycsb_client *c = arg;

	for (uint64_t first = 0, i; first < records; first += BATCH) {
		for (i = first; i < first + BATCH && i < records; i++)
			set(c, i);
		fflush(c->out);
		while (i-- > first)
			answer(c);
	}
	return NULL;
}

static void *run(void *arg)
{
	struct ycsb_client *c = arg;

	for (uint64_t i = c->number; i < ops; i += servers * clients) {
		uint64_t record = walk_next(&c->walk), begin_ns = weir_now_ns();

		if (walk_random(&c->walk) % 100 < reads)
			get(c, record);
		else
			set(c, record);
		fflush(c->out);
		answer(c);
		took_ns[i] = weir_now_ns() - begin_ns;
	}
	return NULL;
}

static uint64_t number(const char *text, uint64_t min, uint64_t max)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	if (end != text && !*end && value >= min && value <= max)
		return value;
	fprintf(stderr, "ycsb: %s: %" PRIu64 " to %" PRIu64 "\n", text, min, max);
	exit(2);
}

static void report(uint64_t all_ns)
{
	double sum_ns = 0;

	qsort(took_ns, ops, sizeof(*took_ns), number_compare);
	for (uint64_t i = 0; i < ops; i++)
		sum_ns += (double)took_ns[i];
	printf("%.0f operations a second, %.1f us on average, %.1f us of 99 in 100 at most\n",
	       (double)ops * 1e9 / (double)all_ns, sum_ns / (double)ops / 1e3,
	       (double)took_ns[(ops - 1) * 99 / 100] / 1e3);
}

int main(int argc, char **argv)
{
	static struct ycsb_client all[CLIENTS_MAX];
	bool loads = argc > 1 && !strcmp(argv[1], "load");
	uint64_t begin_ns = weir_now_ns();
	unsigned int count;

	if (argc != 8 || (!loads && strcmp(argv[1], "run"))) {
		fputs("Usage: ycsb load|run PORT SERVERS CLIENTS RECORDS OPS READS\n", stderr);
		return 2;
	}
	port = (unsigned int)number(argv[2], 1, 65000);
	servers = (unsigned int)number(argv[3], 1, 16);
	clients = (unsigned int)number(argv[4], 1, CLIENTS_MAX / 16);
	records = number(argv[5], 1, 100000000);
	ops = number(argv[6], 0, 1000000000);
	reads = (unsigned int)number(argv[7], 0, 100);
	count = loads ? servers : servers * clients;
	took_ns = calloc(ops + 1, sizeof(*took_ns));
	must(took_ns, "memory");
	/* Another number of operations draws another part of the same random stream. */
	walk_plan_init(&plan, PATTERN_ZIPF, records, 1, count, ops);
	for (unsigned int i = 0; i < count; i++) {
		client_open(&all[i], i);
		must(!pthread_create(&all[i].thread, NULL, loads ? load : run, &all[i]), "thread");
	}
	for (unsigned int i = 0; i < count; i++) {
		pthread_join(all[i].thread, NULL);
		client_close(&all[i]);
	}
	if (!loads && ops)
		report(weir_now_ns() - begin_ns);
	free(took_ns);
	return 0;
}
