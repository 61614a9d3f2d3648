// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * sealed [ROUNDS]: reads and writes of a sealed region beside those of a plain region, by turns, at
 * a donor in a process of its own. The plain ones use registered memory. Each walks 64 MiB. Prints
 * medians, and the plain time's share of the sealed time.
 */
#include <err.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <weir/weir.h>

#include "apps/common/number.h"
#include "lib/base/clock.h"
#include "lib/conn/key.h"

enum { ROUNDS = 9, ROUNDS_MAX = 1001, KINDS = 3, CASES = 4 };
#define SPAN (64u << 20)

static const char *const kinds[KINDS] = { "plain", "AES-256-GCM", "XChaCha20-Poly1305" };
static const struct weir_key key = { 16, "0123456789abcdef" };
static const struct {
	const char *name;
	size_t length;
	bool is_write;
} cases[CASES] = {
	{ "read, 4 KiB", 4096, false },
	{ "write, 4 KiB", 4096, true },
	{ "read, 1 MiB", 1 << 20, false },
	{ "write, 1 MiB", 1 << 20, true },
};

static struct weir_region *plain;
static struct weir_sealed *sealed[KINDS]; /* of the plain kind: none */
static struct weir_memory *memory;
static char *buffer;
static uint64_t times_ns[CASES][KINDS][ROUNDS_MAX];

static void serve(int out)
{
	const struct weir_donor_options options = {
		.size = sizeof(options),
		.listen = "127.0.0.1:0",
		.memory_bytes = 512u << 20,
	};
	struct weir_donor_info info;
	struct weir_donor *donor;
	struct weir_error error;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (weir_donor_open(&options, &donor, &error))
		errx(1, "donor: %s", error.text);
	weir_donor_info(donor, &info, sizeof(info));
	if (write(out, info.address, strlen(info.address) + 1) < 0)
		err(1, "pipe");
	for (;;)
		pause();
}

static void start_donor(char *address, size_t size)
{
	int pipes[2];

	if (pipe(pipes))
		err(1, "pipe");
	if (!fork())
		serve(pipes[1]);
	if (read(pipes[0], address, size) <= 0)
		errx(1, "the donor has ended");
}

static void open_sealed(struct weir_session *session, unsigned int kind)
{
	const struct weir_sealed_options options = {
		.size = sizeof(options),
		.key = &key,
		.name = kinds[kind],
		.cipher = kind,
		.is_new = 1,
	};
	struct weir_region *region;
	struct weir_error error;

	if (weir_region_create(session, NULL, weir_sealed_region_bytes(SPAN), 0, &region, &error) ||
	    weir_sealed_open(region, &options, &sealed[kind], &error))
		errx(1, "%s: %s", kinds[kind], error.text);
}

static void open_all(void)
{
	const struct weir_session_options options = { .size = sizeof(options) };
	struct weir_session *session;
	struct weir_error error;
	char address[64];

	start_donor(address, sizeof(address));
	buffer = aligned_alloc(4096, 1 << 20);
	memset(buffer, 'x', 1 << 20);
	if (weir_session_open(address, &options, &session, &error) ||
	    weir_region_create(session, NULL, SPAN, 0, &plain, &error) ||
	    weir_memory_register(session, buffer, 1 << 20, &memory, &error))
		errx(1, "%s", error.text);
	for (unsigned int kind = 1; kind < KINDS; kind++)
		open_sealed(session, kind);
}

static void move(unsigned int kind, unsigned int at_case, uint64_t offset)
{
	const struct weir_iov iov = { buffer, cases[at_case].length, memory };
	bool is_write = cases[at_case].is_write;
	struct weir_error error = { "plain" };
	int rc;

	if (!kind && is_write)
		rc = weir_writev(plain, offset, &iov, 1);
	else if (!kind)
		rc = weir_readv(plain, offset, &iov, 1);
	else if (is_write)
		rc = weir_sealed_write(sealed[kind], offset, buffer, iov.length, &error);
	else
		rc = weir_sealed_read(sealed[kind], offset, buffer, iov.length, &error);
	if (rc)
		errx(1, "%s: %s", error.text, weir_strerror(rc));
}

/* Nanoseconds of one transfer. */
static uint64_t walk(unsigned int kind, unsigned int at_case)
{
	const unsigned int count = SPAN / cases[at_case].length;
	uint64_t begin_ns = weir_now_ns();

	for (unsigned int i = 0; i < count; i++)
		move(kind, at_case, (uint64_t)i * cases[at_case].length);
	return (weir_now_ns() - begin_ns) / count;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void show(unsigned int rounds)
{
	uint64_t plain_ns, ns;

	printf("case,kind,ns,MiB/s,share\n");
	for (unsigned int c = 0; c < CASES; c++)
		for (unsigned int kind = 0; kind < KINDS; kind++) {
			qsort(times_ns[c][kind], rounds, sizeof(uint64_t), compare);
			plain_ns = times_ns[c][0][rounds / 2];
			ns = times_ns[c][kind][rounds / 2];
			printf("\"%s\",%s,%llu,%.0f,%.2f\n", cases[c].name, kinds[kind],
			       (unsigned long long)ns,
			       (double)cases[c].length * 1e9 / 1048576 / (double)ns,
			       (double)plain_ns / (double)ns);
		}
}

int main(int argc, char **argv)
{
	unsigned int rounds = ROUNDS;

	if (argc > 2 || (argc == 2 && !number_parse_uint(argv[1], 1, ROUNDS_MAX, &rounds)))
		errx(2, "usage: sealed [ROUNDS]; at most %d", ROUNDS_MAX);
	open_all();
	for (unsigned int kind = 0; kind < KINDS; kind++)
		(void)walk(kind, 1); /* touches all memory */
	for (unsigned int r = 0; r < rounds; r++)
		for (unsigned int c = 0; c < CASES; c++)
			for (unsigned int kind = 0; kind < KINDS; kind++)
				times_ns[c][kind][r] = walk(kind, c);
	show(rounds);
	return 0;
}
