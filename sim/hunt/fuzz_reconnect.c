/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A session's links over peers that vanish and return. The host posts in bursts, some of them
 * without its lock, probes when quiet, drains failing links and reconnects, as libweir does. The
 * hunt checks from outside that each WR ends once, in order and with a true status; that only a
 * link whose peer has vanished fails, and within a bounded time; and that attempts to reconnect
 * keep their pauses.
 */
#include "core/link/keepalive.h"
#include "core/link/reconnect.h"
#include "sim/hunt/hunt.h"

#define LINKS 3
#define DEPTH 8
#define WQES (DEPTH + 2) /* a probe and a drain WR, too */
#define STEPS 1500
#define STEP_NS_MAX 2000000
#define MS 1000000ull

/* A work request in a send queue: @wr, the probe, or the drain WR. */
struct fuzz_reconnect_wqe {
	enum { FUZZ_RECONNECT_WR, FUZZ_RECONNECT_PROBE, FUZZ_RECONNECT_DRAIN } kind;
	struct weir_wr *wr;
	bool is_signalled, is_done;
	int status;
	uint64_t posted_ns;
};

/**
 * struct fuzz_reconnect_qp - a link, its queue pair and its peer
 * @wrs, @is_posted, @is_executed: all WRs of the link
 * @posting: a chain whose thread posts without the host's lock; @unposted: its WRs not yet posted
 * @is_failed: the queue pair is in the error state
 * @vanishes_ns: when the peer vanishes; @returns_ns: when a new connection succeeds again
 * @tries: failed attempts to reconnect; @failing: steps since the link failed
 */
struct fuzz_reconnect_qp {
	struct weir_link link;
	struct weir_reconnect attempts;
	struct fuzz_reconnect_wqe wqes[WQES];
	uint32_t count;
	struct weir_wr wrs[DEPTH];
	bool is_posted[DEPTH], is_executed[DEPTH];
	struct weir_wr *posting, *unposted;
	bool is_failed;
	uint64_t vanishes_ns, returns_ns;
	uint32_t tries, failing;
};

/**
 * struct fuzz_reconnect - a session
 * @silence_ns: the transport gives up a peer after so long without an answer; 0: never, and the
 *	session is quiet
 * @posted_ns: last post; @posted: their number
 * @is_busy: the session posts; @is_lost: no link reconnects any more
 */
struct fuzz_reconnect {
	struct hunt *hunt;
	struct sim_rng rng;
	struct weir_keepalive keepalive;
	struct fuzz_reconnect_qp qps[LINKS];
	uint64_t now_ns, silence_ns, posted_ns, posted;
	bool is_busy, is_lost;
};

static bool has_vanished(const struct fuzz_reconnect *f, const struct fuzz_reconnect_qp *qp)
{
	return f->now_ns >= qp->vanishes_ns;
}

/* A new connection, to a peer that vanishes some day. */
static void connect_qp(struct fuzz_reconnect *f, struct fuzz_reconnect_qp *qp)
{
	weir_link_up(&qp->link);
	qp->is_failed = false;
	qp->count = qp->tries = 0;
	qp->vanishes_ns = f->now_ns + sim_rng_below(&f->rng, 2000 * MS);
	qp->returns_ns = qp->vanishes_ns + sim_rng_below(&f->rng, 600 * MS);
}

static void push_wqe(struct fuzz_reconnect *f, struct fuzz_reconnect_qp *qp,
		     struct fuzz_reconnect_wqe wqe)
{
	wqe.posted_ns = f->now_ns;
	hunt_expect(f->hunt, qp->count < WQES, "a send queue is overfilled");
	if (qp->count < WQES)
		qp->wqes[qp->count++] = wqe;
}

static void push_drain(struct fuzz_reconnect *f, struct fuzz_reconnect_qp *qp)
{
	push_wqe(f, qp,
		 (struct fuzz_reconnect_wqe){ .kind = FUZZ_RECONNECT_DRAIN, .is_signalled = true });
}

static void fail_link(struct fuzz_reconnect *f, struct fuzz_reconnect_qp *qp)
{
	if (!weir_link_fail(&qp->link))
		return;
	hunt_expect(f->hunt, has_vanished(f, qp) || qp->is_failed || f->is_lost,
		    "a link fails, and its peer answers");
	qp->is_failed = true;
	if (weir_link_needs_drain(&qp->link))
		push_drain(f, qp);
}

