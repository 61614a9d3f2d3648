/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hunts bugs in core/ by seed: sessions on one window, with random requests, over queue pairs that
 * behave and fail as verbs allow. A hunt runs in virtual time; the seed decides everything.
 *
 * requests.c makes requests, host.c drives the engines as libweir does, qp.c is a queue pair, and
 * memory.c moves its bytes. invariants.c, posts.c and liveness.c check from outside.
 *
 * Parts outside the engine have hunts of their own, from the same seed: the scheduler in
 * fuzz_sched.c, slot confirmation in fuzz_slot_bitmap.c, the poller in fuzz_poll.c, the target side
 * of unloading in fuzz_umtt.c, volumes in fuzz_volume.c and fuzz_volume_tasks.c, the handshake,
 * credits and calls in fuzz_link.c, reconnecting links in fuzz_reconnect.c, combining in
 * fuzz_combine.c, softnic's transport between hosts in fuzz_roce.c.
 *
 * Context of all: one thread a hunt; hunts share nothing.
 */
#ifndef WEIR_SIM_HUNT_HUNT_H
#define WEIR_SIM_HUNT_HUNT_H

#include "core/engine/engine.h"
#include "core/base/inbox.h"
#include "core/link/link.h"
#include "core/sched/window_classes.h"
#include "core/sched/window_delay.h"
#include "core/sched/window_knee.h"
#include "sim/event/event.h"
#include "sim/event/rng.h"

#define HUNT_SESSIONS 3
#define HUNT_CHANNELS 4
#define HUNT_WRS 24 /* of a session */
#define HUNT_REQUESTS 256 /* of a hunt */
/* of a session's remote memory; requests begin and end near a cell's border */
#define HUNT_CELLS 48
#define HUNT_CELL_BYTES 512
#define HUNT_REMOTE_BYTES (HUNT_CELLS * HUNT_CELL_BYTES)
#define HUNT_MEMORIES 2 /* of a session, at the same addresses */
#define HUNT_KEYS 3 /* of a session: one memory is registered twice */
#define HUNT_LOCAL_BYTES (4u << 20) /* of all requests of a hunt */
#define HUNT_MESSAGE_BYTES 200
#define HUNT_WHY_BYTES 256
#define HUNT_COUNTERS WEIR_PATH_COUNTERS_MIN

struct hunt;
struct hunt_session;

/**
 * struct hunt_request - a request and its outcome
 * @req: as held by the engine
 * @asked: as submitted
 * @node: in the inbox
 * @session: the session
 * @number: index in the hunt, in inbox order
 * @barriers: barriers of the session before this request
 * @is_bad: the peer will refuse the request
 * @is_unregistered: the NIC will not find the local memory
 * @refusal: expected status of an invalid request, which differs from @asked; or 0
 * @effects: WRs that have taken effect, for the whole request or a part
 * @did: per byte: has taken effect; @did_bytes: number of such bytes
 * @may_repeat: the engine may repost the request after a possible effect
 * @is_lost: a part failed with a queue pair since the last start; @repeats: restarts for this
 *	reason
 * @in_doubt: bit n: a change was lost on queue pair n and may still arrive; @is_doomed: n is gone
 * @is_unknown: a part was lost, and must not be repeated
 * @posted: per queue pair: WRs posted, or refused and not yet reported
 * @is_in: the engine has the request
 * @has_ended: the request came back, with @status
 */
struct hunt_request {
	struct weir_req req;
	struct weir_req asked;
	struct weir_inbox_node node;
	struct hunt_session *session;
	uint32_t number;
	uint32_t barriers;
	bool is_bad;
	bool is_unregistered;
	int refusal;
	uint32_t effects;
	uint8_t *did;
	uint64_t did_bytes;
	bool may_repeat;
	bool is_lost;
	uint32_t repeats;
	uint32_t in_doubt;
	bool is_doomed, is_unknown;
	uint16_t posted[HUNT_CHANNELS];
	bool is_in;
	bool has_ended;
	int status;
};

/* A queue pair's copy of a WR: after the completion, the engine reuses its own. */
struct hunt_wqe {
	struct weir_wr *wr;
	enum weir_op op;
	uint64_t remote, compare, operand;
	uint32_t length, rkey;
	uint8_t nr_sge;
	struct weir_sge sge[WEIR_WR_SGE_MAX];
	uint16_t nr_reqs;
	uint16_t reqs[HUNT_REQUESTS];
	bool is_done; /* completed, with @status */
	int status;
};

/**
 * struct hunt_qp - a queue pair, and its packets in the network
 * @wqes: posted, oldest first; a ring
 * @head, @count: of @wqes
 * @next: index of the first WQE not executed
 * @late: given up as lost but still to arrive, in order
 * @nr_late: number of @late
 * @unsent: WRs that could not be posted and are not yet reported; @nr_unsent: their number
 * @link: as the host sees it; not up: the queue pair is in the error state
 * @is_gone: failed for good
 * @is_down: the engine knows that it is failed or gone
 * @is_silent: the peer no longer answers
 * @rnr: RNR replies to the next message so far
 * @execute, @complete, @arrive, @reconnect, @report_unsent: events of the queue pair
 */
