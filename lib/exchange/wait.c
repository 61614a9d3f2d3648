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

static void hear_completions(struct weir_exchange *x)
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
static void hear_connection(struct weir_exchange *x)
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
	weir_exchange_queue_poll(x);
	weir_exchange_fail(x, -ECONNRESET);
}

/* Return: whether anything was heard until then. */
static bool hear(struct weir_exchange *x, uint64_t deadline_ns)
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
		hear_completions(x);
	if (fds[1].revents)
		hear_connection(x);
	return true;
}

void weir_exchange_attend(struct weir_exchange *x)
{
	hear(x, 0);
}

void weir_exchange_inquire(struct weir_exchange *x)
{
	if (weir_exchange_is_imm(x))
		weir_exchange_queue_probe(x);
	else if (!x->look.is_looking)
		weir_exchange_queue_look(x, 0);
}

/* If an event was heard since it was armed there is something to look at. */
static void rest(struct weir_exchange *x, uint64_t deadline_ns)
{
	if (!x->is_armed)
		return;
	x->info.sleeps++;
	if (!hear(x, deadline_ns))
		weir_exchange_inquire(x);
}

static int arm(struct weir_exchange *x)
{
	if (x->is_armed)
		return 0;
	x->is_armed = true;
	return ibv_req_notify_cq(x->cq, 0) ? weir_exchange_fail(x, -ECONNRESET) : 0;
}

/**
 * struct attempt - one wait
 * @looks: that it may still make before it rings: what comes soon comes soonest so, and cheapest
 * @looked: that it has made; @has_rung: none of them has found anything
 */
struct attempt {
	struct weir_exchange *x;
	unsigned int want;
	uint64_t deadline_ns;
	struct weir_poll poll;
	unsigned int looks, looked;
	bool has_rung;
};

/* It is over: whether a few looks more, or fewer, would have been better. */
static void learn(const struct attempt *a)
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
	weir_exchange_queue_poll(x);
	weir_exchange_queue_gives(x);
	if (want & WEIR_EXCHANGE_ROOM)
		weir_exchange_queue_mark(x);
}

