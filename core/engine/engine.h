/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine of one session: requests in, batches of work requests out.
 *
 * The engine decides and never does. A host (libweir, the kernel module, the simulator) reports
 * submit, completed and expired events. After each event, cancel, or channel change, the host pulls
 * actions with weir_engine_next() until there are none, and executes them. The engine owns no
 * memory, clock, lock or thread.
 *
 * Order: two requests conflict if their remote ranges overlap and either changes
 * memory. A request is posted when all earlier conflicting requests are done; see order.h. Messages
 * are posted in the order submitted.
 *
 * Batching: ready requests that are adjacent in remote memory are merged (see merge.h),
 * and WRs are chained. Nothing waits for company, except in a stream. With WEIR_STREAM_WRS stream
 * WRs in flight, a request beside an unfinished neighbour waits, with all ready requests behind,
 * until a stream WR completes. The NIC has enough to do during this short wait.
 *
 * Classes: a session's requests have a class each (see window_classes.h), and are ready in a queue
 * of their own. A request waits for conflicting requests of any class. Only requests of one class
 * are merged. In each channel, room for one WR is left to lower classes that have requests.
 *
 * Unloading (see core/unload/path.h): small writes, merged or not, may take a separate channel,
 * where the target's CPU copies the data and reports completion. The engine treats this channel
 * like any other, but posts only unloaded writes there. Without room there, a write is offloaded to
 * the NIC.
 *
 * Errors: a request cut into several WRs is done when no WR is in flight, with the
 * first error. Requests of a merged WR end separately. If the peer refused the WR, or local memory
 * was invalid, each request is posted again alone, so that only the guilty request fails.
 *
 * A failed channel is broken. The host brings the channel up again, once no WR sent before can
 * still arrive, or down for good. Reads posted there move to another channel while retries are
 * left. Writes and atomics are in doubt until the host decides, and hold back conflicting requests.
 * When the channel comes up, exclusive writes with retries left are posted again; other changes end
 * with -ECONNRESET, outcome unknown. Messages end so at once. Requests not yet posted take another
 * channel or wait for one; with no channel left they end with -ENOTCONN.
 *
 * Context of all: Any; never sleeps. Serialised by the host, with one lock over all engines that
 * share a window.
 */
#ifndef WEIR_CORE_ENGINE_ENGINE_H
#define WEIR_CORE_ENGINE_ENGINE_H

#include "core/engine/channel.h"
#include "core/engine/backlog.h"
#include "core/engine/request.h"
#include "core/unload/path.h"
#include "core/base/trace.h"
#include "core/sched/window.h"

#define WEIR_BATCH_MAX 32 /* WRs posted with one doorbell, at most */
#define WEIR_FRAGMENT_BYTES_MIN 4096
#define WEIR_STREAM_WRS \
	16 /* stream WRs in flight that keep a NIC busy while more requests
			    * gather */
#define WEIR_UNLOAD_SGE_MAX 3 /* local memory pieces in an unloaded WR, at most */

struct weir_engine;

enum weir_action_type {
	WEIR_ACTION_POST, /* post the chain @wr (@count WRs) on @channel with one doorbell. The host
			   * owes a weir_engine_completed() for each WR, posted or not */
	WEIR_ACTION_DONE, /* @req is done and belongs to the caller again */
	WEIR_ACTION_WAKE, /* the window has room again: pull @engine's actions too */
	WEIR_ACTION_FAIL, /* move @channel's QP to the error state: a WR failed, or passed its
			   * deadline and needs a flush. The channel is broken until the host
			   * reports it up or down */
};

struct weir_action {
	enum weir_action_type type;
	union {
		struct {
			struct weir_wr *wr;
			uint16_t channel; /* also for a FAIL */
			uint16_t count;
		};
		struct weir_req *req;
		struct weir_engine *engine;
	};
};

/**
 * struct weir_engine_config - the host's settings, copied
 * @fragment_bytes: maximum length of a WR; at least WEIR_FRAGMENT_BYTES_MIN, at most the smallest
 *	window
 * @chain_max: WRs posted with one doorbell, 1 to WEIR_BATCH_MAX
 * @sge_max: scatter/gather entries in a WR, WEIR_SGE_MAX to WEIR_WR_SGE_MAX
 * @merge: merge neighbours into one WR
 * @stall_timeout_ns: silence before a channel that blocks the window is failed; 0: never. See
 *	stall.h
 * @seed: any number; all randomness follows from it
 *
 * The four modes of RDMAbox: single (@chain_max 1, no @merge), doorbell (longer chains), merge
 * (@merge alone), hybrid (both).
 */
struct weir_engine_config {
	uint32_t fragment_bytes;
	uint16_t chain_max;
	uint8_t sge_max;
	bool merge;
	uint64_t stall_timeout_ns;
	uint64_t seed;
};

