/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hunting bugs in core/ by the seed: sessions on one window, with random requests, over queue
 * pairs that do what verbs allow, and fail as they may. All of it happens in virtual time, and
 * follows from one number.
 *
 * Who does what: load.c makes requests, host.c drives the engines as libweir does, qp.c is a queue
 * pair, memory.c the bytes that it moves, promise.c and waits.c watch from outside what they
 * promise each other.
 *
 * What is no part of an engine is hunted by itself, from the same seed: the scheduler in turns.c,
 * the confirmation in slots.c, the poller in naps.c, what unloading checks and copies in rights.c,
 * volumes in volumes.c and volume_tasks.c.
 *
 * Context of all: one thread a hunt; hunts share nothing.
 */
#ifndef WEIR_SIM_HUNT_H
#define WEIR_SIM_HUNT_H

#include "core/engine/engine.h"
#include "core/base/inbox.h"
#include "core/sched/window_delay.h"
#include "core/sched/window_knee.h"
#include "sim/event/event.h"
#include "sim/event/rng.h"

#define HUNT_SESSIONS 3
#define HUNT_CHANNELS 4
#define HUNT_WRS 24 /* of one session */
#define HUNT_REQUESTS 256 /* of one hunt */
#define HUNT_CELLS 48 /* of a session's remote memory; requests begin and end near one */
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
 * struct hunt_request - what was asked for, and what became of it
 * @req: as the engine has it
 * @asked: as it was submitted
 * @node: in the inbox
 * @session: whose
 * @number: of the hunt's requests, in the order in which they went into the inbox
 * @epoch: barriers of the session before it
 * @is_bad: the peer will refuse it
 * @is_unregistered: the NIC will not find its local memory
 * @refusal: how it is refused: it was submitted otherwise than @asked, and makes no sense; or 0
 * @effects: WRs of it that have taken effect, whole or their part
 * @did: of each of its bytes, whether one has; @did_bytes: of how many
 * @may_repeat: the engine may post it again after it may have taken effect
 * @is_lost: something of it failed with a queue pair since it was last begun; @repeats: how often
 *	it was begun anew for that
 * @in_doubt: bit n: a change was lost on queue pair n, and may still arrive; @is_doomed: n is gone
 * @posted: WRs of it that each queue pair has, or has refused and not said so yet
 * @is_in: the engine has it
 * @has_ended: it came back, with @status
 */
struct hunt_request {
	struct weir_req req;
	struct weir_req asked;
	struct weir_inbox_node node;
	struct hunt_session *session;
	uint32_t number;
	uint32_t epoch;
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
	bool is_doomed;
	uint16_t posted[HUNT_CHANNELS];
	bool is_in;
	bool has_ended;
	int status;
};

/* A WR as the queue pair has it: when it has completed the engine uses its own for another. */
struct hunt_wqe {
	struct weir_wr *wr;
	enum weir_op op;
	uint64_t remote, compare, operand;
	uint32_t length, rkey;
	uint8_t nr_sge;
	struct weir_sge sge[WEIR_WR_SGE_MAX];
	uint16_t nr_reqs;
	uint16_t reqs[HUNT_REQUESTS];
	bool is_done; /* and its completion is @status */
	int status;
};

/**
 * struct hunt_qp - a queue pair, and what the network still has of it
 * @wqes: posted, oldest first; a ring
 * @head, @count: of @wqes
 * @next: of those counted, the first that was not executed
 * @late: were given up as lost, and arrive yet, in order
 * @nr_late: how many
 * @unsent: could not be posted, and the engine has yet to hear of it; @nr_unsent: how many
 * @is_failed: in the error state
 * @is_gone: for good
 * @is_silent: the peer answers no longer
 * @rnr: how often it has said that it has nowhere to receive the message that is next
 * @execute, @complete, @arrive, @mend, @tell: what happens to it, and when
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
	bool is_failed, is_gone, is_silent;
	uint32_t rnr;
	struct sim_event execute, complete, arrive, mend, tell;
};

/**
 * struct hunt_session - an engine and all around it
 * @route, @counters: by which path it writes; @unload: the queue pair that unloads, or -1
 * @memory: at the peer
 * @has_failed: a queue pair of it has; @has_lost: one is gone
 * @barriers: that the engine took so far
 * @sent: the last message that arrived
 * @serve, @expire, @submit: what happens to it, and when
 * @expired_ns: when its engine was last told that time has passed
 * @to_come: requests that it will still submit
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
 * @why: the first promise that was broken; empty while none was
 * @digest: of all that happened: two runs of one seed have the same
 * @trace: prints all that happens
 * @peril: of 1,000 WRs about so many fail
 * @refusal: of 1,000 WRs about so many cannot be posted
 * @haste: of 1,000 requests so many have a deadline; @patience_ns: the longest
 * @local: all local memory, of which @local_bytes are used; @did: see struct hunt_request
 */