/* What the NIC does with a WQE until now. Return: true if the WQE is done. */
static bool execute(struct fuzz_reconnect *f, struct fuzz_reconnect_qp *qp,
		    struct fuzz_reconnect_wqe *wqe)
{
	if (wqe->is_done)
		return true;
	if (!has_vanished(f, qp) && !qp->is_failed) {
		if (wqe->wr)
			qp->is_executed[wqe->wr - qp->wrs] = true;
	} else if (qp->is_failed ||
		   (f->silence_ns && f->now_ns - wqe->posted_ns >= f->silence_ns)) {
		qp->is_failed = true;
		wqe->status = -ECONNRESET;
	} else {
		return false;
	}
	return wqe->is_done = true;
}

/* The device has refused the rest of a chain, after it has executed some WRs. */
static void break_qp(struct fuzz_reconnect *f, struct fuzz_reconnect_qp *qp)
{
	uint32_t i;

	for (i = 0; i < qp->count && hunt_dice(&f->rng, 700); i++) {
		if (!execute(f, qp, &qp->wqes[i]))
			break;
	}
	qp->is_failed = true;
	fail_link(f, qp);
}

/* Posts the WRs from @wr on, at most @most. Return: the rest, some of which may be refused. */
static struct weir_wr *post_some(struct fuzz_reconnect *f, struct fuzz_reconnect_qp *qp,
				 struct weir_wr *wr, uint32_t most)
{
	for (; wr && most && !hunt_dice(&f->rng, 5); wr = wr->next, most--) {
		qp->is_posted[wr - qp->wrs] = true;
		qp->is_executed[wr - qp->wrs] = false;
		push_wqe(f, qp,
			 (struct fuzz_reconnect_wqe){
				 .wr = wr,
				 .is_signalled = weir_in_flight_signal(&qp->link.in_flight,
								       !wr->next, DEPTH / 2) });
	}
	return wr;
}

/* The post has returned. Meanwhile the link may have failed, and the device has posted any part. */
static void end_post(struct fuzz_reconnect *f, struct fuzz_reconnect_qp *qp)
{
	struct weir_wr *wr, *rest = post_some(f, qp, qp->unposted, DEPTH);
	uint32_t count = 0;

	for (wr = qp->posting; wr != rest; wr = wr->next)
		count++;
	f->posted += count;
	f->posted_ns = f->now_ns;
	hunt_expect(f->hunt, weir_link_end_post(&qp->link, qp->posting, count) == rest,
		    "another part of a chain is given back than the one refused");
	qp->posting = qp->unposted = NULL;
	if (qp->link.state == WEIR_LINK_UP && rest)
		break_qp(f, qp);
	else if (qp->link.state == WEIR_LINK_FAILING && weir_link_needs_drain(&qp->link))
		push_drain(f, qp);
}

/*
 * Posts some WRs as one chain, with the host's lock or without. A device that refuses the rest of a
 * chain breaks the queue pair.
 */
static void post_chain(struct fuzz_reconnect *f, struct fuzz_reconnect_qp *qp)
{
	struct weir_wr *first = NULL, **tail = &first, *wr, *rest;
	uint32_t count = 0, most = 1 + (uint32_t)sim_rng_below(&f->rng, DEPTH);
	int i;

	for (i = 0; i < DEPTH && most; i++) {
		if (qp->is_posted[i])
			continue;
		most--;
		*tail = &qp->wrs[i];
		tail = &qp->wrs[i].next;
	}
	*tail = NULL;
	if (first && hunt_dice(&f->rng, 300)) {
		weir_link_begin_post(&qp->link);
		qp->posting = first;
		qp->unposted = post_some(f, qp, first, (uint32_t)sim_rng_below(&f->rng, DEPTH));
		return;
	}
	rest = post_some(f, qp, first, DEPTH);
	for (wr = first; wr != rest; wr = wr->next)
		count++;
	f->posted += count;
	f->posted_ns = f->now_ns;
	if (count)
		weir_in_flight_append(&qp->link.in_flight, first, count);
	if (rest)
		break_qp(f, qp);
}

