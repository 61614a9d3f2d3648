/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A session: the internal interface.
 *
 * Threads: a thread that submits or waits also polls, so that a small request costs no thread
 * switch. The session's own thread, unless the user wants none, sleeps until a CQ event, a timer or
 * a connection manager event. A thread arms a CQ only when leaving WRs in flight
 * (weir_pump_leave()): a WR that completes while its submitter polls wakes no thread.
 *
 * The NIC's lock guards all mutable fields below, unless noted. Callbacks run without the lock
 * (dispatch.h).
 */
#ifndef WEIR_LIB_CLIENT_SESSION_H
#define WEIR_LIB_CLIENT_SESSION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/session.h>
#include "core/engine/engine.h"
#include "core/link/keepalive.h"
#include "core/poll/poll.h"
#include "lib/conn/address.h"
#include "lib/client/channel/waitqueue.h"
#include "lib/client/memory/bounce_pool.h"
#include "lib/client/message/call.h"
#include "lib/client/session_keepalive.h"
#include "lib/client/request/latency.h"
#include "lib/client/stats_shm.h"
#include "lib/client/channel/lanes.h"
#include "lib/client/channel/session_link.h"
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
#define WEIR_POOL_BYTES_DEFAULT (16u << 20) /* where memory may be registered as well */
#define WEIR_POOL_BYTES_DEFAULT_PRE (64u << 20) /* 128 of the longest copied requests */
#define WEIR_FRAGMENT_BYTES_DEFAULT (1u << 20)
#define WEIR_FRAGMENT_BYTES_MAX (1u << 30)
#define WEIR_POLL_WCS_MAX 32
#define WEIR_POLL_PERCENT_DEFAULT 90

/**
 * enum weir_session_state - the life of a session
 *
 * A session is OPEN from the first connect on: broken channels reconnect. When a channel cannot
 * reconnect, or its device is removed, the session is LOST: requests still end, but no channel
 * comes back. With all links down, the session is DOWN, and options.on_down is called.
 * weir_session_close() makes it CLOSING: no more submits, the threads end, and requests in flight
 * may complete. With all links down, a CLOSING session is CLOSED; a DOWN session is CLOSED at once.
 */
enum weir_session_state {
	WEIR_SESSION_OPEN,
	WEIR_SESSION_LOST,
	WEIR_SESSION_DOWN,
	WEIR_SESSION_CLOSING,
	WEIR_SESSION_CLOSED,
};

/**
 * enum weir_session_driver - the thread that polls a session's completion queues
 *
 * With options.no_thread the WAITERS drive their session: one waiter sleeps on epoll_fd, and polls
 * for the others. Otherwise the session has a THREAD of its own. Sessions with WEIR_POLLING_SCQ
 * share the SCQ_THREAD of their completion queue. A session that closes is SCQ_LEAVING until that
 * thread has ended its turn: the thread begins no other, but still wakes waiters. A session that
 * opens or is CLOSED has only its WAITERS.
 */
enum weir_session_driver {
	WEIR_SESSION_WAITERS,
	WEIR_SESSION_THREAD,
	WEIR_SESSION_SCQ_THREAD,
	WEIR_SESSION_SCQ_LEAVING,
};

