/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A wait polls for as long as that pays (core/poll/poll.h), then sleeps. In bitmap mode, after
 * ringing the doorbell, a wait polls only for the peer's answer; no further bitmap read is
 * needed until then.
 */
#include <errno.h>
#include <poll.h>

#include "lib/base/error.h"
#include "lib/conn/event_channel.h"
#include "lib/exchange/bitmap_poll.h"
#include "lib/exchange/post.h"
#include "lib/exchange/wait.h"
#include "lib/base/yield.h"

#define CHECK_NS 1000000ull /* check of the connection manager while awake */

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

/* Completions from before the disconnect are taken first. */
static void take_cm_event(struct weir_exchange *x)
{
	struct weir_cm_event event;

	if (weir_event_channel_get(x->cm, &event) <= 0 ||
	    (event.type != RDMA_CM_EVENT_DISCONNECTED &&
	     event.type != RDMA_CM_EVENT_DEVICE_REMOVAL))
		return;
	weir_exchange_completion_poll(x);
	weir_exchange_fail(x, -ECONNRESET);
}

/* Return: whether an event came. */
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
	else if (!x->slot_poll.is_reading)
		weir_exchange_post_bitmap_read(x, 0);
}

/* Sleeps unless an event has come since the CQ was armed. */
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
 * struct exchange_wait - state of a wait
 * @reads: bitmap reads left before the doorbell; a quick answer is cheapest by reads
 * @nr_read: bitmap reads done
 * @has_requested: all reads found nothing, and the doorbell was rung
 */
struct exchange_wait {
	struct weir_exchange *x;
	unsigned int want;
	uint64_t deadline_ns;
	struct weir_poll poll;
	unsigned int reads, nr_read;
	bool has_requested;
};

/* Adapts the number of bitmap reads for the next wait. */
static void adapt_looks(const struct exchange_wait *a)
{
	struct weir_exchange *x = a->x;

	if (a->nr_read > 1 && !a->has_requested)
		x->reads = WEIR_EXCHANGE_READS;
	else if (a->has_requested && x->slot_poll.requested &&
		 x->slot_poll.notices == x->slot_poll.notices_before &&
		 x->reads < WEIR_EXCHANGE_READS)
		x->reads++; /* the read behind the doorbell found news: no wake-up was needed */
}

/* Immediate mode: a wait for room may be a wait for our own writes, so a marker is posted. */
static void imm_round(struct weir_exchange *x, unsigned int want)
{
	weir_exchange_completion_poll(x);
	weir_exchange_post_returns(x);
	if (want & WEIR_EXCHANGE_ROOM)
		weir_exchange_post_marker(x);
}

/* A marker confirms our slots, and room may come with them. */
static bool awaits_marker(const struct weir_exchange *x, unsigned int want)
{
	return want & WEIR_EXCHANGE_ROOM && x->acked < x->marked;
}

static void keep_looking(struct exchange_wait *a, uint64_t now_ns)
{
	struct weir_exchange *x = a->x;

	if (x->slot_poll.is_reading || awaits_marker(x, a->want) ||
	    weir_exchange_has_requested_wake(x, a->want))
		return;
	if (!a->reads && !x->slot_poll.is_woken && !weir_exchange_needs_bitmap_read(x, a->want)) {
		if (!a->has_requested)
			x->reads /= 2; /* these reads were useless */
		a->has_requested = true;
		weir_exchange_request_wake(x, a->want);
		return;
	}
	weir_exchange_bitmap_poll(x, a->want, now_ns);
	a->nr_read += x->slot_poll.is_reading;
	a->reads -= x->slot_poll.is_reading && a->reads && !x->options.busy;
}

/* A bitmap read behind large writes, or on a slow wire, is worth a sleep until its completion. */
static bool look_is_long(const struct weir_exchange *x, uint64_t now_ns)
{
	return x->slot_poll.is_reading && now_ns >= x->slot_poll.asked_ns + WEIR_WAKE_NS;
}

/* A round of polling. Return: whether the next event raises a completion, once armed. */
static bool look_round(struct exchange_wait *a, uint64_t now_ns)
{
	struct weir_exchange *x = a->x;

	if (weir_exchange_is_imm(x)) {
		imm_round(x, a->want);
		return true;
	}
	keep_looking(a, now_ns);
	weir_exchange_completion_poll(x);
	return weir_exchange_has_requested_wake(x, a->want) || awaits_marker(x, a->want) ||
	       look_is_long(x, now_ns);
}

/* The CQ is armed before the last poll, since earlier completions raise no event. */
static void follow_verdict(struct exchange_wait *a, enum weir_poll_verdict verdict)
{
	struct weir_exchange *x = a->x;
	uint64_t now_ns;

	if (verdict == WEIR_POLL_SLEEP) {
		sleep_armed(x, a->deadline_ns);
		now_ns = weir_now_ns();
		if (x->slot_poll.is_reading)
			weir_slot_poll_polled(&x->slot_poll,
					      now_ns); /* a sleeper waits for the read */
		verdict = weir_poll_woken(&a->poll, now_ns);
	}
	if (verdict == WEIR_POLL_ARM)
		arm_cq(x);
}

/* Yields the CPU. The time away counts as waiting for a bitmap read in flight. */
static uint64_t yield_cpu(struct weir_exchange *x, struct weir_poll *poll)
{
	uint64_t now_ns, stall_ns = weir_yield(&now_ns);

	if (x->slot_poll.is_reading)
		weir_slot_poll_polled(&x->slot_poll, now_ns);
	if (stall_ns)
		weir_idle_time_stalled(poll->idle_time, stall_ns, now_ns);
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

/* A single poll for a call that does not wait. */
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
		.reads = weir_slot_poll_is_slow(&x->slot_poll) ? 0 : x->reads,
		.nr_read = x->slot_poll.is_reading,
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
	weir_poll_init(&a.poll, &config,
		       want == WEIR_EXCHANGE_NEWS ? &x->idle_time : &x->room_idle_time, now_ns);
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
 * An arrival counts more than the end. Progress may come from another call, before or after the
 * refused call. Return: 1; 0 nothing; the reason of the end.
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

/* While a bitmap read is in flight, the next read is to ring, whichever call posts it. */
static void request_wakes(struct weir_exchange *x)
{
	weir_exchange_wake_peer_for_room(x);
	weir_exchange_notify(x, weir_now_ns());
	x->must_request = x->slot_poll.requested != WEIR_EXCHANGE_ALL && !x->slot_poll.is_woken;
	if (x->slot_poll.is_reading)
		return;
	if (x->slot_poll.is_woken)
		weir_exchange_post_bitmap_read(x, 0);
	else if (x->must_request || weir_slot_poll_unshown(&x->out) ||
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
			arm_cq(x); /* a bitmap read still in flight raises an event, too */
		process_round(x);
		/* The wake-up for an earlier doorbell has come: no other will. */
	} while (!verdict_of(x) && !weir_exchange_is_imm(x) && !x->slot_poll.is_reading &&
		 x->slot_poll.requested != WEIR_EXCHANGE_ALL);
	return verdict_of(x);
}

int weir_exchange_process(struct weir_exchange *x)
{
	int rc = process_all(x);

	if (rc && !is_news(x))
		x->is_starved = false; /* the caller knows now */
	return rc;
}

int weir_exchange_fd(const struct weir_exchange *x)
{
	return x->fd;
}
