/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir-hunt-pool: the program behind `weir lab hunt --world pool`. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/hunt/pool/pool_world.h"

#define STEPS 40000 /* a quarter of them by clients */

static const char help[] =
	"Usage: weir-hunt-pool FIRST LAST [trace]\n"
	"Runs the seeds from FIRST to LAST; ends at the first seed that breaks a promise. A line\n"
	"on standard output reports progress now and then; the last line has the digest.\n"
	"Exit status: 0 all promises kept; 1 a promise broken; 2 bad arguments.\n";

static bool number(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return isdigit((unsigned char)*text) && !*end && !errno;
}

static void print_event(uint64_t now_ns, const char *what, uint64_t a, uint64_t b)
{
	printf("%8" PRIu64 " ms %-9s %" PRIu64 " %" PRIu64 "\n", now_ns / 1000000, what, a, b);
}

static void run(struct pool_world *w, uint64_t seed, struct pool_counts *counts, bool trace)
{
	pool_world_begin(w, seed, counts);
	w->on_event = trace ? print_event : NULL;
	pool_world_run(w, STEPS);
	if (!w->why)
		pool_world_calm_down(w);
}

int main(int argc, char **argv)
{
	static struct pool_counts counts;
	static struct pool_world world;
	uint64_t first, last, digest = 0;
	bool trace = argc == 4 && !strcmp(argv[3], "trace");

	if (argc < 3 || argc > 4 || (argc == 4 && !trace) || !number(argv[1], &first) ||
	    !number(argv[2], &last) || last < first || last == UINT64_MAX) {
		fputs(help, stderr);
		return 2;
	}
	for (uint64_t seed = first; seed <= last; seed++) {
		run(&world, seed, &counts, trace);
		if (world.why) {
			printf("broken %" PRIu64 " %s\n", seed, world.why);
			return 1;
		}
		digest = digest * 31 + world.digest;
		if ((seed - first) % 100 == 99) {
			printf("passed %" PRIu64 "\n", seed);
			fflush(stdout);
		}
	}
	printf("kept %" PRIu64 " seeds, %" PRIu64 " writes, %" PRIu64 " losses, %" PRIu64
	       " rebuilds, digest %016" PRIx64 "\n",
	       last - first + 1, counts.writes, counts.lost, counts.rebuilt, digest);
	return 0;
}
