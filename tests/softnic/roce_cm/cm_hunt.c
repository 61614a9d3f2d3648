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

#include "sim/event/rng.h"
#include "softnic/roce_cm/cm.h"

enum {
	HOSTS = 2,
	STRANGER = HOSTS,
	CONNS = 6,
	CALLS_MAX = 256, /* connections asked for in one run */
	LETTERS = 512, /* in flight */
	PLANS_MAX = 64, /* of the programs */
	STEPS_MAX = 100000,
	STEPS = 1500, /* with faults */
	TIMEOUT = 10,
	WAIT = 11,
	RETRIES = 4,
};

#define TIMEOUT_NS (4096ull << TIMEOUT)

struct call {
	uint32_t reqs, live_servers;
	bool may_end; /* a program or a host did something that ends the connection */
};

struct cm_hunt_letter {
	uint64_t due_ns;
	uint8_t bytes[ROCE_MAD_BYTES];
	uint8_t from, to;
	bool is_used;
};

/* A connection in the eyes of a host's program. */
struct view {
	struct roce_cm_conn *conn;
	uint32_t call;
	bool is_client, is_established, has_reply, has_ended;
};

struct planned_act {
	uint64_t due_ns;
	uint32_t host, view, incarnation;
	bool is_used;
};

struct cm_hunt_host {
	struct roce_cm cm;
	struct roce_cm_conn conns[CONNS];
	struct view views[CONNS];
	uint32_t incarnation, qpn;
};

struct cm_hunt {
	struct sim_rng rng;
	uint64_t seed, now_ns, faithful_since_ns;
	bool is_faithful, has_forgotten;
	uint32_t loss, repeat, stranger; /* per mille */
	struct cm_hunt_host hosts[HOSTS];
	struct cm_hunt_letter letters[LETTERS];
	struct planned_act plans[PLANS_MAX];
	struct call calls[CALLS_MAX];
	uint32_t nr_calls;
	bool is_broken;
};

static const uint8_t gids[HOSTS + 1][ROCE_MAD_GID_BYTES] = { { 1 }, { 2 }, { 3 } };

static uint32_t draw(struct cm_hunt *h, uint32_t below)
{
	return (uint32_t)sim_rng_below(&h->rng, below);
}

static bool chance(struct cm_hunt *h, uint32_t per_mille)
{
	return draw(h, 1000) < per_mille;
}

__attribute__((format(printf, 3, 4))) static void expect(struct cm_hunt *h, bool holds,
							 const char *promise, ...)
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

static struct cm_hunt_letter *free_letter(struct cm_hunt *h)
{
	uint32_t i;

	for (i = 0; i < LETTERS; i++)
		if (!h->letters[i].is_used)
			return &h->letters[i];
	return NULL; /* the network is full: the message is lost */
}

static void post(struct cm_hunt *h, const struct roce_mad *m, uint8_t from, uint8_t to)
{
	struct cm_hunt_letter *letter = free_letter(h);
	uint64_t delay_ns = TIMEOUT_NS / 8;

	if (!letter)
		return;
	if (!h->is_faithful && !draw(h, 8))
		delay_ns = 4 * TIMEOUT_NS;
	roce_mad_encode(m, letter->bytes);
	letter->from = from;
	letter->to = to;
	letter->due_ns = h->now_ns + 1 + sim_rng_below(&h->rng, delay_ns);
	letter->is_used = true;
}

/* Of a REQ and its REP, the PSN is the call's number. */
static void count_sent(struct cm_hunt *h, uint32_t host, const struct roce_mad *m)
{
	struct call *call;

	if (m->kind != ROCE_MAD_REQ)
		return;
	call = &h->calls[m->psn];
	expect(h, ++call->reqs <= 1 + RETRIES, "host %u repeats a REQ too often", host);
}

static void flush(struct cm_hunt *h, uint8_t host)
{
	struct roce_mad m;
	uint8_t peer[ROCE_MAD_GID_BYTES];
	uint8_t to;

	while (roce_cm_next_mad(&h->hosts[host].cm, &m, peer)) {
		count_sent(h, host, &m);
		to = (uint8_t)(peer[0] - 1);
		if (to == STRANGER)
			continue;
		if (h->is_faithful || !chance(h, h->loss))
			post(h, &m, host, to);
		if (!h->is_faithful && chance(h, h->repeat))
			post(h, &m, host, to);
		if (chance(h, h->stranger))
			post(h, &m, STRANGER, to);
	}
}

