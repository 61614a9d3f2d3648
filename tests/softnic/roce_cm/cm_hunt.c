// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * cm_hunt FIRST LAST: hunts bugs in the connection manager, seed by seed.
 *
 * Two hosts connect to each other in virtual time. The network loses, repeats, delays and reorders
 * messages; a stranger repeats them under its own address. Programs accept, reject, wait,
 * disconnect and release at random, and a host may lose its memory. Then the network is faithful,
 * and all must come to an end. The first broken promise ends the hunt with exit status 1.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm_hunt.h"

enum {
	STEPS_MAX = 100000,
	STEPS = 1500, /* with faults */
};

uint32_t draw(struct cm_hunt *h, uint32_t below)
{
	return (uint32_t)sim_rng_below(&h->rng, below);
}

bool chance(struct cm_hunt *h, uint32_t per_mille)
{
	return draw(h, 1000) < per_mille;
}

void expect(struct cm_hunt *h, bool holds, const char *promise, ...)
{
	va_list args;

	if (holds || h->is_broken)
		return;
	h->is_broken = true;
	printf("%" PRIu64 " ", h->seed);
	va_start(args, promise);
	vprintf(promise, args);
	va_end(args);
	printf(" at %" PRIu64 " ns\n", h->now_ns);
}

/* A host starts anew, and has forgotten its connections. */
static void crash(struct cm_hunt *h, uint32_t host)
{
	struct cm_hunt_host *dead = &h->hosts[host];
	uint32_t i;

	for (i = 0; i < h->nr_calls; i++)
		h->calls[i].may_end = true;
	for (i = 0; i < CONNS; i++)
		if (dead->views[i].conn && !dead->views[i].is_client)
			h->calls[dead->views[i].call].live_servers = 0;
	memset(dead->views, 0, sizeof(dead->views));
	dead->incarnation++;
	roce_cm_init(&dead->cm, dead->conns, CONNS, host + 1, sim_rng_next(&h->rng));
}

/* Goes to the next thing that happens. Return: false: nothing is left */
static bool step(struct cm_hunt *h)
{
	uint64_t next_ns = ROCE_CM_NEVER, at_ns;
	struct cm_hunt_letter *letter = NULL;
	struct planned_act *plan = NULL;
	uint32_t i;

	for (i = 0; i < LETTERS; i++)
		if (h->letters[i].is_used && h->letters[i].due_ns < next_ns) {
			letter = &h->letters[i];
			next_ns = letter->due_ns;
		}
	for (i = 0; i < PLANS_MAX; i++)
		if (h->plans[i].is_used && h->plans[i].due_ns < next_ns) {
			plan = &h->plans[i];
			next_ns = plan->due_ns;
		}
	for (i = 0; i < HOSTS; i++) {
		at_ns = roce_cm_deadline_ns(&h->hosts[i].cm);
		expect(h, at_ns > h->now_ns, "host %u: a deadline has passed", i);
		if (at_ns < next_ns)
			next_ns = at_ns;
	}
	if (next_ns == ROCE_CM_NEVER)
		return false;
	h->now_ns = next_ns;
	if (plan && plan->due_ns == next_ns) {
		plan->is_used = false;
		act(h, plan);
	} else if (letter && letter->due_ns == next_ns) {
		arrive(h, letter);
	}
	for (i = 0; i < HOSTS; i++) {
		roce_cm_expired(&h->hosts[i].cm, h->now_ns);
		hear(h, i);
		send_all(h, (uint8_t)i);
	}
	return true;
}

/* All programs end; nothing is lost any more. */
static void finish(struct cm_hunt *h)
{
	uint32_t i, k, steps;

	h->is_faithful = true;
	h->faithful_since_ns = h->now_ns + 8 * TIMEOUT_NS; /* old letters are still on the way */
	for (steps = 0; steps < STEPS_MAX && !h->is_broken && step(h); steps++)
		;
	for (i = 0; i < HOSTS; i++)
		for (k = 0; k < CONNS; k++) {
			struct view *view = &h->hosts[i].views[k];

			expect(h,
			       !view->conn || view->conn->state == ROCE_CM_ESTABLISHED ||
				       view->has_ended || view->conn->state == ROCE_CM_REQ_RCVD,
			       "host %u: a connection never ends", i);
		}
	for (i = 0; i < HOSTS; i++)
		for (k = 0; k < CONNS; k++)
			expect(h, h->hosts[i].conns[k].state == ROCE_CM_FREE,
			       "host %u: a connection is left in state %d", i,
			       (int)h->hosts[i].conns[k].state);
}

static bool run(uint64_t seed)
{
	struct cm_hunt *h = calloc(1, sizeof(*h));
	bool is_broken;
	uint32_t i, steps, forget;

	if (!h)
		exit(2);
	h->seed = seed;
	sim_rng_init(&h->rng, seed, "cm", 0);
	h->loss = draw(h, 3) ? draw(h, 400) : 0;
	h->repeat = draw(h, 2) ? draw(h, 300) : 0;
	h->stranger = draw(h, 2) ? draw(h, 200) : 0;
	forget = draw(h, 2) ? 200 : STEPS * STEPS;
	for (i = 0; i < HOSTS; i++)
		crash(h, i);
	for (steps = 0; steps < STEPS && !h->is_broken; steps++) {
		if (!draw(h, 10))
			connect_one(h, draw(h, HOSTS));
		if (!draw(h, forget))
			crash(h, draw(h, HOSTS));
		for (i = 0; i < HOSTS; i++)
			send_all(h, (uint8_t)i);
		if (!step(h))
			h->now_ns += TIMEOUT_NS;
	}
	finish(h);
	is_broken = h->is_broken;
	free(h);
	return !is_broken;
}

int main(int argc, char **argv)
{
	uint64_t seed, last;

	if (argc != 3)
		return 2;
	last = strtoull(argv[2], NULL, 10);
	for (seed = strtoull(argv[1], NULL, 10); seed <= last; seed++)
		if (!run(seed))
			return 1;
	printf("%s to %s: all promises kept\n", argv[1], argv[2]);
	return 0;
}
