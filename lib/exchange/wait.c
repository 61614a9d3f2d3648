/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waiting is polling for as long as that pays (core/poll/poll.h), and then sleeping. Where bitmaps
 * confirm, who has rung at the peer polls for its answer only: there is nothing to be looked at
 * until that comes.
 */
#include <errno.h>
#include <poll.h>

#include "lib/base/error.h"
#include "lib/exchange/bitmap_poll.h"
#include "lib/exchange/post.h"
#include "lib/exchange/wait.h"
#include "lib/base/yield.h"

#define CHECK_NS 1000000ull /* awake, the connection manager is asked so often */

static void take_cq_event(struct weir_exchange *x)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(x->events, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	x->is_armed = false;
	x->info.events++;
}

/* What came before the end of the connection is taken first. */
static void take_cm_event(struct weir_exchange *x)
{
	struct rdma_cm_event *event;
	bool is_end;

	if (rdma_get_cm_event(x->cm, &event))
		return;
	is_end = event->event == RDMA_CM_EVENT_DISCONNECTED ||
		 event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
	rdma_ack_cm_event(event);
	if (!is_end)
		return;
	weir_exchange_completion_poll(x);
	weir_exchange_fail(x, -ECONNRESET);
}

/* Return: whether anything was heard until then. */
static bool wait_events(struct weir_exchange *x, uint64_t deadline_ns)
{
	struct pollfd fds[] = {
		{ .fd = x->events->fd, .events = POLLIN },
		{ .fd = x->cm->fd, .events = POLLIN },
	};
	int ms = weir_poll_ms(deadline_ns);

	if (ms < 0 || ms > WEIR_EXCHANGE_REST_MS_MAX)
		ms = WEIR_EXCHANGE_REST_MS_MAX;
	if (poll(fds, 2, ms) <= 0)
		return false;
	if (fds[0].revents)
		take_cq_event(x);
	if (fds[1].revents)
		take_cm_event(x);
	return true;
}

void weir_exchange_take_events(struct weir_exchange *x)
{
	wait_events(x, 0);
}

void weir_exchange_probe_peer(struct weir_exchange *x)
{
	if (weir_exchange_is_imm(x))
		weir_exchange_post_probe(x);
	else if (!x->look.is_looking)
		weir_exchange_post_bitmap_read(x, 0);
}

/* If an event was heard since it was armed there is something to look at. */
static void sleep_armed(struct weir_exchange *x, uint64_t deadline_ns)
{
	if (!x->is_armed)
		return;
	x->info.sleeps++;
	if (!wait_events(x, deadline_ns))
		weir_exchange_probe_peer(x);
}

static int arm_cq(struct weir_exchange *x)
{
	if (x->is_armed)
		return 0;
	x->is_armed = true;
	return ibv_req_notify_cq(x->cq, 0) ? weir_exchange_fail(x, -ECONNRESET) : 0;
}

/**
 * struct exchange_wait - one wait
 * @looks: that it may still make before it rings: what comes soon comes soonest so, and cheapest
 * @looked: that it has made; @has_rung: none of them has found anything
 */
struct exchange_wait {
	struct weir_exchange *x;
	unsigned int want;
	uint64_t deadline_ns;
	struct weir_poll poll;
	unsigned int looks, looked;
	bool has_rung;
};

/* It is over: whether a few looks more, or fewer, would have been better. */
static void adapt_looks(const struct exchange_wait *a)
{
	struct weir_exchange *x = a->x;

	if (a->looked > 1 && !a->has_rung)
		x->looks = WEIR_EXCHANGE_LOOKS;
	else if (a->has_rung && x->look.rung && x->look.heard == x->look.heard_before &&
		 x->looks < WEIR_EXCHANGE_LOOKS)
		x->looks++; /* the look behind the ring has found it: nobody was woken */
}

/* Immediate mode: who waits for room may wait for his own writes to be done, too. */
static void imm_round(struct weir_exchange *x, unsigned int want)
{
	weir_exchange_completion_poll(x);
	weir_exchange_post_gives(x);
	if (want & WEIR_EXCHANGE_ROOM)
		weir_exchange_post_marker(x);
}

