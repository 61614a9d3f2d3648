/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The third host of weir's core: the engine, window, merging and polling that ship, driven as the
 * library drives them, by simulated threads over simulated verbs.
 *
 * Requests meet in the NIC's inbox; who finds the lock free serves all, a chain at a time; nobody
 * waits for the lock to submit. Who waits for a completion leads when nobody does: it polls for
 * all, sleeps when the poller says so, and hands the lead on when it has what it waited for; the
 * others sleep until theirs is done. A thread of its own that leads for ever is the session's
 * polling thread.
 *
 * Channels do not fail here. A session has one CQ for all its channels; that one, or one of some
 * that all sessions of the NIC go round, as the library's shared ones.
 */
#ifndef WEIR_SIM_HOST_ENGINE_HOST_H
#define WEIR_SIM_HOST_ENGINE_HOST_H

#include "core/engine/engine.h"
#include "core/base/inbox.h"
#include "core/poll/poll.h"
#include "sim/host/world.h"

/**
 * struct sim_poller - a CQ, and who waits for its completions
 * @cq, @events: of all channels of its sessions
 * @leader: who polls for all, or NULL
 * @followers: who waits for the leader, by wait_link
 * @poll, @gaps, @verdict: when the leader sleeps
 */
struct sim_poller {
	struct sim_cq cq;
	struct sim_channel events;
	struct sim_thread *leader;
	struct weir_list followers;
	struct weir_poll poll;
	struct weir_idle_time gaps;
	enum weir_poll_verdict verdict;
};

/**
 * struct sim_engine_host - weir on one NIC
 * @node: where
 * @settings: kept
 * @lock: guards all of it and its sessions' engines
 * @inbox: requests that nobody has taken
 * @fed: sessions that may have something to post
 * @window: of all its sessions
 * @peak_bytes: the most that was in flight
 * @pollers, @nr_pollers: its sessions go round them
 * @nr_sessions: so far
 */
struct sim_engine_host {
	struct sim_node *node;
	const struct sim_load_settings *settings;
	struct sim_lock lock;
	struct weir_inbox inbox;
	struct weir_list fed;
	struct weir_window window;
	uint64_t peak_bytes;
	struct sim_poller *pollers;
	uint32_t nr_pollers;
	uint32_t nr_sessions;
};

/* What was posted on a channel and not seen to be done, oldest first, by next. */
struct sim_engine_channel {
	struct sim_qp *qp;
	struct weir_wr *oldest, *newest;
	uint32_t unsignalled;
};

/**
 * struct sim_session - a session
 * @weir: on which NIC
 * @engine, @wrs: the core's
 * @poller: takes the completions of all channels
 * @channels: QPs
 * @fed: among those that may have something to post
 * @chains, @wrs_posted, @reqs_posted: so far
 */
struct sim_session {
	struct sim_engine_host *weir;
	struct weir_engine engine;
	struct weir_wr *wrs;
	struct sim_poller *poller;
	struct sim_engine_channel channels[WEIR_CHANNEL_MAX];
	struct weir_list fed;
	uint64_t chains, wrs_posted, reqs_posted;
};

/**
 * struct sim_request - a request; the caller's but while it is under way
 * @req: as the core wants it
 * @node: in the inbox
 * @session: whose
 * @done: called when it is done, by whoever finds out, with the lock; takes no time. Returns
 *	whether it woke a thread, which costs who called
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
 * Return: 0; -ENOMEM; -EINVAL: no such window.
 */
int sim_engine_host_init(struct sim_engine_host *weir, struct sim_node *node,
			 const struct sim_load_settings *settings, uint32_t nr_pollers);

/* Frees what it holds; its sessions were finished before. */
void sim_engine_host_fini(struct sim_engine_host *weir);

/**
 * sim_session_init() - a session with a number of channels
 * @session: *kept*
 * @weir: *kept*
 * @world: where its connections are made, to the client's next server
 *
 * Return: 0, -ENOMEM, or -EINVAL: what the core does not take.
 */
int sim_session_init(struct sim_session *session, struct sim_engine_host *weir,
		     struct sim_world *world);

/* Frees what it holds. */
void sim_session_fini(struct sim_session *session);

/* Submits a request, and serves unless somebody does. It must make sense to the core. */
void sim_engine_host_submit(struct sim_thread *self, struct sim_request *request);

/**
 * sim_engine_host_await() - wait until something has happened
 * @self: who
 * @weir: whose completions are to be polled for meanwhile
 * @poller: and there, which
 * @happened: asked with @arg after each step; NULL: lead for ever
 */
void sim_engine_host_await(struct sim_thread *self, struct sim_engine_host *weir,
			   struct sim_poller *poller, bool (*happened)(void *arg), void *arg);

#endif
