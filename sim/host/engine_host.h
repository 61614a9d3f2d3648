/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The simulator's host of weir's core. Simulated threads drive the engine, window, merging and
 * polling over simulated verbs, as the library does.
 *
 * Threads submit to the NIC's inbox. A thread that finds the lock free serves all requests, a chain
 * at a time; a submitter never waits for the lock. A thread that waits for a completion becomes the
 * leader if there is none. The leader polls for all, sleeps when the poller says so, and passes the
 * lead on when its own wait is over. The other waiters sleep until their requests are done. A
 * session's polling thread is a thread that leads for ever.
 *
 * Channels do not fail here. All channels of a session share a CQ. With "cqs" set, the sessions of
 * the NIC use a number of shared CQs in turn, as in the library. With "lanes" set, each channel has
 * a CQ of its own.
 */
#ifndef WEIR_SIM_HOST_ENGINE_HOST_H
#define WEIR_SIM_HOST_ENGINE_HOST_H

#include "core/engine/engine.h"
#include "core/base/combine.h"
#include "core/link/in_flight.h"
#include "core/poll/poll.h"
#include "core/sched/window_delay.h"
#include "core/sched/window_knee.h"
#include "sim/host/lanes.h"
#include "sim/host/world.h"

/**
 * struct sim_poller - CQs, and the threads that wait for their completions
 * @cqs, @nr_cqs, @events: for all channels of its sessions: one CQ, or one for each lane
 * @turn: chooses the CQ at which the leader waits
 * @leader: the polling thread, or NULL
 * @followers: threads that wait for the leader, by wait_link
 * @poll, @idle_time, @verdict: adaptive polling, used by the leader
 */
struct sim_poller {
	struct sim_cq *cqs;
	uint32_t nr_cqs, turn;
	struct sim_channel events;
	struct sim_thread *leader;
	struct weir_list followers;
	struct weir_poll poll;
	struct weir_idle_time idle_time;
	enum weir_poll_verdict verdict;
};

/**
 * struct sim_engine_host - weir on one NIC
 * @node: the machine
 * @settings: *kept*
 * @lock: guards this struct and the engines of its sessions
 * @combine: requests not yet taken, and sessions that may have actions
 * @window: shared by all sessions; moved by @delay or @knee, if either is in use
 * @peak_bytes: the most bytes in flight so far
 * @pollers, @nr_pollers: assigned to sessions in turn
 * @nr_sessions: sessions so far
 * @crowd: above 0 while threads find the lock taken; counts chances to lend lanes down
 * @lent: the session whose lanes are lent, or NULL
 */
struct sim_engine_host {
	struct sim_node *node;
	const struct sim_load_settings *settings;
	struct sim_lock lock;
	struct weir_combine combine;
	struct weir_window window;
	struct weir_window_delay delay;
	struct weir_window_knee knee;
	uint64_t peak_bytes;
	struct sim_poller *pollers;
	uint32_t nr_pollers;
	uint32_t nr_sessions;
	uint32_t crowd;
	struct sim_session *lent;
};

struct sim_engine_channel {
	struct sim_qp *qp;
	struct weir_in_flight in_flight;
};

/**
 * struct sim_session - a session
 * @weir: the host
 * @engine, @wrs: the core's
 * @poller: takes the completions of all channels
 * @channels: QPs
 * @lanes: its lanes
 * @active: in the host's list of sessions that may have actions
 * @chains, @wrs_posted, @reqs_posted: counts so far
 */
struct sim_session {
	struct sim_engine_host *weir;
	struct weir_engine engine;
	struct weir_wr *wrs;
	struct sim_poller *poller;
	struct sim_engine_channel channels[WEIR_CHANNEL_MAX];
	struct sim_lanes lanes;
	struct weir_list active;
	uint64_t chains, wrs_posted, reqs_posted;
};

/**
 * struct sim_request - a request; belongs to the caller except while in flight
 * @req: for the core
 * @node: in the inbox
 * @session: the session
 * @done: called at completion, in any thread, with the lock held or a lane's; takes no time.
 *	Returns whether a thread was woken; the calling thread pays for waking
 */
struct sim_request {
	struct weir_req req;
	struct weir_inbox_node node;
	struct sim_session *session;
	bool (*done)(struct sim_request *request);
};

/**
 * sim_engine_host_init() - weir on one NIC
 * @weir, @node, @settings: *kept*
 * @nr_pollers: at least 1
 *
 * Return: 0; -ENOMEM; -EINVAL: invalid window.
 */
int sim_engine_host_init(struct sim_engine_host *weir, struct sim_node *node,
			 const struct sim_load_settings *settings, uint32_t nr_pollers);

/* Frees all memory of the host. The caller has finished its sessions. */
void sim_engine_host_fini(struct sim_engine_host *weir);

/**
 * sim_session_init() - a session with a number of channels
 * @session: *kept*
 * @weir: *kept*
 * @world: connects the channels to the client's next server
 *
 * Return: 0, -ENOMEM, or -EINVAL: the core refuses the configuration.
 */
int sim_session_init(struct sim_session *session, struct sim_engine_host *weir,
		     struct sim_world *world);

/* Frees all memory of the session. */
void sim_session_fini(struct sim_session *session);

/* Submits a request, and serves requests if the lock is free. The core must accept the request. */
void sim_engine_host_submit(struct sim_thread *self, struct sim_request *request);

/* Takes the completions of a poller for ever. */
void sim_engine_host_lead(struct sim_thread *self, struct sim_engine_host *weir,
			  struct sim_poller *poller);

/**
 * sim_engine_host_await() - wait for a condition
 * @self: the calling thread
 * @session: the session that the condition needs
 * @happened: the condition, tested with @arg after each step
 */
void sim_engine_host_await(struct sim_thread *self, struct sim_session *session,
			   bool (*happened)(void *arg), void *arg);

/* Down to sim_engine_host_serve(): for lanes.c. */

/* Posts a chain. With the lock held, or the channel lent. */
void sim_engine_host_post(struct sim_thread *self, struct sim_session *session, uint16_t channel,
			  struct weir_wr *first, uint32_t count);

/* Hands a request back to the load. */
void sim_engine_host_complete(struct sim_thread *self, struct sim_request *request);

/* Takes the inbox and completions, and posts. With the lock held. */
void sim_engine_host_poll(struct sim_thread *self, struct sim_engine_host *weir,
			  struct sim_poller *poller);

/* Serves all requests, unless another thread does. Without the lock. */
void sim_engine_host_serve(struct sim_thread *self, struct sim_engine_host *weir,
			   const struct sim_session *mine);

#endif