/**
 * struct weir_session - one client's connections to one donor
 * @options: with the defaults filled in; @device, @pin: copies, which @options points to
 * @nic: the session's device
 * @engine, @wrs: the pipeline, and its WRs; @has_class: it has joined the NIC's classes
 * @links, @nr_links: the channels
 * @lanes: channels lent to threads
 * @id, @incarnation, @quota_bytes: from the donor's WELCOME
 * @address: of the donor; @peer: the same as "address:port"
 * @cqs, @nr_cqs: send CQs of the channels: @own_cqs, or the NIC's; the last one belongs to @unload
 *	alone
 * @scq, @scq_due: in the NIC's lists, with WEIR_POLLING_SCQ
 * @driver: who polls; written with the lock while other threads may use the session
 * @comp: receives the events of all CQs of the session
 * @recv_cq: for channel 0's messages; @recv_armed as in struct weir_cq
 * @cm: event channel of the connection manager
 * @epoll_fd: readable when @comp, @cm, @kick_fd or @timer_fd is
 * @kick_fd: an eventfd, to wake the thread that sleeps on @epoll_fd
 * @lead_fd: an eventfd, to wake the leading waiter that sleeps on @epoll_fd; without a thread only
 * @timer_fd: @timer_ns is when it fires, UINT64_MAX if never
 * @thread: the session's own, if @driver is WEIR_SESSION_THREAD
 * @reconnect_thread, @reconnect_wait: the reconnecting thread, if any, and its wait queue
 * @keepalive: detects a vanished donor host
 * @state: written with the lock, atomic to read
 * @down_status: for options.on_down; 0 is -ENOTCONN. @down_due: it must still be called
 * @is_watched: the thread polls now: no other thread need arm
 * @idle_time, @op_idle_time, @call_idle_time: idle times of the thread, of waits for requests,
 *	and of waits for messages
 * @spinners: waiters that poll now; atomic. @has_spun: a waiter has waited since the thread last
 *	checked; atomic
 * @sleepers: waiters that sleep
 * @stayers: waiters that do not sleep, and so will poll
 * @is_owed: since the CQs were armed, a thread that will not poll has submitted
 * @polled_wrs: work requests posted before the last poll of the CQs
 * @has_leader: a waiter sleeps on @epoll_fd; without a thread only. @lead: woken when it stops
 * @dispatching: threads that run callbacks; @posting: links posted to without the lock; @idle:
 *	woken when there are no more of either
 * @done: requests with callbacks to run; @to_notify: chain of requests to report to their queues;
 *	@to_notify_tail: its end
 * @active: in the NIC's list, when there may be requests to post
 * @spares, @live_requests: unused requests, and submitted requests off the fast path
 * @messages: on channel 0
 * @calls: messages that wait for a reply
 * @unload: small writes by the donor's CPU, on one more link
 * @buffers: for unregistered memory, created on first use
 * @bounce_totals: requests on such memory not yet in the trace
 * @regions, @memories, @pools: not yet released by the user; guarded by @hold_lock
 * @sampler: chooses the requests that are timed
 * @reads_clock: weir_session_must_read_clock(), so that one test serves a lone request
 * @stats_shm, @stats_shm_fd: shared with other processes: @counters and the records of @trace
 */
struct weir_session {
	struct weir_session_options options;
	char *device;
	uint8_t pin[WIRE_KEY];
	struct weir_session_tuning tuning;
	struct weir_nic *nic;
	struct weir_engine engine;
	struct weir_wr *wrs;
	bool has_class;
	struct weir_session_link links[WEIR_CHANNEL_MAX];
	unsigned int nr_links;
	struct weir_session_lanes lanes;

	uint64_t id;
	uint64_t incarnation;
	uint64_t quota_bytes;
	struct sockaddr_storage address;
	char peer[WEIR_ADDRESS_MAX];

	struct weir_cq *cqs[WEIR_CHANNEL_MAX];
	unsigned int nr_cqs;
	struct weir_cq own_cqs[WEIR_CHANNEL_MAX];
	struct weir_list scq, scq_due;
	enum weir_session_driver driver;
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
	pthread_t reconnect_thread;
	bool has_reconnect_thread;
	struct weir_waitqueue reconnect_wait;
	struct weir_keepalive keepalive;
	enum weir_session_state state;
	int down_status;
	bool down_due;

	bool is_watched;
	struct weir_idle_time idle_time, op_idle_time, call_idle_time;
	unsigned int spinners;
	bool has_spun;
	unsigned int sleepers;
	unsigned int stayers;
	bool is_owed;
	uint64_t polled_wrs;
	bool has_leader;
	struct weir_waitqueue lead;

	unsigned int dispatching, posting;
	struct weir_waitqueue idle;
	struct weir_list done;
	struct weir_inbox_node *to_notify, **to_notify_tail;
	struct weir_list active;
	struct weir_freelist spares;
	struct weir_list live_requests;

	struct weir_messages messages;
	struct weir_calls calls;
	struct weir_unload_tx unload;

	struct weir_bounce_pool buffers;
	struct weir_bounce_totals bounce_totals;

	pthread_mutex_t hold_lock;
	struct weir_list regions;
	struct weir_list memories;
	struct weir_list pools;

	const char *cipher; /* weir_encryption_cipher() of the latest channel; atomic */
	struct weir_latency_sampler sampler;
	bool reads_clock;
	struct weir_stats_shm *stats_shm;
	int stats_shm_fd;
	struct weir_counters *counters;
	struct weir_trace trace;
};

