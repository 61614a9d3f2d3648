/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The program's reliable connected QPs: what of each is still under way, and its two ends of
 * unloading.
 *
 * An unloaded write goes past its QP, so none is while something else of that QP may be under way:
 * a QP is idle when everything has completed that went through it. That is known from the
 * completions that the program polls, in order, of what it asked completions for.
 *
 * Locks: watch_life, then watched.post, then the device's, then the table's, then watched.lock.
 */
#ifndef UNLOAD_WATCH_H
#define UNLOAD_WATCH_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/route.h"

struct device;
struct ring;
struct side;

/**
 * struct expected - a completion that the program will see
 * @posted: what it says to be over
 * @path: an enum weir_path, with WEIR_PATH_PROBE: how long it took is of interest
 * @at_ns: when that was posted
 */
struct expected {
	uint64_t posted;
	uint64_t at_ns;
	uint8_t path;
};

/* How far the search for the other end is. */
enum seek_state { SEEK_NONE, SEEK_WANTED, SEEK_OUT, SEEK_OVER };

/**
 * struct watched - one of the program's QPs
 * @chain: the next one in the table
 * @qp, @device: it, and where it is
 * @sig_all: everything gets a completion
 * @is_plain: from now on nothing is unloaded; atomic
 * @post: held while something is posted, so that all is in one order
 * @side: where its writes go; NULL: nowhere; atomic, set by the service thread, taken back with
 * @post
 * @ring: what its peer unloads, or NULL; with watch_life
 * @side_sought: offered, and not answered; with watch_life
 * @seek, @seek_at_ns, @seek_until_ns, @seek_wait_ns: with watch_life
 * @lock: guards what follows
 * @posted: of what went through the QP; @done: of it, certainly over
 * @expected: those that come, @expected_max, from @head to @tail, modulo its size
 * @route: who decides; @counters: its, or NULL
 */
struct watched {
	struct watched *chain;
	struct ibv_qp *qp;
	struct device *device;
	bool sig_all;
	bool is_plain;
	pthread_mutex_t post;
	struct side *side;
	struct ring *ring;
	struct side *side_sought;
	enum seek_state seek;
	uint64_t seek_at_ns;
	uint64_t seek_until_ns;
	uint64_t seek_wait_ns;
	pthread_mutex_t lock;
	uint64_t posted;
	uint64_t done;
	struct expected *expected;
	uint32_t expected_max;
	uint32_t head;
	uint32_t tail;
	struct weir_route route;
	uint8_t *counters;
};

/* Held where a QP is destroyed, or changes its state, and where one must not. */
extern pthread_mutex_t watch_life;

/* A QP was made. One that cannot be unloaded for is not watched. Context: with watch_life. */
void watch_created(struct ibv_qp *qp, bool sig_all, uint32_t send_wrs);

/* It is about to be destroyed. Context: with watch_life. */
void watch_destroyed(struct ibv_qp *qp);

/* It begins anew. Context: with watch_life. */
void watch_reset(struct watched *w);

/*
 * The one of that number, or NULL. It is there until the program destroys the QP: for who was given
 * the QP by the program.
 */
struct watched *watch_find(const struct ibv_context *context, uint32_t qpn);

/* Calls @visit for each. Context: with watch_life. */
void watch_each(void (*visit)(struct watched *w, void *arg), void *arg);

/* From now on nothing is unloaded on it, and the user knows why. Once. */
void watch_make_plain(struct watched *w, const char *why);

static inline bool watch_is_plain(const struct watched *w)
{
	return __atomic_load_n(&w->is_plain, __ATOMIC_RELAXED);
}

/* Everything that went through the QP is over. */
bool watch_is_idle(struct watched *w);

/*
 * One goes through it, or, with @is_signalled alone, stands for what did not. Before it is posted.
 */
void watch_posting(struct watched *w, bool counts, bool is_signalled, unsigned int path,
		   uint64_t at_ns);

/* The last of those has not been posted after all. */
void watch_not_posted(struct watched *w, bool counts, bool is_signalled);

/* The program has polled a completion. */
void watch_polled(const struct ibv_context *context, const struct ibv_wc *wc);

#endif
