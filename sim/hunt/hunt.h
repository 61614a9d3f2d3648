/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hunting bugs in core/ by the seed: sessions on one window, with random requests, over queue
 * pairs that do what verbs allow, and fail as they may. All of it happens in virtual time, and
 * follows from one number.
 *
 * Who does what: load.c makes requests, host.c drives the engines as libweir does, qp.c is a queue
 * pair and the memory behind it, promise.c watches from outside what the four promise each other.
 *
 * The scheduler and the confirmation are not parts of an engine: turns.c and slots.c hunt them by
 * themselves, from the same seed.
 *
 * Context of all: one thread a hunt; hunts share nothing.
 */
#ifndef WEIR_SIM_HUNT_H
#define WEIR_SIM_HUNT_H

#include "core/engine.h"
#include "core/inbox.h"
#include "core/window_delay.h"
#include "core/window_knee.h"
#include "sim/event.h"
#include "sim/rng.h"

#define HUNT_SESSIONS 3
#define HUNT_CHANNELS 4
#define HUNT_WRS 24 /* of one session */
#define HUNT_REQUESTS 256 /* of one hunt */
#define HUNT_CELLS 48 /* of a session's remote memory; a request touches whole ones */
#define HUNT_CELL_BYTES 512
#define HUNT_WHY_BYTES 256
#define HUNT_COUNTERS WEIR_ROUTE_COUNTERS_MIN

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
 * @first, @cells: what it touches
 * @is_bad: the peer will refuse it
 * @is_unregistered: the NIC will not find its local memory
 * @did: bit n: cell n of the memory has seen it; of a message, bit 0: it has arrived
 * @seen: what cell n held before that
 * @may_repeat: the engine may post it again after it may have taken effect
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
	uint32_t first, cells;
	bool is_bad;
	bool is_unregistered;
	uint64_t did;
	uint64_t seen[HUNT_CELLS];
	bool may_repeat;
	bool is_in;
	bool has_ended;
	int status;
};

/* A WR as the queue pair has it: the engine may use its own for something else meanwhile. */
struct hunt_wqe {
	struct weir_wr *wr;
	uint32_t offset, length;
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
 * @is_failed: in the error state
 * @is_gone: for good
 * @execute, @complete, @arrive, @mend: what happens to it, and when
 */
struct hunt_qp {
	struct hunt_session *session;
	uint16_t number;
	struct hunt_wqe wqes[HUNT_WRS];
	uint32_t head, count, next;
	struct hunt_wqe late[HUNT_WRS];
	uint32_t nr_late;
	bool is_failed, is_gone;
	struct sim_event execute, complete, arrive, mend;
};

/**
 * struct hunt_session - an engine and all around it
 * @route, @counters: by which path it writes; @unload: the queue pair that unloads, or -1
 * @memory: of its region: what each cell holds
 * @has_failed: a queue pair of it has
 * @barriers: that the engine took so far
 * @sent: the last message that arrived
 * @serve, @expire, @submit: what happens to it, and when
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
	struct weir_route route;
	uint8_t counters[WEIR_ROUTE_BYTES(HUNT_COUNTERS)];
	int unload;
	uint64_t memory[HUNT_CELLS];
	bool has_failed;
	uint32_t barriers;
	int64_t sent;
	struct sim_event serve, expire, submit;
	uint32_t to_come;
};

/**
 * struct hunt - one run
 * @why: the first promise that was broken; empty while none was
 * @digest: of all that happened: two runs of one seed have the same
 * @trace: prints all that happens
 * @peril: of 1,000 WRs about so many fail
 */
struct hunt {
	struct sim_clock clock;
	struct sim_rng load, net, host, paths;
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
	uint64_t digest;
	bool trace;
	char why[HUNT_WHY_BYTES];
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
void hunt_load_begin(struct hunt_session *s);

/* host.c: engines, window and queue pairs as the seed wants them; what the peers do. */
void hunt_host_begin(struct hunt *h);
/* Something was pushed into @s's inbox. */
void hunt_host_wake(struct hunt_session *s);
/* Runs all that @s, and those that it wakes, have to do. */
void hunt_host_pull(struct hunt_session *s);

/* qp.c: all up. */
void hunt_qp_init(struct hunt_qp *qp, struct hunt_session *s, uint16_t number);
/* Posts a chain. Return: how many were posted. */
uint32_t hunt_qp_post(struct hunt_qp *qp, struct weir_wr *wr);
/* To the error state: what was not executed is flushed, or arrives late. */
void hunt_qp_fail(struct hunt_qp *qp);

/* promise.c: watches. */
__attribute__((format(printf, 3, 4)))
void hunt_expect(struct hunt *h, bool holds, const char *format, ...);
/* Before @wqe takes effect, of which it says whether that is still allowed. */
void hunt_watch_effect(struct hunt_qp *qp, const struct hunt_wqe *wqe);
void hunt_watch_post(struct hunt_session *s, const struct weir_action *a);
void hunt_watch_end(struct hunt_request *r);
void hunt_watch_counts(struct hunt *h);
/* Nothing happens any more: nothing may be left, and all that was seen must have been so. */
void hunt_watch_over(struct hunt *h);

/* turns.c, slots.c: the scheduler, and confirmation by bitmaps. */
void hunt_turns(struct hunt *h, uint64_t seed);
void hunt_slots(struct hunt *h, uint64_t seed);

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
