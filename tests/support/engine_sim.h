/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Several engines on one window, driven by plain numbers: by the property test through cffi,
 * and by the fuzzer. Each step is checked, and the first broken promise is kept:
 *
 *  - no two WRs in flight conflict, and none has passed a barrier;
 *  - channels and the window hold no more than allowed, and their counts are right;
 *  - a WR carries the local memory of its part of the request, or of the adjacent requests
 *    merged into the WR;
 *  - requests that could merge are not posted in pieces, nor chained unless allowed;
 *  - each request is handed back once, with none of its WRs in flight;
 *  - without further actions, a WR is in flight, a broken channel is waited for, or everything
 *    is done;
 *  - a request that comes alone is posted at once, alone.
 *
 * The caller checks the effect of completed requests on memory.
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
	SIM_POSTED, /* a part carried by a WR: @wr, @req, @offset, @length, @channel */
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

/* The first promise broken since engine_sim_new(), or NULL. */
const char *engine_sim_broken(void);

/* @chain_max 0: as the core's maximum; @sge_max 0: no merging. */
struct engine_sim *engine_sim_new(uint64_t window_bytes, uint32_t window_wrs, uint32_t depth,
				  uint32_t chain_max, uint32_t sge_max, uint64_t seed);

/* Call first: lets a policy of the simulator move the window at random. */
void engine_sim_move_window(struct engine_sim *s);
void engine_sim_free(struct engine_sim *s);

/*
 * Events. Each call pulls until the engines have no more actions; engine_sim_event() reads the
 * results.
 */
int engine_sim_submit(struct engine_sim *s, int engine, int op, uint64_t remote, uint32_t length,
		      int retries, int exclusive,
		      uint64_t deadline_ns); /* the request's number, or a negative errno */
int engine_sim_cancel(struct engine_sim *s, int req);
void engine_sim_complete(struct engine_sim *s, int wr, int status);
void engine_sim_expire(struct engine_sim *s, uint64_t now_ns);
int engine_sim_channel_up(struct engine_sim *s, int engine, int channel);
void engine_sim_channel_broken(struct engine_sim *s, int engine, int channel);
void engine_sim_channel_down(struct engine_sim *s, int engine, int channel);

/* While @held nothing is pulled, as while a host empties its inbox. */
void engine_sim_hold(struct engine_sim *s, int held);

/* The next result; SIM_NOTHING at the end. */
struct engine_sim_event engine_sim_event(struct engine_sim *s);

/* Return: the number of WRs in flight. @wr: the first part of WR number @index. */
int engine_sim_in_flight(const struct engine_sim *s, int index, struct engine_sim_event *wr);

/* Return: the number of requests in a WR in flight. @part: part number @index. */
int engine_sim_carried(const struct engine_sim *s, int wr, int index,
		       struct engine_sim_event *part);

/* Requests not handed back yet. */
int engine_sim_undone(const struct engine_sim *s);

#endif