static void retire(struct fuzz_reconnect *f, struct fuzz_reconnect_qp *qp,
		   const struct fuzz_reconnect_wqe *wqe)
{
	const struct weir_wc cqe = { wqe->wr, wqe->status };
	struct weir_wc wc = { NULL };

	while (weir_in_flight_complete(&qp->link.in_flight, &cqe, &wc)) {
		hunt_expect(f->hunt, qp->is_posted[wc.wr - qp->wrs], "a WR ends twice");
		hunt_expect(f->hunt, qp->is_executed[wc.wr - qp->wrs] == !wc.status,
			    "a WR ends with %d, a false status", wc.status);
		qp->is_posted[wc.wr - qp->wrs] = false;
	}
	if (wqe->kind == FUZZ_RECONNECT_WR && wqe->status)
		fail_link(f, qp);
}

/* Takes the first completion of the CQ. Return: false if there is none, or another thread posts. */
static bool take_cqe(struct fuzz_reconnect *f, struct fuzz_reconnect_qp *qp)
{
	struct fuzz_reconnect_wqe wqe;
	uint32_t i;

	if (qp->posting)
		return false;
	for (i = 0; i < qp->count && execute(f, qp, &qp->wqes[i]); i++) {
		if (qp->wqes[i].is_signalled || qp->wqes[i].status)
			break;
	}
	if (i == qp->count || !qp->wqes[i].is_done)
		return false;
	wqe = qp->wqes[i];
	qp->count -= i + 1;
	memmove(qp->wqes, qp->wqes + i + 1, qp->count * sizeof(wqe));
	if (wqe.kind == FUZZ_RECONNECT_PROBE) {
		weir_keepalive_answered(&f->keepalive, &qp->link, f->now_ns);
		if (wqe.status)
			fail_link(f, qp);
	} else {
		retire(f, qp, &wqe);
	}
	return true;
}

static void check_keepalive(struct fuzz_reconnect *f)
{
	bool is_quiet = weir_keepalive_is_quiet(&f->keepalive, f->posted);
	int i;

	if (f->now_ns < f->keepalive.due_ns)
		return;
	for (i = 0; i < LINKS; i++) {
		while (take_cqe(f, &f->qps[i]))
			;
	}
	for (i = 0; i < LINKS; i++) {
		struct fuzz_reconnect_qp *qp = &f->qps[i];
		enum weir_keepalive_action action = weir_keepalive_check(&qp->link, is_quiet);

		if (action == WEIR_KEEPALIVE_FAIL)
			fail_link(f, qp);
		if (action != WEIR_KEEPALIVE_PROBE)
			continue;
		push_wqe(f, qp,
			 (struct fuzz_reconnect_wqe){ .kind = FUZZ_RECONNECT_PROBE,
						      .is_signalled = true });
		weir_keepalive_probed(&f->keepalive, &qp->link);
		f->posted++;
	}
	weir_keepalive_checked(&f->keepalive, f->posted, f->now_ns);
}

static void lose_session(struct fuzz_reconnect *f)
{
	int i;

	f->is_lost = true;
	weir_keepalive_stop(&f->keepalive);
	for (i = 0; i < LINKS; i++)
		fail_link(f, &f->qps[i]);
}

static void watch_pause(struct fuzz_reconnect *f, const struct fuzz_reconnect_qp *qp)
{
	uint64_t least_ns = (5 * MS) << (qp->tries < 8 ? qp->tries - 1 : 7);
	uint64_t pause_ns = qp->attempts.next_ns - f->now_ns;
	bool is_last = qp->attempts.next_ns == qp->attempts.give_up_ns;

	least_ns = least_ns < 500 * MS ? least_ns : 500 * MS;
	hunt_expect(f->hunt, (pause_ns >= least_ns || is_last) && pause_ns < 2 * least_ns,
		    "attempt %u is followed by a pause of %llu us", qp->tries,
		    (unsigned long long)pause_ns / 1000);
	hunt_expect(f->hunt, qp->attempts.next_ns <= qp->attempts.give_up_ns,
		    "attempt %u begins after the time to give up", qp->tries + 1);
}

