/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lanes of a simulated session, as the library has them in lib/client/channel/lanes.h: while
 * threads compete for the host's lock, each posts and completes on a channel of its own. core/lane
 * decides as in the library. A thread uses the lane of its core.
 */
#ifndef WEIR_SIM_HOST_LANES_H
#define WEIR_SIM_HOST_LANES_H

#include "core/lane/claims.h"
#include "core/lane/lane.h"
#include "core/lane/loan.h"
#include "sim/cpu/lock.h"

struct sim_engine_host;
struct sim_request;
struct sim_session;

/**
 * struct sim_lane - one channel's
 * @lock: guards the rest
 * @core: the core's lane
 * @requests: one for each slot of @core
 * @is_over: no thread posts until the lanes have been taken back
 * @loan: so far
 */
struct sim_lane {
	struct sim_lock lock;
	struct weir_lane core;
	struct sim_request *requests[WEIR_LANE_WRS];
	bool is_over;
	struct weir_loan loan;
};

enum sim_lanes_state {
	SIM_LANES_NONE,
	SIM_LANES_LENT,
	SIM_LANES_SOON, /* the holder of the host's lock finishes the engine's requests */
};

/**
 * struct sim_lanes - guarded by the host's lock, but for the lanes
 * @state: an enum sim_lanes_state
 * @lane, @count: one for each channel; none without the setting "lanes"
 * @claims: of all lanes
 * @loans: when to lend
 * @done: requests so far
 */
struct sim_lanes {
	uint8_t state;
	struct sim_lane *lane;
	uint32_t count;
	struct weir_claims *claims;
	struct weir_loans loans;
	uint64_t done;
};

/* Return: 0, or -ENOMEM. */
int sim_lanes_init(struct sim_session *session);
void sim_lanes_fini(struct sim_session *session);

/* Lends the lanes if threads compete and it is time. The caller holds the lock, and unlocks. */
void sim_lanes_offer(struct sim_thread *self, struct sim_session *session);

/* Takes all lanes back. The caller has just taken the lock. */
void sim_lanes_recall(struct sim_thread *self, struct sim_engine_host *weir);

/* Posts a request on a lane. Return: false if it must take another way. */
bool sim_lanes_submit(struct sim_thread *self, struct sim_request *request);

/*
 * Waits for a condition, as long as the lanes are lent and polling costs less than sleeping.
 * Return: false if the caller must take the lanes back.
 */
bool sim_lanes_await(struct sim_thread *self, struct sim_session *session,
		     bool (*happened)(void *arg), void *arg);

#endif