/**
 * struct weir_engine - embedded by the host; read-only for the host
 * @window: shared with other engines
 * @waiters: places in the window's line, by class
 * @fragment_bytes: maximum length of a WR
 * @chain_max: maximum WRs in a batch
 * @sge_max: maximum scatter/gather entries in a WR
 * @merge: merge neighbours into one WR
 * @stall_timeout_ns: as configured
 * @stall_check_ns: when to look for silent channels next
 * @progress_ns: time of the last success on any channel
 * @wrs: all WRs
 * @nr_wrs: how many
 * @free_wrs: WRs not in flight, chained
 * @channels: the session's channels
 * @fastpath: the only request, if nothing else has happened since its post; see fastpath.h
 * @backlog: all requests except @fastpath
 * @selector: chooses the path of small writes, or NULL
 * @unload: the channel for unloaded writes
 * @unload_full: writes meant for @unload that found no room there
 * @streaming: WRs in flight that carry neighbours or arrived beside one
 * @waits: how often the window was full
 * @trace: receives the engine's decisions, or NULL
 */
struct weir_engine {
	struct weir_window *window;
	struct weir_window_waiter waiters[WEIR_WINDOW_CLASSES];
	uint32_t fragment_bytes;
	uint16_t chain_max;
	uint8_t sge_max;
	bool merge;
	uint64_t stall_timeout_ns;
	uint64_t stall_check_ns;
	uint64_t progress_ns;
	struct weir_wr *wrs;
	uint32_t nr_wrs;
	struct weir_wr *free_wrs;
	struct weir_channels channels;
	struct weir_req *fastpath;
	struct weir_backlog backlog;
	struct weir_path_selector *selector;
	uint16_t unload;
	uint64_t unload_full;
	uint32_t streaming;
	uint64_t waits;
	struct weir_trace *trace;
};

/**
 * weir_engine_init() - initialise an engine without channels and requests
 * @e: the host's memory
 * @config: copied
 * @window: *kept*; initialised, and shared by all engines of one NIC
 * @wrs: *kept*; array of @nr_wrs WRs, the most that can be in flight
 * @nr_wrs: at least 1
 *
 * There is no fini. Once all requests are handed back and weir_engine_next() returns false, nothing
 * refers to @e.
 *
 * Return: 0, or -EINVAL: no WRs; a setting out of its range; or fragments larger than the smallest
 *	window, which could never be posted.
 */
int weir_engine_init(struct weir_engine *e, const struct weir_engine_config *config,
		     struct weir_window *window, struct weir_wr *wrs, uint32_t nr_wrs);

/**
 * weir_engine_trace() - trace decisions from now on
 * @e: the engine
 * @trace: *kept*; initialised; the host may write its own records there too. NULL: stop
 */
void weir_engine_trace(struct weir_engine *e, struct weir_trace *trace);

/**
 * weir_engine_unload() - choose between two paths from now on
 * @e: the engine, before the first submit
 * @selector: *kept*; initialised; serialised with the engine
 * @channel: number of the unload channel, below WEIR_CHANNEL_MAX, not up yet. Its wrs_max is the
 *	number of WRs that the target's buffer holds
 */
void weir_engine_unload(struct weir_engine *e, struct weir_path_selector *selector,
			uint16_t channel);

struct weir_window_classes;

/**
 * weir_engine_join_classes() - requests with and without a class use the scheduler from now on
 * @e: the engine
 * @classes: of its window; *kept*
 * @class: of requests that name none; after the first submit, WEIR_WINDOW_NORMAL
 * @weight: among the engines, in each class, 1 to WEIR_SCHED_WEIGHT_MAX
 *
 * The caller owes a weir_window_classes_part() when @e has no requests any more. Without this call,
 * classes order the requests of @e alone.
 */
void weir_engine_join_classes(struct weir_engine *e, struct weir_window_classes *classes,
			      enum weir_window_class class, uint16_t weight);

/**
 * weir_engine_channel_up() - a channel accepts posts
 * @e: the engine
 * @channel: its number, below WEIR_CHANNEL_MAX
 * @wrs_max: WRs that fit its send queue, at least 1
 *
 * Return: 0; -EINVAL for a bad number or wrs_max; -EBUSY if the channel is up already, or if the
 *	host still owes completions from before.
 */
int weir_engine_channel_up(struct weir_engine *e, uint16_t channel, uint32_t wrs_max);

/**
 * weir_engine_channel_busy() - a thread begins or ends a post without the host's lock
 * @e: the engine
 * @channel: its number
 * @is_busy: whether the post begins
 *
 * While a channel is busy, requests take other channels, or gather. The order needs no care: a
 * request waits until conflicting requests are done, not until they are posted. The host pulls
 * after the end.
 */