static void keep_looking(struct exchange_wait *a, uint64_t now_ns)
{
	struct weir_exchange *x = a->x;

	if (x->look.is_looking || weir_exchange_has_requested_wake(x, a->want))
		return;
	if (!a->looks && !x->look.is_woken && !weir_exchange_needs_bitmap_read(x, a->want)) {
		if (!a->has_rung)
			x->looks /= 2; /* those were in vain */
		a->has_rung = true;
		weir_exchange_request_wake(x, a->want);
		return;
	}
	weir_exchange_bitmap_poll(x, a->want, now_ns);
	a->looked += x->look.is_looking;
	a->looks -= x->look.is_looking && a->looks && !x->options.busy;
}

/*
 * Behind large writes, or on a slow wire: the completion raises an event, and that is worth a
 * sleep.
 */
static bool look_is_long(const struct weir_exchange *x, uint64_t now_ns)
{
	return x->look.is_looking && now_ns >= x->look.asked_ns + WEIR_WAKE_NS;
}

/* One round awake. Return: whether what is waited for will be heard of, but for the arming. */
static bool look_round(struct exchange_wait *a, uint64_t now_ns)
{
	struct weir_exchange *x = a->x;

	if (weir_exchange_is_imm(x)) {
		imm_round(x, a->want);
		return true;
	}
	keep_looking(a, now_ns);
	weir_exchange_completion_poll(x);
	return weir_exchange_has_requested_wake(x, a->want) || look_is_long(x, now_ns);
}

/* It is armed before the last poll: what came before raises no event. */
static void follow_verdict(struct exchange_wait *a, enum weir_poll_verdict verdict)
{
	struct weir_exchange *x = a->x;
	uint64_t now_ns;

	if (verdict == WEIR_POLL_SLEEP) {
		sleep_armed(x, a->deadline_ns);
		now_ns = weir_now_ns();
		if (x->look.is_looking)
			weir_slot_poll_polled(&x->look,
					      now_ns); /* whoever sleeps for it waits for it */
		verdict = weir_poll_woken(&a->poll, now_ns);
	}
	if (verdict == WEIR_POLL_ARM)
		arm_cq(x);
}

/* Whoever else had the processor meanwhile: a look that is under way was waited for. */
static uint64_t yield_cpu(struct weir_exchange *x, struct weir_poll *poll)
{
	uint64_t now_ns, stall_ns = weir_yield(&now_ns);

	if (x->look.is_looking)
		weir_slot_poll_polled(&x->look, now_ns);
	if (stall_ns)
		weir_idle_time_stalled(poll->gaps, stall_ns, now_ns);
	if (now_ns - x->checked_ns < CHECK_NS)
		return now_ns;
	x->checked_ns = now_ns;
	wait_events(x, now_ns);
	return now_ns;
}

static int attempt(struct exchange_wait *a, weir_exchange_ready_fn *is_ready)
{
	struct weir_exchange *x = a->x;
	uint64_t now_ns = weir_now_ns();
	bool is_empty;

	follow_verdict(a, weir_poll_woken(&a->poll, now_ns));
	for (;;) {
		is_empty = look_round(a, now_ns);
		if (is_ready(x)) {
			adapt_looks(a);
			weir_poll_polled(&a->poll, 1, now_ns);
			return 0;
		}
		if (x->status)
			return x->status;
		now_ns = yield_cpu(x, &a->poll);
		if (now_ns >= a->deadline_ns)
			return -ETIMEDOUT;
		if (is_empty)
			follow_verdict(a, weir_poll_polled(&a->poll, 0, now_ns));
	}
}

/* For who does not wait. */
static void poll_once(struct weir_exchange *x, unsigned int want, uint64_t now_ns)
{
	if (weir_exchange_is_imm(x)) {
		imm_round(x, want);
		return;
	}
	weir_exchange_bitmap_poll(x, want, now_ns);
	weir_exchange_completion_poll(x);
}