struct hunt_qp {
	struct hunt_session *session;
	uint16_t number;
	struct hunt_wqe wqes[HUNT_WRS];
	uint32_t head, count, next;
	struct hunt_wqe late[HUNT_WRS];
	uint32_t nr_late;
	struct weir_wr *unsent[HUNT_WRS];
	uint32_t nr_unsent;
	struct weir_link link;
	bool is_gone, is_down, is_silent;
	uint32_t rnr;
	struct sim_event execute, complete, arrive, reconnect, report_unsent;
};

/**
 * struct hunt_session - an engine and its surroundings
 * @route, @counters: path selector for writes; @unload: the queue pair for unloading, or -1
 * @memory: at the peer
 * @has_failed: a queue pair has failed; @has_lost: a queue pair is gone
 * @barriers: barriers accepted by the engine so far
 * @sent: the last message that arrived
 * @serve, @expire, @submit: events of the session
 * @expired_ns: the engine's last deadline call
 * @to_come: requests still to submit
 */
struct hunt_session {
	struct hunt *hunt;
	int number;
	struct weir_engine engine;
	struct weir_wr wrs[HUNT_WRS];
	struct weir_inbox inbox;
	struct hunt_qp qps[HUNT_CHANNELS];
	int nr_qps;
	struct weir_path_selector route;
	uint8_t counters[WEIR_PATH_BYTES(HUNT_COUNTERS)] __attribute__((aligned(8)));
	int unload;
	uint8_t memory[HUNT_MEMORIES][HUNT_REMOTE_BYTES];
	bool has_failed, has_lost;
	uint32_t barriers;
	int64_t sent;
	struct sim_event serve, expire, submit;
	uint64_t expired_ns;
	uint32_t to_come;
};

/**
 * struct hunt - one run
 * @why: the first broken invariant; empty while none is
 * @digest: of all events; equal for two runs of a seed
 * @trace: print all events
 * @peril: failures in 1,000 WRs, about
 * @refusal: WRs in 1,000 that cannot be posted, about
 * @haste: requests in 1,000 with a deadline; @deadline_ns_max: the longest deadline
 * @has_classes: requests have classes; @classes: of @window
 * @wander: a policy that moves the window at random; @window_bytes: the most it may allow
 * @local: all local memory, @local_bytes in use; @did: see struct hunt_request
 */
struct hunt {
	struct sim_clock clock;
	struct sim_rng load, net, host, paths, places, keys, waits, errors, wear, ranks;
	struct weir_window window;
	struct weir_window_classes classes;
	bool has_classes;
	struct weir_window_delay delay;
	struct weir_window_knee knee;
	struct weir_window_learner wander;
	uint64_t window_bytes;
	struct weir_engine_config config;
	struct hunt_session sessions[HUNT_SESSIONS];
	int nr_sessions;
	struct hunt_request requests[HUNT_REQUESTS];
	uint32_t nr_requests;
	uint32_t depth;
	uint32_t peril;
	uint32_t refusal;
	uint32_t haste;
	uint64_t deadline_ns_max;
	uint64_t digest;
	bool trace;
	char why[HUNT_WHY_BYTES];
	uint64_t local_bytes, did_bytes;
	uint8_t local[HUNT_LOCAL_BYTES]; /* from here on, contents are undefined at the start */
	uint8_t did[HUNT_LOCAL_BYTES];
};

/**
 * hunt_run() - run one hunt
 * @h: any contents; holds the outcome afterwards
 * @seed: decides everything
 * @trace: print all events
 *
 * Return: whether all invariants held; otherwise @h->why names the broken one.
 */
bool hunt_run(struct hunt *h, uint64_t seed, bool trace);

/**
 * hunt_run_tape() - run the engines alone, as given bytes decide
 * @bytes, @length: decide the first draws of all streams, in order
 * @seed: decides the rest
 *
 * For a fuzzer, which learns from the coverage which bytes to change, and for Hypothesis, which
 * shrinks them.
 *
 * Context: One thread at a time.
 * Return: NULL, or the broken invariant, valid until the next call.
 */
const char *hunt_run_tape(const uint8_t *bytes, size_t length, uint64_t seed);

/* requests.c: starts submitting. */
void hunt_requests_begin(struct hunt_session *s);

/* host.c: sets up engines, window, queue pairs and peers as the seed decides. */
void hunt_host_begin(struct hunt *h);
/* Called after a push into @s's inbox. */
void hunt_host_wake(struct hunt_session *s);
/* Runs all work of @s and of the sessions that it wakes. */
void hunt_host_pull(struct hunt_session *s);

