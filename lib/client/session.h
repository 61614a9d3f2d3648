/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A session from the inside.
 *
 * Threads. Whoever submits or waits also polls, so that a small request costs no change of
 * thread. The session's own thread, unless the user wants none, sleeps until a CQ
 * raises an event, a timer runs out or the connection manager speaks. A CQ is armed only by
 * those who leave something in flight behind (weir_pump_leave()): what completes under the
 * hands of its submitter wakes nobody.
 *
 * One lock, the NIC's, guards everything below that changes, unless noted. Completions that
 * are callbacks are delivered without it (deliver.h).
 */
#ifndef WEIR_LIB_CLIENT_SESSION_H
#define WEIR_LIB_CLIENT_SESSION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/session.h>
#include "core/engine/engine.h"
#include "core/poll/poll.h"
#include "lib/conn/address.h"
#include "lib/client/channel/waitqueue.h"
#include "lib/client/memory/bounce_pool.h"
#include "lib/client/message/call.h"
#include "lib/client/keepalive.h"
#include "lib/client/stats_shm.h"
#include "lib/client/channel/link.h"
#include "lib/client/message/message.h"
#include "lib/client/channel/nic.h"
#include "lib/client/request/combine.h"
#include "lib/base/freelist.h"
#include "lib/client/memory/bounce.h"
#include "lib/client/channel/unload_tx.h"

#define WEIR_CHANNELS_DEFAULT 2
#define WEIR_DEPTH_DEFAULT 128
#define WEIR_DEPTH_MAX 4096
#define WEIR_TIMEOUT_NS_DEFAULT (10 * WEIR_NS_PER_S)
#define WEIR_KEEPALIVE_NS_DEFAULT (10 * WEIR_NS_PER_S)
#define WEIR_RETRIES_DEFAULT 3
#define WEIR_POOL_BYTES_MAX (16u << 20) /* where memory may be registered as well */
#define WEIR_POOL_BYTES_MAX_PRE (64u << 20) /* 128 of the longest requests that are copied */
#define WEIR_FRAGMENT_BYTES (1u << 20)
#define WEIR_FRAGMENT_BYTES_MAX (1u << 30)
#define WEIR_POLL_WCS_MAX 32
#define WEIR_POLL_PERCENT_DEFAULT 90

/**
 * struct weir_session - one client's connections to one donor
 * @options: with the defaults filled in
 * @nic: where it runs
 * @engine, @wrs: the pipeline, and its WRs
 * @links: the channels, @nr_links of them
 * @id, @incarnation, @quota_bytes: what the donor said in its WELCOME
 * @address: of the donor; @peer: the same as "address:port"
 * @cqs: of what the channels send, @nr_cqs of them: @own_cqs, or the NIC's; the last is @unload's
 *	alone
 * @scq, @scq_due: in the lists of the NIC's, with WEIR_POLLING_SCQ; @driven: by its thread
 * @comp: where all CQs of the session raise their events
 * @recv_cq: of channel 0's messages; @recv_armed as in struct weir_cq
 * @cm: where the connection manager speaks
 * @epoll_fd: readable when any of @comp, @cm, @kick_fd, @timer_fd is
 * @kick_fd: an eventfd, to wake who sleeps on @epoll_fd
 * @lead_fd: an eventfd, to wake the waiter that sleeps on @epoll_fd; without a thread only
 * @timer_fd: @timer_ns is when it fires, UINT64_MAX if never
 * @thread: the session's own, unless options.no_thread or the NIC's drives it; @has_thread: either
 *	does
 * @reconnect_thread, @reconnect_wait: the thread that mends, once there is one, and what it waits for
 * @keepalive: whether the donor's host is there
 * @stopping: no more submits; the threads end; written with the lock, atomic to read
 * @lost: broken channels do not come back
 * @down, @down_status: no channel is left; written with the lock, atomic to read
 * @down_due: options.on_down has yet to be told
 * @watched: the thread polls now: nobody has to arm anything
 * @gaps, @op_gaps, @call_gaps: how long the thread, who waits for a request, and who waits for a
 *	message waits
 * @spinners: waiters that poll now; atomic. @spun: something was waited for since the
 *	thread looked last; atomic
 * @sleepers: waiters that sleep
 * @stayers: waiters that do not, and so will poll. @owed: something was submitted since the CQs
 *	were armed by one that will not
 * @looked_wrs: how many work requests had been posted when the CQs were looked at last
 * @leading: one of them sleeps on @epoll_fd; without a thread only. @lead: when it stops
 * @dispatching: threads that run callbacks; @idle: when there are none
 * @done: requests whose callbacks wait to be run; @to_notify: those whose queues are about to be told,
 *	chained; @to_notify_tail: where the next goes
 * @fed: in the NIC's list, when it may have something to post
 * @spares, @live_requests: requests not in use, and those that went the long way
 * @messages: what travels on channel 0
 * @calls: which of those wait for an answer
 * @unload: small writes by the donor's CPU, on one more link
 * @buffers: for memory that nobody registered, made when first wanted
 * @bounce_totals: requests on such memory that the trace is to be told of
 * @regions, @memories, @pools: what the user has not released; guarded by @hold_lock
 * @stats_shm, @stats_shm_fd: what others see of it: @counters and what @trace wrote
 */