static void look_on(struct attempt *a, uint64_t now_ns)
{
	struct weir_exchange *x = a->x;

	if (x->look.is_looking || weir_exchange_has_asked(x, a->want))
		return;
	if (!a->looks && !x->look.is_woken && !weir_exchange_owes_look(x, a->want)) {
		if (!a->has_rung)
			x->looks /= 2; /* those were in vain */
		a->has_rung = true;
		weir_exchange_ring(x, a->want);
		return;
	}
	weir_exchange_look(x, a->want, now_ns);
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
static bool look_round(struct attempt *a, uint64_t now_ns)
{
	struct weir_exchange *x = a->x;

	if (weir_exchange_is_imm(x)) {
		imm_round(x, a->want);
		return true;
	}
	look_on(a, now_ns);
	weir_exchange_queue_poll(x);
	return weir_exchange_has_asked(x, a->want) || look_is_long(x, now_ns);
}

/* It is armed before the last poll: what came before raises no event. */
static void obey(struct attempt *a, enum weir_poll_verdict verdict)
{
	struct weir_exchange *x = a->x;
	uint64_t now_ns;

	if (verdict == WEIR_POLL_SLEEP) {
		rest(x, a->deadline_ns);
		now_ns = weir_now_ns();
		if (x->look.is_looking)
			weir_look_polled(&x->look, now_ns); /* whoever sleeps for it waits for it */
		verdict = weir_poll_woken(&a->poll, now_ns);
	}
	if (verdict == WEIR_POLL_ARM)
		arm(x);
}

/* Whoever else had the processor meanwhile: a look that is under way was waited for. */
static uint64_t breathe(struct weir_exchange *x, struct weir_poll *poll)
{
	uint64_t now_ns, stall_ns = weir_yield(&now_ns);

	if (x->look.is_looking)
		weir_look_polled(&x->look, now_ns);
	if (stall_ns)
		weir_gaps_stalled(poll->gaps, stall_ns, now_ns);
	if (now_ns - x->checked_ns < CHECK_NS)
		return now_ns;
	x->checked_ns = now_ns;
	hear(x, now_ns);
	return now_ns;
}

static int attempt(struct attempt *a, weir_exchange_ready_fn *is_ready)
{
	struct weir_exchange *x = a->x;
	uint64_t now_ns = weir_now_ns();
	bool is_empty;

	obey(a, weir_poll_woken(&a->poll, now_ns));
	for (;;) {
		is_empty = look_round(a, now_ns);
		if (is_ready(x)) {
			learn(a);
			weir_poll_polled(&a->poll, 1, now_ns);
			return 0;
		}
		if (x->status)
			return x->status;
		now_ns = breathe(x, &a->poll);
		if (now_ns >= a->deadline_ns)
			return -ETIMEDOUT;
		if (is_empty)
			obey(a, weir_poll_polled(&a->poll, 0, now_ns));
	}
}

/* For who does not wait. */
static void ask_round(struct weir_exchange *x, unsigned int want, uint64_t now_ns)
{
	if (weir_exchange_is_imm(x)) {
		imm_round(x, want);
		return;
	}
	weir_exchange_look(x, want, now_ns);
	weir_exchange_queue_poll(x);
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
	struct attempt a = {
		.x = x, .want = want, .deadline_ns = weir_after_ns(now_ns, timeout_ns),
		.looks = weir_look_is_slow(&x->look) ? 0 : x->looks,
		.looked = x->look.is_looking,
	};

	if (is_ready(x))
		return 0;
	if (!timeout_ns) {
		ask_round(x, want, now_ns);
		if (!x->status && now_ns - x->checked_ns >= CHECK_NS) {
			x->checked_ns = now_ns;
			hear(x, now_ns);
		}
		if (is_ready(x))
			return 0;
		return x->status ? x->status : -EAGAIN;
	}
	weir_exchange_concede(x);
	weir_poll_init(&a.poll, &config,
		       want == WEIR_EXCHANGE_NEWS ? &x->gaps : &x->room_gaps, now_ns);
	return attempt(&a, is_ready);
}

int weir_exchange_wait(struct weir_exchange *x, weir_exchange_ready_fn *is_ready, unsigned int want,
		       uint64_t timeout_ns)
{
	int rc = wait_for(x, is_ready, want, timeout_ns);

	if (rc && (want == WEIR_EXCHANGE_ROOM || x->is_finished))
		weir_exchange_refused(x);
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
	return x->was_refused && weir_exchange_progress(x) != x->progress;
}

static void process_round(struct weir_exchange *x)
{
	if (weir_exchange_is_imm(x))
		imm_round(x, WEIR_EXCHANGE_ROOM);
	else
		weir_exchange_queue_poll(x);
}

/* While a look is under way the next one is to ring, whoever posts it. */
static void ask(struct weir_exchange *x)
{
	weir_exchange_concede(x);
	weir_exchange_tell(x, weir_now_ns());
	x->is_to_ring = x->look.rung != WEIR_EXCHANGE_ALL && !x->look.is_woken;
	if (x->look.is_looking)
		return;
	if (x->look.is_woken)
		weir_exchange_queue_look(x, 0);
	else if (x->is_to_ring || weir_look_unshown(&x->out) ||
		 (x->was_refused && weir_exchange_owes_look(x, WEIR_EXCHANGE_ROOM)))
		weir_exchange_ring(x, WEIR_EXCHANGE_ALL);
}

/* Return: as weir_exchange_process(). */
static int process(struct weir_exchange *x)
{
	hear(x, 0);
	process_round(x);
	if (verdict_of(x))
		return verdict_of(x);
	do {
		if (!weir_exchange_is_imm(x))
			ask(x);
		if (!x->status)
			arm(x); /* a look that is still under way raises an event, too */
		process_round(x);
		/* A wake for an earlier ring has come: no other will. */
	} while (!verdict_of(x) && !weir_exchange_is_imm(x) && !x->look.is_looking &&
		 x->look.rung != WEIR_EXCHANGE_ALL);
	return verdict_of(x);
}

int weir_exchange_process(struct weir_exchange *x)
{
	int rc = process(x);

	if (rc && !is_news(x))
		x->was_refused = false; /* now it has been said */
	return rc;
}

int weir_exchange_fd(const struct weir_exchange *x)
{
	return x->fd;
}
