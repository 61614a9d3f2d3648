/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Some engines on one window, driven from outside by plain numbers: by the property test
 * through cffi, and by the fuzzer. It checks what can be checked at each step, and keeps
 * the first promise that was broken:
 *
 *  - no two WRs in flight whose requests conflict, and none past a barrier;
 *  - channels and the window hold no more than they may, and count right;
 *  - a WR carries the local memory that belongs to its part of the request, or to the
 *    requests merged into it, which lie side by side;
 *  - nothing that could have been merged is posted in pieces, nor chained unless it may be;
 *  - each request is handed back once, with none of its WRs in flight;
 *  - when nothing is left to do, something is in flight, or a broken channel is waited for, or
 *    everything is done;
 *  - a request that comes alone is posted at once, alone.
 *
 * What a completed request did to memory is for the caller to check.
 */
#ifndef WEIR_TESTS_SUPPORT_ENGINE_SIM_H
#define WEIR_TESTS_SUPPORT_ENGINE_SIM_H

#include <stdint.h>

#define SIM_ENGINES 3
#define SIM_CHANNELS 4
#define SIM_WRS 24
#define SIM_REQS 4096
#define SIM_FRAGMENT 4096

enum engine_sim_event_type {
	SIM_NOTHING,
	SIM_POSTED, /* what a WR carries of one request: @wr, @req, @offset, @length, @channel */
	SIM_DONE, /* @req, @status */
	SIM_FAILED, /* @channel */
};

struct engine_sim_event {
	int32_t type;
	int32_t engine;
	int32_t wr;
	int32_t req;
	int32_t channel;
	int32_t status;
	uint64_t offset;
	uint32_t length;
};

struct engine_sim;

/* The first promise that was broken since engine_sim_new(), or NULL. */
const char *engine_sim_broken(void);

/* @chain_max 0: as the core's maximum; @sge_max 0: no merging. */
struct engine_sim *engine_sim_new(uint64_t window_bytes, uint32_t window_wrs, uint32_t depth,
				  uint32_t chain_max, uint32_t sge_max, uint64_t seed);

/* Before all else: lets a policy of the simulator's own move the window, any way it likes. */
void engine_sim_move_window(struct engine_sim *s);
void engine_sim_free(struct engine_sim *s);

/* The events. Each pulls until the engines say no more; read what came with engine_sim_event(). */
int engine_sim_submit(struct engine_sim *s, int engine, int op, uint64_t remote, uint32_t length,
		      int retries, int exclusive,
		      uint64_t deadline_ns); /* the request's number, or a negative errno */
int engine_sim_cancel(struct engine_sim *s, int req);
void engine_sim_complete(struct engine_sim *s, int wr, int status);
void engine_sim_expire(struct engine_sim *s, uint64_t now_ns);
int engine_sim_channel_up(struct engine_sim *s, int engine, int channel);
void engine_sim_channel_broken(struct engine_sim *s, int engine, int channel);
void engine_sim_channel_down(struct engine_sim *s, int engine, int channel);

/* While @held nothing is pulled, as while a host takes what has gathered in its inbox. */
void engine_sim_hold(struct engine_sim *s, int held);

/* The next of what happened, SIM_NOTHING at the end. */
struct engine_sim_event engine_sim_event(struct engine_sim *s);

/* The number of WRs in flight; @wr becomes one of them, the @index-th: the first it carries. */
int engine_sim_in_flight(const struct engine_sim *s, int index, struct engine_sim_event *wr);

/* The number of requests that a WR in flight carries; @part becomes one, the @index-th. */
int engine_sim_carried(const struct engine_sim *s, int wr, int index,
		       struct engine_sim_event *part);

/* Requests that have not been handed back. */
int engine_sim_undone(const struct engine_sim *s);

#endif
