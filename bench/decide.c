/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * decide - cost of choosing the path of one small write, by each policy
 *
 * Counts instructions by single steps over STEPS decisions after WARM others, including the loop
 * around them. Times are CPU time over ROUNDS rounds, with the policies in turns: median, least and
 * most. Pages are drawn beforehand. The consequences of a decision are not measured: probes of the
 * measured policy report equal times for both paths at once.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/rng.h"
#include "core/unload/path.h"

#define COUNTERS (1u << 20)
#define HOT_PAGES 4096
#define DRAWN (1u << 20)
#define WARM (2u << 20)
#define STEPS 1000
#define ROUNDS 7

static const struct {
	const char *name;
	enum weir_path_policy policy;
} policies[] = {
	{ "offload", WEIR_PATH_POLICY_OFFLOAD },   { "always", WEIR_PATH_POLICY_UNLOAD },
	{ "hints", WEIR_PATH_POLICY_HINTS },	   { "frequency", WEIR_PATH_POLICY_FREQUENCY },
	{ "measured", WEIR_PATH_POLICY_MEASURED },
};

/* Of @pages at a distance of @stride, @hot_pages may be hot. */
static const struct spread {
	const char *name;
	uint64_t pages, stride;
	uint32_t hot_pages;
} spreads[] = {
	{ "4 MiB", 1u << 10, 1, HOT_PAGES },	     { "64 MiB", 1u << 14, 1, HOT_PAGES },
	{ "4 GiB", 1u << 20, 1, HOT_PAGES },	     { "64 GiB, a sketch", 1u << 24, 1, HOT_PAGES },
	{ "100 in 4 GiB", 100, COUNTERS / 100, 64 }, { "3 in 4 GiB", 3, COUNTERS / 3, 2 },
};

#define POLICIES (sizeof(policies) / sizeof(policies[0]))
#define SPREADS (sizeof(spreads) / sizeof(spreads[0]))

static uint64_t addresses[DRAWN];
static struct weir_path_selector routes[POLICIES];
static uint8_t *counters[POLICIES];

static void draw(const struct spread *spread)
{
	uint64_t state = 1;
	uint32_t i;

	for (i = 0; i < DRAWN; i++) {
		addresses[i] = weir_rng_scale(weir_rng_next(&state), spread->pages) *
				       spread->stride
			       << WEIR_PATH_PAGE_SHIFT;
	}
	/* The range always spans the first and the last page. */
	addresses[0] = 0;
	addresses[1] = (spread->pages - 1) * spread->stride << WEIR_PATH_PAGE_SHIFT;
}

static void decide(struct weir_path_selector *r, uint32_t from, uint32_t count)
{
	unsigned int path;
	uint32_t i;

	for (i = from; i < from + count; i++) {
		path = weir_path_decide(r, addresses[i % DRAWN], WEIR_PATH_HINT_NONE, true, 0);
		if (path & WEIR_PATH_PROBE)
			weir_path_completed(r, path, 1000);
	}
}

static double time_of(struct weir_path_selector *r)
{
	struct timespec a, b;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	decide(r, 0, DRAWN);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / DRAWN;
}

static unsigned long steps_of(struct weir_path_selector *r, uint32_t count)
{
	unsigned long steps = 0;
	pid_t child = fork();
	int status;

	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		decide(r, 0, count);
		_exit(0);
	}
	waitpid(child, &status, 0);
	for (; WIFSTOPPED(status); steps++) {
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL)) {
			perror("decide: ptrace is not allowed on this machine");
			exit(1);
		}
		waitpid(child, &status, 0);
	}
	return steps;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void open_routes(const struct spread *spread)
{
	struct weir_path_config config = { .bytes_max = 248,
					   .hot_pages = spread->hot_pages,
					   .nr_counters = COUNTERS };
	size_t i;

	for (i = 0; i < POLICIES; i++) {
		free(counters[i]);
		config.policy = policies[i].policy;
		counters[i] = calloc(WEIR_PATH_BYTES(COUNTERS), 1);
		if (!counters[i] || weir_path_init(&routes[i], &config, counters[i]))
			abort();
		decide(&routes[i], 0, WARM);
	}
}

static void report(const char *spread)
{
	double ns[POLICIES][ROUNDS];
	size_t i, round;

	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < POLICIES; i++)
			ns[i][round] = time_of(&routes[i]);
	for (i = 0; i < POLICIES; i++) {
		double steps =
			(double)(steps_of(&routes[i], STEPS) - steps_of(&routes[i], 0)) / STEPS;

		qsort(ns[i], ROUNDS, sizeof(ns[i][0]), by_size);
		printf("%-18s %-10s %12.1f %8.1f (%.1f to %.1f)\n", spread, policies[i].name, steps,
		       ns[i][ROUNDS / 2], ns[i][0], ns[i][ROUNDS - 1]);
	}
}

int main(void)
{
	size_t i;

	printf("%-18s %-10s %12s %8s\n", "pages written in", "policy", "instructions", "ns");
	for (i = 0; i < SPREADS; i++) {
		draw(&spreads[i]);
		open_routes(&spreads[i]);
		report(spreads[i].name);
	}
	return 0;
}
