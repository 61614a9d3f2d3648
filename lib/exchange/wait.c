/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waiting is polling for as long as that pays (core/poll.h), and then sleeping. Where bitmaps
 * confirm nothing comes by itself, so who has looked a few times rings at the peer: he writes to a word
 * of the peer's what he waits for, and looks once more. The peer flips bits first and reads the word
 * then. So either that last look sees the flip, or the peer sees the word, and sends one immediate:
 * awake or asleep, there is nothing to be looked at until it comes.
 */
#include <errno.h>
#include <poll.h>

#include "lib/error.h"
#include "lib/exchange/exchange.h"
#include "lib/yield.h"

#define REST_MS_MAX 1000 /* asleep, a peer that vanished without a word is looked for so often */
#define CHECK_NS 1000000ull /* awake, the connection manager is asked so often */
#define LOOKS 4u /* of who waits, before it asks to be woken */
#define CONFIRM_MANY 32u /* slots that are not left unconfirmed, whatever the peer is at */
#define CONFIRM_NS 256000ull /* nor is one for longer than that, while others are put */
#define RING_BITS 2 /* of the bell's word, for what is waited for */
#define WAITS_FOR_ALL (WEIR_EXCHANGE_NEWS | WEIR_EXCHANGE_ROOM) /* who waits in an event loop */

static bool is_low(const struct weir_exchange *x)
{
	return (uint64_t)x->out.free * 100 < (uint64_t)x->out.slots * x->options.percent_min;
}

/* What the bell says, if it asks for @what and was not answered; or 0. */
static uint64_t rung_for(const struct weir_exchange *x, unsigned int what)
{
	uint64_t rung = weir_load_acquire(x->bell);

	return rung != x->answered && rung & what ? rung : 0;
}

/*
 * A peer that still had slots to give back when it was last looked at is busy with those. Once it is
 * through and finds no more it rings, and the next put hears of that.
 */
static bool is_to_confirm(const struct weir_exchange *x, uint64_t now_ns)
{
	if (!weir_pace_is_due(&x->confirm, now_ns))
		return false;
	return x->out.arrived == x->out.freed || rung_for(x, WEIR_EXCHANGE_NEWS) ||
	       weir_exchange_unconfirmed(x) >= CONFIRM_MANY ||
	       now_ns - x->confirm.looked_ns >= CONFIRM_NS;
}

bool weir_exchange_look_is_due(const struct weir_exchange *x, uint64_t now_ns)
{
	return !weir_exchange_is_imm(x) && !x->is_looking &&
	       (is_to_confirm(x, now_ns) ||
		(is_low(x) && weir_pace_is_due(&x->room, now_ns)));
}

/*
 * The peer was asked to say when there is some, the look behind that has found none, and it has not
 * said so since. A look would be in vain; and its completion would wake who sleeps on this queue.
 */
static bool has_asked(const struct weir_exchange *x, unsigned int want)
{
	return x->rung & want && !x->is_looking && !weir_exchange_unconfirmed(x);
}

static bool is_to_look(const struct weir_exchange *x, unsigned int want, uint64_t now_ns)
{
	const struct weir_pace *pace = want == WEIR_EXCHANGE_NEWS ? &x->news : &x->room;

	if (x->is_looking)
		return false;
	if (weir_exchange_unconfirmed(x))
		return true;
	/* Of room there may be some that is not worth waking a sleeper for. */
	if (want == WEIR_EXCHANGE_NEWS && has_asked(x, want))
		return false;
	return weir_pace_is_due(pace, now_ns);
}

/* Rings, unless that has been done and not been answered, and looks. */
static int ring(struct weir_exchange *x, unsigned int want)
{
	x->is_to_ring = false;
	if (x->rung == want)
		return weir_exchange_queue_look(x, 0);
	x->rung = want;
	return weir_exchange_queue_look(x, ++x->rings << RING_BITS | want);
}

int weir_exchange_look(struct weir_exchange *x, unsigned int want, uint64_t now_ns)
{
	if (!is_to_look(x, want, now_ns))
		return x->status;
	return x->is_to_ring ? ring(x, WAITS_FOR_ALL) : weir_exchange_queue_look(x, 0);
}

/* A sleeper that waits for room is woken for some, or if there will be no more. */
static bool is_worth_waking(const struct weir_exchange *x, unsigned int what)
{
	return what == WEIR_EXCHANGE_NEWS || !x->nr_taken || x->nr_released >= x->in.slots / 4;
}

int weir_exchange_answer(struct weir_exchange *x, unsigned int what)
{
	uint64_t rung;

	if (weir_exchange_is_imm(x) || !is_worth_waking(x, what))
		return x->status;
	__sync_synchronize(); /* the flips, then the bell: the peer rings, and then looks */
	rung = rung_for(x, what);
	if (!rung)
		return x->status;
	x->answered = rung;
	x->nr_released = 0;
	return weir_exchange_queue_wake(x);
}

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

	if (ms < 0 || ms > REST_MS_MAX)
		ms = REST_MS_MAX;
	if (poll(fds, 2, ms) <= 0)
		return false;
	if (fds[0].revents)
		hear_completions(x);
	if (fds[1].revents)
		hear_connection(x);
	return true;
}

/* If an event was heard since it was armed there is something to look at. */
static void rest(struct weir_exchange *x, uint64_t deadline_ns)
{
	if (!x->is_armed)
		return;
	x->info.sleeps++;
	if (!hear(x, deadline_ns) && weir_exchange_is_imm(x))
		weir_exchange_queue_probe(x);
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
 * @looks: that it makes before it rings: what comes soon comes soonest so
 */
struct attempt {
	struct weir_exchange *x;
	unsigned int want;
	uint64_t deadline_ns;
	struct weir_poll poll;
	unsigned int looks;
};

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

	if (x->is_looking || has_asked(x, a->want))
		return;
	if (!a->looks && !weir_exchange_unconfirmed(x)) {
		ring(x, a->want);
		return;
	}
	weir_exchange_look(x, a->want, now_ns);
	a->looks -= x->is_looking && a->looks && !x->options.busy;
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
	return has_asked(x, a->want);
}

/* It is armed before the last poll: what came before raises no event. */
static void obey(struct attempt *a, enum weir_poll_verdict verdict)
{
	if (verdict == WEIR_POLL_SLEEP) {
		rest(a->x, a->deadline_ns);
		verdict = weir_poll_woken(&a->poll, weir_now_ns());
	}
	if (verdict == WEIR_POLL_ARM)
		arm(a->x);
}

static uint64_t breathe(struct weir_exchange *x, struct weir_poll *poll)
{
	uint64_t now_ns, stall_ns = weir_yield(&now_ns);

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
		.looks = LOOKS,
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
	x->is_to_ring = x->rung != WAITS_FOR_ALL;
	if (!x->is_looking && (x->is_to_ring || weir_exchange_unconfirmed(x)))
		ring(x, WAITS_FOR_ALL);
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
	} while (!verdict_of(x) && !weir_exchange_is_imm(x) && !x->is_looking &&
		 x->rung != WAITS_FOR_ALL);
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