/* qp.c: a queue pair that is up. */
void hunt_qp_init(struct hunt_qp *qp, struct hunt_session *s, uint16_t number);
/* Posts a chain. The engine learns of WRs that could not be posted, at once or later. */
void hunt_qp_post(struct hunt_qp *qp, struct weir_wr *wr);
/* Enters the error state: WQEs not executed are flushed, or arrive late. */
void hunt_qp_fail(struct hunt_qp *qp);
/* The host gives up the connection: it is gone, and its WQEs are flushed. */
void hunt_qp_lose(struct hunt_qp *qp);

/* memory.c: contiguous local memory. Return: its address. */
uint64_t hunt_memory_alloc(struct hunt *h, uint64_t bytes);
/* Assigns local memory at @at to @r; its last @apart bytes lie elsewhere. */
void hunt_memory_assign(struct hunt_request *r, uint64_t at, uint64_t apart);
/* Index of @s's memory that @rkey names, or -1. */
int hunt_memory_of(const struct hunt_session *s, uint32_t rkey);
/* An rkey of @s: mostly the same. */
uint32_t hunt_memory_key(struct hunt_session *s);
/* Executes @wqe; the answer's data lands if @is_answered. */
void hunt_memory_move(struct hunt_qp *qp, const struct hunt_wqe *wqe, bool is_answered);
/* At the end: the memory must be as if the requests had come one at a time. */
void hunt_memory_over(struct hunt_session *s);

/* invariants.c: checks. */
__attribute__((format(printf, 3, 4))) void hunt_expect(struct hunt *h, bool holds,
						       const char *format, ...);
/* Called before @wqe takes effect: checks that the effect is still allowed. */
void hunt_watch_effect(struct hunt_qp *qp, const struct hunt_wqe *wqe);
/* Called before the engine learns of the completion. */
void hunt_watch_complete(struct hunt_qp *qp, const struct hunt_wqe *wqe);
/* No packet sent on @qp can arrive any more; @qp comes up again, or is gone. */
void hunt_watch_found(struct hunt_qp *qp);
/* Called before the engine learns that @wr could not be posted. */
void hunt_watch_unsent(struct hunt_qp *qp, const struct weir_wr *wr);
void hunt_watch_end(struct hunt_request *r);
void hunt_watch_counts(struct hunt *h);
/* At the end: no request may be left, and all data read must have been right. */
void hunt_watch_over(struct hunt *h);

/* Whether both overlap in address and one is a write or atomic: the engine orders them. */
bool hunt_overlaps(const struct hunt_request *a, const struct hunt_request *b);
/* Whether one must wait for the other: both overlap in the same memory. */
bool hunt_conflicts(const struct hunt_request *a, const struct hunt_request *b);

/* posts.c: called before the queue pair gets the WRs. */
void hunt_watch_post(struct hunt_session *s, const struct weir_action *a);

/* liveness.c: whether @s still has to end @r. */
bool hunt_is_waiting(const struct hunt_session *s, const struct hunt_request *r);
/* Whether a WR of @r is posted. */
bool hunt_is_posted(const struct hunt_request *r);
/* @s has done all its work: each waiting request has a reason, with an end. */
void hunt_watch_liveness(struct hunt_session *s);

/* Separate hunts, each in its fuzz_NAME.c. */
void hunt_reconnect(struct hunt *h, uint64_t seed);
void hunt_sched(struct hunt *h, uint64_t seed);
void hunt_slot_bitmap(struct hunt *h, uint64_t seed);
void hunt_poll(struct hunt *h, uint64_t seed);
void hunt_umtt(struct hunt *h, uint64_t seed);
void hunt_volume(struct hunt *h, uint64_t seed);
void hunt_link(struct hunt *h, uint64_t seed);
void hunt_combine(struct hunt *h, uint64_t seed);
/* @packets: of a run, on average; 0: few */
void hunt_roce(struct hunt *h, uint64_t seed, uint64_t packets);

/* Adds an event to the digest and the trace. */
void hunt_note(struct hunt *h, const char *what, int64_t a, int64_t b, int64_t c);

static inline bool hunt_dice(struct sim_rng *rng, uint32_t in_1000)
{
	return sim_rng_below(rng, 1000) < in_1000;
}

/* Mostly soon, sometimes much later. */
static inline uint64_t hunt_while(struct sim_rng *rng)
{
	uint64_t most = hunt_dice(rng, 50) ? 100 * SIM_PS_PER_US : 4 * SIM_PS_PER_US;

	return sim_rng_below(rng, most);
}

static inline uint64_t hunt_now_ns(const struct hunt *h)
{
	return h->clock.now_ps / SIM_PS_PER_NS;
}

/* Whether the queue pair sends: it has not failed since the host connected it. */
static inline bool hunt_qp_is_up(const struct hunt_qp *qp)
{
	return qp->link.state == WEIR_LINK_UP;
}

static inline struct hunt_request *hunt_request_of(const struct weir_req *req)
{
	return container_of(req, struct hunt_request, req);
}

#endif