/* Whether a thread of the library drives the session. Otherwise waiters must. */
static inline bool weir_session_has_thread(const struct weir_session *session)
{
	return session->driver != WEIR_SESSION_WAITERS;
}

/**
 * weir_session_connect() - bring up one channel, from address to proof
 * @number: of the channel, which is CLOSED or BROKEN; channels come up in order, from 0
 * @address: of the donor
 * @deadline_ns: when to give up
 *
 * Blocks. Context: the thread that opens the session or reconnects; without nic->lock.
 * Return: as weir_session_open(); -ESTALE the donor has forgotten the session, or is another;
 * -ECANCELED the session is being closed.
 */
int weir_session_connect(struct weir_session *session, uint16_t number,
			 const struct sockaddr *address, uint64_t deadline_ns,
			 struct weir_error *error);

/* Creates the session's device resources; the first channel to come up determines the device. */
int weir_session_attach_device(struct weir_session *session, struct ibv_context *context,
			       struct weir_error *error);

/* Calls options.on_down, if due. Without nic->lock. */
void weir_session_call_on_down(struct weir_session *session);

/* From now on the classes of requests count on the NIC. With nic->lock held. */
void weir_session_join_classes(struct weir_session *session);

/* Frees everything. No other thread knows the session any more, and nothing is in flight. */
void weir_session_free(struct weir_session *session);

/*
 * Destroys a channel's QP and discards its remaining completions. Owes a weir_pump_pull(). Context:
 * with nic->lock held, released meanwhile: destroying a QP may have to wait for a peer.
 */
void weir_session_destroy_qp(struct weir_session *session, uint16_t number);

/* Also ends the channel's connection. No WR may be in flight. */
void weir_session_disconnect(struct weir_session *session, uint16_t number);

/* Takes the connection manager's events; a lost connection fails its link. */
void weir_session_poll_cm(struct weir_session *session);

/*
 * Return: true if all links are up; other links may have to break, or to go down. With nic->lock
 * held.
 */
static inline bool weir_session_is_whole(const struct weir_session *session)
{
	unsigned int i;

	for (i = 0; i < session->nr_links; i++) {
		if (session->links[i].core.state != WEIR_LINK_UP)
			return false;
	}
	return true;
}

/* Whether a lone request needs the time before its post. With nic->lock held. */
static inline bool weir_session_must_read_clock(const struct weir_session *session)
{
	return session->engine.window->learner || !session->sampler.left;
}

/* With nic->lock held. */
static inline void weir_session_set_state(struct weir_session *session,
					  enum weir_session_state state)
{
	__atomic_store_n(&session->state, state, __ATOMIC_RELAXED);
}

/* Of the following, a caller without nic->lock may see the state of a moment ago. */
static inline enum weir_session_state weir_session_state(const struct weir_session *session)
{
	return __atomic_load_n(&session->state, __ATOMIC_RELAXED);
}

/* Return: true if requests and messages are admitted. */
static inline bool weir_session_is_usable(const struct weir_session *session)
{
	return weir_session_state(session) <= WEIR_SESSION_LOST;
}

/* Return: true if the user closes the session. */
static inline bool weir_session_is_closing(const struct weir_session *session)
{
	return weir_session_state(session) >= WEIR_SESSION_CLOSING;
}

/* Return: true if no link is left. */
static inline bool weir_session_is_down(const struct weir_session *session)
{
	enum weir_session_state state = weir_session_state(session);

	return state == WEIR_SESSION_DOWN || state == WEIR_SESSION_CLOSED;
}

/* Return: true if there are callbacks to run. With nic->lock. */
static inline bool weir_session_has_callbacks(const struct weir_session *session)
{
	return !weir_list_is_empty(&session->done) || !weir_list_is_empty(&session->calls.done) ||
	       (!session->messages.handling && !weir_list_is_empty(&session->messages.inbox));
}

/* Adds @link to a list of the user's objects, or removes it. */
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

/* Traces a decision of the host, at the engine's current time. With nic->lock held. */
static inline void weir_session_trace(struct weir_session *session,
				      const struct weir_trace_record *record)
{
	weir_trace_note(&session->trace, session->nic->window.now_ns, record);
}

static inline void weir_session_lock(struct weir_session *session)
{
	weir_combine_lock(session->nic);
}

static inline void weir_session_unlock(struct weir_session *session)
{
	weir_combine_unlock(session->nic);
}

#endif