/* A program acts some time from now, always before the peer gives up. */
static void plan(struct cm_hunt *h, uint32_t host, uint32_t view, uint64_t within_ns)
{
	uint32_t i;

	for (i = 0; i < PLANS_MAX && h->plans[i].is_used; i++)
		;
	expect(h, i < PLANS_MAX, "the hunt's list is full");
	if (i == PLANS_MAX)
		return;
	h->plans[i] = (struct planned_act){ h->now_ns + 1 + sim_rng_below(&h->rng, within_ns), host,
					    view, h->hosts[host].incarnation, true };
}

static uint32_t view_of(struct cm_hunt *h, uint32_t host, const struct roce_cm_conn *conn)
{
	uint32_t i;

	for (i = 0; i < CONNS && h->hosts[host].views[i].conn != conn; i++)
		;
	return i;
}

static uint32_t take_view(struct cm_hunt *h, uint32_t host, struct roce_cm_conn *conn,
			  uint32_t call)
{
	uint32_t i = view_of(h, host, conn);

	expect(h, i == CONNS, "host %u: a connection in use is given away", host);
	i = view_of(h, host, NULL);
	expect(h, i < CONNS, "host %u: more connections than there are", host);
	if (i == CONNS)
		return 0;
	h->hosts[host].views[i] = (struct view){ .conn = conn, .call = call };
	return i;
}

static void release(struct cm_hunt *h, uint32_t host, struct view *view)
{
	if (!view->has_ended) {
		h->calls[view->call].may_end = true;
		if (!view->is_client)
			h->calls[view->call].live_servers = 0;
	}
	roce_cm_release(&h->hosts[host].cm, view->conn, h->now_ns);
	view->conn = NULL;
}

/* A queue pair that no other connection has, unless the host has lost its memory. */
static uint32_t unused_qpn(struct cm_hunt *h, uint32_t host)
{
	return ++h->hosts[host].qpn;
}

static void connect_one(struct cm_hunt *h, uint32_t host)
{
	struct roce_mad req = { .kind = ROCE_MAD_REQ,
				.psn = h->nr_calls,
				.remote_timeout = TIMEOUT,
				.local_timeout = TIMEOUT,
				.ack_timeout = WAIT,
				.max_cm_retries = RETRIES };
	struct roce_cm_conn *conn;
	uint32_t view;

	if (h->nr_calls == CALLS_MAX)
		return;
	req.qpn = unused_qpn(h, host);
	if (roce_cm_connect(&h->hosts[host].cm, &req, gids[1 - host], h->now_ns, &conn))
		return;
	view = take_view(h, host, conn, h->nr_calls++);
	h->hosts[host].views[view].is_client = true;
	if (!draw(h, 6))
		plan(h, host, view, 6 * TIMEOUT_NS); /* loses patience */
}

static void accept_one(struct cm_hunt *h, uint32_t host, struct view *view)
{
	struct roce_mad rep = { .kind = ROCE_MAD_REP, .qpn = unused_qpn(h, host) };

	rep.psn = view->call;
	expect(h, !roce_cm_accept(&h->hosts[host].cm, view->conn, &rep, h->now_ns),
	       "host %u cannot accept", host);
}

static void reject_one(struct cm_hunt *h, uint32_t host, struct view *view)
{
	h->calls[view->call].may_end = true;
	expect(h, !roce_cm_reject(&h->hosts[host].cm, view->conn, ROCE_MAD_CONSUMER, NULL, 0),
	       "host %u cannot reject", host);
	release(h, host, view);
}

static void answer(struct cm_hunt *h, uint32_t host, uint32_t index)
{
	struct view *view = &h->hosts[host].views[index];
	bool is_request = view->conn->state == ROCE_CM_REQ_RCVD;

	if (!draw(h, 8)) {
		reject_one(h, host, view);
	} else if (!draw(h, 4)) {
		expect(h, !roce_cm_wait(&h->hosts[host].cm, view->conn, TIMEOUT),
		       "host %u cannot ask for patience", host);
		plan(h, host, index, TIMEOUT_NS / 4);
	} else if (is_request) {
		accept_one(h, host, view);
	} else {
		expect(h, !roce_cm_confirm(&h->hosts[host].cm, view->conn),
		       "host %u cannot confirm", host);
		view->is_established = true;
		plan(h, host, index, 20 * TIMEOUT_NS);
	}
}

