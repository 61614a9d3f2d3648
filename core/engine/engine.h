/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine of one session: requests in, batches of work requests out.
 *
 * It decides and never does. A host (libweir, the kernel module, the simulator)
 * feeds it three events, submit, completed and expired, and after each, as after a
 * cancel and after a channel came or went, pulls actions with weir_engine_next() until
 * there are none, doing what they say. It owns no memory, clock, lock or thread.
 *
 * Order (promise 1): requests whose remote ranges overlap, at least one of which
 * changes memory, are posted one after the other, each when the one before it is
 * done; what does not overlap is free. See order.h. Messages are posted in the order
 * submitted.
 *
 * Batching (promise 5): what is ready when the host pulls is merged where it lies side by
 * side, see merge.h, and chained; nothing waits for more to come, but for a stream: what came
 * beside one that was not done, while WEIR_STREAM_WRS of its kind are in flight, gathers until one
 * of those completes, and what is ready behind it waits with it. That is soon, and until then the
 * NIC has enough to do.
 *
 * Unloading (see selector.h): small writes, merged or not, may take a channel of their own, on which
 * the target's CPU copies them, and which completes them when it has. To all that is said here that
 * is a channel like the others, but that only what is to be unloaded is posted there, as long as it
 * has room: what finds none is offloaded.
 *
 * Errors (promise 3): a request that was cut is done when none of its WRs is in flight,
 * with the first error that any of them met. Of a merged WR each request ends for itself:
 * when the WR was refused, or its local memory was not as registered, each is posted again
 * alone, so that only the guilty one fails.
 *
 * A channel that has failed is broken: it may come up again, when its host knows that nothing
 * sent on it before can arrive any more, or go down for good. Reads that were posted there are
 * posted on another, while retries are left. Writes and atomics are astray until then, and hold
 * what conflicts with them. When the channel comes up, exclusive writes with retries left are
 * posted again; all other changes end with -ECONNRESET, outcome unknown, as do messages at once.
 * What was not posted yet takes another channel or waits for one; with none left it ends with
 * -ENOTCONN.
 *
 * Who serialises: the host, with one lock over all engines that share a window. All
 * functions here may be called in any context and never sleep.
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
#define WEIR_STREAM_WRS 16 /* in flight, of neighbours: they keep a NIC busy while more gather */
#define WEIR_UNLOAD_SGE_MAX 3 /* pieces of local memory that an unloaded WR has at most */

struct weir_engine;

enum weir_action_type {
	WEIR_ACTION_POST, /* post the chain @wr (@count WRs) on @channel, one doorbell. The
			   * host owes a weir_engine_completed() for each, posted or not */
	WEIR_ACTION_DONE, /* @req is done: it is the caller's again */
	WEIR_ACTION_WAKE, /* the window has room again: pull @engine's actions too */
	WEIR_ACTION_FAIL, /* move @channel's QP to the error state: something posted there
			   * failed, or passed its deadline and only a flush gives its memory
			   * back. It is broken now: the host brings it up again, or down */
};

struct weir_action {
	enum weir_action_type type;
	union {
		struct {
			struct weir_wr *wr;
			uint16_t channel; /* of a FAIL too */
			uint16_t count;
		};
		struct weir_req *req;
		struct weir_engine *engine;
	};
};