static int wait_for(struct weir_exchange *x, weir_exchange_ready_fn *is_ready, unsigned int want,
		    uint64_t timeout_ns)
{
	const struct weir_poll_config config = {
		.mode = x->options.busy ? WEIR_POLL_BUSY : WEIR_POLL_ADAPTIVE,
		.wcs_max = 1,
		.busy_percent_max = 100,
	};
	uint64_t now_ns = weir_now_ns();
	struct exchange_wait a = {
		.x = x,
		.want = want,
		.deadline_ns = weir_after_ns(now_ns, timeout_ns),
		.looks = weir_slot_poll_is_slow(&x->look) ? 0 : x->looks,
		.looked = x->look.is_looking,
	};

	if (is_ready(x))
		return 0;
	if (!timeout_ns) {
		poll_once(x, want, now_ns);
		if (!x->status && now_ns - x->checked_ns >= CHECK_NS) {
			x->checked_ns = now_ns;
			wait_events(x, now_ns);
		}
		if (is_ready(x))
			return 0;
		return x->status ? x->status : -EAGAIN;
	}
	weir_exchange_wake_peer_for_room(x);
	weir_poll_init(&a.poll, &config, want == WEIR_EXCHANGE_NEWS ? &x->gaps : &x->room_gaps,
		       now_ns);
	return attempt(&a, is_ready);
}

int weir_exchange_wait(struct weir_exchange *x, weir_exchange_ready_fn *is_ready, unsigned int want,
		       uint64_t timeout_ns)
{
	int rc = wait_for(x, is_ready, want, timeout_ns);

	if (rc && (want == WEIR_EXCHANGE_ROOM || x->is_finished))
		weir_exchange_set_starved(x);
	return rc;
}

static bool is_news(const struct weir_exchange *x)
{
	return x->order[x->next % x->in.slots];
}

/*
 * What has come counts more than that no more will. The progress may have been made by another call
 * than the one that was refused, before or after. Return: 1; 0 nothing; or why it has ended.
 */
static int verdict_of(const struct weir_exchange *x)
{
	if (is_news(x))
		return 1;
	if (x->status)
		return x->status;
	return x->is_starved && weir_exchange_progress(x) != x->progress;
}

static void process_round(struct weir_exchange *x)
{
	if (weir_exchange_is_imm(x))
		imm_round(x, WEIR_EXCHANGE_ROOM);
	else
		weir_exchange_completion_poll(x);
}

/* While a look is under way the next one is to ring, whoever posts it. */
static void request_wakes(struct weir_exchange *x)
{
	weir_exchange_wake_peer_for_room(x);
	weir_exchange_notify(x, weir_now_ns());
	x->is_to_ring = x->look.rung != WEIR_EXCHANGE_ALL && !x->look.is_woken;
	if (x->look.is_looking)
		return;
	if (x->look.is_woken)
		weir_exchange_post_bitmap_read(x, 0);
	else if (x->is_to_ring || weir_slot_poll_unshown(&x->out) ||
		 (x->is_starved && weir_exchange_needs_bitmap_read(x, WEIR_EXCHANGE_ROOM)))
		weir_exchange_request_wake(x, WEIR_EXCHANGE_ALL);
}

/* Return: as weir_exchange_process(). */
static int process_all(struct weir_exchange *x)
{
	wait_events(x, 0);
	process_round(x);
	if (verdict_of(x))
		return verdict_of(x);
	do {
		if (!weir_exchange_is_imm(x))
			request_wakes(x);
		if (!x->status)
			arm_cq(x); /* a look that is still under way raises an event, too */
		process_round(x);
		/* A wake for an earlier ring has come: no other will. */
	} while (!verdict_of(x) && !weir_exchange_is_imm(x) && !x->look.is_looking &&
		 x->look.rung != WEIR_EXCHANGE_ALL);
	return verdict_of(x);
}

int weir_exchange_process(struct weir_exchange *x)
{
	int rc = process_all(x);

	if (rc && !is_news(x))
		x->is_starved = false; /* now it has been said */
	return rc;
}

int weir_exchange_fd(const struct weir_exchange *x)
{
	return x->fd;
}
