/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The program's reliable connected QPs: the work in flight on each, and its two ends of unloading.
 *
 * An unloaded write bypasses its QP, so unloading requires an idle QP: all work posted to the QP
 * has completed. The completions that the program polls tell, in order, as far as work is
 * signalled.
 *
 * Locks: tracked_qp_life, then tracked_qp.post, then the device's, then the table's, then
 * tracked_qp.lock.
 */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_TRACKED_QP_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_TRACKED_QP_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/unload/path.h"

struct unload_device;
struct unload_rx;
struct unload_tx;

/**
 * struct tracked_wr - a WR about to be posted for the program
 * @wr_id: the program's
 * @at_ns: when the program posted the WR
 * @is_copied: unloaded, and copied by the target
 * @is_signalled: gets a completion
 * @path: an enum weir_path; with WEIR_PATH_PROBE the time to completion is measured
 */
struct tracked_wr {
	uint64_t wr_id;
	uint64_t at_ns;
	bool is_copied;
	bool is_signalled;
	uint8_t path;
};

/**
 * struct expected_wc - a completion that the program will see
 * @of: the WR
 * @sent: all WRs up to this number are over with this completion
 */
struct expected_wc {
	struct tracked_wr of;
	uint64_t sent;
};

/* How far the search for the peer has come. */
enum seek_state {
	SEEK_NONE,
	SEEK_WANTED,
	SEEK_OUT, /* an offer is out */
	SEEK_GREETED, /* the offer is answered; the first message comes next */
	SEEK_OVER,
};

/**
 * struct tracked_qp - one of the program's QPs
 * @chain: the next QP in the table
 * @qp, @device: the QP and its device
 * @sig_all: every WR is signalled
 * @cap: limits of the QP
 * @is_disabled: no more unloading; atomic
 * @own_psn, @peer_psn: first PSN of each end, valid from RTS and RTR on; with tracked_qp_life
 * @post: held while posting, so that all work has one order
 * @asked_ns: when the device was last asked for the QP's state; with @post
 * @tx: initiator of unloaded writes, or NULL; atomic, set by the service thread, reset with
 * @post
 * @rx: target of the peer's unloaded writes, or NULL; with tracked_qp_life
 * @tx_sought: a @tx without a first return yet; with tracked_qp_life
 * @seek, @seek_at_ns, @seek_until_ns, @seek_wait_ns: with tracked_qp_life
 * @lock: guards the members below
 * @sent: WRs posted by the program, by either path; @over: how many are certainly over
 * @through: the last WR posted to the QP itself
 * @is_polled: its completions are seen here
 * @expected: completions to come, @expected_max, from @head to @tail, modulo the size: first those
 *	of copied writes, then those of WRs posted to the QP
 * @route: selects the path; @counters: of @route, or NULL
 */
struct tracked_qp {
	struct tracked_qp *chain;
	struct ibv_qp *qp;
	struct unload_device *device;
	bool sig_all;
	bool is_disabled;
	struct ibv_qp_cap cap;
	uint32_t own_psn;
	uint32_t peer_psn;
	pthread_mutex_t post;
	uint64_t asked_ns;
	struct unload_tx *tx;
	struct unload_rx *rx;
	struct unload_tx *tx_sought;
	enum seek_state seek;
	uint64_t seek_at_ns;
	uint64_t seek_until_ns;
	uint64_t seek_wait_ns;
	pthread_mutex_t lock;
	uint64_t sent;
	uint64_t over;
	uint64_t through;
	bool is_polled;
	struct expected_wc *expected;
	uint32_t expected_max;
	uint32_t head;
	uint32_t tail;
	struct weir_path_selector route;
	uint8_t *counters;
};

/* Held to destroy a QP or change its state, and to prevent both. */
extern pthread_mutex_t tracked_qp_life;

/* A QP was made. QPs that cannot unload are not tracked. Context: with tracked_qp_life. */
void tracked_qp_created(struct ibv_qp *qp, bool sig_all, const struct ibv_qp_cap *cap);

/* The QP is about to be destroyed. Context: with tracked_qp_life. */
void tracked_qp_destroyed(struct ibv_qp *qp);

/* The QP starts over. Context: with tracked_qp_life. */
void tracked_qp_reset(struct tracked_qp *w);

/*
 * The QP with that number, or NULL. The result stays valid until the program destroys the QP; for
 * callers that got the QP from the program.
 */
struct tracked_qp *tracked_qp_find(const struct ibv_context *context, uint32_t qpn);

/* Ends copying for the peer; see unload_rx_retire(). Context: with tracked_qp_life. */
void tracked_qp_retire_rx(struct tracked_qp *w);

/* A QP of @device, or NULL if none is left. Context: with tracked_qp_life. */
struct tracked_qp *tracked_qp_on_device(const struct unload_device *device);

/* Calls @visit for each QP. Context: with tracked_qp_life. */
void tracked_qp_for_each(void (*visit)(struct tracked_qp *w, void *arg), void *arg);

/* Disables unloading on the QP, and tells the user why. Once. */
void tracked_qp_disable(struct tracked_qp *w, const char *why);

static inline bool tracked_qp_is_disabled(const struct tracked_qp *w)
{
	return __atomic_load_n(&w->is_disabled, __ATOMIC_RELAXED);
}

/* Is all work posted to the QP over, as seen in polled completions? */
bool tracked_qp_is_idle(struct tracked_qp *w);

/* Has the send queue room, as far as the program can know? Context: with w->post. */
bool tracked_qp_has_room(struct tracked_qp *w);

/* Call before posting, or after unloading a write that needs no post. */
void tracked_qp_posting(struct tracked_qp *w, const struct tracked_wr *of);

/* The last WR passed to tracked_qp_posting() was not posted. */
void tracked_qp_not_posted(struct tracked_qp *w, bool is_signalled);

/* A write assigned to @path will not go there, or not be timed. */
void tracked_qp_cancel(struct tracked_qp *w, unsigned int path);

/*
 * The program has polled a completion. An empty write in place of a copied write always succeeds,
 * even if the QP has failed since: @wc then becomes a success.
 */
void tracked_qp_polled(const struct ibv_cq *cq, struct ibv_wc *wc);

#endif