/**
 * struct weir_engine_config - the host's settings, kept by value
 * @fragment_bytes: a WR is at most this long; at least WEIR_FRAGMENT_BYTES_MIN, at most
 *	the window at its smallest
 * @chain_max: WRs posted with one doorbell, 1 to WEIR_BATCH_MAX
 * @sge_max: entries of local memory that a WR can have, WEIR_SGE_MAX to WEIR_WR_SGE_MAX
 * @merge: neighbours become one WR
 * @stall_timeout_ns: without an answer until it gives up what others wait for, 0: for ever; see
 *	patience.h
 * @seed: any number; all that is random follows from it
 *
 * The four ways of RDMAbox: single (@chain_max 1, no @merge), doorbell (longer chains),
 * merge (@merge alone), hybrid (both).
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
 * struct weir_engine - embedded by the host; for its eyes, not for its hands
 * @window: shared with other engines
 * @waiter: its place in the window's line
 * @fragment_bytes: a WR is at most this long
 * @chain_max: WRs in a batch at most
 * @sge_max: entries of local memory in a WR at most
 * @merge: neighbours become one WR
 * @stall_timeout_ns: as configured; @stall_check_ns: when to look for silent channels; @progress_ns: when any had
 *	an answer
 * @wrs: the WRs that it was given
 * @nr_wrs: how many
 * @free_wrs: those not in flight, chained
 * @channels: where it posts
 * @fastpath: its request, when it has one only and has yet to see anything else happen; see fastpath.h
 * @backlog: its requests, but for @fastpath
 * @selector: by which path small writes go, or NULL; @unload: the channel where they are unloaded
 * @unload_full: writes that were to be unloaded, and found no room there
 * @streaming: WRs in flight that carry neighbours, or came beside one
 * @waits: times that the window was full
 * @trace: where it notes what it decides, or NULL
 */