static void act(struct cm_hunt *h, const struct planned_act *plan)
{
	struct view *view = &h->hosts[plan->host].views[plan->view];

	if (plan->incarnation != h->hosts[plan->host].incarnation || !view->conn)
		return;
	if (view->has_ended) {
		release(h, plan->host, view);
		return;
	}
	if (view->conn->state == ROCE_CM_REQ_RCVD || view->conn->state == ROCE_CM_REP_RCVD) {
		answer(h, plan->host, plan->view);
		return;
	}
	h->calls[view->call].may_end = true;
	if (view->conn->state == ROCE_CM_ESTABLISHED && draw(h, 4))
		expect(h, !roce_cm_disconnect(&h->hosts[plan->host].cm, view->conn, h->now_ns),
		       "host %u cannot disconnect", plan->host);
	else if (view->is_client || view->is_established)
		release(h, plan->host, view);
}

static void hear_request(struct cm_hunt *h, uint32_t host, const struct roce_cm_event *event)
{
	struct call *call = &h->calls[event->mad->psn];
	uint32_t i, view;

	if (event->conn->peer[0] == STRANGER + 1) {
		roce_cm_reject(&h->hosts[host].cm, event->conn, ROCE_MAD_CONSUMER, NULL, 0);
		roce_cm_release(&h->hosts[host].cm, event->conn, h->now_ns);
		return;
	}
	for (i = 0; i < CONNS; i++) {
		struct roce_cm_conn *other = &h->hosts[host].conns[i];

		expect(h,
		       other == event->conn || other->state == ROCE_CM_FREE ||
			       other->state == ROCE_CM_REQ_SENT || other->state == ROCE_CM_ENDED ||
			       other->remote_qpn != event->mad->qpn,
		       "host %u has two connections with one queue pair", host);
	}
	expect(h, !call->live_servers++, "host %u hears twice of call %u", host, event->mad->psn);
	view = take_view(h, host, event->conn, event->mad->psn);
	plan(h, host, view, TIMEOUT_NS / 4);
}

static void hear_end(struct cm_hunt *h, uint32_t host, struct view *view,
		     const struct roce_cm_event *event)
{
	struct call *call = &h->calls[view->call];
	bool is_over = event->kind != ROCE_CM_DISCONNECTED;

	if (event->kind == ROCE_CM_UNREACHABLE) {
		expect(h, !h->is_faithful || h->now_ns < h->faithful_since_ns + 6 * TIMEOUT_NS,
		       "host %u does not reach its peer over a faithful network", host);
		call->may_end = true;
	}
	if (event->kind == ROCE_CM_DISCONNECTED)
		expect(h, call->may_end || h->has_forgotten,
		       "host %u: call %u is disconnected without a reason", host, view->call);
	if (is_over) {
		view->has_ended = true;
		if (!view->is_client)
			call->live_servers = 0;
		plan(h, host, (uint32_t)(view - h->hosts[host].views), TIMEOUT_NS);
	}
}

static void hear(struct cm_hunt *h, uint32_t host)
{
	struct roce_cm_event event;
	struct view *view;
	uint32_t i;

	while (!h->is_broken && roce_cm_next_event(&h->hosts[host].cm, &event)) {
		if (event.kind == ROCE_CM_REQUEST) {
			hear_request(h, host, &event);
			continue;
		}
		i = view_of(h, host, event.conn);
		expect(h, i < CONNS, "host %u hears of a connection it has released", host);
		if (i == CONNS)
			return;
		view = &h->hosts[host].views[i];
		expect(h, !view->has_ended, "host %u hears of a connection at its end", host);
		if (event.kind == ROCE_CM_REPLY) {
			expect(h, view->is_client && !view->has_reply, "host %u: second reply",
			       host);
			expect(h, event.mad->psn == view->call, "host %u: another call's REP",
			       host);
			view->has_reply = true;
			plan(h, host, i, TIMEOUT_NS / 4);
		} else if (event.kind == ROCE_CM_IS_ESTABLISHED) {
			expect(h, !view->is_client && !view->is_established,
			       "host %u: established twice", host);
			view->is_established = true;
			plan(h, host, i, 20 * TIMEOUT_NS);
		} else {
			hear_end(h, host, view, &event);
		}
	}
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
	dead->qpn = 0;
	dead->incarnation++;
	roce_cm_init(&dead->cm, dead->conns, CONNS, host + 1, sim_rng_next(&h->rng));
}

static void arrive(struct cm_hunt *h, struct cm_hunt_letter *letter)
{
	struct roce_mad m;

	letter->is_used = false;
	expect(h, !roce_mad_decode(&m, letter->bytes, sizeof(letter->bytes)),
	       "a message cannot be read");
	roce_cm_received(&h->hosts[letter->to].cm, &m, gids[letter->from], h->now_ns);
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
		flush(h, (uint8_t)i);
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
		if (!draw(h, forget)) {
			h->has_forgotten = true;
			crash(h, draw(h, HOSTS));
		}
		for (i = 0; i < HOSTS; i++)
			flush(h, (uint8_t)i);
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
