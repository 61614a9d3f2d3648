/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * pingpong MODE BYTES GAP_US MESSAGES: two processes send a message to and fro, by an exchange.
 * MODE is bitmap or imm. Prints the median of half a round trip, in microseconds, and the requests
 * without data of both ends for a message.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/exchange.h>

#define WAIT_NS 20000000000ull
#define ADDRESS_MAX 64

struct rally {
	struct weir_exchange *x;
	char *message;
	size_t bytes;
	unsigned int gap_us, messages;
};

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "pingpong: %s\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void put(struct rally *p)
{
	if (weir_exchange_put(p->x, p->message, p->bytes, WEIR_EXCHANGE_FOREVER, NULL))
		give_up("put failed");
}

static void get(struct rally *p)
{
	size_t length;

	if (weir_exchange_get(p->x, p->message, p->bytes, &length, WAIT_NS) || length != p->bytes)
		give_up("no message");
}

/* Ends the exchange. Return: requests without data. */
static uint64_t finish(struct rally *p)
{
	struct weir_exchange_info info;

	if (weir_exchange_finish(p->x, WAIT_NS) || weir_exchange_info(p->x, &info, sizeof(info)))
		give_up("the other end is gone");
	weir_exchange_close(p->x);
	return info.bitmap_reads + info.wakeups + info.credits;
}

static void answer_all(struct rally *p, const struct weir_exchange_options *options, int out,
		       int counts)
{
	struct weir_exchange_listener *listener;
	char address[ADDRESS_MAX] = "";
	struct weir_error error;
	uint64_t count;
	unsigned int i;

	if (weir_exchange_listen("127.0.0.1:0", options, &listener, &error))
		give_up(error.text);
	snprintf(address, sizeof(address), "%s", weir_exchange_address(listener));
	if (write(out, address, sizeof(address)) != sizeof(address) ||
	    weir_exchange_accept(listener, WAIT_NS, &p->x, &error))
		give_up("nobody connects");
	for (i = 0; i < p->messages; i++) {
		get(p);
		put(p);
	}
	count = finish(p);
	weir_exchange_unlisten(listener);
	if (write(counts, &count, sizeof(count)) != sizeof(count))
		give_up("cannot report");
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void ask_all(struct rally *p, const struct weir_exchange_options *options, int in,
		    int counts)
{
	uint64_t *took_ns = calloc(p->messages, sizeof(*took_ns)), count, far;
	char address[ADDRESS_MAX];
	struct weir_error error;
	unsigned int i;

	if (!took_ns || read(in, address, sizeof(address)) != sizeof(address))
		give_up("no address");
	if (weir_exchange_connect(address, options, &p->x, &error))
		give_up(error.text);
	for (i = 0; i < p->messages; i++) {
		uint64_t begin_ns = now_ns();

		put(p);
		get(p);
		took_ns[i] = now_ns() - begin_ns;
		if (p->gap_us)
			usleep(p->gap_us);
	}
	count = finish(p);
	if (read(counts, &far, sizeof(far)) != sizeof(far))
		give_up("the other end is gone");
	qsort(took_ns, p->messages, sizeof(*took_ns), compare);
	printf("%.2f %.3f\n", (double)took_ns[p->messages / 2] / 2e3,
	       (double)(count + far) / (2.0 * p->messages));
	free(took_ns);
}

int main(int argc, char **argv)
{
	struct weir_exchange_options options = { .size = sizeof(options) };
	struct rally p = { 0 };
	int address[2], counts[2];
	pid_t child;

	if (argc != 5)
		give_up("pingpong MODE BYTES GAP_US MESSAGES");
	options.mode = strcmp(argv[1], "imm") ? WEIR_EXCHANGE_BITMAP : WEIR_EXCHANGE_IMM;
	options.slot_bytes = p.bytes = strtoul(argv[2], NULL, 10);
	p.gap_us = (unsigned int)strtoul(argv[3], NULL, 10);
	p.messages = (unsigned int)strtoul(argv[4], NULL, 10);
	p.message = calloc(1, p.bytes + 1);
	if (!p.message || !p.messages || pipe(address) || pipe(counts))
		give_up("out of memory");
	child = fork();
	if (!child)
		answer_all(&p, &options, address[1], counts[1]);
	else
		ask_all(&p, &options, address[0], counts[0]);
	free(p.message);
	return child > 0 && waitpid(child, NULL, 0) < 0 ? errno : 0;
}
