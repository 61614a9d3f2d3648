/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ycsb load|run PORT SERVERS CLIENTS RECORDS OPS READS - Redis as YCSB would use it
 *
 * Servers listen on PORT and those after it, each with RECORDS records of its own. "load" stores
 * them all. "run" asks from CLIENTS connections to each server, each with one operation under way
 * as YCSB's threads have; OPS in all, of which READS percent are GET and the others SET, of records
 * chosen as by YCSB's scrambled Zipfian generator. Then it says how many were done each second.
 */
#include "apps/perf/pattern.h"

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
#include <time.h>
#include <unistd.h>

#define VALUE_BYTES 1000 /* YCSB's ten fields of 100 */
#define CLIENTS_MAX 256
#define BATCH 64 /* records stored at a time: this is not what is measured */
#define KEY "user%020" PRIu64

static unsigned int port, servers, clients, reads;
static uint64_t records, ops;
static struct walk_plan plan;

/* One connection. */
struct client {
	pthread_t thread;
	unsigned int number;
	FILE *in, *out;
	struct walk walk;
};

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "ycsb: %s: %s\n", what, errno ? strerror(errno) : "no such answer was expected");
	exit(1);
}

static void client_open(struct client *c, unsigned int number)
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

static void client_close(struct client *c)
{
	fclose(c->in);
	fclose(c->out);
}

static void get(struct client *c, uint64_t record)
{
	fprintf(c->out, "*2\r\n$3\r\nGET\r\n$24\r\n" KEY "\r\n", record);
}

/* Contents that do not compress, as a real value would not. */
static void set(struct client *c, uint64_t record)
{
	uint64_t value[VALUE_BYTES / 8];

	for (unsigned int i = 0; i < VALUE_BYTES / 8; i++)
		value[i] = walk_random(&c->walk);
	fprintf(c->out, "*3\r\n$3\r\nSET\r\n$24\r\n" KEY "\r\n$%d\r\n", record, VALUE_BYTES);
	fwrite(value, VALUE_BYTES, 1, c->out);
	fputs("\r\n", c->out);
}

static void answer(struct client *c)
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
	struct client *c = arg;

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
	struct client *c = arg;

	for (uint64_t i = c->number; i < ops; i += servers * clients) {
		uint64_t record = walk_next(&c->walk);

		if (walk_random(&c->walk) % 100 < reads)
			get(c, record);
		else
			set(c, record);
		fflush(c->out);
		answer(c);
	}
	return NULL;
}

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
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

int main(int argc, char **argv)
{
	static struct client all[CLIENTS_MAX];
	bool loads = argc > 1 && !strcmp(argv[1], "load");
	double begin = now();
	unsigned int count;

	if (argc != 8 || (!loads && strcmp(argv[1], "run"))) {
		fputs("Usage: ycsb load|run PORT SERVERS CLIENTS RECORDS OPS READS\n", stderr);
		return 2;
	}
	port = (unsigned int)number(argv[2], 1, 65000);
	servers = (unsigned int)number(argv[3], 1, 16);
	clients = (unsigned int)number(argv[4], 1, CLIENTS_MAX / 16);
	records = number(argv[5], 1, 100000000);
	ops = number(argv[6], 0, UINT64_MAX / 2);
	reads = (unsigned int)number(argv[7], 0, 100);
	count = loads ? servers : servers * clients;
	/* Another operation count is another part of the same stream of chances. */
	walk_plan_init(&plan, PATTERN_ZIPF, records, 1, count, ops);
	for (unsigned int i = 0; i < count; i++) {
		client_open(&all[i], i);
		must(!pthread_create(&all[i].thread, NULL, loads ? load : run, &all[i]), "thread");
	}
	for (unsigned int i = 0; i < count; i++) {
		pthread_join(all[i].thread, NULL);
		client_close(&all[i]);
	}
	if (!loads)
		printf("%.0f operations a second\n", (double)ops / (now() - begin));
	return 0;
}