struct weir_session {
	struct weir_session_options options;
	struct weir_nic *nic;
	struct weir_engine engine;
	struct weir_wr *wrs;
	struct weir_link links[WEIR_CHANNEL_MAX];
	unsigned int nr_links;

	uint64_t id;
	uint64_t incarnation;
	uint64_t quota_bytes;
	struct sockaddr_storage address;
	char peer[WEIR_ADDRESS_MAX];

	struct weir_cq *cqs[WEIR_CHANNEL_MAX];
	unsigned int nr_cqs;
	struct weir_cq own_cqs[WEIR_CHANNEL_MAX];
	struct weir_list scq, scq_due;
	bool driven;
	struct ibv_comp_channel *comp;
	struct ibv_cq *recv_cq;
	bool recv_armed;
	struct rdma_event_channel *cm;
	int epoll_fd;
	int kick_fd;
	int lead_fd;
	int timer_fd;
	uint64_t timer_ns;

	pthread_t thread;
	bool has_thread;
	pthread_t reconnect_thread;
	bool has_reconnect_thread;
	struct weir_waitqueue reconnect_wait;
	struct weir_keepalive keepalive;
	bool stopping;
	bool lost;
	bool down;
	bool down_due;
	int down_status;

	bool watched;
	struct weir_idle_time gaps, op_gaps, call_gaps;
	unsigned int spinners;
	bool spun;
	unsigned int sleepers;
	unsigned int stayers;
	bool owed;
	uint64_t looked_wrs;
	bool leading;
	struct weir_waitqueue lead;

	unsigned int dispatching;
	struct weir_waitqueue idle;
	struct weir_list done;
	struct weir_inbox_node *to_notify, **to_notify_tail;
	struct weir_list fed;
	struct weir_freelist spares;
	struct weir_list live_requests;

	struct weir_messages messages;
	struct weir_call_table calls;
	struct weir_unload_tx unload;

	struct weir_bounce_pool buffers;
	struct weir_bounce_totals bounce_totals;

	pthread_mutex_t hold_lock;
	struct weir_list regions;
	struct weir_list memories;
	struct weir_list pools;

	struct weir_stats_shm *stats_shm;
	int stats_shm_fd;
	struct weir_counters *counters;
	struct weir_trace trace;
};

/**
 * weir_session_connect() - bring up one channel, from address to proof
 * @number: of the channel, which is CLOSED or BROKEN; they come up in order, from 0
 * @address: of the donor
 * @deadline_ns: when to give up
 *
 * Blocks. Context: the thread that opens the session, or that which mends it; without nic->lock.
 * Return: as weir_session_open(); -ESTALE the donor has forgotten the session, or is another;
 * -ECANCELED it is being closed.
 */
int weir_session_connect(struct weir_session *session, uint16_t number,
			 const struct sockaddr *address, uint64_t deadline_ns,
			 struct weir_error *error);

/* What a session has once, and only a device can give; the first channel to come up finds it. */
int weir_session_attach_device(struct weir_session *session, struct ibv_context *context,
			       struct weir_error *error);

/* Frees whatever there is. No thread knows the session any more, and nothing is in flight. */
void weir_session_free(struct weir_session *session);

/*
 * Lets go of a channel's QP, and of what has not been taken of its completions. With nic->lock
 * held, which it gives up in between: destroying may have to wait for a peer. Owes a
 * weir_pump_pull().
 */
void weir_session_destroy_qp(struct weir_session *session, uint16_t number);

/* Lets go of its connection, too. Nothing may be in flight there. */
void weir_session_disconnect(struct weir_session *session, uint16_t number);

/* Takes what the connection manager has to say; a lost connection fails its link. */
void weir_session_poll_cm(struct weir_session *session);

/* Whether all links are up: one that is not may have to break, or to go down. With nic->lock held. */
static inline bool weir_session_is_whole(const struct weir_session *session)
{
	unsigned int i;

	for (i = 0; i < session->nr_links; i++) {
		if (session->links[i].state != WEIR_LINK_UP)
			return false;
	}
	return true;
}

/* Whether there are callbacks to be run. With nic->lock. */
static inline bool weir_session_has_callbacks(const struct weir_session *session)
{
	return !weir_list_is_empty(&session->done) || !weir_list_is_empty(&session->calls.done) ||
	       (!session->messages.handling && !weir_list_is_empty(&session->messages.inbox));
}

/* Puts @link in one of the lists of what the user holds, or takes it out. */
static inline void weir_session_track(struct weir_session *session, struct weir_list *list,
				      struct weir_list *link)
{
	pthread_mutex_lock(&session->hold_lock);
	weir_list_add_tail(list, link);
	pthread_mutex_unlock(&session->hold_lock);
}

static inline void weir_session_untrack(struct weir_session *session, struct weir_list *link)
{
	pthread_mutex_lock(&session->hold_lock);
	weir_list_del(link);
	pthread_mutex_unlock(&session->hold_lock);
}

/* Notes a decision of the host's, at the time that the engine was told last. With nic->lock held. */
static inline void weir_session_trace(struct weir_session *session,
				      const struct weir_trace_record *record)
{
	weir_trace_note(&session->trace, session->nic->window.now_ns, record);
}

static inline void weir_session_lock(struct weir_session *session)
{
	weir_nic_lock(session->nic);
}

static inline void weir_session_unlock(struct weir_session *session)
{
	weir_nic_unlock(session->nic);
}

#endif