struct hunt {
	struct sim_clock clock;
	struct sim_rng load, net, host, paths, places, keys, waits, errors;
	struct weir_window window;
	struct weir_window_delay delay;
	struct weir_window_knee knee;
	struct weir_engine_config config;
	struct hunt_session sessions[HUNT_SESSIONS];
	int nr_sessions;
	struct hunt_request requests[HUNT_REQUESTS];
	uint32_t nr_requests;
	uint32_t depth;
	uint32_t peril;
	uint32_t refusal;
	uint32_t haste;
	uint64_t patience_ns;
	uint64_t digest;
	bool trace;
	char why[HUNT_WHY_BYTES];
	uint64_t local_bytes, did_bytes;
	uint8_t local[HUNT_LOCAL_BYTES]; /* from here on anything, when a hunt begins */
	uint8_t did[HUNT_LOCAL_BYTES];
};

/**
 * hunt_run() - one hunt
 * @h: anything; holds the outcome afterwards
 * @seed: all follows from it
 * @trace: print all that happens
 *
 * Return: whether all promises were kept; otherwise @h->why says which was not.
 */
bool hunt_run(struct hunt *h, uint64_t seed, bool trace);

/* load.c: begins to submit. */
void hunt_requests_begin(struct hunt_session *s);

/* host.c: engines, window and queue pairs as the seed wants them; what the peers do. */
void hunt_host_begin(struct hunt *h);
/* Something was pushed into @s's inbox. */
void hunt_host_wake(struct hunt_session *s);
/* Runs all that @s, and those that it wakes, have to do. */
void hunt_host_pull(struct hunt_session *s);

/* qp.c: all up. */
void hunt_qp_init(struct hunt_qp *qp, struct hunt_session *s, uint16_t number);
/* Posts a chain. The engine hears at once, or later, of what could not be. */
void hunt_qp_post(struct hunt_qp *qp, struct weir_wr *wr);
/* To the error state: what was not executed is flushed, or arrives late. */
void hunt_qp_fail(struct hunt_qp *qp);

/* memory.c: local memory that goes on for so long. Return: its address. */
uint64_t hunt_memory_alloc(struct hunt *h, uint64_t bytes);
/* That of @r begins at @at; its last @apart bytes lie elsewhere. */
void hunt_memory_assign(struct hunt_request *r, uint64_t at, uint64_t apart);
/* The memory that @rkey is for, as a number of @s's; -1: it is for none of them. */
int hunt_memory_of(const struct hunt_session *s, uint32_t rkey);
/* An rkey of @s's: mostly the same. */
uint32_t hunt_memory_key(struct hunt_session *s);
/* What @wqe says is done; what it brings lands, if it is answered. */
void hunt_memory_move(struct hunt_qp *qp, const struct hunt_wqe *wqe, bool is_answered);
/* Nothing happens any more: is all as if the requests had come one at a time? */
void hunt_memory_over(struct hunt_session *s);

/* promise.c: watches. */
__attribute__((format(printf, 3, 4))) void hunt_expect(struct hunt *h, bool holds,
						       const char *format, ...);
/* Before @wqe takes effect, of which it says whether that is still allowed. */
void hunt_watch_effect(struct hunt_qp *qp, const struct hunt_wqe *wqe);
void hunt_watch_post(struct hunt_session *s, const struct weir_action *a);
/* Before the engine hears of it. */
void hunt_watch_complete(struct hunt_qp *qp, const struct hunt_wqe *wqe);
/* Nothing that was sent on @qp can arrive any more; it comes up again, or is gone. */
void hunt_watch_found(struct hunt_qp *qp);
/* Before the engine hears that @wr could not be posted. */
void hunt_watch_unsent(struct hunt_qp *qp, const struct weir_wr *wr);
void hunt_watch_end(struct hunt_request *r);
void hunt_watch_counts(struct hunt *h);
/* Nothing happens any more: nothing may be left, and all that was seen must have been so. */
void hunt_watch_over(struct hunt *h);

/* Whether both are at one address, and one changes what is there: the engine lets one wait. */
bool hunt_overlaps(const struct hunt_request *a, const struct hunt_request *b);
/* Whether one of the two must wait for the other: they meet in one memory. */
bool hunt_conflicts(const struct hunt_request *a, const struct hunt_request *b);

/* waits.c: @s has done all that there was to do: who waits has a reason, and not for ever. */
void hunt_watch_liveness(struct hunt_session *s);

/* turns.c, slots.c, naps.c, rights.c, volumes.c: each by itself. */
void hunt_sched(struct hunt *h, uint64_t seed);
void hunt_slot_bitmap(struct hunt *h, uint64_t seed);
void hunt_poll(struct hunt *h, uint64_t seed);
void hunt_umtt(struct hunt *h, uint64_t seed);
void hunt_volume(struct hunt *h, uint64_t seed);

/* Notes, in the digest and the trace, that something happened. */
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

static inline struct hunt_request *hunt_request_of(const struct weir_req *req)
{
	return container_of(req, struct hunt_request, req);
}

#endif
