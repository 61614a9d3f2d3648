/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir-hunt: the program behind `weir lab hunt`. */
#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/hunt/hunt.h"

#define ROCE_PACKETS 100000

static const char help[] =
	"Usage: weir-hunt FIRST LAST [trace | roce]\n"
	"Runs the seeds from FIRST to LAST; ends at the first seed that breaks a promise. A line\n"
	"on standard output reports progress now and then; the last line has the digest.\n"
	"With roce, only softnic's transport runs, with 10^5 packets a seed on average.\n"
	"Exit status: 0 all promises kept; 1 a promise broken; 2 bad arguments.\n";

static bool number(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return isdigit((unsigned char)*text) && !*end && !errno;
}

static uint64_t seed; /* seed being run */

/*
 * Ends the program after weir_bug() stopped the core. The core prints nothing, so printing is safe.
 */
static void stop(int signal)
{
	(void)signal;
	printf("broken %" PRIu64 " the core detects an internal error\n", seed);
	fflush(stdout);
	_exit(1);
}

int main(int argc, char **argv)
{
	static struct hunt hunt;
	uint64_t first, last, digest = 0, happened = 0;
	bool trace = argc == 4 && !strcmp(argv[3], "trace");
	bool roce = argc == 4 && !strcmp(argv[3], "roce");

	if (argc < 3 || argc > 4 || (argc == 4 && !trace && !roce) || !number(argv[1], &first) ||
	    !number(argv[2], &last) || last < first || last == UINT64_MAX) {
		fputs(help, stderr);
		return 2;
	}
	signal(SIGILL, stop);
	signal(SIGTRAP, stop);
	for (seed = first; seed <= last; seed++) {
		if (roce)
			hunt_roce(&hunt, seed, ROCE_PACKETS);
		if (roce ? *hunt.why : !hunt_run(&hunt, seed, trace)) {
			printf("broken %" PRIu64 " %s\n", seed, hunt.why);
			return 1;
		}
		happened += hunt.clock.happened;
		hunt.clock.happened = 0;
		digest = digest * 31 + hunt.digest;
		if ((seed - first) % 1000 == 999) {
			printf("passed %" PRIu64 "\n", seed);
			fflush(stdout);
		}
	}
	printf("kept %" PRIu64 " seeds, %" PRIu64 " events, digest %016" PRIx64 "\n",
	       last - first + 1, happened, digest);
	return 0;
}