static void try_to_connect(struct fuzz_reconnect *f, struct fuzz_reconnect_qp *qp)
{
	int status = hunt_dice(&f->rng, 50) ? -ESTALE : -ETIMEDOUT;
	bool may_try = status != -ESTALE && f->now_ns < qp->attempts.give_up_ns, tries;

	if (f->now_ns >= qp->returns_ns) {
		connect_qp(f, qp);
		return;
	}
	qp->tries++;
	tries = weir_reconnect_failed(&qp->attempts, status, (uint32_t)sim_rng_next(&f->rng),
				      f->now_ns);
	hunt_expect(f->hunt, tries == may_try, "after attempt %u the host %s", qp->tries,
		    tries ? "tries again" : "gives up");
	if (tries)
		watch_pause(f, qp);
	else
		lose_session(f);
}

static void settle_link(struct fuzz_reconnect *f, struct fuzz_reconnect_qp *qp)
{
	int i;

	if (!weir_link_settle(&qp->link, true, !f->is_lost))
		return;
	for (i = 0; i < DEPTH; i++)
		hunt_expect(f->hunt, !qp->is_posted[i], "a link settles with a WR in flight");
	hunt_expect(f->hunt, !qp->posting, "a link settles while a thread posts");
	hunt_expect(f->hunt, !qp->link.is_probed, "a link settles with a probe in flight");
	hunt_note(f->hunt, "settle", (int64_t)f->now_ns, qp->link.state, 0);
	weir_reconnect_begin(&qp->attempts, f->now_ns + f->keepalive.timeout_ns, f->now_ns);
}

/* A vanished peer is noticed: by a WR in flight, or by a probe after the next checks. */
static void watch_vanished(struct fuzz_reconnect *f, const struct fuzz_reconnect_qp *qp)
{
	uint64_t since_ns = qp->vanishes_ns > f->posted_ns ? qp->vanishes_ns : f->posted_ns;
	uint64_t late_ns = f->silence_ns + 4 * STEP_NS_MAX +
			   3 * (f->keepalive.quiet_ns + f->keepalive.timeout_ns);

	hunt_expect(f->hunt,
		    qp->link.state != WEIR_LINK_UP || !has_vanished(f, qp) ||
			    f->now_ns < since_ns + late_ns,
		    "a vanished peer is not noticed");
}

static void step_link(struct fuzz_reconnect *f, struct fuzz_reconnect_qp *qp)
{
	uint64_t batch = 1 + sim_rng_below(&f->rng, 4);

	if (qp->posting && hunt_dice(&f->rng, 60))
		end_post(f, qp);
	while (batch && take_cqe(f, qp))
		batch--;
	settle_link(f, qp);
	qp->failing = qp->link.state == WEIR_LINK_FAILING && !qp->posting ? qp->failing + 1 : 0;
	hunt_expect(f->hunt, qp->failing <= WQES,
		    "a failed link waits for a WR that never completes");
	if (qp->link.state == WEIR_LINK_BROKEN && f->now_ns >= qp->attempts.next_ns)
		try_to_connect(f, qp);
	if (f->is_busy && qp->link.state == WEIR_LINK_UP && !qp->posting && hunt_dice(&f->rng, 300))
		post_chain(f, qp);
	watch_vanished(f, qp);
}

/* One draw a statement: the compiler may evaluate arguments in any order. */
static void begin(struct fuzz_reconnect *f)
{
	uint64_t quiet_ns = (1 + sim_rng_below(&f->rng, 100)) * MS;
	uint64_t timeout_ns = (1 + sim_rng_below(&f->rng, 300)) * MS;
	int i;

	f->silence_ns = hunt_dice(&f->rng, 500) ? 0 : 1 + sim_rng_below(&f->rng, 400 * MS);
	weir_keepalive_init(&f->keepalive, quiet_ns, timeout_ns);
	weir_keepalive_start(&f->keepalive, 0, 0);
	for (i = 0; i < LINKS; i++)
		connect_qp(f, &f->qps[i]);
}

void hunt_reconnect(struct hunt *h, uint64_t seed)
{
	struct fuzz_reconnect f = { .hunt = h };
	int i, step;

	sim_rng_init(&f.rng, seed, "link", 0);
	begin(&f);
	for (step = 0; step < STEPS && !*h->why; step++) {
		f.now_ns += sim_rng_below(&f.rng, STEP_NS_MAX);
		f.is_busy ^= f.silence_ns && hunt_dice(&f.rng, 20);
		for (i = 0; i < LINKS; i++)
			step_link(&f, &f.qps[i]);
		check_keepalive(&f);
	}
	hunt_note(h, "link", (int64_t)f.posted, (int64_t)f.now_ns, f.is_lost);
}
