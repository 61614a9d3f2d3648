/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The program's reliable connected QPs: what of each is still under way, and its two ends of
 * unloading.
 *
 * An unloaded write goes past its QP, so none is while something else of that QP may be under way:
 * a QP is idle when everything has completed that went through it. That is known from the
 * completions that the program polls, in order, of what it asked completions for.
 *
 * Locks: tracked_qp_life, then watched.post, then the device's, then the table's, then watched.lock.
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
 * struct tracked_wr - what is about to be posted for the program
 * @wr_id: the program's
 * @at_ns: when the program posted it
 * @is_copied: it was unloaded, and has been copied
 * @is_signalled: it gets a completion
 * @path: an enum weir_path, with WEIR_PATH_PROBE: how long it takes is of interest
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
 * @of: what it is of
 * @sent: what it says to be over
 */
struct expected_wc {
	struct tracked_wr of;
	uint64_t sent;
};

/* How far the search for the other end is. */
enum seek_state {
	SEEK_NONE,
	SEEK_WANTED,
	SEEK_OUT, /* an offer is */
	SEEK_GREETED, /* it is answered, and so is to be the first message */
	SEEK_OVER,
};

/**
 * struct tracked_qp - one of the program's QPs
 * @chain: the next one in the table
 * @qp, @device: it, and where it is
 * @sig_all: everything gets a completion
 * @cap: what it takes
 * @is_disabled: from now on nothing is unloaded; atomic
 * @own_psn, @peer_psn: that each end sends with first, as from RTS and RTR on; with tracked_qp_life
 * @post: held while something is posted, so that all is in one order
 * @asked_ns: when the device was last asked for its state; with @post
 * @tx: where its writes go; NULL: nowhere; atomic, set by the service thread, taken back with
 * @post
 * @rx: what its peer unloads, or NULL; with tracked_qp_life
 * @tx_sought: not heard of yet; with tracked_qp_life
 * @seek, @seek_at_ns, @seek_until_ns, @seek_wait_ns: with tracked_qp_life
 * @lock: guards what follows
 * @sent: how much the program has posted, by either path; @over: of it, certainly over
 * @through: the last of it that went through the QP itself
 * @is_polled: its completions are seen here
 * @expected: those that come, @expected_max, from @head to @tail, modulo its size: first those of
 * what was copied, then those of what went through the QP
 * @route: who decides; @counters: its, or NULL
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

/* Held where a QP is destroyed, or changes its state, and where one must not. */
extern pthread_mutex_t tracked_qp_life;

/* A QP was made. One that cannot be unloaded for is not watched. Context: with tracked_qp_life. */
void tracked_qp_created(struct ibv_qp *qp, bool sig_all, const struct ibv_qp_cap *cap);

/* It is about to be destroyed. Context: with tracked_qp_life. */
void tracked_qp_destroyed(struct ibv_qp *qp);

/* It begins anew. Context: with tracked_qp_life. */
void tracked_qp_reset(struct tracked_qp *w);

/*
 * The one of that number, or NULL. It is there until the program destroys the QP: for who was given
 * the QP by the program.
 */
struct tracked_qp *tracked_qp_find(const struct ibv_context *context, uint32_t qpn);

/* What its peer unloads is not copied any more; see unload_rx_retire(). Context: with tracked_qp_life. */
void tracked_qp_retire_rx(struct tracked_qp *w);

/* One of @device's, or NULL: it has none. Context: with tracked_qp_life. */
struct tracked_qp *tracked_qp_on_device(const struct unload_device *device);

/* Calls @visit for each. Context: with tracked_qp_life. */
void tracked_qp_for_each(void (*visit)(struct tracked_qp *w, void *arg), void *arg);

/* From now on nothing is unloaded on it, and the user knows why. Once. */
void tracked_qp_disable(struct tracked_qp *w, const char *why);

static inline bool tracked_qp_is_disabled(const struct tracked_qp *w)
{
	return __atomic_load_n(&w->is_disabled, __ATOMIC_RELAXED);
}

/* Everything that went through the QP is over, and was seen here to be. */
bool tracked_qp_is_idle(struct tracked_qp *w);

/* The program may post one more, by what it was told of what it has posted. Context: with w->post. */
bool tracked_qp_has_room(struct tracked_qp *w);

/* Before it is posted; or it has been unloaded and nothing is. */
void tracked_qp_posting(struct tracked_qp *w, const struct tracked_wr *of);

/* The last of those has not been posted after all. */
void tracked_qp_not_posted(struct tracked_qp *w, bool is_signalled);

/* A write that was decided to go by @path will not go, or not be timed. */
void tracked_qp_cancel(struct tracked_qp *w, unsigned int path);

/*
 * The program has polled a completion. If it stands for a write that was copied, that is done, also
 * where the QP has ended since: @wc is a success then.
 */
void tracked_qp_polled(const struct ibv_cq *cq, struct ibv_wc *wc);

#endif