struct weir_engine {
	struct weir_window *window;
	struct weir_window_waiter waiter;
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
 * weir_engine_init() - an engine without channels and requests
 * @e: the host's memory
 * @config: copied
 * @window: *kept*; initialised, and shared by all engines on one NIC
 * @wrs: *kept*; what it may have in flight, @nr_wrs of them
 * @nr_wrs: at least 1
 *
 * There is nothing to undo: when all its requests have been handed back and
 * weir_engine_next() has returned false, nothing refers to it.
 *
 * Return: 0, or -EINVAL: no WRs; a setting out of its range; or fragments larger than the
 *	window, which could never be posted.
 */
int weir_engine_init(struct weir_engine *e, const struct weir_engine_config *config,
		     struct weir_window *window, struct weir_wr *wrs, uint32_t nr_wrs);

/**
 * weir_engine_trace() - note what is decided from now on
 * @e: the engine
 * @trace: *kept*; initialised; the host may note its own decisions there, too. NULL: no more
 */
void weir_engine_trace(struct weir_engine *e, struct weir_trace *trace);

/**
 * weir_engine_unload() - choose between two paths from now on
 * @e: the engine; nothing was submitted yet
 * @selector: *kept*; initialised; serialised with the engine
 * @channel: the number of the one that unloads, below WEIR_CHANNEL_MAX, not up yet. Its depth is how many WRs
 *	the target's buffer holds
 */
void weir_engine_unload(struct weir_engine *e, struct weir_path_selector *selector,
			uint16_t channel);

/**
 * weir_engine_channel_up() - a channel can be posted to
 * @e: the engine
 * @channel: its number, below WEIR_CHANNEL_MAX
 * @depth: WRs that fit its send queue, at least 1
 *
 * Return: 0; -EINVAL for a bad number or depth; -EBUSY when it is up already, or when the
 *	host still owes completions of its former life.
 */
int weir_engine_channel_up(struct weir_engine *e, uint16_t channel, uint32_t depth);

/**
 * weir_engine_channel_broken() - a channel cannot be posted to for now
 * @e: the engine
 * @channel: its number
 *
 * For what the host finds out by itself; after a WEIR_ACTION_FAIL it says nothing new.
 * The host still owes the completion of each WR that it was given for this channel, which a
 * flush of the QP brings, and later a weir_engine_channel_up() or weir_engine_channel_down().
 */
void weir_engine_channel_broken(struct weir_engine *e, uint16_t channel);

/**
 * weir_engine_channel_down() - a channel cannot be posted to any more
 * @e: the engine
 * @channel: its number
 *
 * Changes that went astray there end; so its host must know that they cannot arrive any
 * more, or give up all channels.
 * The host still owes the completion of each WR that it was given for this channel,
 * which a flush of the QP brings.
 */
void weir_engine_channel_down(struct weir_engine *e, uint16_t channel);

/**
 * weir_engine_submit() - a request comes
 * @e: the engine
 * @req: filled in down to @sge; on success *kept until* a WEIR_ACTION_DONE returns it
 * @now_ns: the time
 *
 * Return: 0: it will end exactly once; otherwise it stays the caller's:
 *	-EINVAL    it makes no sense: see weir_req_check();
 *	-EMSGSIZE  a message longer than a fragment;
 *	-ETIMEDOUT its deadline has passed;
 *	-ENOTCONN  no channel is up or broken (for a message: channel 0 is not up).
 */
int weir_engine_submit(struct weir_engine *e, struct weir_req *req, uint64_t now_ns);

/**
 * weir_engine_completed() - a WR is in flight no longer
 * @e: the engine whose WR it is
 * @wc: the WR, once for each that a WEIR_ACTION_POST handed out, and how it ended
 * @now_ns: the time
 *
 * A failed one means that its channel has failed: it is not used until it comes up again.
 */
void weir_engine_completed(struct weir_engine *e, const struct weir_wc *wc, uint64_t now_ns);

/**
 * weir_engine_expired() - time has passed
 * @e: the engine
 * @now_ns: the time; too early does nothing
 *
 * Ends what is not posted and late with -ETIMEDOUT. What is posted and late ends so too,
 * but only when the NIC has let go of its memory: its channels are failed for it. So are those
 * whose room in the window others wait for in vain: see patience.h.
 *
 * Return: whether anything has ended, or a channel failed.
 */
bool weir_engine_expired(struct weir_engine *e, uint64_t now_ns);

/**
 * weir_engine_next() - what to do
 * @e: the engine
 * @out: the action, when there is one
 *
 * Return: false when there is nothing to do before the next event.
 */
bool weir_engine_next(struct weir_engine *e, struct weir_action *out);

/**
 * weir_engine_next_done() - one more that is done
 * @e: the engine; weir_engine_next() has handed one back since it last had anything to post
 *
 * As another weir_engine_next(), which would look in vain for what goes before it. What an event in
 * between lets be posted comes later.
 *
 * Return: the request, as of a WEIR_ACTION_DONE; NULL: there is none.
 */
static inline struct weir_req *weir_engine_next_done(struct weir_engine *e)
{
	return weir_backlog_pop_done(&e->backlog);
}

/*
 * Whether it is known at a glance that there is nothing to do: nothing is ready or done, nothing
 * waits for a barrier, no channel has failed, and nobody stands in the window's line.
 */
static inline bool weir_engine_is_quiet(const struct weir_engine *e)
{
	const struct weir_backlog *b = &e->backlog;

	return weir_list_is_empty(&b->ready) && weir_list_is_empty(&b->done) &&
	       weir_list_is_empty(&b->messages) && weir_list_is_empty(&b->behind) &&
	       weir_list_is_empty(&e->window->line) && !weir_channels_any_failed(&e->channels);
}

/* Whether it has no requests, but for those that weir_engine_next() is about to hand back. */
static inline bool weir_engine_is_idle(const struct weir_engine *e)
{
	return !e->fastpath && weir_backlog_is_empty(&e->backlog);
}

/**
 * weir_engine_deadline_ns() - when to call weir_engine_expired()
 * @e: the engine
 *
 * Return: the earliest deadline of its requests, or earlier when a channel may have been silent for
 *	too long then; or WEIR_NEVER.
 */
uint64_t weir_engine_deadline_ns(const struct weir_engine *e);

/**
 * weir_engine_cancel() - give up a request
 * @e: the engine
 * @req: submitted, and not handed back yet
 *
 * Return: 0: it comes back with -ECANCELED, and nothing of it was sent; or
 *	-EINPROGRESS it is posted, or done: it ends as it would have.
 */
int weir_engine_cancel(struct weir_engine *e, struct weir_req *req);

#endif
