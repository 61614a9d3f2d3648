// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* A worker posts random operations on its lanes, phase by phase, as the judge says. */
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

/* Registration must fail at the memory limit, and only there. */
static void register_something(struct campaign_worker *me)
{
	struct ibv_mr *mr = ibv_reg_mr(me->pd, me->here, 4096, 0);

	if (mr)
		require(!ibv_dereg_mr(mr), "cannot deregister");
	else
		require(errno == ENOMEM || errno == EIO, "cannot register");
}

/* Post on a lane that has room and operations left. Return: false if there is no such lane. */
static bool post_somewhere(struct campaign_worker *me)
{
	uint32_t first = random_below(&me->random, me->w->workers), i;

	for (i = 0; i < me->w->workers; i++) {
		uint32_t t = (first + i) % me->w->workers;
		struct campaign_connection *c = &me->to[t];

		if (t == me->self || c->num_posted - c->num_ended == DEPTH ||
		    c->num_posted == me->w->lanes[me->self][t].num_ops)
			continue;
		post_next(me, t);
		return true;
	}
	return false;
}

static bool is_through(const struct campaign_worker *me)
{
	uint32_t t;

	for (t = 0; t < me->w->workers; t++)
		if (t != me->self && me->to[t].num_ended < me->w->lanes[me->self][t].num_ops)
			return false;
	return true;
}

/* Sleep until a completion or a message from the judge on @fd. */
static void sleep_until_event(struct campaign_worker *me, int fd)
{
	struct pollfd p[] = { { me->channel->fd, POLLIN, 0 }, { fd, POLLIN, 0 } };
	struct ibv_cq *cq;
	void *context;

	require(!ibv_req_notify_cq(me->cq, 0), "cannot arm");
	if (take_completions(me))
		return;
	require(poll(p, 2, PATIENCE_MS) > 0, "no event, ever");
	if (!p[0].revents)
		return;
	require(!ibv_get_cq_event(me->channel, &cq, &context), "no event");
	ibv_ack_cq_events(cq, 1);
}

static void work(struct campaign_worker *me, int fd)
{
	uint64_t deadline_ms = now_ms() + PATIENCE_MS;

	while (!is_through(me)) {
		bool posted = random_below(&me->random, 3) && post_somewhere(me);

		if (!random_below(&me->random, 16))
			register_something(me);
		if (take_completions(me) || posted)
			continue;
		require(now_ms() < deadline_ms, "operations that do not end");
		if (me->sleeps && !post_somewhere(me))
			sleep_until_event(me, fd);
		else
			usleep(20);
	}
}

/* Other workers may still send. */
static void serve_until_told(struct campaign_worker *me, int fd)
{
	struct pollfd told = { .fd = fd, .events = POLLIN };

	while (poll(&told, 1, 0) == 0)
		if (!take_completions(me))
			sleep_until_event(me, fd);
	while (take_completions(me))
		;
}

int worker_play(struct campaign_world *w, uint32_t self, int fd)
{
	struct campaign_worker *me = calloc(1, sizeof(*me));
	uint8_t phase;

	me->w = w;
	me->self = self;
	me->random = w->seed * WORKERS_MAX + self;
	me->sleeps = random_below(&me->random, 2);
	while (read(fd, &phase, 1) == 1 && phase < PHASES) {
		if (phase == PHASE_OPEN)
			open_all(me);
		else if (phase == PHASE_CONNECT)
			connect_all(me);
		else if (phase == PHASE_WORK)
			work(me, fd);
		else
			close_all(me);
		require(write(fd, &phase, 1) == 1, "the judge left");
		if (phase == PHASE_WORK)
			serve_until_told(me, fd);
		if (phase == PHASE_CLOSE)
			break;
	}
	free(me);
	return phase != PHASE_CLOSE;
}
