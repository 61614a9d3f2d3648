/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A poller over a CQ that arms as verbs do: only a completion after the arming raises an event, and
 * only one event. The hunt checks from outside that a poller told to sleep is woken for present and
 * later completions, takes all of them, and sleeps when idle, except in busy mode.
 */
#include "core/poll/poll.h"
#include "sim/hunt/hunt.h"

#define COMPLETIONS 200
#define POLL_NS 100 /* duration of a poll */
#define POLLS_MAX 1000000

struct fuzz_poll {
	struct hunt *hunt;
	struct sim_rng rng;
	struct weir_poll poll;
	struct weir_idle_time idle_time;
	uint64_t now_ns, next_ns; /* arrival of the next completion */
	uint32_t to_come, in_cq, polls;
	bool is_armed, has_event;
};

/* One draw a statement: the compiler may evaluate an initializer in any order. */
static void init_run(struct fuzz_poll *n)
{
	uint32_t price_ns = 1 + (uint32_t)sim_rng_below(&n->rng, 20000);
	struct weir_poll_config config;

	config.mode = (enum weir_poll_mode)sim_rng_below(&n->rng, WEIR_POLL_HYBRID + 1);
	config.wcs_max = 1 + (uint32_t)sim_rng_below(&n->rng, 16);
	config.retries_max = hunt_dice(&n->rng, 500) ? (uint32_t)sim_rng_below(&n->rng, 50) : 0;
	config.busy_percent_max = 1 + (uint32_t)sim_rng_below(&n->rng, 100);
	weir_idle_time_init(&n->idle_time, price_ns, (uint32_t)sim_rng_below(&n->rng, price_ns));
	weir_poll_init(&n->poll, &config, &n->idle_time, 0);
	n->to_come = COMPLETIONS;
}

static void completion_arrives(struct fuzz_poll *n)
{
	uint64_t most_ns = hunt_dice(&n->rng, 100) ? 100000 : 3 * POLL_NS;

	n->to_come--;
	n->in_cq++;
	n->has_event |= n->is_armed;
	n->is_armed = false;
	n->next_ns += hunt_dice(&n->rng, 300) ? 0 : sim_rng_below(&n->rng, most_ns);
}

static void advance_time(struct fuzz_poll *n, uint64_t until_ns)
{
	n->now_ns = until_ns;
	while (n->to_come && n->next_ns <= n->now_ns)
		completion_arrives(n);
}

static enum weir_poll_verdict poll_cq(struct fuzz_poll *n)
{
	uint32_t most = n->poll.config.wcs_max, taken;

	advance_time(n, n->now_ns + sim_rng_below(&n->rng, 2 * POLL_NS));
	taken = n->in_cq < most ? n->in_cq : most;
	n->in_cq -= taken;
	n->polls++;
	advance_time(n, n->now_ns + sim_rng_below(&n->rng, POLL_NS));
	return weir_poll_polled(&n->poll, taken, n->now_ns);
}

/* Returns whether an event will wake the poller. */
static bool is_woken(struct fuzz_poll *n)
{
	hunt_expect(n->hunt, n->poll.config.mode != WEIR_POLL_BUSY, "a busy poller sleeps");
	if (n->is_armed && n->to_come)
		advance_time(n, n->now_ns < n->next_ns ? n->next_ns : n->now_ns);
	hunt_expect(n->hunt, n->has_event || (!n->in_cq && !n->to_come),
		    "a poller sleeps with %u completions in the CQ and %u to come", n->in_cq,
		    n->to_come);
	if (!n->has_event)
		return false;
	n->has_event = false;
	return true;
}

static bool is_over(const struct fuzz_poll *n)
{
	return n->poll.config.mode == WEIR_POLL_BUSY && !n->to_come && !n->in_cq;
}

void hunt_poll(struct hunt *h, uint64_t seed)
{
	struct fuzz_poll n = { .hunt = h };
	enum weir_poll_verdict verdict;

	sim_rng_init(&n.rng, seed, "naps", 0);
	init_run(&n);
	verdict = weir_poll_woken(&n.poll, n.now_ns);
	while (!*h->why && !is_over(&n) && n.polls < POLLS_MAX) {
		if (verdict == WEIR_POLL_SLEEP) {
			if (!is_woken(&n))
				break;
			verdict = weir_poll_woken(&n.poll, n.now_ns);
		} else {
			n.is_armed |= verdict == WEIR_POLL_ARM;
			verdict = poll_cq(&n);
		}
	}
	hunt_expect(h, n.polls < POLLS_MAX, "a poller never sleeps");
	hunt_note(h, "naps", n.polls, (int64_t)n.poll.sleeps, (int64_t)n.poll.arms);
}