static inline void weir_engine_channel_busy(struct weir_engine *e, uint16_t channel, bool is_busy)
{
	e->channels.busy &= ~(1u << channel);
	e->channels.busy |= (uint32_t)is_busy << channel;
}

/**
 * weir_engine_channel_broken() - a channel accepts no posts for now
 * @e: the engine
 * @channel: its number
 *
 * For failures that the host detects; redundant after a WEIR_ACTION_FAIL. The host owes the
 * completion of each WR posted there, by flushing the QP, and later a weir_engine_channel_up() or
 * weir_engine_channel_down().
 */
void weir_engine_channel_broken(struct weir_engine *e, uint16_t channel);

/**
 * weir_engine_channel_down() - a channel accepts no posts any more
 * @e: the engine
 * @channel: its number
 *
 * Ends the changes in doubt there. The host must know that these can no longer arrive, or give up
 * all channels. The host owes the completion of each WR posted there, by flushing the QP.
 */
void weir_engine_channel_down(struct weir_engine *e, uint16_t channel);

/**
 * weir_engine_submit() - submit a request
 * @e: the engine
 * @req: filled in down to @sge; on success *kept until* a WEIR_ACTION_DONE returns the request
 * @now_ns: the time
 *
 * Return: 0: @req will end exactly once. On an error @req stays the caller's:
 *	-EINVAL    the request is malformed: see weir_request_check();
 *	-EMSGSIZE  a message is longer than a fragment;
 *	-ETIMEDOUT the deadline has passed;
 *	-ENOTCONN  no channel is up or broken (for a message: channel 0 is not up).
 */
int weir_engine_submit(struct weir_engine *e, struct weir_req *req, uint64_t now_ns);

/**
 * weir_engine_completed() - a WR is no longer in flight
 * @e: the engine that posted the WR
 * @wc: the WR and its status; exactly once for each WR of a WEIR_ACTION_POST
 * @now_ns: the time
 *
 * On an error the channel is broken until the host reports it up again.
 */
void weir_engine_completed(struct weir_engine *e, const struct weir_wc *wc, uint64_t now_ns);

/**
 * weir_engine_expired() - a deadline may have passed
 * @e: the engine
 * @now_ns: the time; no effect before weir_engine_deadline_ns()
 *
 * Late requests end with -ETIMEDOUT: at once if not posted, else when the NIC no longer uses their
 * memory. To get the memory back, their channels are failed. So are silent channels that block the
 * window: see stall.h.
 *
 * Return: true if a request ended or a channel failed.
 */
bool weir_engine_expired(struct weir_engine *e, uint64_t now_ns);

/**
 * weir_engine_next() - pull the next action
 * @e: the engine
 * @out: receives the action
 *
 * Return: false if there is nothing to do before the next event.
 */
bool weir_engine_next(struct weir_engine *e, struct weir_action *out);

/**
 * weir_engine_next_done() - pull one more finished request
 * @e: the engine; the last weir_engine_next() returned a finished request
 *
 * Cheaper than weir_engine_next(), which also returns other actions.
 *
 * Return: the request, as by a WEIR_ACTION_DONE, or NULL.
 */
static inline struct weir_req *weir_engine_next_done(struct weir_engine *e)
{
	return weir_backlog_pop_done(&e->backlog);
}

/*
 * A cheap test that there is nothing to do: no request is ready, done or behind a barrier, no
 * channel has failed, and no engine waits for the window.
 */
static inline bool weir_engine_is_quiet(const struct weir_engine *e)
{
	const struct weir_backlog *b = &e->backlog;

	return !weir_backlog_has_ready(b) && weir_list_is_empty(&b->done) &&
	       weir_list_is_empty(&b->messages) && weir_list_is_empty(&b->behind_barrier) &&
	       weir_list_is_empty(&e->window->waiters) && !weir_channels_any_failed(&e->channels);
}

/* Whether there are no requests, except those that weir_engine_next() is about to hand back. */
static inline bool weir_engine_is_idle(const struct weir_engine *e)
{
	return !e->fastpath && !e->backlog.live && weir_list_is_empty(&e->backlog.behind_barrier);
}

/**
 * weir_engine_deadline_ns() - when to call weir_engine_expired()
 * @e: the engine
 *
 * Return: the earliest deadline of a request, or the next check for silent channels if earlier; or
 *	WEIR_NEVER.
 */
uint64_t weir_engine_deadline_ns(const struct weir_engine *e);

/**
 * weir_engine_cancel() - cancel a request
 * @e: the engine
 * @req: submitted, and not handed back yet
 *
 * Return: 0: @req ends with -ECANCELED, and nothing of @req was sent; or
 *	-EINPROGRESS already posted or done: @req ends as it would have.
 */
int weir_engine_cancel(struct weir_engine *e, struct weir_req *req);

#endif
