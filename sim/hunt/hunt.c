/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Runs one hunt: the engines first, then the separate hunts of other parts of core. */
#include <inttypes.h>
#include <stdio.h>

#include "sim/hunt/hunt.h"

/* Long after the last request: a hunt still running by then has hung. */
#define LONG_PS (10 * SIM_PS_PER_S)

/* FNV-1a, over numbers. */
static uint64_t digest_of(uint64_t digest, uint64_t number)
{
	return (digest ^ number) * 0x100000001b3ull;
}

void hunt_note(struct hunt *h, const char *what, int64_t a, int64_t b, int64_t c)
{
	h->digest =
		digest_of(digest_of(digest_of(h->digest, (uint64_t)a), (uint64_t)b), (uint64_t)c);
	h->digest = digest_of(digest_of(h->digest, h->clock.now_ps), (uint64_t)what[0]);
	if (h->trace)
		printf("%12" PRIu64 " %-8s %" PRId64 " %" PRId64 " %" PRId64 "\n", h->clock.now_ps,
		       what, a, b, c);
}

static void start_streams(struct hunt *h, uint64_t seed, struct sim_tape *tape)
{
	static const char *const names[] = { "load", "net",   "host",	"paths", "places",
					     "keys", "waits", "errors", "wear",	 "ranks" };
	struct sim_rng *const streams[] = { &h->load, &h->net,	 &h->host,   &h->paths, &h->places,
					    &h->keys, &h->waits, &h->errors, &h->wear,
					    &h->ranks };
	unsigned int i;

	for (i = 0; i < sizeof(streams) / sizeof(*streams); i++) {
		sim_rng_init(streams[i], seed, names[i], 0);
		streams[i]->tape = tape;
	}
}

static void run_engines(struct hunt *h, uint64_t seed, struct sim_tape *tape, bool trace)
{
	int i;

	memset(h, 0, offsetof(struct hunt, local));
	h->trace = trace;
	h->digest = 0xcbf29ce484222325ull;
	sim_clock_init(&h->clock);
	start_streams(h, seed, tape);
	h->peril = hunt_dice(&h->net, 300) ? 0 : 4 + (uint32_t)sim_rng_below(&h->net, 60);
	h->refusal = hunt_dice(&h->net, 300) ? h->peril * 4 : h->peril / 4;
	hunt_host_begin(h);
	for (i = 0; i < h->nr_sessions; i++)
		hunt_requests_begin(&h->sessions[i]);
	while (!*h->why && h->clock.count && h->clock.now_ps < LONG_PS)
		sim_clock_run(&h->clock, h->clock.now_ps + SIM_PS_PER_S / 1000);
	hunt_expect(h, !h->clock.count, "the hunt does not end");
	if (!*h->why)
		hunt_watch_over(h);
	sim_clock_fini(&h->clock);
}

bool hunt_run(struct hunt *h, uint64_t seed, bool trace)
{
	run_engines(h, seed, NULL, trace);
	if (!*h->why)
		hunt_reconnect(h, seed);
	if (!*h->why)
		hunt_sched(h, seed);
	if (!*h->why)
		hunt_slot_bitmap(h, seed);
	if (!*h->why)
		hunt_poll(h, seed);
	if (!*h->why)
		hunt_umtt(h, seed);
	if (!*h->why)
		hunt_volume(h, seed);
	if (!*h->why)
		hunt_link(h, seed);
	if (!*h->why)
		hunt_combine(h, seed);
	if (!*h->why)
		hunt_roce(h, seed, 0);
	return !*h->why;
}

const char *hunt_run_tape(const uint8_t *bytes, size_t length, uint64_t seed)
{
	struct sim_tape tape = { bytes, length };
	static struct hunt hunt;

	run_engines(&hunt, seed, &tape, false);
	return *hunt.why ? hunt.why : NULL;
}
