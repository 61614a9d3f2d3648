/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The target's end of one direction: the buffer that a peer writes to, and the returns. See
 * core/unload/unload_rx.h and wire/unload.h.
 *
 * Context of all: with device.lock.
 */
#ifndef WEIR_PRELOAD_UNLOAD_UNLOAD_RX_H
#define WEIR_PRELOAD_UNLOAD_UNLOAD_RX_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/unload/cpu_budget.h"
#include "core/unload/unload_rx.h"
#include "preload/unload/clock.h"
#include "wire/discovery.h"
#include "wire/unload.h"

#define UNLOAD_RX_LAST_NS \
	(100 * NS_PER_MS) /* for the last return: a peer that lives takes no part */

struct unload_device;
struct qp_path;
struct tracked_qp;

/**
 * struct unload_rx - one
 * @next: of the device's
 * @device: where it is
 * @offer: what it was made for
 * @answer: what the peer was told
 * @qp, @cq, @mr, @slots: its own
 * @program: the program's QP; @pd: the handle of its PD; @asked_ns: when its state was asked for
 * @copier: what is copied, and told
 * @has_failed: it has no peer any more
 * @is_ending: the last return is out; @has_ended: it has arrived
 * @returns: under way, or not known to have arrived; @unsignalled: of them, the last
 */
struct unload_rx {
	struct unload_rx *next;
	struct unload_device *device;
	struct wire_discovery_offer offer;
	struct wire_discovery_offer answer;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct wire_unload_slot *slots;
	struct ibv_qp *program;
	uint32_t pd;
	uint64_t asked_ns;
	struct weir_unload_rx copier;
	bool has_failed;
	bool is_ending;
	bool has_ended;
	uint32_t returns;
	uint32_t unsignalled;
};

/**
 * unload_rx_open() - be ready for what a peer unloads
 * @w: the program's QP
 * @path: where that leads to
 * @offer: kept as a copy
 *
 * Return: it, its answer filled in; NULL: not possible now.
 */
struct unload_rx *unload_rx_open(const struct tracked_qp *w, const struct qp_path *path,
				 const struct wire_discovery_offer *offer);

/*
 * Nothing more is copied, and the peer is told so: once it knows, or cannot, the service thread
 * frees it. Who calls rings that thread's bell. NULL does nothing.
 */
void unload_rx_retire(struct unload_rx *rx);

/* It is retired, and nobody waits for it any more. */
bool unload_rx_is_over(const struct unload_rx *rx);

/* Retires it, waits until @until_ns at most for the peer to know, and frees it. */
void unload_rx_close(struct unload_rx *rx, uint64_t until_ns);

/* Copies what has come, and tells the peer. Return: how many. */
uint32_t unload_rx_serve(struct unload_rx *rx, struct weir_cpu_budget *ceiling);

/* What comes from now on raises an event. */
void unload_rx_arm(struct unload_rx *rx);

#endif
